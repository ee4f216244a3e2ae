"""What an audit reads: each byte of the evidence once, and the digests are of exactly those bytes."""

import hashlib
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from benchmarks.in_memory import InMemory
from formats.compression import Codec
from formats.log.message_set import write_wrapper
from formats.log.record_batch import Record, write_batch
from kctl.audit import batch_rows, resume
from kctl.audit.batch_rows import NotedLogs
from kctl.checks import digests
from kctl.log.folder import read_folder
from kctl.scan.noted import A_RUN, ScanNotes, noted_of
from kctl.scan.packed import narrowed, widened
from kctl.scan.segment import scan_segment
from kctl.scan.source import LocalFile, opened_source
from tests.conftest import kctl, recording, recordings

pytestmark = pytest.mark.slow  # audits of whole recordings by the dozen

QUICK = ("segments/3.9.1-kraft", "segments/0.8.2.2")


def examined(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(out / "files").to_pylist()
    return found


def hold_digests(evidence: Path, out: Path, algorithm: str, *options: object) -> None:
    words = ("--digests", algorithm, "--questions", "integrity", "--overwrite", *options)
    kctl("audit", "run", evidence, "--out", out, *words)
    rows = examined(out)
    for row in rows:
        path = evidence / row["file"]
        assert row[algorithm] == hashlib.new(algorithm, path.read_bytes()).hexdigest(), path
        assert {row[other] for other in ("sha256", "blake2b") if other != algorithm} == {None}
    assert any(row["type"] == "log" and row[algorithm] for row in rows)


def damaged(source: Path, target: Path, seed: int, *, one_of: int = 1) -> Path:
    """A copy with some bytes of one of so many files flipped, zeroed, cut off, taken out or put in."""
    shutil.copytree(source, target)
    rng = random.Random(seed)
    for path in sorted(target.rglob("*")):
        if not path.is_file() or not path.stat().st_size or path.name == "meta.properties":
            continue
        if rng.randrange(one_of):
            continue
        data = bytearray(path.read_bytes())
        at, size = rng.randrange(len(data)), rng.randrange(1, 200)
        match rng.randrange(6):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at : at + size] = bytes(len(data[at : at + size]))
            case 2:
                del data[at:]
            case 3:
                del data[at : at + size]
            case 4:
                data[at:at] = rng.randbytes(size)
            case _:
                data[:0] = b"PAR1"
        path.write_bytes(data)
    return target


def large_log(folder: Path, size: int) -> Path:
    """A log directory of one broker with one partition; batches of 100 records, some of them compressed."""
    (folder / "orders-0").mkdir(parents=True)
    (folder / "meta.properties").write_text("version=0\nbroker.id=1\n")
    value, offset, written = os.urandom(500), 0, 0
    with (folder / "orders-0" / f"{0:020d}.log").open("wb") as file:
        while written < size:
            codec = Codec.LZ4 if offset % 1000 == 0 else Codec.NONE
            some = [Record(offset + n, 1_700_000_000_000 + offset, None, value, ()) for n in range(100)]
            written += file.write(write_batch(some, codec=codec))
            offset += 100
    return folder


@pytest.mark.parametrize("algorithm", ["sha256", "blake2b"])
@pytest.mark.parametrize("seed", range(2))
def test_digests_of_damaged_files_are_those_of_the_files(tmp_path: Path, algorithm: str, seed: int) -> None:
    for number, name in enumerate(QUICK):
        evidence = damaged(recording(name), tmp_path / f"evidence-{number}", seed)
        hold_digests(evidence, tmp_path / "out", algorithm, "--jobs", 1)


@pytest.mark.slow
def test_digests_of_every_recording(tmp_path: Path) -> None:
    for number, name in enumerate(recordings("segments") + recordings("incidents")):
        evidence = damaged(recording(name), tmp_path / f"{number}", number, one_of=2)
        hold_digests(evidence, tmp_path / "out", "sha256")
        shutil.rmtree(evidence)


