"""Every partition of the evidence searched for losses, and the rows about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, groupby, pairwise
from pathlib import Path

from formats.log_dir.file_names import FolderKind
from formats.values import Struct, replace
from formats.znodes.cluster import NO_LEADER
from kctl.broker_logs.sources import Sources, sources_in
from kctl.copies.aside import aside_copies, held_batches
from kctl.copies.leaders import LeaderTerm, leaders_of, of_present_topic
from kctl.copies.log_notes import LogNotes, read_log_notes
from kctl.copies.moments import Znodes, assigned_in, clusters_of, furthest_last
from kctl.copies.newest_epochs import epochs_of
from kctl.copies.scanned import LARGE, size_of
from kctl.errors import KctlError
from kctl.evidence.model import FoundEvidence
from kctl.evidence.order import is_order_known
from kctl.evidence.replica_copies import ByMoment, Copy, Moment, copies_of, partitions_in
from kctl.findings import Finding
from kctl.findings import replica as replica_findings
from kctl.internal_topics.decisions import corrected
from kctl.judging.cut_off import with_cut_off
from kctl.judging.fetching import of_unknown_brokers
from kctl.judging.judgement import Judgement, Question
from kctl.judging.loss import LossFacts, Untold, judge_acknowledged, judge_loss
from kctl.model import SILENT, Progress, Row, TopicPartition
from kctl.replica.loss.causes import Cause
from kctl.replica.loss.commitment import ExternalOffset, external_offsets
from kctl.replica.loss.partition import Loss, PartitionLosses, is_deleted, losses_of
from kctl.replica.loss.recovery import Segments, export_loss, remote_segments, tier_ranges
from kctl.rows.replica import LOSS
from kctl.scan.noted import ScanNotes
from kctl.scan.pool import Jobs, forks, ordered

METADATA_LOG = "__cluster_metadata"
NO_TIER: Segments = {}


class LossOptions(Struct, frozen=True):
    """The partitions to examine, and facts about them that the evidence does not have."""

    topics: tuple[str, ...] = ()
    partitions: frozenset[int] = frozenset()
    compacted: frozenset[str] = frozenset()
    leader: int | None = None
    acks: str = "all"
    notes: ScanNotes | None = None  # of logs that were read before


class LossSearch:
    """The search for losses in some evidence."""

    def __init__(
        self, evidence: FoundEvidence, options: LossOptions, report: Callable[[KctlError], None]
    ) -> None:
        self.evidence, self.options, self.report = evidence, options, report
        self.znodes: dict[Moment, Znodes] = clusters_of(evidence, report)
        self.left_out: list[Finding] = []
        """Findings about topics that were read only in part."""

    @cached_property
    def order(self) -> tuple[Moment, ...]:
        """The moments, oldest first; None (no moment) comes before all."""
        named: tuple[Moment, ...] = self.evidence.moments
        return (None, *named) if None not in named else named

    @cached_property
    def is_order_known(self) -> bool:
        return is_order_known(self.evidence)

    def order_of(self, partition: TopicPartition) -> tuple[Moment, ...]:
        """The moments, oldest first; if undated, the one whose logs reach furthest comes last."""
        if self.is_order_known:
            return self.order
        return furthest_last(self.order, self.partitions[partition])

    @cached_property
    def partitions(self) -> dict[TopicPartition, ByMoment]:
        """The partitions to examine, with their copies.

        The metadata log is included only if it is named: a majority of voters commits its records, not an ISR.
        """
        options, numbers = self.options, self.options.partitions
        copies = copies_of(self.evidence, options.topics, options.notes)
        return {
            partition: by_moment
            for partition, by_moment in copies.items()
            if (not numbers or partition.partition in numbers)
            and (partition.topic != METADATA_LOG or METADATA_LOG in self.options.topics)
        }

    @cached_property
    def aside(self) -> dict[TopicPartition, list[Copy]]:
        """The folders that brokers put aside, by partition."""
        return aside_copies(self.evidence, self.options.topics, self.options.notes)

    @property
    def undated(self) -> list[Finding]:
        """The finding that the moments are undated, if so."""
        if self.is_order_known:
            return []
        names = ", ".join(filter(None, self.order))
        return [replica_findings.MOMENTS_UNDATED.at(moments=names)]

    @cached_property
    def log_notes(self) -> LogNotes:
        """What the logs of the evidence say about these partitions; times of metadata logs are corrected as theirs are."""
        partitions = self.partitions
        log_notes = read_log_notes(self.sources, lambda partition: partition in partitions)
        for znodes in self.znodes.values() if log_notes.ahead else ():
            znodes.decisions = {
                partition: corrected(decisions, log_notes.ahead)
                for partition, decisions in znodes.decisions.items()
            }
        return log_notes

    @cached_property
    def external(self) -> dict[TopicPartition, list[ExternalOffset]]:
        """What consumer groups and tier metadata say was committed."""
        return external_offsets(self.evidence, self.znodes, self.left_out)

    @cached_property
    def tier(self) -> Segments:
        return remote_segments(self.evidence, self.partitions)

    @cached_property
    def sources(self) -> Sources:
        if not self.evidence.broker_logs:
            return Sources(())
        return sources_in(self.evidence)

    def of(self, partition: TopicPartition, jobs: Jobs = None) -> PartitionLosses:
        """The losses of one partition; large logs are read by several processes."""
        compacted = True if partition.topic in self.options.compacted else None
        result = losses_of(
            partition,
            self.partitions[partition],
            self.order_of(partition),
            self.znodes,
            self.log_notes,
            given_leader=self.options.leader,
            is_compacted=compacted,
            external=self.external.get(partition, ()),
            aside=self.aside.get(partition, ()),
            jobs=jobs,
        )
        damaged = replica_findings.DAMAGED_COPY.code
        if any(finding.code == damaged for finding in result.findings):
            facts = self._facts(partition)
            if len(facts.copies) == 1 and facts.assigned != facts.copies:
                # Other copies may hold the damaged records.
                result.findings[:] = [finding for finding in result.findings if finding.code != damaged]
        return result

    def judgement(self, result: PartitionLosses) -> Judgement:
        """Whether committed records of a partition are lost."""
        classes = {loss.loss_class for loss in result.losses}
        facts = self._facts(result.partition)
        lineage = result.facts.present.lineage if result.facts else None
        if lineage and lineage.log_start_offset < (lineage.local_log_start_offset or 0):
            facts = replace(facts, remote_only=(lineage.log_start_offset, lineage.local_log_start_offset))
        judgement = judge_acknowledged(judge_loss(facts, classes, result.findings), facts, self.options.acks)
        return with_cut_off(judgement, self.evidence)

    def without_copies(self) -> Iterator[Judgement]:
        """Judgements on partitions that the evidence names and has no copy of.

        Those are the ones asked for; else those of the newest metadata, and those in the checkpoints of log directories.
        """
        topics, numbers = self.options.topics, self.options.partitions
        in_force = next(
            (self.znodes[moment] for moment in reversed(self.order) if moment in self.znodes), None
        )
        named = (
            assigned_in(self.znodes)
            if topics
            else {*(in_force.replicas if in_force else ()), *self._in_checkpoints, *self._stray}
        )
        named = {*named, *(cut.topic_partition for cut in self.evidence.cut_off)}

        def is_selected(partition: TopicPartition) -> bool:
            is_topic = partition.topic in topics if topics else partition.topic != METADATA_LOG
            return is_topic and (not numbers or partition.partition in numbers)

        nameless = list(of_unknown_brokers(self.evidence, Question.LOSS, is_selected))
        yield from nameless
        said = {(judgement.subject.topic, judgement.subject.partition) for judgement in nameless}
        for partition in sorted(named - self.partitions.keys()):
            if is_selected(partition) and tuple(partition) not in said:
                yield with_cut_off(judge_loss(self._facts(partition), ()), self.evidence)

    @cached_property
    def _stray(self) -> frozenset[TopicPartition]:
        """The partitions that have records in stray folders, of topics that nothing says were deleted."""
        removed = {topic_id for znodes in self.znodes.values() for topic_id in znodes.removed}
        return frozenset(
            partition
            for partition, copies in self.aside.items()
            for copy in copies
            if copy.replica.kind is FolderKind.STRAY
            and copy.replica.topic_id not in removed
            and held_batches(copy).batches
        )

    @cached_property
    def _in_checkpoints(self) -> frozenset[TopicPartition]:
        """The partitions in checkpoints of the last moment's log directories."""
        last = self.order[-1]
        replicas = self.znodes[last].replicas if last in self.znodes else {}
        return frozenset(
            partition
            for log_dir in self.evidence.log_dirs
            if log_dir.moment == last and log_dir.is_whole
            for partition in partitions_in(log_dir)  # entries of moved replicas may remain
            if log_dir.broker_id in replicas.get(partition, (log_dir.broker_id,))
        )

    def _facts(self, partition: TopicPartition) -> LossFacts:
        moments = [self.znodes[moment] for moment in self.order if moment in self.znodes]
        same = of_present_topic(partition.topic, moments)
        logged = self.log_notes.leaderships(partition)
        known = leaders_of(partition, self.log_notes, moments).known
        by_moment = self.partitions.get(partition, {})
        return LossFacts(
            partition,
            copies=frozenset(broker_id for copies in by_moment.values() for broker_id in copies),
            assigned=frozenset(
                broker_id
                for replicas in (
                    *(znodes.replicas.get(partition, ()) for znodes in same),
                    *(term.replicas for term in logged),
                )
                for broker_id in replicas
            ),
            evidence_brokers=self.evidence.replica_brokers(),
            leaderships=known,
            has_broker_logs=self.log_notes.history is not None,
            is_deleted=is_deleted(partition, self.order, self.znodes),
            was_there=any(partition.topic in znodes.created for znodes in moments),
            is_metadata_there=any(moment.is_whole for moment in self.znodes.values()),
            unopened=self.evidence.unopened_for(partition),
            is_folder_missing=self.order[-1] not in by_moment and partition in self._in_checkpoints,
            newest_epoch=self._newest_epoch(partition),
            untold=self._untold(partition, known),
        )

    def _untold(self, partition: TopicPartition, known: Sequence[LeaderTerm]) -> Untold:
        """What the logs leave open of elections: the epochs whose election they do not tell; without any ISR, the last cut."""
        # A server.log alone tells no ISR: only what it cut is known.
        if any(logged.isr for logged in self.log_notes.leaderships(partition)):
            return Untold(
                tuple(term.leader_epoch for before, term in pairwise(known) if _is_untold(before, term))
            )
        cuts = self.log_notes.of(partition, "cut")
        return Untold(cut=(cuts[-1].broker_id, cuts[-1].offset or 0) if cuts else None)

    def _newest_epoch(self, partition: TopicPartition) -> int:
        """The newest leader epoch in znodes or copies of the last moment; -1 if there is none."""
        last = self.order[-1] if self.order else None
        znodes = self.znodes.get(last)
        state = znodes.state(partition) if znodes else None
        copies = self.partitions.get(partition, {}).get(last, {})
        epochs = [epoch for _, epoch in epochs_of(copies.values(), znodes)]
        return max([*epochs, state.leader_epoch if state else -1])

    def results(self, progress: Progress = SILENT, jobs: Jobs = None) -> Iterator[PartitionLosses]:
        progress.start("look for losses", len(self.partitions), "partitions")
        for number, partition in enumerate(self.partitions):
            result = self.of(partition, jobs)
            if not number:
                result.findings += self.about_no_partition
            yield result
            progress.advance(1)

    def rows(
        self, folder: Path | None = None, progress: Progress = SILENT, jobs: Jobs = None
    ) -> Iterator[Row | Judgement]:
        """The rows of all partitions in order, each partition's judgement after its own; those about no partition after the first.

        Lost records are exported below the folder, by this process alone.
        """
        about_none: Sequence[Finding] | None = None
        for items in self.by_partition(folder, progress, jobs):
            yield from items
            if about_none is None:
                about_none = (*self.about_no_partition, *self.log_notes.zones)
                yield from (finding.row() for finding in about_none)

    @property
    def about_no_partition(self) -> tuple[Finding, ...]:
        """What is to be said once, known when the first partition was searched: topics read in part, undated moments."""
        return (*self.left_out, *self.undated)

    def by_partition(
        self, folder: Path | None = None, progress: Progress = SILENT, jobs: Jobs = None
    ) -> Iterator[list[Row | Judgement]]:
        """The losses, the findings and then the judgement of each partition, in order, by several processes."""
        reading = jobs
        if folder is not None or not forks():
            jobs = 1
        progress.start("look for losses", len(self.partitions), "partitions")
        # Read before workers are forked, so that they have it too.
        _ = self.order, self.log_notes, self.external, self.tier, self.aside
        rows_of = partial(_rows_of, self, folder, reading)
        for by_all, group in groupby(self.partitions, key=self._was_left_out):
            partitions = list(group)
            found = map(rows_of, partitions) if by_all else ordered(rows_of, partitions, jobs=jobs)
            for items in found:
                yield items
                progress.advance(1)

    def _was_left_out(self, partition: TopicPartition) -> bool:
        """Whether a scan that noted what it read has left out large logs of this partition, for all processes to read."""
        if self.options.notes is None:
            return False
        copies = chain.from_iterable(copies.values() for copies in self.partitions[partition].values())
        return sum(size_of(copy.folder) for copy in copies if not copy.noted) >= LARGE


