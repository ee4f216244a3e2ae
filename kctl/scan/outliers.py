"""Batches whose base offset cannot be right: it jumps, but the batches behind it continue the offsets before it.

The base offset is not covered by the CRC. One wrong offset would make everything that is compared with the
log look wrong from there on, so such batches are taken out of what the other checks see; the offsets
themselves are reported where headers are checked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

import numpy as np

from formats.arrays import Ints, Mask
from formats.log.columns.headers import Headers
from formats.values import Struct, replace
from kctl.scan.options import Chunk


class MarkedChunk(Struct, frozen=True):
    """A chunk for the checks of other files: outliers have `crc_valid` False."""

    chunk: Chunk
    headers: Headers
    outliers: list[int]  # rows


HIGHEST_OFFSET = 2**63 - 2
"""The highest offset of a log, whose end, one more, is a number of 64 bits too."""
LOOKED_AT = 2
"""How many of the next base offsets tell whether one is wrong."""
MOST_WAITING = 64
"""Chunks that wait for the next base offsets: damage has none, however long it is."""


def without_outliers(
    chunks: Iterable[Chunk], named: int | None = None, next_segment: int | None = None
) -> Iterator[MarkedChunk]:
    """The chunks, outliers marked. Each is held back until the next ones are known, so chunk borders change nothing.

    `named` is the base offset in the file's name, `next_segment` that of the segment behind it.
    """
    waiting: deque[Chunk] = deque()
    last_offset, expected = -1, named or 0

    def first() -> MarkedChunk:
        nonlocal last_offset, expected
        following = [
            int(base) for chunk in islice(waiting, 1, None) for base in chunk.headers.base_offset[:LOOKED_AT]
        ]
        if len(following) < LOOKED_AT and next_segment is not None:
            following.append(next_segment)
        marked, reached = _marked(waiting.popleft(), last_offset, expected, following)
        if reached is not None:
            last_offset, expected = reached, reached + 1
        return marked

    for chunk in chunks:
        waiting.append(chunk)
        if (
            sum(len(later.headers) for later in islice(waiting, 1, None)) >= LOOKED_AT
            or len(waiting) > MOST_WAITING
        ):
            yield first()
    while waiting:
        yield first()


def _marked(
    chunk: Chunk, last_offset: int, expected: int, following: Sequence[int]
) -> tuple[MarkedChunk, int | None]:
    """The chunk with its outliers marked, and its last right offset; None if it has none."""
    headers = chunk.headers
    if not len(headers):
        return MarkedChunk(chunk, headers, []), None
    if last_offset < headers.base_offset[0] and rises(headers, following[0] if following else None):
        return MarkedChunk(chunk, headers, []), int(headers.last_offset[-1])
    wrong = wrong_offsets(headers, last_offset, expected, following)
    right = np.flatnonzero(~wrong)
    reached = int(headers.last_offset[right[-1]]) if len(right) else None
    outliers: list[int] = np.flatnonzero(wrong & headers.crc_valid).tolist()
    return MarkedChunk(chunk, replace(headers, crc_valid=headers.crc_valid & ~wrong), outliers), reached


class Offsets(Protocol):
    """Columns of batches, one element each."""

    @property
    def base_offset(self) -> Ints:
        """The first offset."""

    @property
    def last_offset(self) -> Ints:
        """The last offset."""


def rises(headers: Offsets, following: int | None) -> bool:
    """Whether base offsets rise from batch to batch, up to `following`, the base offset of the next batch."""
    base, last = headers.base_offset, headers.last_offset
    within = bool((base[1:] > last[:-1]).all() and (last >= base).all()) and last[-1] <= HIGHEST_OFFSET
    return within and (following is None or following > last[-1])


def wrong_offsets(headers: Offsets, last_offset: int, expected: int, following: Sequence[int]) -> Mask:
    """Rows that jump back, or ahead of the next one, while their neighbours follow each other, or beyond all offsets.

    `last_offset` is that of the previous batch, `expected` the expected base offset of the first, `following` the base
    offsets of the next batches. Of two batches that contradict each other, the one that continues the previous is right.
    """
    base, last = [*headers.base_offset.tolist(), *following], headers.last_offset.tolist()
    wrong = np.zeros(len(last), bool)
    before = last_offset
    for row in range(len(last)):
        after = base[row + 1] if row + 1 < len(base) else None
        behind = base[row + 2] if row + 2 < len(base) else None
        jumps_back = base[row] <= before
        jumps_ahead = after is not None and before < after <= last[row]
        continues_log = base[row] == expected and (behind is None or behind > last[row])
        is_beyond = last[row] > HIGHEST_OFFSET or last[row] < base[row] - 2**31  # what numpy adds wraps
        if (
            is_beyond
            or (jumps_ahead and not continues_log)
            or (jumps_back and (after is None or after > before))
        ):
            wrong[row] = True
        else:
            before, expected = last[row], last[row] + 1
    return wrong
