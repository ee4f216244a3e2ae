"""A segment's log read through an Aiven manifest: chunks are joined and decompressed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from formats.compression import Codec, CompressionError, decompress
from formats.tier.aiven_manifest import Manifest
from kctl.scan.source import Source


class ChunkedLog:
    """The original log as a source of bytes. `OSError` if a chunk cannot be unpacked."""

    def __init__(self, stored: Source, manifest: Manifest) -> None:
        self.name = stored.name
        self.size = manifest.original_file_size
        self._stored = stored
        self._chunk_size = manifest.original_chunk_size
        self._sizes: Sequence[int] = manifest.transformed_chunk_sizes
        self._starts = [0, *accumulate(self._sizes)]
        self._unpacked: tuple[int, bytes] = (-1, b"")

    def _chunk(self, number: int) -> bytes:
        if self._unpacked[0] != number:
            original_size = min(self._chunk_size, self.size - number * self._chunk_size)
            stored = self._stored.read_at(self._starts[number], self._sizes[number])
            try:
                data = decompress(Codec.ZSTD, stored, magic=2, limit=original_size)
            except CompressionError as error:
                raise OSError(f"chunk {number} cannot be unpacked: {error}") from None
            self._unpacked = (number, data)
        return self._unpacked[1]

    def read_at(self, position: int, size: int) -> bytes:
        """Bytes of the original from a position on, fewer at its end."""
        data = bytearray()
        end = min(self.size, position + size)
        while position + len(data) < end:
            number, within = divmod(position + len(data), self._chunk_size)
            piece = self._chunk(number)[within : within + end - position - len(data)]
            if not piece:
                break
            data += piece
        return bytes(data)

    def read_into(self, position: int, room: NDArray[np.uint8]) -> int:
        """Fill the room from a position on; return how many bytes were read."""
        data = self.read_at(position, len(room))
        room[: len(data)] = np.frombuffer(data, np.uint8)
        return len(data)

    def whole(self) -> NDArray[np.uint8] | None:
        """None: chunks are unpacked as they are needed."""
        return None

    def current_size(self) -> int:
        return self.size

    def close(self) -> None:
        self._stored.close()
