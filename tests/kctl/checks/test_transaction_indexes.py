"""Transaction indexes as leaders write them, and those who append many transactions at once."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from formats.log.record_batch import CONTROL, TRANSACTIONAL, Record, write_batch
from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions, ReplicaTask
from kctl.findings import Place, Severity


def data(offset: int, producer_id: int, sequence: int) -> bytes:
    return write_batch(
        [Record(offset, 1_000, b"k", b"v")],
        attributes=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )


def abort(offset: int, producer_id: int) -> bytes:
    marker = Record(offset, 1_000, pack(">hh", 0, 0), pack(">hi", 0, 0))
    return write_batch(
        [marker], attributes=TRANSACTIONAL | CONTROL, producer_id=producer_id, producer_epoch=0
    )


LOG = [
    data(0, 7, 0),
    abort(1, 7),
    data(2, 7, 1),
    abort(3, 7),
    data(4, 8, 0),
    data(5, 7, 2),
    abort(6, 8),
    abort(7, 7),
]


@pytest.mark.parametrize(
    ("stable", "is_wrong"),
    [
        ((2, 4, 5, 8), False),  # one batch after the other
        ((4, 4, 5, 8), False),  # all of it at once, as a follower that was behind
        ((5, 4, 5, 8), True),
        ((2, 5, 5, 8), True),
        ((2, 4, 7, 8), True),
        ((2, 4, 5, 9), True),
    ],
)
def test_last_stable_offsets(tmp_path: Path, stable: tuple[int, ...], is_wrong: bool) -> None:
    (tmp_path / f"{0:020d}.log").write_bytes(b"".join(LOG))
    (tmp_path / f"{0:020d}.index").write_bytes(b"")
    (tmp_path / f"{0:020d}.timeindex").write_bytes(b"")
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    ended = [(7, 0, 1), (7, 2, 3), (8, 4, 6), (7, 5, 7)]
    entries = [pack(">hqqqq", 0, *one, at) for one, at in zip(ended, stable, strict=True)]
    (tmp_path / f"{0:020d}.txnindex").write_bytes(b"".join(entries))
    report = check_replica(ReplicaTask(tmp_path, Place(file=".")), CheckOptions())
    found = [one.code for file in report.files for one in file.findings if one.severity is not Severity.INFO]
    assert sorted(set(found)) == ["txnindex-entry-missing", "txnindex-entry-wrong"] * is_wrong


@pytest.mark.parametrize(("first", "is_wrong"), [(2, False), (1, True), (0, True)])
def test_the_marker_of_a_transaction_without_records(tmp_path: Path, first: int, is_wrong: bool) -> None:
    """Older brokers take the marker itself for the beginning of the transaction that it ends."""
    log = [data(0, 7, 0), abort(1, 7), abort(2, 7), data(3, 7, 1), abort(4, 7)]
    (tmp_path / f"{0:020d}.log").write_bytes(b"".join(log))
    (tmp_path / f"{0:020d}.index").write_bytes(b"")
    (tmp_path / f"{0:020d}.timeindex").write_bytes(b"")
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    entries = [(7, 0, 1, 2), (7, first, 2, 3), (7, 3, 4, 5)]
    (tmp_path / f"{0:020d}.txnindex").write_bytes(b"".join(pack(">hqqqq", 0, *entry) for entry in entries))
    report = check_replica(ReplicaTask(tmp_path, Place(file=".")), CheckOptions())
    found = [one.code for file in report.files for one in file.findings if one.severity is not Severity.INFO]
    assert found == ["txnindex-entry-wrong"] * is_wrong


@pytest.mark.parametrize(("entries", "is_clean", "point", "codes"), [
    (0, False, 0, ["txnindex-awaits-recovery"]),
    (2, False, 0, ["txnindex-awaits-recovery"]),
    (4, False, 0, []),
    (0, True, 0, ["txnindex-entry-missing"]),
    (2, False, 1, ["txnindex-entry-missing"]),
])  # fmt: skip
def test_an_index_that_the_next_start_writes_anew(
    tmp_path: Path, entries: int, is_clean: bool, point: int, codes: list[str]
) -> None:
    """A broker that was killed had begun to recover its log when it was copied (nemesis 4.3, seed 33)."""
    (tmp_path / f"{0:020d}.log").write_bytes(b"".join(LOG))
    for suffix in (".index", ".timeindex"):
        (tmp_path / f"{0:020d}{suffix}").write_bytes(b"")
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    ended = [(7, 0, 1, 2), (7, 2, 3, 4), (8, 4, 6, 5), (7, 5, 7, 8)]
    packed = [pack(">hqqqq", 0, *one) for one in ended[:entries]]
    (tmp_path / f"{0:020d}.txnindex").write_bytes(b"".join(packed))
    task = ReplicaTask(tmp_path, Place(file="."), is_clean=is_clean, recovery_point=point)
    report = check_replica(task, CheckOptions())
    found = {one.code for file in report.files for one in file.findings if one.code.startswith("txnindex")}
    assert sorted(found) == codes
