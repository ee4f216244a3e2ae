"""Bytes as the insides of JSON strings, a whole column at a time.

The texts of a column lie one behind the other, so all are escaped as one string; where each then ends follows from
how many bytes before it grew. Rows that are no UTF-8 are left to the caller.
"""

from functools import cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kctl.dump.text_columns import ends_of, slices, texts_at

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

encode = msgspec.json.Encoder().encode
QUOTE, BACKSLASH, FIRST_PLAIN, LAST_PLAIN = 0x22, 0x5C, 0x20, 0x7E


@cache
def _growth() -> NDArray[np.int64]:
    """By byte: how many more it becomes in a JSON string."""
    sizes = [len(encode(chr(byte))) - 3 for byte in range(0x80)]
    return np.array(sizes + [0] * 0x80, np.int64)


def json_texts(data: Octets, starts: Ints, ends: Ints) -> tuple[pa.Array, Mask | None]:
    """data[start:end] of each row, escaped, and which rows are no UTF-8: those mean nothing (None: there are none)."""
    texts = slices(data, starts, ends)
    offsets = ends_of(texts)
    held = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[: int(offsets[-1])]
    is_ascii = not len(held) or (int(held.max()) <= LAST_PLAIN and int(held.min()) >= FIRST_PLAIN)
    if is_ascii:
        grows = (held == QUOTE) | (held == BACKSLASH)
        if not grows.any():
            return texts, None
        return _array(encode(str(held.data, "ascii")), offsets + _counted(grows, offsets)), None
    bad = _bad_rows(held, offsets)
    if bad is not None:
        held = held.copy()
        for row in np.flatnonzero(bad).tolist():
            held[offsets[row] : offsets[row + 1]] = LAST_PLAIN
    growth = _growth()[held]
    grown = np.flatnonzero(growth)
    sums = np.concatenate(([0], np.cumsum(growth[grown])))
    more = sums[np.searchsorted(grown, offsets)]
    return _array(encode(str(held.data, "utf-8")), offsets + more), bad


def _counted(mask: Mask, places: NDArray[np.int32]) -> Ints:
    """For each place how many bytes before it the mask holds for: whole words of bits, then the rest of one."""
    bits = np.packbits(mask, bitorder="little")
    words = np.concatenate((bits, np.zeros(16 - len(bits) % 8, np.uint8))).view(np.uint64)
    before = np.concatenate(([0], np.cumsum(np.bitwise_count(words), dtype=np.int64)))
    at = places >> 6
    rest = (np.uint64(1) << (places & 63).astype(np.uint64)) - np.uint64(1)
    counted: Ints = before[at] + np.bitwise_count(words[at] & rest)
    return counted


def _array(quoted: bytes, ends: NDArray[Any]) -> pa.Array:
    """The texts of a quoted string that holds them one behind the other, up to these ends."""
    return texts_at(ends + 1, pa.py_buffer(quoted))


def _bad_rows(held: Octets, offsets: NDArray[np.int32]) -> Mask | None:
    """Rows that are no UTF-8 by themselves."""
    filled = offsets[:-1][offsets[1:] > offsets[:-1]]
    try:
        str(held.data, "utf-8")
        if not ((held[filled] & 0xC0) == 0x80).any():  # none begins inside a character
            return None
    except UnicodeDecodeError:
        pass
    bad = np.zeros(len(offsets) - 1, np.bool_)
    high = np.flatnonzero(held >= 0x80)
    for row in np.unique(np.searchsorted(offsets, high, side="right") - 1).tolist():
        try:
            str(held[offsets[row] : offsets[row + 1]].data, "utf-8")
        except UnicodeDecodeError:
            bad[row] = True
    return bad if bad.any() else None
