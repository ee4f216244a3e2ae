"""A run of log bytes of any magic as entries and damage, every byte in exactly one of them.

A batch *proves itself* by a legal magic and length, its CRC, and an offset not before the last good one.
Where one does not, its length is believed only if following lengths leads to a batch that does, or to the
end of the log: then it is an `Entry` whose `crc_valid` is False. Else the bytes up to the next proof are
one `Damage`: a length that lies may point at something that merely looks like a batch.

Source: clients/src/main/java/org/apache/kafka/common/record/{FileLogInputStream,Records}.java @ 3.9.0-rc3

Where, behind damage, the next batch proves itself.

Every position of a window is looked at at once: magic, length and the high bytes of the offset rule out
nearly all; what is left pays for a CRC. Bytes may be made so that a CRC is asked for at every position, so
the work is budgeted by the bytes searched: time stays linear whatever they are.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.binary.layout import Bytes, int8, int32, int64, layout, offset_of, read
from formats.errors import FormatError
from formats.log import message_set, record_batch
from formats.log.log_bytes import WINDOW, LogBytes, Readable, Window
from formats.log.message_set import MessageHeader
from formats.log.record_batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, Record
from formats.values import Struct


class Framing(NamedTuple):
    """What the first 17 bytes of every magic have in common."""

    offset: int64
    length: int32  # bytes after this field
    partition_leader_epoch: int32  # the CRC in magic 0 and 1
    magic: int8


FRAMING_SIZE = layout(Framing).size
SMALLEST_ENTRY = LOG_OVERHEAD + message_set.MIN_SIZES[0]
Positions = NDArray[np.int64]

ATTRIBUTES_AT = offset_of(BatchHeader, "attributes")
DELTA_AT = offset_of(BatchHeader, "last_offset_delta")
COUNT_AT = offset_of(BatchHeader, "records_count")

FIRST_WINDOW = 16 << 10

# A proof's offset lies this near the last good one: no segment spans more than 2^31 offsets.
FARTHEST = 1 << 40


class Budget(Struct):
    """How many bytes of CRC the search may still compute for candidates that turn out to be none."""

    left: int = 1 << 30
    per_byte: int = 16


def next_proof(log: LogBytes, position: int, last_offset: int, budget: Budget | None = None) -> int | None:
    """The first position from there on where a batch proves itself; None where none does."""
    budget = budget or Budget()
    size = FIRST_WINDOW  # mostly the next batch is near, and there may be much damage
    while position + SMALLEST_ENTRY <= log.end:
        window = log.read(position, min(size, log.end - position))
        size = min(4 * size, WINDOW)
        if len(window) < FRAMING_SIZE:
            return None
        for at in sorted(candidates(window, log.end - position, last_offset).tolist()):
            if _proves_itself(log, position + at, last_offset, budget):
                return position + int(at)
        searched = len(window) - FRAMING_SIZE + 1
        budget.left += searched * budget.per_byte
        position += searched
    return None


def candidates(window: Any, left: int, last_offset: int) -> Positions:
    """Positions in the window whose first bytes may be an entry's; `left` bytes are there from its start."""
    data = np.frombuffer(window, np.uint8)
    count = len(data) - FRAMING_SIZE + 1
    if not data.any():
        return np.empty(0, np.int64)
    found = np.flatnonzero(data[FRAMING_SIZE - 1 :] <= 2)
    lengths = _overlapping(data, 8, count, ">i4")[found]
    found = found[(lengths >= message_set.MIN_SIZES[0]) & (lengths + LOG_OVERHEAD <= left - found)]
    offsets = _overlapping(data, 0, count, ">i8")[found]
    found = found[(offsets > last_offset) & (offsets < max(last_offset, 0) + FARTHEST)]
    return np.concatenate((_old(data, found), _new(data, found), found[found + HEADER_SIZE > len(data)]))


def _new(data: NDArray[np.uint8], found: Positions) -> Positions:
    """Those that may be of magic 2: unused attribute bits are 0, counts are not negative."""
    found = found[(found + HEADER_SIZE <= len(data)) & (data[np.minimum(found + 16, len(data) - 1)] == 2)]
    high_bytes = (data[found + ATTRIBUTES_AT] == 0) & (data[found + DELTA_AT] < 0x80)
    new: Positions = found[high_bytes & (data[found + COUNT_AT] < 0x80)]
    return new


