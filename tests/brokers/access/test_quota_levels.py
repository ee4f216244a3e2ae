"""Quotas on real brokers: which of the eight levels a client feels, and all of them as Kafka's tool lists them."""

from __future__ import annotations

import pytest

from kctl.access.quotas import LEVELS
from tests.brokers.access.conftest import EVERYWHERE, Guarded
from tests.brokers.access.test_a_day import IPS, by_kafka_configs, quotas_by_kctl
from tests.brokers.processes import eventually
from tests.brokers.running import Kctl

pytestmark = [pytest.mark.brokers, pytest.mark.parametrize("guarded", EVERYWHERE, indirect=True)]
SMALL, LARGE = 1000, 1_000_000_000  # bytes a second


def is_throttled(guarded: Guarded, client_id: str, topic: str) -> bool:
    """Whether a broker asks a client that sends a large record to wait."""
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=guarded.cluster.bootstrap, client_id=client_id, enable_idempotence=False
    )
    try:
        producer.send(topic, bytes(100_000)).get(timeout=60)
        groups = producer.metrics().values()
        return any(
            name == "throttle-time-max" and value > 0 for group in groups for name, value in group.items()
        )
    finally:
        producer.close()


def test_the_level_that_a_client_feels_is_the_one_that_is_said(guarded: Guarded, k: Kctl, name: str) -> None:
    """From the last level to the first: a large quota ends the small one of the level below, and a small one is felt."""
    topic, client = f"{name}-quotas", f"{name}-client"
    k.change("topic", "create", topic, "--partitions", "1", "--replication-factor", "1")
    before = by_kafka_configs(guarded)
    first = len(k.ids())
    users, clients = ("ANONYMOUS", "<default>", None), (client, "<default>", None)
    entities = [(user, client_id) for user in users for client_id in clients if user or client_id]
    assert len(entities) == len(LEVELS)
    for level, (user, client_id) in reversed(list(zip(LEVELS, entities, strict=True))):
        named = [("--user", user), ("--client-id", client_id)]
        given = [word for pair in named if pair[1] for word in pair]
        for rate in (LARGE, SMALL):
            k.change("quota", "set", *given, f"producer_byte_rate={rate}")
            rows = k("quota", "check", "ANONYMOUS", client).of("quota")
            (row,) = (row for row in rows if row["key"] == "producer_byte_rate")
            assert (row["value"], row["source"]) == (rate, level)
            for _ in eventually(f"the client feels {rate} bytes a second of {level}"):
                if is_throttled(guarded, client, topic) == (rate == SMALL):
                    break
    assert quotas_by_kctl(k) == by_kafka_configs(guarded)[1]
    for id in reversed(k.ids()[first:]):
        k.change("journal", "undo", id)
    assert by_kafka_configs(guarded) == before
    k.change("topic", "delete", topic)


def test_names_of_users_and_clients(guarded: Guarded, k: Kctl, name: str) -> None:
    """Names are encoded in ZooKeeper and not in KRaft; Kafka's tool lists the same."""
    user, client = f"CN={name},O=x y/z%", f"{name} a&b*:é"
    for given in (("--user", user), ("--client-id", client), ("--user", user, "--client-id", client)):
        k.change("quota", "set", *given, "consumer_byte_rate=4096", "request_percentage=12.5")
    shown = quotas_by_kctl(k)
    assert shown == by_kafka_configs(guarded)[1]
    assert shown[(("user", user), ("client_id", client)), "request_percentage"] == 12.5
    for id in reversed(k.ids()):
        k.change("journal", "undo", id)
    assert quotas_by_kctl(k) == by_kafka_configs(guarded)[1]
    assert not [key for key in quotas_by_kctl(k) if name in str(key)]


def test_addresses(guarded: Guarded, k: Kctl) -> None:
    """Quotas of addresses, and of all others, as Kafka's tool lists them (KIP-612)."""
    if guarded.is_before_protocol:
        pytest.skip("quotas of addresses came with Kafka 2.7")
    before = by_kafka_configs(guarded, IPS)[1]
    for address, rate in (("192.0.2.1", 10), ("2001:db8::1", 20), ("<default>", 30)):
        k.change("quota", "set", "--ip", address, f"connection_creation_rate={rate}")
    shown = {
        ((("ip", row["ip"]),), row["key"]): row["value"]
        for row in k("quota", "list").of("quota")
        if row["ip"] is not None
    }
    assert shown == by_kafka_configs(guarded, IPS)[1]
    assert shown[(("ip", "<default>"),), "connection_creation_rate"] == 30 and len(shown) >= 3
    for id in reversed(k.ids()):
        k.change("journal", "undo", id)
    assert by_kafka_configs(guarded, IPS)[1] == before
