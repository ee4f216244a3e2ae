"""What brokers write to their log files: layouts, lines, and the sentences that Kafka prints."""
