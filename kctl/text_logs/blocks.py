"""Blocks of records: a source read a megabyte at a time, each record with its place and its time in UTC."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from datetime import date
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from formats.arrays import Ints, Mask
from formats.broker_logs.layouts import KAFKA, CarriedLayout, is_export
from formats.broker_logs.line import DAY, RecordPlaces, find_records
from formats.broker_logs.template import Template
from formats.values import Struct, field, replace
from kctl.errors import reason_of
from kctl.findings import Finding
from kctl.findings import state_log as codes
from kctl.text_logs.containers import numbered, only, part_lines
from kctl.text_logs.log_files import LogFile, LogSource
from kctl.text_logs.opening import CHUNK, STDIN, chunks_of
from kctl.text_logs.zones import UNKNOWN, Zone

BEFORE_ALL = np.iinfo(np.int64).min
NO_BROKER = -1
# A record that has not ended after so many bytes is given out in pieces, so that memory stays bounded.
LONGEST = 16 << 20
# Such pieces of all sources of a merge that are held at once; where they are more, further ones are of one chunk.
ROOM = 32 << 20
JUMP_BACK = 1000
# How many records of a block are kept for the one after it, and how much of each.
# Kafka's first year; before it and long after today a clock or a calendar is wrong.
FIRST_YEAR = 2011
EARLIEST = (date(FIRST_YEAR, 1, 1).toordinal() - 719_163) * DAY
# Java prints the years of the Buddhist calendar in Thai locales.
BUDDHIST = 543
REMEMBERED = 64
REMEMBERED_SIZE = 2000
# Bytes of them together: the last one of a damaged file may be as long as a block.
MOST_REMEMBERED = 1 << 20


Span = tuple[str, str, int, int]


class Shape(NamedTuple):
    """What all lines of one shape share; places count from the start of the record."""

    template: Template | None
    id: str | None
    level: str
    logger: str | None
    message: tuple[int, int]
    """Where the message stands, its identity included."""
    spans: tuple[Span, ...]
    speaker: tuple[Span, ...]
    """The ids and epochs of the identity."""
    partition: tuple[int, int] | None
    """Where the identity names a partition."""
    state: tuple[tuple[int, int], ...] = ()
    """Where the partition, its state and who sent it stand: what repeated lines repeat."""
    is_record: bool = True
    writer: tuple[int, int] | None = None
    """Where the id of the broker that wrote it stands."""


class Earlier(NamedTuple):
    """A record before those of a block, for checks that look back."""

    file: str
    line: int
    time_ms: int | None
    broker_id: int | None
    """The broker that wrote it; None where that is not known."""
    record: bytes

    def proof(self) -> dict[str, object]:
        """What to point at, as `Event.proof`."""
        text = self.record.partition(b"\n")[0].rstrip(b"\r").decode("utf-8", "backslashreplace")
        return {
            "file": self.file,
            "line": self.line,
            "broker_id": self.broker_id,
            "event": None,
            "text": text[:1000],
        }


class Block(Struct, dict=True):
    """Records of one file that follow each other, or those of them that a filter left."""

    source: int
    """Rank of the source in the merge."""
    file: LogFile
    data: bytes
    starts: Ints
    ends: Ints
    times: Ints
    """UTC milliseconds; `BEFORE_ALL` for bytes before the first record of a file."""
    keys: Ints
    """What the merge orders by: the greatest time so far in the source."""
    last_key: int
    """The key of the last record that was read, filtered out or not."""
    first_line: int
    """Number of the line that `data` starts with."""
    line_ends: Ints
    """Where the line ends of `data` are."""
    shift: int = 0
    """Milliseconds that were added to the keys because the broker's clock is off."""
    before: Block | None = None
    """The last records of the block before it in the source."""
    brokers: Ints | None = None
    """The broker of each record, where the file is not of one broker alone; `NO_BROKER` where that is not known."""
    numbers: Ints | None = None
    """The number of each line of `data`, where lines between them were left out."""

    @cached_property
    def rows(self) -> Ints:
        """Which line of `data` each record starts with, from 0."""
        return np.searchsorted(self.line_ends, self.starts)

    @cached_property
    def lines(self) -> Ints:
        """The line number of each record."""
        return self._numbers_at(self.starts)

    def _numbers_at(self, starts: Ints) -> Ints:
        rows = np.searchsorted(self.line_ends, starts)
        return rows + self.first_line if self.numbers is None else self.numbers[rows]

    @cached_property
    def places(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Starts, ends, times and keys as lists, which are quicker to look up one by one."""
        return self.starts.tolist(), self.ends.tolist(), self.times.tolist(), self.keys.tolist()

    def time_of(self, index: int) -> int | None:
        """UTC milliseconds of one record; None for bytes before the first record of a file.

        Threads take the time before they take the file, so that a record may be some milliseconds older than
        the one before it: it counts as written with that one. A clock that steps back is told as it is.
        """
        _, _, times, keys = self.places
        time = times[index]
        latest = keys[index] - self.shift
        if time == BEFORE_ALL:
            return None
        return _told_time(time, latest)

    def line_of(self, index: int) -> int:
        """The line number of one record."""
        return int(self.lines[index])

    def record(self, index: int) -> bytes:
        """The bytes of one record as the logger wrote them, its last line end included."""
        starts, ends, _, _ = self.places
        return self.data[starts[index] : ends[index]]

    @cached_property
    def _broker_ids(self) -> list[int | None]:
        brokers = [] if self.brokers is None else self.brokers.tolist()
        return [None if broker == NO_BROKER else broker for broker in brokers]

    def broker_at(self, index: int) -> int | None:
        """The broker that wrote a record, as far as it does not say so itself."""
        return self.file.broker_id if self.brokers is None else self._broker_ids[index]

    def earlier(self, index: int) -> Earlier:
        """One record, to look back at."""
        start = int(self.starts[index])
        end = min(int(self.ends[index]), start + REMEMBERED_SIZE)
        time, latest = int(self.times[index]), int(self.keys[index]) - self.shift
        line = int(self._numbers_at(self.starts[index : index + 1])[0])
        time_ms = None if time == BEFORE_ALL else _told_time(time, latest)
        return Earlier(self.file.file, line, time_ms, self.broker_at(index), self.data[start:end])

    def tail(self) -> Block:
        """Its last records, some dozens, without the rest of its bytes."""
        count = len(self.starts)
        near = int(np.searchsorted(self.starts, len(self.data) - MOST_REMEMBERED))
        first = max(count - REMEMBERED, min(near, count - 1), 0)
        cut = int(self.starts[first]) if len(self.starts) else len(self.data)
        row = int(np.searchsorted(self.line_ends, cut))
        return Block(
            self.source, self.file, self.data[cut : cut + MOST_REMEMBERED], self.starts[first:] - cut, self.ends[first:] - cut,
            self.times[first:], self.keys[first:], self.last_key, self.first_line + row,
            self.line_ends[row:] - cut, self.shift,
            brokers=None if self.brokers is None else self.brokers[first:],
            numbers=None if self.numbers is None else self.numbers[row:],
        )  # fmt: skip

    def only(self, keep: Mask) -> Block:
        """The same block with some of its records."""
        if keep.all():
            return self
        brokers = None if self.brokers is None else self.brokers[keep]
        return Block(
            self.source, self.file, self.data, self.starts[keep], self.ends[keep], self.times[keep],
            self.keys[keep], self.last_key, self.first_line, self.line_ends, self.shift, self.before,
            brokers, self.numbers,
        )  # fmt: skip


def _told_time(time: int, latest: int) -> int:
    return latest if latest - time <= JUMP_BACK else time


def linked(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same blocks of one source, each with the last records of the one before it."""
    before: Block | None = None
    for block in blocks:
        block.before, before = before, block.tail()
        yield block


class Reading(Struct):
    """Findings and counts of reading a set of sources."""

    findings: list[Finding] = field(default_factory=list)
    lines: int = 0
    records: int = 0
    duplicates: int = 0
    levels: dict[int | None, set[str]] = field(default_factory=dict)
    held_bytes: int = 0
    """Bytes of records given out in pieces that a merge holds, one piece of each source."""


Filter = Callable[[Block], Block]


def blocks_of(
    source: LogSource, rank: int, zone: Zone | None, reading: Reading, *, chunk: int = CHUNK, skip: int = 0
) -> Iterator[Block]:
    """The records of a source, part after part in the order of the source, without `skip` bytes of its first part."""
    state = _State(rank, zone or UNKNOWN, reading)
    for file in source.files:
        try:
            yield from _blocks_of_file(file, state, chunk, skip if file is source.files[0] else 0)
        except OSError as error:
            reading.findings.append(codes.LOG_UNREADABLE.at(file.place, reason=reason_of(error)))


class _State(Struct):
    rank: int
    zone: Zone
    reading: Reading
    key: int = BEFORE_ALL
    time: int | None = None
    line: int = 1
    told_back: str = ""
    told_year: str = ""
    numbers: array[int] | None = None
    """The numbers of the lines to come, where those of one container are read alone."""
    days: int = 0
    """How many midnights have passed in a file whose lines say the time of day alone."""
    clock: int = 0

    def dated(self, millis: Ints, day: int) -> Ints:
        """Times of day as times: where one is far less than the one before, midnight has passed."""
        if not len(millis):
            return millis
        days = self.days + np.cumsum(np.diff(millis, prepend=self.clock) < -DAY // 2)
        self.days, self.clock = int(days[-1]), int(millis[-1])
        return day + days * DAY + millis


def _blocks_of_file(file: LogFile, state: _State, chunk: int, skip: int = 0) -> Iterator[Block]:
    state.line, state.told_back, state.told_year = 1, "", ""
    state.days = state.clock = 0
    damage: list[str] = []
    rest: list[bytes] = []
    waiting_bytes = 0
    # A shorter piece is mostly the end of a file: only its last record is then left for a block of its own.
    # Standard input may stay open for long.
    least = wait_for = 0 if file.path == STDIN else chunk
    # The lines of an export are found from its start on.
    as_written = not is_export(file.layout)
    skip = skip if as_written or file.part else 0
    opened = file.part or file.path
    as_written = as_written or bool(file.part)
    pieces = chunks_of(opened, damage.append, size=chunk, ahead=True, skip=skip, is_as_written=as_written)
    origin = file.layout.origin if isinstance(file.layout, CarriedLayout) and file.container else None
    state.numbers = None
    if file.part:
        state.numbers = array("q")
        pieces = part_lines(pieces, file.part, state.numbers)
    elif origin and file.container:
        state.numbers = array("q")
        pieces = only(pieces, origin, file.container, state.numbers, is_first=file.is_first)
    elif not as_written:
        state.numbers = array("q")
        pieces = numbered(pieces, state.numbers)
    for piece in pieces:
        rest.append(piece)
        waiting_bytes += len(piece)
        is_longest = waiting_bytes >= min(LONGEST, max(chunk, ROOM - state.reading.held_bytes))
        if waiting_bytes < wait_for and not is_longest:
            continue
        data = b"".join(rest)
        rest.clear()  # before the block is given out, which may be held for long
        cut = data.rfind(b"\n") + 1
        records = _found(file, data, cut)
        if records is not None and len(records.starts) >= 2:
            end = int(records.starts[-1])
            yield _block(file, state, data, end, records)
            data = data[end:]
            wait_for = least
        elif is_longest and waiting_bytes > chunk:
            none = np.empty(0, np.int64)
            state.reading.held_bytes += waiting_bytes
            yield _block(file, state, data, len(data), records or RecordPlaces(none, none, none))
            state.reading.held_bytes -= waiting_bytes
            data, wait_for = b"", least
        else:
            wait_for = 2 * waiting_bytes
        rest, waiting_bytes = [data] if data else [], len(data)
    data = b"".join(rest)
    if data:
        if not data.endswith(b"\n"):
            data += b"\n"
        records = file.layout.find(data)
        yield _block(file, state, data, len(data), records)
    for reason in damage:
        finding = codes.LOG_GZIP_DAMAGED.at(file.place, lines=state.line - 1, reason=reason)
        state.reading.findings.append(finding)


def _found(file: LogFile, data: bytes, cut: int) -> RecordPlaces | None:
    """The records in the first `cut` bytes."""
    if not cut:
        return None
    if file.layout is KAFKA:
        return find_records(memoryview(data)[:cut])
    return file.layout.find(data[:cut])


def _block(file: LogFile, state: _State, data: bytes, end: int, records: RecordPlaces) -> Block:
    """A block of the records that start before `end`; what stands before the first of them has its own place."""
    if isinstance(file.layout, CarriedLayout):
        file, data, records = _without_carrier(file, file.layout, data[:end], records)
        end = len(data)
    count = int(np.searchsorted(records.starts, end))
    starts, millis = records.starts[:count], records.millis[:count]
    if file.day is not None:
        millis = state.dated(millis, file.day)
    times = millis if file.is_utc else state.zone.to_utc(millis, state.time)
    times = _with_likely_years(times, starts, file, data, state)
    if not len(starts) or starts[0] > 0:
        starts = np.concatenate((np.zeros(1, np.int64), starts))
        times = np.concatenate((np.array([BEFORE_ALL]), times))
    keys = np.maximum.accumulate(times)
    np.maximum(keys, state.key, out=keys)
    line_ends = records.line_ends
    if line_ends is None:
        line_ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    ends = np.append(starts[1:], end)
    lines = int(np.searchsorted(line_ends, end))
    numbers = None
    if state.numbers is not None:
        numbers = np.array(state.numbers[: lines + 1], np.int64)
        del state.numbers[:lines]
    block = Block(
        state.rank,
        file,
        data,
        starts,
        ends,
        times,
        keys,
        int(keys[-1]),
        state.line,
        line_ends,
        numbers=numbers,
    )
    _watch_clock(block, state)
    state.key = block.last_key
    if times[-1] != BEFORE_ALL:
        state.time = int(times[-1])
    state.line += lines
    state.reading.lines += lines
    state.reading.records += len(starts)
    return block


def _without_carrier(
    file: LogFile, layout: CarriedLayout, data: bytes, records: RecordPlaces
) -> tuple[LogFile, bytes, RecordPlaces]:
    """The lines as the logger wrote them, as many as there are, in the layout below the carrier."""
    data_ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    bare = layout.bare(data)
    line_ends = np.flatnonzero(np.frombuffer(bare, np.uint8) == 10)
    within = records.starts < len(data)
    rows = np.searchsorted(data_ends, records.starts[within])
    starts = np.concatenate((np.zeros(1, np.int64), line_ends + 1))[rows]
    return _below(file, layout), bare, RecordPlaces(starts, records.millis[within], line_ends)


@lru_cache(64)
def _below(file: LogFile, layout: CarriedLayout) -> LogFile:
    return replace(file, layout=layout.innermost)


def _with_likely_years(times: Ints, starts: Ints, file: LogFile, data: bytes, state: _State) -> Ints:
    """The times, those of unlikely years as of the Buddhist calendar, or else as of the record before or after."""
    latest = time.time_ns() // 1_000_000 + 366 * DAY
    wrong = (times < EARLIEST) | (times > latest)
    if not wrong.any():
        return times
    first = int(np.argmax(wrong))
    if state.told_year != file.file:
        state.told_year = file.file
        row = data.count(b"\n", 0, int(starts[first]))
        line = state.line + row if state.numbers is None else state.numbers[row]
        year = date.fromordinal(int(times[first]) // DAY + 719_163).year
        state.reading.findings.append(codes.LOG_YEAR_UNLIKELY.at(file.place, line=line, year=year))
    times = times.copy()
    for day in np.unique(times[wrong] // DAY).tolist():
        then = date.fromordinal(day + 719_163)
        if then.year - BUDDHIST >= FIRST_YEAR and then.isoformat()[5:] != "02-29":
            here = then.replace(year=then.year - BUDDHIST).toordinal() - 719_163
            times[wrong & (times // DAY == day)] += (here - day) * DAY
    wrong = (times < EARLIEST) | (times > latest)
    likely = np.flatnonzero(~wrong)
    known = times[likely]
    if state.time is not None:
        likely, known = np.concatenate(([-1], likely)), np.concatenate(([state.time], known))
    if len(likely):
        places = np.flatnonzero(wrong)
        times[places] = known[np.maximum(np.searchsorted(likely, places) - 1, 0)]
    return times


def _watch_clock(block: Block, state: _State) -> None:
    """Report, once a file, a clock that goes back by more than the order of two threads explains."""
    if state.told_back == block.file.file or not len(block.times):
        return
    behind = block.keys - block.times
    if block.times[0] == BEFORE_ALL:
        behind[0] = 0
    worst = int(np.argmax(behind > JUMP_BACK))
    if behind[worst] > JUMP_BACK:
        state.told_back = block.file.file
        finding = codes.LOG_CLOCK_BACK.at(
            block.file.place, seconds=int(behind[worst]) / 1000, line=block.line_of(worst)
        )
        state.reading.findings.append(finding)


def records_of(source: LogSource, zone: Zone | None, since: int) -> Iterator[tuple[int, bytes]]:
    """Key and bytes of each record of a source from a key on, for comparing copies."""
    for block in blocks_of(source, 0, zone, Reading()):
        first = int(np.searchsorted(block.keys, since))
        for index, key in enumerate(block.keys[first:].tolist(), first):
            yield key, block.record(index)


def is_stdin(source: LogSource) -> bool:
    """Whether a source can be read only once."""
    return any(file.path == STDIN for file in source.files)
