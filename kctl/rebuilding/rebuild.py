"""The files beside the logs of a partition folder, rewritten from its batches: what a recovery would write.

A recovery takes a snapshot at the end of each segment, so the snapshots made are those at each later
segment's base and at the log's end. Damaged batches are left out and what is behind them is indexed all the
same: the input is not cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from formats.log.columns.headers import Headers
from formats.log.record_batch import Record
from formats.log.records import records_at
from formats.log_dir.checkpoints import format_checkpoint
from formats.log_dir.file_names import LEADER_EPOCHS, format_segment_file
from formats.log_dir.index_files import OffsetIndexEntry, entries_of, used_size, write_index
from formats.log_dir.producer_snapshot import write_snapshot
from formats.values import Struct, field
from kctl.checks.epochs import EpochRuns
from kctl.errors import KctlError
from kctl.files import read_padded
from kctl.log.folder import Folder, FolderFile, LogSegment
from kctl.log.index_rules import (
    DEFAULT_INTERVAL,
    NEWEST,
    IndexBuilder,
    IndexRules,
    Interval,
    interval_of,
    likeliest_interval,
)
from kctl.rebuilding.snapshot_order import snapshot_order
from kctl.scan.options import Level, ScanOptions
from kctl.scan.outliers import MarkedChunk, without_outliers
from kctl.scan.producer_state import (
    MOST_ABORTED,
    MOST_PRODUCERS,
    ProducerReplay,
    ProducerState,
    read_marker_at,
)
from kctl.scan.segment import scan_segment
from kctl.scan.source import Source, opened_source


class Method(Struct, frozen=True):
    """The rules by which files are rebuilt."""

    rules: IndexRules = NEWEST
    interval: int = DEFAULT_INTERVAL
    by_leader: bool = True
    is_0_11: bool = False  # snapshots as 0.11 wrote them, among the rules of 0.8


class RebuiltFiles(Struct):
    """Files by name, in the order of the log."""

    files: dict[str, bytes] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)
    damaged: int = 0  # batches and ranges that were left out

    def add(self, name: str, data: bytes, entries: int) -> None:
        """Take a file."""
        self.files[name], self.entries[name] = data, entries


class _Maker(Struct):
    """A rebuild of the files of one folder."""

    method: Method
    has_time_indexes: bool
    rebuilt: RebuiltFiles = field(default_factory=RebuiltFiles)
    epochs: EpochRuns = field(default_factory=EpochRuns)
    replay: ProducerReplay = field(default_factory=ProducerReplay)
    has_batches: bool = False  # of magic 2, which alone have epochs and producers

    def segment(self, segment: LogSegment, log: FolderFile) -> int:
        """Make the indexes of a segment; the offset behind its last batch, or its base offset."""
        builder = IndexBuilder(
            segment.base_offset, self.method.rules, self.method.interval, self.method.by_leader
        )
        end = segment.base_offset
        with opened_source(log.path) as source:

            def read_records(position: int) -> list[Record]:
                return records_at(source, position)

            for chunk in without_outliers(
                scan_segment(source, ScanOptions(level=Level.CRC, base_offset=segment.base_offset))
            ):
                end = max(end, self._follow(chunk, source))
                builder.feed(chunk.headers, read_records)
            builder.finish(read_records)
        self._add_indexes(segment.base_offset, builder)
        aborted = [
            transaction.entry for transaction in self.replay.take_aborted() if transaction.has_beginning
        ]
        if aborted:
            name = format_segment_file(segment.base_offset, ".txnindex")
            self.rebuilt.add(name, write_index(aborted), len(aborted))
        return end

    def _follow(self, marked: MarkedChunk, source: Source) -> int:
        headers = marked.headers
        self.rebuilt.damaged += len(marked.chunk.damage) + int((~headers.crc_valid).sum())
        self.epochs.feed(marked)
        self.replay.feed(headers, lambda position, size: read_marker_at(source, position, size))
        if not self.replay.is_whole:
            raise KctlError(
                f"more than {MOST_PRODUCERS:,} producers or {MOST_ABORTED:,} aborted transactions of a segment: too many to rebuild from",
                "let the broker make the files: it does so at start-up where they are not there",
            )
        self.has_batches |= bool((headers.magic == 2).any())
        return _end_of(headers)

    def _add_indexes(self, base_offset: int, builder: IndexBuilder) -> None:
        name = format_segment_file(base_offset, ".index")
        self.rebuilt.add(name, write_index(builder.offset_entries), len(builder.offset_entries))
        # Time indexes are older than magic 2 (KAFKA-3163, 0.10.1).
        if self.has_time_indexes or self.has_batches:
            name = format_segment_file(base_offset, ".timeindex")
            self.rebuilt.add(name, write_index(builder.time_entries), len(builder.time_entries))

    def snapshot(self, offset: int) -> None:
        """Make the snapshot that ends at an offset, the state being that of the log up to there."""
        data = snapshot_bytes(self.replay, self.method)
        self.rebuilt.add(format_segment_file(offset, ".snapshot"), data, len(self.replay.producers))


def make(folder: Folder, method: Method, *, has_time_indexes: bool = True) -> RebuiltFiles:
    """The files beside the logs of a folder; OSError where a log cannot be read."""
    maker = _Maker(method, has_time_indexes)
    logs = [(segment, segment.log) for segment in folder.segments if segment.log]
    snapshots: list[int] = []
    end = 0
    for number, (segment, log) in enumerate(logs):
        assert log is not None
        if number and maker.has_batches:
            maker.snapshot(segment.base_offset)
            snapshots.append(segment.base_offset)
        end = max(end, maker.segment(segment, log))
    if maker.has_batches and end > logs[0][0].base_offset:
        maker.snapshot(end)
    if maker.epochs.entries:
        text = format_checkpoint(maker.epochs.entries)
        maker.rebuilt.add(LEADER_EPOCHS, text.encode(), len(maker.epochs.entries))
    return maker.rebuilt


def snapshot_bytes(replay: ProducerReplay, method: Method) -> bytes:
    """A snapshot of the producers as brokers of the method's version write it."""
    states = list(replay.producers.values())
    ordered = snapshot_order(states, lambda state: state.producer_id, method.rules)
    entry_of = ProducerState.entry
    if method.rules is IndexRules.V0_8:
        entry_of = ProducerState.entry_of_0_11 if method.is_0_11 else ProducerState.entry_of_1_0
    return write_snapshot([entry_of(state) for state in ordered])


