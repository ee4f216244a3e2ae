"""Files as Kafka 3.9's own dump tool prints them."""
