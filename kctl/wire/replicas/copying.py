"""Partitions of a running cluster as folders of evidence: whole batches from the leader, up to its high watermark.

Other files of a broker's folder cannot be fetched: there are no indexes, no producer snapshots, no
leader-epoch-checkpoint, and segments have other boundaries. Checkpoints of watermark and log start are written.

Where files are examined one by one (`copied_pieces`), and where a log is read once from front to end
(`arriving_segments`), a segment is on disk when it is requested and deleted when the next one is: at most two exist at
once, however large a partition is.
"""

import shutil
import struct
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from formats.log.message_set import MIN_SIZES
from formats.log.record_batch import LOG_OVERHEAD
from formats.log_dir.checkpoints import OffsetEntry, format_checkpoint
from formats.values import Struct, field, replace
from kctl.cluster.rights import MissingRight
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, file_error
from kctl.evidence.model import Arriving
from kctl.model import SILENT, Progress, Report, TopicPartition
from kctl.wire.adapter import BrokerError, Leaderless, Wire
from kctl.wire.replicas.fetching import (
    A_ROUND,
    CONSUMER,
    EARLIEST,
    LATEST,
    OFFSET_OUT_OF_RANGE,
    Fetched,
    Fetcher,
    FetchPosition,
    first_positions,
    list_offsets,
    local_starts,
)

SMALLEST = MIN_SIZES[0]  # what Kafka's reader asks of every magic
SEGMENT = 256 << 20  # bytes after which the next file begins
AT_ONCE, LEAST, MOST = 16, 1 << 20, 8 << 20
_LAST = struct.Struct(">q8xb6xi")  # of a batch: its base offset, magic and last offset delta
ROOM = 1 << 30  # bytes that are left free below the folder


class _Copy(Struct, kw_only=True):
    partition: TopicPartition
    leader: int
    folder: Path
    offset: int
    until: int
    start: int  # of the log; of a tiered topic this may lie before what the leader has itself
    begin: int  # the first offset that is read
    file: BinaryIO | None = None
    in_file: int = 0
    files: list[Path] = field(default_factory=list)  # the last one is written to

    def write(self, data: bytes | memoryview, base_offset: int) -> None:
        try:
            self._write(data, base_offset)
        except OSError as error:
            raise file_error(self.folder, error, KctlError, "set TMPDIR to another folder") from error

    def _write(self, data: bytes | memoryview, base_offset: int) -> None:
        if self.file is None or self.in_file >= SEGMENT:
            self.close()
            self.files.append(self.folder / f"{base_offset:020d}.log")
            self.file = self.files[-1].open("wb")
            self.in_file = 0
        self.file.write(data)
        self.in_file += len(data)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


