"""Features, voters and registrations of a KRaft cluster."""
