"""What is done to a cluster, planned as intents: topics, configurations, elections, reassignments, quorum."""
