"""What a cluster is and how it changes: placement, topics, reassignment, elections, prediction, health."""
