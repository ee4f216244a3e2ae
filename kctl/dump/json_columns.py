"""Batches and their records as JSON lines: columns of text, joined line by line as Arrow strings.

What stands for itself in a JSON string is copied as it is, quotes and backslashes are escaped a column at a
time; only values with other bytes are encoded one by one.
"""

from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from formats.columns.headers import Headers
from formats.columns.record_headers import header_fields
from formats.kafka_text import codec_name, time_name
from formats.record_batch import CONTROL, DELETE_HORIZON, LOG_OVERHEAD, TIMESTAMP_TYPE, TRANSACTIONAL, Record
from kctl.dump.decoded import decoded
from kctl.dump.json_texts import json_texts
from kctl.dump.text_columns import (
    Column,
    Lines,
    joined,
    lines_of,
    numbers,
    numbers_like,
    numbers_or_one,
    pieces_of,
    with_empty_ones,
)
from kctl.dump.values import named
from kctl.dump.wanted import Wanted
from kctl.scan.records import Records

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Columns = tuple[Column, ...]
encode = msgspec.json.Encoder().encode


def chunk_lines(headers: Headers, records: Records, shown: str, wanted: Wanted) -> Iterator[Lines]:
    """The lines of sound batches of magic 2, each followed by those of its records."""
    file = _encoded(shown)
    is_first = np.concatenate(([True], records.batch[1:] != records.batch[:-1]))
    if len(records) == len(headers) and is_first.all():  # one record in each batch
        for rows in pieces_of(records.position):
            batches, head = batch_columns(headers[rows], file)
            yield record_lines(records[rows], (*batches, *head), headers, wanted)
        return
    batches, head = batch_columns(headers, file)
    empty = headers.records_count == 0
    after = b""
    if empty.any():
        lines, after = with_empty_ones(joined(*batches).to_pylist(), empty.tolist())
        batches = (lines,)
    # The line of a batch stands before that of its first record.
    starts = pa.concat_arrays([joined(*batches, *head), joined(*head)])
    for rows in pieces_of(records.position):
        chosen = starts.take(pa.array(records.batch[rows] + np.where(is_first[rows], 0, len(headers))))
        yield record_lines(records[rows], (chosen,), headers, wanted)
    yield after


def lines_of_batches(headers: Headers, shown: str) -> Lines:
    """The lines of sound batches of magic 2 alone."""
    if not len(headers):
        return b""
    return lines_of(joined(*batch_columns(headers, _encoded(shown))[0]))


def _encoded(name: str) -> bytes:
    return encode(name.encode("utf-8", "backslashreplace").decode())


def batch_columns(headers: Headers, file: bytes) -> tuple[Columns, Columns]:
    """The line of each batch, and what the lines of its records begin with, up to the offset; to be joined."""
    position = numbers(headers.position)
    head = (b'{"kind":"record","file":' + file + b',"position":', position, b',"offset":')
    last_sequence = headers.base_sequence.astype(np.int64) + headers.last_offset_delta
    last_sequence = np.where(headers.base_sequence >= 0, last_sequence & 0x7FFFFFFF, -1)
    base_offset, base_timestamp = numbers(headers.base_offset), numbers(headers.base_timestamp)
    last_offset = numbers_like(headers.last_offset, headers.base_offset, base_offset)
    max_timestamp = numbers_like(headers.max_timestamp, headers.base_timestamp, base_timestamp)
    batches = (
        b'{"kind":"batch","file":' + file + b',"position":', position,
        b',"size_in_bytes":', numbers(headers.size_in_bytes),
        b',"base_offset":', base_offset,
        b',"last_offset":', last_offset,
        b',"magic":2,"crc":', numbers(headers.crc),
        b',"crc_valid":true,', _by_attributes(headers, _what),
        b',"max_timestamp":', max_timestamp,
        b',"records_count":', numbers_or_one(headers.records_count),
        b',"batch_length":', numbers(headers.size_in_bytes - LOG_OVERHEAD),
        b',"partition_leader_epoch":', numbers_or_one(headers.partition_leader_epoch),
        b',"last_offset_delta":', numbers_or_one(headers.last_offset_delta),
        b',"base_timestamp":', base_timestamp,
        b',"delete_horizon_ms":', _horizons(headers, base_timestamp),
        b',"producer_id":', numbers_or_one(headers.producer_id),
        b',"producer_epoch":', numbers_or_one(headers.producer_epoch),
        b',"base_sequence":', numbers_or_one(headers.base_sequence),
        b',"last_sequence":', numbers_or_one(last_sequence),
        _by_attributes(headers, _which),
    )  # fmt: skip
    return batches, head


