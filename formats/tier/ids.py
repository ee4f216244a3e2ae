"""Which row of a table each of many ids of 128 bits stands in: a hash table that is asked for thousands at once.

An id is two words, which the table itself holds; here are only the numbers of its rows, in a place that follows
from the id or behind it. The places differ from run to run, so that no data can be made to crowd them.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

SMALLEST = 1 << 10  # places
NOBODY = -1


class Ids:
    """Numbers of rows by id."""

    def __init__(self) -> None:
        # Python's own hash of a text is another one in each run.
        self._by = [np.uint64(hash(name) & 0xFFFFFFFFFFFFFFFF | 1) for name in ("high", "low")]
        self.clear(0)

    def clear(self, room: int) -> None:
        """Forget all, and make room for so many ids."""
        self._bits = max(SMALLEST, 2 * room).bit_length()
        self._places = np.full(1 << self._bits, NOBODY, np.int32)
        self._free = len(self._places) // 2

    def room(self) -> int:
        """How many ids may be added."""
        return self._free

    def find(self, high: Words, low: Words, of_high: Words, of_low: Words) -> tuple[Ints, Ints]:
        """The row of each id, -1 where it has none, and its place or the one it would have.

        `of_high` and `of_low` are the ids of all rows, at least one.
        """
        place = self.first(high, low)
        rows = self._places.take(place).astype(np.int64)
        unresolved = np.flatnonzero((rows >= 0) & ((of_high[rows] != high) | (of_low[rows] != low)))
        while len(unresolved):
            place[unresolved] = self._next(place[unresolved])
            candidates = rows[unresolved] = self._places[place[unresolved]]
            unresolved = unresolved[
                (candidates >= 0)
                & ((of_high[candidates] != high[unresolved]) | (of_low[candidates] != low[unresolved]))
            ]
        return rows, place

    def add(self, place: Ints, rows: Ints) -> None:
        """Note the rows of ids that differ from each other and from all that are there; there must be room.

        The places are those that were found, whatever was added since, or the first ones.
        """
        unplaced = np.arange(len(rows))
        while len(unplaced):
            free = unplaced[self._places[place[unplaced]] < 0]
            self._places[place[free]] = rows[free]  # where several meet, one of them stays
            unplaced = unplaced[self._places[place[unplaced]] != rows[unplaced]]
            place[unplaced] = self._next(place[unplaced])
        self._free -= len(rows)

    def first(self, high: Words, low: Words) -> Ints:
        """The place where each id is looked for first."""
        mixed = high * self._by[0]
        mixed += low * self._by[1]
        mixed >>= np.uint64(64 - self._bits)
        return mixed.view(np.int64)

    def _next(self, place: Ints) -> Ints:
        return (place + 1) & (len(self._places) - 1)
