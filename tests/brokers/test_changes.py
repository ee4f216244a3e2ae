"""Changes on real clusters that are cut off, raced, or made where they must not be."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import sys
from itertools import count
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster
from tests.brokers.running import Kctl
from tests.brokers.traffic import traffic

NUMBERS = count()
pytestmark = pytest.mark.usefixtures("healthy")
POINTS = (
    "planned",
    "journalled",
    "before-write:0",
    "after-write:0",
    "written:0",
    "finished:0",
    "applied",
    "closed",
)
# What each command changes of topic T, and a value that shows whether it is so.
CHANGES: dict[str, tuple[object, ...]] = {
    "create": ("topic", "create", "T", "--partitions", 2, "--replication-factor", 2),
    "alter": ("topic", "alter", "T", "--partitions", 4),
    "config": ("topic", "config", "set", "T", "retention.ms=123456"),
    "delete": ("topic", "delete", "T", "--deletion-is-enabled"),
}
HAS_WAY_BACK = ("create", "config")


@pytest.fixture
def topic() -> str:
    return f"change{next(NUMBERS)}"


def seen(c: Cluster, topic: str) -> tuple[int, str | None]:
    """How many partitions the topic has (0: no topic), and its retention."""
    found, config = c.znode(f"/brokers/topics/{topic}"), c.znode(f"/config/topics/{topic}")
    return len(found["partitions"]) if found else 0, (config or {"config": {}})["config"].get("retention.ms")


BEFORE: dict[str, tuple[int, str | None]] = {"create": (0, None)}
AFTER = {"create": (2, None), "alter": (4, None), "config": (2, "123456"), "delete": (0, None)}


def prepared(c: Cluster, name: str, topic: str) -> list[object]:
    """The arguments of a change, and the topic that it needs."""
    if name != "create":
        c.create_topic(topic, [[1, 2], [2, 3]])
    return [topic if one == "T" else one for one in CHANGES[name]]


def kill_and_go_on(c: Cluster, k: Kctl, name: str, topic: str, point: str) -> None:
    """Killed at the point, the change is resumed; the cluster shows it, and the journal knows."""
    args = prepared(c, name, topic)
    known = set(k.ids())
    assert k.killed(*args, fault=point)
    (id,) = set(k.ids()) - known or {None}  # type: ignore[misc]
    if id is None:
        assert point == "planned"
        assert seen(c, topic) == BEFORE.get(name, (2, None))
        return
    finished = point in ("finished:0", "applied", "closed")
    k.change("journal", "resume", id, status=4 if finished else 0)
    assert seen(c, topic) == AFTER[name]
    assert k.state(id) == "applied"
    assert k("journal", "verify").rows == []


def kill_and_go_back(c: Cluster, k: Kctl, name: str, topic: str, point: str) -> None:
    """Killed at the point, the change is taken back, or refused to be with the reason."""
    args = prepared(c, name, topic)
    known = set(k.ids())
    assert k.killed(*args, fault=point)
    (id,) = set(k.ids()) - known
    written = point not in ("journalled", "before-write:0")
    if name in HAS_WAY_BACK or not written:
        k.change("journal", "undo", id)
        assert seen(c, topic) == BEFORE.get(name, (2, None))
        assert k.state(id) == ("undone" if written else k.state(id))
    else:
        ran = k.change("journal", "undo", id, status=4)
        assert "cannot be undone" in ran.err
    assert k("journal", "verify").rows == []


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.brokers
def test_every_step_is_one_that_the_points_name(
    c: Cluster, k: Kctl, topic: str, name: str, tmp_path: Path
) -> None:
    assert tuple(k.points(*prepared(c, name, topic), trace=tmp_path / "trace")) == POINTS


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_killed_at_every_step_and_resumed(c: Cluster, k: Kctl, topic: str, name: str, point: str) -> None:
    kill_and_go_on(c, k, name, topic, point)


# From these on an undo has other things to do than from the point before.
TURNS = ("journalled", "after-write:0", "finished:0")


@pytest.mark.parametrize(
    "point", [pytest.param(p, marks=[] if p in TURNS else [pytest.mark.matrix]) for p in POINTS[1:]]
)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_killed_at_every_step_and_undone(c: Cluster, k: Kctl, topic: str, name: str, point: str) -> None:
    kill_and_go_back(c, k, name, topic, point)


@pytest.mark.parametrize("name", CHANGES)
def test_killed_after_the_write_and_resumed(c: Cluster, k: Kctl, topic: str, name: str) -> None:
    kill_and_go_on(c, k, name, topic, "after-write:0")


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.matrix
def test_killed_at_every_step_on_every_version(c: Cluster, k: Kctl, topic: str, name: str) -> None:
    for number, point in enumerate(POINTS):
        kill_and_go_on(c, k, name, f"{topic}-{number}", point)


def test_two_at_once_one_wins(c: Cluster, k: Kctl, topic: str) -> None:
    """The first stands still just before its write, the second goes through, the first finds it out."""
    c.create_topic(topic, [[1, 2], [2, 3]])
    for args, after in (
        (("topic", "alter", topic, "--partitions", 4), (4, None)),
        (("topic", "config", "set", topic, "retention.ms=1"), (4, "1")),
        (("topic", "delete", topic, "--deletion-is-enabled"), (0, None)),
        (("topic", "create", topic, "--partitions", 1, "--replication-factor", 1), (1, None)),
    ):
        with k.stopped(*args, at="before-write:0") as first:
            k.change(*args)
            ran = first.go_on()
        assert ran.status == 4 and "nothing was written" in ran.err, ran.err
        assert seen(c, topic) == after
    states = [row["state"] for row in k("journal", "list").of("change")]
    assert sorted(states) == ["applied"] * 4 + ["planned"] * 4


def test_another_tools_write_in_between_is_not_lost(c: Cluster, k: Kctl, topic: str) -> None:
    c.create_topic(topic, [[1, 2]])
    with k.stopped("topic", "config", "set", topic, "retention.ms=5", at="before-write:0") as ours:
        with c.client() as client:
            client.set(f"/config/topics/{topic}", b'{"version":1,"config":{"flush.ms":"7"}}')
        assert ours.go_on().status == 4
    assert c.znode(f"/config/topics/{topic}")["config"] == {"flush.ms": "7"}
    with k.stopped("topic", "alter", topic, "--partitions", 2, at="before-write:0") as ours:
        with c.client() as client:
            data, _ = client.get(f"/brokers/topics/{topic}")
            client.set(f"/brokers/topics/{topic}", data)
        assert ours.go_on().status == 4
    assert seen(c, topic)[0] == 1


def test_a_session_that_expires_between_plan_and_write(c: Cluster, k: Kctl, topic: str) -> None:
    """Stopped for longer than its session lives: it connects again, and what it planned still holds."""
    assert c.zookeeper
    c.create_topic(topic, [[1, 2]])
    known = c.zookeeper.sessions()
    with k.stopped("topic", "config", "set", topic, "retention.ms=5", at="before-write:0") as ours:
        (session,) = c.zookeeper.sessions() - known
        c.zookeeper.expire(session)
        ran = ours.go_on()
    assert ran.status in (0, 3), ran.err
    if ran.status == 3:
        k.change("journal", "resume", k.ids()[-1])
    assert seen(c, topic) == (1, "5")


def test_zookeeper_restarted_in_the_middle(c: Cluster, k: Kctl, topic: str) -> None:
    assert c.zookeeper
    c.create_topic(topic, [[1, 2], [2, 3], [3, 1]])
    with traffic(c, topic, 3) as running:
        with k.stopped("topic", "alter", topic, "--partitions", 5, at="before-write:0") as ours:
            c.restart_zookeeper()
            ran = ours.go_on()
        if ran.status != 0:  # brokers lost their sessions too, and another one may be controller now
            assert ran.status in (3, 4), ran.err
            c.wait_until_up(list(c.brokers))
            k.change("journal", "resume", k.ids()[-1])
        running.require_progress()
    c.wait_until_up(list(c.brokers))
    running.require_nothing_lost()
    assert seen(c, topic)[0] == 5


def test_an_unreachable_zookeeper_and_a_missing_chroot(c: Cluster, k: Kctl, tmp_path: Path) -> None:
    assert c.zookeeper
    ran = k("topic", "list", "--zookeeper", "127.0.0.1:1", "--timeout", "1s")
    assert ran.status == 3 and "connection refused" in ran.err
    assert len(ran.errors) == 1
    ran = k("topic", "list", "--zookeeper", "no.such.host.invalid:2181", "--timeout", "1s")
    assert ran.status == 3 and "no such host" in ran.err
    ran = k("topic", "create", "x", "--partitions", 1, "--replication-factor", 1, "--yes",
            "--zookeeper", c.zookeeper.address + "/no/such")  # fmt: skip
    assert ran.status == 3 and "no /brokers/ids" in ran.err
    with c.client("") as client:
        assert not client.exists("/no")


def test_a_context_guards_its_cluster(c: Cluster, k: Kctl, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        f'[contexts.guarded]\nzookeeper = "{c.connect}"\nread_only = true\n'
        f'[contexts.other]\nzookeeper = "{c.connect}"\ncluster_id = "AAAAAAAAAAAAAAAAAAAAAA"\n'
    )
    args = ("topic", "create", "guarded", "--partitions", 1, "--replication-factor", 1, "--yes")
    for context, words in (("guarded", "read-only"), ("other", "expects AAAA")):
        ran = k(*args, "--context", context, KCTL_CONFIG=str(config), KCTL_ZOOKEEPER="")
        assert ran.status == 4 and words in ran.err and "nothing was written" in ran.err
        assert (
            k("topic", "list", "--context", context, KCTL_CONFIG=str(config), KCTL_ZOOKEEPER="").status == 0
        )
    assert k.ids() == []


def test_a_context_does_not_write_into_zookeeper_what_brokers_do_better(
    c: Cluster, k: Kctl, topic: str, tmp_path: Path
) -> None:
    """Brokers of 2.4 and later check what they are asked for; only --zookeeper on purpose goes past them."""
    config = tmp_path / "config.toml"
    config.write_text(
        f'[contexts.plain]\nzookeeper = "{c.connect}"\n'
        f'[contexts.both]\nzookeeper = "{c.connect}"\nbootstrap_server = "{c.bootstrap}"\n'
    )
    args = ("topic", "create", topic, "--replica-assignment", "1:2", "--yes", "--no-wait")
    older = c.version in ("0.8.2", "0.9", "0.10.2", "0.11", "1.1")
    for context in ("plain", "both"):
        env = {"KCTL_CONFIG": str(config), "KCTL_ZOOKEEPER": ""}
        if older:
            assert k(*args, "--dry-run", "--context", context, **env).status == 0
            continue
        ran = k(*args, "--context", context, **env)
        assert ran.status == 4 and "nothing was written to ZooKeeper" in ran.err, ran.err
        assert "--bootstrap-server" in ran.err and k("topic", "list", "--context", context, **env).status == 0
    assert c.znode(f"/brokers/topics/{topic}") is None and k.ids() == []
    if not older:
        k.change(*args, "--context", "plain", "--zookeeper", c.connect, KCTL_CONFIG=str(config))


def test_a_cluster_that_migrates_is_not_touched(c: Cluster, k: Kctl, topic: str) -> None:
    with c.client() as client:
        client.create("/migration", json.dumps({"version": 0, "kraft_controller_id": 3000}).encode())
        try:
            ran = k.change("topic", "create", topic, "--partitions", 1, "--replication-factor", 1, status=4)
            assert "migrating to KRaft" in ran.err
        finally:
            client.delete("/migration")
    assert seen(c, topic) == (0, None) and k.ids() == []


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_the_question_wants_the_clusters_name(c: Cluster, k: Kctl, topic: str) -> None:
    """On a terminal the plan is shown and the cluster's id, or its context's name, has to be typed."""
    name = c.znode("/cluster/id")["id"]
    args = ["topic", "create", topic, "--partitions", "1", "--replication-factor", "1"]
    for answer, status in (("yes", 4), (name, 0)):
        ended, said = on_a_terminal([*args, "--color", "never"], {**k.environment, "COLUMNS": "200"}, answer)
        assert ended == status, said
        assert f"/brokers/topics/{topic}" in said and f"Type {name} to go on" in said
    assert seen(c, topic) == (1, None) and len(k.ids()) == 1


def on_a_terminal(args: list[str], environment: dict[str, str], answer: str) -> tuple[int, str]:
    """kctl in a pseudo-terminal, asked once."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "commands", *args], {**os.environ, **environment})
    said = b""
    while b" to go on" not in said:
        said += os.read(terminal, 4096)
    os.write(terminal, answer.encode() + b"\n")
    with contextlib.suppress(OSError):  # a terminal that is gone reads as an error
        while more := os.read(terminal, 4096):
            said += more
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


