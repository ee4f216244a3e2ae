"""The segments of copies as columns of headers, read in this process or, if copies are large, by worker processes.

Pieces of several copies are read in the order of their offsets, so that logs read side by side never get far
ahead of each other.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from formats.log.columns.headers import Headers
from formats.log.records import Damage
from formats.values import Struct
from kctl.errors import reason_of
from kctl.evidence.model import Arriving
from kctl.files import read_padded
from kctl.inside import Inside
from kctl.log.folder import Folder, LogSegment, read_folder
from kctl.scan.options import Chunk, Level, ScanOptions
from kctl.scan.pool import Jobs, default_jobs, ordered
from kctl.scan.segment import scan_segment
from kctl.scan.source import opened_source
from kctl.scan.splits import hints_of, plan_splits

LARGE = 64 << 20  # bytes of all copies from which on worker processes are faster
PIECE = 32 << 20


class HeaderColumns(Struct, frozen=True):
    """The columns of headers that are kept, one element a batch; see `formats.log.columns.headers.Headers`."""

    base_offset: npt.NDArray[np.int64]
    last_offset: npt.NDArray[np.int64]
    partition_leader_epoch: npt.NDArray[np.int32]
    magic: npt.NDArray[np.int8]
    crc: npt.NDArray[np.uint32]
    position: npt.NDArray[np.int64]
    size_in_bytes: npt.NDArray[np.int64]
    records_count: npt.NDArray[np.int32]
    max_timestamp: npt.NDArray[np.int64]
    crc_valid: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.base_offset)

    def __getitem__(self, rows: npt.NDArray[np.bool_]) -> HeaderColumns:
        return HeaderColumns(*(getattr(self, name)[rows] for name in NAMES))


NAMES = HeaderColumns.__struct_fields__


def columns_of(headers: Headers) -> HeaderColumns:
    return HeaderColumns(*(getattr(headers, name) for name in NAMES))


class ScannedRun(Struct, frozen=True):
    """Consecutive bytes of one segment. `begins` and `ends` say whether they are its first and last."""

    path: Path
    base_offset: int
    columns: HeaderColumns | None = None
    damage: tuple[Damage, ...] = ()
    begins: bool = False
    ends: bool = False
    size_in_bytes: int = 0
    error: str | None = None
    next_base: int | None = None  # of the next segment, if this is the end of one


KINDS = dict(
    zip(NAMES, map(np.dtype, ("i8", "i8", "i4", "i1", "u4", "i8", "i8", "i4", "i8", "?")), strict=True)
)
PACKED = struct.Struct("<qb")  # the least value of a column, and the width of the differences


def packed(column: npt.NDArray[Any]) -> bytes:
    """A column as its least value and the differences from it, in as few bytes as possible."""
    least, most = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    width = next((width for width in (0, 1, 2, 4) if (most - least) >> 8 * width == 0), 8)
    if width == 8:
        raw: bytes = column.astype("<i8").tobytes()
        return PACKED.pack(0, width) + raw
    if width == 0:  # one value everywhere, or no sound batch
        return PACKED.pack(least, width)
    above: bytes = np.subtract(column, least, dtype=np.int64).astype(f"<u{width}").tobytes()
    return PACKED.pack(least, width) + above


def unpacked(data: bytes, at: int, kind: np.dtype[Any], count: int) -> tuple[npt.NDArray[Any], int]:
    """The column, and the position after it."""
    least, width = PACKED.unpack_from(data, at)
    at += PACKED.size
    if width == 0:
        return np.full(count, least, kind), at
    above = np.frombuffer(data, f"<u{width}" if width < 8 else "<i8", count, at).astype(np.int64)
    above += least
    return above.astype(kind), at + count * width


class NotedRun(Struct, frozen=True):
    """Sound bytes of a segment from the end of the run before up to `end`, as another scan read them."""

    end: int
    count: int  # of batches
    packed: bytes  # their columns, joined

    @property
    def columns(self) -> HeaderColumns:
        columns, at = [], 0
        for kind in KINDS.values():
            column, at = unpacked(self.packed, at, kind, self.count)
            columns.append(column)
        return HeaderColumns(*columns)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return A_RUN + len(self.packed)


def noted_run(end: int, headers: Headers) -> NotedRun:
    """A run of sound batches; without batches if the bytes hold none."""
    return NotedRun(end, len(headers), b"".join(packed(getattr(headers, name)) for name in NAMES))


class ScanNotes:
    """Headers of segments that a scan has read, by path, so that they need not be read again; up to `most` bytes."""

    def __init__(self, most: int) -> None:
        self.most = most  # bytes
        self.runs: dict[str, list[NotedRun]] = {}
        self.size = 0

    def add(self, path: Path, runs: Sequence[NotedRun]) -> None:
        """Keep the runs of a segment if there is room."""
        size = sum(run.size for run in runs)
        if self.size + size <= self.most:
            self.runs[str(path)] = list(runs)
            self.size += size

    def of(self, segment: LogSegment) -> list[NotedRun] | None:
        """The runs of a segment whose size is unchanged; None if it must be read."""
        assert segment.log is not None
        runs = self.runs.get(str(segment.log.path))
        return runs if runs and runs[-1].end == segment.log.size_in_bytes else None


A_RUN = 400  # bytes in memory of a run besides its columns
NOTED: Inside[ScanNotes] = Inside()
"""Segments in these notes are not read again."""


def _known(segment: LogSegment) -> list[NotedRun] | None:
    return next((runs for notes in NOTED if (runs := notes.of(segment))), None)


class SegmentPiece(Struct, frozen=True):
    """Bytes [start, end) of a segment of one copy, cut at proven batch boundaries; work for one process."""

    owner: int
    path: Path
    base_offset: int
    start: int
    end: int
    size_in_bytes: int
    order: float
    next_base: int | None = None  # the base offset of the next segment


def scan_folder(folder: Path, skip_below: int = 0, arriving: Arriving | None = None) -> Iterator[ScannedRun]:
    """The segments of a partition folder in order; those from `arriving` if they must be fetched first.

    Raises OSError if the folder cannot be listed.
    """
    if arriving is None:
        segments = _segments(read_folder(folder), skip_below)
        for segment, following in zip_longest(segments, segments[1:]):
            yield from _scan_segment(segment, following)
        return
    for _ in arriving():
        # The next segment, if there is one, is there already.
        segment, *behind = read_folder(folder).logs
        if segment.base_offset >= skip_below:
            yield from _scan_segment(segment, behind[0] if behind else None)


def _scan_segment(segment: LogSegment, following: LogSegment | None) -> Iterator[ScannedRun]:
    assert segment.log is not None
    size = segment.log.size_in_bytes
    next_base = following.base_offset if following is not None else None
    noted = _known(segment)
    if noted is not None:
        path, base = segment.log.path, segment.base_offset
        yield ScannedRun(path, base, begins=True, size_in_bytes=size)
        for run in noted:
            ends = run.end >= size
            behind = next_base if ends else None
            yield ScannedRun(path, base, run.columns, ends=ends, next_base=behind)
        return
    yield from _scan(
        SegmentPiece(0, segment.log.path, segment.base_offset, 0, size, size, 0, next_base), until=None
    )


def _segments(folder: Folder, skip_below: int) -> list[LogSegment]:
    return [segment for segment in folder.logs if segment.base_offset >= skip_below]


def scan_piece(piece: SegmentPiece) -> list[ScannedRun]:
    return list(_scan(piece, until=piece.end))


def _scan(piece: SegmentPiece, until: int | None) -> Iterator[ScannedRun]:
    options = ScanOptions(
        level=Level.CRC, base_offset=piece.base_offset, start=piece.start, end=until, max_findings=1
    )
    begins = piece.start == 0
    if begins:
        yield ScannedRun(piece.path, piece.base_offset, begins=True, size_in_bytes=piece.size_in_bytes)
    try:
        with opened_source(piece.path) as source:
            for chunk in scan_segment(source, options):
                yield _scanned(piece, chunk, source.size)
    except OSError as error:
        why = f"{piece.path.name} cannot be read: {reason_of(error)}"
        yield ScannedRun(piece.path, piece.base_offset, error=why)


def _scanned(piece: SegmentPiece, chunk: Chunk, size: int) -> ScannedRun:
    return ScannedRun(
        piece.path,
        piece.base_offset,
        columns_of(chunk.headers),
        chunk.damage,
        ends=chunk.end >= size,
        next_base=piece.next_base if chunk.end >= size else None,
    )


class SharedScan:
    """Several copies scanned together by worker processes."""

    def __init__(self, folders: Sequence[Path], jobs: Jobs) -> None:
        pieces = [piece for owner, folder in enumerate(folders) for piece in _pieces(owner, folder)]
        pieces.sort(key=lambda piece: (piece.order, piece.owner, piece.start))
        self._pieces_left = [sum(piece.owner == owner for piece in pieces) for owner in range(len(folders))]
        self._queues: list[deque[ScannedRun]] = [deque() for _ in folders]
        owners = [piece.owner for piece in pieces]
        self._results = zip(owners, ordered(scan_piece, pieces, jobs=jobs), strict=True)

    def of(self, owner: int) -> Iterator[ScannedRun]:
        """The runs of one copy in order."""
        queue = self._queues[owner]
        while queue or self._pieces_left[owner]:
            if not queue:
                next_owner, runs = next(self._results)
                self._queues[next_owner].extend(runs)
                self._pieces_left[next_owner] -= 1
                continue
            yield queue.popleft()


def _pieces(owner: int, folder: Path) -> Iterator[SegmentPiece]:
    try:
        segments = _segments(read_folder(folder), 0)
    except OSError:
        return  # reading the log reports it
    for number, segment in enumerate(segments):
        assert segment.log is not None
        size = segment.log.size_in_bytes
        following = segments[number + 1].base_offset if number + 1 < len(segments) else None
        span = (following - segment.base_offset) if following is not None else max(size // 100, 1)
        for start, end in _splits(segment):
            order = segment.base_offset + span * (start / size if size else 0)
            yield SegmentPiece(
                owner, segment.log.path, segment.base_offset, start, end, size, order, following
            )


def _splits(segment: LogSegment) -> list[tuple[int, int]]:
    """Where to cut a segment; not at all if its index has no proven boundary."""
    assert segment.log is not None
    size = segment.log.size_in_bytes
    if size < 2 * PIECE or segment.index is None:
        return [(0, size)]
    try:
        hints = hints_of(read_padded(segment.index.path))
        with opened_source(segment.log.path) as source:
            return [(split.start, split.end) for split in plan_splits(source, hints, PIECE)]
    except OSError:
        return [(0, size)]


def size_of(folder: Path) -> int:
    """Bytes of the segments of a partition folder; 0 if it cannot be listed."""
    try:
        return sum(segment.log.size_in_bytes for segment in read_folder(folder).logs if segment.log)
    except OSError:
        return 0


def _unknown_size(folder: Path) -> int:
    """Bytes of the segments that must still be read."""
    if not NOTED:
        return size_of(folder)
    try:
        logs = read_folder(folder).logs
    except OSError:
        return 0
    return sum(segment.log.size_in_bytes for segment in logs if segment.log and _known(segment) is None)


def shared_scan(folders: Sequence[Path], jobs: Jobs) -> SharedScan | None:
    """A scan by several processes; None if there is too little to read or only one process may run."""
    jobs = default_jobs() if jobs is None else jobs
    if jobs == 1 or sum(map(_unknown_size, folders)) < LARGE:
        return None
    return SharedScan(folders, jobs)
