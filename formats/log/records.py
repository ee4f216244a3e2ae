"""A run of log bytes of any magic as entries and damage, every byte in exactly one of them.

A batch *proves itself* by a legal magic and length, its CRC, and an offset not before the last good one.
Where one does not, its length is believed only if following lengths leads to a batch that does, or to the
end of the log: then it is a `LogEntry` whose `crc_valid` is False. Else the bytes up to the next proof are
one `Damage`: a length that lies may point at something that merely looks like a batch.

Source: clients/src/main/java/org/apache/kafka/common/record/{FileLogInputStream,Records}.java @ 3.9.0-rc3
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING

from formats.binary.layout import Bytes, read
from formats.errors import FormatError
from formats.log import message_set, record_batch
from formats.log.framing import FRAMING_SIZE, Framing
from formats.log.log_bytes import WINDOW, LogBytes, Readable, Window
from formats.log.message_set import MessageHeader
from formats.log.record_batch import LOG_OVERHEAD, BatchHeader, Record
from formats.values import Struct

if TYPE_CHECKING:
    from formats.log.next_proof import Budget

LARGEST_IN_MEMORY = 32 << 20  # bytes of a batch or message; larger batches are read piece by piece
LARGEST_COMPRESSED = 64 << 20  # bytes of a batch whose records are read: a codec needs its input whole
MAGICS = (0, 1, 2)
MIN_LENGTHS = {0: message_set.MIN_SIZES[0], 1: message_set.MIN_SIZES[1], 2: record_batch.MIN_LENGTH}
CRC_AT = {0: message_set.CRC_STARTS_AT, 1: message_set.CRC_STARTS_AT, 2: record_batch.CRC_STARTS_AT}
DEFAULT_LIMIT = 256 << 20
"""Most bytes that one batch may decompress to, unless the caller says otherwise."""


class DamageReason(enum.StrEnum):
    """Why a range of bytes is not an entry."""

    ZEROS = "zeros"  # nothing but zeros up to the end: preallocated, or never reached the disk
    TORN_TAIL = "torn-tail"  # the start of an entry that the log ends inside
    ILLEGAL_MAGIC = "illegal-magic"
    ILLEGAL_LENGTH = "illegal-length"  # below the least of its magic, or past the end with entries behind it
    CRC_MISMATCH = "crc-mismatch"  # and its length does not lead to a batch that proves itself
    GARBAGE = "garbage"  # up to the end, and not the start of an entry


class Damage(Struct, frozen=True):
    """Bytes that are no entry."""

    position: int
    size_in_bytes: int
    reason: DamageReason


class LogEntry(Struct, frozen=True):
    """A batch, or a message of magic 0 or 1 with all that is compressed in it."""

    position: int
    size_in_bytes: int
    magic: int
    base_offset: int  # magic 0 and 1: the same as last_offset, the only one that is stored
    last_offset: int
    header: BatchHeader | MessageHeader
    crc_valid: bool
    source: LogBytes

    @property
    def next_position(self) -> int:
        return self.position + self.size_in_bytes

    @property
    def data(self) -> Bytes:
        """Its bytes, read again on each call."""
        return self.source.read(self.position, self.size_in_bytes)

    def body_pieces(self, limit: int) -> Iterator[Bytes]:
        """The decompressed body of a batch of magic 2, read again, a megabyte at a time.

        `TooLarge` beyond the limit, and where more is compressed than is read at once.
        """
        if self.header.codec:
            from formats.compression import TooLarge, pieces

            if self.size_in_bytes > LARGEST_COMPRESSED:
                raise TooLarge(limit)
            body = memoryview(self.data)[record_batch.HEADER_SIZE :]
            yield from pieces(self.header.codec, body, magic=2, limit=limit)
            return
        for position in range(self.position + record_batch.HEADER_SIZE, self.next_position, WINDOW):
            yield self.source.read(position, min(WINDOW, self.next_position - position))

    @property
    def batch(self) -> BatchHeader | None:
        """The header of a batch of magic 2; None for older messages."""
        return self.header if isinstance(self.header, BatchHeader) else None

    @property
    def message(self) -> MessageHeader | None:
        """The header of a message of magic 0 or 1; None for a batch."""
        return self.header if isinstance(self.header, MessageHeader) else None


def walk(
    data: Bytes | Readable | LogBytes,
    *,
    position: int = 0,
    end: int | None = None,
    last_offset: int = -1,
    check_crc: bool = True,
) -> Iterator[LogEntry | Damage]:
    """Every byte from position to end, in order, in exactly one item; never raises for what the bytes are.

    `last_offset` is that of the last good entry before position. Without `check_crc` lengths are believed
    as long as they are legal, and `crc_valid` is True.
    """
    log = data if isinstance(data, LogBytes) else LogBytes(data, end)
    walker = Walker(log, last_offset, check_crc)
    while position < log.end:
        for item in walker.items_at(position):
            yield item
            position = item.position + item.size_in_bytes


class Walker:
    """Walks a log item by item; a caller that found entries itself sets `last_offset`, that of the last sound one."""

    def __init__(self, log: LogBytes, last_offset: int, check_crc: bool) -> None:
        self.log = log
        self.last_offset = last_offset
        self.check_crc = check_crc
        self.budget: Budget | None = None  # of the search for proofs, shared by all of them

    def items_at(self, position: int) -> list[LogEntry | Damage]:
        """The entry at position with its chain, or the damage up to the next proof."""
        entry, reason = self.entry_at(position)
        if entry and entry.crc_valid:
            self.last_offset = entry.last_offset
            return [entry]
        if entry:
            chain = self.chain(entry)
            if chain:
                return [*chain]
        return [self.damage(position, reason)]

    def entry_at(self, position: int) -> tuple[LogEntry | None, DamageReason]:
        """The entry that the bytes at position describe, and why there is none or it is not sound."""
        head = self.log.peek(position, record_batch.HEADER_SIZE)
        if len(head) < FRAMING_SIZE:
            return None, DamageReason.TORN_TAIL
        framing = read(Framing, head)
        if framing.magic not in MAGICS:
            return None, DamageReason.ILLEGAL_MAGIC
        size = LOG_OVERHEAD + framing.length
        if framing.length < MIN_LENGTHS[framing.magic]:
            return None, DamageReason.ILLEGAL_LENGTH
        if position + size > self.log.end:
            return None, DamageReason.TORN_TAIL
        header: BatchHeader | MessageHeader
        if framing.magic == 2:
            header = record_batch.read_header(head)
            first, last = header.base_offset, header.last_offset
        else:
            header = read(MessageHeader, head)
            first = last = header.offset
        sound = not self.check_crc or self.is_sound(framing.magic, position, size, header.crc)
        if not sound and self.is_of_other_magic(framing.magic, head, position, size):
            return None, DamageReason.ILLEGAL_MAGIC
        entry = LogEntry(position, size, framing.magic, first, last, header, sound, self.log)
        return entry, DamageReason.CRC_MISMATCH

    def is_sound(self, magic: int, position: int, size: int, stored: int) -> bool:
        return self.log.crc(magic, position + CRC_AT[magic], position + size) == stored

    def is_of_other_magic(self, magic: int, head: Bytes, position: int, size: int) -> bool:
        """Whether an unsound entry is sound as one of another magic: that byte is not covered by magic 2's CRC."""
        if magic == 2 or size < record_batch.HEADER_SIZE:
            return False
        return self.is_sound(2, position, size, record_batch.read_header(head).crc)

    def chain(self, entry: LogEntry) -> list[LogEntry]:
        """Unsound entries from this one on whose lengths lead to a proof or to the log's end; else none."""
        entries = [entry]
        while len(entries) < LONG_CHAIN:
            position = entries[-1].next_position
            following, reason = self.entry_at(position)
            if following is None:
                ends = position >= self.log.end or self.log.is_zero(position)
                return (
                    entries
                    if ends or (reason is DamageReason.TORN_TAIL and self.torn(position, entries[-1]))
                    else []
                )
            if following.crc_valid:
                return entries if following.base_offset > self.last_offset else []
            entries.append(following)
        return entries

    def torn(self, position: int, before: LogEntry) -> bool:
        """Whether the bytes at position, which the log ends inside, carry on after an unsound entry.

        Nothing proves itself behind an append that was cut off: else the length that led here lies.
        """

        head = self.log.peek(position, FRAMING_SIZE)
        if len(head) < FRAMING_SIZE:
            return True
        if not 0 < read(Framing, head).offset - before.last_offset < NEARBY:
            return False
        return self.next_proof(position + 1) is None

    def next_proof(self, position: int) -> int | None:
        """The first position from there on where a batch proves itself."""
        from formats.log.next_proof import Budget, next_proof  # numpy is needed behind damage only

        self.budget = self.budget or Budget()
        return next_proof(self.log, position, self.last_offset, self.budget)

    def damage(self, position: int, reason: DamageReason) -> Damage:
        """The range from position to the next proof, or to the end."""
        if self.log.is_zero(position):
            return Damage(position, self.log.end - position, DamageReason.ZEROS)
        proof = self.next_proof(position + 1)
        if proof is not None:
            reason = DamageReason.ILLEGAL_LENGTH if reason is DamageReason.TORN_TAIL else reason
            return Damage(position, proof - position, reason)
        illegal = reason in (DamageReason.ILLEGAL_LENGTH, DamageReason.ILLEGAL_MAGIC)
        if illegal or (reason is DamageReason.TORN_TAIL and not self.starts_an_entry(position)):
            reason = DamageReason.GARBAGE
        return Damage(position, self.log.end - position, reason)

    def starts_an_entry(self, position: int) -> bool:
        """Whether an append that was cut off would have left these bytes."""
        head = self.log.peek(position, FRAMING_SIZE)
        if len(head) < FRAMING_SIZE:
            return True
        return self.last_offset < read(Framing, head).offset < max(self.last_offset, 0) + NEARBY


