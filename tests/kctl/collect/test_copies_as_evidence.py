"""A copy as evidence: what its manifest says was cut off counts as not examined, and never as more than that."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.evidence.manifest import MANIFEST
from tests.conftest import Ran, recording, rows, unchanged

BROKER, TOPIC = 1, "accounts-0"


def lines_of(copy: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (copy / MANIFEST).read_bytes().splitlines()]


def write(copy: Path, lines: list[dict[str, Any]]) -> None:
    (copy / MANIFEST).write_bytes(
        b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    )


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """A copy of a cluster that is sound."""
    copy = tmp_path / "copy"
    source = recording("incidents/hwloss-1.1") / "moments" / "after"
    assert rows("collect", "--to", copy, source).status == 0
    yield copy


def cut(copy: Path, *, reached: bool = True) -> str:
    """End the copy in the midst of a partition of one broker."""
    path = next(
        line["path"] for line in lines_of(copy)
        if line["kind"] == "planned" and f"broker-{BROKER}/" in line["path"] and line["path"].endswith(TOPIC)
    )  # fmt: skip
    lines = [line for line in lines_of(copy) if not (line["kind"] == "whole" and line["path"] == path)]
    for line in lines:
        if line["kind"] == "source":
            line["incomplete"] = "the connection ended"
    write(copy, lines)
    if reached:
        (log,) = (copy / path).glob("*.log")
        log.chmod(0o600)
        log.write_bytes(log.read_bytes()[:-40])
    else:
        shutil.rmtree(copy / path)
    return path


def judgements(ran: Ran, question: str) -> list[dict[str, Any]]:
    topic, _, number = TOPIC.rpartition("-")
    return [
        row for row in ran.of("judgement")
        if row["question"] == question and (row["topic"], row["partition"]) == (topic, int(number))
    ]  # fmt: skip


def test_a_whole_copy_has_nothing_to_say_of_its_manifest(copy: Path, tmp_path: Path) -> None:
    with unchanged(copy):
        ran = rows("audit", "run", copy, "--out", tmp_path / "report")
    assert not [code for code in ran.codes() if "cut-off" in code or "manifest" in code or "reached" in code]


@pytest.mark.parametrize("reached", [True, False], ids=["in part", "not at all"])
def test_a_partition_that_was_cut_off_is_not_examined_and_its_verdicts_say_why(
    copy: Path, reached: bool, tmp_path: Path
) -> None:
    path = cut(copy, reached=reached)
    with unchanged(copy):
        ran = rows("audit", "run", copy, "--out", tmp_path / "report")
    assert ran.codes("error", "warning") == []
    found = next(row for row in ran.of("finding") if row["code"] == "evidence-cut-off")
    assert (found["file"], found["broker_id"]) == (path, BROKER)
    assert "the connection ended" in found["message"]
    (integrity,) = [row for row in judgements(ran, "integrity") if row["broker_id"] == BROKER]
    assert integrity["verdict"] == "unreadable"
    assert integrity["missing"][0]["why"] == "the copy was cut off"
    assert ran.status == 3
    for question in ("divergence", "loss"):
        for judgement in judgements(ran, question):
            whys = {part["why"] for part in judgement["missing"] if part["broker_id"] == BROKER}
            assert whys <= {"the copy was cut off"}, judgement
    compared = rows("replica", "compare", copy)
    missing = [part for row in judgements(compared, "divergence") for part in row["missing"]]
    assert missing or judgements(compared, "divergence")


def test_brokers_are_not_taken_as_all_where_a_copy_was_cut_off(copy: Path) -> None:
    """Without znodes the brokers in the evidence count as all, but not for a partition whose copy is missing in part."""
    for export in copy.glob("znodes*"):
        export.unlink()
    before = {row["verdict"] for row in judgements(rows("replica", "compare", copy), "divergence")}
    assert before == {"sound"}
    cut(copy)
    (judgement,) = judgements(rows("replica", "compare", copy), "divergence")
    assert judgement["verdict"] == "could_not_judge"


def test_a_source_that_was_not_reached_is_named(copy: Path) -> None:
    lines = lines_of(copy)
    line = {"kind": "source", "source": "ssh://kafka4/data", "broker_ids": [], "started_at": 1, "ended_at": 2}
    write(copy, [*lines[:-1], {**line, "files": 0, "bytes": 0, "incomplete": "no route to host"}, lines[-1]])
    ran = rows("segment", "verify", copy)
    (found,) = [row for row in ran.of("finding") if row["code"] == "evidence-not-reached"]
    assert "ssh://kafka4/data" in found["message"] and "no route to host" in found["message"]


def test_a_manifest_that_cannot_be_read_is_a_warning(copy: Path) -> None:
    lines = (copy / MANIFEST).read_bytes().splitlines(keepends=True)
    (copy / MANIFEST).write_bytes(b"".join([*lines[:3], b"{}\n", *lines[3:]]))
    assert "manifest-malformed" in rows("segment", "verify", copy).codes("warning")


def test_a_file_of_that_name_that_is_no_manifest_is_nothing(copy: Path) -> None:
    (copy / MANIFEST).write_text('{"a": 1}\n')
    assert not [code for code in rows("segment", "verify", copy).codes() if "manifest" in code]


def test_what_was_left_out_is_told_with_the_first_of_it(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(recording("incidents/hwloss-1.1") / "moments" / "after" / "broker-1" / "data", source)
    (source / "linked-0").symlink_to("/tmp")
    assert rows("collect", "--to", tmp_path / "copy", source).status == 0
    (found,) = [
        r for r in rows("segment", "verify", tmp_path / "copy").of("finding") if "left-out" in r["code"]
    ]
    assert "symbolic link" in found["message"] and "linked-0" in found["message"]


# --- clocks -------------------------------------------------------------------------------------------


def measured(copy: Path, offsets: dict[int, int]) -> Ran:
    """The timeline of the copy where the clocks of these brokers were measured."""
    lines = lines_of(copy)
    sources = [
        {
            "kind": "source", "source": f"ssh://kafka{broker}/logs", "broker_ids": [broker], "started_at": 1, "ended_at": 2,
            "files": 1, "bytes": 1, "clock_offset_ms": offset,
        }
        for broker, offset in offsets.items()
    ]  # fmt: skip
    write(copy, [*lines[:-1], *sources, lines[-1]])
    return rows("state-log", "timeline", copy)


STARTED = "[2026-11-21 13:00:0{n},000] INFO [KafkaServer id={n}] started (kafka.server.KafkaServer)\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A copy of logs of three brokers that name no one else."""
    for number in (1, 2, 3):
        folder = tmp_path / "hosts" / f"broker-{number}" / "logs"
        folder.mkdir(parents=True)
        (folder / "server.log").write_text(STARTED.format(n=number))
    assert rows("collect", "--to", tmp_path / "copy", tmp_path / "hosts").status == 0
    return tmp_path / "copy"


@pytest.mark.parametrize(
    ("offsets", "corrected"),
    [
        ({1: 10, 2: 65_000, 3: -20}, {2}),
        ({1: 65_000, 2: 65_010, 3: 64_990}, set()),  # the copying machine is off
        ({1: 10, 2: 65_000}, set()),  # one was not measured
        ({1: 900, 2: -900, 3: 0}, set()),
    ],
)
def test_a_clock_that_was_measured_corrects_the_times_of_its_broker(
    offsets: dict[int, int], corrected: set[int], logs: Path
) -> None:
    ran = measured(logs, offsets)
    found = [row for row in ran.of("finding") if row["code"] == "log-clock-measured"]
    assert {row["broker_id"] for row in found} == corrected
    if corrected:
        assert "65.0 s ahead" in found[0]["message"]
