"""Audit of tiered storage: metadata, objects and local logs compared.

`audit_tier` returns findings as they are found, then a row for each partition, then a summary. Without a store the
metadata is compared only with local logs. Nothing is changed.

`tier_rows` is the part of a cluster's audit: findings, a row for each remote segment, a row for each partition.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from formats.messages.remote_log_metadata import SegmentMetadata, TopicIdPartition
from formats.tier.object_names import ObjectLayout
from formats.values import Struct, field, replace
from kctl.evidence.model import FoundEvidence
from kctl.findings import Finding, Place
from kctl.findings import remote as codes
from kctl.judging.judgement import Judgement
from kctl.judging.tier import TierJudge
from kctl.model import SILENT, Progress, Row, TopicPartition
from kctl.rows.remote import TIER_PARTITION, TIER_SUMMARY
from kctl.scan.options import Level
from kctl.tier.audit.exchanged import Exchanges
from kctl.tier.audit.index_cache import IndexCache, read_index_cache
from kctl.tier.audit.inventory import Inventory, SegmentObjects, take_inventory
from kctl.tier.audit.metadata_checks import TierExtent, against_local, given_up, place_of, unfinished
from kctl.tier.audit.replicas import against_replicas, local_files
from kctl.tier.audit.segment_objects import examine
from kctl.tier.audit.segment_tasks import ExaminedSegment, SegmentTask, epochs_against_leader, missing_objects
from kctl.tier.metadata.fold import Fold, fold_findings, folded, metadata_partitions
from kctl.tier.metadata.forgotten import forgotten_segments
from kctl.tier.metadata.log import METADATA_TOPIC, find_metadata
from kctl.tier.metadata.partition_tier import PartitionTier, partition_tiers
from kctl.tier.metadata.partitioner import metadata_partition
from kctl.tier.metadata.remote_log_metadata_cache import DELETED, FINISHED, STARTED
from kctl.tier.metadata.rows import segment_row
from kctl.tier.metadata.selection import NOW, MetadataAsOf
from kctl.tier.rules.local_logs import LocalLogs, LocalPartition, read_local_logs
from kctl.tier.stores import LocalStore, Store, bounded_map


class AuditOptions(Struct, frozen=True):
    """What to audit and how closely. Without `content` objects are listed and not read."""

    now: int | None = None  # ms; None: the newest time in the evidence
    as_of: MetadataAsOf = NOW
    layout: ObjectLayout | None = None
    content: bool = True
    level: Level = Level.RECORDS
    segments: bool = False  # a row for each remote segment, deleted ones too
    progress: Progress = SILENT


class AuditResult(Struct):
    """The result of an audit besides its rows: objects that can be removed, and counts."""

    orphans: list[tuple[str, int, str]] = field(default_factory=list)  # key, bytes, why
    errors: int = 0
    warnings: int = 0


class _Audit:
    def __init__(self, evidence: FoundEvidence, store: Store | None, options: AuditOptions) -> None:
        self.evidence = evidence
        self.store = store
        self.options = options
        self.result = AuditResult()
        self.findings: list[Finding] = []
        self.counts: dict[tuple[str | None, int | None], Counter[str]] = {}
        self.local: LocalLogs = read_local_logs(evidence)
        self.log = find_metadata(evidence, self.findings.append)
        self.log.partitions = self.local.metadata_partitions
        self.fold: Fold = folded(self.log.chunks(), self.findings.append, options.as_of, keep_deleted=True)
        self.partitions = metadata_partitions(self.fold, self.log)
        self.tiers = partition_tiers(self.fold)
        for where in self.local.tiered():  # tiered partitions without metadata records
            self.tiers.setdefault(where, PartitionTier(where))
        self.cache: IndexCache = read_index_cache(evidence)
        self.exchanges = Exchanges()
        self.inventory: Inventory | None = None
        self.objects = 0
        self.judge = TierJudge(store is not None, options.content)

    @property
    def now(self) -> int:
        """The time that ages are measured to, in milliseconds."""
        if self.options.now is not None:
            return self.options.now
        if self.options.as_of.time is not None:
            return self.options.as_of.time
        return max(self.fold.newest, self.local.newest)

    def drain(self) -> Iterator[Row]:
        """The rows of the findings since the last call, counted."""
        for finding in self.findings:
            place = finding.place
            count = self.counts.setdefault((place.topic, place.partition), Counter())
            count[str(finding.severity)] += 1
            self.judge.finding(finding)
            self.result.errors += str(finding.severity) == "error"
            self.result.warnings += str(finding.severity) == "warning"
            yield finding.row()
        self.findings.clear()

    def run(self) -> Iterator[Row | Judgement]:
        self.findings += fold_findings(self.fold, self.log)
        self.findings += self.cache.left_over
        self.findings += local_files(self.evidence, self.tiers)
        yield from self.drain()
        if self.store is not None:
            self.inventory = take_inventory(self.store.objects(self.findings.append), self.options.layout)
            self.objects = self.inventory.objects
            yield from self.drain()
        for where, tier in self.tiers.items():
            yield from self._partition(where, tier)
        if self.inventory is not None:
            self.findings += self.exchanges.findings()
            self._orphans(self.inventory)
            yield from self.drain()
        yield from self.judge.judgements()
        yield self._summary()

    # --- one partition --------------------------------------------------------------------------------

    def _partition(self, where: TopicIdPartition, tier: PartitionTier) -> Iterator[Row]:
        partition = TopicPartition(where.topic, where.partition)
        unread = self._unread_metadata(where, tier)
        self.judge.partition(partition, len(tier.segments), unread)
        local = self.local.partitions.get(partition)
        exists = self.local.exists(where.topic, where.topic_id)
        if exists is None and local is not None:
            exists = True
        if exists is False:
            local = None
        extent = self._metadata(where, tier, local, exists)
        if unread:  # metadata that was not read may name the segments that seem to be missing
            doubtful = (codes.GAP.code, codes.LOCAL_DELETED.code)
            self.findings = [finding for finding in self.findings if finding.code not in doubtful]
        yield from self.drain()
        size = 0
        if self.inventory is not None:
            size = self._objects_of(tier)
            yield from self.drain()
            for examined in self._contents(tier, local, extent):
                self.findings += examined
                yield from self.drain()
        if self.options.segments:
            for segment in tier.segments:
                yield segment_row(segment, self.now, tier.deletion)
        yield self._row(where, tier, extent, size)

    def _metadata(
        self, where: TopicIdPartition, tier: PartitionTier, local: LocalPartition | None, exists: bool | None
    ) -> TierExtent | None:
        sizes = self._sizes(tier)
        self.findings += unfinished(tier, self.now, sizes)
        place = Place(topic=where.topic, partition=where.partition)
        size = sum(segment.metadata.size_in_bytes for segment in tier.live)
        if tier.deletion is not None and tier.live:
            state, count = tier.deletion.state.name, len(tier.live)
            self.findings.append(codes.PARTITION_DELETION.at(place, state=state, count=count, size=size))
        if exists is False and tier.live:
            self.findings.append(codes.TOPIC_DELETED.at(place, count=len(tier.live), size=size))
            for segment in tier.live:
                self._remove(self._objects(tier, segment.metadata), "of a deleted topic")
        if local is None:
            if exists is None:
                self.findings.append(codes.TOPIC_UNKNOWN.at(place))
            return None
        extent, findings = against_local(tier, local, self.local.config(where.topic), self.now)
        self.findings += findings
        return extent

    def _objects(self, tier: PartitionTier, segment: SegmentMetadata) -> SegmentObjects:
        topic_id, segment_id = tier.where.topic_id, segment.remote_log_segment_id
        return self.inventory.of(topic_id, segment_id) if self.inventory else SegmentObjects()

    def _sizes(self, tier: PartitionTier) -> dict[str, int]:
        if self.inventory is None:
            return {}
        return {
            segment_id: self._objects(tier, segment.metadata).size_in_bytes
            for segment_id, segment in tier.by_id.items()
        }

    # --- its objects ----------------------------------------------------------------------------------

    def _objects_of(self, tier: PartitionTier) -> int:
        """Check the partition's objects by name and state; return their bytes."""
        total = 0
        for remote_segment in tier.segments:
            segment = remote_segment.metadata
            objects = self._objects(tier, segment)
            total += objects.size_in_bytes
            self._names(tier, objects, segment.start_offset, segment.remote_log_segment_id)
            if segment.state is DELETED and objects.all():
                count, size = len(objects.all()), objects.size_in_bytes
                place = replace(place_of(segment), size_in_bytes=objects.size_in_bytes)
                self.findings.append(codes.OBJECT_LEFT.at(place, count=count, size=size))
                self._remove(objects, "deleted by its metadata")
            elif segment.state is STARTED and given_up(tier, remote_segment):
                self._remove(objects, "of a copy that never finished")
        return total

    def _names(
        self, tier: PartitionTier, objects: SegmentObjects, start_offset: int, segment_id: str
    ) -> None:
        for name, stored in objects.all():
            expected = name._replace(
                topic=tier.where.topic, partition=tier.where.partition, start_offset=start_offset
            )
            place = Place(
                topic=tier.where.topic,
                partition=tier.where.partition,
                file=stored.key,
                size_in_bytes=stored.size_in_bytes,
                remote_log_segment_id=segment_id,
            )
            if name.kind is None:
                self.findings.append(codes.OBJECT_UNKNOWN.at(place, size=f"{stored.size_in_bytes or 0:,}"))
                self.result.orphans.append((stored.key, stored.size_in_bytes or 0, "not of the layout"))
            elif expected != name and self.inventory is not None:
                right = self.inventory.layout.format(expected, name.kind)
                self.findings.append(codes.OBJECT_MISNAMED.at(place, expected=right))
                objects.by_kind = {k: v for k, v in objects.by_kind.items() if v[1] is not stored}

    def _contents(
        self, tier: PartitionTier, local: LocalPartition | None, extent: TierExtent | None
    ) -> Iterator[list[Finding]]:
        assert self.store is not None and self.inventory is not None
        store, layout = self.store, self.inventory.layout
        tasks = [
            SegmentTask(segment.metadata, self._objects(tier, segment.metadata), self.options.level)
            for segment in tier.live
            if segment.metadata.state is FINISHED
        ]
        if not self.options.content:
            for task in tasks:
                yield missing_objects(task, layout)
            return
        in_flight = store.requests_in_flight
        for task, examined in bounded_map(lambda task: examine(task, store, layout), tasks, in_flight):
            findings = [*examined.findings, *self.cache.against_tier(task.segment, examined)]
            self.exchanges.add(task.segment, examined)
            if local is not None and extent is not None:
                findings += self._against_leader(task, examined, local, extent)
            yield findings
            self.options.progress.advance(task.segment.size_in_bytes)

    def _against_leader(
        self, task: SegmentTask, examined: ExaminedSegment, local: LocalPartition, extent: TierExtent
    ) -> Iterator[Finding]:
        segment, leader = task.segment, local.leader
        if leader is None or segment.remote_log_segment_id in extent.outside:
            return
        why = epochs_against_leader(examined, segment, leader.epochs, extent.log_start_offset)
        if why:
            yield codes.EPOCHS_OBJECT.at(place_of(segment), why=why)
        if examined.base_offsets:
            bases, crcs = np.concatenate(examined.base_offsets), np.concatenate(examined.crcs)
            yield from against_replicas(segment, bases, crcs, local, examined.producers)

    # --- what belongs to nothing ----------------------------------------------------------------------

    def _orphans(self, inventory: Inventory) -> None:
        known = {(where.topic_id, id) for where, tier in self.tiers.items() for id in tier.by_id}
        forgotten: dict[tuple[str, str], str] = {}
        if not inventory.segments.keys() <= known:
            forgotten = {
                (segment.topic_id_partition.topic_id, segment.remote_log_segment_id): moment
                for moment, segment in forgotten_segments(self.evidence, {id for _, id in known})
            }
        without_metadata: dict[tuple[str, int], list[int]] = {}
        for key, objects in inventory.segments.items():
            if key in known:
                continue
            name, first = objects.all()[0]
            is_unread = any(map(self._unread, self._numbers(name.topic_id, name.partition)))
            has_metadata = self._has_metadata(name.topic_id, name.partition, self.partitions)
            if not has_metadata or (is_unread and key not in forgotten):
                sums = without_metadata.setdefault((name.topic, name.partition), [0, 0])
                sums[0] += len(objects.all())
                sums[1] += objects.size_in_bytes
                continue
            place = Place(
                topic=name.topic,
                partition=name.partition,
                file=first.key.rpartition("/")[0] or first.key,
                base_offset=name.start_offset,
                size_in_bytes=objects.size_in_bytes,
                remote_log_segment_id=name.remote_log_segment_id,
            )
            details: dict[str, Any] = {"count": len(objects.all()), "size": objects.size_in_bytes}
            if key in forgotten:  # not removable
                self.findings.append(codes.SEGMENT_FORGOTTEN.at(place, moment=forgotten[key], **details))
                continue
            self.findings.append(codes.OBJECT_ORPHAN.at(place, **details))
            self._remove(objects, "no metadata record names it")
        for (topic, partition), (count, size) in sorted(without_metadata.items()):
            place = Place(topic=topic, partition=partition, size_in_bytes=size)
            self.findings.append(codes.METADATA_ABSENT.at(place, count=count, size=size))
        for stored in inventory.unknown:
            size = stored.size_in_bytes or 0
            place = Place(file=stored.key, size_in_bytes=stored.size_in_bytes)
            self.findings.append(codes.OBJECT_UNKNOWN.at(place, size=f"{size:,}"))
            if stored.size_in_bytes is not None:
                self.result.orphans.append((stored.key, size, "not of the layout"))

    def _has_metadata(self, topic_id: str, partition: int, partitions: int | None) -> bool:
        """Whether the evidence has the metadata partition that would name an object's segment."""
        if partitions is None:
            return bool(self.log.replicas) and None not in self.log.replicas
        return metadata_partition(topic_id, partition, partitions) in self.log.replicas

    def _numbers(self, topic_id: str, partition: int) -> list[int]:
        """The metadata partitions in the evidence that may name a partition's segments; only one if their number is known."""
        if self.partitions is not None:
            return [metadata_partition(topic_id, partition, self.partitions)]
        return [number for number in self.log.replicas if number is not None]

    def _unread_metadata(self, where: TopicIdPartition, tier: PartitionTier) -> str | None:
        """Which metadata of a partition's segments was not read; None if all was."""
        if None in self.log.replicas:  # a single segment: its partition is unknown
            return None
        numbers = self._numbers(where.topic_id, where.partition)
        if not self.log.replicas.keys() & numbers:
            return None if tier.segments else "no metadata record of the partition is in the evidence"
        return next(filter(None, map(self._unread, numbers)), None)

    def _unread(self, number: int) -> str | None:
        """Which offsets of a metadata partition were not read although they exist or existed.

        The checkpoint of a running broker may have been copied after the log, and be ahead of it.
        """
        extent = self.log.extents.get(number)
        if extent is None:
            return None
        local = self.local.partitions.get(TopicPartition(METADATA_TOPIC, number))
        copies = [log.copy for log in local.replicas.values()] if local else []
        stopped = [copy for copy in copies if copy.replica.log_dir.is_clean]
        high_watermark = max((copy.checkpoint("high_watermark") or 0 for copy in stopped), default=0)
        if not extent.holes and high_watermark <= extent.end:
            return None
        first, after = extent.holes[0] if extent.holes else (extent.end, high_watermark)
        return f"no sound batch holds offsets [{first}, {after}) of {METADATA_TOPIC}-{number}"

    def _remove(self, objects: SegmentObjects, why: str) -> None:
        self.result.orphans += [(stored.key, stored.size_in_bytes or 0, why) for _, stored in objects.all()]

    # --- rows -----------------------------------------------------------------------------------------

    def _row(self, where: TopicIdPartition, tier: PartitionTier, extent: TierExtent | None, size: int) -> Row:
        count = self.counts.get((where.topic, where.partition), Counter())
        return TIER_PARTITION(
            topic=where.topic,
            topic_id=where.topic_id,
            partition=where.partition,
            segments=len(tier.live),
            objects=sum(len(self._objects(tier, segment.metadata).all()) for segment in tier.by_id.values()),
            size_in_bytes=size,
            log_start_offset=extent.log_start_offset if extent else None,
            local_log_start_offset=extent.local_log_start_offset if extent else None,
            log_end_offset=extent.log_end_offset if extent else None,
            gaps=[list(gap) for gap in extent.gaps] if extent else [],
            outside_lineage=len(extent.outside) if extent else 0,
            outside_segments=sorted(extent.outside) if extent else [],
            broker_id=extent.broker_id if extent else None,
            leader_epochs=[list(entry) for entry in extent.leader_epochs] if extent else [],
            errors=count["error"],
            warnings=count["warning"],
        )

    def _summary(self) -> Row:
        return TIER_SUMMARY(
            partitions=len(self.tiers),
            segments=sum(len(tier.live) for tier in self.tiers.values()),
            objects=self.objects,
            bytes=self.inventory.size_in_bytes if self.inventory else 0,
            orphan_bytes=sum(size for _, size, _ in self.result.orphans),
            errors=self.result.errors,
            warnings=self.result.warnings,
        )


def audit_tier(
    evidence: FoundEvidence, store: Store | None, options: AuditOptions | None = None
) -> tuple[AuditResult, Iterator[Row | Judgement]]:
    """The result, and the rows as they are found; the result is complete once all rows were taken."""
    audit = _Audit(evidence, store, options or AuditOptions())
    return audit.result, audit.run()


def stores_in(evidence: FoundEvidence) -> list[Store]:
    """The tiers in the evidence, of the newest moment that has any."""
    newest = evidence.moments[-1] if evidence.moments else None
    chosen = [tier for tier in evidence.tiers if tier.moment in (newest, None)] or list(evidence.tiers)
    return [LocalStore(tier.root.path, os.path.relpath(tier.path, tier.root.path)) for tier in chosen]


def tier_rows(
    evidence: FoundEvidence, now: int | None = None, progress: Progress = SILENT
) -> Iterator[Row | Judgement]:
    """The rows of every tier in the evidence, without its summary."""
    stores: list[Store | None] = [*stores_in(evidence)] or [None]
    for store in stores:
        _, rows = audit_tier(evidence, store, AuditOptions(now=now, segments=True, progress=progress))
        yield from (row for row in rows if isinstance(row, Judgement) or row["kind"] != "tier_summary")
