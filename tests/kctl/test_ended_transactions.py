"""Transactions whose marker the cleaner removed, while the broker knows that they ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.log.record_batch import Record, write_batch
from formats.log_dir.producer_snapshot import ProducerEntry, write_snapshot
from tests.conftest import rows


def producer(producer_id: int, open_since: int) -> ProducerEntry:
    return ProducerEntry(producer_id, 0, 1, 1, 1, 1_000, 0, open_since)


def snapshot(*producers: ProducerEntry) -> bytes:
    return write_snapshot(producers)


@pytest.mark.parametrize(
    ("snapshots", "is_open"),
    [
        ({4: snapshot(producer(7, -1))}, False),
        ({4: snapshot(producer(8, -1))}, False),  # forgotten since
        ({3: snapshot(producer(7, 0)), 4: snapshot(producer(7, -1))}, False),
        ({}, True),
        ({4: snapshot(producer(7, 0))}, True),
        ({1: snapshot(producer(7, -1))}, True),  # of before its end
        ({5: snapshot(producer(7, -1))}, True),  # behind the log's end: Kafka deletes it
        ({3: snapshot(producer(7, 0)), 4: b"damaged"}, True),
    ],
)
def test_who_holds_a_transaction_without_its_marker(
    tmp_path: Path, snapshots: dict[int, bytes], is_open: bool
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    committed = [Record(offset, 1_000, b"k", b"v") for offset in (0, 1)]
    log = write_batch(committed, producer_id=7, producer_epoch=0, base_sequence=0, attributes=0x10)
    log += write_batch([Record(3, 1_000, b"k", b"v")])  # the marker was at 2
    (folder / f"{0:020d}.log").write_bytes(log)
    for offset, data in snapshots.items():
        (folder / f"{offset:020d}.snapshot").write_bytes(data)
    found = rows("transactions", "hanging", tmp_path, "--all").of("open_transaction")
    assert [row["producer_id"] for row in found] == [7] * is_open
