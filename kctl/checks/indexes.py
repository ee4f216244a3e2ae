"""What an offset index and a time index say that their log does not bear out.

In an index that was never trimmed, of the last segment and without a clean shutdown, entries may be left
from before a truncation: the first that contradicts the log ends the entries in use, as long as none behind
it fits again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formats.columns.headers import Headers
from formats.index_files import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from kctl.checks.offset_index import OffsetIndexCheck, Used
from kctl.checks.report import FileReport
from kctl.checks.time_index import TimeIndexCheck
from kctl.findings import indexes as say

Mask = NDArray[np.bool_]
INDEX_INTERVAL_BYTES = 4096
FEWEST_WITNESSES = 3  # a clean stop adds an entry to the time index alone, but not that many that far apart


@dataclass(frozen=True, slots=True)
class IndexedLog:
    """What a check of an index has to know of the segment beside it."""

    base_offset: int
    size_in_bytes: int
    batches: int
    log_end_offset: int
    is_last: bool
    is_clean: bool  # a clean-shutdown marker lies in the log directory
    is_sound: bool  # nothing in the log is damaged

    @property
    def may_be_stale(self) -> bool:
        """Whether entries from before a truncation may be left in an untrimmed index."""
        return self.is_last and not self.is_clean

    @property
    def awaits_indexes(self) -> bool:
        """Whether the index files may not be there yet: since 2.4 the first append makes them, no roll does.

        (`core:LogSegment.scala`, ensureOffsetInRange, and `LazyIndex.scala @ 2.4.1`; KAFKA-7283.) A segment that
        retention rolled may stay empty for long, through clean stops too.
        """
        return self.is_last and self.is_sound and not self.batches


@dataclass(slots=True)
class OffsetIndex:
    """An offset index under examination."""

    report: FileReport
    check: OffsetIndexCheck

    def feed(self, headers: Headers) -> None:
        """The next batches of the log."""
        self.check.feed(headers)

    def hints(self) -> NDArray[np.int64] | None:
        """Positions where batches may begin, for the walk; None where the index is out of order."""
        if not self.check.used.count or self.check.unordered().any():
            return None
        return self.check.target[self.check.target > 0]

    def finish(self, log: IndexedLog) -> None:
        """Say what is wrong, now that the whole log was seen."""
        report, check = self.report, self.check
        report.base_offset = check.base_offset
        _say_padding(report, check.used, OFFSET_ENTRY_SIZE)
        if not log.is_sound:
            check.excuse_tail(log.size_in_bytes)
        wrong, unordered = check.misplaced(), check.unordered()
        stale = stale_from(wrong, unordered, check.used, log)
        for entry in np.flatnonzero((wrong | unordered)[:stale]).tolist():
            place = report.at(entry * OFFSET_ENTRY_SIZE, OFFSET_ENTRY_SIZE)
            details = {
                "entry": entry,
                "offset": int(check.offset[entry]),
                "target": int(check.target[entry]),
            }
            if wrong[entry]:
                why = check.why(entry, log.size_in_bytes)
                report.say(say.INDEX_ENTRY_MISPLACED, place, why=why, **details)
            else:
                report.say(say.INDEX_ENTRY_UNORDERED, place, **details)
            report.damaged_bytes += OFFSET_ENTRY_SIZE
        _say_stale(report, stale, check.used, OFFSET_ENTRY_SIZE)
        _say_untrimmed(report, check.used, OFFSET_ENTRY_SIZE, log)
        if not check.used.count and log.batches > 1 and log.size_in_bytes > 2 * INDEX_INTERVAL_BYTES:
            report.say(say.INDEX_EMPTY, size=log.size_in_bytes)
        if log.is_last and log.is_clean and log.is_sound and wrong.any():
            self._say_what_a_start_does(wrong, log)

    def _say_what_a_start_does(self, wrong: Mask, log: IndexedLog) -> None:
        """After a clean shutdown the log's end is looked for from the last entry on."""
        check, last = self.check, self.check.used.count - 1
        if check.used.is_padded or not wrong[last]:
            return
        target = int(check.target[last])
        place = self.report.at(last * OFFSET_ENTRY_SIZE, OFFSET_ENTRY_SIZE)
        if check.offset[last] >= log.log_end_offset or not 0 <= target < log.size_in_bytes:
            why = check.why(last, log.size_in_bytes)
            self.report.say(
                say.INDEX_HIDES_RECORDS, place, why=why, log_end=log.base_offset, truth=log.log_end_offset
            )
        elif not check.is_boundary(last):
            self.report.say(say.INDEX_STOPS_LOADING, place, target=target)


