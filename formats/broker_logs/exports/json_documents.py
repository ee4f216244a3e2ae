"""Exports in JSON: objects in lines, one document, or lines of `key=value`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial

from formats import bounded_json
from formats.broker_logs.exports.carried import FAR, MOST, CarriedLine, Document, lines_of, unquoted
from formats.broker_logs.exports.fields import Fields, keys_in_words
from formats.broker_logs.exports.origins import of_pairs, origin_in, parsed_object


def json_document(text: str) -> Document | None:
    begin = text.lstrip()
    lines = [line for line in text.split("\n") if line.strip()][:100]
    behind = [objects for line in lines if (objects := _objects_in(line))]
    fields = Fields()
    if 2 * len(behind) > len(lines) and any(
        fields.lines(value, 1) for objects in behind for _, value in objects
    ):
        return Document(
            f"JSON lines, the text in {keys_in_words(fields)}", partial(_json_lines, fields=fields)
        )
    if begin[:1] not in ("{", "["):
        return None
    try:
        value = _closed(text)
    except (ValueError, RecursionError):
        return None
    if not fields.lines(value, 1):
        return None
    return Document(
        f"a JSON document, the text in {keys_in_words(fields)}", partial(_json_document, fields=fields)
    )


def _objects_in(line: str) -> list[tuple[int, dict[str, object]]]:
    """The objects of a line, behind a mark or after each other, with where each begins."""
    if line.startswith("[{"):
        try:
            pairs = of_pairs(bounded_json.loads(line.rstrip().rstrip(",")))
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
        value = parsed_object(text)
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
        fields[match[1]] = unquoted(value) if value[:1] == '"' else value
        place = match.end()
    return fields if place == len(line) and len(fields) > 2 else {}


def _json_lines(chunks: Iterator[bytes], fields: Fields) -> Iterator[CarriedLine]:
    for number, line in enumerate(lines_of(chunks), 1):
        origin: str | None = None  # in what stands before the first object that holds a line
        for begin, value in _objects_in(line):
            for carried in fields.lines(value, number):
                origin = origin_in(line[:begin]) if origin is None else origin
                yield carried if carried.origin else carried._replace(origin=origin)


def _json_document(chunks: Iterator[bytes], fields: Fields) -> Iterator[CarriedLine]:
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
