"""Two replicas' batches held against each other by their header columns; no content is read here.

Followers store what the leader sent, so base offset, last offset, epoch and CRC agree batch by batch. The CRC
covers neither base offset, length nor leader epoch. On a compacted topic the cleaner runs on each broker by
itself: batches vanish or are rewritten, and records must be compared instead.

Source: clients/src/main/java/org/apache/kafka/common/record/DefaultRecordBatch.java @ 3.9.0-rc3;
clients/src/main/java/org/apache/kafka/common/record/MemoryRecords.java @ 3.9.0-rc3
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


class Kind(enum.StrEnum):
    """How batches of two replicas differ."""

    BEYOND_END = "beyond_end_of_other"
    OTHER_EPOCH = "different_leader_epoch"
    OTHER_BOUNDARIES = "different_batch_boundaries"
    OTHER_BYTES = "same_epoch_different_bytes"
    HOLE = "hole"
    REMOVED_BY_CLEANER = "removed_by_cleaner"
    REWRITTEN_BY_CLEANER = "rewritten_by_cleaner"


DIVERGED = frozenset({Kind.OTHER_EPOCH, Kind.OTHER_BOUNDARIES, Kind.OTHER_BYTES})


class BatchDifference(NamedTuple):
    """Where batches differ: the base offset, and the index of the batch on each side (-1: none there)."""

    offset: int
    kind: Kind
    same_payload: bool
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """A replica's batches in order of offset, one element a batch."""

    base_offset: Int64s
    last_offset: Int64s
    leader_epoch: Int64s
    crc: Int64s
    log_start_offset: int = 0
    next_offset: int | None = None  # where the log ends, if not with the last batch here

    def __len__(self) -> int:
        return len(self.base_offset)

    @property
    def end(self) -> int:
        """The offset at which the log ends."""
        if self.next_offset is not None:
            return self.next_offset
        return int(self.last_offset[-1]) + 1 if len(self) else self.log_start_offset


def equal_run(first: BatchColumns, second: BatchColumns, i: int = 0, j: int = 0) -> int:
    """How many batches from these two on are the same on both sides, header by header."""
    total, window = 0, 16
    while True:
        size = min(len(first) - i - total, len(second) - j - total, window)
        if size <= 0:
            return total
        a, b = slice(i + total, i + total + size), slice(j + total, j + total + size)
        same = first.base_offset[a] == second.base_offset[b]
        same &= first.last_offset[a] == second.last_offset[b]
        same &= first.leader_epoch[a] == second.leader_epoch[b]
        same &= first.crc[a] == second.crc[b]
        if not same.all():
            return total + int(np.argmin(same))
        total, window = total + size, window * 4


def batch_differences(
    first: BatchColumns, second: BatchColumns, *, compacted: bool = False
) -> Iterator[BatchDifference]:
    """Every batch that is not the same on both sides, by ascending base offset."""
    i, j = 0, 0
    while i < len(first) or j < len(second):
        run = equal_run(first, second, i, j)
        i, j = i + run, j + run
        if i >= len(first) and j >= len(second):
            return
        here = int(first.base_offset[i]) if i < len(first) else None
        there = int(second.base_offset[j]) if j < len(second) else None
        if here is not None and here == there:
            kind = _same_base(first, second, i, j, compacted)
            if kind is not None:
                yield BatchDifference(here, kind, bool(first.crc[i] == second.crc[j]), i, j)
            i, j = i + 1, j + 1
        elif there is None or (here is not None and here < there):
            assert here is not None
            kind = _one_side(here, int(first.last_offset[i]), second, j, compacted)
            if kind is not None:
                yield BatchDifference(here, kind, False, i, -1)
            i += 1
        else:
            kind = _one_side(there, int(second.last_offset[j]), first, i, compacted)
            if kind is not None:
                yield BatchDifference(there, kind, False, -1, j)
            j += 1


def _same_base(first: BatchColumns, second: BatchColumns, i: int, j: int, compacted: bool) -> Kind | None:
    if first.leader_epoch[i] != second.leader_epoch[j]:
        return Kind.OTHER_EPOCH
    if first.crc[i] == second.crc[j] and first.last_offset[i] == second.last_offset[j]:
        return None
    return Kind.REWRITTEN_BY_CLEANER if compacted else Kind.OTHER_BYTES


def _one_side(base: int, last: int, other: BatchColumns, at: int, compacted: bool) -> Kind | None:
    """What a batch is that the other side does not have at its offset; `at` is the other's next batch."""
    if last < other.log_start_offset:
        return None
    if base >= other.end:
        return Kind.BEYOND_END
    before = at > 0 and int(other.last_offset[at - 1]) >= base
    after = at < len(other) and int(other.base_offset[at]) <= last
    if before or after:
        return Kind.REWRITTEN_BY_CLEANER if compacted else Kind.OTHER_BOUNDARIES
    return Kind.REMOVED_BY_CLEANER if compacted else Kind.HOLE
