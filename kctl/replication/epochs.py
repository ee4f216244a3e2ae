"""A replica's leader epochs: how entries are added and removed, and what a replica answers from them.

An entry is (epoch, start offset), the start being that epoch's own first offset; the epoch ends where the next
entry starts, the last one at the log end offset. From 2.0.1 on entries rise strictly in both fields, because an
entry that conflicts replaces what it conflicts with; before, it was ignored.

Source: core/src/main/scala/kafka/server/epoch/LeaderEpochFileCache.scala @ 0.11.0.0, 2.0.0, 2.0.1, 2.8.2;
storage/src/main/java/org/apache/kafka/storage/internals/epoch/LeaderEpochFileCache.java @ 3.9.0-rc3
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

Entries = tuple[tuple[int, int], ...]
UNDEFINED = -1


class Assign(enum.StrEnum):
    """What happens to an entry that conflicts with earlier ones."""

    REPLACE_CONFLICTS = "replace_conflicts"  # 2.0.1 and later
    IGNORE_CONFLICTS = "ignore_conflicts"  # 0.11.0 to 2.0.0


class EpochAnswers(enum.StrEnum):
    """How `end_offset_for` answers, by version."""

    EPOCH_AND_OFFSET = "epoch_and_offset"  # 2.0.1 and later
    EPOCH_AND_OFFSET_2_0_0 = "epoch_and_offset_2_0_0"
    OFFSET_ONLY = "offset_only"  # 1.0.2, 1.1.1
    OFFSET_ONLY_NO_UNDEFINED_CHECK = "offset_only_no_undefined_check"  # 0.11.0.0 to 1.0.1, 1.1.0


class EpochEndOffset(NamedTuple):
    """The end of an epoch: (-1, -1) without an answer; the epoch is None if only an offset is sent."""

    leader_epoch: int | None
    end_offset: int


NO_END = EpochEndOffset(UNDEFINED, UNDEFINED)


def entries_of(pairs: Iterable[Iterable[int]]) -> Entries:
    return tuple((epoch, start) for epoch, start in pairs)


def latest_epoch(entries: Entries) -> int | None:
    """The newest epoch; None without entries."""
    return entries[-1][0] if entries else None


def assign(entries: Entries, epoch: int, start: int, how: Assign = Assign.REPLACE_CONFLICTS) -> Entries:
    """Entries after the leader or a fetched batch assigned `epoch` the start offset `start`.

    Raises ValueError for a negative epoch or offset, as Kafka does.
    """
    placed = list(entries)
    place(placed, epoch, start, how)
    return tuple(placed)


def place(
    entries: list[tuple[int, int]], epoch: int, start: int, how: Assign = Assign.REPLACE_CONFLICTS
) -> None:
    """The same in place."""
    if epoch < 0 or start < 0:
        raise ValueError(f"invalid leader epoch entry {epoch}@{start}")
    last_epoch, last_start = entries[-1] if entries else (UNDEFINED, UNDEFINED)
    if how is Assign.IGNORE_CONFLICTS and not (epoch > last_epoch and start >= last_start):
        return
    if epoch == last_epoch and start >= last_start:
        return
    if how is Assign.REPLACE_CONFLICTS:
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start):
            entries.pop()
    entries.append((epoch, start))


def truncate_from_end(entries: Entries, offset: int) -> Entries:
    """Entries after the log was cut to end at `offset`: without those that start there or later."""
    if offset < 0 or not entries or entries[-1][1] < offset:
        return entries
    return tuple(entry for entry in entries if entry[1] < offset)


def truncate_from_start(entries: Entries, offset: int) -> Entries:
    """Entries after the log was cut to begin at `offset`: the last one at or below it is moved to it."""
    below = [entry for entry in entries if entry[1] <= offset]
    if offset < 0 or not below:
        return entries
    return ((below[-1][0], offset), *entries[len(below) :])


def entries_in_range(entries: Entries, start: int, end: int) -> Entries:
    """Entries of the offsets [start, end), the first moved to the start; start -1 keeps the front as it is (3.8+)."""
    return truncate_from_end(truncate_from_start(entries, start), end)


def loaded(lines: Iterable[tuple[int, int]]) -> Entries:
    """What a broker from 2.0.1 on has in memory after reading these lines of a file in order."""
    entries: list[tuple[int, int]] = []
    for epoch, start in lines:
        place(entries, epoch, start)
    return tuple(entries)


def end_offset_for(
    entries: Entries, log_end_offset: int, requested: int, how: EpochAnswers = EpochAnswers.EPOCH_AND_OFFSET
) -> EpochEndOffset:
    """What a replica answers to "where does this epoch end?" (KIP-101; with the epoch since KIP-279, 2.0).

    The answer has the largest known epoch at or below the requested one; below the first known one, it has the
    requested epoch itself (since 2.0.1).
    """
    offset_only = how in (EpochAnswers.OFFSET_ONLY, EpochAnswers.OFFSET_ONLY_NO_UNDEFINED_CHECK)
    if how is EpochAnswers.OFFSET_ONLY_NO_UNDEFINED_CHECK and requested == UNDEFINED and not entries:
        return EpochEndOffset(None, log_end_offset)
    nothing = EpochEndOffset(None, UNDEFINED) if offset_only else NO_END
    if not entries or requested == UNDEFINED or requested > entries[-1][0]:
        return nothing
    if requested == entries[-1][0]:
        return EpochEndOffset(None if offset_only else requested, log_end_offset)
    index = bisect_right(entries, requested, key=itemgetter(0))
    end = entries[index][1]
    if index == 0:
        return EpochEndOffset(requested, end) if how is EpochAnswers.EPOCH_AND_OFFSET else nothing
    return EpochEndOffset(None if offset_only else entries[index - 1][0], end)


def epoch_for_offset(entries: Entries, offset: int) -> int | None:
    """The epoch of an offset; None below the first entry. The log end is not consulted (3.5+)."""
    index = bisect_right(entries, offset, key=itemgetter(1))
    return entries[index - 1][0] if index else None


def next_epoch(entries: Entries, epoch: int) -> int | None:
    """The smallest known epoch above this one (3.5+)."""
    return min((known for known, _ in entries if known > epoch), default=None)
