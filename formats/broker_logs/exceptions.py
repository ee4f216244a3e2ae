"""What an exception in a broker's log says about its cause: the rows of `exceptions.txt`.

A row is one line, shown in two here:

    cause | versions | what stops | exceptions
        | place | meaning | what to do

- Exceptions are separated by `||`: names of classes without their packages, a colon, and the message with `{name}` for
  text that is a field and `{}` for any other.
- The place is a regular expression that is found in the line and the stack trace; empty for any.
- `-` for what stops: it depends on where the exception was thrown.

Rows of one cause may follow each other. Lines that begin with # are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pkgutil import get_data
from typing import NamedTuple

# A class with its package, and its message; where it begins a line or stands at the end of a sentence.
THROWN = re.compile(
    r"(?:^|(?<=[\s:()]))(?P<class>(?:[a-z_][\w]*\.)+(?:[A-Z]\w*\$)*[A-Z]\w*?(?:Exception|Error|Throwable|Fault|Expired\w*))"
    r"(?=[:\s;,)]|$)(?::[ \t]?(?P<message>[^\n]*))?",
    re.MULTILINE,
)
BARE = re.compile(
    r"\s*(?:Caused by: |Exception in thread \"[^\"]*\" )?(?P<class>[A-Z]\w*(?:Exception|Error))(?::[ \t]?(?P<message>[^\n]*))?$",
    re.MULTILINE,
)
"""An exception that is all of a text, its package left out."""
SUPPRESSED = re.compile(r"^\s*Suppressed: ")
MOST_TEXT = 1 << 16
MOST_THROWN = 32
MOST_MESSAGE = 2_000
"""Characters of a message that are compared with the rows: longer ones would take long."""
PASSES_ON = frozenset({"wrapped", "log_dir_failed", "log_dir_offline_before", "file_not_deleted"})
"""Causes that only say that something else failed."""


class Thrown(NamedTuple):
    """An exception in a text."""

    exception: str
    """Its class, with its package where the text has it."""
    message: str


class Cause(NamedTuple):
    """A row of the table."""

    id: str
    versions: str
    stops: str
    """What stops with it; empty where that depends on the place."""
    patterns: tuple[tuple[frozenset[str], re.Pattern[str]], ...]
    """Classes without their packages, and the message."""
    place: re.Pattern[str] | None
    meaning: str
    action: str


class KnownThrown(NamedTuple):
    """An exception that a row of the table explains."""

    cause: Cause
    thrown: Thrown
    fields: dict[str, str]

    @property
    def meaning(self) -> str:
        """What it means, with what the message names."""
        return _filled(self.cause.meaning, self.fields)

    @property
    def passes_on(self) -> bool:
        """Whether it says no more than that something else failed."""
        return self.cause.id in PASSES_ON


def thrown_in(text: str) -> list[Thrown]:
    """The exceptions of a line and its stack trace: the innermost first, the suppressed ones last."""
    thrown: list[Thrown] = []
    suppressed: list[Thrown] = []
    is_suppressed = False
    for line in text[:MOST_TEXT].splitlines():
        if SUPPRESSED.match(line):
            is_suppressed = True
        elif not line[:1].isspace():
            is_suppressed = False
        if line.lstrip().startswith(("at ", "... ")):
            continue
        for match in THROWN.finditer(line):
            listed = suppressed if is_suppressed else thrown
            listed.append(_thrown(match))
            # The message may hold the next exception: `X: Y: text` is X caused by Y.
            if inner := THROWN.search(match["message"] or ""):
                listed.append(_thrown(inner))
        if len(thrown) > MOST_THROWN:
            break
    if not thrown and (bare := BARE.match(text.strip())):
        thrown.append(_thrown(bare))
    return thrown[::-1] + suppressed[:MOST_THROWN]


def _thrown(match: re.Match[str]) -> Thrown:
    return Thrown(match["class"], (match["message"] or "")[:MOST_MESSAGE].strip())


def is_exception(text: str) -> bool:
    """Whether a text is an exception by itself, with or without its stack trace, and no line of a log."""
    first = text.lstrip().partition("\n")[0]
    first = re.sub(r"^(?:Caused by: |Exception in thread \"[^\"]*\" |Suppressed: )", "", first)
    return THROWN.match(first) is not None or BARE.match(first) is not None


def cause_of(text: str) -> KnownThrown | None:
    """What a line and its stack trace say about the cause; None where no row knows any of its exceptions.

    The innermost exception decides, unless it is one that only passes on another.
    """
    passing: KnownThrown | None = None
    text = text[:MOST_TEXT]
    listed = thrown_in(text)
    for thrown in listed:
        known = explain_thrown(thrown, text)
        if known is None or (known.cause.id == "wrapped" and len(listed) == 1):
            continue
        if not known.passes_on:
            return known
        passing = passing or known
    return passing


def explain_thrown(thrown: Thrown, text: str) -> KnownThrown | None:
    """The row of one exception of a text."""
    name = re.split(r"[.$]", thrown.exception)[-1]
    for cause in causes_of_class(name):
        if cause.place is not None and not cause.place.search(text):
            continue
        for classes, message in cause.patterns:
            if name in classes and (match := message.fullmatch(thrown.message)):
                fields = {key: value for key, value in match.groupdict().items() if value}
                return KnownThrown(cause, thrown, fields)
    return None


def _filled(sentence: str, fields: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: fields.get(match[1], "?"), sentence)


@cache
def every_cause() -> tuple[Cause, ...]:
    """All rows, in order."""
    text = get_data("formats.broker_logs", "exceptions.txt") or b""
    return tuple(causes_in(text.decode()))


@cache
def causes_of_class(name: str) -> tuple[Cause, ...]:
    """The rows that name a class, in order."""
    return tuple(cause for cause in every_cause() if any(name in classes for classes, _ in cause.patterns))


def causes_in(text: str) -> Iterator[Cause]:
    """The rows of a table; ValueError for a line that is no row."""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        columns = [column.strip() for column in re.split(r" \|(?= )", line)]
        if len(columns) != 7:
            raise ValueError(f"not a row of an exception: {line}")
        id_, versions, stops, patterns, place, meaning, action = columns
        yield Cause(
            id_,
            versions,
            "" if stops == "-" else stops,
            tuple(_patterns(patterns.split(" || "))),
            re.compile(place) if place else None,
            meaning,
            action,
        )


def _patterns(texts: Iterable[str]) -> Iterator[tuple[frozenset[str], re.Pattern[str]]]:
    for text in texts:
        classes, colon, message = text.partition(":")
        if not colon:
            raise ValueError(f"not an exception with a message: {text}")
        yield frozenset(classes.split()), _expression(message.strip())


def _expression(message: str) -> re.Pattern[str]:
    names: set[str] = set()
    out = []
    for piece in re.split(r"(\{\w*\})", message):
        if not re.fullmatch(r"\{\w*\}", piece):
            out.append(re.escape(piece))
        elif piece == "{}" or piece in names:
            out.append(".*?")
        else:
            names.add(piece)
            out.append(f"(?P<{piece[1:-1]}>.*?)")
    return re.compile("".join(out), re.DOTALL)
