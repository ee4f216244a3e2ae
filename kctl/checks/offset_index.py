"""An offset index against its log: what makes a lookup followed by a forward scan right.

Up to 1.1 an entry names the first offset of what was appended, from 2.0 the last (KAFKA-6530), and what was
appended may be many batches: so an offset is right when it is the base offset of the batch at its position
or the last of a batch between there and the next entry (`S:OffsetIndex.java`, `S:LogSegment.java @ 3.9.0`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from formats.columns.headers import Headers
from formats.index_files import OFFSET_ENTRY_SIZE, OffsetIndexEntry
from formats.layout import dtype

Numbers = NDArray[np.int64]
NOWHERE = np.iinfo(np.int64).min
ENTRY = np.dtype(dtype(OffsetIndexEntry))


@dataclass(frozen=True, slots=True)
class Used:
    """The entries of an index in front of its padding."""

    count: int
    is_padded: bool
    dirty_entry: int | None  # the first that follows the zeros
    fragment: int  # bytes at the end that are no whole entry


def used_entries(data: bytes, width: int) -> Used:
    """Where the entries end: at the first row of zeros that only zeros follow.

    Rows that are zero inside mean that pages did not reach the disk: what follows them counts as dirty.
    """
    whole = len(data) // width
    rows = np.frombuffer(data, np.uint8, whole * width).reshape(whole, width)
    filled: NDArray[np.bool_] = np.asarray(rows.any(axis=1))
    if filled.all():
        return Used(whole, False, None, len(data) % width)
    first_zero = int(filled.argmin())
    behind = np.flatnonzero(filled[first_zero:])
    dirty = first_zero + int(behind[0]) if len(behind) else None
    return Used(first_zero, True, dirty, len(data) % width)


def rises(values: Numbers) -> bool:
    """Whether none is below the one before it."""
    return bool((values[1:] >= values[:-1]).all())


def highest_so_far(values: Numbers, before: int) -> Numbers:
    """The highest of each row, those above it and `before`. In most logs that is the row itself."""
    if values[0] >= before and rises(values):
        return values
    return np.maximum.accumulate(np.maximum(values, before))


def rows_within(values: Numbers, above: int, last: int, in_order: bool) -> Numbers:
    """The rows whose value is above one bound and not above the other; `in_order`: values rise."""
    if in_order:
        return np.arange(*np.searchsorted(values, (above, last), side="right"))
    return np.flatnonzero((values > above) & (values <= last))


@dataclass
class OffsetIndexCheck:
    """Holds the entries against the batches, which come in order and in pieces."""

    data: bytes
    base_offset: int
    used: Used = field(init=False)
    offset: Numbers = field(init=False)
    target: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self.used = used_entries(self.data, OFFSET_ENTRY_SIZE)
        rows = np.frombuffer(self.data, ENTRY, self.used.count)
        self.offset = rows["relative_offset"].astype(np.int64) + self.base_offset
        self.target = rows["position"].astype(np.int64)
        self._offsets_rise, self._targets_rise = rises(self.offset), rises(self.target)
        unknown = partial(np.full, self.used.count, dtype=np.int64)
        self._before, self._base = unknown(NOWHERE), unknown(NOWHERE)
        self._is_boundary = np.zeros(self.used.count, bool)
        self._ends_batch = np.zeros(self.used.count, bool)
        self._is_old = np.zeros(self.used.count, bool)
        self._excused = np.zeros(self.used.count, bool)
        self.last_offset_before = self.base_offset - 1
        self._end = 0

    def feed(self, headers: Headers) -> None:
        """The next batches of the log; only sound ones count, what lies between them cannot be judged."""
        sound = headers if headers.crc_valid.all() else headers[headers.crc_valid]
        if not len(sound) or not self.used.count:
            return
        highest = highest_so_far(sound.last_offset, self.last_offset_before)
        before = np.concatenate(([self.last_offset_before], highest[:-1]))
        low, high = int(sound.position[0]), int(sound.next_position[-1])
        here = rows_within(self.target, low - 1, high - 1, self._targets_rise)
        row = np.minimum(np.searchsorted(sound.position, self.target[here]), len(sound) - 1)
        hit = sound.position[row] == self.target[here]
        at, row = here[hit], row[hit]
        self._is_boundary[at] = True
        self._before[at] = before[row]
        self._base[at] = sound.base_offset[row]
        self._is_old[at] = sound.magic[row] < 2
        ends = rows_within(self.offset, int(before[0]), int(highest[-1]), self._offsets_rise)
        row = np.searchsorted(highest, self.offset[ends])
        self._ends_batch[ends] = highest[row] == self.offset[ends]
        ended = np.concatenate(([self._end], sound.next_position[:-1]))
        for gap in np.flatnonzero(sound.position > ended).tolist():
            self._excuse(ended[gap], sound.position[gap], before[gap], sound.base_offset[gap])
        self.last_offset_before, self._end = int(highest[-1]), high

    def _excuse(self, position: int, end: int, last_offset: int, next_offset: int) -> None:
        """Entries that are about bytes or offsets which are damaged in the log are not judged."""
        self._excused |= (self.target >= position) & (self.target < end)
        self._excused |= (self.offset > last_offset) & (self.offset < next_offset)

    def excuse_tail(self, log_size: int) -> None:
        """Do not judge entries about what follows the last sound batch, as it is damaged."""
        self._excuse(self._end, log_size, self.last_offset_before, np.iinfo(np.int64).max)

    def unordered(self) -> NDArray[np.bool_]:
        """Entries whose offset or position is not above that of the entry before."""
        wrong = np.zeros(self.used.count, bool)
        wrong[1:] = (np.diff(self.offset) <= 0) | (np.diff(self.target) <= 0)
        return wrong

    def misplaced(self) -> NDArray[np.bool_]:
        """Entries that no append or recovery of this log has written."""
        following = np.concatenate((self._before[1:], [np.iinfo(np.int64).max]))
        following[following == NOWHERE] = np.iinfo(np.int64).max
        in_gap = (self.offset > self._before) & (self.offset < self._base)
        named = self._ends_batch | (self.offset == self._base) | in_gap | self._is_old
        fits = (self.offset > self._before) & (self.offset <= following)
        sound = self._is_boundary & named & fits & (self.offset <= self.last_offset_before)
        wrong: NDArray[np.bool_] = ~(sound | self._excused)
        return wrong

    def is_boundary(self, entry: int) -> bool:
        """Whether a batch begins at the entry's position."""
        return bool(self._is_boundary[entry])

    def why(self, entry: int, log_size: int) -> str:
        """What contradicts one misplaced entry."""
        if self.target[entry] < 0 or self.target[entry] >= log_size:
            return "which is past the end of the log"
        if not self._is_boundary[entry]:
            return "where no batch begins"
        if self.offset[entry] <= self._before[entry]:
            return f"but offset {self._before[entry]} already ends before it"
        if self.offset[entry] > self.last_offset_before:
            return f"but the last offset of the segment is {self.last_offset_before}"
        return f"where the batch begins at offset {self._base[entry]}"
