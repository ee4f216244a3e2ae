"""Indexes, snapshots and checkpoints rebuilt from a log, and compared with those that are there."""
