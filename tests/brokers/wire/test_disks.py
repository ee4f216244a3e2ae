"""Moves between the log directories of one broker: planned, carried out, watched, cancelled, undone, cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.cluster import Cluster, _format, eventually, kraft_cluster
from tests.brokers.test_runbooks import PROTOCOL, Four
from tests.brokers.traffic import traffic
from tests.brokers.wire.conftest import WireKctl, fill
from tests.conftest import Ran

VERSIONS = [
    pytest.param("4.3", marks=pytest.mark.brokers),
    pytest.param("3.9", marks=[pytest.mark.brokers, pytest.mark.matrix]),
    pytest.param("4.1", marks=[pytest.mark.brokers, pytest.mark.matrix]),
]
DISK_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture(scope="module", params=VERSIONS)
def shared(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Combined nodes 1, 2, 3 with two disks each, which copy little at a time: a throttle counts what was fetched.

    By default they fetch a megabyte, and a copy of three is there after two windows of the throttle, or before it is
    in force on a slow machine.
    """
    with kraft_cluster(request.param, disks=2, properties={"replica.fetch.max.bytes": 16384}) as c:
        yield c


@pytest.fixture
def c(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.heal()


@pytest.fixture
def k(c: Cluster, tmp_path: Path) -> WireKctl:
    """kctl for the cluster, once all brokers are alive and nothing is slowed down."""
    kctl = WireKctl(c, tmp_path / "journal")
    for _ in eventually("three brokers alive"):
        if [b["is_alive"] for b in kctl("cluster", "brokers").of("broker")] == [True] * 3:
            break
    return kctl


def disks(c: Cluster, broker: int) -> tuple[str, str]:
    folder = c.brokers[broker].folder
    return str(folder / "data"), str(folder / "data-2")


def places(c: Cluster, topic: str, broker: int) -> dict[int, str]:
    """The directory of each partition, once it is there alone.

    A broker gives the copy its name first, and then takes it from the log that it replaces
    (LogManager.replaceCurrentWithFutureLog @ 3.9.0).
    """
    for _ in eventually("each partition is in one directory"):
        found: dict[int, list[str]] = {}
        for path in disks(c, broker):
            for folder in Path(path).glob(f"{topic}-*"):
                name = folder.name.removeprefix(f"{topic}-")
                if "." not in name:
                    found.setdefault(int(name), []).append(path)
        if all(len(paths) == 1 for paths in found.values()):
            break
    return {partition: paths[0] for partition, paths in sorted(found.items())}


def other(c: Cluster, broker: int, path: str) -> str:
    return next(one for one in disks(c, broker) if one != path)


def made(
    c: Cluster, k: WireKctl, topic: str, *replicas: str, records: int = 100, size: int = 1000
) -> dict[int, str]:
    """A topic with records in each partition; the directories of the first partition's first broker."""
    k.change("topic", "create", topic, "--replica-assignment", ",".join(replicas or ("1:2",)))
    for partition in range(len(replicas) or 1):
        fill(c, topic, partition=partition, records=records, size=size)
    return places(c, topic, int((replicas or ("1:2",))[0].split(":")[0]))


def plan_of(folder: Path, topic: str, replicas: list[int], log_dirs: list[str], partition: int = 0) -> Path:
    path = folder / f"{topic}.json"
    row = {"topic": topic, "partition": partition, "replicas": replicas, "log_dirs": log_dirs}
    path.write_text(json.dumps({"version": 1, "partitions": [row]}))
    return path


def states(ran: Ran) -> list[tuple[str, Any]]:
    return [(row["state"], row["reason"]) for row in ran.of("partition")]


def test_a_plan_with_log_dirs_is_carried_out(c: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    now = made(c, k, topic)[0]
    to = other(c, 1, now)
    plan = plan_of(tmp_path, topic, [1, 2], [to, "any"])
    assert states(k("reassign", "verify", plan)) == [
        ("not_started", f"it is in {now} of broker 1, not in {to}")
    ]
    (write,) = k("reassign", "execute", plan, "--dry-run").of("write")
    assert write["target"] == "AlterReplicaLogDirs broker 1"
    row = {"topic": topic, "partition": 0}
    assert json.loads(write["before"]) == {"log_dirs": [{**row, "log_dir": now}]}
    assert json.loads(write["after"]) == {"broker_id": 1, "partitions": [{**row, "log_dir": to}]}
    ran = k.change("reassign", "execute", plan)
    (move,) = ran.of("move")
    assert (move["broker_id"], move["from_log_dir"], move["to_log_dir"]) == (1, now, to)
    assert (move["from"], move["to"], move["adding"], move["removing"]) == ([1, 2], [1, 2], [], [])
    assert places(c, topic, 1) == {0: to}
    assert k("reassign", "verify", plan).status == 0
    assert "nothing to do" in k.change("reassign", "execute", plan).err
    k.change("journal", "undo", k.ids()[-1])
    assert places(c, topic, 1) == {0: now}
    assert states(k("reassign", "verify", plan))[0][0] == "not_started"


def slowly(c: Cluster, k: WireKctl, topic: str, folder: Path) -> tuple[Path, str, str]:
    """A plan whose copy is under way on broker 1 and stays so; where it comes from and goes to."""
    now = made(c, k, topic, records=3000)[0]
    to = other(c, 1, now)
    plan = plan_of(folder, topic, [1, 2], [to, "any"])
    k.change("reassign", "execute", plan, "--throttle", 1000, "--no-wait")
    for _ in eventually("the copy has begun"):
        if any(row["future_partitions"] for row in k("cluster", "disks", 1).of("log_dir")):
            return plan, now, to
    raise AssertionError


def rates(k: WireKctl) -> dict[str, str]:
    found = k("config", "get", "--entity-type", "brokers").of("config")
    return {
        row["entity_name"]: row["value"]
        for row in found
        if "bytes.per" in row["key"] or "thrott" in row["key"]
    }


def test_a_copy_is_watched_and_cancelled(c: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    plan, now, to = slowly(c, k, topic, tmp_path)
    assert rates(k) == {"1": "1000"}
    for about in ((plan,), ()):
        (row,) = k("reassign", "status", *about, "--sample", "1s").of("partition")
        assert row["state"] == "in_progress"
        assert row["reason"] == f"broker 1 copies it from {now} to {to}, throttled to 1,000 bytes a second"
        assert row["bytes_left"] > 0 and row["bytes_per_second"] >= 0
        assert row["seconds_left"] == -(-row["bytes_left"] // 1000)
    assert states(k("reassign", "verify", plan, "--sample", "0"))[0][0] == "in_progress"
    back = k("reassign", "plan", "--topics", topic, "--log-dir", f"1={now}", "--to", tmp_path / "back.json")
    assert [(m["from_log_dir"], m["to_log_dir"]) for m in back.of("move")] == [(to, now)]
    ran = k.change("reassign", "cancel", plan)
    assert ran.of("change")[0]["title"] == "cancel 1 move between disks"
    assert places(c, topic, 1) == {0: now} and rates(k) == {}
    assert states(k("reassign", "verify", plan)) == [
        ("failed", f"it was asked for, and it is in {now} of broker 1, not in {to}")
    ]
    k.change("journal", "undo", k.ids()[-1])
    assert places(c, topic, 1) == {0: to}


def test_undo_while_it_copies(c: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    _, now, _ = slowly(c, k, topic, tmp_path)
    k.change("journal", "undo", k.ids()[-1])
    assert places(c, topic, 1) == {0: now} and rates(k) == {}


def test_a_replica_that_comes_goes_to_its_directory(
    c: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    made(c, k, topic, "1:2", "1:2", "1:2", "1:2")
    for partition, to in enumerate([*disks(c, 3), *disks(c, 3)]):
        k.change("reassign", "execute", plan_of(tmp_path, topic, [3, 2], [to, "any"], partition))
        assert places(c, topic, 3)[partition] == to
    for id in k.ids()[-4:]:
        k.change("journal", "undo", id)
    assert k.replicas(topic) == [[1, 2]] * 4


@pytest.mark.parametrize("broker", [1, 2, 9])
def test_what_cannot_be_is_refused_before_the_question(
    c: Cluster, k: WireKctl, topic: str, tmp_path: Path, broker: int
) -> None:
    made(c, k, topic, "1:2")
    usable = f"log directories of broker 1 that can be used: {', '.join(disks(c, 1))}"
    if broker == 1:
        plan = plan_of(tmp_path, topic, [1, 2], ["/nowhere", "any"])
        why = f"broker 1 has no log directory /nowhere; nothing was written; {usable}"
    elif broker == 2:
        c.kill(2)
        for _ in eventually("broker 2 is known to be dead"):
            if not {row["broker_id"]: row["is_alive"] for row in k("cluster", "brokers").of("broker")}.get(2):
                break
        plan = plan_of(tmp_path, topic, [1, 2], ["any", disks(c, 2)[0]])
        why = "broker 2 does not report its log directories: it is not alive; nothing was written"
    else:
        plan = plan_of(tmp_path, topic, [1, 2], ["data", "any"])
        assert (
            "'data' is not an absolute path, nor `any`" in k.change("reassign", "execute", plan, status=2).err
        )
        return
    refused = k.change("reassign", "execute", plan, status=4)
    assert refused.errors[0].startswith(f"kctl: {why}") and len(refused.errors) == 1 and not k.ids()[1:]
    ran = k(
        "reassign", "plan", "--log-dir", f"{broker}=/nowhere", "--topics", topic, "--to", tmp_path / "p.json"
    )
    assert ran.status == 4 and "broker" in ran.err


def test_disks_are_balanced(c: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    """Few moves; the plan's rollback brings everything back, and Kafka's own tool takes both."""
    made(c, k, topic, *["3:2"] * 6, records=1000)
    target = disks(c, 3)[0]
    k("reassign", "plan", "--topics", topic, "--log-dir", f"3={target}", "--to", tmp_path / "all.json")
    k.change("reassign", "execute", tmp_path / "all.json")
    assert set(places(c, topic, 3).values()) == {target}
    ran = k("reassign", "plan", "--balance-disks", 3, "--topics", topic, "--to", tmp_path / "even.json")
    moves, loads = ran.of("move"), ran.of("load")
    assert {move["to_log_dir"] for move in moves} == {disks(c, 3)[1]} and 1 <= len(moves) <= 4
    before, after = (
        [load[f"size_in_bytes_{when}"] for load in loads if load["broker_id"] == 3]
        for when in ("before", "after")
    )
    assert sum(before) == sum(after) and max(after) - min(after) < max(before) - min(before)
    k.change("reassign", "execute", tmp_path / "even.json")
    shown = {r["log_dir"]: r["size_in_bytes"] for r in k("cluster", "disks", 3).of("log_dir")}
    assert [shown[load["log_dir"]] for load in loads] == after
    tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    said = c.tool(
        tool,
        "--bootstrap-server",
        c.bootstrap,
        "--verify",
        "--reassignment-json-file",
        tmp_path / "even.json",
    )
    assert said.count("is completed") >= len(moves), said
    k.change("reassign", "execute", tmp_path / "even.rollback.json")
    assert set(places(c, topic, 3).values()) == {target}
    again = k("reassign", "plan", "--balance-disks", 3, "--to", tmp_path / "again.json")
    assert again.status == 0


# --- cut off ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wanted", [{"sent:1", "sent:2", "finished:0"}, pytest.param(None, marks=pytest.mark.matrix)]
)
def test_killed_at_every_step_under_load(
    c: Cluster, k: WireKctl, topic: str, tmp_path: Path, wanted: set[str] | None
) -> None:
    """A move between disks with one between brokers: gone on with, or undone; no acknowledged record is lost."""
    now = made(c, k, topic, "1:2")[0]
    home = {1: now, 2: places(c, topic, 2)[0]}
    away = {broker: other(c, broker, path) for broker, path in home.items()}
    there = tmp_path / "there.json"
    there.write_bytes(plan_of(tmp_path, topic, [1, 3], [away[1], disks(c, 3)[1]]).read_bytes())
    back = plan_of(tmp_path, topic, [1, 2], [home[1], home[2]])
    execute = "reassign", "execute", there, "--throttle", "1MiB"

    def is_at(replicas: list[int], path: str) -> bool:
        return k.replicas(topic) == [replicas] and places(c, topic, 1)[0] == path and rates(k) == {}

    # Each step copies all that is there, under the throttle: what was written ten times as fast made each slower than
    # the one before, from 5 s to 70 s.
    with traffic(c, topic, 1, pause_ms=20) as running:
        points = list(dict.fromkeys(k.points(*execute, trace=tmp_path / "trace")))
        assert is_at([1, 3], away[1]) and places(c, topic, 3) == {0: disks(c, 3)[1]}
        assert {
            "before-write:0",
            "sent:1",
            "sent:2",
            "after-write:0",
            "finished:0",
            "before-write:1",
            "closed",
        } <= {*points}
        k.change("reassign", "execute", back)
        for point in points if wanted is None else sorted(wanted):
            known = set(k.ids())
            assert k.killed(*execute, fault=point), point
            for id in set(k.ids()) - known:
                ran = k("journal", "resume", id, "--yes", "--timeout", "180")
                assert ran.status == 0 or (ran.status == 4 and "is finished" in ran.err), (point, ran.err)
                assert is_at([1, 3], away[1]), point
            k.change("reassign", "execute", back)
            assert is_at([1, 2], home[1]), point
            known = set(k.ids())
            assert k.killed(*execute, fault=point), point
            for id in set(k.ids()) - known:
                k.change("journal", "undo", id)
            assert is_at([1, 2], home[1]), point
        running.require_progress()
    running.require_nothing_lost()
    assert k("journal", "verify").rows == []


def test_brokers_killed_while_they_copy(c: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    """The copy goes on after a restart, and is seen while the broker is away to wait for it."""
    made(c, k, topic, "1:2", "2:1", "1:2")
    with traffic(c, topic, 3) as running:
        plan, now, to = slowly(c, k, f"{topic}-copied", tmp_path)
        c.kill(1)
        for _ in eventually("broker 1 is known to be dead"):
            found = k("reassign", "verify", plan, "--sample", "0").of(
                "partition"
            )  # none without a controller
            if [row["state"] for row in found] == ["in_progress"] and "which is not alive" in found[0][
                "reason"
            ]:
                break
        c.start(1)
        k.change("config", "unset", "--entity-type", "brokers", "--entity-name", 1, DISK_RATE)
        for _ in eventually("it is there"):
            if k("reassign", "verify", plan, "--sample", "0").status == 0:
                break
        assert places(c, f"{topic}-copied", 1) == {0: to} != {0: now}
        running.require_progress()
    running.require_nothing_lost()


# --- the runbook --------------------------------------------------------------------------------------------


def test_a_failed_disk_is_replaced(c: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    """Under load; the disk comes back empty."""
    made(c, k, topic, *["2:1"] * 6, size=10_000)
    broker, failed = c.brokers[2], Path(disks(c, 2)[1])
    (on_it, *_) = [p for p, path in places(c, topic, 2).items() if path == str(failed)]
    four = Four(c, PROTOCOL, tmp_path)

    def replace(_: int) -> None:
        failed.unlink()
        failed.mkdir()
        _format(c, broker, "--ignore-formatted")

    with traffic(c, topic, 6) as running:
        failed.rename(broker.folder / "aside")
        failed.touch()
        for _ in eventually("the broker and the controller notice"):
            (row,) = [p for p in k("topic", "describe", topic).of("partition") if p["partition"] == on_it]
            if row["offline_replicas"] == [2] and row["leader"] == 1:
                break
        refused = k("reassign", "plan", "--balance-disks", 2, "--to", tmp_path / "refused.json")
        assert refused.status == 4 and f"while {failed} has failed" in refused.err
        four.carry_out("replace-a-failed-disk", **{"replace-disk": replace, "stop-broker": c.stop})
        running.require_progress()
    running.require_nothing_lost()
    assert {row["state"] for row in k("cluster", "disks").of("log_dir")} == {"online"}
    described = k("topic", "describe", topic).of("partition")
    assert {(p["leader"], tuple(sorted(p["isr"]))) for p in described} == {(2, (1, 2))}
    loads = [row["size_in_bytes"] for row in k("cluster", "disks", 2).of("log_dir")]
    assert min(loads) > 0 and rates(k) == {}


# --- throttles of moves between brokers ---------------------------------------------------------------------


@pytest.mark.parametrize("how", ["cancel", "undo"])
def test_throttles_go_from_dead_brokers_too(
    c: Cluster, k: WireKctl, topic: str, tmp_path: Path, how: str
) -> None:
    """What a dead broker cannot take off, the controller does; nobody reads it before the broker is back."""
    made(c, k, topic, "1:2")
    fill(c, topic, records=200, size=20_000)
    plan = plan_of(tmp_path, topic, [1, 3], ["any", "any"])
    k.change("reassign", "execute", plan, "--throttle", 1000, "--no-wait")
    assert set(rates(k)) == {"1", "2", "3"}
    id = k.ids()[-1]
    c.kill(3)
    for _ in eventually("broker 3 is known to be dead"):
        if not {row["broker_id"]: row["is_alive"] for row in k("cluster", "brokers").of("broker")}.get(3):
            break
    ran = k.change("reassign", "cancel", plan) if how == "cancel" else k.change("journal", "undo", id)
    assert ran.of("change")[0]["finished"]
    assert k.replicas(topic) == [[1, 2]] and rates(k) == {}
    assert k("topic", "describe", topic).of("topic")[0]["configs"] == {}
    c.start(3)
    for _ in eventually("broker 3 is back"):
        if {row["broker_id"]: row["is_alive"] for row in k("cluster", "brokers").of("broker")}.get(3):
            break
    assert rates(k) == {}


def test_a_move_is_cancelled_although_its_disk_failed(
    c: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    """It ends soon, and its throttle goes."""
    made(c, k, topic, "1:2", records=3000)
    failed = Path(disks(c, 3)[1])  # the other has the metadata log, without which a broker ends
    plan = plan_of(tmp_path, topic, [1, 3], ["any", str(failed)])
    running = k.start("reassign", "execute", plan, "--throttle", 1000, "--yes")
    for _ in eventually("broker 3 has begun"):
        if places(c, topic, 3) == {0: str(failed)}:
            break
    running.kill()
    aside = failed.rename(c.brokers[3].folder / "aside")
    failed.touch()
    try:
        for _ in eventually("the broker notices"):
            if "failed" in [row["state"] for row in k("cluster", "disks", 3).of("log_dir")]:
                break
        assert k("reassign", "status", plan, "--sample", 0).status == 5
        ran = k("reassign", "cancel", plan, "--yes", "--timeout", 60)
        assert ran.status == 0 and ran.of("change")[0]["finished"], ran.err
        assert k.replicas(topic) == [[1, 2]] and rates(k) == {}
        assert k("topic", "describe", topic).of("topic")[0]["configs"] == {}
    finally:
        c.kill(3)
        failed.unlink()
        aside.rename(failed)
