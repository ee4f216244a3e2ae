"""`kctl remote lookup`, `plan` and `follower`: what brokers would do by their rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

import click

from commands.cli import completing
from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.options import flag, option
from commands.cli.render import Outcome, Page, Row, folding, size
from commands.remote.audit import AS_OF, LAYOUT, NOW, TIER, parse_bound, read_layout
from commands.remote.text import finding, follower_text, offsets, plan_text
from kctl.errors import BadValue, near_names
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.evidence.model import FoundEvidence
    from kctl.findings import Finding
    from kctl.tier.metadata.selection import MetadataAsOf

TOPIC = option("--topic NAME", "The topic.", required=True, shell_complete=completing.topics)
PARTITION = option("--partition N", "The partition.", required=True, type=click.IntRange(0))


@command(
    "lookup",
    paged=True,
    status="0 answered · 3 a path could not be opened, or the partition is unknown · 5 nothing serves it",
)
@evidence()
@TOPIC
@PARTITION
@option("--offset N", "The offset.", required=True, type=click.IntRange(0))
@option("--epoch N", "Leader epoch.  [default: the leader's epoch of the offset]", type=click.IntRange(0))
@AS_OF
@LAYOUT
def lookup(
    frame: Frame,
    options: EvidenceOptions,
    topic: str,
    partition: int,
    offset: int,
    epoch: int | None,
    layout: str | None,
) -> Outcome:
    """Find the remote segment and objects that serve an offset.

    If no segment serves the offset, the output says why.

    $ kctl remote lookup evidence/ --topic orders --partition 0 --offset 217
    $ kctl remote lookup evidence/ --topic orders --partition 0 --offset 217 --epoch 3 --layout aiven
    """
    from formats.tier.object_names import LOCAL_TIERED_STORAGE
    from kctl.tier.rules.lookup import lookup as answer
    from kctl.tier.rules.partition_facts import tiered_partition

    findings: list[Finding] = []
    subject = tiered_partition(
        options.find(frame), findings.append, topic, partition, parse_bound(options.as_of)
    )
    row = answer(subject, offset, epoch, read_layout(layout) or LOCAL_TIERED_STORAGE)
    if row["served_from"] == "none":
        frame.raise_status(5)
    return Outcome([*(finding.row() for finding in findings), row], text=folding(_lookup_text))


def _lookup_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
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
    """The keys; if they are too long for the page, the common folder first."""
    folder = keys[0].rpartition("/")[0] + "/" if keys else ""
    is_long = any(len(key) + 2 > width for key in keys)
    if is_long and len(folder) > 1 and all(key.startswith(folder) for key in keys):
        yield f"  {folder}"
        keys = [f"  {key.removeprefix(folder)}" for key in keys]
    yield from (f"  {key}" for key in keys)


@command("plan", status="0 planned · 3 a path could not be opened · 5 the metadata are wrong")
@evidence()
@option("--topic NAME", "Only this topic.", shell_complete=completing.topics)
@option("--partition N", "Only this partition.", type=click.IntRange(0))
@NOW
@AS_OF
def plan(
    frame: Frame, options: EvidenceOptions, topic: str | None, partition: int | None, now: str | None
) -> Outcome:
    """Show the next tasks of each leader: copy, delete remote segments, delete local segments.

    Retention limits that a topic does not set are unknown broker defaults; nothing is planned for them.

    $ kctl remote plan evidence/
    $ kctl remote plan evidence/ --topic orders --now 2026-11-21T14:00:00Z --output jsonl
    """
    from kctl.times import parse_time

    at = parse_time(now) if now else None
    rows = _plan(options.find(frame), topic, partition, at, parse_bound(options.as_of))
    return Outcome(
        rows,
        text=folding(plan_text),
        nothing="no task is due, or the evidence has no metadata of such a partition",
    )


def _plan(
    evidence: FoundEvidence, topic: str | None, partition: int | None, now: int | None, when: MetadataAsOf
) -> Iterator[Row]:
    from kctl.tier.rules.leader_tasks import plan_rows
    from kctl.tier.rules.partition_facts import tiered_partitions

    findings: list[Finding] = []
    known: set[TopicPartition] = set()
    for subject in tiered_partitions(evidence, findings.append, when):
        where = subject.tier.where
        known.add(TopicPartition(where.topic, where.partition))
        if topic in (None, where.topic) and partition in (None, where.partition):
            yield from plan_rows(subject, now)
    yield from (finding.row() for finding in findings)
    topics = {tp.topic for tp in known}
    if topic is not None and topic not in topics:
        otherwise = f"it has {', '.join(sorted(topics)[:3])}" if topics else "it has metadata of no partition"
        raise BadValue(
            f"no metadata of a tiered topic {topic} in the evidence",
            near_names(topic, topics, otherwise=otherwise),
        )
    if partition is not None and not any(
        partition == tp.partition and topic in (None, tp.topic) for tp in known
    ):
        raise BadValue(
            f"no metadata of a tiered partition {partition} in the evidence",
            f"it has {', '.join(map(str, sorted(known)[:5])) or 'none'}",
        )


@command(
    "follower",
    status="0 answered · 3 a path could not be opened, or the partition is unknown · 5 its state cannot be built",
)
@evidence()
@TOPIC
@PARTITION
@option(
    "--broker ID", "Broker of the replica, which may be new to it.", required=True, type=click.IntRange(0)
)
@flag("--as-leader", "Show what it does when it becomes leader.")
@AS_OF
@TIER
@LAYOUT
def follower(
    frame: Frame,
    options: EvidenceOptions,
    topic: str,
    partition: int,
    broker: int,
    as_leader: bool,
    tier: str | None,
    layout: str | None,
) -> Outcome:
    """Show how a new, lagging or returning follower rebuilds its state.

    $ kctl remote follower evidence/ --topic orders --partition 0 --broker 4
    $ kctl remote follower evidence/ --topic orders --partition 0 --broker 2 --as-leader
    """
    from kctl.tier.audit.audit import stores_in
    from kctl.tier.rules.follower_row import as_leader_row, epoch_index, follower_row
    from kctl.tier.rules.partition_facts import tiered_partition
    from kctl.tier.stores import open_store

    findings: list[Finding] = []
    opened = options.find(frame)
    subject = tiered_partition(opened, findings.append, topic, partition, parse_bound(options.as_of))
    if as_leader:
        row = as_leader_row(subject, broker)
    else:
        stores = [open_store(tier)] if tier else stores_in(opened)
        chosen = read_layout(layout)
        index = epoch_index(subject, stores[0] if stores else None, chosen)
        row = follower_row(subject, broker, index, chosen)
    if not row["is_possible"]:
        frame.raise_status(5)
    return Outcome([*(finding.row() for finding in findings), row], text=folding(follower_text))
