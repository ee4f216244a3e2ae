"""Many small bodies in a row: those in the form that the Java client writes are recognised in columns.

A library then is called for each and nothing else is done, or once for all. What is of another form, large, or turns out to be broken is
left to `decompress`, which knows every form and says what is wrong.
"""

import random
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.compression.lz4_frame import JAVA_HEADER
from formats.compression.lz4_frame import STORED as LZ4_STORED
from formats.compression.snappy_blocks import XERIAL, XERIAL_HEADER_SIZE
from formats.compression.snappy_lanes import LITERAL_OF_WORD, LONGEST_LITERAL, PAST_THE_END, STAY, are_whole
from formats.compression.writers import LZ4_BLOCK
from formats.providers import optional

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

FEWEST = 8
SMALL = 2 << 10  # bytes of a compressed body: larger ones are worth a call each, and these are no bombs
SNAPPY, LZ4 = 2, 3
LEAST_GAP = 20  # a block's size, and a mark that no body holds by chance
LZ4_SIZE = np.uint32(~LZ4_STORED & 0xFFFFFFFF)
_XERIAL = np.frombuffer(XERIAL, np.uint64)[0]
_JAVA_HEADER = np.frombuffer(JAVA_HEADER + b"\0", np.uint64)[0]
_SEVEN_BYTES = np.uint64(0x00FFFFFFFFFFFFFF)


class Bodies(NamedTuple):
    """Decompressed bodies: each is data[start:end]."""

    data: bytes | Octets
    starts: Ints
    ends: Ints


def small_bodies(codec: int, data: Octets, starts: Ints, ends: Ints) -> Bodies | None:
    """What data[start:end] decompress to; None where one of them has to be looked at by itself.

    `data` goes on for some bytes behind the last of them.
    """
    known = {SNAPPY: _snappy, LZ4: _lz4}.get(codec)
    sizes = ends - starts
    if known is None or len(starts) < FEWEST or sizes.max() > SMALL or sizes.min() < XERIAL_HEADER_SIZE:
        return None
    return known(data, starts, ends)


def _words(data: Octets, positions: Ints, size: int) -> NDArray[Any]:
    """The opaque items of so many bytes at positions."""
    view = np.ndarray(max(0, len(data) - size + 1), f"V{size}", data, strides=(1,))
    found: NDArray[Any] = view[positions]
    return found


def _snappy(data: Octets, starts: Ints, ends: Ints) -> Bodies | None:
    """One block each, of fewer than 2^14 bytes: as one block, what lies between them made literals."""
    library = optional("cramjam")
    blocks = starts + XERIAL_HEADER_SIZE + 4
    if library is None or (blocks + 2 >= ends).any():
        return None
    lengths = _words(data, blocks - 4, 4).view(">u4")
    if (_words(data, starts, 8).view(np.uint64) != _XERIAL).any() or (lengths != ends - blocks).any():
        return None
    low, high = data[blocks].astype(np.int64), data[blocks + 1].astype(np.int64)
    is_long = low >= 0x80
    if (is_long & (high >= 0x80)).any():
        return None
    sizes = np.where(is_long, low & 0x7F | high << 7, low)
    # Five bytes before the first element become the size of the whole.
    first = int(blocks[0]) + 1 + int(is_long[0]) - 5
    inside, after = blocks + 1 + is_long - first, ends - first
    between = inside[1:] - after[:-1] - 3  # what such a literal holds
    if ((between < 1) | (between > LONGEST_LITERAL)).any():
        return None
    end = int(after[-1])
    block = np.empty(end + PAST_THE_END, np.uint8)
    block[:end] = data[first : first + end]
    block[after] = STAY
    if not are_whole(block, inside, after, sizes):
        return None
    windows = np.ndarray(end, "V3", block, strides=(1,))
    heads = (between - 1) << 8 | LITERAL_OF_WORD
    windows[after[:-1]] = heads.astype("<u4").view("V4").astype("V3")
    out_ends = np.cumsum(sizes)
    out_ends[1:] += np.cumsum(between)
    size = int(out_ends[-1])
    block[:5] = np.frombuffer(_size_in_five_bytes(size), np.uint8)
    out = np.empty(size, np.uint8)
    try:
        library.snappy.decompress_raw_into(block[:end], out)
    except library.DecompressionError:
        return None
    return Bodies(out, out_ends - sizes, out_ends)


def _size_in_five_bytes(size: int) -> bytes:
    """A varint of as many bytes as it may have."""
    return bytes([size >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21)] + [size >> 28])


def _lz4(data: Octets, starts: Ints, ends: Ints) -> Bodies | None:
    """One block each: as blocks of one frame, what lies between them made a stored block that nobody knows."""
    library = optional("lz4.frame")
    inside, after = starts + len(JAVA_HEADER), ends - 4
    if library is None or ((_words(data, starts, 8).view(np.uint64) & _SEVEN_BYTES) != _JAVA_HEADER).any():
        return None
    sizes = _words(data, inside, 4).view("<u4") & LZ4_SIZE
    last = _words(data, after, 4).view("<u4")
    if (inside + 4 + sizes != after).any() or (sizes == 0).any() or (sizes > LZ4_BLOCK).any() or last.any():
        return None
    gaps = inside[1:] - after[:-1]
    gap = int(gaps[0])
    if (gaps != gap).any() or gap < LEAST_GAP:
        return None
    mark = _mark(gap - 4)
    block = data[int(starts[0]) : int(ends[-1])].copy()
    windows = np.ndarray(len(block) - gap + 1, f"V{gap}", block, strides=(1,))
    windows[after[:-1] - starts[0]] = np.void((len(mark) | LZ4_STORED).to_bytes(4, "little") + mark)
    try:
        out = library.decompress(block)
    except (RuntimeError, ValueError):
        return None
    places = _places(np.frombuffer(out, np.uint8), mark)
    if len(places) != len(gaps):
        return None
    return Bodies(out, np.concatenate(([0], places + len(mark))), np.concatenate((places, [len(out)])))


def _places(data: Octets, mark: bytes) -> Ints:
    """Where the mark stands."""
    found = np.flatnonzero(data[: max(0, len(data) - len(mark) + 1)] == mark[0])
    places: Ints = found[_words(data, found, 8).view(np.uint64) == np.frombuffer(mark[:8], np.uint64)[0]]
    return places


@cache
def _mark(size: int) -> bytes:
    """Bytes that are in no body; the first is in none that is text."""
    return b"\xff" + random.SystemRandom().randbytes(size - 1)
