"""Logs cut into parts give, row for row, what they give whole: recorded ones, and the same damaged."""

from __future__ import annotations

import random
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from formats.log import records
from formats.log.record_batch import Record, write_batch
from kctl.checks import parallel
from kctl.checks.report import CheckOptions
from kctl.evidence.discover import discover
from kctl.model import Progress
from kctl.scan import pool, splits
from kctl.scan.options import Level
from kctl.scan.packed import narrowed, widened
from kctl.scan.source import LocalFile
from kctl.scan.splits import Split
from kctl.verification.verify import verify
from tests.conftest import recording, recordings
from tests.kctl.checks.broken import CLEAN, KILLED, OLD, copy_of

Row = dict[str, object]
NAMES = [*recordings("segments"), *recordings("incidents")]


def found(folder: Path, jobs: int = 1, **options: object) -> list[Row]:
    checks = CheckOptions(**options)  # type: ignore[arg-type]
    return [item.row() for item in verify(discover([folder]), checks, jobs=jobs)]


def cut(monkeypatch: pytest.MonkeyPatch, seed: int, *, lying: float = 0.0, sent: bool = True) -> None:
    """Cut every log anywhere between batches, and now and then where there is none; pack what was read."""

    def cuts(source: LocalFile, hints: object, target: int) -> list[Split]:
        rng = random.Random(f"{seed}{source.size}")
        places = [item.position for item in records.walk(source.read_at(0, source.size))][1:]
        chosen = {place for place in places if rng.random() < 0.4}
        chosen |= {
            rng.randrange(1, source.size) for _ in range(20) if rng.random() < lying and source.size > 1
        }
        edges = [0, *sorted(chosen), source.size]
        return [Split(start, end) for start, end in pairwise(edges)]

    monkeypatch.setattr(parallel, "LARGE", 1)
    monkeypatch.setattr(splits, "plan_splits", cuts)
    if sent:
        monkeypatch.setattr(parallel, "read_part", lambda part: read_part(part._replace(sender=-1)))


read_part = parallel.read_part


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_recordings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = recording(name)
    expected = found(folder)
    cut(monkeypatch, 1)
    assert found(folder) == expected


def damaged(folder: Path, seed: int) -> None:
    """Change, cut and insert bytes of some logs."""
    rng = random.Random(seed)
    for path in sorted(folder.rglob("*.log")):
        data = bytearray(path.read_bytes())
        for _ in range(rng.choice([0, 1, 1, 2, 5])):
            at = rng.randrange(len(data) + 1)
            size = rng.choice([1, 8, 61, 500, 5000])
            match rng.randrange(5):
                case 0:
                    data[at : at + 1] = bytes([rng.randrange(256)])
                case 1:
                    del data[at : at + size]
                case 2:
                    data[at:at] = rng.randbytes(size)
                case 3:
                    data[at : at + size] = bytes(size)
                case 4:  # batches that lie elsewhere too
                    data[at:at] = data[max(0, at - size) : at]
        path.write_bytes(data)


def in_order(rows: list[Row]) -> list[str]:
    """Rows whatever their order: of two findings about a file either may come first."""
    return sorted(map(str, rows))


