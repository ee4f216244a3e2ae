"""Producer snapshots and transaction indexes against the batches of the log.

The producers' state is replayed once over the whole log and looked at where a snapshot ends. What the log
cannot know is not judged: producers whose batches are gone (retention, compaction, tiers, damage), and those
that a broker forgot because they were idle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formats.errors import FormatError
from formats.log_dir.producer_snapshot import ProducerEntry, SnapshotCrcMismatch, read_snapshot
from formats.values import Struct, field, replace
from kctl.checks.indexes import highest_so_far
from kctl.checks.report import FileReport, Unsettled, judge_twice
from kctl.checks.segments import HARMLESS
from kctl.checks.small_files import read_small
from kctl.findings import Severity
from kctl.findings import snapshots as codes
from kctl.log.folder import FolderFile
from kctl.scan.outliers import MarkedChunk
from kctl.scan.producer_state import NONE, ProducerReplay, ProducerState, ReadMarker, read_marker_at
from kctl.scan.source import Source


class Snapshot(Struct):
    """A snapshot that could be read: where it ends, and what it holds."""

    offset: int
    report: FileReport
    entries: list[ProducerEntry]


def open_snapshot(file: FolderFile, report: FileReport, *, may_be_unwritten: bool) -> Snapshot | None:
    """The snapshot in a file; a finding, and None, where Kafka would delete it.

    `may_be_unwritten`: it is the newest of a broker that was not shut down.
    """
    assert file.named is not None
    report.next_offset = file.named.base_offset
    data = read_small(file.path, report)
    if data is None:
        return None
    if not data and may_be_unwritten:
        report.say(codes.SNAPSHOT_UNWRITTEN)
        return None
    try:
        return Snapshot(file.named.base_offset, report, read_snapshot(data))
    except SnapshotCrcMismatch as error:
        report.say(codes.SNAPSHOT_CRC_MISMATCH, stored=error.stored, computed=error.computed)
    except FormatError as error:
        report.say(codes.SNAPSHOT_MALFORMED, what=str(error))
    report.damaged_bytes = report.size_in_bytes
    return None


class ProducerWatch(Struct, dict=True):
    """Follows the producers through a log; each snapshot is judged when the log reaches its end."""

    snapshots: Sequence[Snapshot]  # by ascending offset
    log_start: int  # offset of the first local batch, below which nothing is known
    began: int = 0  # the log start offset, up to which records may have been deleted
    is_compacted: bool = False
    replay: ProducerReplay = field(default_factory=ProducerReplay)
    unsettled: list[Unsettled] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._judged = 0
        self._is_damaged = False

    @property
    def is_known(self) -> bool:
        """Whether the log has all batches written from its start on, and the replay remembers them."""
        return not self.is_compacted and not self._is_damaged and self.replay.is_whole

    def feed(self, chunk: MarkedChunk, source: Source) -> None:
        """The next batches of the log."""
        headers = chunk.headers
        self._is_damaged |= any(damage.reason not in HARMLESS for damage in chunk.chunk.damage)
        if not len(headers):
            return
        self._is_damaged |= not headers.crc_valid.all()
        read = _marker_reader(source)
        highest = highest_so_far(headers.base_offset, 0)
        first = 0
        while self._judged < len(self.snapshots):
            due = int(np.searchsorted(highest, self.snapshots[self._judged].offset))
            if due == len(headers):
                break
            self.replay.feed(headers[first:due], read)
            self._judge(self.snapshots[self._judged])
            first = due
            self._judged += 1
        self.replay.feed(headers[first:], read)

    def finish(self, log_end: int, is_clean: bool, is_whole: bool) -> None:
        """Judge the snapshots at the log's end, and name those beyond it."""
        for snapshot in self.snapshots[self._judged :]:
            if snapshot.offset <= log_end:
                self._judge(snapshot)
            elif is_whole:
                severity = None if is_clean else Severity.INFO
                details = {"offset": snapshot.offset, "log_end": log_end}
                finding = codes.SNAPSHOT_BEYOND_END.at(snapshot.report.place, severity=severity, **details)
                snapshot.report.add([finding])
        self._judged = len(self.snapshots)

    def _judge(self, snapshot: Snapshot) -> None:
        def judge(report: FileReport, is_known: bool) -> None:
            self._judge_as(replace(snapshot, report=report), is_known)

        self.unsettled += judge_twice(snapshot.report, judge, self.is_known)

    def _judge_as(self, snapshot: Snapshot, is_known: bool) -> None:
        """Judge a snapshot by a log that has all its batches, or may not."""
        stored = {entry.producer_id: entry for entry in snapshot.entries}
        for entry in snapshot.entries:
            state = self.replay.producers.get(entry.producer_id)
            if state is not None:
                self._compare(snapshot, entry, state, is_known)
            elif is_known and entry.last_offset >= self.log_start:
                where = replace(snapshot.report.place, base_offset=entry.last_offset)
                details = {"producer_id": entry.producer_id, "last_offset": entry.last_offset}
                snapshot.report.say(codes.SNAPSHOT_PRODUCER_UNKNOWN, where, **details)
        if is_known and stored:
            oldest = min(entry.timestamp for entry in snapshot.entries)
            for producer_id, state in self.replay.producers.items():
                if producer_id not in stored and state.timestamp > oldest and state.last_offset >= self.began:
                    details = {"producer_id": producer_id, "last_offset": state.last_offset}
                    snapshot.report.say(codes.SNAPSHOT_PRODUCER_MISSING, None, **details)

    def _compare(
        self, snapshot: Snapshot, entry: ProducerEntry, state: ProducerState, is_known: bool
    ) -> None:
        """An entry is right when any version of Kafka would have written it from this log."""
        variants = (state.entry(), state.entry_of_1_0(), state.entry_of_0_11())
        if entry in variants:
            return
        if not is_known and entry.last_offset != state.last_offset:
            return  # a batch of it is gone
        expected = variants[0]
        for name in ProducerEntry._fields:
            stored: int = getattr(entry, name)
            right: int = getattr(expected, name)
            if stored == right or not self._can_be_known(name, entry, state, is_known):
                continue
            if any(getattr(variant, name) == stored for variant in variants):
                continue
            details: dict[str, str | int] = {
                "producer_id": entry.producer_id,
                "offset": snapshot.offset,
                "field": name,
            }
            snapshot.report.say(codes.SNAPSHOT_ENTRY_WRONG, None, stored=stored, expected=right, **details)
            return

    def _can_be_known(self, name: str, entry: ProducerEntry, state: ProducerState, is_known: bool) -> bool:
        """Whether the log alone determines a field: markers and beginnings may lie before its start."""
        if name in ("coordinator_epoch", "timestamp"):
            return is_known and (state.marker_offset != NONE or self.log_start == 0)
        if name == "current_txn_first_offset":
            return is_known and (entry.current_txn_first_offset >= self.log_start or self.log_start == 0)
        if name in ("last_sequence", "last_offset", "offset_delta"):
            return state.last_offset != NONE or self.log_start == 0
        return True


def _marker_reader(source: Source) -> ReadMarker:
    return lambda position, size: read_marker_at(source, position, size)
