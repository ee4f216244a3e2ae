"""Where, behind damage, the next batch proves itself.

Every position of a window is looked at at once: magic, length and the high bytes of the offset rule out
nearly all; what is left pays for a CRC. Bytes may be made so that a CRC is asked for at every position, so
the work is budgeted by the bytes searched: time stays linear whatever they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints
from formats.binary.layout import offset_of, read
from formats.errors import FormatError
from formats.log import message_set, record_batch
from formats.log.framing import FRAMING_SIZE, SMALLEST_ENTRY
from formats.log.log_bytes import WINDOW, LogBytes
from formats.log.message_set import MessageHeader
from formats.log.record_batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader
from formats.values import Struct

ATTRIBUTES_AT = offset_of(BatchHeader, "attributes")
DELTA_AT = offset_of(BatchHeader, "last_offset_delta")
COUNT_AT = offset_of(BatchHeader, "records_count")

FIRST_WINDOW = 16 << 10

# A proof's offset lies this near the last good one: no segment spans more than 2^31 offsets.
FARTHEST = 1 << 40


class Budget(Struct):
    """How many bytes of CRC the search may still compute for candidates that turn out to be none."""

    bytes_left: int = 1 << 30
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
        budget.bytes_left += searched * budget.per_byte
        position += searched
    return None


def candidates(window: Any, bytes_left: int, last_offset: int) -> Ints:
    """Ints in the window whose first bytes may be an entry's; the log has `bytes_left` bytes from its start."""
    data = np.frombuffer(window, np.uint8)
    count = len(data) - FRAMING_SIZE + 1
    if not data.any():
        return np.empty(0, np.int64)
    positions = np.flatnonzero(data[FRAMING_SIZE - 1 :] <= 2)
    lengths = _overlapping(data, 8, count, ">i4")[positions]
    positions = positions[
        (lengths >= message_set.MIN_SIZES[0]) & (lengths + LOG_OVERHEAD <= bytes_left - positions)
    ]
    offsets = _overlapping(data, 0, count, ">i8")[positions]
    positions = positions[(offsets > last_offset) & (offsets < max(last_offset, 0) + FARTHEST)]
    return np.concatenate(
        (_old(data, positions), _new(data, positions), positions[positions + HEADER_SIZE > len(data)])
    )


def _new(data: NDArray[np.uint8], positions: Ints) -> Ints:
    """Those that may be of magic 2: unused attribute bits are 0, counts are not negative."""
    positions = positions[
        (positions + HEADER_SIZE <= len(data)) & (data[np.minimum(positions + 16, len(data) - 1)] == 2)
    ]
    high_bytes = (data[positions + ATTRIBUTES_AT] == 0) & (data[positions + DELTA_AT] < 0x80)
    new: Ints = positions[high_bytes & (data[positions + COUNT_AT] < 0x80)]
    return new


def _old(data: NDArray[np.uint8], positions: Ints) -> Ints:
    """Those that may be of magic 0 or 1: unused attribute bits are 0, and the key fits."""
    positions = positions[positions + HEADER_SIZE <= len(data)]
    magic = data[positions + 16]
    positions = positions[(magic < 2) & (data[positions + 17] < 0x10)]
    magic = data[positions + 16]
    ints = _overlapping(data, 0, len(data) - 3, ">i4")
    keys = ints[positions + np.where(magic == 0, 18, 26)]
    least = np.where(magic == 0, message_set.MIN_SIZES[0], message_set.MIN_SIZES[1])
    old: Ints = positions[(keys >= -1) & (least + np.maximum(keys, 0) <= ints[positions + 8])]
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
    if size > budget.bytes_left or position + size > log.end:
        return False
    starts = record_batch.CRC_STARTS_AT if magic == 2 else message_set.CRC_STARTS_AT
    # A CRC that is right ends the search; only the others are counted.
    if log.crc(magic, position + starts, position + size) == stored:
        return True
    budget.bytes_left -= size
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