@pytest.mark.slow
@pytest.mark.parametrize("place", [CLEAN, KILLED, OLD])
@pytest.mark.parametrize("seed", range(4))
def test_damaged_recordings(
    place: tuple[str, str], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_of(place, tmp_path)
    damaged(folder, seed)
    expected = in_order(found(folder))
    for lying in (0.0, 0.3):
        cut(monkeypatch, seed, lying=lying)
        assert in_order(found(folder)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("level", [Level.CRC, Level.RECORDS])
def test_other_processes(level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy_of(CLEAN, tmp_path)
    damaged(folder, 7)
    cut(monkeypatch, 3, sent=False)
    alone = found(folder, level=level)
    assert any(row["kind"] == "finding" for row in alone)
    monkeypatch.setattr(pool, "ALONE_FOR", -1.0)
    assert found(folder, jobs=2, level=level) == alone


@pytest.mark.parametrize("damage", ["crc", "lost"])
def test_a_recovery_cuts_behind_the_batch_that_comes_last(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = []
    for base, count in (
        (0, 10),
        (10, 10),
        (5, 2),
        (3, 2),
        (7, 2),
        (9, 1),
    ):  # back behind what the log has reached
        made = [Record(base + n, 1000 + n, b"k", b"v", (), -1) for n in range(count)]
        batches.append(write_batch(made, base_offset=base))
    bad = bytearray(batches[4])
    bad[slice(-1, None) if damage == "crc" else slice(8, 12)] = b"\xff" * (1 if damage == "crc" else 4)
    log = tmp_path / "orders-0" / f"{0:020d}.log"
    log.parent.mkdir()
    log.write_bytes(b"".join((*batches[:4], bad, batches[5])))
    expected = in_order(found(log.parent))
    assert sum("truncates the log at offset 5 " in row for row in expected) == 1
    for seed in range(8):
        cut(monkeypatch, seed)
        assert in_order(found(log.parent)) == expected


def test_named_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy_of(CLEAN, tmp_path)
    logs = sorted(folder.rglob("*.log"))[:6]
    shutil.copy(logs[0], tmp_path / "evidence.bin")
    files = [*logs, tmp_path / "evidence.bin", folder / "meta.properties"]

    def rows() -> list[Row]:
        return [item.row() for item in verify(discover(files), CheckOptions(), jobs=1)]

    expected = rows()
    cut(monkeypatch, 1)
    assert rows() == expected


class Counted(Progress):
    def __init__(self) -> None:
        self.total, self.steps = 0, list[int]()

    def start(self, what: str, total: int | None, unit: str = "bytes") -> None:
        self.total = total or 0

    def advance(self, amount: int) -> None:
        self.steps.append(amount)


def test_progress_is_that_of_parts_and_adds_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy_of(CLEAN, tmp_path) / "rolled-segs-0"
    cut(monkeypatch, 1)
    progress = Counted()
    items = verify(discover([folder]), CheckOptions(), jobs=1, progress=progress)
    assert len(list(items)) > 0
    assert len(progress.steps) > len(list(folder.glob("*.log")))
    assert sum(progress.steps) == progress.total


def test_a_log_that_goes_away_or_shrinks_behind_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_of(CLEAN, tmp_path) / "rolled-segs-0"
    first, second, third = sorted(folder.glob("*.log"))[:3]
    plan_of = parallel.plan_of

    def planned(task: parallel.Task, options: CheckOptions, **how: bool) -> parallel.TaskPlan | None:
        plan = plan_of(task, options, **how)
        first.unlink()
        with second.open("r+b") as file:
            file.truncate(700)
        with third.open("ab") as file:
            file.write(bytes(50))
        return plan

    cut(monkeypatch, 1)
    monkeypatch.setattr(parallel, "plan_of", planned)
    rows = found(folder)
    codes = [row["code"] for row in rows if row["kind"] == "finding"]
    assert "evidence-vanished" in codes
    sizes = {
        str(row["file"]).rpartition("/")[2]: row["size_in_bytes"] for row in rows if row["kind"] == "file"
    }
    assert sizes[second.name] == 700
    others = [path for path in folder.glob("*.log") if path not in (second, third)]
    assert all(sizes[path.name] == path.stat().st_size for path in others)


def test_packed_columns_are_what_they_were() -> None:
    from formats.log.columns.headers import NAMES as COLUMNS
    from formats.log.columns.headers import PADDING, gather
    from kctl.scan.packed import packed, unpacked
    from kctl.scan.pieces import ScannedPiece

    rng = np.random.default_rng(3)
    for rows in (0, 1, 2, 300):
        data = rng.integers(0, 256, rows * 61 + PADDING + 61, np.uint8)
        data[16::61] = 2
        headers = gather(data, np.arange(rows) * 61)
        headers.crc_valid[:] = rng.random(rows) < 0.5
        headers.base_sequence[:] = -1
        headers.producer_id[: rows // 2] = np.iinfo(np.int64).min
        back = unpacked(packed(ScannedPiece(0, 9, headers, None, {3: 4}, [])))
        for name in COLUMNS:
            before, after = getattr(headers, name), getattr(back.headers, name)
            assert before.dtype == after.dtype
            assert before.tolist() == after.tolist()


@given(
    st.one_of(
        arrays(np.int64, st.integers(0, 20)),
        arrays(np.int32, st.integers(0, 20), elements=st.integers(-3, 300)),
        arrays(np.bool_, st.integers(0, 20)),
    )
)
def test_columns_that_are_noted_are_what_they_were(column: npt.NDArray[Any]) -> None:
    """Also those of bytes without a sound batch, which have none."""
    back = widened(narrowed(column), len(column))
    assert back.dtype == column.dtype and back.tolist() == column.tolist()
