"""The runbooks of administration, carried out as they are written: on ZooKeeper, and over Kafka's own protocol."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from tests.brokers.cluster import Cluster, cluster, eventually, kraft_cluster
from tests.brokers.traffic import traffic
from tests.brokers.wire.conftest import fill
from tests.conftest import HERE, Ran, rows
from tests.kctl.collect.hosts import sshd, sshd_program, user

RUNBOOKS = HERE.parent / "docs" / "runbooks"
pytestmark = pytest.mark.brokers
Making = Callable[..., AbstractContextManager[Cluster]]
# Broker 2, which is replaced, is not a voter: of a KRaft quorum it would still be missing.
CLUSTERS: dict[str, tuple[Making, str]] = {
    "2.8": (cluster, "2.8"),
    "4.3": (partial(kraft_cluster, no_voters=(2,)), "4.3"),
}
# Internal topics outlive the broker that is killed, wherever an earlier runbook had them made.
TOLERANT = {"offsets.topic.replication.factor": 3, "transaction.state.log.replication.factor": 3}
ZOOKEEPER, PROTOCOL = "KCTL_ZOOKEEPER", "KCTL_BOOTSTRAP_SERVER"
BOTH = pytest.mark.parametrize(
    ("made", "backend"),
    [
        ("2.8", ZOOKEEPER),
        pytest.param("2.8", PROTOCOL, marks=pytest.mark.matrix),
        ("4.3", PROTOCOL),
    ],
    indirect=["made"],
    scope="module",
)


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Brokers 1 to 4."""
    make, version = CLUSTERS[request.param]
    with make(version, brokers=4, properties=TOLERANT) as c:
        yield c


@dataclass
class Four:
    """The cluster, and the backend by which a runbook reaches it."""

    cluster: Cluster
    backend: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        c = self.cluster
        return {
            self.backend: c.connect if self.backend == ZOOKEEPER else c.bootstrap,
            "KCTL_JOURNAL": str(self.folder / "journal"),
            "KCTL_CONFIG": "/dev/null/none",
            "KCTL_YES": "1",
            "KCTL_ANSWER_TIMEOUT": "60",
        }

    def kctl(self, *args: object) -> Ran:
        return rows(*args, env=self.environment)

    def carry_out(self, runbook: str, **more: Callable[[int], object]) -> str:
        """Run a runbook's commands; `start-broker N` in them starts a broker of the rig, `restart-broker N` stops it before."""
        doers = {"start-broker": self.cluster.start, "restart-broker": self.restart, **more}
        tools = {name: lambda id, do=do: do(int(id)) for name, do in doers.items()}
        return carry_out(runbook, self.folder, self.environment, tools)

    def replicas(self, topic: str) -> list[list[int]] | None:
        """The replicas of each partition; None where no such topic."""
        found = self.kctl("topic", "describe", topic)
        return [p["replicas"] for p in found.of("partition")] or None

    def make(self, topic: str, replicas: list[list[int]]) -> None:
        """The topic as it is to be, whatever an earlier runbook has left."""
        self.heal()
        if self.replicas(topic) is not None:
            self.kctl("topic", "delete", topic)
        assignment = ",".join(":".join(map(str, ids)) for ids in replicas)
        for _ in eventually(f"topic {topic} is made, and no deletion of another one waits any more"):
            self.kctl("topic", "create", topic, "--replica-assignment", assignment)
            if self.replicas(topic) == replicas:
                break
        self.settle()

    def heal(self) -> None:
        """All brokers run, and are known to."""
        self.cluster.heal()
        self.await_brokers([1, 2, 3, 4])

    def settle(self) -> None:
        """Every replica is in sync."""
        for _ in eventually("everything in sync"):
            found = self.kctl("topic", "describe").of("partition")
            if found and all(set(p["isr"]) == set(p["replicas"]) for p in found):
                return

    def restart(self, broker_id: int) -> None:
        """Stop a broker in a controlled way, and start it again."""
        self.cluster.stop(broker_id)
        self.cluster.start(broker_id)

    def kill(self, broker_id: int) -> None:
        """End a broker, and wait until the others know it."""
        self.cluster.kill(broker_id)
        self.cluster.wait_until_gone(broker_id)
        self.await_brokers([b for b in (1, 2, 3, 4) if b != broker_id])

    def await_brokers(self, ids: list[int]) -> None:
        for _ in eventually(f"brokers {ids} alive"):
            ran = self.kctl("cluster", "brokers")
            if [b["broker_id"] for b in ran.of("broker") if b["is_alive"]] == ids:
                return


