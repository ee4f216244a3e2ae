"""The runbooks of administration, carried out as they are written, on a cluster of 2.8."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, cluster, eventually
from tests.brokers.traffic import traffic
from tests.conftest import HERE

RUNBOOKS = HERE.parent / "docs" / "runbooks"
pytestmark = pytest.mark.brokers


@pytest.fixture(scope="module")
def four() -> Iterator[Cluster]:
    """Brokers 1 to 4 with two topics."""
    with cluster("2.8", brokers=4, properties={"offsets.topic.replication.factor": 3}) as c:
        yield c


def commands(runbook: str) -> str:
    """The shell blocks of a runbook as one script; a line `command  # exit 5` must end with 5."""
    text = (RUNBOOKS / f"{runbook}.md").read_text()
    lines = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)).splitlines()
    script = ["set -e"]
    for line in lines:
        wanted = re.search(r"#\s*exit (\d+)", line)
        if wanted:
            script.append(f"status=0; {line[: wanted.start()]} || status=$?; [ $status -eq {wanted[1]} ]")
        elif line.strip():
            script.append(line)
    return "\n".join(script)


def carry_out(c: Cluster, runbook: str, folder: Path) -> str:
    """Run a runbook's commands; `start-broker N` in them starts a broker of the rig."""
    tools = folder / "bin"
    tools.mkdir()
    (tools / "kctl").write_text(f'#!/bin/sh\nexec {sys.executable} -m commands "$@"\n')
    (tools / "start-broker").write_text(
        "#!/bin/sh\ntouch start-$1; while [ -e start-$1 ]; do sleep 0.1; done\n"
    )
    for tool in tools.iterdir():
        tool.chmod(0o755)
    over = threading.Event()

    def start_brokers() -> None:
        while not over.wait(0.1):
            for wish in folder.glob("start-*"):
                c.start(int(wish.name.removeprefix("start-")))
                wish.unlink()

    starter = threading.Thread(target=start_brokers)
    starter.start()
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(HERE.parent),
        "KCTL_ZOOKEEPER": c.connect,
        "KCTL_JOURNAL": str(folder / "journal"),
        "KCTL_CONFIG": "/dev/null/none",
        "KCTL_YES": "1",
    }
    try:
        ran = subprocess.run(
            ["bash", "-x", "-c", commands(runbook)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    finally:
        over.set()
        starter.join()
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-4000:]
    return ran.stdout


def make(c: Cluster, topic: str, replicas: list[list[int]]) -> None:
    if c.znode(f"/brokers/topics/{topic}") is None:
        c.create_topic(topic, replicas)


def replicas_of(c: Cluster, topic: str) -> list[list[int]]:
    partitions = c.znode(f"/brokers/topics/{topic}")["partitions"]
    return [partitions[str(p)] for p in range(len(partitions))]


def settle(c: Cluster) -> None:
    """All brokers run and every replica is in sync."""
    c.heal()
    for _ in eventually("everything in sync"):
        topics = [t for t in ("orders", "payments") if c.znode(f"/brokers/topics/{t}")]
        states = [
            (r, c.znode(f"/brokers/topics/{t}/partitions/{p}/state"))
            for t in topics
            for p, r in enumerate(replicas_of(c, t))
        ]
        if all(state and set(state["isr"]) == set(r) for r, state in states):
            return


def test_drain_a_broker(four: Cluster, tmp_path: Path) -> None:
    make(four, "orders", [[1, 3], [3, 2], [2, 1]])
    make(four, "payments", [[3, 1]])
    settle(four)
    with traffic(four, "orders", 3) as running:
        carry_out(four, "drain-a-broker", tmp_path)
        running.require_progress()
    running.require_nothing_lost()
    assert not any(3 in r for t in ("orders", "payments") for r in replicas_of(four, t))
    assert four.znode("/config/topics/orders")["config"] == {}


def test_replace_a_broker(four: Cluster, tmp_path: Path) -> None:
    make(four, "orders", [[1, 3], [3, 2], [2, 1]])
    make(four, "payments", [[2, 1]])
    settle(four)
    four.kill(2)
    four.wait_until_gone(2)
    with traffic(four, "orders", 3) as running:
        carry_out(four, "replace-a-broker", tmp_path)
    running.require_nothing_lost()
    assert not any(2 in r for t in ("orders", "payments") for r in replicas_of(four, t))


def test_raise_replication(four: Cluster, tmp_path: Path) -> None:
    make(four, "orders", [[1, 3], [3, 2], [2, 1]])
    settle(four)
    carry_out(four, "raise-replication", tmp_path)
    assert all(len(r) == 3 for r in replicas_of(four, "orders"))


def test_undo_a_bad_reassignment(four: Cluster, tmp_path: Path) -> None:
    make(four, "orders", [[1, 3], [3, 2], [2, 1]])
    settle(four)
    before = replicas_of(four, "orders")
    with traffic(four, "orders", 3) as running:
        carry_out(four, "undo-a-bad-reassignment", tmp_path)
        running.require_progress()
    running.require_nothing_lost()
    assert replicas_of(four, "orders") == before


def test_a_stuck_delete(four: Cluster, tmp_path: Path) -> None:
    make(four, "old-orders", [[1, 3], [3, 2]])
    settle(four)
    four.kill(3)
    four.wait_until_gone(3)
    carry_out(four, "a-stuck-delete", tmp_path)
    assert four.znode("/brokers/topics/old-orders") is None
