"""Preferred elections: which partitions one would help, asking for it, and when it is done.

Only partitions whose first replica is alive, in the ISR and not the leader are asked for: one that never had a
leader wedges the controller until it is moved.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kctl.changes.intents import ElectPreferred, Intent, counted
from kctl.changes.plan import Plan, plan_of
from kctl.changes.waiting import Waited
from kctl.cluster.interface import Cluster
from kctl.cluster.state import ClusterState
from kctl.errors import Refused
from kctl.model import TopicPartition

LED, WANTED, CANNOT = "done", "not_started", "failed"


class Candidate(NamedTuple):
    """A partition and what a preferred election would do for it."""

    partition: TopicPartition
    state: str  # done: led by the preferred replica; not_started: an election would help; failed: it cannot
    reason: str | None = None


def candidates(state: ClusterState, topics: Iterable[str] | None = None) -> list[Candidate]:
    """Every partition of the topics, by name and number."""
    chosen = None if topics is None else set(topics)
    return [_candidate(tp, state) for tp in state.partitions() if chosen is None or tp.topic in chosen]


def _candidate(tp: TopicPartition, state: ClusterState) -> Candidate:
    replicas = state.topics[tp.topic].partitions[tp.partition]
    found = state.partition_states.get(tp)
    if not replicas:
        return Candidate(tp, CANNOT, "it has no replicas")
    if found is None:
        return Candidate(tp, CANNOT, "it never had a leader")
    preferred = replicas[0]
    if found.leader == preferred:
        return Candidate(tp, LED)
    if tp.topic in state.deleting:
        return Candidate(tp, CANNOT, "its topic is marked for deletion")
    if not state.is_alive(preferred):
        return Candidate(tp, CANNOT, f"broker {preferred}, its preferred leader, is not alive")
    if not state.is_replica_alive(tp, preferred):
        return Candidate(tp, CANNOT, f"broker {preferred}, its preferred leader, has it on a failed disk")
    if preferred not in found.isr:
        return Candidate(tp, CANNOT, f"broker {preferred}, its preferred leader, is not in the ISR")
    return Candidate(tp, WANTED)


def plan_preferred_election(cluster: Cluster, state: ClusterState, found: Sequence[Candidate]) -> Plan:
    """The plan that elects where it helps; empty where it helps nowhere. A stage is one request."""
    wanted = [candidate.partition for candidate in found if candidate.state == WANTED]
    title = f"elect the preferred leader of {counted(len(wanted), 'partition')}"
    if not wanted:
        return Plan(title=title, stages=())
    if state.election is not None:
        raise Refused("another preferred election is under way; nothing was written", "wait for it")
    intents = []
    while wanted:
        count = max(1, cluster.request_partitions_fitting([(tp, ()) for tp in wanted], "elect-preferred"))
        intents.append(ElectPreferred(partitions=tuple(wanted[:count])))
        wanted = wanted[count:]
    warnings = (
        [] if state.has_controller else ["there is no controller; the request waits until there is one"]
    )
    return plan_of(intents, cluster, state, title=title, warnings=warnings)


def elected(intent: Intent, state: ClusterState) -> Waited:
    """How far an election is; the controller takes the request away whatever came of it."""
    assert isinstance(intent, ElectPreferred)
    missing = []
    for tp in intent.partitions:
        replicas, found = state.replicas(tp), state.partition_states.get(tp)
        if replicas and (found is None or found.leader != replicas[0]):
            leader = found.leader if found else None
            missing.append(f"{tp} is led by {leader}, not by {replicas[0]}")
    done = len(intent.partitions) - len(missing)
    if state.election is not None:
        # What is led already does not end the wait: the next request needs this one gone.
        return Waited(min(done, len(intent.partitions) - 1), len(intent.partitions), tuple(missing))
    failed = f"the controller did not elect all of them: {'; '.join(missing[:3])}" if missing else ""
    return Waited(done, len(intent.partitions), tuple(missing), failed)


def controller_moved(intent: Intent, state: ClusterState) -> Waited:
    """Whether there is a controller again."""
    return Waited(int(state.has_controller), 1, ("there is no controller yet",))
