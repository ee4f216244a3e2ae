"""What only KRaft clusters have: a quorum whose voters change, features with levels, registrations of brokers."""
