"""Scans as Arrow: schemas of the tables, and chunks as record batches of them.

Every engine writes these and nothing else. Integers are int64, timestamps int64 milliseconds (Spark refuses
Arrow timestamps in milliseconds), and where a row is from stands in it: topic, partition, broker, file.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.compression import Codec
from formats.log.columns.headers import Headers
from formats.log.columns.record_headers import header_fields
from formats.log.record_batch import CODEC_MASK, CONTROL, DELETE_HORIZON, TIMESTAMP_TYPE, TRANSACTIONAL
from kctl.findings import Finding, Place
from kctl.rows import RowType
from kctl.rows.audit import BATCH, SEGMENT
from kctl.rows.common import FINDING
from kctl.scan.options import Chunk, ScanTotals
from kctl.scan.records import Records

INT, TEXT, TRUTH, BYTES = pa.int64(), pa.string(), pa.bool_(), pa.binary()
PLACE = [
    ("evidence", TEXT),
    ("moment", TEXT),
    ("broker_id", INT),
    ("topic", TEXT),
    ("partition", INT),
    ("file", TEXT),
]
ARROW = {"string": TEXT, "integer": INT, "number": pa.float64(), "boolean": TRUTH}


def arrow_schema(rows: RowType) -> pa.Schema:
    """The Arrow schema of a row type; lists and objects are text."""
    return pa.schema(
        [
            (name, ARROW.get(field.types[0] if field.types else "", TEXT))
            for name, field in rows.fields.items()
        ]
    )


# The columns of `findings`, in the order that readers of it know.
FINDING_COLUMNS = (
    "code", "severity", "message", *dict(PLACE), "position", "size_in_bytes", "base_offset", "last_offset",
    "remote_log_segment_id",
)  # fmt: skip
HEADERS = pa.list_(pa.struct([("key", TEXT), ("value", BYTES)]))
SCHEMAS: dict[str, pa.Schema] = {
    "segments": arrow_schema(SEGMENT),
    "batches": arrow_schema(BATCH),
    "records": pa.schema(
        [
            *PLACE,
            ("position", INT),  # of the batch
            ("offset", INT),
            ("timestamp", INT),
            ("timestamp_type", TEXT),
            ("key", BYTES),
            ("value", BYTES),
            ("headers", HEADERS),
            ("sequence", INT),
            ("partition_leader_epoch", INT),
            ("producer_id", INT),
            ("producer_epoch", INT),
            ("is_transactional", TRUTH),
            ("is_control", TRUTH),
            ("key_size", INT),  # bytes; null where there is no key
            ("value_size", INT),
        ]
    ),
    "findings": pa.schema([arrow_schema(FINDING).field(name) for name in FINDING_COLUMNS]),
}
PACKED = {TEXT: pa.dictionary(pa.int32(), TEXT)}
PACKED_BATCHES = pa.schema([(field.name, PACKED.get(field.type, field.type)) for field in SCHEMAS["batches"]])
"""The columns of `batches` with texts as numbers of few, as an audit gathers and writes them; a file has texts again."""


def storable(text: str) -> str:
    """The text as tables can hold it: bytes of names that are no UTF-8 as \\udcNN, as in JSON output."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def placed(place: Place) -> dict[str, object]:
    """The columns of a place, as tables can hold them."""
    values = ((name, getattr(place, name)) for name, _ in PLACE)
    return {name: storable(value) if isinstance(value, str) else value for name, value in values}


def schema_of(table: str, columns: Sequence[str] | None = None) -> pa.Schema:
    """The schema of a table, or of some of its columns in the order given."""
    whole = SCHEMAS[table]
    return whole if columns is None else pa.schema([whole.field(name) for name in columns])


