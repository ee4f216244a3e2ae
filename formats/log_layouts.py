"""How a log's lines are laid out: Kafka's own pattern, other log4j patterns, JSON layouts.

A layout finds where records start and when they were written, and takes a record apart. Kafka's own is read
by arrays (`log_lines`); any other by a regular expression made from its pattern, or as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from formats.errors import FormatError
from formats.log_lines import DAY, Head, Records, find_records, split_head

TIME = (
    r"(?P<time>(?P<date>\d{4}-\d\d-\d\d)[ T](?P<clock>\d\d:\d\d:\d\d)(?:[,.](?P<fraction>\d{1,9}))?"
    r" ?(?P<zone>Z|[+-]\d\d:?\d\d)?)"
)
TIME_VALUE = re.compile(TIME.encode())
# Conversion characters of log4j's PatternLayout and what they print.
CONVERSIONS = {
    "d": TIME,
    "date": TIME,
    "p": r"(?P<level>[A-Z]+)",
    "level": r"(?P<level>[A-Z]+)",
    "c": r"(?P<logger>[\w.$]+)",
    "logger": r"(?P<logger>[\w.$]+)",
    "C": r"(?P<logger>[\w.$]+)",
    "m": r"(?P<message>.*?)",
    "msg": r"(?P<message>.*?)",
    "message": r"(?P<message>.*?)",
    "t": r".*?",
    "thread": r".*?",
    "L": r"\d+",
    "F": r"\S+",
    "M": r"\S+",
    "r": r"\d+",
    "x": r".*?",
    "X": r".*?",
    "n": r"[ \t\r]*",
}
DIRECTIVE = re.compile(r"%(?P<pad>-?\d*(?:\.-?\d+)?)(?P<name>[a-zA-Z]+)(?P<options>(?:\{[^}]*\})*)|%%")
PATTERNS = (
    "%d [%t] %p %m (%c)%n",
    "%d %p %m (%c)%n",
    "[%d] %p [%t] %m (%c)%n",
    "[%d] [%p] %m (%c)%n",
    "%d{ISO8601} [%t] %-5p %c - %m%n",
    "%d{ISO8601} %-5p [%t] %c - %m%n",
    "%d{ISO8601} %-5p %c: %m%n",
    "%d %-5p [%c] (%t) %m%n",
    "%d [%p] %c: %m%n",
    "[%d] %-5p %c - %m%n",
)


# Identities of Kafka's components hold a blank; names of threads do not.
THREAD = re.compile(rb"\[[^\]\n]*\] [A-Z]+ \[[\w.:/-]+\] ")


class Layout(Protocol):
    """What every layout can do."""

    name: str

    def find(self, data: bytes) -> Records:
        """Where records start in whole lines, and their local times."""
        ...

    def split(self, record: bytes) -> Head | None:
        """A record taken apart; None where it has no head."""
        ...

    def has_zone(self, head: bytes) -> bool:
        """Whether the times of a file that starts like this name their offset, so that they are UTC here."""
        ...


class KafkaLayout:
    """`[%d] %p %m (%c)%n`."""

    name = "[%d] %p %m (%c)%n"

    def find(self, data: bytes) -> Records:
        """See `log_lines.find_records`."""
        return find_records(data)

    def split(self, record: bytes) -> Head | None:
        """See `log_lines.split_head`."""
        return split_head(record)

    def has_zone(self, head: bytes) -> bool:
        """Never."""
        return False


KAFKA = KafkaLayout()


class PatternLayout:
    """A log4j pattern given as text."""

    def __init__(self, pattern: str) -> None:
        self.name = pattern
        body = _expression(pattern)
        # A stack trace may follow the message, so that the head is matched on the first line alone.
        self._line = re.compile(f"^{body}$".encode(), re.MULTILINE)

    def find(self, data: bytes) -> Records:
        starts, millis = [], []
        for match in self._line.finditer(data):
            when = millis_of(match["time"])
            if when is not None:
                starts.append(match.start())
                millis.append(when)
        return Records(np.array(starts, np.int64), np.array(millis, np.int64))

    def split(self, record: bytes) -> Head | None:
        match = self._line.match(record)
        if not match:
            return None
        groups = match.groupdict()
        level, logger = groups.get("level"), groups.get("logger")
        return Head(
            match["time"],
            level.decode() if level else "",
            logger.decode() if logger else None,
            groups.get("message") or b"",
        )

    def has_zone(self, head: bytes) -> bool:
        match = self._line.search(head)
        return bool(match and match["zone"])


class JsonNames(NamedTuple):
    """Keys of a JSON layout."""

    time: tuple[str, ...] = ("@timestamp", "timestamp", "time", "instant", "timeMillis", "ts", "asctime")
    level: tuple[str, ...] = ("level", "severity", "log.level", "levelname", "priority")
    logger: tuple[str, ...] = ("logger", "loggerName", "logger_name", "log.logger", "name", "category")
    message: tuple[str, ...] = ("message", "msg", "log")
    trace: tuple[str, ...] = (
        "stack_trace",
        "thrown",
        "exception",
        "throwable",
        "error.stack_trace",
        "exc_info",
    )


NAMES = JsonNames()


class JsonLayout:
    """One JSON object a line: log4j's JSONEventLayout, JsonTemplateLayout (ECS, GELF-like) and their kin."""

    name = "JSON"

    def find(self, data: bytes) -> Records:
        starts, millis = [], []
        position = 0
        for line in data.split(b"\n"):
            if line.startswith(b"{"):
                when = _json_time(_object(line))
                if when is not None:
                    starts.append(position)
                    millis.append(when)
            position += len(line) + 1
        return Records(np.array(starts, np.int64), np.array(millis, np.int64))

    def split(self, record: bytes) -> Head | None:
        fields = _object(record.partition(b"\n")[0])
        when = _first(fields, NAMES.time)
        message = _first(fields, NAMES.message)
        if _json_time(fields) is None:
            return None
        logger = _first(fields, NAMES.logger)
        return Head(
            str(when).encode(),
            str(_first(fields, NAMES.level) or ""),
            str(logger) if logger else None,
            str(message if message is not None else "").encode(),
        )

    def has_zone(self, head: bytes) -> bool:
        for line in head.split(b"\n"):
            fields = _object(line)
            if _json_time(fields) is not None:
                match = TIME_VALUE.fullmatch(str(_first(fields, NAMES.time)).encode())
                return not match or bool(match["zone"])
        return False


