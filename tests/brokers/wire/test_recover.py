"""A recorded incident played back onto real clusters: what was lost there is recovered, and a consumer sees it once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from formats.log.records import LogEntry, iterate_records, walk
from tests.brokers.cluster import Cluster
from tests.brokers.wire.conftest import WireKctl
from tests.conftest import recording

INCIDENT = "incidents/unclean-2.8"
LOST = {0: range(40, 70), 1: range(40, 50), 2: range(40, 60)}
MARKS = ("kctl.recovered.from", "kctl.recovered.epoch", "kctl.recovered.incident")
Seen = tuple[bytes | None, bytes | None, int]


def logged(moment: str, broker: int, partition: int) -> list[Seen]:
    """Key, value and timestamp of each record of a copy, in order."""
    folder = recording(INCIDENT) / "moments" / moment / f"broker-{broker}" / "data" / f"ledger-{partition}"
    return [
        (record.key, record.value, record.timestamp)
        for segment in sorted(folder.glob("*.log"))
        for entry in walk(segment.read_bytes())
        if isinstance(entry, LogEntry)
        for record in iterate_records(entry)
    ]


def play_back(c: Cluster, topic: str) -> None:
    """Give a topic the records that the cluster had after the incident."""
    producer = KafkaProducer(bootstrap_servers=c.bootstrap.split(","), acks="all", linger_ms=5)
    try:
        for partition in LOST:
            for key, value, timestamp in logged("after", 2, partition):
                producer.send(topic, value, key, partition=partition, timestamp_ms=timestamp)
        producer.flush(timeout=60)
    finally:
        producer.close()


def consumed(c: Cluster, topic: str) -> dict[int, list[Any]]:
    """What a consumer with Kafka's own defaults reads from the start, by partition."""
    consumer = KafkaConsumer(bootstrap_servers=c.bootstrap.split(","), auto_offset_reset="earliest")
    try:
        partitions = [TopicPartition(topic, partition) for partition in LOST]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        records: dict[int, list[Any]] = {partition: [] for partition in LOST}
        while any(consumer.position(tp) < ends[tp] for tp in partitions):
            for tp, batch in consumer.poll(timeout_ms=1000).items():
                records[tp.partition] += batch
        return records
    finally:
        consumer.close()


def seen(records: list[Any]) -> Counter[Seen]:
    return Counter((record.key, record.value, record.timestamp) for record in records)


def assert_each_once(c: Cluster, topic: str, *, with_present: bool = True) -> dict[int, list[Any]]:
    """A consumer sees each lost record once, with where it was lost; returns what it sees."""
    records = consumed(c, topic)
    for partition, offsets in LOST.items():
        lost = Counter(logged("during", 1, partition)[offsets.start : offsets.stop])
        present = Counter(logged("after", 2, partition)) if with_present else Counter[Seen]()
        assert seen(records[partition]) == lost + present
        sources = [dict(r.headers)[MARKS[0]] for r in records[partition] if r.headers]
        assert sources == [f"ledger-{partition}@{offset}".encode() for offset in offsets]
    return records


@pytest.fixture
def ledger(w: Cluster, k: WireKctl) -> Iterator[str]:
    """The topic of the incident, as it was at its end."""
    k.change("topic", "create", "ledger", "--replica-assignment", "1:2:3,2:3:1,3:1:2")
    play_back(w, "ledger")
    yield "ledger"
    w.heal()
    k.change("topic", "delete", "ledger")


def evidence() -> Path:
    return recording(INCIDENT)


def test_lost_records_are_seen_once(w: Cluster, k: WireKctl, ledger: str) -> None:
    shown = k("replica", "recover", evidence(), "--dry-run")
    rows = {row["partition"]: row for row in shown.of("recovery")}
    assert {p: (r["records"], r["already_there"], r["to_write"]) for p, r in rows.items()} == {
        p: (len(offsets), 0, len(offsets)) for p, offsets in LOST.items()
    }
    assert all(row["source"] == [{"moment": "during", "broker_id": 1}] for row in rows.values())
    assert k("replica", "recover", evidence(), "--verify").status == 5
    assert consumed(w, ledger)[0][-1].offset == len(logged("after", 2, 0)) - 1, "nothing was written"
    k.change("replica", "recover", evidence(), "--reason", "INC-7")
    records = assert_each_once(w, ledger)
    last = dict(records[0][-1].headers)
    assert set(last) == set(MARKS) and last["kctl.recovered.epoch"] == b"1"
    id = k.ids()[-1]
    entry = json.loads((k.journal / f"{id}.json").read_text())
    assert entry["details"]["recovered"] == {
        f"ledger-{p}": [[records[p][-len(offsets)].offset, records[p][-1].offset + 1]]
        for p, offsets in LOST.items()
    }
    assert not list((k.journal / "records").iterdir()), "nothing is kept of what is done"
    refused = k.change("journal", "undo", id, status=4)
    assert "consumers may have read the records" in refused.err
    proven = k("replica", "recover", evidence(), "--verify")
    assert proven.status == 0 and {r["already_there"] for r in proven.of("recovery")} == {30, 10, 20}
    assert k.change("replica", "recover", evidence()).of("change") == [], "nothing is left to do"
    assert_each_once(w, ledger)
