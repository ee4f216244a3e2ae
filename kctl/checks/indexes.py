"""The indexes of a segment against its log: offset, time and transaction index, and a broker's copies of remote ones.

An offset index is right when a lookup followed by a forward scan is. Up to 1.1 an entry names the first offset of
what was appended, from 2.0 the last (KAFKA-6530), and what was appended may be many batches: so an offset is right
when it is the base offset of the batch at its position or the last of a batch between there and the next entry
(`S:OffsetIndex.java`, `S:LogSegment.java @ 3.9.0`).

In an index that was never trimmed, of the last segment and without a clean shutdown, entries may be left
from before a truncation: the first that contradicts the log ends the entries in use, as long as none behind
it fits again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from formats.arrays import Ints, Mask
from formats.binary.layout import dtype
from formats.log.columns.headers import Headers
from formats.log_dir.index_files import (
    ABORTED_SIZE,
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
    entries_of,
)
from formats.values import Struct, replace
from kctl.checks.report import CheckOptions, FileReport, Report
from kctl.checks.small_files import read_small, take_small
from kctl.findings import Place
from kctl.findings import indexes as codes
from kctl.log.folder import FolderFile, LogSegment
from kctl.scan.producer_state import Aborted

# --- entries against batches: the offset index --------------------------------------------------------

Numbers = Ints
NOWHERE = np.iinfo(np.int64).min
OFFSET_ENTRY = np.dtype(dtype(OffsetIndexEntry))


class Used(Struct, frozen=True):
    """The entries of an index in front of its padding."""

    count: int
    is_padded: bool
    dirty_entry: int | None  # the first that follows the zeros
    fragment: int  # bytes at the end that are no whole entry


def used_entries(data: bytes, width: int) -> Used:
    """Where the entries end: at the first row of zeros that only zeros follow.

    Rows that are zero inside mean that pages did not reach the disk: what follows them counts as dirty.
    """
    whole = len(data) // width
    rows = np.frombuffer(data, np.uint8, whole * width).reshape(whole, width)
    filled: Mask = np.asarray(rows.any(axis=1))
    if filled.all():
        return Used(whole, False, None, len(data) % width)
    first_zero = int(filled.argmin())
    behind = np.flatnonzero(filled[first_zero:])
    dirty = first_zero + int(behind[0]) if len(behind) else None
    return Used(first_zero, True, dirty, len(data) % width)


def rises(values: Numbers) -> bool:
    """Whether none is below the one before it."""
    return bool((values[1:] >= values[:-1]).all())


def highest_so_far(values: Numbers, before: int) -> Numbers:
    """The highest of each row, those above it and `before`. In most logs that is the row itself."""
    if values[0] >= before and rises(values):
        return values
    return np.maximum.accumulate(np.maximum(values, before))


def rows_within(values: Numbers, above: int, last: int, in_order: bool) -> Numbers:
    """The rows whose value is above one bound and not above the other; `in_order`: values rise."""
    if in_order:
        return np.arange(*np.searchsorted(values, (above, last), side="right"))
    return np.flatnonzero((values > above) & (values <= last))


class OffsetIndexCheck:
    """Compares the entries with the batches, which come in order and in pieces."""

    def __init__(self, data: bytes, base_offset: int) -> None:
        self._take(data, base_offset, used_entries(data, OFFSET_ENTRY_SIZE))
        self._offsets_rise, self._targets_rise = rises(self.offset), rises(self.target)
        unknown = partial(np.full, self.used.count, dtype=np.int64)
        self._before, self._base = unknown(NOWHERE), unknown(NOWHERE)
        self._is_boundary = np.zeros(self.used.count, bool)
        self._ends_batch = np.zeros(self.used.count, bool)
        self._is_old = np.zeros(self.used.count, bool)
        self._excused = np.zeros(self.used.count, bool)
        self.last_offset_before = self.base_offset - 1
        self._end = 0

    def _take(self, data: bytes, base_offset: int, used: Used) -> None:
        self.data, self.base_offset, self.used = data, base_offset, used
        rows = np.frombuffer(data, OFFSET_ENTRY, used.count)
        self.offset = rows["relative_offset"].astype(np.int64) + base_offset
        self.target = rows["position"].astype(np.int64)

    def feed(self, headers: Headers) -> None:
        """The next batches of the log; only sound ones count, what lies between them cannot be judged."""
        sound = headers if headers.crc_valid.all() else headers[headers.crc_valid]
        if not len(sound) or not self.used.count:
            return
        highest = highest_so_far(sound.last_offset, self.last_offset_before)
        before = np.concatenate(([self.last_offset_before], highest[:-1]))
        low, high = int(sound.position[0]), int(sound.next_position[-1])
        near = rows_within(self.target, low - 1, high - 1, self._targets_rise)
        row = np.minimum(np.searchsorted(sound.position, self.target[near]), len(sound) - 1)
        hit = sound.position[row] == self.target[near]
        at, row = near[hit], row[hit]
        self._is_boundary[at] = True
        self._before[at] = before[row]
        self._base[at] = sound.base_offset[row]
        self._is_old[at] = sound.magic[row] < 2
        ends = rows_within(self.offset, int(before[0]), int(highest[-1]), self._offsets_rise)
        row = np.searchsorted(highest, self.offset[ends])
        self._ends_batch[ends] = highest[row] == self.offset[ends]
        ended = np.concatenate(([self._end], sound.next_position[:-1]))
        for gap in np.flatnonzero(sound.position > ended).tolist():
            self._excuse(ended[gap], sound.position[gap], before[gap], sound.base_offset[gap])
        self.last_offset_before, self._end = int(highest[-1]), high

    def _excuse(self, position: int, end: int, last_offset: int, next_offset: int) -> None:
        """Entries that are about bytes or offsets which are damaged in the log are not judged."""
        self._excused |= (self.target >= position) & (self.target < end)
        self._excused |= (self.offset > last_offset) & (self.offset < next_offset)

    def excuse_tail(self, log_size: int) -> None:
        """Do not judge entries about what follows the last sound batch, as it is damaged."""
        self._excuse(self._end, log_size, self.last_offset_before, np.iinfo(np.int64).max)

    def unordered(self) -> Mask:
        """Entries whose offset or position is not above that of the entry before."""
        wrong = np.zeros(self.used.count, bool)
        wrong[1:] = (self.offset[1:] <= self.offset[:-1]) | (self.target[1:] <= self.target[:-1])
        return wrong

    def misplaced(self) -> Mask:
        """Entries that no append or recovery of this log has written."""
        following = np.concatenate((self._before[1:], [np.iinfo(np.int64).max]))
        following[following == NOWHERE] = np.iinfo(np.int64).max
        in_gap = (self.offset > self._before) & (self.offset < self._base)
        named = self._ends_batch | (self.offset == self._base) | in_gap | self._is_old
        fits = (self.offset > self._before) & (self.offset <= following)
        sound = self._is_boundary & named & fits & (self.offset <= self.last_offset_before)
        wrong: Mask = ~(sound | self._excused)
        return wrong

    def is_boundary(self, entry: int) -> bool:
        """Whether a batch begins at the entry's position."""
        return bool(self._is_boundary[entry])

    def why(self, entry: int, log_size: int) -> str:
        """What contradicts one misplaced entry."""
        if self.target[entry] < 0 or self.target[entry] >= log_size:
            return "which is past the end of the log"
        if not self._is_boundary[entry]:
            return "where no batch begins"
        if self.offset[entry] <= self._before[entry]:
            return f"but offset {self._before[entry]} already ends before it"
        if self.offset[entry] > self.last_offset_before:
            return f"but the last offset of the segment is {self.last_offset_before}"
        return f"where the batch begins at offset {self._base[entry]}"