JSON = JsonLayout()


def detect(head: bytes, given: Sequence[Layout] = ()) -> tuple[Layout | None, int | None]:
    """The layout that reads most lines at the start of a file, and its first time; None where none reads any."""
    if b"\n" in head:
        head = head[: head.rfind(b"\n") + 1]
    known: Sequence[Layout] = (*given, KAFKA) if given else (KAFKA, JSON, *_common())
    best: tuple[int, Layout, int] | None = None
    for layout in known:
        records = layout.find(head)
        count = len(records.starts)
        better = best is None or count > best[0] or (count == best[0] and best[1] is KAFKA)
        if count and better:
            best = count, layout, int(records.millis[0])
            if layout is KAFKA and not (given or _names_threads(head, records)):
                break
    return (best[1], best[2]) if best else (None, None)


def _names_threads(head: bytes, records: Records) -> bool:
    """Whether each line of Kafka's layout goes on with a thread's name, which looks like the speaker's identity."""
    starts = records.starts[:200].tolist()
    return all(THREAD.match(head, start) for start in starts)


def _common() -> tuple[Layout, ...]:
    return tuple(PatternLayout(pattern) for pattern in PATTERNS)


def layout_of_pattern(pattern: str) -> Layout:
    """The layout of a log4j pattern; `FormatError` where it has no date or no message."""
    if pattern.strip().lower() == "json":
        return JSON
    if pattern.strip() == KAFKA.name:
        return KAFKA
    layout = PatternLayout(pattern)
    return layout


def _expression(pattern: str) -> str:
    out, place, seen = [], 0, set()
    for match in DIRECTIVE.finditer(pattern):
        out.append(re.escape(pattern[place : match.start()]))
        place = match.end()
        name = match["name"]
        if name is None:
            out.append("%")
            continue
        # `%mX` is `%m` and an X: the longest conversion word counts.
        word = next((name[:n] for n in range(len(name), 0, -1) if name[:n] in CONVERSIONS), None)
        if word is None:
            raise FormatError(f"unknown conversion %{name} in the pattern", match.start())
        one = CONVERSIONS[word]
        group = re.search(r"\?P<(\w+)>", one)
        if group and group[1] in seen:
            one = r".*?"
        elif group:
            seen.add(group[1])
        out.append(f" *{one} *" if match["pad"] else one)
        out.append(re.escape(name[len(word) :]))
    out.append(re.escape(pattern[place:]))
    if not {"time", "message"} <= seen:
        raise FormatError("the pattern has no %d or no %m", 0)
    return "".join(out)


def millis_of(text: bytes) -> int | None:
    """A time as milliseconds; of its own clock where it names no offset, else UTC. None for no such time."""
    from datetime import date

    match = TIME_VALUE.fullmatch(text.strip())
    if not match:
        return None
    try:
        day = date.fromisoformat(match["date"].decode()).toordinal() - 719_163
    except ValueError:
        return None
    hour, minute, second = (int(part) for part in match["clock"].split(b":"))
    if hour > 23 or minute > 59 or second > 60:
        return None
    millis = int((match["fraction"] or b"0").ljust(3, b"0")[:3])
    offset = 0
    zone = match["zone"]
    if zone and zone != b"Z":
        sign = -1 if zone[:1] == b"-" else 1
        digits = zone[1:].replace(b":", b"")
        offset = sign * (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
    return day * DAY + ((hour * 60 + minute) * 60 + second) * 1000 + millis - offset


def _object(line: bytes) -> dict[str, object]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    for outer in ("log", "error"):
        inner = found.get(outer)
        if isinstance(inner, dict):
            found.update({f"{outer}.{key}": value for key, value in inner.items()})
    return found


def _first(fields: dict[str, object], names: tuple[str, ...]) -> object:
    return next(
        (fields[name] for name in names if name in fields and not isinstance(fields[name], dict)), None
    )


def _json_time(fields: dict[str, object]) -> int | None:
    instant = fields.get("instant")
    if isinstance(instant, dict):
        seconds, nanos = instant.get("epochSecond"), instant.get("nanoOfSecond", 0)
        if isinstance(seconds, int) and isinstance(nanos, int):
            return seconds * 1000 + nanos // 1_000_000
    when = _first(fields, NAMES.time)
    if isinstance(when, bool) or when is None:
        return None
    if isinstance(when, (int, float)):
        return int(when if abs(when) >= 1e11 else when * 1000) if abs(when) < 1e15 else None
    return millis_of(str(when).encode())
