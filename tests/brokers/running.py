"""kctl run against a cluster of the rig: in this process, or as one of its own that can be killed and stopped."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from commands.main import main
from tests.brokers.cluster import Cluster, eventually
from tests.brokers.processes import PATIENCE, die_with_parent
from tests.conftest import Ran, check_rows, rows

LAST_RUNS: deque[str] = deque(maxlen=6)  # how kctl ended lately, for the report of a test that fails


def remember(args: Sequence[object], ran: Ran) -> Ran:
    """Note how a run ended."""
    LAST_RUNS.append(f"kctl {shlex.join(map(str, args))} ended with {ran.status}\n{ran.err}")
    return ran


def patient(args: Sequence[object]) -> list[object]:
    """The arguments of a change that ends with a reason, and not with the runner's patience, where it is stuck."""
    waits = not {"--timeout", "--no-wait", "--dry-run"} & set(args)
    return [*args, *(("--timeout", PATIENCE) if waits else ())]


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
            "KCTL_ANSWER_TIMEOUT": "60",  # of a slow machine
        }

    def __call__(self, *args: object, **env: str) -> Ran:
        """Run in this process; every row is held against its schema."""
        return remember(args, rows(*args, env={**self.environment, **env}))

    def change(self, *args: object, status: int | None = 0, **env: str) -> Ran:
        """A change that does not ask, with the status that it must end with (None: any)."""
        ran = self(*patient(args), "--yes", **env)
        assert status in (ran.status, None), f"{args} ended with {ran.status}: {ran.err}"
        return ran

    def ids(self) -> list[str]:
        """The journal's changes, oldest first."""
        return [row["id"] for row in self("journal", "list").of("change")]

    def state(self, id: str) -> str:
        """A change's state by the journal."""
        (row,) = (r for r in self("journal", "list").of("change") if r["id"] == id)
        return str(row["state"])

    # --- as a process of its own ---

    def start(self, *args: object, fault: str = "", trace: Path | None = None) -> Forked:
        """Start kctl as a process; `fault` is a point at which it is killed, or stopped with `stop@`."""
        environment = {**self.environment, "KCTL_FAULT": fault, "KCTL_FAULT_TRACE": str(trace or "")}
        return Forked([*map(str, patient(args)), "--output", "jsonl"], environment)

    def killed(self, *args: object, fault: str) -> bool:
        """Run a change until it is killed at a point; False where it never came to that point."""
        ran = self.start(*args, "--yes", fault=fault).wait()
        assert ran.status in (-signal.SIGKILL, 0), ran.err
        return ran.status == -signal.SIGKILL

    def points(self, *args: object, trace: Path) -> list[str]:
        """The points that a change passes, in order; it is carried out.

        Whoever is killed just before a request is killed before the write, or behind the request before.
        """
        ran = self.start(*args, "--yes", trace=trace).wait()
        assert ran.status == 0, ran.err
        return [point for point in trace.read_text().split() if not point.startswith("asking:")]

    @contextlib.contextmanager
    def stopped(self, *args: object, at: str, killed_at: str = "") -> Iterator[Forked]:
        """A change that stands still at a point during the block, until `go_on` is called.

        Then it is killed where it comes to the other point.
        """
        process = self.start(*args, "--yes", fault=f"stop@{at},{killed_at}")
        try:
            for _ in eventually(f"kctl stops at {at}"):
                if process.is_stopped:
                    break
            yield process
        finally:
            process.kill()


class Forked:
    """kctl in a fork of the tests' process, which has everything imported."""

    def __init__(self, args: list[str], environment: dict[str, str]) -> None:
        self.args = args
        self.output, self.errors = (os.fdopen(os.memfd_create("kctl"), "w+b") for _ in range(2))
        self.status: int | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of the parent are of no use to kctl
            self.pid = os.fork()
        if self.pid == 0:
            self._run(environment)

    def _run(self, environment: dict[str, str]) -> None:
        status = 99
        try:
            die_with_parent()
            os.environ.update(environment)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(self.output.fileno(), 1)
            os.dup2(self.errors.fileno(), 2)
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
            status = main(self.args)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)

    @property
    def is_stopped(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                return True
            if pid:
                self._ended(status)
        assert self.status is None, f"kctl ended with {self.status}: {self._text(self.errors)}"
        return False

    def _ended(self, status: int) -> None:
        self.status = os.waitstatus_to_exitcode(status)

    def go_on(self) -> Ran:
        """Let it go on and wait for its end."""
        os.kill(self.pid, signal.SIGCONT)
        return self.wait()

    def wait(self) -> Ran:
        """How it ended; every row is held against its schema."""
        what = f"the end of kctl {shlex.join(self.args)}"
        try:
            for _ in eventually(lambda: f"{what}: {self._text(self.errors)}", 2 * PATIENCE, pause=0.01):
                if self.status is None:
                    pid, status = os.waitpid(self.pid, os.WNOHANG)
                    if pid:
                        self._ended(status)
                if self.status is not None:
                    break
        finally:
            self.kill()
        assert self.status is not None
        out = self._text(self.output).encode()
        ran = Ran(self.status, out, self._text(self.errors))
        ran.rows = [msgspec.json.decode(line) for line in out.splitlines()]
        check_rows(self.args, ran.rows)
        return remember(self.args, ran)

    def kill(self) -> None:
        """End it, where it has not ended."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self._ended(os.waitpid(self.pid, 0)[1])

    @staticmethod
    def _text(file: Any) -> str:
        file.seek(0)
        return str(file.read().decode("utf-8", "replace"))
