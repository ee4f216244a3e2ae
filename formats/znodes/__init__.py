"""Kafka's znodes: paths, content of every version, secrets in it, and its content in words."""
