"""Kafka's own tools of each version, in one Java for all calls of a test process: a start costs two seconds of CPU."""

from __future__ import annotations

import subprocess
import threading
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO

from tests.brokers.jars import classpath, compiled
from tests.brokers.processes import archive_of, java_command

SOURCE = Path(__file__).parent / "Tools.java"


class Tools:
    """The Java that runs the tools of one version; it starts with the first, and again after one that ended it."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.java: subprocess.Popen[bytes] | None = None
        self.one_at_a_time = threading.Lock()

    def run(self, main: str, args: Sequence[object], timeout: float) -> tuple[int, str]:
        """The exit status of a tool, and what it printed on both streams. Raises TimeoutExpired."""
        with self.one_at_a_time:
            java = self.java if self.java and self.java.poll() is None else self._started()
            assert java.stdin and java.stdout
            words = [b64encode(str(word).encode()) for word in (main, *args)]
            too_late = threading.Timer(timeout, java.kill)
            too_late.start()
            try:
                java.stdin.write(b" ".join(words) + b"\n")
                java.stdin.flush()
                status, said = _answer(java.stdout)
            finally:
                in_time = too_late.is_alive()
                too_late.cancel()
            if status is None:
                status = java.wait()
                if not in_time:
                    raise subprocess.TimeoutExpired([main, *map(str, args)], timeout, said)
        return status, said.decode("utf-8", "replace")

    def end(self) -> None:
        """End the Java, where it runs."""
        if self.java is not None:
            self.java.kill()
            self.java.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        jars = classpath(self.version)
        archive = archive_of(jars)
        shared = (f"-XX:SharedArchiveFile={archive}",) if archive and archive.exists() else ()
        command = java_command(f"{jars}:{compiled(SOURCE, self.version)}", "Tools", heap="256m", flags=shared)
        self.java = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )  # fmt: skip
        return self.java


def _answer(output: IO[bytes]) -> tuple[int | None, bytes]:
    """Status and text of the tool that runs; None and what was printed where Java ended with it."""
    printed = []
    while line := output.readline():
        if line.startswith(b"ended "):
            _, status, size = line.split()
            return int(status), b"".join(printed)[:-1] + output.read(int(size))
        printed.append(line)
    return None, b"".join(printed)


tools_of = cache(Tools)
