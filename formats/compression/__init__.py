"""The codecs of record sets: what lies compressed in a batch of magic 2 or in a wrapper of magic 0 and 1.

Readers here accept what Kafka's readers accept and refuse what they refuse. Nothing says beforehand how much
comes out (neither lz4 nor zstd frames of the Java client hold their content size, and a size given may lie),
so output is counted as it comes and stops at the limit.

Source: clients/src/main/java/org/apache/kafka/common/{record/CompressionType,compress/*}.java @ 3.9.0-rc3
"""

import enum
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from formats.binary.layout import Bytes
from formats.compression.errors import CompressionError, TooLarge, limited

__all__ = ["AT_ONCE", "DEFAULT_LIMIT", "Codec", "CompressionError", "TooLarge", "decompress", "pieces"]

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
    view = memoryview(data)
    if codec != Codec.NONE:
        content: bytes = _reader(codec, magic).whole(view, limit, magic)
        return content
    if len(view) > limit:
        raise TooLarge(limit)
    return bytes(view)


def pieces(codec: int, data: Bytes, *, magic: int, limit: int = DEFAULT_LIMIT) -> Iterator[bytes]:
    """The same in pieces of at most about a megabyte, for contents that should not be in memory at once.

    (A raw snappy block comes whole: its format needs all of its output to go on.)
    """
    view = memoryview(data)
    parts = _reader(codec, magic).pieces(view, limit, magic) if codec != Codec.NONE else iter([bytes(view)])
    yield from limited(parts, limit)


def _reader(codec: int, magic: int) -> Any:
    """The module that reads a codec, loaded when the first data of it is."""
    if codec not in READERS or (codec == Codec.ZSTD and magic < 2):
        raise _unknown(codec)
    return import_module(f"formats.compression.{READERS[codec]}")


READERS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""Modules with `whole` and `pieces`, both of data, limit and magic."""


def _unknown(codec: int) -> CompressionError:
    if codec == Codec.ZSTD:
        return CompressionError("zstd cannot be used before magic 2", 0)
    return CompressionError(f"unknown codec id {codec}", 0)
