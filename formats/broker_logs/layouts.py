"""How a log's lines are laid out: Kafka's own pattern, other log4j patterns.

A layout finds where records start and when they were written, and takes a record apart. Kafka's own is read
by arrays (`line`); any other by a regular expression made from its pattern. What carries the lines of a
container or a service puts something before each or around it (`CARRIERS`); below it lies one of the other layouts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np

from formats.broker_logs.date_formats import DateFormat, date_format, month_first, other_form
from formats.broker_logs.exports.carried import Document
from formats.broker_logs.exports.documents import document_of, plain_document_of
from formats.broker_logs.exports.origins import process_of
from formats.broker_logs.line import DAY, LOGGER_AT_LINE_END, Head, RecordPlaces, find_records, split_head
from formats.errors import FormatError

TIME = (
    r"(?P<time>(?P<date>\d{4}(?P<mark>[-/])\d\d(?P=mark)\d\d)[ T](?P<clock>\d\d:\d\d:\d\d)(?:[,.](?P<fraction>\d{1,9}))?"
    r" ?(?P<zone>Z|[+-]\d\d:?\d\d)?)"
)
TIME_VALUE = re.compile(TIME.encode())
CLOCK = r"(?P<time>\d\d:\d\d:\d\d[,.]\d{3})"
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
    "%d %p %m (%c) [%t]%n",
    "%d %p %m (%c)%n",
    "[%d] %p [%t] %m (%c)%n",
    "[%d] [%p] %m (%c)%n",
    "%d{ISO8601} [%t] %-5p %c - %m%n",
    "%d{ISO8601} %-5p [%t] %c - %m%n",
    "%d %-5p [%t] %c:%L - %m%n",
    "%d %p [%c] [%t] [%X] [%X] %m%n",
    "%d{ISO8601} %-5p %c: %m%n",
    "%d %-5p [%c] (%t) %m%n",
    "%d [%p] %c: %m%n",
    "%d [%c] %m%n",
    "%d %5p %r --- [%t] %-40.40c : %m%n",
    "%d{HH:mm:ss.SSS} [%t] %-5p %c - %m%n",
    "%d{HH:mm:ss.SSS} [%t] %-5p %c -- %m%n",
    "[%d] %-5p %c - %m%n",
    "[%d] %-5p %c: %m%n",
    "%d %-5p [%t] %c %m%n",
    "%d %p (%c) %m%n",
    "[%d] %p (%c) %m%n",
)
ISO_DIRECTIVE = re.compile(r"%d(?:\{ISO8601\})?(?!\{)")
# Identities of Kafka's components hold a blank; names of threads do not.
THREAD = re.compile(rb"\[[^\]\n]*\] [A-Z]+ \[[\w.:/-]+\] ")


class LineLayout(Protocol):
    """What every layout can do."""

    name: str
    has_date: bool
    """Whether its times have a date; those without count from midnight."""

    def find(self, data: bytes) -> RecordPlaces:
        """Where records start in whole lines, and their local times."""
        ...

    def split(self, record: bytes) -> Head | None:
        """A record taken apart; None where it has no head."""
        ...

    def bare(self, data: bytes) -> bytes:
        """Whole lines as the logger wrote them, as many lines as there are."""
        ...

    def has_zone(self, head: bytes) -> bool:
        """Whether the times of a file that starts like this name their offset, so that they are UTC here."""
        ...


class KafkaLayout:
    """`[%d] %p %m (%c)%n`."""

    name = "[%d] %p %m (%c)%n"
    has_date = True

    def find(self, data: bytes) -> RecordPlaces:
        """See `line.find_records`."""
        return find_records(data)

    def split(self, record: bytes) -> Head | None:
        """See `line.split_head`."""
        return split_head(record)

    def bare(self, data: bytes) -> bytes:
        """The same."""
        return data

    def has_zone(self, head: bytes) -> bool:
        """Never."""
        return False


KAFKA = KafkaLayout()


class ExpressionLayout:
    """A regular expression of a line, with groups `time` and `message`, and maybe `level` and `logger`."""

    def __init__(self, name: str, expression: str, dates: DateFormat | None = None) -> None:
        """`dates`: how its times are written, where that is not ISO 8601."""
        self.name = name
        self._dates = dates
        self.has_date = CLOCK not in expression if dates is None else dates.has_date
        # A stack trace may follow the message, so that the head is matched on the first line alone.
        self._line = re.compile(f"^{expression}$".encode(), re.MULTILINE)

    def find(self, data: bytes) -> RecordPlaces:
        starts, millis = [], []
        for match in self._line.finditer(data):
            if self._dates:
                when = self._dates.millis(match["time"].decode("utf-8", "replace"))
            else:
                when = millis_of(match["time"] if self.has_date else b"1970-01-01 " + match["time"])
            if when is not None:
                starts.append(match.start())
                millis.append(when)
        return RecordPlaces(np.array(starts, np.int64), np.array(millis, np.int64))

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

    def bare(self, data: bytes) -> bytes:
        return data

    def has_zone(self, head: bytes) -> bool:
        match = self._line.search(head)
        if self._dates:
            return match is not None and self._dates.tells_zone(match["time"].decode("utf-8", "replace"))
        stamp = TIME_VALUE.fullmatch(match["time"].strip()) if match else None
        return bool(stamp and stamp["zone"])


class Carrier(NamedTuple):
    """What stands before or around each line that a logger wrote, put there by what carried the line."""

    name: str
    expression: str
    """What it puts there; its group `time` is when the line was carried, `origin` which container printed it, `host` which
    host, and what else names the process behind that."""
    example: str

    @property
    def mark(self) -> re.Pattern[bytes]:
        """The expression, compiled when it is looked for first: most logs have no carrier."""
        return _compiled(self.expression)

    def bare(self, line: bytes) -> bytes:
        """A line without the mark."""
        return self.mark.sub(b"", line)

    def carried(self, line: bytes) -> int | None:
        """When a line was carried, in UTC milliseconds; None where that is not said, or without an offset."""
        marked = self.mark.match(line)
        text = marked["time"] if marked and "time" in self.mark.groupindex else b""
        stamp = TIME_VALUE.fullmatch(text or b"")
        return millis_of(text) if stamp and stamp["zone"] else None


@cache
def _compiled(expression: str) -> re.Pattern[bytes]:
    return re.compile(expression.encode(), re.MULTILINE)


_STAMP = TIME.replace(" ?(?P<zone>", "(?P<zone>")
# Colours further on are part of a message.
HEAD_COLOUR = re.compile(rb"^(?:\[?[\d:,. TZ+-]+\]? ?)?\x1b\[")
COLOURS = Carrier(
    "colours of a terminal",
    r"\x1b\[[0-9;]*[mK]",
    "\x1b[36mkafka-1  | \x1b[0m[2026-11-21 13:18:27,173] INFO",
)
DOCUMENT = Carrier(
    "export",
    r"^\x1f\d{1,9}\x1f(?P<origin>[^\x1f\n]*)\x1f" + f"(?:{_STAMP})?" + r"\x1f",
    "\x1f1\x1fkafka-1\x1f2026-11-21T13:18:27.173Z\x1f[2026-11-21 13:18:27,173] INFO",
)
"""The lines of an export, as `documents.written` gives them."""
EXPORTS = (DOCUMENT.name, "json", "json, indented", "csv")
COMPOSE = Carrier(
    "docker compose logs", r"^(?P<origin>[\w.-]+) *\| ", "kafka-1  | [2026-11-21 13:18:27,173] INFO"
)
CARRIERS = (
    COLOURS,
    COMPOSE,
    Carrier("kubectl logs --prefix", r"^\[pod/(?P<origin>[^/\]\n]+/[^\]\n]+)\] ", "[pod/kafka-0/kafka] [2026-11-21 13:18:27,173] INFO"),
    Carrier("stern", r"^(?P<origin>[a-z][\w.-]* [a-z][\w.-]*) ", "kafka-0 kafka [2026-11-21 13:18:27,173] INFO"),
    Carrier("Kubernetes node", r"^" + _STAMP + r" std(?:out|err) [FP] ", "2026-11-21T13:18:27.173456789Z stdout F [2026-11-21 13:18:27,173] INFO"),
    Carrier("systemd journal or syslog, ISO 8601", r"^" + _STAMP + r" (?!(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) )(?P<host>[\w.-]+ [\w./-]+)(?:\[\d+\])?: ", "2026-11-21T13:18:27+0000 host kafka[812]: [2026-11-21 13:18:27,173] INFO"),
    Carrier("syslog, RFC 5424", r"^<\d+>\d " + _STAMP + r" (?P<host>\S+ \S+ \S+ \S+ (?:-|\[.*?\])) ", "<14>1 2026-11-21T13:18:27.173Z host kafka 812 - - [2026-11-21 13:18:27,173] INFO"),
    Carrier("syslog, RFC 3164", r"^(?:<\d+>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<host>[\w.-]+ [\w./-]+)(?:\[\d+\])?: ", "Nov 21 13:18:27 host kafka[812]: [2026-11-21 13:18:27,173] INFO"),
    Carrier("time of a container's runtime", r"^" + _STAMP + " ", "2026-11-21T13:18:27.173456789Z [2026-11-21 13:18:27,173] INFO"),
)  # fmt: skip
LOOKED_AT = 100
# Records whose heads are compared with those of other layouts, and bytes that mostly hold as many.
COMPARED, ENOUGH = 200, 1 << 16
# No carrier but colours begins like a line of Kafka's own layout.
NO_CARRIER = re.compile(rb"\[\d")
# Zones differ from UTC by quarters of an hour; stamps may be cut to whole seconds.
QUARTER, COARSE = 900_000, 2_000


class CarriedLayout:
    """A layout below a carrier."""

    def __init__(self, carrier: Carrier, inner: LineLayout) -> None:
        self.name = f"{carrier.name}: {inner.name}"
        self.has_date = inner.has_date
        self.carrier = carrier
        self.inner = inner

    def bare(self, data: bytes) -> bytes:
        """What the logger wrote."""
        return self.inner.bare(self.carrier.bare(data))

    def find(self, data: bytes) -> RecordPlaces:
        """Records by the inner layout; its times in UTC where both tell a time and the carrier's has an offset.

        A line is carried after it is written, by less than a quarter of an hour.
        """
        bare = self.carrier.bare(data)
        inner = self.inner.find(bare)
        outer_ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
        inner_ends = np.flatnonzero(np.frombuffer(bare, np.uint8) == 10)
        starts = np.concatenate((np.zeros(1, np.int64), outer_ends + 1))[
            np.searchsorted(inner_ends, inner.starts)
        ]
        millis = inner.millis
        if not self.inner.has_zone(bare) and self.has_zone(data):
            millis = np.array(
                [self._in_utc(data, s, m) for s, m in zip(starts.tolist(), millis.tolist(), strict=True)],
                np.int64,
            )
        return RecordPlaces(starts, millis, outer_ends)

    def has(self, carrier: Carrier) -> bool:
        """Whether this carrier, or one below it, carried the lines."""
        inner = self.inner
        return self.carrier is carrier or (isinstance(inner, CarriedLayout) and inner.has(carrier))

    @property
    def innermost(self) -> LineLayout:
        """The layout that the logger wrote."""
        return self.inner.innermost if isinstance(self.inner, CarriedLayout) else self.inner

    @property
    def origin(self) -> Callable[[bytes], bytes | None] | None:
        """What gives the container or host that printed a line; None where the carrier does not say it."""
        carrier = self.carrier
        mark = carrier.mark
        if "host" in mark.groupindex:
            return lambda line: _process(match["host"]) if (match := mark.match(line)) else None
        inner = self.inner.origin if isinstance(self.inner, CarriedLayout) else None
        if "origin" not in mark.groupindex:
            return (lambda line: inner(carrier.bare(line))) if inner else None

        def origin(line: bytes) -> bytes | None:
            named = match["origin"] if (match := mark.match(line)) else None
            return inner(carrier.bare(line)) if inner and not named else named

        return origin

    def origins(self, data: bytes) -> set[bytes]:
        """What `origin` gives for any of these lines."""
        mark = self.carrier.mark
        group = next((name for name in ("host", "origin") if name in mark.groupindex), None)
        if group is None:
            return (
                self.inner.origins(self.carrier.bare(data))
                if isinstance(self.inner, CarriedLayout)
                else set()
            )
        names = {match[group] for match in mark.finditer(data)}
        return set(map(_process, names)) if group == "host" else names

    def _in_utc(self, data: bytes, start: int, millis: int) -> int:
        end = data.find(b"\n", start)
        carried = self.carrier.carried(data[start : end if end >= 0 else len(data)])
        if carried is None:
            return millis
        return millis + (carried + COARSE - millis) // QUARTER * QUARTER

    def split(self, record: bytes) -> Head | None:
        """The record without what its carrier put there, taken apart."""
        return self.inner.split(self.carrier.bare(record))

    def has_zone(self, head: bytes) -> bool:
        """Whether the carrier's times name their offset, or the logger's do."""
        lines = head.split(b"\n", LOOKED_AT)[:LOOKED_AT]
        if any(self.carrier.carried(line) is not None for line in lines):
            return True
        return self.inner.has_zone(self.carrier.bare(head))


@lru_cache(4096)
def _process(host: bytes) -> bytes:
    return process_of(host.decode("utf-8", "backslashreplace")).encode()


def export_of(head: bytes, *, has_parts: bool = False) -> Document | None:
    """The shape of an export that starts like this; None for what one of the layouts reads as it is.

    `has_parts`: its runtime cut some of its lines (`PART_OF_LINE`).
    """
    head = head[: head.rfind(b"\n", 0, ENOUGH) + 1] if b"\n" in head[:ENOUGH] else head[:ENOUGH]
    layout, _ = detect(head)
    if layout is not None and (
        document := plain_document_of(head, is_newest_first=_is_newest_first(layout, head))
    ):
        return document
    if (
        layout is not None
        and layout is not KAFKA
        and _reads_most(layout, head)
        and not (has_parts or WRITTEN_OUT.search(head))
    ):
        return None
    document = document_of(head)
    return document if document and (layout is not KAFKA or document.is_plain) else None


def _is_newest_first(layout: LineLayout, head: bytes) -> bool:
    """Whether times go down and nearly never up."""
    steps = np.sign(np.diff(layout.find(head[: head.find(b"\n", ENOUGH // 4) + 1 or None]).millis))
    down, up = int(np.sum(steps < 0)), int(np.sum(steps > 0))
    return down > 2 and down > 9 * up


PART_OF_LINE = re.compile(rb" std(?:out|err) P ")
"""What a Kubernetes node writes before a part of a line that the next one goes on with."""
# Line ends and tabs of stack traces, as syslog daemons write them.
WRITTEN_OUT = re.compile(rb"#01[12](?:#011)?(?:at |Caused by)")


def _reads_most(layout: LineLayout, head: bytes) -> bool:
    """Whether a layout finds the sentences in most of what looks like lines of a log."""
    starts = layout.find(head).starts[:COMPARED].tolist()
    records = [head[a:b] for a, b in pairwise([*starts, len(head)])]
    # The head of Kafka's own layout is no part of another one's.
    is_own = [OWN_HEAD.search(layout.bare(record).partition(b"\n")[0], 1) is not None for record in records]
    heads = [None if own else layout.split(record) for own, record in zip(is_own, records, strict=True)]
    lines = sum(bool(line) and not line[:1].isspace() for line in head.split(b"\n", COMPARED)[:COMPARED])
    read = sum(bool(part and part.message.strip()) for part in heads)
    return 2 * read >= len(heads) and (4 * read >= lines or read >= COMPARED)


OWN_HEAD = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]+ ")


def is_export(layout: LineLayout) -> TypeGuard[CarriedLayout]:
    """Whether a layout is of an export, whose lines were taken out of it."""
    return isinstance(layout, CarriedLayout) and layout.carrier is DOCUMENT


def _carried(head: bytes) -> tuple[CarriedLayout, int] | None:
    """The layout of lines of which most have the mark of a carrier, and its first time."""
    lines = [line for line in head.split(b"\n", LOOKED_AT)[:LOOKED_AT] if line.strip()]
    if b"\x1b" not in head and _are_bare(lines):
        return None
    for carrier in (DOCUMENT, *CARRIERS):
        mark = HEAD_COLOUR if carrier is COLOURS else carrier.mark
        marked = sum(mark.match(line) is not None for line in lines)
        # Stack traces have no colours.
        if marked * (8 if carrier is COLOURS else 2) <= len(lines):
            continue
        below = CarriedLayout(carrier, KAFKA).bare(head)
        inner = detect(below)[0] if below != head else None
        if inner is None:
            continue
        layout = CarriedLayout(carrier, inner)
        records = layout.find(head)
        if len(records.starts):
            return layout, int(records.millis[0])
    return None


def _are_bare(lines: list[bytes]) -> bool:
    """Whether most lines begin as those of Kafka's layout, and so without the mark of a carrier."""
    # A mark stands at the beginning of a line, where continued records have blanks.
    begun = [line for line in lines if not line[:1].isspace()]
    return 2 * len(list(filter(NO_CARRIER.match, begun))) >= len(begun)


