"""Exports of logs in any shape: the lines that a logger wrote, found in JSON, CSV, journald's export or behind any mark.

Systems that collect logs export them in hundreds of shapes. None is listed here. What a broker wrote is known by its own
look: a time, a level and a sentence in one text, or a level, a class of Kafka and a sentence side by side. Where it stands
in an export is found by trying. Each line is given behind a mark that `layouts.DOCUMENT` reads: its number in the export,
what carried it (host, pod or container) and when. An export with the newest line first is turned round.
"""

from __future__ import annotations

import codecs
import csv
import html
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple

from formats import bounded_json
from formats.broker_logs.carrier_names import OF_KAFKA, carrier_name

SEPARATOR = "\x1f"
LOOKED_AT = 1 << 16
"""Bytes at the start of a file by which its shape is known."""
MOST = 64 << 20
"""Bytes of an export that has to be held as a whole: one JSON document, or lines with the newest first."""
MOST_DEPTH = 16
MOST_KEYS = 400
LONGEST_ORIGIN = 200
LEVELS = "TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL"
_STAMP = r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d"
# Dates of other forms, which `layouts.OTHER_DATES` reads.
_OTHER_DATE = r"\d\d(?:/(?:\d\d|[A-Z][a-z]{2})/|\.\d\d\.|-(?:\d\d|[A-Z][a-z]{2})-| [A-Z][a-z]{2} )\d{4}|[A-Z][a-z]{2} \d\d, \d{4}"
# A head of Kafka's own layout, then one of any other: a time, maybe a thread, a level.
OWN_HEAD = re.compile(rf"\[{_STAMP},\d{{3}}\] (?:{LEVELS}) ")
ANY_HEAD = re.compile(
    rf"\[?(?:{_STAMP}|(?<!\d)(?:{_OTHER_DATE}) \d\d:\d\d:\d\d)(?:[,.]\d{{1,9}})?(?: ?Z| ?[+-]\d\d:?\d\d)?[\]|,]? {{0,3}}(?:[-|] )?(?:\[[^\]\n]{{0,100}}\] {{0,3}})?\[?(?:{LEVELS})\b"
)
FAR = 1000
"""Characters of a line in which a logger's head is looked for."""
CLASS = re.compile(r"(?:kafka|org\.apache\.kafka|io\.confluent)\.[\w.$]+|state\.change\.logger")
LEVEL = re.compile(LEVELS)
LEVEL_KEY = re.compile(r"level|severity|priority|(?:^|[._])(?:sev|lvl)$", re.IGNORECASE)
LOGGER_KEY = re.compile(r"logger|category|\bclass", re.IGNORECASE)
MESSAGE_KEY = re.compile(r"(?:^|[._@])(?:message|msg|body|text|line|log|event|original|raw)$", re.IGNORECASE)
ANY_MESSAGE_KEY = re.compile("message|msg", re.IGNORECASE)
WORD = re.compile(r"[\w.$]+")
TRACE_KEY = re.compile(r"stack_?trace|thrown|exception|throwable|exc_info", re.IGNORECASE)
TIME_KEY = re.compile(r"time|date|instant|^_?ts$|^@t$", re.IGNORECASE)
# What names the process that printed a line, best first.
ORIGIN_KEYS = tuple(
    re.compile(rf"(?:^|[._@]|_)(?:{names})$", re.IGNORECASE)
    for names in (
        r"pod\.?_?name|podname|pod|\w*kubernetes_pod",
        r"container\.?_?name|containername|container",
        r"log_?stream(?:_?name)?",
        r"host\.?_?name|source_host|host|node\.?_?name|computer|instance|system|hostname|program",
    )
)
# Any other field may name it, such as a column without a heading or the path of a file, where a number of Kafka's is in
# it: but for those that name what several processes share, or what one of them speaks of.
NO_ORIGIN = re.compile(
    r"namespace|cluster|project|topic|image|version|thread|logger|user|leader|peer|remote", re.IGNORECASE
)
STAMP = re.compile(
    rf"(?P<stamp>{_STAMP})(?:[,.](?P<fraction>\d{{1,9}}))?(?: ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d))?(?!\d)"
)
SYSLOG_TIME = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
# Of a mark before a line, what names no process.
NAMELESS = re.compile(
    rf"{_STAMP}(?:[,.]\d{{1,9}})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?|{SYSLOG_TIME}|(?:{_OTHER_DATE})(?:[ :]\d\d:\d\d:\d\d)?|<\d+>\d?|\bstd(?:out|err)\b(?: [FP]\b)?"
    rf"|\x1b\[[0-9;]*[mK]|\[\d+\]|(?<![\w.-])\d+(?![\w.-])|\b(?:{LEVELS}|info|warn|error|debug|notice)\b|[^\w.\-/]+"
)
NAMED = re.compile(r"\b(\w+)=\"?([\w./-]+)")
# Kafka's own logs in a folder, by their names.
LOG_NAME = re.compile(
    r"(?:^|/)(?:state-change|controller|server|log-cleaner|kafka-request|kafka-authorizer|kafkaServer)(?:[._-][\w.-]*)?\.(?:log|out)\S*$"
)
ESCAPED_END = re.compile(
    r"#012|\\n(?=(?:#011|\\t|\s*at |Caused by: |\t|\s+\.\.\. \d))|(?<=\))\\n(?=[\w.$]+(?:Exception|Error)\b)"
)
ESCAPED_TAB = re.compile(r"(?:#011|\\t)(?=at |\.\.\. \d|Suppressed: |Caused by: )")
BARE_QUOTE = re.compile(r'(?<!\\)"')
COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
THROWN = re.compile(r"(?:Caused by: )?[\w.$]+(?:Exception|Error)\b")
AT = re.compile(r"\s+(?:at |\.\.\. \d)")
LEAST_CUT = 8000
"""Characters of a line that may be cut."""
NOBODY = "-"
"""What stands for the process of lines that name none, among others that do."""
LOGGER_AT_END = re.compile(r" \([\w.$]+(?::\d+)?\)")
ENDED = re.compile(LOGGER_AT_END.pattern + r"\s*\Z")
PAIRS = (("field", "value"), ("key", "value"), ("name", "value"), ("Field", "Value"), ("Key", "Value"), ("k", "v"))  # fmt: skip


class CarriedLine(NamedTuple):
    """A text that a logger wrote, with its line ends, and what carried it."""

    number: int
    """The line of the export at which it stands."""
    text: str
    origin: str = ""
    millis: int | None = None
    """When it was carried, in UTC; None where that is not said."""
    is_part: bool = False
    """Whether the next line of its origin goes on with it."""


class Document(NamedTuple):
    """The shape of an export."""

    name: str
    """What was found, in words."""
    lines: Callable[[Iterator[bytes]], Iterator[CarriedLine]]
    is_plain: bool = False
    """Whether its lines are those of a log as they are, but for headings between them, their order or their width."""


def document_of(head: bytes) -> Document | None:
    """The shape of an export that starts like this; None where no line of a logger is found in it."""
    text = _whole_lines(head[:LOOKED_AT], is_all=len(head) < LOOKED_AT).decode("utf-8", "backslashreplace")
    if not text.strip():
        return None
    if headed := _headed(text):
        return headed
    if OWN_HEAD.match(text):
        return _wrapped(text)
    shapes = (_cri, _xml, _json, _csv, _journal, _fields_of_lines, _marked)
    return next((document for shape in shapes if (document := shape(text))), None)


