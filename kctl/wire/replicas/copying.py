"""Partitions of a running cluster as folders of evidence: whole batches from the leader, up to its high watermark.

What a folder of a broker has beside the batches is not to be had: no indexes, no producer snapshots, no
leader-epoch-checkpoint, and other segment boundaries. Checkpoints of watermark and log start are written.

Where files are looked at one by one (`copied_pieces`), and where a log is read from its front to its end and no
more (`arriving_segments`), a segment is on disk when it is asked for and gone when the next one is: two are there at
most, however large a partition is.
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
    foremost,
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
    """Copy partitions into `folder/broker-ID/TOPIC-PARTITION`; what could not be copied, or not to its end.

    Raises KctlError where the disk has no room.
    """
    fetcher = Fetcher(wire, {name: topic.topic_id for name, topic in state.topics.items()})
    copies, failures = _begin(wire, state, partitions, folder)
    progress.start("copy", None, "bytes")
    waiting, active = list(reversed(copies)), list[_Copy]()
    while waiting or active:
        while waiting and len(active) < AT_ONCE:
            active.append(waiting.pop())
        for one in active:
            if one.offset >= one.until:
                one.close()
        active = [one for one in active if one.offset < one.until]
        if not active:
            continue
        _refuse_full(folder)
        size = max(LEAST, min(MOST, A_ROUND // len(active)))
        wanted = [FetchPosition(one.leader, one.partition, one.offset) for one in active]
        first = foremost(wanted)
        for one, answer in zip(active, fetcher.fetch(wanted, size), strict=True):
            failure = _take(one, answer, is_first=(one.leader, one.partition) in first)
            if failure is not None:
                failures.append(failure)
                one.until = one.offset
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
    """The segments of partitions, one after the other; each is gone when the next one is asked for.

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
    """The folders of partitions below `folder`, empty but for checkpoints, and what gives the segments of each.

    Each time it does it asks the leader again, for the same offsets. What cannot be had is reported when it is read.
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
        """The segments of one, from its start on; each is there until the next one is asked for."""
        one = replace(copy, files=[])
        try:
            while one.offset < one.until:
                _refuse_full(one.folder)
                self._fetch(one)
                while len(one.files) > 1:
                    yield one.files[0]
                    one.files.pop(0).unlink()
            one.close()
            while one.files:
                yield one.files[0]
                one.files.pop(0).unlink()
        finally:  # who reads may stop early
            one.close()
            for path in one.files:
                path.unlink(missing_ok=True)

    def _fetch(self, one: _Copy) -> None:
        (answer,) = self._fetcher.fetch([FetchPosition(one.leader, one.partition, one.offset)], MOST)
        if isinstance(answer, Fetched):
            if answer.error_code == OFFSET_OUT_OF_RANGE and self._moved_on(one):
                return
            self._progress.advance(len(answer.data))
        failed = _take(one, answer, is_first=True)
        if failed is not None:
            self._report(failed)
            one.until = one.offset

    def _moved_on(self, one: _Copy) -> bool:
        """Whether the log begins later than where its front was to be read: retention has taken that meanwhile."""
        if one.offset != one.begin:
            return False
        found = local_starts(self._wire, [(one.leader, one.partition)])
        begin = found.get((one.leader, one.partition))
        if not isinstance(begin, int) or begin <= one.offset:
            return False
        one.begin = one.offset = begin
        return True


def _begin(
    wire: Wire, state: ClusterState, partitions: Sequence[TopicPartition], folder: Path
) -> tuple[list[_Copy], list[KctlError]]:
    leaders = {tp: found.leader for tp in partitions if (found := state.partition_states.get(tp)) is not None}
    wanted = [(leaders[tp], tp) for tp in partitions if leaders.get(tp, -1) >= 0]
    starts = list_offsets(wire, wanted, EARLIEST)
    begins = local_starts(wire, wanted)
    ends = list_offsets(wire, wanted, LATEST, replica_id=CONSUMER)
    copies, failures = [], list[KctlError]()
    for tp in partitions:
        leader = leaders.get(tp, -1)
        start, end = starts.get((leader, tp)), ends.get((leader, tp))
        if not isinstance(start, int) or not isinstance(end, int):
            why = start if isinstance(start, KctlError) else end if isinstance(end, KctlError) else None
            failures.append(
                Leaderless(f"{tp} has no leader") if why is None else BrokerError(f"{tp}: {why.message}")
            )
            continue
        path = folder / f"broker-{leader}" / str(tp)
        path.mkdir(parents=True)
        local = begins.get((leader, tp))
        begin = max(start, local) if isinstance(local, int) else start
        copies.append(
            _Copy(partition=tp, leader=leader, folder=path, offset=begin, until=end, start=start, begin=begin)
        )
    return copies, failures


def _take(one: _Copy, answer: Fetched | KctlError, *, is_first: bool) -> KctlError | None:
    """Write the whole batches of an answer; why it cannot go on, if it cannot."""
    if isinstance(answer, KctlError):
        return KctlError(f"{one.partition}: {answer.message}", answer.hint)
    if answer.error:
        return BrokerError(f"{one.partition} from offset {one.offset} on: {answer.error}")
    if not answer.data:
        return BrokerError(f"{one.partition}: no bytes at offset {one.offset}") if is_first else None
    end, last_offset = _whole_batches(answer.data)
    if last_offset < one.offset:
        one.write(answer.data, one.offset)
        return KctlError(
            f"{one.partition}: bytes at offset {one.offset} are not a batch, and the broker returns nothing after them",
            "copy the files of that broker's disk and examine them with `kctl segment verify`",
        )
    one.write(answer.data[:end], int.from_bytes(answer.data[:8], "big", signed=True))
    one.offset = last_offset + 1
    return None


def _whole_batches(data: bytes | memoryview) -> tuple[int, int]:
    """Where the whole batches at the front end, and the last offset of the last one; 0 and -1 where there is none."""
    last = end = 0
    while True:
        length = int.from_bytes(data[end + 8 : end + LOG_OVERHEAD], "big", signed=True)
        if length < SMALLEST or end + LOG_OVERHEAD + length > len(data):
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
    for leader, some in by_leader.items():
        for name, value in (
            ("replication-offset-checkpoint", "until"),
            ("log-start-offset-checkpoint", "start"),
        ):
            rows = [OffsetEntry(o.partition.topic, o.partition.partition, getattr(o, value)) for o in some]
            (folder / f"broker-{leader}" / name).write_text(format_checkpoint(rows), "utf-8")
