"""Segments that retention by time keeps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from formats.log.record_batch import Record, read_header, seal, write_batch
from tests.conftest import rows

WRITTEN_MS = 1_700_000_000_000
DAY = 86_400_000
FUTURE = "record-timestamp-in-future"


def written(folder: Path, *batches: tuple[int, int, int], topic: str = "orders") -> Path:
    """A log directory whose partition has a segment a batch of (base offset, timestamp, attributes)."""
    partition = folder / f"{topic}-0"
    partition.mkdir(parents=True)
    (folder / "meta.properties").write_text("version=0\nbroker.id=1\n")
    for base, time, attributes in batches:
        data = write_batch([Record(base, time, None, b"v")])
        header = read_header(data)
        data = seal(header._replace(attributes=header.attributes | attributes), data[61:])
        log = partition / f"{base:020d}.log"
        log.write_bytes(data)
        os.utime(log, ns=(WRITTEN_MS * 1_000_000,) * 2)
    return folder


@pytest.mark.parametrize(
    ("times", "segments"),
    [
        ([WRITTEN_MS, WRITTEN_MS], []),
        ([WRITTEN_MS + DAY // 2, WRITTEN_MS], []),  # clocks and zones differ
        ([WRITTEN_MS * 1000, WRITTEN_MS], [0]),  # microseconds
        ([WRITTEN_MS, WRITTEN_MS + 3 * DAY], [1]),
        ([WRITTEN_MS + 800 * DAY] * 2, [0, 1]),
        ([2**62, -1], [0]),
    ],
)
def test_a_time_after_the_last_write_is_told_with_its_segment(
    tmp_path: Path, times: list[int], segments: list[int]
) -> None:
    ran = rows("segment", "verify", written(tmp_path, *((n, time, 0) for n, time in enumerate(times))))
    found = [row for row in ran.of("finding") if row["code"] == FUTURE]
    assert [row["base_offset"] for row in found] == segments
    assert all(f"offset {row['base_offset']} has create time" in row["message"] for row in found)
    reasons = [str(row["reason"]) for row in ran.of("judgement")]
    assert not any(FUTURE in reason for reason in reasons), "the bytes are as they were sent"


@pytest.mark.parametrize(("topic", "attributes"), [("orders", 0x08), ("__consumer_offsets", 0)])
def test_no_word_of_times_that_brokers_set_or_retention_does_not_read(
    tmp_path: Path, topic: str, attributes: int
) -> None:
    folder = written(tmp_path, (0, WRITTEN_MS * 1000, attributes), topic=topic)
    assert FUTURE not in rows("segment", "verify", folder).codes()


def test_a_compacted_topic_keeps_what_it_keeps(tmp_path: Path) -> None:
    folder = written(tmp_path, (0, WRITTEN_MS * 1000, 0))
    assert FUTURE not in rows("segment", "verify", folder, "--compacted", "orders").codes()
