"""Segments among themselves: their order, and what a start makes of damage and of torn ends."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from formats.log.record_batch import Record, write_batch
from formats.log_dir.file_names import FileState, FolderKind
from kctl.checks.report import ReplicaTask, Report
from kctl.checks.segments import ScannedLog, check_order, check_start_up, check_tails
from kctl.findings import Finding, Place
from kctl.log.folder import LogSegment
from tests.conftest import rows
from tests.kctl.checks.test_batches import batch


def logs(*segments: tuple[int, int | None], **last: Any) -> list[tuple[LogSegment, ScannedLog]]:
    """Segments [base offset, next offset), sound but for what is said of the last."""
    found = [(LogSegment(base, FileState.LIVE, {}), ScannedLog(next_offset=end)) for base, end in segments]
    for name, value in last.items():
        setattr(found[-1][1], name, value)
    return found


def task(**about: Any) -> ReplicaTask:
    return ReplicaTask(Path("t-0"), Place(), **about)


def at(name: str) -> Place:
    return Place(file=name)


def said(findings: list[Finding]) -> list[tuple[str, str | None, int | None, int | None]]:
    return [(f.code, f.place.file, f.place.base_offset, f.place.last_offset) for f in findings]


def log(base: int) -> str:
    return f"{base:020d}.log"


@pytest.mark.parametrize(
    ("segments", "is_compacted", "expected"),
    [
        ([(0, 10), (10, 20), (20, None)], False, []),
        ([(0, 10), (9, 20)], False, [("segment-overlaps", log(9), 9, 9)]),
        ([(0, 30), (10, 20), (25, 40)], False, [("segment-overlaps", log(10), 10, 29), ("segment-overlaps", log(25), 25, 29)]),
        ([(0, 10), (11, 20)], False, [("segment-missing", log(11), 10, 10)]),
        ([(0, 10), (11, 20)], True, [("segment-gap", log(11), 10, 10)]),
        ([(0, None), (11, 20)], False, [("segment-missing", log(11), 0, 10)]),
    ],
)  # fmt: skip
def test_each_segment_begins_where_the_one_before_it_ends(
    segments: list[tuple[int, int | None]], is_compacted: bool, expected: list[Any]
) -> None:
    report = Report()
    check_order(report, logs(*segments), at, "the topic is compacted" if is_compacted else "")
    assert said(report.findings) == expected


@pytest.mark.parametrize(
    ("leaving", "code"),
    [(10, "segment-gap"), (12, "segment-gap"), (0, "segment-missing"), (15, "segment-missing")],
)
def test_a_segment_that_a_broker_was_about_to_delete_is_not_missing(leaving: int, code: str) -> None:
    report = Report()
    check_order(report, logs((0, 10), (15, 20)), at, leaving=[leaving])
    assert said(report.findings) == [(code, log(15), 10, 14)]


@pytest.mark.parametrize(
    ("known", "expected"),
    [({"is_readable": False}, []), ({"bad_position": 7}, [("segment-gap", log(11), 10, 10)])],
)
def test_a_segment_whose_end_is_hidden_is_followed_by_a_gap_at_most(
    known: dict[str, Any], expected: list[Any]
) -> None:
    report = Report()
    check_order(report, [*logs((0, 10), **known), *logs((11, 20))], at)
    assert said(report.findings) == expected


@pytest.mark.parametrize(
    ("about", "code"),
    [
        ({"is_clean": True}, "startup-keeps-damage"),
        ({"recovery_point": 20}, "startup-keeps-damage"),  # where the segment behind begins
        ({"recovery_point": 19}, "startup-recovery-cuts"),
        ({}, "startup-recovery-cuts"),
    ],
)
def test_damage_is_cut_where_a_start_looks_at_it(about: dict[str, Any], code: str) -> None:
    report = Report()
    hurt = logs((0, 10), (10, 20), bad_position=700, bad_offset=14, sound_batches_behind=2)
    behind = logs((20, 30), (30, 45), bad_position=3, bad_offset=31, batches=5, records=15)
    check_start_up(report, [*hurt, *behind], task(**about), at)
    # Behind a cut nothing is left to be said; what is kept does not hide what comes behind it.
    first, *others = report.findings
    assert (first.code, first.place.file, first.place.position) == (code, log(10), 700)
    if code == "startup-recovery-cuts":
        assert not others
        assert (first.place.base_offset, first.place.last_offset) == (14, 44)
        assert "at offset 14" in first.message and "up to offset 45: 7 sound batches" in first.message
    else:
        assert [(f.code, f.place.file) for f in others] == [
            ("startup-keeps-damage" if "is_clean" in about else "startup-recovery-cuts", log(30))
        ]


def test_a_cut_that_takes_no_sound_batch_is_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    sound = write_batch([Record(0, 5, None, b"v")])
    harmed = write_batch([Record(1, 5, None, b"v")])[:-1] + b"w"
    (folder / log(0)).write_bytes(sound + harmed)
    ran = rows("segment", "verify", folder)
    (cut,) = [row for row in ran.of("finding") if row["code"] == "startup-recovery-cuts"]
    assert (cut["severity"], cut["base_offset"]) == ("warning", 1)
    assert f"deletes the bytes from position {len(sound)} on, which hold no sound batch" in cut["message"]
    (folder / log(0)).write_bytes(sound + harmed + write_batch([Record(2, 5, None, b"v")]))
    (cut,) = [
        row
        for row in rows("segment", "verify", folder).of("finding")
        if row["code"] == "startup-recovery-cuts"
    ]
    assert (cut["severity"], "1 sound batch with" in cut["message"]) == ("error", True)


@pytest.mark.parametrize(("base", "code"), [(0, "segment-ends-torn"), (2, "segment-torn-tail")])
@pytest.mark.parametrize("end", [b"", bytes(70)])
def test_an_end_that_is_no_batch_is_said_once(tmp_path: Path, base: int, code: str, end: bytes) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    for at_ in (0, 2):
        whole, torn = (write_batch([Record(offset, 5, None, b"v")]) for offset in (at_, at_ + 1))
        (folder / log(at_)).write_bytes(whole + (end or torn[:-3]) if at_ == base else whole)
    found = [row for row in rows("segment", "verify", folder).of("finding") if row["position"] == 69]
    if end and code == "segment-torn-tail":
        code = "segment-trailing-zeros"
    assert [row["code"] for row in found] == [code]


@pytest.mark.parametrize(
    ("number", "about", "codes"),
    [
        (1, {}, []),
        (1, {"is_clean": True}, ["clean-shutdown-torn"]),
        (0, {}, ["segment-ends-torn"]),
        (0, {"is_clean": True}, ["segment-ends-torn"]),
        (0, {"kind": FolderKind.DELETE}, []),
    ],
)
def test_a_crash_tears_the_last_segment_only(number: int, about: dict[str, Any], codes: list[str]) -> None:
    report, scanned = Report(), logs((0, 10), (10, 20))
    scanned[number][1].tail_position = 123
    check_tails(report, scanned, task(**about), at)
    assert [f.code for f in report.findings] == codes
    assert all(f.place.position == 123 for f in report.findings)


def test_what_lies_behind_the_first_damage_is_counted(tmp_path: Path) -> None:
    batches = [
        write_batch([Record(at + n, 5, None, b"v") for n in range(3)], partition_leader_epoch=0)
        for at in range(0, 18, 3)
    ]
    for harmed in (2, 4):
        batches[harmed] = batches[harmed][:-1] + b"w"
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / log(0)).write_bytes(b"".join(batches))
    ran = rows("segment", "verify", folder)
    (cut,) = [row for row in ran.of("finding") if row["code"] == "startup-recovery-cuts"]
    assert (cut["position"], cut["base_offset"], cut["last_offset"]) == (sum(map(len, batches[:2])), 6, 17)
    assert "2 sound batches with 6 records" in cut["message"]


@pytest.mark.parametrize(
    ("tiered", "code"), [("true", "segments-below-local-log-start"), ("false", "segment-missing")]
)
def test_what_a_follower_of_a_tiered_topic_left_behind(tmp_path: Path, tiered: str, code: str) -> None:
    """It went on from a later local log start, and the segments of before stayed (KAFKA-17020)."""
    folder = tmp_path / "broker-2" / "data"
    partition = folder / "orders-0"
    partition.mkdir(parents=True)
    (folder / "meta.properties").write_text("version=0\nbroker.id=2\n")
    (folder / "cleaner-offset-checkpoint").write_text("0\n0\n")
    for base in (0, 5, 40):
        (partition / f"{base:020}.log").write_bytes(batch(base, records=5))
    config = {"version": 1, "config": {"remote.storage.enable": tiered}}
    state = {"version": 3, "topic_id": "AAAAAAAAAAAAAAAAAAAAAg", "partitions": {"0": [1, 2]}}
    nodes = {"/brokers/ids": {}, "/brokers/topics/orders": state, "/config/topics/orders": config}
    lines = [
        json.dumps({"path": path, "data": base64.b64encode(json.dumps(value).encode()).decode()})
        for path, value in nodes.items()
    ]
    (tmp_path / "znodes.jsonl").write_text("\n".join(lines) + "\n")
    findings = {row["code"]: row for row in rows("segment", "verify", tmp_path).of("finding")}
    assert (
        code in findings and len({"segments-below-local-log-start", "segment-missing"} & findings.keys()) == 1
    )
    assert (findings[code]["base_offset"], findings[code]["last_offset"]) == (10, 39)
    if tiered == "true":
        size = sum((partition / f"{base:020}.log").stat().st_size for base in (0, 5))
        assert f"2 segments below offset 40 ({size} bytes)" in findings[code]["message"]
        assert findings[code]["severity"] == "warning"
