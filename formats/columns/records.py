"""Records of magic 2 as columns, every field and every length of each checked.

Batches are lanes: step k finds where record k of each batch starts, for all batches at once. Then all
fields of all records are taken from 16-byte windows at those starts. What does not fit gets no error text
here: its batch is marked, and the decoder of single batches says what is wrong and where.

Source: clients/src/main/java/org/apache/kafka/common/record/{DefaultRecordBatch,DefaultRecord}.java @ 3.9.0-rc3
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from formats.columns.record_headers import check_header_lists
from formats.columns.single_record import read_fields
from formats.columns.varints import TOO_LONG, shifted, unaligned, varints, windows_at, words_at
from formats.errors import FormatError

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

FEWEST_LANES = 96  # below this the chain is followed by a plain loop
ROWS_AT_ONCE = 32 << 10  # temporaries of the fields stay in the cache
MOST_HEADERS = 63  # of a record whose header count is one byte; others are read on their own


@dataclass(frozen=True, slots=True)
class Fields:
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
    """The records of bodies data[start:end], the row where each body's records begin, and which are not right.

    `data` goes on for PADDING bytes behind the last body. Rows of a body that is not right are there, and
    mean nothing.
    """
    first_rows = np.concatenate(([0], np.cumsum(counts)))
    total = int(first_rows[-1])
    positions = np.empty(total + 1, np.int64)
    record_ends = np.empty(total, np.int64)
    bad = chain(data, starts, ends, counts, first_rows, positions)
    if total:
        record_ends[:-1] = positions[1:-1]
        has_records = counts > 0
        record_ends[first_rows[1:][has_records] - 1] = ends[has_records]
    parts = []
    bad_rows: list[Ints] = []
    for low in range(0, total, ROWS_AT_ONCE):
        high = min(total, low + ROWS_AT_ONCE)
        columns, wrong = fields_of(data, positions[low:high], record_ends[low:high])
        parts.append(columns)
        if len(wrong):
            bad_rows.append(wrong + low)
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else NO_COLUMNS
    fields = Fields(positions[:-1], record_ends - positions[:-1], *joined)
    if bad_rows:
        bad[np.searchsorted(first_rows, np.concatenate(bad_rows), side="right") - 1] = True
    return fields, first_rows, bad


NO_COLUMNS = [np.empty(0, np.int64)] * 8


# --- where records start ------------------------------------------------------------------------------


@cache
def _steps() -> Ints:
    """By the 16 bits at a record's start: how far the next one is; 0 where 16 bits do not say it."""
    words = np.arange(65536, dtype=np.int64)
    short = words & 0x80 == 0
    value = np.where(short, words & 0x7F, words & 0x7F | (words >> 8 & 0x7F) << 7)
    step = (value >> 1) + np.where(short, 1, 2)
    legal = (value & 1 == 0) & (short | (words & 0x8000 == 0))
    return np.where(legal, step, 0)


def chain(data: Octets, starts: Ints, ends: Ints, counts: Ints, first_rows: Ints, out: Ints) -> Mask:
    """Write each record's start to out; which bodies do not hold exactly their count of records."""
    bad = np.zeros(len(starts), np.bool_)
    most = int(counts.max()) if len(counts) else 0
    if most <= 1:
        out[first_rows[:-1][counts == 1]] = starts[counts == 1]
        single = counts == 1
        bad[single] = _next_of(data, starts[single], ends[single]) != ends[single]
        bad[counts == 0] = starts[counts == 0] != ends[counts == 0]
        return bad
    if len(starts) < FEWEST_LANES:
        for body in range(len(starts)):
            row, count = int(first_rows[body]), int(counts[body])
            bad[body] = not _chain_of_one(data, int(starts[body]), int(ends[body]), out[row : row + count])
        return bad
    return _chain_in_lanes(data, starts, ends, counts, first_rows, out)


def _chain_in_lanes(
    data: Octets, starts: Ints, ends: Ints, counts: Ints, first_rows: Ints, out: Ints
) -> Mask:
    order = np.argsort(-counts, kind="stable")
    at, until, rows = starts[order], ends[order], first_rows[:-1][order]
    wrong = np.zeros(len(order), np.bool_)
    # Lanes still going at step k are those with more than k records: a prefix.
    going = np.searchsorted(-counts[order], -np.arange(int(counts.max())), side="left").tolist()
    steps = _steps()
    pairs = unaligned(data, "<u2")
    for k, lanes in enumerate(going):
        here, end = at[:lanes], until[:lanes]
        out[rows[:lanes] + k] = here
        step = steps.take(pairs[here], mode="clip")
        after = here + step
        if not step.all():
            unclear = np.flatnonzero(step == 0)
            after[unclear] = _next_of(data, here[unclear], end[unclear])
        past = after > end
        if past.any():
            wrong[:lanes] |= past
            after = np.minimum(after, end)
        at[:lanes] = after
    bad = np.empty(len(order), np.bool_)
    bad[order] = wrong | (at != until)
    return bad


