"""Batches and records of a log as JSON lines, made of columns and not of rows.

The lines are those of the rows of `kctl.dump.batches`. Runs of sound batches become lines as Arrow strings
joined column by column; a run with anything out of the ordinary in it (damage, old magics, records that
cannot be read, a filter that cuts it) goes through the rows.
"""

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from formats.log_bytes import LogBytes
from formats.record_batch import CONTROL, DELETE_HORIZON, TIMESTAMP_TYPE, TRANSACTIONAL, Record, sequence_at
from formats.records import walk
from kctl.dump.batches import Left, Row, codec, item_rows, time_type
from kctl.dump.decoded import decoded
from kctl.dump.seeking import first_position
from kctl.dump.values import header_rows, named
from kctl.dump.wanted import Wanted
from kctl.scan.options import Chunk, ScanOptions
from kctl.scan.records import Records
from kctl.scan.segment import scan_segment
from kctl.scan.source import LocalFile

encode = msgspec.json.Encoder().encode
Mask = NDArray[np.bool_]
LINES_AT_ONCE = 32 << 10


def log_lines(source: LocalFile, path: str, shown: str, wanted: Wanted) -> Iterator[bytes | Row]:
    """The lines of a log in pieces, and rows where there are none; everything that is wanted, in order."""
    log = LogBytes(source)
    last_offset = -1
    options = ScanOptions(
        keep_records=True,
        start=first_position(path, log, wanted),
        max_decompressed_bytes=wanted.max_decompressed_bytes,
    )
    for chunk in scan_segment(source, options):
        if chunk.position == chunk.end:
            yield from (finding.row() | {"file": shown} for finding in chunk.findings)
        elif chunk.records is not None and is_plain(chunk, chunk.records, wanted):
            yield from chunk_lines(chunk, chunk.records, shown, wanted)
        else:
            yield from _slowly(log, chunk, source, shown, wanted, last_offset)
        if len(chunk.headers):
            last_offset = int(chunk.headers.last_offset[-1])
            if (
                wanted.to_offset is not None
                and chunk.headers.crc_valid[-1]
                and last_offset >= wanted.to_offset - 1
            ):
                return


def _slowly(
    log: LogBytes, chunk: Chunk, source: LocalFile, shown: str, wanted: Wanted, last_offset: int
) -> Iterator[Row]:
    for item in walk(log, position=chunk.position, last_offset=last_offset):
        if item.position >= chunk.end:
            return
        yield from item_rows(item, source, shown, wanted, Left(None))


def is_plain(chunk: Chunk, records: Records, wanted: Wanted) -> bool:
    """Whether all records of all batches are there, and all of them are wanted."""
    headers = chunk.headers
    if chunk.damage or not len(records) or (headers.magic < 2).any() or not headers.crc_valid.all():
        return False
    if int(headers.records_count.sum(dtype=np.int64)) != len(records) or wanted.key is not None:
        return False
    if not wanted.is_filtered:
        return True
    return all(
        wanted.offset_is_in(int(offset)) and wanted.time_is_in(int(timestamp))
        for offset, timestamp in (
            (records.offset.min(), records.timestamp.min()),
            (records.offset.max(), records.timestamp.max()),
        )
    ) and bool((headers.records_count > 0).all())


# --- batches --------------------------------------------------------------------------------------------------

BATCH_COLUMNS = (
    "position",
    "size_in_bytes",
    "base_offset",
    "last_offset",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "records_count",
    "partition_leader_epoch",
)


def batch_lines(chunk: Chunk, file: str) -> list[str]:
    """The line of each batch of the chunk."""
    columns = (getattr(chunk.headers, name).tolist() for name in BATCH_COLUMNS)
    lines = []
    for (
        at,
        size,
        base,
        last,
        magic,
        crc,
        bits,
        delta,
        first,
        latest,
        pid,
        epoch,
        sequence,
        count,
        leader,
    ) in zip(*columns, strict=True):
        horizon = first if bits & DELETE_HORIZON else "null"
        lines.append(
            f'{{"kind":"batch","file":{file},"position":{at},"size_in_bytes":{size},"base_offset":{base},'
            f'"last_offset":{last},"magic":{magic},"crc":{crc},"crc_valid":true,"codec":"{codec(bits & 7)}",'
            f'"attributes":{bits},"timestamp_type":"{time_type(bool(bits & TIMESTAMP_TYPE))}",'
            f'"max_timestamp":{latest},"records_count":{count},"batch_length":{size - 12},'
            f'"partition_leader_epoch":{leader},"last_offset_delta":{delta},"base_timestamp":{first},'
            f'"delete_horizon_ms":{horizon},"producer_id":{pid},"producer_epoch":{epoch},'
            f'"base_sequence":{sequence},"last_sequence":{sequence_at(sequence, delta)},'
            f'"is_transactional":{"true" if bits & TRANSACTIONAL else "false"},'
            f'"is_control":{"true" if bits & CONTROL else "false"}}}\n'
        )
    return lines