def _old(data: NDArray[np.uint8], found: Positions) -> Positions:
    """Those that may be of magic 0 or 1: unused attribute bits are 0, and the key fits."""
    found = found[found + HEADER_SIZE <= len(data)]
    magic = data[found + 16]
    found = found[(magic < 2) & (data[found + 17] < 0x10)]
    magic = data[found + 16]
    ints = _overlapping(data, 0, len(data) - 3, ">i4")
    keys = ints[found + np.where(magic == 0, 18, 26)]
    least = np.where(magic == 0, message_set.MIN_SIZES[0], message_set.MIN_SIZES[1])
    old: Positions = found[(keys >= -1) & (least + np.maximum(keys, 0) <= ints[found + 8])]
    return old


def _overlapping(data: NDArray[np.uint8], offset: int, count: int, dtype: str) -> NDArray[Any]:
    """A field of each position as one array, without a copy."""
    return np.ndarray((count,), dtype, buffer=data, offset=offset, strides=(1,))


def _proves_itself(log: LogBytes, position: int, last_offset: int, budget: Budget) -> bool:
    """Whether there is an entry whose CRC is right and whose offset is after the last good one."""
    head = log.read(position, HEADER_SIZE)
    header = _believable(head)
    if header is None or header[0] <= last_offset:
        return False
    _, magic, size, stored = header
    if magic < 2 and not _fills_its_size(log, position, head, size):
        return False
    if size > budget.left or position + size > log.end:
        return False
    starts = record_batch.CRC_STARTS_AT if magic == 2 else message_set.CRC_STARTS_AT
    # A CRC that is right ends the search; only the others are counted.
    if log.crc(magic, position + starts, position + size) == stored:
        return True
    budget.left -= size
    return False


def _believable(head: Any) -> tuple[int, int, int, int] | None:
    """Offset, magic, size and CRC of a header that a broker could have written; else None."""
    try:
        if head[FRAMING_SIZE - 1] == 2:
            batch = read(BatchHeader, head)
            counts = batch.records_count >= 0 and batch.last_offset_delta >= 0 and not batch.attributes >> 8
            fits = counts and batch.batch_length >= record_batch.MIN_LENGTH
            return (batch.base_offset, 2, batch.size_in_bytes, batch.crc) if fits else None
        message = read(MessageHeader, head)
        least = message_set.MIN_SIZES[message.magic]
        if message.message_size < least or message.attributes & 0xF0:
            return None
        at = message.fields_at
        key_size = max(0, int.from_bytes(bytes(head[at : at + 4]), "big", signed=True))
        fits = least + key_size <= message.message_size
        return (message.offset, message.magic, message.size_in_bytes, message.crc) if fits else None
    except FormatError:
        return None


def _fills_its_size(log: LogBytes, position: int, head: Any, size: int) -> bool:
    """Whether key and value of a message of magic 0 or 1 take exactly its size."""
    at = read(MessageHeader, head).fields_at
    key_size = max(0, int.from_bytes(bytes(head[at : at + 4]), "big", signed=True))
    field = log.read(position + at + 4 + key_size, 4)
    value_size = int.from_bytes(bytes(field), "big", signed=True)
    return len(field) == 4 and at + 8 + key_size + max(0, value_size) == size


MAGICS = (0, 1, 2)
MIN_LENGTHS = {0: message_set.MIN_SIZES[0], 1: message_set.MIN_SIZES[1], 2: record_batch.MIN_LENGTH}
CRC_AT = {0: message_set.CRC_STARTS_AT, 1: message_set.CRC_STARTS_AT, 2: record_batch.CRC_STARTS_AT}
DEFAULT_LIMIT = 256 << 20
"""Most bytes that one batch may decompress to, unless the caller says otherwise."""


class Reason(enum.StrEnum):
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
    reason: Reason


