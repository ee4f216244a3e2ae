"""Codecs: every framing that Kafka reads, with the native libraries and with their fallbacks."""

import contextlib
import gzip
import io
import struct
import sys
import zlib
from collections.abc import Iterator

import lz4.frame
import pyarrow as pa
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formats.binary import native_libraries as providers
from formats.compression import Codec, CompressionError, TooLarge, decompress, pieces
from formats.compression.lz4 import xxh32
from formats.compression.writers import compress
from tests.conftest import examples

TEXT = b"".join(b"record %d of many; " % (i % 977) for i in range(40_000))
NATIVE = ["cramjam", "lz4", "lz4.frame", "zstandard", "isal", "isal.isal_zlib"]


@pytest.fixture(params=["native", "fallback"], autouse=True)
def libraries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    providers.optional.cache_clear()
    if request.param == "fallback":
        for name in NATIVE:
            monkeypatch.setitem(sys.modules, name, None)
    yield request.param
    monkeypatch.undo()
    providers.optional.cache_clear()


def snappy(data: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(data))


def xerial(data: bytes, block: int = 32 << 10) -> bytes:
    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for at in range(0, len(data), block):
        one = snappy(data[at : at + block])
        out += struct.pack(">i", len(one)) + one
    return out


def lz4_like_kafka(data: bytes, **options: object) -> bytes:
    settings = {"block_size": lz4.frame.BLOCKSIZE_MAX64KB, "block_linked": False, "store_size": False}
    return bytes(lz4.frame.compress(data, **{**settings, **options}))


def zstd_like_kafka(data: bytes) -> bytes:
    out = io.BytesIO()
    with zstandard.ZstdCompressor(write_content_size=False).stream_writer(out, closefd=False) as writer:
        writer.write(data)
    return out.getvalue()


