"""What is predicted is what happens, preferred leaders come back, and old consumers are seen, on real clusters."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.brokers.cluster import Cluster, eventually
from tests.brokers.running import Kctl
from tests.brokers.traffic import traffic

NUMBERS = count()
pytestmark = pytest.mark.usefixtures("healthy")
SPREAD = [[3, 1], [1, 3], [2, 3], [3, 2, 1], [1, 2], [3]]


@pytest.fixture
def topic() -> str:
    """A name that no test has used."""
    return f"led{next(NUMBERS)}"


def partitions(k: Kctl, topic: str) -> dict[int, dict[str, Any]]:
    return {p["partition"]: p for p in k("topic", "describe", topic).of("partition")}


def wait_for_isr(k: Kctl, topic: str) -> None:
    for _ in eventually(f"all replicas of {topic} in sync"):
        if all(set(p["isr"]) == set(p["replicas"]) for p in partitions(k, topic).values()):
            return


def require_predicted(k: Kctl, topic: str, predicted: dict[int, dict[str, Any]]) -> None:
    """Wait until leaders and ISRs are as predicted; of an offline partition the ISR is not known beforehand."""

    def outcome(one: dict[str, Any]) -> tuple[int, list[int] | None]:
        return one["leader"], None if one["leader"] == -1 else sorted(one["isr"])

    wanted = {p: outcome(one) for p, one in predicted.items()}
    found: object = None
    try:
        for _ in eventually("what was predicted"):
            found = {p: outcome(one) for p, one in partitions(k, topic).items() if p in wanted}
            if found == wanted:
                return
    except AssertionError:
        assert found == wanted


@pytest.mark.parametrize("how", ["crash", "controlled"])
def test_what_is_predicted_happens_and_is_mended(c: Cluster, k: Kctl, topic: str, how: str) -> None:
    c.create_topic(topic, SPREAD, min_insync_replicas=2)
    with traffic(c, topic, 3) as running:
        wait_for_isr(k, topic)
        stop = ["cluster", "predict", "--stop", 3, "--how", how, "--topics", topic, "--no-unclean"]
        ran = k(*stop)
        assert ran.status == 5
        predicted = {p["partition"]: p for p in ran.of("prediction")}
        assert {p: one["outcome"] for p, one in predicted.items()} == {
            0: "new_leader",
            1: "isr_shrinks",
            2: "isr_shrinks",
            3: "new_leader",
            5: "offline",
        }
        assert [p for p, one in sorted(predicted.items()) if not one["is_under_min_isr"]] == [3]
        c.stop(3) if how == "controlled" else c.kill(3)
        c.wait_until_gone(3)
        require_predicted(k, topic, predicted)
        unhealthy = {h["check"]: h["status"] for h in k("cluster", "health").of("health")}
        assert unhealthy["offline"] == "error" and unhealthy["dead-brokers"] == "warning"
        assert k("elect", "status", "--topics", topic).status == 5
        c.heal()
        wait_for_isr(k, topic)
        before = k("elect", "status", "--topics", topic)
        assert {r["partition"]: r["state"] for r in before.of("partition")} == {
            0: "not_started",
            3: "not_started",
        }
        elected = k.change("elect", "preferred", "--topics", topic)
        assert {r["partition"]: (r["state"], r["leader"]) for r in elected.of("partition")} == {
            0: ("done", 3),
            3: ("done", 3),
        }
        assert k("elect", "status", "--topics", topic).status == 0
        assert k.change("elect", "preferred", "--topics", topic).rows == []
        assert len(k.ids()) == 1
        running.require_progress()
    running.require_nothing_lost()
    k.change("topic", "config", "set", topic, "min.insync.replicas=1")  # one partition has one replica only
