"""What a line of a broker's log means: its template, its fields, what comes before and after, what it is a sign of."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from formats.broker_logs.exceptions import KnownThrown, cause_of, is_exception, thrown_in
from formats.broker_logs.layouts import detect
from formats.broker_logs.table import every_table
from formats.broker_logs.threads import thread_of
from kctl.broker_logs.events import Event
from kctl.broker_logs.failures import meaning_of
from kctl.errors import BadValue, UnreadableFile, file_error
from kctl.files import open_file
from kctl.rows.state_log import EXCEPTION, TEMPLATE
from kctl.text_logs.blocks import Block, Reading, blocks_of
from kctl.text_logs.log_files import LogFile, LogSource
from kctl.text_logs.shapes import Shapes

PLACE = re.compile(r"(?P<file>.+):(?P<line>\d{1,12})")


# Lines that only say what followed from an error before them, and so many records back it may be.
FOLLOWS = frozenset({"D02", "D03", "D04", "D05", "R21", "U20", "U22", "U23", "U24"})
LOOKED_BACK = 60
THREAD_DIED = "F235"


def explain_rows(text: str) -> list[dict[str, object]]:
    """Rows of kinds `template` and `exception` for the text of a line or of an exception, or for FILE:NUMBER.

    `UnreadableFile` where the file cannot be opened, `BadValue` where it has no such line.
    """
    place = PLACE.fullmatch(text)
    if place and (os.path.exists(place["file"]) or not text.startswith("[")) and not is_exception(text):
        number = int(place["line"])
        event = _event_in(place["file"], number)
        return _rows(event, place["file"], number)
    if is_exception(text):
        return [_exception_row(text, cause_of(text), None, None)]
    return _rows(_event_of(text.encode("utf-8", "surrogateescape") + b"\n"), None, None)


def explain_line(text: str) -> dict[str, object]:
    """The first row of `explain_rows`."""
    return explain_rows(text)[0]


def _rows(event: Event, file: str | None, number: int | None) -> list[dict[str, object]]:
    own = cause_of(event.text)
    cause, at = own, number
    if event.event in FOLLOWS and (own is None or own.passes_on):
        for earlier in islice(event.earlier(), LOOKED_BACK):
            before = cause_of(earlier.record.decode("utf-8", "backslashreplace"))
            if before is not None and not before.passes_on:
                cause, at = before, None
                break
    rows = [_row(event, file, number, own)]
    if cause is not None or thrown_in(event.text):
        rows.append(_exception_row(event.text, cause, file, at))
    return rows


def _exception_row(
    text: str, known: KnownThrown | None, file: str | None, number: int | None
) -> dict[str, object]:
    thrown = known.thrown if known else thrown_in(text)[0]
    cause = known.cause if known else None
    return EXCEPTION(
        exception=thrown.exception,
        message=thrown.message,
        cause=cause.id if cause else None,
        versions=cause.versions if cause else None,
        stops=(cause.stops or None) if cause else None,
        meaning=meaning_of(known) if known else None,
        action=cause.action if cause else None,
        fields=dict(known.fields) if known else {},
        file=file,
        line=number,
    )


def _event_in(file: str, number: int) -> Event:
    """The record that a line of a file is part of."""
    try:
        open_file(file, follow=True).close()
    except OSError as error:
        raise file_error(file, error) from error
    head = next(_blocks(file), None)
    if head is None:
        raise BadValue(f"{file} is empty", "name a log that holds something")
    shapes = Shapes()
    nearest: tuple[int, Block, int] | None = None
    for block in _blocks(file):
        if (
            block.numbers is not None
        ):  # an export: its lines may stand in another order, with others between them
            lines = np.where(block.lines <= number, block.lines, 0)
            index = int(lines.argmax())
            if lines[index] > (nearest[0] if nearest else 0):
                nearest = int(lines[index]), block, index
        elif block.first_line <= number < block.first_line + block.data.count(b"\n", 0, int(block.ends[-1])):
            index = int((block.lines <= number).sum()) - 1
            return Event(block, index, shapes.parse(block)[index])
    if nearest is not None:
        _, block, index = nearest
        return Event(block, index, shapes.parse(block)[index])
    raise BadValue(f"{file} has no line {number}", "name a line that the file has")


def _blocks(file: str) -> Iterator[Block]:
    from kctl.text_logs.opening import PEEKED, chunks_of

    start = next(chunks_of(file, lambda reason: None, size=PEEKED), b"")
    layout, first = detect(start)
    if layout is None:
        raise UnreadableFile(
            f"{file}: no line of it has the head of a log line",
            "name another file, or give the text of the line",
        )
    source = LogSource(None, "other", (LogFile(file, file, "other", None, layout, first),))
    return blocks_of(source, 0, None, Reading())


def _event_of(record: bytes) -> Event:
    """The record of a text: a whole line, or a sentence without its head."""
    for data in (record, b"[1970-01-01 00:00:00,000] INFO " + record):
        layout, _ = detect(data)
        if layout is not None:
            source = LogSource(None, "other", (LogFile("-", "-", "other", None, layout, None),))
            block = _block_of(data, source)
            return Event(block, 0, Shapes().parse(block)[0])
    raise BadValue("the text is not a log line", "give a whole line, with its time and level")


def _block_of(data: bytes, source: LogSource) -> Block:
    records = source.files[0].layout.find(data)
    ends = np.append(records.starts[1:], len(data))
    return Block(
        0,
        source.files[0],
        data,
        records.starts,
        ends,
        records.millis,
        records.millis,
        int(records.millis[-1]),
        1,
        np.flatnonzero(np.frombuffer(data, np.uint8) == 10),
    )


def _row(event: Event, file: str | None, number: int | None, known: KnownThrown | None) -> dict[str, object]:
    template = event.template
    fields = dict(event.fields)
    meaning = template.meaning if template else None
    sign = (template.sign or None) if template else None
    if known is not None and not known.passes_on:
        sign = known.cause.id.replace("_", " ")
    thread = thread_of(event.message) if event.event == THREAD_DIED else None
    if thread is not None:
        name, kind = thread
        fields["thread"] = name
        if kind is not None:
            meaning = f"The thread {name}, {kind.what}, died of an error. {kind.stops}"
    return TEMPLATE(
        event=event.event,
        text=event.text if file is not None or event.logger else event.message,
        level=template.level if template else event.level or None,
        logger=event.logger or (template.classes if template else None),
        pattern=template.pattern if template else None,
        versions=template.versions if template else None,
        meaning=meaning,
        fields=fields,
        before=_listed(template.before if template else ""),
        after=_listed(template.after if template else ""),
        sign=sign,
        file=file,
        line=number,
    )


def _listed(ids: str) -> list[dict[str, object]]:
    templates = [every_table().by_id[template_id] for template_id in ids.split()]
    return [{"event": template.id, "pattern": template.pattern} for template in templates]
