"""Clusters that the tests of this folder share: one of each kind and version in a run, healed after every test."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, cluster, eventually, kraft_cluster
from tests.brokers.running import Kctl

NUMBERS = count()
KINDS: dict[str, tuple[Callable[..., AbstractContextManager[Cluster]], str]] = {
    "kraft-4.3": (kraft_cluster, "4.3"),
    "zookeeper-2.8": (cluster, "2.8"),
    "kraft-4.1": (kraft_cluster, "4.1"),
    "kraft-3.9": (kraft_cluster, "3.9"),
    "zookeeper-3.9": (cluster, "3.9"),
    "zookeeper-2.4": (cluster, "2.4"),
}
EVERYWHERE = ("kraft-4.3", "zookeeper-2.8")
PARAMS = [
    pytest.param(kind, marks=[pytest.mark.brokers, *([] if kind in EVERYWHERE else [pytest.mark.matrix])])
    for kind in KINDS
]


@dataclass
class WireKctl(Kctl):
    """kctl that knows the brokers and nothing of ZooKeeper."""

    @property
    def environment(self) -> dict[str, str]:
        return {
            "KCTL_BOOTSTRAP_SERVER": self.cluster.bootstrap,
            "KCTL_JOURNAL": str(self.journal),
            "KCTL_CONFIG": os.devnull + "/none",
            "KCTL_ANSWER_TIMEOUT": "60",  # of a slow machine
        }

    def replicas(self, topic: str) -> list[list[int]]:
        """The replicas of each partition."""
        return [p["replicas"] for p in self("topic", "describe", topic).of("partition")]


@pytest.fixture(scope="session", params=PARAMS)
def live(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers 1, 2, 3; of one kind after the other."""
    make, version = KINDS[request.param]
    with make(version, brokers=3, properties={"log.cleaner.backoff.ms": 200}) as c:
        yield c


@pytest.fixture
def w(live: Cluster) -> Iterator[Cluster]:
    """The shared cluster; every broker runs again, and has been seen to, after the test."""
    yield live
    live.heal()


@pytest.fixture
def k(w: Cluster, tmp_path: Path) -> WireKctl:
    """kctl for the shared cluster, with a journal of its own, once all brokers are alive."""
    kctl = WireKctl(w, tmp_path / "journal")
    for _ in eventually("three brokers alive"):
        if [b["is_alive"] for b in kctl("cluster", "brokers").of("broker")] == [True] * 3:
            return kctl
    raise AssertionError


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no test has used."""
    return f"t{next(NUMBERS)}-{re.sub('[^a-z0-9]', '-', request.function.__name__)[:30]}"


def fill(
    c: Cluster,
    topic: str,
    *,
    partition: int = 0,
    records: int = 100,
    size: int = 1000,
    key: bytes | None = None,
) -> None:
    """Records in a partition, acknowledged by all."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=c.bootstrap.split(","), acks="all", linger_ms=5)
    try:
        sent = [
            producer.send(topic, key=key, value=n.to_bytes(8, "big") * (size // 8), partition=partition)
            for n in range(records)
        ]
        for one in sent:
            one.get(timeout=60)
    finally:
        producer.close()
