"""The high watermark on leader and follower, and how it travels, against recorded traces."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from kctl.replication.high_watermark import (
    Admission,
    Basis,
    FetchOrder,
    RemoteReplica,
    follower_high_watermark,
    initial_high_watermark,
    leader_high_watermark,
    may_join_isr,
)
from tests.conftest import vectors


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """What a leader sends back: records from `first_offset` on, and a high watermark."""

    first_offset: int
    count: int
    high_watermark: int


@dataclass(slots=True)
class Follower:
    """A follower's own view."""

    log_end_offset: int = 0
    high_watermark: int = 0


@dataclass
class FetchRounds:
    """A leader whose followers are all in the ISR, one step at a time."""

    followers: dict[str, Follower]
    order: FetchOrder = FetchOrder.READ_THEN_UPDATE
    answers_newer_high_watermark: bool = False
    fetch_min_bytes: int = 1
    log_end_offset: int = 0
    high_watermark: int = 0
    remote: dict[str, int] = field(default_factory=dict)
    answers: dict[str, FetchAnswer] = field(default_factory=dict)
    parked: dict[str, int] = field(default_factory=dict)
    last_sent: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.remote = {name: follower.log_end_offset for name, follower in self.followers.items()}

    def produce(self, count: int) -> None:
        """The leader appends; parked fetches wake up and are read again."""
        self.log_end_offset += count
        self._advance()
        for name in list(self.parked):
            if self.log_end_offset - self.parked[name] >= self.fetch_min_bytes:
                self.fetch_wait_expires(name)

    def fetch(self, name: str) -> None:
        """A follower's fetch arrives: answered at once, or parked."""
        offset = self.followers[name].log_end_offset
        before = self.high_watermark
        self.remote[name] = offset
        self._advance()
        shown = self.high_watermark if self.order is FetchOrder.UPDATE_THEN_READ else before
        if self.log_end_offset - offset >= self.fetch_min_bytes:
            self._answer(name, offset, shown)
        elif self.answers_newer_high_watermark and self.high_watermark > self.last_sent.get(name, -1):
            self._answer(name, offset, self.high_watermark)
        else:
            self.parked[name] = offset

    def fetch_wait_expires(self, name: str) -> None:
        """A parked fetch completes: it is read again, with the high watermark of now."""
        self._answer(name, self.parked.pop(name), self.high_watermark)

    def deliver(self, name: str) -> None:
        """The follower gets its answer, appends, and sets its high watermark."""
        answer, follower = self.answers.pop(name), self.followers[name]
        follower.log_end_offset += answer.count
        follower.high_watermark = follower_high_watermark(
            log_end_offset=follower.log_end_offset,
            leader_high_watermark=answer.high_watermark,
            log_start_offset=0,
        )

    def _answer(self, name: str, offset: int, high_watermark: int) -> None:
        self.answers[name] = FetchAnswer(offset, self.log_end_offset - offset, high_watermark)
        self.last_sent[name] = high_watermark

    def _advance(self) -> None:
        self.high_watermark = leader_high_watermark(
            leader_log_end_offset=self.log_end_offset,
            current=self.high_watermark,
            isr=range(1 + len(self.remote)),
            replicas=[RemoteReplica(id, end) for id, end in enumerate(self.remote.values(), 1)],
            basis=Basis.ISR_ONLY,
        )


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


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c["id"]) for c in vectors("hw_progress")["cases"] if c["op"] != "committed_range"],
)
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
    else:
        assert op == "may_join_isr"
        joins = may_join_isr(
            follower_log_end_offset=have["follower_leo"],
            leader_high_watermark=have["leader_hw"],
            leader_epoch_start_offset=have["leader_epoch_start_offset"],
            rule=Admission(have["rule"]),
        )
        assert joins == want["joins"]


@pytest.mark.parametrize(("isr", "expected"), [((1,), 3), ((1, 2), 5), ((1, 2, 3), 5)])
def test_an_isr_of_the_least_size_moves_it(isr: tuple[int, ...], expected: int) -> None:
    found = leader_high_watermark(
        leader_log_end_offset=9, current=3, isr=isr, replicas=[RemoteReplica(2, 5, 100_000)],
        basis=Basis.ISR_OR_CAUGHT_UP_AND_MIN_ISR, now_ms=100_000, min_insync_replicas=2,
    )  # fmt: skip
    assert found == expected


@pytest.mark.parametrize(("age_ms", "expected"), [(30_000, 5), (30_001, 9)])
def test_a_follower_counts_until_its_lag_is_longer_than_the_limit(age_ms: int, expected: int) -> None:
    found = leader_high_watermark(
        leader_log_end_offset=9, current=3, isr=(1,), replicas=[RemoteReplica(2, 5, 0)],
        basis=Basis.ISR_OR_CAUGHT_UP, now_ms=age_ms, replica_lag_time_max_ms=30_000,
    )  # fmt: skip
    assert found == expected