@pytest.fixture
def four(made: Cluster, backend: str, tmp_path: Path) -> Four:
    return Four(made, backend, tmp_path)


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


# A tool that stands in a runbook for whatever its reader uses: it asks the test, and waits until that is done.
ASKING = """#!/bin/sh
echo "$@" > "$0.asked" && mv "$0.asked" "$0.wish"
while [ -e "$0.wish" ]; do sleep 0.1; done
"""
Tools = Mapping[str, Callable[..., object]]


def carry_out(runbook: str, folder: Path, environment: Mapping[str, str], tools: Tools) -> str:
    """Run a runbook's commands in a folder; `tools` in them are functions that get the words behind their names."""
    stubs = folder / "bin"
    stubs.mkdir()
    (stubs / "kctl").write_text(f'#!/bin/sh\nexec {sys.executable} -m commands "$@"\n')
    for name in tools:
        (stubs / name).write_text(ASKING)
    for stub in stubs.iterdir():
        stub.chmod(0o755)
    failures = list[Exception]()
    said: dict[str, str] = {}
    ran = subprocess.Popen(
        ["bash", "-x", "-c", commands(runbook)],
        cwd=folder,
        env={
            **os.environ,
            **environment,
            "PATH": f"{stubs}:{os.environ['PATH']}",
            "PYTHONPATH": str(HERE.parent),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def read() -> None:
        said["out"], said["err"] = ran.communicate(timeout=900)

    # Wishes are granted in this thread: processes of the rig end with the thread that has started them.
    reader = threading.Thread(target=read)
    reader.start()
    while reader.is_alive():
        reader.join(0.1)
        for wish in stubs.glob("*.wish"):
            try:
                tools[wish.stem](*wish.read_text().split())
            except Exception as failure:  # said below; the runbook must not wait for ever
                failures.append(failure)
            wish.unlink()
    ran.kill()
    assert not failures
    assert said and ran.returncode == 0, f"{said.get('out', '')[-3000:]}{said.get('err', '')[-4000:]}"
    return said["out"]


@BOTH
def test_drain_a_broker(four: Four) -> None:
    four.make("orders", [[1, 3], [3, 2], [2, 1]])
    four.make("payments", [[3, 1]])
    with traffic(four.cluster, "orders", 3) as running:
        four.carry_out("drain-a-broker")
        running.require_progress()
    running.require_nothing_lost()
    assert not any(3 in r for t in ("orders", "payments") for r in four.replicas(t) or ())
    assert four.kctl("topic", "describe", "orders").of("topic")[0]["configs"] == {}


@BOTH
def test_replace_a_broker(four: Four) -> None:
    four.make("orders", [[1, 3], [3, 2], [2, 1]])
    four.make("payments", [[2, 1]])
    four.kill(2)
    with traffic(four.cluster, "orders", 3) as running:
        four.carry_out("replace-a-broker")
    running.require_nothing_lost()
    assert not any(2 in r for t in ("orders", "payments") for r in four.replicas(t) or ())


@BOTH
def test_raise_replication(four: Four) -> None:
    four.make("orders", [[1, 3], [3, 2], [2, 1]])
    four.carry_out("raise-replication")
    assert all(len(r) == 3 for r in four.replicas("orders") or ())


@BOTH
def test_undo_a_bad_reassignment(four: Four) -> None:
    four.make("orders", [[1, 3], [3, 2], [2, 1]])
    before = four.replicas("orders")
    with traffic(four.cluster, "orders", 3) as running:
        four.carry_out("undo-a-bad-reassignment")
        running.require_progress()
    running.require_nothing_lost()
    assert four.replicas("orders") == before


@pytest.mark.parametrize(
    ("made", "backend"), [("2.8", PROTOCOL), ("4.3", PROTOCOL)], indirect=["made"], scope="module"
)
def test_the_whole_incident(four: Four, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unclean election drops what broker 1 alone had; at the end a consumer sees it once, behind the rest.

    The files of 4.3 are collected over ssh, where there is an sshd.
    """
    four.make("ledger", [[1, 2]])
    four.kctl("topic", "config", "set", "ledger", "unclean.leader.election.enable=true")
    sent = {name: [f"{name}-{n}".encode() for n in range(20)] for name in ("before", "alone", "after")}

    def send(name: str, leader: int, isr: list[int]) -> None:
        for _ in eventually(f"broker {leader} leads with {isr} in sync"):
            (row,) = four.kctl("topic", "describe", "ledger").of("partition")
            if row["leader"] == leader and sorted(row["isr"]) == isr:
                break
        producer = KafkaProducer(bootstrap_servers=four.cluster.bootstrap.split(","), acks="all")
        for future in [producer.send("ledger", value, key=b"k") for value in sent[name]]:
            future.get(timeout=60)
        producer.close()

    send("before", 1, [1, 2])
    four.kill(2)
    send("alone", 1, [1])
    four.cluster.kill(1)
    four.cluster.wait_until_gone(1)
    four.cluster.start(2)
    send("after", 2, [2])
    with ExitStack() as stack:
        host = ""
        if four.cluster.version == "4.3" and sshd_program():
            port, with_key = stack.enter_context(sshd(four.folder / "sshd"))
            host = f"ssh://{user()}@127.0.0.1:{port}"
            monkeypatch.setenv("PATH", with_key["PATH"])
        sources = [f"{host}{node.folder}" for node in four.cluster.brokers.values()]
        carry_out("the-whole-incident", four.folder, {**four.environment, "BROKERS": " ".join(sources)}, {})
        assert host in (four.folder / "evidence" / "manifest.jsonl").read_text()
    consumer = KafkaConsumer(
        "ledger", bootstrap_servers=four.cluster.bootstrap.split(","), auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )  # fmt: skip
    values = [record.value for record in consumer]
    consumer.close()
    assert values == [*sent["before"], *sent["after"], *sent["alone"]]
    four.heal()
    four.settle()
    assert four.kctl("replica", "verify", "--topic", "ledger").status == 0


@pytest.mark.parametrize(("made", "backend"), [("4.3", PROTOCOL)], indirect=["made"], scope="module")
def test_rolling_restart(four: Four) -> None:
    """Of combined nodes too: nothing is lost, and nobody who writes to all in sync is refused for long."""
    four.make("orders", [[1, 3, 2], [3, 2, 4], [2, 1, 4]])
    before = {id: node.process for id, node in four.cluster.brokers.items()}
    with traffic(four.cluster, "orders", 3) as running:
        four.carry_out("rolling-restart")
        running.require_progress()
    running.require_nothing_lost()
    assert all(node.process is not before[id] for id, node in four.cluster.brokers.items())


@pytest.mark.parametrize(("made", "backend"), [("2.8", ZOOKEEPER)], indirect=["made"], scope="module")
def test_a_stuck_delete(four: Four) -> None:
    """Brokers tell nobody of a deletion that waits, and a KRaft controller has none: for ZooKeeper only."""
    four.make("old-orders", [[1, 3], [3, 2]])
    four.kill(3)
    four.carry_out("a-stuck-delete")
    assert four.replicas("old-orders") is None


@pytest.mark.parametrize(("made", "backend"), [("4.3", PROTOCOL)], indirect=["made"], scope="module")
def test_unclean_election(four: Four) -> None:
    four.make("orders", [[1, 2]])
    fill(four.cluster, "orders", records=60)
    four.kill(2)
    for _ in eventually("broker 1 alone in sync"):
        if [p["isr"] for p in four.kctl("topic", "describe", "orders").of("partition")] == [[1]]:
            break
    fill(four.cluster, "orders", records=40)
    four.cluster.kill(1)
    four.await_brokers([3, 4])
    four.cluster.start(2)
    for _ in eventually("broker 2 is back, and answers"):
        rows = four.kctl("elect", "unclean", "orders:0", "--dry-run").of("candidate")
        if [row["log_end_offset"] for row in rows] == [None, 60]:
            break
    four.carry_out("unclean-election")
    four.settle()
    (row,) = four.kctl("topic", "describe", "orders").of("partition")
    assert row["leader"] == 2 and row["replicas"] == [1, 2]
