"""xxHash32, for the checksum byte of an lz4 frame header.

Source: clients/src/main/java/org/apache/kafka/common/compress/Lz4BlockOutputStream.java @ 3.9.0-rc3
"""

from functools import lru_cache

P1, P2, P3, P4, P5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
MASK = 0xFFFFFFFF


def _rotated(value: int, by: int) -> int:
    value &= MASK
    return (value << by | value >> (32 - by)) & MASK


@lru_cache(maxsize=256)
def xxh32(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes."""
    if len(data) >= 16:
        raise ValueError("frame descriptors have at most 15 bytes")
    value = (P5 + len(data)) & MASK
    words = len(data) // 4 * 4
    for at in range(0, words, 4):
        value = _rotated(value + int.from_bytes(data[at : at + 4], "little") * P3, 17) * P4
    for byte in data[words:]:
        value = _rotated(value + byte * P5, 11) * P1
    value &= MASK
    value = (value ^ value >> 15) * P2 & MASK
    value = (value ^ value >> 13) * P3 & MASK
    return value ^ value >> 16
