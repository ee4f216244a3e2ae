"""The state of a cluster and its changes: placement, topics, reassignment, elections, prediction, health."""
