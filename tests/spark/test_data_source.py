"""The data source `kafka-segments` gives what the scan gives: every row once, whatever is cut, pruned or filtered."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from formats.log_dir.file_names import parse_segment_file
from formats.values import replace
from kctl.checks.report import CheckOptions
from kctl.evidence.discover import discover
from kctl.findings import Finding
from kctl.scan.options import Level, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import opened_source
from kctl.scan.tables import SCHEMAS, batches_table, findings_table, records_table, segment_row
from kctl.spark.listing import list_segments
from kctl.verification.verify import verify

pytest.importorskip("pyspark")

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
)  # fmt: skip

from kctl.errors import KctlError
from kctl.spark.data_source import TABLES, KafkaSegments, Reader, filters_of, paths_of
from kctl.spark.planning import Filters, plan
from kctl.spark.reading import gathered, read_pieces
from tests.kctl.checks.test_table import codes_of_logs

SMALL, LARGE = "small", "large"
NOW = 1_700_000_000_000
CLOSED = "endpoint_override=127.0.0.1:9&scheme=http"
RECORDINGS = ["segments/2.4.1", "segments/0.10.1.1", "incidents/unclean-2.8"]
Row = dict[str, Any]


def scanned(where: Path, table: str) -> list[Row]:
    """The rows of a table by a plain scan of each segment from its first byte to its last; findings as `verify` has."""
    found: list[Row] = []
    listed = list_segments(str(where), [])
    if table == "findings":
        said = [
            item for item in verify(discover([where]), CheckOptions(), jobs=1) if isinstance(item, Finding)
        ]
        codes, moments = codes_of_logs(), {one.key: one.moment for one in listed}
        # What is called a moment is decided by the whole evidence there, by the folder's name here.
        said = [
            replace(one, place=replace(one.place, moment=moments[one.place.file]))
            for one in said
            if one.code in codes and one.place.file in moments
        ]
        return findings_table(said).to_pylist()
    for one in listed:
        place = one.place()
        options = ScanOptions(
            level=Level.RECORDS, keep_records=table == "records", base_offset=one.base_offset, place=place
        )  # fmt: skip
        with opened_source(where / one.key) as source:
            scan = scan_segment(source, options)
            for chunk in scan:
                if table == "batches" and len(chunk.headers):
                    found += batches_table(chunk, place).to_pylist()
                elif table == "records" and chunk.records is not None:
                    found += records_table(chunk, place).to_pylist()
            if table == "segments":
                found.append(segment_row(place, one.size_in_bytes, scan.totals))
    return found


def read(spark: Any, where: object, table: str, schema: str | None = None, **options: object) -> pa.Table:
    reader = spark.read.format("kafka-segments").option("table", table)
    for key, value in options.items():
        reader = reader.option(key, value)
    return (reader.schema(schema) if schema else reader).load(str(where))


def same(found: list[Row], expected: list[Row]) -> None:
    """Row for row, in any order."""

    def key(row: Row) -> str:
        return json.dumps(row, sort_keys=True, default=repr)

    assert sorted(map(key, found)) == sorted(map(key, expected))


def hurt(folder: Path) -> None:
    """Damage in every larger segment."""
    for log in sorted(folder.rglob("*.log")):
        data = bytearray(log.read_bytes())
        if parse_segment_file(log.name) is not None and len(data) > 2000:
            data[len(data) // 2 : len(data) // 2 + 40] = bytes(40)
            log.write_bytes(data)


def in_process(where: object, table: str, wanted: Filters | None = None, target: int = 1 << 27) -> list[Row]:
    """What executors would give, without Spark: each partition of the job on its own."""
    bounds = wanted or Filters()
    segments = list_segments(str(where), [])
    return [
        row
        for pieces in plan(segments, table, bounds, target)
        for batch in read_pieces(pieces, table, SCHEMAS[table].names, bounds, target)
        for row in batch.to_pylist()
    ]


@pytest.mark.spark
@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_the_scan_s(spark: Any, table: str, hurt_evidence: Path) -> None:
    expected = scanned(hurt_evidence, table)
    assert len(expected) > 10
    found = read(spark, hurt_evidence, table, split_bytes=60_000, least_split_bytes=1)
    assert found.rdd.getNumPartitions() > 5
    arrow = found.toArrow()
    assert arrow.schema.names == SCHEMAS[table].names
    same(arrow.to_pylist(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("target", [20_000, 1 << 27])
def test_no_cut_loses_or_doubles_a_row(hurt_evidence: Path, table: str, target: int) -> None:
    same(in_process(hurt_evidence, table, target=target), scanned(hurt_evidence, table))


CONDITIONS = [
    ("records", [GreaterThanOrEqual(("offset",), 1000), LessThan(("offset",), 1100)],
     lambda row: 1000 <= row["offset"] < 1100),
    ("records", [EqualTo(("offset",), 77), EqualTo(("topic",), SMALL)],
     lambda row: row["offset"] == 77 and row["topic"] == SMALL),
    ("records", [GreaterThan(("timestamp",), NOW + 2000), LessThanOrEqual(("timestamp",), NOW + 2500)],
     lambda row: NOW + 2000 < row["timestamp"] <= NOW + 2500),
    ("records", [In(("topic",), ("nothing", SMALL)), EqualTo(("partition",), 0), LessThan(("offset",), 50)],
     lambda row: row["topic"] == SMALL and row["offset"] < 50),
    ("batches", [LessThanOrEqual(("base_offset",), 500), GreaterThanOrEqual(("last_offset",), 400)],
     lambda row: row["base_offset"] <= 500 and row["last_offset"] >= 400),
    ("batches", [GreaterThanOrEqual(("max_timestamp",), NOW + 2000), EqualTo(("partition",), 1)],
     lambda row: False),
    ("records", [Not(EqualTo(("offset",), 3)), EqualTo(("offset", "below"), 3), EqualTo(("offset",), "3")],
     lambda row: True),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("table", "filters", "passes"), CONDITIONS)
def test_filters_lose_nothing_that_passes(corpus: Path, table: str, filters: list[Any], passes: Any) -> None:
    left = in_process(corpus, table, filters_of(filters), 60_000)
    expected = [row for row in scanned(corpus, table) if passes(row)]
    same([row for row in left if passes(row)], expected)
    if table == "records":  # bounds on records are exact
        assert len(left) <= len(expected) + 1


@pytest.mark.spark
@pytest.mark.parametrize(
    "condition",
    [
        f"topic = '{SMALL}' AND offset >= 1000 AND offset < 1100",
        f"timestamp > {NOW + 2000} AND offset < 2500",
    ],
)
def test_pushed_filters_and_pruned_columns(
    spark: Any, corpus: Path, condition: str, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = "timestamp bigint, topic string, offset bigint"
    pushed = read(spark, corpus, "records", narrow, pushdown="true", split_bytes=60_000, least_split_bytes=1)
    found = pushed.where(condition)
    found.explain("formatted")
    shown = capsys.readouterr().out
    assert (re.search(rf"PushedFilters: \[.*topic.*{SMALL}", shown) is not None) == ("topic" in condition), (
        shown
    )
    rows = pa.Table.from_pylist(
        [{n: row[n] for n in ("timestamp", "topic", "offset")} for row in scanned(corpus, "records")]
    )
    expected = rows.to_pylist()
    offsets = (1000, 1100) if "1100" in condition else (0, 2500)
    after = NOW + 2000 if "timestamp" in condition else 0
    expected = [
        row for row in expected
        if offsets[0] <= row["offset"] < offsets[1] and row["timestamp"] > after
        and (row["topic"] == SMALL or "topic" not in condition)
    ]  # fmt: skip
    assert expected
    arrow = found.toArrow()
    assert arrow.schema.names == ["timestamp", "topic", "offset"]
    same(arrow.to_pylist(), expected)


def test_filters_leave_segments_unread(corpus: Path) -> None:
    segments = list_segments(str(corpus), [])
    whole = plan(segments, "records", Filters(), 60_000)
    some = plan(segments, "records", filters_of([EqualTo(("topic",), SMALL)]), 60_000)
    assert 0 < sum(map(len, some)) < sum(map(len, whole))
    assert plan(segments, "records", filters_of([In(("topic",), ("nothing",))])) == []
    assert plan(segments, "records", filters_of([LessThan(("offset",), 0)])) == []


@pytest.mark.slow
def test_several_paths_and_patterns(corpus: Path, tmp_path: Path) -> None:
    """Copies of one log in two folders are two logs, in every table."""
    for name in ("one", "two"):
        shutil.copytree(corpus, tmp_path / name)
    for table in TABLES:
        each = [in_process(tmp_path / name, table) for name in ("one", "two")]
        for options in (
            {"paths": json.dumps([str(tmp_path / "one"), str(tmp_path / "two")])},
            {"path": str(tmp_path / "*")},
            {"paths": json.dumps([str(tmp_path / "[ot]*"), str(tmp_path / "one")])},
        ):
            source = KafkaSegments({"table": table, **options})
            reader = Reader(paths_of(source.options), table, SCHEMAS[table].names, 1 << 27)
            found = [
                row for work in reader.partitions() for part in reader.read(work) for row in part.to_pylist()
            ]
            assert found == [*each[0], *each[1]]


def test_what_cannot_be_read_is_a_finding_and_the_rest_is_there(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    shutil.copytree(corpus, folder)
    segments = list_segments(str(folder), [])
    (gone,) = folder.glob(f"{SMALL}*/*.log")
    gone.unlink()
    for table in TABLES:
        (pieces,) = plan(segments, table, Filters())
        found = [
            row
            for batch in read_pieces(pieces, table, SCHEMAS[table].names, Filters())
            for row in batch.to_pylist()
        ]
        if table == "findings":
            name = str(gone.relative_to(folder))
            assert [(row["code"], row["file"]) for row in found] == [("evidence-vanished", name)]
        else:
            assert {row["topic"] for row in found} == {LARGE}
    gone.mkdir()
    (pieces,) = plan(segments, "findings", Filters())
    unreadable = [
        r for b in read_pieces(pieces, "findings", ["code", "file"], Filters()) for r in b.to_pylist()
    ]
    assert [row["code"] for row in unreadable] == ["evidence-unreadable"]


def reader_of(where: Path, table: str, columns: str) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([StructField(name, StringType()) for name in columns.split()])
    return KafkaSegments({"path": str(where), "table": table}).reader(schema)


@pytest.mark.slow
def test_what_cannot_be_listed_is_a_finding_too(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kctl.findings import Place, evidence

    def listed(where: str, findings: list[Finding]) -> Any:
        findings.append(evidence.UNREADABLE.at(Place(file="locked"), reason="permission denied"))
        return list_segments(where, [])

    monkeypatch.setattr("kctl.spark.data_source.list_segments", listed)
    for table, expected in (("findings", ["locked"]), ("batches", [])):
        reader = reader_of(corpus, table, "file")
        rows = [r for one in reader.partitions() for b in reader.read(one) for r in b.to_pylist()]
        assert [row["file"] for row in rows if row["file"] == "locked"] == expected
    monkeypatch.setattr("kctl.spark.data_source.list_segments", lambda where, found: listed(where, found)[:0])
    reader = reader_of(corpus, "findings", "code file")
    (only,) = reader.partitions()
    assert [b.to_pylist() for b in reader.read(only)] == [[{"code": "evidence-unreadable", "file": "locked"}]]


def test_a_job_has_no_more_tasks_than_a_driver_can_hold(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, *_) = list_segments(str(corpus), [])
    many = [one._replace(size_in_bytes=1 << 30, key=f"{n}") for n in range(1000)]
    monkeypatch.setattr("kctl.spark.data_source.list_segments", lambda where, found: many)
    assert len(reader_of(corpus, "batches", "file").partitions()) == 8000
    monkeypatch.setattr("kctl.spark.planning.MOST_TASKS", 500)
    tasks = reader_of(corpus, "batches", "file").partitions()
    assert 400 <= len(tasks) <= 1000
    assert {work.target for work in tasks} == {2 << 30}


@pytest.mark.parametrize(
    ("options", "columns", "words"),
    [
        ({"table": "nothing"}, "crc bigint", "no table 'nothing'"),
        ({}, "nothing bigint", "has no column 'nothing'"),
        ({"path": "/no/such/folder"}, "crc bigint", "/no/such/folder"),
        ({"path": f"s3://nowhere/x?region=r&access_key=a&secret_key=hidden&{CLOSED}"}, "crc bigint", "s3://nowhere"),
        ({"path": ""}, "crc bigint", "no path"),
        ({"tabel": "records"}, "crc bigint", "unknown option 'tabel'; did you mean table?"),
        ({"pushdown": "yes"}, "crc bigint", "pushdown is neither true nor false: 'yes'"),
        ({"split_bytes": "64M"}, "crc bigint", "split_bytes is not a number: '64M'"),
        ({"path": "", "paths": '["/no/such/folder", "/nor/this"]'}, "crc bigint", "/no/such/folder"),
        ({"path": "/no/such/*/folder"}, "crc bigint", "/no/such/*/folder"),
    ],
)  # fmt: skip
def test_what_is_refused(corpus: Path, options: dict[str, str], columns: str, words: str) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField(columns.split()[0], LongType())])
    with pytest.raises(KctlError) as raised:
        KafkaSegments({"path": str(corpus), **options}).reader(schema).partitions()
    assert words in str(raised.value)
    assert "hidden" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.spark
def test_small_batches_go_to_spark_together(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema(
        [("n", pa.int64()), ("h", pa.list_(pa.struct([("k", pa.string()), ("v", pa.binary())])))]
    )
    rows = [[{"n": 10 * b + n, "h": [{"k": "a", "v": b"x" * n}]} for n in range(b % 4)] for b in range(9)]
    batches = [pa.RecordBatch.from_pylist(some, schema) for some in rows]
    everything = [row for some in rows for row in some]
    for most_rows, most_bytes, least, most in (
        (1, 1, 7, 9),
        (5, 1 << 20, 2, 4),
        (1000, 1 << 20, 1, 1),
        (1000, 100, 2, 5),
    ):
        monkeypatch.setattr("kctl.spark.reading.ROWS_AT_ONCE", most_rows)
        monkeypatch.setattr("kctl.spark.reading.BYTES_AT_ONCE", most_bytes)
        found = list(gathered(iter(batches)))
        assert [row for one in found for row in one.to_pylist()] == everything
        assert all(one.schema == schema for one in found) and least <= len(found) <= most
    assert list(gathered(iter(()))) == []


@pytest.mark.spark
def test_a_refusal_reaches_the_one_who_asked(spark: Any) -> None:
    with pytest.raises(Exception, match="/no/such/folder"):
        read(spark, "/no/such/folder", "batches").count()


@pytest.mark.spark
def test_load_takes_a_list_and_says_what_is_misspelt(spark: Any, corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(corpus, tmp_path / "copy")
    spark.dataSource.register(KafkaSegments)
    reading = spark.read.format("kafka-segments").option("table", "segments")
    both = reading.load([str(corpus), str(tmp_path / "copy")]).count()
    assert both == 2 * len(in_process(corpus, "segments")) > 0
    with pytest.raises(Exception, match=r"unknown option 'split_byte'.*did you mean split_bytes"):
        spark.read.format("kafka-segments").option("split_byte", "1").load(str(corpus)).count()