# Lengths that fit together this often do not lie; keeps the memory of a walk bounded.
LONG_CHAIN = 1000
# Offsets of one segment lie within 2^31 of its base.
NEARBY = 1 << 32


def iterate_records(entry: LogEntry, *, limit: int = DEFAULT_LIMIT) -> Iterator[Record]:
    """The records of an entry; `FormatError` where they cannot be read, after those that can."""
    batch = entry.batch
    if batch is None:
        if entry.size_in_bytes > LARGEST_IN_MEMORY:
            from formats.compression import TooLarge

            raise TooLarge(LARGEST_IN_MEMORY)
        yield from message_set.read_messages(entry.data, limit=limit)
        return
    if not batch.records_count:
        # The cleaner leaves empty batches; Kafka does not look at their bodies.
        return
    if entry.size_in_bytes > LARGEST_IN_MEMORY:
        yield from record_batch.read_records_in_pieces(batch, entry.body_pieces(limit))
        return
    body: Bytes = memoryview(entry.data)[record_batch.HEADER_SIZE :]
    if batch.codec:
        from formats.compression import AT_ONCE, TooLarge, decompress, pieces

        try:
            whole = decompress(batch.codec, body, magic=2, limit=min(limit, AT_ONCE))
        except TooLarge:
            if limit <= AT_ONCE:
                raise
            parts = pieces(batch.codec, body, magic=2, limit=limit)
        else:
            yield from record_batch.read_records(batch, whole)
            return
        yield from record_batch.read_records_in_pieces(batch, parts)
        return
    yield from record_batch.read_records(batch, body)


def records_of(entry: LogEntry, *, limit: int = DEFAULT_LIMIT) -> list[Record]:
    """All records of an entry, in at most `limit` decompressed bytes; `FormatError` where one is not right."""
    return list(iterate_records(entry, limit=limit))


def records_at(source: Readable, position: int) -> list[Record]:
    """The records of the entry at a position; FormatError where there is none."""
    entry = next(iter(walk(source, position=position)), None)
    if entry is None or isinstance(entry, Damage):
        raise FormatError("no batch", position)
    return records_of(entry)


def first_offset_of(entry: LogEntry, *, limit: int = DEFAULT_LIMIT) -> int:
    """The offset of an entry's first record; a wrapper has to be decompressed for it."""
    if entry.batch is not None or not entry.header.codec:
        return entry.base_offset
    try:
        return next(iterate_records(entry, limit=limit)).offset
    except FormatError:
        return entry.last_offset


__all__ = [
    "DEFAULT_LIMIT",
    "Damage",
    "DamageReason",
    "LogBytes",
    "LogEntry",
    "Readable",
    "Walker",
    "Window",
    "first_offset_of",
    "iterate_records",
    "records_of",
    "walk",
]
