"""A log line's head: time, level, logger, the identity of who speaks, and the sentence; and where records start.

Kafka's brokers write `[%d] %p %m (%c)%n` (config/log4j.properties @ 0.8.0 to 3.9.0): a local time without a
zone, the level, the message, the logger. A record is a line with such a head and the lines without one that
follow it: stack traces, and messages that hold line ends.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
HEAD = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] ([A-Z]+) (.*)", re.DOTALL)
LOGGER = re.compile(rb"(.*) \(([\w.$]+)(?::\d+)?\)[ \t\r]*", re.DOTALL)
LOGGER_AT_LINE_END = re.compile(rb" \(([\w.$]+)(?::\d+)?\)[ \t\r]*(?:\n|\Z)")
HEAD_SIZE = 25
DAY = 86_400_000

# Identities. State changes name the speaker in the message before 1.0 and in brackets since; from 1.1 the
# lines of a failed change carry both.
STATE_IDENTITY = re.compile(
    rb"(?:\[(?:Controller|Broker) id=(-?\d+)(?: epoch=(-?\d+))?\] )?"
    rb"(?:(?:Controller|Broker) (-?\d+) (?:epoch (-?\d+) )?)?"
)
# `[Controller 1]: `, `[Partition state machine on Controller 1]: `, `[KafkaServer id=1] `, `[ReplicaFetcher...] `,
# `[Log partition=t-0, dir=/d] `; 0.8 to 0.11: `Partition [t,0] on broker 1: `.
IDENTITY = re.compile(rb"(?:\[[A-Za-z][^\]\n]*\](?:: |, | )|Partition \[[^\]\n]*\] on broker \d+: )")
IDENTITY_PARTITION = re.compile(
    rb"\[(?:Partition |(?:Unified|Local)?Log(?:Loader)? partition=|LeaderEpochCache "
    rb"|ProducerStateManager partition=|RemoteLogManager=\d+ partition=[\w-]{22}:)([\w.-]+-\d+)"
    rb"|Partition \[([\w.-]+, ?\d+)\] on broker"
)
IDENTITY_BROKER = re.compile(
    rb"\[(?:Controller|Broker|KafkaServer|BrokerServer|ControllerServer|QuorumController|BrokerLifecycleManager)"
    rb" id=(\d+)|\[Kafka Server (\d+)\]|\[(?:Replica Manager on Broker|Controller) (\d+)\]"
    rb"|\[(?:ReplicaManager|GroupCoordinator) broker=(\d+)\]|\] [A-Z]+ (?:Controller|Broker) (\d+) "
    rb"|on [Bb]roker (\d+)\]|\[Partition [\w.-]+ broker=(\d+)\]"
)


class Head(NamedTuple):
    """A record taken apart."""

    time: bytes
    level: str
    logger: str | None
    """None where the line is cut off before its end, or its layout has no logger."""
    message: bytes
    """Without logger and stack trace, with the identity."""


def split_head(record: bytes) -> Head | None:
    """The head of a record of Kafka's own layout; None for bytes that have none."""
    match = HEAD.match(record)
    if not match:
        return None
    first, _, more = match[3].partition(b"\n")
    whole = LOGGER.fullmatch(first)
    if whole:
        return Head(match[1], match[2].decode(), whole[2].decode(), whole[1])
    # The message itself holds line ends: the logger stands at the end of a later line, or was cut off.
    end = LOGGER_AT_LINE_END.search(match[3]) if more else None
    if end:
        return Head(match[1], match[2].decode(), end[1].decode(), match[3][: end.start()])
    return Head(match[1], match[2].decode(), None, first.rstrip(b"\r"))


def broker_named(data: bytes) -> int | None:
    """The id of the broker that wrote these lines, from the first identity that has one."""
    for match in IDENTITY_BROKER.finditer(data):
        return int(next(group for group in match.groups() if group is not None))
    return None


# --- where records start --------------------------------------------------------------------------------