@dataclass(slots=True)
class TimeIndex:
    """A time index under examination."""

    report: FileReport
    check: TimeIndexCheck

    def feed(self, headers: Headers) -> None:
        """The next batches of the log."""
        self.check.feed(headers)

    def finish(self, log: IndexedLog) -> None:
        """Say what is wrong, now that the whole log was seen."""
        report, check = self.report, self.check
        report.base_offset = check.base_offset
        _say_padding(report, check.used, TIME_ENTRY_SIZE)
        if not log.is_sound:
            check.excuse_tail()
        wrong, unordered = check.misplaced(), check.unordered()
        stale = stale_from(wrong, unordered, check.used, log)
        for entry in np.flatnonzero((wrong | unordered)[:stale]).tolist():
            place = report.at(entry * TIME_ENTRY_SIZE, TIME_ENTRY_SIZE)
            details = {
                "entry": entry,
                "timestamp": int(check.timestamp[entry]),
                "offset": int(check.offset[entry]),
            }
            if wrong[entry]:
                report.say(say.TIME_INDEX_ENTRY_WRONG, place, why=check.why(entry), **details)
            else:
                report.say(say.TIME_INDEX_ENTRY_UNORDERED, place, **details)
            report.damaged_bytes += TIME_ENTRY_SIZE
        _say_stale(report, stale, check.used, TIME_ENTRY_SIZE)
        _say_untrimmed(report, check.used, TIME_ENTRY_SIZE, log)
        if log.is_last or not log.is_sound or (wrong | unordered).any():
            return
        if not check.is_complete():
            last = int(check.timestamp[-1]) if check.used.count else "none"
            report.say(say.TIME_INDEX_INCOMPLETE, last=last, latest=check.newest_filled)


def say_entries_missing(offsets: OffsetIndex, times: TimeIndex, log: IndexedLog) -> None:
    """Say when an offset index ends before the time index does that was written along with it.

    Entries are `index.interval.bytes` apart at least, which the entries that are there tell; a time index
    gets one more at a roll and at each clean stop (`S:LogSegment.java @ 3.9.0`, append). After a stop the bytes are
    counted anew, and what a follower fetches at once gets one entry in front of it or none.
    """
    index, other = offsets.check, times.check
    if log.is_last or not log.is_sound or index.used.is_padded or index.misplaced().any():
        return
    apart = np.diff(index.target, prepend=0)
    interval = int(apart.min()) if len(apart) else INDEX_INTERVAL_BYTES
    last_offset, end = (int(index.offset[-1]), int(index.target[-1])) if len(apart) else (-1, 0)
    behind = np.flatnonzero(other.offset > last_offset)
    distances = np.diff(other.target[behind], prepend=end)[:-1]  # the last is the roll's
    count, tail = len(behind), log.size_in_bytes - end
    if int((distances >= interval).sum()) >= FEWEST_WITNESSES and tail >= count * interval * 3 // 4:
        place = offsets.report.at(offsets.report.size_in_bytes, 0)
        offsets.report.say(say.INDEX_ENTRIES_MISSING, place, tail=tail, count=count)


def _say_untrimmed(report: FileReport, used: Used, width: int, log: IndexedLog) -> None:
    """Kafka trims the indexes of a segment when it rolls it."""
    if used.is_padded and used.dirty_entry is None and not log.is_last and log.is_sound:
        start = used.count * width
        size = report.size_in_bytes - used.fragment - start
        report.say(say.INDEX_UNTRIMMED, report.at(start, size), entry=used.count)
        report.damaged_bytes += size


def stale_from(wrong: Mask, unordered: Mask, used: Used, log: IndexedLog) -> int:
    """The entry from which on entries may be left from before a truncation; the count where none are.

    An entry that fits the log and follows a wrong one speaks for damage of the latter: what a truncation
    leaves fits up to some entry and not beyond.
    """
    bad = np.flatnonzero(wrong | unordered)
    if not len(bad) or not log.may_be_stale or not used.is_padded:
        return used.count
    fitting = np.flatnonzero(~(wrong | unordered))
    last_fitting = int(fitting[-1]) if len(fitting) else -1
    damaged = np.flatnonzero(wrong[: last_fitting + 1])
    return int(bad[0]) if not len(damaged) else last_fitting + 1


def _say_stale(report: FileReport, stale: int, used: Used, width: int) -> None:
    if stale < used.count:
        count = used.count - stale
        place = report.at(stale * width, count * width)
        report.say(say.INDEX_STALE_TAIL, place, count=count, entry=stale)


def _say_padding(report: FileReport, used: Used, width: int) -> None:
    if used.fragment:
        start = report.size_in_bytes - used.fragment
        place = report.at(start, used.fragment)
        report.say(say.INDEX_FRAGMENT, place, count=used.fragment, width=width)
        report.damaged_bytes += used.fragment
    if used.dirty_entry is not None:
        place = report.at(used.dirty_entry * width, width)
        report.say(say.INDEX_PADDING_DIRTY, place, entry=used.dirty_entry)
        report.damaged_bytes += width