def _by_attributes(headers: Headers, text: Callable[[int], bytes]) -> Column:
    """What a batch's attributes say."""
    if (headers.attributes == headers.attributes[0]).all():
        return text(int(headers.attributes[0]))
    bits, which = np.unique(headers.attributes, return_inverse=True)
    return pa.array([text(one) for one in bits.tolist()], pa.binary()).take(pa.array(which))


def _what(bits: int) -> bytes:
    time = time_name(bool(bits & TIMESTAMP_TYPE))
    return f'"codec":"{codec_name(bits & 7)}","attributes":{bits},"timestamp_type":"{time}"'.encode()


def _which(bits: int) -> bytes:
    said = encode({"is_transactional": bool(bits & TRANSACTIONAL), "is_control": bool(bits & CONTROL)})
    return b"," + said[1:] + b"\n"


def _horizons(headers: Headers, base_timestamp: pa.Array) -> Column:
    has = (headers.attributes & DELETE_HORIZON) != 0
    if not has.any():
        return b"null"
    return pc.if_else(pa.array(has), base_timestamp, pa.scalar(b"null", pa.binary()))


def record_lines(records: Records, starts: Columns, headers: Headers, wanted: Wanted) -> memoryview:
    """The lines of records; `starts` is what stands before their offsets."""
    lines = joined(
        *starts, numbers(records.offset),
        b',"timestamp":', numbers(records.timestamp),
        b',"headers":', _headers(records),
        b',"sequence":', numbers_or_one(records.sequence),
        b',"decoded":', _decoded(records, headers, wanted), b",",
        *field("key", records.data, records.key_position, records.key_size, wanted.keys), b",",
        *field("value", records.data, records.value_position, records.value_size, wanted.values), b"}\n",
    )  # fmt: skip
    return lines_of(lines)


def _headers(records: Records) -> Column:
    counts = records.headers_count
    if not (counts > 0).any():
        return b"[]"
    data = records.data
    keys, key_sizes, values, value_sizes = header_fields(data, records.headers_position, counts)
    key = field("key", data, keys, key_sizes, "utf8")
    value = field("value", data, values, value_sizes, "utf8")
    edges = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(edges), joined(b"{", *key, b",", *value, b"}"))
    return joined(b"[", pc.binary_join(lists, b","), b"]")


def _decoded(records: Records, headers: Headers, wanted: Wanted) -> Column:
    control = (headers.attributes[records.batch] & CONTROL) != 0
    if not control.any():
        return b"null"
    texts = [b"null"] * len(records)
    chosen = records[control]
    for row, key, value in zip(np.flatnonzero(control).tolist(), chosen.keys(), chosen.values(), strict=True):
        texts[row] = encode(decoded(wanted.topic, True, Record(0, 0, key, value)))
    return pa.array(texts, pa.binary())


def field(name: str, data: Octets, positions: Ints, sizes: Ints, form: str) -> list[Column]:
    """`"NAME":...` of each record, as columns to be joined."""
    null = sizes < 0
    if null.all():
        return [f'"{name}":null'.encode()]
    ends = positions + np.maximum(sizes, 0)
    if form != "utf8":
        return [pa.array(_one_by_one(name, data, positions, ends, null, form), pa.binary())]
    texts, bad = json_texts(data, positions, ends)
    columns: list[Column] = [f'"{name}":"'.encode(), texts, b'"']
    if not null.any() and bad is None:
        return columns
    column = joined(*columns)
    if null.any():
        column = pc.if_else(pa.array(null), pa.scalar(f'"{name}":null'.encode(), pa.binary()), column)
    if bad is not None:
        no_text = _one_by_one(name, data, positions[bad], ends[bad], null[bad], form)
        column = pc.replace_with_mask(column, pa.array(bad), pa.array(no_text, pa.binary()))
    return [column]


def _one_by_one(
    name: str, data: Octets, starts: Ints, ends: Ints, null: NDArray[np.bool_], form: str
) -> list[bytes]:
    held = memoryview(data.data)
    rows = zip(starts.tolist(), ends.tolist(), null.tolist(), strict=True)
    return [
        encode(named(name, None if is_null else bytes(held[start:end]), form))[1:-1]
        for start, end, is_null in rows
    ]
