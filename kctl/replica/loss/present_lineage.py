"""The present lineage of a partition: what its leader has at the last moment, and up to which offset.

The present leader is that of the last moment's znodes, else of the highest epoch, else the given one, else unknown.
Copies of a live cluster are taken one after the other: records of the leader's epoch beyond its end in another copy
of the same moment are part of the present lineage too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import itemgetter

from formats.values import Struct, field
from kctl.copies.leaders import Leaders
from kctl.copies.lineage import Lineage
from kctl.copies.moments import RecordedState, Znodes
from kctl.evidence.order import newest_timestamp
from kctl.evidence.replica_copies import ByMoment, Copy, Moment
from kctl.findings import Finding
from kctl.findings import replica as replica_findings
from kctl.model import TopicPartition
from kctl.replication.epochs import Entries, loaded


class PresentLeader(Struct):
    """The copy of the present leader, which the present lineage is read from, and the partition's state."""

    moment: Moment
    copy: Copy
    leader: int | None
    state: RecordedState | None
    live: frozenset[int] | None
    """Brokers that were registered at that moment; None without znodes."""
    log_end_offset: int = 0
    lineage: Lineage | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def recorded(self) -> Entries:
        """Its leader epochs, including those without records, ascending."""
        return self.lineage.loaded if self.lineage else ()

    @property
    def current_epoch(self) -> int | None:
        """The newest leader epoch in its file or in the znodes of its moment."""
        named = [epoch for epoch, _ in self.recorded[-1:]]
        if self.state is not None and self.state.leader == self.copy.broker_id:
            named.append(self.state.leader_epoch)
        return max(named, default=None)

    def starts_after(self, epoch: int) -> int | None:
        """Where the first epoch above this one starts in the present lineage; None if there is none."""
        return self.start_from(epoch + 1)

    def start_from(self, epoch: int) -> int | None:
        """Where this epoch or the first one above it starts in the present lineage; None if there is none."""
        index = bisect_left(self.recorded, epoch, key=itemgetter(0))
        return self.recorded[index][1] if index < len(self.recorded) else None


def choose_present(
    partition: TopicPartition,
    by_moment: ByMoment,
    order: Sequence[Moment],
    znodes: Mapping[Moment, Znodes],
    leaders: Leaders,
    given_leader: int | None = None,
) -> PresentLeader | None:
    """The copy of the present leader; None if copies contradict each other and the leader is unknown.

    Its lineage is not read yet. If all copies of the last moment agree, the longest one is used.
    """
    present = [moment for moment in order if moment in by_moment]
    if not present:
        return None
    moment = present[-1]
    copies = by_moment[moment]
    znode = znodes.get(moment)
    state = znode.state(partition) if znode else None
    live = frozenset(znode.live) if znode else None
    leader = given_leader if given_leader is not None else state.leader if state else None
    if leader is not None and leader in copies:
        return PresentLeader(moment, copies[leader], leader, state, live)
    chosen = _of_highest_epoch(copies, state) or _last_in_logs(copies, leaders) or _longest(partition, copies)
    if chosen is None:
        return None
    present_leader = PresentLeader(
        moment, chosen, leader if leader is not None else chosen.broker_id, state, live
    )
    if leader is not None:
        present_leader.findings.append(
            replica_findings.PREFIX_LOST.at(
                chosen.place, broker_id=leader, partition=partition, instead=chosen.broker_id
            )
        )
    return present_leader


def _of_highest_epoch(copies: Mapping[int, Copy], state: RecordedState | None) -> Copy | None:
    """The copy with the newest recorded epoch, from the ISR if it is known; None if no copy has epochs."""
    candidates = [c for c in copies.values() if state is None or c.broker_id in state.isr]
    candidates = candidates or list(copies.values())
    with_epochs = [(loaded(c.recorded_epochs)[-1], c) for c in candidates if c.recorded_epochs]
    if with_epochs:
        newest = max(entry for entry, _ in with_epochs)
        return next(c for entry, c in with_epochs if entry == newest)
    return candidates[0] if state is not None or len(candidates) == 1 else None


def _last_in_logs(copies: Mapping[int, Copy], leaders: Leaders) -> Copy | None:
    """The copy of the broker that led, by brokers' logs, at the time of the newest batch."""
    newest = max((newest_timestamp(copy.folder) or 0 for copy in copies.values()), default=0)
    terms = [leadership for leadership in leaders.known if leadership.leader_id is not None]
    in_time = [term for term in terms if term.from_ms is None or term.from_ms <= newest]
    last = (in_time or terms)[-1:]
    return copies.get(last[0].leader) if last and last[0].leader is not None else None


def _longest(partition: TopicPartition, copies: Mapping[int, Copy]) -> Copy | None:
    """The longest copy; None if any two copies contradict each other."""
    from kctl.replica.comparison.partition import compare_partition

    compared = compare_partition(partition, None, copies)
    if compared.divergences or compared.best is None:
        return None
    return copies[max(compared.best.branches, key=lambda b: b.log_end_offset).longest]