def chunk_lines(chunk: Chunk, records: Records, shown: str, wanted: Wanted) -> Iterator[bytes]:
    """The lines of a chunk's batches, each followed by those of its records."""
    file = encode(shown.encode("utf-8", "backslashreplace").decode()).decode()
    batches = batch_lines(chunk, file)
    # Two beginnings of a record's line for each batch: for its first record with the batch's own line before it.
    starts: list[str] = []
    before = ""
    for line, position, count in zip(
        batches, chunk.headers.position.tolist(), chunk.headers.records_count.tolist(), strict=True
    ):
        start = f'{{"kind":"record","file":{file},"position":{position},"offset":'
        starts += (before + line + start, start)
        before = "" if count else before + line
    is_first = np.concatenate(([True], records.batch[1:] != records.batch[:-1]))
    beginning = pa.array(starts, pa.binary())
    marks = marked(records)
    for low in range(0, len(records), LINES_AT_ONCE):
        rows = slice(low, low + LINES_AT_ONCE)
        starts_of = beginning.take(pa.array(2 * records.batch[rows] + ~is_first[rows]))
        yield _joined(records[rows], starts_of, marks, chunk, wanted)
    yield before.encode()


def _joined(
    records: Records, starts: pa.Array, marks: NDArray[np.int64], chunk: Chunk, wanted: Wanted
) -> bytes:
    numbers = (
        pa.array(c).cast(pa.string()).cast(pa.binary())
        for c in (records.offset, records.timestamp, records.sequence)
    )
    offset, timestamp, sequence = numbers
    columns = [
        starts,
        offset,
        b',"timestamp":',
        timestamp,
        b',"headers":',
        _headers(records),
        b',"sequence":',
        sequence,
        b',"decoded":',
        _decoded(records, chunk, wanted),
        b",",
        _field("key", records.data, records.key_position, records.key_size, marks, wanted.keys),
        b",",
        _field("value", records.data, records.value_position, records.value_size, marks, wanted.values),
        b"}\n",
    ]
    joined = pc.binary_join_element_wise(
        *(pa.scalar(c, pa.binary()) if isinstance(c, bytes) else c for c in columns), b""
    )
    ends = np.frombuffer(joined.buffers()[1], np.int32)
    return memoryview(joined.buffers()[2])[ends[0] : ends[len(records)]].tobytes()


def _headers(records: Records) -> pa.Array | bytes:
    some = records.headers_count > 0
    if not some.any():
        return b"[]"
    texts = [encode(header_rows(headers)) if headers else b"[]" for headers in records.headers()]
    return pa.array(texts, pa.binary())


def _decoded(records: Records, chunk: Chunk, wanted: Wanted) -> pa.Array | bytes:
    control = (chunk.headers.attributes[records.batch] & CONTROL) != 0
    if not control.any():
        return b"null"
    texts = [b"null"] * len(records)
    chosen = records[control]
    for row, key, value in zip(np.flatnonzero(control).tolist(), chosen.keys(), chosen.values(), strict=True):
        texts[row] = encode(decoded(wanted.topic, True, Record(0, 0, key, value)))
    return pa.array(texts, pa.binary())


# --- keys and values --------------------------------------------------------------------------------------------


def marked(records: Records) -> NDArray[np.int64]:
    """Places of bytes that do not stand for themselves in a JSON string: quotes, backslashes, controls, not ASCII."""
    low, high = int(records.position[0]), int(records.position[-1] + records.size_in_bytes[-1])
    data = records.data[low:high]
    return np.flatnonzero((data < 0x20) | (data >= 0x7F) | (data == 0x22) | (data == 0x5C)) + low


def _field(
    name: str,
    data: NDArray[np.uint8],
    positions: NDArray[np.int64],
    sizes: NDArray[np.int64],
    marks: NDArray[np.int64],
    form: str,
) -> pa.Array:
    """`"NAME":...` of each record."""
    ends = positions + np.maximum(sizes, 0)
    plain: Mask = (sizes >= 0) & (np.searchsorted(marks, positions) == np.searchsorted(marks, ends))
    if form != "utf8":
        plain[:] = False
    texts = None
    if not plain.all():
        view = memoryview(data.data)
        odd = ~plain
        texts = [
            encode(named(name, bytes(view[start : start + size]) if size >= 0 else None, form))[1:-1]
            for start, size in zip(positions[odd].tolist(), sizes[odd].tolist(), strict=True)
        ]
        if len(texts) == len(plain):
            return pa.array(texts, pa.binary())
    quoted = pc.binary_join_element_wise(
        pa.scalar(f'"{name}":"'.encode()), _slices(data, positions, ends), pa.scalar(b'"'), b""
    )
    return (
        quoted
        if texts is None
        else pc.replace_with_mask(quoted, pa.array(~plain), pa.array(texts, pa.binary()))
    )


def _slices(data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> pa.Array:
    """data[start:end] of each row: every other item of an array whose offsets are starts and ends in turn."""
    first = int(starts.min(initial=0))
    offsets = np.empty(2 * len(starts), np.int32)
    offsets[0::2], offsets[1::2] = starts - first, ends - first
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[first:])]
    everything = pa.Array.from_buffers(pa.binary(), 2 * len(starts) - 1, buffers)
    return everything.take(pa.array(np.arange(0, 2 * len(starts) - 1, 2)))
