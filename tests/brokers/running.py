"""kctl run against a cluster of the rig: in this process, or as one of its own that can be killed and stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.brokers.cluster import Cluster, eventually
from tests.brokers.processes import _die_with_parent
from tests.conftest import Ran, check_rows, rows

KCTL = (sys.executable, "-m", "commands")


@dataclass
class Kctl:
    """kctl with a journal of its own, pointed at one cluster."""

    cluster: Cluster
    journal: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "KCTL_ZOOKEEPER": self.cluster.connect,
            "KCTL_JOURNAL": str(self.journal),
            "KCTL_CONFIG": os.devnull + "/none",
        }

    def __call__(self, *args: object, **env: str) -> Ran:
        """Run in this process; every row is held against its schema."""
        return rows(*args, env={**self.environment, **env})

    def change(self, *args: object, status: int = 0, **env: str) -> Ran:
        """A change that does not ask, with the status that it must end with."""
        ran = self(*args, "--yes", **env)
        assert ran.status == status, f"{args} ended with {ran.status}: {ran.err}"
        return ran

    def ids(self) -> list[str]:
        """The journal's changes, oldest first."""
        return [row["id"] for row in self("journal", "list").of("change")]

    def state(self, id: str) -> str:
        """A change's state by the journal."""
        (row,) = (r for r in self("journal", "list").of("change") if r["id"] == id)
        return str(row["state"])

    # --- as a process ---

    def start(self, *args: object, fault: str | None = None, **env: str) -> subprocess.Popen[bytes]:
        """Start kctl as a process; `fault` is a point at which it is killed, or stopped with `stop@`."""
        environment = {**os.environ, **self.environment, **env}
        if fault:
            environment["KCTL_FAULT"] = fault
        return subprocess.Popen(
            [*KCTL, *map(str, args), "--output", "jsonl"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=_die_with_parent,
            cwd=Path(__file__).parents[2],
        )

    def killed(self, *args: object, fault: str) -> bool:
        """Run a change until it is killed at a point; False where it never came to that point."""
        process = self.start(*args, "--yes", fault=fault)
        _, said = process.communicate(timeout=120)
        assert process.returncode in (-signal.SIGKILL, 0), said.decode()
        return process.returncode == -signal.SIGKILL

    def points(self, *args: object, trace: Path) -> list[str]:
        """The points that a change passes, in order; it is carried out."""
        process = self.start(*args, "--yes", KCTL_FAULT_TRACE=str(trace))
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
        return trace.read_text().split()

    @contextlib.contextmanager
    def stopped(self, *args: object, at: str) -> Iterator[Any]:
        """A change that stands still at a point during the block; gives a function that lets it go on."""
        process = self.start(*args, "--yes", fault=f"stop@{at}")
        try:
            for _ in eventually(f"kctl stops at {at}", 30):
                if _is_stopped(process.pid):
                    break
                assert process.poll() is None, process.communicate()[1].decode()

            def go_on(timeout: float = 120) -> Ran:
                process.send_signal(signal.SIGCONT)
                out, said = process.communicate(timeout=timeout)
                ran = Ran(process.returncode, out, said.decode())
                ran.rows = [msgspec.json.decode(line) for line in out.splitlines()]
                check_rows([str(a) for a in args], ran.rows)
                return ran

            yield go_on
        finally:
            process.kill()
            process.communicate()


def _is_stopped(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rsplit(")", 1)[1].split()[0] in ("T", "t")
