"""The order of producers in a snapshot: that of the hash map which a broker of some version keeps them in.

Up to 2.3 brokers were built with Scala 2.11 or 2.12, whose map is walked from its last bucket to its first;
Scala 2.13 and Java walk from the first. A bucket keeps what came first in front, in Scala 2.12 behind.
Source: scala.collection.mutable.HashTable (2.12), java.util.HashMap
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from kctl.log.index_rules import IndexRules

Item = TypeVar("Item")
UINT32 = 0xFFFFFFFF
SMALLEST_TABLE = 16


def snapshot_order(
    items: Sequence[Item], producer_id: Callable[[Item], int], rules: IndexRules
) -> list[Item]:
    """The items, given in the order in which they came, in the order of the file."""
    size = SMALLEST_TABLE
    while len(items) > size * 3 // 4:
        size *= 2
    bucket = _scala_2_12 if rules is IndexRules.V0_8 else _java
    buckets: list[list[Item]] = [[] for _ in range(size)]
    for item in items:
        buckets[bucket(producer_id(item), size)].append(item)
    if rules is IndexRules.V0_8:
        return [item for bucket_items in reversed(buckets) for item in reversed(bucket_items)]
    return [item for bucket_items in buckets for item in bucket_items]


def _java(number: int, size: int) -> int:
    hashed = (number ^ (number >> 32)) & UINT32
    return (hashed ^ (hashed >> 16)) & (size - 1)


def _scala_2_12(number: int, size: int) -> int:
    hashed = number & UINT32 if -(1 << 31) <= number < 1 << 31 else (number ^ (number >> 32)) & UINT32
    mixed = hashed * 0x9E3775CD & UINT32
    mixed = int.from_bytes(mixed.to_bytes(4, "little"), "big") * 0x9E3775CD & UINT32
    seed = (size - 1).bit_count()
    rotated = (mixed >> seed | mixed << (32 - seed)) & UINT32
    return rotated >> (32 - seed)
