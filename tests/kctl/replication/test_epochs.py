"""Leader epochs: every recorded answer of Kafka's cache, and properties of its operations."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.replication.epochs import (
    Assign,
    Entries,
    EpochAnswers,
    EpochEndOffset,
    assign,
    end_offset_for,
    entries_in_range,
    entries_of,
    epoch_for_offset,
    latest_epoch,
    next_epoch,
    truncate_from_end,
    truncate_from_start,
)
from tests.conftest import vectors


def cases(name: str, *ops: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in vectors(name)["cases"] if case["op"] in ops]


def play(given_: dict[str, Any]) -> Entries:
    entries: Entries = ()
    for name, *values in given_["ops"]:
        if name == "assign":
            entries = assign(entries, values[0], values[1], Assign(given_["semantics"]))
        elif name == "truncate_from_end":
            entries = truncate_from_end(entries, *values)
        elif name == "truncate_from_start":
            entries = truncate_from_start(entries, *values)
        else:
            assert name == "clear"
            entries = ()
    return entries


@pytest.mark.parametrize("case", cases("epoch_cache_ops", "epoch_cache_ops", "epoch_entries_in_range"))
def test_the_cache_after_operations(case: dict[str, Any]) -> None:
    have, want = case["given"], case["expect"]
    if case["op"] == "epoch_entries_in_range":
        found = entries_in_range(entries_of(have["entries"]), have["start_offset"], have["end_offset"])
        assert found == entries_of(want["entries"])
        return
    assert case["op"] == "epoch_cache_ops"
    entries = play(have)
    latest = latest_epoch(entries)
    assert entries == entries_of(want["entries"])
    assert latest == want["latest_epoch"]


@pytest.mark.parametrize(
    "case", cases("epoch_end_offset", "end_offset_for", "epoch_for_offset", "next_epoch")
)
def test_answers_from_the_cache(case: dict[str, Any]) -> None:
    have, want = case["given"], case["expect"]
    entries = entries_of(have["entries"])
    if case["op"] == "end_offset_for":
        found = end_offset_for(
            entries, have["log_end_offset"], have["requested_epoch"], EpochAnswers(have["semantics"])
        )
        assert found == EpochEndOffset(want.get("leader_epoch"), want["end_offset"])
    elif case["op"] == "epoch_for_offset":
        assert epoch_for_offset(entries, have["offset"]) == want["epoch"]
    else:
        assert case["op"] == "next_epoch"
        assert next_epoch(entries, have["epoch"]) == want["epoch"]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["id"])
        for case in vectors("offsets_for_leader_epoch")["cases"]
        if case["expect"].get("error") == "NONE"  # errors are about who leads, which no copy knows
    ],
)
def test_what_a_leader_answers_to_offsets_for_leader_epoch(case: dict[str, Any]) -> None:
    have, want = case["given"], case["expect"]
    answer = end_offset_for(entries_of(have["entries"]), have["log_end_offset"], have["requested_epoch"])
    assert answer == EpochEndOffset(want["leader_epoch"], want["end_offset"])


operations = st.lists(
    st.one_of(
        st.tuples(st.just("assign"), st.integers(0, 9), st.integers(0, 30)),
        st.tuples(st.just("truncate_from_end"), st.integers(-1, 30)),
        st.tuples(st.just("truncate_from_start"), st.integers(-1, 30)),
    ),
    max_size=12,
)


@given(operations)
def test_entries_always_rise_in_epoch_and_start(ops: list[Any]) -> None:
    entries = play({"semantics": "replace_conflicts", "ops": ops})
    for before, after in pairwise(entries):
        assert before[0] < after[0]
        assert before[1] < after[1]


@given(operations, st.integers(-1, 10), st.integers(30, 40))
def test_the_end_of_an_epoch_is_where_a_later_one_starts_or_the_log_end(
    ops: list[Any], requested: int, end: int
) -> None:
    entries = play({"semantics": "replace_conflicts", "ops": ops})
    answer = end_offset_for(entries, end, requested)
    if answer.end_offset != -1:
        assert answer.end_offset in {end, *(start for _, start in entries)}
        assert answer.leader_epoch is not None
        assert answer.leader_epoch <= requested


def test_a_negative_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="invalid leader epoch entry -1@0"):
        assign((), -1, 0)
