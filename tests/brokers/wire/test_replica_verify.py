"""`kctl replica verify` on real clusters: silent where all is well, and a follower with other bytes found."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.brokers.cluster import Cluster, eventually
from tests.brokers.wire.conftest import WireKctl, fill


def in_sync(k: WireKctl, topic: str) -> bool:
    return all(len(p["isr"]) == len(p["replicas"]) for p in k("topic", "describe", topic).of("partition"))


def flip(log: Path, batch: int) -> int:
    """Another bit in the records of a batch; the batch's base offset."""
    data = bytearray(log.read_bytes())
    at = 0
    for _ in range(batch):
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    data[at + 61 + 20] ^= 0x10
    log.write_bytes(data)
    return int.from_bytes(data[at : at + 8], "big")


def test_healthy_replicas_are_equal(w: Cluster, k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2")
    for partition in (0, 1):
        fill(w, topic, partition=partition, records=400)
    ran = k("replica", "verify", "--topic", topic)
    assert ran.status == 0, ran.rows
    verdicts = ran.of("verdict")
    assert [(v["partition"], v["verdict"], v["from_offset"], v["to_offset"]) for v in verdicts] == [
        (0, "equal", 0, 400),
        (1, "equal", 0, 400),
        (2, "equal", 0, 0),
    ]
    assert all(sorted(v["broker_ids"]) == sorted(b for b, _ in v["log_end_offsets"]) for v in verdicts)
    (total,) = ran.of("verification")
    assert total["equal"] == 3 and total["bytes"] > 3 * 2 * 400 * 1000


def test_a_compacted_topic_is_no_finding(w: Cluster, k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2", "--config", "cleanup.policy=compact")
    fill(w, topic, records=50, key=b"k")
    ran = k("replica", "verify", "--topic", topic)
    assert ran.status == 0 and [v["verdict"] for v in ran.of("verdict")] == ["equal"]


@contextmanager
def load(c: Cluster, topic: str) -> Iterator[None]:
    """Records of a few keys that come all the time."""
    from kafka import KafkaProducer

    over = threading.Event()

    def produce() -> None:
        producer = KafkaProducer(bootstrap_servers=c.bootstrap.split(","), acks="all", linger_ms=5)
        while not over.is_set():
            for n in range(50):
                producer.send(topic, key=b"%d" % (n % 7), value=b"v" * 500, partition=0)
            producer.flush(60)
        producer.close()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_nothing_is_found_under_load_and_compaction(w: Cluster, k: WireKctl, topic: str) -> None:
    quick = {"cleanup.policy": "compact", "segment.ms": 300, "min.cleanable.dirty.ratio": "0.01"}
    configs = [word for key, value in quick.items() for word in ("--config", f"{key}={value}")]
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3", *configs)
    with load(w, topic):
        for _ in eventually("a part of the log is compacted"):
            ran = k("replica", "verify", "--topic", topic)
            assert ran.status == 0 and {v["verdict"] for v in ran.of("verdict")} == {"equal"}, ran.rows
            offsets = [r["offset"] for r in k("segment", "dump", f"{topic}-0", "--records").of("record")]
            if offsets and len(offsets) < offsets[-1] // 2:
                break
        ran = k("replica", "verify", "--topic", topic)
    assert ran.status == 0 and ran.of("finding") == [], ran.rows


def test_a_corrupted_follower_is_found(w: Cluster, k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3")
    for _ in range(5):
        fill(w, topic, records=20)
    w.stop(2)  # in good order: after a crash the broker would check the log and cut it there
    log = w.brokers[2].log_dir / f"{topic}-0" / f"{0:020d}.log"
    offset = flip(log, 1)
    assert offset > 0
    w.start(2)
    for _ in eventually("broker 2 is in the ISR again"):
        if in_sync(k, topic):
            break
    for _ in eventually("the broker that is back answers for its replica"):
        ran = k("replica", "verify", "--topic", topic)
        (verdict,) = ran.of("verdict")
        if verdict["verdict"] != "unknown":
            break
    assert ran.status == 5
    assert (verdict["verdict"], verdict["to_offset"]) == ("damaged", 100) and verdict["best_source"] in (1, 3)
    (finding,) = ran.of("finding")
    assert (finding["code"], finding["broker_id"]) == ("replica-damaged-copy", 2)
    assert finding["base_offset"] == offset and finding["file"] is None


def test_a_dead_broker_is_said_and_the_rest_compared(w: Cluster, k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2:3")
    fill(w, topic, records=50)
    w.kill(3)
    w.wait_until_gone(3)
    for _ in eventually("broker 3 is seen to be dead"):
        if [b["broker_id"] for b in k("cluster", "brokers").of("broker") if b["is_alive"]] == [1, 2]:
            break
    ran = k("replica", "verify", "--topic", topic)
    assert ran.status == 5 and [f["code"] for f in ran.of("finding")] == ["replica-not-verified"]
    (verdict,) = ran.of("verdict")
    assert (verdict["verdict"], verdict["broker_ids"], verdict["to_offset"]) == ("unknown", [1, 2], 50)


def test_it_goes_on_where_it_was(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    fill(w, topic, records=50)
    done = tmp_path / "verified.json"
    assert k("replica", "verify", "--topic", topic, "--resume", done).status == 0
    assert json.loads(done.read_bytes())["partitions"][f"{topic}-0"][1] == 50
    fill(w, topic, records=10)
    (verdict,) = k("replica", "verify", "--topic", topic, "--resume", done).of("verdict")
    assert (verdict["from_offset"], verdict["to_offset"]) == (50, 60)
    values = json.loads(done.read_bytes())
    done.write_text(json.dumps({**values, "cluster_id": "another"}))
    refused = k("replica", "verify", "--topic", topic, "--resume", done)
    assert refused.status == 4 and "is about cluster another" in refused.err


def test_the_rate_is_kept(w: Cluster, k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    fill(w, topic, records=500)
    (total,) = k("replica", "verify", "--topic", topic, "--max-rate", "500000").of("verification")
    assert total["bytes"] / total["seconds"] < 600_000


def test_an_unknown_topic_is_said(k: WireKctl) -> None:
    ran = k("replica", "verify", "--topic", "nobody-made-it")
    assert ran.status == 3 and ran.err.startswith("kctl: no topic nobody-made-it\n")
