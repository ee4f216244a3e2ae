"""Bytes that Redpanda or AutoMQ wrote: said to be theirs, judged neither sound nor damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from formats.binary.crc import crc32c
from tests.conftest import kctl, rows

SEGMENT = "kafka/orders/0_12/1-3-v1.log"
OBJECT = "34500000/_kafka_rZdE0DjZSrqy96PXrMUZVw/543"
FOOTER = struct.pack(">qi28xQ", 9, 24, 0x88E241B785F4CFF7)
OBJECTS = {
    "data": b"\x5a\x00" + bytes(31) + FOOTER,
    "composite": b"\x52\x00" + bytes(31) + FOOTER[:-1] + b"\xf8",
    "wal": struct.pack(">IqqqiqQ", 0xEDCBA987, 0, 0, 0, 1, 2, 3),
}


def redpanda_batch(base_offset: int, records: bytes = b"\x10" * 30) -> bytes:
    """A batch as Redpanda stores it: its own header, then records as Kafka has them."""
    fields = (0, 0, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, 1)
    crc = crc32c(struct.pack(">hiqqqhii", *fields) + records)
    header = struct.pack("<iqbI", 61 + len(records), base_offset, 1, crc) + struct.pack("<hiqqqhii", *fields)
    return struct.pack("<I", crc32c(header)) + header + records


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def redpanda(tmp_path: Path) -> Path:
    """A data directory of Redpanda with two segments."""
    written(tmp_path, SEGMENT, redpanda_batch(1) + redpanda_batch(2))
    written(tmp_path, "redpanda/kvstore/0_0/0-0-v1.log", bytes(4096))
    return tmp_path


def test_a_data_directory_of_redpanda_is_not_judged(redpanda: Path) -> None:
    ran = rows("segment", "verify", redpanda)
    assert ran.status == 3
    (finding,) = ran.of("finding")
    assert (finding["code"], finding["severity"]) == ("evidence-of-another-system", "info")
    assert finding["file"] == SEGMENT
    assert "a segment of Redpanda" in finding["message"]
    assert "2 such files" in finding["message"]
    (judgement,) = ran.of("judgement")
    assert judgement["verdict"] == "could_not_judge"
    assert "Redpanda" in judgement["reason"]


@pytest.mark.parametrize("name", ["1-3-v1.log", "orders-0/00000000000000000001.log"])
def test_a_segment_of_redpanda_under_any_name_is_known_by_its_bytes(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, redpanda_batch(1) + redpanda_batch(2))
    for given in (path, path.parent):
        ran = rows("segment", "verify", given)
        assert ran.status == 3
        assert {row["code"] for row in ran.of("finding")} == {"evidence-of-another-system"}
        assert [row["verdict"] for row in ran.of("judgement")] == ["could_not_judge"]


def test_a_damaged_segment_of_kafka_is_not_taken_for_one_of_redpanda(tmp_path: Path) -> None:
    torn = bytearray(redpanda_batch(1))
    torn[20] ^= 1
    written(tmp_path, "orders-0/00000000000000000001.log", bytes(torn))
    ran = rows("segment", "verify", tmp_path)
    assert ran.status == 5
    assert "segment-garbage" in {row["code"] for row in ran.of("finding")}


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_of_automq_is_known_by_its_bytes(tmp_path: Path, kind: str) -> None:
    ran = rows("segment", "verify", written(tmp_path, "543", OBJECTS[kind]))
    assert ran.status == 3
    (finding,) = ran.of("finding")
    assert "an object of AutoMQ" in finding["message"]


def test_a_copy_of_the_bucket_of_automq_is_not_judged(tmp_path: Path) -> None:
    written(tmp_path, OBJECT, OBJECTS["data"])
    written(
        tmp_path,
        "C4CA4238A0B923820DCC509A6F75849B/_kafka_rZdE0DjZSrqy96PXrMUZVw/1/2/wal/0-64",
        OBJECTS["wal"],
    )
    ran = rows("segment", "verify", tmp_path)
    assert ran.status == 3
    assert {row["file"] for row in ran.of("finding")} == {OBJECT}


@pytest.mark.parametrize(
    "words", [("replica", "loss"), ("audit", "run", "--out", "out"), ("state-log", "merge")]
)
def test_no_command_is_silent_about_it(
    redpanda: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    ran = kctl(*words, redpanda)
    assert ran.status == 3
    assert "Redpanda" in ran.out.decode() + ran.err


def test_a_dump_says_whose_the_file_is(redpanda: Path) -> None:
    for output in ("text", "jsonl"):
        ran = kctl("segment", "dump", redpanda / SEGMENT, "--output", output)
        assert ran.status == 3
        assert ran.out == b""
        assert "a segment of Redpanda" in ran.err
