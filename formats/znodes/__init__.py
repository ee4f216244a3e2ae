"""Kafka's znodes: paths, content of every version, secrets in it, and what it says in words."""
