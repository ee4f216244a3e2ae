"""Exports of logs in any shape: the lines that a logger wrote, found in JSON, CSV, journald's export or behind any mark.

Systems that collect logs export them in hundreds of shapes. None is listed here. What a broker wrote is known by its own
look: a time, a level and a sentence in one text, or a level, a class of Kafka and a sentence side by side. Where it stands
in an export is found by trying. Each line is given behind a mark that `layouts.DOCUMENT` reads: its number in the export,
what carried it (host, pod or container) and when. An export with the newest line first is turned round.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator

from formats.broker_logs.exports.carried import (
    AT,
    FAR,
    LOGGER_AT_END,
    LOOKED_AT,
    MOST,
    OWN_HEAD,
    SEPARATOR,
    CarriedLine,
    Document,
    has_head,
    head_at,
    lines_of,
    time_in,
    utc_text,
)
from formats.broker_logs.exports.copied_lines import headed_document, wrapped_document
from formats.broker_logs.exports.origins import NOBODY

ESCAPED_END = re.compile(
    r"#012|\\n(?=(?:#011|\\t|\s*at |Caused by: |\t|\s+\.\.\. \d))|(?<=\))\\n(?=[\w.$]+(?:Exception|Error)\b)"
)
ESCAPED_TAB = re.compile(r"(?:#011|\\t)(?=at |\.\.\. \d|Suppressed: |Caused by: )")
BARE_QUOTE = re.compile(r'(?<!\\)"')
COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
THROWN = re.compile(r"(?:Caused by: )?[\w.$]+(?:Exception|Error)\b")
LEAST_CUT = 8000
"""Characters of a line that may be cut."""
ENDED = re.compile(LOGGER_AT_END.pattern + r"\s*\Z")


def document_of(head: bytes) -> Document | None:
    """The shape of an export that starts like this; None where no line of a logger is found in it."""
    text = _whole_lines(head[:LOOKED_AT], is_all=len(head) < LOOKED_AT).decode("utf-8", "backslashreplace")
    if not text.strip():
        return None
    if headed := headed_document(text):
        return headed
    if OWN_HEAD.match(text):
        return wrapped_document(text)
    # The readers of exports are loaded only if a file is one.
    from formats.broker_logs.exports.json_documents import json_document
    from formats.broker_logs.exports.marks import marked_document, node_document
    from formats.broker_logs.exports.records import journal_document, records_document
    from formats.broker_logs.exports.tables import table_document
    from formats.broker_logs.exports.xml_events import xml_document

    shapes = (
        node_document,
        xml_document,
        json_document,
        table_document,
        journal_document,
        records_document,
        marked_document,
    )
    return next((document for shape in shapes if (document := shape(text))), None)


def plain_document_of(head: bytes, *, is_newest_first: bool) -> Document | None:
    """The shape of a log in one of its layouts that has headings, or the newest line first; None for any other."""
    if is_newest_first:
        return Document("lines with the newest first", _numbered_lines, is_plain=True)
    text = head[:LOOKED_AT].decode("utf-8", "backslashreplace")
    if "&" in text and (sign := MARKUP.search(text)) and sign["reference"]:
        return headed_document(text) or Document(
            "lines with HTML's references to characters", _numbered_lines, is_plain=True
        )
    return headed_document(text)


def _numbered_lines(chunks: Iterator[bytes]) -> Iterator[CarriedLine]:
    return (CarriedLine(number, line) for number, line in enumerate(lines_of(chunks), 1))


# Characters that HTML and XML escape; whether the first one in a text is escaped tells it for the whole text.
MARKUP = re.compile(r"(?P<reference>&(?:quot|lt|gt|amp|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)|[<>&]")


def written(document: Document, chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The lines of an export behind their marks, about `size` bytes at a time, the oldest first."""
    import html

    parts: list[str] = []
    length = 0
    has_origins = False
    is_escaped: bool | None = None  # in HTML, which the first sign of it tells
    for number, text, origin, millis, _ in _oldest_first(_whole(document.lines(chunks))):
        has_origins = has_origins or origin != ""
        if has_origins and not origin and has_head(text[:FAR]):
            origin = NOBODY  # else it would count among those before it
        mark = f"{SEPARATOR}{number}{SEPARATOR}{origin}{SEPARATOR}{utc_text(millis)}{SEPARATOR}"
        if is_escaped is None and (sign := MARKUP.search(text)) and has_head(text[:FAR]):
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
        if before is not None and has_head(line.text[:FAR]):
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
        if (time := time_in(line)) is not None:
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
        if not keeps or head_at(rest[-1].text) is not None:
            yield from reversed(rest)
            rest = []
    yield from reversed(rest)
