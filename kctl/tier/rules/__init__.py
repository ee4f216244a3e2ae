"""What brokers would do with a tier by their own rules: copy, expire, look up, follow."""
