"""What `kafka.tools.StateChangeLogMerger` prints, byte for byte, where scripts depend on it.

`core/src/main/scala/kafka/tools/StateChangeLogMerger.scala @ 0.8.2.2`: a line is kept when a date stands
anywhere in it and something like `[topic,0]` does too, which from 1.0 on means that next to nothing is kept.
Files are merged by the text of their dates through a binary heap, whose order of equal dates is reproduced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from formats.values import Struct
from kctl.errors import BadValue, reason_of
from kctl.text_logs.opening import chunks_of

DATE = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}")
PARTITION = re.compile(rb"\[([a-zA-Z0-9._-]+),( )*([0-9]+)\]")
FIRST = "0000-00-00 00:00:00,000"
LAST = "9999-12-31 23:59:59,999"


class Line(NamedTuple):
    """A kept line and the file that it is from."""

    date: bytes
    line: bytes
    rest: Iterator[tuple[bytes, bytes]]


class MergerOptions(Struct, frozen=True):
    """The options of Kafka's tool."""

    topic: str | None = None
    partitions: frozenset[int] = frozenset()
    start_time: str = FIRST
    end_time: str = LAST

    def check(self) -> None:
        """`BadValue` for what Kafka's tool refuses."""
        for option, text in (("--start-time", self.start_time), ("--end-time", self.end_time)):
            if not DATE.fullmatch(text.encode()):
                raise BadValue(
                    f"{option} {text!r} is not yyyy-MM-dd HH:mm:ss,SSS", "write it as 2026-11-21 13:00:00,000"
                )
        if self.partitions and self.topic is None:
            raise BadValue("--partitions needs --topic", "give --topic")


def merge_like_kafka(
    paths: Sequence[str], options: MergerOptions, damaged: Callable[[str], None]
) -> Iterator[bytes]:
    """The lines that Kafka's tool prints for these files, in its order, compressed ones unpacked first."""
    options.check()
    heap = Heap()
    firsts: list[Line] = []
    for path in paths:
        rest = _kept(_lines(chunks_of(path, damaged, is_as_written=True)), options)
        first = next(rest, None)
        if first is not None:
            # The tool collects the first lines in front of a list, so that the last file is put in first.
            firsts.insert(0, Line(*first, rest))
    for first_line in firsts:
        heap.put(first_line)
    while heap:
        line = heap.take()
        yield line.line + b"\n"
        following = next(line.rest, None)
        if following is not None:
            heap.put(Line(*following, line.rest))


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as Java's BufferedReader cuts them: at \\n, \\r and \\r\\n."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        cut = rest.rfind(b"\n") + 1
        whole, rest = rest[:cut], rest[cut:]
        if b"\r" in whole:
            whole = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if whole:
            yield from whole[:-1].split(b"\n")
    if rest:
        rest = rest.removesuffix(b"\r")
        yield from rest.replace(b"\r", b"\n").split(b"\n")


def _kept(lines: Iterable[bytes], options: MergerOptions) -> Iterator[tuple[bytes, bytes]]:
    topic = options.topic.encode() if options.topic is not None else None
    start, end = options.start_time.encode(), options.end_time.encode()
    for line in lines:
        named = PARTITION.search(line)
        if named is None:
            continue
        date = DATE.search(line)
        if date is None or not start <= date[0] <= end:
            continue
        if topic is not None and named[1] != topic:
            continue
        if options.partitions and int(named[3]) not in options.partitions:
            continue
        yield date[0], line


class Heap:
    """The binary heap of scala.collection.mutable.PriorityQueue @ 2.10, smallest date first."""

    def __init__(self) -> None:
        self._items: list[Line | None] = [None]

    def __bool__(self) -> bool:
        return len(self._items) > 1

    def put(self, item: Line) -> None:
        """Add a line: it rises while its date is before that of the line above it."""
        items = self._items
        items.append(item)
        place = len(items) - 1
        while place > 1 and self._before(place, place // 2):
            items[place], items[place // 2] = items[place // 2], items[place]
            place //= 2

    def take(self) -> Line:
        """Remove the first line: the last one takes its place and sinks."""
        items = self._items
        items[1], items[-1] = items[-1], items[1]
        first = items.pop()
        assert first is not None
        place, count = 1, len(items) - 1
        while count >= 2 * place:
            below = 2 * place
            if below < count and self._before(below + 1, below):
                below += 1
            if not self._before(below, place):
                break
            items[place], items[below] = items[below], items[place]
            place = below
        return first

    def _before(self, a: int, b: int) -> bool:
        line, other_line = self._items[a], self._items[b]
        assert line is not None
        assert other_line is not None
        return line.date < other_line.date


def files_matching(pattern: str) -> list[str]:
    """The files that `--logs-regex DIR/REGEX` names: the expression is searched in the names of one folder."""
    import os

    folder, slash, expression = pattern.rpartition("/")
    try:
        searched = re.compile(expression)
    except re.error as error:
        raise BadValue(f"--logs-regex {pattern!r}: {error}", "correct the regular expression") from error
    folder = folder or ("/" if slash else ".")
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError as error:
        raise BadValue(
            f"--logs-regex {pattern!r}: {reason_of(error)}", "correct the path in the expression"
        ) from error
    return [os.path.join(folder, name) for name in names if searched.search(name)]
