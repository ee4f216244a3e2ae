"""`kctl replica`: replicas held against each other, what was lost, and the story of an offset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.evidence_options import evidence_options, find_evidence, report_absent
from commands.frame import Frame, command
from commands.path_types import GIVEN
from commands.render import Outcome, Row, folding

if TYPE_CHECKING:
    from kctl.replica.comparing import ComparedEvidence
    from kctl.replica.losing import LossSearch

TOPIC = click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; repeatable.")
PARTITION = click.option(
    "--partition", "partitions", multiple=True, type=int, metavar="N", help="Only this partition; repeatable."
)
COMPACTED = click.option(
    "--compacted", multiple=True, metavar="TOPIC", help="This topic is compacted; repeatable."
)


@command(
    "compare",
    examples="""
    kctl replica compare evidence/moments/during
    kctl replica compare broker-1/data broker-2/data broker-3/data --topic orders
    kctl replica compare evidence/ --if-leader 2 --kafka-version 2.8
    """,
    status="0 nothing wrong · 3 could not · 5 replicas differ, or a copy is damaged",
)
@evidence_options
@TOPIC
@PARTITION
@COMPACTED
@click.option("--if-leader", type=int, metavar="ID", help="What each replica would drop if this broker led.")
@click.option(
    "--kafka-version", metavar="VERSION", default="3.9", show_default=True, help="Whose rules truncate."
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Worker processes.  [default: one a core]")
def compare(
    frame: Frame,
    paths: tuple[str, ...],
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    compacted: tuple[str, ...],
    if_leader: int | None,
    kafka_version: str,
    jobs: int | None,
) -> Outcome:
    """Compare the replicas of every partition that two or more brokers hold.

    Bytes are compared batch by batch; records are decoded only where bytes differ. Copies of several moments
    are compared within each moment.
    """
    from kctl.replica.comparing import ComparedEvidence, CompareOptions
    from kctl.replication.rules import rules_for

    options = CompareOptions(
        topics, frozenset(partitions), frozenset(compacted), if_leader, rules_for(kafka_version), jobs
    )
    evidence = find_evidence(frame, paths, brokers, moments)
    report_absent(frame, evidence, topics, partitions)
    compared = ComparedEvidence(evidence, options, frame.report)
    from commands.replica_text import compare_text

    return Outcome(_compare_rows(frame, compared), text=folding(compare_text))


def _compare_rows(frame: Frame, compared: ComparedEvidence) -> Iterator[Row]:
    from kctl.replica.comparing import comparison_rows

    for finding in compared.evidence.findings:
        yield finding.row()
    progress = frame.progress()
    for found in compared.comparisons(progress):
        yield from comparison_rows(found, compared.options)


@command(
    "loss",
    examples="""
    kctl replica loss evidence/
    kctl replica loss evidence/ --topic ledger --partition 0 --output jsonl
    kctl replica loss broker-1/data broker-2/data --leader 2
    kctl replica loss evidence/ --export lost/
    """,
    status="0 nothing lost · 3 could not · 5 something was lost, or nobody can tell",
)
@evidence_options
@TOPIC
@PARTITION
@COMPACTED
@click.option("--leader", type=int, metavar="ID", help="The broker whose log is the present one.")
@click.option(
    "--export", type=GIVEN, metavar="DIR", help="Write the lost records here, to be produced again."
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Worker processes.  [default: one a core]")
def loss(
    frame: Frame,
    paths: tuple[str, ...],
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    compacted: tuple[str, ...],
    leader: int | None,
    export: str | None,
    jobs: int | None,
) -> Outcome:
    """Say which records a leader once held and the present lineage lacks, since when, and why.

    Copies of several moments, brokers' logs, znode exports and checkpoints are all used. Deletion by
    retention is not loss.
    """
    from commands.loss_text import loss_text
    from kctl.replica.losing import LossOptions, LossSearch

    options = LossOptions(topics, frozenset(partitions), frozenset(compacted), leader)
    evidence = find_evidence(frame, paths, brokers, moments)
    report_absent(frame, evidence, topics, partitions)
    search = LossSearch(evidence, options, frame.report)
    folder = None
    if export is not None:
        from kctl.replica.export import check_target

        folder = Path(export)
        check_target(folder, evidence)
    return Outcome(_loss_rows(frame, search, folder, jobs), text=folding(loss_text))


def _loss_rows(frame: Frame, search: LossSearch, folder: Path | None, jobs: int | None) -> Iterator[Row]:
    for finding in search.evidence.findings:
        yield finding.row()
    yield from search.rows(folder, frame.progress(), jobs)


@command(
    "explain",
    examples="""
    kctl replica explain evidence/ --topic ledger --partition 0 --offset 55
    """,
    status="0 told · 3 could not",
)
@evidence_options
@click.option("--topic", required=True, metavar="TOPIC", help="The topic.")
@click.option("--partition", type=int, required=True, metavar="N", help="The partition.")
@click.option("--offset", type=click.IntRange(0), required=True, metavar="N", help="The offset.")
@click.option("--leader", type=int, metavar="ID", help="The broker whose log is the present one.")
def explain(
    frame: Frame,
    paths: tuple[str, ...],
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
    topic: str,
    partition: int,
    offset: int,
    leader: int | None,
) -> Outcome:
    """Tell the story of one offset: who wrote it, where it is, when it was committed, why it is gone."""
    from commands.explain_text import explain_text
    from kctl.model import TopicPartition
    from kctl.replica.explain import explain_offset
    from kctl.replica.losing import LossOptions, LossSearch

    evidence = find_evidence(frame, paths, brokers, moments)
    search = LossSearch(evidence, LossOptions((topic,), leader=leader), frame.report)
    return Outcome(explain_offset(search, TopicPartition(topic, partition), offset), text=explain_text)