def test_blocks_are_hashed_beside_the_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of several blocks: the memory that is hashed is not read over before it is done."""
    evidence = large_log(tmp_path / "broker-1", 20 << 20)
    began: list[object] = []

    class Slow(digests.Thread):
        def run(self) -> None:
            began.append(self)
            time.sleep(0.05)  # so that whoever reads on without waiting reads over it
            super().run()

    monkeypatch.setattr(digests, "Thread", Slow)
    hold_digests(evidence, tmp_path / "out", "sha256", "--jobs", 1)
    assert len(began) > 2


@pytest.mark.parametrize(("there", "is_known"), [(100, True), (130, True), (70, False)])
def test_a_digest_is_of_the_bytes_that_a_file_had_when_it_was_opened(there: int, is_known: bool) -> None:
    """A log that a broker writes grows meanwhile, or is cut."""
    data = random.Random(there).randbytes(there)
    given = InMemory(data, "log")
    given.size = 100
    digest = digests.Digest("sha256")
    source = digests.DigestedSource(given, digest)
    source.read_at(0, 60)
    source.read_at(40, 90)
    source.close()
    assert digest.value == (hashlib.sha256(data[:100]).hexdigest() if is_known else None)


def test_what_nobody_has_read_is_read_once_at_the_end() -> None:
    asked: list[int] = []

    class Once(InMemory):
        def read_at(self, position: int, size: int) -> bytes:
            assert position not in asked  # it would be asked for without end
            asked.append(position)
            return super().read_at(position, size)

    data = random.Random(0).randbytes(100)
    digest = digests.Digest("sha256")
    digests.DigestedSource(Once(data, "log"), digest).close()
    assert asked == [0]
    assert digest.value == hashlib.sha256(data).hexdigest()


def noted(folder: Path, data: bytes, most: int) -> ScanNotes:
    (folder / f"{0:020d}.log").write_bytes(data)
    logs = NotedLogs(most)
    with opened_source(folder / f"{0:020d}.log") as source:
        for chunk in scan_segment(source):
            logs.take(folder / f"{0:020d}.log", chunk)
    logs.finish()
    return logs.notes


def batches(count: int) -> bytes:
    return b"".join(write_batch([Record(offset, 0, None, b"v", ())]) for offset in range(count))


def test_headers_of_sound_logs_are_kept_as_far_as_there_is_room(tmp_path: Path) -> None:
    assert noted(tmp_path, batches(10), most=2 * A_RUN).runs
    assert not noted(tmp_path, batches(10), most=0).runs
    assert not noted(tmp_path, batches(10), most=A_RUN + 9).runs
    assert not noted(tmp_path, batches(10) + b"\1" * 90, most=2 * A_RUN).runs
    sets = [write_wrapper(magic, [Record(0, 0, None, b"v", ())], codec=Codec.GZIP) for magic in (0, 1)]
    assert not any(noted(tmp_path, data, most=2 * A_RUN).runs for data in sets)


@pytest.mark.parametrize(
    "values",
    [
        np.array([7], np.int64),
        np.array([-1, -1, -1], np.int32),
        np.array([-(2**62), 2**62, 5], np.int64),
        np.array([2**63 - 1, 2**63 - 2**32, 2**63 - 2], np.int64),
        np.array([2**63 - 1, -(2**63)], np.int64),
        np.array([0, 2**32 - 1], np.uint32),
        np.array([-128, 127], np.int8),
        np.array([2**31 - 1, -(2**31)], np.int32),
        np.array([True, True]),
        np.array([False, True]),
        np.arange(300, dtype=np.int64) + 2**40,
    ],
)
def test_a_packed_column_is_as_it_was(values: NDArray[Any]) -> None:
    column = widened(narrowed(values), len(values))
    assert column.dtype == values.dtype
    assert column.tolist() == values.tolist()


def test_no_more_headers_are_kept_than_may_be(tmp_path: Path) -> None:
    runs = next(iter(noted(tmp_path, batches(10), most=2 * A_RUN).runs.values()))
    notes = ScanNotes(most=sum(run.size for run in runs))
    for name in ("a", "b"):
        notes.add(tmp_path / name, runs)
    assert [*notes.runs] == [tmp_path / "a"]


def test_headers_are_kept_of_a_log_of_the_same_size_alone(tmp_path: Path) -> None:
    notes = noted(tmp_path, batches(10), most=2 * A_RUN)
    assert noted_of(read_folder(tmp_path).logs[0], notes.by_folder()[tmp_path])
    (tmp_path / f"{0:020d}.log").write_bytes(batches(11))
    assert noted_of(read_folder(tmp_path).logs[0], notes.by_folder()[tmp_path]) is None


@pytest.fixture
def scanned_bytes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many bytes each read of a log gives; every scan reads through these two."""
    sizes: list[int] = []
    into, at = LocalFile.read_into, LocalFile.read_at

    def read_into(source: LocalFile, position: int, room: NDArray[np.uint8]) -> int:
        sizes.append(into(source, position, room))
        return sizes[-1]

    def read_at(source: LocalFile, position: int, size: int) -> bytes:
        data = at(source, position, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(LocalFile, "read_into", read_into)
    monkeypatch.setattr(LocalFile, "read_at", read_at)
    digest = digests.digest_of

    def read_again(path: Path, algorithm: str) -> tuple[str | None, int]:
        found = digest(path, algorithm)
        sizes.append(found[1])
        return found

    monkeypatch.setattr(batch_rows, "digest_of", read_again)
    monkeypatch.setattr(resume, "digest_of", read_again)
    yield sizes


@pytest.mark.parametrize("algorithm", ["none", "sha256", "blake2b"])
def test_every_byte_is_read_once(tmp_path: Path, algorithm: str, scanned_bytes: list[int]) -> None:
    """By verification, digests, comparison and the search for losses together."""
    evidence = tmp_path / "evidence"
    large_log(evidence / "broker-1", 12 << 20)
    shutil.copytree(evidence / "broker-1", evidence / "broker-2")
    (evidence / "broker-2" / "meta.properties").write_text("version=0\nbroker.id=2\n")
    size = sum(path.stat().st_size for path in evidence.rglob("*.log"))
    kctl("audit", "run", evidence, "--out", tmp_path / "out", "--jobs", 1, "--digests", algorithm)
    assert size <= sum(scanned_bytes) <= 1.02 * size


def answers(evidence: Path, out: Path, *options: object) -> dict[str, list[str]]:
    """The rows of every table that an audit writes."""
    kctl("audit", "run", evidence, "--out", out, "--digests", "none", "--overwrite", *options)
    tables = {path.name: pq.read_table(path) for path in out.iterdir() if path.is_dir()}
    return {name: sorted(map(repr, table.to_pylist())) for name, table in tables.items()}


def hold_answers(evidence: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: object) -> None:
    told = answers(evidence, tmp_path / "out", *options)
    with monkeypatch.context() as patch:
        patch.setattr(ScanNotes, "by_folder", lambda notes: {})  # every log is read anew
        assert answers(evidence, tmp_path / "out", *options) == told


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_the_scan_saw_compares_as_if_it_were_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    evidence = damaged(recording("incidents/diverge-2.8"), tmp_path / "evidence", jobs)
    hold_answers(evidence, tmp_path, monkeypatch, "--jobs", jobs)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*recordings("segments"), *recordings("incidents")])
def test_what_the_scan_saw_of_every_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Sound and damaged logs; lines of brokers are not read, since they are not scanned."""
    evidence = damaged(recording(name), tmp_path / "evidence", sum(name.encode()), one_of=3)
    for logs in (*evidence.glob("**/logs"), *evidence.glob("**/expected")):
        shutil.rmtree(logs)
    hold_answers(evidence, tmp_path, monkeypatch, "--jobs", 1)
