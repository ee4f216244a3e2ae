"""Small logs that are read together give, row for row, what each gives by itself: recorded ones, and the same damaged."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from formats.binary.crc import crc32c
from formats.log.record_batch import Record, write_batch
from formats.log_dir.file_names import FileState
from kctl.audit import batch_rows
from kctl.checks import parallel
from kctl.checks.report import CheckOptions, ReplicaTask, Report
from kctl.evidence.discover import discover
from kctl.findings import Place
from kctl.log.folder import Folder, FolderFile, LogSegment, read_folder
from kctl.scan import together
from kctl.scan.options import Level, ScanOptions
from kctl.scan.pieces import PieceScan
from kctl.scan.source import LocalFile
from kctl.scan.together import ReadTogether
from kctl.verification.verify import verify
from tests.conftest import kctl, recording, recordings

Row = dict[str, object]
NAMES = [*recordings("segments"), *recordings("incidents")]


def found(folder: Path, level: Level = Level.RECORDS) -> list[Row]:
    return [item.row() for item in verify(discover([folder]), CheckOptions(level=level), jobs=1)]


def found_alone(folder: Path, level: Level = Level.RECORDS) -> list[Row]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "LARGEST", 0)
        return found(folder, level)


def logs_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.log"))


@pytest.fixture
def five_logs(tmp_path: Path) -> Path:
    for number in range(5):
        partition = tmp_path / "data" / f"orders-{number}"
        partition.mkdir(parents=True)
        batches = [
            write_batch([Record(at, 1000 + at, None, b"value %d" % at, ())], codec=number % 2 * 4)
            for at in range(20)
        ]
        (partition / f"{0:020d}.log").write_bytes(b"".join(batches))
    return tmp_path / "data"


@pytest.mark.parametrize("name", NAMES)
def test_recorded_logs_give_the_same(name: str) -> None:
    folder = recording(name)
    assert found(folder) == found_alone(folder)


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("seed", range(20))
def test_damaged_logs_give_the_same_and_spare_their_neighbours(
    five_logs: Path, seed: int, level: Level
) -> None:
    rng = random.Random(seed)
    for log in rng.sample(logs_of(five_logs), 2):
        data = bytearray(log.read_bytes())
        what = rng.randrange(4)
        if what == 0:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif what == 1:
            del data[rng.randrange(len(data)) :]
        elif what == 2:
            data += bytes(rng.randrange(1, 500))
        else:
            at = rng.randrange(len(data) - 100)
            data[at : at + 100] = rng.randbytes(100)
        log.write_bytes(data)
    assert found(five_logs, level) == found_alone(five_logs, level)


@pytest.mark.parametrize("seed", range(60))
def test_what_headers_say_of_themselves_gives_the_same(five_logs: Path, seed: int) -> None:
    """A byte of a header is another, and the CRC is right all the same."""
    rng = random.Random(seed)
    log = rng.choice(logs_of(five_logs))
    data = bytearray(log.read_bytes())
    at = 0
    for _ in range(rng.randrange(20)):
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    position = at + 21 + seed % 40
    data[position] ^= rng.choice((0x01, 0x08, 0x10, 0x20, 0x80, 0xFF))
    data[at + 17 : at + 21] = crc32c(bytes(data[at + 21 : end])).to_bytes(4, "big")
    log.write_bytes(data)
    assert found(five_logs) == found_alone(five_logs)


class Anywhere(ScanOptions, frozen=True, kw_only=True):
    """Options that do not say which file it is."""

    def __getattribute__(self, name: str) -> object:
        assert name not in ("place", "base_offset", "is_compacted", "last_offset"), name
        return super().__getattribute__(name)


def test_what_is_checked_for_several_logs_at_once_does_not_depend_on_the_file(five_logs: Path) -> None:
    with closing(ReadTogether(logs_of(five_logs), Anywhere())) as read:
        source = read.source_of(logs_of(five_logs)[0])
        assert source is not None
        source.close()


def test_a_batch_that_is_too_large_once_decompressed_gives_the_same(five_logs: Path) -> None:
    log = logs_of(five_logs)[1]
    log.write_bytes(write_batch([Record(0, 1000, None, bytes(5000), ())], codec=4))
    options = CheckOptions(max_decompressed_bytes=2000)

    def rows() -> list[Row]:
        return [item.row() for item in verify(discover([five_logs]), options, jobs=1)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "LARGEST", 0)
        alone = rows()
    assert rows() == alone
    assert "batch-not-examined" in [row.get("code") for row in alone]


def test_a_sound_log_has_the_pieces_of_its_own_scan_whatever_lies_beside_it(five_logs: Path) -> None:
    logs = logs_of(five_logs)
    logs[1].write_bytes(logs[1].read_bytes()[:-3])
    logs[3].unlink()
    with closing(ReadTogether(logs, ScanOptions())) as read:
        for number, log in enumerate(logs):
            source = read.source_of(log)
            assert (source is not None) == (number in (0, 2, 4))
            if source is None:
                continue
            alone = [*PieceScan(LocalFile(log), ScanOptions())]
            pieces = read.pieces(log, source, ScanOptions())
            source.close()
            assert pieces is not None
            for one, other in zip(pieces, alone, strict=True):
                assert (one.position, one.end) == (other.position, other.end)
                for column in one.headers.__struct_fields__:
                    assert getattr(one.headers, column).tolist() == getattr(other.headers, column).tolist()


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_folder_of_a_store_is_work_of_its_own(
    five_logs: Path, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    monkeypatch.setattr(parallel, "mirror_of", lambda path: object() if is_stored else None)
    listed = [
        parallel.ListedFolder(ReplicaTask(log.parent, Place()), read_folder(log.parent))
        for log in logs_of(five_logs)
    ]
    sizes = [
        len(item.folders) for item in parallel.together(listed) if isinstance(item, parallel.SmallFolders)
    ]
    assert sizes == ([1] * 5 if is_stored else [5])


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--digests", "none"), ("--resume",)], ids=str)
def test_an_audit_reads_small_logs_together_unless_it_keeps_what_is_finished(
    five_logs: Path, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are the same. What is kept of a folder is of the files that it had at its turn, not before."""
    logs_of(five_logs)[2].write_bytes(logs_of(five_logs)[2].read_bytes()[:-3])
    groups: list[int] = []
    checked_together = parallel._checked_together

    def counted(folders: Sequence[parallel.ListedFolder], *more: Any) -> list[Report]:
        groups.append(len(folders))
        return checked_together(folders, *more)

    monkeypatch.setattr(parallel, "_checked_together", counted)

    def tables(name: str) -> dict[str, list[Row]]:
        ran = kctl("audit", "run", five_logs, "--out", tmp_path / name, "--jobs", "1", *options)
        assert ran.status == 5
        return {
            table: pq.read_table(tmp_path / name / table).to_pylist()
            for table in ("files", "segments", "batches", "findings", "losses", "verdicts")
        }

    found = tables("together")
    assert groups == ([] if "--resume" in options else [5])
    monkeypatch.setattr(parallel, "LARGEST", 0)
    assert tables("alone") == found
    assert len(found["batches"]) == 99 and found["findings"]


