"""Blocks of several sources in one order of time, whole runs of records at a time.

The order inside a source is kept even where its clock steps back: records are ordered by the greatest time
so far in their source, equal times by the rank of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kctl.broker_logs.blocks import Block


class Run(NamedTuple):
    """Records low to high (exclusive) of a block, which come next."""

    block: Block
    low: int
    high: int


class _Head:
    """The block of a source that the merge stands in, and how far."""

    __slots__ = ("block", "blocks", "is_done", "place", "shift")

    def __init__(self, blocks: Iterator[Block], shift: int) -> None:
        self.blocks = blocks
        self.shift = shift
        self.block: Block | None = None
        self.place = 0
        self.is_done = False
        self.refill()

    def refill(self) -> None:
        self.block = next(self.blocks, None)
        self.place = 0
        self.is_done = self.block is None
        if self.block is not None and self.shift:
            self.block.keys = self.block.keys + self.shift
            self.block.last_key += self.shift
            self.block.shift = self.shift


def merged(sources: Sequence[Iterator[Block]], shifts: Sequence[int] = ()) -> Iterator[Run]:
    """The runs of all sources in order. `shifts` are added to the keys of each source to mend its clock.

    At any time one block of each source is held. Up to the smallest last key of all blocks nothing can come
    that is not there yet: those records are sorted at once (stable, so that a source's own order stays).
    """
    heads = [_Head(blocks, shifts[n] if shifts else 0) for n, blocks in enumerate(sources)]
    while True:
        open_heads = [
            (head.block.last_key, rank) for rank, head in enumerate(heads) if head.block is not None
        ]
        if not open_heads:
            return
        if len(open_heads) == 1:
            head = heads[open_heads[0][1]]
            assert head.block is not None
            if head.place < len(head.block.keys):
                yield Run(head.block, head.place, len(head.block.keys))
            head.refill()
            continue
        bound, first = min(open_heads)
        yield from _released(heads, bound, first)
        heads[first].refill()


def _released(heads: Sequence[_Head], bound: int, first: int) -> Iterator[Run]:
    """Records up to the bound; at the bound itself those of ranks up to the one whose block ends there."""
    slices: list[tuple[Block, int, int]] = []
    for rank, head in enumerate(heads):
        block = head.block
        if block is None:
            continue
        side = "right" if rank <= first else "left"
        end = int(np.searchsorted(block.keys[head.place :], bound, side)) + head.place  # type: ignore[call-overload]
        if end > head.place:
            slices.append((block, head.place, end))
            head.place = end
    if len(slices) == 1:
        yield Run(*slices[0])
        return
    if not slices:
        return
    keys = np.concatenate([block.keys[low:high] for block, low, high in slices])
    sizes = [high - low for _, low, high in slices]
    owner = np.repeat(np.arange(len(slices)), sizes)
    order = np.argsort(keys, kind="stable")
    owners = owner[order]
    edges = np.concatenate(([0], np.flatnonzero(owners[1:] != owners[:-1]) + 1, [len(owners)]))
    lengths = np.diff(edges).tolist()
    place = [low for _, low, _ in slices]
    for which, length in zip(owners[edges[:-1]].tolist(), lengths, strict=True):
        low = place[which]
        place[which] = low + length
        yield Run(slices[which][0], low, low + length)
