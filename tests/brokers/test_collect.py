"""Copies of brokers under load: what the order of reading leaves between the files is no alarm to an audit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, cluster
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


@pytest.fixture(scope="module", params=["3.9"])
def loaded(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers that roll, delete, compact and write checkpoints several times a second."""
    with cluster(request.param, brokers=3, properties=HURRIED) as c:
        for topic, configs in TOPICS.items():
            create(c, topic, configs)
        with contextlib.ExitStack() as stack:
            for topic in TOPICS:
                stack.enter_context(traffic(c, topic, 3, pause_ms=2))
            yield c


def create(c: Cluster, topic: str, configs: dict[str, object]) -> None:
    words = [word for key, value in configs.items() for word in ("--config", f"{key}={value}")]
    ran = rows(
        "topic",
        "create",
        topic,
        "--partitions",
        3,
        "--replication-factor",
        3,
        *words,
        "--zookeeper",
        c.connect,
        "--yes",
    )
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
