"""Rows by id, against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.tier.ids import Ids

pairs = st.tuples(st.integers(0, (1 << 64) - 1), st.integers(0, 3))


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.sets(pairs, max_size=40), max_size=6), st.lists(pairs, max_size=20))
def test_every_id_is_found_where_it_was_put_and_no_other(
    batches: list[set[tuple[int, int]]], others: list[tuple[int, int]]
) -> None:
    ids, known = Ids(), dict[tuple[int, int], int]()
    high, low = np.zeros(1000, np.uint64), np.zeros(1000, np.uint64)
    for batch in batches:
        new = sorted(batch - known.keys())
        rows = np.arange(len(known), len(known) + len(new))
        known |= zip(new, rows.tolist(), strict=True)
        if new:
            high[rows], low[rows] = np.array(new, np.uint64).T
            _, places = ids.find(high[rows], low[rows], high, low)
            ids.add(places, rows)
        asked = [*known, *others]
        if asked:
            columns = np.array(asked, np.uint64).T
            assert ids.find(*columns, high, low)[0].tolist() == [known.get(one, -1) for one in asked]


def test_thousands_of_ids_that_differ_in_little_keep_their_rows() -> None:
    ids, rows = Ids(), np.arange(5000)
    ids.clear(5000)
    assert ids.room() >= 5000
    high, low = np.zeros(5000, np.uint64), rows.astype(np.uint64) << np.uint64(48)
    ids.add(ids.first(high, low), rows)
    assert (ids.find(high, low, high, low)[0] == rows).all()
    assert (ids.find(high + np.uint64(1), low, high, low)[0] == -1).all()
