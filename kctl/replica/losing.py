"""Every partition of the evidence looked through for losses, and the rows about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kctl.broker_logs.sources import Sources, find_sources
from kctl.errors import KctlError
from kctl.evidence.model import Evidence
from kctl.evidence.order import is_order_known
from kctl.findings import Finding
from kctl.findings import replica as say
from kctl.model import SILENT, OffsetRange, Progress, TopicPartition
from kctl.replica.commitment import ExternalOffset
from kctl.replica.copies import ByMoment, Moment, copies_of
from kctl.replica.export import export_loss
from kctl.replica.external import external_offsets
from kctl.replica.loss import Loss, PartitionLosses, losses_of
from kctl.replica.lost_in_tier import Segments, held_in_tier, remote_segments
from kctl.replica.moments import Znodes, furthest_last
from kctl.replica.quorum import clusters_of
from kctl.replica.testimony import Testimony, hear
from kctl.rows.replica import LOSS
from kctl.scan.pool import Jobs, forks, ordered

Row = dict[str, object]
NO_TIER: Segments = {}


@dataclass(frozen=True, slots=True)
class LossOptions:
    """What to look at, and what is known about it."""

    topics: tuple[str, ...] = ()
    partitions: frozenset[int] = frozenset()
    compacted: frozenset[str] = frozenset()
    leader: int | None = None


@dataclass
class LossSearch:
    """The search over some evidence."""

    evidence: Evidence
    options: LossOptions
    report: Callable[[KctlError], None]
    znodes: dict[Moment, Znodes] = field(init=False)
    left_out: list[Finding] = field(init=False, default_factory=list)
    """What was not read of what was there."""

    def __post_init__(self) -> None:
        self.znodes = clusters_of(self.evidence, self.report)

    @cached_property
    def order(self) -> tuple[Moment, ...]:
        """The moments, oldest first; what has none comes before all."""
        named: tuple[Moment, ...] = self.evidence.moments
        return (None, *named) if None not in named else named

    @cached_property
    def is_order_known(self) -> bool:
        """Whether anything tells the order of the moments."""
        return is_order_known(self.evidence)

    def order_of(self, partition: TopicPartition) -> tuple[Moment, ...]:
        """The moments, oldest first; where nothing dates them, the one whose logs reach furthest is the last."""
        if self.is_order_known:
            return self.order
        return furthest_last(self.order, self.partitions[partition])

    @cached_property
    def partitions(self) -> dict[TopicPartition, ByMoment]:
        """The partitions to look at."""
        found = copies_of(self.evidence, self.options.topics)
        wanted = self.options.partitions
        return {tp: copies for tp, copies in found.items() if not wanted or tp.partition in wanted}

    @property
    def undated(self) -> list[Finding]:
        """That nothing tells the order of the moments, where it is so."""
        if self.is_order_known:
            return []
        names = ", ".join(filter(None, self.order))
        return [say.MOMENTS_UNDATED.at(moments=names)]

    @cached_property
    def testimony(self) -> Testimony:
        """What the logs of the evidence say about these partitions."""
        wanted = self.partitions
        return hear(self.sources, lambda partition: partition in wanted)

    @cached_property
    def external(self) -> dict[TopicPartition, list[ExternalOffset]]:
        """What consumer groups and the metadata of a tier say was committed."""
        return external_offsets(self.evidence, self.znodes, self.left_out)

    @cached_property
    def tier(self) -> Segments:
        """The remote segments of these partitions."""
        return remote_segments(self.evidence, self.partitions)

    @cached_property
    def sources(self) -> Sources:
        """The logs of the evidence."""
        if not self.evidence.broker_logs:
            return Sources(())
        return find_sources([root.given for root in self.evidence.roots])

    def of(self, partition: TopicPartition) -> PartitionLosses:
        """The losses of one partition."""
        compacted = True if partition.topic in self.options.compacted else None
        return losses_of(
            partition,
            self.partitions[partition],
            self.order_of(partition),
            self.znodes,
            self.testimony,
            given_leader=self.options.leader,
            is_compacted=compacted,
            external=self.external.get(partition, ()),
        )

    def results(self, progress: Progress = SILENT) -> Iterator[PartitionLosses]:
        """The losses of each partition in order."""
        progress.start("look for losses", len(self.partitions), "partitions")
        for number, partition in enumerate(self.partitions):
            result = self.of(partition)
            if not number:
                result.findings += [*self.left_out, *self.undated]
            yield result
            progress.advance(1)

    def rows(
        self, folder: Path | None = None, progress: Progress = SILENT, jobs: Jobs = None
    ) -> Iterator[Row]:
        """The rows of all partitions in order; lost records are written below the folder, by this process alone."""
        if folder is not None or not forks():
            jobs = 1
        progress.start("look for losses", len(self.partitions), "partitions")
        # Read before other processes are made from this one, so that they have it too.
        _ = self.order, self.testimony, self.external, self.tier
        _shared.append((self, folder))
        try:
            once = (*self.left_out, *self.undated, *self.testimony.zones)
            left_out = iter([finding.row() for finding in once])
            for rows in ordered(_rows_of, self.partitions, jobs=jobs):
                yield from (*rows, *left_out)
                progress.advance(1)
        finally:
            _shared.pop()


_shared: list[tuple[LossSearch, Path | None]] = []


def _rows_of(partition: TopicPartition) -> list[Row]:
    """The rows of one partition of the search that processes share; work for a process."""
    search, folder = _shared[-1]
    result = search.of(partition)
    losses = [
        loss_row(one, None if folder is None else export_loss(one, folder), search.tier)
        for one in result.losses
    ]
    return [*losses, *(finding.row() for finding in result.findings)]


def loss_row(loss: Loss, exported: str | None = None, tier: Segments = NO_TIER) -> Row:
    """The row of kind `loss`."""
    records, first, last = loss.extent()
    return LOSS(
        topic=loss.partition.topic,
        partition=loss.partition.partition,
        from_offset=loss.from_offset,
        to_offset=loss.to_offset,
        **{"class": loss.loss_class},
        cause=str(loss.drop.cause),
        replaced=[_pair(one) for one in loss.replaced],
        missing=[_pair(one) for one in loss.missing],
        lost_in_epoch=loss.drop.leader_epoch,
        evidence=[proof.row() for proof in loss.evidence],
        recoverable_from=[{"moment": m, "broker_id": b} for m, b in loss.recoverable_from],
        recoverable_from_tier=[
            {"remote_log_segment_id": id, "from_offset": start, "to_offset": end}
            for id, start, end in held_in_tier(loss, tier)
        ],
        written_by=loss.drop.written_by,
        written_in_epoch=loss.drop.written_in_epoch,
        dropped_by=loss.drop.leader,
        isr_before=None if loss.drop.isr_before is None else list(loss.drop.isr_before),
        records=records,
        first_timestamp=first,
        last_timestamp=last,
        exported=exported,
    )


def _pair(one: OffsetRange) -> list[int | None]:
    return [one.from_offset, one.to_offset]
