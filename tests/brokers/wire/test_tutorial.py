"""The part of the tutorial that needs a live cluster, on one such as `make cluster` starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.cluster import kraft_cluster
from tests.brokers.processes import eventually
from tests.brokers.wire.conftest import WireKctl
from tests.conftest import HERE

TUTORIAL = HERE.parent / "docs" / "tutorial.md"


@pytest.fixture
def k(tmp_path: Path) -> Iterator[WireKctl]:
    """kctl for a cluster of its own: what other tests leave behind is no beginner's cluster."""
    with kraft_cluster("4.3", brokers=3) as cluster:
        yield WireKctl(cluster, tmp_path / "journal")


@pytest.mark.brokers
def test_each_command_does_what_it_says(k: WireKctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in eventually(lambda: f"the cluster is healthy: {k('cluster', 'health').out!r}"):
        if k("cluster", "health").status == 0:
            break
    part = TUTORIAL.read_text("utf-8").partition("## 3.")[2]
    lines = [line for block in re.findall(r"```sh\n(.*?)```", part, re.DOTALL) for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("kctl ")]
    assert len(commands) == 9
    for line in commands:
        ran = k(*shlex.split(line)[1:])
        assert ran.status == 0, (line, ran.err)
        if "drain-3.json" in line and "execute" in line:
            assert not any(3 in replicas for replicas in k.replicas("orders") or [])
    k("topic", "delete", "orders", "--yes")
