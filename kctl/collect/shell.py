"""Another machine's POSIX shell, reached by the system's own ssh, docker or kubectl; scripts go to its standard input.

Nothing is installed there, and no word of a script is quoted by another shell on the way. What comes back is bounded,
and waited for with a limit.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple

from kctl.collect.transport import SourceLost
from kctl.errors import BadValue, KctlError

SILENCE = 180.0  # seconds without a byte
LONGEST_ANSWER = 16 << 20
LONGEST_COMPLAINT = 4000
URL = re.compile(r"(ssh|docker|k8s)://([^/]*)(/.*)?", re.DOTALL)
SSH_HOST = re.compile(
    r"(?:(?P<user>[\w.+-]+)@)?(?P<host>[A-Za-z0-9_][\w.-]*|\[[0-9A-Fa-f:.%\w]+\])(?::(?P<port>\d{1,5}))?"
)
NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


class Address(NamedTuple):
    """A path of another machine, and the command that starts a shell there."""

    shown: str  # without the path
    command: tuple[str, ...]
    path: str


def is_remote(text: str) -> bool:
    """Whether a source is on another machine."""
    return URL.fullmatch(text) is not None


def address_of(text: str) -> Address:
    """Where a source is. Raises BadValue for what has not the form of one."""
    match = URL.fullmatch(text)
    assert match
    scheme, place, path = match[1], match[2], match[3] or ""
    if scheme == "ssh":
        return _ssh(text, place, path)
    if scheme == "docker":
        if not NAME.fullmatch(place) or len(path) < 2:
            raise BadValue(f"{text}: is not docker://CONTAINER/PATH")
        return Address(f"docker://{place}", ("docker", "exec", "-i", place, "sh"), path)
    return _k8s(text, place, path)


def _ssh(text: str, place: str, path: str) -> Address:
    match = SSH_HOST.fullmatch(place)
    if match is None or len(path) < 2:
        raise BadValue(f"{text}: is not ssh://[USER@]HOST[:PORT]/PATH")
    options = ["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=6"]
    options += ["-p", match["port"]] if match["port"] else []
    options += ["-l", match["user"]] if match["user"] else []
    return Address(f"ssh://{place}", ("ssh", *options, "--", match["host"].strip("[]"), "sh"), path)


def _k8s(text: str, namespace: str, path: str) -> Address:
    pod, _, rest = path.removeprefix("/").partition("/")
    if not NAME.fullmatch(namespace) or not NAME.fullmatch(pod) or not rest:
        raise BadValue(f"{text}: is not k8s://NAMESPACE/POD[/CONTAINER]/PATH")
    command = ["kubectl", "-n", namespace, "exec", "-i", pod]
    shown = f"k8s://{namespace}/{pod}"
    container, _, below = rest.partition("/")
    if below and container in _containers(namespace, pod):
        command += ["-c", container]
        shown, rest = f"{shown}/{container}", below
    return Address(shown, (*command, "--", "sh"), "/" + rest.lstrip("/"))


def _containers(namespace: str, pod: str) -> list[str]:
    """The containers of a pod; none where kubectl does not tell."""
    command = ["kubectl", "-n", namespace, "get", "pod", pod, "-o", "jsonpath={.spec.containers[*].name}"]
    try:
        ran = subprocess.run(
            command, capture_output=True, timeout=SILENCE, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return ran.stdout[:LONGEST_ANSWER].decode("utf-8", "replace").split()


class Shell:
    """One shell of another machine, which runs a script after the other; started anew where one broke off."""

    def __init__(self, command: Sequence[str], shown: str) -> None:
        self.command = tuple(command)
        self.shown = shown
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints: BinaryIO | None = None

    def close(self) -> None:
        """End the shell."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(OSError):
                process.kill()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    if stream:
                        stream.close()
            process.wait()
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None

    def answer(self, script: str, limit: int = LONGEST_ANSWER) -> bytes:
        """What a script prints, up to a limit. Raises SourceLost where it fails or prints more."""
        with self.output(script) as output:
            data = bytearray()
            while piece := output.read(1 << 16):
                data += piece
                if len(data) > limit:
                    raise SourceLost(f"{self.shown}: an answer has more than {limit:,} bytes")
            output.end()
        return bytes(data)

    @contextmanager
    def output(self, script: str) -> Iterator[Output]:
        """What a script of one line prints, as it comes. Where not all of it is read the shell is ended."""
        process, complaints = self._started()
        # Nobody but this process knows the mark before the script is sent, so that no file has it.
        mark = f"kctl-{secrets.token_hex(16)}"
        line = f"( {script} ) </dev/null; printf '\\n{mark} %d\\n' $?\n"
        output = Output(process, complaints.fileno(), self.shown, f"\n{mark} ".encode())
        try:
            self._send(process, line)
            yield output
        finally:
            if not output.is_at_end:
                self.close()

    def _started(self) -> tuple[subprocess.Popen[bytes], BinaryIO]:
        if self._process is not None and self._complaints is not None:
            return self._process, self._complaints
        self.close()
        complaints = self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the shell
        try:
            process = self._process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, bufsize=0
            )
        except OSError as error:
            raise KctlError(
                f"{self.shown}: {self.command[0]} cannot be started ({error.strerror})",
                f"install {self.command[0]}, or copy the files to this machine first",
            ) from error
        self._send(process, "LC_ALL=C; export LC_ALL\n")
        return process, complaints

    @staticmethod
    def _send(process: subprocess.Popen[bytes], text: str) -> None:
        data = memoryview(text.encode("utf-8", "surrogateescape"))
        assert process.stdin
        with suppress(BrokenPipeError):  # what it complained of is told as its output ends
            while data:
                data = data[os.write(process.stdin.fileno(), data) :]

    def clock_offset_ms(self, rounds: int = 5) -> int | None:
        """How far the clock there is ahead of the one here, by the quickest of some answers; None where it does not tell."""
        best: tuple[int, int] | None = None
        for _ in range(rounds):
            before = time.time_ns()
            text = self.answer("date +%s.%N", 100).decode("ascii", "replace").strip()
            took = time.time_ns() - before
            match = re.fullmatch(r"(\d{9,11})(?:\.(\d{9}))?.*", text)
            if match is None:
                return None
            # Without fractions the answer is half a second early on average.
            there = int(match[1]) * 1_000_000_000 + (int(match[2]) if match[2] else 500_000_000)
            if best is None or took < best[0]:
                best = took, there - before - took // 2
        return None if best is None else round(best[1] / 1_000_000)


