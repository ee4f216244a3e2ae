"""A line that a logger wrote and what carried it; where its head begins, and how times are written."""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from formats.broker_logs.date_formats import OTHER_DATE

SEPARATOR = "\x1f"
LOOKED_AT = 1 << 16
"""Bytes at the start of a file by which its shape is known."""
MOST = 64 << 20
"""Bytes of an export that has to be held as a whole: one JSON document, or lines with the newest first."""
MOST_DEPTH = 16
MOST_KEYS = 400
LEVELS = "TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL"
STAMP_EXPRESSION = r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d"
# A head of Kafka's own layout, then one of any other: a time, maybe a thread, a level.
OWN_HEAD = re.compile(rf"\[{STAMP_EXPRESSION},\d{{3}}\] (?:{LEVELS}) ")
ANY_HEAD = re.compile(
    rf"\[?(?:{STAMP_EXPRESSION}|(?<!\d)(?:{OTHER_DATE}) \d\d:\d\d:\d\d)(?:[,.]\d{{1,9}})?(?: ?Z| ?[+-]\d\d:?\d\d)?[\]|,]? {{0,3}}(?:[-|] )?(?:\[[^\]\n]{{0,100}}\] {{0,3}})?\[?(?:{LEVELS})\b"
)
FAR = 1000
"""Characters of a line in which a logger's head is looked for."""
STAMP = re.compile(
    rf"(?P<stamp>{STAMP_EXPRESSION})(?:[,.](?P<fraction>\d{{1,9}}))?(?: ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d))?(?!\d)"
)
SYSLOG_TIME = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
AT = re.compile(r"\s+(?:at |\.\.\. \d)")
LOGGER_AT_END = re.compile(r" \([\w.$]+(?::\d+)?\)")


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


def utc_text(millis: int | None) -> str:
    if millis is None or not 0 <= millis < 253_402_300_800_000:  # the year 10,000
        return ""
    return f"{_second(millis // 1000)}.{millis % 1000:03}Z"


@lru_cache(64)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def time_in(line: CarriedLine) -> str | None:
    head = STAMP.search(line.text[:FAR])
    return f"{head['stamp']}{head['fraction'] or ''}" if head else None


def head_at(text: str) -> int | None:
    """Where the head of a logger's line begins."""
    if text.count(":") < 2:  # a time has two: to count them is far quicker than to look for it
        return None
    head = OWN_HEAD.search(text, 0, FAR) or ANY_HEAD.search(text, 0, FAR)
    return head.start() if head else None


def has_head(text: str) -> bool:
    return len(text) > 20 and head_at(text) is not None


def cut_at_head(text: str) -> tuple[str, str]:
    """What stands before the head of Kafka's own layout in the first line of a text, and the rest."""
    head = OWN_HEAD.search(text, 0, FAR)
    at = head.start() if head and "\n" not in text[: head.start()] and not ANY_HEAD.match(text) else 0
    return text[:at], text[at:]


def of_stamp(stamp: re.Match[str]) -> tuple[int | None, str | None] | None:
    second = of_second(stamp["stamp"], stamp["zone"] or "")
    if second is None:
        return None
    millis = int((stamp["fraction"] or "").ljust(3, "0")[:3])
    return (None, f"{second},{millis:03}") if isinstance(second, str) else (second * 1000 + millis, None)


@lru_cache(64)
def of_second(stamp: str, zone: str) -> int | str | None:
    """A second as seconds since 1970, or as the broker's clock shows it where no zone is said; None for no such time."""
    offset = "+00:00" if zone in ("Z", "UTC") else zone
    try:
        then = datetime.fromisoformat(stamp.replace("/", "-") + offset)
    except ValueError:
        return None
    return int(then.timestamp()) if zone else f"{then:%Y-%m-%d %H:%M:%S}"


def unquoted(text: str) -> str:
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        return text[1:-1]
    return value if isinstance(value, str) else text


QUOTED = {
    '"': re.compile(r'((?:[^"\\]|\\.|"")*+)"', re.DOTALL),
    "'": re.compile(r"((?:[^']|'')*+)'", re.DOTALL),
}


def within_quotes(quote: str, text: str) -> str:
    """A text up to the quote that ends it, without what is written for quotes in it; all of one that never ends."""
    match = QUOTED[quote].match(text)
    end = match.end(1) if match else len(text)
    # A quote that is not marked ends nothing before the logger.
    text = text[: max([end, *(logger.end() for logger in LOGGER_AT_END.finditer(text))] if match else [end])]
    if quote == '"' and ('\\"' in text or "\\\\" in text or "\\n" in text):
        return unquoted(f'"{text}"')
    return text.replace(quote * 2, quote)


def lines_of(chunks: Iterator[bytes]) -> Iterator[str]:
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
