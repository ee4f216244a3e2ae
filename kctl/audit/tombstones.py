"""Tombstones that a cleaner has met and keeps, and why.

The first pass of a cleaner over a tombstone begins its time of `delete.retention.ms`; a later pass removes it. From 3.1 on the
batch says when that may be (KIP-534); before, the times of the files decide, which a copy does not keep.

Source: `shouldRetainRecord`, `checkBatchRetention` (`K:log/LogCleaner.scala @ 2.4.1, 3.9.0`).
"""

from __future__ import annotations

from collections.abc import Iterator

from formats.errors import FormatError
from formats.log.record_batch import CONTROL, DELETE_HORIZON
from formats.log.records import LogEntry, iterate_records, walk
from formats.values import Struct
from kctl.audit.compaction import (
    DIRTY_RATIO,
    CompactedLog,
    cleaner_setting,
    compacted_logs,
    first_unstable,
    place_of,
)
from kctl.checks.retention import DAY
from kctl.copies.moments import Znodes, clusters_of
from kctl.evidence.model import FoundEvidence
from kctl.findings import Finding
from kctl.findings.failures import TOMBSTONES_KEPT
from kctl.scan.runs import BatchRuns
from kctl.scan.source import Source, opened_source
from kctl.times import iso

OLD_MS = 2 * DAY
"""The age of a tombstone that is worth a word: a day for `delete.retention.ms`, another for the cleaner."""
MOST_DECODED = 1 << 20
"""Bytes of batches without a horizon in which tombstones are looked for, in each partition."""


class Tombstones(Struct):
    """The old tombstones below the offset to which a log is compacted."""

    count: int = 0
    first_offset: int = -1
    oldest_ms: int = -1
    horizon_ms: int | None = None  # the earliest of those that batches state
    has_horizon: bool = False
    decoded: int = 0

    def look_at(self, source: Source, offset: int, until_ms: int) -> None:
        """Add those of a segment below an offset whose batch was written before a time."""
        for run in BatchRuns(source, 0, source.size, crc=False):
            headers = run.headers
            has_horizon = (headers.attributes & DELETE_HORIZON != 0) & (headers.magic == 2)
            self.has_horizon |= bool(has_horizon.any())
            is_old = (
                (headers.last_offset < offset)
                & (headers.max_timestamp > 0)
                & (headers.max_timestamp < until_ms)
            )
            is_data = headers.attributes & CONTROL == 0
            wanted = is_old & is_data & (has_horizon | (not self.has_horizon))
            for row in wanted.nonzero()[0].tolist():
                if not has_horizon[row] and self.decoded >= MOST_DECODED:
                    break
                start, end = int(headers.position[row]), int(headers.next_position[row])
                self.decoded += end - start
                self._count(source, start, end)

    def _count(self, source: Source, start: int, end: int) -> None:
        entry = next(iter(walk(source, position=start, end=end, check_crc=False)), None)
        if not isinstance(entry, LogEntry):
            return
        try:
            offsets = [record.offset for record in iterate_records(entry) if record.value is None]
        except FormatError:
            return
        if not offsets:
            return
        self.count += len(offsets)
        if self.first_offset < 0:
            self.first_offset, self.oldest_ms = offsets[0], entry.batch.max_timestamp if entry.batch else -1
        horizon = entry.batch.delete_horizon_ms if entry.batch else None
        if horizon is not None:
            self.horizon_ms = horizon if self.horizon_ms is None else min(self.horizon_ms, horizon)


def kept_tombstones(evidence: FoundEvidence) -> Iterator[Finding]:
    """A finding for each replica with tombstones of more than two days that its cleaner has met."""
    clusters = clusters_of(evidence, lambda error: None)
    for compacted in compacted_logs(evidence):
        replica, offset = compacted.replica, compacted.offset
        tombstones = Tombstones()
        try:
            for segment in compacted.segments[:-1]:
                if segment.segment.base_offset < offset and segment.segment.log is not None:
                    with opened_source(segment.segment.log.path) as source:
                        tombstones.look_at(source, offset, compacted.alive_ms - OLD_MS)
        except OSError:
            continue
        if not tombstones.count:
            continue
        yield TOMBSTONES_KEPT.at(
            place_of(replica),
            partition=replica.topic_partition,
            broker="?" if replica.broker_id is None else replica.broker_id,
            count=tombstones.count,
            first=tombstones.first_offset,
            time=iso(tombstones.oldest_ms),
            offset=offset,
            why=_why(tombstones, compacted, clusters.get(replica.moment, clusters.get(None))),
        )


def _why(tombstones: Tombstones, compacted: CompactedLog, cluster: Znodes | None) -> str:
    topic = compacted.replica.topic
    retention_ms = cleaner_setting(cluster, topic, "delete.retention.ms", DAY)
    if tombstones.horizon_ms is not None and tombstones.horizon_ms > compacted.alive_ms:
        is_set = "" if cluster else ", as far as the evidence says"
        return f"`delete.retention.ms` ({retention_ms:.0f}{is_set}) keeps them until {iso(tombstones.horizon_ms)}"
    unstable = first_unstable(compacted.replica.folder)
    if unstable is not None:
        return f"the cleaner comes no further than the first unstable offset: a transaction is open since offset {unstable}"
    closed = compacted.segments[:-1]
    dirty = sum(segment.size for segment in closed if segment.segment.base_offset >= compacted.offset)
    of = sum(segment.size for segment in closed)
    ratio = cleaner_setting(cluster, topic, "min.cleanable.dirty.ratio", DIRTY_RATIO)
    if dirty <= of * ratio:
        return (
            f"the cleaner's next pass removes them, and it waits until more than {ratio:.0%} of the bytes in closed segments lie"
            f" behind its checkpoint; {dirty:,} of {of:,} do"
        )
    return f"{dirty:,} of {of:,} bytes in closed segments wait for the cleaner, and log-cleaner.log would say why it does not come"
