"""Compressing in the framing of the Java client, for segments that are made: tests, examples, benchmarks.

Source: clients/src/main/java/org/apache/kafka/common/compress/*.java @ 3.9.0-rc3
"""

import struct
import zlib
from collections.abc import Callable

from formats.binary.layout import Bytes
from formats.binary.native_libraries import optional
from formats.compression.lz4 import FRAME_MAGIC, STORED
from formats.compression.snappy import XERIAL

SNAPPY_BLOCK = 32 << 10
# The header checksum of `60 40`; before 0.10, and in magic 0 to this day, it covers the frame's magic too.
LZ4_BLOCK = 64 << 10
LZ4_DESCRIPTOR = b"\x60\x40"
LZ4_CHECKSUM, LZ4_CHECKSUM_OF_MAGIC_0 = b"\x82", b"\x1a"


def compress(codec: int, data: Bytes, *, magic: int) -> bytes:
    """The bytes as a Java producer compresses them."""
    body = bytes(data)
    if codec == 0:
        return body
    return _WRITERS[codec](body, magic)


def _gzip(data: bytes, magic: int) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def _snappy(data: bytes, magic: int) -> bytes:
    import pyarrow as pa

    codec = pa.Codec("snappy")
    blocks = [
        codec.compress(data[at : at + SNAPPY_BLOCK], asbytes=True) for at in range(0, len(data), SNAPPY_BLOCK)
    ]
    head = XERIAL + struct.pack(">ii", 1, 1)
    return head + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def _lz4(data: bytes, magic: int) -> bytes:
    lz4 = optional("lz4.frame")
    if lz4 is not None:
        frame: bytes = lz4.compress(
            data, block_size=lz4.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
        )
        blocks = frame[7:]
    else:  # legal, only not smaller: pyarrow would link the blocks, which Kafka does not read
        parts = [data[at : at + LZ4_BLOCK] for at in range(0, len(data), LZ4_BLOCK)]
        blocks = b"".join(struct.pack("<I", len(part) | STORED) + part for part in parts) + bytes(4)
    checksum = LZ4_CHECKSUM_OF_MAGIC_0 if magic == 0 else LZ4_CHECKSUM
    return FRAME_MAGIC + LZ4_DESCRIPTOR + checksum + blocks


def _zstd(data: bytes, magic: int) -> bytes:
    zstandard = optional("zstandard")
    if zstandard is None:
        import pyarrow as pa

        out = pa.BufferOutputStream()
        with pa.CompressedOutputStream(out, "zstd") as stream:
            stream.write(data)
        written: bytes = out.getvalue().to_pybytes()
        return written
    packer = zstandard.ZstdCompressor(level=3, write_content_size=False).compressobj()
    frame: bytes = packer.compress(data) + packer.flush()
    return frame


_WRITERS: dict[int, Callable[[bytes, int], bytes]] = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
