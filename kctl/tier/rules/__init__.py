"""What brokers would do with a tier: copy, expire, look up, follow."""