def test_too_large_a_topic_is_refused_before_it_is_sent(c: Cluster, k: Kctl, topic: str) -> None:
    ran = k.change("topic", "create", topic, "--partitions", 90_000, "--replication-factor", 2, status=4)
    assert "bytes" in ran.err and "nothing was written" in ran.err
    assert seen(c, topic) == (0, None)


def test_a_poisoned_topic_is_named_and_the_rest_goes_on(c: Cluster, k: Kctl, topic: str) -> None:
    """Written below the chroot of no broker: a controller would fail on some of these."""
    assert c.zookeeper
    poisons = {"bad-json": b"{", "text-ids": b'{"version":1,"partitions":{"0":["1"]}}', "empty": b""}
    root = f"/poisoned{next(NUMBERS)}"
    with c.client("") as client:
        for path in (
            "/brokers/ids",
            "/brokers/topics",
            "/admin/delete_topics",
            "/config/topics",
            "/config/changes",
        ):
            client.create(root + path, b"", makepath=True)
        client.create(root + "/brokers/topics/good", b'{"version":1,"partitions":{"0":[1],"1":[]},"x":1}')
        for name, data in poisons.items():
            client.create(f"{root}/brokers/topics/{name}", data)
    at = ("--zookeeper", c.zookeeper.address + root)
    ran = k("topic", "describe", *at)
    assert ran.status == 3
    assert all(f"/brokers/topics/{name}: " in ran.err for name in poisons)
    assert [(p["partition"], p["replicas"]) for p in ran.of("partition")] == [(0, [1]), (1, [])]
    for name in poisons:
        assert k("znode", "show", f"/brokers/topics/{name}", *at).status == 5
        assert k("topic", "alter", name, "--partitions", 5, "--yes", *at).status in (3, 4)
        assert k("topic", "delete", name, "--deletion-is-enabled", "--yes", *at).status in (3, 4)
