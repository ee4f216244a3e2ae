"""The core: files, ZooKeeper, Kafka's semantics, scans. Returns values; prints nothing."""

__version__ = "0.1.0"
