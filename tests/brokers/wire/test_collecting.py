"""Copies of what brokers give over Kafka's own protocol: the bytes that they have on disk, and evidence without an alarm."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.brokers.cluster import Cluster, eventually
from tests.brokers.traffic import traffic
from tests.brokers.wire.conftest import WireKctl, fill
from tests.brokers.wire.test_replica_verify import flip, in_sync
from tests.conftest import Ran


def transactions(c: Cluster, topic: str) -> Any:
    """One transaction that was committed, one aborted, and one that is open; the producer of the last."""
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=c.bootstrap.split(","),
        transactional_id=f"id-{topic}",
        transaction_timeout_ms=600_000,
    )
    producer.init_transactions()
    for end in (producer.commit_transaction, producer.abort_transaction, None):
        producer.begin_transaction()
        producer.send(topic, b"of a transaction", partition=0).get(timeout=60)
        if end:
            end()
    return producer


def alarms(ran: Ran) -> list[object]:
    found = [row for row in ran.of("finding") if row["severity"] != "info"]
    wrong = [row for row in ran.of("judgement") if row["verdict"] in ("lost", "damaged", "unreadable")]
    return [*found, *wrong, *ran.of("loss"), *ran.of("divergence")]


def told(copy: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (copy / "metadata" / name).read_bytes().splitlines()]


def logs(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def test_the_bytes_of_each_replica_are_evidence_without_an_alarm(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2")
    fill(w, topic, records=60)
    producer = transactions(w, topic)
    try:
        with traffic(w, topic, 3, pause_ms=5) as running:
            running.require_progress()
            ran = k("collect", "--to", copy, "--records", "--topic", topic)
            assert ran.status == 0, ran.err
    finally:
        producer.close(timeout=1)
    assert k("collect", "verify", copy).status == 0
    for partition in range(3):
        ends = set()
        for broker_id, broker in w.brokers.items():
            fetched = logs(copy / f"broker-{broker_id}" / "data" / f"{topic}-{partition}")
            assert fetched and logs(broker.log_dir / f"{topic}-{partition}").startswith(fetched)
            ends.add(len(fetched))
        assert len(ends) == 1
    verified = k("segment", "verify", copy)
    assert (verified.status, alarms(verified)) == (0, []), verified.err
    assert verified.of("summary")[0]["records"] >= 3 * 60
    audited = k("audit", "run", copy, "--out", tmp_path / "report")
    assert not alarms(audited), alarms(audited)
    loss = k("replica", "loss", copy)
    reasons = {row["reason"] for row in loss.of("judgement")}
    assert (loss.status, reasons) == (0, {"the copies of all 3 replicas were compared"})
    assert {row["verdict"] for row in k("log-dir", "start", copy).of("judgement")} == {"could_not_judge"}
    rows = told(copy, "cluster.jsonl")
    assert {row["topic"] for row in rows if row["kind"] == "topic"} == {topic}
    replicas = told(copy, "replicas.jsonl")
    assert len(replicas) == 9 and sum(row["is_leader"] for row in replicas) == 3
    assert all(row["epochs"] == [[0, 0]] for row in replicas if row["is_leader"]), replicas
    if w.version != "2.8":  # which is not asked for producers
        (mine,) = [
            row for row in told(copy, "transactions.jsonl") if row["transactional_id"] == f"id-{topic}"
        ]
        assert mine["state"] == "Ongoing"
        assert mine["producer_id"] in [row["producer_id"] for row in told(copy, "producers.jsonl")]


def test_what_a_dead_broker_and_a_damaged_replica_lack_is_said(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3")
    fill(w, topic, records=30)
    for _ in eventually("all replicas are in sync"):
        if in_sync(k, topic):
            break
    flip(w.brokers[2].log_dir / f"{topic}-0" / f"{0:020d}.log", 0)
    w.kill(3)
    w.wait_until_gone(3)
    for _ in eventually("broker 3 is seen to be dead"):
        if [b["is_alive"] for b in k("cluster", "brokers").of("broker")] == [True, True, False]:
            break
    copy = tmp_path / "copy"
    ran = k("collect", "--to", copy, "--records", "--topic", topic)
    assert ran.status == 3, ran.err
    incomplete = {row["broker_id"]: row["incomplete"] for row in ran.of("collected")}
    assert incomplete[1] is incomplete[2] is None and incomplete[3] == "it is not alive"
    lost = k("replica", "loss", copy)
    (judged,) = [row for row in lost.of("judgement") if row["topic"] == topic]
    assert judged["verdict"] == "could_not_judge"
    assert "replica of broker 3" in {part["what"] for part in judged["missing"]}
    verified = k("segment", "verify", copy)
    assert verified.status == 5
    assert {row["broker_id"] for row in alarms(verified) if isinstance(row, dict)} == {2}


def test_records_before_the_time_asked_are_left_out_and_nothing_is_called_sound(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3,2:3:1")
    fill(w, topic, records=40)
    time.sleep(0.1)  # so that no batch is of both times
    since = int(time.time() * 1000)
    time.sleep(0.1)
    fill(w, topic, records=20)
    copy = tmp_path / "copy"
    ran = k("collect", "--to", copy, "--records", "--topic", topic, "--since", since)
    assert ran.status == 0, ran.err
    dumped = k("segment", "dump", "--records", *sorted(copy.rglob("*.log"))).of("record")
    assert dumped and min(row["timestamp"] for row in dumped) >= since
    verified = k("segment", "verify", copy)
    assert (verified.status, alarms(verified)) == (0, []), verified.err
    audited = k("audit", "run", copy, "--out", tmp_path / "report")
    assert not alarms(audited), alarms(audited)
    for question in ("loss", "divergence"):
        judged = {
            row["partition"]: row
            for row in audited.of("judgement")
            if row["question"] == question and row["topic"] == topic
        }
        assert judged[0]["verdict"] == "could_not_judge"
        assert any("records before offset 40" in part["what"] for part in judged[0]["missing"])
        assert judged[1]["verdict"] == "sound"  # it has no records, so that none were left out
    hashed = tmp_path / "hashed"
    assert k("collect", "--to", hashed, "--records", "--topic", topic,
             "--headers", "--hash-key", tmp_path / "key").status == 0  # fmt: skip
    assert k("collect", "verify", hashed).status == 0 and not alarms(k("segment", "verify", hashed))
    for path in hashed.rglob("*.log"):
        assert bool(path.stat().st_size) is path.parent.name.endswith("-0")
        assert bytes(7) + b"\1" + bytes(7) + b"\1" not in path.read_bytes()
    assert {row["verdict"] for row in k("replica", "loss", hashed).of("judgement")} == {"sound"}
    nothing = tmp_path / "nothing"
    assert (
        k("collect", "--to", nothing, "--records", "--topic", topic, "--since", since + 3_600_000).status == 0
    )
    assert not any(path.stat().st_size for path in nothing.rglob("*.log"))
    assert not alarms(k("segment", "verify", nothing))
