"""Tiered storage (KIP-405): its metadata, its objects, and what brokers would do next."""
