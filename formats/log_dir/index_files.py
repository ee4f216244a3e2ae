"""Rows of `.index`, `.timeindex` and `.txnindex` files; none carries a checksum.

Offsets in the first two are relative to the base offset in the file's name. A new index is preallocated
with zeros and trimmed on roll and clean close: whatever follows the last true entry may be padding.
What the offset of an entry names changed: up to 1.1 the first of what was appended, from 2.0 the last.

Source: storage/src/main/java/org/apache/kafka/storage/internals/log/{OffsetIndex,TimeIndex,AbortedTxn}.java @ 3.9.0-rc3
"""

from collections.abc import Iterable, Iterator
from itertools import starmap
from typing import NamedTuple, TypeVar

from formats.binary.layout import Bytes, int16, int32, int64, layout, write


class OffsetIndexEntry(NamedTuple):
    """A row of `.index`."""

    relative_offset: int32
    position: int32


class TimeIndexEntry(NamedTuple):
    """A row of `.timeindex`: the largest timestamp up to the batch that ends at, or contains, the offset."""

    timestamp: int64
    relative_offset: int32


class AbortedTransaction(NamedTuple):
    """A row of `.txnindex`. Kafka reads the version's first byte only (all versions up to 3.9)."""

    version: int16
    producer_id: int64
    first_offset: int64
    last_offset: int64  # of the ABORT marker
    last_stable_offset: int64


OFFSET_ENTRY_SIZE = layout(OffsetIndexEntry).size
TIME_ENTRY_SIZE = layout(TimeIndexEntry).size
ABORTED_SIZE = layout(AbortedTransaction).size

Entry = TypeVar("Entry", OffsetIndexEntry, TimeIndexEntry, AbortedTransaction)


def entries_of(row: type[Entry], data: Bytes) -> Iterator[Entry]:
    """The rows one after the other, padding included; a trailing fragment of a row is left out, as Kafka does."""
    struct = layout(row)
    whole = len(data) - len(data) % struct.size
    return starmap(row, struct.iter_unpack(memoryview(data)[:whole]))


def read_offset_index(data: Bytes) -> list[OffsetIndexEntry]:
    """All rows, padding included; a trailing fragment of a row is left out, as Kafka does."""
    return list(entries_of(OffsetIndexEntry, data))


def read_time_index(data: Bytes) -> list[TimeIndexEntry]:
    """All rows, padding included; a trailing fragment is left out."""
    return list(entries_of(TimeIndexEntry, data))


def read_transaction_index(data: Bytes) -> list[AbortedTransaction]:
    """All rows; a trailing fragment is left out."""
    return list(entries_of(AbortedTransaction, data))


def write_index(entries: Iterable[Entry]) -> bytes:
    """The bytes of rows of any of the three."""
    return b"".join(map(write, entries))


def used_size(data: Bytes, entry_size: int) -> int:
    """Bytes up to the first of the zeros that fill the rest; the whole length where none do.

    The first row may be all zeros in truth (the base offset at position 0, or at time 0): it counts as used
    only where something follows it.
    """
    end = len(bytes(data).rstrip(b"\0"))
    return -(-end // entry_size) * entry_size if end < len(data) else end
