"""The keys that throttles are set with, and whether any is."""

from kctl.cluster.state import ClusterState

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LISTS, RATES = (LEADER_REPLICAS, FOLLOWER_REPLICAS), (LEADER_RATE, FOLLOWER_RATE)


def is_anything_throttled(state: ClusterState) -> bool:
    """Whether a topic that was read has a list of throttled replicas, or a broker a rate."""
    keys = {"topics": LISTS, "brokers": RATES}
    return any(
        key in config.values for (kind, _), config in state.configs.items() for key in keys.get(kind, ())
    )
