"""zstd: frames without a content size from the Java client.

A frame's blocks are walked first: each gives at most 128 KiB, so that a frame of few blocks can be
decompressed at once whatever it says about its size, and a bomb is fed block by block.

Source: RFC 8878 sections 3.1.1 and 3.1.2; frames are read by com.github.luben.zstd.ZstdInputStreamNoFinalizer
1.5.6-4 through clients/src/main/java/org/apache/kafka/common/compress/ZstdCompression.java @ 3.9.0-rc3
"""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from formats.binary.native_libraries import optional
from formats.compression.errors import CompressionError, TooLarge, limited

FRAME_MAGIC = 0xFD2FB528
SKIPPABLE = 0x184D2A50
MOST_OF_A_BLOCK = 128 << 10
PIECE = 1 << 20
MAX_WINDOW = 1 << 27  # zstd-jni refuses frames with larger windows
FEED = 6  # blocks fed at once when pieces are wanted


def _blocks(data: memoryview) -> Iterator[int]:
    """Where each block ends; the last one of a frame includes the frame's checksum."""
    position = 0
    while position < len(data):
        if len(data) - position < 8:
            raise CompressionError("zstd frame is cut off", len(data))
        magic = int.from_bytes(data[position : position + 4], "little")
        if magic & 0xFFFFFFF0 == SKIPPABLE:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            yield min(position, len(data))
            continue
        if magic != FRAME_MAGIC:
            raise CompressionError("no zstd frame", position)
        descriptor = data[position + 4]
        single = descriptor >> 5 & 1
        size_bytes = (single, 2, 4, 8)[descriptor >> 6]
        position += 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + size_bytes
        is_last = False
        while not is_last:
            if position + 3 > len(data):
                raise CompressionError("zstd frame is cut off", len(data))
            header = int.from_bytes(data[position : position + 3], "little")
            is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            position += 3 + (1 if kind == 1 else size)
            if is_last and descriptor & 4:
                position += 4
            if position > len(data):
                raise CompressionError("zstd frame is cut off", len(data))
            yield position


def check_frames(data: memoryview) -> int:
    """How many blocks the frames have; `CompressionError` where they are not whole."""
    blocks = sum(1 for _ in _blocks(data))
    if not blocks:
        raise CompressionError("no zstd frame", 0)
    return blocks


def whole(data: memoryview, limit: int, magic: int = 2) -> bytes:
    """The content; `TooLarge` beyond the limit."""
    zstandard = optional("zstandard")
    blocks = check_frames(data)
    if zstandard is not None and blocks * MOST_OF_A_BLOCK <= max(limit, PIECE):
        out = _one_shot(zstandard, data)
        if len(out) > limit:
            raise TooLarge(limit)
        return out
    return b"".join(limited(pieces(data, limit), limit))


def pieces(data: memoryview, limit: int, magic: int = 2) -> Iterator[bytes]:
    """The content, about a megabyte at a time."""
    if not len(data):
        raise CompressionError("no zstd frame", 0)
    zstandard = optional("zstandard")
    return _fed(zstandard, data) if zstandard is not None else _arrow(data)


@cache
def decompressor() -> Any:
    """One context for all frames that are decompressed at once: making it costs more than a small frame."""
    return import_module("zstandard").ZstdDecompressor(max_window_size=MAX_WINDOW)


def _one_shot(zstandard: Any, data: memoryview) -> bytes:
    parts: list[bytes] = []
    unread: Any = data
    while len(unread):
        frame = decompressor().decompressobj()
        try:
            parts.append(frame.decompress(unread))
        except zstandard.ZstdError as error:
            raise CompressionError(f"zstd: {error}", len(data) - len(unread)) from error
        if not frame.eof:  # a cut frame gives what it has and no error
            raise CompressionError("zstd frame is cut off", len(data))
        unread = frame.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _fed(zstandard: Any, data: memoryview) -> Iterator[bytes]:
    frame = None
    start = count = 0
    for end in _blocks(data):
        count += 1
        if count % FEED and end < len(data):
            continue
        unread: Any = data[start:end]
        while len(unread):
            if frame is None:
                frame = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()
            try:
                part = frame.decompress(unread)
            except zstandard.ZstdError as error:
                raise CompressionError(f"zstd: {error}", start) from error
            unread = b""
            if frame.eof:
                unread, frame = frame.unused_data, None
            if part:
                yield part
        start = end
    if frame is not None:
        raise CompressionError("zstd frame is cut off", len(data))


def _arrow(data: memoryview) -> Iterator[bytes]:
    import io

    import pyarrow as pa

    for _ in _blocks(data):  # a frame that is cut is noticed here: some versions of the stream are silent
        pass
    try:
        with pa.CompressedInputStream(io.BytesIO(data), "zstd") as stream:
            while part := stream.read(PIECE):
                yield part
    except (OSError, ValueError) as error:
        raise CompressionError(f"zstd: {error}", 0) from error
