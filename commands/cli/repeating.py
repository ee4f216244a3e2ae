"""A command that looks again and again: on a screen of its own on a terminal, one answer after the other elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from commands.cli.leaving import say_error, write
from kctl.errors import KctlError

OTHER_SCREEN, OWN_SCREEN = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
CLEAR = b"\x1b[H\x1b[J"


class Looks:
    """Where the looks of a command are shown; nothing but text on a terminal replaces what was shown before."""

    def __init__(self, *, is_screen: bool) -> None:
        self.is_screen = is_screen
        self.is_old = False

    def make_room(self) -> None:
        """Called before each line: the first line of a look clears the screen, which shows the last one until then."""
        if self.is_old and self.is_screen:
            write([CLEAR])
        self.is_old = False

    def is_left_within(self, seconds: float) -> bool:
        """Wait; whether somebody pressed q meanwhile, or since the last time."""
        if not (self.is_screen and sys.stdin.isatty()):
            time.sleep(seconds)
            return False
        import select

        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0:
            if select.select([sys.stdin], [], [], remaining)[0] and os.read(sys.stdin.fileno(), 1) in (
                b"q",
                b"Q",
                b"",
            ):
                return True
        return False


def repeated(look: Callable[[Callable[[], None]], int], pause: float, *, is_text: bool) -> int:
    """Look until Ctrl-C, or q on a terminal; gives the last exit status. `look` gets what to call before each line."""
    looks = Looks(is_screen=is_text and sys.stdout.isatty() and os.environ.get("TERM") != "dumb")
    status = 0
    try:
        with _other_screen() if looks.is_screen else _nothing():
            while True:
                looks.is_old = True
                try:
                    status = look(looks.make_room)
                except KctlError as error:  # brokers that restart are what one looks at
                    looks.make_room()
                    say_error(error)
                    status = error.exit_code
                looks.make_room()
                if looks.is_left_within(pause):
                    return status
    except KeyboardInterrupt:
        return status


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _other_screen() -> Iterator[None]:
    """The terminal's other screen without a cursor, and keys as they are pressed; then all as it was."""
    import termios
    import tty

    keys = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    write([OTHER_SCREEN])
    try:
        if keys is not None:
            tty.setcbreak(sys.stdin)
        yield
    finally:
        if keys is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, keys)
        write([OWN_SCREEN])
