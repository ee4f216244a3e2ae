"""The health of a partition at one moment, by Kafka's own definitions.

Source: core/src/main/scala/kafka/admin/TopicCommand.scala @ 2.8.2 (`isUnderReplicated`, `isUnderMinIsr`,
`isAtMinIsrPartitions`, `hasUnavailablePartitions`)
"""

from collections.abc import Callable
from typing import NamedTuple

from formats.whole_numbers import whole_number
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.versions import V3_7
from kctl.model import TopicPartition


class PartitionHealth(NamedTuple):
    """A partition and its health. Before the first election leader and epochs are None."""

    partition: TopicPartition
    replicas: Replicas
    isr: Replicas
    leader: int | None
    is_under_replicated: bool
    is_offline: bool
    is_under_min_isr: bool
    is_at_min_isr: bool
    is_leader_preferred: bool


def health_of(tp: TopicPartition, state: ClusterState) -> PartitionHealth:
    """The health of a partition of a topic that was read."""
    topic = state.topics[tp.topic]
    replicas = topic.partitions[tp.partition]
    partition_state = state.partition_states.get(tp)
    isr = partition_state.isr if partition_state else ()
    leader = partition_state.leader if partition_state else None
    least = min_isr_in_force(tp, leader, state)
    offline = leader is None or leader < 0 or not state.is_alive(leader)
    return PartitionHealth(
        partition=tp,
        replicas=replicas,
        isr=isr,
        leader=leader,
        # Replicas that are being added are always behind.
        is_under_replicated=len(isr) < len(topic.origin_replicas(tp.partition)),
        is_offline=offline,
        is_under_min_isr=offline or len(isr) < least,
        is_at_min_isr=len(isr) == least,
        is_leader_preferred=bool(replicas) and leader == replicas[0],
    )


def min_isr(topic: str, leader: int | None, state: ClusterState) -> int:
    """The min.insync.replicas in force; ZooKeeper does not show the brokers' own files."""
    value = state.topic_value(topic, leader, "min.insync.replicas")
    number = whole_number((value or "").strip())
    return 1 if number is None else number


def min_isr_in_force(tp: TopicPartition, leader: int | None, state: ClusterState) -> int:
    """The size of the ISR below which a leader refuses acks=all.

    From 3.7 on it is never more than the partition has replicas (`core:Partition.scala`, effectiveMinIsr @ 3.7.0;
    KAFKA-15583).
    """
    least, replicas = min_isr(tp.topic, leader, state), state.replicas(tp) or ()
    return min(least, len(replicas)) if state.kafka_version >= V3_7 and replicas else least


def is_version_known(state: ClusterState) -> bool:
    """Whether brokers told their version; ZooKeeper shows a lower bound."""
    return state.can.ask_brokers


def too_many_in_sync(min_isr: int, factor: int, state: ClusterState) -> str:
    """What a `min.insync.replicas` above the replication factor does, by version."""
    asks = f"min.insync.replicas={min_isr} is more than the replication factor {factor}"
    if state.kafka_version >= V3_7:
        return f"{asks}: acks=all asks for {factor} in the ISR, as Kafka 3.7 and later do (KAFKA-15583)"
    if is_version_known(state):
        return f"{asks}: acks=all never works"
    return f"{asks}: acks=all never works up to Kafka 3.6, and asks for {factor} in the ISR from 3.7 on (KAFKA-15583)"


FILTERS: dict[str, Callable[[PartitionHealth], bool]] = {
    "under_replicated": lambda health: health.is_under_replicated,
    "offline": lambda health: health.is_offline,
    "under_min_isr": lambda health: health.is_under_min_isr,
    "at_min_isr": lambda health: health.is_at_min_isr,
    "non_preferred": lambda health: not health.is_leader_preferred,
}
