"""Changes over Kafka's own protocol: what brokers do, what is refused, what can be taken back and gone on with."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

import kctl
from tests.brokers.cluster import Cluster, eventually
from tests.brokers.wire.conftest import WireKctl, fill

SPREAD = "1:2,2:3,3:1"


def plan_of(folder: Path, topic: str, *targets: list[int]) -> Path:
    """A plan file as Kafka's own tool takes it."""
    rows = [{"topic": topic, "partition": p, "replicas": ids} for p, ids in enumerate(targets)]
    path = folder / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    return path


def configs_of(k: WireKctl, topic: str) -> dict[str, str]:
    (row,) = k("topic", "describe", topic).of("topic")
    return dict(row["configs"])


def test_a_topic_from_creation_to_deletion(w: Cluster, k: WireKctl, topic: str) -> None:
    create = ("topic", "create", topic, "--partitions", 3, "--replication-factor", 2)
    k.change(*create, "--config", "retention.ms=900000")
    described = k("topic", "describe", topic)
    (row,) = described.of("topic")
    partitions = described.of("partition")
    assert row["configs"] == {"retention.ms": "900000"} and row["replication_factor"] == 2
    assert (len(row["topic_id"] or "") == 22) == (w.version != "2.4")
    assert all(
        p["leader"] == p["replicas"][0] and sorted(p["isr"]) == sorted(p["replicas"]) for p in partitions
    )
    assert "already exists" in k.change(*create, status=4).err
    k.change("topic", "alter", topic, "--partitions", 5)
    k.change("topic", "config", "set", topic, "retention.ms=1000", "cleanup.policy=compact")
    assert configs_of(k, topic) == {"retention.ms": "1000", "cleanup.policy": "compact"}
    k.change("topic", "config", "unset", topic, "retention.ms")
    assert configs_of(k, topic) == {"cleanup.policy": "compact"}
    assert len(k.replicas(topic)) == 5
    k.change("topic", "delete", topic)
    assert topic not in [t["topic"] for t in k("topic", "list").of("topic")]
    gone = k("topic", "describe", topic)
    assert gone.status == 3 and gone.err.startswith(f"kctl: no topic {topic}\n")
    assert k.change("topic", "delete", topic, status=3).rows == []


def test_a_topic_is_created_again_as_soon_as_it_is_deleted(w: Cluster, k: WireKctl, topic: str) -> None:
    # The controller of a cluster with ZooKeeper has the topic for longer than brokers show it.
    for _ in range(3):
        k.change("topic", "create", topic, "--replica-assignment", ",".join(["1:2:3"] * 6))
        k.change("topic", "delete", topic)


