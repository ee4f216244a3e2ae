"""Whether many neighbouring ranges have the CRCs that are stored for them, in one pass over all.

A call for each costs more than the checksum of a short range. Between two ranges lie bytes that no CRC covers: in a
copy they are written over so that a register that is right at the end of one range begins the next as a new one
begins. The complement of the stored value takes it to zero, zeros leave it there, four bytes more take it to all
ones. A register is linear: a single wrong range always shows at the end, and that several cancel each other out has
the odds with which a CRC misses damage anyway, 1 in 2^32.

Source: clients/src/main/java/org/apache/kafka/common/utils/{Crc32C,Crc32}.java @ 3.9.0-rc3
"""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.binary.crc import ALL_ONES, crc32, crc32c, provider
from formats.binary.crc_lanes import POLYNOMIAL, Octets, Words, crc32c_by_lanes

AT_ONCE = 256 << 10  # bytes; what is copied stays in the cache until it was read
SHORT = 4096  # bytes of a range; longer ones are worth a call each
FEWEST = 4
NARROWEST = 8  # bytes between two ranges: a CRC, and what begins the next one
# Below this a slice of `bytes` is so much cheaper than a slice of an array that a copy of the block pays.
COPY_BELOW = 4096


def crc32c_of_ranges(data: Octets, starts: Ints, ends: Ints) -> Words:
    """CRC-32C of data[start:end] for each pair."""
    name, value = provider()
    if name == "numpy":
        return crc32c_by_lanes(data, starts.tolist(), ends.tolist())
    if not len(starts):
        return np.empty(0, np.uint32)
    first, last = int(starts[0]), int(ends.max())
    if first >= 0 and last - first < COPY_BELOW * len(starts):
        block = data[first:last].tobytes()
        slices = map(slice, (starts - first).tolist(), (ends - first).tolist())
        return np.fromiter(map(value, map(block.__getitem__, slices)), np.uint32, len(starts))
    slices = map(slice, starts.tolist(), ends.tolist())
    return np.fromiter(map(value, map(data.__getitem__, slices)), np.uint32, len(starts))


def crc32_of_ranges(data: Octets, starts: Ints, ends: Ints) -> Words:
    """CRC-32 of data[start:end] for each pair."""
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    return np.fromiter((crc32(data[start:end]) for start, end in spans), np.uint32, len(starts))


class CrcKind(NamedTuple):
    """A CRC of 32 bits: that of one buffer, those of many ranges, and its polynomial with reversed bits."""

    of: Callable[[Any], int]
    of_ranges: Callable[[Octets, Ints, Ints], Words]
    polynomial: int


CRC32C = CrcKind(crc32c, crc32c_of_ranges, POLYNOMIAL)
CRC32 = CrcKind(crc32, crc32_of_ranges, 0xEDB88320)


@cache
def _beginning(polynomial: int) -> int:
    """The four bytes that take a register from zero to all ones: the register run backwards over them."""
    register = ALL_ONES
    for _ in range(32):
        register = (register ^ polynomial) << 1 | 1 if register >> 31 else register << 1
    return register


def as_stored(data: Octets, starts: Ints, ends: Ints, stored: NDArray[Any], kind: CrcKind = CRC32C) -> Mask:
    """Whether the CRC of each data[start:end] is the one that is stored; ranges ascend."""
    matches = np.zeros(len(starts), np.bool_)
    if not len(starts):
        return matches
    work = np.empty(0, np.uint8)
    whole = (ends - starts[0]) // AT_ONCE
    edges = [0, *(np.flatnonzero(np.diff(whole)) + 1).tolist(), len(starts)]
    for low, high in pairwise(edges):
        rows = slice(low, high)
        size = int(ends[high - 1] - starts[low])
        if len(work) < size and size < SHORT * (high - low):
            work = np.empty(size + AT_ONCE, np.uint8)
        if not _are_as_stored(data, starts[rows], ends[rows], stored[rows], kind, work):
            matches[rows] = kind.of_ranges(data, starts[rows], ends[rows]) == stored[rows]
        else:
            matches[rows] = True
    return matches


def _are_as_stored(
    data: Octets, starts: Ints, ends: Ints, stored: NDArray[Any], kind: CrcKind, work: Octets
) -> bool:
    """Whether all are; False also where each has to be looked at: they are few, long, or lie unequally far apart."""
    first, size = int(starts[0]), int(ends[-1] - starts[0])
    if len(starts) < FEWEST or size >= SHORT * len(starts):
        return False
    gaps = starts[1:] - ends[:-1]
    gap = int(gaps[0])
    if gap < NARROWEST or (gaps != gap).any() or (ends < starts).any():
        return False
    between = np.zeros((len(gaps), gap), np.uint8)
    between[:, :4] = (~stored[:-1].astype("<u4")).view(np.uint8).reshape(-1, 4)
    between[:, -4:] = np.frombuffer(_beginning(kind.polynomial).to_bytes(4, "little"), np.uint8)
    block = work[:size]
    block[:] = data[first : first + size]
    windows = np.ndarray(size - gap + 1, f"V{gap}", block, strides=(1,))
    windows[ends[:-1] - first] = between.view(f"V{gap}")[:, 0]
    return kind.of(block) == int(stored[-1])
