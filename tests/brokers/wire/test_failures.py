"""Brokers and controllers that die in the middle, and brokers that are too old."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, cluster, eventually, kraft_cluster
from tests.brokers.wire.conftest import WireKctl, fill
from tests.brokers.wire.test_changes import configs_of, plan_of


@pytest.mark.matrix
def test_the_controller_dies_during_a_reassignment(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    (controller,) = [c["broker_id"] for c in k("cluster", "controller").of("controller")]
    first, second = sorted({1, 2, 3} - {controller})
    k.change("topic", "create", topic, "--replica-assignment", f"{first}")
    fill(w, topic, records=300, size=20_000)
    plan = plan_of(tmp_path, topic, [second])
    k.change("reassign", "execute", plan, "--throttle", "1000", "--no-wait")
    w.kill(controller)
    w.wait_until_gone(controller)
    for _ in eventually("another broker is controller"):
        found = k("cluster", "controller").of("controller")
        if found and found[0]["broker_id"] in (first, second):
            break
    ran = k("reassign", "status", plan)
    (row,) = ran.of("partition")
    assert (ran.status, row["state"]) == (5, "in_progress") and row["bytes_left"] > 0
    k.change("reassign", "cancel", plan)
    assert k.replicas(topic) == [[first]]
    k.change("reassign", "throttle", "clear", plan)
    assert configs_of(k, topic) == {}


def test_a_command_waits_for_the_next_controller(w: Cluster, k: WireKctl, topic: str) -> None:
    """Brokers name a dead controller until its session with ZooKeeper has ended."""
    if w.zookeeper is None:
        pytest.skip("brokers of KRaft hold requests until there is a controller")
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3")
    (controller,) = [c["broker_id"] for c in k("cluster", "controller").of("controller")]
    w.kill(controller)
    described = k("topic", "describe", topic, "--timeout", "60")
    assert described.status == 0 and described.of("partition"), described.err
    k.change("topic", "config", "set", topic, "retention.ms=600000")


@pytest.mark.matrix
def test_a_target_dies_during_a_reassignment(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    (controller,) = [c["broker_id"] for c in k("cluster", "controller").of("controller")]
    target = next(b for b in (3, 2, 1) if b != controller)
    others = sorted({1, 2, 3} - {target})
    k.change("topic", "create", topic, "--replica-assignment", ":".join(map(str, others)))
    fill(w, topic, records=300, size=20_000)
    plan = plan_of(tmp_path, topic, [others[0], target])
    k.change("reassign", "execute", plan, "--throttle", "1000", "--no-wait")
    w.kill(target)
    w.wait_until_gone(target)
    for _ in eventually("the target is seen to be dead"):
        if target not in [b["broker_id"] for b in k("cluster", "brokers").of("broker") if b["is_alive"]]:
            break
    ran = k("reassign", "status", plan)
    assert ran.status == 5 and "is not alive" in ran.err
    k.change("reassign", "cancel", plan)
    assert k.replicas(topic) == [others]
    w.heal()
    k.change("reassign", "throttle", "clear", plan)  # else the next tests' throttles would stay for it
    assert configs_of(k, topic) == {}


def test_a_move_goes_back_although_an_origin_died(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    (controller,) = [c["broker_id"] for c in k("cluster", "controller").of("controller")]
    origin, target = (b for b in (1, 2, 3) if b != controller)
    k.change("topic", "create", topic, "--replica-assignment", f"{controller}:{origin}")
    fill(w, topic, records=300, size=20_000)
    plan = plan_of(tmp_path, topic, [controller, target])
    k.change("reassign", "execute", plan, "--throttle", "1000", "--no-wait")
    w.kill(origin)
    w.wait_until_gone(origin)
    for _ in eventually("the origin is seen to be dead, and out of the ISR"):
        (partition,) = k("topic", "describe", topic).of("partition")
        if origin not in partition["isr"]:
            break
    # Only a KRaft controller keeps, and changes, the configuration of a dead broker.
    ran = k.change("reassign", "cancel", plan, status=5 if w.zookeeper else 0)
    assert f"stay without the replicas of broker {origin}" in ran.err
    assert (f"the throttle may be left on broker {origin}" in ran.err) is bool(w.zookeeper)
    assert k.replicas(topic) == [[controller, origin]]
    w.heal()
    k.change("reassign", "throttle", "clear", plan)
    assert configs_of(k, topic) == {}


def test_a_host_that_says_nothing_is_passed_over(w: Cluster, k: WireKctl) -> None:
    """It takes connections, as a firewall or a broker that hangs does."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        for servers in (f"{address},{w.bootstrap}", f"{w.bootstrap},{address}"):
            ran = k("cluster", "brokers", "--bootstrap-server", servers)
            assert ran.status == 0 and len(ran.of("broker")) == 3
        alone = k("cluster", "brokers", "--bootstrap-server", address, "--timeout", "1")
        assert (alone.status, alone.err.splitlines()[0]) == (
            3,
            f"kctl: no broker of {address} can be used: a connection is accepted, but no answer came within 1 s",
        )


