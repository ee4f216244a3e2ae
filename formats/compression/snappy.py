"""snappy: the xerial stream of the Java client (a header, then blocks with big-endian lengths), or one raw block.

Whatever does not begin with xerial's magic is one raw block: librdkafka writes that into magic 2. The two
version words are not looked at, a second header between blocks is skipped, and fewer than 4 bytes where a
length should be end the stream.

Source: xerial/snappy-java:src/main/java/org/xerial/snappy/SnappyInputStream.java @ v1.1.10.5

Many small snappy blocks side by side: whether each is whole, so that all may be decompressed as one.

The elements of two blocks one behind the other are the elements of a block that holds both, if no copy of the second
reaches back into the first and each comes to the size that it promises. Blocks are lanes: step k looks at element k
of each, for all of them at once. A lane is one number, the place in the data in its low half and the size of what
came out so far in its high half, so that a step is one addition.

Source: google/snappy:format_description.txt @ 1.1.10
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.binary.native_libraries import optional
from formats.binary.varint import read_unsigned
from formats.compression.errors import CompressionError, TooLarge
from formats.errors import FormatError

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]

HALF = 32
PLACE = (1 << HALF) - 1
LITERAL_OF_WORD = 61 << 2  # the tag of a literal whose size less one is in the two bytes behind it
LONGEST_LITERAL = 1 << 16  # of that tag
STAY = 3  # the tag of a copy from anywhere, which no small block needs: a lane that comes to it stays there
PAST_THE_END = 1 << 18  # how far a lane can go astray before more came out than should


@cache
def _tables() -> tuple[Ints, Ints]:
    """By the first two bytes of an element: what it adds to its lane, and what must have come out before it.

    UNCLEAR is added where a third byte says it, 0 where no such element should be.
    """
    words = np.arange(1 << 16, dtype=np.int64)
    tag, byte = words & 0xFF, words >> 8
    kind, number = tag & 3, tag >> 2
    literal = np.where(number < 60, number + 1, byte + 1)
    adds = np.where(number < 60, 1 + literal, 2 + literal) | literal << HALF
    adds = np.where(
        (kind == 2) | (tag == LITERAL_OF_WORD), UNCLEAR, np.where((kind == 0) & (number <= 60), adds, 0)
    )
    adds = np.where(kind == 1, 2 | (4 + (number & 7)) << HALF, adds)
    return adds, np.where(kind == 1, (tag >> 5 << 8 | byte) << HALF, 0)


UNCLEAR = 1 << 62


def are_whole(data: Octets, starts: Ints, ends: Ints, sizes: Ints) -> bool:
    """Whether the elements data[start:end] of each block are whole, and come to its size by themselves.

    A `STAY` stands at each end, and `PAST_THE_END` readable bytes are behind the last. False also for elements that
    no block of less than 64 KiB needs. Copies from 0 bytes back are left to the library, which refuses them.
    """
    adds, needs = _tables()
    behind = data[1:]
    lanes, until = starts.copy(), ends | sizes << HALF
    too_much = int(sizes.max()) + 1 << HALF
    while True:
        place = lanes & PLACE
        word = data.take(place).astype(np.uint16)
        word |= behind.take(place).astype(np.uint16) << 8
        added = adds.take(word)
        if (needs.take(word) > lanes).any():
            return False
        lanes += added
        if lanes.max() >= too_much and not _are_clear(data, lanes, too_much):
            return False
        going = np.count_nonzero(added)
        if 2 * going < len(lanes):  # fewer of them are cheaper, but making them fewer has its price
            is_going = added != 0
            if (lanes[~is_going] != until[~is_going]).any():
                return False
            if not going:
                return True
            lanes, until = lanes[is_going], until[is_going]


def _are_clear(data: Octets, lanes: Ints, too_much: int) -> bool:
    """Move the unclear lanes on by what a third byte says; whether none of all then has too much."""
    unclear = np.flatnonzero(lanes >= UNCLEAR)
    before = lanes[unclear] - UNCLEAR
    added, needed = _of_three_bytes(data, before & PLACE)
    lanes[unclear] = before + added
    return bool((needed <= before).all() and lanes.max() < too_much)


def _of_three_bytes(data: Octets, places: Ints) -> tuple[Ints, Ints]:
    """What elements of three bytes add and need: copies from up to 64 KiB back, and literals of up to that size."""
    tag = data[places]
    word = data[places + 1].astype(np.int64) | data[places + 2].astype(np.int64) << 8
    is_copy = tag & 3 == 2
    copied = 3 | ((tag >> 2).astype(np.int64) + 1) << HALF
    literal = (3 + word + 1) | (word + 1) << HALF
    return np.where(is_copy, copied, literal), np.where(is_copy, word << HALF, 0)


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
        raise CompressionError(f"snappy block of {end - start} bytes that promises {size}", start)
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


def pieces(data: memoryview, limit: int) -> Iterator[bytes]:
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
        raise CompressionError(f"snappy block of {len(out)} bytes that promises {size}", start)
    return out


def _arrow(block: memoryview, size: int) -> bytes:
    import pyarrow as pa

    codec: Any = pa.Codec("snappy")
    out: bytes = codec.decompress(block, decompressed_size=size, asbytes=True)
    return out
