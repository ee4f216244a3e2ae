"""`kctl replica compare`, `loss` and `explain`: replicas in evidence, lost records, the history of an offset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.cli import completing
from commands.cli.answer import with_answer
from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.options import RULES_OF_VERSION, WRITTEN, flag, option
from commands.cli.render import Outcome, Row, folding

if TYPE_CHECKING:
    from kctl.judging.judgement import Judgement
    from kctl.replica.comparison.search import ComparedEvidence
    from kctl.replica.loss.search import LossSearch

LEADER = option("--leader ID", "Take the log of this broker as the present one.", type=int)


@command(
    "compare", status="0 replicas agree · 3 failed, or not judged · 5 replicas differ, or a copy is damaged"
)
@evidence("broker", "moment", "topic", "partition", "compacted", "jobs")
@option("--if-leader ID", "Show what each replica would drop if this broker led.", type=int)
@RULES_OF_VERSION
def compare(frame: Frame, options: EvidenceOptions, if_leader: int | None, kafka_version: str) -> Outcome:
    """Compare the replicas of every partition that two or more brokers hold.

    Bytes are compared batch by batch; records are decoded only where bytes differ. Copies of several moments
    are compared within each moment.

    $ kctl replica compare evidence/moments/during
    $ kctl replica compare broker-1/data broker-2/data broker-3/data --topic orders
    $ kctl replica compare evidence/ --if-leader 2 --kafka-version 2.8
    """
    from functools import partial

    from commands.replica.compare_text import compare_text
    from kctl.copies.moments import assigned_in
    from kctl.judging.judgement import Question, judgement_rows
    from kctl.replica.comparison.search import ComparedEvidence, CompareOptions
    from kctl.replication.rules import rules_for

    compare_options = CompareOptions(
        options.topics,
        frozenset(options.partitions),
        frozenset(options.compacted),
        if_leader,
        rules_for(kafka_version),
        options.jobs,
    )
    evidence = options.find(frame)
    options.require_broker("--if-leader", if_leader, evidence)
    compared = ComparedEvidence(evidence, compare_options, frame.report)
    options.report_absent(frame, evidence, assigned_in(compared.znodes))
    rows = judgement_rows(_compared(frame, compared), [Question.DIVERGENCE], options.fit(frame, evidence))
    following: list[str] = []
    text = partial(compare_text, propose=options.proposing(following))
    return Outcome(rows, text=folding(with_answer(text, following)))


def _compared(frame: Frame, compared: ComparedEvidence) -> Iterator[Row | Judgement]:
    from kctl.replica.comparison.search import comparison_rows

    for finding in compared.evidence.findings:
        yield finding.row()
    progress = frame.progress()
    for comparison in compared.comparisons(progress):
        yield from comparison_rows(comparison, compared.options)
        yield compared.judgement(comparison)
    yield from compared.not_compared()


@command(
    "loss",
    status="0 no record lost · 3 failed, or not judged · 5 records were lost, or loss cannot be ruled out",
)
@evidence("broker", "moment", "topic", "partition", "compacted", "acks", "jobs")
@LEADER
@option("--export DIR", "Write the lost records to DIR, to be produced again.", type=WRITTEN)
@flag("--all", "Show every loss on a terminal, not only the first ten.", into="everything")
@flag("--recovered", "Look for the lost records in the cluster; those that are there are lost no more.")
def loss(
    frame: Frame,
    options: EvidenceOptions,
    leader: int | None,
    export: str | None,
    everything: bool,
    recovered: bool,
) -> Outcome:
    """Find lost records: what was lost, since when and why.

    Uses copies of all moments, broker logs, znode exports and checkpoints. Lost records are those that a leader
    once held and the present lineage lacks; deletion by retention is not loss.

    $ kctl replica loss evidence/
    $ kctl replica loss evidence/ --topic ledger --partition 0 --output jsonl
    $ kctl replica loss broker-1/data broker-2/data --leader 2
    $ kctl replica loss evidence/ --export lost/
    $ kctl replica loss evidence/ --recovered --bootstrap-server kafka1:9092
    """
    from functools import partial

    from commands.replica.loss_text import loss_text
    from kctl.copies.moments import assigned_in
    from kctl.judging.judgement import Question, judgement_rows
    from kctl.replica.loss.search import LossOptions, LossSearch

    frame.acks = options.acks
    evidence = options.find(frame)
    loss_options = LossOptions(
        options.topics,
        frozenset(options.partitions),
        frozenset(options.compacted),
        leader,
        options.acks,
    )
    options.require_broker("--leader", leader, evidence)
    search = LossSearch(evidence, loss_options, frame.report)
    options.report_absent(frame, evidence, assigned_in(search.znodes))
    folder = None
    if export is not None or recovered:
        from kctl.replica.loss.recovery import refuse_hashes

        refuse_hashes(evidence)
    if export is not None:
        from kctl.replica.loss.recovery import check_target

        folder = Path(export)
        check_target(folder, evidence)
    searched = (
        _looked_for(frame, search, folder, options.jobs)
        if recovered
        else _looked_through(frame, search, folder, options.jobs)
    )
    rows = judgement_rows(searched, [Question.LOSS], options.fit(frame, evidence))
    following: list[str] = []
    text = partial(loss_text, propose=options.proposing(following), everything=everything)
    return Outcome(rows, text=folding(with_answer(text, following)))


def _looked_through(
    frame: Frame, search: LossSearch, folder: Path | None, jobs: int | None
) -> Iterator[Row | Judgement]:
    for finding in search.evidence.findings:
        yield finding.row()
    yield from search.rows(folder, frame.progress(), jobs)
    yield from search.without_copies()


def _looked_for(
    frame: Frame, search: LossSearch, folder: Path | None, jobs: int | None
) -> Iterator[Row | Judgement]:
    from commands.cli.connecting import wire
    from kctl.wire.cluster import AdminCluster
    from kctl.wire.recovering.checking import recovered_rows

    for finding in search.evidence.findings:
        yield finding.row()
    with wire(frame) as connected:
        yield from recovered_rows(search, AdminCluster(connected), folder, frame.progress(), jobs)
    yield from search.without_copies()


@command("explain", paged=True, status="0 explained · 3 failed, or no copy reaches the offset")
@evidence("broker", "moment")
@option("--topic TOPIC", "The topic.", required=True, shell_complete=completing.topics)
@option("--partition N", "The partition.", type=int, required=True)
@option("--offset N", "The offset.", type=click.IntRange(0), required=True)
@LEADER
def explain(
    frame: Frame, options: EvidenceOptions, topic: str, partition: int, offset: int, leader: int | None
) -> Outcome:
    """Show the history of one offset: who wrote it, where it is, why it is gone.

    $ kctl replica explain evidence/ --topic ledger --partition 0 --offset 55
    """
    from commands.replica.explain_text import explain_text
    from kctl.model import TopicPartition
    from kctl.replica.explain import explain_offset
    from kctl.replica.loss.search import LossOptions, LossSearch

    search = LossSearch(options.find(frame), LossOptions((topic,), leader=leader), frame.report)
    return Outcome(explain_offset(search, TopicPartition(topic, partition), offset), text=explain_text)