# --- entries against batches: the time index ----------------------------------------------------------


TIME_ENTRY = np.dtype(dtype(TimeIndexEntry))


class TimeIndexCheck:
    """Compares the entries with the batches, which come in order and in pieces.

    Each entry is the largest timestamp so far, and names the batch that has it.

    Leaders up to 3.7 name the record that has the timestamp, which may lie inside a batch; everybody else, and
    3.8 on (KAFKA-16310), names the batch's last offset (`S:TimeIndex.java`, `S:LogValidator.java @ 3.7.1, 3.9.0`).
    Leaders of 0.10 that convert to magic 0 enter the timestamps that the conversion drops (`MemoryRecordsBuilder.java @
    0.10.2.2`, append): nothing in the log says what they were. Cleaners up to 1.1 leave batches without records out
    (`MemoryRecords.java @ 0.11.0.3, 2.0.1`, filterTo).
    """

    def __init__(self, data: bytes, base_offset: int) -> None:
        self._take(data, base_offset, used_entries(data, TIME_ENTRY_SIZE))
        self._offsets_rise = rises(self.offset)
        self.target = np.full(self.used.count, NOWHERE, np.int64)  # where the batch named begins
        self._batch = np.full(self.used.count, NOWHERE, np.int64)  # the timestamp of the batch named
        self._largest = np.full(self.used.count, NOWHERE, np.int64)  # the largest up to it
        self._largest_since = np.full(
            self.used.count, NOWHERE, np.int64
        )  # from the batch of the first entry on
        self._since = NOWHERE
        # Epochs of the batch of the first entry, and of the last one before it with a larger timestamp.
        self._first_epoch = self._larger_epoch = -1
        self._excused = np.zeros(self.used.count, bool)
        self._dropped = np.zeros(self.used.count, bool)  # the entry names magic 0, which has no timestamps
        self._largest_filled = np.full(self.used.count, NOWHERE, np.int64)  # the same without empty batches
        self.newest = NOWHERE  # the largest timestamp of the log so far
        self.newest_filled = NOWHERE  # the same of batches that have records
        self._end = 0
        self.last_offset_before = self.base_offset - 1

    def _take(self, data: bytes, base_offset: int, used: Used) -> None:
        self.data, self.base_offset, self.used = data, base_offset, used
        rows = np.frombuffer(data, TIME_ENTRY, used.count)
        self.timestamp = rows["timestamp"].astype(np.int64)
        self.offset = rows["relative_offset"].astype(np.int64) + base_offset

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
        near = rows_within(self.offset, self.last_offset_before, int(highest[-1]), self._offsets_rise)
        row = np.searchsorted(highest, self.offset[near])
        self.target[near] = sound.position[row]
        self._batch[near] = sound.max_timestamp[row]
        self._largest[near] = newest[row]
        self._largest_filled[near] = filled[row]
        self._note_epochs(sound, int(np.searchsorted(highest, self.offset[0])))
        since = highest_so_far(np.where(highest < self.offset[0], NOWHERE, sound.max_timestamp), self._since)
        self._largest_since[near] = since[row]
        self._since = int(since[-1])
        self._dropped[near] = sound.magic[row] == 0
        ended = np.concatenate(([self._end], sound.next_position[:-1]))
        before = np.concatenate(([self.last_offset_before], highest[:-1]))
        for gap in np.flatnonzero(sound.position > ended).tolist():
            self._excused |= (self.offset > before[gap]) & (self.offset < sound.base_offset[gap])
        self.newest, self.newest_filled = int(newest[-1]), int(filled[-1])
        self.last_offset_before, self._end = int(highest[-1]), int(sound.next_position[-1])

    def _note_epochs(self, sound: Headers, first: int) -> None:
        """`first` is the row of the batch of the first entry, beyond the last for one that follows."""
        larger = np.flatnonzero(sound.max_timestamp[:first] > self.timestamp[0])
        if larger.size:
            self._larger_epoch = int(sound.partition_leader_epoch[larger[-1]])
        if self._first_epoch < 0 and first < len(sound):
            self._first_epoch = int(sound.partition_leader_epoch[first])

    def excuse_tail(self) -> None:
        """Do not judge entries about what follows the last sound batch, as it is damaged."""
        self._excused |= self.offset > self.last_offset_before

    def unordered(self) -> Mask:
        """Entries whose timestamp is not above, or whose offset is below, that of the entry before."""
        wrong = np.zeros(self.used.count, bool)
        wrong[1:] = (self.timestamp[1:] <= self.timestamp[:-1]) | (self.offset[1:] < self.offset[:-1])
        return wrong

    def misplaced(self) -> Mask:
        """Entries that no append or recovery of this log has written."""
        largest = (self.timestamp == self._largest) | (self.timestamp == self._largest_filled)
        wrong = (self.timestamp != self._batch) | ~largest
        dropped = self._dropped & (self.timestamp > self._largest)
        judged: Mask = wrong & ~self._excused & ~dropped & ~self.forgetful()
        return judged

    def forgetful(self) -> Mask:
        """Entries that are the largest timestamp since the log was cut, where a larger one comes before.

        What follows a cut is of a later epoch.
        """
        if not 0 <= self._larger_epoch < self._first_epoch:
            return np.zeros(self.used.count, bool)
        known = (self.timestamp == self._batch) & (self.timestamp == self._largest_since)
        forgets: Mask = known & (self.timestamp < self._largest_filled)
        return forgets

    def is_complete(self) -> bool:
        """Whether the last entry has the largest timestamp of the log's records, or one that the log has no more."""
        last = int(self.timestamp[-1]) if self.used.count else NOWHERE
        largest = self._since if self.forgetful().any() else self.newest_filled
        return last >= largest or self.newest_filled < 0

    def why(self, entry: int) -> str:
        """What contradicts one misplaced entry."""
        if self._batch[entry] == NOWHERE:
            return f"the segment holds no such offset, its last is {self.last_offset_before}"
        if self.timestamp[entry] != self._batch[entry]:
            return f"the batch with that offset has timestamp {self._batch[entry]}"
        return f"timestamp {self._largest[entry]} comes before it"


