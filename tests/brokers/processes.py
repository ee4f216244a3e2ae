"""Java processes that never outlive the tests: killed at exit, and by the kernel when the tests are killed."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

OPENS = ("sun.nio.ch", "java.lang", "java.nio", "java.util", "java.util.concurrent", "sun.security.action")
OPENS += ("jdk.internal.ref", "java.net")
FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    "-Djava.awt.headless=true",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENS),
)
PR_SET_PDEATHSIG = 1
PATIENCE = 180.0  # seconds; ample, since only a failure waits so long, and machines may be slow
PORTS = (15_000, 32_000)
LIBC = ctypes.CDLL(None, use_errno=True)
NOBODY = subprocess.DEVNULL
RUNNING: set[JavaProcess] = set()


class Place(NamedTuple):
    """Where a process runs: its address, and what stands before its command line."""

    host: str = "127.0.0.1"
    before: tuple[str, ...] = ()


LOCAL = Place()


def die_with_parent() -> None:
    """What a child does before it becomes its program: the kernel kills it when the tests end."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def java_command(
    classpath: str, main: str, args: Sequence[object] = (), *, heap: str = "512m", flags: Sequence[str] = ()
) -> list[str]:
    """The command line of a Java program."""
    archive = archive_of(classpath)
    shared = (f"-XX:SharedArchiveFile={archive}",) if archive and archive.exists() else ()
    return ["java", f"-Xmx{heap}", *FLAGS, *shared, *flags, "-cp", classpath, main, *map(str, args)]


def archive_of(classpath: str) -> Path | None:
    """Where the loaded classes of a folder of jars are kept: with them a broker starts for half the CPU.

    A Java that cannot use the archive goes on without.
    """
    folder = Path(classpath.removesuffix("/*"))
    return None if ":" in classpath else folder.with_name(f"{folder.name}.jsa")


RECORDS_CLASSES = "-XX:+RecordDynamicDumpInfo"


def keep_classes(process: JavaProcess, classpath: str) -> None:
    """Write the archive from a running program, started with RECORDS_CLASSES; what fails is done without."""
    archive = archive_of(classpath)
    if archive is None or archive.exists():
        return
    partial = archive.with_suffix(f".{os.getpid()}")
    command = ["jcmd", str(process.process.pid), "VM.cds", "dynamic_dump", str(partial)]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    if partial.exists():
        partial.rename(archive)


class JavaProcess:
    """A Java program in a process group of its own; what it prints goes to `log`."""

    def __init__(self, command: Sequence[str], log: Path, *, stdin: int | None = subprocess.DEVNULL) -> None:
        self.log = log
        self.began_ms = time.time() * 1000
        self._printed_before = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                list(command),
                stdin=stdin,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
                cwd=log.parent,
            )
        RUNNING.add(self)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def has_printed(self, text: bytes) -> bool:
        """Whether its output has a text."""
        with self.log.open("rb") as file:
            file.seek(self._printed_before)
            return text in file.read()

    def signal(self, number: int) -> None:
        """Send a signal to the whole group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End it at once."""
        if self.is_running:
            self.signal(signal.SIGKILL)
        self.process.wait()
        RUNNING.discard(self)

    def terminate(self, timeout: float = 30) -> None:
        """Ask it to end, and end it at once where it does not."""
        if self.is_running:
            self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout)
        self.kill()

    def require_running(self) -> None:
        """Fail with the end of its output where it has ended."""
        if not self.is_running:
            raise AssertionError(f"{self.log.name} ended with {self.process.returncode}:\n{tail(self.log)}")


@atexit.register
def kill_all() -> None:
    """Leave nothing behind."""
    for process in list(RUNNING):
        process.kill()


def tail(path: Path, size: int = 3000) -> str:
    """The end of a log."""
    return path.read_bytes()[-size:].decode("utf-8", "replace")


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on now, all different.

    They are below those that the system gives to connections going out: a broker takes its port only seconds later.
    """
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        for port in random.sample(range(*PORTS), len(range(*PORTS))):
            if len(found) == count:
                break
            one = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                found.append(port)
        return found


def eventually(
    what: str | Callable[[], str], timeout: float = PATIENCE, pause: float = 0.05
) -> Iterator[None]:
    """Turns of a loop until `timeout`, then a failure that says what was waited for, and how it stands."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        yield
        time.sleep(pause)
    raise AssertionError(f"{what if isinstance(what, str) else what()}: not within {timeout} s")


def wait_for_port(
    port: int, process: JavaProcess, timeout: float = PATIENCE, host: str = "127.0.0.1"
) -> None:
    """Until something listens on the port."""
    for _ in eventually(f"{process.log.name} listens on port {port}", timeout):
        process.require_running()
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
            return
