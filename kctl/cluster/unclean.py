"""Unclean elections: what each replica of a leaderless partition has, what it would cost to let it lead, the plan.

Of two replicas the one with the larger epoch of its last record has more, of equal ones that with the larger log end:
so do replicas compare themselves (KIP-101). A replica that leads makes the others truncate to where both histories part.

Source: KIP-966 (eligible leader replicas); metadata/src/main/java/org/apache/kafka/controller/PartitionChangeBuilder.java
@ 3.9.0
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kctl.changes.intents import ElectUnclean, Intent, counted
from kctl.changes.plan import Plan, plan_of
from kctl.changes.waiting import Waited
from kctl.cluster.interface import Cluster
from kctl.cluster.state import ClusterState
from kctl.errors import Refused
from kctl.model import TopicPartition


class ReplicaEnd(NamedTuple):
    """The last record of a replica: its epoch (-1: there is none) and the offset behind it."""

    leader_epoch: int
    log_end_offset: int


class Candidate(NamedTuple):
    """A replica that could lead. Losses are in records; None where they are not known."""

    partition: TopicPartition
    broker_id: int
    is_alive: bool
    is_eligible_leader_replica: bool
    end: ReplicaEnd | None
    lost_at_least: int | None
    lost_at_most: int | None
    common_end_offset: int | None  # where its history and that of the best replica part
    is_proposed: bool = False

    @property
    def leader_epoch(self) -> int | None:
        """Of its last record."""
        return self.end.leader_epoch if self.end else None

    @property
    def log_end_offset(self) -> int | None:
        """Where its log ends."""
        return self.end.log_end_offset if self.end else None


def is_leaderless(tp: TopicPartition, state: ClusterState) -> bool:
    """Whether nobody alive leads the partition."""
    found = state.partition_states.get(tp)
    return found is None or not state.is_alive(found.leader)


def best_of(ends: Mapping[int, ReplicaEnd]) -> int | None:
    """The broker whose replica has most; of equal ones the first. None where nobody answers."""
    return max(ends, key=lambda broker: ends[broker], default=None)


def candidates_of(
    tp: TopicPartition,
    state: ClusterState,
    ends: Mapping[int, ReplicaEnd],
    common: Mapping[int, int],
    to: int | None = None,
) -> list[Candidate]:
    """The replicas in their order, one of them proposed where one answers.

    `ends` are of the replicas that answer, `common` says where the history of each and that of the best one part; `to`
    is proposed instead of the best one. Raises Refused where it cannot lead.
    """
    replicas = state.replicas(tp) or ()
    found = state.partition_states.get(tp)
    eligible = state.eligible_leaders.get(tp, ())
    complete = {*(found.isr if found else ()), *eligible, *state.last_known_leaders.get(tp, ())}
    is_all_known = (complete or set(replicas)) <= set(ends)
    ordered = {b: ends[b] for b in sorted(ends, key=lambda b: (b not in eligible, replicas.index(b)))}
    best = best_of(ordered)
    if to is not None and to not in ends:
        why = (
            "has no replica of it"
            if to not in replicas
            else "does not answer"
            if state.is_alive(to)
            else "is not alive"
        )
        raise Refused(
            f"broker {to} cannot lead {tp}: it {why}; nothing was written",
            "leave out --to: kctl then proposes the broker with the most records",
        )
    chosen = best if to is None else to
    listed = []
    for broker in replicas:
        least: int | None = None
        if broker in ends and best is not None and broker in common:
            least = 0 if broker in eligible else ends[best].log_end_offset - common[broker]
        most = 0 if broker in eligible and broker in ends else least if is_all_known else None
        listed.append(
            Candidate(
                tp,
                broker,
                state.is_replica_alive(tp, broker),
                broker in eligible,
                ends.get(broker),
                least,
                most,
                common.get(broker),
                broker == chosen,
            )
        )
    return listed


def plan_unclean_election(
    cluster: Cluster,
    state: ClusterState,
    found: Sequence[Candidate],
    forecast: Sequence[Mapping[str, Any]],
    *,
    accepted: bool,
) -> Plan:
    """The plan of electing those proposed; `forecast` goes into the journal. Raises Refused where none can lead."""
    proposed = [one for one in found if one.is_proposed]
    hopeless = sorted({one.partition for one in found} - {one.partition for one in proposed})
    if hopeless:
        raise Refused(
            f"{hopeless[0]} has no live replica that answers; nothing was written",
            "start one of the brokers that hold it, or repair the disk it is on; `kctl topic describe` shows which these are",
        )
    if not proposed:
        return Plan(title="elect an unclean leader", stages=())
    intent = ElectUnclean(
        chosen={one.partition: (one.broker_id,) for one in proposed},
        origins={one.partition: state.replicas(one.partition) or () for one in proposed},
    )
    least = sum(one.lost_at_least or 0 for one in proposed)
    most = [one.lost_at_most for one in proposed]
    unknown = sum(one is None for one in most)
    upper = "an unknown number" if unknown else f"{sum(one or 0 for one in most):,}"
    warnings = [f"it loses at least {counted(least, 'record')}, at most {upper}"]
    warnings += [_waiting_for(one, found) for one in proposed if one.lost_at_most is None][:5]
    one = proposed[0]
    return plan_of(
        [intent],
        cluster,
        state,
        title="" if len(proposed) > 1 else f"elect broker {one.broker_id} unclean leader of {one.partition}",
        warnings=warnings,
        details={"forecast": [dict(row) for row in forecast]},
        needs="" if accepted else "--accept-loss",
    )


def _waiting_for(proposed: Candidate, found: Sequence[Candidate]) -> str:
    silent = [one for one in found if one.partition == proposed.partition and one.end is None]
    safe = [one.broker_id for one in silent if one.is_eligible_leader_replica]
    if safe:
        return f"{proposed.partition}: broker {safe[0]} has every committed record; to start it loses nothing"
    brokers = ", ".join(str(one.broker_id) for one in silent)
    return f"{proposed.partition}: brokers that do not answer ({brokers}) may have more; to start them may lose less"


def elected(intent: Intent, state: ClusterState) -> Waited:
    """How far it is: the chosen brokers lead, and the replicas are in their order again."""
    assert isinstance(intent, ElectUnclean)
    missing, failed = [], ""
    for tp, (broker,) in intent.chosen.items():
        leader = found.leader if (found := state.partition_states.get(tp)) else -1
        if leader == broker and state.replicas(tp) == tuple(intent.origins[tp]):
            continue
        missing.append(f"{tp} is led by {leader}, not by {broker}")
        if leader != broker and state.is_alive(leader):
            failed = f"broker {leader} leads {tp}, not {broker}"
    return Waited(len(intent.chosen) - len(missing), len(intent.chosen), tuple(missing), failed)