# --- indexes that were compared with others at once ----------------------------------------------------


class SoundTimes(NamedTuple):
    """What is known of a time index that is right: where the batch of each entry begins, and the log's largest timestamp."""

    target: Ints
    newest: int


class ReadIndexes(NamedTuple):
    """The indexes of a segment as they were read, None for one that was not, and which of them are known to be right."""

    offset: bytes | None = None
    time: bytes | None = None
    is_sound: bool = False
    """Whether the offset index is."""
    sound_times: SoundTimes | None = None


NOTHING_READ = ReadIndexes()


def all_entries(data: bytes, width: int) -> Used:
    """Of an index that has nothing else."""
    return Used(len(data) // width, False, None, 0)


class SoundOffsetIndex(OffsetIndexCheck):
    """An offset index of which all entries are known to be right."""

    def __init__(self, data: bytes, base_offset: int) -> None:
        self._take(data, base_offset, all_entries(data, OFFSET_ENTRY_SIZE))

    def feed(self, headers: Headers) -> None:
        """They were compared."""

    def excuse_tail(self, log_size: int) -> None:
        """There is nothing to excuse."""

    def unordered(self) -> Mask:
        """None."""
        return np.zeros(self.used.count, bool)

    misplaced = unordered


class SoundTimeIndex(TimeIndexCheck):
    """A time index of which all entries are known to be right."""

    def __init__(self, data: bytes, base_offset: int, known: SoundTimes) -> None:
        self._take(data, base_offset, all_entries(data, TIME_ENTRY_SIZE))
        self.target, self.newest_filled = known

    def feed(self, headers: Headers) -> None:
        """They were compared."""

    def excuse_tail(self) -> None:
        """There is nothing to excuse."""

    def unordered(self) -> Mask:
        """None."""
        return np.zeros(self.used.count, bool)

    misplaced = forgetful = unordered


# --- findings -----------------------------------------------------------------------------------------

INDEX_INTERVAL_BYTES = 4096
FEWEST_WITNESSES = 3  # a clean stop adds an entry to the time index alone, but not that many that far apart


class IndexedLog(Struct, frozen=True):
    """The facts about a segment that checks of its indexes need."""

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
    def needs_entries(self) -> bool:
        """Whether an offset index must have entries: the first comes with the batch after the first interval."""
        return self.batches > 1 and self.size_in_bytes > 2 * INDEX_INTERVAL_BYTES

    @property
    def awaits_indexes(self) -> bool:
        """Whether the index files may not be there yet: since 2.4 the first append makes them, no roll does.

        (`core:LogSegment.scala`, ensureOffsetInRange, and `LazyIndex.scala @ 2.4.1`; KAFKA-7283.) A segment that
        retention rolled may stay empty for long, through clean stops too.
        """
        return self.is_last and self.is_sound and not self.batches

    @property
    def awaits_recovery(self) -> bool:
        """Whether a broker that was killed and starts may be at this segment: it takes the indexes away before it
        rebuilds them from the log (`K:log/Log.scala`, loadSegmentFiles @ 0.11.0.3)."""
        return self.is_last and self.is_sound and not self.is_clean and self.batches > 0


class OffsetIndex(Struct):
    """An offset index under examination."""

    report: FileReport
    check: OffsetIndexCheck

    def feed(self, headers: Headers) -> None:
        """The next batches of the log."""
        self.check.feed(headers)

    def hints(self) -> Ints | None:
        """Positions where batches may begin, for the walk; None where the index is out of order."""
        if not self.check.used.count or self.check.unordered().any():
            return None
        return self.check.target[self.check.target > 0]

    def finish(self, log: IndexedLog) -> None:
        """Report what is wrong, after the last batch of the log."""
        report, check = self.report, self.check
        report.base_offset = check.base_offset
        _say_padding(report, check.used, OFFSET_ENTRY_SIZE)
        if not log.is_sound:
            check.excuse_tail(log.size_in_bytes)
        wrong, unordered = check.misplaced(), check.unordered()
        stale = stale_from(wrong, unordered, check.used, log)
        for entry in np.flatnonzero((wrong | unordered)[:stale]).tolist():
            place = report.at(entry * OFFSET_ENTRY_SIZE, OFFSET_ENTRY_SIZE)
            details = {"entry": entry, "offset": int(check.offset[entry]), "target": int(check.target[entry])}
            if wrong[entry]:
                why = check.why(entry, log.size_in_bytes)
                report.say(codes.INDEX_ENTRY_MISPLACED, place, why=why, **details)
            else:
                report.say(codes.INDEX_ENTRY_UNORDERED, place, **details)
            report.damaged_bytes += OFFSET_ENTRY_SIZE
        _say_stale(report, stale, check.used, OFFSET_ENTRY_SIZE)
        _say_untrimmed(report, check.used, OFFSET_ENTRY_SIZE, log)
        if not check.used.count and log.needs_entries:
            report.say(codes.INDEX_EMPTY, size=log.size_in_bytes)
        if log.is_last and log.is_clean and log.is_sound and wrong.any():
            self._report_clean_start(wrong, log)

    def _report_clean_start(self, wrong: Mask, log: IndexedLog) -> None:
        """After a clean shutdown the log's end is looked for from the last entry on."""
        check, last = self.check, self.check.used.count - 1
        if check.used.is_padded or not wrong[last]:
            return
        target = int(check.target[last])
        place = self.report.at(last * OFFSET_ENTRY_SIZE, OFFSET_ENTRY_SIZE)
        if check.offset[last] >= log.log_end_offset or not 0 <= target < log.size_in_bytes:
            why = check.why(last, log.size_in_bytes)
            self.report.say(
                codes.INDEX_HIDES_RECORDS, place, why=why, log_end=log.base_offset, truth=log.log_end_offset
            )
        elif not check.is_boundary(last):
            self.report.say(codes.INDEX_STOPS_LOADING, place, target=target)


class TimeIndex(Struct):
    """A time index under examination."""

    report: FileReport
    check: TimeIndexCheck

    def feed(self, headers: Headers) -> None:
        """The next batches of the log."""
        self.check.feed(headers)

    def finish(self, log: IndexedLog, offsets: OffsetIndex | None) -> None:
        """Report what is wrong, after the last batch of the log; `offsets` is the offset index beside it.

        From 2.3 on (KAFKA-7283) a broker reads the latest timestamp from the time index when it first needs it. One that
        starts and truncates the segment before that cuts the only entry off first, takes the segment for one without
        timestamps, and rolls it without an entry, or enters what is appended from then on (`core:LogSegment.scala @ 2.3.1`, `S:LogSegment.java @ 3.9.0-rc3`,
        truncateTo). Such a segment is short of an entry in its offset index too.
        """
        report, check = self.report, self.check
        report.base_offset = check.base_offset
        _say_padding(report, check.used, TIME_ENTRY_SIZE)
        if not log.is_sound:
            check.excuse_tail()
        wrong, unordered = check.misplaced(), check.unordered()
        if (forgetful := np.flatnonzero(check.forgetful())).size:
            first = int(forgetful[0])
            report.say(
                codes.TIME_INDEX_FORGETS,
                report.at(first * TIME_ENTRY_SIZE, TIME_ENTRY_SIZE),
                count=len(forgetful), entry=first, timestamp=int(check.timestamp[first]), why=check.why(first),
            )  # fmt: skip
        stale = stale_from(wrong, unordered, check.used, log)
        for entry in np.flatnonzero((wrong | unordered)[:stale]).tolist():
            place = report.at(entry * TIME_ENTRY_SIZE, TIME_ENTRY_SIZE)
            details = {
                "entry": entry,
                "timestamp": int(check.timestamp[entry]),
                "offset": int(check.offset[entry]),
            }
            if wrong[entry]:
                report.say(codes.TIME_INDEX_ENTRY_WRONG, place, why=check.why(entry), **details)
            else:
                report.say(codes.TIME_INDEX_ENTRY_UNORDERED, place, **details)
            report.damaged_bytes += TIME_ENTRY_SIZE
        _say_stale(report, stale, check.used, TIME_ENTRY_SIZE)
        _say_untrimmed(report, check.used, TIME_ENTRY_SIZE, log)
        if log.is_last or not log.is_sound or (wrong | unordered).any():
            return
        is_left_so = (
            not check.data and offsets is not None and not offsets.check.data and not log.needs_entries
        )
        if is_left_so and not check.is_complete():
            report.say(codes.TIME_INDEX_EMPTY, latest=check.newest_filled)
        elif not check.is_complete():
            last = int(check.timestamp[-1]) if check.used.count else "none"
            report.say(codes.TIME_INDEX_INCOMPLETE, last=last, latest=check.newest_filled)


def _say_entries_missing(offsets: OffsetIndex, times: TimeIndex, log: IndexedLog) -> None:
    """Report an offset index that ends before the time index that was written with it.

    Entries are `index.interval.bytes` apart at least, which the entries that are there tell; a time index
    gets one more at a roll and at each clean stop (`S:LogSegment.java @ 3.9.0`, append). After a stop the bytes are
    counted again, and what a follower fetches at once gets one entry in front of it or none.
    """
    offset_index, time_index = offsets.check, times.check
    if log.is_last or not log.is_sound or offset_index.used.is_padded or offset_index.misplaced().any():
        return
    apart = np.diff(offset_index.target, prepend=0)
    interval = int(apart.min()) if len(apart) else INDEX_INTERVAL_BYTES
    last_offset, end = (int(offset_index.offset[-1]), int(offset_index.target[-1])) if len(apart) else (-1, 0)
    behind = np.flatnonzero(time_index.offset > last_offset)
    distances = np.diff(time_index.target[behind], prepend=end)[:-1]  # the last is the roll's
    count, tail = len(behind), log.size_in_bytes - end
    if int((distances >= interval).sum()) >= FEWEST_WITNESSES and tail >= count * interval * 3 // 4:
        place = offsets.report.at(offsets.report.size_in_bytes, 0)
        offsets.report.say(codes.INDEX_ENTRIES_MISSING, place, tail=tail, count=count)


def _say_untrimmed(report: FileReport, used: Used, width: int, log: IndexedLog) -> None:
    """Kafka trims the indexes of a segment when it rolls it."""
    if used.is_padded and used.dirty_entry is None and not log.is_last and log.is_sound:
        start = used.count * width
        size = report.size_in_bytes - used.fragment - start
        report.say(codes.INDEX_UNTRIMMED, report.at(start, size), entry=used.count)
        report.damaged_bytes += size


def stale_from(wrong: Mask, unordered: Mask, used: Used, log: IndexedLog) -> int:
    """The first of the entries that may be left from before a truncation; the number of entries if there are none.

    Entries that a truncation left fit the log up to some entry and not beyond. Where an entry that fits follows a wrong
    one, the wrong one is damaged.
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
        report.say(codes.INDEX_STALE_TAIL, place, count=count, entry=stale)


def _say_fragment(report: FileReport, fragment: int, width: int) -> None:
    """Report the bytes at the end of a file that are no whole entry."""
    if fragment:
        place = report.at(report.size_in_bytes - fragment, fragment)
        report.say(codes.INDEX_FRAGMENT, place, count=fragment, width=width)
        report.damaged_bytes += fragment


def _say_padding(report: FileReport, used: Used, width: int) -> None:
    _say_fragment(report, used.fragment, width)
    if used.dirty_entry is not None:
        place = report.at(used.dirty_entry * width, width)
        report.say(codes.INDEX_PADDING_DIRTY, place, entry=used.dirty_entry)
        report.damaged_bytes += width


class Indexes(Struct):
    """The indexes of a segment, opened."""

    offset: OffsetIndex | None = None
    time: TimeIndex | None = None

    def all(self) -> list[OffsetIndex | TimeIndex]:
        """The indexes that exist."""
        return [index for index in (self.offset, self.time) if index is not None]

    def finish(self, log: IndexedLog) -> None:
        """Report what is wrong with them, after the last batch of the log."""
        if self.offset:
            self.offset.finish(log)
        if self.time:
            self.time.finish(log, self.offset)
        if self.offset and self.time:
            _say_entries_missing(self.offset, self.time, log)


def open_indexes(
    segment: LogSegment, report_of: Callable[[FolderFile], FileReport], read: ReadIndexes | None = None
) -> Indexes:
    """The offset and the time index of a segment, read and ready to be fed; what was `read` before is not read again."""
    opened, base_offset = Indexes(), segment.base_offset
    read = read or NOTHING_READ
    if segment.index:
        report = report_of(segment.index)
        data = _data_of(segment.index, report, read.offset)
        if data is not None:
            compared = SoundOffsetIndex if read.is_sound else OffsetIndexCheck
            opened.offset = OffsetIndex(report, compared(data, base_offset))
    if segment.time_index:
        report = report_of(segment.time_index)
        data = _data_of(segment.time_index, report, read.time)
        if data is not None:
            known = read.sound_times
            times = SoundTimeIndex(data, base_offset, known) if known else TimeIndexCheck(data, base_offset)
            opened.time = TimeIndex(report, times)
    return opened


def _data_of(file: FolderFile, report: FileReport, data: bytes | None) -> bytes | None:
    if data is None:
        return read_small(file.path, report, is_padded=True)
    take_small(data, report, is_padded=True)
    return data


# --- the transaction index ----------------------------------------------------------------------------


def check_transaction_index(
    file: FolderFile,
    report: FileReport,
    aborted: Sequence[Aborted],
    *,
    log_start: int,
    is_known: bool,
    awaits_recovery: bool = False,
) -> None:
    """Compare the entries of a file with the aborted transactions that the segment's markers end.

    An entry stands in the index of the segment that holds the marker; the transaction may have begun in an
    earlier one. Compaction takes batches and with them the beginnings away, so entries that lack theirs are only
    compared with the marker, if that is still in the log (`S:TransactionIndex.java @ 3.9.0`). `is_known` is False if
    compaction or damage may have taken batches away. `awaits_recovery`: the next start empties the index and writes it anew;
    a broker may have been at it.
    """
    assert file.named is not None
    data = read_small(file.path, report)
    if data is None:
        return
    report.base_offset = file.named.base_offset
    _say_fragment(report, len(data) % ABORTED_SIZE, ABORTED_SIZE)
    by_marker = {transaction.entry.last_offset: transaction for transaction in aborted}
    right_markers: set[int] = set()
    highest = -1
    for number, entry in enumerate(entries_of(AbortedTransaction, data)):
        why = _why_wrong_transaction(entry, by_marker.get(entry.last_offset), highest, log_start, is_known)
        _say_transaction(report, number, entry, why, file.named.base_offset)
        highest = max(highest, entry.last_offset)
        awaits_recovery &= not why
        if not why:
            right_markers.add(entry.last_offset)
    say_transactions_missing(report, aborted, right_markers, is_known, awaits_recovery=awaits_recovery)


def _why_wrong_transaction(
    entry: AbortedTransaction, aborted: Aborted | None, highest: int, log_start: int, is_known: bool
) -> str:
    """Why no broker wrote this entry from this log; empty where one may have."""
    if entry.last_offset <= highest:
        return f"which does not come after the entry before it, that ends at {highest}"
    if entry.first_offset > entry.last_offset:
        return "which ends before it begins"
    if aborted is None:
        return "but the log has no ABORT marker there" if is_known else ""
    if entry.producer_id != aborted.entry.producer_id:
        return f"but the ABORT marker there is of producer {aborted.entry.producer_id}"
    if not aborted.has_beginning:
        # Older brokers take the marker of a transaction without records for its beginning, too.
        is_empty = entry.first_offset == entry.last_offset
        should_begin = is_known and entry.first_offset >= log_start and not is_empty
        return "but the log has no batch of it" if should_begin else ""
    if not is_known:
        return ""
    if entry.first_offset != aborted.entry.first_offset:
        return f"but it begins at offset {aborted.entry.first_offset}"
    stable = (aborted.entry.last_stable_offset, aborted.next_first_offset)
    if entry.last_stable_offset not in stable and log_start == 0:
        return (
            f"with last stable offset {entry.last_stable_offset},"
            f" where {aborted.entry.last_stable_offset} is right"
        )
    return ""


def _say_transaction(report: FileReport, number: int, entry: AbortedTransaction, why: str, base: int) -> None:
    place = report.at(number * ABORTED_SIZE, ABORTED_SIZE)
    if entry.version:
        report.say(codes.TRANSACTION_INDEX_VERSION, place, entry=number, version=entry.version)
    if entry.last_offset < base:
        report.say(
            codes.TRANSACTION_INDEX_BEFORE_SEGMENT, place, entry=number, last=entry.last_offset, base=base
        )
    elif why:
        details = {"producer_id": entry.producer_id, "first": entry.first_offset, "last": entry.last_offset}
        report.say(codes.TRANSACTION_INDEX_EXTRA, place, entry=number, why=why, **details)
    elif not entry.version:
        return
    report.damaged_bytes += ABORTED_SIZE


def say_transactions_missing(
    report: FileReport,
    aborted: Sequence[Aborted],
    right_markers: set[int],
    is_known: bool,
    *,
    awaits_recovery: bool = False,
) -> None:
    """Aborted transactions that have no entry, though their batches are in the log."""
    newest = max(right_markers, default=-1)
    for transaction in aborted:
        if transaction.has_beginning and is_known and transaction.entry.last_offset not in right_markers:
            if awaits_recovery and transaction.entry.last_offset > newest:
                report.say(codes.TRANSACTION_INDEX_AWAITS, None, first=transaction.entry.last_offset)
                return
            details = {"producer_id": transaction.entry.producer_id, "marker": transaction.entry.last_offset}
            report.say(codes.TRANSACTION_INDEX_LACKS, None, first=transaction.entry.first_offset, **details)


# --- copies of the indexes of remote segments ---------------------------------------------------------

WIDTHS = {".index": OFFSET_ENTRY_SIZE, ".timeindex": TIME_ENTRY_SIZE, ".txnindex": ABORTED_SIZE}


def check_index_cache(folder: Path, place: Place, options: CheckOptions) -> Report:
    """The files of a broker's `remote-log-index-cache`; unfinished and deleted ones are left out.

    They are compared with their tier elsewhere; here only their own order counts. A copy that is damaged is read
    by the broker as it is (`S:RemoteIndexCache.java @ 3.9.0`).
    """
    from formats.tier.broker_files import parse_cached_index

    cache_report = Report()
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return cache_report
    for name in names:
        cached = parse_cached_index(name)
        path = folder / name
        if cached is None or cached.left_over or path.is_symlink() or not path.is_file():
            continue
        where = replace(
            place, file=f"{place.file}/{name}", remote_log_segment_id=cached.remote_log_segment_id
        )
        report = cache_report.file(where, cached.suffix.removeprefix("."), path.stat().st_size, options)
        report.base_offset = cached.start_offset
        data = read_small(path, report, is_padded=True)
        if data is not None:
            _check_cached(report, data, cached.suffix, cached.start_offset)
    return cache_report


def _check_cached(report: FileReport, data: bytes, suffix: str, base_offset: int) -> None:
    width = WIDTHS[suffix]
    _say_padding(report, used_entries(data, width), width)
    if suffix == ".index":
        offsets = OffsetIndexCheck(data, base_offset)
        for entry in np.flatnonzero(offsets.unordered()).tolist():
            details = {
                "entry": entry,
                "offset": int(offsets.offset[entry]),
                "target": int(offsets.target[entry]),
            }
            report.say(codes.INDEX_ENTRY_UNORDERED, report.at(entry * width, width), **details)
            report.damaged_bytes += width
    elif suffix == ".timeindex":
        times = TimeIndexCheck(data, base_offset)
        for entry in np.flatnonzero(times.unordered()).tolist():
            details = {
                "entry": entry,
                "timestamp": int(times.timestamp[entry]),
                "offset": int(times.offset[entry]),
            }
            report.say(codes.TIME_INDEX_ENTRY_UNORDERED, report.at(entry * width, width), **details)
            report.damaged_bytes += width