def batches_table(chunk: Chunk, place: Place, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """The batches of a chunk as rows of `batches`."""
    return _record_batch("batches", columns, place, len(chunk.headers), _BatchColumns(chunk.headers).column)


def packed_batches(headers: Headers, places: Sequence[tuple[Place, int]]) -> pa.RecordBatch:
    """Batches of files one after another as rows of `batches`, their texts as numbers of few; each place with its rows."""
    where = [placed(place) for place, _ in places]
    place_of_row = np.repeat(np.arange(len(places)), [rows for _, rows in places])
    columns = _BatchColumns(headers, packs=True)
    arrays = [
        _spread([values[name] for values in where], type_, place_of_row)
        if name in where[0]
        else columns.column(name)
        for name, type_ in _columns_of("batches", None)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED_BATCHES)


def _spread(values: Sequence[Any], type_: pa.DataType, place_of_row: Ints) -> pa.Array:
    """A column of one value for each place; texts as numbers."""
    if len({*values}) == 1:
        return constant(values[0], PACKED.get(type_, type_), len(place_of_row))
    is_null = np.array([value is None for value in values])
    mask = is_null[place_of_row] if is_null.any() else None
    if type_ != TEXT:
        numbers = np.array([0 if value is None else value for value in values], np.int64)
        return pa.array(numbers[place_of_row], mask=mask)
    texts = list(dict.fromkeys(value for value in values if value is not None))
    number_of = {text: number for number, text in enumerate(texts)}
    return _numbered(texts, np.array([number_of.get(value, 0) for value in values])[place_of_row], mask)


def _numbered(texts: Sequence[str], numbers: NDArray[Any], mask: Mask | None = None) -> pa.Array:
    """A column of few texts, as the number of one in each row."""
    return pa.DictionaryArray.from_arrays(
        pa.array(numbers.astype(np.int32), mask=mask), pa.array(texts, TEXT)
    )


def records_table(chunk: Chunk, place: Place, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """The records of a chunk as rows of `records`; what is in it is copied."""
    records = chunk.records
    if records is None:
        return pa.RecordBatch.from_pylist([], schema_of("records", columns))
    record_columns = _RecordColumns(records, chunk.headers)
    return _record_batch("records", columns, place, len(records), record_columns.column)


def findings_table(findings: Iterable[Finding]) -> pa.RecordBatch:
    """Findings as rows of `findings`."""
    rows = [
        {**finding.row(), **placed(finding.place), "severity": str(finding.severity)} for finding in findings
    ]
    return pa.RecordBatch.from_pylist(
        [{**row, "message": storable(str(row["message"]))} for row in rows], SCHEMAS["findings"]
    )


def segment_row(place: Place, size_in_bytes: int, totals: ScanTotals) -> dict[str, object]:
    """The row of `segments` for a segment that was scanned to its end."""
    latest = totals.max_timestamp if totals.max_timestamp >= 0 else None
    row = SEGMENT.of(totals, **placed(place), size_in_bytes=size_in_bytes, max_timestamp=latest)
    del row["kind"]
    return row


def _record_batch(
    table: str, columns: Sequence[str] | None, place: Place, rows: int, column: Callable[[str], pa.Array]
) -> pa.RecordBatch:
    where = placed(place)
    arrays = [
        constant(where[name], type_, rows) if name in where else column(name)
        for name, type_ in _columns_of(table, None if columns is None else tuple(columns))
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(table, columns))


@cache
def _columns_of(table: str, columns: tuple[str, ...] | None) -> list[tuple[str, pa.DataType]]:
    """Names and types of the columns; a schema makes an object for each whenever it is asked."""
    return [(field.name, field.type) for field in schema_of(table, columns)]


def constant(value: object, type_: pa.DataType, rows: int) -> pa.Array:
    """A column of one value; that of few rows is a part of one that is made once for many chunks."""
    if rows > MOST_CONSTANT:
        return _repeated(value, type_, rows)
    return _constant(value, type_, 1 << rows.bit_length()).slice(0, rows)


MOST_CONSTANT = 1 << 12  # rows


@lru_cache(256)
def _constant(value: object, type_: pa.DataType, rows: int) -> pa.Array:
    return _repeated(value, type_, rows)


def _repeated(value: object, type_: pa.DataType, rows: int) -> pa.Array:
    if type_ == PACKED[TEXT]:
        texts = pa.array([] if value is None else [value], TEXT)
        number = pa.scalar(None if value is None else 0, pa.int32())
        return pa.DictionaryArray.from_arrays(pa.repeat(number, rows), texts)
    return pa.repeat(pa.scalar(value, type_), rows)


CODECS = [*(codec.name.lower() for codec in Codec), *(f"unknown({n})" for n in (5, 6, 7))]
TIMESTAMP_TYPES = ["CreateTime", "LogAppendTime"]
SINCE_MAGIC_2 = frozenset(
    (
        "last_offset_delta",
        "partition_leader_epoch",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "is_transactional",
        "is_control",
    )
)
FLAGS = {"is_transactional": TRANSACTIONAL, "is_control": CONTROL}


class _BatchColumns:
    """Columns of batches as Arrow arrays; `packs`: texts as numbers."""

    def __init__(self, headers: Headers, *, packs: bool = False) -> None:
        self.headers, self.packs = headers, packs
        self.text = PACKED[TEXT] if packs else TEXT
        self.is_old = headers.magic < 2
        self.some_are_old = bool(self.is_old.any())
        attributes = headers.attributes
        self._flags: int | None = None
        """The attributes of all batches, where they are of magic 2 and alike."""
        if len(headers) and not self.some_are_old and (attributes == attributes[0]).all():
            self._flags = int(attributes[0])

    def _of_flags(self, name: str, flags: int) -> pa.Array | None:
        """The column of what the attributes say; None for another, and for one that they do not say."""
        rows = len(self.headers)
        if name == "codec":
            return constant(CODECS[flags & CODEC_MASK], self.text, rows)
        if name == "timestamp_type":
            return constant(TIMESTAMP_TYPES[bool(flags & TIMESTAMP_TYPE)], self.text, rows)
        if name == "delete_horizon_ms" and not flags & DELETE_HORIZON:
            return constant(None, INT, rows)
        return constant(bool(flags & FLAGS[name]), TRUTH, rows) if name in FLAGS else None

    def column(self, name: str) -> pa.Array:
        headers = self.headers
        if self._flags is not None and (column := self._of_flags(name, self._flags)) is not None:
            return column
        mask = self.is_old if name in SINCE_MAGIC_2 and self.some_are_old else None
        if name == "codec":
            return self._of_few(CODECS, headers.codec)
        if name == "timestamp_type":
            late = (headers.attributes & TIMESTAMP_TYPE) >> 3
            return self._of_few(TIMESTAMP_TYPES, late, headers.magic == 0)
        if name == "delete_horizon_ms":
            without = (headers.attributes & DELETE_HORIZON == 0) | self.is_old
            return pa.array(headers.base_timestamp, mask=without)
        if name == "records_count":
            unknown = self.is_old & (headers.records_count < 0) if self.some_are_old else None
            return pa.array(headers.records_count.astype(np.int64), mask=unknown)
        if name == "crc_valid":
            return pa.array(headers.crc_valid)
        if name in FLAGS:
            return pa.array((headers.attributes & FLAGS[name]) != 0, mask=mask)
        return pa.array(getattr(headers, name).astype(np.int64), mask=mask)

    def _of_few(self, texts: list[str], numbers: NDArray[Any], mask: Mask | None = None) -> pa.Array:
        if self.packs:
            return _numbered(texts, numbers, mask)
        return pa.array(texts).take(pa.array(numbers, mask=mask))


class _RecordColumns:
    """Columns of records as Arrow arrays; what belongs to the batch is taken from there."""

    def __init__(self, records: Records, headers: Headers) -> None:
        self.records = records
        self.batches = _BatchColumns(headers)
        self.headers = headers

    def column(self, name: str) -> pa.Array:
        records = self.records
        if name in ("offset", "timestamp"):
            return pa.array(getattr(records, name))
        if name in ("key_size", "value_size"):
            sizes = getattr(records, name)
            return pa.array(sizes.astype(np.int64), mask=sizes < 0)
        if name == "key":
            return binary(records, records.key_position, records.key_size)
        if name == "value":
            return binary(records, records.value_position, records.value_size)
        if name == "headers":
            return _header_lists(records)
        if name == "sequence":
            is_old = self.batches.is_old
            mask = is_old[records.batch] if is_old.any() else None
            return pa.array(records.sequence, mask=mask)
        return self.batches.column(name).take(pa.array(records.batch))


def binary(records: Records, positions: Ints, sizes: Ints) -> pa.Array:
    """Bytes at ascending places of the records' data as a binary array, copied; a size of -1 is null."""
    if not len(positions):
        return pa.array([], BYTES)
    # Every other item of an array over all the data: the items between are the bytes that are left out.
    edges = np.empty(2 * len(positions), np.int32)
    edges[0::2] = positions
    edges[1::2] = positions + np.maximum(sizes, 0)
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(records.data)]
    with_gaps = pa.Array.from_buffers(BYTES, len(edges) - 1, buffers)
    null = sizes < 0
    values = pa.array(np.arange(0, len(edges), 2), mask=null if null.any() else None)
    return with_gaps.take(values)


def _header_lists(records: Records) -> pa.Array:
    """The header lists; names that are not UTF-8 are shown with replacement characters."""
    counts = records.headers_count
    keys, key_sizes, values, value_sizes = header_fields(records.data, records.headers_position, counts)
    names: Any = binary(records, keys, key_sizes)
    try:
        names = names.cast(TEXT)
    except pa.ArrowInvalid:
        names = pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], TEXT)
    pairs = pa.StructArray.from_arrays(
        [names, binary(records, values, value_sizes)], fields=list(HEADERS.value_type)
    )
    edges = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(edges), pairs, type=HEADERS)
