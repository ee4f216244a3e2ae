"""Where, behind damage, the next batch proves itself.

Every position of a window is looked at at once: magic, length and the high bytes of the offset rule out
nearly all; what is left pays for a CRC. Bytes may be made so that a CRC is asked for at every position, so
the work is budgeted by the bytes searched: time stays linear whatever they are.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats import message_set, record_batch
from formats.errors import FormatError
from formats.layout import read
from formats.log_bytes import WINDOW, LogBytes
from formats.message_set import MessageHeader
from formats.record_batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader

FRAMING_SIZE = 17
SMALLEST_ENTRY = LOG_OVERHEAD + message_set.MIN_SIZES[0]
Positions = NDArray[np.int64]

# A proof's offset lies within 2^40 of the last good one: no segment spans more than 2^31 offsets.
HIGH_WORDS_AHEAD = 256


@dataclass(slots=True)
class Budget:
    """How many bytes of CRC the search may still compute for candidates that turn out to be none."""

    left: int = 1 << 30
    per_byte: int = 16


def next_proof(log: LogBytes, position: int, last_offset: int, budget: Budget | None = None) -> int | None:
    """The first position from there on where a batch proves itself; None where none does."""
    budget = budget or Budget()
    while position + SMALLEST_ENTRY <= log.end:
        window = log.read(position, min(WINDOW, log.end - position))
        if len(window) < FRAMING_SIZE:
            return None
        for at in candidates(window, log.end - position, last_offset).tolist():
            if _proves_itself(log, position + at, last_offset, budget):
                return position + int(at)
        searched = len(window) - FRAMING_SIZE + 1
        budget.left += searched * budget.per_byte
        position += searched
    return None


def candidates(window: Any, left: int, last_offset: int) -> Positions:
    """Positions in the window whose first 17 bytes may be an entry's; `left` bytes are there from its start."""
    data = np.frombuffer(window, np.uint8)
    count = len(data) - FRAMING_SIZE + 1
    if not data.any():
        return np.empty(0, np.int64)
    found = np.flatnonzero(data[FRAMING_SIZE - 1 :] <= 2)
    lengths = _overlapping(data, 8, count, ">i4")[found]
    found = found[(lengths >= message_set.MIN_SIZES[0]) & (lengths + LOG_OVERHEAD <= left - found)]
    high = _overlapping(data, 0, count, ">u4")[found]
    lowest = max(last_offset, 0) >> 32
    found = found[(high >= lowest) & (high <= lowest + HIGH_WORDS_AHEAD)]
    return found.astype(np.int64)


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
