"""The topics that Kafka keeps its own state in, read from their segments as of an offset or a time."""
