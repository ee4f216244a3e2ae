"""One window of a source in memory: filled from a batch boundary on, parsed in place, then filled again.

The memory is taken once and used again, with padding behind the last byte so that wide loads near the end
stay inside.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formats.log.columns.headers import PADDING
from kctl.scan.source import Source

BLOCK_SIZE = 8 << 20


class Arena:
    """Memory that is allocated once and filled again and again."""

    def __init__(self) -> None:
        self._memory: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.size = 0

    def add(self, data: bytes | NDArray[np.uint8]) -> None:
        """Append bytes."""
        self.room(len(data))[:] = data if isinstance(data, bytes) else data.data
        self.size += len(data)

    def room(self, size: int) -> memoryview:
        """Memory behind the last byte, to be written into; the caller then adds what it wrote to `size`."""
        end = self.size + size
        if end + PADDING > len(self._memory):
            larger = np.empty(max(2 * len(self._memory), end + PADDING), np.uint8)
            larger[: self.size] = self._memory[: self.size]
            self._memory = larger
        return memoryview(self._memory.data)[self.size : end]

    def data(self) -> NDArray[np.uint8]:
        """The bytes and the padding behind them, until the next ones are put in their place."""
        if not len(self._memory):
            self._memory = np.empty(PADDING, np.uint8)
        self._memory[self.size : self.size + PADDING] = 0
        return self._memory[: self.size + PADDING]


class SourceBlock:
    """Bytes [start, end) of a source; `data[i]` is byte start + i."""

    def __init__(self, source: Source, size: int = BLOCK_SIZE) -> None:
        self._source = source
        self._size = size
        self._memory: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.data: NDArray[np.uint8] = self._memory
        """The bytes and the padding behind them."""
        self.arena = Arena()
        """For what is decompressed from it."""
        self.start = self.end = 0

    @classmethod
    def of(cls, data: NDArray[np.uint8]) -> SourceBlock:
        """Bytes that are in memory, with their padding."""
        block = cls.__new__(cls)
        block.data, block.start, block.end = data, 0, len(data) - PADDING
        block.arena = Arena()
        return block

    def load(self, position: int, until: int, at_least: int = 0) -> None:
        """Hold bytes from position on, up to `until`, as many as fit; `at_least` makes room for a large batch."""
        size = max(0, min(until - position, max(self._size, at_least)))
        self.start, self.end = position, position + size
        whole = self._source.whole()
        if whole is not None and self.end + PADDING <= len(whole):  # in memory already: nothing is copied
            self.data = whole[position : self.end + PADDING]
            return
        if len(self._memory) < size + PADDING:
            self._memory = np.empty(size + PADDING, np.uint8)
        size_read = self._source.read_into(position, self._memory[:size])
        self._memory[size_read : size_read + PADDING] = 0
        self.end = position + size_read
        self.data = self._memory[: size_read + PADDING]
