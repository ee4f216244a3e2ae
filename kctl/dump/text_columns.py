"""Columns of text as Arrow arrays: numbers, slices of a buffer, and their join row by row."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Lines = bytes | memoryview
Column: TypeAlias = Any  # a pa.Array of binary, or bytes that every row has
Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]


ROWS_AT_ONCE = 32 << 10
BYTES_AT_ONCE = 1 << 20


def pieces_of(positions: Ints) -> Iterator[slice]:
    """Rows in runs whose bytes, and the texts made of them, stay small; rows lie at these positions."""
    low = 0
    while low < len(positions):
        fit = int(np.searchsorted(positions, positions[low] + BYTES_AT_ONCE))
        high = max(low + 1, min(low + ROWS_AT_ONCE, fit))
        yield slice(low, high)
        low = high


def joined(*columns: Column) -> pa.Array:
    """The columns joined row by row; bytes stand for a column of the same."""
    merged: list[Column] = []
    for column in columns:
        if isinstance(column, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += column
        else:
            merged.append(column)
    return pc.binary_join_element_wise(
        *(pa.scalar(column, pa.binary()) if isinstance(column, bytes) else column for column in merged), b""
    )


def numbers(values: NDArray[np.generic]) -> pa.Array:
    """Integers as text."""
    return pa.array(np.ascontiguousarray(values)).cast(pa.string()).cast(pa.binary())


def numbers_or_one(values: NDArray[np.generic]) -> Column:
    """Integers as text; the text alone where several rows have the same."""
    if len(values) > 1 and (values == values[0]).all():
        return b"%d" % int(values[0])
    return numbers(values)


def numbers_like(values: NDArray[np.generic], others: NDArray[np.generic], text: pa.Array) -> pa.Array:
    """Integers as text; `text` where they are the others, whose text that is."""
    return text if (values == others).all() else numbers(values)


def lines_of(column: pa.Array) -> memoryview:
    """All texts of a column, one after the other."""
    ends = np.frombuffer(column.buffers()[1], np.int32)
    return memoryview(column.buffers()[2])[ends[column.offset] : ends[column.offset + len(column)]]


def slices(data: Octets, starts: Ints, ends: Ints) -> pa.Array:
    """data[start:end] of each row: every other item of an array whose offsets are starts and ends in turn."""
    first = int(starts[0])
    offsets = np.empty(2 * len(starts), np.int32)
    offsets[0::2], offsets[1::2] = starts - first, ends - first
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[first:])]
    everything = pa.Array.from_buffers(pa.binary(), 2 * len(starts) - 1, buffers)
    return everything.take(pa.array(np.arange(0, 2 * len(starts) - 1, 2)))


def with_empty_ones(lines: list[bytes], empty: list[bool]) -> tuple[pa.Array, bytes]:
    """The lines with those of empty batches before the next one's, and what is left after the last."""
    before, out = b"", []
    for line, is_empty in zip(lines, empty, strict=True):
        out.append(before + line)
        before = before + line if is_empty else b""
    return pa.array(out, pa.binary()), before
