"""Exports as records with a line for each field: journald's, YAML, and what consoles print."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from formats.broker_logs.exports.carried import (
    FAR,
    MOST,
    MOST_KEYS,
    QUOTED,
    STAMP,
    CarriedLine,
    Document,
    has_head,
    lines_of,
    within_quotes,
)
from formats.broker_logs.exports.fields import Fields, carried_at, keys_in_words
from formats.broker_logs.exports.origins import LONGEST_ORIGIN, origin_of

# Entries of `journalctl -o export` begin with one of these.
JOURNAL_EXPORT = re.compile(r"^__(?:CURSOR|REALTIME_TIMESTAMP)=", re.MULTILINE)


def journal_document(text: str) -> Document | None:
    if JOURNAL_EXPORT.search(text):
        return Document("journald's export format, the text in 'MESSAGE'", _journal_lines)
    return None


def _of_entry(entry: dict[str, object], number: int) -> CarriedLine | None:
    text = entry.get("MESSAGE")
    if not isinstance(text, str):
        return None
    return CarriedLine(number, text, origin_of((entry,)), carried_at((entry,), text))


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
LONGEST_RECORD = 16 << 20
"""Bytes that the lines of a record take in memory, about; what is longer is given in parts."""
OF_LINE = 64
"""Bytes that a line takes beside its text."""
BLOCK = re.compile(r"[|>][-+\d]*")
OTLP_TEXT = re.compile(r"Str\((.*)\)")


def records_document(text: str) -> Document | None:
    fields = Fields()
    records = list(_records(enumerate(text.split("\n"), 1)))
    with_heads = {key for _, record in records for key, value in record.items() if has_head(str(value)[:FAR])}
    if not any(record.keys() - with_heads for _, record in records):
        return None  # what stands before each line is its mark: no field tells of another
    lines = [line for number, record in records if len(record) > 1 for line in fields.lines(record, number)]
    heads = sum(has_head(line[:FAR]) for line in text.split("\n"))
    if (
        len(lines) < 2
        or 2 * len(lines) < len(records)
        or 2 * sum(has_head(line.text) for line in lines) < heads
    ):
        return None
    return Document(
        f"records with a line for each field, the text in {keys_in_words(fields)}",
        partial(_record_lines, fields=fields),
    )


def _record_lines(chunks: Iterator[bytes], fields: Fields) -> Iterator[CarriedLine]:
    for number, record in _records(enumerate(lines_of(chunks), 1)):
        yield from fields.lines(record, number)


def _records(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, dict[str, object]]]:
    """Records, each with the line of its text; one ends where a key comes again, or a list has its next item."""
    record: dict[str, list[str]] = {}
    length = 0
    places: set[tuple[int, str]] = set()
    number, key, indent, is_open, began = 1, "", 0, False, -1
    for at, line in lines:
        line = line.rstrip("\r")
        length += len(line) + OF_LINE
        if length > LONGEST_RECORD and key in record:
            yield number, _whole_record(record)
            # A record that is too long comes in pieces; its short fields, which name the origin, go with each of them.
            record = {
                name: parts
                for name, parts in record.items()
                if len(parts) == 1 and len(parts[0]) < LONGEST_ORIGIN
            }
            record[key], length, number = [], 0, at
        width = len(line) - len(line.lstrip())
        if is_open and (not line.strip() or width > indent):
            if record[key] or line.strip():
                record[key].append(line[indent + 2 :] if record[key] else line.strip(" "))
            continue
        field = FIELD_LINE.fullmatch(line)
        if field is None and width and key in record and not line.strip().startswith(("}", "]")):
            record[key].append(line.strip(" "))  # of journald's fields further lines are indented
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
            record, places, key, number, length = {}, set(), "", at, 0
            if field is None:
                if STAMP.search(line):
                    record["time"] = [line]
                continue
        if not places:
            began = width
        places.add(place)
        if len(record) >= MOST_KEYS:
            continue
        key, indent = name, width
        value = (field["value"] if field["key"] else field["text"]) or ""
        is_open = BLOCK.fullmatch(value) is not None
        record[key] = [] if is_open else [value]
        if has_head(value[:FAR]) or is_open:
            number = at
    if record:
        yield number, _whole_record(record)


def _whole_record(record: dict[str, list[str]]) -> dict[str, object]:
    """The values of a record without what quotes them."""
    return {key: _value_of("\n".join(parts)) for key, parts in record.items()}


def _value_of(text: str) -> str:
    text = text.strip(" ")
    if text[:1] in QUOTED:
        return within_quotes(text[0], text[1:])
    told = OTLP_TEXT.fullmatch(text)
    return told[1] if told else text


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
