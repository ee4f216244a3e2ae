"""What the log cleaner leaves, with and without its checkpoint; and damage that looks like it and is not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from struct import pack
from types import MappingProxyType
from typing import NamedTuple

import pytest

from formats.log.message_set import write_message
from formats.log.record_batch import CONTROL, DELETE_HORIZON, TRANSACTIONAL, Record, write_batch
from formats.log_dir.producer_snapshot import ProducerEntry, write_snapshot
from kctl.checks.replica import check_replica
from kctl.checks.report import ReplicaTask
from kctl.findings import Place, Severity
from kctl.log.folder import read_folder
from kctl.rebuilding.rebuild import Method, make

MISSING, GAPS = "segment-missing", "offsets-missing"


def batch(
    offset: int, *, attributes: int = 0, producer_id: int = -1, sequence: int = -1, epoch: int = 0
) -> bytes:
    return write_batch(
        [Record(offset, 1_000, b"k", b"v")],
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
        partition_leader_epoch=epoch,
    )


def batches(*offsets: int) -> bytes:
    return b"".join(map(batch, offsets))


def old_message(offset: int) -> bytes:
    return write_message(1, offset, b"k", b"v", timestamp=1_000)


def abort(offset: int, producer_id: int) -> bytes:
    marker = Record(offset, 1_000, pack(">hh", 0, 0), pack(">hi", 0, 0))
    attributes = TRANSACTIONAL | CONTROL
    return write_batch([marker], attributes=attributes, producer_id=producer_id, producer_epoch=0)


def snapshot(producer_id: int, last_offset: int) -> bytes:
    return write_snapshot([ProducerEntry(producer_id, 0, 0, last_offset, 0, 1_000, -1, -1)])


def folder_of(
    folder: Path, logs: dict[int, bytes], others: Mapping[str, bytes], time_entries: Collection[int] = ()
) -> Path:
    """A partition folder; a segment with batches, or among `time_entries`, has an entry in its time index."""
    folder.mkdir()
    for number, (base, data) in enumerate(logs.items()):
        is_last = number == len(logs) - 1
        has_entry = (data and not is_last) or base in time_entries
        entry = pack(">qi", 1_000, 0) if has_entry else b""
        for suffix, content in ((".log", data), (".index", b""), (".timeindex", entry)):
            (folder / f"{base:020d}{suffix}").write_bytes(content)
    for name, content in {"leader-epoch-checkpoint": b"0\n1\n0 0\n", **others}.items():
        (folder / name).write_bytes(content)
    return folder


def wrong_in(folder: Path, **about: object) -> set[str]:
    report = check_replica(ReplicaTask(folder, Place(file="."), **about))  # type: ignore[arg-type]
    found = {finding.code for finding in report.all_findings() if finding.severity is not Severity.INFO}
    return found - {"timeindex-entry-wrong"}  # all records have one time


class Log(NamedTuple):
    """A log, what its checkpoints say, and what is wrong with it."""

    logs: dict[int, bytes]
    wrong: set[str]
    about: Mapping[str, object] = MappingProxyType({})
    others: Mapping[str, bytes] = MappingProxyType({})
    time_entries: tuple[int, ...] = ()


NO_ENTRY: dict[str, object] = {
    "is_compacted": False
}  # a checkpoint of the cleaner that does not name the partition
FULL = range(10)
LOGS = {
    # the cleaner was there
    "first segments emptied": Log({0: b"", 5: b"", 10: batches(10, 11), 12: b""}, set(), NO_ENTRY),
    "a segment emptied among gaps": Log({0: batches(0, 3), 5: b"", 9: batches(9, 10)}, set(), NO_ENTRY),
    "many gaps": Log({0: batches(0, 3, 5, 9), 20: batches(20)}, set(), NO_ENTRY),
    "a gap, and no checkpoint": Log({0: batches(0, 3), 20: batches(20)}, set()),
    "a date for tombstones": Log({0: batches(0) + batch(1, attributes=DELETE_HORIZON), 9: batches(9)}, set(), NO_ENTRY),
    "fewer records than offsets": Log({0: write_batch([Record(4, 1_000, b"k", b"v")], base_offset=0), 9: batches(9)}, set(), NO_ENTRY),
    # a follower of a compacted topic names a segment after what it appends
    "a batch a segment": Log({0: batches(0), 5: batches(5), 9: batches(9), 10: batches(10)}, set(), NO_ENTRY),
    # and none of these is one
    "a segment gone": Log({0: batches(*FULL), 20: batches(*range(20, 30)), 30: b""}, {MISSING}),
    "two segments gone": Log({0: batches(*FULL), 20: batches(*range(20, 30)), 40: batches(40)}, {MISSING}),
    "one of segments with one batch each": Log({0: batches(0), 1: batches(1), 5: batches(5)}, {MISSING}),
    "segments whose snapshots are there": Log({0: batches(0), 5: batches(5), 9: batches(9)}, {MISSING}, {}, {f"{1:020d}.snapshot": write_snapshot([])}),
    "a segment emptied in a whole log": Log({0: batches(*FULL), 10: b"", 20: batches(20, 21)}, {MISSING}),
    "a segment without its batches": Log({0: b"", 5: b"", 10: batches(10, 11)}, {MISSING}, {}, {}, (0, 5)),
    "a gap in a log that was never cleaned": Log({0: batches(0, 3), 4: batches(4)}, {GAPS}, NO_ENTRY),
    "two gaps": Log({0: batches(0, 3, 4, 6), 9: batches(9)}, {GAPS, MISSING}, NO_ENTRY),
    "files that were not flushed": Log({0: batches(*FULL), 10: b"", 20: b"", 30: batches(30)}, {MISSING}, {"recovery_point": 10}),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_gaps(tmp_path: Path, name: str) -> None:
    logs, wrong, about, others, time_entries = LOGS[name]
    assert wrong_in(folder_of(tmp_path / "t-0", logs, others, time_entries), **about) == wrong


def test_files_that_were_flushed_before_the_power_failed(tmp_path: Path) -> None:
    log = {0: batches(*FULL), 10: b"", 20: b"", 30: batches(30)}
    folder = folder_of(tmp_path / "t-0", log, {})
    assert not wrong_in(folder, recovery_point=21)
    assert not wrong_in(folder, recovery_point=10, is_clean=True) - {"snapshots-missing"}


WRITTEN = batch(0, producer_id=2, sequence=0) + batch(1, producer_id=1, sequence=0)
SHORT = write_batch([Record(7, 1_000, b"k", b"v")], base_offset=5)


@pytest.mark.parametrize(
    ("logs", "about", "wrong"),
    [
        ({0: batch(4, producer_id=2, sequence=0)}, {}, set()),  # begins above its name
        ({0: batch(4, producer_id=2, sequence=0)}, NO_ENTRY, {"snapshot-producer-unknown", GAPS}),
        ({0: WRITTEN + batches(2, 3)}, {}, {"snapshot-producer-unknown"}),
        ({0: WRITTEN + batches(2, 3) + SHORT}, {}, set()),  # the sign lies behind the snapshot
        ({0: WRITTEN + batches(2, 3), 4: batches(4, 6)}, {}, set()),
        ({0: b"", 2: b"", 4: batch(4, producer_id=2, sequence=0)}, NO_ENTRY, set()),
    ],
)
def test_producers_whose_batches_a_cleaner_took(
    tmp_path: Path, logs: dict[int, bytes], about: dict[str, object], wrong: set[str]
) -> None:
    others = {f"{4:020d}.snapshot": snapshot(7, 2)}
    assert wrong_in(folder_of(tmp_path / "t-0", logs, others), **about) == wrong


def test_another_copys_entry_of_a_producer_that_the_log_has(tmp_path: Path) -> None:
    """A gap behind it does not make the last batch of a producer another one."""
    data = batch(0, producer_id=7, sequence=0) + batches(1, 2, 3, 5)
    others = {f"{2:020d}.snapshot": write_snapshot([ProducerEntry(7, 5, 0, 0, 0, 1_000, -1, -1)])}
    assert wrong_in(folder_of(tmp_path / "t-0", {0: data}, others)) == {"snapshot-entry-wrong"}


@pytest.mark.parametrize(
    ("data", "entry", "wrong"),
    [
        (abort(3, 1) + batches(4), (1, 0, 3, 4), set()),  # the batches of the transaction are gone
        (batches(0, 1, 2) + abort(3, 1), (1, 0, 3, 4), {"txnindex-entry-wrong"}),
        (batches(0, 1, 2) + abort(3, 1) + batches(5), (1, 0, 3, 4), set()),  # cleaned, as what follows shows
        (abort(3, 2) + batches(4), (1, 0, 3, 4), {"txnindex-entry-wrong"}),  # of another producer
        (batches(0, 1, 2, 4), (1, 0, 3, 4), set()),  # the marker is gone as well
        (batches(0, 1, 2, 3), (1, 0, 3, 4), {"txnindex-entry-wrong"}),
    ],
)
def test_aborted_transactions_whose_batches_a_cleaner_took(
    tmp_path: Path, data: bytes, entry: tuple[int, ...], wrong: set[str]
) -> None:
    others = {f"{0:020d}.txnindex": pack(">hqqqq", 0, *entry)}
    assert wrong_in(folder_of(tmp_path / "t-0", {0: data}, others)) == wrong


def test_an_aborted_transaction_without_an_entry(tmp_path: Path) -> None:
    data = batch(0, attributes=TRANSACTIONAL, producer_id=1, sequence=0) + abort(1, 1)
    whole, cleaned = tmp_path / "whole-0", tmp_path / "cleaned-0"
    assert wrong_in(folder_of(whole, {0: data}, {}), recovery_point=1) == {"txnindex-entry-missing"}
    assert not wrong_in(folder_of(cleaned, {0: data + batches(5)}, {}), recovery_point=1)


V2 = [batch(0, epoch=3), batch(1, epoch=4)]


def behind_the_last_old(data: list[bytes]) -> list[str]:
    """Where the epochs begin behind the last message of an older format."""
    old = [number for number, entry in enumerate(data) if entry[16] < 2]
    return [str(number) for number in range(old[-1] + 1 if old else 0, len(data))]


@pytest.mark.parametrize(
    ("data", "entries", "wrong"),
    [
        ([*V2, old_message(2)], [], set()),  # an append of magic 1 clears the file
        ([*V2, old_message(2)], [(3, 0), (4, 1)], set()),  # and a recovery fills it again
        ([*V2, old_message(2)], [(5, 3)], set()),  # the next leader's
        ([*V2, old_message(2)], [(4, 1)], set()),  # of the segment that was recovered
        ([*V2, old_message(2)], [(3, 0)], {"epoch-entry-missing"}),
        ([*V2, old_message(2)], [(3, 0), (4, 2)], {"epoch-entry-wrong"}),
        ([*V2, old_message(2), batch(3, epoch=4)], [(4, 3)], set()),
        ([*V2, old_message(2), batch(3, epoch=4)], [], {"epoch-entry-missing"}),
        ([*V2, old_message(2), batch(3, epoch=5)], [(5, 2)], set()),
        ([*V2, old_message(2), batch(3, epoch=5)], [(4, 3)], {"epoch-entry-missing"}),
        ([old_message(0), *V2[1:]], [], {"epoch-entry-missing"}),
        (V2, [], {"epoch-entry-missing"}),
    ],
)
def test_a_message_of_an_older_format_clears_the_epochs(
    tmp_path: Path, data: list[bytes], entries: list[tuple[int, int]], wrong: set[str]
) -> None:
    lines = "".join(f"{epoch} {start}\n" for epoch, start in entries)
    others = {"leader-epoch-checkpoint": f"0\n{len(entries)}\n{lines}".encode()}
    folder = folder_of(tmp_path / "t-0", {0: b"".join(data)}, others)
    assert wrong_in(folder) == wrong
    made = make(read_folder(folder), Method()).files.get("leader-epoch-checkpoint", b"0\n0\n").decode()
    assert [line.split()[1] for line in made.splitlines()[2:]] == behind_the_last_old(data)
    (folder / "leader-epoch-checkpoint").unlink()
    # A broker whose message format is below magic 2 deletes the file.
    assert wrong_in(folder) == ({"epochs-file-missing"} if data[-1][16] == 2 else set())
    # In a copy of segments alone, as of a running cluster's log, it is not all that lacks.
    for index in [*folder.glob("*.index"), *folder.glob("*.timeindex")]:
        index.unlink()
    assert not wrong_in(folder)