@pytest.mark.slow
def test_folders_that_are_checked_together_have_one_file_of_batches(
    five_logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows do not depend on how many processes there are, nor on which folders are checked together."""
    monkeypatch.setattr(batch_rows, "OWN_PART", 30)
    logs_of(five_logs)[2].write_bytes(logs_of(five_logs)[2].read_bytes()[:-3])

    def files(name: str, *options: str) -> dict[str, list[Row]]:
        out = tmp_path / name
        assert kctl("audit", "run", five_logs, "--out", out, *options).status == 5
        return {file.name: pq.read_table(file).to_pylist() for file in (out / "batches").iterdir()}

    one = files("one", "--jobs", "1")
    assert [len(rows) for rows in one.values()] == [99]
    assert files("two", "--jobs", "2") == one
    monkeypatch.setattr(parallel, "MOST", 2)
    pairs = [files("pairs of one", "--jobs", "1"), files("pairs of two", "--jobs", "2")]
    alone = files("alone", "--resume")
    assert pairs[0] == pairs[1] and len(pairs[0]) == 3 and list(alone) == ["part-00000.parquet"]

    def sorted_rows(found: dict[str, list[Row]]) -> list[Row]:
        return sorted(chain.from_iterable(found.values()), key=lambda row: (row["file"], row["position"]))

    assert sorted_rows(pairs[0]) == sorted_rows(alone) == sorted_rows(one)


def test_the_more_folders_are_left_the_more_are_work_for_one_process(five_logs: Path) -> None:
    log = logs_of(five_logs)[0]
    listed = parallel.ListedFolder(
        ReplicaTask(log.parent, Place()),
        Folder(log.parent, [LogSegment(0, FileState.LIVE, {".log": FolderFile(log, 900_000)})]),
    )
    groups = [*parallel.together([listed] * 1000, 1000)]
    sizes = [len(group.folders) for group in groups if isinstance(group, parallel.SmallFolders)]
    assert sum(sizes) == 1000 and sizes[:3] == [1, 2, 4] and sizes[-3:] == [1, 1, 1]
    assert max(sizes) == together.MOST


def test_no_more_logs_are_open_at_once_than_may_be(five_logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "MOST", 2)
    logs = logs_of(five_logs)
    opened: list[Path] = []

    def open_log(path: Path) -> together.LogInMemory:
        opened.append(path)
        return together.LogInMemory(path)

    monkeypatch.setattr(together, "_opened", open_log)
    with closing(ReadTogether(logs, ScanOptions())) as read:
        for log, so_far in zip(logs[1:], (2, 2, 4, 4), strict=True):  # the first is not asked for
            source = read.source_of(log)
            assert source is not None and len(opened) == so_far
            source.close()
        assert read.source_of(logs[0]) is None


def test_a_log_that_grows_after_it_was_read_is_a_finding(five_logs: Path) -> None:
    logs = logs_of(five_logs)
    with closing(ReadTogether(logs, ScanOptions())) as read:
        source = read.source_of(logs[0])
        assert source is not None
        size = source.size
        with logs[0].open("ab") as file:
            file.write(b"more")
        assert (source.size, source.current_size()) == (size, size + 4)
        source.close()


def test_links_and_folders_in_the_place_of_a_log_are_not_read(five_logs: Path, tmp_path: Path) -> None:
    logs = logs_of(five_logs)
    shutil.move(logs[0], tmp_path / "elsewhere")
    logs[0].symlink_to(tmp_path / "elsewhere")
    with closing(ReadTogether(logs, ScanOptions())) as read:
        assert read.source_of(logs[0]) is None
        source = read.source_of(logs[1])
        assert source is not None
        source.close()
