"""Tiered storage: names of objects, manifests, metadata records in columns, files that brokers keep of it."""
