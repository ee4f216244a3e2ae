"""What a source of a copy must do: list a folder, and give the contents of its files in the order asked for.

Names and contents come from a machine that nobody trusts: each name is checked here before it becomes a path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from kctl.errors import KctlError

FILE, FOLDER = "file", "folder"


class SourceLost(KctlError):
    """The source went away, or broke off: what was copied until then stays."""

    hint = "look whether the source can be reached, and go on with `kctl collect --resume`"


class Unsettled(Exception):
    """Files of a folder were replaced between the listing and the opening: list it again."""


class ReadFailed(Exception):
    """A file that was opened could not be read to its end; its text is the reason."""


class Entry(NamedTuple):
    """One name of a listed folder; `kind` is `file`, `folder`, or words for anything else."""

    name: str
    kind: str
    size: int = 0
    mtime_ns: int = 0
    mode: int = 0
    uid: int = 0
    gid: int = 0


class Content(Protocol):
    """An open file: its state as it was opened, then its bytes."""

    entry: Entry

    def pieces(self) -> Iterator[memoryview | int]:
        """The bytes up to the first size; an integer is a run of so many zeros. A piece is valid until the next.

        Raises ReadFailed.
        """
        ...

    def what_happened(self) -> str | None:
        """What changed in the file while it was read, or None."""
        ...


class Gone(NamedTuple):
    """A listed file that could not be opened; `is_there`: it was there, and may not or cannot be read."""

    entry: Entry
    reason: str
    is_there: bool = False


class Source(Protocol):
    """Where files are copied from.

    `root` is a folder of this machine that holds the source's names: the source itself, or empty files that stand for
    what was listed there.
    """

    shown: str
    root: Path
    clock_offset_ms: int | None
    command: str | None
    """The command that reads the source, where that is not this process."""
    left_out: list[str]
    """What a first look could not take in, each in words."""
    unread: list[str]
    """What a first look might not read, each in words."""

    def shown_path(self, path: Path) -> str:
        """The source's own name of a path below `root`."""
        ...

    def listing(self, folder: Path) -> list[Entry]:
        """The entries of a folder as they are now. Raises OSError, SourceLost."""
        ...

    def size_of(self, folder: Path, names: Collection[str] | None) -> int:
        """The bytes of the named files of a folder, of all its files without names, as far as a first look tells."""
        ...

    def contents(
        self, folder: Path, entries: Sequence[Entry], *, settled: bool = False
    ) -> Iterator[Content | Gone]:
        """The files of a folder in the order given; each is read before the next is asked for. Raises SourceLost.

        `settled`: raises Unsettled, before it gives the first, where the folder's segments are being replaced.
        """
        ...
