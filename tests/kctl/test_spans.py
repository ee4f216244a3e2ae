"""Ranges of offsets are what their offsets are."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kctl.copies.spans import Span, common, joined, without

SPANS = st.lists(st.integers(0, 40), max_size=12).map(lambda ends: list(pairwise(sorted(set(ends))))[::2])


def offsets(spans: Iterable[Span]) -> set[int]:
    return {offset for start, end in spans for offset in range(start, end)}


@given(SPANS, SPANS)
def test_ranges_are_joined_intersected_and_subtracted_as_their_offsets_are(
    one: list[Span], other: list[Span]
) -> None:
    assert offsets(joined([*other, *one])) == offsets(one) | offsets(other)
    assert offsets(common(one, other)) == offsets(one) & offsets(other)
    assert offsets(without(one, reversed(other))) == offsets(one) - offsets(other)
