"""One remote segment's objects, read and compared with its metadata by the checks of local segments.

Everything wrong is a finding with the segment's id. The batches of the log are returned too, to be compared with a
local copy.
"""

from __future__ import annotations

import numpy as np

from formats.errors import FormatError
from formats.log.columns.headers import Headers
from formats.tier.aiven_manifest import Manifest, parse_manifest
from formats.tier.object_names import ObjectKind, ObjectLayout
from formats.values import replace
from kctl.checks.indexes import IndexedLog, Indexes, OffsetIndex, OffsetIndexCheck, TimeIndex, TimeIndexCheck
from kctl.checks.report import FileReport
from kctl.errors import reason_of
from kctl.findings import FindingType, Place, Severity
from kctl.findings import remote as codes
from kctl.scan.options import ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import Source
from kctl.tier.audit.manifest_log import ChunkedLog
from kctl.tier.audit.segment_side_files import (
    check_leader_epochs,
    check_producer_snapshot,
    check_transactions,
)
from kctl.tier.audit.segment_tasks import NAMES, ExaminedSegment, SegmentTask, missing_objects, segment_place
from kctl.tier.audit.transactions import SegmentTransactions
from kctl.tier.stores import Store

LARGEST_SIDE_FILE = 256 << 20
MOST_FINDINGS = 100


