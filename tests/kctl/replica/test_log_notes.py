"""What brokers' lines prove about the ends of their logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.broker_logs.sources import find_sources
from kctl.copies.log_notes import Note, read_log_notes
from kctl.model import TopicPartition

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


MARKS = (
    "[2026-11-26 13:57:26,917] INFO [{manager} on broker 3] Added fetcher to broker {source} for partitions {listed} "
    "(kafka.server.{manager})\n"
)
CUT = "[2026-11-26 13:57:{second},222] INFO [Log partition=zed-1, dir=/d] Truncating to offset 21 (kafka.log.Log)\n"
BROKER = "BrokerEndPoint(id=2, host=10.0.0.2:9092)"


@pytest.mark.parametrize(
    ("source", "listed", "mark"),
    [
        (BROKER, "Map(zed-0 -> (offset=7, leaderEpoch=3), zed-1 -> (offset=108, leaderEpoch=8))", 108),
        ("2", "HashMap(zed-1 -> (offset=108, leaderEpoch=8))", 108),
        (BROKER, "Map(zed-10 -> (offset=108, leaderEpoch=8))", None),
        # From 2.8 on it may be the end of the log, which no leader has to have committed.
        ("2", "Map(zed-1 -> InitialFetchState(BrokerEndPoint(id=2, host=10.0.0.2:9092),8,108))", None),
        # A replica that moves to another disk fetches from its own broker.
        ("BrokerEndPoint(id=3, host=localhost:-1)", "Map(zed-1 -> (offset=108, leaderEpoch=8))", None),
        ("3", "Map(zed-1 -> (offset=108, leaderEpoch=8))", None),
    ],
)  # fmt: skip
def test_from_2_1_to_2_7_a_fetcher_begins_at_the_mark(
    source: str, listed: str, mark: int | None, tmp_path: Path
) -> None:
    fetcher = MARKS.format(manager="ReplicaFetcherManager", source=source, listed=listed)
    notes = heard(tmp_path, fetcher + CUT.format(second=27))
    marks = [(note.what, note.high_watermark, note.leader_epoch) for note in notes[:-1]]
    assert marks == ([] if mark is None else [("fetching", mark, 8)])


@pytest.mark.parametrize(("mark", "kinds"), [(108, ["fetching", "cut"]), (21, ["cut", "fetching"])])
def test_a_mark_above_a_cut_was_taken_before_it(mark: int, kinds: list[str], tmp_path: Path) -> None:
    listed = f"Map(zed-1 -> (offset={mark}, leaderEpoch=8))"
    fetcher = MARKS.format(manager="ReplicaFetcherManager", source=BROKER, listed=listed)
    assert [note.what for note in heard(tmp_path, CUT.format(second=26) + fetcher)] == kinds
