"""Batches whose base offset cannot be right: it jumps, and the batches behind carry on as if it had not.

The base offset is not covered by the CRC. One wrong offset would make everything that is held against the
log look wrong from there on, so such batches are taken out of what the other checks see; the offsets
themselves are reported where headers are checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from formats.columns.headers import Headers
from kctl.scan.options import Chunk


@dataclass(frozen=True, slots=True)
class Seen:
    """A chunk as the checks of other files see it: outliers count as if their CRC were wrong."""

    chunk: Chunk
    headers: Headers
    outliers: list[int]  # rows


def without_outliers(
    chunks: Iterable[Chunk], named: int | None = None, next_segment: int | None = None
) -> Iterator[Seen]:
    """The chunks, each once the next is known.

    `named` is the base offset in the file's name, `next_segment` that of the segment behind it.
    """
    held: Chunk | None = None
    last_offset, expected = -1, named or 0
    for chunk in chunks:
        if held is not None:
            following = int(chunk.headers.base_offset[0]) if len(chunk.headers) else None
            seen, last_offset = _marked(held, last_offset, expected, following)
            expected = last_offset + 1
            yield seen
        held = chunk
    if held is not None:
        yield _marked(held, last_offset, expected, next_segment)[0]


def _marked(chunk: Chunk, last_offset: int, expected: int, following: int | None) -> tuple[Seen, int]:
    headers = chunk.headers
    if not len(headers):
        return Seen(chunk, headers, []), last_offset
    if last_offset < headers.base_offset[0] and rises(headers, following):
        return Seen(chunk, headers, []), int(headers.last_offset[-1])
    wrong = wrong_offsets(headers, last_offset, expected, following)
    right = np.flatnonzero(~wrong)
    if len(right):
        last_offset = int(headers.last_offset[right[-1]])
    outliers: list[int] = np.flatnonzero(wrong & headers.crc_valid).tolist()
    return Seen(chunk, replace(headers, crc_valid=headers.crc_valid & ~wrong), outliers), last_offset


class Offsets(Protocol):
    """Columns of batches, one element each."""

    @property
    def base_offset(self) -> NDArray[np.int64]:
        """The first offset."""

    @property
    def last_offset(self) -> NDArray[np.int64]:
        """The last offset."""


def rises(headers: Offsets, following: int | None) -> bool:
    """Whether each batch begins behind the one before, and `following`, the next one's first offset, behind them all."""
    within = bool((headers.base_offset[1:] > headers.last_offset[:-1]).all())
    return within and (following is None or following > headers.last_offset[-1])


def wrong_offsets(
    headers: Offsets, last_offset: int, expected: int, following: int | None
) -> NDArray[np.bool_]:
    """Rows that jump back, or ahead of the next one, while their neighbours follow each other.

    `last_offset` is that of the batch before, `expected` where the first is expected to begin, `following` where the
    batch behind does. Of two that contradict each other the one that goes on where the batch before them ended is right.
    """
    base, last = headers.base_offset.tolist(), headers.last_offset.tolist()
    wrong = np.zeros(len(base), bool)
    before = last_offset
    for row in range(len(base)):
        after = base[row + 1] if row + 1 < len(base) else following
        behind = base[row + 2] if row + 2 < len(base) else following if row + 1 < len(base) else None
        jumps_back = base[row] <= before
        jumps_ahead = after is not None and before < after <= last[row]
        goes_on = base[row] == expected and (behind is None or behind > last[row])
        if (jumps_ahead and not goes_on) or (jumps_back and (after is None or after > before)):
            wrong[row] = True
        else:
            before, expected = last[row], last[row] + 1
    return wrong
