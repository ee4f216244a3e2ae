"""Reassignments and elections that are cut off, raced, or hit by a dying broker, controller or ZooKeeper."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, eventually
from tests.brokers.running import Kctl
from tests.brokers.test_reassign import has_throttles, replicas_of, throttles
from tests.brokers.traffic import traffic

NUMBERS = count()
pytestmark = pytest.mark.usefixtures("healthy")
BEFORE, AFTER = {0: [1, 2], 1: [2, 1]}, {0: [1, 3], 1: [3, 1]}
STAGE = ("before-write", "after-write", "written", "finished")
ENDS = ("applied", "closed")


@pytest.fixture
def topic() -> str:
    return f"fault{next(NUMBERS)}"


def prepared(c: Cluster, k: Kctl, topic: str, folder: Path) -> tuple[object, ...]:
    """An execution of two batches, throttled where that can be."""
    c.create_topic(topic, [BEFORE[0], BEFORE[1]])
    plan = folder / f"{topic}.json"
    assert k("reassign", "plan", "--topics", topic, "--replace", "2=3", "--to", plan).status == 0
    throttle = ("--throttle", "50MiB") if has_throttles(c) else ()
    return ("reassign", "execute", plan, "--max-batch-moves", 1, *throttle)


def points(c: Cluster) -> list[str]:
    """Every step of an execution of two batches."""
    stages = range(3 if has_throttles(c) else 2)
    return ["planned", "journalled", *(f"{one}:{n}" for n in stages for one in STAGE), *ENDS]


def new_id(k: Kctl, known: set[str]) -> str | None:
    found = set(k.ids()) - known
    return found.pop() if found else None


def killed_and_resumed(c: Cluster, k: Kctl, topic: str, folder: Path, point: str) -> None:
    args, known = prepared(c, k, topic, folder), set(k.ids())
    assert k.killed(*args, fault=point), point
    id = new_id(k, known)
    if id is None:
        assert point == "planned"
        assert replicas_of(k, topic) == BEFORE
        return
    finished = point in (points(c)[-3], *ENDS)
    k.change("journal", "resume", id, status=4 if finished else 0)
    assert replicas_of(k, topic) == AFTER
    assert k.state(id) == "applied"
    assert k("reassign", "verify", args[2]).status == 0
    assert throttles(k) == []


def killed_and_undone(c: Cluster, k: Kctl, topic: str, folder: Path, point: str) -> None:
    args, known = prepared(c, k, topic, folder), set(k.ids())
    assert k.killed(*args, fault=point), point
    id = new_id(k, known)
    assert id is not None
    for _ in eventually("the controller is done with what was asked for"):
        if c.znode("/admin/reassign_partitions") is None:
            break
    k.change("journal", "undo", id)
    assert replicas_of(k, topic) == BEFORE
    assert throttles(k) == []
    assert k("journal", "verify").rows == []


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_every_step_of_an_execution_is_known(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    assert k.points(*prepared(c, k, topic, tmp_path), trace=tmp_path / "trace") == points(c)


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_killed_at_every_step_and_resumed(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    for number, point in enumerate(points(c)):
        killed_and_resumed(c, k, f"{topic}-{number}", tmp_path, point)


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_killed_and_undone(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    for number, point in enumerate(("journalled", "after-write:0", "written:1", "closed")):
        killed_and_undone(c, k, f"{topic}-{number}", tmp_path, point)


def test_killed_in_the_middle_and_resumed(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    killed_and_resumed(c, k, topic, tmp_path, "after-write:0")


@pytest.mark.matrix
def test_killed_at_every_step_on_every_version(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    for number, point in enumerate(points(c)):
        killed_and_resumed(c, k, f"{topic}-{number}", tmp_path, point)
        if number:
            killed_and_undone(c, k, f"{topic}-back-{number}", tmp_path, point)


def needs_an_election(c: Cluster, k: Kctl, topic: str, folder: Path) -> None:
    """A topic whose first replica does not lead: its list was turned round."""
    c.create_topic(topic, [[1, 2]])
    plan = folder / f"{topic}.json"
    plan.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "replicas": [2, 1]}]}))
    k.change("reassign", "execute", plan)


ONE_STAGE = ("planned", "journalled", *(f"{one}:0" for one in STAGE), *ENDS)


def killed_election(c: Cluster, k: Kctl, topic: str, folder: Path, point: str) -> None:
    needs_an_election(c, k, topic, folder)
    known = set(k.ids())
    assert k.killed("elect", "preferred", "--topics", topic, fault=point), point
    id = new_id(k, known)
    if id is not None:
        k.change("journal", "resume", id, status=4 if point in ("finished:0", *ENDS) else 0)
        assert k("elect", "status", "--topics", topic).status == 0
    else:
        assert k("elect", "status", "--topics", topic).status == 5


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_an_election_killed_at_every_step(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    for number, point in enumerate(ONE_STAGE):
        killed_election(c, k, f"{topic}-{number}", tmp_path, point)


def test_an_election_killed_after_its_write(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    killed_election(c, k, topic, tmp_path, "after-write:0")


# --- cancel -------------------------------------------------------------------------------------------


def under_way(c: Cluster, k: Kctl, topic: str, folder: Path) -> Path:
    """A plan whose request waits, because its target stands still."""
    c.create_topic(topic, [BEFORE[0], BEFORE[1]])
    plan = folder / f"{topic}.json"
    assert k("reassign", "plan", "--topics", topic, "--replace", "2=3", "--to", plan).status == 0
    c.pause(3)
    k.change("reassign", "execute", plan, "--no-wait")
    return plan


def killed_cancellation(c: Cluster, k: Kctl, topic: str, folder: Path, point: str) -> None:
    """The request goes once the target goes on; the way back is cut off and resumed."""
    plan = under_way(c, k, topic, folder)
    known = set(k.ids())
    with k.stopped("reassign", "cancel", plan, at="awaiting-request", killed_at=point) as cancelling:
        c.resume(3)
        assert cancelling.go_on().status == -signal.SIGKILL, point
    id = new_id(k, known)
    if id is None:
        assert point == "planned"
        for _ in eventually("the plan is carried out"):
            if k("reassign", "verify", plan).status == 0:
                return
    k.change("journal", "resume", str(id), status=4 if point in ("finished:0", *ENDS) else 0)
    assert replicas_of(k, topic) == BEFORE
    assert k.state(str(id)) == "applied" and k("journal", "verify").rows == []


def killed_replacement(c: Cluster, k: Kctl, topic: str, folder: Path, point: str) -> None:
    """The target is dead, the request is replaced and the controller moved: cut off and resumed."""
    if c.controller() == 3:
        c.restart(3)  # the controller must see the request before its broker dies
    plan = under_way(c, k, topic, folder)
    c.wait_until_gone(3)
    known = set(k.ids())
    assert k.killed("reassign", "cancel", plan, "--move-controller", fault=point), point
    id = new_id(k, known)
    if id is None:
        assert point == "planned"
        k.change("reassign", "cancel", plan, "--move-controller")
    else:
        k.change("journal", "resume", id, status=4 if point in ("finished:0", *ENDS) else 0)
        assert k.state(id) == "applied"
    assert replicas_of(k, topic) == BEFORE
    c.resume(3)
    c.wait_until_up([3])
    assert k("reassign", "status").of("partition") == []


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.parametrize("point", ONE_STAGE)
@pytest.mark.brokers
def test_a_cancellation_killed_at_every_step(
    c: Cluster, k: Kctl, topic: str, tmp_path: Path, point: str
) -> None:
    killed_cancellation(c, k, topic, tmp_path, point)


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_a_cancellation_that_moves_the_controller_killed_at_every_step(
    c: Cluster, k: Kctl, topic: str, tmp_path: Path
) -> None:
    for number, point in enumerate(ONE_STAGE):
        killed_replacement(c, k, f"{topic}-{number}", tmp_path, point)


def test_a_cancellation_killed_after_its_write(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    killed_cancellation(c, k, topic, tmp_path, "after-write:0")


@pytest.mark.matrix
def test_a_cancellation_killed_at_every_step_on_every_version(
    c: Cluster, k: Kctl, topic: str, tmp_path: Path
) -> None:
    for number, point in enumerate(ONE_STAGE):
        killed_cancellation(c, k, f"{topic}-{number}", tmp_path, point)
        if c.version != "0.8.2":  # whose deposed controller goes on, and has to be restarted
            killed_replacement(c, k, f"{topic}-moved-{number}", tmp_path, point)


# --- throttles ----------------------------------------------------------------------------------------


def killed_throttle(c: Cluster, k: Kctl, topic: str, folder: Path, points: Sequence[str]) -> None:
    """A plan's throttle is set and cleared again, cut off at the first and the second point, and resumed.

    Nothing is left of it, so that one topic and one plan serve all points.
    """
    plan = folder / f"{topic}.json"
    if not plan.exists():
        c.create_topic(topic, [BEFORE[0], BEFORE[1]])
        assert k("reassign", "plan", "--topics", topic, "--replace", "2=3", "--to", plan).status == 0
    for args, point, wanted in (("set", points[0], 8), ("clear", points[1], 0)):
        rate = ("1MiB",) if args == "set" else ()
        change = ("reassign", "throttle", args, plan, *rate)
        known = set(k.ids())
        assert k.killed(*change, fault=point), point
        id = new_id(k, known)
        if id is None:
            assert point == "planned"
            k.change(*change)
        else:
            k.change("journal", "resume", id, status=None)
            assert k.state(id) == "applied"
        assert len(throttles(k)) == wanted, throttles(k)


SET = ["planned", "journalled", *(f"{one}:{n}" for n in range(4) for one in STAGE), *ENDS]


def throttle_points() -> list[tuple[str, str]]:
    """Every step of a throttle's setting, with those of its clearing beside them."""
    return [(point, ONE_STAGE[number % len(ONE_STAGE)]) for number, point in enumerate(SET)]


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_a_throttle_killed_at_every_step(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    for points in throttle_points():
        killed_throttle(c, k, topic, tmp_path, points)


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_every_step_of_a_throttle_is_known(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    c.create_topic(topic, [BEFORE[0], BEFORE[1]])
    plan = tmp_path / f"{topic}.json"
    assert k("reassign", "plan", "--topics", topic, "--replace", "2=3", "--to", plan).status == 0
    assert k.points("reassign", "throttle", "set", plan, "1MiB", trace=tmp_path / "set") == SET
    assert k.points("reassign", "throttle", "clear", plan, trace=tmp_path / "clear") == list(ONE_STAGE)


def test_a_throttle_killed_after_its_write(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    if not has_throttles(c):
        pytest.skip("throttles came with 0.10.1")
    killed_throttle(c, k, topic, tmp_path, ("after-write:1", "after-write:0"))


@pytest.mark.matrix
def test_a_throttle_killed_at_every_step_on_every_version(
    c: Cluster, k: Kctl, topic: str, tmp_path: Path
) -> None:
    if not has_throttles(c):
        pytest.skip("throttles came with 0.10.1")
    for points in throttle_points():
        killed_throttle(c, k, topic, tmp_path, points)


# --- races and dying processes ------------------------------------------------------------------------


def test_two_executions_at_once(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    """One wins, the other finds it out before it writes; so does one whose partitions another tool has moved."""
    args = prepared(c, k, topic, tmp_path)
    with k.stopped(*args, at="before-write:0") as first:
        k.change(*args)
        ran = first.go_on()
    assert ran.status == 4 and "nothing was written" in ran.err, ran.err
    assert replicas_of(k, topic) == AFTER
    assert throttles(k) == []
    back = tmp_path / f"{topic}.rollback.json"
    with k.stopped("reassign", "execute", back, at="before-write:0") as second:
        path = f"/brokers/topics/{topic}"
        with c.client() as client:
            data, stat = client.get(path)
            client.set(path, data, stat.version)  # as another tool would, unchanged for the cluster
        ran = second.go_on()
    assert ran.status == 4 and "nothing was written" in ran.err, ran.err
    assert replicas_of(k, topic) == AFTER
    assert c.znode("/admin/reassign_partitions") is None


def test_the_controller_dies_during_a_reassignment(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    controller = c.controller()
    one, other = (b for b in (1, 2, 3) if b != controller)
    c.create_topic(topic, [[one], [other]])
    plan = tmp_path / "swap.json"
    rows = [{"topic": topic, "partition": p, "replicas": [b]} for p, b in enumerate((other, one))]
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    with traffic(c, topic, 2) as running:
        with k.stopped("reassign", "execute", plan, at="after-write:0") as execution:
            assert controller is not None
            c.kill(controller)
            c.wait_until_gone(controller)
            ran = execution.go_on()
        if ran.status == 5:
            # A broker may never hear of what was written as the controller died: the next one tells everything.
            assert "to join the ISR" in ran.err
            with c.client() as client:
                client.delete("/controller")
            ran = k.change("journal", "resume", k.ids()[-1])
        assert ran.status == 0, ran.err
        assert replicas_of(k, topic) == {0: [other], 1: [one]}
        running.require_progress()
    running.require_nothing_lost()
    assert k("reassign", "verify", plan).status == 0


def test_a_source_is_dead_while_it_is_throttled(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    c.create_topic(topic, [[1, 2], [2, 1]])
    c.kill(2)
    c.wait_until_gone(2)
    c.wait_until_led(topic)  # a controller that died as it had made the topic may leave it without a leader
    plan = tmp_path / "replace.json"
    assert k("reassign", "plan", "--topics", topic, "--replace", "2=3", "--to", plan).status == 0
    throttle = ("--throttle", "50MiB") if has_throttles(c) else ()
    ran = k.change("reassign", "execute", plan, *throttle)
    assert "brokers 2 are not alive and will keep folders" in ran.err
    assert k("reassign", "verify", plan).status == 0
    assert throttles(k) == []
    assert replicas_of(k, topic) == AFTER


def test_zookeeper_restarts_during_a_reassignment(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    args = prepared(c, k, topic, tmp_path)
    with k.stopped(*args, at="after-write:0") as execution:
        c.restart_zookeeper()
        ran = execution.go_on()
    assert ran.status == 0, ran.err
    assert replicas_of(k, topic) == AFTER


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_undo_goes_back_to_live_brokers_only(c: Cluster, k: Kctl, topic: str, tmp_path: Path) -> None:
    k.change(*prepared(c, k, topic, tmp_path))
    (id,) = k.ids()
    c.kill(2)
    c.wait_until_gone(2)
    ran = k.change("journal", "undo", id, status=4)
    assert "not alive" in ran.err
    assert replicas_of(k, topic) == AFTER
