"""`kctl epoch`: leader epochs of replicas, and what brokers would make of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from commands.connecting import wire
from commands.evidence_options import evidence_options, find_evidence, report_absent
from commands.frame import Frame, command
from commands.path_types import GIVEN
from commands.render import Outcome, Row, folding

if TYPE_CHECKING:
    from kctl.evidence.model import Evidence
    from kctl.replica.copies import Copy

TOPIC = click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; repeatable.")
VERSION = click.option(
    "--kafka-version", metavar="VERSION", default="3.9", show_default=True, help="Whose rules hold."
)


def _copies(frame: Frame, evidence: Evidence, topics: tuple[str, ...]) -> list[Copy]:
    from kctl.replica.epoch_views import every_copy

    report_absent(frame, evidence, topics)
    return every_copy(evidence, topics)


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

    evidence = find_evidence(frame, paths, brokers, moments, reads_once=True)
    return Outcome(
        _with_findings(evidence, show_rows(_copies(frame, evidence, topics))), text=folding(epoch_text)
    )


def _with_findings(evidence: Evidence, rows: Iterator[Row]) -> Iterator[Row]:
    for finding in evidence.findings:
        yield finding.row()
    yield from rows


@command(
    "end-offset",
    examples="""
    kctl epoch end-offset --epoch 3 /data/kafka/orders-0
    kctl epoch end-offset --epoch 3 --kafka-version 1.1 broker-1/data
    kctl epoch end-offset --epoch 3 --bootstrap-server kafka1:9092 orders-0
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
    """Say what each replica would answer to OffsetsForLeaderEpoch.

    Of a topic or partition of a running cluster its leader is asked as well, and where the answer differs is said.
    """
    from kctl.replica.epoch_views import end_offset_rows
    from kctl.replication.rules import rules_for

    rules = rules_for(kafka_version)
    evidence = find_evidence(frame, paths, brokers, moments, reads_once=True)
    rows = list(end_offset_rows(_copies(frame, evidence, topics), epoch, rules))
    from commands.epoch_text import end_offset_text

    return Outcome([*rows, *_leaders_answers(frame, paths, rows, epoch)], text=folding(end_offset_text))


def _leaders_answers(frame: Frame, paths: tuple[str, ...], rows: Sequence[Row], epoch: int) -> Iterator[Row]:
    """What the leaders of those partitions answer that were read from the running cluster."""
    from commands.live_paths import is_live
    from kctl.model import TopicPartition

    live = {
        TopicPartition(str(row["topic"]), int(str(row["partition"]))): row
        for row in rows
        if is_live(frame, paths, f"{row['topic']}-{row['partition']}", str(row["topic"]))
    }
    if not live:
        return
    from kctl.replica.epoch_views import answer_difference
    from kctl.rows.live import LEADER_END_OFFSET
    from kctl.wire.epochs import ask_leaders
    from kctl.wire.reading import read_cluster

    with wire(frame) as connected:
        state = read_cluster(connected, {tp.topic for tp in live})
        answers = ask_leaders(connected, state, live, epoch)
    for one in answers:
        difference = None
        if one.error is None:
            difference = answer_difference(live[one.partition], one.leader_epoch, one.end_offset)
        else:
            frame.raise_status(3)
        yield LEADER_END_OFFSET(
            topic=one.partition.topic,
            partition=one.partition.partition,
            broker_id=one.leader if one.leader >= 0 else None,
            requested_epoch=epoch,
            leader_epoch=one.leader_epoch,
            end_offset=one.end_offset,
            difference=difference,
            error=one.error,
        )


@command(
    "truncation",
    examples="""
    kctl epoch truncation broker-1/data/orders-0 --leader broker-2/data/orders-0
    kctl epoch truncation broker-1/data --leader broker-2/data --kafka-version 0.10.2
    """,
)
@evidence_options
@TOPIC
@click.option(
    "--leader", "leaders", required=True, type=GIVEN, metavar="FOLDER", help="The leader's log directory."
)
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
    evidence = find_evidence(frame, paths, brokers, moments, reads_once=True)
    leading = find_evidence(frame, (leaders,), (), (), reads_once=True)
    rows = truncation_rows(_copies(frame, evidence, topics), _copies(frame, leading, topics), rules)
    from commands.epoch_text import truncation_text

    return Outcome(rows, text=folding(truncation_text))


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

    evidence = find_evidence(frame, paths, brokers, moments, reads_once=True)
    rows = _with_findings(evidence, compare_rows(_copies(frame, evidence, topics)))
    return Outcome(rows, text=folding(epoch_text))
