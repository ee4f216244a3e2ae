"""The high watermark on leader and follower, and how it travels, against recorded traces."""

from typing import Any

import pytest

from kctl.replication.fetching import FetchOrder, FetchRounds, Follower
from kctl.replication.high_watermark import (
    Admission,
    Basis,
    RemoteReplica,
    committed_range,
    follower_high_watermark,
    initial_high_watermark,
    leader_high_watermark,
    may_join_isr,
)
from tests.conftest import vectors


def trace(given: dict[str, Any]) -> tuple[list[dict[str, Any]], list[int]]:
    """The states after each event, in the shape of the vectors, and the followers' marks after each delivery."""
    names = sorted({e.get("from") or e.get("to") for e in given["events"]} - {None})
    rounds = FetchRounds(
        {str(name): Follower() for name in names},
        FetchOrder(given["fetch_model"]),
        given.get("answer_when_hw_above_last_sent", False),
        given["fetch_min_bytes"],
    )
    states, delivered = [], []
    for event in given["events"]:
        before = dict(rounds.answers)
        if event["do"] == "produce":
            rounds.produce(event["count"])
        elif event["do"] == "deliver":
            rounds.deliver(event["to"])
            delivered.append(rounds.followers[event["to"]].high_watermark)
        else:
            {"fetch": rounds.fetch, "fetch_wait_expires": rounds.fetch_wait_expires}[event["do"]](
                event["from"]
            )
        state: dict[str, Any] = {
            "leader": {
                "leo": rounds.log_end_offset,
                "hw": rounds.high_watermark,
                "remote_leo": rounds.remote,
            },
            "followers": {
                n: {"leo": f.log_end_offset, "hw": f.high_watermark} for n, f in rounds.followers.items()
            },
        }
        new = {n: a for n, a in rounds.answers.items() if before.get(n) != a}
        if new:
            state["answers"] = {
                n: {"first_offset": a.first_offset, "count": a.count, "high_watermark": a.high_watermark}
                for n, a in new.items()
            }
        if event["do"] == "fetch" and event["from"] in rounds.parked:
            state["parked"] = [event["from"]]
        states.append({**state, "leader": {**state["leader"], "remote_leo": dict(rounds.remote)}})
    return states, delivered


@pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in vectors("hw_progress")["cases"]])
def test_progress(case: dict[str, Any]) -> None:
    have, want, op = case["given"], case["expect"], case["op"]
    if op == "hw_trace":
        states, delivered = trace(have)
        assert states == want["states"]
        assert delivered == want.get("follower_hw_after_each_round", delivered)
    elif op == "leader_high_watermark":
        found = leader_high_watermark(
            leader_log_end_offset=have["leader_leo"],
            current=have["current_hw"],
            isr=have["isr"],
            replicas=[RemoteReplica(r["id"], r["leo"], r["last_caught_up_ms"]) for r in have["replicas"]],
            basis=Basis(have["rule"]),
            now_ms=have["now_ms"],
            replica_lag_time_max_ms=have["replica_lag_time_max_ms"],
            pending_isr=have.get("pending_isr", ()),
            min_insync_replicas=have.get("min_insync_replicas", 1),
        )
        assert found == want["high_watermark"]
    elif op == "follower_high_watermark":
        found = follower_high_watermark(
            log_end_offset=have["leo"],
            leader_high_watermark=have["leader_hw"],
            log_start_offset=have["log_start"],
        )
        assert found == want["high_watermark"]
    elif op == "initial_high_watermark":
        found = initial_high_watermark(
            checkpointed=have["checkpointed"],
            log_end_offset=have["leo"],
            log_start_offset=have["log_start"],
            floor_at_log_start=have["floor_at_log_start"],
        )
        assert found == want["high_watermark"]
    elif op == "may_join_isr":
        joins = may_join_isr(
            follower_log_end_offset=have["follower_leo"],
            leader_high_watermark=have["leader_hw"],
            leader_epoch_start_offset=have["leader_epoch_start_offset"],
            rule=Admission(have["rule"]),
        )
        assert joins == want["joins"]
    else:
        assert op == "committed_range"
        found_range = committed_range(have["log_start"], have["leo"], have["high_watermark"])
        assert found_range._asdict() == want
