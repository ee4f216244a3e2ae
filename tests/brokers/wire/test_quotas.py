"""Clients whose quota is used up: brokers give nothing for a while, and kctl waits as long as they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.brokers.cluster import Cluster
from tests.brokers.wire.conftest import WireKctl, fill

pytestmark = [
    pytest.mark.brokers,
    pytest.mark.matrix,
    pytest.mark.parametrize("live", ["kraft-4.3"], indirect=True),
]


@contextmanager
def quota(k: WireKctl, key: str, value: int) -> Iterator[None]:
    """Of clients that call themselves kctl."""
    entity = ("--entity-type", "clients", "--entity-name", "kctl")
    k.change("config", "set", *entity, f"{key}={value}")
    try:
        yield
    finally:
        k.change("config", "unset", *entity, key)


def test_bytes_are_waited_for(w: Cluster, k: WireKctl, topic: str) -> None:
    """What a broker has left to give is below a megabyte at once, then nothing."""
    k.change("topic", "create", topic, "--replica-assignment", "1:2,2:1")
    for partition in (0, 1):
        fill(w, topic, partition=partition, records=400)
    with quota(k, "consumer_byte_rate", 50_000):
        ran = k("replica", "verify", "--topic", topic)
    assert ran.status == 0, ran.rows
    (total,) = ran.of("verification")
    assert total["equal"] == 2 and total["bytes"] > 2 * 2 * 400 * 1000
    assert total["seconds"] > 1, "the brokers did not ask to wait"


def test_changes_are_waited_for(w: Cluster, k: WireKctl, topic: str) -> None:
    with quota(k, "controller_mutation_rate", 1):
        for number in range(3):
            k.change("topic", "create", f"{topic}-{number}", "--partitions", 6, "--replication-factor", 1)
    for number in range(3):
        k.change("topic", "delete", f"{topic}-{number}")
