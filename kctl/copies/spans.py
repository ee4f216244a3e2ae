"""Ranges of offsets [start, end), in lists: joined, in two lists, and in the first of two alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Span = tuple[int, int]


def joined(spans: Iterable[Span]) -> list[Span]:
    """The ranges joined where they overlap or touch, ascending; empty ones are left out."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def common(first: Sequence[Span], second: Sequence[Span]) -> Iterator[Span]:
    """The intersection of two lists of ranges; both are ascending and disjoint."""
    i = j = 0
    while i < len(first) and j < len(second):
        start, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if start < end:
            yield start, end
        if first[i][1] <= second[j][1]:
            i += 1
        else:
            j += 1


def without(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """What of the ranges lies in none of the others."""
    ascending = joined(others)
    left: list[Span] = []
    for start, end in spans:
        for first, last in ascending:
            if first >= end:
                break
            if first > start:
                left.append((start, first))
            start = max(start, last)
        if start < end:
            left.append((start, end))
    return left
