"""`kctl epoch`: leader epochs of replicas, and what brokers would make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from commands.evidence_options import evidence_options, find_evidence
from commands.frame import Frame, command
from commands.render import Outcome, Row

if TYPE_CHECKING:
    from kctl.evidence.model import Evidence
    from kctl.replica.copies import Copy

TOPIC = click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; repeatable.")
VERSION = click.option("--kafka-version", default="3.9", show_default=True, help="Whose rules hold.")


def _copies(frame: Frame, evidence: Evidence, topics: tuple[str, ...]) -> list[Copy]:
    from kctl.replica.epoch_views import every_copy

    copies = every_copy(evidence, topics)
    if not copies and not evidence.failures:
        frame.note("no replica lies below the folders given")
    return copies


@command(
    "show",
    examples="""
    kctl epoch show /data/kafka/orders-0
    kctl epoch show broker-1/data --topic orders
    """,
)
@evidence_options
@TOPIC
def show(
    frame: Frame,
    paths: tuple[str, ...],
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
    topics: tuple[str, ...],
) -> Outcome:
    """Show the epochs of each replica: its checkpoint, its batches, and their differences."""
    from commands.epoch_text import epoch_text
    from kctl.replica.epoch_views import show_rows

    evidence = find_evidence(frame, paths, brokers, moments)
    return Outcome(_with_findings(evidence, show_rows(_copies(frame, evidence, topics))), text=epoch_text)


def _with_findings(evidence: Evidence, rows: Iterator[Row]) -> Iterator[Row]:
    for finding in evidence.findings:
        yield finding.row()
    yield from rows


@command(
    "end-offset",
    examples="""
    kctl epoch end-offset --epoch 3 /data/kafka/orders-0
    kctl epoch end-offset --epoch 3 --kafka-version 1.1 broker-1/data
    """,
)
@evidence_options
@TOPIC
@click.option("--epoch", type=int, required=True, metavar="N", help="The leader epoch that is asked for.")
@VERSION
def end_offset(
    frame: Frame,
    paths: tuple[str, ...],
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
    topics: tuple[str, ...],
    epoch: int,
    kafka_version: str,
) -> Outcome:
    """Say what each replica would answer to OffsetsForLeaderEpoch."""
    from kctl.replica.epoch_views import end_offset_rows
    from kctl.replication.rules import rules_for

    rules = rules_for(kafka_version)
    evidence = find_evidence(frame, paths, brokers, moments)
    return Outcome(end_offset_rows(_copies(frame, evidence, topics), epoch, rules))


@command(
    "truncation",
    examples="""
    kctl epoch truncation broker-1/data/orders-0 --leader broker-2/data/orders-0
    kctl epoch truncation broker-1/data --leader broker-2/data --kafka-version 0.10.2
    """,
)
@evidence_options
@TOPIC
@click.option("--leader", "leaders", required=True, metavar="FOLDER", help="The leader's log directory.")
@VERSION
def truncation(
    frame: Frame,
    paths: tuple[str, ...],
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
    topics: tuple[str, ...],
    leaders: str,
    kafka_version: str,
) -> Outcome:
    """Say to which offset each follower would truncate under a leader, by version."""
    from kctl.replica.epoch_views import truncation_rows
    from kctl.replication.rules import rules_for

    rules = rules_for(kafka_version)
    evidence = find_evidence(frame, paths, brokers, moments)
    leading = find_evidence(frame, (leaders,), (), ())
    rows = truncation_rows(_copies(frame, evidence, topics), _copies(frame, leading, topics), rules)
    return Outcome(rows)


@command(
    "compare",
    examples="""
    kctl epoch compare broker-1/data/orders-0 broker-2/data/orders-0
    kctl epoch compare evidence/moments/during --topic ledger
    """,
    status="0 no lineages part · 3 could not · 5 lineages have parted",
)
@evidence_options
@TOPIC
def compare(
    frame: Frame,
    paths: tuple[str, ...],
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
    topics: tuple[str, ...],
) -> Outcome:
    """Show normalised lineages side by side, and where each pair of them parts."""
    from commands.epoch_text import epoch_text
    from kctl.replica.epoch_views import compare_rows

    evidence = find_evidence(frame, paths, brokers, moments)
    rows = _with_findings(evidence, compare_rows(_copies(frame, evidence, topics)))
    return Outcome(rows, text=epoch_text)
