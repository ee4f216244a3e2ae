"""Pairs of copies held against each other, window by window; contents are read only where bytes differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kctl.replica.batches import BatchColumns, BatchDifference, Kind, batch_differences
from kctl.replica.lockstep import Window, windows
from kctl.replica.record_ranges import Content, Ranges, contents, is_same
from kctl.replica.replica_log import Batches, ReplicaLog
from kctl.scan.pool import Jobs

NOT_OVER = 1 << 62


@dataclass
class Pair:
    """Two copies, by their index, and how they differ."""

    first: int
    second: int
    different: Ranges = field(default_factory=Ranges)
    same_payload: Ranges = field(default_factory=Ranges)
    other_bytes: int = 0  # batches in other bytes with the same records
    lacking: tuple[Ranges, Ranges] = field(default_factory=lambda: (Ranges(), Ranges()))
    """What each side lacks in the middle of its log although the other holds it."""

    @property
    def contradict(self) -> bool:
        """Whether the two have parted: other records, or the same ones written in another epoch."""
        return bool(self.different.found or self.same_payload.found)


def compare_pairs(
    logs: Sequence[ReplicaLog], indexes: Iterable[tuple[int, int]], jobs: Jobs = None
) -> list[Pair]:
    """Every pair compared in one pass over the logs, by so many processes where the logs are large."""
    pairs = [Pair(first, second) for first, second in indexes]
    for window in windows(logs, jobs):
        for pair in pairs:
            _compare(pair, logs, window)
    return pairs


def _compare(pair: Pair, logs: Sequence[ReplicaLog], window: Window) -> None:
    first, second = window.batches[pair.first], window.batches[pair.second]
    if not len(first) and not len(second):
        return
    if len(first) == len(second) and all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("crc", "last_offset", "leader_epoch", "first_offset")
    ):
        return
    one, other = logs[pair.first], logs[pair.second]
    start = max(one.local_log_start_offset, other.local_log_start_offset)
    sides = (
        _columns(first, one, is_over=window.is_over[pair.first]),
        _columns(second, other, is_over=window.is_over[pair.second]),
    )
    rows: tuple[list[int], list[int]] = ([], [])
    for difference in batch_differences(*sides):
        _sort(pair, difference, (first, second), rows, start)
    if rows[0] or rows[1]:
        _compare_records(pair, (one, other), (first, second), rows, start)


def _columns(batches: Batches, log: ReplicaLog, *, is_over: bool) -> BatchColumns:
    return BatchColumns(
        batches.first_offset,
        batches.last_offset,
        batches.leader_epoch,
        batches.crc,
        log.local_log_start_offset,
        log.next_offset if is_over else NOT_OVER,
    )


def _sort(
    pair: Pair,
    difference: BatchDifference,
    batches: tuple[Batches, Batches],
    rows: tuple[list[int], list[int]],
    start: int,
) -> None:
    """Note a difference that headers decide; keep the rows of one that only records do."""
    side = 0 if difference.first >= 0 else 1
    row = difference.first if side == 0 else difference.second
    from_offset, to_offset = int(batches[side].first_offset[row]), int(batches[side].last_offset[row]) + 1
    if to_offset <= start or difference.kind is Kind.BEYOND_END:
        return
    if difference.kind is Kind.HOLE:
        pair.lacking[1 - side].add(max(from_offset, start), to_offset)
    elif difference.kind is Kind.OTHER_EPOCH and difference.same_payload:
        pair.same_payload.add(max(from_offset, start), to_offset)
    else:
        if difference.first >= 0:
            rows[0].append(difference.first)
        if difference.second >= 0:
            rows[1].append(difference.second)


def _compare_records(
    pair: Pair,
    logs: tuple[ReplicaLog, ReplicaLog],
    batches: tuple[Batches, Batches],
    rows: tuple[list[int], list[int]],
    start: int,
) -> None:
    first = _from(contents(logs[0], batches[0], rows[0]), start)
    second = _from(contents(logs[1], batches[1], rows[1]), start)
    before = len(pair.different.found), pair.different.found[-1][1] if pair.different.found else -1
    pair.different.add_differences(first, second)
    after = len(pair.different.found), pair.different.found[-1][1] if pair.different.found else -1
    shared = first.keys() & second.keys()
    if before == after and shared and all(is_same(first[o], second[o]) for o in shared):
        pair.other_bytes += max(len(rows[0]), len(rows[1]))


def _from(found: dict[int, Content], start: int) -> dict[int, Content]:
    return {offset: content for offset, content in found.items() if offset >= start}
