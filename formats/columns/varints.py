"""Varints of many records at once, from windows of 16 bytes held as two 64-bit words.

Most varints of a column are one byte long; so the cheapest form that fits all rows is taken: one byte,
a table of two bytes, or the general form of up to 8. A row whose varint is longer is marked, and is read
on its own by whoever asked.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Octets = NDArray[np.uint8]
Words = NDArray[np.uint64]
Ints = NDArray[np.int64]

TOO_LONG = 9  # the size given for a varint that does not end within 8 bytes

_1, _7, _8, _64 = np.uint64(1), np.uint64(7), np.uint64(8), np.uint64(64)
_ONE_BYTE = np.uint64(0x7F)
_SECOND_BYTE = np.uint64(0x3F80)
_CONTINUES = np.uint64(0x80)
_BOTH_CONTINUE = np.uint64(0x8080)
_EVERY_CONTINUATION = np.uint64(0x8080808080808080)
_EVERY_PAYLOAD = np.uint64(0x7F7F7F7F7F7F7F7F)
_LOW_16 = np.uint64(0xFFFF)
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
    both: Any = np.asarray(unaligned(data, "V16")[positions]).view(np.uint64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


@cache
def _two_byte_tables() -> tuple[Ints, Ints]:
    """By 16 bits: the zig-zag value of the varint in them, and its size in bytes."""
    words = np.arange(65536, dtype=np.int64)
    short = words & 0x80 == 0
    value = np.where(short, words & 0x7F, words & 0x7F | (words >> 8 & 0x7F) << 7)
    return value >> 1 ^ -(value & 1), np.where(short, 1, 2)


def zigzag(values: Words) -> Ints:
    """Unsigned to signed: 0, -1, 1, -2, ..."""
    signed = values.view(np.int64)
    return (values >> _1).view(np.int64) ^ -(signed & 1)


def varints(words: Words, *, is_long: bool = False) -> tuple[Ints, Ints | int]:
    """The zig-zag varint that each word begins with, and its size in bytes (one number where all agree).

    A size of TOO_LONG means that it does not end within the 8 bytes (a varlong) or the 5 (a varint).
    """
    goes_on = words & _CONTINUES
    if not goes_on.max(initial=0):
        return zigzag(words & _ONE_BYTE), 1
    if not (words & _BOTH_CONTINUE == _BOTH_CONTINUE).any():
        if goes_on.min():
            return zigzag(words & _ONE_BYTE | words >> _1 & _SECOND_BYTE), 2
        index = (words & _LOW_16).view(np.int64)
        values, sizes = _two_byte_tables()
        return values.take(index), sizes.take(index)
    return _general(words, is_long)


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
    left: Words = words >> bits
    return left


def shifted(low: Words, high: Words, size: Ints | int) -> tuple[Words, Words]:
    """The windows with their first bytes taken off."""
    bits: Any = np.uint64(8 * size) if isinstance(size, int) else size.view(np.uint64) * _8
    return low >> bits | high << (_64 - bits), high >> bits