def _end_of(headers: Headers) -> int:
    sound = headers.last_offset[headers.crc_valid]
    return int(sound.max()) + 1 if len(sound) else 0


def interval_in_use(folder: Folder) -> int:
    """The index interval that explains most of a folder's indexes; the default where none tells."""
    intervals: list[Interval] = []
    for segment in folder.segments:
        if segment.log and segment.index:
            interval = _interval_of(segment.log.path, segment.index.path)
            if interval:
                intervals.append(interval)
    return likeliest_interval(intervals)


def _interval_of(log: Path, index: Path) -> Interval | None:
    data = read_padded(index)
    indexed = [entry.position for entry in entries_of(OffsetIndexEntry, data[: used_size(data, 8)])]
    positions: list[int] = []
    with opened_source(log) as source:
        for chunk in scan_segment(source, ScanOptions(level=Level.HEADER)):
            positions += chunk.headers.position.tolist()
    return interval_of(positions, indexed)


def methods(folder: Folder, rules: Sequence[IndexRules], interval: int | None) -> list[Method]:
    """The methods that a check tries, newest first."""
    used = interval if interval is not None else interval_in_use(folder)
    candidates = []
    for rule in sorted(rules, reverse=True):
        for by_leader in (True, False) if rule is not IndexRules.V3_8 else (True,):
            for is_0_11 in (False, True) if rule is IndexRules.V0_8 else (False,):
                candidates.append(Method(rule, used, by_leader, is_0_11))
    return candidates
