"""An audit that cuts a partition folder writes what one task writes: recorded logs, and the same damaged."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpus import batches, shape_of, write_index
from formats.log import records
from kctl.audit import slices
from kctl.checks import parallel
from kctl.checks.report import ReadSlice, ReplicaTask
from kctl.findings import Finding
from kctl.scan import pool, splits
from kctl.scan.source import LocalFile
from kctl.scan.splits import Split
from tests.audit_rows import equal_audits, table_rows
from tests.conftest import kctl, recording, recordings
from tests.kctl.checks.broken import CLEAN, KILLED, OLD, copy_of
from tests.kctl.checks.test_parallel import damaged

pytestmark = pytest.mark.slow  # audits of whole recordings by the dozen

MOST = 12
IN_EVERY_RUN = {"segments/0.8.2.2", "segments/0.11.0.3", "segments/3.9.1-kraft", "incidents/unclean-2.8"}
"""Of each kind and age; the others are for the matrix."""


def audit(folder: Path, out: Path, *options: str, jobs: int = 1) -> Path:
    ran = kctl("audit", "run", folder, "--out", out, "--jobs", str(jobs), *options)
    assert ran.status in (0, 3, 5), ran.err  # of some recordings a part cannot be done
    return out


def cut(patch: pytest.MonkeyPatch, seed: int = 0, *, lying: float = 0.0) -> list[ReadSlice]:
    """Cut every log anywhere between batches, and now and then where there is none; gives what was read."""
    seen: list[ReadSlice] = []

    def cuts(source: LocalFile, hints: object, target: int) -> list[Split]:
        rng = random.Random(f"{seed}{source.size}")
        places = [item.position for item in records.walk(source.read_at(0, source.size))][1:]
        chosen = set(rng.sample(places, min(len(places), rng.randrange(MOST))))
        if rng.random() < lying:
            chosen |= {rng.randrange(1, source.size) for _ in range(3) if source.size > 1}
        edges = [0, *sorted(chosen)[: MOST - 1], source.size]
        return [Split(start, end) for start, end in pairwise(edges)]

    def ordered(
        function: Callable[[Any], Any], items: Iterable[Any], *, jobs: pool.Jobs, at_once: bool
    ) -> Iterator[Any]:
        assert at_once and jobs == 2
        for item in items:
            seen.append(function(item))
            yield seen[-1]

    patch.setattr(slices, "LARGE", 1)
    patch.setattr(slices, "OF_A_CORE", 10**9)
    patch.setattr(slices, "most_splits", lambda size, target: MOST)
    patch.setattr(splits, "plan_splits", cuts)
    patch.setattr(slices, "ordered", ordered)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=() if one in IN_EVERY_RUN else pytest.mark.matrix)
        for kind in ("segments", "incidents")
        for one in recordings(kind)
    ],
)
def test_recordings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = audit(recording(name), tmp_path / "whole")
    seen = cut(monkeypatch)
    equal_audits(whole, audit(recording(name), tmp_path / "cut", jobs=2))
    assert sum(bool(one.file) for one in seen) > 5
    assert not list((tmp_path / "cut").rglob("*.slice"))


@pytest.mark.slow
@pytest.mark.parametrize("place", [CLEAN, KILLED, OLD])
@pytest.mark.parametrize("seed", range(3))
def test_damaged_recordings(
    place: tuple[str, str], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_of(place, tmp_path)
    damaged(folder, seed)
    whole = audit(folder, tmp_path / "whole")
    for number, lying in enumerate((0.0, 0.7)):
        cut(monkeypatch, seed, lying=lying)
        equal_audits(whole, audit(folder, tmp_path / f"cut{number}", jobs=2))


def log_of(folder: Path) -> tuple[Path, list[int]]:
    """A log with an index, and where its batches begin."""
    made = batches(shape_of("lz4-10x100"))[: 1 << 20]
    starts = [item.position for item in records.walk(made)]
    made = made[: starts[-1]]
    log = folder / "orders-0" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(made)
    write_index(log, made)
    return log, starts[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("shift", [-61, -1, 0, 8, 16, 17, 21, 61])
@pytest.mark.parametrize("harm", ["changed", "lost", "more", "zeros"])
def test_damage_on_and_beside_a_border(
    shift: int, harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, starts = log_of(tmp_path / "evidence")
    border = starts[len(starts) // 2]
    data, at = bytearray(log.read_bytes()), border + shift
    if harm == "changed":
        data[at] ^= 0x55
    elif harm == "lost":
        del data[at : at + 5]
    elif harm == "more":
        data[at:at] = b"\x07" * 5
    else:
        data[at : at + 300] = bytes(300)
    log.write_bytes(data)
    whole = audit(tmp_path / "evidence", tmp_path / "whole")
    assert table_rows(whole, "findings")
    cut(monkeypatch)
    for name, cuts in (
        ("there", [border]), ("near", [border - 30]), ("around", [starts[3], border, at + 200]),
    ):  # fmt: skip
        edges = [0, *sorted(set(cuts)), len(data)]
        planned = [Split(start, end) for start, end in pairwise(edges)]
        monkeypatch.setattr(splits, "plan_splits", lambda *_, planned=planned: planned)
        equal_audits(whole, audit(tmp_path / "evidence", tmp_path / name, jobs=2))


def test_processes_cut_at_proven_boundaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = log_of(tmp_path / "evidence")
    monkeypatch.setattr(slices, "TARGET", 1 << 17)
    monkeypatch.setattr(slices, "LARGE", 1 << 18)
    read = slices.read_slice
    tasks: list[ReplicaTask] = []

    def before(task: ReplicaTask, folder: Path) -> Any:
        tasks.append(task)
        return read_before(task, folder)

    read_before = slices.read_before
    monkeypatch.setattr("kctl.audit.batch_rows.read_before", before)
    for algorithm in ("sha256", "blake2b"):
        whole = audit(tmp_path / "evidence", tmp_path / f"1{algorithm}", "--digests", algorithm)
        assert not tasks
        equal_audits(
            whole, audit(tmp_path / "evidence", tmp_path / f"2{algorithm}", "--digests", algorithm, jobs=2)
        )
        (task,) = tasks
        found = [one.split for one in task.slices if one.file]
        assert len(found) == 8 and found[-1].end == log.stat().st_size
        tasks.clear()
    assert slices.read_slice is read


@pytest.mark.parametrize("harm", ["", "changed", "cut"])
def test_the_only_large_folder_is_checked_while_it_is_read(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No digest is wanted, so that nobody has to read the log whole. A run that may go on keeps the report at its end."""
    log, starts = log_of(tmp_path / "evidence")
    data = bytearray(log.read_bytes())
    if harm == "changed":
        data[starts[len(starts) // 2] + 70] ^= 0x55
    log.write_bytes(data[: -5 if harm == "cut" else None])
    whole = audit(tmp_path / "evidence", tmp_path / "whole", "--digests", "none")
    monkeypatch.setattr(slices, "LARGE", 1 << 18)
    monkeypatch.setattr(slices, "TARGET", 1 << 17)
    monkeypatch.setattr(parallel, "PART", 1 << 17)
    monkeypatch.setattr(parallel, "LARGE", 1 << 18)
    monkeypatch.setattr(pool, "ALONE_FOR", 0)
    sent: list[int] = []
    planned = parallel.PlannedParts

    def of_parts(parts: list[parallel.LogPart], *more: Any) -> parallel.PlannedParts:
        sent.append(len(parts))
        return planned(parts, *more)

    monkeypatch.setattr(parallel, "PlannedParts", of_parts)
    equal_audits(whole, audit(tmp_path / "evidence", tmp_path / "led", "--digests", "none", jobs=2))
    assert sent == [8]
    kept = audit(tmp_path / "evidence", tmp_path / "kept", "--digests", "none", "--resume", jobs=2)
    equal_audits(whole, kept)
    assert sent == [8]


@pytest.mark.parametrize("change", ["gone", "shorter", "longer", "denied"])
def test_a_log_that_changes_behind_its_slices_is_read_anew(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, starts = log_of(tmp_path / "evidence")
    seen = cut(monkeypatch)
    read_before = slices.read_before

    def changed(task: ReplicaTask, folder: Path) -> Any:
        if change == "gone":
            log.unlink()
        elif change == "denied":
            raise_on_open(monkeypatch, log)
        else:
            os.truncate(log, starts[-1] if change == "shorter" else log.stat().st_size + 7)
        return read_before(task, folder)

    monkeypatch.setattr("kctl.audit.batch_rows.read_before", changed)
    out = audit(tmp_path / "evidence", tmp_path / "cut", jobs=2)
    assert len(seen) > 2
    monkeypatch.setattr(slices, "LARGE", 1 << 40)
    equal_audits(audit(tmp_path / "evidence", tmp_path / "whole"), out)


def raise_on_open(patch: pytest.MonkeyPatch, log: Path) -> None:
    from kctl.checks import segments

    opened = segments.opened_digested

    def refused(path: Path, *more: Any) -> Any:
        if path == log:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *more)

    patch.setattr(segments, "opened_digested", refused)


@pytest.mark.parametrize(
    "harm",
    [
        lambda data: data[:-9],
        lambda data: b"\0" * len(data),
        lambda data: b"\xff" * len(data),
        lambda data: data.replace(b"<i8", b"<i3"),
    ],
)
def test_files_of_slices_are_as_they_were_written(
    harm: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_of(tmp_path / "evidence")
    cut(monkeypatch)
    read_before = slices.read_before

    def spoilt(task: ReplicaTask, folder: Path) -> Any:
        file = folder / next(one.file for one in task.slices if one.file)
        data = file.read_bytes()
        file.write_bytes(harm(data))
        return read_before(task, folder)

    monkeypatch.setattr("kctl.audit.batch_rows.read_before", spoilt)
    ran = kctl("audit", "run", tmp_path / "evidence", "--out", tmp_path / "out", "--jobs", "2")
    assert ran.status == 3
    assert ".slice differs from what its task wrote" in ran.err
    assert "Traceback" not in ran.err


def test_findings_and_headers_come_back_as_they_were(tmp_path: Path) -> None:
    from formats.log.columns.headers import NAMES
    from kctl.checks.parallel import LogPart, pieces_of
    from kctl.scan.options import ScanOptions

    folder = copy_of(OLD, tmp_path)
    damaged(folder, 5)
    seen = 0
    for log in sorted(folder.rglob("*.log")):
        part = LogPart(log, ScanOptions(), log.stat().st_size, splits.NO_HINTS, -1)
        before = list(pieces_of(part))
        slices._write(tmp_path / "one.slice", before)
        size = (tmp_path / "one.slice").stat().st_size
        after = list(slices._pieces_in(tmp_path / "one.slice", size))
        (tmp_path / "one.slice").unlink()
        for one, other in zip(before, after, strict=True):
            for a, b in ((one.headers, other.headers), (one.stored, other.stored)):
                assert (a is None) == (b is None)
                for name in NAMES if a is not None else ():
                    assert getattr(a, name).tolist() == getattr(b, name).tolist()
                    assert getattr(a, name).dtype == getattr(b, name).dtype
            assert (one.position, one.end, one.damage) == (other.position, other.end, other.damage)
            assert one.computed == other.computed and one.findings == other.findings
            seen += sum(isinstance(finding, Finding) for _, finding in other.findings)
    assert seen
