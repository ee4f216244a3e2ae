"""Whether many short neighbouring ranges all have the CRC-32C that is stored for them, told from one pass over all.

A CRC register is linear: that of a block is the sum (XOR) of those of its parts, each moved on by the bytes that
follow it. So the register of the whole block, which a native library computes at full speed, is held against the
sum made of the stored values. One wrong value, or any damage that its own CRC would show, makes the two differ; that
several wrong ones cancel each other out has the odds with which a CRC misses damage anyway, 1 in 2^32.

Source: clients/src/main/java/org/apache/kafka/common/utils/Crc32C.java @ 3.9.0-rc3
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.crc import Octets, Words, _byte_table, crc32c

Ints = NDArray[np.int64]

LONGEST = 1 << 16  # of a range; longer ones are worth a call each
LARGEST = 1 << 30  # of a block
ALL_ONES = 0xFFFFFFFF  # how a register begins, and what is added to it at the end
_BYTE = np.uint32(0xFF)


def all_as_stored(data: Octets, starts: Ints, ends: Ints, stored: NDArray[Any]) -> bool:
    """Whether the CRC-32C of every data[start:end] is the stored one; ranges ascend with equal gaps between them.

    False also where the ranges lie otherwise or are too long, so that each has to be looked at.
    """
    sizes = ends - starts
    first, last = int(starts[0]), int(ends[-1])
    gaps = starts[1:] - ends[:-1]
    gap = int(gaps[0]) if len(gaps) else 0
    if gap < 0 or (gaps != gap).any() or sizes.min() < 0 or sizes.max() >= LONGEST or last - first > LARGEST:
        return False
    block = data[first:last].copy()
    if gap:
        windows = np.ndarray(len(block) - gap + 1, f"V{gap}", block, strides=(1,))
        windows[ends[:-1] - first] = np.void(bytes(gap))
    registers = stored.astype(np.uint32, copy=False) ^ _of_zeros()[sizes]
    return _sum(registers, last - ends) == crc32c(block) ^ _moved(ALL_ONES, len(block)) ^ ALL_ONES


def _sum(registers: Words, distances: Ints) -> int:
    """All registers, each moved on by its distance, added up; distances fall."""
    near, far = _movers()
    for table in (near, far):
        registers = _through(table, registers, distances & 0xFF)
        distances = distances >> 8
        edges = np.flatnonzero(np.diff(distances, prepend=-1))
        registers, distances = np.bitwise_xor.reduceat(registers, edges), distances[edges]
    total, at = 0, int(distances[0])
    for register, distance in zip(registers.tolist(), distances.tolist(), strict=True):
        total, at = _moved_far(total, at - distance) ^ register, distance
    return _moved_far(total, at)


def _through(table: Words, registers: Words, steps: Ints) -> Words:
    """Each register moved on by its number of steps of the table."""
    at = steps << 8
    found: Words = table[0].take(at | (registers & _BYTE))
    for byte in range(1, 4):
        found ^= table[byte].take(at | (registers >> np.uint32(8 * byte) & _BYTE))
    return found


@cache
def _movers() -> tuple[Words, Words]:
    """By byte of a register: what it becomes after 0 to 255 zero bytes, and after 0 to 255 times 256 of them."""
    bytes_of_register = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    crc = _byte_table()
    steps = [bytes_of_register]
    for _ in range(256):
        steps.append(crc[steps[-1] & _BYTE] ^ steps[-1] >> np.uint32(8))
    by_256 = steps.pop()
    leaps = [bytes_of_register]
    for _ in range(255):
        before = leaps[-1]
        leaps.append(
            by_256[0][before & _BYTE]
            ^ by_256[1][before >> np.uint32(8) & _BYTE]
            ^ by_256[2][before >> np.uint32(16) & _BYTE]
            ^ by_256[3][before >> np.uint32(24)]
        )
    near, far = (np.stack(made, 1).reshape(4, -1) for made in (steps, leaps))
    return near, far


@cache
def _of_zeros() -> Words:
    """The CRC-32C of 0 to LONGEST - 1 zero bytes: what is in a stored value beside the register of its bytes alone."""
    near, far = _movers()
    sizes = np.arange(LONGEST, dtype=np.int64)
    registers = np.full(LONGEST, ALL_ONES, np.uint32)
    return _through(far, _through(near, registers, sizes & 0xFF), sizes >> 8) ^ np.uint32(ALL_ONES)


def _moved(register: int, size: int) -> int:
    """A register after so many zero bytes."""
    found = np.array([register], np.uint32)
    for table, steps in zip(_movers(), (size & 0xFF, size >> 8 & 0xFF), strict=True):
        found = _through(table, found, np.array([steps]))
    return _moved_far(int(found[0]), size >> 16)


def _moved_far(register: int, times: int) -> int:
    """A register after so many times 65,536 zero bytes."""
    a, b, c, d = _farthest()
    for _ in range(times):
        register = a[register & 0xFF] ^ b[register >> 8 & 0xFF] ^ c[register >> 16 & 0xFF] ^ d[register >> 24]
    return register


@cache
def _farthest() -> list[list[int]]:
    """By byte of a register: what it becomes after 65,536 zero bytes, as lists, which a plain loop reads fastest."""
    _, far = _movers()
    bytes_of_register = (
        np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    ).ravel()
    most = _through(far, bytes_of_register, np.full(1024, 255))
    found: list[list[int]] = _through(far, most, np.full(1024, 1)).reshape(4, 256).tolist()
    return found
