"""What was made to exhaust memory does not: smaller versions of `benchmarks.hostile`, and the limits themselves."""

from __future__ import annotations

import json
import os
import random
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from benchmarks import hostile
from formats.compression import Codec, TooLarge
from formats.log import record_batch, records
from formats.log.record_batch import Record, read_header, read_records, read_records_in_pieces, write_records
from kctl.errors import UnreadableFile
from kctl.evidence import znodes
from kctl.zookeeper.snapshot import read_snapshot
from tests.conftest import kctl, rows

CASES = [
    "large-batches",
    "many-claimed",
    "highest-offsets",
    "long-line",
    "deep-json",
    "deep-znodes",
    "sparse",
    "dense-indexes",
    "export-bomb",
]
BOMBS = ["gzip-bomb", "snappy-bomb", "lz4-bomb", "zstd-bomb"]


def peak(line: hostile.Line) -> int:
    """The MiB that a line of the benchmark tells of."""
    return int(line.figure.split(" MiB")[0].replace(",", ""))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *BOMBS,
        *CASES,
        "empty-records",
        "million-files",
        "many-findings",
        "many-batches",
        "nul-logs",
        "huge-entry",
        "dense-entry",
    ],
)
def test_no_evidence_takes_more_memory_than_promised(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smaller = {
        "SIZE": 600 << 20,
        "LINE": 50_000_000,
        "RECORDS": 500_000,
        "FILES": 20_000,
        "FINDINGS": 200_000,
        "BATCHES": 1_000_000,  # as many of two copies as are compared
    }
    for constant, value in smaller.items():
        monkeypatch.setattr(hostile, constant, value)
    lines = list(hostile.measured(name, tmp_path))
    assert lines and all(line.reached for line in lines), lines
    # An audit loads what writes and reads tables, which takes half of what is promised before it has begun.
    assert all(peak(line) < (260 if "audit run" in line.what else 200) for line in lines), lines


# --- batches ------------------------------------------------------------------------------------------


def _made(count: int, codec: int = Codec.ZSTD, value: bytes = b"v" * 50) -> bytes:
    made = [Record(n, 1000 + n, b"%d" % n, value, (), -1) for n in range(count)]
    return record_batch.write_batch(made, codec=codec, base_offset=0, max_timestamp=999 + count)


def test_records_are_the_same_in_pieces_of_any_size() -> None:
    made = [Record(n, 1000 + n, b"k" * n, None, ((b"h", b"v"),), -1) for n in range(200)]
    body = write_records(made, 0, 1000)
    header = read_header(record_batch.write_batch(made, base_offset=0, base_timestamp=1000))
    for size in (1, 7, 1000, len(body)):
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        assert list(read_records_in_pieces(header, parts)) == list(read_records(header, body))
    with pytest.raises(record_batch.FormatError, match="the batch ends after 199 records"):
        list(read_records_in_pieces(header, [body[:-3]]))
    with pytest.raises(record_batch.FormatError, match="bytes follow the last of 200"):
        list(read_records_in_pieces(header, [body + b"\0"]))


@pytest.mark.parametrize("most", [1, 100, 2999, 10**6])
def test_whole_records_are_found_whatever_their_sizes_and_wherever_the_bytes_end(most: int) -> None:
    rng = random.Random(3)
    sizes = [
        size
        for _ in range(60)
        for size in [rng.choice((0, 1, 6, 7, 63, 64, 300))] * rng.choice((1, 2, 5, 200))
    ]
    data = b"".join(hostile._varint(size) + bytes(size) for size in sizes)
    edges = [0, *accumulate(len(hostile._varint(size)) + size for size in sizes)]
    for end in (0, 1, len(data), *(rng.randrange(len(data)) for _ in range(200))):
        starts, stop, needed = record_batch.whole_records(data[:end], most)
        expected = min(most, bisect_right(edges, end) - 1)
        assert (starts, stop) == (edges[:expected], edges[expected])
        is_cut = expected < most and stop < end
        assert needed in (0, edges[expected + 1] - stop) if is_cut else needed == 0


def test_a_record_larger_than_memory_may_hold_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batch, "LARGEST_RECORD", 1000)
    with pytest.raises(TooLarge, match="more than 1000 bytes"):
        record_batch.whole_records(hostile._varint(1001), 1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_what_is_too_large_to_be_read_at_once_is_read_in_pieces(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _made(2000, codec)
    (entry,) = records.walk(data)
    assert isinstance(entry, records.LogEntry)
    whole = list(records.iterate_records(entry))
    monkeypatch.setattr("formats.compression.AT_ONCE", 1000)
    assert list(records.iterate_records(entry)) == whole and len(whole) == 2000
    with pytest.raises(TooLarge):
        list(records.iterate_records(entry, limit=50_000))


def test_a_finding_says_how_far_a_batch_was_examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = hostile.partition(tmp_path, _made(100_000, value=b"v" * 500)) / "data" / "orders-0" / hostile.LOG
    ran = rows("segment", "verify", log, "--max-decompressed-bytes", "40000000")
    (message,) = [row["message"] for row in ran.of("finding") if row["code"] == "batch-not-examined"]
    examined = int(message.split(": ")[1].split()[0])
    assert 70_000 < examined < 80_000, message
    monkeypatch.setattr("formats.compression.AT_ONCE", 1000)
    ran = rows("segment", "dump", "--records", log, "--max-decompressed-bytes", "1000000")
    (message,) = [row["message"] for row in ran.of("finding") if row["code"] == "batch-not-examined"]
    assert f": {len(ran.of('record'))} of its records" in message and ran.of("record")


# --- exports ------------------------------------------------------------------------------------------


def test_an_export_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = tmp_path / "znodes.jsonl"
    line = json.dumps({"path": "/brokers/ids", "more": {"deep": [[]]}}).encode() + b"\n"
    export.write_bytes(line * 20)
    assert list(znodes.read_znodes(export)) == ["/brokers/ids"]
    monkeypatch.setattr(znodes, "LONGEST_LINE", len(line) - 1)
    with pytest.raises(UnreadableFile, match=f"line 1 has more than {len(line) - 1} bytes"):
        znodes.read_znodes(export)
    monkeypatch.setattr(znodes, "LONGEST_LINE", len(line))
    monkeypatch.setattr(znodes, "LARGEST_EXPORT", 3000)
    for text in (line * 20, b"\n" * 20):
        export.write_bytes(text)
        with pytest.raises(UnreadableFile, match="up to line 1"):
            znodes.read_znodes(export)


def test_parents_that_no_export_names_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = tmp_path / "znodes.jsonl"
    export.write_text(json.dumps({"path": "/a" * 100}))
    assert read_snapshot(export).children("/a" * 99) == ["a"]
    monkeypatch.setattr("kctl.zookeeper.snapshot.MOST_MISSING", 1000)
    with pytest.raises(UnreadableFile, match="too deep"):
        read_snapshot(export)


# --- other --------------------------------------------------------------------------------------------


def test_a_scenario_that_is_deep_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.toml").write_text("x = " + "[" * 100_000)
    ran = kctl("replica", "simulate", tmp_path / "deep.toml")
    assert ran.status in (2, 3), ran.err


def test_sql_spills_into_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb: Any = pytest.importorskip("duckdb")
    from kctl.audit.sql import query

    class NoTables:
        def names(self) -> list[str]:
            return []

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asked = "select current_setting('memory_limit') as memory, current_setting('temp_directory') as folder"
    found = query(NoTables(), asked)  # type: ignore[arg-type]
    row = next(found)
    assert row["memory"] == "128.0 MiB" and Path(row["folder"]).parent == tmp_path
    assert os.listdir(tmp_path)
    found.close()
    assert not os.listdir(tmp_path)
    assert duckdb


def test_a_plan_or_a_scenario_of_empty_lists_is_not_taken_apart(tmp_path: Path) -> None:
    plan, scenario = tmp_path / "plan.json", tmp_path / "scenario.toml"
    plan.write_text('{"version":1,"partitions":[' + "[]," * 200_000 + "[]]}")
    scenario.write_text("steps=[" + "[]," * 400_000 + "]")
    ran = kctl("reassign", "verify", plan, "--snapshot", tmp_path)
    assert ran.status == 3 and "mostly empty lists and objects" in ran.err
    ran = kctl("replica", "simulate", scenario)
    assert ran.status == 3 and "at most 1,048,576" in ran.err


def test_batches_that_are_too_large_at_once_are_read_in_pieces_or_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, packed = (next(records.walk(_made(50, codec))) for codec in (Codec.NONE, Codec.ZSTD))
    assert isinstance(plain, records.LogEntry) and isinstance(packed, records.LogEntry)
    expected = records.records_of(plain)
    monkeypatch.setattr(records, "LARGEST_IN_MEMORY", 100)
    assert records.records_of(plain) == records.records_of(packed) == expected
    monkeypatch.setattr(records, "LARGEST_COMPRESSED", 100)
    with pytest.raises(TooLarge):
        records.records_of(packed)
