"""A leader-epoch-checkpoint against the batches of its log, case by case."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.in_memory import InMemory
from formats.log.record_batch import Record, write_batch
from kctl.checks.epochs import EpochRun, EpochRuns, check_epochs
from kctl.checks.report import FileReport, LogFacts, ReplicaTask
from kctl.findings import Place, Severity
from kctl.scan.outliers import MarkedChunk
from kctl.scan.segment import scan_segment

MISSING, WRONG, LATE, BEYOND = (
    "epoch-entry-missing",
    "epoch-entry-wrong",
    "epochs-begin-late",
    "epoch-entry-beyond-end",
)
ORDER, BATCH = "epochs-not-monotonic", "batch-leader-epoch-wrong"
TWO = [(0, 0, 9), (2, 10, 19)]  # epoch, first and last offset of its batches, their number where it is not 3
AHEAD = 1 << 20


def checked(
    tmp_path: Path, runs: list[tuple[int, ...]], entries: list[tuple[int, int]], **facts: int | bool | None
) -> FileReport:
    path = tmp_path / "leader-epoch-checkpoint"
    lines = "".join(f"{epoch} {start}\n" for epoch, start in entries)
    path.write_text(f"0\n{len(entries)}\n{lines}")
    report = FileReport(Place(file=path.name), "epochs", path.stat().st_size)
    held = [EpochRun(epoch, base, last, batches=(*count, 3)[0]) for epoch, base, last, *count in runs]
    task = ReplicaTask(
        tmp_path,
        Place(file="."),
        log_start_offset=int(facts.get("start") or 0),
        is_clean=bool(facts.get("clean")),
    )
    log = LogFacts(
        first_base_offset=facts.get("first"),
        segment_bases=frozenset({int(facts["base"] or 0)} if "base" in facts else ()),
        log_end_offset=facts.get("end", 20),
        is_whole=bool(facts.get("whole", True)),
        metadata_snapshots=frozenset({int(facts["snapshot"] or 0)} if "snapshot" in facts else ()),
    )
    check_epochs(report, path, EpochRuns(held), task, log)
    return report


@pytest.mark.parametrize(
    ("runs", "entries", "facts", "expected"),
    [
        (TWO, [(0, 0), (2, 10)], {}, []),
        (TWO, [(0, 0), (1, 10), (2, 10)], {}, [ORDER]),
        ([(0, 0, 9), (2, 12, 19)], [(0, 0), (2, 10)], {}, []),  # the leader's first batch was compacted away
        (TWO, [(0, 0)], {}, [MISSING]),
        (TWO, [(2, 10)], {}, [MISSING]),
        (TWO, [(2, 10)], {"snapshot": 10}, []),  # a metadata log begins at a snapshot
        (TWO, [(2, 10)], {"snapshot": 9}, [MISSING]),
        (TWO, [(0, 0), (2, 12)], {"snapshot": 12}, [WRONG]),
        (TWO, [(0, 0), (2, 11)], {}, [WRONG]),  # the first batch of the epoch is before its entry
        (TWO, [(0, 0), (2, 8)], {}, [WRONG]),  # the last one of the epoch before is behind it
        ([(0, 0, 9)], [(0, 0), (2, 5)], {}, [WRONG]),
        # the log starts later: by a checkpoint, by the name of its first segment, or by the first entry
        (TWO, [(2, 10)], {"start": 10}, []),
        (TWO, [(2, 10)], {"first": 10}, []),
        (TWO, [(2, 10)], {"start": 9}, [MISSING]),  # the last offset of the earlier epoch is still in the log
        (TWO, [(0, 5), (2, 10)], {"start": 5}, []),
        (TWO, [(0, 5), (2, 10)], {"first": 5}, []),
        (TWO, [(0, 5), (2, 10)], {}, [LATE]),
        (TWO, [(2, 12)], {}, [LATE]),
        (TWO, [(2, 10)], {}, [MISSING]),  # the entries before it were lost
        (TWO, [(2, 10)], {"base": 10}, [LATE]),  # or retention took the segments before it
        (TWO, [(2, 10)], {"base": 9}, [MISSING]),
        ([(0, 0, 9), (2, 10, 14), (3, 15, 19)], [(2, 12), (3, 15)], {}, [LATE]),
        ([(0, 0, 9), (2, 12, 19)], [(2, 10)], {}, [LATE]),
        ([(0, 0, 9), (2, 12, 19)], [(2, 10)], {"clean": True}, [MISSING]),  # a clean stop wrote the start
        ([(2, 0, 9), (3, 10, 19)], [(2, 10)], {}, [LATE, MISSING]),
        # a batch alone in an epoch that its neighbours go on over is wrong itself, not the file
        ([(0, 0, 9), (5, 10, 11, 1), (6, 12, 19)], [(0, 0), (6, 12)], {}, [BATCH]),
        ([(0, 0, 9), (5, 10, 11, 2), (6, 12, 19)], [(0, 0), (6, 12)], {}, [MISSING]),
        ([(0, 0, 9), (5, 10, 11, 1), (6, 12, 19)], [(0, 0), (6, 10)], {}, [BATCH]),
        ([(0, 0, 9), (5, 10, 19, 1)], [(0, 0)], {}, [MISSING]),  # the last epoch, and near: the file may be old
        ([(0, 0, 9), (AHEAD, 10, 19, 1)], [(0, 0)], {}, [BATCH]),
        ([(0, 0, 9), (AHEAD, 10, 11, 1), (0, 12, 19)], [(0, 0)], {}, []),  # the order of the batches has said it
        # entries beyond the end
        (TWO, [(0, 0), (2, 10), (3, 20)], {}, []),
        (TWO, [(0, 0), (2, 10), (3, 21)], {}, [BEYOND]),
        (TWO, [(0, 0), (2, 10), (3, 21)], {"whole": False}, []),
        (TWO, [(0, 0), (2, 10), (3, 21)], {"end": None}, []),
        (TWO, [(2, 0), (2, 10)], {}, [MISSING, ORDER]),
        (TWO, [(0, 0), (2, 10), (3, 10)], {}, [MISSING, ORDER]),
    ],
)  # fmt: skip
def test_entries(
    runs: list[tuple[int, ...]],
    entries: list[tuple[int, int]],
    facts: dict[str, int | bool | None],
    expected: list[str],
    tmp_path: Path,
) -> None:
    report = checked(tmp_path, runs, entries, **facts)
    assert sorted(finding.code for finding in report.findings) == sorted(expected)


@pytest.mark.parametrize(
    ("marker", "severity"),
    [("", Severity.WARNING), ('{"version":0,"brokerEpoch":25}', Severity.INFO), (None, Severity.INFO)],
)
def test_an_entry_beyond_the_end_is_no_wonder_after_a_crash(
    marker: str | None, severity: Severity, tmp_path: Path
) -> None:
    """Nor after the shutdown of a broker since 3.8, which drops what it has not flushed of a truncation."""
    if marker is not None:
        (tmp_path / ".kafka_cleanshutdown").write_text(marker)
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (finding,) = checked(folder, TWO, [(0, 0), (2, 10), (3, 30)], clean=marker is not None).findings
    assert finding.severity is severity


def batch(base: int, epoch: int) -> bytes:
    return write_batch(
        [Record(base, 5, None, b"v"), Record(base + 1, 5, None, b"v")], partition_leader_epoch=epoch
    )


def fed(*logs: bytes) -> EpochRuns:
    runs = EpochRuns()
    for log in logs:
        for chunk in scan_segment(InMemory(log)):
            runs.feed(MarkedChunk(chunk, chunk.headers, ()))
    return runs


def test_batches_of_one_epoch_are_one_run_also_over_segments() -> None:
    harmed = bytearray(batch(4, 7))
    harmed[-1] ^= 1
    none = batch(6, -1)
    runs = fed(batch(0, 1) + batch(2, 1) + bytes(harmed) + none, batch(8, 1) + batch(10, 3))
    assert [(r.epoch, r.base_offset, r.last_offset, r.batches) for r in runs.runs] == [
        (1, 0, 9, 3),
        (3, 10, 11, 1),
    ]
    assert [run.first.base_offset for run in runs.runs] == [0, 10]


def test_epochs_that_go_back_are_no_entries() -> None:
    runs = fed(batch(0, 1) + batch(2, 4) + batch(4, 2) + batch(6, 4) + batch(8, 5))
    assert [tuple(entry) for entry in runs.entries] == [(1, 0), (4, 2), (5, 8)]
    assert np.diff([run.base_offset for run in runs.runs]).min() > 0