def detect(head: bytes, given: Sequence[LineLayout] = ()) -> tuple[LineLayout | None, int | None]:
    """The layout that reads most lines at the start of a file, and its first time; None where none reads any."""
    if b"\n" in head:
        head = head[: head.rfind(b"\n") + 1]
    if not given:
        first = _first_of_kafka(head)
        if first is not None:
            return KAFKA, first
        carried = _carried(head)
        if carried is not None:
            return carried
    known: Iterable[LineLayout] = (*given, KAFKA) if given else chain((KAFKA,), _common(head))
    best: tuple[int, LineLayout, int] | None = None
    for layout in known:
        records = layout.find(head)
        count = len(records.starts)
        better = (
            best is None
            or layout.has_date > best[1].has_date
            or (
                layout.has_date == best[1].has_date
                and (count > best[0] or (count == best[0] and best[1] is KAFKA))
            )
        )
        if count and better:
            best = count, layout, int(records.millis[0])
            if layout is KAFKA and not (given or _is_like_kafkas(head, records)):
                break
    return (best[1], best[2]) if best else (None, None)


def _first_of_kafka(head: bytes) -> int | None:
    """The first time, if the first lines alone show that the layout is Kafka's, as those of most files do; else None."""
    part = head[: head.rfind(b"\n", 0, ENOUGH) + 1]
    lines = part.split(b"\n", LOOKED_AT)
    if (
        len(lines) <= LOOKED_AT
        or b"\x1b" in head
        or not _are_bare([line for line in lines[:-1] if line.strip()])
    ):
        return None
    records = find_records(part)
    if len(records.starts) < COMPARED or _is_like_kafkas(part, records):
        return None
    return int(records.millis[0])


