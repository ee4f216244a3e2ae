"""What brokers' lines prove about the ends of their logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.broker_logs.sources import find_sources
from kctl.model import TopicPartition
from kctl.replica.copies.log_notes import Note, read_log_notes

LINES = (
    "[2026-11-21 19:24:05,264] INFO [ReplicaFetcherManager on broker 3] Added fetcher for partitions List({fetched}) "
    "(kafka.server.ReplicaFetcherManager)\n"
    "[2026-11-21 19:24:05,275] INFO Truncating log zed-1 to offset {offset}. (kafka.log.Log)\n"
)
TO = "to broker BrokerEndPoint(1,127.0.0.1,49297)"


def heard(folder: Path, text: str) -> list[Note]:
    path = folder / "broker-3" / "server.log"
    path.parent.mkdir()
    path.write_text(text)
    return read_log_notes(find_sources([str(folder)])).notes[TopicPartition("zed", 1)]


@pytest.mark.parametrize(
    ("fetched", "offset", "kinds"),
    [
        (f"[zed-0, initOffset 30 {TO}] , [zed-1, initOffset 24 {TO}] ", 21, ["follower", "cut"]),
        (f"[[zed,1], initOffset 24 {TO}] ", 21, ["follower", "cut"]),  # as 0.8 and 0.9 print it
        (f"[zed-1, initOffset 24 {TO}] ", 24, ["asked_to_cut"]),  # changes nothing
        (f"[zed-0, initOffset 24 {TO}] ", 21, ["asked_to_cut"]),  # of another partition
    ],
)
def test_until_0_11_a_cut_below_where_the_log_ended_took_records_away(
    fetched: str, offset: int, kinds: list[str], tmp_path: Path
) -> None:
    notes = heard(tmp_path, LINES.format(fetched=fetched, offset=offset))
    assert [note.what for note in notes] == kinds
    assert notes[-1].offset == offset
    if len(kinds) == 2:
        assert notes[0].log_end_offset == 24


def test_a_fetcher_proves_one_cut_only(tmp_path: Path) -> None:
    text = LINES.format(fetched=f"[zed-1, initOffset 24 {TO}] ", offset=21)
    again = text + text.splitlines(keepends=True)[1]
    notes = heard(tmp_path, again)
    assert [note.what for note in notes] == ["follower", "cut", "asked_to_cut"]
