"""Long text on a terminal, through a pager: `KCTL_PAGER`, else `PAGER`, else less where there is one."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from itertools import chain
from signal import SIG_IGN, SIGINT, signal

from commands.cli.leaving import Chunk, write

OFF = ("", "cat")
LESS = "FRX"  # end where all fits, pass colours, leave the text on the screen: unless the user's LESS says otherwise


def pager() -> list[str]:
    """The words of the pager's command; none where it is turned off or not installed."""
    usual = "" if os.environ.get("TERM", "dumb") == "dumb" else os.environ.get("PAGER", "less")
    command = os.environ.get("KCTL_PAGER", usual)
    try:
        words = [] if command in OFF else shlex.split(command)
    except ValueError:  # a quotation mark without its second
        return []
    program = shutil.which(words[0]) if words else None
    return [program, *words[1:]] if program else []


def page_through(chunks: Iterable[Chunk], size: os.terminal_size, command: list[str]) -> None:
    """Write text, in pieces of whole lines, to a terminal of this size, or to a pager once it fills more than that.

    BrokenPipeError where the reader left the pager before the end.
    """
    rest = iter(chunks)
    buffered: list[Chunk] = []
    used = 0
    try:
        for chunk in rest:
            buffered.append(chunk)
            used += max(bytes(chunk).count(b"\n"), len(chunk) // max(1, size.columns))
            if used >= size.lines:
                break
    finally:
        if used < size.lines:  # all of it, or what there is before an error
            write(buffered)
    if used < size.lines:
        return
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env={"LESS": LESS, **os.environ})
    except OSError:  # no program of this machine: the text matters more
        write(chain(buffered, rest))
        return
    with _running(process) as out:
        for chunk in chain(buffered, rest):
            out.write(chunk)


@contextmanager
def _running(process: subprocess.Popen[bytes]) -> Iterator[io.BufferedWriter]:
    """The pager's input, which takes notes and errors too, for they would be written over its text."""
    out = process.stdin
    assert isinstance(out, io.BufferedWriter)
    notes = io.TextIOWrapper(out, write_through=True, errors="backslashreplace")
    try:
        with redirect_stderr(notes if sys.stderr.isatty() else sys.stderr):
            yield out
            out.flush()
    finally:
        before = signal(SIGINT, SIG_IGN)  # it is the pager's until the reader leaves it
        with suppress(BrokenPipeError):
            notes.close()
        process.wait()
        signal(SIGINT, before)
