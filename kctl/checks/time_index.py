"""A time index against its log: each entry is the largest timestamp so far, and names the batch that has it.

Leaders up to 3.7 name the record that has the timestamp, which may lie inside a batch; everybody else, and
3.8 on (KAFKA-16310), names the batch's last offset (`S:TimeIndex.java`, `S:LogValidator.java @ 3.7.1, 3.9.0`).
Leaders of 0.10 that convert to magic 0 enter the timestamps that the conversion drops (`MemoryRecordsBuilder.java @
0.10.2.2`, append): nothing in the log says what they were. Cleaners up to 1.1 leave batches without records out
(`MemoryRecords.java @ 0.11.0.3, 2.0.1`, filterTo).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from formats.columns.headers import Headers
from formats.index_files import TIME_ENTRY_SIZE, TimeIndexEntry
from formats.layout import dtype
from kctl.checks.offset_index import NOWHERE, Numbers, Used, highest_so_far, rises, rows_within, used_entries

ENTRY = np.dtype(dtype(TimeIndexEntry))


@dataclass
class TimeIndexCheck:
    """Holds the entries against the batches, which come in order and in pieces."""

    data: bytes
    base_offset: int
    used: Used = field(init=False)
    timestamp: Numbers = field(init=False)
    offset: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self.used = used_entries(self.data, TIME_ENTRY_SIZE)
        rows = np.frombuffer(self.data, ENTRY, self.used.count)
        self.timestamp = rows["timestamp"].astype(np.int64)
        self.offset = rows["relative_offset"].astype(np.int64) + self.base_offset
        self._offsets_rise = rises(self.offset)
        self.target = np.full(self.used.count, NOWHERE, np.int64)  # where the batch named begins
        self._batch = np.full(self.used.count, NOWHERE, np.int64)  # the timestamp of the batch named
        self._largest = np.full(self.used.count, NOWHERE, np.int64)  # the largest up to it
        self._excused = np.zeros(self.used.count, bool)
        self._dropped = np.zeros(self.used.count, bool)  # the entry names magic 0, which has no timestamps
        self._largest_filled = np.full(self.used.count, NOWHERE, np.int64)  # the same without empty batches
        self.newest = NOWHERE  # the largest timestamp of the log so far
        self.newest_filled = NOWHERE  # the same of batches that have records
        self._end = 0
        self.last_offset_before = self.base_offset - 1

    def feed(self, headers: Headers) -> None:
        """The next batches of the log; only sound ones count, what lies between them cannot be judged."""
        sound = headers if headers.crc_valid.all() else headers[headers.crc_valid]
        if not len(sound):
            return
        timestamp = np.where(sound.records_count == 0, NOWHERE, sound.max_timestamp)
        if not self.used.count:
            self.newest = max(self.newest, int(sound.max_timestamp.max()))
            self.newest_filled = max(self.newest_filled, int(timestamp.max()))
            return
        highest = highest_so_far(sound.last_offset, self.last_offset_before)
        newest = highest_so_far(sound.max_timestamp, self.newest)
        filled = highest_so_far(timestamp, self.newest_filled)
        here = rows_within(self.offset, self.last_offset_before, int(highest[-1]), self._offsets_rise)
        row = np.searchsorted(highest, self.offset[here])
        self.target[here] = sound.position[row]
        self._batch[here] = sound.max_timestamp[row]
        self._largest[here] = newest[row]
        self._largest_filled[here] = filled[row]
        self._dropped[here] = sound.magic[row] == 0
        ended = np.concatenate(([self._end], sound.next_position[:-1]))
        before = np.concatenate(([self.last_offset_before], highest[:-1]))
        for gap in np.flatnonzero(sound.position > ended).tolist():
            self._excused |= (self.offset > before[gap]) & (self.offset < sound.base_offset[gap])
        self.newest, self.newest_filled = int(newest[-1]), int(filled[-1])
        self.last_offset_before, self._end = int(highest[-1]), int(sound.next_position[-1])

    def excuse_tail(self) -> None:
        """Do not judge entries about what follows the last sound batch, as it is damaged."""
        self._excused |= self.offset > self.last_offset_before

    def unordered(self) -> NDArray[np.bool_]:
        """Entries whose timestamp is not above, or whose offset is below, that of the entry before."""
        wrong = np.zeros(self.used.count, bool)
        wrong[1:] = (np.diff(self.timestamp) <= 0) | (np.diff(self.offset) < 0)
        return wrong

    def misplaced(self) -> NDArray[np.bool_]:
        """Entries that no append or recovery of this log has written."""
        largest = (self.timestamp == self._largest) | (self.timestamp == self._largest_filled)
        wrong = (self.timestamp != self._batch) | ~largest
        dropped = self._dropped & (self.timestamp > self._largest)
        judged: NDArray[np.bool_] = wrong & ~self._excused & ~dropped
        return judged

    def is_complete(self) -> bool:
        """Whether the last entry has the largest timestamp of the log's records, or one that the log has no more."""
        last = int(self.timestamp[-1]) if self.used.count else NOWHERE
        return last >= self.newest_filled or self.newest_filled < 0

    def why(self, entry: int) -> str:
        """What contradicts one misplaced entry."""
        if self._batch[entry] == NOWHERE:
            return f"the segment holds no such offset, its last is {self.last_offset_before}"
        if self.timestamp[entry] != self._batch[entry]:
            return f"the batch with that offset has timestamp {self._batch[entry]}"
        return f"timestamp {self._largest[entry]} comes before it"
