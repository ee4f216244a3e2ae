"""A body decompressed into memory that already exists: nothing is allocated and nothing copied.

It reads what the Java client writes. Bodies of another form, too large or broken ones are left to `decompress`, which
knows every form and says what is wrong.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

from formats.binary.native_libraries import optional
from formats.compression.errors import CompressionError
from formats.compression.lz4 import JAVA_HEADER
from formats.compression.snappy import XERIAL, XERIAL_HEADER_SIZE
from formats.compression.writers import LZ4_BLOCK
from formats.compression.zstd import check_frames, decompressor

_BIG, _LITTLE = Struct(">I"), Struct("<I")

Into = Callable[[memoryview, memoryview], int | None]
"""From the data and the memory: how many bytes were written; None if `decompress` must read the data.

After None, what the memory holds means nothing.
"""


@cache
def reader_into(codec: int) -> Into | None:
    """The function that decompresses bodies of magic 2 into memory; None if the codec's library is missing."""
    entry = _READERS.get(codec)
    if entry is None:
        return None
    name, make = entry
    library = optional(name)
    return None if library is None else make(library)


def _snappy(library: Any) -> Into:
    """Xerial streams of blocks."""
    block_into, error, size_at = (
        library.snappy.decompress_raw_into,
        library.DecompressionError,
        _BIG.unpack_from,
    )

    def into(data: memoryview, out: memoryview) -> int | None:
        end, position, size = len(data), XERIAL_HEADER_SIZE, 0
        if end < position or data[:8] != XERIAL:
            return None
        try:
            while position + 4 <= end:
                after = position + 4 + size_at(data, position)[0]
                if after > end:
                    return None
                size += block_into(data[position + 4 : after], out[size:])
                position = after
        except error:
            return None
        return size

    return into


def _lz4(library: Any) -> Into:
    """Frames of compressed blocks of 64 KiB."""
    block_into, error = library.lz4.decompress_block_into, library.DecompressionError
    size_at, first = _LITTLE.unpack_from, len(JAVA_HEADER)

    def into(data: memoryview, out: memoryview) -> int | None:
        if data[:first] != JAVA_HEADER:
            return None
        end, position, size = len(data), first, 0
        try:
            while position + 4 <= end:
                (word,) = size_at(data, position)
                if word == 0:
                    return size
                position += 4
                if word > LZ4_BLOCK or position + word > end:
                    return None
                room = out[size : size + LZ4_BLOCK]
                size += block_into(data[position : position + word], room, len(room))
                position += word
        except error:
            return None
        return None

    return into


def _zstd(library: Any) -> Into:
    """Whole frames."""

    def into(data: memoryview, out: memoryview) -> int | None:
        try:
            check_frames(data)
            size: int = decompressor().stream_reader(data, read_across_frames=True).readinto(out)
        except (CompressionError, library.ZstdError):
            return None
        return size if size < len(out) else None  # a full room may have been too small

    return into


_READERS: dict[int, tuple[str, Callable[[Any], Into]]] = {
    2: ("cramjam", _snappy),
    3: ("cramjam", _lz4),
    4: ("zstandard", _zstd),
}
