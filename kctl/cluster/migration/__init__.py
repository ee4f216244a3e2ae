"""Migration from ZooKeeper to KRaft: the phase it is in, and whether both sides hold the same metadata."""
