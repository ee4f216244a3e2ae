"""Records of magic 2 as columns, every field and every length of each checked.

A record that does not fit gets no error text here: its batch is marked, and the decoder of single batches says what is
wrong and where. `read_fields` reads the few records whose varints are too long for a column.

Source: clients/src/main/java/org/apache/kafka/common/record/{DefaultRecordBatch,DefaultRecord}.java @ 3.9.0-rc3
"""

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.binary.varint import read_varint, read_varlong
from formats.errors import FormatError
from formats.log.columns.record_headers import check_header_lists
from formats.log.columns.record_starts import chain, chosen
from formats.log.columns.varints import (
    TOO_LONG,
    Words,
    shifted,
    varints,
    varints_at,
    windows_at,
    without,
    words_at,
)
from formats.values import Struct


def read_fields(data: bytes) -> tuple[int, int, int, int, int, int, int, int]:
    """Timestamp delta, offset delta, key position and size, value position and size, headers position and count.

    `data` is exactly the record, its length included; positions count from its start; a size of -1 is null.
    """
    size, start = read_varint(data, 0)
    if start + size != len(data):
        raise FormatError(f"record of {size} bytes in {len(data)}", 0)
    timestamp_delta, at = read_varlong(data, start + 1)
    offset_delta, at = read_varint(data, at)
    key_size, key_at = read_varint(data, at)
    value_size, value_at = read_varint(data, _after(data, key_at, key_size))
    count, headers_at = read_varint(data, _after(data, value_at, value_size))
    if not 0 <= count <= len(data) - headers_at:
        raise FormatError(f"{count} headers", headers_at)
    at = headers_at
    for _ in range(count):
        name_size, name_at = read_varint(data, at)
        if name_size < 0:
            raise FormatError("header without a key", at)
        header_size, header_at = read_varint(data, _after(data, name_at, name_size))
        at = _after(data, header_at, header_size)
    if at != len(data):
        raise FormatError("record does not end with its headers", at)
    return (
        timestamp_delta,
        offset_delta,
        key_at,
        max(key_size, -1),
        value_at,
        max(value_size, -1),
        headers_at,
        count,
    )


def _after(data: bytes, position: int, size: int) -> int:
    end = position + max(size, 0)
    if end > len(data):
        raise FormatError(f"field of {size} bytes", position)
    return end


Octets = NDArray[np.uint8]

ROWS_AT_ONCE = 16 << 10  # what is taken from their bytes again and again stays in the cache


class Fields(Struct, frozen=True):
    """Columns of records in the order of their batches; positions count from the start of the data.

    A size of -1 is null. `headers_position` is where the first header starts, behind their count.
    """

    position: Ints
    size_in_bytes: Ints
    timestamp_delta: Ints
    offset_delta: Ints
    key_position: Ints
    key_size: Ints
    value_position: Ints
    value_size: Ints
    headers_position: Ints
    headers_count: Ints


def decode(data: Octets, starts: Ints, ends: Ints, counts: Ints) -> tuple[Fields, Ints, Mask]:
    """The records of bodies data[start:end], the row where each body's records begin, and which bodies are wrong.

    `data` goes on for PADDING bytes behind the last body. Rows of a wrong
    body mean nothing.
    """
    first_rows = np.concatenate(([0], np.cumsum(counts)))
    total = int(first_rows[-1])
    has_records = chosen(counts > 0)
    words: Words | None = None
    if (counts > 1).any():
        positions, words = np.empty(total + 1, np.int64), np.empty(total, np.uint64)
        bad = chain(data, starts, ends, counts, first_rows, positions[:-1], words)
        record_ends = positions[1:].copy()
        record_ends[first_rows[1:][has_records] - 1] = ends[has_records]
        positions = positions[:-1]
    else:  # whether a record alone fills its body, is seen with its fields
        bad = (counts == 0) & (starts != ends)
        positions, record_ends = starts[has_records], ends[has_records]
    columns = [np.empty(total, np.int64) for _ in range(8)]
    for low in range(0, total, ROWS_AT_ONCE):
        rows = slice(low, low + ROWS_AT_ONCE)
        words_of_rows = words[rows] if words is not None else None
        fields, wrong = fields_of(data, positions[rows], record_ends[rows], words_of_rows)
        for column, part in zip(columns, fields, strict=True):
            column[rows] = part
        if len(wrong):
            bad[np.searchsorted(first_rows, wrong + low, side="right") - 1] = True
    return Fields(positions, record_ends - positions, *columns), first_rows, bad


