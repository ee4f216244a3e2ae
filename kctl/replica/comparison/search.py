"""Every partition that two brokers hold, compared moment by moment, and the rows about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from formats.values import Struct
from kctl.copies.moments import Znodes, assigned_in, clusters_of
from kctl.copies.scanned import LARGE, size_of
from kctl.errors import BadValue, KctlError
from kctl.evidence.alive import Registered
from kctl.evidence.model import FoundEvidence
from kctl.evidence.replica_copies import ByMoment, Copy, copies_of
from kctl.internal_topics.cluster_image import CLUSTER_METADATA
from kctl.internal_topics.decisions import voters_in
from kctl.judging.cut_off import with_cut_off
from kctl.judging.divergence import AGREEING, judge_divergence
from kctl.judging.fetching import of_unknown_brokers
from kctl.judging.judgement import Judgement, Question
from kctl.model import SILENT, Progress, Row, TopicPartition
from kctl.replica.comparison.best_source import rejoin_table
from kctl.replica.comparison.partition import PartitionComparison, compare_partition
from kctl.replica.epoch_rows import lineage_row
from kctl.replication.rules import ReplicationRules
from kctl.rows.replica import DIVERGENCE, REJOIN, VERDICT
from kctl.scan.noted import ScanNotes
from kctl.scan.pool import Jobs, ordered


class CompareOptions(Struct, frozen=True):
    """The partitions to compare, and facts about them that the evidence does not give."""

    topics: tuple[str, ...] = ()
    partitions: frozenset[int] = frozenset()
    compacted: frozenset[str] = frozenset()
    if_leader: int | None = None
    rules: ReplicationRules | None = None
    jobs: Jobs = None  # processes; None: one a core
    notes: ScanNotes | None = None  # of logs that were read before


class ComparedEvidence:
    """The copies and znodes of some evidence, and their comparison."""

    def __init__(
        self, evidence: FoundEvidence, options: CompareOptions, report: Callable[[KctlError], None]
    ) -> None:
        self.evidence, self.options, self.report = evidence, options, report
        self.znodes: dict[str | None, Znodes] = clusters_of(evidence, report)
        self.registered = Registered(evidence)

    @cached_property
    def copies(self) -> dict[TopicPartition, ByMoment]:
        """The copies of the selected partitions."""
        options, numbers = self.options, self.options.partitions
        by_partition = copies_of(self.evidence, options.topics, options.notes)
        return {tp: copies for tp, copies in by_partition.items() if not numbers or tp.partition in numbers}

    @cached_property
    def work(self) -> list[ComparisonTask]:
        """A task for each partition and moment with several copies, or with one copy of several assigned; moments in order."""
        order = {moment: index for index, moment in enumerate(self.evidence.moments)}
        tasks = []
        for partition, by_moment in self.copies.items():
            for moment in sorted(by_moment, key=lambda m: order.get(m or "", -1)):
                znodes = self.znodes.get(moment)
                assigned = znodes.replicas.get(partition, ()) if znodes else ()
                if len(by_moment[moment]) > 1 or len(assigned) > 1:
                    compacted = True if partition.topic in self.options.compacted else None
                    if compacted is None and znodes is not None:
                        compacted = znodes.is_compacted(partition.topic)
                    copies = by_moment[moment]
                    running = frozenset(b for b in copies if self.registered.ran(b, moment))
                    tasks.append(ComparisonTask(partition, moment, copies, assigned, compacted, running))
        return tasks

    def judgement(self, comparison: PartitionComparison) -> Judgement:
        """Whether the copies that were compared agree."""
        partition, moment = comparison.partition, comparison.moment
        unreadable = [(b, "; ".join(log.problems)) for b, log in comparison.logs.items() if log.problems]
        verdict, reason = comparison.verdict, comparison.reason
        late = [broker_id for broker_id, log in comparison.logs.items() if log.lacks_first_epochs]
        if late and verdict in AGREEING:
            first = (comparison.copies[late[0]].recorded_epochs or ((0, 0),))[0][1]
            reason = f"the leader-epoch-checkpoint of broker {late[0]} begins at offset {first}, above batches of other"
            verdict, reason = "unknown", reason + " epochs, and it is unknown where the log starts"
        incomplete = [(broker_id, "its leader-epoch-checkpoint begins late") for broker_id in late]
        incomplete += [
            (broker_id, "it ends before its own checkpoint") for broker_id in comparison.incomplete
        ]
        return self._judged(partition, moment, comparison.copies, verdict, reason, unreadable, incomplete)

    def not_compared(self) -> Iterator[Judgement]:
        """Judgements on partitions without two copies: those with one copy, and selected ones without any."""
        compared = {(task.partition, task.moment) for task in self.work}
        copied = self.copies
        for partition, by_moment in copied.items():
            for moment in by_moment:
                if (partition, moment) not in compared:
                    yield self._judged(partition, moment, by_moment[moment])
        named = {tp for tp in assigned_in(self.znodes) if tp.topic in self.options.topics}
        named |= {cut.topic_partition for cut in self.evidence.cut_off}
        topics, numbers = self.options.topics, self.options.partitions
        nameless = list(
            of_unknown_brokers(
                self.evidence,
                Question.DIVERGENCE,
                lambda tp: (not topics or tp.topic in topics) and (not numbers or tp.partition in numbers),
            )
        )
        yield from nameless
        said = {(judgement.subject.topic, judgement.subject.partition) for judgement in nameless}
        for partition in sorted(named - copied.keys()):
            if tuple(partition) not in said and (not numbers or partition.partition in numbers):
                yield self._judged(partition, None, ())

    def _judged(
        self,
        partition: TopicPartition,
        moment: str | None,
        copies: Collection[int],
        verdict: str = "unknown",
        reason: str = "",
        unreadable: Sequence[tuple[int, str]] = (),
        incomplete: Sequence[tuple[int, str]] = (),
    ) -> Judgement:
        znodes = self.znodes.get(moment) or self.znodes.get(None)
        if znodes is None and not copies:
            znodes = next((z for z in reversed(self.znodes.values()) if partition in z.replicas), None)
        assigned = znodes.replicas.get(partition, ()) if znodes else ()
        if partition.topic == CLUSTER_METADATA and znodes and (voters := voters_in(self.evidence, moment)):
            assigned = tuple(sorted({*voters, *znodes.registered}))  # brokers follow the voters
        judgement = judge_divergence(
            partition,
            moment,
            copies,
            assigned,
            self.evidence.replica_brokers(moment),
            verdict,
            reason,
            unreadable,
            incomplete,
            self.evidence.unopened_for(partition),
        )
        return with_cut_off(judgement, self.evidence)

    def comparisons(self, progress: Progress = SILENT) -> Iterator[PartitionComparison]:
        """The comparisons in order; each small one in one process, each large one with all processes."""
        work = self.work
        progress.start("compare", len(work), "partitions")
        jobs = self.options.jobs
        processes = jobs if isinstance(jobs, int) else None
        is_local = jobs is None or isinstance(jobs, int)  # another engine gets each comparison whole
        for by_all, group in groupby(work, key=lambda task: is_local and is_large(task)):
            tasks = list(group)
            results = (
                (compared_task(task, processes) for task in tasks)
                if by_all
                else ordered(compared_task, tasks, jobs=jobs)
            )
            for comparison in results:
                yield comparison
                progress.advance(1)


class ComparisonTask(NamedTuple):
    """The copies of one partition at one moment, and what znodes say; work for a process."""

    partition: TopicPartition
    moment: str | None
    copies: dict[int, Copy]
    assigned: tuple[int, ...]
    is_compacted: bool | None
    running: frozenset[int] = frozenset()
    """Brokers that are known to have run while their log was copied."""

    @property
    def opens(self) -> list[Path]:
        """The folders that the comparison reads; checkpoints and identities of the log directories were read before."""
        return [copy.folder for copy in self.copies.values()]


def is_large(task: ComparisonTask) -> bool:
    """Whether a comparison is large enough for several processes."""
    return sum(size_of(copy.folder) for copy in task.copies.values()) >= LARGE


def compared_task(task: ComparisonTask, jobs: int | None = 1) -> PartitionComparison:
    return compare_partition(
        task.partition,
        task.moment,
        task.copies,
        task.assigned,
        is_compacted=task.is_compacted,
        running=task.running,
        jobs=jobs,
    )


def comparison_rows(comparison: PartitionComparison, options: CompareOptions) -> Iterator[Row]:
    """The rows of one comparison: lineages, divergences, findings, verdict and rejoin table."""
    for broker_id, lineage in comparison.lineages.items():
        yield lineage_row(comparison.logs[broker_id], lineage)
    for divergence in comparison.divergences:
        yield DIVERGENCE(
            **_whose(comparison),
            broker_ids=list(divergence.broker_ids),
            from_offset=divergence.from_offset,
            to_offset=divergence.to_offset,
            epochs=[list(side) for side in divergence.epochs],
        )
    for finding in comparison.findings:
        yield finding.row()
    best = comparison.best
    yield VERDICT(
        **_whose(comparison),
        verdict=comparison.verdict,
        best_source=comparison.best_source,
        recover_from=comparison.recover_from,
        reason=comparison.reason,
        broker_ids=list(comparison.copies),
        branches=[list(branch.replicas) for branch in best.branches] if best else [],
        current_lineage=best.current_lineage if best else None,
        most_committed=best.most_committed if best else None,
        behind=list(comparison.behind),
    )
    if options.if_leader is not None:
        yield from _rejoin_rows(comparison, options)


def _whose(comparison: PartitionComparison) -> Row:
    return {
        "topic": comparison.partition.topic,
        "partition": comparison.partition.partition,
        "moment": comparison.moment,
    }


def _rejoin_rows(comparison: PartitionComparison, options: CompareOptions) -> Iterator[Row]:
    leader = options.if_leader
    assert leader is not None
    if leader not in comparison.lineages:
        return
    rules = options.rules
    if rules is None:
        raise BadValue("a rejoin table needs a version", "give --kafka-version")
    for broker_id, rejoin in rejoin_table(comparison.lineages, leader, rules.algorithm).items():
        yield REJOIN(**_whose(comparison), leader=leader, broker_id=broker_id, **rejoin._asdict())
