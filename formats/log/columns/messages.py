"""Messages of magic 0 and 1 as the same columns as records: plain ones, and those inside compressed sets.

Inner offsets of magic 1 count from the wrapper's base, which only the last of them tells; a wrapper whose
stored offset is 0 has base 0 (KAFKA-5886 and its kin). A short last inner message ends its set silently.

Source: clients/src/main/java/org/apache/kafka/common/record/{LegacyRecord,AbstractLegacyRecordBatch}.java @ 3.9.0-rc3
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.binary.crc_of_ranges import CRC32, as_stored
from formats.binary.layout import layout
from formats.log.columns.headers import gather, walk
from formats.log.columns.varints import unaligned
from formats.log.message_set import CRC_STARTS_AT, MIN_SIZES, MessageHeader
from formats.log.record_batch import CODEC_MASK, LOG_OVERHEAD
from formats.values import Struct

Octets = NDArray[np.uint8]

FIELDS_AT = layout(MessageHeader).size  # of magic 0; in magic 1 the timestamp comes first


class Messages(Struct, frozen=True):
    """Columns of plain messages, offsets and timestamps as stored; positions count from the start of the data."""

    position: Ints
    size_in_bytes: Ints
    magic: Ints
    offset: Ints
    timestamp: Ints
    key_position: Ints
    key_size: Ints
    value_position: Ints
    value_size: Ints
    is_right: Mask  # its sizes fill it exactly, and it is not compressed

    def __len__(self) -> int:
        return len(self.position)


def decode_messages(data: Octets, positions: Ints) -> Messages:
    """The messages at these positions, whose framing was found legal by a walk.

    `data` goes on for PADDING bytes behind the last of them.
    """
    headers = gather(data, positions)
    ends = positions + headers.size_in_bytes
    old = headers.magic == 0
    numbers = unaligned(data, "V4")
    key_at = positions + np.where(old, FIELDS_AT, FIELDS_AT + 8)
    key_size, key_position, after_key = _field(numbers, key_at, ends)
    value_size, value_position, after_value = _field(numbers, after_key, ends)
    least = np.where(old, MIN_SIZES[0], MIN_SIZES[1]) + LOG_OVERHEAD
    is_right = (headers.magic >= 0) & (headers.magic <= 1) & (headers.size_in_bytes >= least)
    is_right &= (after_value == ends) & (headers.attributes & CODEC_MASK == 0)
    return Messages(
        position=positions,
        size_in_bytes=headers.size_in_bytes,
        magic=headers.magic.astype(np.int64),
        offset=headers.base_offset,
        timestamp=headers.max_timestamp,
        key_position=key_position,
        key_size=key_size,
        value_position=value_position,
        value_size=value_size,
        is_right=is_right,
    )


def _field(numbers: NDArray[Any], positions: Ints, ends: Ints) -> tuple[Ints, Ints, Ints]:
    """Size (-1 null), place and end of the field whose length is at each position; -1 as end where it cannot be."""
    inside = (positions >= 0) & (positions + 4 <= ends)
    size = numbers[np.where(inside, positions, 0)].view(">i4").astype(np.int64)
    size = np.maximum(size, -1)
    start = positions + 4
    end = start + np.maximum(size, 0)
    return size, start, np.where(inside & (end <= ends), end, -1)


def crcs_valid(data: Octets, messages: Messages) -> Mask:
    """Whether the CRC of each message is right."""
    stored = unaligned(data, "V4")[messages.position + LOG_OVERHEAD].view(">u4")
    ends = messages.position + messages.size_in_bytes
    return as_stored(data, messages.position + CRC_STARTS_AT, ends, stored, CRC32)


def inner_positions(body: Octets, size: int) -> tuple[Ints, int]:
    """Where the messages of a decompressed set begin, and where they end.

    They end at the first size below 14, which Kafka refuses, or before one that is cut, which it ignores.
    """
    walked = walk(body, 0, size)
    return walked.positions, walked.stop
