"""Columns of text, joined row by row: constants, numbers, Arrow arrays of texts.

Joining costs something for each piece of each row. So constants and numbers that stand side by side become one
piece: a row of a matrix of bytes, in which only those digits are written that differ from row to row.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from formats.arrays import Ints, Mask

Lines = bytes | memoryview
Column: TypeAlias = Any  # a pa.Array of binary, integers that become text, or bytes that every row has
Octets = NDArray[np.uint8]


ROWS_AT_ONCE = 16 << 10
BYTES_AT_ONCE = 4 << 20
DIGITS_AT_ONCE = 4
LONG = 64  # bytes of a constant that are not worth being copied twice


def pieces_of(positions: Ints) -> Iterator[slice]:
    """Rows in runs whose bytes, and the texts made of them, stay small; rows lie at these positions."""
    low = 0
    while low < len(positions):
        fit = int(np.searchsorted(positions, positions[low] + BYTES_AT_ONCE))
        high = max(low + 1, min(low + ROWS_AT_ONCE, fit))
        yield slice(low, high)
        low = high


class _Digits(NamedTuple):
    """The last digits of numbers; those before them are the same in every row."""

    values: NDArray[Any]
    size: int


def joined(*columns: Column) -> pa.Array:
    """The columns joined row by row; one at least is no constant."""
    rows = next(len(column) for column in columns if not isinstance(column, bytes))
    pieces: list[Column] = []
    parts = _parts(columns)
    for is_array, group in groupby(parts, lambda part: isinstance(part, pa.Array)):
        group_parts = list(group)
        pieces += group_parts if is_array else _together(group_parts, rows)
    if not any(isinstance(piece, pa.Array) for piece in pieces):
        return _matrix(parts, rows)
    return pc.binary_join_element_wise(*pieces, b"") if len(pieces) > 1 else pieces[0]


def _parts(columns: Iterable[Column]) -> "list[bytes | _Digits | pa.Array]":
    """The columns, numbers taken apart, neighbouring constants as one."""
    parts: list[bytes | _Digits | pa.Array] = []
    for column in columns:
        for part in _of_numbers(column) if isinstance(column, np.ndarray) else [column]:
            if parts and isinstance(part, bytes) and isinstance(parts[-1], bytes):
                parts[-1] += part
            elif not isinstance(part, bytes) or part:
                parts.append(part)
    return parts


def _of_numbers(values: NDArray[Any]) -> "list[bytes | _Digits | pa.Array]":
    """The digits that all have, then those in which they differ; where some have more digits than others, their texts."""
    if not len(values):
        return [texts_of(values)]
    least, most = int(values.min()), int(values.max())
    first, last = b"%d" % least, b"%d" % most
    if least == most:
        return [first]
    if least < 0 or len(first) < len(last):
        return [texts_of(values)]
    size = len(first) - next(place for place, digit in enumerate(first) if digit != last[place])
    return [first[:-size], _Digits(values - least // 10**size * 10**size, size)]


def _together(parts: list[Any], rows: int) -> list[Column]:
    """Numbers, and the constants beside them that are not long, as one piece."""
    pieces: list[Column] = []
    for is_long, group in groupby(parts, lambda part: isinstance(part, bytes) and len(part) > LONG):
        group_parts = list(group)
        if is_long or (len(group_parts) == 1 and isinstance(group_parts[0], bytes)):
            pieces += [pa.scalar(part, pa.binary()) for part in group_parts]
        else:
            pieces.append(_matrix(group_parts, rows))
    return pieces


def texts_of(values: NDArray[Any]) -> pa.Array:
    """Integers as text."""
    return pa.array(np.ascontiguousarray(values)).cast(pa.string()).cast(pa.binary())


def _matrix(fixed: list[Any], rows: int) -> pa.Array:
    row = b"".join(part if isinstance(part, bytes) else bytes(part.size) for part in fixed)
    matrix = np.empty((rows, len(row)), np.uint8)
    matrix[:] = np.frombuffer(row, np.uint8)
    at = 0
    for part in fixed:
        if isinstance(part, _Digits):
            at += part.size
            _write_digits(matrix, at, part)
        else:
            at += len(part)
    return texts_at(np.arange(rows + 1) * len(row), pa.py_buffer(matrix))


def _write_digits(matrix: Octets, end: int, digits: _Digits) -> None:
    """Write digits into the columns of a matrix up to `end`, some at once."""
    digits_left, values = digits.size, digits.values
    values = values.astype(np.uint32 if digits_left < 10 else np.uint64)
    while digits_left:
        count = min(digits_left, DIGITS_AT_ONCE)
        base = values.dtype.type(10**count)
        quotients = values // base
        end -= count
        place: Any = np.ndarray(len(matrix), f"V{count}", matrix, offset=end, strides=matrix.strides[:1])
        place[:] = _numerals(count).take(values - quotients * base)
        values, digits_left = quotients, digits_left - count


@cache
def _numerals(count: int) -> NDArray[Any]:
    """The texts of all numbers of so many digits."""
    return np.array([b"%0*d" % (count, number) for number in range(10**count)]).view(f"V{count}")


def texts_at(ends: NDArray[Any], data: Any) -> pa.Array:
    """The texts that lie one behind the other in a buffer; `ends` are where the first begins and each ends."""
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), data]
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers)


def ends_of(column: pa.Array) -> NDArray[np.int32]:
    """Where the first text of a column begins in its buffer, and each ends."""
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1]


def octets_of(column: pa.Array) -> Octets:
    """The bytes of all texts of a column, which begin where its buffer does."""
    return np.frombuffer(column.buffers()[2] or b"", np.uint8)[: int(ends_of(column)[-1])]


def lines_of(column: pa.Array) -> memoryview:
    """All texts of a column, one after the other."""
    ends = ends_of(column)
    return memoryview(column.buffers()[2])[ends[0] : ends[-1]]


def at_first_rows(lines: pa.Array, batches: Ints) -> pa.Array:
    """For the first row of each batch its line, and before it those of batches without rows; nothing for other rows.

    `batches` are the batches of rows, in order; -1 is one whose line was given before.
    """
    ends = ends_of(lines)
    return texts_at(ends[np.concatenate(([0], batches + 1))], lines.buffers()[2])


def either(chosen: Mask, text: bytes, other_text: bytes) -> Column:
    """One text where a row is chosen, the other where it is not."""
    return by_number([other_text, text], chosen.astype(np.int8))


def by_number(texts: list[bytes], numbers: NDArray[np.int8]) -> Column:
    """The text of each row's number."""
    first = int(numbers[0])
    return texts[first] if (numbers == first).all() else pa.array(texts, pa.binary()).take(pa.array(numbers))


def slices(data: Octets, starts: Ints, ends: Ints) -> pa.Array:
    """data[start:end] of each row: every other item of an array whose offsets are starts and ends in turn."""
    first = int(starts[0])
    offsets = np.empty(2 * len(starts), np.int32)
    offsets[0::2], offsets[1::2] = starts - first, ends - first
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[first:])]
    everything = pa.Array.from_buffers(pa.binary(), 2 * len(starts) - 1, buffers)
    return everything.take(pa.array(np.arange(0, 2 * len(starts) - 1, 2)))
