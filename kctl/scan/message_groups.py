"""Messages of magic 0 and 1 as groups of records: plain messages in place, compressed sets unpacked.

Only the last inner message tells what the inner offsets of a set count from, so the first offset of a
wrapper is known here and not before: `base_offset`, `last_offset_delta` and `records_count` of the headers
are set.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints
from formats.compression import TooLarge, decompress
from formats.errors import FormatError
from formats.log.columns.headers import LENGTH_AT, PADDING, Headers
from formats.log.columns.messages import Messages, crcs_valid, decode_messages, inner_positions
from formats.log.columns.records import Fields
from formats.log.message_set import read_message, read_messages
from formats.log.record_batch import LOG_OVERHEAD
from formats.values import Struct
from kctl.scan.block import SourceBlock
from kctl.scan.record_groups import GROUP_BYTES, RecordGroup, Trouble

Octets = NDArray[np.uint8]


class _Set(Struct, frozen=True):
    """The messages of one entry: their bytes, and where they begin in them."""

    row: int
    data: bytes
    positions: Ints


def message_groups(headers: Headers, block: SourceBlock, *, limit: int) -> Iterator[RecordGroup]:
    """The messages of entries of magic 0 and 1 whose bytes are all in the block."""
    first = size = 0
    sets: list[_Set] = []
    trouble: list[Trouble] = []
    too_large: list[int] = []
    for row in np.flatnonzero(headers.crc_valid).tolist():
        start = int(headers.position[row]) - block.start
        entry = block.data[start : start + int(headers.size_in_bytes[row])].tobytes()
        try:
            sets.append(_unpacked(entry, row, int(headers.codec[row]), limit))
        except TooLarge:
            too_large.append(row)
        except FormatError as error:
            trouble.append(Trouble(row, error, 0))
            continue
        size += len(sets[-1].data) if sets else 0
        if size >= GROUP_BYTES:
            yield _group(headers, sets, first, row + 1, trouble, too_large)
            sets, trouble, too_large, size, first = [], [], [], 0, row + 1
    yield _group(headers, sets, first, len(headers), trouble, too_large)


def _unpacked(entry: bytes, row: int, codec: int, limit: int) -> _Set:
    message = read_message(entry)
    if not codec:
        return _Set(row, entry, np.zeros(1, np.int64))
    # One decoder says what is wrong; here only the sets are taken that are right in their framing.
    if message.value is None:
        raise _error_of(entry, limit)
    body = decompress(codec, message.value, magic=message.header.magic, limit=limit)
    padded = np.frombuffer(body + bytes(PADDING), np.uint8)
    positions, stop = inner_positions(padded, len(body))
    bytes_left = len(body) - stop
    if bytes_left >= LOG_OVERHEAD:
        size = int.from_bytes(body[stop + LENGTH_AT : stop + LOG_OVERHEAD], "big", signed=True)
        if size < LOG_OVERHEAD + 2:
            raise _error_of(entry, limit)
    messages = decode_messages(padded, positions)
    if not len(positions) or not messages.is_right.all():
        raise _error_of(entry, limit)
    if message.header.magic and message.header.offset and message.header.offset < messages.offset[-1]:
        raise _error_of(entry, limit)
    return _Set(row, body, positions)


def _error_of(entry: bytes, limit: int) -> FormatError:
    """What the decoder of single entries says of it."""
    try:
        for _ in read_messages(entry, limit=limit):
            pass
    except FormatError as error:
        return error
    raise AssertionError("the two decoders disagree on a compressed message set")


def _group(
    headers: Headers, sets: list[_Set], first: int, after: int, trouble: list[Trouble], too_large: list[int]
) -> RecordGroup:
    data = np.frombuffer(b"".join([*(message_set.data for message_set in sets), bytes(PADDING)]), np.uint8)
    sizes = np.array([len(message_set.data) for message_set in sets], np.int64)
    starts = np.cumsum(sizes) - sizes
    counts = np.array([len(message_set.positions) for message_set in sets], np.int64)
    first_rows = np.concatenate(([0], np.cumsum(counts)))
    rows = np.array([message_set.row for message_set in sets], np.int64)
    placed = [message_set.positions + start for message_set, start in zip(sets, starts.tolist(), strict=True)]
    messages = decode_messages(data, np.concatenate(placed) if placed else np.empty(0, np.int64))
    fields = _fields(headers, rows, first_rows, messages)
    group = RecordGroup(first, after, data, rows, first_rows, fields, np.zeros(len(rows), np.bool_))
    group.trouble, group.too_large = trouble, too_large
    valid = crcs_valid(data, messages)
    for number in np.flatnonzero(~valid).tolist():
        body = int(np.searchsorted(first_rows, number, side="right")) - 1
        offset = int(headers.base_offset[rows[body]] + fields.offset_delta[number])
        group.wrong_crc.append((int(rows[body]), offset))
    return group


def _fields(headers: Headers, rows: Ints, first_rows: Ints, messages: Messages) -> Fields:
    """The columns of records, offsets and timestamps less what the headers then say of their entry."""
    counts = np.diff(first_rows)
    offset = messages.offset.copy()
    outer = headers.base_offset[rows]
    wrapped = headers.codec[rows] != 0
    relative = wrapped & (headers.magic[rows] >= 1)
    last_inner = offset[first_rows[1:] - 1] if len(rows) else outer
    # Some producers leave the outer offset at 0: then the inner ones are what is left.
    base = np.where(relative & (outer != 0), outer - last_inner, 0)
    offset += np.repeat(base, counts)
    first_offset = offset[first_rows[:-1]] if len(rows) else outer
    headers.base_offset[rows] = first_offset
    headers.last_offset_delta[rows] = np.clip(headers.last_offset[rows] - first_offset, -1, 2**31 - 1)
    headers.records_count[rows] = counts
    timestamp = messages.timestamp.copy()
    timestamp[np.repeat(headers.magic[rows] == 0, counts)] = -1
    nowhere = np.full(len(messages), -1, np.int64)
    return Fields(
        position=messages.position,
        size_in_bytes=messages.size_in_bytes,
        timestamp_delta=timestamp - np.repeat(headers.base_timestamp[rows], counts),
        offset_delta=offset - np.repeat(first_offset, counts),
        key_position=messages.key_position,
        key_size=messages.key_size,
        value_position=messages.value_position,
        value_size=messages.value_size,
        headers_position=nowhere,
        headers_count=np.zeros(len(messages), np.int64),
    )
