"""Clusters that tests share: one of each version in a run, healed after every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, cluster
from tests.brokers.running import Kctl

EVERYWHERE = ("0.8.2", "1.1", "2.8", "3.9")
MATRIX = ("0.9", "0.10.2", "0.11", "2.4")
VERSIONS = [pytest.param(v, marks=pytest.mark.brokers) for v in EVERYWHERE] + [
    pytest.param(v, marks=[pytest.mark.brokers, pytest.mark.matrix]) for v in MATRIX
]


@pytest.fixture(scope="session", params=VERSIONS)
def shared(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers 1, 2, 3; of one version after the other."""
    with cluster(request.param, brokers=3) as c:
        yield c


@pytest.fixture
def c(shared: Cluster) -> Iterator[Cluster]:
    """The shared cluster; every broker and ZooKeeper run again after the test."""
    yield shared
    shared.heal()


@pytest.fixture
def k(c: Cluster, tmp_path: Path) -> Kctl:
    """kctl for the shared cluster, with a journal of its own."""
    return Kctl(c, tmp_path / "journal")
