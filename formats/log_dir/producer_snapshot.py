"""Snapshots of producer state (`.snapshot`): one row a producer, under a CRC-32C.

The file's name is the offset where the snapshot ends, exclusive, and not a segment's base. Only the last
batch of each producer is kept.

Source: storage/src/main/java/org/apache/kafka/storage/internals/log/ProducerStateManager.java @ 3.9.0-rc3
"""

from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import NamedTuple

from formats.binary.crc import crc32c
from formats.binary.layout import Bytes, int16, int32, int64, layout, read, uint32, write
from formats.errors import FormatError, Truncated
from formats.log.record_batch import NO_SEQUENCE
from formats.words import counted

VERSION = 1


class SnapshotHeader(NamedTuple):
    """The first 10 bytes; the CRC covers everything from `producer_count` on."""

    version: int16
    crc: uint32
    producer_count: int32


class ProducerEntry(NamedTuple):
    """The state of one producer; -1 stands for absent."""

    producer_id: int64
    producer_epoch: int16
    last_sequence: int32
    last_offset: int64
    offset_delta: int32
    timestamp: int64
    coordinator_epoch: int32
    current_txn_first_offset: int64

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record of the last batch; -1 where there is none. Sequences wrap at 2^31-1."""
        if self.last_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.last_sequence - self.offset_delta) & 0x7FFFFFFF

    @property
    def first_offset(self) -> int:
        """Offset of the first record of the last batch; -1 where there is none."""
        return self.last_offset - self.offset_delta if self.last_offset >= 0 else -1


HEADER_SIZE = layout(SnapshotHeader).size
CRC_STARTS_AT = 6
ENTRY_SIZE = layout(ProducerEntry).size


class UnknownVersion(FormatError):
    """A snapshot of another version than 1."""


class SnapshotCrcMismatch(FormatError):
    """The bytes are not those that the CRC was computed over."""

    def __init__(self, stored: int, computed: int) -> None:
        super().__init__(f"stored CRC {stored:08x}, computed {computed:08x}", 2)
        self.stored = stored
        self.computed = computed

    def __reduce__(self) -> tuple[type, tuple[int, int]]:
        return type(self), (self.stored, self.computed)


def read_snapshot(data: Bytes) -> list[ProducerEntry]:
    """The producers; `UnknownVersion`, `Truncated` or `SnapshotCrcMismatch` where Kafka would delete the file."""
    entries = read_entries(data)
    check_crc(data)
    return list(entries)


def check_crc(data: Bytes) -> None:
    """`SnapshotCrcMismatch` where the CRC is not that of the bytes."""
    stored, computed = read(SnapshotHeader, data).crc, crc32c(memoryview(data)[CRC_STARTS_AT:])
    if computed != stored:
        raise SnapshotCrcMismatch(stored, computed)


def read_entries(data: Bytes) -> Iterator[ProducerEntry]:
    """The producers as the bytes say, one after the other, whatever the CRC says; errors come before the first."""
    header = read(SnapshotHeader, data)
    if header.version != VERSION:
        raise UnknownVersion(f"snapshot of version {header.version}, known is {VERSION}", 0)
    room = (len(data) - HEADER_SIZE) // ENTRY_SIZE
    if not 0 <= header.producer_count <= room:
        raise Truncated(f"{counted(header.producer_count, 'producer')} promised, {room} there", 6)
    rows = memoryview(data)[HEADER_SIZE : HEADER_SIZE + header.producer_count * ENTRY_SIZE]
    return starmap(ProducerEntry, layout(ProducerEntry).iter_unpack(rows))


def write_snapshot(entries: Sequence[ProducerEntry]) -> bytes:
    """The file with its CRC."""
    covered = write(SnapshotHeader(VERSION, 0, len(entries)))[CRC_STARTS_AT:] + b"".join(map(write, entries))
    return write(SnapshotHeader(VERSION, crc32c(covered), 0))[:CRC_STARTS_AT] + covered
