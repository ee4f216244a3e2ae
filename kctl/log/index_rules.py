"""Offset and time indexes rewritten from the batches of a segment, by the rules of a Kafka version.

Appending and recovering place entries alike: an entry at each batch that begins more than
`index.interval.bytes` behind the last entry, or behind the segment's start. What an entry names changed twice:

    rules   brokers      an offset entry names          a time entry of an uncompressed batch names
    0.8     0.8 - 1.1    the first offset of the batch  the record with the largest timestamp
    2.0     2.0 - 3.7    the last offset (KAFKA-6530)   the record with the largest timestamp
    3.8     3.8 on       the last offset                the last offset (KAFKA-16310)

Only leaders name records; followers and recoveries of every version name the last offset of the batch.

Source: append, recover and onBecomeInactiveSegment of core/src/main/scala/kafka/log/LogSegment.scala @ 1.1.1,
2.8.2 and storage/src/main/java/org/apache/kafka/storage/internals/log/LogSegment.java @ 3.9.0-rc3
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from formats.errors import FormatError
from formats.log.columns.headers import Headers
from formats.log.record_batch import CODEC_MASK, TIMESTAMP_TYPE, Record
from formats.log_dir.index_files import OffsetIndexEntry, TimeIndexEntry
from formats.values import Struct, field

DEFAULT_INTERVAL = 4096
NO_TIMESTAMP = -1
INT32_MAX = (1 << 31) - 1


class IndexRules(enum.StrEnum):
    """The first version with the rules."""

    V0_8 = "0.8"
    V2_0 = "2.0"
    V3_8 = "3.8"


NEWEST = IndexRules.V3_8
ReadRecords = Callable[[int], list[Record]]
"""The records of the entry at a position; FormatError where they cannot be read."""


class _Largest(Struct, frozen=True):
    """The batch with the largest timestamp so far."""

    timestamp: int = NO_TIMESTAMP
    position: int = 0
    last_offset: int = 0
    names_record: bool = False  # whether a leader up to 3.7 named one of its records


class IndexBuilder(Struct, dict=True):
    """The indexes of one segment, from its sound batches in order."""

    base_offset: int
    rules: IndexRules = NEWEST
    interval: int = DEFAULT_INTERVAL
    by_leader: bool = True  # False: time entries as followers and recoveries write them
    offset_entries: list[OffsetIndexEntry] = field(default_factory=list)
    time_entries: list[TimeIndexEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._last_entry_position = 0
        self._largest = _Largest()

    def feed(self, headers: Headers, read_records: ReadRecords) -> None:
        """The next batches; those whose CRC is wrong are left out."""
        sound = headers if headers.crc_valid.all() else headers[headers.crc_valid]
        done = 0
        while done < len(sound):
            due = int(np.searchsorted(sound.position, self._last_entry_position + self.interval, "right"))
            due = max(due, done)
            self._see(sound[done : due + 1])
            if due < len(sound):
                self._append(sound, due, read_records)
            done = due + 1

    def finish(self, read_records: ReadRecords) -> None:
        """The last time entry, as rolling, closing and recovering write it."""
        self._append_time(read_records)

    def _see(self, headers: Headers) -> None:
        if not len(headers):
            return
        row = int(headers.max_timestamp.argmax())
        timestamp = int(headers.max_timestamp[row])
        if timestamp > self._largest.timestamp:
            plain = not headers.attributes[row] & (CODEC_MASK | TIMESTAMP_TYPE)
            self._largest = _Largest(
                timestamp, int(headers.position[row]), int(headers.last_offset[row]), bool(plain)
            )

    def _append(self, headers: Headers, row: int, read_records: ReadRecords) -> None:
        position = int(headers.position[row])
        offset = int(headers.last_offset[row])
        if self.rules is IndexRules.V0_8:
            offset = self._first_offset(headers, row, read_records)
        relative = offset - self.base_offset
        if 0 <= relative <= INT32_MAX and position <= INT32_MAX:
            self.offset_entries.append(OffsetIndexEntry(relative, position))
        self._append_time(read_records)
        self._last_entry_position = position

    @staticmethod
    def _first_offset(headers: Headers, row: int, read_records: ReadRecords) -> int:
        base = int(headers.base_offset[row])
        if headers.magic[row] == 2 or not headers.attributes[row] & CODEC_MASK:
            return base
        try:
            return read_records(int(headers.position[row]))[0].offset
        except (FormatError, IndexError):
            return base

    def _append_time(self, read_records: ReadRecords) -> None:
        largest = self._largest
        before = self.time_entries[-1].timestamp if self.time_entries else NO_TIMESTAMP
        if largest.timestamp <= before:
            return
        relative = self._named_offset(largest, read_records) - self.base_offset
        if 0 <= relative <= INT32_MAX:
            self.time_entries.append(TimeIndexEntry(largest.timestamp, relative))

    def _named_offset(self, largest: _Largest, read_records: ReadRecords) -> int:
        if self.rules is IndexRules.V3_8 or not self.by_leader or not largest.names_record:
            return largest.last_offset
        try:
            records = read_records(largest.position)
        except FormatError:
            return largest.last_offset
        named = (record.offset for record in records if record.timestamp == largest.timestamp)
        return next(named, largest.last_offset)


class Interval(NamedTuple):
    """Index intervals [least, below) that make entries where an index has them."""

    least: int
    below: int


def interval_of(positions: Iterable[int], entries: Sequence[int]) -> Interval | None:
    """The intervals that explain entries at exactly these positions; None where none does.

    `positions` are those of all batches of a segment, `entries` those in its index, both ascending.
    """
    least, below = 0, INT32_MAX
    last, following = 0, 0
    for position in positions:
        if following < len(entries) and position == entries[following]:
            below = min(below, position - last)
            last, following = position, following + 1
        else:
            least = max(least, position - last)
    return None if following < len(entries) or least >= below else Interval(least, below)


def likeliest_interval(intervals: Sequence[Interval]) -> int:
    """The interval that explains most indexes; the default where it explains as many as any other."""
    candidates = [DEFAULT_INTERVAL, *(interval.least for interval in intervals)]
    return max(
        candidates, key=lambda value: sum(interval.least <= value < interval.below for interval in intervals)
    )
