"""A sentence that brokers print: its row in `templates/`, and its regular expression.

`templates/` holds a text file for each class that prints, or for a few classes of one subject. A file has sections
headed `[classes in log]`. A version after a class is the last in which that class printed the sentences:
`kafka.server.ReplicaFetcherThread ≤1.1, kafka.server.AbstractFetcherThread`. A row of a section is one line, shown in
two here:

    id | versions | level | sentence
        | meaning | before ids | after ids | sign what it is a sign of

The last three parts are optional. Lines that begin with # are comments.

- The id is a letter, as in the rows around it, and two or three digits. No other file may use it, and it never changes.
- The sentence begins after the name in brackets: of `[ReplicaManager broker=1] Shut down completely` it is
  `Shut down completely`. It has `{name:type}` for what varies and «» around what may be missing.
- The first letter matches in either case: Kafka 0.8 begins many sentences in lower case, 1.0 the same in upper case.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from functools import cache
from typing import NamedTuple

FIELD_TYPES = {
    "i": r"-?\d{1,19}",  # a whole number
    "w": r"\S+",  # text without spaces
    "s": r".*?",  # any text, also none
    "L": r"[-\d, ]*",  # broker ids, separated by commas
    "b": r"true|false",
    "tp": r"\[[\w.-]+, ?\d+\]|[\w.-]+-\d+",  # a partition: `orders-3`, before 1.0 `[orders,3]`
    "tid": r"Some\([\w-]{22}\)|None|[\w-]{22}",  # a topic id
    "st": r"[A-Z]\w+",  # a state: `OnlinePartition`
    "opt": r"Some\(-?\d+\)|None",  # a Scala Option of a number
    "um": r"\(under-min-isr\)|",
}
PIECES = re.compile(r"(\{\w+:\w+\}|[«»])")


class Template(NamedTuple):
    """One sentence that brokers print."""

    id: str
    log: str
    """The file that Kafka's own configuration has it written to: state-change.log, controller.log, server.log."""
    classes: str
    """The classes that print it, each with its package and with the last version where another follows."""
    versions: str
    """Minor versions whose last patch release prints it, as `0.9–3.9`."""
    level: str
    """T, D, I, W, E, F and where the level changed; `+S`: a stack trace follows."""
    pattern: str
    meaning: str
    before: str = ""
    """Ids of what normally comes before it."""
    after: str = ""
    """Ids of what normally follows it."""
    sign: str = ""
    """What it is a sign of, where it is more than ordinary work."""

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Name and type of each field, in order."""
        return _fields(self.pattern)

    @property
    def words(self) -> int:
        """How many characters of the pattern are fixed: the more, the more a match says."""
        return len(PIECES.sub("", self.pattern))


@cache
def _fields(pattern: str) -> tuple[tuple[str, str], ...]:
    return tuple(re.findall(r"\{(\w+):(\w+)\}", pattern))


def templates_of(text: str, only: str = "", ids: Container[str] = ()) -> Iterator[Template]:
    """The rows of one file of `templates/`, or those of one log, or those of some ids; ValueError for a line that is no
    row."""
    log = classes = ""
    for line in text.splitlines():
        if line.startswith("["):
            classes, log = line[1:-1].split(" in ")
        elif ids and line.partition(" ")[0] not in ids:
            continue
        elif line and not line.startswith("#") and (not only or log == only):
            try:
                id_, versions, level, pattern, meaning, *links = line.split(" | ")
                named = dict(link.split(" ", 1) for link in links)
                template = Template(id_, log, classes, versions, level, pattern, meaning, **named)
            except (ValueError, TypeError) as error:
                raise ValueError(f"not a row of a template: {line}") from error
            yield template


def expression(pattern: str) -> str:
    """The regular expression of a pattern, groups named as the fields."""
    out = []
    for number, piece in enumerate(PIECES.split(pattern)):
        if piece.startswith("{") and PIECES.fullmatch(piece):
            name, kind = piece[1:-1].split(":")
            # All that is left, taken at once: a configuration is long.
            is_rest = kind == "s" and pattern.endswith(piece)
            out.append(f"(?P<{name}>{'.*' if is_rest else FIELD_TYPES[kind]})")
        elif piece == "«":
            out.append("(?:")
        elif piece == "»":
            out.append(")?")
        elif number == 0 and piece[:1].isalpha():
            out.append(f"[{piece[0].upper()}{piece[0].lower()}]{re.escape(piece[1:])}")
        else:
            out.append(re.escape(piece))
    return "".join(out)


@cache
def compiled(template: Template) -> re.Pattern[bytes]:
    """The template as a pattern over bytes; a field's text may hold any byte but a line end or more lines."""
    return re.compile(expression(template.pattern).encode(), re.DOTALL)


@cache
def landmark(template: Template) -> bytes:
    """The longest text that every such sentence holds: to look for it is quicker than to compile the template."""
    must = template.pattern
    while "«" in must:
        must = re.sub(r"«[^«»]*»", "{}", must)
    if must[:1].isalpha():
        must = must[1:]
    return max(re.split(r"\{[^}]*\}", must), key=len).encode()


def first_words(text: str) -> str:
    """What templates are looked up by: the first two words in lower case, or the first where a field follows."""
    head = text
    for mark in "{«»":
        head = head.partition(mark)[0]
    words = head.split(" ", 2)
    if len(words) < 3 and len(head) < len(text):
        # The last word touches a field or an optional part, so that it is not known whole.
        words.pop()
    return " ".join(words[:2]).lower()
