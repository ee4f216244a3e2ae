"""A segment of a log that is being loaded: where it ends, and what recovering it keeps.

Source: core/src/main/scala/kafka/log/LogSegment.scala @ 0.8.2.2 to 2.8.2,
storage/src/main/java/org/apache/kafka/storage/internals/log/{LogSegment,OffsetIndex,TimeIndex}.java @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from formats.log.columns.headers import Headers
from formats.log_dir.index_files import OFFSET_ENTRY_SIZE, OffsetIndexEntry, read_offset_index
from formats.values import Struct
from kctl.files import read_padded
from kctl.log.index_rules import DEFAULT_INTERVAL, INT32_MAX
from kctl.log_dir_start.batches import LoadedBatches
from kctl.log_dir_start.failures import LoadFails, UnknownOutcome
from kctl.log_dir_start.rules import StartRules
from kctl.scan.source import Source, opened_source


class InvalidOffset(Exception):
    """Kafka's InvalidOffsetException: an index entry would go back at this row of the batches at hand."""

    def __init__(self, words: str, row: int = 0) -> None:
        super().__init__(words)
        self.row = row


class Overflow(Exception):
    """Kafka's LogSegmentOffsetOverflowException: a batch whose offset the segment's index cannot hold."""

    def __init__(self, position: int, offset: int) -> None:
        super().__init__(f"the batch at position {position} has offset {offset}")


class Recovered(Struct, frozen=True):
    """What recovering a segment came to."""

    valid_bytes: int
    next_offset: int  # behind the last batch that is kept
    truncated: int  # bytes
    reason: str | None  # Kafka's words about what was corrupt; None where a batch was cut short


class LoadedSegment(Struct):
    """A segment in memory of the broker: the bytes [0, size) of a file."""

    base_offset: int
    path: Path  # where its bytes are
    name: str  # of its log file once the log is loaded
    size: int
    rules: StartRules
    index: list[OffsetIndexEntry] | None = None  # as recovered; None: the file that is there, if any
    index_path: Path | None = None

    def _index_entries(self) -> list[OffsetIndexEntry]:
        """The entries that the broker sees, padding included: it maps the file up to its size."""
        if self.index is not None:
            return self.index
        if self.index_path is None:
            return []
        try:
            data = read_padded(self.index_path)
        except OSError:
            return []
        return read_offset_index(data[: len(data) - len(data) % OFFSET_ENTRY_SIZE])

    def start_of(self, offset: int) -> int:
        """The position from which the broker looks for an offset: that of the largest index entry up to it."""
        entries = self._index_entries()
        if not entries:
            return 0
        relative = offset - self.base_offset
        low, high = 0, len(entries) - 1
        if entries[0].relative_offset > relative:
            return 0
        while low < high:
            middle = (low + high + 1) // 2
            found = entries[middle].relative_offset
            if found < relative:
                low = middle
            elif found > relative:
                high = middle - 1
            else:
                low = high = middle
        return max(0, entries[low].position)

    def last_index_offset(self) -> int:
        """What the index says of its last entry; the base offset where it has none."""
        entries = self._index_entries()
        return self.base_offset + entries[-1].relative_offset if entries else self.base_offset

    def read_next_offset(self) -> int:
        """Where the segment ends by headers alone, looked for from its last index entry on.

        `LoadFails` where the broker meets corruption on its way.
        """
        if not self.size:
            return self.base_offset
        sought = self.last_index_offset()
        ends, is_found = self.base_offset, False
        with opened_source(self.path) as source:
            batches = LoadedBatches(
                source,
                self.start_of(sought),
                min(self.size, source.size),
                check_crc=False,
                magic_2=self.rules.magic_2,
            )
            for headers in batches:
                at_row = headers.base_offset if self.rules.searches_base_offsets else headers.last_offset
                is_found = is_found or bool((at_row >= sought).any())
                ends = int(headers.last_offset[-1]) + 1
        if batches.small_size is not None and self.rules.small_size_ends_log:
            if not is_found:
                words = f"Invalid message size: {batches.small_size}"
                raise LoadFails("java.lang.IllegalStateException", words, self.name)
        elif batches.corrupt:
            raise LoadFails(
                "org.apache.kafka.common.errors.CorruptRecordException", batches.corrupt, self.name
            )
        # The broker may find nothing to read from there on.
        return ends if is_found or ends > sought else self.base_offset

    def read_headers(self, start_offset: int) -> None:
        """Read the batches from an offset on as a broker that rebuilds the state of producers; `LoadFails` as above."""
        if not self.size:
            return
        with opened_source(self.path) as source:
            end = min(self.size, source.size)
            batches = LoadedBatches(
                source, self.start_of(start_offset), end, check_crc=False, magic_2=self.rules.magic_2
            )
            for _ in batches:
                pass
        if batches.corrupt:
            raise LoadFails(
                "org.apache.kafka.common.errors.CorruptRecordException", batches.corrupt, self.name
            )

    def _split(self, overflow: Overflow) -> Exception:
        """What comes of splitting the segment: Kafka refuses where its last batch fits the index."""
        last = self.read_next_offset() - 1
        if last < self.base_offset or last - self.base_offset <= INT32_MAX:
            words = (
                "Split operation is only permitted for segments with overflow, and the problem path is"
                f" {self.path}"
            )
            return LoadFails("java.lang.IllegalArgumentException", words, self.name)
        return UnknownOutcome(
            f"Kafka splits segment {self.base_offset}, whose index cannot hold its offsets: {overflow}"
        )

    def recover(self, on_batches: Callable[[Headers, Source], None]) -> Recovered:
        """Read every batch and keep those up to the first that is corrupt or cut short.

        `InvalidOffset` as Kafka throws it; nothing is changed then but the index.
        """
        index: list[OffsetIndexEntry] = []
        recovery = _Recovery(self.base_offset, self.rules, index)
        self.index = index
        if not self.size:
            return Recovered(0, self.base_offset, 0, None)
        with opened_source(self.path) as source:
            batches = LoadedBatches(
                source, 0, min(self.size, source.size), check_crc=True, magic_2=self.rules.magic_2
            )
            for headers in batches:
                try:
                    recovery.feed(headers)
                except Overflow as overflow:
                    raise self._split(overflow) from overflow
                except InvalidOffset as error:
                    on_batches(headers[: error.row], source)
                    raise
                on_batches(headers, source)
            size = min(self.size, source.size)
        recovery.finish()
        truncated = size - batches.position
        self.size = batches.position
        return Recovered(batches.position, recovery.next_offset, truncated, batches.corrupt)


