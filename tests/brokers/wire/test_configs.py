"""Configurations on real clusters: what is in force, what is refused before it is asked for, levels for a while."""

from __future__ import annotations

import time

import pytest

from tests.brokers.cluster import Cluster, eventually
from tests.brokers.wire.conftest import WireKctl

LOGGER = "root"
BROKER_1 = ("--entity-type", "brokers", "--entity-name", 1)
LOGGERS_1 = ("--entity-type", "broker-loggers", "--entity-name", 1)


def level(k: WireKctl) -> str:
    (row,) = k("config", "get", "--entity-type", "broker-loggers", "--entity-name", 1, LOGGER).of("config")
    return str(row["value"])


def test_what_is_in_force_and_where_it_comes_from(w: Cluster, k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2", "--config", "segment.bytes=1048576")
    of_topic = ("config", "get", "--effective", "--entity-type", "topics", "--entity-name", topic)
    rows = {r["key"]: r for r in k(*of_topic).of("config")}
    assert len(rows) > 20
    assert (rows["segment.bytes"]["value"], rows["segment.bytes"]["source"]) == ("1048576", "topic")
    assert rows["flush.ms"]["source"] == "default"
    assert [s["key"] for s in rows["segment.bytes"]["synonyms"]] == ["segment.bytes", "log.segment.bytes"]
    assert rows["segment.bytes"]["type"] == (None if w.version == "2.4" else "int")
    (one,) = k(*of_topic, "segment.bytes", "--explain").of("config")
    assert w.version == "2.4" or "segment" in one["documentation"]
    broker = {r["key"]: r for r in k("config", "get", "--effective", *BROKER_1).of("config")}
    assert (
        broker["num.io.threads"]["source"] == "static" and broker["num.io.threads"]["is_read_only"] is False
    )
    assert (
        k("config", "get", "--effective", "--entity-type", "topics", "--entity-name", "nobodys").status == 3
    )
    everything = k("config", "get", "--effective", "num.io.threads", "segment.bytes").of("config")
    assert {(r["entity_type"], r["entity_name"]) for r in everything} >= {("topics", topic), ("brokers", "3")}


def test_a_broker_that_says_nothing_is_named(w: Cluster, k: WireKctl, topic: str) -> None:
    """With a replica: below 4.0 the cluster tells of nothing else once it counts as dead."""
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3")
    silent = 3 if k("cluster", "controller").of("controller")[0]["broker_id"] == 2 else 2
    w.pause(silent)
    for how in ((), ("--effective",)):
        for chosen in ((), ("--entity-name", silent)):
            ran = k("config", "get", "--entity-type", "brokers", *how, *chosen, KCTL_ANSWER_TIMEOUT="2")
            assert ran.status == 3 and f"broker {silent}" in ran.err and "as a user" not in ran.err
            assert str(silent) not in {row["entity_name"] for row in ran.of("config")}
    assert k("config", "get", *BROKER_1, KCTL_ANSWER_TIMEOUT="2").status == 0


def test_a_dead_broker_is_named(w: Cluster, k: WireKctl, topic: str) -> None:
    """Below 4.0 the cluster tells of a dead broker only where replicas are assigned to it."""
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3")
    dead = 3 if k("cluster", "controller").of("controller")[0]["broker_id"] == 2 else 2
    w.kill(dead)
    w.wait_until_gone(dead)
    for _ in eventually(f"broker {dead} is known to be dead"):
        if not {row["broker_id"]: row["is_alive"] for row in k("cluster", "brokers").of("broker")}[dead]:
            break
    for how in ((), ("--effective",)):
        ran = k("config", "get", "--entity-type", "brokers", *how)
        assert ran.status == 3 and len(ran.errors) == 1 and f"broker {dead} is not" in ran.err, ran.err


def test_what_brokers_do_not_know_is_refused(k: WireKctl, topic: str) -> None:
    typo = k.change("config", "set", *BROKER_1, "num.io.thread=4", status=2)
    assert "num.io.thread is not a configuration of brokers" in typo.err and "num.io.threads" in typo.err
    default = ("--entity-type", "brokers", "--entity-name", "<default>")
    assert "log.retention.ms" in k.change("config", "set", *default, "log.retention.mss=1", status=2).err
    assert k.change("config", "set", *BROKER_1, "num.io.threads=many", status=2).of("change") == []
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    typo = k.change("topic", "config", "set", topic, "retention.msx=1", status=2)
    assert "did you mean retention.ms" in typo.err
    k.change("topic", "config", "set", topic, "retention.ms=soon", status=2)
    k.change("config", "set", *BROKER_1, "leader.replication.throttled.rate=1000000")
    k.change("journal", "undo", k.ids()[-1])
    assert len(k.ids()) == 3


def test_a_level_for_a_while(w: Cluster, k: WireKctl) -> None:
    before = level(k)
    debug = ("config", "set", *LOGGERS_1, f"{LOGGER}=DEBUG", "--for")
    assert k.change(*debug, "2s").of("change")[0]["finished"] and level(k) == before
    assert k.killed(*debug, "3s", fault="written:0")
    assert level(k) == "DEBUG"
    started = time.monotonic()
    k.change("journal", "resume", k.ids()[-1])
    assert level(k) == before and time.monotonic() - started < 60
    assert k.change("config", "set", *LOGGERS_1, "nobodys.logger=DEBUG", status=2).of("change") == []
    assert k.change("config", "set", *LOGGERS_1, f"{LOGGER}=LOUD", status=2).of("change") == []


def test_a_level_that_a_restart_has_set_back(w: Cluster, k: WireKctl) -> None:
    before = level(k)
    assert k.killed("config", "set", *LOGGERS_1, f"{LOGGER}=DEBUG", "--for", "1s", fault="written:0")
    w.restart(1)
    # Others may name it as alive for as long as its former session lasts.
    for _ in eventually("broker 1 tells its loggers"):
        if (told := k("config", "get", *LOGGERS_1)).status == 0:
            break
    assert told.of("config") and level(k) == before
    k.change("journal", "resume", k.ids()[-1])
    assert k.state(k.ids()[-1]) == "applied" and level(k) == before


def test_groups_and_client_metrics(w: Cluster, k: WireKctl) -> None:
    group = ("--entity-type", "groups", "--entity-name", "billing")
    if w.version < "4":
        refused = k("config", "get", *group)
        assert refused.status == 3 and "need Kafka 4.0 (KIP-848)" in refused.err
        pytest.skip("groups have no configuration before 4.0")
    k.change("config", "set", *group, "consumer.session.timeout.ms=50000")
    (row,) = k("config", "get", *group).of("config")
    assert (row["key"], row["value"]) == ("consumer.session.timeout.ms", "50000")
    effective = {r["key"]: r for r in k("config", "get", "--effective", *group).of("config")}
    assert effective["consumer.session.timeout.ms"]["source"] == "group"
    typo = k.change("config", "set", *group, "consumer.session.timeout=1", status=2)
    assert "consumer.session.timeout.ms" in typo.err
    k.change("journal", "undo", k.ids()[-1])
    assert k("config", "get", *group).of("config") == []
    metrics = ("--entity-type", "client-metrics", "--entity-name", "mine")
    k.change("config", "set", *metrics, "interval.ms=5000", "metrics=org.apache.kafka.producer.")
    rows = k("config", "get", "--entity-type", "client-metrics").of("config")
    assert {(r["entity_name"], r["key"], r["value"]) for r in rows} >= {("mine", "interval.ms", "5000")}
    k.change("journal", "undo", k.ids()[-1])
