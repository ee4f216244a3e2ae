"""Text identical to what Kafka's own tools print."""
