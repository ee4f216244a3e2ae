"""Several containers that print into one stream, `docker compose logs` say: each is a log of its own.

They print at once, so that lines of one stand between those of another, or one after the other, so that times go back.
A line that names no container belongs to the one before it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator

from kctl.broker_logs.opening import PEEKED

# More names than that are no containers.
MOST = 100
# A line that has not ended after so many bytes is cut.
LONGEST = 24 << 20
# The number of a line in the export that it stands in.
NUMBER = re.compile(rb"\x1f(\d{1,9})\x1f")
Origin = Callable[[bytes], bytes | None]


def heads_of(chunks: Iterable[bytes], origin: Origin) -> dict[bytes, bytes]:
    """The first lines of each container; empty where the stream names none, or too many to be containers."""
    heads: dict[bytes, bytearray] = {}
    for _, container, line in _lines(chunks, origin):
        if container is None:
            continue
        head = heads.setdefault(container, bytearray())
        if len(head) < PEEKED:
            head += line + b"\n"
        if len(heads) > MOST:
            return {}
    return {container: bytes(head) for container, head in heads.items()}


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