FRAMES = {
    "gzip": (Codec.GZIP, gzip.compress),
    "gzip members": (Codec.GZIP, lambda d: gzip.compress(d[:1000]) + gzip.compress(d[1000:])),
    "gzip and junk": (Codec.GZIP, lambda d: gzip.compress(d) + b"junk"),
    "snappy xerial": (Codec.SNAPPY, xerial),
    "snappy raw": (Codec.SNAPPY, snappy),
    "snappy two headers": (Codec.SNAPPY, lambda d: xerial(d[:1000]) + xerial(d[1000:])),
    "snappy and 3 bytes": (Codec.SNAPPY, lambda d: xerial(d) + b"abc"),
    "lz4": (Codec.LZ4, lz4_like_kafka),
    "lz4 and junk": (Codec.LZ4, lambda d: lz4_like_kafka(d) + b"junk"),
    "lz4 with sizes and checksums": (
        Codec.LZ4,
        lambda d: lz4_like_kafka(d, store_size=True, content_checksum=True, block_checksum=True),
    ),
    "zstd": (Codec.ZSTD, zstd_like_kafka),
    "zstd with size": (Codec.ZSTD, zstandard.compress),
    "zstd frames": (Codec.ZSTD, lambda d: zstd_like_kafka(d[:1000]) + zstandard.compress(d[1000:])),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("size", [1, 1001, 70_000, len(TEXT)])
def test_what_went_in_comes_out(name: str, size: int) -> None:
    codec, compress = FRAMES[name]
    data = compress(TEXT[:size])
    assert decompress(codec, data, magic=2, limit=size) == TEXT[:size]
    assert b"".join(pieces(codec, data, magic=2, limit=size)) == TEXT[:size]
    with pytest.raises(TooLarge):
        decompress(codec, data, magic=2, limit=size - 1)
    with pytest.raises(TooLarge):
        list(pieces(codec, data, magic=2, limit=size - 1))


@pytest.mark.parametrize("name", ["gzip", "snappy xerial", "snappy raw", "lz4", "zstd", "zstd with size"])
@pytest.mark.parametrize("cut", [1, 4, 9, 200])
def test_cut_data_is_an_error(name: str, cut: int) -> None:
    codec, compress = FRAMES[name]
    data = compress(TEXT[:70_000])[:-cut]
    with pytest.raises(CompressionError):
        decompress(codec, data, magic=2)
    with pytest.raises(CompressionError):
        list(pieces(codec, data, magic=2))


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_what_is_written_is_read(codec: Codec, magic: int) -> None:
    if codec != Codec.ZSTD or magic == 2:
        assert decompress(codec, compress(codec, TEXT, magic=magic), magic=magic) == TEXT


def test_magic_0_does_not_look_at_the_lz4_header_checksum() -> None:
    good = lz4_like_kafka(TEXT)
    assert good[4:7] == b"\x60\x40\x82"
    broken = good[:6] + b"\x1a" + good[7:]
    assert decompress(Codec.LZ4, broken, magic=0) == TEXT
    assert b"".join(pieces(Codec.LZ4, broken, magic=0)) == TEXT
    with pytest.raises(CompressionError, match="checksum is wrong at byte 6"):
        decompress(Codec.LZ4, broken, magic=1)


@pytest.mark.parametrize(
    ("descriptor", "checksum"),
    [("6040", 0x82), ("6050", 0xFB), ("6060", 0x51), ("6070", 0x73), ("6440", 0xA7), ("7040", 0xAD)],
)
def test_header_checksums(descriptor: str, checksum: int) -> None:
    assert xxh32(bytes.fromhex(descriptor)) >> 8 & 0xFF == checksum


def test_lz4_content_checksum_is_not_looked_at() -> None:
    data = bytearray(lz4_like_kafka(TEXT, content_checksum=True))
    data[-1] ^= 1
    assert decompress(Codec.LZ4, data, magic=2) == TEXT


@pytest.mark.parametrize(
    ("codec", "magic", "data", "says"),
    [
        (7, 2, b"", "unknown codec id 7"),
        (5, 1, b"", "unknown codec id 5"),
        (Codec.ZSTD, 1, zstd_like_kafka(b"x"), "before magic 2"),
        (Codec.SNAPPY, 2, b"\xff\xff\xff\xff\x0fabc", "whose header says 4294967295"),
        (Codec.SNAPPY, 2, b"\xff\xff\xff\xff\xff\xff", "without a length"),
        (Codec.SNAPPY, 2, b"\x82SNAPPY\x00" + bytes(8) + b"\x7f\xff\xff\xff", "2147483647"),
        (Codec.LZ4, 2, lz4_like_kafka(TEXT, block_linked=True), "flags"),
        (Codec.LZ4, 2, b"", "cut off"),
        (Codec.LZ4, 2, b"nothing like it", "no lz4 frame"),
        (Codec.ZSTD, 2, b"nothing like it", "no zstd frame"),
        (Codec.ZSTD, 2, b"", "no zstd frame"),
        (Codec.GZIP, 2, b"nothing like it", "gzip"),
        (Codec.GZIP, 2, b"", "cut off"),
        (Codec.SNAPPY, 2, b"", "without a length"),
    ],
)
def test_what_kafka_refuses(codec: int, magic: int, data: bytes, says: str) -> None:
    with pytest.raises(CompressionError, match=says):
        decompress(codec, data, magic=magic)


def test_a_zstd_frame_that_lies_about_its_size() -> None:
    frame = bytearray(zstandard.compress(TEXT[:70_000]))
    frame[6] ^= 0x40
    with pytest.raises(CompressionError):
        decompress(Codec.ZSTD, frame, magic=2)


def test_bombs_end_at_the_limit() -> None:
    zeros = bytes(64 << 20)
    for codec, data in [(Codec.ZSTD, zstd_like_kafka(zeros)), (Codec.GZIP, zlib_gzip(zeros))]:
        with pytest.raises(TooLarge):
            decompress(codec, data, magic=2, limit=1 << 20)
        assert max(map(len, pieces(codec, data, magic=2))) <= 2 << 20


def zlib_gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


@given(st.sampled_from(list(Codec)), st.binary(max_size=300), st.integers(0, 2))
@settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_bytes_are_an_error_or_content(libraries: str, codec: Codec, data: bytes, magic: int) -> None:
    with contextlib.suppress(CompressionError):
        decompress(codec, data, magic=magic, limit=1 << 16)
