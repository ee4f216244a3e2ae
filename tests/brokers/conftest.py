"""Clusters that tests share: one of each version in a run, healed after every test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.cluster import Cluster, cluster, eventually
from tests.brokers.running import LAST_RUNS, Kctl

EVERYWHERE = ("0.8.2", "1.1", "2.8", "3.9")
MATRIX = ("0.9", "0.10.2", "0.11", "2.4")
HAS_FAILED = pytest.StashKey[bool]()
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


@pytest.fixture
def healthy(c: Cluster, k: Kctl, request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test that went well everything runs again, and `cluster health` finds nothing wrong."""
    yield
    if request.node.stash.get(HAS_FAILED, False):
        return
    c.heal()
    wrong: list[Any] = []
    for _ in eventually(lambda: f"the cluster is healthy: {wrong}"):
        ran = k("cluster", "health")
        wrong[:] = [row for row in ran.of("health") if row["status"] in ("warning", "error")] or [ran.err]
        if ran.status == 0:
            return


# --- what a failure says ------------------------------------------------------------------------------

CLUSTERS = ("c", "w", "four", "secured")  # the fixtures that a test may have one from
SHOWN = 25  # lines of each broker's log


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A failure comes with what kctl said lately, and with the last troubles of each broker."""
    outcome: Any = yield
    report = outcome.get_result()
    if call.when == "setup":
        LAST_RUNS.clear() if report.passed else None
    if not report.failed:
        return
    item.stash[HAS_FAILED] = True
    report.sections.append(("the last runs of kctl", "\n".join(LAST_RUNS)))
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and LAST_RUNS:  # the line of the summary, which may be all that is kept
        crash.message += f" | {' '.join(LAST_RUNS[-1].split())[:500]}"
    for name in CLUSTERS:
        found = item.funcargs.get(name)
        shared = found[0] if isinstance(found, tuple) else found
        if isinstance(shared, Cluster):
            report.sections += [(f"broker {b.broker_id}", troubles(b.log)) for b in shared.brokers.values()]


def troubles(log: Path) -> str:
    """The last lines of a log: warnings and errors, then whatever came last."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    bad = [line[:500] for line in lines if re.search(r"^\[[^]]*\] (WARN|ERROR|FATAL) ", line)]
    return "\n".join([*bad[-SHOWN:], "...", *(line[:500] for line in lines[-SHOWN:])])