class _Recovery(Struct, dict=True):
    """The indexes of a segment that is being recovered."""

    base_offset: int
    rules: StartRules
    index: list[OffsetIndexEntry]
    last_entry_position: int = 0
    largest: int = -1
    offset_of_largest: int = -1
    last_time: tuple[int, int] | None = None  # of the time index: timestamp and offset
    next_offset: int = 0

    def __post_init__(self) -> None:
        self.next_offset = self.base_offset

    def feed(self, headers: Headers) -> None:
        """The next batches."""
        last_offset, position = headers.last_offset, headers.position
        outside = len(headers)
        if self.rules.splits_overflow:
            relative = last_offset - self.base_offset
            wrong = (relative < 0) | (relative > INT32_MAX)
            outside = int(wrong.argmax()) if wrong.any() else outside
        done = 0
        while done < outside:
            due = int(np.searchsorted(position, self.last_entry_position + DEFAULT_INTERVAL, "right"))
            due = max(due, done)
            self._see(headers[done : min(due + 1, outside)])
            if due < outside:
                self._append(headers, due)
            done = due + 1
        if outside < len(headers):
            raise Overflow(int(position[outside]), int(last_offset[outside]))
        if len(headers):
            self.next_offset = int(last_offset[-1]) + 1

    def _see(self, headers: Headers) -> None:
        if len(headers):
            row = int(headers.max_timestamp.argmax())
            if headers.max_timestamp[row] > self.largest:
                self.largest = int(headers.max_timestamp[row])
                self.offset_of_largest = int(headers.last_offset[row])

    def _append(self, headers: Headers, row: int) -> None:
        offset = int(headers.last_offset[row] if self.rules.indexes_last_offset else headers.base_offset[row])
        if self.index and offset <= self.base_offset + self.index[-1].relative_offset:
            before = self.base_offset + self.index[-1].relative_offset
            raise InvalidOffset(
                f"Attempt to append an offset ({offset}) to position {len(self.index)} no larger than the last offset"
                f" appended ({before})",
                row,
            )
        self.index.append(OffsetIndexEntry(offset - self.base_offset, int(headers.position[row])))
        self.finish(row)
        self.last_entry_position = int(headers.position[row])

    def finish(self, row: int = 0) -> None:
        """An entry of the time index, where the largest timestamp has grown."""
        if not self.rules.has_time_index:
            return
        if self.last_time is not None and self.offset_of_largest < self.last_time[1]:
            raise InvalidOffset(
                f"Attempt to append an offset ({self.offset_of_largest}) to the time index no larger than the last"
                f" offset appended ({self.last_time[1]})",
                row,
            )
        if self.largest > (self.last_time[0] if self.last_time else -1):
            self.last_time = (self.largest, self.offset_of_largest)
