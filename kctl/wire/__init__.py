"""Clusters over Kafka's own protocol: the second backend of `kctl.cluster`, and reading logs from live brokers."""

from kctl.wire.quick_import import enter_packages

enter_packages()
