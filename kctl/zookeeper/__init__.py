"""Clusters that keep their metadata in ZooKeeper: connection, bulk reads, compare-and-set writes."""
