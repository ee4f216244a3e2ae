"""An open transaction on real clusters: left to its coordinator, ended by a marker where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.brokers.cluster import Cluster
from tests.brokers.wire.conftest import WireKctl


@contextmanager
def open_transaction(c: Cluster, topic: str) -> Iterator[None]:
    """A transaction with one record in partition 0 that nobody ends meanwhile."""
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=c.bootstrap.split(","),
        transactional_id=f"id-{topic}",
        transaction_timeout_ms=600_000,
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).get(timeout=60)
        yield
    finally:
        producer.close(timeout=1)


def test_an_abort_is_planned_and_journalled(w: Cluster, k: WireKctl, topic: str) -> None:
    if w.version == "2.4":
        pytest.skip("brokers before 2.8 do not describe producers")
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    with open_transaction(w, topic):
        refused = k.change("transactions", "abort", f"{topic}-0", status=4)
        assert "it may coordinate" in refused.err or "still has the transaction" in refused.err
        if w.version in ("2.8",):
            return  # no way to ask coordinators before 3.0, so that nothing is written
        ran = k.change("transactions", "abort", f"{topic}-0", "--force")
        assert "it stays Ongoing there" in ran.err
        id = k.ids()[-1]
        assert "cannot be undone" in k.change("journal", "undo", id, status=4).err
        batches = k("segment", "dump", f"{topic}-0").of("batch")
        assert [b["is_control"] for b in batches] == [False, True]
        again = k.change("transactions", "abort", f"{topic}-0", "--force", status=3)
        assert "no transaction is open" in again.err


def test_coordinators_are_asked_which_transactions_hang(w: Cluster, k: WireKctl, topic: str) -> None:
    if w.version in ("2.4", "2.8"):
        assert k("transactions", "hanging").status == 3
        return
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    with open_transaction(w, topic):
        ran = k("transactions", "hanging")
        assert [r for r in ran.of("open_transaction") if r["topic"] == topic] == []
        ran = k("transactions", "hanging", topic, "--all")
        (row,) = ran.of("open_transaction")
        assert (row["transactional_id"], row["hanging"], row["first_offset"]) == (f"id-{topic}", False, 0)
        assert ran.status == 0
