"""The codecs of record sets: what lies compressed in a batch of magic 2 or in a wrapper of magic 0 and 1.

Readers here accept what Kafka's readers accept and refuse what they refuse. Nothing says beforehand how much
comes out (neither lz4 nor zstd frames of the Java client hold their content size, and a size given may lie),
so output is counted as it comes and stops at the limit.

Source: clients/src/main/java/org/apache/kafka/common/{record/CompressionType,compress/*}.java @ 3.9.0-rc3
"""

import enum
from collections.abc import Callable, Iterator

from formats.binary.layout import Bytes
from formats.compression import gzip as gzip_members
from formats.compression import lz4 as lz4_frame
from formats.compression import snappy as snappy_blocks
from formats.compression import zstd as zstd_frames
from formats.compression.errors import CompressionError, TooLarge, limited
from formats.compression.writers import compress

__all__ = [
    "AT_ONCE",
    "DEFAULT_LIMIT",
    "Codec",
    "CompressionError",
    "TooLarge",
    "compress",
    "decompress",
    "pieces",
]

DEFAULT_LIMIT = 256 << 20
AT_ONCE = 32 << 20  # bytes of a content from which on it is better read in pieces


class Codec(enum.IntEnum):
    """Bits 0 to 2 of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(codec: int, data: Bytes, *, magic: int, limit: int = DEFAULT_LIMIT) -> bytes:
    """The bytes that were compressed.

    Raises `TooLarge` when there are more than `limit`, `CompressionError` when the data is cut, broken, or of
    a codec that this magic cannot have (zstd came with magic 2).
    """
    whole = _WHOLE.get(codec)
    if whole is None or (codec == ZSTD and magic < 2):
        raise _unknown(codec)
    return whole(memoryview(data), limit, magic)


def _plain(data: memoryview, limit: int, magic: int) -> bytes:
    if len(data) > limit:
        raise TooLarge(limit)
    return bytes(data)


ZSTD = 4
_WHOLE: dict[int, Callable[[memoryview, int, int], bytes]] = {
    0: _plain,
    1: gzip_members.whole,
    2: snappy_blocks.whole,
    3: lz4_frame.whole,
    ZSTD: zstd_frames.whole,
}


def pieces(codec: int, data: Bytes, *, magic: int, limit: int = DEFAULT_LIMIT) -> Iterator[bytes]:
    """The same in pieces of at most about a megabyte, for contents that should not be in memory at once.

    (A raw snappy block comes whole: its format needs all of its output to go on.)
    """
    view = memoryview(data)
    match codec:
        case Codec.NONE:
            parts = iter([bytes(view)])
        case Codec.GZIP:
            parts = gzip_members.pieces(view)
        case Codec.SNAPPY:
            parts = snappy_blocks.pieces(view, limit)
        case Codec.LZ4:
            parts = lz4_frame.pieces(view, magic)
        case Codec.ZSTD if magic >= 2:
            parts = zstd_frames.pieces(view)
        case _:
            raise _unknown(codec)
    yield from limited(parts, limit)


def _unknown(codec: int) -> CompressionError:
    if codec == Codec.ZSTD:
        return CompressionError("zstd cannot be used before magic 2", 0)
    return CompressionError(f"unknown codec id {codec}", 0)
