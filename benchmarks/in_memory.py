"""Bytes as a source of a scan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formats.binary.layout import Bytes


class InMemory:
    """Bytes as a source."""

    def __init__(self, data: Bytes, name: str = "bytes") -> None:
        self.name = name
        self._data = memoryview(data)
        self.size = len(data)

    def read_at(self, position: int, size: int) -> bytes:
        """Bytes from position on, fewer where they end."""
        return bytes(self._data[position : position + size])

    def read_into(self, position: int, room: NDArray[np.uint8]) -> int:
        """Fill the room from position on; how many bytes there were."""
        part = self._data[position : position + len(room)]
        room[: len(part)] = part
        return len(part)

    def whole(self) -> NDArray[np.uint8]:
        """All of it."""
        return np.frombuffer(self._data, np.uint8)

    def current_size(self) -> int:
        """What it was."""
        return self.size

    def close(self) -> None:
        """Nothing to give back."""