def _next_of(data: Octets, positions: Ints, ends: Ints) -> Ints:
    """Where the record at each position ends; past its body's end where its length is not legal."""
    length, size = varints(words_at(data, positions))
    after = positions + length + size
    after[(length < 0) | (np.broadcast_to(size, len(length)) == TOO_LONG)] = np.iinfo(np.int64).max
    del ends
    return after


@cache
def _steps_by_byte() -> list[list[int]]:
    """The same table by first and second byte, as lists: what a plain loop reads fastest."""
    rows: list[list[int]] = _steps().reshape(256, 256).T.tolist()
    return rows


def _chain_of_one(data: Octets, start: int, end: int, out: Ints) -> bool:
    """Write the starts of one body's records; whether they fill it exactly."""
    body = data[start : end + PAST_THE_END].tobytes()
    steps, at = _steps_by_byte(), 0
    found: list[int] = []
    note = found.append
    try:
        for _ in range(len(out)):
            note(at)
            step = steps[body[at]][body[at + 1]]
            at += step or _long_step(body, at)
    except IndexError:  # past the end: it is not right
        at = -1
    is_right = at == end - start
    out[:] = found if is_right else 0
    out += start
    return is_right


PAST_THE_END = 5  # bytes that a varint at the very end may touch


def _long_step(body: bytes, at: int) -> int:
    """How far the next record is when the length takes more than two bytes."""
    value = shift = 0
    for place in range(at, at + 5):
        byte = body[place]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            value &= 0xFFFFFFFF
            if value & 1:  # negative
                break
            return (value >> 1) + place + 1 - at
    raise IndexError


# --- what is in them ----------------------------------------------------------------------------------


def fields_of(data: Octets, positions: Ints, ends: Ints) -> tuple[list[Ints], Ints]:
    """Columns of `Fields` from timestamp_delta on, and the rows that are not right."""
    low, high = windows_at(data, positions)
    length, used = varints(low)
    wrong = positions + length + used != ends
    low, high = shifted(low, high, used + 1)  # the attributes of a record mean nothing yet
    timestamp_delta, size = varints(low, is_long=True)
    too_long = size == TOO_LONG
    taken = used + 1 + size
    low, high = shifted(low, high, size)
    offset_delta, size = varints(low)
    too_long |= size == TOO_LONG
    taken = taken + size
    low, high = shifted(low, high, size)
    key_size, size = varints(low)
    too_long |= size == TOO_LONG
    taken = taken + size
    key_position = positions + taken
    value_position, value_size, headers_position, headers_count, rest_is_long = _value_and_headers(
        data, key_position + np.maximum(key_size, 0), ends
    )
    columns = [
        timestamp_delta,
        offset_delta,
        key_position,
        np.maximum(key_size, -1),
        value_position,
        value_size,
        headers_position,
        headers_count,
    ]
    alone = np.broadcast_to(too_long | (taken > 16), len(positions)) | rest_is_long
    if alone.any():
        _read_alone(data, positions, ends, np.flatnonzero(alone), columns, wrong)
    wrong |= columns[2] + np.maximum(columns[3], 0) > ends
    headers_end = columns[6]
    with_headers = np.flatnonzero((columns[7] > 0) & ~wrong & ~alone)
    if len(with_headers):
        headers_end = headers_end.copy()
        headers_end[with_headers] = check_header_lists(
            data, headers_end[with_headers], ends[with_headers], columns[7][with_headers]
        )
    wrong |= (headers_end != ends) & ~alone
    return columns, np.flatnonzero(wrong)


def _value_and_headers(data: Octets, positions: Ints, ends: Ints) -> tuple[Ints, Ints, Ints, Ints, Mask]:
    """The value whose length stands at each position, the header count behind it, and which must be read alone."""
    value_size, size = varints(words_at(data, np.minimum(positions, ends)))
    too_long = np.broadcast_to(size == TOO_LONG, len(positions))
    value_position = positions + size
    headers_at = value_position + np.maximum(value_size, 0)
    # Past the end lies another record; its bytes are read and thrown away, the row is found wrong.
    count = data.take(np.minimum(headers_at, ends)).astype(np.int64)
    too_long = too_long | ((count & 0x80) != 0)
    # An odd count is a negative one: no list of that many headers ends anywhere.
    count = np.where(count & 1, -1, count >> 1)
    headers_position = np.where(count < 0, -1, headers_at + 1)
    return value_position, np.maximum(value_size, -1), headers_position, count, too_long


def _read_alone(
    data: Octets, positions: Ints, ends: Ints, rows: Ints, columns: list[Ints], wrong: Mask
) -> None:
    """Fill these rows one by one."""
    for row in rows.tolist():
        start, end = int(positions[row]), int(ends[row])
        try:
            found = read_fields(data[start:end].tobytes())
        except FormatError:
            wrong[row] = True
            continue
        wrong[row] = False
        for column, value, is_position in zip(columns, found, IS_POSITION, strict=True):
            column[row] = value + start if is_position else value


IS_POSITION = (False, False, True, False, True, False, True, False)
