"""Holds what kctl says of an incident against what happened.

A statement is one thing that kctl said, or should have said, and whether that is right. What only a disk held that was
cut or wiped is not demanded of kctl: nothing in the evidence need tell of it. `keys.txt` lists what is judged by what.
"""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Ran, rows
from tests.nemesis.judge_copies import (
    judge_damage,
    judge_divergence,
    judge_files,
    judge_lineages,
    judge_rejoins,
    judge_torn,
    judge_verdicts,
)
from tests.nemesis.judge_history import (
    judge_leaders,
    judge_lines,
    judge_lives,
    judge_strength,
    judge_terms,
)
from tests.nemesis.judge_loss import judge_loss, judge_loss_keys
from tests.nemesis.judge_tier import RemoteLogs, judge_tier
from tests.nemesis.judge_transactions import (
    judge_explanation,
    judge_ids,
    judge_open,
    offsets_to_explain,
)
from tests.nemesis.statements import Copies, Row, Statement, text
from tests.nemesis.story import IDS, Story
from tests.nemesis.truth import Stored, cuts_of

ANSWERS = (0, 3, 5)


def judge_status(ran: Ran, command: str) -> Statement:
    """The exit status says what the rows say."""
    wrong = any(
        row.get("severity") in ("error", "warning")
        or row["kind"] == "divergence"
        or (row["kind"] == "loss" and row["class"] != "uncommitted")
        for row in ran.rows
    )
    unjudged = any(
        r["kind"] == "judgement" and r["verdict"] in ("could_not_judge", "unreadable") for r in ran.rows
    )
    light = any(row["kind"] == "loss" for row in ran.rows)
    expected = {5} if wrong else {3 if unjudged else 0} | ({5} if light else set())
    return Statement(
        ran.status in expected, f"{command}: exit {ran.status}, not {expected}: {ran.err[-300:]}"
    )


def judge(story: Story, folder: Path, audited: Path) -> list[Statement]:
    """Every statement about an incident; `folder` holds the evidence, `audited` is where the audit writes."""
    evidence = folder / "evidence"
    copies = Copies(evidence)
    said: list[Statement] = []

    def run(*args: object) -> list[Row]:
        command = " ".join(str(arg) for arg in args[:2])
        ran = rows(*args)
        said.append(Statement(ran.status in ANSWERS, f"{command}: exit {ran.status}: {ran.err[-2000:]}"))
        said.append(judge_status(ran, command))
        return ran.rows

    kept = {
        partition: log
        for partition in story.held
        if (leader := story.leader(partition, story.settled)) is not None
        and (log := copies.of("after", partition, leader)) is not None
    }
    local_starts = {partition: min(log, default=0) for partition, log in kept.items()}
    starts = {}
    for partition, served in story.served.items():  # a leader's own log is but the end of it
        leader = [state.leader for state in story.history[partition] if state.leader >= 0][-1]
        starts[partition] = copies.first_epoch_start("after", partition, leader)
        kept[partition] = {o: Stored(o, None, value.encode()) for o, value in served.items()}

    def has_copy(partition: str, offset: int, value: str) -> bool:
        logs = (copies.of(m.name, partition, id) or {} for m in story.moments for id in (1, 2, 3))
        return any(offset in log and text(log[offset].value) == value for log in logs)

    losses = run("replica", "loss", evidence)
    said += judge_loss(story, losses, kept, has_copy, starts)
    said += judge_loss_keys(story, losses, kept, copies)
    said += judge_lines(losses, evidence)
    timeline = run("state-log", "timeline", evidence)
    said += judge_leaders(story, timeline)
    said += judge_terms(story, timeline)
    said += judge_lives(story, timeline)
    said.append(judge_strength(timeline))
    said += judge_lines(timeline, evidence)
    logs = sorted(evidence.glob("*-*/logs"))
    alone = run("state-log", "timeline", *logs)  # without znodes, and without the metadata log
    said += judge_leaders(story, alone, has_all=False)
    said += judge_terms(story, alone)
    said += judge_lives(story, alone)
    verified = run("segment", "verify", evidence)
    cuts = {(id, *cut) for id in IDS for cut in cuts_of(evidence / f"broker-{id}" / "logs")}
    said += judge_damage(story, verified, "verify", cuts)
    said += judge_torn(story, verified)
    said += judge_files(story, verified, evidence)
    for moment in story.moments:
        compared = run("replica", "compare", evidence / "moments" / moment.name)
        said += judge_divergence(story, compared, moment.name, copies)
        said += judge_lineages(story, compared, moment.name, copies)
        said += judge_verdicts(story, compared, moment.name, copies)
        said += judge_rejoins(story, compared, moment.name, copies)
    for partition, offset in offsets_to_explain(story, losses, kept):
        topic, _, number = partition.rpartition("-")
        where = ("--topic", topic, "--partition", number, "--offset", offset)
        explained = rows("replica", "explain", evidence, *where)
        said += judge_explanation(story, explained.rows, partition, offset, copies)
    if story.transactions:
        after = evidence / "moments" / "after"
        said += judge_open(story, run("transactions", "hanging", after), copies)
        said += judge_ids(story, run("transactions", "list", after))
    if story.tiered:
        audit = run("remote", "audit", evidence)
        segments = run("remote", "segments", evidence, "--all")
        said += judge_tier(story, audit, segments, RemoteLogs(evidence / "tier"), local_starts)
    run("audit", "run", evidence, "--out", audited)
    return said
