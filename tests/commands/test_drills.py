"""Drills on real clusters of other versions, without the story: what was lost, and why.

`zombie-2.4`: a paused leader acknowledged two records after it went on; its lines tell where they began only.
`power-3.9-kraft`: a KRaft cluster lost power; broker 1, without its logs' tails, led first.
`chain-3.9-kraft`: two unclean elections in a row, of which the metadata log of KRaft alone tells.
`leader-back-2.4`: the records of a leader are gone because the one before it led again, with all it had.
`eligible-4.3-kraft`: the ISR fell below its minimum, and an eligible leader replica (KIP-966) was elected.
`old-format-2.2`: a follower cut to a stale high watermark, since messages of format 1 have no leader epochs.
`compressed-cut-0.9.0`, `-0.10.2`: an unclean election; then the old leader leads again, with a hole in its log where a cut to the
middle of a compressed set took the whole set, or with its own records where it had followed without cutting.
`znodes-anew-2.4`: the znodes of a topic were removed and made again by hand over logs that went on; a replica that was
behind came first.
`zombie-again-2.8`: a leader that was restarted, and led again since, is paused and goes on as a zombie.
`not-replicated-3.6`: a leader took records for acks=1 that no follower had, and was killed.
`backup-0.8.2`: yesterday's copy was put in the place of a log directory, and its broker was started at once.
`sent-again-2.8`: a leader was killed with records that no follower had; producers sent them again to the next one.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import recording, recordings, rows

Ranges = list[list[int | None]]


def offsets(ranges: Ranges) -> set[int]:
    return {offset for first, last in ranges for offset in range(first or 0, last or (first or 0) + 1)}


@pytest.mark.slow
@pytest.mark.parametrize("name", recordings("drills"))
def test_what_was_lost_and_why(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    shutil.copytree(recording(name), folder)
    story = json.loads((folder / "story.json").read_text())
    (folder / "story.json").unlink()
    ran = rows("replica", "loss", folder)
    assert ran.status == (5 if story["lost"] else 0)
    found: dict[str, Ranges] = {}
    missing: dict[str, set[int]] = {}
    for row in ran.of("loss"):
        partition = f"{row['topic']}-{row['partition']}"
        found.setdefault(partition, []).append([row["from_offset"], row["to_offset"]])
        missing.setdefault(partition, set()).update(offsets(row["missing"]))
    together = {p: offsets(ranges) for p, ranges in found.items()}
    assert together == {p: offsets(ranges) for p, ranges in story["lost"].items()}
    assert not [
        p for p, ranges in found.items() for _, last in ranges if last is None and ranges != story["lost"][p]
    ]
    assert {p: gone for p, gone in missing.items() if gone} == {
        p: offsets(gone) for p, gone in story["missing"].items()
    }
    assert {row["cause"] for row in ran.of("loss")} == set(story.get("causes", [story["cause"]]))


def test_lines_alone_tell_what_a_leader_lost_of_whose_epoch_nothing_is_left(tmp_path: Path) -> None:
    """Broker 3 led from offset 20; the present epoch begins behind that, where its leader's own older records end."""
    folder = tmp_path / "evidence"
    shutil.copytree(recording("drills/leader-back-2.4"), folder)
    for moment in ("start", "three", "one"):
        shutil.rmtree(folder / "moments" / moment)
    ran = rows("replica", "loss", folder)
    assert [(r["topic"], r["partition"], r["from_offset"], r["to_offset"]) for r in ran.of("loss")] == [
        ("duo", 0, 20, 24),
        ("duo", 1, 20, 50),
    ]


def test_what_a_leader_alone_took_below_the_minimum_isr_was_not_committed() -> None:
    """Its high watermark stands still, so that even what its whole ISR holds is not promised to anybody."""
    (row,) = rows("replica", "loss", recording("drills/eligible-4.3-kraft")).of("loss")
    assert (row["class"], row["cause"], row["isr_before"]) == ("unknown", "unknown", [1])


def test_what_producers_sent_again_is_named_and_no_loss() -> None:
    """Three producers shared a partition, so that not all came back at the offsets that they had."""
    ran = rows("replica", "loss", recording("drills/sent-again-2.8"))
    (found,) = [one for one in ran.of("finding") if one["code"] == "replica-sent-again"]
    assert (found["broker_id"], found["base_offset"], found["last_offset"]) == (1, 38, 43)


def test_nothing_is_committed_that_a_member_of_the_isr_never_had(tmp_path: Path) -> None:
    """Its own log has to say that it ran all along: one that started may have lost its end."""
    folder = tmp_path / "evidence"
    shutil.copytree(recording("drills/not-replicated-3.6"), folder)
    (row,) = rows("replica", "loss", folder).of("loss")
    assert (row["class"], row["from_offset"], row["to_offset"]) == ("uncommitted", 23, 33)
    assert "isr_member_without" in [one["kind"] for one in row["evidence"]]
    shutil.rmtree(folder / "broker-2")
    (row,) = rows("replica", "loss", folder).of("loss")
    assert row["class"] == "unknown"


def test_a_leadership_that_was_over_within_a_second_is_not_the_one_that_dropped() -> None:
    """Broker 1 led for a moment with all there was, before its log directory was replaced."""
    found = rows("replica", "loss", recording("drills/backup-0.8.2")).of("loss")
    assert [(r["topic"], r["partition"], r["lost_in_epoch"]) for r in found] == [
        ("bk", 0, 3),
        ("bk", 2, 3),
        ("bk.solo", 0, 2),
    ]
