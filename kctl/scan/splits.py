"""Cutting a segment into parts that are scanned alone, at batch boundaries that are proven.

An index entry is taken when the lengths of the batches from an earlier one lead exactly to it and the batch there
proves itself by its CRC. Cuts depend on the file and its index alone, so every engine scans the same parts.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints
from formats.log.columns.headers import PADDING, check_crc, gather, legal_rows, walk
from formats.log.record_batch import HEADER_SIZE
from kctl.scan.source import Source, opened_source

TARGET = 128 << 20  # bytes of a part
MOST_INDEXED = 1 << 31  # bytes of a log that an offset index can name positions in
RUN_UP = 64 << 10  # bytes before a boundary from which lengths must lead to it
LARGEST = 4 << 20  # a boundary whose batch is larger is not looked at
LARGEST_INDEX = 64 << 20  # bytes of an index that are read
NO_HINTS = np.empty(0, np.int64)


class Split(NamedTuple):
    """Bytes [start, end) of a segment; the end of the last one is the end of the file."""

    start: int
    end: int


def hints_of(index: bytes) -> Ints:
    """The positions in an offset index, up to the first that does not grow (padding, or a stale tail)."""
    entries = np.frombuffer(index, ">i4", len(index) // 8 * 2).reshape(-1, 2)
    positions = entries[:, 1].astype(np.int64)
    grows = np.diff(positions, prepend=0) > 0
    return positions[: int(grows.argmin())] if not grows.all() else positions


def hints_in(index: Path | None) -> Ints:
    """The positions in an offset index on disk; none without an index. OSError where it cannot be read."""
    if index is None:
        return NO_HINTS
    with opened_source(index) as source:
        return hints_of(source.read_at(0, min(source.size, LARGEST_INDEX)))


def plan_splits(source: Source, hints: Ints, target: int = TARGET) -> list[Split]:
    """The parts of a segment, each of about the target size; one part where the index gives no boundary."""
    cuts = [0]
    goal = target
    while goal < min(source.size - target // 2, MOST_INDEXED):
        for place in range(int(np.searchsorted(hints, max(goal, cuts[-1] + 1))), len(hints)):
            if hints[place] >= goal + target:
                break
            if is_boundary(source, hints, place):
                cuts.append(int(hints[place]))
                break
        goal += target
    return [Split(start, end) for start, end in zip(cuts, [*cuts[1:], source.size], strict=True)]


def splits_of(log: Path, hints: Ints, target: int = TARGET) -> list[Split]:
    """The parts of a log on disk. OSError where it cannot be read."""
    with opened_source(log) as source:
        return plan_splits(source, hints, target)


def most_splits(size: int, target: int) -> int:
    """How many parts a segment of this size has at most."""
    return max(1, -(-min(size - target // 2, MOST_INDEXED) // target))


def is_boundary(source: Source, hints: Ints, place: int) -> bool:
    """Whether a batch begins at this hint for certain."""
    at = int(hints[place])
    before = int(np.searchsorted(hints, at - RUN_UP, side="right")) - 1
    if before == place - 1 and place and at - int(hints[before]) > LARGEST:
        return False
    start = int(hints[before]) if before >= 0 else 0
    if at >= source.size or at - start > LARGEST:
        return False
    run_up = _padded(source, start, at - start + HEADER_SIZE)
    if walk(run_up, 0, at - start).stop != at - start:
        return False
    batch = gather(run_up, np.array([at - start]), start)
    size = int(batch.size_in_bytes[0])
    if not legal_rows(batch) or size > LARGEST or at + size > source.size:
        return False
    check_crc(_padded(source, at, size), batch, at)
    return bool(batch.crc_valid[0])


def _padded(source: Source, position: int, size: int) -> NDArray[np.uint8]:
    """Bytes of the source, zeros where it ends, and the padding behind them."""
    return np.frombuffer(source.read_at(position, size).ljust(size + PADDING, b"\0"), np.uint8)
