"""Header lists of many records: lanes are the records that have any, step k is header k of each.

Source: clients/src/main/java/org/apache/kafka/common/record/DefaultRecord.java (readHeaders) @ 3.9.0-rc3
"""

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.log.columns.varints import TOO_LONG, varints_at

Octets = NDArray[np.uint8]

NOWHERE = -1


def check_header_lists(data: Octets, positions: Ints, ends: Ints, counts: Ints) -> Ints:
    """Where each list of `count` headers from `position` on ends; -1 where it is not one. No position is past its end."""
    negative_counts = -counts.astype(np.int16)  # sorted by their digits, as wider ones are not
    order = np.argsort(negative_counts, kind="stable")
    at, until = positions[order], ends[order]
    wrong = np.zeros(len(order), np.bool_)
    # Lists still going at step k are those with more than k headers: a prefix.
    steps = np.arange(int(counts.max(initial=0)), dtype=np.int16)
    for lanes in np.searchsorted(negative_counts[order], -steps, side="left").tolist():
        for nullable in (False, True):
            _step_over(data, at[:lanes], until[:lanes], wrong[:lanes], nullable=nullable)
    at[wrong] = NOWHERE
    finish = np.empty(len(order), np.int64)
    finish[order] = at
    return finish


def _step_over(data: Octets, at: Ints, until: Ints, wrong: Mask, *, nullable: bool) -> None:
    """Move each position behind the field with its length that stands there; those that do not fit stay at the end."""
    length, size = varints_at(data, at)
    if length.min() < 0:
        if not nullable:
            wrong |= length < 0
        np.maximum(length, 0, out=length)
    if not isinstance(size, int):
        wrong |= size == TOO_LONG
    at += length
    at += size
    past = at > until
    if past.any():
        wrong |= past
        np.minimum(at, until, out=at)


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
            length, width = varints_at(data, at)
            place[rows] = at + width
            size[rows] = np.maximum(length, -1)
            at = place[rows] + np.maximum(length, 0)
        step += 1
        going = counts[lanes] > step
        lanes, at = lanes[going], at[going]
    return columns[0], columns[1], columns[2], columns[3]
