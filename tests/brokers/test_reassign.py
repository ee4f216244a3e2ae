"""Reassignment on real clusters, with a producer running: planned, carried out, verified, throttled, undone."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.cluster import Cluster, eventually
from tests.brokers.running import Kctl
from tests.brokers.traffic import traffic

NUMBERS = count()
SPREAD = [[1, 2], [2, 3], [3, 1], [2, 1]]


@pytest.fixture
def topic() -> str:
    """A name that no test has used."""
    return f"moved{next(NUMBERS)}"


def has_throttles(c: Cluster) -> bool:
    return c.version not in ("0.8.2", "0.9")


def replicas_of(k: Kctl, topic: str) -> dict[int, list[int]]:
    return {p["partition"]: p["replicas"] for p in k("topic", "describe", topic).of("partition")}


def fill(c: Cluster, topic: str, *, megabytes: int) -> None:
    """Records enough that one fetch (1 MiB) does not bring a new replica into the ISR."""
    c.tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", megabytes * 10, "--record-size", 100_000, "--throughput", -1),
        *("--producer-props", f"bootstrap.servers={c.bootstrap}", "acks=all"),
        version="2.8",
    )


def throttles(k: Kctl) -> list[dict[str, Any]]:
    return k("reassign", "throttle", "list").of("throttle")


def test_a_drain_loses_nothing_and_leaves_nothing_behind(
    c: Cluster, k: Kctl, topic: str, tmp_path: Path
) -> None:
    c.create_topic(topic, SPREAD)
    plan = tmp_path / "drain.json"
    with traffic(c, topic, 4) as running:
        ran = k("reassign", "plan", "--topics", topic, "--drain", 3, "--to", plan)
        assert ran.status == 0, ran.err
        assert sorted((m["partition"], m["removing"]) for m in ran.of("move")) == [(1, [3]), (2, [3])]
        assert k("reassign", "verify", plan).status == 5
        assert [p["state"] for p in k("reassign", "verify", plan).of("partition")] == ["not_started"] * 2
        throttle = ["--throttle", "10MiB"] if has_throttles(c) else []
        done = k.change("reassign", "execute", plan, *throttle)
        assert ("no --throttle" in done.err) is not has_throttles(c)
        running.require_progress()
        verified = k("reassign", "verify", plan)
        assert verified.status == 0, verified.rows
    running.require_nothing_lost()
    assert all(3 not in replicas for replicas in replicas_of(k, topic).values())
    assert throttles(k) == []
    assert k.change("reassign", "execute", plan).rows == []
    assert len(k.ids()) == 1, "nothing to do is no change"
    # And back, as the rollback file says.
    assert k.change("reassign", "execute", tmp_path / "drain.rollback.json").status == 0
    assert [replicas_of(k, topic)[p] for p in range(4)] == SPREAD


def test_a_replacement_and_its_undo(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    c.create_topic(topic, [[1, 2], [2, 1]])
    plan = tmp_path / "replace.json"
    assert k("reassign", "plan", "--topics", topic, "--replace", "2=3", "--to", plan).status == 0
    k.change("reassign", "execute", plan, "--max-batch-moves", 1)
    assert replicas_of(k, topic) == {0: [1, 3], 1: [3, 1]}
    (id,) = k.ids()
    k.change("journal", "undo", id)
    assert replicas_of(k, topic) == {0: [1, 2], 1: [2, 1]}
    assert k.state(id) == "undone"


def test_a_throttled_move_can_be_watched_and_hurried(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    if not has_throttles(c):
        pytest.skip("throttles came with 0.10.1")
    c.create_topic(topic, [[1, 2]])
    with traffic(c, topic, 1) as running:
        fill(c, topic, megabytes=12)
    plan = tmp_path / "slow.json"
    assert k("reassign", "plan", "--topics", topic, "--replace", "2=3", "--to", plan).status == 0
    k.change("reassign", "execute", plan, "--throttle", 1000, "--no-wait")
    for _ in eventually("the move is seen"):
        looked = k("reassign", "status", plan)
        if looked.of("partition")[0]["state"] == "in_progress":
            break
    assert looked.status == 5
    assert "broker 3 to join the ISR" in looked.of("partition")[0]["reason"]
    assert k("reassign", "verify", plan).status == 5
    again = k("reassign", "execute", plan, "--yes")
    assert again.status == 4 and "under way" in again.err
    set_ = {(t["entity_type"], t["entity_name"], t["key"]): t for t in throttles(k)}
    assert set_["brokers", "3", "follower.replication.throttled.rate"]["value"] == "1000"
    assert set_["topics", topic, "follower.replication.throttled.replicas"]["value"] == "0:3"
    assert set_["topics", topic, "leader.replication.throttled.replicas"]["value"] == "0:1,0:2"
    assert all(t["is_used"] and len(t["plan"]) == 64 for t in set_.values())
    k.change("reassign", "throttle", "set", plan, "100MiB")
    for _ in eventually("the move ends"):
        if k("reassign", "verify", plan).status == 0:
            break
    assert throttles(k) == []
    running.require_nothing_lost()


def test_a_move_to_a_dead_broker_is_cancelled_by_moving_the_controller(
    c: Cluster, k: Kctl, topic: str, tmp_path: Path
) -> None:
    if c.controller() == 3:
        c.restart(3)  # the controller must see the request before its broker dies
    c.create_topic(topic, [[1, 2], [2, 1]])
    plan = tmp_path / "stuck.json"
    assert k("reassign", "plan", "--topics", topic, "--replace", "2=3", "--to", plan).status == 0
    with traffic(c, topic, 2) as running:
        c.pause(3)
        k.change("reassign", "execute", plan, "--no-wait")
        c.wait_until_gone(3)
        c.kill(3)  # clients would wait for a process that is only stopped
        c.brokers[3].is_paused = False
        for _ in eventually("the move is stuck"):
            looked = k("reassign", "status", plan)
            if "not alive" in looked.err:
                break
        assert looked.status == 5
        refused = k("reassign", "cancel", plan, "--yes", "--timeout", 1)
        assert refused.status == 4 and "--move-controller" in refused.err, refused.err
        before, controller = c.znode("/controller_epoch"), c.controller()
        cancelled = k.change("reassign", "cancel", plan, "--move-controller", "--timeout", 60)
        assert (f"restart broker {controller}" in cancelled.err) is (c.version == "0.8.2")
        assert int(c.znode("/controller_epoch")) > int(before)
        assert replicas_of(k, topic) == {0: [1, 2], 1: [2, 1]}
        running.require_progress()
    running.require_nothing_lost()
    assert k("reassign", "status").of("partition") == []
    if c.version == "0.8.2":
        assert controller is not None
        c.restart(controller)
    c.heal()
    assert replicas_of(k, topic) == {0: [1, 2], 1: [2, 1]}
