"""Kafka's protocol: messages, logins, connections to nodes."""
