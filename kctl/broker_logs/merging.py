"""Blocks of several sources in one order of time, whole runs of records at a time.

The order inside a source is kept even where its clock steps back: records are ordered by the greatest time
so far in their source, equal times by the rank of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from formats.log_lines import Int64s
from kctl.broker_logs.blocks import Block

Slice = tuple[Block, int, int]


class Released:
    """Records that come next, in order: each is one of a slice of some block."""

    __slots__ = ("_order", "_owners", "slices")

    def __init__(self, slices: list[Slice]) -> None:
        """The slices in the order of their sources; sorting is stable, so that a source's own order stays."""
        self.slices = slices
        if len(slices) == 1:
            self._order = np.arange(slices[0][2] - slices[0][1])
            self._owners = np.zeros(len(self._order), np.int64)
            return
        keys = np.concatenate([block.keys[low:high] for block, low, high in slices])
        self._order = np.argsort(keys, kind="stable")
        sizes = [high - low for _, low, high in slices]
        self._owners = np.repeat(np.arange(len(slices)), sizes)[self._order]

    def __len__(self) -> int:
        return len(self._order)

    def runs(self) -> Iterator[tuple[Block, int, int]]:
        """Runs of records of one block that follow each other: the block, the first, the one after the last."""
        if not len(self._order):
            return
        edges = np.concatenate(([0], _changes(self._owners) + 1, [len(self._owners)]))
        place = [low for _, low, _ in self.slices]
        for which, length in zip(self._owners[edges[:-1]].tolist(), np.diff(edges).tolist(), strict=True):
            low = place[which]
            place[which] = low + length
            yield self.slices[which][0], low, low + length

    def pieces(self) -> tuple[list[int], list[int], list[int]]:
        """The same as runs of bytes: the slice, where the run starts in its block's data, and where it ends."""
        if not len(self._order):
            return [], [], []
        starts = np.concatenate([block.starts[low:high] for block, low, high in self.slices])[self._order]
        ends = np.concatenate([block.ends[low:high] for block, low, high in self.slices])[self._order]
        breaks = np.flatnonzero((self._owners[1:] != self._owners[:-1]) | (starts[1:] != ends[:-1]))
        firsts = starts[np.concatenate(([0], breaks + 1))].tolist()
        lasts = ends[np.concatenate((breaks, [len(ends) - 1]))].tolist()
        return self._owners[np.concatenate(([0], breaks + 1))].tolist(), firsts, lasts


def _changes(values: npt.NDArray[np.int64]) -> Int64s:
    return np.flatnonzero(values[1:] != values[:-1])


class _Head:
    """The block of a source that the merge stands in, and how far."""

    __slots__ = ("block", "blocks", "place", "shift")

    def __init__(self, blocks: Iterator[Block], shift: int) -> None:
        self.blocks = blocks
        self.shift = shift
        self.block: Block | None = None
        self.place = 0
        self.refill()

    def refill(self) -> None:
        self.block = next(self.blocks, None)
        self.place = 0
        if self.block is not None and self.shift:
            self.block.keys = self.block.keys + self.shift
            self.block.last_key += self.shift
            self.block.shift = self.shift

    def take(self, bound: int, side: str) -> Slice | None:
        """The records up to the bound."""
        if self.block is None:
            return None
        keys = self.block.keys
        low = self.place
        self.place = low + int(np.searchsorted(keys[low:], bound, "right" if side == "right" else "left"))
        return (self.block, low, self.place) if self.place > low else None


def merged(sources: Sequence[Iterator[Block]], shifts: Sequence[int] = ()) -> Iterator[Released]:
    """The records of all sources in order. `shifts` are added to the keys of each source to mend its clock.

    At any time one block of each source is held. Up to the smallest last key of all blocks nothing can come
    that is not there yet: those records are sorted at once. At that key itself the sources after the one whose
    block ends there have to wait, since it may have more of the same key.
    """
    heads = [_Head(blocks, shifts[n] if shifts else 0) for n, blocks in enumerate(sources)]
    while True:
        standing = [(head.block.last_key, rank) for rank, head in enumerate(heads) if head.block is not None]
        if not standing:
            return
        bound, first = min(standing)
        taken = (head.take(bound, "right" if rank <= first else "left") for rank, head in enumerate(heads))
        slices = [one for one in taken if one is not None]
        if slices:
            yield Released(slices)
        heads[first].refill()
