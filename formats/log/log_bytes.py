"""Bytes of a log, read when needed: a buffer, or windows of something that reads at a position.

Sizes that damaged bytes claim are never trusted: nothing larger than a window is read to look at an entry,
CRCs are computed piece by piece. A source that turns out shorter than it said ends there.
"""

import zlib
from typing import Protocol, runtime_checkable

from formats.binary.crc import crc32, crc32c, crc32c_more
from formats.binary.layout import Bytes

WINDOW = 1 << 20
ZEROS = bytes(WINDOW)


@runtime_checkable
class Readable(Protocol):
    """A source of bytes at a position; it gives fewer than asked only at its end."""

    @property
    def size(self) -> int: ...

    def read_at(self, position: int, size: int) -> Bytes: ...


class Window:
    """Bytes held in memory as something to read from."""

    def __init__(self, data: Bytes) -> None:
        self.data = memoryview(data)
        self.size = len(data)

    def read_at(self, position: int, size: int) -> memoryview:
        """The bytes, fewer where they end."""
        return self.data[position : position + size]


class LogBytes:
    """A source of log bytes, read in windows; `end` moves down when it turns out shorter than it said."""

    def __init__(self, data: Bytes | Readable, end: int | None = None) -> None:
        whole = isinstance(data, (bytes, bytearray, memoryview))
        self.source: Readable = Window(data) if isinstance(data, (bytes, bytearray, memoryview)) else data
        size = self.source.size
        self.end = size if end is None else max(0, min(end, size))
        self._start = 0
        self._window: Bytes = self.source.read_at(0, self.end) if whole else b""

    def read(self, position: int, size: int) -> Bytes:
        """These bytes; fewer where the log ends."""
        size = min(size, self.end - position)
        if size <= 0:
            return b""
        at = position - self._start
        if at >= 0 and at + size <= len(self._window):
            return self._window[at : at + size]
        if size > WINDOW:
            return self._fetch(position, size)
        self._window, self._start = self._fetch(position, WINDOW), position
        return self._window[:size]

    peek = read

    def _fetch(self, position: int, size: int) -> Bytes:
        size_inside = min(size, self.end - position)
        data = self.source.read_at(position, size_inside)
        if len(data) < size_inside:
            self.end = position + len(data)
        return data

    def crc(self, magic: int, start: int, end: int) -> int:
        """The checksum that entries of this magic carry, over [start, end)."""
        if end - start <= WINDOW:
            data = self.read(start, end - start)
            return crc32c(data) if magic >= 2 else crc32(data)
        value = 0
        for position in range(start, end, WINDOW):
            piece = self._fetch(position, min(WINDOW, end - position))
            value = crc32c_more(value, piece) if magic >= 2 else zlib.crc32(piece, value)
        return value

    def is_zero(self, position: int) -> bool:
        """Whether there is nothing but zeros from position to the end."""
        size = 64  # most of what is not zero shows it at once
        while position < self.end:
            piece = self.read(position, min(size, self.end - position))
            if bytes(piece) != ZEROS[: len(piece)]:
                return False
            position += len(piece)
            size = WINDOW
        return True