def _is_like_kafkas(head: bytes, records: RecordPlaces) -> bool:
    """Whether lines begin as those of Kafka's layout and may be of another: each goes on with a thread's name, which looks
    like the speaker's identity, or most do not end with the logger."""
    starts = records.starts[:COMPARED].tolist()
    if all(THREAD.match(head, start) for start in starts):
        return True
    left = (len(starts) + 1) // 2
    for start in starts:
        logger_at = head.rfind(b" (", start, head.find(b"\n", start))
        left -= logger_at >= 0 and LOGGER_AT_LINE_END.match(head, logger_at) is not None
        if not left:
            return False
    return True


def _common(head: bytes) -> Iterator[LineLayout]:
    """The layouts of the patterns, each compiled where the ones before it did not do; last those with dates of another
    form, if there are some in the head."""
    yield from map(_of_log4j, PATTERNS)
    form, _ = other_form(head[:ENOUGH])
    if form:
        for pattern in (KAFKA.name, *PATTERNS):
            if ISO_DIRECTIVE.search(pattern):
                yield _of_log4j(ISO_DIRECTIVE.sub(f"%d{{{form}}}", pattern, count=1))


def settled_date(
    layout: LineLayout, first: int | None, head: bytes, tail: Callable[[], bytes]
) -> tuple[LineLayout, int | None, str | None]:
    """A layout and its first time with the day and the month in the order that the head or the tail of a file tells; last
    the first date where neither does."""
    innermost = layout.innermost if isinstance(layout, CarriedLayout) else layout
    if month_first(innermost.name) == innermost.name:
        return layout, first, None
    date = other_form(layout.bare(head)[:ENOUGH])[1]
    form, doubtful = other_form(layout.bare(tail())[-ENOUGH:]) if date else (None, None)
    if date is None or form is None or doubtful or form[2] != date[2]:
        return layout, first, date
    if form.startswith("MM"):
        layout = _with_month_first(layout)
        first = int(layout.find(head).millis[0])
    return layout, first, None


