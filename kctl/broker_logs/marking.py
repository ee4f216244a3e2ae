"""Merged records as lines: as they are, or each with the broker and the file that it is from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kctl.broker_logs.blocks import Reading
from kctl.broker_logs.merging import Released
from kctl.broker_logs.sources import LogFile, Sources

COLORS = (36, 32, 35, 33, 34, 96, 92, 95, 93, 94)
WRONG = re.compile(rb"^(\[[^\]\n]*\] (?:ERROR|FATAL).*)$", re.MULTILINE)
WARNED = re.compile(rb"^(\[[^\]\n]*\] WARN.*)$", re.MULTILINE)
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
WRITTEN = 1 << 18


class Marks:
    """Writes runs of records, each line after its mark."""

    def __init__(self, sources: Sources | None, *, color: bool = False, safe: bool = False) -> None:
        """No `sources`: lines as they are. `safe`: what a terminal would obey is shown instead."""
        self._color = color
        self._safe = safe
        self._is_marked = sources is not None
        self._marks: dict[int, bytes] = {}
        self._width = max((len(file.file) for file in sources.files), default=0) if sources else 0
        self.records = 0

    def written(self, released: Iterable[Released]) -> Iterator[bytes]:
        """The bytes of the records, some hundred kilobytes at a time."""
        held: list[bytes | memoryview] = []
        size = 0
        plain = not (self._safe or self._color or self._is_marked)
        for some in released:
            self.records += len(some)
            owners, firsts, lasts = some.pieces()
            pieces = zip(owners, firsts, lasts, strict=True)
            size += sum(lasts) - sum(firsts)
            if plain:
                views = [memoryview(block.data) for block, _, _ in some.slices]
                held += [views[which][first:last] for which, first, last in pieces]
            else:
                blocks = [block for block, _, _ in some.slices]
                held += [
                    self._dressed(blocks[which].data[first:last], blocks[which].file)
                    for which, first, last in pieces
                ]
            if size >= WRITTEN:
                yield b"".join(held)
                held, size = [], 0
        yield b"".join(held)

    def _dressed(self, text: bytes, file: LogFile) -> bytes:
        """Whole lines with their mark and colours."""
        if self._safe:
            text = CONTROL.sub(lambda m: b"\\x%02x" % m[0][0], text)
        if self._color:
            text = WARNED.sub(b"\x1b[33m\\1\x1b[0m", WRONG.sub(b"\x1b[31;1m\\1\x1b[0m", text))
        if self._is_marked:
            mark = self._mark(file)
            text = mark + text[:-1].replace(b"\n", b"\n" + mark) + b"\n"
        return text

    def _mark(self, file: LogFile) -> bytes:
        """`1<TAB>broker-1/logs/state-change.log<TAB>`; aligned and coloured by broker on a terminal."""
        known = self._marks.get(id(file))
        if known is None:
            broker = "-" if file.broker_id is None else str(file.broker_id)
            if self._color:
                color = COLORS[(file.broker_id or 0) % len(COLORS)]
                text = f"\x1b[{color}m{broker:>3} {file.file.ljust(self._width)}\x1b[0m "
            else:
                text = f"{broker}\t{file.file}\t"
            known = self._marks[id(file)] = text.encode("utf-8", "backslashreplace")
        return known

    def sentence(self, reading: Reading) -> str:
        """How much it was."""
        return f"{self.records} records of {reading.lines} lines{left_out(reading)}"


def left_out(reading: Reading) -> str:
    """What was not given out, as the end of a sentence."""
    return f", {reading.duplicates} duplicates left out" if reading.duplicates else ""
