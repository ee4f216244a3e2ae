"""Where followers truncate: single decisions, whole runs by algorithm, the leader's check in FETCH."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.replication.epochs import EpochEndOffset, assign, entries_of, epoch_for_offset
from kctl.replication.truncation import (
    Algorithm,
    ReplicaState,
    TruncationRound,
    decide,
    fetch_epoch_check,
    out_of_range,
    truncate,
)
from tests.conftest import examples, vectors


def log(value: dict[str, Any]) -> ReplicaState:
    return ReplicaState(
        entries_of(value["epochs"]), value["leo"], value.get("hw", 0), value.get("log_start", 0)
    )


def shown(answer: EpochEndOffset | str, *, fetching: bool) -> Any:
    if isinstance(answer, str):
        return "ok" if answer == "data" and not fetching else answer
    if fetching:
        return {"diverging_epoch": answer.leader_epoch, "end_offset": answer.end_offset}
    return {k: v for k, v in answer._asdict().items() if v is not None}


def as_vector(round_: TruncationRound) -> dict[str, Any]:
    if round_.fetch_offset is None:
        return {
            "request_epoch": round_.request_epoch,
            "answer": shown(round_.answer, fetching=False),
            "truncate_to": round_.truncate_to,
            "completed": round_.completed,
            "reason": round_.reason,
        }
    found = {
        "fetch_offset": round_.fetch_offset,
        "last_fetched_epoch": round_.request_epoch,
        "answer": shown(round_.answer, fetching=True),
        "truncate_to": round_.truncate_to,
    }
    if round_.reason:
        found["reason"] = round_.reason
    if round_.mode:
        found["mode"] = round_.mode
    return found


RUNS = list(vectors("epoch_truncation")["cases"]) + [
    c for c in vectors("hw_divergence")["cases"] if c["op"] == "truncation_run"
]


# First, for a cut that does not cut makes the runs below endless.
def test_a_cut_takes_the_high_watermark_along() -> None:
    replica = ReplicaState(((0, 0),), 10, 8)
    cut = [replica.cut_to(offset) for offset in (5, 9, 12)]
    assert [(one.log_end_offset, one.high_watermark) for one in cut] == [(5, 5), (9, 8), (10, 8)]


@pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in RUNS])
def test_vectors(case: dict[str, Any]) -> None:
    have, want, op = case["given"], case["expect"], case["op"]
    if op == "truncation_decision":
        follower, answer = have["follower"], EpochEndOffset(**have["leader_answer"])
        decision = decide(log(follower), answer, follower["initial_fetch_offset"])
        assert decision._asdict() == want
    elif op == "truncation_run":
        found = truncate(log(have["follower"]), log(have["leader"]), Algorithm(have["algorithm"]))
        assert [as_vector(r) for r in found.rounds] == want["rounds"]
        assert found.follower.log_end_offset == want["final_leo"]
        assert found.follower.epochs == entries_of(want["final_epochs"])
        if "still_divergent_offsets" in want:
            leader = log(have["leader"])
            assert [
                o
                for o in range(found.follower.log_end_offset)
                if epoch_for_offset(found.follower.epochs, o) != epoch_for_offset(leader.epochs, o)
            ] == want["still_divergent_offsets"]
    elif op == "fetch_epoch_check":
        found_answer = fetch_epoch_check(
            log(have["leader"]), have["fetch_offset"], have["last_fetched_epoch"]
        )
        expected = want["answer"]
        assert shown(found_answer, fetching=not isinstance(expected, str) or expected != "ok") == expected
    else:
        assert op == "out_of_range"
        step = out_of_range(have["follower_leo"], have["leader_log_start"], have["leader_leo"])
        assert step._asdict() == want


@st.composite
def histories(draw: st.DrawFn) -> tuple[ReplicaState, ReplicaState]:
    """A leader and a follower whose histories share a front and then part, no epoch given out twice."""
    shared: tuple[tuple[int, int], ...] = ()
    offset, epoch = 0, 0
    for _ in range(draw(st.integers(0, 4))):
        shared = assign(shared, epoch, offset)
        offset, epoch = offset + draw(st.integers(1, 5)), epoch + 1
    sides = []
    for parity in (0, 1):
        entries, end = shared, offset
        own = epoch + parity
        for _ in range(draw(st.integers(0, 4))):
            entries = assign(entries, own, end)
            end, own = end + draw(st.integers(1, 5)), own + 2
        if parity == 0:  # the leader's election wrote an entry, before any record of its epoch
            entries = assign(entries, 99, end)
        sides.append(ReplicaState(entries, end, draw(st.integers(0, end))))
    return sides[0], sides[1]


@settings(max_examples=examples(300))
@given(histories(), st.sampled_from([Algorithm.KIP_279, Algorithm.FETCH]))
def test_what_is_left_after_truncation_is_a_prefix_of_the_leader(
    pair: tuple[ReplicaState, ReplicaState], algorithm: Algorithm
) -> None:
    leader, follower = pair
    left = truncate(follower, leader, algorithm).follower
    assert left.log_end_offset <= follower.log_end_offset
    for offset in range(left.log_end_offset):
        assert epoch_for_offset(left.epochs, offset) == epoch_for_offset(leader.epochs, offset)


# --- bounds -------------------------------------------------------------------------------------------


def test_nobody_truncates_above_its_own_end() -> None:
    replica = ReplicaState(((0, 0),), 10, 12)
    for answer in (EpochEndOffset(None, 20), EpochEndOffset(-1, 20)):
        assert decide(replica, answer, 0) == (10, True, "leader_epoch_undefined")
    for own, cut in ((replica, 10), (ReplicaState(((0, 0),), 10, 8), 8)):
        (round_,) = truncate(own, replica, Algorithm.HIGH_WATERMARK).rounds
        assert round_.truncate_to == cut


def test_a_fetch_at_the_end_is_in_range() -> None:
    leader = ReplicaState((), 10, 8, 3)
    answers = [fetch_epoch_check(leader, offset, None) for offset in (2, 3, 10, 11)]
    assert answers == ["OFFSET_OUT_OF_RANGE", "data", "data", "OFFSET_OUT_OF_RANGE"]


def test_what_follows_upon_out_of_range() -> None:
    asked = [(5, 0, 4), (5, 0, 5), (5, 5, 9), (5, 6, 9)]
    assert [out_of_range(*offsets) for offsets in asked] == [
        ("truncate_to_leader_end", 4, 4),
        ("keep_and_retry", None, 5),
        ("keep_and_retry", None, 5),
        ("truncate_fully_and_start_at", 6, 6),
    ]
