"""Checksums: CRC-32C of magic 2 and of producer snapshots, CRC-32 of magic 0 and 1.

Any buffer is taken. A native library does the work where one is installed; else numpy does, in lanes of
1 KiB: a CRC register is linear, so that lanes are fed side by side and folded together afterwards.

Source: clients/src/main/java/org/apache/kafka/common/utils/{Crc32C,Crc32}.java @ 3.9.0-rc3

Whether many neighbouring ranges have the CRCs that are stored for them, in one pass over all.

A call for each costs more than the checksum of a short range. Between two ranges lie bytes that no CRC covers: in a
copy they are written over so that a register that is right at the end of one range begins the next as a new one
begins. The complement of the stored value takes it to zero, zeros leave it there, four bytes more take it to all
ones. A register is linear: a single wrong range always shows at the end, and that several cancel each other out has
the odds with which a CRC misses damage anyway, 1 in 2^32.

Source: clients/src/main/java/org/apache/kafka/common/utils/{Crc32C,Crc32}.java @ 3.9.0-rc3
"""

import zlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.binary.layout import Bytes
from formats.binary.native_libraries import optional

Octets = NDArray[np.uint8]
Words = NDArray[np.uint32]

# Below this a slice of `bytes` is so much cheaper than a slice of an array that a copy of the block pays.
COPY_BELOW = 4096


@cache
def provider() -> tuple[str, Callable[[Any], int]]:
    """The name of what computes CRC-32C here, and its function over `bytes` or arrays of bytes."""
    google = optional("google_crc32c")
    if google is not None and google.implementation == "c":
        return "google-crc32c", google.value
    icrar = optional("crc32c")
    if icrar is not None:
        return "crc32c", icrar.crc32c
    fast = optional("fastcrc")
    if fast is not None:
        return "fastcrc", fast.crc32.iscsi
    return "numpy", lambda data: int(_lanes(octets(data), [0], [len(data)])[0])


def octets(data: Bytes | Octets) -> Octets:
    """The same bytes as an array."""
    return data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)


def crc32c(data: Bytes | Octets) -> int:
    """CRC-32C (Castagnoli) of the bytes."""
    # google-crc32c refuses memoryview, bytearray and mmap; every provider takes arrays.
    return provider()[1](data if isinstance(data, bytes) else octets(data))


def crc32c_more(value: int, data: Bytes | Octets) -> int:
    """CRC-32C of bytes that follow others whose CRC-32C is value."""
    name, _ = provider()
    block = data if isinstance(data, bytes) else octets(data)
    if name == "google-crc32c":
        return int(optional("google_crc32c").extend(value, block))  # type: ignore[union-attr]
    if name == "crc32c":
        return int(optional("crc32c").crc32c(block, value))  # type: ignore[union-attr]
    if name == "fastcrc":
        return int(optional("fastcrc").crc32.iscsi(block, value))  # type: ignore[union-attr]
    return int(_lanes(octets(data), [0], [len(data)], value ^ 0xFFFFFFFF)[0])


def crc32(data: Bytes | Octets) -> int:
    """CRC-32 (zlib, IEEE) of the bytes."""
    fast = optional("isal.isal_zlib") or zlib
    return int(fast.crc32(data))


