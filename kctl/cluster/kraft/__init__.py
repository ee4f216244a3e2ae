"""What KRaft clusters alone have: a quorum whose voters change, features with levels, registrations of brokers."""
