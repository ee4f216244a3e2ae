"""Several containers that print into one stream, `docker compose logs` say: each is a log of its own.

They print at once, so that lines of one stand between those of another, or one after the other, so that times go back.
A line that names no container belongs to the one before it. A large file is read once: the lines of each container are
kept in a file of their own until the process ends, unless the disk has no room for them.
"""

from __future__ import annotations

import re
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kctl.text_logs.opening import PEEKED, SMALL, lack_of_room

# The lines of further names are kept together.
MOST = 500
OTHERS = b"\0others"
# Bytes of lines that are held until they are written.
HELD = 8 << 20
# A line that has not ended after so many bytes is cut.
LONGEST = 24 << 20
# The number of a line in the export that it stands in.
NUMBER = re.compile(rb"\x1f(\d{1,9})\x1f")
Origin = Callable[[bytes], bytes | None]


class Part(NamedTuple):
    """The lines of one container."""

    head: bytes
    """Its first lines."""
    path: str = ""
    """A file of its lines alone; their numbers are in the one with `NUMBERS` behind the name. Empty where there is none."""


NUMBERS = ".numbers"


def parts_of(chunks: Iterable[bytes], origin: Origin, folder: Path | None = None) -> dict[bytes, Part]:
    """The lines of each container, written below `folder`; empty where the stream names none.

    Names beyond the first hundreds are one, `OTHERS`.
    """
    heads: dict[bytes, bytearray] = {}
    store = _Store(folder) if folder else None
    early: list[tuple[int, bytes]] = []  # lines before the first that names a container
    kept: dict[bytes, list[bytes]] = {}
    numbers: dict[bytes, array[int]] = {}
    size = early_size = 0
    for number, container, line in _lines(chunks, origin):
        if container is None:
            early.append((number, line))
            early_size += len(line) + 100
            if early_size > HELD:  # they are read from the whole file
                early, early_size = [], 0
                if store:
                    store.give_up()
            continue
        if container not in heads and len(heads) >= MOST:
            container = OTHERS
        lines = kept.get(container)
        if lines is None:
            lines, numbers[container] = kept.setdefault(container, []), array("q")
            lines += [line for _, line in early]
            numbers[container].extend(number for number, _ in early)
            early, early_size = [], 0
        lines.append(line)
        numbers[container].append(number)
        size += len(line) + 100
        if size > HELD:
            _keep(heads, kept)
            if store:
                store.write(kept, numbers)
            kept, numbers, size = {}, {}, 0
        elif container not in heads:
            heads[container] = bytearray()
    _keep(heads, kept)
    if store:
        store.write(kept, numbers)
    paths = store.paths if store else {}
    return {container: Part(bytes(head), paths.get(container, "")) for container, head in heads.items()}


def _keep(heads: dict[bytes, bytearray], kept: dict[bytes, list[bytes]]) -> None:
    """Add lines to the heads that are short yet."""
    most = PEEKED if len(heads) < MOST // 10 else PEEKED // 16
    for container, lines in kept.items():
        head = heads.setdefault(container, bytearray())
        for line in lines:
            if len(head) >= most:
                break
            head += line + b"\n"


class _Store:
    """Files of lines, one a container; what is there is removed where the disk has no room for all of it."""

    def __init__(self, folder: Path) -> None:
        self._folder: Path | None = folder
        self.paths: dict[bytes, str] = {}
        """The file of each container."""
        self._written = 0

    def write(self, kept: dict[bytes, list[bytes]], numbers: dict[bytes, array[int]]) -> None:
        """Add lines to the files of their containers."""
        folder = self._folder
        if folder is None:
            return
        try:
            for container, lines in kept.items():
                path = self.paths.setdefault(container, str(folder / str(len(self.paths))))
                with Path(path).open("ab") as file:
                    self._written += file.write(b"\n".join(lines) + b"\n")
                with Path(path + NUMBERS).open("ab") as file:
                    file.write(numbers[container].tobytes())
            if self._written > SMALL and (lack := lack_of_room(folder)):
                raise lack
        except OSError:
            self.give_up()

    def give_up(self) -> None:
        """Remove all that was written."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder, self.paths = None, {}


def part_lines(chunks: Iterable[bytes], path: str, numbers: array[int]) -> Iterator[bytes]:
    """The same chunks of a part; the number of each line in the whole file is added to `numbers`."""
    with Path(path + NUMBERS).open("rb") as file:
        for chunk in chunks:
            numbers.frombytes(file.read(chunk.count(b"\n") * numbers.itemsize))
            yield chunk


def only(
    chunks: Iterable[bytes], origin: Origin, container: bytes, numbers: array[int], *, is_first: bool
) -> Iterator[bytes]:
    """The lines of one container, some at a time; the number of each is added to `numbers`.

    Lines before the first that names a container are its own where it `is_first`.
    """
    lines_kept: list[bytes] = []
    size = 0
    for number, named, line in _lines(chunks, origin):
        if named == container or (named is None and is_first):
            lines_kept.append(line)
            numbers.append(number)
            size += len(line) + 1
        if size >= PEEKED:
            yield b"\n".join(lines_kept) + b"\n"
            lines_kept, size = [], 0
    if lines_kept:
        yield b"\n".join(lines_kept) + b"\n"


def numbered(chunks: Iterable[bytes], numbers: array[int]) -> Iterator[bytes]:
    """The same chunks of an export, cut behind lines; the number of each line in the export is added to `numbers`."""
    number = 0
    for chunk in chunks:
        for line in chunk.split(b"\n")[: chunk.count(b"\n")]:
            number = _number(line, number)
            numbers.append(number)
        yield chunk


def _number(line: bytes, otherwise: int) -> int:
    mark = NUMBER.match(line)
    return int(mark[1]) if mark else otherwise


def _lines(chunks: Iterable[bytes], origin: Origin) -> Iterator[tuple[int, bytes | None, bytes]]:
    """Each line with its number and its container, None before the first that names one."""
    container = None
    for number, line in enumerate(_split(chunks), 1):
        container = origin(line) or container
        yield _number(line, number), container, line


def _split(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    size = 0
    for chunk in chunks:
        rest.append(chunk)
        size += len(chunk)
        if b"\n" in chunk or size >= LONGEST:
            lines = b"".join(rest).split(b"\n")
            last = lines.pop() if len(lines) > 1 else b""
            yield from lines
            rest, size = [last], len(last)
    if size:
        yield b"".join(rest)