def copy_partitions(
    wire: Wire,
    state: ClusterState,
    partitions: Sequence[TopicPartition],
    folder: Path,
    *,
    progress: Progress = SILENT,
) -> list[KctlError]:
    """Copy partitions into `folder/broker-ID/TOPIC-PARTITION`; returns errors of those not copied to their end.

    Raises KctlError where the disk has no room.
    """
    fetcher = Fetcher(wire, {name: topic.topic_id for name, topic in state.topics.items()})
    copies, failures = _begin(wire, state, partitions, folder)
    progress.start("copy", None, "bytes")
    waiting, active = list(reversed(copies)), list[_Copy]()
    while waiting or active:
        while waiting and len(active) < AT_ONCE:
            active.append(waiting.pop())
        for copy in active:
            if copy.offset >= copy.until:
                copy.close()
        active = [copy for copy in active if copy.offset < copy.until]
        if not active:
            continue
        _refuse_full(folder)
        size = max(LEAST, min(MOST, A_ROUND // len(active)))
        positions = [FetchPosition(copy.leader, copy.partition, copy.offset) for copy in active]
        first = first_positions(positions)
        for copy, answer in zip(active, fetcher.fetch(positions, size), strict=True):
            failure = _take(copy, answer, is_first=(copy.leader, copy.partition) in first)
            if failure is not None:
                failures.append(failure)
                copy.until = copy.offset
            if isinstance(answer, Fetched):
                progress.advance(len(answer.data))
    _write_checkpoints(copies, folder)
    return failures


def copied_pieces(
    wire: Wire,
    state: ClusterState,
    partitions: Sequence[TopicPartition],
    folder: Path,
    report: Report,
    *,
    progress: Progress = SILENT,
) -> Iterator[Path]:
    """The segments of partitions, one after the other; each is deleted when the next one is requested.

    What cannot be copied is reported, and the rest goes on. Raises KctlError where the disk has no room.
    """
    pieces = _Pieces(wire, state, report, progress)
    copies, failures = _begin(wire, state, partitions, folder)
    for failure in failures:
        report(failure)
    progress.start("read", None, "bytes")
    for copy in copies:
        yield from pieces.of(copy)


def arriving_segments(
    wire: Wire,
    state: ClusterState,
    partitions: Sequence[TopicPartition],
    folder: Path,
    report: Report,
    *,
    progress: Progress = SILENT,
) -> dict[Path, Arriving]:
    """The folders of partitions below `folder`, with only checkpoints in them, and the source of the segments of each.

    The source fetches the same offsets from the leader each time it is read, and reports what it cannot fetch.
    """
    pieces = _Pieces(wire, state, report, progress)
    copies, failures = _begin(wire, state, partitions, folder)
    for failure in failures:
        report(failure)
    _write_checkpoints(copies, folder)
    progress.start("read", None, "bytes")
    return {copy.folder: partial(pieces.of, copy) for copy in copies}


class _Pieces:
    """Reads partitions segment by segment."""

    def __init__(self, wire: Wire, state: ClusterState, report: Report, progress: Progress) -> None:
        self._wire = wire
        self._fetcher = Fetcher(wire, {name: topic.topic_id for name, topic in state.topics.items()})
        self._report = report
        self._progress = progress

    def of(self, copy: _Copy) -> Iterator[Path]:
        """The segments of a copy, from its start on; each exists until the next one is requested."""
        copy = replace(copy, files=[])
        try:
            while copy.offset < copy.until:
                _refuse_full(copy.folder)
                self._fetch(copy)
                while len(copy.files) > 1:
                    yield copy.files[0]
                    copy.files.pop(0).unlink()
            copy.close()
            while copy.files:
                yield copy.files[0]
                copy.files.pop(0).unlink()
        finally:  # the reader may stop early
            copy.close()
            for path in copy.files:
                path.unlink(missing_ok=True)

    def _fetch(self, copy: _Copy) -> None:
        (answer,) = self._fetcher.fetch([FetchPosition(copy.leader, copy.partition, copy.offset)], MOST)
        if isinstance(answer, Fetched):
            if answer.error_code == OFFSET_OUT_OF_RANGE and self._moved_on(copy):
                return
            self._progress.advance(len(answer.data))
        failure = _take(copy, answer, is_first=True)
        if failure is not None:
            self._report(failure)
            copy.until = copy.offset

    def _moved_on(self, copy: _Copy) -> bool:
        """Whether retention has deleted the offset at which the copy was to begin."""
        if copy.offset != copy.begin:
            return False
        starts = local_starts(self._wire, [(copy.leader, copy.partition)])
        begin = starts.get((copy.leader, copy.partition))
        if not isinstance(begin, int) or begin <= copy.offset:
            return False
        copy.begin = copy.offset = begin
        return True


def _begin(
    wire: Wire, state: ClusterState, partitions: Sequence[TopicPartition], folder: Path
) -> tuple[list[_Copy], list[KctlError]]:
    leaders = {
        tp: partition_state.leader
        for tp in partitions
        if (partition_state := state.partition_states.get(tp)) is not None
    }
    replicas = [(leaders[tp], tp) for tp in partitions if leaders.get(tp, -1) >= 0]
    starts = list_offsets(wire, replicas, EARLIEST)
    begins = local_starts(wire, replicas)
    ends = list_offsets(wire, replicas, LATEST, replica_id=CONSUMER)
    copies, failures = [], list[KctlError]()
    for tp in partitions:
        leader = leaders.get(tp, -1)
        start, end = starts.get((leader, tp)), ends.get((leader, tp))
        if not isinstance(start, int) or not isinstance(end, int):
            why = start if isinstance(start, KctlError) else end if isinstance(end, KctlError) else None
            if why is None:
                failures.append(Leaderless(f"{tp} has no leader"))
            else:
                is_denied = isinstance(why, MissingRight)
                failures.append(why if is_denied else BrokerError(f"{tp}: {why.message}"))
            continue
        path = folder / f"broker-{leader}" / str(tp)
        path.mkdir(parents=True)
        local = begins.get((leader, tp))
        begin = max(start, local) if isinstance(local, int) else start
        copies.append(
            _Copy(partition=tp, leader=leader, folder=path, offset=begin, until=end, start=start, begin=begin)
        )
    return copies, failures


def _take(copy: _Copy, answer: Fetched | KctlError, *, is_first: bool) -> KctlError | None:
    """Write the whole batches of an answer; the error if the copy cannot go on."""
    if isinstance(answer, MissingRight):
        return answer
    if isinstance(answer, KctlError):
        return KctlError(f"{copy.partition}: {answer.message}", answer.hint)
    if answer.error:
        return BrokerError(f"{copy.partition} from offset {copy.offset} on: {answer.error}")
    if not answer.data:
        return BrokerError(f"{copy.partition}: no bytes at offset {copy.offset}") if is_first else None
    end, last_offset = whole_batches(answer.data)
    if last_offset < copy.offset:
        copy.write(answer.data, copy.offset)
        return KctlError(
            f"{copy.partition}: bytes at offset {copy.offset} are not a batch, and the broker returns nothing after them",
            "copy the files of that broker's disk and examine them with `kctl segment verify`",
        )
    copy.write(answer.data[:end], int.from_bytes(answer.data[:8], "big", signed=True))
    copy.offset = last_offset + 1
    return None


def whole_batches(data: bytes | memoryview, until: int | None = None) -> tuple[int, int]:
    """The end of the whole batches at the front, and their last offset; 0 and -1 if there is none.

    `until`: those behind the first one end where a batch begins at this offset or above.
    """
    last = end = 0
    while True:
        length = int.from_bytes(data[end + 8 : end + LOG_OVERHEAD], "big", signed=True)
        if length < SMALLEST or end + LOG_OVERHEAD + length > len(data):
            break
        if until is not None and end and int.from_bytes(data[end : end + 8], "big", signed=True) >= until:
            break
        last, end = end, end + LOG_OVERHEAD + length
    if not end:
        return 0, -1
    base, magic, delta = _LAST.unpack(bytes(data[last : last + _LAST.size]).ljust(_LAST.size, b"\0"))
    return end, base + (delta if magic == 2 else 0)


def _refuse_full(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < ROOM:
        raise KctlError(f"{folder} has {free:,} bytes left for copies", "set TMPDIR to another folder")


def _write_checkpoints(copies: Sequence[_Copy], folder: Path) -> None:
    by_leader: dict[int, list[_Copy]] = {}
    for copy in copies:
        by_leader.setdefault(copy.leader, []).append(copy)
    for leader, leader_copies in by_leader.items():
        for name, value in (
            ("replication-offset-checkpoint", "until"),
            ("log-start-offset-checkpoint", "start"),
        ):
            rows = [
                OffsetEntry(copy.partition.topic, copy.partition.partition, getattr(copy, value))
                for copy in leader_copies
            ]
            (folder / f"broker-{leader}" / name).write_text(format_checkpoint(rows), "utf-8")