_ZERO = [int.from_bytes(text, "big") for text in (b"0000-00-", b"00 00:00", b":00,000]")]
# Which bytes of the three words are separators: those must be equal, the others digits.
_MARKS = [
    int.from_bytes(bytes(0 if byte == 0x30 else 0xFF for byte in text), "big")
    for text in (b"0000-00-", b"00 00:00", b":00,000]")
]
_HIGH = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIX = np.uint64(0x0606060606060606)


class Records(NamedTuple):
    """Where the records of a run of bytes start, and when each says it was written."""

    starts: Int64s
    millis: Int64s
    """Local time of the writer as milliseconds since 1970-01-01 00:00 of its own clock."""


def find_records(data: bytes | memoryview) -> Records:
    """The records of Kafka's own layout in whole lines, all heads of a block at once.

    A head needs `[yyyy-MM-dd HH:mm:ss,SSS]` with a date and time that exist; anything else continues the
    record before it.
    """
    size = len(data)
    none = np.empty(0, np.int64)
    if size < HEAD_SIZE:
        return Records(none, none)
    octets = np.frombuffer(data, np.uint8)
    starts = np.concatenate((np.zeros(1, np.int64), np.flatnonzero(octets == 10) + 1))
    starts = starts[starts <= size - HEAD_SIZE]
    starts = starts[octets[starts] == ord("[")]
    words = np.ndarray((size - 7,), ">u8", data, strides=(1,))
    valid = np.ones(len(starts), np.bool_)
    digits = []
    for number, (zero, marks) in enumerate(zip(_ZERO, _MARKS, strict=True)):
        word = words[starts + (1 + 8 * number)].astype(np.uint64) ^ np.uint64(zero)
        valid &= (word & np.uint64(marks)) == 0
        valid &= ((word | (word + _SIX)) & _HIGH) == 0
        digits.append(word)
    if not valid.all():
        starts = starts[valid]
        digits = [word[valid] for word in digits]
    return _with_times(starts, digits)


def _byte(word: npt.NDArray[np.uint64], place: int) -> Int64s:
    return ((word >> np.uint64(56 - 8 * place)) & np.uint64(15)).astype(np.int64)


def _with_times(starts: Int64s, digits: list[npt.NDArray[np.uint64]]) -> Records:
    if not len(starts):
        return Records(starts, starts)
    date, middle, end = digits
    hour = _byte(middle, 3) * 10 + _byte(middle, 4)
    minute = _byte(middle, 6) * 10 + _byte(middle, 7)
    second = _byte(end, 1) * 10 + _byte(end, 2)
    milli = _byte(end, 4) * 100 + _byte(end, 5) * 10 + _byte(end, 6)
    day = _days(date, middle >> np.uint64(48))
    exists = (hour < 24) & (minute < 60) & (second < 61) & (day >= 0)
    millis = day * DAY + ((hour * 60 + minute) * 60 + second) * 1000 + milli
    return Records(starts, millis) if exists.all() else Records(starts[exists], millis[exists])


def _days(date: npt.NDArray[np.uint64], day: npt.NDArray[np.uint64]) -> Int64s:
    """Days since 1970 of each date, -1 for one that does not exist; worked out only where the date changes."""
    changes = np.flatnonzero((date[1:] != date[:-1]) | (day[1:] != day[:-1])) + 1
    firsts = np.concatenate((np.zeros(1, np.int64), changes))
    found = [_day_number(int(date[i]), int(day[i])) for i in firsts]
    return np.repeat(np.array(found, np.int64), np.diff(np.append(firsts, len(date))))


def _day_number(date: int, day: int) -> int:
    from datetime import date as calendar

    y1, y2, y3, y4, _, m1, m2, _ = date.to_bytes(8, "big")
    d1, d2 = day.to_bytes(2, "big")
    try:
        found = calendar(y1 * 1000 + y2 * 100 + y3 * 10 + y4, m1 * 10 + m2, d1 * 10 + d2)
    except ValueError:
        return -1
    return found.toordinal() - 719_163
