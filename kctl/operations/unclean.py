"""Unclean elections: the state of each replica of a leaderless partition, the loss if it leads, the plan.

Of two replicas the one with the larger epoch of its last record has more, of equal ones that with the larger log end:
replicas use the same rule (KIP-101). A new leader makes the others truncate to where their histories diverge.

Source: KIP-966 (eligible leader replicas); metadata/src/main/java/org/apache/kafka/controller/PartitionChangeBuilder.java
@ 3.9.0
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from formats.words import counted
from kctl.changes.kinds.elections import ElectUnclean
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.interface import Cluster
from kctl.cluster.state import ClusterState
from kctl.errors import Refused
from kctl.model import TopicPartition


class ReplicaEnd(NamedTuple):
    """The last record of a replica: its epoch (-1: none) and the offset after it."""

    leader_epoch: int
    log_end_offset: int


class UncleanCandidate(NamedTuple):
    """A replica that could lead. Losses are in records; None if unknown."""

    partition: TopicPartition
    broker_id: int
    is_alive: bool
    is_eligible_leader_replica: bool
    end: ReplicaEnd | None
    lost_at_least: int | None
    lost_at_most: int | None
    common_end_offset: int | None  # where its history and that of the best replica diverge
    is_proposed: bool = False

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of its last record."""
        return self.end.leader_epoch if self.end else None

    @property
    def log_end_offset(self) -> int | None:
        """The end of its log."""
        return self.end.log_end_offset if self.end else None


def is_leaderless(tp: TopicPartition, state: ClusterState) -> bool:
    """Whether the partition has no live leader."""
    partition_state = state.partition_states.get(tp)
    return partition_state is None or not state.is_alive(partition_state.leader)


def best_of(ends: Mapping[int, ReplicaEnd]) -> int | None:
    """The broker whose replica has most; the first of equal ones. None if none answers."""
    return max(ends, key=lambda broker: ends[broker], default=None)


def candidates_of(
    tp: TopicPartition,
    state: ClusterState,
    ends: Mapping[int, ReplicaEnd],
    common: Mapping[int, int],
    to: int | None = None,
) -> list[UncleanCandidate]:
    """The replicas in their order, one of them proposed if one answers.

    `ends` are of the replicas that answer, `common` has where the history of each and that of the best one diverge; `to`
    is proposed instead of the best one. Raises Refused if it cannot lead.
    """
    replicas = state.replicas(tp) or ()
    eligible = state.eligible_leaders.get(tp, ())
    complete = {*state.isr(tp), *eligible, *state.last_known_leaders.get(tp, ())}
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
            UncleanCandidate(
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
    candidates: Sequence[UncleanCandidate],
    forecast: Sequence[Mapping[str, Any]],
    *,
    accepted: bool,
) -> Plan:
    """The plan of electing the proposed ones; `forecast` goes into the journal. Raises Refused if none can lead."""
    proposed = [candidate for candidate in candidates if candidate.is_proposed]
    hopeless = sorted(
        {candidate.partition for candidate in candidates} - {candidate.partition for candidate in proposed}
    )
    if hopeless:
        raise Refused(
            f"{hopeless[0]} has no live replica that answers; nothing was written",
            "start one of the brokers that hold it, or repair the disk it is on; `kctl topic describe` shows which these are",
        )
    if not proposed:
        return Plan(title="elect an unclean leader", stages=())
    intent = ElectUnclean(
        chosen={candidate.partition: (candidate.broker_id,) for candidate in proposed},
        origins={candidate.partition: state.replicas(candidate.partition) or () for candidate in proposed},
    )
    least = sum(candidate.lost_at_least or 0 for candidate in proposed)
    most = [candidate.lost_at_most for candidate in proposed]
    unknown = sum(candidate is None for candidate in most)
    upper = "an unknown number" if unknown else f"{sum(candidate or 0 for candidate in most):,}"
    warnings = [f"it loses at least {counted(least, 'record')}, at most {upper}"]
    warnings += [
        _waiting_for(candidate, candidates) for candidate in proposed if candidate.lost_at_most is None
    ][:5]
    first = proposed[0]
    return plan_of(
        [intent],
        cluster,
        state,
        title=""
        if len(proposed) > 1
        else f"elect broker {first.broker_id} unclean leader of {first.partition}",
        warnings=warnings,
        details={"forecast": [dict(row) for row in forecast]},
        needs="" if accepted else "--accept-loss",
    )


def _waiting_for(proposed: UncleanCandidate, candidates: Sequence[UncleanCandidate]) -> str:
    silent = [
        candidate
        for candidate in candidates
        if candidate.partition == proposed.partition and candidate.end is None
    ]
    safe = [candidate.broker_id for candidate in silent if candidate.is_eligible_leader_replica]
    if safe:
        return f"{proposed.partition}: broker {safe[0]} has every committed record; to start it loses nothing"
    brokers = ", ".join(str(candidate.broker_id) for candidate in silent)
    return f"{proposed.partition}: brokers that do not answer ({brokers}) may have more; to start them may lose less"
