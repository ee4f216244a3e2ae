"""A real ZooKeeper and real brokers of any Kafka version, for tests: `with cluster("2.8") as c: ...`."""