def test_a_reassignment_from_python(
    w: Cluster, k: WireKctl, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in k.environment.items():
        monkeypatch.setenv(name, value)
    k.change("topic", "create", topic, "--replica-assignment", "1:2,2:3")
    with kctl.connect(bootstrap_server=w.bootstrap, timeout=60) as cluster:
        assert cluster.cluster_id
        plan = cluster.plan_reassignment(topics=[topic], brokers=[1, 3])
        assert all(set(replicas) == {1, 3} for replicas in plan.targets.values())
        assert {row.action for row in plan.diff()} == {"request"} and len(k.replicas(topic)) == 2
        change = plan.execute(reason="from Python", throttle=50_000_000)
        assert change.finished and change.reason == "from Python"
        with pytest.raises(kctl.Refused, match="nothing to do"):
            plan.execute(reason="again")
    assert all(set(replicas) == {1, 3} for replicas in k.replicas(topic))
    k.change("journal", "undo", change.id)
    assert k.replicas(topic) == [[1, 2], [2, 3]]


def test_the_controller_is_asked_beforehand(k: WireKctl, topic: str) -> None:
    ran = k(
        "topic",
        "create",
        topic,
        "--replica-assignment",
        "1:2",
        "--config",
        "compression.type=zip",
        "--dry-run",
    )
    assert ran.status == 2 and "compression.type" in ran.err
    assert topic not in [t["topic"] for t in k("topic", "list").of("topic")] and k.ids() == []


def test_a_dry_run_shows_the_request_and_sends_nothing(k: WireKctl, topic: str) -> None:
    ran = k("topic", "create", topic, "--replica-assignment", SPREAD, "--dry-run")
    (write,) = ran.of("write")
    assert ran.status == 0 and write["target"] == f"CreateTopics {topic}"
    assert json.loads(write["after"])["assignments"] == {"0": [1, 2], "1": [2, 3], "2": [3, 1]}
    assert topic not in [t["topic"] for t in k("topic", "list").of("topic")]


def test_a_reassignment_with_throttles_and_its_undo(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    k.change("topic", "create", topic, "--replica-assignment", SPREAD)
    fill(w, topic)
    others = "leader.replication.throttled.replicas=7:9"
    k.change("topic", "config", "set", topic, others)
    plan = plan_of(tmp_path, topic, [2, 3], [3, 1], [3, 1])
    assert k("reassign", "verify", plan).status == 5
    k.change("reassign", "execute", plan, "--throttle", "10MiB")
    assert k("reassign", "verify", plan).status == 0
    assert k.replicas(topic) == [[2, 3], [3, 1], [3, 1]]
    assert configs_of(k, topic) == dict([others.split("=")]), "what others have listed stays"
    brokers = k("config", "get", "--entity-type", "brokers").of("config")
    assert not [row for row in brokers if "throttled" in row["key"]]
    k.change("journal", "undo", k.ids()[-1])
    assert k.replicas(topic) == [[1, 2], [2, 3], [3, 1]]


def test_a_move_that_runs_is_seen_and_cancelled(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    fill(w, topic, records=300, size=20_000)
    plan = plan_of(tmp_path, topic, [1, 3])
    k.change("reassign", "execute", plan, "--throttle", "1000", "--no-wait")
    ran = k("reassign", "verify", plan, "--sample", 0)
    assert ran.status == 5 and [p["state"] for p in ran.of("partition")] == ["in_progress"]
    (row,) = k("reassign", "status", plan, "--sample", "0.5").of("partition")
    assert row["bytes_left"] > 0, "brokers tell the sizes"
    assert row["bytes_per_second"] >= 0
    assert w.version == "2.4" or row["seconds_left"] > 0, (
        "at that rate, or the throttle's where brokers tell it"
    )
    other = tmp_path / "other"
    other.mkdir()
    refused = k.change("reassign", "execute", plan_of(other, topic, [3, 2]), status=4)
    assert "already being moved" in refused.err or "already being reassigned" in refused.err
    k.change("reassign", "cancel", plan)
    assert k.replicas(topic) == [[1, 2]]
    k.change("reassign", "throttle", "clear", plan)
    assert configs_of(k, topic) == {}
    of_all = "leader.replication.throttled.replicas"
    k.change("topic", "config", "set", topic, f"{of_all}=*")
    cleared = k.change("reassign", "throttle", "clear", "--unused", status=None)
    # An earlier test's topic names broker 9, which there is not.
    assert cleared.status == (3 if "broker 9 is not alive" in cleared.err else 0), cleared.err
    assert f"{of_all} of topic {topic} stays: `*` covers all replicas" in cleared.err
    k.change("topic", "config", "unset", topic, of_all)


def test_preferred_leaders_come_back(k: WireKctl, topic: str, tmp_path: Path) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2,2:1")
    k.change("reassign", "execute", plan_of(tmp_path, topic, [2, 1], [2, 1]))
    leaders = [p["leader"] for p in k("topic", "describe", topic).of("partition")]
    assert leaders == [1, 2], "the order alone moves no leader"
    k.change("elect", "preferred", "--topics", topic)
    assert [p["leader"] for p in k("topic", "describe", topic).of("partition")] == [2, 2]
    assert k.change("elect", "preferred", "--topics", topic).of("change") == []


def test_dead_brokers_are_refused(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    w.kill(3)
    w.wait_until_gone(3)
    for _ in eventually("broker 3 is seen to be dead"):
        if [b["broker_id"] for b in k("cluster", "brokers").of("broker") if b["is_alive"]] == [1, 2]:
            break
    assert "not alive" in k.change("reassign", "execute", plan_of(tmp_path, topic, [1, 3]), status=4).err
    assert (
        "not alive" in k.change("topic", "create", f"{topic}-x", "--replica-assignment", "3:1", status=4).err
    )
    assert k.replicas(topic) == [[1, 2]] and len(k.ids()) == 1
    assert k("topic", "list").status == 0, "the rest of the cluster answers"


def test_an_undo_takes_back_only_its_own(k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    created = k.ids()[-1]
    k.change("topic", "config", "set", topic, "retention.ms=1000")
    k.change("topic", "config", "set", topic, "retention.ms=2000")
    assert "not '1000'" in k.change("journal", "undo", k.ids()[1], status=4).err
    k.change("journal", "undo", k.ids()[2])
    k.change("journal", "undo", k.ids()[1])
    assert configs_of(k, topic) == {}
    k.change("journal", "undo", created)
    assert topic not in [t["topic"] for t in k("topic", "list").of("topic")]


def test_an_undo_of_a_creation_warns_of_records(k: WireKctl, w: Cluster, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    fill(w, topic, records=3)
    said = k.change("journal", "undo", k.ids()[0]).err
    assert f"3 records were written to topic {topic} since, and would be deleted with it" in said


def test_an_undo_knows_the_topic_that_it_created(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    if w.version == "2.4":
        pytest.skip("topics have no ids before 2.8")
    create = ("topic", "create", topic, "--replica-assignment", "1:2")
    k.change(*create)
    somebody = WireKctl(w, tmp_path / "another-journal")
    somebody.change("topic", "delete", topic)
    somebody.change(*create)
    assert "deleted and created again" in k.change("journal", "undo", k.ids()[0], status=4).err
    assert k.replicas(topic) == [[1, 2]]


def test_what_changes_between_plan_and_write_is_seen(k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    k.change("topic", "config", "set", topic, "retention.ms=1000")
    with k.stopped("topic", "config", "set", topic, "retention.ms=2000", at="before-write:0") as late:
        k.change("topic", "config", "set", topic, "retention.ms=3000")
        ran = late.go_on()
    assert ran.status == 4 and "not '1000' as it was read; nothing was written" in ran.err
    assert configs_of(k, topic) == {"retention.ms": "3000"}


@pytest.mark.parametrize(
    "point", ["journalled", "before-write:0", "after-write:0", "written:0", "finished:0"]
)
def test_a_killed_reassignment_is_resumed(k: WireKctl, topic: str, tmp_path: Path, point: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    plan = plan_of(tmp_path, topic, [2, 3])
    assert k.killed("reassign", "execute", plan, "--throttle", "10MiB", fault=point)
    k.change("journal", "resume", k.ids()[-1])
    assert k.replicas(topic) == [[2, 3]] and configs_of(k, topic) == {}
    assert k.state(k.ids()[-1]) == "applied"


def test_another_cluster_than_the_contexts_is_refused(k: WireKctl, topic: str) -> None:
    ran = k(
        "topic",
        "create",
        topic,
        "--replica-assignment",
        "1:2",
        "--yes",
        KCTL_CLUSTER_ID="AAAAAAAAAAAAAAAAAAAAAA",
    )
    assert ran.status == 4 and "expects AAAAAAAAAAAAAAAAAAAAAA" in ran.err


def test_a_dead_server_in_the_list_does_no_harm(w: Cluster, k: WireKctl) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = k("cluster", "describe", "--bootstrap-server", f"{dead},{w.bootstrap}")
    assert ran.status == 0 and ran.of("cluster")[0]["brokers"] == 3


@pytest.mark.brokers
def test_an_unreachable_cluster_is_one_line(tmp_path: Path) -> None:
    from tests.conftest import kctl

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        env: dict[str, Any] = {"KCTL_CONFIG": "/dev/null/none"}
        ran = kctl("topic", "list", "--bootstrap-server", address, "--timeout", "2", env=env)
        assert (ran.status, ran.err.splitlines()[0]) == (
            3,
            f"kctl: no broker of {address} can be used: connection refused",
        )
        silent.listen()
        ran = kctl("topic", "list", "--bootstrap-server", address, "--timeout", "2", env=env)
        assert (ran.status, ran.err.splitlines()[0]) == (
            3,
            f"kctl: no broker of {address} can be used: a connection is accepted, but no answer came within 2 s",
        )


def test_health_and_prediction(k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2,2:1")
    health = {row["check"]: row["status"] for row in k("cluster", "health").of("health")}
    assert health["controller"] == health["offline"] == health["dead-brokers"] == "good"
    predicted = k("cluster", "predict", "--stop", 1, "--topics", topic).of("prediction")
    assert [(p["outcome"], p["leader"]) for p in predicted] == [("new_leader", 2), ("isr_shrinks", 2)]


# --- files ----------------------------------------------------------------------------------------------


def test_files_move_replicas_and_undo_moves_them_back(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    """Out over three brokers, as listed and by a placement, up to --max-bytes; applied twice, nothing is left to do."""
    before = [[1, 2], [1, 2], [2, 1]]
    k.change("topic", "create", topic, "--replica-assignment", "1:2,1:2,2:1")
    for partition in range(3):
        fill(w, topic, partition=partition, records=30, size=20_000)
    file = tmp_path / "cluster.yaml"
    for shape, brokers in (("replicas: '2:3,3:1,1:2'", {1, 2, 3}), ("placement: brokers 2,3", {2, 3})):
        file.write_text(f"topics:\n  {topic}:\n    {shape}\n")
        known = k.ids()
        ran = k("apply", file, "--max-bytes", "10KiB", "--yes")
        assert ran.status == 4 and "and --max-bytes is 10,240; nothing was written" in ran.err, ran.err
        assert k.ids() == known and k.replicas(topic) == before
        k.change("apply", file, "--max-bytes", "100MiB")
        (id,) = set(k.ids()) - set(known)
        rows = k("topic", "describe", topic).of("partition")
        assert {broker for row in rows for broker in row["replicas"]} == brokers
        assert [sorted(row["isr"]) for row in rows] == [sorted(row["replicas"]) for row in rows]
        if "replicas" in shape:
            assert [row["replicas"] for row in rows] == [[2, 3], [3, 1], [1, 2]]
        assert k("diff", file, "--exit-code").status == 0
        k.change("apply", file)
        assert set(k.ids()) - set(known) == {id}
        k.change("journal", "undo", id)
        assert k.replicas(topic) == before
        assert k("diff", file, "--exit-code").status == 5
    assert k("reassign", "throttle", "list").of("throttle") == []
