"""Records taken apart quickly: lines of the same shape have their fields in the same places.

Lines that differ only in digits (with the same number of them) have one shape: its template, level, logger
and the places of its fields are worked out once. This is exact because no template
holds a digit and the types of fields treat all digits alike.
"""

from __future__ import annotations

import re
from typing import cast

from formats.broker_logs.layouts import KAFKA
from formats.broker_logs.line import (
    HEAD,
    IDENTITY,
    IDENTITY_PARTITION,
    LOGGER,
    STATE_IDENTITY,
    WRITER,
    Head,
    split_head,
)
from formats.broker_logs.table import (
    OWN_PACKAGES,
    STATE_CHANGES,
    Table,
    TemplateMatch,
    every_table,
    full_name,
    is_controller,
    table_of,
)
from kctl.text_logs.blocks import Block, Shape, Span

DIGITS = bytes.maketrans(b"123456789", b"000000000")
STATE = frozenset(("controller_id", "controller_epoch", "tp", "state", "partition_state", "leader_epoch"))
# Lines are alike for a while: to remember more of them takes memory and no less time.
MOST = 4_000
# The first words of an identity are the class that speaks, or the name of a thread: `[Kafka Server 0], `.
SPEAKS = re.compile(rb"\[([A-Za-z]+(?: [A-Z][a-z]+)*|[a-z]+(?:-[a-z]+)*)(?: on Broker)?[\] ]")
# The first line of a stack trace, and the template of what only repeats it.
EXCEPTION = re.compile(rb"\n[^\n]*(?:Exception|Error)(?:: |(?=\r?\n))")
THROWN = "X568"

CONTINUATION = Shape(None, None, "", None, (0, 0), (), (), None, is_record=False)


def shape_of(record: bytes, head: Head | None, message_at: int, only: Table | None = None) -> Shape:
    """The shape of a record whose head was split; spans are where its fields stand. `only`: templates of that table."""
    if head is None:
        return CONTINUATION
    message = head.message
    speaker: tuple[Span, ...] = ()
    partition = None
    logger = full_name(head.logger) if head.logger else None
    table = only or table_of(logger)
    identity = (STATE_IDENTITY if logger == STATE_CHANGES else IDENTITY).match(message)
    skip = identity.end() if identity else 0
    if identity and identity.re is STATE_IDENTITY:
        speaker = _speaker(identity, message_at)
    elif identity:
        named = IDENTITY_PARTITION.match(message)
        if named:
            group = 1 if named[1] else 2
            partition = named.start(group) + message_at, named.end(group) + message_at
    while message[skip : skip + 1] in (b"\n", b"\t"):  # the cleaner's figures
        skip += 1
    sentence = message[skip:]
    meaning = None
    if logger is None and identity and (speaks := SPEAKS.match(message)):
        meaning = _found(table, sentence, speaks[1].replace(b" ", b"").decode())
    meaning = meaning or _found(table, sentence, logger)
    if meaning is None and skip and identity is not None and identity.re is IDENTITY:
        meaning, skip = _found(table, message, logger), 0
    if meaning is None and only is None and logger and logger.startswith(OWN_PACKAGES):
        meaning = (
            TemplateMatch(every_table().by_id[THROWN], ()) if _is_what_was_thrown(sentence, record) else None
        )
    at = message_at + skip
    spans = tuple((n, k, a + at, b + at) for n, k, a, b in meaning.spans) if meaning else ()
    return Shape(
        meaning.template if meaning else None,
        meaning.template.id if meaning else None,
        head.level,
        logger,
        (message_at, message_at + len(message)),
        spans,
        speaker,
        partition,
        tuple((a, b) for name, _, a, b in speaker + spans if name in STATE),
        writer=_writer(message, speaker, message_at),
    )


def _is_what_was_thrown(sentence: bytes, record: bytes) -> bool:
    """Whether a sentence is only the message of the exception whose stack trace follows, which may have none."""
    thrown = EXCEPTION.search(record)
    words = sentence.strip()
    return thrown is not None and (
        words in (b"", b"null") or record.startswith((words + b"\n", words + b"\r\n"), thrown.end())
    )


