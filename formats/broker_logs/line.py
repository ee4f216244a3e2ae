"""A log line's head: time, level, logger, the identity of who speaks, and the sentence; and where records start.

Kafka's brokers write `[%d] %p %m (%c)%n` (config/log4j.properties @ 0.8.0 to 3.9.0): a local time without a
zone, the level, the message, the logger. A record is a line with such a head and the lines without one that
follow it: stack traces, and messages that hold line ends.
"""

from __future__ import annotations

import re
from datetime import date as calendar
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from formats.arrays import Ints

HEAD = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] ([A-Z]+) (.*)", re.DOTALL)
LOGGER = re.compile(rb"(.*) \(([\w.$]+)(?::\d{1,19})?\)[ \t\r]*", re.DOTALL)
LOGGER_AT_LINE_END = re.compile(rb" \(([\w.$]+)(?::\d{1,19})?\)[ \t\r]*(?:\n|\Z)")
HEAD_SIZE = 25
DAY = 86_400_000

# Identities. State changes name the speaker in the message before 1.0 and in brackets since; from 1.1 the
# lines of a failed change carry both.
STATE_IDENTITY = re.compile(
    rb"(?:\[(?:Controller|Broker) id=(-?\d{1,10})(?: epoch=(-?\d{1,10}))?\] )?"
    rb"(?:(?:Controller|Broker) (-?\d{1,10}) (?:epoch (-?\d{1,19}) )?)?"
)
# `[Controller 1]: `, `[Partition state machine on Controller 1]: `, `[KafkaServer id=1] `, `[ReplicaFetcher...] `,
# `[Log partition=t-0, dir=/d] `, `Cleaner 0: `; 0.8 to 0.11: `Partition [t,0] on broker 1: `.
IDENTITY = re.compile(
    rb"(?:\[[A-Za-z/][^\]\n]*\](?:: |, | )?|Partition \[[^\]\n]*\] on broker \d{1,19}: |Cleaner \d{1,19}: )"
)
IDENTITY_PARTITION = re.compile(
    rb"\[(?:Partition |(?:Unified|Local)?Log(?:Loader)? partition=|LeaderEpochCache "
    rb"|ProducerStateManager partition=|RemoteLogManager=\d{1,19} partition=[\w-]{22}:)([\w.-]+-\d{1,19})"
    rb"|Partition \[([\w.-]+, ?\d{1,19})\] on broker"
)
# Who writes a line, where its identity says so: one group of these is the id. Ids of others stand in identities too
# (`leaderId=2`, `targetBrokerId=2`, `-to-broker-2-`, `ReplicaFetcherThread-0-2`).
_WRITER = (
    rb"(?:[A-Za-z-]+(?: [A-Za-z-]+)* on (?:[Bb]roker|[Cc]ontroller) (\d{1,10})[\],]"
    rb"|[A-Za-z]+ (?:[a-z]+ |listenerType=\w+, )?(?:id|nodeId|brokerId|broker|controllerId|replicaId)=(\d{1,10})[\], ]"
    rb"|Partition \S+ broker=(\d{1,10})\]"
    rb"|(?:[A-Za-z]+ )*(?:[A-Za-z]*Coordinator|Controller|Server|Manager|StandardAuthorizer) (\d{1,10})\]"
    rb"|Controller-(\d{1,10})-to-broker-\d{1,19}-send-thread|RemoteLogManager=(\d{1,10}) "
    rb"|(?:broker|controller|kafka|quorum-controller)-(\d{1,10})-[a-zA-Z]|ExpirationReaper-(\d{1,10})[-\]]"
    rb"|(?:KafkaApi|TxnMarkerSenderThread|AddPartitionsToTxnSenderThread)-(\d{1,10})\])"
)
_ON_BROKER = rb"[^\]\n]*\] on broker (\d{1,10}): "
WRITER = re.compile(rb"\[" + _WRITER + rb"|Partition \[" + _ON_BROKER)
# The identity of each line, of which a log has few: who it names is looked for in each of them once.
_IDENTITIES = re.compile(
    rb"\n\[\d[^\n]{22}\] [A-Z]+ (\[(?:Partition \S+ broker=\d{1,10}\]|[^\]\n]*\]?)"
    rb"|Partition \[[^\]\n]*\] on broker \d{1,10}: |(?:Controller|Broker) \d{1,10} )"
)
_BARE = re.compile(rb"(?:Controller|Broker) (\d{1,10}) ")
# In layouts of others the message stands behind a level, a quotation mark, or what ends a head. Each expression begins
# with the text it looks for, which `re` finds many times as fast as one of several bytes or a place to look behind.
_ANYWHERE = tuple(
    begin + rb"(?:(?<=[A-Z] %b)|(?<=[\"\]:-] %b)|(?<=\"%b)|(?<=\]%b))" % ((begin,) * 4) + rest
    for begin, rest in ((rb"\[", _WRITER), (rb"Partition \[", _ON_BROKER))
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


def writers_named(data: bytes) -> set[int]:
    """The brokers that lines name as their writers."""
    identities = set(_IDENTITIES.findall(b"\n" + data))
    named = [match for text in identities if (match := WRITER.match(text) or _BARE.match(text))]
    if not named:
        named = [match for expression in _ANYWHERE for match in re.finditer(expression, data)]
    # One group of each match is the id.
    return {int(match[match.lastindex or 0]) for match in named}


# --- where records start --------------------------------------------------------------------------------

_TIME = b"0000-00-00 00:00:00,000]"
_ZEROS = np.frombuffer(_TIME, ">u8").astype(np.uint64)
# Which bytes of the three words are separators: those must be equal, the others digits.
_SEPARATORS = np.frombuffer(re.sub(rb"[^0]", b"\xff", _TIME).replace(b"0", b"\0"), ">u8").astype(np.uint64)
_HIGH = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIX = np.uint64(0x0606060606060606)


_WEIGHTS = np.array([0, 10_000, 1_000, 0, 100, 10, 1, 0], np.int32)


class RecordPlaces(NamedTuple):
    """Where the records of a run of bytes start, and when each says it was written."""

    starts: Ints
    millis: Ints
    """Local time of the writer as milliseconds since 1970-01-01 00:00 of its own clock."""
    line_ends: Ints | None = None
    """Where all line ends are, in case they were looked for."""


def find_records(data: bytes | memoryview) -> RecordPlaces:
    """The records of Kafka's own layout in whole lines, all heads of a block at once.

    A head needs `[yyyy-MM-dd HH:mm:ss,SSS]` with a date and time that exist; anything else continues the
    record before it.
    """
    size = len(data)
    octets = np.frombuffer(data, np.uint8)
    line_ends: Ints = (octets == ord("\n")).nonzero()[0]
    if size < HEAD_SIZE:
        return RecordPlaces(np.empty(0, np.int64), np.empty(0, np.int64), line_ends)
    starts = np.empty(len(line_ends) + 1, np.int64)
    starts[0] = 0
    np.add(line_ends, 1, out=starts[1:])
    starts = starts[: np.searchsorted(starts, size - HEAD_SIZE, "right")]
    starts = starts[octets[starts] == ord("[")]
    # One gather of 24 bytes, which is quicker than three of 8.
    heads = np.ndarray((size - HEAD_SIZE + 2,), "V24", data, strides=(1,))[starts + 1]
    words = heads.view(">u8").reshape(-1, 3).astype(np.uint64)
    words ^= _ZEROS
    wrong = ((words | (words + _SIX)) & _HIGH) | (words & _SEPARATORS)
    if wrong.any():
        valid = ~wrong.any(axis=1)
        starts, words = starts[valid], words[valid]
    if not len(starts):
        return RecordPlaces(starts, starts, line_ends)
    millis = _times(words)
    exists = millis >= 0
    if not exists.all():
        starts, millis = starts[exists], millis[exists]
    return RecordPlaces(starts, millis, line_ends)


def _times(words: npt.NDArray[np.uint64]) -> Ints:
    """Milliseconds of each time, negative for one that does not exist; minutes are worked out where they change."""
    date, minute, end = words.T
    changes = ((minute[1:] != minute[:-1]) | (date[1:] != date[:-1])).nonzero()[0] + 1
    firsts = np.concatenate((np.zeros(1, np.int64), changes))
    bases = [_minute_millis(*day_and_minute) for day_and_minute in words[firsts, :2].tolist()]
    within = end.astype(">u8").view(np.uint8).reshape(-1, 8) @ _WEIGHTS
    lengths = np.concatenate((changes, np.array([len(words)]))) - firsts
    base = np.repeat(np.array(bases, np.int64), lengths)
    # 60 is a leap second; 61 and more are no seconds.
    base[within >= 61_000] = _NO_TIME
    millis: Ints = base + within
    return millis


_NO_TIME = -(1 << 60)


@lru_cache(4096)
def _minute_millis(date: int, minute: int) -> int:
    """Milliseconds of a minute, from the digits of its date and of its day, hour and minute."""
    y1, y2, y3, y4, _, m1, m2, _ = date.to_bytes(8, "big")
    d1, d2, _, h1, h2, _, n1, n2 = minute.to_bytes(8, "big")
    try:
        day = calendar(y1 * 1000 + y2 * 100 + y3 * 10 + y4, m1 * 10 + m2, d1 * 10 + d2)
    except ValueError:
        return _NO_TIME
    hours, minutes = h1 * 10 + h2, n1 * 10 + n2
    if hours > 23 or minutes > 59 or day.year < 1970:
        return _NO_TIME
    return (day.toordinal() - 719_163) * DAY + (hours * 60 + minutes) * 60_000
