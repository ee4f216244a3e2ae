"""Header lists of many records: lanes are the records that have any, step k is header k of each.

Source: clients/src/main/java/org/apache/kafka/common/record/DefaultRecord.java (readHeaders) @ 3.9.0-rc3
"""

import numpy as np
from numpy.typing import NDArray

from formats.columns.varints import TOO_LONG, varints, words_at

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]

NOWHERE = -1


def check_header_lists(data: Octets, positions: Ints, ends: Ints, counts: Ints) -> Ints:
    """Where each list of `count` headers from `position` on ends; -1 where it is not one."""
    finish = np.full(len(positions), NOWHERE, np.int64)
    lanes = np.arange(len(positions))
    at, until, left = positions, ends, counts
    while len(lanes):
        at = _after_field(data, _after_field(data, at, until, nullable=False), until, nullable=True)
        left = left - 1
        done = (left == 0) | (at == NOWHERE)
        if done.any():
            finish[lanes[done]] = at[done]
            going = ~done
            lanes, at, until, left = lanes[going], at[going], until[going], left[going]
    return finish


def _after_field(data: Octets, positions: Ints, ends: Ints, *, nullable: bool) -> Ints:
    """Where the field with its length at each position ends; -1 where it does not fit."""
    length, size = varints(words_at(data, np.clip(positions, 0, ends)))
    after = positions + size + np.maximum(length, 0)
    wrong = (positions == NOWHERE) | (after > ends) | (np.broadcast_to(size, len(length)) == TOO_LONG)
    if not nullable:
        wrong |= length < 0
    after[wrong] = NOWHERE
    return after


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
