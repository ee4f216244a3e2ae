"""Transactions whose marker the cleaner removed, while the broker knows that they ended."""

from __future__ import annotations

import json
from base64 import b64encode
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


@pytest.mark.parametrize(
    ("snapshots", "cleaner", "verdict"),
    [
        ({}, "0\n0\n", "could_not_judge"),
        ({6: snapshot(producer(7, -1))}, "0\n0\n", "sound"),
        ({6: snapshot(producer(8, 3))}, "0\n0\n", "could_not_judge"),  # it began there
        ({6: snapshot(producer(8, 5))}, "0\n0\n", "sound"),  # and this one behind it
        ({1: snapshot(producer(7, -1))}, "0\n0\n", "could_not_judge"),  # of before it
        ({}, "0\n1\norders 0 5\n", "sound"),  # the cleaner took them
        ({}, None, "sound"),  # or may have taken them
    ],
)
def test_a_transaction_may_have_begun_where_a_log_holds_nothing(
    tmp_path: Path, snapshots: dict[int, bytes], cleaner: str | None, verdict: str
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    if cleaner is not None:
        (tmp_path / "cleaner-offset-checkpoint").write_text(cleaner)
    (folder / f"{0:020d}.log").write_bytes(write_batch([Record(0, 1_000, b"k", b"v")]))
    (folder / f"{5:020d}.log").write_bytes(write_batch([Record(5, 1_000, b"k", b"v")]))
    for offset, data in snapshots.items():
        (folder / f"{offset:020d}.snapshot").write_bytes(data)
    (row,) = rows("transactions", "hanging", tmp_path).of("judgement")
    assert row["verdict"] == verdict
    assert (row["reason"] == "the copy holds nothing at offsets [1, 5)") is (verdict != "sound")


@pytest.mark.parametrize("who", ["its configuration", "another broker"])
def test_a_new_follower_of_a_compacted_topic_has_the_holes_of_its_leader(tmp_path: Path, who: str) -> None:
    for broker in (1, 2):
        folder = tmp_path / f"broker-{broker}" / "orders-0"
        folder.mkdir(parents=True)
        (folder.parent / "meta.properties").write_text(f"version=0\nbroker.id={broker}\n")
        mark = "1\norders 0 6\n" if (broker, who) == (2, "another broker") else "0\n"
        (folder.parent / "cleaner-offset-checkpoint").write_text(f"0\n{mark}")
        data = write_batch([Record(0, 1_000, b"k", b"v")]) + write_batch([Record(5, 1_000, b"k", b"v")])
        (folder / f"{0:020d}.log").write_bytes(data)
    if who == "its configuration":
        config = b'{"version":1,"config":{"cleanup.policy":"compact"}}'
        znode = {"path": "/config/topics/orders", "data": b64encode(config).decode()}
        (tmp_path / "znodes.jsonl").write_text(json.dumps(znode) + "\n")
    found = rows("transactions", "hanging", tmp_path).of("judgement")
    assert [row["verdict"] for row in found] == ["sound"] * len(found) and found
