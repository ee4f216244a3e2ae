"""Many small bodies in a row: those in the form that the Java client writes are recognised in columns.

A library is then called once for all of them. Bodies of another form, large or broken ones are left to `decompress`,
which knows every form and says what is wrong.
"""

import random
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints
from formats.binary.native_libraries import optional
from formats.compression.lz4 import JAVA_HEADER
from formats.compression.lz4 import STORED as LZ4_STORED
from formats.compression.snappy import XERIAL, XERIAL_HEADER_SIZE
from formats.compression.snappy_elements import (
    LITERAL_OF_WORD,
    LONGEST_LITERAL,
    PAST_THE_END,
    STAY,
    are_whole,
)
from formats.compression.writers import LZ4_BLOCK

Octets = NDArray[np.uint8]

FEWEST = 8
SMALL = 2 << 10  # bytes of a compressed body: larger ones are worth a call each, and these are no bombs
SNAPPY, LZ4 = 2, 3
LEAST_GAP = 20  # a block's size, and a mark that no body holds by chance
LZ4_SIZE = np.uint32(~LZ4_STORED & 0xFFFFFFFF)
_XERIAL = np.frombuffer(XERIAL, np.uint64)[0]
XERIAL_HEAD = np.dtype(
    [("magic", "<u8"), ("versions", ">u8"), ("length", ">u4"), ("low", "u1"), ("high", "u1")]
)  # and the size of the first block
_JAVA_HEADER = np.frombuffer(JAVA_HEADER + b"\0", np.uint64)[0]
_SEVEN_BYTES = np.uint64(0x00FFFFFFFFFFFFFF)


class Bodies(NamedTuple):
    """Decompressed bodies: each is out[start:end] of so many bytes in memory that was asked for."""

    size: int
    starts: Ints
    ends: Ints


Room = Callable[[int], memoryview]
"""Gives memory for so many bytes."""


def small_bodies(codec: int, data: Octets, starts: Ints, ends: Ints, room: Room, limit: int) -> Bodies | None:
    """The decompressed data[start:end]; None if one of them must be read alone, or beyond the limit.

    `data` goes on for some bytes behind the last of them.
    """
    decompress_all = {SNAPPY: _snappy, LZ4: _lz4}.get(codec)
    sizes = ends - starts
    if (
        decompress_all is None
        or len(starts) < FEWEST
        or sizes.max() > SMALL
        or sizes.min() < XERIAL_HEADER_SIZE
    ):
        return None
    return decompress_all(data, starts, ends, room, limit)


def _items(data: Octets, positions: Ints, size: int) -> NDArray[Any]:
    """The opaque items of so many bytes at positions."""
    view = np.ndarray(max(0, len(data) - size + 1), f"V{size}", data, strides=(1,))
    items: NDArray[Any] = view[positions]
    return items


def _snappy(data: Octets, starts: Ints, ends: Ints, room: Room, limit: int) -> Bodies | None:
    """One block each, of fewer than 2^14 bytes: as one block, what lies between them made literals."""
    library = optional("cramjam")
    first, end = int(starts[0]), int(ends[-1] - starts[0])
    block = np.empty(end + PAST_THE_END, np.uint8)
    block[:end] = data[first : first + end]
    starts, after = starts - first, ends - first
    elements = starts + XERIAL_HEAD.itemsize - 1  # where they begin if the size takes one byte
    if library is None or (elements >= after).any():
        return None
    heads = _items(block, starts, XERIAL_HEAD.itemsize).view(XERIAL_HEAD)
    if (heads["magic"] != _XERIAL).any() or (heads["length"] != after - elements + 1).any():
        return None
    sizes, high = heads["low"].astype(np.int64), heads["high"].astype(np.int64)
    is_long = sizes >= 0x80
    if (is_long & (high >= 0x80)).any():
        return None
    elements += is_long
    sizes += is_long * ((high << 7) - 0x80)
    between = elements[1:] - after[:-1] - 3  # what a literal between two holds
    if ((between < 1) | (between > LONGEST_LITERAL)).any():
        return None
    block[after] = STAY
    if not are_whole(block, elements, after, sizes):
        return None
    inner = after[:-1]
    block[inner] = LITERAL_OF_WORD
    block[inner + 1] = (between - 1) & 0xFF
    block[inner + 2] = (between - 1) >> 8
    out_ends = sizes.copy()
    out_ends[1:] += between
    out_ends = np.cumsum(out_ends)
    size = int(out_ends[-1])
    if size > limit:
        return None
    # Five bytes before the first element become the size of the whole.
    begin = int(elements[0])
    block[begin - 5 : begin] = np.frombuffer(_size_in_five_bytes(size), np.uint8)
    try:
        library.snappy.decompress_raw_into(block[begin - 5 : end], room(size))
    except library.DecompressionError:
        return None
    return Bodies(size, out_ends - sizes, out_ends)


def _size_in_five_bytes(size: int) -> bytes:
    """A varint of as many bytes as it may have."""
    return bytes([size >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21)] + [size >> 28])


def _lz4(data: Octets, starts: Ints, ends: Ints, room: Room, limit: int) -> Bodies | None:
    """One block each: as blocks of one frame, what lies between them made a stored block that nobody knows."""
    library = optional("lz4.frame")
    inside, after = starts + len(JAVA_HEADER), ends - 4
    if library is None or ((_items(data, starts, 8).view(np.uint64) & _SEVEN_BYTES) != _JAVA_HEADER).any():
        return None
    sizes = _items(data, inside, 4).view("<u4") & LZ4_SIZE
    last = _items(data, after, 4).view("<u4")
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
    frame = library.LZ4FrameDecompressor()
    try:
        out = frame.decompress(block, max_length=limit)
    except (RuntimeError, ValueError):
        return None
    if not frame.eof:
        return None
    places = _places(np.frombuffer(out, np.uint8), mark)
    if len(places) != len(gaps):
        return None
    room(len(out))[:] = out
    return Bodies(len(out), np.concatenate(([0], places + len(mark))), np.concatenate((places, [len(out)])))


def _places(data: Octets, mark: bytes) -> Ints:
    """Where the mark stands."""
    candidates = np.flatnonzero(data[: max(0, len(data) - len(mark) + 1)] == mark[0])
    places: Ints = candidates[
        _items(data, candidates, 8).view(np.uint64) == np.frombuffer(mark[:8], np.uint64)[0]
    ]
    return places


@cache
def _mark(size: int) -> bytes:
    """Bytes that are in no body; the first is in none that is text."""
    return b"\xff" + random.SystemRandom().randbytes(size - 1)
