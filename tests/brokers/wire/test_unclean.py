"""Unclean elections on real clusters: the forecast, the choice, and what was really lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, eventually, kraft_cluster
from tests.brokers.wire.conftest import WireKctl, fill

KEYS = ("broker_id", "is_alive", "log_end_offset", "lost_at_least", "lost_at_most", "is_proposed")
VERSIONS = [
    pytest.param("4.3", marks=pytest.mark.brokers),
    pytest.param("4.1", marks=[pytest.mark.brokers, pytest.mark.matrix]),
    pytest.param("3.9", marks=[pytest.mark.brokers, pytest.mark.matrix]),
]


@pytest.fixture(scope="module", params=VERSIONS)
def made(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Brokers 1, 2 and 3 hold replicas, 4 is the controller."""
    with kraft_cluster(
        request.param,
        brokers=4,
        no_voters=(1, 2, 3),
        properties={"replica.lag.time.max.ms": 3000, "transaction.state.log.min.isr": 1},
    ) as c:
        yield c


@pytest.fixture
def k(made: Cluster, tmp_path: Path) -> WireKctl:
    return WireKctl(made, tmp_path / "journal")


def await_isr(k: WireKctl, topics: list[str], leader: int, isr: list[int]) -> None:
    for _ in eventually(f"{topics} led by {leader}, in sync {isr}"):
        rows = k("topic", "describe", *topics).of("partition")
        if rows and all(r["leader"] == leader and set(r["isr"]) <= set(isr) for r in rows):
            return


def lose(made: Cluster, k: WireKctl, topics: list[str]) -> None:
    """60 records on 1, 2 and 3; 40 more on 2 and 3; 20 more on 3, which is dead; 1 and 2 are back."""
    for topic in topics:
        k.change("topic", "create", topic, "--replica-assignment", "1:2:3")
        fill(made, topic, records=60)
    for broker, records, leader in ((1, 40, 2), (2, 20, 3)):
        made.kill(broker)
        await_isr(k, topics, leader, [2, 3] if broker == 1 else [3])
        for topic in topics:
            fill(made, topic, records=records)
    made.kill(3)
    made.restart(1, 2)
    for _ in eventually("brokers 1 and 2 alive, 3 dead"):
        alive = {b["broker_id"] for b in k("cluster", "brokers").of("broker") if b["is_alive"]}
        if alive == {1, 2, 4}:
            break
    for topic in topics:
        for _ in eventually(f"{topic} has no leader, and its replicas answer"):
            rows = k("elect", "unclean", topic, "--dry-run").of("candidate")
            if [r["log_end_offset"] for r in rows] == [60, 100, None]:
                break


def test_the_forecast_the_choice_and_what_was_lost(made: Cluster, k: WireKctl) -> None:
    best, worse = topics = ["best", "worse"]
    try:
        lose(made, k, topics)
        refused = k.change("elect", "unclean", f"{best}:0", status=4)
        assert "--accept-loss" in refused.err and "nothing was written" in refused.err
        assert "at most an unknown number" in refused.err
        assert [tuple(row[key] for key in KEYS) for row in refused.of("candidate")] == [
            (1, True, 60, 40, None, False),
            (2, True, 100, 0, None, True),
            (3, False, None, None, None, False),
        ]
        if made.version >= "4":
            eligible = [row["is_eligible_leader_replica"] for row in refused.of("candidate")]
            assert eligible == [False, False, True]
            assert "broker 3 has every committed record" in refused.err
        allow = ("config", "set", "unclean.leader.election.enable=true", "--entity-type")
        for entity in (("topics", "--entity-name", best), ("brokers", "--entity-name", "<default>")):
            allowed = k.change(*allow, *entity, status=4)
            assert "without a leader" in allowed.err and "needs --accept-loss" in allowed.err
        key, default = (
            "unclean.leader.election.enable",
            ("--entity-type", "brokers", "--entity-name", "<default>"),
        )
        for topic in topics:  # each keeps what all brokers are told from itself
            k.change("topic", "config", "set", topic, f"{key}=false")
        k.change("config", "set", f"{key}=true", *default)
        hidden = k.change("topic", "config", "unset", best, key, status=4)
        assert f"1 partition without a leader ({best}-0)" in hidden.err and "--accept-loss" in hidden.err
        k.change("config", "unset", key, *default)
        unset_by = k.change("topic", "config", "unset", best, key).of("change")[0]["id"]
        assert "needs --accept-loss" in k.change("journal", "undo", k.ids()[-2], status=4).err
        k.change("journal", "undo", unset_by)
        assert k("topic", "describe", best).of("partition")[0]["leader"] == -1
        cannot = k.change("elect", "unclean", best, "--to", 3, "--accept-loss", status=4)
        assert "broker 3 cannot lead" in cannot.err and "is not alive" in cannot.err
        elected = k.change("elect", "unclean", best, "--accept-loss")
        (row,) = elected.of("partition")
        assert (row["leader"], row["state"], row["lost_at_least"]) == (2, "done", 0)
        assert row["replicas"] == [1, 2, 3], "the order of replicas is as it was"
        forecast = json.loads((k.journal / f"{k.ids()[-1]}.json").read_text())["details"]["forecast"]
        assert [one["lost_at_least"] for one in forecast] == [40, 0, None]
        assert "cannot be undone" in k.change("journal", "undo", k.ids()[-1], status=4).err
        assert k.killed("elect", "unclean", worse, "--to", 1, "--accept-loss", fault="sent:1")
        k.change("journal", "resume", k.ids()[-1])
        (row,) = k("topic", "describe", worse).of("partition")
        assert (row["leader"], row["replicas"]) == (1, [1, 2, 3])
        assert k.change("elect", "unclean", *topics, "--accept-loss").of("change") == [], "both have leaders"
    finally:
        made.heal()
    await_isr(k, [best], 2, [1, 2, 3])
    ends = {}
    for topic in topics:
        rows = k("topic", "delete-records", topic, "--to-offset", -1, "--dry-run").of("deletion")
        ends[topic] = rows[0]["high_watermark"]
    assert ends == {best: 100, worse: 60}
