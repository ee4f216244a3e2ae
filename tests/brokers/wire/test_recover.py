"""A recorded incident played back onto real clusters: what was lost there is recovered, and a consumer sees it once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from formats.log.records import LogEntry, iterate_records, walk
from tests.brokers.cluster import Cluster, eventually, kraft_cluster
from tests.brokers.wire.conftest import WireKctl
from tests.brokers.wire.test_rights import AsUser, allow
from tests.conftest import recording

INCIDENT = "incidents/unclean-2.8"
LOST = {0: range(40, 70), 1: range(40, 50), 2: range(40, 60)}
# The records are of the day of the recording: brokers would delete them.
KEPT = ("--config", "retention.ms=-1")
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
    k.change("topic", "create", "ledger", "--replica-assignment", "1:2:3,2:3:1,3:1:2", *KEPT)
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
    assert {row["is_recovered"] for row in k("replica", "loss", evidence(), "--recovered").of("loss")} == {
        False
    }
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
    losses = k("replica", "loss", evidence(), "--recovered")
    assert [(r["partition"], r["recovered"], r["is_recovered"]) for r in losses.of("loss")] == [
        (partition, len(offsets), True) for partition, offsets in LOST.items()
    ]
    # The only copy of what broker 1 alone had may lack its tail.
    assert {row["verdict"] for row in losses.of("judgement")} == {"could_not_judge"} and losses.status == 3
    assert_each_once(w, ledger)


def assert_into(w: Cluster, topic: str) -> None:
    assert_each_once(w, topic, with_present=False)


@pytest.mark.parametrize("part", range(4))
def test_recovery_killed_at_every_step(
    w: Cluster,
    k: WireKctl,
    ledger: str,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    part: int,
) -> None:
    """Gone on with by the journal, or run again: each record is there once."""
    monkeypatch.setattr("kctl.changes.kept_records.MOST_IN_A_BATCH", 9)
    command = ("replica", "recover", evidence(), "--into")
    points = list(dict.fromkeys(k.points(*command, topic, trace=tmp_path / "trace")))
    assert_into(w, topic)
    expected = {"opened:0", "fenced:0", "read-back:0", "produced:0:0", "produced:0:3", "after-write:1"}
    assert expected <= set(points)
    chosen = [point for point in points if not re.match("(opened|fenced|read-back|produced):[12]", point)]
    for number, point in list(enumerate(chosen))[part::4]:
        into = f"{topic}-{number}"
        known = set(k.ids())
        assert k.killed(*command, into, fault=point), point
        new = set(k.ids()) - known
        if number % 2 and new:
            (id,) = new
            ran = k("journal", "resume", id, "--yes")
            assert ran.status == 0 or "is finished" in ran.err, (point, ran.err)
            assert k.state(id) == "applied", point
        else:
            k.change(*command, into)
        assert_into(w, into)
        assert k("replica", "recover", evidence(), "--into", into, "--verify").status == 0
        assert k("journal", "verify").rows == []


def test_a_batch_that_was_cut_off_on_its_way_comes_too_late(
    w: Cluster, k: WireKctl, ledger: str, topic: str, tmp_path: Path
) -> None:
    """Two at once, with a journal each: the later one takes over, and nothing is written twice."""
    other = WireKctl(w, tmp_path / "other")
    command = ("replica", "recover", evidence(), "--into", topic)
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2", *KEPT)
    with k.stopped(*command, at="read-back:0") as first:
        other.change(*command)
        ran = first.go_on()
    assert ran.status == 5 or ran.status == 4, ran.err
    assert "another kctl has begun to recover records" in ran.err
    assert_into(w, topic)
    again = k.change("journal", "resume", k.ids()[-1])
    assert k.state(k.ids()[-1]) == "applied", again.err
    assert_into(w, topic)


def test_two_with_one_journal_take_turns(w: Cluster, k: WireKctl, ledger: str, topic: str) -> None:
    command = ("replica", "recover", evidence(), "--into", topic)
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2", *KEPT)
    with k.stopped(*command, at="fenced:1") as first:
        ran = k(*command, "--yes", "--timeout", "1s")
        assert ran.status == 4 and "another kctl is writing to this cluster now" in ran.err
        assert first.go_on().status == 0
    assert_into(w, topic)


def test_the_leader_dies_while_records_are_written(
    w: Cluster, k: WireKctl, ledger: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kctl.changes.kept_records.MOST_IN_A_BATCH", 9)
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2", *KEPT)
    with k.stopped("replica", "recover", evidence(), "--into", topic, at="produced:0:1") as process:
        w.kill(1)
        w.wait_until_gone(1)
        ran = process.go_on()
    assert ran.status == 0, ran.err
    assert_into(w, topic)


def test_too_few_replicas_in_sync(w: Cluster, k: WireKctl, ledger: str) -> None:
    k.change("topic", "config", "set", ledger, "min.insync.replicas=3")
    w.kill(3)
    for _ in eventually("broker 3 is out of the ISR"):
        isrs = [row["isr"] for row in k("topic", "describe", ledger).of("partition")]
        if isrs and all(3 not in isr for isr in isrs):
            break
    ran = k.change("replica", "recover", evidence(), status=4)
    assert "2 replicas in sync, and min.insync.replicas is 3" in ran.err and "nothing was written" in ran.err
    for _ in eventually("the new leaders know how far they are committed, and nothing was added"):
        if len(consumed(w, ledger)[0]) == len(logged("after", 2, 0)):
            break
    w.heal()
    for _ in eventually("all replicas are in sync"):
        isrs = [row["isr"] for row in k("topic", "describe", ledger).of("partition")]
        if isrs and all(len(isr) == 3 for isr in isrs):
            break
    k.change("replica", "recover", evidence())
    assert_each_once(w, ledger)
    assert k.change("journal", "resume", k.ids()[-2], status=None).status in (0, 4)
    assert_each_once(w, ledger)


def test_an_exported_folder_is_recovered(w: Cluster, k: WireKctl, ledger: str, tmp_path: Path) -> None:
    folder = tmp_path / "lost"
    k("replica", "loss", evidence(), "--export", folder)
    ran = k.change("replica", "recover", folder, "--partition", 1, "--rate", "1KiB")
    assert [(row["partition"], row["to_write"]) for row in ran.of("recovery")] == [(1, 10)]
    k.change("replica", "recover", folder)
    assert_each_once(w, ledger)
    assert k("replica", "recover", evidence(), "--verify").status == 0


def test_what_producers_sent_again_is_left_out(w: Cluster, k: WireKctl, ledger: str) -> None:
    """Also where they did so while the plan was shown: the present log is searched by content."""
    producer = KafkaProducer(bootstrap_servers=w.bootstrap.split(","), acks="all")
    for key, value, timestamp in logged("during", 1, 1)[40:45]:
        producer.send(ledger, value, key, partition=1, timestamp_ms=timestamp)
    producer.flush(timeout=60)
    producer.close()
    ran = k.change("replica", "recover", evidence(), "--partition", 1)
    assert [(row["already_there"], row["to_write"]) for row in ran.of("recovery")] == [(5, 5)]
    records = consumed(w, ledger)[1]
    assert seen(records) == Counter(logged("during", 1, 1)[40:50]) + Counter(logged("after", 2, 1))


def test_a_topic_that_takes_small_batches_only(w: Cluster, k: WireKctl, topic: str) -> None:
    create = ("topic", "create", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2", *KEPT)
    k.change(*create, "--config", "max.message.bytes=1000")
    k.change("replica", "recover", evidence(), "--into", topic)
    assert_into(w, topic)
    k.change("topic", "config", "set", topic, "max.message.bytes=100")
    more = k.change("replica", "recover", evidence(), "--into", topic, "--incident", "INC-9", status=0)
    assert more.of("change") == [], "everything is there"


def test_a_topic_that_is_not_there(k: WireKctl) -> None:
    ran = k.change("replica", "recover", evidence(), status=3)
    assert "no topic ledger" in ran.err or "topic ledger" in ran.err
    assert "--into" in ran.err and not k.ids()


@pytest.mark.brokers
@pytest.mark.parametrize("live", ["zookeeper-2.8"], indirect=True)
def test_a_message_format_without_headers(
    w: Cluster, k: WireKctl, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers up to 3.x convert records to it: a file beside the journal stands for the headers, also after a kill."""
    monkeypatch.setattr("kctl.changes.kept_records.MOST_IN_A_BATCH", 9)
    create = ("topic", "create", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2", *KEPT)
    k.change(*create, "--config", "message.format.version=0.10.2")
    command = ("replica", "recover", evidence(), "--into", topic)
    assert k.killed(*command, fault="produced:0:1")
    k.change(*command, "--partition", 0)
    assert k.killed(*command, fault="sent:1")
    k.change("journal", "resume", k.ids()[-1])
    records = consumed(w, topic)
    for partition, offsets in LOST.items():
        assert seen(records[partition]) == Counter(
            logged("during", 1, partition)[offsets.start : offsets.stop]
        )
        assert not any(record.headers for record in records[partition])
    assert k("replica", "recover", evidence(), "--into", topic, "--verify").status == 0


@pytest.mark.brokers
def test_rights_are_named_one_by_one(tmp_path: Path) -> None:
    """Each right that is missing is named; nothing is written before the last one is there."""
    with kraft_cluster("4.3", brokers=2, no_voters=(2,), users=("ann",)) as c:
        owner, ann = WireKctl(c, tmp_path / "owner"), AsUser(c, tmp_path / "journal", "ann")
        owner.change("topic", "create", "ledger", "--replica-assignment", "1:2,1:2,1:2", *KEPT)
        play_back(c, "ledger")
        allow(c, "ann", "TOPIC", "ledger", "READ", "DESCRIBE_CONFIGS")
        for _ in eventually("ann may read the topic"):
            if ann("replica", "recover", evidence(), "--dry-run").status == 0:
                break
        for missing, kind, name, operation in (
            (
                "Describe on TransactionalId kctl.recover.ledger-0",
                "TRANSACTIONAL_ID",
                "kctl.recover.",
                "DESCRIBE",
            ),
            ("Write on TransactionalId kctl.recover.ledger-0", "TRANSACTIONAL_ID", "kctl.recover.", "WRITE"),
            ("Write on Topic ledger", "TOPIC", "ledger", "WRITE"),
        ):
            ran = ann.change("replica", "recover", evidence(), status=3)
            assert f"{missing} is missing for User:ann" in ran.err, ran.err
            assert len(consumed(c, "ledger")[0]) == len(logged("after", 2, 0))
            allow(c, "ann", kind, name, operation, prefixed=kind != "TOPIC")
            for _ in eventually(f"ann has {operation} on {name}"):
                if missing not in ann.change("replica", "recover", evidence(), status=None).err:
                    break
        ann.change("replica", "recover", evidence())
        assert_each_once(c, "ledger")
