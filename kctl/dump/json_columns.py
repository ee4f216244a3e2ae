"""Batches and their records as JSON lines: columns of text, joined line by line as Arrow strings.

The texts of a column lie one behind the other, so all are escaped as one JSON string; where each then ends follows
from how many bytes before it grew. Rows that are not UTF-8 are encoded as one base64 text likewise.
"""

from binascii import b2a_base64, hexlify
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.kafka_text.dump_log_segments import time_name
from formats.log.columns.headers import Headers
from formats.log.record_batch import (
    CODEC_MASK,
    CONTROL,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    Record,
)
from kctl.dump.batches import codec
from kctl.dump.decoded import decoded
from kctl.dump.plain_runs import (
    Columns,
    batch_lines,
    by_attributes,
    control_texts,
    delete_horizons,
    header_lists,
    last_sequences,
    run_lines,
)
from kctl.dump.selection import DumpSelection
from kctl.dump.text_columns import (
    Column,
    Lines,
    by_number,
    either,
    ends_of,
    octets_of,
    slices,
    texts_at,
)
from kctl.dump.values import named
from kctl.rows import RowType
from kctl.rows.dump import BATCH, RECORD
from kctl.scan.records import Records

Octets = NDArray[np.uint8]

encode = msgspec.json.Encoder().encode
QUOTE, BACKSLASH, FIRST_PLAIN, PAD = 0x22, 0x5C, 0x20, ord("=")


@cache
def _growth() -> Ints:
    """By byte below the quote: how many more a control character becomes in a JSON string."""
    return np.array([len(encode(chr(byte))) - 3 for byte in range(FIRST_PLAIN)], np.int64)


def json_texts(data: Octets, starts: Ints, ends: Ints) -> tuple[pa.Array, Mask | None]:
    """data[start:end] of each row, escaped, and which rows are no UTF-8: those are empty (None: there are none)."""
    texts = slices(data, starts, ends)
    offsets = ends_of(texts)
    octets = octets_of(texts)
    text = _text(octets, offsets)
    if text is None:
        bad = _bad_rows(texts, octets, offsets)
        return json_texts(data, starts, np.where(bad, starts, ends))[0], bad
    grows = octets == QUOTE
    if "\\" in text:
        grows |= octets == BACKSLASH
    growth = _counts_before(grows, offsets)
    if len(octets) and int(octets.min()) < FIRST_PLAIN:
        controls = np.flatnonzero(octets < FIRST_PLAIN)
        sums = np.concatenate(([0], np.cumsum(_growth()[octets[controls]])))
        growth += sums[np.searchsorted(controls, offsets)]
    return texts_at(offsets + growth + 1, pa.py_buffer(encode(text))) if growth[-1] else texts, None


def _text(octets: Octets, offsets: NDArray[np.int32]) -> str | None:
    """The rows as one text; None where one is no UTF-8 by itself."""
    try:
        text = str(octets.data, "utf-8")
    except UnicodeDecodeError:
        return None
    if text.isascii():
        return text
    filled = offsets[:-1][offsets[1:] > offsets[:-1]]
    begins_inside = ((octets[filled] & 0xC0) == 0x80).any()
    return None if begins_inside else text


def _counts_before(mask: Mask, places: NDArray[np.int32]) -> Ints:
    """For each place how many bytes before it the mask holds for: whole words of bits, then the rest of one."""
    bits = np.packbits(mask, bitorder="little")
    words = np.concatenate((bits, np.zeros(16 - len(bits) % 8, np.uint8))).view(np.uint64)
    before = np.concatenate(([0], np.cumsum(np.bitwise_count(words), dtype=np.int64)))
    at = places >> 6
    mask_below = (np.uint64(1) << (places & 63).astype(np.uint64)) - np.uint64(1)
    counted: Ints = before[at] + np.bitwise_count(words[at] & mask_below)
    return counted


def _bad_rows(texts: pa.Array, octets: Octets, offsets: NDArray[np.int32]) -> Mask:
    """Rows that are no UTF-8 by themselves."""
    bad: Mask = ~pc.string_is_ascii(texts.view(pa.string())).to_numpy(zero_copy_only=False)
    view, ends = memoryview(octets.data), offsets.tolist()
    for row in np.flatnonzero(bad).tolist():
        try:
            str(view[ends[row] : ends[row + 1]], "utf-8")
        except UnicodeDecodeError:
            continue
        bad[row] = False
    return bad


def hex_texts(data: Octets, starts: Ints, ends: Ints) -> tuple[pa.Array, Mask | None]:
    """data[start:end] of each row in hexadecimal digits."""
    texts = slices(data, starts, ends)
    return texts_at(ends_of(texts) * 2, pa.py_buffer(hexlify(octets_of(texts).data))), None


def no_texts(data: Octets, starts: Ints, ends: Ints) -> tuple[Column, Mask | None]:
    """Nothing as text of any row, so that all are in base64."""
    return b"", np.ones(len(starts), np.bool_)


TEXTS = {"utf8": json_texts, "hex": hex_texts, "base64": no_texts}  # by form


