"""Varints of many records at once, from windows of 16 bytes held as two 64-bit words.

Most varints of a column are one byte long; so the cheapest form that fits all rows is taken: one byte,
two bytes, or the general form of up to 8. A row whose varint is longer is marked, and the caller
reads it alone.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints

Octets = NDArray[np.uint8]
Words = NDArray[np.uint64]

TOO_LONG = 9  # the size given for a varint that does not end within 8 bytes

_1, _8, _64 = np.uint64(1), np.uint64(8), np.uint64(64)
CONTINUES = 0x80
_EVERY_CONTINUATION = np.uint64(0x8080808080808080)
_EVERY_PAYLOAD = np.uint64(0x7F7F7F7F7F7F7F7F)
_LOW_32 = np.uint64(0xFFFFFFFF)
# Payloads of 7 bits move together in three rounds: pairs of bytes, of 14 bits, of 28 bits.
_ROUNDS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(by))
    for low, high, by in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


def unaligned(data: Octets, dtype: str) -> NDArray[Any]:
    """A view of the data with one item beginning at each byte."""
    size = np.dtype(dtype).itemsize
    return np.ndarray(max(0, len(data) - size + 1), dtype, data, strides=(1,))


def words_at(data: Octets, positions: Ints) -> Words:
    """The 8 bytes at each position, little-endian, so that the first byte is the lowest."""
    # Gathered as opaque items: numpy copies those, where it would first align the whole view of numbers.
    return unaligned(data, "V8")[positions].view(np.uint64)


def windows_at(data: Octets, positions: Ints) -> tuple[Words, Words]:
    """The 16 bytes at each position as two words."""
    pairs: Any = np.asarray(unaligned(data, "V16")[positions]).view(np.uint64).reshape(-1, 2)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def zigzag(values: NDArray[Any]) -> NDArray[Any]:
    """Unsigned to signed of the same width: 0, -1, 1, -2, ..."""
    signed: NDArray[Any] = (values >> 1 ^ -(values & 1)).view(f"i{values.itemsize}")
    return signed


def varints(words: Words, *, is_long: bool = False) -> tuple[Ints, Ints | int]:
    """The zig-zag varint that each word begins with, and its size in bytes (one number where all agree).

    A size of TOO_LONG means that it does not end within the 8 bytes (a varlong) or the 5 (a varint).
    """
    first = words.astype(np.uint8)
    if first.max(initial=0) < CONTINUES:
        return zigzag(first).astype(np.int64), 1
    second = (words >> _8).astype(np.uint8)
    return _general(words, is_long) if (first & second).max() >= CONTINUES else _of_two_bytes(first, second)


def varints_at(data: Octets, positions: Ints) -> tuple[Ints, Ints | int]:
    """The same of what stands at each position: bytes are much cheaper to gather than words."""
    first = data.take(positions)
    if first.max(initial=0) < CONTINUES:
        return zigzag(first).astype(np.int64), 1
    second = data[1:].take(positions)
    if (first & second).max() >= CONTINUES:
        return _general(words_at(data, positions), False)
    return _of_two_bytes(first, second)


def _of_two_bytes(first: Octets, second: Octets) -> tuple[Ints, Ints | int]:
    has_second = first >> 7
    value = (second * has_second).astype(np.uint16) << 7 | (first & 0x7F).astype(np.uint16)
    return zigzag(value).astype(np.int64), 2 if has_second.min() else has_second.astype(np.int64) + 1


def _general(words: Words, is_long: bool) -> tuple[Ints, Ints]:
    ends = ~words & _EVERY_CONTINUATION
    first_end = ends & (~ends + _1)
    below = first_end - _1  # all bits up to the last payload bit; all ones where nothing ends
    payload = words & below & _EVERY_PAYLOAD
    for low, high, by in _ROUNDS:
        payload = (payload & low) | (payload & high) >> by
    sizes = ((np.bitwise_count(below).astype(np.int64)) + 1) >> 3
    longest = 8 if is_long else 5
    sizes[(ends == 0) | (sizes > longest)] = TOO_LONG
    return zigzag(payload if is_long else payload & _LOW_32), sizes


def without(words: Words, size: Ints | int) -> Words:
    """The words with their first bytes taken off; zeros come in behind."""
    bits: Any = np.uint64(8 * size) if isinstance(size, int) else size.view(np.uint64) * _8
    shifted_words: Words = words >> bits
    return shifted_words


def shifted(low: Words, high: Words, size: Ints | int) -> tuple[Words, Words]:
    """The windows with their first bytes taken off."""
    bits: Any = np.uint64(8 * size) if isinstance(size, int) else size.view(np.uint64) * _8
    return low >> bits | high << (_64 - bits), high >> bits
