"""Copies of brokers under load: what the order of reading leaves between the files is no alarm to an audit."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from kctl.audit.tombstones import kept_tombstones
from kctl.checks.retention import DAY
from kctl.evidence.discover import discover
from tests.brokers.cluster import Cluster, cluster, eventually, kraft_cluster
from tests.brokers.traffic import traffic
from tests.conftest import Ran, rows

COPIES = int(os.environ.get("KCTL_TEST_COPIES", "2"))
HURRIED: dict[str, object] = {
    "log.retention.check.interval.ms": 300,
    "log.cleaner.backoff.ms": 100,
    "log.segment.delete.delay.ms": 100,
    "log.flush.offset.checkpoint.interval.ms": 200,
    "log.flush.start.offset.checkpoint.interval.ms": 200,
    "replica.high.watermark.checkpoint.interval.ms": 200,
    "log.cleaner.min.cleanable.ratio": 0.01,
}
TOPICS: dict[str, dict[str, object]] = {
    "kept": {"segment.bytes": 20000},
    "short": {"segment.bytes": 2000, "retention.bytes": 60000},
    "table": {"segment.bytes": 3000, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.01},
}


@pytest.fixture(scope="module", params=["3.9", "kraft-3.9"])
def loaded(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers that roll, delete, compact and write checkpoints several times a second."""
    mode, _, version = request.param.rpartition("-")
    with (kraft_cluster if mode else cluster)(version, brokers=3, properties=HURRIED) as c:
        for topic, configs in TOPICS.items():
            create(c, topic, configs)
        with contextlib.ExitStack() as stack:
            for topic in TOPICS:
                stack.enter_context(traffic(c, topic, 3, pause_ms=2))
            yield c


def create(c: Cluster, topic: str, configs: dict[str, object]) -> None:
    words = [word for key, value in configs.items() for word in ("--config", f"{key}={value}")]
    where = ("--zookeeper", c.connect) if c.zookeeper else ("--bootstrap-server", c.bootstrap)
    size = ("--partitions", 3, "--replication-factor", 3)
    ran = rows("topic", "create", topic, *size, *words, *where, "--yes")
    assert ran.status == 0, ran.err


def alarms(ran: Ran) -> list[object]:
    found = [row for row in ran.rows if row["kind"] == "finding" and row["severity"] != "info"]
    wrong = [
        row
        for row in ran.rows
        if row["kind"] == "judgement" and row["verdict"] in ("lost", "damaged", "unreadable")
    ]
    return [*found, *wrong, *ran.of("loss")]


@pytest.mark.brokers
@pytest.mark.parametrize("number", range(COPIES))
def test_a_copy_of_brokers_under_load_gives_no_alarm(loaded: Cluster, number: int, tmp_path: Path) -> None:
    sources = [loaded.brokers[id].folder for id in sorted(loaded.brokers)]
    copied = rows("collect", "--to", tmp_path / "copy", *sources)
    assert copied.status == 0, copied.err
    assert rows("collect", "verify", tmp_path / "copy").status == 0
    ran = rows("audit", "run", tmp_path / "copy", "--out", tmp_path / "report")
    assert not alarms(ran), alarms(ran)
    assert {row["topic"] for row in ran.of("judgement")} >= set(TOPICS)


@pytest.mark.brokers
@pytest.mark.parametrize("number", range(COPIES))
def test_what_brokers_under_load_give_gives_no_alarm(loaded: Cluster, number: int, tmp_path: Path) -> None:
    copied = rows("collect", "--to", tmp_path / "copy", "--records", "--bootstrap-server", loaded.bootstrap)
    missing = [line for line in copied.err.splitlines() if line.startswith("kctl: ")]
    assert all("short-" in line and "were deleted each time" in line for line in missing), copied.err
    assert copied.status == (3 if missing else 0)  # on a slow machine retention outruns a copy of it
    assert rows("collect", "verify", tmp_path / "copy").status == 0
    ran = rows("audit", "run", tmp_path / "copy", "--out", tmp_path / "report")
    assert not alarms(ran), alarms(ran)
    assert {row["topic"] for row in ran.of("judgement")} >= {"kept", "table"}


@pytest.mark.brokers
def test_tombstones_that_a_cleaner_has_met_are_named_with_the_end_of_their_time(loaded: Cluster) -> None:
    from kafka import KafkaProducer  # starts quickly without

    create(loaded, "erased", {**TOPICS["table"], "segment.bytes": 1000, "delete.retention.ms": 3_600_000})
    now = int(time.time() * 1000)
    producer = KafkaProducer(bootstrap_servers=loaded.bootstrap.split(","), acks="all", batch_size=0)
    for number in range(20):
        value = b"x" * 50 if number < 15 else None
        producer.send(
            "erased", value, b"key-%d" % (number % 5), partition=0, timestamp_ms=now - 10 * DAY + number
        )
    for number in range(30):
        producer.send("erased", b"x" * 50, b"later-%d" % number, partition=0, timestamp_ms=now)
    producer.close()
    said: list[str] = []
    for _ in eventually(lambda: f"the cleaner has met the tombstones: {said}"):
        evidence = discover([loaded.brokers[1].log_dir])
        said[:] = [
            finding.message for finding in kept_tombstones(evidence) if finding.place.topic == "erased"
        ]
        if said and "keeps 5 tombstones of more than two days" in said[0]:
            break
    assert "the first at offset 15 " in said[0]
    until = re.search(r"`delete.retention.ms` .* keeps them until (\S+)Z\.", said[0])
    assert until, said
    horizon = datetime.fromisoformat(f"{until[1]}+00:00").timestamp() * 1000
    assert 3_600_000 <= horizon - now < 3_600_000 + 600_000
