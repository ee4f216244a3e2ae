"""kctl killed at every step of every change and gone on with, and two kctl at once: exactly one wins."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, eventually
from tests.brokers.wire.conftest import WireKctl, fill
from tests.brokers.wire.test_changes import configs_of, plan_of

NUMBERS = count()
Command = tuple[object, ...]
ON_KRAFT = pytest.mark.parametrize("live", ["kraft-4.3"], indirect=True)


@dataclass
class Scene:
    """A cluster, kctl, a topic of its own and a folder for plans."""

    cluster: Cluster
    k: WireKctl
    topic: str
    folder: Path


@dataclass(frozen=True)
class Change:
    """How a change is prepared, which gives its command; whether it is done."""

    prepare: Callable[[Scene], Command]
    is_done: Callable[[Scene], bool]


def made(s: Scene, *replicas: str) -> None:
    s.k.change("topic", "create", s.topic, "--replica-assignment", ",".join(replicas or ("1:2",)))


def create(s: Scene) -> Command:
    return "topic", "create", s.topic, "--replica-assignment", "1:2,2:3"


def alter(s: Scene) -> Command:
    made(s)
    return "topic", "alter", s.topic, "--partitions", 3


def config(s: Scene) -> Command:
    made(s)
    return "topic", "config", "set", s.topic, "retention.ms=1000"


def delete(s: Scene) -> Command:
    made(s)
    return "topic", "delete", s.topic


def reassign(s: Scene) -> Command:
    made(s)
    return "reassign", "execute", plan_of(s.folder, s.topic, [2, 3]), "--throttle", "10MiB"


def moving(s: Scene) -> Path:
    """A plan whose move is under way, and stays so: its throttle is in force before it begins."""
    made(s)
    fill(s.cluster, s.topic, records=100, size=20_000)
    plan = plan_of(s.folder, s.topic, [1, 3])
    s.k.change("reassign", "execute", plan, "--throttle", "1000", "--no-wait")
    return plan


def cancel(s: Scene) -> Command:
    return "reassign", "cancel", moving(s)


def throttle(s: Scene) -> Command:
    return "reassign", "throttle", "set", moving(s), "5000000"


def elect(s: Scene) -> Command:
    made(s, "1:2", "2:1")
    s.k.change("reassign", "execute", plan_of(s.folder, s.topic, [2, 1], [2, 1]))
    return "elect", "preferred", "--topics", s.topic


def replicas(*wanted: list[int]) -> Callable[[Scene], bool]:
    return lambda s: s.k.replicas(s.topic) == list(wanted)


def is_throttled(s: Scene) -> bool:
    if s.cluster.version == "2.4":  # whose brokers keep rates to themselves
        nodes = [s.cluster.znode(f"/config/brokers/{id}")["config"] for id in s.cluster.brokers]
        rates = {value for node in nodes for key, value in node.items() if "throttled" in key}
    else:
        found = s.k("config", "get", "--entity-type", "brokers").of("config")
        rates = {row["value"] for row in found if "throttled" in row["key"]}
    return rates == {"5000000"}


CHANGES = {
    "create": Change(create, replicas([1, 2], [2, 3])),
    "alter": Change(alter, lambda s: len(s.k.replicas(s.topic)) == 3),
    "config": Change(config, lambda s: configs_of(s.k, s.topic) == {"retention.ms": "1000"}),
    "delete": Change(delete, lambda s: s.k("topic", "describe", s.topic).status == 3),
    "reassign": Change(
        reassign, lambda s: s.k.replicas(s.topic) == [[2, 3]] and configs_of(s.k, s.topic) == {}
    ),
    "cancel": Change(cancel, replicas([1, 2])),
    "throttle": Change(throttle, is_throttled),
    "elect": Change(elect, lambda s: s.k("elect", "status", "--topics", s.topic).status == 0),
}


def scene(w: Cluster, k: WireKctl, topic: str, folder: Path) -> Scene:
    name = f"{topic}-{next(NUMBERS)}"
    own = folder / name
    own.mkdir()
    return Scene(w, WireKctl(k.cluster, own / "journal"), name, own)


def killed_and_resumed(s: Scene, change: Change, point: str) -> None:
    command = change.prepare(s)
    known = set(s.k.ids())
    assert s.k.killed(*command, fault=point), point
    new = set(s.k.ids()) - known
    if not new:
        assert point == "planned" and not change.is_done(s)
        s.k.change(*command)
    else:
        (id,) = new
        ran = s.k("journal", "resume", id, "--yes")
        if ran.status == 5 and "it may still be carried out" in ran.err:  # resume finds out, and goes on
            ran = s.k("journal", "resume", id, "--yes")
        assert ran.status == 0 or (ran.status == 4 and "is finished" in ran.err), (point, ran.err)
        assert s.k.state(id) == "applied", point
    for _ in eventually(f"{' '.join(map(str, command))}, killed at {point}, is done"):
        if change.is_done(s):
            break
    assert s.k("journal", "verify").rows == []
    clean_up(s, command)


def clean_up(s: Scene, command: Command) -> None:
    """A move that would go on for ever is taken back, with its throttles."""
    if command[1] in ("cancel", "throttle"):
        plan = s.folder / "plan.json"
        s.k("reassign", "cancel", plan, "--yes")
        s.k("reassign", "throttle", "clear", plan, "--yes")


def points_of(s: Scene, change: Change) -> list[str]:
    """Every point that the change passes."""
    command = change.prepare(s)
    found = s.k.points(*command, trace=s.folder / "trace")
    clean_up(s, command)
    return list(dict.fromkeys(found))


def at_every_step(w: Cluster, k: WireKctl, topic: str, folder: Path, name: str) -> None:
    points = points_of(scene(w, k, topic, folder), CHANGES[name])
    assert {"planned", "journalled", "before-write:0", "sent:1", "after-write:0", "closed"} <= set(points)
    for point in points:
        killed_and_resumed(scene(w, k, topic, folder), CHANGES[name], point)


@ON_KRAFT
@pytest.mark.brokers
def test_a_reassignment_killed_at_every_step(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    at_every_step(w, k, topic, tmp_path, "reassign")


@pytest.mark.parametrize("name", sorted(set(CHANGES) - {"reassign"}))
@ON_KRAFT
@pytest.mark.brokers
def test_killed_before_and_behind_the_request(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path, name: str
) -> None:
    for point in ("before-write:0", "sent:1"):
        killed_and_resumed(scene(w, k, topic, tmp_path), CHANGES[name], point)


@pytest.mark.parametrize("name", sorted(CHANGES))
@pytest.mark.parametrize("live", ["zookeeper-2.8"], indirect=True)
@pytest.mark.brokers
def test_killed_behind_the_request(w: Cluster, k: WireKctl, topic: str, tmp_path: Path, name: str) -> None:
    killed_and_resumed(scene(w, k, topic, tmp_path), CHANGES[name], "sent:1")


@pytest.mark.matrix
@pytest.mark.parametrize("name", sorted(CHANGES))
def test_killed_at_every_step(w: Cluster, k: WireKctl, topic: str, tmp_path: Path, name: str) -> None:
    at_every_step(w, k, topic, tmp_path, name)


@ON_KRAFT
@pytest.mark.brokers
def test_cut_off_between_its_requests_and_undone(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    """The throttle stands and the move was not asked for; then the throttle of a topic alone."""
    for point in ("sent:1", "sent:4"):
        s = scene(w, k, topic, tmp_path)
        assert s.k.killed(*reassign(s), fault=point)
        (_, id) = s.k.ids()
        s.k.change("journal", "undo", id)
        assert s.k.replicas(s.topic) == [[1, 2]] and configs_of(s.k, s.topic) == {}
        brokers = s.k("config", "get", "--entity-type", "brokers").of("config")
        assert not [row for row in brokers if "throttled" in row["key"]]
        assert s.k.state(id) == "undone"


# --- two at once ----------------------------------------------------------------------------------------

RACED = ("create", "alter", "config", "delete", "reassign", "cancel")


@pytest.mark.parametrize("name", RACED)
def test_the_later_of_two_is_refused(w: Cluster, k: WireKctl, topic: str, tmp_path: Path, name: str) -> None:
    if w.version not in ("4.3", "2.8"):
        pytest.skip("the same as on 4.3 and 2.8")
    s = scene(w, k, topic, tmp_path)
    command = CHANGES[name].prepare(s)
    with s.k.stopped(*command, at="before-write:0") as late:
        s.k.change(*command)
        ran = late.go_on()
    assert ran.status == 4 and "nothing was written" in ran.err, ran.err
    assert CHANGES[name].is_done(s)
    assert sorted(map(s.k.state, s.k.ids()[-2:])) == ["applied", "planned"]
    clean_up(s, command)


@pytest.mark.parametrize("name", RACED)
@ON_KRAFT
@pytest.mark.brokers
def test_one_of_two_at_the_same_moment_wins(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path, name: str
) -> None:
    """They share a journal, whose lock makes looking and writing one step."""
    s = scene(w, k, topic, tmp_path)
    command = CHANGES[name].prepare(s)
    with ExitStack() as stack:
        both = [stack.enter_context(s.k.stopped(*command, at="before-write:0")) for _ in range(2)]
        for one in both:
            os.kill(one.pid, signal.SIGCONT)
        ran = [one.wait() for one in both]
    assert sorted(one.status or 0 for one in ran) == [0, 4], [one.err for one in ran]
    assert CHANGES[name].is_done(s)
    clean_up(s, command)
