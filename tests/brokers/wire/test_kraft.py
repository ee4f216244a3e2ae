"""KRaft clusters of today: controllers apart from brokers, two log directories a broker; quorum, disks, features."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.cluster.versions import parse_version
from tests.brokers.cluster import Cluster, _format, eventually, kraft_cluster
from tests.brokers.test_runbooks import PROTOCOL, Four
from tests.brokers.wire.conftest import WireKctl, fill
from tests.conftest import Ran

VERSIONS = [
    pytest.param("4.3", marks=pytest.mark.brokers),
    pytest.param("3.9", marks=[pytest.mark.brokers, pytest.mark.matrix]),
    pytest.param("4.1", marks=[pytest.mark.brokers, pytest.mark.matrix]),
]


@pytest.fixture(scope="module", params=VERSIONS)
def shared(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Brokers 1, 2, 3 with two disks each, voters 101, 102, 103 that can be changed."""
    with kraft_cluster(request.param, controllers=3, dynamic=True, disks=2) as c:
        yield c


@pytest.fixture
def c(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.heal()


@pytest.fixture
def k(c: Cluster, tmp_path: Path) -> WireKctl:
    """kctl for the cluster, once everything in it is well."""
    kctl = WireKctl(c, tmp_path / "journal")
    wrong: list[Any] = []
    for _ in eventually(lambda: f"the cluster is healthy: {wrong}"):
        ran = kctl("cluster", "health")
        wrong[:] = [row for row in ran.of("health") if row["status"] in ("warning", "error")] or [ran.err]
        if ran.status == 0:
            return kctl
    raise AssertionError


def sick(ran: Ran) -> dict[str, list[str]]:
    """What health found that is wrong, by check."""
    return {r["check"]: r["examples"] for r in ran.of("health") if r["status"] in ("warning", "error")}


# --- disks ----------------------------------------------------------------------------------------------


def test_disks_of_some_brokers(c: Cluster, k: WireKctl) -> None:
    assert {row["broker_id"] for row in k("cluster", "disks", 3).of("log_dir")} == {3}
    assert k("cluster", "disks", 9).errors == ["kctl: no broker 9; there are 1,2,3"]


def test_a_failed_disk_is_seen(c: Cluster, k: WireKctl, topic: str) -> None:
    """A replica on it is not alive: not for describe, health, elections and plans."""
    k.change("topic", "create", topic, "--replica-assignment", ",".join([*["2:1"] * 6, "3:1"]))
    fill(c, topic)
    broker = c.brokers[2]
    failed = broker.folder / "data-2"
    on_it = sorted(int(one.name.rpartition("-")[2]) for one in failed.glob(f"{topic}-*"))
    assert on_it
    aside = failed.rename(broker.folder / "aside")
    failed.touch()
    try:
        for _ in eventually("the broker notices"):
            fill(c, topic, records=1, partition=on_it[0])
            ran = k("cluster", "disks")
            if ran.status:
                break
        states = {(r["broker_id"], Path(r["log_dir"]).name): r for r in ran.of("log_dir")}
        assert ran.status == 5 and states[2, "data-2"]["state"] == "failed"
        assert (states[2, "data-2"]["error"], states[2, "data-2"]["partitions"]) == (
            "KAFKA_STORAGE_ERROR",
            None,
        )
        assert [r["state"] for r in states.values()].count("online") == 5
        for _ in eventually("the controller has heard of it"):
            described = {p["partition"]: p for p in k("topic", "describe", topic).of("partition")}
            if all(described[p]["offline_replicas"] == [2] and described[p]["leader"] == 1 for p in on_it):
                break
        assert [p for p, row in described.items() if row["offline_replicas"]] == on_it
        found = sick(k("cluster", "health"))
        assert found["failed-disks"][0] == f"log directory {failed} of broker 2: KAFKA_STORAGE_ERROR"
        assert "broker 2 has " in found["failed-disks"][1]
        assert "isr-not-alive" not in found and "dead-brokers" not in found
        reasons = {
            r["partition"]: r["reason"] for r in k("elect", "status", "--topics", topic).of("partition")
        }
        assert set(reasons) == set(on_it)
        assert set(reasons.values()) == {"broker 2, its preferred leader, has it on a failed disk"}
        c.kill(3)
        for _ in eventually("broker 3 is known to be dead"):
            rows = k("cluster", "disks", 3).of("log_dir")
            if rows[0]["error"] == "it is not alive":
                break
        assert [(r["state"], r["log_dir"]) for r in rows] == [("unreachable", None)]
    finally:
        c.kill(2)
        failed.unlink()
        aside.rename(failed)


def test_after_kill_9_health_names_the_cause(c: Cluster, k: WireKctl) -> None:
    """Before the session of a killed broker is over, too."""
    c.kill(3)
    found = sick(k("cluster", "health"))
    assert "unreadable" not in found
    said = [*found.get("silent-brokers", []), *found.get("dead-brokers", [])]
    assert said and re.match("broker 3 (does not answer .*: connection refused|is not alive)", said[0]), found
    assert not re.search("(?i)znode|zookeeper", str(found))


# --- quorum and features --------------------------------------------------------------------------------


def controllers_of(k: WireKctl) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """The quorum, and its members by id; voters, which come first, before what is remembered of a lost disk."""
    ran = k("quorum", "describe")
    (quorum,) = ran.of("quorum")
    return quorum, {row["node_id"]: row for row in reversed(ran.of("quorum_member"))}


def test_levels_go_down_and_up_again(c: Cluster, k: WireKctl) -> None:
    name, low, high = ("metadata.version", 20, 21) if c.version == "3.9" else ("group.version", 0, 1)
    down = ("feature", "downgrade", f"{name}={low}")
    refused = k.change(*down, status=4)
    assert "needs --accept-downgrade; nothing was written" in refused.err and k.ids() == []
    assert "loses" in refused.err or c.version == "3.9"
    k.change(*down, "--accept-downgrade")
    levels = {row["name"]: row for row in k("feature", "list").of("feature")}
    releases = re.findall(r"\((\d+\.\d+)\S*\): ", " ".join(a for row in levels.values() for a in row["adds"]))
    assert all(parse_version(release) <= parse_version(c.version) for release in releases)
    assert (
        levels[name]["finalized_level"],
        levels[name]["proposed_level"],
        levels[name]["is_reversible"],
    ) == (low, high, True)
    (id,) = k.ids()
    k.change("journal", "undo", id)
    assert {row["name"]: row["finalized_level"] for row in k("feature", "list").of("feature")}[name] == high
    never = k("feature", "downgrade", "metadata.version=7", "--dry-run")
    assert never.status == 4 and "INVALID_UPDATE_VERSION" in never.err
    assert k("feature", "upgrade", f"{name}={low}", "--dry-run").status == 2
    assert k("feature", "upgrade", f"{name}={high}", "--dry-run").status == 0, "nothing to do"


def test_a_change_of_voters_is_undone(c: Cluster, k: WireKctl) -> None:
    k.change("quorum", "remove", 102)
    assert controllers_of(k)[0]["voters"] == [101, 103]
    k.change("journal", "undo", k.ids()[-1])
    assert controllers_of(k)[0]["voters"] == [101, 102, 103]


def test_no_majority_is_ever_given_away(c: Cluster, k: WireKctl) -> None:
    """Kafka answers such a removal as if nothing had happened, and can then commit nothing."""
    leader = controllers_of(k)[0]["leader_id"]
    dead, other = (id for id in (101, 102, 103) if id != leader)
    assert "is a broker, not a controller" in k.change("quorum", "add", 1, status=4).err
    c.kill(dead)
    for _ in eventually("the leader misses it"):
        quorum, _members = controllers_of(k)
        if quorum["dead_voters"] == [dead]:
            break
    for voter in (leader, other):
        refused = k.change("quorum", "remove", voter, status=4)
        assert "1 of 2 voters after the change are alive, which is no majority" in refused.err
    assert k("quorum", "describe").status == 5 and k.ids() == []
    foretold = k("cluster", "predict", "--stop", other)
    assert foretold.status == 5
    assert foretold.of("quorum")[0]["message"] == "no active controller: 1 of 3 voters would answer"
    rolling = k("cluster", "rolling", "--watch", other)
    assert rolling.status == 5 and "no majority" in rolling.of("restart")[0]["reason"]
    k.change("quorum", "remove", dead)
    assert controllers_of(k)[0]["voters"] == sorted((leader, other))
    c.start(dead)
    for _ in eventually("it is an observer"):
        if controllers_of(k)[1].get(dead, {}).get("is_answering"):
            break
    away = k.change("quorum", "add", dead, "--endpoint", "CONTROLLER://127.0.0.1:1", status=4)
    assert "does not accept connections at 127.0.0.1:1" in away.err
    k.change("quorum", "add", dead)
    assert controllers_of(k)[0]["voters"] == [101, 102, 103]


def test_a_lost_quorum_is_said_at_once(c: Cluster, k: WireKctl, topic: str) -> None:
    """Brokers never answer what the controller has to be asked; what they know themselves is shown.

    Of a controller that hangs the kernel still accepts connections.
    """
    k.change("topic", "create", topic, "--replica-assignment", "1:2,2:3")
    fill(c, topic)
    leader = controllers_of(k)[0]["leader_id"]
    survivor, other = (id for id in (101, 102, 103) if id != leader)
    c.kill(leader)
    c.pause(other)
    time.sleep(3)
    says = "no active controller: 1 of 3 voters answer; brokers still serve producers and consumers"
    for args, status in (
        (("topic", "list"), 0),
        (("config", "get", "--entity-type", "topics"), 0),
        (("elect", "status", "--topics", topic), 0),
        (("topic", "describe", topic), 3),
        (("cluster", "disks"), 0),
        (("cluster", "health"), 5),
        (("cluster", "controller"), 5),
        (("quorum", "describe"), 5),
        (("reassign", "status"), 3),
        (("topic", "create", "other", "--partitions", 1, "--replication-factor", 1, "--yes"), 3),
        (("segment", "verify", topic), 0),
    ):
        begun = time.monotonic()
        ran = k(*args)
        assert says in ran.err and ran.status == status, (args, ran.status, ran.err)
        assert time.monotonic() - begun < 30, f"{args}: an answer may take 60 s here, and was not waited for"
        assert ran.rows or args[0] in ("config", "reassign", "elect") or args[1] == "create", args
    assert [
        row["examples"] for row in k("cluster", "health").of("health") if row["check"] == "controller"
    ] == [["no active controller: 1 of 3 voters answer"]]
    quorum, members = controllers_of(k)
    assert (quorum["leader_id"], quorum["has_majority"]) == (None, False)
    assert {id: row["is_answering"] for id, row in members.items()} == {
        id: id == survivor for id in (101, 102, 103)
    }, "files name addresses alone, and the one that answers knows whose they are"
    assert "other" not in [row["topic"] for row in k("topic", "list").of("topic")] and len(k.ids()) == 1


def test_a_lost_controller_is_replaced(c: Cluster, k: WireKctl, tmp_path: Path) -> None:
    """The runbook, with a node of the same id and a new disk."""
    four = Four(c, PROTOCOL, tmp_path)
    for _ in eventually("103 is no leader"):
        if controllers_of(k)[0]["leader_id"] != 103:
            break
        c.restart(103)
    old = controllers_of(k)[1][103]["directory_id"]
    c.kill(103)
    shutil.rmtree(c.controllers[103].log_dir)
    for _ in eventually("the leader misses it"):
        if controllers_of(k)[0]["dead_voters"] == [103]:
            break

    def start(node: int) -> None:
        _format(c, c.controllers[node], "--no-initial-controllers")
        c.start(node)

    four.carry_out("lost-quorum-member", **{"start-controller": start})
    quorum, members = controllers_of(k)
    assert quorum["voters"] == [101, 102, 103] and quorum["dead_voters"] == []
    assert members[103]["directory_id"] not in (None, old)


def test_a_broker_is_unregistered_when_nothing_needs_it(
    c: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:3,3:2")
    assert "broker 3 is alive" in k.change("cluster", "unregister", 3, status=4).err
    c.kill(3)
    for _ in eventually("broker 3 is known to be dead"):
        alive = {row["broker_id"]: row["is_alive"] for row in k("cluster", "brokers").of("broker")}
        if not alive[3]:
            break
    described = k("topic", "describe").of("partition")  # the cluster is shared: other tests' topics too
    hosted = [f"{p['topic']}-{p['partition']}" for p in described if 3 in p["replicas"]]
    more = f" and {len(hosted) - 5} more" if len(hosted) > 5 else ""
    assert {f"{topic}-0", f"{topic}-1"} <= set(hosted)
    refused = k.change("cluster", "unregister", 3, status=4)
    assert refused.errors == [
        f"kctl: broker 3 is assigned {len(hosted)} replicas: {', '.join(hosted[:5])}{more}; nothing was written; "
        "`kctl reassign plan --drain 3 --to FILE` plans to move them away"
    ]
    k("reassign", "plan", "--drain", 3, "--to", tmp_path / "drain.json")
    k.change("reassign", "execute", tmp_path / "drain.json")
    k.change("cluster", "unregister", 3)
    again = k.change("cluster", "unregister", 3, status=None)
    assert again.status == (3 if c.version == "3.9" else 2), (
        "no such broker, which 3.9 tells only when it is asked"
    )
    assert 3 not in {row["broker_id"] for row in k("cluster", "brokers").of("broker")}
    c.start(3)
    for _ in eventually("it registers again"):
        if 3 in {row["broker_id"] for row in k("cluster", "brokers").of("broker") if row["is_alive"]}:
            break
