"""gzip: one RFC 1952 member from the Java client, any number of them accepted.

Java's reader takes what follows a member for another one; bytes that do not start like a member end the data
quietly, but a member that started must be whole, its CRC and size included.

Source: java.util.zip.GZIPInputStream of JDK 17, read through
clients/src/main/java/org/apache/kafka/common/compress/GzipCompression.java @ 3.9.0-rc3
"""

import zlib
from collections.abc import Iterator
from typing import Any

from formats.binary.native_libraries import optional
from formats.compression.errors import CompressionError, TooLarge, limited

PIECE = 1 << 20
MEMBER = b"\x1f\x8b\x08"


def _library() -> Any:
    return optional("isal.isal_zlib") or zlib


def pieces(data: memoryview, limit: int, magic: int = 2) -> Iterator[bytes]:
    """The content, a megabyte at a time."""
    library = _library()
    errors = (zlib.error, getattr(library, "error", zlib.error))
    position = 0
    while position == 0 or bytes(data[position : position + 3]) == MEMBER:
        member = library.decompressobj(31)
        fed, unread = position, b""
        while not member.eof:
            if not unread:
                unread = bytes(data[fed : fed + PIECE])
                fed += len(unread)
            try:
                part = member.decompress(unread, PIECE)
            except errors as error:
                raise CompressionError(f"gzip: {error}", position) from error
            if not part and not member.eof and not unread:
                raise CompressionError("gzip data is cut off", len(data))
            unread = member.unconsumed_tail
            if part:
                yield part
        position = fed - len(member.unused_data)


def whole(data: memoryview, limit: int, magic: int = 2) -> bytes:
    """The content; `TooLarge` beyond the limit."""
    library = _library()
    errors = (zlib.error, getattr(library, "error", zlib.error))
    member = library.decompressobj(31)
    try:
        out: bytes = member.decompress(data, limit + 1)
    except errors as error:
        raise CompressionError(f"gzip: {error}", 0) from error
    if len(out) > limit:
        raise TooLarge(limit)
    if not member.eof:
        if len(member.unconsumed_tail):  # the last bytes of output came before the trailer was read
            return b"".join(pieces(data, limit))
        raise CompressionError("gzip data is cut off", len(data))
    if member.unused_data[:3] == MEMBER:
        return b"".join(limited(pieces(data, limit), limit))
    return out
