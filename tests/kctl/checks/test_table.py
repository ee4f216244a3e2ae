"""A check is one entry in the table: its findings come out of every command that scans a log, however it is read."""

from __future__ import annotations

import multiprocessing
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from formats.log import records
from formats.log.columns.headers import Headers
from formats.log.record_batch import CONTROL, TRANSACTIONAL, Record, write_batch
from kctl.evidence.discover import discover
from kctl.findings import FindingType, Severity, logs, segments
from kctl.scan import pool
from kctl.scan.checks import table
from kctl.scan.checks.check import LogCheck, Suspects, always, rows_of
from kctl.scan.options import ScanOptions
from kctl.scan.record_groups import RecordGroup
from kctl.scan.tables import SCHEMAS
from tests.conftest import kctl, recording
from tests.kctl.checks.test_parallel import cut, found

Found = set[tuple[str, str, int]]  # code, file, base offset


def own(code: str) -> FindingType:
    return FindingType(code, Severity.WARNING, "What {why}.", "meaning", "cause", "action")


HEADERS, LOG, RECORDS = (own(f"own-{form}") for form in ("headers", "log", "records"))


def of_headers(headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Batches of an odd number of records."""
    yield Suspects(HEADERS, rows_of(headers.records_count % 2 == 1), always(why="is odd"))


class OfLog(LogCheck):
    """Batches with more records than the one before them."""

    def __init__(self) -> None:
        self.before: int | None = None

    def feed(self, headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
        for row, count in enumerate(headers.records_count.tolist()):
            if self.before is not None and count > self.before:
                yield Suspects(LOG, [row], always(why="has more"))
            self.before = count


def of_records(group: RecordGroup, headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Batches whose first record has a value of five bytes."""
    sizes = group.fields.value_size[group.first_rows[:-1]].tolist()
    yield Suspects(RECORDS, group.rows[[size == 5 for size in sizes]].tolist(), always(why="has five"))


OWN = (
    table.RegisteredCheck(table.Form.HEADERS, of_headers),
    table.RegisteredCheck(table.Form.LOG, OfLog),
    table.RegisteredCheck(table.Form.RECORDS, of_records),
)


def enter() -> None:
    """Enter the checks for as long as this process lives."""
    table.CHECKS = (*table.CHECKS, *OWN)


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "CHECKS", (*table.CHECKS, *OWN))


def evidence(folder: Path) -> tuple[Path, Found]:
    """A log of two segments, and what the checks say about it."""
    rng, offset, expected = random.Random(3), 0, set()
    before: int | None = None
    for _ in range(2):
        name, data = f"own-0/{offset:020d}.log", b""
        for number in range(60):
            count, size = rng.choice([1, 2, 3]), rng.choice([4, 5, 6])
            # A segment begins with more records than the last one ended with.
            count = 3 if number == 0 else 1 if number == 59 else count
            data += write_batch([Record(offset + n, 5, None, b"v" * size) for n in range(count)])
            said = {HEADERS.code: count % 2 == 1, RECORDS.code: size == 5}
            said[LOG.code] = before is not None and count > before
            expected |= {(code, name, offset) for code, is_so in said.items() if is_so}
            before, offset = count, offset + count
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    assert (LOG.code, name, int(Path(name).stem)) in expected  # told by the segment before it alone
    return folder, expected


def own_rows(rows: Any) -> Found:
    said = [
        (row["code"], row["file"], row["base_offset"])
        for row in rows
        if isinstance(row, dict) and str(row.get("code")).startswith("own-")
    ]
    assert len(said) == len(set(said))
    return set(said)


