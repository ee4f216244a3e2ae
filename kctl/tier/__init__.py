"""Tiered storage (KIP-405): what the metadata says, what the brokers would do next, what the store really holds."""