def _with_month_first(layout: LineLayout) -> LineLayout:
    if isinstance(layout, CarriedLayout):
        return CarriedLayout(layout.carrier, _with_month_first(layout.inner))
    return _of_log4j(month_first(layout.name))


def layout_of_pattern(pattern: str) -> LineLayout:
    """The layout of a log4j pattern; `FormatError` where it has no date or no message."""
    if pattern.strip() == KAFKA.name:
        return KAFKA
    if pattern.strip().lower() in EXPORTS:
        return CarriedLayout(DOCUMENT, KAFKA)
    return _of_log4j(pattern)


def _of_log4j(pattern: str) -> LineLayout:
    return ExpressionLayout(pattern, *_expression(pattern))


def layout_of_name(text: str) -> LineLayout:
    """The layout of a name, or of a regular expression with groups `time` and `message`; else `FormatError`."""
    named: dict[str, LineLayout] = {
        KAFKA.name: KAFKA,
        "kafka": KAFKA,
    }
    named |= {name: CarriedLayout(DOCUMENT, KAFKA) for name in EXPORTS}
    named |= {carrier.name.lower(): CarriedLayout(carrier, KAFKA) for carrier in CARRIERS}
    if text.lower() in named:
        return named[text.lower()]
    try:
        groups = re.compile(text).groupindex
    except re.error as error:
        raise FormatError(f"neither a known name nor a regular expression: {error}", 0) from error
    if not {"time", "message"} <= groups.keys():
        names = ", ".join(repr(name) for name in sorted(named))
        raise FormatError(
            f"not a known name ({names}), and an expression without groups `time` and `message`", 0
        )
    return ExpressionLayout(text, text.removeprefix("^").removesuffix("$"))