def _rows_of(
    search: LossSearch, folder: Path | None, jobs: Jobs, partition: TopicPartition
) -> list[Row | Judgement]:
    """The rows of one partition; runs in a worker process."""
    from multiprocessing import parent_process

    # A worker reads its partition alone; before workers exist, one large partition may use all processes.
    result = search.of(partition, jobs if parent_process() is None else 1)
    losses = [
        loss_row(loss, None if folder is None else export_loss(loss, folder), search.tier)
        for loss in result.losses
    ]
    return [*losses, *(finding.row() for finding in result.findings), search.judgement(result)]


def loss_row(loss: Loss, exported: str | None = None, tier: Segments = NO_TIER) -> Row:
    records, first, last = loss.extent()
    return LOSS(
        topic=loss.partition.topic,
        partition=loss.partition.partition,
        from_offset=loss.from_offset,
        to_offset=loss.to_offset,
        **{"class": loss.loss_class},
        cause=str(loss.drop.cause),
        replaced=[list(offsets) for offsets in loss.replaced],
        missing=[list(offsets) for offsets in loss.missing],
        lost_in_epoch=loss.drop.leader_epoch,
        evidence=[proof.row() for proof in loss.evidence],
        recoverable_from=[
            {"moment": moment, "broker_id": broker} for moment, broker in loss.recoverable_from
        ],
        recoverable_from_tier=[
            {"remote_log_segment_id": segment_id, "from_offset": start, "to_offset": end}
            for segment_id, start, end in tier_ranges(loss, tier)
        ],
        written_by=loss.drop.written_by,
        written_in_epoch=loss.drop.written_in_epoch,
        dropped_by=loss.drop.leader,
        isr_before=None if loss.drop.isr_before is None else list(loss.drop.isr_before),
        records=records,
        first_timestamp=first,
        last_timestamp=last,
        exported=exported,
        strength=None if loss.drop.cause is Cause.UNKNOWN else loss.drop.strength,
        topic_id=loss.topic_id,
        incarnation=loss.incarnation,
        is_compacted=loss.is_compacted,
        is_at_least=loss.is_at_least,
    )


def _is_untold(before: LeaderTerm, term: LeaderTerm) -> bool:
    """Whether another leader came, or may have come in epochs that are missing, and neither words nor the ISR tell how."""
    if term.leader_epoch > before.leader_epoch + 1:
        # A leader whose own log is there would say that it followed another one.
        return term.leader != before.leader or not before.is_isr_last
    if term.leader in (before.leader, NO_LEADER) or term.how != "unknown":
        return False
    return not (before.is_isr_last and term.leader in (before.last_isr or ()))
