"""Text that is longer than the terminal goes through a pager, and only that."""

from __future__ import annotations

import contextlib
import os
import pty
import stat
import sys
from pathlib import Path

import pytest

KCTL = [sys.executable, "-m", "commands"]


def on_a_terminal(
    args: list[str], *, lines: int = 24, program: list[str] = KCTL, **environment: str
) -> tuple[int, str]:
    """The exit status of kctl, or another program, in a terminal of so many lines, and what it shows there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(
            sys.executable,
            [*program, *args],
            {**os.environ, "TERM": "xterm", "LINES": str(lines), "COLUMNS": "100", **environment},
        )
    said = b""
    with contextlib.suppress(OSError):  # a terminal that is gone reads as an error
        while more := os.read(terminal, 4096):
            said += more
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode().replace("\r\n", "\n")


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that keeps what it got, marks the screen, and reads no key."""
    script = tmp_path / "pager"
    script.write_text(f'#!/bin/sh\necho "pager $*"\nenv > {tmp_path}/env\ntee {tmp_path}/got\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def test_long_text_goes_through_it(pager: str, tmp_path: Path) -> None:
    status, said = on_a_terminal(["finding"], PAGER=f"{pager} -x 'a b'")
    assert status == 0
    assert said.startswith("pager -x a b\n")
    got = (tmp_path / "got").read_text()
    assert got.count("\n") > 24 and said.endswith(got)
    assert "LESS=FRX" in (tmp_path / "env").read_text().splitlines()


def test_text_that_fits_does_not(pager: str) -> None:
    status, said = on_a_terminal(["finding"], lines=2000, PAGER=pager)
    assert status == 0 and "pager" not in said.splitlines()[0] and said.count("\n") > 24


@pytest.mark.parametrize("off", ["", "cat", "no-such-pager-here", "'torn"])
def test_it_can_be_turned_off(pager: str, off: str) -> None:
    status, said = on_a_terminal(["finding"], PAGER=pager, KCTL_PAGER=off)
    assert status == 0 and not said.startswith("pager") and said.count("\n") > 24


def test_one_that_cannot_start_is_as_none(tmp_path: Path) -> None:
    script = tmp_path / "pager"
    script.write_bytes(b"\x00\x01")
    script.chmod(0o700)
    status, said = on_a_terminal(["finding"], PAGER=str(script))
    assert status == 0 and said.count("\n") > 24


def test_a_terminal_that_can_do_little_has_none_unless_it_is_named(pager: str) -> None:
    assert not on_a_terminal(["finding"], PAGER=pager, TERM="dumb")[1].startswith("pager")
    assert on_a_terminal(["finding"], KCTL_PAGER=pager, TERM="dumb")[1].startswith("pager")


def test_rows_for_programs_never_do(pager: str) -> None:
    status, said = on_a_terminal(["finding", "--output", "jsonl"], PAGER=pager)
    assert status == 0 and said.startswith("{")


def test_who_leaves_it_ends_kctl(tmp_path: Path) -> None:
    script = tmp_path / "pager"
    script.write_text("#!/bin/sh\nhead -n 1\n")
    script.chmod(0o700)
    log = tmp_path / "server.log"
    line = "[2026-11-21 13:18:27,173] INFO [Broker id=2] Leader orders-0 (state.change.logger)\n"
    log.write_text(line * 20_000)
    status, said = on_a_terminal(["state-log", "merge", str(log)], KCTL_PAGER=str(script))
    assert (status, said.count("\n")) == (141, 1), said[-500:]


LATE = """
import os, sys
from commands.cli.leaving import say
from commands.cli.pager import page_through
def lines():
    yield from (b"%d\\n" % number for number in range(50))
    say("a note")
    yield b"the end\\n"
    raise ValueError("what comes after it")
try:
    page_through(lines(), os.terminal_size((80, 24)), sys.argv[1:])
except ValueError as error:
    say(str(error))
"""


def test_notes_stand_in_its_text(pager: str, tmp_path: Path) -> None:
    """They would be written over it."""
    _, said = on_a_terminal([pager], program=[sys.executable, "-c", LATE])
    got = (tmp_path / "got").read_text().splitlines()
    assert got == [*map(str, range(50)), "a note", "the end"]
    assert said.splitlines()[-1] == "what comes after it"
