"""snappy: the xerial stream of the Java client (a header, then blocks with big-endian lengths), or one raw block.

Whatever does not begin with xerial's magic is one raw block: librdkafka writes that into magic 2. The two
version words are not looked at, a second header between blocks is skipped, and fewer than 4 bytes where a
length should be end the stream.

Source: xerial/snappy-java:src/main/java/org/xerial/snappy/SnappyInputStream.java @ v1.1.10.5
"""

from collections.abc import Iterator
from typing import Any

from formats.binary.native_libraries import optional
from formats.binary.varint import read_unsigned
from formats.compression.errors import CompressionError, TooLarge
from formats.errors import FormatError

XERIAL = b"\x82SNAPPY\x00"
XERIAL_HEADER_SIZE = 16
SECOND_HEADER = 0x82534E41
MAX_BLOCK = 512 << 20
LARGEST_PIECE = 64 << 20  # of a content that is not wanted at once
# Three bytes of a snappy block make at most 64; a length beyond that is a lie and must not be allocated.
MAX_RATIO = 22


def _blocks(data: memoryview) -> Iterator[tuple[int, int]]:
    """Start and end of each raw block."""
    if len(data) < XERIAL_HEADER_SIZE or data[:8] != XERIAL:
        yield 0, len(data)
        return
    position = XERIAL_HEADER_SIZE
    while position + 4 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if size == SECOND_HEADER:
            position += XERIAL_HEADER_SIZE - 4
            continue
        if size > MAX_BLOCK:
            raise CompressionError(f"snappy block of {size} bytes", position - 4)
        if position + size > len(data):
            raise CompressionError(f"snappy block of {size} bytes is cut off", position - 4)
        yield position, position + size
        position += size


def _size_of(data: memoryview, start: int, end: int) -> int:
    """How much a raw block says it holds."""
    try:
        size, at = read_unsigned(data[start : min(end, start + 5)], 0)
    except FormatError as error:
        raise CompressionError("snappy block without a length", start) from error
    if size > (end - start - at) * MAX_RATIO:
        raise CompressionError(f"snappy block of {end - start} bytes whose header says {size}", start)
    return size


def whole(data: memoryview, limit: int, magic: int = 2) -> bytes:
    """The content; `TooLarge` beyond the limit."""
    cramjam = optional("cramjam")
    if cramjam is None or len(data) * MAX_RATIO > limit:
        blocks = [(start, end, _size_of(data, start, end)) for start, end in _blocks(data)]
        if sum(size for _, _, size in blocks) > limit:
            raise TooLarge(limit)
        return b"".join([_block(data, *block) for block in blocks])
    # Too small to be a bomb, unless its preamble lies: then the slower way above says so.
    decompress = cramjam.snappy.decompress_raw
    try:
        parts = [bytes(decompress(data[start:end])) for start, end in _believed_blocks(data)]
    except cramjam.DecompressionError as error:
        for start, end in _blocks(data):
            _block(data, start, end, _size_of(data, start, end))
        raise CompressionError(f"snappy: {error}", 0) from error
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _believed_blocks(data: memoryview) -> Iterator[tuple[int, int]]:
    """Blocks whose promised size can be."""
    for start, end in _blocks(data):
        # A size below 2^14 takes two bytes and harms nobody; whatever is larger is looked at.
        if end - start < 3 or data[start + 1] & data[start] & 0x80:
            _size_of(data, start, end)
        yield start, end


def pieces(data: memoryview, limit: int, magic: int = 2) -> Iterator[bytes]:
    """The content, block by block."""
    for start, end in _blocks(data):
        size = _size_of(data, start, end)
        if size > (most := min(limit, LARGEST_PIECE)):
            raise TooLarge(most)
        yield _block(data, start, end, size)


def _block(data: memoryview, start: int, end: int, size: int) -> bytes:
    cramjam = optional("cramjam")
    errors = (OSError, ValueError) if cramjam is None else (cramjam.DecompressionError,)
    try:
        if cramjam is not None:
            out = bytes(cramjam.snappy.decompress_raw(data[start:end]))
        else:
            out = _arrow(data[start:end], size)
    except errors as error:
        raise CompressionError(f"snappy: {error}", start) from error
    if len(out) != size:
        raise CompressionError(f"snappy block of {len(out)} bytes whose header says {size}", start)
    return out


def _arrow(block: memoryview, size: int) -> bytes:
    import pyarrow as pa

    codec: Any = pa.Codec("snappy")
    out: bytes = codec.decompress(block, decompressed_size=size, asbytes=True)
    return out
