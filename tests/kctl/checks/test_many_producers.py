"""More producers, or more aborted transactions, than are held at once: less is compared, nothing is called wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.log.columns.headers import gather, walk
from formats.log.record_batch import Record, write_batch
from formats.log_dir.producer_snapshot import ProducerEntry, write_snapshot
from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions, ReplicaTask
from kctl.errors import KctlError
from kctl.findings import Place
from kctl.log.folder import read_folder
from kctl.rebuilding.rebuild import Method, make
from kctl.scan import producer_state
from kctl.scan.checks import producers
from kctl.scan.options import ScanOptions
from tests.kctl.checks.test_transaction_indexes import LOG

HELD = 8


def batch(offset: int, producer_id: int, sequence: int) -> bytes:
    records = [Record(offset, 1_000 + offset, b"k", b"v")]
    return write_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


def findings(folder: Path, *batches: bytes) -> list[tuple[str, int | None]]:
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    for suffix in (".index", ".timeindex"):
        (folder / f"{0:020d}{suffix}").touch()
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    report = check_replica(ReplicaTask(folder, Place(file="."), recovery_point=1), CheckOptions())
    return [(one.code, one.place.base_offset) for file in report.files for one in file.findings] + [
        (one.code, one.place.base_offset) for one in report.findings
    ]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "MOST_PRODUCERS", HELD)
    monkeypatch.setattr(producer_state, "MOST_PRODUCERS", HELD)


def said(*chunks: list[bytes]) -> list[tuple[str, int]]:
    """Codes and batches that the check finds, fed with one chunk after the other."""
    check, found, at = producers.ProducerOrder(), [], 0
    for chunk in chunks:
        data = np.frombuffer(b"".join(chunk), np.uint8)
        headers = gather(np.concatenate((data, np.zeros(64, np.uint8))), walk(data, 0, len(data)).positions)
        for suspects in check.feed(headers, ScanOptions()):
            found += [(suspects.type.code, at + row) for row in suspects.rows]
        at += len(chunk)
    return found + [(one.code, one.place.base_offset or 0) for one in check.finish()]


ONE_EACH = [batch(number, 100 - number, 0) for number in range(HELD)]
GAP = batch(HELD + 1, 100, 5)
"""Of the producer that wrote first."""


def test_as_many_producers_as_are_held_are_all_compared() -> None:
    assert said(ONE_EACH, [GAP]) == [("producer-sequence-gap", HELD)]


def test_of_more_those_idle_for_longest_are_forgotten() -> None:
    one_more, gap_of_latest = batch(HELD, 1, 0), batch(HELD + 2, 101 - HELD, 5)
    found = said([*ONE_EACH, one_more], [GAP, gap_of_latest])
    assert found == [("producer-sequence-gap", HELD + 2), ("producers-forgotten", HELD)]


def test_who_wrote_lately_is_not_idle() -> None:
    again, one_more = batch(HELD, 100, 1), batch(HELD + 1, 1, 0)
    found = said(ONE_EACH, [again], [one_more], [GAP])
    assert found == [("producer-sequence-gap", HELD + 2), ("producers-forgotten", HELD + 1)]


def test_a_snapshot_is_not_wrong_where_its_producers_are_forgotten(tmp_path: Path) -> None:
    log = [batch(number, 100 - number, 0) for number in range(HELD + 1)]
    entry = ProducerEntry(
        producer_id=100, producer_epoch=0, last_sequence=0, last_offset=0, offset_delta=0, timestamp=1_000,
        coordinator_epoch=-1, current_txn_first_offset=-1,
    )  # fmt: skip
    (tmp_path / f"{HELD + 1:020d}.snapshot").write_bytes(write_snapshot([entry]))
    assert findings(tmp_path, *log) == [("producers-forgotten", HELD)]
    wrong = entry._replace(producer_id=100 - HELD, last_offset=HELD, last_sequence=7, timestamp=1_000 + HELD)
    (tmp_path / f"{HELD + 1:020d}.snapshot").write_bytes(write_snapshot([wrong]))
    assert ("snapshot-entry-wrong", None) in findings(tmp_path, *log)


def test_aborted_transactions_beyond_those_held_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited_to(most: int) -> set[str]:
        monkeypatch.setattr(producer_state, "MOST_ABORTED", most)
        monkeypatch.setattr("kctl.checks.replica.MOST_ABORTED", most)
        return {code for code, _ in findings(tmp_path, *LOG)} & {
            "aborted-transactions-many",
            "txnindex-entry-missing",
        }

    assert limited_to(4) == {"txnindex-entry-missing"}, "as many as there are"
    assert limited_to(3) == {"aborted-transactions-many"}


def test_a_log_of_too_many_is_not_rebuilt(tmp_path: Path) -> None:
    findings(tmp_path, *[batch(number, number, 0) for number in range(HELD + 1)])
    with pytest.raises(KctlError, match="too many to rebuild from"):
        make(read_folder(tmp_path), Method())
