"""Traffic through a change: a producer with acks=all that runs throughout, and all of it read afterwards.

with traffic(c, "ledger", partitions=3) as t:
    ...                       # whatever is done to the cluster
t.require_nothing_lost()      # every acknowledged record is read back

The producers of a cluster are threads of one Java program, since its start is what costs most.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.brokers.cluster import Cluster
from tests.brokers.draining import values_of
from tests.brokers.jars import classpath, compiled
from tests.brokers.processes import PATIENCE, JavaProcess, eventually, java_command, tail

SOURCE = Path(__file__).parent / "Traffic.java"
# Brokers of these versions are spoken to by the oldest client (0.9's own stands still for good after brokers have
# refused records for a while), newer ones by that of 2.8.
OLDEST_CLIENT = ("0.8.2", "0.9")
RUNS = count()


@dataclass
class Traffic:
    """A running producer and what it has been told. Its records are `RUN:0`, `RUN:1`, ..."""

    cluster: Cluster
    topic: str
    run: str
    process: JavaProcess
    position: int = 0  # in the program's output
    numbers: set[int] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    is_closed: bool = False

    @property
    def acknowledged(self) -> set[int]:
        """The numbers acknowledged so far."""
        with self.process.log.open("rb") as log:
            log.seek(self.position)
            whole, end, _ = log.read().rpartition(b"\n")
        self.position += len(whole) + len(end)
        for line in whole.decode("utf-8", "replace").splitlines():
            word, _, rest = line.partition(" ")
            run, _, number = rest.partition(":")
            if run == self.run and word == "acked":
                self.numbers.add(int(number))
            elif run == self.run and word == "failed":
                self.failed.append(line)
            self.is_closed |= word == "closed" and rest == self.run
        return self.numbers

    def ask(self, line: str) -> None:
        """A line for the program."""
        stdin = self.process.process.stdin
        assert stdin
        stdin.write(line.encode() + b"\n")
        stdin.flush()

    def require_progress(self, records: int = 5, timeout: float = PATIENCE) -> None:
        """Wait until so many more records are acknowledged: the topic can be written to."""
        wanted = len(self.acknowledged) + records
        for _ in eventually(lambda: f"{records} more records acknowledged on {self.topic}: {self}", timeout):
            self.process.require_running()
            if len(self.acknowledged) >= wanted:
                return

    def finish(self) -> None:
        """Let the producer send what it has, and end."""
        self.ask(f"stop {self.run}")
        for _ in eventually(lambda: f"the producer on {self.topic} has sent everything: {self}"):
            self.process.require_running()
            if self.acknowledged is not None and self.is_closed:
                return

    def __str__(self) -> str:
        failed = self.failed[-1] if self.failed else "none"
        return f"{len(self.numbers)} acknowledged, {len(self.failed)} failed, the last: {failed}"

    def require_nothing_lost(self) -> None:
        """Fail where an acknowledged record is not read back."""
        acknowledged = self.acknowledged
        assert acknowledged, f"nothing was acknowledged:\n{tail(self.process.log)}"
        values = [value.decode().partition(":") for value in values_of(self.cluster, self.topic)]
        missing = acknowledged - {int(number) for run, _, number in values if run == self.run}
        assert not missing, f"{len(missing)} acknowledged records are gone, the first {sorted(missing)[:10]}"


@contextlib.contextmanager
def traffic(cluster: Cluster, topic: str, partitions: int, *, pause_ms: int = 20) -> Iterator[Traffic]:
    """A producer that writes to the topic during the block."""
    process = _program(cluster)
    running = Traffic(cluster, topic, str(next(RUNS)), process, process.log.stat().st_size)
    try:
        running.ask(f"start {running.run} {topic} {partitions} {pause_ms}")
        running.require_progress(1)
        yield running
        running.require_progress(1)
        running.finish()
    except BaseException:
        process.kill()  # a producer that cannot end would go on beside the next test
        raise


def _program(cluster: Cluster) -> JavaProcess:
    """The cluster's program, started where it does not run."""
    if cluster.traffic is None or not cluster.traffic.is_running:
        version = "0.8.2" if cluster.version in OLDEST_CLIENT else "2.8"
        jars = classpath(version)
        command = java_command(
            f"{compiled(SOURCE, version)}:{jars}", "Traffic", [cluster.bootstrap], heap="128m"
        )
        cluster.traffic = JavaProcess(command, cluster.folder / "traffic.log", stdin=subprocess.PIPE)
    return cluster.traffic
