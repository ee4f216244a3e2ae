"""What was done to real clusters, against what kctl says from their disks, znodes and logs alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, recording, recordings, rows, unchanged

INCIDENTS = recordings("incidents")
CAUSES = {
    "unclean": "unclean_election",
    "hwloss": "high_watermark_truncation",
    "diverge": "power_failure_tail",
    "halt": "power_failure_tail",
    "pauses": "zombie_leader",
}


def offsets(ranges: list[list[int]]) -> set[int]:
    return {offset for start, end in ranges for offset in range(start, end)}


def story(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((recording(name) / "story.json").read_text())
    return found


def kind(name: str) -> str:
    return name.removeprefix("incidents/").partition("-")[0]


@pytest.fixture
def scene(tmp_path: Path) -> Any:
    """A copy of an incident without the files that tell the truth; it must not change."""

    def lend(name: str) -> Path:
        folder = tmp_path / Path(name).name
        shutil.copytree(recording(name), folder, symlinks=True)
        (folder / "story.json").unlink()
        for part in ("expected", "tools"):
            shutil.rmtree(folder / part, ignore_errors=True)
        return folder

    return lend


def by_partition(ran: Ran) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in ran.of("loss"):
        found.setdefault(f"{row['topic']}-{row['partition']}", []).append(row)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", INCIDENTS)
def test_loss_is_what_was_lost(name: str, scene: Any) -> None:
    folder = scene(name)
    truth = story(name)["truth"]["acknowledged_loss"]
    lost = {partition: one for partition, one in truth.items() if one.get("offsets")}
    with unchanged(folder):
        ran = rows("replica", "loss", folder)
    found = by_partition(ran)
    assert set(found) == set(lost)
    # There the hosts of the whole ISR lost power: nothing shows that no tail is gone from both copies.
    unproven = name == "incidents/hwloss-1.1"
    assert "replica-tail-unproven" in ran.codes("info") or not unproven
    assert ran.status == (5 if lost else 3 if unproven else 0)
    assert ran.codes("error", "warning") == []
    for partition, expected in lost.items():
        ranges = [[row["from_offset"], row["to_offset"]] for row in found[partition]]
        assert {row["cause"] for row in found[partition]} == {CAUSES[kind(name)]}
        if name == "incidents/pauses-1.1":  # the recording's lines give the start alone
            assert ranges == [[20, None]]
            continue
        assert offsets(ranges) == offsets(expected["offsets"])
        for key, told in (("replaced", "replaced_offsets"), ("missing", "missing_offsets")):
            assert offsets([r for row in found[partition] for r in row[key]]) == offsets(expected[told])


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in INCIDENTS if kind(n) != "life"])
def test_every_moment_is_compared_right(name: str) -> None:
    replicas = story(name)["truth"].get("replicas") or {}
    moments = sorted({key.partition(" ")[0] for key in replicas})
    for moment in moments:
        folder = recording(name) / "moments" / moment
        if folder.is_dir():
            check_moment(folder, moment, replicas)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in INCIDENTS if kind(n) == "life"])
def test_ordinary_life_has_no_divergence(name: str) -> None:
    ran = rows("replica", "compare", recording(name))
    assert ran.status == 0, [r for r in ran.rows if r["kind"] in ("divergence", "finding")]
    assert {r["verdict"] for r in ran.of("verdict")} == {"equal", "behind"}


def check_moment(folder: Path, moment: str, replicas: dict[str, Any]) -> None:
    ran = rows("replica", "compare", folder)
    found: dict[str, dict[str, list[list[int]]]] = {}
    for row in ran.of("divergence"):
        pair = "|".join(map(str, row["broker_ids"]))
        by_pair = found.setdefault(f"{row['topic']}-{row['partition']}", {})
        by_pair.setdefault(pair, []).append([row["from_offset"], row["to_offset"]])
    for key, one in replicas.items():
        where, _, partition = key.partition(" ")
        if where == moment:
            assert found.get(partition, {}) == (one.get("different_records_at_same_offset") or {}), key


@pytest.mark.parametrize("name", ["incidents/unclean-2.8", "incidents/unclean-1.1", "incidents/diverge-2.8"])
def test_without_logs_the_ranges_stay_and_the_cause_is_not_made_up(name: str, scene: Any) -> None:
    folder = scene(name) / "moments"
    expected = {k: v for k, v in story(name)["truth"]["acknowledged_loss"].items() if v.get("offsets")}
    found = by_partition(rows("replica", "loss", folder))
    for partition, one in expected.items():
        ranges = [[row["from_offset"], row["to_offset"]] for row in found[partition]]
        assert offsets(ranges) == offsets(one["offsets"])
        # Of the dark copy's own high watermark a power failure can be told; an election cannot.
        allowed = {"power_failure_tail"} if kind(name) == "diverge" else {"unknown"}
        assert {row["cause"] for row in found[partition]} == allowed


def test_without_znodes_and_logs_contradicting_copies_leave_the_leader_unknown(scene: Any) -> None:
    folder = scene("incidents/unclean-0.10.2") / "moments" / "during"
    (folder / "znodes.jsonl").unlink()
    ran = rows("replica", "loss", folder)
    assert ran.of("loss") == []
    assert set(ran.codes("warning")) == {"replica-leader-unknown"}
    assert ran.status == 5
    topic, _, partition = next(row["message"] for row in ran.of("finding")).split()[0].rpartition("-")
    story = rows("replica", "explain", folder, "--topic", topic, "--partition", partition, "--offset", 0)
    assert story.status == 3 and "does not show which broker leads" in story.err
    told = rows("replica", "loss", folder, "--leader", 2)
    assert offsets(
        [[r["from_offset"], r["to_offset"]] for r in told.of("loss") if r["partition"] == 0]
    ) == set(range(40, 70))


@pytest.mark.slow
def test_a_zombie_is_told_from_lines_alone(scene: Any) -> None:
    (row,) = rows("replica", "loss", scene("incidents/pauses-2.8")).of("loss")
    assert (row["from_offset"], row["to_offset"], row["class"]) == (20, 26, "uncommitted")
    assert (row["written_by"], row["written_in_epoch"], row["lost_in_epoch"]) == (3, 1, 3)
    assert row["recoverable_from"] == []
    cited = {(e["file"], e["kind"]) for e in row["evidence"] if e["line"]}
    assert ("broker-3/logs/state-change.log", "zombie") in cited


def test_an_unclean_election_is_cited_with_its_line(scene: Any) -> None:
    ran = rows("replica", "loss", scene("incidents/unclean-2.8"), "--topic", "ledger", "--partition", 0)
    (row,) = ran.of("loss")
    assert (row["class"], row["lost_in_epoch"], row["dropped_by"]) == ("committed", 3, 2)
    assert row["recoverable_from"] == [{"moment": "during", "broker_id": 1}]
    assert row["records"] == 30
    kinds = {e["kind"] for e in row["evidence"]}
    assert {"election", "high_watermark_checkpoint", "copy", "truncation"} <= kinds
    (election,) = [e for e in row["evidence"] if e["kind"] == "election"][:1]
    assert election["line"]
    assert "leader=2, leaderEpoch=3" in election["text"]


def test_lost_records_are_exported_ready_to_be_produced(scene: Any, tmp_path: Path) -> None:
    folder, target = scene("incidents/unclean-2.8"), tmp_path / "lost"
    with unchanged(folder):
        ran = rows("replica", "loss", folder, "--export", target)
    assert all(row["exported"] for row in ran.of("loss"))
    segment = target / "lost-in-epoch-3" / "ledger-0" / f"{40:020d}.log"
    lines = [json.loads(line) for line in segment.with_suffix(".jsonl").read_text().splitlines()]
    assert [one["offset"] for one in lines] == list(range(40, 70))
    assert lines[0]["key"] == "ledger-0-00040"
    batches = rows("segment", "dump", segment).of("batch")
    assert {b["producer_id"] for b in batches} == {-1}
    assert rows("segment", "verify", segment).status == 0
    again = rows("replica", "loss", folder, "--export", target)
    assert again.status == 4
    inside = rows("replica", "loss", folder, "--export", folder / "lost")
    assert inside.status == 4
    assert not (folder / "lost").exists()


@pytest.mark.slow
def test_what_a_tier_still_holds_of_a_loss_is_named() -> None:
    (row,) = rows("replica", "loss", recording("tier/e-unclean-election")).of("loss")
    assert (row["from_offset"], row["to_offset"], row["recoverable_from"]) == (100, 260, [])
    held = [(one["from_offset"], one["to_offset"]) for one in row["recoverable_from_tier"]]
    assert held == [(100, 120), (120, 160), (160, 200), (200, 240)]
    # The first of them holds records of the epoch before too, which nobody lost.
    assert row["recoverable_from_tier"][0]["remote_log_segment_id"] == "XkIsHmzASdSGqo8Z9PWL8Q"