def test_what_a_broker_refuses_is_a_row_and_the_rest_is_done(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    (controller,) = [c["broker_id"] for c in k("cluster", "controller").of("controller")]
    stays, goes = sorted({1, 2, 3} - {controller})
    k.change("topic", "create", topic, "--replica-assignment", f"{controller}:{stays},{controller}:{goes}")
    k.change("reassign", "execute", plan_of(tmp_path, topic, [stays, controller], [goes, controller]))
    with k.stopped("elect", "preferred", "--topics", topic, at="before-write:0") as election:
        w.kill(goes)
        w.wait_until_gone(goes)
        for _ in eventually("the broker is seen to be dead"):
            if goes not in [b["broker_id"] for b in k("cluster", "brokers").of("broker") if b["is_alive"]]:
                break
        ran = election.go_on()
    assert ran.status == 5 and "1 of 2 items" in ran.err, ran.err
    (row,) = ran.of("refused")
    assert (row["request"], row["what"], row["partition"]) == ("ElectLeaders", f"{topic}-1", 1)
    assert (row["error_code"], row["error"]) == (80, "PREFERRED_LEADER_NOT_AVAILABLE")
    (change,) = ran.of("change")
    assert change["state"] == "partly_applied" and f"{topic}-1" in change["outcome"]
    leaders = [p["leader"] for p in k("topic", "describe", topic).of("partition")]
    assert leaders == [stays, controller], "the other election was held"


@pytest.mark.brokers
@pytest.mark.matrix
def test_a_broker_that_is_too_old_is_named(tmp_path: Path) -> None:
    with cluster("1.1", brokers=1) as old:
        k = WireKctl(old, tmp_path / "journal")
        ran = k("replica", "verify")
        assert ran.status == 3 and "older than 2.4" in ran.err and len(ran.errors) == 1
        ran = k.change("topic", "create", "t", "--replica-assignment", "1", status=0)
        ran = k.change("topic", "config", "set", "t", "retention.ms=1000", status=3)
        assert "is too old: IncrementalAlterConfigs needs Kafka 2.3 (KIP-339)" in ran.err


CONTROLLER_LOGIN = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="node" password="node" user_node="node";',
}


@pytest.mark.brokers
def test_a_controller_that_wants_other_credentials_than_brokers(tmp_path: Path) -> None:
    """What brokers pass on is done; the configuration of a dead broker, which they do not, is refused as what it is."""
    plan = plan_of(tmp_path, "t", [2])
    rate_of_2 = ("--entity-type", "brokers", "--entity-name", 2, "follower.replication.throttled.rate")
    with kraft_cluster("4.3", brokers=2, no_voters=(2,), properties=CONTROLLER_LOGIN) as c:
        k = WireKctl(c, tmp_path / "journal")
        k.change("topic", "create", "t", "--replica-assignment", "1")
        k.change("reassign", "throttle", "set", plan, 1000)
        c.kill(2)
        for _ in eventually("broker 2 is fenced"):
            if not k("cluster", "brokers").of("broker")[1]["is_alive"]:
                break
        ran = k("config", "unset", *rate_of_2, "--yes")
        assert ran.status == 3 and "is not known: it is not alive; nothing was written" in ran.err
        ran = k("reassign", "throttle", "clear", plan, "--yes")
        assert (
            ran.status in (3, 5) and "the active controller takes no request of this connection at" in ran.err
        )
        assert "(listener CONTROLLER)" in ran.err and "may still be carried out" not in ran.err
        assert k("config", "get", "--entity-type", "brokers", "--entity-name", 1).of("config") == []
