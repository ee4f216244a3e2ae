"""Clusters over Kafka's own protocol: the second backend of `kctl.cluster`, and reading logs from live brokers."""