def _expression(pattern: str) -> tuple[str, DateFormat | None]:
    """The expression of a line in a pattern, and how its times are written where that is not ISO 8601."""
    out, place, groups = [], 0, set()
    dates: DateFormat | None = None
    for match in DIRECTIVE.finditer(pattern):
        out.append(re.escape(pattern[place : match.start()]))
        place = match.end()
        name = match["name"]
        if name is None:
            out.append("%")
            continue
        if (
            name in ("d", "date")
            and "time" not in groups
            and (form := _form_of(match["options"])) is not None
        ):
            groups.add("time")
            if form in CLOCKS:
                out.append(CLOCK)
                continue
            dates = date_format(form, *_options(match["options"])[1:2])
            out.append(f" *{dates.expression} *" if match["pad"] else dates.expression)
            continue
        # `%mX` is `%m` and an X: the longest conversion word counts.
        word = next((name[:n] for n in range(len(name), 0, -1) if name[:n] in CONVERSIONS), None)
        if word is None:
            raise FormatError(f"unknown conversion %{name} in the pattern", match.start())
        printed = CONVERSIONS[word]
        group = re.search(r"\?P<(\w+)>", printed)
        if group and group[1] in groups:
            printed = r".*?"
        elif group:
            groups.add(group[1])
        out.append(f" *{printed} *" if match["pad"] else printed)
        out.append(re.escape(name[len(word) :]))
    out.append(re.escape(pattern[place:]))
    if not {"time", "message"} <= groups:
        raise FormatError("the pattern has no %d or no %m", 0)
    return "".join(out), dates


