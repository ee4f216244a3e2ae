"""Migration from ZooKeeper to KRaft: the phase, and whether both sides have the same metadata."""
