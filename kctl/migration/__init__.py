"""The migration from ZooKeeper to KRaft: both sides, their comparison, its phase, its preflight."""