class Entry(Struct, frozen=True):
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
        """Its bytes, read anew on each call."""
        return self.source.read(self.position, self.size_in_bytes)

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
) -> Iterator[Entry | Damage]:
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
    """Goes over a log item by item; `last_offset`, of the last sound entry, may be set by who found entries itself."""

    def __init__(self, log: LogBytes, last_offset: int, check_crc: bool) -> None:
        self.log = log
        self.last_offset = last_offset
        self.check_crc = check_crc
        self.budget: Budget | None = None  # of the search for proofs, shared by all of them

    def items_at(self, position: int) -> list[Entry | Damage]:
        """The entry at position; or what is known of the bytes up to the next proof."""
        entry, reason = self.entry_at(position)
        if entry and entry.crc_valid:
            self.last_offset = entry.last_offset
            return [entry]
        if entry:
            chain = self.chain(entry)
            if chain:
                return [*chain]
        return [self.damage(position, reason)]

    def entry_at(self, position: int) -> tuple[Entry | None, Reason]:
        """The entry that the bytes at position describe, and why there is none or it is not sound."""
        head = self.log.peek(position, record_batch.HEADER_SIZE)
        if len(head) < FRAMING_SIZE:
            return None, Reason.TORN_TAIL
        framing = read(Framing, head)
        if framing.magic not in MAGICS:
            return None, Reason.ILLEGAL_MAGIC
        size = LOG_OVERHEAD + framing.length
        if framing.length < MIN_LENGTHS[framing.magic]:
            return None, Reason.ILLEGAL_LENGTH
        if position + size > self.log.end:
            return None, Reason.TORN_TAIL
        header: BatchHeader | MessageHeader
        if framing.magic == 2:
            header = record_batch.read_header(head)
            first, last = header.base_offset, header.last_offset
        else:
            header = read(MessageHeader, head)
            first = last = header.offset
        sound = not self.check_crc or self.is_sound(framing.magic, position, size, header.crc)
        if not sound and self.is_of_other_magic(framing.magic, head, position, size):
            return None, Reason.ILLEGAL_MAGIC
        entry = Entry(position, size, framing.magic, first, last, header, sound, self.log)
        return entry, Reason.CRC_MISMATCH

    def is_sound(self, magic: int, position: int, size: int, stored: int) -> bool:
        return self.log.crc(magic, position + CRC_AT[magic], position + size) == stored

    def is_of_other_magic(self, magic: int, head: Bytes, position: int, size: int) -> bool:
        """Whether an unsound entry is sound as one of another magic: that byte is not covered by magic 2's CRC."""
        if magic == 2 or size < record_batch.HEADER_SIZE:
            return False
        return self.is_sound(2, position, size, record_batch.read_header(head).crc)

    def chain(self, entry: Entry) -> list[Entry]:
        """Unsound entries from this one on whose lengths lead to a proof or to the log's end; else none."""
        found = [entry]
        while len(found) < LONG_CHAIN:
            position = found[-1].next_position
            following, reason = self.entry_at(position)
            if following is None:
                ends = position >= self.log.end or self.log.is_zero(position)
                return (
                    found if ends or (reason is Reason.TORN_TAIL and self.torn(position, found[-1])) else []
                )
            if following.crc_valid:
                return found if following.base_offset > self.last_offset else []
            found.append(following)
        return found

    def torn(self, position: int, before: Entry) -> bool:
        """Whether the bytes at position, which the log ends inside, carry on after an unsound entry.

        Nothing proves itself behind an append that was cut off: else the length that led here lies.
        """

        head = self.log.peek(position, FRAMING_SIZE)
        if len(head) < FRAMING_SIZE:
            return True
        if not 0 < read(Framing, head).offset - before.last_offset < NEARBY:
            return False
        self.budget = self.budget or Budget()
        return next_proof(self.log, position + 1, self.last_offset, self.budget) is None

    def damage(self, position: int, reason: Reason) -> Damage:
        """The range from position to the next proof, or to the end."""
        # numpy is needed behind damage only.

        if self.log.is_zero(position):
            return Damage(position, self.log.end - position, Reason.ZEROS)
        self.budget = self.budget or Budget()
        found = next_proof(self.log, position + 1, self.last_offset, self.budget)
        if found is not None:
            reason = Reason.ILLEGAL_LENGTH if reason is Reason.TORN_TAIL else reason
            return Damage(position, found - position, reason)
        illegal = reason in (Reason.ILLEGAL_LENGTH, Reason.ILLEGAL_MAGIC)
        if illegal or (reason is Reason.TORN_TAIL and not self.starts_an_entry(position)):
            reason = Reason.GARBAGE
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


def iterate_records(entry: Entry, *, limit: int = DEFAULT_LIMIT) -> Iterator[Record]:
    """The records of an entry; `FormatError` where they cannot be read, after those that can."""
    batch = entry.batch
    if batch is None:
        yield from message_set.read_messages(entry.data, limit=limit)
        return
    if not batch.records_count:
        # The cleaner leaves empty batches; Kafka does not look at their bodies.
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


def records_of(entry: Entry, *, limit: int = DEFAULT_LIMIT) -> list[Record]:
    """All records of an entry, in at most `limit` decompressed bytes; `FormatError` where one is not right."""
    return list(iterate_records(entry, limit=limit))


def first_offset_of(entry: Entry, *, limit: int = DEFAULT_LIMIT) -> int:
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
    "Entry",
    "LogBytes",
    "Readable",
    "Reason",
    "Walker",
    "Window",
    "first_offset_of",
    "iterate_records",
    "records_of",
    "walk",
]