def _found(table: Table, sentence: bytes, logger: str | None) -> TemplateMatch | None:
    """The template of a sentence, with or without the blanks at its end."""
    sentence = sentence.rstrip(b"\r")
    match = table.find(sentence, logger)
    bare = sentence.rstrip()
    return table.find(bare, logger) if match is None and bare != sentence else match


def _writer(message: bytes, speaker: tuple[Span, ...], at: int) -> tuple[int, int] | None:
    for name, _, start, end in speaker:
        if name != "controller_epoch":
            return start, end
    named = WRITER.match(message)
    if not named or named.lastindex is None:
        return None
    start, end = named.span(named.lastindex)
    return start + at, end + at


def _speaker(match: re.Match[bytes], at: int) -> tuple[Span, ...]:
    text = match[0]
    if not text:
        return ()
    name = "controller_id" if b"Controller" in text else "broker_id"
    out = []
    number, epoch = (1, 2) if match[1] else (3, 4)
    if match[number]:
        out.append((name, "i", match.start(number) + at, match.end(number) + at))
    if match[epoch]:
        out.append(("controller_epoch", "i", match.start(epoch) + at, match.end(epoch) + at))
    return tuple(out)


class Shapes:
    """Finds the shape of each record of a block, remembering those it has met."""

    def __init__(self, only: Table | None = None) -> None:
        """`only`: records have no other templates than those of this table."""
        self._only = only
        self._known: dict[bytes, Shape] = {}

    def parse(self, block: Block) -> list[Shape]:
        """One shape a record."""
        if block.file.layout is not KAFKA:
            return [self._any_layout(block, i) for i in range(len(block.starts))]
        keys = block.data.translate(DIGITS).split(b"\n")
        rows = block.rows.tolist()
        known = self._known
        shapes = list(map(known.get, map(keys.__getitem__, rows)))
        if None not in shapes:
            return cast("list[Shape]", shapes)
        return [
            shape or known.get(keys[row]) or self._met_first(block, index, keys[row])
            for index, (shape, row) in enumerate(zip(shapes, rows, strict=True))
        ]

    def at(self, block: Block, index: int) -> Shape:
        """The shape of one record."""
        if block.file.layout is not KAFKA:
            return self._any_layout(block, index)
        start, end = int(block.starts[index]), int(block.ends[index])
        line_end = block.data.find(b"\n", start, end)
        key = block.data[start : end if line_end < 0 else line_end].translate(DIGITS)
        return self._known.get(key) or self._met_first(block, index, key)

    def _met_first(self, block: Block, index: int, key: bytes) -> Shape:
        record = block.record(index)
        first = record.partition(b"\n")[0]
        match = HEAD.match(first)
        whole = LOGGER.fullmatch(match[3]) if match else None
        if match is None or whole is None:
            # No head, or a message with line ends in it: its shape is not in its first line alone.
            head = split_head(record)
            return shape_of(record, head, match.start(3) if match else 0, self._only)
        head = Head(match[1], match[2].decode(), whole[2].decode(), whole[1])
        shape = shape_of(record, head, match.start(3), self._only)
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = shape
        return shape

    def _any_layout(self, block: Block, index: int) -> Shape:
        record = block.record(index)
        head = block.file.layout.split(record)
        if head is None:
            return CONTINUATION
        return shape_of(record, head, max(record.find(head.message), 0), self._only)


def writer_of(shape: Shape, block: Block, index: int) -> int | None:
    """The broker that a record itself names as its writer."""
    if shape.writer is None:
        return None
    start, end = shape.writer
    first = block.places[0][index]
    return int(block.data[first + start : first + end])


def is_of_kafka(logger: str | None, level: str) -> bool:
    """Whether every line of this logger and level should have a template."""
    if logger is None:
        return False
    if logger == "state.change.logger" or is_controller(logger):
        return True
    return level not in ("TRACE", "DEBUG") and logger.startswith(("kafka.", "org.apache.kafka."))
