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
from formats.columns.varints import (
    TOO_LONG,
    Words,
    shifted,
    unaligned,
    varints,
    windows_at,
    without,
    words_at,
)
from formats.errors import FormatError

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

FEWEST_LANES = 48  # below this the chain is followed by a plain loop
ROWS_AT_ONCE = 16 << 10  # what is taken from their bytes again and again stays in the cache
WORD = 8  # bytes
_ONE_CONTINUES, _TWO_CONTINUE = np.uint64(0x80), np.uint64(0x8080)
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
    has_records = counts > 0
    chained = bool((counts > 1).any())
    if chained:
        positions = np.empty(total + 1, np.int64)
        bad = chain(data, starts, ends, counts, first_rows, positions)
        positions, record_ends = positions[:-1], np.empty(total, np.int64)
        record_ends[:-1] = positions[1:]
        record_ends[first_rows[1:][has_records] - 1] = ends[has_records]
    else:  # whether a record alone fills its body, is seen with its fields
        bad = ~has_records & (starts != ends)
        all_have = len(counts) == total
        positions, record_ends = (starts, ends) if all_have else (starts[has_records], ends[has_records])
    parts = []
    bad_rows: list[Ints] = []
    for low in range(0, total, ROWS_AT_ONCE):
        some = slice(low, low + ROWS_AT_ONCE)
        columns, wrong = fields_of(data, positions[some], record_ends[some], chained=chained)
        parts.append(columns)
        if len(wrong):
            bad_rows.append(wrong + low)
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else NO_COLUMNS
    fields = Fields(positions, record_ends - positions, *joined)
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
        step = steps.take(pairs[here])
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


def fields_of(data: Octets, positions: Ints, ends: Ints, *, chained: bool = True) -> tuple[list[Ints], Ints]:
    """Columns of `Fields` from timestamp_delta on, and the rows that are not right.

    Each record ends where its length says, as `chain` found; if it did not look, this does.
    """
    word = words_at(data, positions)
    if chained:
        size, wrong = _sizes_of_lengths(word), np.zeros(len(word), np.bool_)
    else:
        length, size = varints(word)
        wrong = (positions + size + length != ends) | (size == TOO_LONG)
    before = size + 1  # the attributes of a record mean nothing yet
    timestamp_delta, offset_delta, key_size, taken, alone = _three(data, positions + before, word, before)
    key_position = positions + before + taken
    value_position: Ints | None = None
    if key_size.max() < 0:
        value_size, size = varints(without(word, before + taken))
        if np.max(before + taken + size) <= WORD:
            value_position = key_position + size
    if value_position is None:
        key_end = key_position + np.maximum(key_size, 0)
        value_size, value_position, size = _value_at(data, key_end, ends)
    if np.max(size) == TOO_LONG:
        alone |= size == TOO_LONG
    headers_at = value_position + np.maximum(value_size, 0)
    is_past = headers_at >= ends
    if is_past.any():  # what lies there is another record
        headers_at, wrong = np.minimum(headers_at, ends), wrong | is_past
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
        np.maximum(key_size, -1),
        value_position,
        np.maximum(value_size, -1),
        headers_position,
        headers_count,
    ]
    with_headers = np.flatnonzero(count)
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


def _sizes_of_lengths(words: Words) -> Ints | int:
    """How many bytes the varint takes that each word begins with, where they agree without looking at its value."""
    goes_on = words & _TWO_CONTINUE
    if (goes_on == _ONE_CONTINUES).all():
        return 2
    return varints(words)[1]


def _three(
    data: Octets, positions: Ints, word: Words, before: Ints | int
) -> tuple[Ints, Ints, Ints, Ints | int, Mask]:
    """Timestamp delta, offset delta, key size, how many bytes the three take, and which rows must be read alone.

    They mostly fit in 8 bytes together, often in what is left of a word behind its first bytes; where they do not, a
    second word is taken.
    """
    timestamp_delta, offset_delta, key_size, taken = _in_a_word(without(word, before))
    if np.max(taken) > WORD - np.max(
        before
    ):  # zeros came in behind the word: what is longer than it, is seen to be
        timestamp_delta, offset_delta, key_size, taken = _in_a_word(words_at(data, positions))
    alone = np.zeros(len(positions), np.bool_)
    if np.max(taken) > WORD:
        taken = np.array(np.broadcast_to(taken, len(positions)))
        longer = np.flatnonzero(taken > WORD)
        columns = (timestamp_delta, offset_delta, key_size, taken)
        for column, found in zip(columns, _in_two_words(data, positions[longer]), strict=True):
            column[longer] = found
        alone = taken > 2 * WORD
    return timestamp_delta, offset_delta, key_size, taken, alone


def _in_a_word(word: Words) -> tuple[Ints, Ints, Ints, Ints | int]:
    """Timestamp delta, offset delta and key size, and how many bytes they take; more than 8 mean that nobody knows."""
    timestamp_delta, size = varints(word, is_long=True)
    taken = size
    word = without(word, size)
    offset_delta, size = varints(word)
    taken = taken + size
    key_size, size = varints(without(word, size))
    return timestamp_delta, offset_delta, key_size, taken + size


def _in_two_words(data: Octets, positions: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Timestamp delta, offset delta, key size and how many bytes they take; more than 16 mean that nobody knows."""
    low, high = windows_at(data, positions)
    timestamp_delta, size = varints(low, is_long=True)
    too_long = size == TOO_LONG
    taken = np.zeros(len(positions), np.int64) + size
    low, high = shifted(low, high, size)
    offset_delta, size = varints(low)
    too_long |= size == TOO_LONG
    taken += size
    low, high = shifted(low, high, size)
    key_size, size = varints(low)
    too_long |= size == TOO_LONG
    taken += size
    taken[np.broadcast_to(too_long, len(taken))] = 17
    return timestamp_delta, offset_delta, key_size, taken


def _value_at(data: Octets, positions: Ints, ends: Ints) -> tuple[Ints, Ints, Ints | int]:
    """The value whose length stands at each position: its size, where it begins, how many bytes the length has."""
    # Past the end lies another record; its bytes are read and thrown away, the row is found wrong.
    is_past = positions > ends
    value_size, size = varints(words_at(data, np.minimum(positions, ends) if is_past.any() else positions))
    return value_size, positions + size, size


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
