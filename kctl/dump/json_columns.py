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
    at_first_rows,
    either,
    ends_of,
    joined,
    lines_of,
    pieces_of,
    texts_at,
    texts_of,
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
    file, given = _encoded(shown), 0
    for rows in pieces_of(records.position):
        some = records[rows]
        new = headers[given : int(some.batch[-1]) + 1]
        batches = some.batch - given
        before = batch_columns(new, file) if len(new) else ()
        if len(new) and not (len(new) == len(some) and batches[0] == 0 and (np.diff(batches) == 1).all()):
            before = (at_first_rows(joined(*before), batches),)
        yield record_lines(some, before, file, headers, wanted)
        given += len(new)
    yield lines_of_batches(headers[given:], shown)


def lines_of_batches(headers: Headers, shown: str) -> Lines:
    """The lines of sound batches of magic 2 alone."""
    return lines_of(joined(*batch_columns(headers, _encoded(shown)))) if len(headers) else b""


def _encoded(name: str) -> bytes:
    return encode(name.encode("utf-8", "backslashreplace").decode())


def batch_columns(headers: Headers, file: bytes) -> Columns:
    """The line of each batch, to be joined."""
    last_sequence = headers.base_sequence.astype(np.int64) + headers.last_offset_delta
    return (
        b'{"kind":"batch","file":' + file + b',"position":', headers.position,
        b',"size_in_bytes":', headers.size_in_bytes,
        b',"base_offset":', headers.base_offset,
        b',"last_offset":', headers.last_offset,
        b',"magic":2,"crc":', headers.crc,
        b',"crc_valid":true,', _by_attributes(headers, _what),
        b',"max_timestamp":', headers.max_timestamp,
        b',"records_count":', headers.records_count,
        b',"batch_length":', headers.size_in_bytes - LOG_OVERHEAD,
        b',"partition_leader_epoch":', headers.partition_leader_epoch,
        b',"last_offset_delta":', headers.last_offset_delta,
        b',"base_timestamp":', headers.base_timestamp,
        b',"delete_horizon_ms":', _horizons(headers),
        b',"producer_id":', headers.producer_id,
        b',"producer_epoch":', headers.producer_epoch,
        b',"base_sequence":', headers.base_sequence,
        b',"last_sequence":', np.where(headers.base_sequence >= 0, last_sequence & 0x7FFFFFFF, -1),
        _by_attributes(headers, _which),
    )  # fmt: skip


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


def _horizons(headers: Headers) -> Column:
    has = (headers.attributes & DELETE_HORIZON) != 0
    if not has.any():
        return b"null"
    return pc.if_else(pa.array(has), texts_of(headers.base_timestamp), pa.scalar(b"null", pa.binary()))


def record_lines(
    records: Records, before: Columns, file: bytes, headers: Headers, wanted: Wanted
) -> memoryview:
    """The lines of records, each with what stands before it."""
    lines = joined(
        *before, b'{"kind":"record","file":' + file + b',"position":', headers.position[records.batch],
        b',"offset":', records.offset,
        b',"timestamp":', records.timestamp,
        b',"headers":[', _headers(records),
        b'],"sequence":', records.sequence,
        b',"decoded":', _decoded(records, headers, wanted), b",",
        *field("key", records.data, records.key_position, records.key_size, wanted.keys), b",",
        *field("value", records.data, records.value_position, records.value_size, wanted.values), b"}\n",
    )  # fmt: skip
    return lines_of(lines)


def _headers(records: Records) -> Column:
    """The header list of each record, without its brackets."""
    counts = records.headers_count
    if not (counts > 0).any():
        return b""
    data = records.data
    keys, key_sizes, values, value_sizes = header_fields(data, records.headers_position, counts)
    key = field("key", data, keys, key_sizes, "utf8")
    value = field("value", data, values, value_sizes, "utf8")
    edges = np.concatenate(([0], np.cumsum(counts)))
    is_behind = np.ones(len(keys), np.bool_)
    is_behind[edges[:-1][counts > 0]] = False
    each = joined(either(is_behind, b",{", b"{"), *key, b",", *value, b"}")
    return texts_at(ends_of(each)[edges], each.buffers()[2])


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
    if null.any():
        columns = [f'"{name}":'.encode(), either(null, b"null", b'"'), texts, either(null, b"", b'"')]
    if bad is not None:
        no_text = _one_by_one(name, data, positions[bad], ends[bad], null[bad], form)
        column = pc.replace_with_mask(joined(*columns), pa.array(bad), pa.array(no_text, pa.binary()))
        return [column]
    return columns


def _one_by_one(
    name: str, data: Octets, starts: Ints, ends: Ints, null: NDArray[np.bool_], form: str
) -> list[bytes]:
    held = memoryview(data.data)
    rows = zip(starts.tolist(), ends.tolist(), null.tolist(), strict=True)
    return [
        encode(named(name, None if is_null else bytes(held[start:end]), form))[1:-1]
        for start, end, is_null in rows
    ]
