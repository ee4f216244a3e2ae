"""Indexes as leaders leave them: not made yet, or with timestamps that the log does not have any more."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from formats.log.message_set import write_message
from formats.log.record_batch import Record, write_batch
from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions, ReplicaTask
from kctl.findings import Place, Severity


def wrong(folder: Path) -> list[str]:
    report = check_replica(ReplicaTask(folder, Place(file="."), is_marked=False), CheckOptions())
    found = [*report.findings, *(finding for file in report.files for finding in file.findings)]
    return [finding.code for finding in found if finding.severity is not Severity.INFO]


def old(offset: int) -> bytes:
    return write_message(0, offset, b"k", b"v")


def emptied(offset: int, timestamp: int) -> bytes:
    return write_batch(
        [],
        base_offset=offset,
        last_offset_delta=0,
        max_timestamp=timestamp,
        producer_id=7,
        producer_epoch=0,
        base_sequence=offset,
    )


def filled(offset: int, timestamp: int) -> bytes:
    return write_batch([Record(offset, timestamp, b"k", b"v")])


def newer(offset: int, timestamp: int) -> bytes:
    return write_message(1, offset, b"k", b"v", timestamp=timestamp)


@pytest.mark.parametrize(
    ("last", "codes"),
    [
        (b"", []),  # retention rolled it: the first append makes the indexes
        (bytes(500), []),  # with log.preallocate
        (write_batch([Record(1, 2_000, b"k", b"v")], partition_leader_epoch=0), ["index-missing"] * 2),
    ],
)
def test_a_segment_without_indexes(tmp_path: Path, last: bytes, codes: list[str]) -> None:
    first = write_batch([Record(0, 1_000, b"k", b"v")], partition_leader_epoch=0)
    (tmp_path / f"{0:020d}.log").write_bytes(first)
    (tmp_path / f"{0:020d}.index").write_bytes(b"")
    (tmp_path / f"{0:020d}.timeindex").write_bytes(pack(">qi", 1_000, 0))
    (tmp_path / f"{1:020d}.log").write_bytes(last)
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert wrong(tmp_path) == codes


@pytest.mark.parametrize(
    ("records", "index", "code"),
    [
        (3, b"", "timeindex-empty"),  # truncated after a start, then rolled
        (3, pack(">ii", 2, 100), "timeindex-incomplete"),  # both get their entries together
        (300, b"", "timeindex-incomplete"),  # entries were due in both
    ],
)
def test_an_empty_time_index_of_a_rolled_segment(
    tmp_path: Path, records: int, index: bytes, code: str
) -> None:
    batches = [
        write_batch([Record(n, 1_000 + n, b"k", b"v" * 50)], partition_leader_epoch=0) for n in range(records)
    ]
    (tmp_path / f"{0:020d}.log").write_bytes(b"".join(batches))
    (tmp_path / f"{0:020d}.index").write_bytes(index)
    (tmp_path / f"{0:020d}.timeindex").write_bytes(b"")
    (tmp_path / f"{records:020d}.log").write_bytes(b"")
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    report = check_replica(ReplicaTask(tmp_path, Place(file=".")), CheckOptions())
    codes = {
        f.code
        for file in report.files
        for f in file.findings
        if (file.place.file or "").endswith(".timeindex")
    }
    assert codes == {code}


@pytest.mark.parametrize(
    ("log", "entries", "codes"),
    [
        ([old(0), old(1), old(2)], [(5_000, 1)], []),  # 0.10.2 converted to magic 0, and remembered
        ([old(0), old(1), newer(2, 6_000)], [(5_000, 1), (6_000, 2)], []),
        ([newer(0, 1_000), old(1), newer(2, 4_000)], [(5_000, 1)], []),
        ([old(0), old(1), newer(2, 6_000)], [(5_000, 1)], ["timeindex-incomplete"]),
        ([newer(0, 7_000), old(1), newer(2, 6_000)], [(5_000, 1)], ["timeindex-entry-wrong"]),
        ([newer(0, -1), old(1)], [(5_000, 0)], ["timeindex-entry-wrong"]),
        ([old(0), old(1)], [(5_000, 9)], ["timeindex-entry-wrong"]),
        # Of batches that the cleaner emptied: up to 1.1 it leaves them out, since 2.0 it does not.
        ([emptied(0, 5_000), emptied(1, 6_000)], [], []),
        ([emptied(0, 5_000), emptied(1, 6_000)], [(6_000, 1)], []),
        ([emptied(0, 5_000), filled(1, 4_000)], [(4_000, 1)], []),
        ([filled(0, 3_000), emptied(1, 5_000)], [(3_000, 0)], []),
        ([filled(0, 3_000), emptied(1, 5_000)], [(3_000, 0), (5_000, 1)], []),
        ([emptied(0, 5_000), filled(1, 6_000)], [(5_000, 0)], ["timeindex-incomplete"]),
        ([filled(0, 5_000), filled(1, 4_000)], [(4_000, 1)], ["timeindex-entry-wrong"]),
    ],
)
def test_timestamps_that_the_log_has_no_more(
    tmp_path: Path, log: list[bytes], entries: list[tuple[int, int]], codes: list[str]
) -> None:
    (tmp_path / f"{0:020d}.log").write_bytes(b"".join(log))
    (tmp_path / f"{0:020d}.index").write_bytes(b"")
    (tmp_path / f"{0:020d}.timeindex").write_bytes(b"".join(pack(">qi", *entry) for entry in entries))
    if any(one[16] == 2 for one in log):
        (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (tmp_path / f"{len(log):020d}.log").write_bytes(old(len(log)))
    for suffix in ("index", "timeindex"):
        (tmp_path / f"{len(log):020d}.{suffix}").write_bytes(b"")
    assert wrong(tmp_path) == codes


@pytest.mark.parametrize(
    ("epoch", "entries", "code"),
    [
        (1, [(4_000, 1)], "timeindex-forgets"),
        (1, [(4_000, 1), (4_500, 2)], "timeindex-forgets"),
        (1, [(4_000, 1), (4_200, 2)], "timeindex-entry-wrong"),
        (0, [(4_000, 1)], "timeindex-entry-wrong"),  # nothing was cut within an epoch
    ],
)
def test_a_latest_timestamp_that_a_cut_made_a_broker_forget(
    tmp_path: Path, epoch: int, entries: list[tuple[int, int]], code: str
) -> None:
    """A broker of 2.8 that had a fast clock led before, and the follower was started and cut (seed 968)."""
    times = [(5_000, 0), (4_000, epoch), (4_500, epoch)]
    batches = [
        write_batch([Record(offset, time, b"k", b"v")], partition_leader_epoch=of)
        for offset, (time, of) in enumerate(times)
    ]
    (tmp_path / f"{0:020d}.log").write_bytes(b"".join(batches))
    (tmp_path / f"{0:020d}.index").write_bytes(b"")
    (tmp_path / f"{0:020d}.timeindex").write_bytes(b"".join(pack(">qi", *entry) for entry in entries))
    epochs = "0\n1\n0 0\n" if not epoch else "0\n2\n0 0\n1 1\n"
    (tmp_path / "leader-epoch-checkpoint").write_text(epochs)
    for is_rolled in (False, True):
        if is_rolled:
            last = write_batch([Record(3, 6_000, b"k", b"v")], partition_leader_epoch=epoch)
            (tmp_path / f"{3:020d}.log").write_bytes(last)
            (tmp_path / f"{3:020d}.index").write_bytes(b"")
            (tmp_path / f"{3:020d}.timeindex").write_bytes(b"")
        report = check_replica(ReplicaTask(tmp_path, Place(file=".")), CheckOptions())
        first = (file for file in report.files if (file.place.file or "").endswith(f"{0:020d}.timeindex"))
        codes = {finding.code for file in first for finding in file.findings}
        assert code in codes
        if code == "timeindex-forgets":
            is_short = is_rolled and entries[-1][0] < times[-1][0]
            assert codes - {code} == ({"timeindex-incomplete"} if is_short else set())


def test_the_last_batch_with_a_larger_timestamp_tells_whether_it_was_forgotten(tmp_path: Path) -> None:
    """One of an older epoch has a larger one too; nothing was cut between the second, of the same epoch, and the entry."""
    batches = [
        write_batch([Record(offset, time, b"k", b"v")], partition_leader_epoch=epoch)
        for offset, (time, epoch) in enumerate([(7_000, 0), (5_000, 1), (4_000, 1)])
    ]
    (tmp_path / f"{0:020d}.log").write_bytes(b"".join(batches))
    (tmp_path / f"{0:020d}.index").write_bytes(b"")
    (tmp_path / f"{0:020d}.timeindex").write_bytes(pack(">qi", 4_000, 2))
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 1\n")
    assert wrong(tmp_path) == ["timeindex-entry-wrong"]
