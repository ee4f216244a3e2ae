"""Traffic through a change: a producer with acks=all that runs throughout, and a consumer that reads all of it.

with traffic(c, "ledger", partitions=3) as t:
    ...                       # whatever is done to the cluster
t.require_nothing_lost()      # every acknowledged record is read back
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.cluster import Cluster
from tests.brokers.jars import CACHE, classpath
from tests.brokers.processes import PATIENCE, JavaProcess, eventually, java_command

HERE = Path(__file__).parent
# Clients of these versions are spoken to by their own; newer brokers by the 2.8 client.
OWN_CLIENT = ("0.8.2", "0.9")


@dataclass
class Traffic:
    """A running producer and what it has been told."""

    cluster: Cluster
    topic: str
    process: JavaProcess

    @property
    def acknowledged(self) -> set[int]:
        """The numbers acknowledged so far."""
        return {int(n) for n in re.findall(r"^acked (\d+)", self.process.log.read_text(), re.M)}

    def require_progress(self, records: int = 5, timeout: float = PATIENCE) -> None:
        """Wait until so many more records are acknowledged: the topic can be written to."""
        wanted = len(self.acknowledged) + records
        for _ in eventually(f"{records} more records acknowledged on {self.topic}", timeout):
            self.process.require_running()
            if len(self.acknowledged) >= wanted:
                return

    def finish(self) -> None:
        """Let the producer send what it has, and end."""
        stdin = self.process.process.stdin
        if stdin and not stdin.closed:
            stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.process.wait(PATIENCE)
        self.process.kill()

    def consumed(self) -> set[int]:
        """Every number that a consumer reads from the start of the topic."""
        if self.cluster.version in OWN_CLIENT:
            said = self.cluster.tool("kafka.tools.ConsoleConsumer", *self._old_arguments())
        else:
            jars = classpath("2.8")
            command = java_command(
                f"{_compiled(jars, '2.8', 'Drain')}:{jars}",
                "Drain",
                [self.cluster.bootstrap, self.topic],
                heap="128m",
            )
            said = subprocess.run(
                command, capture_output=True, text=True, timeout=PATIENCE, check=False
            ).stdout
        return {int(n) for n in re.findall(r"^(\d+)$", said, re.M)}

    def _old_arguments(self) -> list[object]:
        settings = self.cluster.folder / "consumer.properties"
        settings.write_text("consumer.timeout.ms=3000\nauto.offset.reset=smallest\n")
        given = ["--zookeeper", self.cluster.connect, "--topic", self.topic, "--from-beginning"]
        return [*given, "--consumer.config", settings]

    def require_nothing_lost(self) -> None:
        """Fail where an acknowledged record is not read back."""
        acknowledged = self.acknowledged
        assert acknowledged, f"nothing was acknowledged:\n{self.process.log.read_text()[-2000:]}"
        missing = acknowledged - self.consumed()
        assert not missing, f"{len(missing)} acknowledged records are gone, the first {sorted(missing)[:10]}"


@contextlib.contextmanager
def traffic(cluster: Cluster, topic: str, partitions: int, *, pause_ms: int = 20) -> Iterator[Traffic]:
    """A producer that writes to the topic during the block."""
    version = cluster.version if cluster.version in OWN_CLIENT else "2.8"
    jars = classpath(version)
    path = f"{_compiled(jars, version, 'Traffic')}:{jars}"
    args = (cluster.bootstrap, topic, partitions, pause_ms)
    log = cluster.folder / f"traffic-{topic}-{time.monotonic_ns()}.log"
    process = JavaProcess(java_command(path, "Traffic", args, heap="128m"), log, stdin=subprocess.PIPE)
    running = Traffic(cluster, topic, process)
    try:
        running.require_progress(1)
        yield running
        running.require_progress(1)
    finally:
        running.finish()


def _compiled(jars: str, version: str, name: str) -> Path:
    source, folder = HERE / f"{name}.java", CACHE / f"classes-{version}"
    made = folder / f"{name}.class"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", folder, source], check=True)
    return folder