CLOCKS = ("HH:mm:ss.SSS", "HH:mm:ss,SSS", "ABSOLUTE", "ABSOLUTE_PERIOD")
ISO_FORM = re.compile(
    r"(?:DEFAULT|ISO8601)(?!_BASIC)\w*|yyyy([-/])MM\1dd(?: |'T')HH:mm:ss(?:[,.]S{1,9})?(?: ?(?:X{1,3}|Z|'Z'))?"
)


def _options(text: str) -> list[str]:
    """The texts in the braces behind a conversion."""
    return re.findall(r"\{([^}]*)\}", text)


def _form_of(options: str) -> str | None:
    """The form of dates that the options of `%d` name; None for those that are read as ISO 8601."""
    form, *zone = _options(options) or [""]
    if form and not ISO_FORM.fullmatch(form):
        return form
    if not zone or "OFFSET" in form:
        return None
    return f"yyyy-MM-dd HH:mm:ss,{'S' * (6 if 'MICROS' in form else 9 if 'NANOS' in form else 3)}"


def millis_of(text: bytes) -> int | None:
    """A time as milliseconds; of its own clock where it names no offset, else UTC. None for no such time."""
    from datetime import date

    match = TIME_VALUE.fullmatch(text.strip())
    if not match:
        return None
    try:
        day = date.fromisoformat(match["date"].decode().replace("/", "-")).toordinal() - 719_163
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
