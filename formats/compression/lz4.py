"""lz4: one frame of independent blocks.

Kafka wrote the header checksum wrongly until 0.10 (over the frame's magic too) and still does in magic 0,
where it is therefore not checked. A content size and a content checksum are skipped unread, block checksums
are verified, bytes after the end mark are ignored; a missing end mark is an error, dependent blocks are one
too. The library is given a frame with a plain header, so that it sees only what Kafka would look at.

Source: clients/src/main/java/org/apache/kafka/common/compress/{Lz4BlockInputStream,Lz4BlockOutputStream}.java @ 3.9.0-rc3
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from formats.binary.native_libraries import optional
from formats.compression.errors import CompressionError, TooLarge, limited

P1, P2, P3, P4, P5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
MASK = 0xFFFFFFFF


def _rotated(value: int, by: int) -> int:
    value &= MASK
    return (value << by | value >> (32 - by)) & MASK


@lru_cache(maxsize=256)
def xxh32(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes."""
    if len(data) >= 16:
        raise ValueError("frame descriptors have at most 15 bytes")
    value = (P5 + len(data)) & MASK
    words = len(data) // 4 * 4
    for at in range(0, words, 4):
        value = _rotated(value + int.from_bytes(data[at : at + 4], "little") * P3, 17) * P4
    for byte in data[words:]:
        value = _rotated(value + byte * P5, 11) * P1
    value &= MASK
    value = (value ^ value >> 15) * P2 & MASK
    value = (value ^ value >> 13) * P3 & MASK
    return value ^ value >> 16


FRAME_MAGIC = b"\x04\x22\x4d\x18"
BLOCK_CHECKSUM, CONTENT_SIZE, CONTENT_CHECKSUM = 0x10, 0x08, 0x04
STORED = 0x80000000
BLOCK_SIZES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
PIECE = 1 << 20
JAVA_HEADER = FRAME_MAGIC + b"\x60\x40\x82"
MAX_RATIO = 255  # no lz4 block grows more
AT_ONCE = 64 << 20


class _Frame(NamedTuple):
    header: bytes  # as the library wants it: no content size, no content checksum, a right header checksum
    first_block: int
    end: int  # after the end mark
    most: int  # bytes that can come out at most
    is_plain: bool  # data[:end] is already what the library wants


def _read_frame(data: memoryview, magic: int) -> _Frame:
    if len(data) < 7:
        raise CompressionError("lz4 frame header is cut off", len(data))
    if data[:4] != FRAME_MAGIC:
        raise CompressionError("no lz4 frame", 0)
    flags, block_descriptor = data[4], data[5]
    if flags >> 6 != 1 or flags & 0x03 or not flags & 0x20:
        raise CompressionError(f"lz4 frame flags {flags:#04x} that Kafka does not read", 4)
    block_size = BLOCK_SIZES.get(block_descriptor >> 4)
    if block_size is None or block_descriptor & 0x8F:
        raise CompressionError(f"lz4 block descriptor {block_descriptor:#04x}", 5)
    at = 14 if flags & CONTENT_SIZE else 6
    if at >= len(data):
        raise CompressionError("lz4 frame header is cut off", len(data))
    if magic > 0 and data[at] != xxh32(bytes(data[4:at])) >> 8 & 0xFF:
        raise CompressionError("lz4 frame header checksum is wrong", at)
    plain = bytes((flags & ~(CONTENT_SIZE | CONTENT_CHECKSUM), block_descriptor))
    header = FRAME_MAGIC + plain + bytes((xxh32(plain) >> 8 & 0xFF,))
    end, blocks = _walk_blocks(data, at + 1, block_size, 4 if flags & BLOCK_CHECKSUM else 0)
    return _Frame(header, at + 1, end, blocks * block_size, data[:7] == header)


def _walk_blocks(data: memoryview, position: int, block_size: int, checksum_size: int) -> tuple[int, int]:
    """Where the frame ends, and how many blocks it has."""
    blocks = 0
    while position + 4 <= len(data):
        word = int.from_bytes(data[position : position + 4], "little")
        if word == 0:
            return position + 4, blocks
        size = word & ~STORED
        if size > block_size:
            raise CompressionError(f"lz4 block of {size} bytes, {block_size} at most", position)
        position += 4 + size + checksum_size
        blocks += 1
    raise CompressionError("lz4 frame is cut off", len(data))


def whole(data: memoryview, limit: int, magic: int) -> bytes:
    """The content; `TooLarge` beyond the limit."""
    lz4 = optional("lz4.frame")
    if lz4 is not None and data[:7] == JAVA_HEADER and len(data) * MAX_RATIO <= AT_ONCE:
        # What the Java client writes, too small to be a bomb: the library sees all that Kafka would.
        try:
            plain: bytes = lz4.decompress(data)
        except (RuntimeError, ValueError) as error:
            _read_frame(data, magic)  # says better what is wrong with the framing
            raise CompressionError(f"lz4: {error}", 7) from error
        if len(plain) > limit:
            raise TooLarge(limit)
        return plain
    frame = _read_frame(data, magic)
    if lz4 is not None and frame.most <= max(limit, PIECE):
        out = _one_shot(lz4, data, frame)
        if len(out) > limit:
            raise TooLarge(limit)
        return out
    return b"".join(limited(_pieces(data, frame), limit))


def pieces(data: memoryview, limit: int, magic: int) -> Iterator[bytes]:
    """The content, about a megabyte at a time."""
    return _pieces(data, _read_frame(data, magic))


def _one_shot(lz4: Any, data: memoryview, frame: _Frame) -> bytes:
    source: Any = data[: frame.end] if frame.is_plain else frame.header + data[frame.first_block : frame.end]
    try:
        out: bytes = lz4.decompress(source)
    except (RuntimeError, ValueError) as error:
        raise CompressionError(f"lz4: {error}", frame.first_block) from error
    return out


def _pieces(data: memoryview, frame: _Frame) -> Iterator[bytes]:
    import io

    import pyarrow as pa

    source = io.BytesIO(frame.header + data[frame.first_block : frame.end])
    try:
        with pa.CompressedInputStream(source, "lz4") as stream:
            while part := stream.read(PIECE):
                yield part
    except (OSError, ValueError) as error:
        raise CompressionError(f"lz4: {error}", frame.first_block) from error
