"""CRC-32C by numpy, where no native library is installed.

A CRC register is linear: lanes of 1 KiB are fed side by side and folded together afterwards.
"""

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

Octets = NDArray[np.uint8]
Words = NDArray[np.uint32]

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


def crc32c_by_lanes(
    data: Octets, starts: Sequence[int], ends: Sequence[int], initial: int = 0xFFFFFFFF
) -> Words:
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
