"""Every partition of the evidence that two brokers hold, compared moment by moment, and the rows about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from kctl.errors import BadValue, KctlError
from kctl.evidence.alive import Registered
from kctl.evidence.model import Evidence
from kctl.model import SILENT, Progress, TopicPartition
from kctl.replica.best_source import rejoin_table
from kctl.replica.compare import PartitionComparison, compare_partition
from kctl.replica.copies import Copy, copies_of
from kctl.replica.epoch_views import lineage_row
from kctl.replica.moments import Znodes
from kctl.replica.quorum import clusters_of
from kctl.replica.scanned import LARGE, size_of
from kctl.replication.rules import Rules
from kctl.rows.replica import DIVERGENCE, REJOIN, VERDICT
from kctl.scan.pool import Jobs, ordered

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What to compare, and what is known about it."""

    topics: tuple[str, ...] = ()
    partitions: frozenset[int] = frozenset()
    compacted: frozenset[str] = frozenset()
    if_leader: int | None = None
    rules: Rules | None = None
    jobs: Jobs = None  # processes; None: one a core


@dataclass
class ComparedEvidence:
    """The copies and znodes of some evidence, and their comparison."""

    evidence: Evidence
    options: CompareOptions
    report: Callable[[KctlError], None]
    znodes: dict[str | None, Znodes] = field(init=False)
    registered: Registered = field(init=False)

    def __post_init__(self) -> None:
        self.znodes = clusters_of(self.evidence, self.report)
        self.registered = Registered(self.evidence)

    def work(self) -> list[Comparison]:
        """Each partition and moment with two copies or more, or with one of several assigned; moments in order."""
        order = {moment: index for index, moment in enumerate(self.evidence.moments)}
        found = []
        for partition, by_moment in copies_of(self.evidence, self.options.topics).items():
            if self.options.partitions and partition.partition not in self.options.partitions:
                continue
            for moment in sorted(by_moment, key=lambda m: order.get(m or "", -1)):
                znodes = self.znodes.get(moment)
                assigned = znodes.replicas.get(partition, ()) if znodes else ()
                if len(by_moment[moment]) > 1 or len(assigned) > 1:
                    compacted = True if partition.topic in self.options.compacted else None
                    if compacted is None and znodes is not None:
                        compacted = znodes.is_compacted(partition.topic)
                    ones = by_moment[moment]
                    running = frozenset(b for b in ones if self.registered.ran(b, moment))
                    found.append(Comparison(partition, moment, ones, assigned, compacted, running))
        return found

    def comparisons(self, progress: Progress = SILENT) -> Iterator[PartitionComparison]:
        """The comparisons in order; small ones a process each, large ones by all processes together."""
        work = self.work()
        progress.start("compare", len(work), "partitions")
        jobs = self.options.jobs
        processes = jobs if isinstance(jobs, int) else None
        here = jobs is None or isinstance(jobs, int)  # another engine gets each comparison whole
        for is_large, some in groupby(work, key=lambda one: here and is_large_work(one)):
            ones = list(some)
            results = (
                (compare(one, processes) for one in ones) if is_large else ordered(compare, ones, jobs=jobs)
            )
            for found in results:
                yield found
                progress.advance(1)


class Comparison(NamedTuple):
    """The copies of one partition at one moment, and what znodes say; work for a process."""

    partition: TopicPartition
    moment: str | None
    copies: dict[int, Copy]
    assigned: tuple[int, ...]
    is_compacted: bool | None
    running: frozenset[int] = frozenset()
    """The brokers that are known to have run while they were copied."""


def is_large_work(work: Comparison) -> bool:
    """Whether one comparison is worth several processes."""
    return sum(size_of(copy.folder) for copy in work.copies.values()) >= LARGE


def compare(work: Comparison, jobs: int | None = 1) -> PartitionComparison:
    """The comparison of one partition."""
    return compare_partition(
        work.partition,
        work.moment,
        work.copies,
        work.assigned,
        is_compacted=work.is_compacted,
        running=work.running,
        jobs=jobs,
    )


def comparison_rows(found: PartitionComparison, options: CompareOptions) -> Iterator[Row]:
    """The rows of one comparison: lineages, divergences, what else is to say, the verdict, the rejoin table."""
    for broker_id, lineage in found.lineages.items():
        yield lineage_row(found.logs[broker_id], lineage)
    for one in found.divergences:
        yield DIVERGENCE(
            **_whose(found),
            broker_ids=list(one.broker_ids),
            from_offset=one.from_offset,
            to_offset=one.to_offset,
            epochs=[list(side) for side in one.epochs],
        )
    for finding in found.findings:
        yield finding.row()
    best = found.best
    yield VERDICT(
        **_whose(found),
        verdict=found.verdict,
        best_source=found.best_source,
        reason=found.reason,
        broker_ids=list(found.copies),
        branches=[list(branch.replicas) for branch in best.branches] if best else [],
        current_lineage=best.current_lineage if best else None,
        most_committed=best.most_committed if best else None,
        behind=list(found.behind),
    )
    if options.if_leader is not None:
        yield from _rejoin_rows(found, options)


def _whose(found: PartitionComparison) -> Row:
    return {
        "topic": found.partition.topic,
        "partition": found.partition.partition,
        "moment": found.moment,
    }


def _rejoin_rows(found: PartitionComparison, options: CompareOptions) -> Iterator[Row]:
    leader = options.if_leader
    assert leader is not None
    if leader not in found.lineages:
        return
    rules = options.rules
    if rules is None:
        raise BadValue("a rejoin table needs a version")
    for broker_id, one in rejoin_table(found.lineages, leader, rules.algorithm).items():
        yield REJOIN(
            **_whose(found),
            leader=leader,
            broker_id=broker_id,
            truncate_to=one.truncate_to,
            offsets_dropped=one.offsets_dropped,
            full_truncation=one.full_truncation,
            below_own_high_watermark=one.below_own_high_watermark,
        )