class Output:
    """What a running script prints, up to a mark behind it."""

    def __init__(self, process: subprocess.Popen[bytes], complaints: int, shown: str, mark: bytes) -> None:
        assert process.stdout
        self._descriptor = process.stdout.fileno()
        self._complaints, self._shown, self._mark = complaints, shown, mark
        self._begun = os.fstat(complaints).st_size
        self._held = b""
        self._at = self._safe = 0  # what was given out of it, and up to where no mark begins
        self.is_at_end = False

    def read(self, most: int) -> bytes:
        """At most so many bytes, none at the end. Raises SourceLost where the shell ends, or nothing comes for too long."""
        if self._at == self._safe:
            self._look_for_mark()
        start, self._at = self._at, min(self._at + most, self._safe)
        return self._held[start : self._at]

    def _look_for_mark(self) -> None:
        """Take more until a byte is known to be none of the mark's, or the mark is next."""
        self._held, self._at, self._safe = self._held[self._at :], 0, 0
        while True:
            at = self._held.find(self._mark)
            self._safe = at if at >= 0 else max(0, len(self._held) - len(self._mark) + 1)
            if at == 0 or self._safe:
                return
            self._held += self._more()

    def _more(self) -> bytes:
        answer = select.poll()  # a descriptor may be beyond those that `select` takes
        answer.register(self._descriptor, select.POLLIN)
        ready = answer.poll(SILENCE * 1000)
        if not ready:
            raise SourceLost(f"{self._shown}: nothing came for {SILENCE:.0f} s")
        data = os.read(self._descriptor, 1 << 16)
        if not data:
            raise SourceLost(f"{self._shown}: {self.complaint() or 'the connection ended'}")
        return data

    def end(self, allowed: Sequence[int] = (0,)) -> str:
        """Read up to the mark; what the script complained of. Raises SourceLost for another status."""
        while self.read(1 << 16):
            pass
        tail = self._held[self._at + len(self._mark) :]
        while b"\n" not in tail and len(tail) < 16:
            tail += self._more()
        self.is_at_end = True
        status = tail.partition(b"\n")[0].decode("ascii", "replace")
        complaint = self.complaint()
        if not status.isdigit() or int(status) not in allowed:
            raise SourceLost(f"{self._shown}: {complaint or f'a command there ended with {status[:5]}'}")
        return complaint

    def complaint(self) -> str:
        """The last line of what it wrote to its standard error, as text of one line."""
        size = os.fstat(self._complaints).st_size
        begin = max(self._begun, size - LONGEST_COMPLAINT)
        data = os.pread(self._complaints, LONGEST_COMPLAINT, begin) if size > begin else b""
        lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
        text = lines[-1] if lines else ""
        return "".join(c if c.isprintable() else "?" for c in text)[:300]


def quoted(path: str) -> str:
    """A path as a word of a script."""
    return shlex.quote(path)
