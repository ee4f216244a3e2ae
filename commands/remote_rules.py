"""`kctl remote lookup`, `plan` and `follower`: what brokers would do by their own rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

import click

from commands.evidence_options import refuse_nothing
from commands.frame import Frame, command
from commands.path_types import GIVEN
from commands.remote_audit import read_layout
from commands.render import Outcome, Page, Row, folding

if TYPE_CHECKING:
    from kctl.evidence.model import Evidence
    from kctl.findings import Finding
    from kctl.remote.asking import AsOf

LAYOUT_HELP = "How objects are named: local-tiered-storage, aiven, or a file."


def _evidence(frame: Frame, paths: tuple[str, ...]) -> Evidence:
    from kctl.evidence.discover import discover

    found = discover(paths)
    for failure in found.failures:
        frame.report(failure)
    refuse_nothing(found)
    return found


def _when(text: str | None) -> AsOf:
    from kctl.remote.asking import NOW, parse_as_of

    return parse_as_of(text) if text else NOW


@command(
    "lookup",
    examples="""
    kctl remote lookup evidence/ --topic orders --partition 0 --offset 217
    kctl remote lookup evidence/ --topic orders --partition 0 --offset 217 --epoch 3 --layout aiven
    """,
    status="0 answered · 3 a path could not be opened, or nothing is known of the partition · 5 nothing serves it",
)
@click.argument("evidence", metavar="EVIDENCE...", type=GIVEN, nargs=-1, required=True)
@click.option("--topic", required=True, metavar="NAME", help="The topic.")
@click.option("--partition", required=True, type=click.IntRange(0), metavar="N", help="The partition.")
@click.option("--offset", required=True, type=click.IntRange(0), metavar="N", help="The offset.")
@click.option(
    "--epoch", type=click.IntRange(0), metavar="N", help="The leader epoch.  [default: the leader's for it]"
)
@click.option("--as-of", metavar="WHEN", help="Metadata up to a time, an offset, or PARTITION:OFFSET.")
@click.option("--layout", type=GIVEN, metavar="NAME-or-FILE", help=LAYOUT_HELP)
def lookup(
    frame: Frame,
    evidence: tuple[str, ...],
    topic: str,
    partition: int,
    offset: int,
    epoch: int | None,
    as_of: str | None,
    layout: str | None,
) -> Outcome:
    """Say which remote segment and objects serve an offset, and why none does."""
    from formats.tier_layouts import LOCAL_TIERED_STORAGE
    from kctl.remote.deciding import subject_of
    from kctl.remote.lookup import lookup as answer

    found: list[Finding] = []
    subject = subject_of(_evidence(frame, evidence), found.append, topic, partition, _when(as_of))
    row = answer(subject, offset, epoch, read_layout(layout) or LOCAL_TIERED_STORAGE)
    if row["served_from"] == "none":
        frame.raise_status(5)
    return Outcome([*(one.row() for one in found), row], text=folding(_lookup_text))


def _lookup_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    from commands.remote_text import finding, offsets, size

    for row in rows:
        if row["kind"] == "finding":
            yield finding(row, page)
            continue
        where = f"{row['topic']}-{row['partition']} offset {row['offset']}"
        if row["remote_log_segment_id"]:
            yield f"{row['remote_log_segment_id']}  {offsets(row)}  {size(row['size_in_bytes'])}"
            yield from _keys(cast("list[str]", row["objects"]), page.width)
        yield f"{where}: {row['served_from']}, leader epoch {row['leader_epoch']}: {row['reason']}"


def _keys(keys: list[str], width: int) -> Iterator[str]:
    """The keys; where they are too long for the page, the folder that they share first."""
    folder = keys[0].rpartition("/")[0] + "/" if keys else ""
    is_long = any(len(key) + 2 > width for key in keys)
    if is_long and len(folder) > 1 and all(key.startswith(folder) for key in keys):
        yield f"  {folder}"
        keys = [f"  {key.removeprefix(folder)}" for key in keys]
    yield from (f"  {key}" for key in keys)


@command(
    "plan",
    examples="""
    kctl remote plan evidence/
    kctl remote plan evidence/ --topic orders --now 2026-11-21T14:00:00Z --output jsonl
    """,
    status="0 planned · 3 a path could not be opened · 5 the metadata are not right",
)
@click.argument("evidence", metavar="EVIDENCE...", type=GIVEN, nargs=-1, required=True)
@click.option("--topic", metavar="NAME", help="Partitions of this topic.")
@click.option("--partition", type=click.IntRange(0), metavar="N", help="This partition.")
@click.option(
    "--now",
    metavar="TIME",
    help="The time that retention is judged at.  [default: the newest in the evidence]",
)
@click.option("--as-of", metavar="WHEN", help="Metadata up to a time, an offset, or PARTITION:OFFSET.")
def plan(
    frame: Frame,
    evidence: tuple[str, ...],
    topic: str | None,
    partition: int | None,
    now: str | None,
    as_of: str | None,
) -> Outcome:
    """Say what each leader's tasks would do next: copy, delete remote segments, free local ones.

    Limits that are not among a topic's settings are the brokers' and unknown; nothing is planned by them.
    """
    from kctl.remote.asking import parse_time

    at = parse_time(now) if now else None
    rows = _plan(_evidence(frame, evidence), topic, partition, at, _when(as_of))
    return Outcome(
        rows,
        text=folding(_plan_text),
        nothing="no task is due, or no metadata of such a partition are in the evidence",
    )


def _plan(
    evidence: Evidence, topic: str | None, partition: int | None, now: int | None, when: AsOf
) -> Iterator[Row]:
    from kctl.remote.deciding import subjects
    from kctl.remote.planning import plan_rows

    found: list[Finding] = []
    for subject in subjects(evidence, found.append, when):
        where = subject.tier.where
        if topic in (None, where.topic) and partition in (None, where.partition):
            yield from plan_rows(subject, now)
    yield from (one.row() for one in found)


def _plan_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    from commands.remote_text import plan_text

    return plan_text(rows, page)


@command(
    "follower",
    examples="""
    kctl remote follower evidence/ --topic orders --partition 0 --broker 4
    kctl remote follower evidence/ --topic orders --partition 0 --broker 2 --as-leader
    """,
    status="0 answered · 3 a path could not be opened, or nothing is known of the partition · 5 its state cannot be built",
)
@click.argument("evidence", metavar="EVIDENCE...", type=GIVEN, nargs=-1, required=True)
@click.option("--topic", required=True, metavar="NAME", help="The topic.")
@click.option("--partition", required=True, type=click.IntRange(0), metavar="N", help="The partition.")
@click.option(
    "--broker",
    required=True,
    type=click.IntRange(0),
    metavar="ID",
    help="The replica; a new one may have none.",
)
@click.option("--as-leader", is_flag=True, help="What it does when it becomes leader.")
@click.option("--as-of", metavar="WHEN", help="Metadata up to a time, an offset, or PARTITION:OFFSET.")
@click.option(
    "--tier", type=GIVEN, metavar="URI-or-FOLDER", help="The tier, in place of one found in the evidence."
)
@click.option("--layout", type=GIVEN, metavar="NAME-or-FILE", help=LAYOUT_HELP)
def follower(
    frame: Frame,
    evidence: tuple[str, ...],
    topic: str,
    partition: int,
    broker: int,
    as_leader: bool,
    as_of: str | None,
    tier: str | None,
    layout: str | None,
) -> Outcome:
    """Say what a new, lagging or returning follower would do, and what it builds its state from."""
    from kctl.remote.audit import stores_in
    from kctl.remote.deciding import subject_of
    from kctl.remote.follower_row import as_leader_row, epoch_index, follower_row
    from kctl.remote.stores import open_store

    found: list[Finding] = []
    opened = _evidence(frame, evidence)
    subject = subject_of(opened, found.append, topic, partition, _when(as_of))
    if as_leader:
        row = as_leader_row(subject, broker)
    else:
        stores = [open_store(tier)] if tier else stores_in(opened)
        chosen = read_layout(layout)
        index = epoch_index(subject, stores[0] if stores else None, chosen)
        row = follower_row(subject, broker, index, chosen)
    if not row["is_possible"]:
        frame.raise_status(5)
    return Outcome([*(one.row() for one in found), row], text=folding(_follower_text))


def _follower_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    from commands.remote_text import follower_text

    return follower_text(rows, page)