def by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let other processes read the parts of every log."""
    cut(monkeypatch, 5, sent=False)
    monkeypatch.setattr(pool, "ALONE_FOR", 0)
    # A thread that another test left would have them spawned, and what is entered here would not be there.
    monkeypatch.setattr(pool, "_context", lambda: multiprocessing.get_context("fork"))


READ: dict[str, Callable[[pytest.MonkeyPatch], int]] = {
    "whole": lambda patch: 1,
    "cut": lambda patch: cut(patch, 4) or 1,  # type: ignore[func-returns-value]
    "cut, two processes": lambda patch: by_workers(patch) or 2,  # type: ignore[func-returns-value]
}


@pytest.mark.parametrize("how", READ)
def test_verify(entered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    folder, expected = evidence(tmp_path / "data")
    jobs = READ[how](monkeypatch)
    assert own_rows(found(folder, jobs)) == expected


@pytest.mark.parametrize("how", READ)
def test_audit(entered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    import pyarrow.dataset as ds

    folder, expected = evidence(tmp_path / "data")
    jobs = READ[how](monkeypatch)
    kctl("audit", "run", folder, "--out", tmp_path / "out", "--jobs", jobs, "--no-sha256")
    findings = ds.dataset(tmp_path / "out" / "findings", format="parquet").to_table().to_pylist()
    assert own_rows(findings) == expected


TARGETS = [1 << 30, 400]


def findings_of_spark(folder: Path, target: int, **bounds: int) -> list[dict[str, Any]]:
    """What executors run; on executors themselves it is tested beside Spark's other tests."""
    from kctl.spark.listing import list_segments
    from kctl.spark.planning import Filters, plan
    from kctl.spark.reading import read_pieces

    wanted = Filters(**bounds)  # type: ignore[arg-type]
    planned = plan(list_segments(str(folder), []), "findings", wanted, target)
    columns = SCHEMAS["findings"].names
    read = [read_pieces(pieces, "findings", columns, wanted, target) for pieces in planned]
    return [row for batches in read for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("target", TARGETS)
def test_findings_of_spark(entered: None, tmp_path: Path, target: int) -> None:
    folder, expected = evidence(tmp_path / "data")
    assert own_rows(findings_of_spark(folder, target)) == expected


def codes_of_logs() -> set[str]:
    """Codes of findings that whoever scans a log gives."""
    named = [*vars(segments).values(), logs.BASE_OFFSET_WRONG]
    return {one.code for one in named if isinstance(one, FindingType)}


def of_log(rows: Iterable[Any]) -> list[str]:
    """The findings of the checks of a log, as all who scan it say them."""
    codes = codes_of_logs()
    columns = ("code", "severity", "message", "topic", "partition", "file", "position", "base_offset")
    return sorted(str([row[name] for name in columns]) for row in rows if row.get("code") in codes)


def damaged_log(folder: Path, topic: str) -> None:
    """Three segments with a gap, a wrong base offset at the end of one, a wrong CRC, and transactions open and ended."""

    def batch(offset: int, *, txn: int = -1, sequence: int = -1, flags: int = 0, count: int = 2) -> bytes:
        held = [Record(offset + n, 5, None, b"value") for n in range(count)]
        if flags & CONTROL:
            held = [Record(offset, 5, bytes(4), bytes(6))]  # an abort marker
        return write_batch(
            held,
            attributes=flags,
            producer_id=txn,
            producer_epoch=0 if txn >= 0 else -1,
            base_sequence=sequence,
        )

    wrong = (1 << 40).to_bytes(8, "big")
    first = batch(0) + batch(2, txn=7, sequence=0, flags=TRANSACTIONAL)
    first += batch(4, txn=8, sequence=0, flags=TRANSACTIONAL) + wrong + batch(6)[8:]
    second = batch(8) + batch(15, txn=8, sequence=2, flags=TRANSACTIONAL)  # 10 to 14 are missing
    second += batch(17, txn=8, flags=TRANSACTIONAL | CONTROL)
    third = bytearray(batch(18) + batch(20) + batch(22))
    third[len(batch(18)) + 70] ^= 1
    (folder / f"{topic}-0").mkdir(parents=True)
    for base, data in ((0, first), (8, second), (18, bytes(third))):
        (folder / f"{topic}-0" / f"{base:020d}.log").write_bytes(data)


@pytest.mark.parametrize("topic", ["own", "__consumer_offsets"])
def test_all_who_scan_say_the_same_of_a_damaged_log(tmp_path: Path, topic: str) -> None:
    import pyarrow.dataset as ds

    folder = tmp_path / "data"
    damaged_log(folder, topic)
    damaged_log(folder, f"{topic}-more")
    rows = found(folder)
    expected = of_log(rows)
    codes = [row["code"] for row in rows if row["kind"] == "finding" and row["topic"] == topic]
    lists = ["transaction-open", "batch-base-offset-wrong", "batch-crc-mismatch", "batch-offset-gap"]
    assert [code in codes for code in lists] == [True, True, True, topic == "own"]
    kctl("audit", "run", folder, "--out", tmp_path / "out", "--jobs", 1, "--no-sha256")
    assert (
        of_log(ds.dataset(tmp_path / "out" / "findings", format="parquet").to_table().to_pylist()) == expected
    )
    for target in TARGETS:
        assert of_log(findings_of_spark(folder, target)) == expected
        # A bound cannot leave out a segment that others are compared with.
        assert of_log(findings_of_spark(folder, target, to_offset=5)) == expected


@pytest.mark.slow
def test_scan_of_a_tier(entered: None, tmp_path: Path) -> None:
    from kctl.tier.audit.audit import tier_rows

    folder = tmp_path / "data"
    shutil.copytree(recording("tier/a-healthy"), folder)
    expected, logs = set(), [path for path in folder.glob("tier/**/*.log") if path.is_file()]
    for path in logs:
        counts = [(item.base_offset, item.batch.records_count) for item in records.walk(path.read_bytes())]  # type: ignore[union-attr]
        expected |= {(HEADERS.code, path.name, base) for base, count in counts if count % 2}
        pairs = pairwise(counts)
        expected |= {(LOG.code, path.name, base) for (_, before), (base, count) in pairs if count > before}
    assert {code for code, _, _ in expected} == {HEADERS.code, LOG.code}
    said = own_rows(tier_rows(discover([folder])))
    names = {path.name for path in logs}  # those of logs of brokers, which are read too, have no id in them
    said = {(code, Path(file).name, base) for code, file, base in said if code != RECORDS.code}
    assert {one for one in said if one[1] in names} == expected


def test_copies_that_replica_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are scanned by the same checks; damage is what is reported of them, not findings."""
    from kctl.copies.scanned import scan_folder
    from kctl.log.folder import read_folder

    seen: list[int] = []

    def watches(headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
        seen.extend(headers.base_offset.tolist())
        return iter(())

    monkeypatch.setattr(table, "CHECKS", (table.RegisteredCheck(table.Form.HEADERS, watches),))
    folder, _ = evidence(tmp_path / "data")
    runs = list(scan_folder(read_folder(folder / "own-0")))
    assert seen == [base for run in runs if run.columns for base in run.columns.base_offset.tolist()]
    assert len(seen) == 120
