"""Local replicas compared with a tier beyond the leader's log: batches, seeded snapshots, files of the broker."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping

import numpy as np

from formats.arrays import Ints
from formats.errors import FormatError
from formats.log_dir.producer_snapshot import read_snapshot
from formats.messages.remote_log_metadata import SegmentMetadata, TopicIdPartition
from formats.tier.broker_files import parse_committed_offsets, read_remote_log_snapshot
from formats.values import replace
from kctl.evidence.model import FoundEvidence, Replica
from kctl.files import read_lenient, read_whole
from kctl.findings import Finding, Place
from kctl.findings import remote as codes
from kctl.scan.options import Level, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import opened_source
from kctl.tier.audit.metadata_checks import place_of
from kctl.tier.metadata.partition_tier import PartitionTier
from kctl.tier.rules.local_logs import LocalLog, LocalPartition

SNAPSHOT_FILE = "remote_log_snapshot"
OFFSETS_FILE = "_rlmm_committed_offsets"


def against_replicas(
    segment: SegmentMetadata, bases: Ints, crcs: Ints, local: LocalPartition, producers: int | None
) -> Iterator[Finding]:
    """Findings about a segment's batches against the leader's local copy, and about replicas built from it."""
    leader = local.leader
    if leader is not None and segment.end_offset >= leader.first_base_offset:
        yield from _against_log(segment, bases, crcs, leader)
    for log in local.replicas.values():
        if log.first_base_offset == segment.end_offset + 1 and producers:
            yield from _seeded(log, producers)


def _against_log(segment: SegmentMetadata, bases: Ints, crcs: Ints, log: LocalLog) -> Iterator[Finding]:
    local_bases, local_crcs = local_batches(log, segment.start_offset, segment.end_offset)
    inside = (bases >= log.first_base_offset) & (bases <= segment.end_offset)
    bases, crcs = bases[inside], crcs[inside]
    low = max(segment.start_offset, log.first_base_offset)
    remote_batches = {*zip(bases.tolist(), crcs.tolist(), strict=True)}
    local_batches_ = {*zip(local_bases.tolist(), local_crcs.tolist(), strict=True)}
    differing = sorted(base for base, _ in remote_batches ^ local_batches_ if base >= low)
    if differing and len(local_bases):
        details = {"count": len(set(differing)), "first": differing[0], "last": differing[-1]}
        yield codes.LOCAL_DIFFERS.at(place_of(segment), severity=None, broker=log.broker_id, **details)


def local_batches(log: LocalLog, first: int, last: int) -> tuple[Ints, Ints]:
    """Base offsets and CRCs of a local log's sound batches in [first, last]."""
    bases: list[Ints] = []
    crcs: list[Ints] = []
    segments = log.segments  # empty if the folder is empty or cannot be listed
    ends = [*(segment.base_offset for segment in segments[1:]), 1 << 62][: len(segments)]
    for segment, end in zip(segments, ends, strict=True):
        if segment.log is None or segment.base_offset > last or end <= first:
            continue
        options = ScanOptions(level=Level.CRC, base_offset=segment.base_offset, max_findings=0)
        try:
            with opened_source(segment.log.path) as source:
                for chunk in scan_segment(source, options):
                    headers = chunk.headers
                    selected = (
                        headers.crc_valid & (headers.base_offset >= first) & (headers.base_offset <= last)
                    )
                    bases.append(headers.base_offset[selected])
                    crcs.append(headers.crc[selected].astype(np.int64))
        except OSError:
            continue
    if not bases:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate(bases), np.concatenate(crcs)


def _seeded(log: LocalLog, producers: int) -> Iterator[Finding]:
    """The finding about a replica that was built from the tier (or deleted up to it) with an empty producer snapshot."""
    name = f"{log.first_base_offset:020d}.snapshot"
    try:
        producer_entries = read_snapshot(read_whole(log.copy.folder / name))
    except (OSError, FormatError):
        return
    if not producer_entries:
        where = replace(log.copy.place, file=f"{log.copy.place.file}/{name}")
        yield codes.SEEDED_SNAPSHOT.at(where, offset=log.first_base_offset, count=producers)


# --- files of the metadata manager --------------------------------------------------------------------


def local_files(
    evidence: FoundEvidence, tiers: Mapping[TopicIdPartition, PartitionTier]
) -> Iterator[Finding]:
    """What is wrong with the tier files that brokers keep beside their logs."""
    for log_dir in evidence.log_dirs:
        offsets = log_dir.path / OFFSETS_FILE
        if os.path.isfile(offsets):
            try:
                parse_committed_offsets(read_lenient(offsets))
            except (OSError, FormatError) as error:
                place = replace(evidence.place_of(offsets, log_dir.root), broker_id=log_dir.broker_id)
                yield codes.LOCAL_SNAPSHOT_BAD.at(place, reason=str(error))
    for replica in evidence.replicas:
        if os.path.isfile(replica.folder / SNAPSHOT_FILE):
            yield from _snapshot(evidence, replica, tiers)


def _snapshot(
    evidence: FoundEvidence, replica: Replica, tiers: Mapping[TopicIdPartition, PartitionTier]
) -> Iterator[Finding]:
    path = replica.folder / SNAPSHOT_FILE
    place = replace(
        evidence.place_of(path, replica.log_dir.root),
        broker_id=replica.broker_id,
        topic=replica.topic,
        partition=replica.partition,
        moment=replica.moment,
    )
    try:
        snapshot = read_remote_log_snapshot(read_whole(path))
    except (OSError, FormatError) as error:
        yield codes.LOCAL_SNAPSHOT_BAD.at(place, reason=str(error))
        return
    known_ids = {
        segment_id
        for where, tier in tiers.items()
        if (where.topic, where.partition) == (replica.topic, replica.partition)
        for segment_id in tier.by_id
    }
    for entry in {} if snapshot is None else {s.remote_log_segment_id: s for s in snapshot.segments}.values():
        if entry.remote_log_segment_id not in known_ids and snapshot is not None:
            segment_place: Place = replace(
                place,
                remote_log_segment_id=entry.remote_log_segment_id,
                base_offset=entry.start_offset,
                last_offset=entry.end_offset,
            )
            yield codes.LOCAL_SNAPSHOT_DIFFERS.at(segment_place, offset=snapshot.metadata_partition_offset)
