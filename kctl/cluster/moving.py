"""What is moving where."""

from kctl.cluster.state import ClusterState, Replicas
from kctl.model import TopicPartition


def moving_targets(state: ClusterState) -> dict[TopicPartition, Replicas]:
    """Where everything that moves is going: by the request, and from 2.4 on by the topics."""
    found = {
        TopicPartition(name, partition): topic.target_replicas(partition)
        for name, topic in state.topics.items()
        for partition in topic.adding_replicas.keys() | topic.removing_replicas.keys()
        if topic.is_reassigning(partition)
    }
    if state.reassignment is not None:
        found |= {tp: r for tp, r in state.reassignment.partitions.items() if tp not in found}
    return dict(sorted(found.items()))