def crc32c_of_ranges(data: Octets, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Words:
    """CRC-32C of data[start:end] for each pair."""
    name, value = provider()
    if name == "numpy":
        return _lanes(data, starts.tolist(), ends.tolist())
    if not len(starts):
        return np.empty(0, np.uint32)
    first, last = int(starts[0]), int(ends.max())
    if first >= 0 and last - first < COPY_BELOW * len(starts):
        block = data[first:last].tobytes()
        slices = map(slice, (starts - first).tolist(), (ends - first).tolist())
        return np.fromiter(map(value, map(block.__getitem__, slices)), np.uint32, len(starts))
    slices = map(slice, starts.tolist(), ends.tolist())
    return np.fromiter(map(value, map(data.__getitem__, slices)), np.uint32, len(starts))


def crc32_of_ranges(data: Octets, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Words:
    """CRC-32 of data[start:end] for each pair."""
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    return np.fromiter((crc32(data[start:end]) for start, end in spans), np.uint32, len(starts))


# --- numpy lanes ------------------------------------------------------------------------------------

POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed
LANE = 1024
LANES_AT_ONCE = 8192


@cache
def _byte_table() -> Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


@cache
def _word_tables() -> tuple[Words, ...]:
    """Tables by 16-bit word: the register after that word and 6, 4, 2 and no zero bytes more."""
    table = _byte_table()
    words = np.arange(65536, dtype=np.uint32)
    for _ in range(2):
        words = table[words & 0xFF] ^ words >> np.uint32(8)
    tables = [words]
    for _ in range(3):
        for _ in range(2):
            words = table[words & 0xFF] ^ words >> np.uint32(8)
        tables.insert(0, words)
    return tuple(tables)


@cache
def _over_a_lane() -> tuple[Words, ...]:
    """Tables by byte of the register: what it becomes after LANE zero bytes."""
    registers = np.left_shift(np.arange(256, dtype=np.uint32)[:, None], np.arange(0, 32, 8, dtype=np.uint32))
    table = _byte_table()
    for _ in range(LANE):
        registers = table[registers & 0xFF] ^ registers >> np.uint32(8)
    return tuple(np.ascontiguousarray(registers[:, byte]) for byte in range(4))


@lru_cache(maxsize=4096)
def _after_zeros(register: int, size: int) -> int:
    """What a register becomes after fewer than LANE zero bytes."""
    table = _byte_table().tolist()
    for _ in range(size):
        register = table[register & 0xFF] ^ register >> 8
    return int(register)


def _lanes(data: Octets, starts: Sequence[int], ends: Sequence[int], initial: int = 0xFFFFFFFF) -> Words:
    """CRC-32C of many ranges: each is cut into lanes from its end, so that only the first is short."""
    registers = np.full(len(starts), initial, np.uint32)
    lanes: list[tuple[int, int, int]] = []  # range, from, to
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        cut = start + (end - start) % LANE
        if cut > start:
            lanes.append((number, start, cut))
        lanes.extend((number, low, low + LANE) for low in range(cut, end, LANE))
        while len(lanes) >= LANES_AT_ONCE:
            _feed(data, lanes[:LANES_AT_ONCE], registers)
            del lanes[:LANES_AT_ONCE]
    if lanes:
        _feed(data, lanes, registers)
    return registers ^ np.uint32(0xFFFFFFFF)


def _feed(data: Octets, lanes: list[tuple[int, int, int]], registers: Words) -> None:
    """Feed lanes into the registers of their ranges, in order."""
    block = np.zeros((len(lanes), LANE), np.uint8)  # a register of 0 stays 0 over leading zeros
    for row, (_, low, high) in enumerate(lanes):
        block[row, LANE - (high - low) :] = data[low:high]
    t0, t2, t4, t6 = _word_tables()
    words = np.ascontiguousarray(block.view("<u8").T)
    fed = np.zeros(len(lanes), np.uint64)
    mask = np.uint64(0xFFFF)
    for step in range(LANE // 8):
        x = words[step] ^ fed
        low_half = t0[x & mask] ^ t2[x >> np.uint64(16) & mask]
        fed = (low_half ^ t4[x >> np.uint64(32) & mask] ^ t6[x >> np.uint64(48)]).astype(np.uint64)
    a, b, c, d = (table.tolist() for table in _over_a_lane())
    for (number, low, high), lane in zip(lanes, fed.tolist(), strict=True):
        before = int(registers[number])
        if high - low < LANE:
            registers[number] = _after_zeros(before, high - low) ^ lane
        else:
            moved = a[before & 0xFF] ^ b[before >> 8 & 0xFF] ^ c[before >> 16 & 0xFF] ^ d[before >> 24]
            registers[number] = moved ^ lane


Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

AT_ONCE = 256 << 10  # bytes; what is copied stays in the cache until it was read
SHORT = 4096  # bytes of a range; longer ones are worth a call each
FEWEST = 4
NARROWEST = 8  # bytes between two ranges: a CRC, and what begins the next one
ALL_ONES = 0xFFFFFFFF


class Kind(NamedTuple):
    """A CRC of 32 bits: that of one buffer, those of many ranges, and its polynomial with reversed bits."""

    of: Callable[[Any], int]
    of_ranges: Callable[[Octets, Ints, Ints], Words]
    polynomial: int


CRC32C = Kind(crc32c, crc32c_of_ranges, POLYNOMIAL)
CRC32 = Kind(crc32, crc32_of_ranges, 0xEDB88320)


@cache
def _beginning(polynomial: int) -> int:
    """The four bytes that take a register from zero to all ones: the register run backwards over them."""
    register = ALL_ONES
    for _ in range(32):
        register = (register ^ polynomial) << 1 | 1 if register >> 31 else register << 1
    return register


def as_stored(data: Octets, starts: Ints, ends: Ints, stored: NDArray[Any], kind: Kind = CRC32C) -> Mask:
    """Whether the CRC of each data[start:end] is the one that is stored; ranges ascend."""
    found = np.zeros(len(starts), np.bool_)
    if not len(starts):
        return found
    work = np.empty(0, np.uint8)
    whole = (ends - starts[0]) // AT_ONCE
    edges = [0, *(np.flatnonzero(np.diff(whole)) + 1).tolist(), len(starts)]
    for low, high in pairwise(edges):
        rows = slice(low, high)
        size = int(ends[high - 1] - starts[low])
        if len(work) < size and size < SHORT * (high - low):
            work = np.empty(size + AT_ONCE, np.uint8)
        if not _are_as_stored(data, starts[rows], ends[rows], stored[rows], kind, work):
            found[rows] = kind.of_ranges(data, starts[rows], ends[rows]) == stored[rows]
        else:
            found[rows] = True
    return found


def _are_as_stored(
    data: Octets, starts: Ints, ends: Ints, stored: NDArray[Any], kind: Kind, work: Octets
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