def base64_texts(data: Octets, starts: Ints, ends: Ints) -> pa.Array:
    """data[start:end] of each row in base64; `data` goes on for two bytes behind each row.

    Rows of whole groups of three bytes can be encoded one behind the other. The bytes that a row lacks are zero, and
    what they become is then overwritten.
    """
    lacks = (starts - ends) % 3
    texts = slices(data, starts, ends + lacks)
    after = ends_of(texts)[1:]
    octets = octets_of(texts).copy()
    for count in (1, 2):
        octets[after[lacks >= count] - count] = 0
    encoded = np.frombuffer(bytearray(b2a_base64(octets.data, newline=False)), np.uint8)
    offsets = ends_of(texts) // 3 * 4
    for count in (1, 2):
        encoded[offsets[1:][lacks >= count] - count] = PAD
    return texts_at(offsets, pa.py_buffer(encoded))


def chunk_lines(headers: Headers, records: Records, file: str, selection: DumpSelection) -> Iterator[Lines]:
    """The lines of sound batches of magic 2, each followed by those of its records."""
    file_text = _encoded(file)
    return run_lines(
        headers,
        records,
        lambda batches: batch_columns(batches, file_text),
        lambda chosen: record_columns(chosen, file_text, headers, selection),
    )


def lines_of_batches(headers: Headers, file: str) -> Lines:
    """The lines of sound batches of magic 2 alone."""
    file_text = _encoded(file)
    return batch_lines(headers, lambda batches: batch_columns(batches, file_text))


def _encoded(name: str) -> bytes:
    return encode(name.encode("utf-8", "backslashreplace").decode())


def line_columns(row: RowType, file: bytes, values: Mapping[str, Column | Columns], owner: object) -> Columns:
    """The fields of a row, in its order, to be joined; a field without a value is the owner's column of that name."""
    columns: list[Column] = [b'{"kind":' + encode(row.kind)]
    for name in row.required[1:]:
        value = file if name == "file" else values[name] if name in values else getattr(owner, name)
        columns += (b"," + encode(name) + b":", *(value if isinstance(value, tuple) else (value,)))
    return tuple(columns)


def batch_columns(headers: Headers, file: bytes) -> Columns:
    """The line of each batch, to be joined."""

    def text(of_bits: Callable[[int], object]) -> Column:
        return by_attributes(headers, lambda bits: encode(of_bits(bits)))

    values: dict[str, Column | Columns] = {
        "crc_valid": b"true",
        "codec": text(lambda bits: codec(bits & CODEC_MASK)),
        "timestamp_type": text(lambda bits: time_name(bool(bits & TIMESTAMP_TYPE))),
        "batch_length": headers.size_in_bytes - LOG_OVERHEAD,
        "delete_horizon_ms": delete_horizons(headers, b"null"),
        "last_sequence": last_sequences(headers),
        "is_transactional": text(lambda bits: bool(bits & TRANSACTIONAL)),
        "is_control": text(lambda bits: bool(bits & CONTROL)),
    }
    return (*line_columns(BATCH, file, values, headers), b"}\n")


def record_columns(records: Records, file: bytes, headers: Headers, selection: DumpSelection) -> Columns:
    """The line of each record, to be joined; key and value are last, as their names depend on their bytes."""

    def control(key: bytes | None, value: bytes | None) -> bytes:
        return encode(decoded(selection.topic, True, Record(0, 0, key, value)))

    values: dict[str, Column | Columns] = {
        "position": headers.position[records.batch],
        "headers": (b"[", _headers(records), b"]"),
        "decoded": control_texts(records, headers, b"null", control),
    }
    return (
        *line_columns(RECORD, file, values, records), b",",
        *field("key", records.data, records.key_position, records.key_size, selection.keys), b",",
        *field("value", records.data, records.value_position, records.value_size, selection.values), b"}\n",
    )  # fmt: skip


def _headers(records: Records) -> Column:
    """The header list of each record, without its brackets."""
    data = records.data
    return header_lists(
        records,
        b"{",
        lambda keys, key_sizes, values, value_sizes: (
            *field("key", data, keys, key_sizes, "utf8"), b",",
            *field("value", data, values, value_sizes, "utf8"), b"}",
        ),
    )  # fmt: skip


def field(name: str, data: Octets, positions: Ints, sizes: Ints, form: str) -> list[Column]:
    """`"NAME":...` of each record, as columns to be joined."""
    null = sizes < 0
    if null.all():
        return [f'"{name}":null'.encode()]
    ends = positions + np.maximum(sizes, 0)
    if form == "json":
        return [pa.array(_json_values(name, data, positions, ends, null), pa.binary())]
    texts, no_text = TEXTS[form](data, positions, ends)
    kinds, columns = null.astype(np.int8), [texts]
    if no_text is not None:
        columns.append(base64_texts(data, positions, np.where(no_text, ends, positions)))
        kinds[no_text & ~null] = 2
    begins = [text.encode() for text in (f'"{name}":"', f'"{name}":null', f'"{name}_base64":"')]
    return [by_number(begins, kinds), *columns, either(null, b"", b'"')]


def _json_values(name: str, data: Octets, starts: Ints, ends: Ints, null: Mask) -> list[bytes]:
    octets = memoryview(data.data)
    rows = zip(starts.tolist(), ends.tolist(), null.tolist(), strict=True)
    return [
        encode(named(name, None if is_null else bytes(octets[start:end]), "json"))[1:-1]
        for start, end, is_null in rows
    ]
