"""Scans as Arrow and Parquet: the rows are those of the decoder of single batches."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.in_memory import InMemory
from formats.binary.crc import crc32c
from formats.log import records as walker
from formats.log.columns.headers import concatenated
from formats.log.record_batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    Record,
    write_batch,
)
from formats.values import replace
from kctl.findings import Place
from kctl.scan.options import Level, ScanOptions
from kctl.scan.parquet import ParquetPart
from kctl.scan.segment import scan_segment
from kctl.scan.tables import (
    PACKED_BATCHES,
    SCHEMAS,
    batches_table,
    findings_table,
    packed_batches,
    records_table,
    schema_of,
    segment_row,
)
from tests.kctl.scan.test_segment import log

PLACE = Place(topic="orders", partition=3, broker_id=1, file="orders-3/0.log")


@pytest.mark.parametrize("seed", range(8))
def test_tables_have_every_batch_and_record(seed: int) -> None:
    data = log(seed)
    entries = [item for item in walker.walk(data) if isinstance(item, walker.LogEntry)]
    expected = [(e, one) for e in entries for one in walker.records_of(e)]
    scan = scan_segment(InMemory(data), ScanOptions(keep_records=True))
    batches, found = [], []
    for chunk in scan:
        table = batches_table(chunk, PLACE)
        assert table.schema == SCHEMAS["batches"]
        batches += table.to_pylist()
        table = records_table(chunk, PLACE)
        assert table.schema == SCHEMAS["records"]
        table.validate(full=True)
        found += table.to_pylist()
    assert [row["position"] for row in batches] == [e.position for e in entries]
    assert [row["last_offset"] for row in batches] == [e.last_offset for e in entries]
    assert [row["crc"] for row in batches] == [e.header.crc for e in entries]
    for row, (entry, one) in zip(found, expected, strict=True):
        assert (row["topic"], row["partition"], row["broker_id"]) == ("orders", 3, 1)
        assert (row["offset"], row["timestamp"]) == (one.offset, one.timestamp)
        assert (row["key"], row["value"]) == (one.key, one.value)
        assert [(h["key"].encode(), h["value"]) for h in row["headers"]] == list(one.headers)
        assert row["sequence"] == (one.sequence if entry.magic == 2 else None)
    row = segment_row(PLACE, len(data), scan.totals)
    assert list(row) == SCHEMAS["segments"].names or set(row) == set(SCHEMAS["segments"].names)
    assert row["records"] == len(expected)


@pytest.mark.parametrize("seed", range(8))
def test_batches_of_many_files_have_the_rows_of_each(seed: int, tmp_path: Path) -> None:
    files = [
        PLACE,
        replace(PLACE, file="orders-3/1.log"),
        Place(evidence="a", moment="later", partition=0, file="x"),
    ]
    chunks = [*scan_segment(InMemory(log(seed))), *scan_segment(InMemory(log(seed + 1)))]
    given = [(chunk, place) for chunk in chunks for place in files]
    each = [row for chunk, place in given for row in batches_table(chunk, place).to_pylist()]
    headers = concatenated([chunk.headers for chunk, _ in given])
    packed = packed_batches(headers, [(place, len(chunk.headers)) for chunk, place in given])
    packed.validate(full=True)
    assert packed.schema == PACKED_BATCHES and packed.to_pylist() == each
    with ParquetPart(tmp_path / "batches.parquet", PACKED_BATCHES) as part:
        part.write(packed)
        part.write(packed_batches(chunks[0].headers, [(files[2], len(chunks[0].headers))]))
    read = pq.read_table(tmp_path / "batches.parquet")
    assert read.schema == SCHEMAS["batches"]
    assert read.to_pylist() == each + batches_table(chunks[0], files[2]).to_pylist()


FLAGS = [0, TIMESTAMP_TYPE, TRANSACTIONAL, DELETE_HORIZON, TRANSACTIONAL | CONTROL, 4, 6, TIMESTAMP_TYPE | 3]


@pytest.mark.parametrize("flags", FLAGS)
def test_batches_of_equal_attributes_have_the_columns_of_others(flags: int) -> None:
    made = []
    for at, attributes in enumerate([*FLAGS, flags, flags, flags]):
        batch = bytearray(write_batch([Record(at, 1, None, b"v")], attributes=attributes & ~CODEC_MASK))
        batch[22] |= attributes & CODEC_MASK  # names a codec that its bytes are not of
        batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
        made.append(bytes(batch))
    (chunk, *_) = scan_segment(InMemory(b"".join(made)), ScanOptions(level=Level.CRC))
    whole = batches_table(chunk, PLACE)
    alike = replace(chunk, headers=chunk.headers[len(FLAGS) :])
    assert batches_table(alike, PLACE).to_pylist() == whole.to_pylist()[len(FLAGS) :]
    assert whole.column("codec").to_pylist()[5:7] == ["zstd", "unknown(6)"]


def test_some_columns() -> None:
    data = log(3)
    columns = ["offset", "topic", "value"]
    for chunk in scan_segment(InMemory(data), ScanOptions(keep_records=True)):
        table = records_table(chunk, PLACE, columns)
        assert table.schema == schema_of("records", columns)
        assert table.schema.names == columns


def test_header_names_that_are_not_utf_8() -> None:
    data = write_batch([Record(0, 1, None, b"v", ((b"\xff", None), (b"ok", b"\xff")))])
    (chunk, *_) = scan_segment(InMemory(data), ScanOptions(keep_records=True))
    rows = records_table(chunk, PLACE).to_pylist()
    assert rows[0]["headers"] == [{"key": "\ufffd", "value": None}, {"key": "ok", "value": b"\xff"}]


def test_findings_are_rows() -> None:
    data = bytearray(log(1))
    data[-1] ^= 1
    found = [one for chunk in scan_segment(InMemory(data)) for one in chunk.findings]
    table = findings_table(found)
    assert table.schema == SCHEMAS["findings"]
    assert table.column("severity").to_pylist() == ["error"]


def test_a_part_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64())])
    with ParquetPart(tmp_path / "numbers" / "a.parquet", schema) as part:
        for number in range(5):
            part.write(pa.RecordBatch.from_pydict({"n": [number]}, schema=schema))
        assert list((tmp_path / "numbers").glob("*.parquet")) == []
    assert pq.read_table(tmp_path / "numbers").column("n").to_pylist() == [0, 1, 2, 3, 4]
    with pytest.raises(ZeroDivisionError), ParquetPart(tmp_path / "numbers" / "b.parquet", schema):
        raise ZeroDivisionError
    assert [path.name for path in (tmp_path / "numbers").iterdir()] == ["a.parquet"]
