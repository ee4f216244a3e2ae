"""The messages that brokers keep in their internal topics: a module a topic, above the notation they are written in."""
