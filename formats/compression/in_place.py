"""A body decompressed into memory that is there already: nothing is allocated and nothing copied.

What the Java client writes is done here. Whatever is of another form, does not fit, or is broken is left to
`decompress`, which knows every form and says what is wrong.
"""

from collections.abc import Callable
from struct import Struct

from formats.compression.errors import CompressionError
from formats.compression.lz4_frame import JAVA_HEADER
from formats.compression.snappy_blocks import XERIAL, XERIAL_HEADER_SIZE
from formats.compression.writers import LZ4_BLOCK
from formats.compression.zstd_frames import check_frames, decompressor
from formats.providers import optional

_BIG, _LITTLE = Struct(">I"), Struct("<I")


def decompress_into(codec: int, data: memoryview, out: memoryview) -> int | None:
    """How many bytes now stand at the beginning of `out`; None where `decompress` has to look at the data.

    After None, what `out` holds means nothing. Data is of magic 2.
    """
    known = _INTO.get(codec)
    return None if known is None else known(data, out)


def _snappy(data: memoryview, out: memoryview) -> int | None:
    """A xerial stream of blocks."""
    library = optional("cramjam")
    if library is None or len(data) < XERIAL_HEADER_SIZE or data[:8] != XERIAL:
        return None
    block_into = library.snappy.decompress_raw_into
    position, size = XERIAL_HEADER_SIZE, 0
    while position + 4 <= len(data):
        after = position + 4 + _BIG.unpack_from(data, position)[0]
        if after > len(data):
            return None
        try:
            size += block_into(data[position + 4 : after], out[size:])
        except library.DecompressionError:
            return None
        position = after
    return size


def _lz4(data: memoryview, out: memoryview) -> int | None:
    """A frame of compressed blocks of 64 KiB."""
    library = optional("cramjam")
    if library is None or data[:7] != JAVA_HEADER:
        return None
    block_into = library.lz4.decompress_block_into
    position, size = len(JAVA_HEADER), 0
    while position + 4 <= len(data):
        (word,) = _LITTLE.unpack_from(data, position)
        if word == 0:
            return size
        position += 4
        if word > LZ4_BLOCK or position + word > len(data):
            return None
        room = out[size : size + LZ4_BLOCK]
        try:
            size += block_into(data[position : position + word], room, len(room))
        except library.DecompressionError:
            return None
        position += word
    return None


def _zstd(data: memoryview, out: memoryview) -> int | None:
    """Whole frames."""
    library = optional("zstandard")
    if library is None:
        return None
    try:
        check_frames(data)
        size: int = decompressor().stream_reader(data, read_across_frames=True).readinto(out)
    except (CompressionError, library.ZstdError):
        return None
    return size if size < len(out) else None  # a full room may have been too small


_INTO: dict[int, Callable[[memoryview, memoryview], int | None]] = {2: _snappy, 3: _lz4, 4: _zstd}