class _Examination:
    """The examination of one segment's objects."""

    def __init__(self, task: SegmentTask, store: Store, layout: ObjectLayout) -> None:
        self.task = task
        self.store = store
        self.layout = layout
        self.segment = task.segment
        self.result = ExaminedSegment()
        self.manifest: Manifest | None = None
        self.transactions = SegmentTransactions()
        self.log_is_whole = False  # as the metadata say, so that other objects can be compared with it

    def say(self, type_: FindingType, kind: ObjectKind | None = None, **details: str | int) -> None:
        self.result.findings.append(type_.at(self.place(kind), severity=None, **details))

    def place(self, kind: ObjectKind | None) -> Place:
        stored = self.task.objects.by_kind.get(kind) if kind else None
        return segment_place(self.segment, stored[1].key if stored else None)

    def run(self) -> ExaminedSegment:
        self.result.findings += missing_objects(self.task, self.layout)
        if ObjectKind.MANIFEST in self.layout.required and not self._read_manifest():
            return self.result
        indexes = Indexes(self._offset_index(), self._time_index())
        log = self._open_log()
        if log is not None:
            try:
                self._scan(log, indexes)
            finally:
                log.close()
        self._side_files()
        return self.result

    # --- getting at the bytes -------------------------------------------------------------------------

    def _read_manifest(self) -> bool:
        data = self.read(ObjectKind.MANIFEST)
        if data is None:
            return False
        try:
            self.manifest = parse_manifest(data)
        except FormatError as error:
            self.say(codes.OBJECT_MALFORMED, ObjectKind.MANIFEST, what="a manifest", reason=str(error))
            return False
        if self.manifest.is_encrypted:
            self.say(codes.OBJECT_ENCRYPTED, ObjectKind.MANIFEST)
            return False
        return True

    def read(self, kind: ObjectKind) -> bytes | None:
        """The bytes of a small object; None, with a finding, if it cannot be read."""
        if self.manifest is not None and kind not in (ObjectKind.MANIFEST, ObjectKind.LOG):
            return self._slice(kind)
        source = self._open(kind)
        return None if source is None else self._all(source, kind)

    def _all(self, source: Source, kind: ObjectKind, start: int = 0, size: int | None = None) -> bytes | None:
        try:
            return source.read_at(start, min(source.size if size is None else size, LARGEST_SIDE_FILE))
        except OSError as error:
            self.say(codes.TIER_UNREADABLE, kind, reason=_reason(error))
            return None
        finally:
            source.close()

    def _slice(self, kind: ObjectKind) -> bytes | None:
        """An index from the object that holds all of them."""
        assert self.manifest is not None
        if kind not in self.manifest.indexes:
            return None
        source = self._open(ObjectKind.INDEXES)
        if source is None:
            return None
        start, size = self.manifest.indexes[kind]
        data = self._all(source, ObjectKind.INDEXES, start, size)
        if data is not None and len(data) < size:
            reason = f"{NAMES[kind]} should be {size} bytes from {start} on, {len(data)} are there"
            self.say(codes.OBJECT_MALFORMED, ObjectKind.INDEXES, what="indexes", reason=reason)
            return None
        return data

    def _open(self, kind: ObjectKind) -> Source | None:
        stored = self.task.objects.by_kind.get(kind)
        if stored is None:
            return None
        try:
            return self.store.open(stored[1].key)
        except FileNotFoundError:
            self.say(codes.OBJECT_VANISHED, kind)
        except OSError as error:
            self.say(codes.TIER_UNREADABLE, kind, reason=_reason(error))
        return None

    def _open_log(self) -> Source | None:
        source = self._open(ObjectKind.LOG)
        if source is None:
            return None
        expected = self.segment.size_in_bytes
        if self.manifest is not None:
            stored = sum(self.manifest.transformed_chunk_sizes)
            if stored != source.size:
                self.say(codes.OBJECT_SIZE, ObjectKind.LOG, found=source.size, expected=stored)
            if self.manifest.is_compressed:
                source = ChunkedLog(source, self.manifest)
        if source.size != expected:
            self.say(codes.OBJECT_SIZE, ObjectKind.LOG, found=source.size, expected=expected)
        return source

    # --- the log --------------------------------------------------------------------------------------

    def _report(self, kind: ObjectKind, size: int) -> FileReport:
        return FileReport(self.place(kind), str(kind), size, MOST_FINDINGS)

    def _keep(self, kind: ObjectKind, data: bytes) -> None:
        """Keep an index to compare brokers' copies with it."""
        self.result.indexes[kind] = (self.place(kind).file, data)

    def _offset_index(self) -> OffsetIndex | None:
        data = self.read(ObjectKind.OFFSET_INDEX)
        if data is None:
            return None
        self._keep(ObjectKind.OFFSET_INDEX, data)
        report = self._report(ObjectKind.OFFSET_INDEX, len(data))
        return OffsetIndex(report, OffsetIndexCheck(data, self.segment.start_offset))

    def _time_index(self) -> TimeIndex | None:
        data = self.read(ObjectKind.TIME_INDEX)
        if data is None:
            return None
        self._keep(ObjectKind.TIME_INDEX, data)
        report = self._report(ObjectKind.TIME_INDEX, len(data))
        return TimeIndex(report, TimeIndexCheck(data, self.segment.start_offset))

    def _scan(self, log: Source, indexes: Indexes) -> None:
        place = replace(self.place(ObjectKind.LOG), base_offset=None, last_offset=None)
        options = ScanOptions(
            level=self.task.level,
            base_offset=self.segment.start_offset,
            is_compacted=False,
            place=place,
            max_findings=MOST_FINDINGS,
        )
        scan = scan_segment(log, options)
        try:
            for chunk in scan:
                self.result.findings += chunk.findings
                self._follow(chunk.headers, log, indexes)
        except OSError as error:
            self.say(codes.TIER_UNREADABLE, ObjectKind.LOG, reason=_reason(error))
            return
        totals = scan.totals
        fits = self._check_offsets(totals.base_offset, totals.next_offset, totals.batches)
        self._check_timestamp(totals.max_timestamp)
        self.log_is_whole = fits and totals.damaged_bytes == 0 and log.size == self.segment.size_in_bytes
        if self.log_is_whole:
            self.result.max_timestamp = totals.max_timestamp
        indexed = IndexedLog(
            self.segment.start_offset,
            log.size,
            totals.batches,
            totals.next_offset or self.segment.start_offset,
            is_last=False,
            is_clean=True,
            is_sound=self.log_is_whole,
        )
        indexes.finish(indexed)
        for index in indexes.all():
            self.result.findings += index.report.all_findings()

    def _follow(self, headers: Headers, log: Source, indexes: Indexes) -> None:
        for index in indexes.all():
            index.feed(headers)
        if not len(headers):
            return
        sound = headers if headers.crc_valid.all() else headers[headers.crc_valid]
        self._check_epochs(sound)
        self.transactions.feed(sound, log)
        self.result.base_offsets.append(sound.base_offset)
        self.result.crcs.append(sound.crc.astype(np.int64))

    def _check_epochs(self, headers: Headers) -> None:
        """Compare each batch's epoch with the metadata; at most one finding a chunk."""
        starts = np.array([start for _, start in self.segment.segment_leader_epochs], np.int64)
        epochs = np.array([epoch for epoch, _ in self.segment.segment_leader_epochs], np.int64)
        inside = (headers.base_offset >= self.segment.start_offset) & (headers.magic == 2)
        inside &= headers.base_offset <= self.segment.end_offset
        row = np.clip(np.searchsorted(starts, headers.base_offset, side="right") - 1, 0, None)
        wrong = np.flatnonzero(inside & (headers.partition_leader_epoch != epochs[row]))
        if len(wrong):
            at = int(wrong[0])
            place = replace(
                self.place(ObjectKind.LOG),
                position=int(headers.position[at]),
                size_in_bytes=int(headers.size_in_bytes[at]),
                base_offset=int(headers.base_offset[at]),
                last_offset=int(headers.last_offset[at]),
            )
            details = {"offset": int(headers.base_offset[at]), "expected": int(epochs[row[at]])}
            epoch = int(headers.partition_leader_epoch[at])
            self.result.findings.append(codes.LOG_EPOCHS.at(place, severity=None, found=epoch, **details))

    def _check_offsets(self, first: int | None, after: int | None, batches: int) -> bool:
        segment = self.segment
        if batches and (first, after) == (segment.start_offset, segment.end_offset + 1):
            return True
        details = {"from_offset": segment.start_offset, "to_offset": segment.end_offset + 1}
        range_text = "no records" if first is None or after is None else f"offsets [{first}, {after})"
        self.say(codes.LOG_OFFSETS, ObjectKind.LOG, found=range_text, **details)
        return False

    def _check_timestamp(self, timestamp: int) -> None:
        expected = self.segment.max_timestamp
        if min(timestamp, expected) < 0 or timestamp == expected:
            return
        # A broker that has not loaded a segment's largest timestamp uses the time of its file, which is later.
        severity = Severity.INFO if expected > timestamp else None
        place = self.place(ObjectKind.LOG)
        self.result.findings.append(
            codes.LOG_TIMESTAMP.at(place, severity=severity, found=timestamp, expected=expected)
        )

    # --- the files next to it --------------------------------------------------------------------------

    def _side_files(self) -> None:
        data = self.read(ObjectKind.LEADER_EPOCHS)
        if data is not None:
            self.result.epochs, why = check_leader_epochs(data, self.segment)
            if why:
                self.say(codes.EPOCHS_OBJECT, ObjectKind.LEADER_EPOCHS, why=why)
        data = self.read(ObjectKind.PRODUCER_SNAPSHOT)
        if data is not None:
            name = f"{self.segment.end_offset + 1:020d}.snapshot"
            last = self.transactions.last_offsets if self.log_is_whole else None
            self.result.producers, whys = check_producer_snapshot(data, self.segment, last)
            for why in whys:
                self.say(codes.SNAPSHOT_OBJECT, ObjectKind.PRODUCER_SNAPSHOT, why=why, name=name)
        if not self.log_is_whole:
            return
        data = self.read(ObjectKind.TRANSACTION_INDEX)
        is_there = self.manifest is not None and ObjectKind.TRANSACTION_INDEX in self.manifest.indexes
        if data is not None or not (is_there or self.transactions.surely_aborted):
            self._keep(ObjectKind.TRANSACTION_INDEX, data or b"")
        if data is None and not is_there and self.transactions.surely_aborted:
            lacking = "it is missing, and the log holds aborted transactions"
            self.say(codes.TRANSACTIONS_OBJECT, why=lacking)
        elif data is not None:
            for why in check_transactions(data, self.segment, self.transactions):
                self.say(codes.TRANSACTIONS_OBJECT, ObjectKind.TRANSACTION_INDEX, why=why)


def _reason(error: OSError) -> str:
    return " ".join(reason_of(error).split())


def examine(task: SegmentTask, store: Store, layout: ObjectLayout) -> ExaminedSegment:
    """What is wrong with a segment's objects, and the batches of its log."""
    return _Examination(task, store, layout).run()
