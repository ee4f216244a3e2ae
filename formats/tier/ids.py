"""A hash table from ids of 128 bits to row numbers, for thousands of look-ups at once.

An id is two words in the table's own rows; only row numbers are stored here, in a place that follows from the id or
in the next free one. The places differ from run to run, so that no data can be made to collide.
"""

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints

Words = NDArray[np.uint64]

SMALLEST = 1 << 10  # places
NOBODY = -1


class Ids:
    """Row numbers by id."""

    def __init__(self) -> None:
        # Python's hash of a text differs in each run.
        self._by = [np.uint64(hash(name) & 0xFFFFFFFFFFFFFFFF | 1) for name in ("high", "low")]
        self.clear(0)

    def clear(self, room: int) -> None:
        """Remove all ids and make room for so many."""
        self._bits = max(SMALLEST, 2 * room).bit_length()
        self._places = np.full(1 << self._bits, NOBODY, np.int32)
        self._free = len(self._places) // 2

    def room(self) -> int:
        """How many more ids can be added."""
        return self._free

    def find(self, high: Words, low: Words, of_high: Words, of_low: Words) -> tuple[Ints, Ints]:
        """The row of each id (-1: none), and its place or the one it would get.

        `of_high` and `of_low` are the ids of all rows; there is at least one.
        """
        place = self.first(high, low)
        rows = self._places.take(place).astype(np.int64)
        unresolved = np.flatnonzero((rows >= 0) & ((of_high[rows] != high) | (of_low[rows] != low)))
        while len(unresolved):
            place[unresolved] = self._next(place[unresolved])
            candidates = rows[unresolved] = self._places[place[unresolved]]
            differs = (of_high[candidates] != high[unresolved]) | (of_low[candidates] != low[unresolved])
            unresolved = unresolved[(candidates >= 0) & differs]
        return rows, place

    def add(self, place: Ints, rows: Ints) -> None:
        """Add the rows of ids that differ from each other and from all present ones; there must be room.

        Places are those that `find` returned, whatever was added since, or the first ones.
        """
        unplaced = np.arange(len(rows))
        while len(unplaced):
            free = unplaced[self._places[place[unplaced]] < 0]
            self._places[place[free]] = rows[free]  # if several rows meet, one of them stays
            unplaced = unplaced[self._places[place[unplaced]] != rows[unplaced]]
            place[unplaced] = self._next(place[unplaced])
        self._free -= len(rows)

    def first(self, high: Words, low: Words) -> Ints:
        """The first place to look for each id."""
        mixed = high * self._by[0]
        mixed += low * self._by[1]
        mixed >>= np.uint64(64 - self._bits)
        return mixed.view(np.int64)

    def _next(self, place: Ints) -> Ints:
        return (place + 1) & (len(self._places) - 1)