def plain_document_of(head: bytes, *, is_newest_first: bool) -> Document | None:
    """The shape of a log in one of its layouts that has headings, or the newest line first; None for any other."""
    if is_newest_first:
        return Document("lines with the newest first", _numbered_lines, is_plain=True)
    text = head[:LOOKED_AT].decode("utf-8", "backslashreplace")
    if "&" in text and (sign := MARKUP.search(text)) and sign["reference"]:
        return _headed(text) or Document(
            "lines with HTML's references to characters", _numbered_lines, is_plain=True
        )
    return _headed(text)


def _numbered_lines(chunks: Iterator[bytes]) -> Iterator[CarriedLine]:
    return (CarriedLine(number, line) for number, line in enumerate(_lines(chunks), 1))


# What is escaped in HTML and XML: the first one that a text has tells whether it is.
MARKUP = re.compile(r"(?P<reference>&(?:quot|lt|gt|amp|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)|[<>&]")


def written(document: Document, chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The lines of an export behind their marks, about `size` bytes at a time, the oldest first."""
    parts: list[str] = []
    length = 0
    has_origins = False
    is_escaped: bool | None = None  # in HTML, which the first sign of it tells
    for number, text, origin, millis, _ in _oldest_first(_whole(document.lines(chunks))):
        has_origins = has_origins or origin != ""
        if has_origins and not origin and _has_head(text[:FAR]):
            origin = NOBODY  # else it would count among those before it
        mark = f"{SEPARATOR}{number}{SEPARATOR}{origin}{SEPARATOR}{_shown(millis)}{SEPARATOR}"
        if is_escaped is None and (sign := MARKUP.search(text)) and _has_head(text[:FAR]):
            is_escaped = sign["reference"] is not None
        for part in _unescaped(html.unescape(text) if is_escaped else text).split("\n"):
            parts.append(f"{mark}{part.replace(SEPARATOR, '?').rstrip()}\n")
            length += len(part) + len(mark)
        if length >= size:
            yield "".join(parts).encode("utf-8", "backslashreplace")
            parts, length = [], 0
    if parts:
        yield "".join(parts).encode("utf-8", "backslashreplace")


def _whole_lines(head: bytes, *, is_all: bool) -> bytes:
    return head if is_all or b"\n" not in head else head[: head.rfind(b"\n") + 1]


def _shown(millis: int | None) -> str:
    if millis is None or not 0 <= millis < 253_402_300_800_000:  # the year 10,000
        return ""
    return f"{_second(millis // 1000)}.{millis % 1000:03}Z"


@lru_cache(64)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def _unescaped(text: str) -> str:
    """A text with the line ends and tabs of its stack trace, which collectors write out, and without colours."""
    text = text.rstrip("\r\n")
    if "\x1b" in text:
        text = COLOUR.sub("", text)
    if text[:1] == " " and OWN_HEAD.match(text.lstrip(" ")):
        text = text.lstrip(" ")
    if '\\"' in text and not BARE_QUOTE.search(text):
        text = text.replace('\\"', '"')
    if "#01" in text or "\\" in text:
        text = ESCAPED_TAB.sub("\t", ESCAPED_END.sub("\n", text))
    return text


def _whole(lines: Iterator[CarriedLine]) -> Iterator[CarriedLine]:
    """The lines, those together that a container's runtime cut, at 16 KiB mostly."""
    parts: dict[str, CarriedLine] = {}
    for line in lines:
        before = parts.pop(line.origin, None) if parts else None
        is_part = line.is_part or (
            len(line.text) >= LEAST_CUT
            and line.text[-1] != "\n"
            and not ENDED.search(line.text, len(line.text) - 200)
        )
        if before is not None and _has_head(line.text[:FAR]):
            yield before
        elif before is not None:
            line = before._replace(text=before.text + line.text)
        if is_part and len(line.text) < MOST:
            parts[line.origin] = line
        else:
            yield line
    yield from parts.values()


def _oldest_first(lines: Iterator[CarriedLine]) -> Iterator[CarriedLine]:
    first = list(itertools.islice(lines, 1000))
    steps, last = Counter[int](), dict[str, str]()
    for line in first:
        if (time := _time_in(line)) is not None:
            before = last.get(line.origin, time)
            steps[(before > time) - (before < time)] += 1
            last[line.origin] = time
    if steps[1] <= 9 * steps[-1]:
        yield from first
        yield from lines
        return
    size = sum(len(line.text) for line in first)
    for line in lines:
        first.append(line)
        size += len(line.text)
        if size > MOST:  # read in the order of the export, each line with its own time
            yield from first
            yield from lines
            return
    # A record keeps the order of its lines where what is thrown stands before the places that it was thrown at.
    keeps = any(THROWN.match(a.text) and AT.match(b.text) for a, b in itertools.pairwise(first))
    rest: list[CarriedLine] = []
    while first:
        rest.append(first.pop())
        if not keeps or _head_at(rest[-1].text) is not None:
            yield from reversed(rest)
            rest = []
    yield from reversed(rest)


def _time_in(line: CarriedLine) -> str | None:
    head = STAMP.search(line.text[:FAR])
    return f"{head['stamp']}{head['fraction'] or ''}" if head else None


def _head_at(text: str) -> int | None:
    """Where the head of a logger's line begins."""
    head = OWN_HEAD.search(text, 0, FAR) or ANY_HEAD.search(text, 0, FAR)
    return head.start() if head else None


def _has_head(text: str) -> bool:
    # A time has two colons: to count them is far quicker than to look for it.
    return len(text) > 20 and text.count(":") > 1 and _head_at(text) is not None


# --- JSON -----------------------------------------------------------------------------------------------


class _Places(NamedTuple):
    """The keys of the parts of a line in objects with the same keys, and values of the same types, of which none is an
    object but a time; without `message` the line has a head of its own, in `text`."""

    level: str | None = None
    logger: str | None = None
    message: str = ""
    time: str = ""
    traces: tuple[str, ...] = ()
    text: str = ""
    origins: tuple[str, ...] = ()
    """What may name the process, the best keys first."""
    texts: tuple[str, ...] = ()
    times: tuple[str, ...] = ()


MOST_KINDS = 1000
"""Kinds of objects in one export of which it is remembered where the parts of lines stand."""
_LEVEL_NAMES = frozenset(LEVELS.split("|"))


class _Fields:
    """Finds the lines in values of JSON; remembers which keys hold them, for lines that have no head of their own."""

    def __init__(self) -> None:
        self.keys: Counter[str] = Counter()
        self._places: dict[tuple[object, ...], _Places] = {}

    def lines(self, value: object, number: int) -> list[CarriedLine]:
        """The lines in one value."""
        if type(value) is dict:
            places = self._places.get(_kind(value))
            if places is not None and (line := self._known(value, places, number)) is not None:
                return [line]
        return list(self._lines(value, (), number, 0))

    def _known(self, value: dict[str, Any], places: _Places, number: int) -> CarriedLine | None:
        """The line of an object of a known kind; None where it has to be looked at whole."""
        origin = _best_of_known(value, places.origins)
        if not places.message:
            text = value[places.text]
            if next(iter(self.keys)) != places.text or not _has_head(text):
                return None
            return CarriedLine(number, text, _name(origin), _carried_at((value,), text, places.times))
        if any(_has_head(value[key]) for key in places.texts):
            return None
        record = _record(value, places)
        if record is None:
            return None
        millis, local, text = record
        return CarriedLine(number, text, _name(origin), millis if local is None else None)

    def _remember(self, value: dict[str, object], places: _Places) -> None:
        """Where the parts of the line stand in objects of this kind, if they have no objects in them."""
        is_flat = not any(
            isinstance(inner, (dict, list)) and key != places.time for key, inner in value.items()
        )
        if is_flat and len(self._places) < MOST_KINDS:
            texts = tuple(key for key, inner in value.items() if isinstance(inner, str))
            of_line = {places.level, places.logger, places.message, places.time, places.text, *places.traces}
            self._places[_kind(value)] = places._replace(
                origins=tuple(
                    sorted((k for k in texts if k not in of_line and _rank(k) <= len(ORIGIN_KEYS)), key=_rank)
                ),
                texts=tuple(key for key in texts if key != places.time),
                times=tuple(key for key in value if _is(TIME_KEY, key) or key.isdecimal()),
            )

    def _lines(
        self, value: object, outer: tuple[Mapping[str, object], ...], number: int, depth: int
    ) -> Iterator[CarriedLine]:
        if depth > MOST_DEPTH:
            return
        if isinstance(value, list):
            if pairs := _of_pairs(value):
                yield from self._lines(pairs, outer, number, depth + 1)
            elif _is_text(value):
                origin = _origin(outer)
                for text in value:
                    mark, text = _cut_at_head(text)
                    yield CarriedLine(number, text, origin or _origin_in(mark))
            elif any(isinstance(item, str) for item in value):  # a row: a time and a text
                yield from self._in_object(
                    {str(i): item for i, item in enumerate(value)}, outer, number, depth
                )
            else:
                for item in value:
                    yield from self._lines(item, outer, number, depth + 1)
        elif isinstance(value, dict):
            yield from self._in_object(value, outer, number, depth)

    def _in_object(
        self, value: dict[str, object], outer: tuple[Mapping[str, object], ...], number: int, depth: int
    ) -> Iterator[CarriedLine]:
        if named := [key for key in value if carrier_name(key) is not None]:  # an object of hosts
            for key in named:
                inner = value[key]
                inner = inner.split("\n") if isinstance(inner, str) else inner
                yield from self._lines(inner, ({"host": key}, value, *outer), number, depth + 1)
            return
        line = self._line_of(value, (value, *outer), number)
        if line is not None:
            yield line
            return
        rows = _of_table(value)
        if rows is not None:
            yield from self._lines(rows, (value, *outer), number, depth + 1)
            return
        texts: set[str] = set()
        for inner in value.values():
            if isinstance(inner, str) and inner[:1] == "{":
                inner = _parsed(inner)
            if not isinstance(inner, (dict, list)):
                continue
            # One event may be told twice, as fields and as its source.
            lines = [
                line
                for line in self._lines(inner, (value, *outer), number, depth + 1)
                if line.text not in texts
            ]
            yield from lines
            texts.update(line.text for line in lines)

    def _line_of(
        self, value: dict[str, object], around: tuple[Mapping[str, object], ...], number: int
    ) -> CarriedLine | None:
        texts = {
            key: text
            for key, item in value.items()
            if (text := _text(item)) is not None and not (text[:1] == "{" and _parsed(text))
        }
        key = next((key for key in (*self.keys, *texts) if _has_head(texts.get(key, ""))), None)
        if key is not None:
            self.keys[key] += 1
            if len(around) == 1:
                self._remember(value, _Places(text=key))
            text = texts[key]
            mark, text = _cut_at_head(text)
            return CarriedLine(
                number, text, _origin(around) or _origin_in(mark), _carried_at(around, texts[key])
            )
        flat = dict(_flat(value))
        if any(isinstance(text, str) and key not in texts and _has_head(text) for key, text in flat.items()):
            return None  # it stands further inside
        if len(around) > 1 and not any(isinstance(text, str) and _is_class(text) for text in flat.values()):
            # OpenTelemetry's scope is the logger.
            flat |= {
                f"scope.{key}": text
                for key, text in _flat(around[1])
                if isinstance(text, str) and _is_class(text)
            }
        places = _places_in(flat)
        if places is not None and (record := _record(flat, places)):
            if len(around) == 1:
                self._remember(value, places)
            # A head is made of its fields; the broker's own time is that of the record.
            millis, local, text = record
            return CarriedLine(number, text, _origin((flat, *around[1:])), millis if local is None else None)
        for key, text in texts.items():
            if key in self.keys and not _parsed(text):
                return CarriedLine(number, text, _origin(around), _carried_at(around, text))
        return None


def _cut_at_head(text: str) -> tuple[str, str]:
    """What stands before the head of Kafka's own layout in the first line of a text, and the rest."""
    head = OWN_HEAD.search(text, 0, FAR)
    at = head.start() if head and "\n" not in text[: head.start()] and not ANY_HEAD.match(text) else 0
    return text[:at], text[at:]


def _is_text(items: list[Any]) -> bool:
    """Whether a list is of lines, and no row of a table that has one."""
    if not items or not all(isinstance(item, str) for item in items):
        return False
    heads = sum(_has_head(item[:FAR]) for item in items[:100])
    return heads > 1 or (len(items) > 2 and _has_head(items[0][:FAR]) and AT.match(items[-1]) is not None)


def _text(value: object) -> str | None:
    """A text, which journald gives as a list of bytes where it is none of UTF-8."""
    value = _single(value)
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value or not all(type(n) is int and 0 <= n < 256 for n in value):
        return None
    return bytes(value).decode("utf-8", "backslashreplace")


def _parsed(text: str) -> object:
    if not text.startswith("{"):
        return None
    try:
        return bounded_json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_pairs(items: list[object]) -> dict[str, object] | None:
    """A list of names and values as an object."""
    for name, held in PAIRS:
        if items and all(
            isinstance(item, dict) and isinstance(item.get(name), str) and held in item for item in items
        ):
            pairs = {str(item[name]): item[held] for item in items if isinstance(item, dict)}
            return {key: _single(value) for key, value in pairs.items()}
    return None


def _single(value: object) -> object:
    """The value of OpenTelemetry's `{"stringValue": …}` and of a list of one text, and any other as it is."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)).endswith("Value"):
        return next(iter(value.values()))
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) else value


def _trace_of(items: list[object]) -> str:
    """The lines of a stack trace that log4j 2 wrote as objects; empty for any other list."""
    if not all(isinstance(item, dict) and "class" in item and "method" in item for item in items):
        return ""
    return "".join(
        f"\n\tat {item['class']}.{item['method']}({item.get('file', 'Unknown Source')}:{item.get('line', '')})"
        for item in items
        if isinstance(item, dict)
    )


def _of_table(value: dict[str, object]) -> list[object] | None:
    """The objects of an object with columns and rows."""
    columns, rows = value.get("columns") or value.get("fields"), value.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return None
    names = [
        str(column.get("name", i)) if isinstance(column, dict) else str(column)
        for i, column in enumerate(columns)
    ]
    return [dict(zip(names, row, strict=False)) if isinstance(row, list) else row for row in rows]


def _flat(value: Mapping[str, object], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Keys with points between the names of nested objects, and their values that are no objects."""
    for key, inner in itertools.islice(value.items(), MOST_KEYS):
        inner = _single(inner)
        if isinstance(inner, list) and (trace := _trace_of(inner)):
            inner = trace
        if isinstance(inner, list) and len(inner) <= MOST_KEYS and (pairs := _of_pairs(inner)):
            inner = pairs
        if isinstance(inner, dict) and depth < 4 and "epochSecond" not in inner:
            yield from _flat(inner, f"{prefix}{key}.", depth + 1)
        else:
            yield f"{prefix}{key}", inner


def _places_in(flat: dict[str, object]) -> _Places | None:
    """Where a level, a logger, a message and a time stand side by side; None where they do not."""
    texts = {key: text for key, text in flat.items() if isinstance(text, str)}
    level = next((k for k, t in texts.items() if _is(LEVEL_KEY, k) and t.upper() in _LEVEL_NAMES), None)
    logger = next((k for k, t in texts.items() if _is_class(t)), None)
    is_own = logger is not None
    if logger is None:
        logger = next((k for k, t in texts.items() if _is(LOGGER_KEY, k) and WORD.fullmatch(t)), None)
    others = [texts[key] for key in (level, logger) if key is not None]
    message = next((k for k, t in texts.items() if _is(MESSAGE_KEY, k) and t not in others), None)
    message = message or next((k for k in texts if _is(ANY_MESSAGE_KEY, k)), None)
    time = next((k for k, value in flat.items() if _is(TIME_KEY, k) and _instant(value)), None)
    if message is None or time is None or not (level or is_own):
        return None
    return _Places(level, logger, message, time, tuple(k for k in texts if _is(TRACE_KEY, k)))


@lru_cache(4096)
def _is_class(text: str) -> bool:
    return len(text) < 200 and CLASS.fullmatch(text) is not None


def _record(values: Mapping[str, Any], places: _Places) -> tuple[int | None, str | None, str] | None:
    """Time in UTC, or as the broker's clock shows it, and the line made of a level, a logger and a message.

    None where what stands in these places is none.
    """
    level = values[places.level].upper() if places.level else "UNKNOWN"
    logger = values[places.logger] if places.logger else ""
    is_word = not logger or _is_class(logger) or (places.level and WORD.fullmatch(logger))
    time = _instant(values[places.time])
    if time is None or not is_word or (places.level and level not in _LEVEL_NAMES):
        return None
    millis, local = time
    trace = next((values[key] for key in places.traces if "\n" in values[key]), "")
    head, _, more = values[places.message].partition("\n")
    shown = local or _shown(millis)[:-1].replace("T", " ").replace(".", ",")
    rest = "".join(f"\n{part}" for part in (more, trace) if part)
    return millis, local, f"[{shown}] {level} {head}{f' ({logger})' if logger else ''}{rest}"


def _kind(value: Mapping[str, object]) -> tuple[object, ...]:
    """The same for objects with the same keys in the same order, and values of the same types."""
    return (*value, *map(type, value.values()))


@lru_cache(4096)
def _is(expression: re.Pattern[str], key: str) -> bool:
    return expression.search(key) is not None


def _instant(value: object) -> tuple[int | None, str | None] | None:
    """A time as UTC milliseconds, or as text where its zone is not said; None for what is no time."""
    if isinstance(value, dict):
        seconds, nanos = value.get("epochSecond"), value.get("nanoOfSecond", 0)
        return (
            (seconds * 1000 + nanos // 1_000_000, None)
            if isinstance(seconds, int) and isinstance(nanos, int)
            else None
        )
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"\d{10,19}(?:\.\d{1,9})?", value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, (int, float)):
        for scale in (1, 1_000, 1_000_000, 1_000_000_000):  # seconds, milliseconds, microseconds, nanoseconds
            if 1e9 * scale <= value < 1e10 * scale:
                return int(value * 1000 if scale == 1 else value // (scale // 1000)), None
        return None
    stamp = STAMP.search(value, 0, FAR) if isinstance(value, str) else None
    return _of_stamp(stamp) if stamp else None


def _of_stamp(stamp: re.Match[str]) -> tuple[int | None, str | None] | None:
    second = _of_second(stamp["stamp"], stamp["zone"] or "")
    if second is None:
        return None
    millis = int((stamp["fraction"] or "").ljust(3, "0")[:3])
    return (None, f"{second},{millis:03}") if isinstance(second, str) else (second * 1000 + millis, None)


@lru_cache(64)
def _of_second(stamp: str, zone: str) -> int | str | None:
    """A second as seconds since 1970, or as the broker's clock shows it where no zone is said; None for no such time."""
    offset = "+00:00" if zone in ("Z", "UTC") else zone
    try:
        then = datetime.fromisoformat(stamp.replace("/", "-") + offset)
    except ValueError:
        return None
    return int(then.timestamp()) if zone else f"{then:%Y-%m-%d %H:%M:%S}"


Process = tuple[tuple[int, int], str]
"""What may name a process, behind its order: the least is the best."""
_NOBODY: Process = ((3, 0), "")


def _origin(around: Iterable[Mapping[str, object]]) -> str:
    """What names the process that printed a line, in the objects around it."""
    return _name(min((_best(_flat(fields)) for fields in around), default=_NOBODY, key=_order)[1])


def _best(values: Iterable[tuple[str, object]]) -> Process:
    named = (
        _process(key, value) for key, value in values if isinstance(value, str) and _may_name(key, value)
    )
    return min(named, default=_NOBODY, key=_order)


def _best_of_known(values: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The same of texts in these places, which are in the order of their ranks."""
    order, name = _NOBODY
    for key in keys:
        value = values[key]
        if _may_name(key, value) and (process := _process(key, value))[0] < order:
            order, name = process
            if order[0] == 0:
                break
    return name


def _order(process: Process) -> tuple[int, int]:
    return process[0]


def _may_name(key: str, value: str) -> bool:
    is_short = 0 < len(value) <= LONGEST_ORIGIN
    return (is_short and (_rank(key) < len(ORIGIN_KEYS) or OF_KAFKA.search(value) is not None)) or value[
        :1
    ] == "{"


@lru_cache(4096)
def _process(key: str, value: str) -> Process:
    """Pods first; then what has the number of one of Kafka's before what has none, as a container has that is called
    `kafka` on each host."""
    if value.startswith("{"):  # labels in one cell
        labels = _parsed(value)
        return _best(_flat(labels if isinstance(labels, dict) else dict(NAMED.findall(value))))
    rank = _rank(key)
    value = value.strip()
    is_numbered = carrier_name(value) is not None
    if rank > len(ORIGIN_KEYS) or (rank == len(ORIGIN_KEYS) and (not is_numbered or " " in value)):
        return _NOBODY
    return (0 if rank == 0 else 1 if is_numbered else 2, rank), _place_of(value)


@lru_cache(4096)
def _rank(key: str) -> int:
    if NO_ORIGIN.search(key):
        return len(ORIGIN_KEYS) + 1
    return next((rank for rank, keys in enumerate(ORIGIN_KEYS) if keys.search(key)), len(ORIGIN_KEYS))


def _place_of(name: str) -> str:
    """The folder of one of Kafka's own logs, all of which a process writes; any other name as it is."""
    return LOG_NAME.sub("", name)


def process_of(text: str) -> str:
    """What names the process in what a syslog daemon puts before a line, its host first: the host and what has a number
    of Kafka's beside it."""
    host, _, rest = text.partition(" ")
    pairs = dict(NAMED.findall(rest)) if "=" in rest else {}
    named = [name for name in (*pairs.values(), *rest.split()) if carrier_name(name) is not None]
    return _name(f"{host} {named[0]}" if named else host)


@lru_cache(4096)
def _name(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", "?", text)[:LONGEST_ORIGIN]


def _carried_at(
    around: Iterable[Mapping[str, object]], text: str, keys: Sequence[str] | None = None
) -> int | None:
    """When a line was carried: of the times that are told of it the one nearest to it. `keys`: those that may be times."""
    for fields in around:
        for key in fields if keys is None else keys:
            value = _single(fields[key])
            # Some columns have numbers for names.
            if value is text or not (keys is not None or _is(TIME_KEY, key) or key.isdecimal()):
                continue
            if (time := _instant(value)) and time[0] is not None:
                return time[0]
    return None


def _json(text: str) -> Document | None:
    begin = text.lstrip()
    lines = [line for line in text.split("\n") if line.strip()][:100]
    behind = [objects for line in lines if (objects := _objects_in(line))]
    fields = _Fields()
    if 2 * len(behind) > len(lines) and any(
        fields.lines(value, 1) for objects in behind for _, value in objects
    ):
        return Document(f"JSON lines, the text in {_keys(fields)}", partial(_json_lines, fields=fields))
    if begin[:1] not in ("{", "["):
        return None
    try:
        value = _closed(text)
    except (ValueError, RecursionError):
        return None
    if not fields.lines(value, 1):
        return None
    return Document(f"a JSON document, the text in {_keys(fields)}", partial(_json_document, fields=fields))


def _keys(fields: _Fields) -> str:
    return f"'{fields.keys.most_common(1)[0][0]}'" if fields.keys else "a level, a logger and a message"


def _objects_in(line: str) -> list[tuple[int, dict[str, object]]]:
    """The objects of a line, behind a mark or after each other, with where each begins."""
    if line.startswith("[{"):
        try:
            pairs = _of_pairs(bounded_json.loads(line.rstrip().rstrip(",")))
        except (ValueError, RecursionError):
            pairs = None
        if pairs:
            return [(0, pairs)]
    if fields := _logfmt(line):
        return [(0, fields)]
    if "{" not in line[:FAR]:
        return []
    start = line.find("{", 0, FAR)
    for _ in range(4):  # a mark may hold braces
        if start < 0:
            break
        text = line[start:].rstrip(" \t\r\0").rstrip(",]").rstrip()
        value = _parsed(text)
        if isinstance(value, dict):
            return [(start, value)]
        if several := _successive(text):
            return [(start + begin, value) for begin, value in several]
        start = line.find("{", start + 1, FAR)
    return []


def _successive(text: str) -> list[tuple[int, dict[str, object]]]:
    """Objects that follow each other, with or without commas, up to the end of the text; none where something else follows."""
    decoder = json.JSONDecoder()
    objects: list[tuple[int, dict[str, object]]] = []
    place = 0
    try:
        bounded_json.check(text)
        while place < len(text):
            value, end = decoder.raw_decode(text, place)
            if not isinstance(value, dict):
                return []
            objects.append((place, value))
            behind = _BETWEEN.match(text, end)
            place = behind.end() if behind else end
    except (ValueError, RecursionError):
        return []
    return objects


# A line of `key=value`, values with blanks in quotes.
LOGFMT = re.compile(r'([A-Za-z_@][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?:\s+|$)')


def _logfmt(line: str) -> dict[str, object]:
    """The fields of a line that is made of nothing else; none of any other."""
    fields: dict[str, object] = {}
    place = 0
    while match := LOGFMT.match(line, place):
        value = match[2]
        fields[match[1]] = _unquoted(value) if value[:1] == '"' else value
        place = match.end()
    return fields if place == len(line) and len(fields) > 2 else {}


def _unquoted(text: str) -> str:
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        return text[1:-1]
    return value if isinstance(value, str) else text


def _json_lines(chunks: Iterator[bytes], fields: _Fields) -> Iterator[CarriedLine]:
    for number, line in enumerate(_lines(chunks), 1):
        origin: str | None = None  # in what stands before the first object that holds a line
        for begin, value in _objects_in(line):
            for carried in fields.lines(value, number):
                origin = _origin_in(line[:begin]) if origin is None else origin
                yield carried if carried.origin else carried._replace(origin=origin)


def _json_document(chunks: Iterator[bytes], fields: _Fields) -> Iterator[CarriedLine]:
    text = _held(chunks)
    try:
        value = _closed(text)
    except (ValueError, RecursionError):
        return
    place, number = 0, 1
    for line in fields.lines(value, 1):
        # The text as the document writes it, up to its first escape, tells the line.
        plain = json.dumps(line.text, ensure_ascii=False)[1:-1].partition("\\")[0][:200]
        at = text.find(plain, place) if plain else -1
        if at >= 0:
            number += text.count("\n", place, at)
            place = at
        yield line._replace(number=number)


def _held(chunks: Iterator[bytes]) -> str:
    out = bytearray()
    for chunk in chunks:
        out += chunk
        if len(out) > MOST:
            break
    return out[:MOST].decode("utf-8", "backslashreplace")


def _closed(text: str) -> object:
    """The value of a document, or of several one after the other; of one that breaks off what is whole of it.

    ValueError for what is no JSON.
    """
    values: list[object] = []
    decoder = json.JSONDecoder()
    bounded_json.check(text)
    place = 0
    while (start := _NOT_BLANK.search(text, place)) and len(values) < 1 << 20:
        try:
            value, place = decoder.raw_decode(text, start.start())
        except ValueError:
            rest = _cut_to_whole(text, start.start())
            if rest is not None:
                values.append(bounded_json.loads(rest))
            elif not values:
                raise
            break
        values.append(value)
    return values[0] if len(values) == 1 else values


_BETWEEN = re.compile(r"[\s,\0]*")
_NOT_BLANK = re.compile(r"[^\s,\0]")
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]', re.DOTALL)


def _cut_to_whole(text: str, start: int) -> str | None:
    """A document that breaks off, up to its last whole object and closed behind it; None where it holds none."""
    stack: list[str] = []
    end, closing = 0, ""
    for token in _TOKEN.finditer(text, start):
        sign = token[0]
        if sign in ("{", "["):
            stack.append("}" if sign == "{" else "]")
            if len(stack) > 200:
                return None
        elif sign in ("}", "]"):
            if not stack or stack.pop() != sign:
                break
            if stack and (sign == "}" or stack[-1] == "]"):  # an object, or a row of a table
                end, closing = token.end(), "".join(reversed(stack))
    return text[start:end] + closing if end else None


# --- XML -------------------------------------------------------------------------------------------------

# Events of the XML layouts of log4j and log4j 2 and of Windows, and rows of exports. No document is built and no entity
# is looked up.
XML_EVENT = re.compile(r"<((?:log4j:)?event|result|row|record|entry|doc)\b(?=[^<>]{0,4000}>)", re.IGNORECASE)
XML_TAG = re.compile(
    r"<!\[CDATA\[(.*?)\]\]>|<(/?)([\w:.-]+)((?:\s+[\w:.-]+=(?:\"[^\"<]*\"|'[^'<]*'))*)\s*/?>", re.DOTALL
)
XML_ATTRIBUTE = re.compile(r"([\w:.-]+)=(?:\"([^\"]*)\"|'([^']*)')")
LONGEST_TAG, LONGEST_EVENT = 5000, 1 << 20
"""Characters of an event; a longer one is left out."""


def _xml(text: str) -> Document | None:
    fields = _Fields()
    if XML_EVENT.search(text) is None or next(_xml_lines(iter([text.encode()]), fields), None) is None:
        return None
    return Document(f"events in XML, the text in {_keys(fields)}", partial(_xml_lines, fields=fields))


def _xml_lines(chunks: Iterator[bytes], fields: _Fields) -> Iterator[CarriedLine]:
    """The lines of events, about one of which is held."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    number, text = 1, ""
    for chunk in itertools.chain(chunks, (b"",)):
        text += decoder.decode(chunk, final=not chunk)
        place = 0
        while start := XML_EVENT.search(text, place):
            end = _end_of_event(text, start)
            if end < 0 and len(text) - start.start() <= LONGEST_EVENT:
                number += text.count("\n", place, start.start())
                place = start.start()
                break
            number += text.count("\n", place, start.start())
            # No event ends behind one that is too long: to look for the end of each would take long.
            place = end if end >= 0 else max(start.end(), len(text) - LONGEST_TAG)
            if end >= 0:
                yield from fields.lines(_of_event(text[start.start() : end]), number)
            number += text.count("\n", start.start(), place)
        else:
            # The beginning of an event may be cut.
            kept = max(place, len(text) - LONGEST_TAG)
            number += text.count("\n", place, kept)
            place = kept
        text = text[place:]


def _end_of_event(text: str, start: re.Match[str]) -> int:
    """Where an event ends; -1 where its end is not there yet."""
    place, closing = start.end(), f"</{start[1]}>"
    while (end := text.find(closing, place)) >= 0:
        quoted = text.find("<![CDATA[", place, end)
        if quoted < 0:
            return end + len(closing)
        place = text.find("]]>", quoted)
        if place < 0:
            return -1
    return -1


def _of_event(text: str) -> dict[str, object]:
    """The attributes of an event and what its elements hold, by their names; those of a stack trace as its lines."""
    fields: dict[str, object] = {}
    names: list[str] = []
    trace: list[object] = []
    place = 0
    for token in XML_TAG.finditer(text):
        if names and token.start() > place:
            _append(fields, names[-1], _plain(text[place : token.start()]))
        place = token.end()
        cdata, closing, tag, attributes = token.groups()
        if cdata is not None:
            _append(fields, names[-1] if names else "event", cdata)
            continue
        if closing:
            if names:
                names.pop()
            continue
        values: dict[str, object] = {
            name: _plain(double or single) for name, double, single in XML_ATTRIBUTE.findall(attributes)
        }
        name = tag.rpartition(":")[2].lower()
        if not names:
            fields |= values
        elif name == "instant" and all(str(value).isdecimal() for value in values.values()):
            fields[name] = {key: int(str(value)[:19]) for key, value in values.items()}
        elif "class" in values and "method" in values:
            trace.append(values)
        elif "value" in values and ("key" in values or "name" in values):  # of a context or properties
            fields.setdefault(str(values.get("key") or values.get("name")), values["value"])
        elif name == "thrown":
            said = f": {values['message']}" if values.get("message") else ""
            fields["thrown"] = f"{values.get('name', '')}{said}"
        elif set(values) & {"k", "name", "key"} and not token[0].endswith("/>") and "value" not in values:
            name = str(values.get("k") or values.get("name") or values.get("key"))
        elif names and name in ("value", "text", "v", "sg"):  # what a field of an export holds
            name = names[-1]
        if not token[0].endswith("/>") and len(names) < MOST_DEPTH:
            names.append(name)
    if trace:
        fields["thrown"] = f"{fields.get('thrown', '')}{_trace_of(trace)}"
    return {key: value.strip() if isinstance(value, str) else value for key, value in fields.items()}


def _append(fields: dict[str, object], name: str, text: str) -> None:
    before = fields.get(name, "")
    if isinstance(before, str) and (text.strip() or before):
        fields[name] = before + text


def _plain(text: str) -> str:
    """A text of XML without its references to characters."""
    return html.unescape(text) if "&" in text else text


# --- CSV and journald -----------------------------------------------------------------------------------


def _csv(text: str) -> Document | None:
    for delimiter in ",\t;|":
        rows = list(itertools.islice(_rows(iter([text.encode()]), delimiter), 200))
        if len(rows) < 2:
            continue
        if len(rows[0][1]) == 1 and len(rows) > 2:  # a type or a separator is told first
            del rows[0]
        width = len(rows[0][1])
        whole = [row for _, row in rows if len(row) == width]
        if width < 2 or 2 * len(whole) <= len(rows):
            continue
        names = _names(rows[0][1])
        fields = _Fields()
        read = sum(bool(fields.lines(dict(zip(names, row, strict=False)), 1)) for row in whole)
        # The lines of a table without headings or quotes, whose last column is the text, are those behind a mark.
        is_marked = names[0] == "0" and names[-1] in fields.keys and f'{delimiter}"' not in text
        if 2 * read > len(whole) - 1 and not is_marked:
            shown = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}[delimiter]
            return Document(
                f"a table with {shown}, the text in {_keys(fields)}",
                partial(_table_lines, delimiter=delimiter, names=names, fields=fields),
            )
    return None


def _names(first: list[str]) -> list[str]:
    """The names of columns: the first row, where it is no line of a log itself."""
    if any(_head_at(cell) is not None for cell in first):
        return [str(i) for i in range(len(first))]
    return [cell.strip() or str(i) for i, cell in enumerate(first)]


def _rows(chunks: Iterator[bytes], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of the line at which each begins."""
    csv.field_size_limit(MOST)
    lines = (line.replace("\0", "?") + "\n" for line in _lines(chunks))
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            continue
        if row:
            yield number, row


def _table_lines(
    chunks: Iterator[bytes], delimiter: str, names: list[str], fields: _Fields
) -> Iterator[CarriedLine]:
    for number, row in _rows(chunks, delimiter):
        if [cell.strip() for cell in row] != names:
            yield from fields.lines(dict(zip(names, row, strict=False)), number)


# Entries of `journalctl -o export` begin with one of these.
JOURNAL_EXPORT = re.compile(r"^__(?:CURSOR|REALTIME_TIMESTAMP)=", re.MULTILINE)


def _journal(text: str) -> Document | None:
    if JOURNAL_EXPORT.search(text):
        return Document("journald's export format, the text in 'MESSAGE'", _journal_lines)
    return None


def _of_entry(entry: dict[str, object], number: int) -> CarriedLine | None:
    text = entry.get("MESSAGE")
    if not isinstance(text, str):
        return None
    return CarriedLine(number, text, _origin((entry,)), _carried_at((entry,), text))


def _journal_lines(chunks: Iterator[bytes]) -> Iterator[CarriedLine]:
    """Entries of journald's export format (systemd's `Journal Export Formats`); binary fields have their length before them."""
    entry: dict[str, object] = {}
    first = number = 0
    data = io.BufferedReader(_Stream(chunks), 1 << 16)
    while raw := data.readline(MOST):
        number += 1
        name, equals, value = raw.rstrip(b"\n").partition(b"=")
        if not name:
            if line := _of_entry(entry, first):
                yield line
            entry = {}
            continue
        if not entry:
            first = number
        if not equals:
            length = int.from_bytes(data.read(8), "little")
            if length > MOST:
                return
            value = data.read(length + 1).removesuffix(b"\n")
            number += value.count(b"\n") + 1
        if len(entry) < MOST_KEYS:
            entry[name.decode("ascii", "replace")] = value.decode("utf-8", "backslashreplace")
    if line := _of_entry(entry, first):
        yield line


# A field of a record that has a line for each: in YAML, or as `journalctl -o verbose` and others print records.
FIELD_LINE = re.compile(
    r"[ \t]*(?P<name>[A-Z_0-9]{2,})=(?P<text>.*)"
    r"|[ \t]*(?P<item>(?:-|->) +)?[\"']?(?P<key>[\w.@/-]+(?: [\w.-]+)?)[\"']?[ \t]*(?::|=>|=)(?:[ \t]+(?P<value>.*))?"
)
BLOCK = re.compile(r"[|>][-+\d]*")
OTLP_TEXT = re.compile(r"Str\((.*)\)")


def _fields_of_lines(text: str) -> Document | None:
    fields = _Fields()
    records = list(_records(enumerate(text.split("\n"), 1)))
    lines = [line for number, record in records if len(record) > 1 for line in fields.lines(record, number)]
    heads = sum(_has_head(line[:FAR]) for line in text.split("\n"))
    if (
        len(lines) < 2
        or 2 * len(lines) < len(records)
        or 2 * sum(_has_head(line.text) for line in lines) < heads
    ):
        return None
    return Document(
        f"records with a line for each field, the text in {_keys(fields)}",
        partial(_record_lines, fields=fields),
    )


def _record_lines(chunks: Iterator[bytes], fields: _Fields) -> Iterator[CarriedLine]:
    for number, record in _records(enumerate(_lines(chunks), 1)):
        yield from fields.lines(record, number)


def _records(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, dict[str, object]]]:
    """Records, each with the line of its text; one ends where a key comes again, or a list has its next item."""
    record: dict[str, str] = {}
    places: set[tuple[int, str]] = set()
    number, key, indent, is_open, began = 1, "", 0, False, -1
    for at, line in lines:
        line = line.rstrip("\r")
        width = len(line) - len(line.lstrip())
        if is_open and (not line.strip() or width > indent):
            record[key] += f"\n{line[indent + 2 :]}" if record[key] else line.strip()
            continue
        field = FIELD_LINE.fullmatch(line)
        if field is None and width and key in record and not line.strip().startswith(("}", "]")):
            record[key] += f"\n{line.strip(' ')}"  # of journald's fields further lines are indented
            continue
        is_open = False
        name = (field["key"] or field["name"]) if field else ""
        place = width, name
        is_next = bool(field and field["item"] and field["item"].strip() == "-" and width <= began)
        if field is None or place in places or is_next:
            if field is None and not STAMP.search(line) and line.strip() not in ("---", "{", "}"):
                continue
            if record:
                yield number, _whole_record(record)
            record, places, key, number = {}, set(), "", at
            if field is None:
                if STAMP.search(line):
                    record["time"] = line
                continue
        if not places:
            began = width
        places.add(place)
        if len(record) >= MOST_KEYS:
            continue
        key, indent = name, width
        value = (field["value"] if field["key"] else field["text"]) or ""
        is_open = BLOCK.fullmatch(value) is not None
        record[key] = "" if is_open else value
        if _has_head(value[:FAR]) or is_open:
            number = at
    if record:
        yield number, _whole_record(record)


def _whole_record(record: dict[str, str]) -> dict[str, object]:
    """The values of a record without what quotes them."""
    return {key: _value_of(text) for key, text in record.items()}


def _value_of(text: str) -> str:
    text = text.strip(" ")
    if text[:1] in QUOTED:
        return _within(text[0], text[1:])
    told = OTLP_TEXT.fullmatch(text)
    return told[1] if told else text


QUOTED = {
    '"': re.compile(r'((?:[^"\\]|\\.|"")*+)"', re.DOTALL),
    "'": re.compile(r"((?:[^']|'')*+)'", re.DOTALL),
}


def _within(quote: str, text: str) -> str:
    """A text up to the quote that ends it, without what is written for quotes in it; all of one that never ends."""
    match = QUOTED[quote].match(text)
    end = match.end(1) if match else len(text)
    # A quote that is not marked ends nothing before the logger.
    text = text[: max([end, *(logger.end() for logger in LOGGER_AT_END.finditer(text))] if match else [end])]
    if quote == '"' and ('\\"' in text or "\\\\" in text or "\\n" in text):
        return _unquoted(f'"{text}"')
    return text.replace(quote * 2, quote)


class _Stream(io.RawIOBase):
    """Chunks as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = chunk
        part, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


# --- headings and parts of lines --------------------------------------------------------------------------

# What `tail`, Ansible, a prompt, and what people print between the logs of several hosts look like.
_RUN = r"-=#*~+:>"
_TAG = r"</?(?:h\d|b|strong|summary|details|p|div|title|code|tt)(?: [^<>]*)?>"
HEADING = re.compile(
    rf"==> (?P<file>.+) <=="
    rf"|(?:ok|changed|fatal|failed): \[(?P<host>[\w.-]+)\].*|\[\d+\] [\d:]+ \[(?:SUCCESS|FAILURE)\] (?P<ssh>[\w.@:-]+).*|(?P<task>\S+) \| [A-Z]+!? \| rc=-?\d+ >>|\[?\w+@(?P<prompt>[\w.-]+)[: ][^\]$#]*\]?[$#] .*"
    rf"|(?P<run>[{_RUN}])(?P=run)+ ?(?!BEGIN|END)(?P<framed>[\w/@][\w./:@-]*)(?:[: ].{{0,80}}?)? ?(?P=run){{2,}}"
)
NAMED_HEADING = re.compile(
    rf"(?:{_TAG})+(?P<markup>[\w.-]+)(?:{_TAG})+|{{code:(?:.*\|)?title=(?P<code>[\w.-]+)(?:\|.*)?}}"
    rf"|(?P<person>[\w.-]+)(?: APP)?  ?\d\d?:\d\d(?: [AP]M)?|[{_RUN}<|\s]*(?:(?:\w*host|(?:host|computer|node|pod|container|ps_?computer)_?name|node|server|broker|pod|container|source|instance)"
    rf"\s*[:=]\s*)?[\"'\[(]?(?P<name>[\w./@-]+?)[\])\"']?:?(?:[ :]+[\w./-]+\.(?:log|out)\S*)?[{_RUN}<|\s]*",
    re.IGNORECASE,
)
FIELD = re.compile(r"[ \t]*(?:[\w-]+\s*[:=]\s*)?(?:['\"]?|```|(?:<[^<>]+>)+)")
FENCE = re.compile(r"```\w*|~~~+|\{code\}|(?:</?[a-z]\w*(?: [^<>]*)?>)+")
"""A line that begins or ends a part of a text, and is none of a log."""
RULE = re.compile(rf"([{_RUN}])\1{{4,}}\s*")
NAME_ALONE = re.compile(r"[\w./:@-]+")


def _heading(line: str, before: str) -> str | None:
    """What a line names that stands above lines of one process, behind a line; None for any other."""
    if (
        not line
        or len(line) > LONGEST_ORIGIN
        or line[0].isspace()
        or (line[0] == "[" and line[1:5].isdigit())
    ):
        return None
    match = HEADING.fullmatch(line) or NAMED_HEADING.fullmatch(line)
    name = next(group for key, group in match.groupdict().items() if group and key != "run") if match else ""
    if match and (match.re is HEADING or carrier_name(name) is not None):
        pass
    elif RULE.fullmatch(before) and NAME_ALONE.fullmatch(line):
        name = line
    else:
        return None
    return _place_of(name) or NOBODY


def _headed(text: str) -> Document | None:
    lines = text.split("\n")
    headings = [
        line
        for before, line in itertools.pairwise(["", *lines])
        if _heading(line.rstrip("\r"), before.rstrip("\r"))
    ]
    heads = [line[:at] for line in lines if (at := _head_at(line)) is not None]
    # A mark before the lines themselves tells more.
    if not headings or 2 * sum(not FIELD.fullmatch(mark) and _origin_in(mark) != "" for mark in heads) >= len(
        heads
    ):
        return None
    return Document(
        f"lines below headings like '{_name(headings[0].strip())[:60]}'", _headed_lines, is_plain=True
    )


def _headed_lines(chunks: Iterator[bytes]) -> Iterator[CarriedLine]:
    origin, before, indent = NOBODY, "", 0
    waiting: list[CarriedLine] = []  # blank lines and rules, which may belong to a heading
    for number, line in enumerate(_lines(chunks), 1):
        name = _heading(line, before)
        if name is not None:
            origin, waiting = name, []
        elif FENCE.fullmatch(line):
            pass
        elif not line or RULE.fullmatch(line):
            if not RULE.fullmatch(line) or not before or _heading(before, "") is None:
                waiting.append(CarriedLine(number, line, origin))
        else:
            yield from waiting
            waiting = []
            at = _head_at(line)
            if at is not None and FIELD.fullmatch(line, 0, at):
                indent = at
            # Further lines of a record are indented as its first one is, or follow what stands before that.
            is_cut = at == indent or not line[:indent].strip()
            text = line[indent:] if is_cut else line
            if at == indent and indent and (quote := line[indent - 1]) in QUOTED:
                text = _within(quote, text)
            yield CarriedLine(number, text.removesuffix("```"), origin)
        before = line
    yield from waiting


_CRI = re.compile(
    rf"(?P<stamp>{_STAMP})\.(?P<fraction>\d{{1,9}})(?P<zone>Z|[+-]\d\d:\d\d) std(?:out|err) (?P<tag>[FP]) ?(?P<text>.*)"
)


def _cri(text: str) -> Document | None:
    lines = [line for line in text.split("\n") if line.strip()][:200]
    if 2 * sum(_CRI.match(line) is not None for line in lines) <= len(lines):
        return None
    return Document("lines of a Kubernetes node", _cri_lines)


def _cri_lines(chunks: Iterator[bytes]) -> Iterator[CarriedLine]:
    for number, line in enumerate(_lines(chunks), 1):
        match = _CRI.match(line)
        if match is None:
            yield CarriedLine(number, line)
        else:
            stamp, fraction, zone, tag, text = match.groups()
            second = _of_second(stamp, zone)
            millis = second * 1000 + int(f"{fraction:0<3}"[:3]) if isinstance(second, int) else None
            yield CarriedLine(number, text, "", millis, tag == "P")


# --- lines behind a mark --------------------------------------------------------------------------------


def _marked(text: str) -> Document | None:
    lines = [line for line in text.split("\n") if line.strip()][:200]
    heads = [(line, at) for line in lines if (at := _head_at(line)) is not None]
    begun = [line for line in lines if not line[:1].isspace()]
    # A line that a text quotes makes no log of it.
    if len(heads) < 2 or 3 * len(heads) < len(begun) or all(at == 0 for _, at in heads):
        return None
    marks = _marks([line[:at] for line, at in heads])
    is_framed = 2 * sum(_behind_logger(line[at:]) != "" for line, at in heads) > len(heads)
    example = heads[0][0][: heads[0][1]].strip()
    return Document(
        f"lines behind a mark like '{_name(example)[:60]}'",
        partial(_marked_lines, marks=marks, is_framed=is_framed),
    )


def _marks(examples: list[str]) -> list[re.Pattern[str]]:
    """Expressions of the marks of lines, by which lines without a head lose theirs too: the words that all have stay."""
    by_shape: dict[tuple[str, ...], list[list[str]]] = {}
    for example in examples:
        parts = re.split(r"(\s+|[\[\](){}<>|\"'=])", example)
        by_shape.setdefault(tuple(part if i % 2 else "" for i, part in enumerate(parts)), []).append(parts)
    shapes = sorted(by_shape.values(), key=len, reverse=True)[:8]
    out = []
    for parts_of_all in shapes:
        expression = ""
        for place, part in enumerate(parts_of_all[0]):
            words = {parts[place] for parts in parts_of_all}
            if place % 2:
                # A tab behind the mark belongs to the line.
                is_same = len(words) == 1 or not part.isspace()
                expression += re.escape(part) if is_same else " +"
            elif words == {""}:
                pass
            elif len(words) == 1 and not re.search(r"\d", part):
                expression += re.escape(part)
            else:
                expression += r"[\w.:,;/+@#-]*"
        if expression:
            out.append(re.compile(expression))
    return out


def _behind_logger(text: str) -> str:
    """What stands behind the logger at the end of a line."""
    loggers = list(LOGGER_AT_END.finditer(text))
    return text[loggers[-1].end() :].strip() if loggers else ""


def _marked_lines(
    chunks: Iterator[bytes], marks: list[re.Pattern[str]], is_framed: bool
) -> Iterator[CarriedLine]:
    """`is_framed`: something stands behind the lines too, which may name the process."""
    mark = tail = ""
    for number, line in enumerate(_lines(chunks), 1):
        at = _head_at(line)
        if (
            at is None
            and mark
            and line.startswith(mark[:-1])
            and line[len(mark) - 1 :][:1] in (mark[-1], "-")
        ):
            text = line[len(mark) :]  # the same mark; `grep -A` ends it with a hyphen
        else:
            if at is None:
                matches = (match for expression in marks if (match := expression.match(line)))
                longest = max(matches, key=lambda match: match.end(), default=None)
                at = longest.end() if longest else 0
            mark, text = line[:at], line[at:]
        text = text.rstrip()
        if at is None and FENCE.fullmatch(text):
            continue
        if mark[-1:] in QUOTED and (at is not None or tail):
            text = _within(mark[-1], text)
        if is_framed and at is not None:
            tail = _behind_logger(text)
        if is_framed and tail and text.endswith(tail):
            text = text[: -len(tail)].rstrip()
        stamp = STAMP.search(mark)
        time = _of_stamp(stamp) if stamp else None
        yield CarriedLine(
            number, text, _origin_in(f"{mark} {tail}" if tail else mark), time[0] if time else None
        )


def _origin_in(mark: str) -> str:
    """What names a process in the mark of a line."""
    if not mark:
        return ""
    pairs: dict[str, object] = dict(NAMED.findall(mark))
    return _origin((pairs,)) or _name(" ".join(NAMELESS.sub(" ", NAMED.sub(" ", mark)).split()))


def _lines(chunks: Iterator[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    rest = ""
    for chunk in itertools.chain(chunks, (b"",)):
        lines = (rest + decoder.decode(chunk, final=not chunk)).split("\n")
        rest = lines.pop()
        yield from (line.rstrip("\r") for line in lines)
        if len(rest) > MOST:
            yield rest
            rest = ""
    if rest:
        yield rest


# --- lines that a screen has wrapped --------------------------------------------------------------------


def _wrapped(text: str) -> Document | None:
    """Lines of Kafka's own layout that were copied from a screen of some width."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    width = max(map(len, lines))
    full = [place for place, line in enumerate(lines[:-1]) if len(line) == width]
    cut = [
        place
        for place in full
        if not OWN_HEAD.match(lines[place + 1]) and not LOGGER_AT_END.search(lines[place][-80:] + "$")
    ]
    ended = sum(bool(re.search(r" \([\w.$]+(?::\d+)?\)\s*$", line)) for line in lines if OWN_HEAD.match(line))
    heads = sum(bool(OWN_HEAD.match(line)) for line in lines)
    if width < 60 or width > 1000 or len(full) < 2 or 2 * len(cut) < len(full) or 2 * ended > heads:
        return None
    return Document(f"lines wrapped at {width} columns", partial(_unwrapped, width=width), is_plain=True)


def _unwrapped(chunks: Iterator[bytes], width: int) -> Iterator[CarriedLine]:
    first, parts = 1, list[str]()
    for number, line in enumerate(_lines(chunks), 1):
        if parts and (len(parts[-1]) != width or OWN_HEAD.match(line) or len(parts) > 10_000):
            yield CarriedLine(first, "".join(parts))
            parts = []
        if not parts:
            first = number
        parts.append(line)
    if parts:
        yield CarriedLine(first, "".join(parts))