def fields_of(
    data: Octets, positions: Ints, ends: Ints, words: Words | None = None
) -> tuple[list[Ints], Ints]:
    """Columns of `Fields` from timestamp_delta on, and the rows that are not right.

    `words` are the 8 bytes that each record begins with, where `chain` found that its length leads to its end.
    """
    if words is None:
        words = words_at(data, positions)
        length, size = varints(words)
        wrong = (positions + size + length != ends) | (size == TOO_LONG)
    else:
        size, wrong = _sizes_of_lengths(words), np.zeros(len(words), np.bool_)
    timestamp_delta, offset_delta, key_size, key_position, alone = _heads(data, words, positions, size + 1)
    key_size, bytes_of_size = _sizes(key_size)
    value_size, value_position, size = _value_at(data, key_position + bytes_of_size, ends)
    if np.max(size) == TOO_LONG:
        alone |= size == TOO_LONG
    value_size, bytes_of_size = _sizes(value_size)
    headers_at = value_position + bytes_of_size
    is_past = headers_at >= ends
    if is_past.any():  # what lies there is another record
        headers_at = np.minimum(headers_at, ends)
        wrong |= is_past
    count = data.take(headers_at)
    headers_position = headers_at + 1
    headers_count = (count >> 1).astype(np.int64)
    odd = count & 0x81
    if odd.any():
        alone |= odd >= 0x80  # more than a byte
        wrong |= odd == 1  # a negative count
    columns = [
        timestamp_delta,
        offset_delta,
        key_position,
        key_size,
        value_position,
        value_size,
        headers_position,
        headers_count,
    ]
    with_headers = np.flatnonzero(count != 0)
    headers_end = headers_position
    if len(with_headers):
        headers_end = headers_position.copy()
        until = ends[with_headers]
        starts = np.minimum(headers_position[with_headers], until)
        headers_end[with_headers] = check_header_lists(data, starts, until, headers_count[with_headers])
    wrong |= headers_end != ends
    if alone.any():
        _read_alone(data, positions, ends, np.flatnonzero(alone), columns, wrong)
    return columns, np.flatnonzero(wrong)


def _sizes(read: Ints) -> tuple[Ints, Ints]:
    """Sizes as they were read, every negative one -1, and how many bytes there then are."""
    least = read.min(initial=0)
    if least == 0:
        return read, read
    return np.maximum(read, -1) if least < -1 else read, np.maximum(read, 0)


def _heads(
    data: Octets, words: Words, positions: Ints, before: Ints | int
) -> tuple[Ints, Ints, Ints, Ints, Mask]:
    """Timestamp delta, offset delta, key size and position, and which rows must be read alone.

    They mostly fit in the 8 bytes that the record begins with, `before` of which are its length and its attributes,
    which mean nothing yet; where they do not, others are taken.
    """
    timestamp_delta, offset_delta, key_size, size = _three(without(words, before))
    size = size + before
    alone = np.zeros(len(positions), np.bool_)
    if np.max(size) <= WORD:
        return timestamp_delta, offset_delta, key_size, positions + size, alone
    positions = positions + before
    timestamp_delta, offset_delta, key_size, size = _three(words_at(data, positions))
    if np.max(size) > WORD:
        size = np.array(np.broadcast_to(size, len(positions)))
        longer = np.flatnonzero(size > WORD)
        columns = (timestamp_delta, offset_delta, key_size, size)
        for column, values in zip(columns, _in_two_words(data, positions[longer]), strict=True):
            column[longer] = values
        alone = size > 2 * WORD
    return timestamp_delta, offset_delta, key_size, positions + size, alone


WORD = 8  # bytes


def _sizes_of_lengths(words: Words) -> Ints | int:
    """How many bytes the length takes that each word begins with."""
    if (words & BOTH_CONTINUE == FIRST_CONTINUES).all():
        return 2
    return varints(words)[1]


BOTH_CONTINUE, FIRST_CONTINUES = np.uint64(0x8080), np.uint64(0x80)


def _three(words: Words) -> tuple[Ints, Ints, Ints, Ints | int]:
    """The varints that each word begins with: timestamp delta, offset delta, key size; and how many bytes they take.

    Zeros come in behind a word: what is longer than it is seen to be, though not what it says.
    """
    timestamp_delta, size = varints(words, is_long=True)
    total = size
    words = without(words, size)
    offset_delta, size = varints(words)
    total = total + size
    key_size, size = varints(without(words, size))
    return timestamp_delta, offset_delta, key_size, total + size


def _in_two_words(data: Octets, positions: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Timestamp delta, offset delta, key size and how many bytes they take; more than 16: unknown."""
    low, high = windows_at(data, positions)
    timestamp_delta, size = varints(low, is_long=True)
    too_long = size == TOO_LONG
    total = np.zeros(len(positions), np.int64) + size
    low, high = shifted(low, high, size)
    offset_delta, size = varints(low)
    too_long |= size == TOO_LONG
    total += size
    low, high = shifted(low, high, size)
    key_size, size = varints(low)
    too_long |= size == TOO_LONG
    total += size
    total[np.broadcast_to(too_long, len(total))] = 17
    return timestamp_delta, offset_delta, key_size, total


def _value_at(data: Octets, positions: Ints, ends: Ints) -> tuple[Ints, Ints, Ints | int]:
    """The value whose length stands at each position: its size, where it begins, how many bytes the length has."""
    # Past the end lies another record; its bytes are read and thrown away, the row is found wrong.
    is_past = positions > ends
    value_size, size = varints_at(data, np.minimum(positions, ends) if is_past.any() else positions)
    return value_size, positions + size, size


def _read_alone(
    data: Octets, positions: Ints, ends: Ints, rows: Ints, columns: list[Ints], wrong: Mask
) -> None:
    """Fill these rows one by one."""
    for row in rows.tolist():
        start, end = int(positions[row]), int(ends[row])
        try:
            fields = read_fields(data[start:end].tobytes())
        except FormatError:
            wrong[row] = True
            continue
        wrong[row] = False
        for column, value, is_position in zip(columns, fields, IS_POSITION, strict=True):
            column[row] = value + start if is_position else value


IS_POSITION = (False, False, True, False, True, False, True, False)
