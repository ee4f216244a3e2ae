"""The segments of copies as columns of headers, read in this process or, if copies are large, by worker processes.

Pieces of several copies are read in the order of their offsets, so that logs read side by side never get far
ahead of each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from formats.log.records import Damage
from formats.values import Struct
from kctl.errors import reason_of
from kctl.evidence.model import Arriving
from kctl.evidence.replica_copies import Copy
from kctl.log.folder import Folder, LogSegment, read_folder
from kctl.scan.noted import NOTHING_NOTED, HeaderColumns, Noted, columns_of, noted_of
from kctl.scan.options import Chunk, Level, ScanOptions
from kctl.scan.pool import Jobs, default_jobs, ordered
from kctl.scan.segment import scan_segment
from kctl.scan.source import opened_source
from kctl.scan.splits import hints_in, splits_of

LARGE = 64 << 20  # bytes of all copies from which on worker processes are faster
PIECE = 32 << 20


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


def scan_folder(folder: Folder, skip_below: int = 0, noted: Noted = NOTHING_NOTED) -> Iterator[ScannedRun]:
    """The segments of a partition folder in order. What is `noted` of logs by an earlier scan is not read again."""
    segments = _segments(folder, skip_below)
    for segment, following in zip_longest(segments, segments[1:]):
        yield from _scan_segment(segment, following, noted)


def scan_arriving(
    folder: Path, skip_below: int, arriving: Arriving, noted: Noted = NOTHING_NOTED
) -> Iterator[ScannedRun]:
    """The same of segments that must be fetched first; OSError if the folder cannot be listed."""
    for _ in arriving():
        # `arriving` has fetched the next segment, if there is one, before it returns this one.
        segment, *behind = read_folder(folder).logs
        if segment.base_offset >= skip_below:
            yield from _scan_segment(segment, behind[0] if behind else None, noted)


def _scan_segment(segment: LogSegment, following: LogSegment | None, noted: Noted) -> Iterator[ScannedRun]:
    assert segment.log is not None
    size = segment.log.size_in_bytes
    next_base = following.base_offset if following is not None else None
    runs = noted_of(segment, noted)
    if runs is not None:
        path, base = segment.log.path, segment.base_offset
        yield ScannedRun(path, base, begins=True, size_in_bytes=size)
        for run in runs:
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
        splits = splits_of(segment.log.path, hints_in(segment.index.path), PIECE)
        return [(split.start, split.end) for split in splits]
    except OSError:
        return [(0, size)]


def size_of(folder: Path) -> int:
    """Bytes of the segments of a partition folder; 0 if it cannot be listed."""
    try:
        return sum(segment.log.size_in_bytes for segment in read_folder(folder).logs if segment.log)
    except OSError:
        return 0


def _unread_size(copy: Copy) -> int:
    """Bytes of the segments that must still be read."""
    if not copy.noted:
        return size_of(copy.folder)
    try:
        logs = read_folder(copy.folder).logs
    except OSError:
        return 0
    return sum(log.log.size_in_bytes for log in logs if log.log and noted_of(log, copy.noted) is None)


def shared_scan(copies: Sequence[Copy], jobs: Jobs) -> SharedScan | None:
    """A scan by several processes; None if there is too little to read or only one process may run."""
    jobs = default_jobs() if jobs is None else jobs
    if jobs == 1 or sum(map(_unread_size, copies)) < LARGE:
        return None
    return SharedScan([copy.folder for copy in copies], jobs)
