"""Preferred elections: the partitions that one would help, and the plan.

Only partitions whose first replica is alive, in the ISR and not the leader are requested: one that never had a
leader wedges the controller until it is moved.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from formats.words import counted
from kctl.changes.kinds.elections import ElectPreferred
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.interface import Cluster
from kctl.cluster.state import ClusterState
from kctl.errors import Refused
from kctl.model import TopicPartition

LED, WANTED, CANNOT = "done", "not_started", "failed"


class ElectionCandidate(NamedTuple):
    """A partition and the effect of a preferred election on it."""

    partition: TopicPartition
    state: str  # done: led by the preferred replica; not_started: an election would help; failed: it cannot
    reason: str | None = None


def candidates(state: ClusterState, topics: Iterable[str] | None = None) -> list[ElectionCandidate]:
    """Every partition of the topics, by name and number."""
    chosen = None if topics is None else set(topics)
    return [_candidate(tp, state) for tp in state.partitions() if chosen is None or tp.topic in chosen]


def _candidate(tp: TopicPartition, state: ClusterState) -> ElectionCandidate:
    replicas = state.topics[tp.topic].partitions[tp.partition]
    partition_state = state.partition_states.get(tp)
    if not replicas:
        return ElectionCandidate(tp, CANNOT, "it has no replicas")
    if partition_state is None:
        return ElectionCandidate(tp, CANNOT, "it never had a leader")
    preferred = replicas[0]
    if partition_state.leader == preferred:
        return ElectionCandidate(tp, LED)
    if tp.topic in state.deleting:
        return ElectionCandidate(tp, CANNOT, "its topic is marked for deletion")
    if not state.is_alive(preferred):
        return ElectionCandidate(tp, CANNOT, f"broker {preferred}, its preferred leader, is not alive")
    if not state.is_replica_alive(tp, preferred):
        return ElectionCandidate(
            tp, CANNOT, f"broker {preferred}, its preferred leader, has it on a failed disk"
        )
    if preferred not in partition_state.isr:
        return ElectionCandidate(tp, CANNOT, f"broker {preferred}, its preferred leader, is not in the ISR")
    return ElectionCandidate(tp, WANTED)


def plan_preferred_election(
    cluster: Cluster, state: ClusterState, candidates: Sequence[ElectionCandidate]
) -> Plan:
    """The plan of electing leaders where it helps; empty if it helps nowhere. A stage is one request."""
    partitions = [candidate.partition for candidate in candidates if candidate.state == WANTED]
    title = f"elect the preferred leader of {counted(len(partitions), 'partition')}"
    if not partitions:
        return Plan(title=title, stages=())
    if state.election is not None:
        raise Refused("another preferred election is under way; nothing was written", "wait for it")
    intents = []
    while partitions:
        count = max(1, cluster.request_partitions_fitting([(tp, ()) for tp in partitions], "elect-preferred"))
        intents.append(ElectPreferred(partitions=tuple(partitions[:count])))
        partitions = partitions[count:]
    warnings = (
        [] if state.has_controller else ["there is no controller; the request waits until there is one"]
    )
    return plan_of(intents, cluster, state, title=title, warnings=warnings)
