"""The files of a log directory beside the logs: indexes, snapshots, checkpoints, properties, and their names."""
