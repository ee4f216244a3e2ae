"""Tiered storage: object names, manifests, metadata records as columns, and brokers' files about it."""
