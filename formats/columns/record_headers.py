"""Header lists of many records: lanes are the records that have any, step k is header k of each.

Source: clients/src/main/java/org/apache/kafka/common/record/DefaultRecord.java (readHeaders) @ 3.9.0-rc3
"""

import numpy as np
from numpy.typing import NDArray

from formats.columns.varints import TOO_LONG, varints, words_at

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

NOWHERE = -1


def check_header_lists(data: Octets, positions: Ints, ends: Ints, counts: Ints) -> Ints:
    """Where each list of `count` headers from `position` on ends; -1 where it is not one. No position is past its end."""
    finish = np.full(len(positions), NOWHERE, np.int64)
    lanes = np.arange(len(positions))
    at, until, left = positions, ends, counts
    while len(lanes):
        for nullable in (False, True):
            at, wrong = _after_field(data, at, until, nullable=nullable)
            if wrong.any():
                going = ~wrong
                lanes, at, until, left = lanes[going], at[going], until[going], left[going]
        left = left - 1
        going = left > 0
        if not going.all():
            done = ~going
            finish[lanes[done]] = at[done]
            lanes, at, until, left = lanes[going], at[going], until[going], left[going]
    return finish


def _after_field(data: Octets, positions: Ints, ends: Ints, *, nullable: bool) -> tuple[Ints, Mask]:
    """Where the field with its length at each position ends, and which do not fit."""
    length, size = varints(words_at(data, positions))
    after = positions + np.maximum(length, 0)
    after += size
    wrong = after > ends
    if not nullable:
        wrong |= length < 0
    if not isinstance(size, int):
        wrong |= size == TOO_LONG
    return after, wrong


def header_fields(data: Octets, positions: Ints, counts: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Position and size of the key and of the value of every header, of lists that were found right, in order."""
    first = np.cumsum(counts) - counts
    total = int(counts.sum())
    columns = tuple(np.empty(total, np.int64) for _ in range(4))
    lanes = np.flatnonzero(counts > 0)
    at, step = positions[lanes], 0
    while len(lanes):
        rows = first[lanes] + step
        for place, size in (columns[:2], columns[2:]):
            length, width = varints(words_at(data, at))
            place[rows] = at + width
            size[rows] = np.maximum(length, -1)
            at = place[rows] + np.maximum(length, 0)
        step += 1
        going = counts[lanes] > step
        lanes, at = lanes[going], at[going]
    return columns[0], columns[1], columns[2], columns[3]
