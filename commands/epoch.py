"""`kctl epoch`: leader epochs of replicas, and what brokers would do with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from commands.cli.answer import with_answer
from commands.cli.connecting import wire
from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN, RULES_OF_VERSION, option
from commands.cli.render import Outcome, Page, Row, cell, epochs, finding_line, folding
from commands.replica.compare_text import VERDICT_STYLES
from formats.words import counted

if TYPE_CHECKING:
    from kctl.evidence.model import FoundEvidence
    from kctl.evidence.replica_copies import Copy


def _copies(frame: Frame, options: EvidenceOptions, evidence: FoundEvidence) -> list[Copy]:
    from kctl.evidence.replica_copies import every_copy

    options.report_absent(frame, evidence)
    return every_copy(evidence, options.topics)


@command("show", paged=True)
@evidence("broker", "moment", "topic")
def show(frame: Frame, options: EvidenceOptions) -> Outcome:
    """Show the leader epochs of each replica from its checkpoint and its batches.

    $ kctl epoch show /data/kafka/orders-0
    $ kctl epoch show broker-1/data --topic orders
    """
    from kctl.replica.epoch_rows import show_rows

    evidence = options.find(frame, reads_once=True)
    rows = show_rows(_copies(frame, options, evidence))
    return Outcome(_with_findings(evidence, rows), text=folding(epoch_text))


def _with_findings(evidence: FoundEvidence, rows: Iterator[Row]) -> Iterator[Row]:
    for finding in evidence.findings:
        yield finding.row()
    yield from rows


@command("end-offset", paged=True)
@evidence("broker", "moment", "topic")
@option("--epoch N", "Ask for this leader epoch.", type=int, required=True)
@RULES_OF_VERSION
def end_offset(frame: Frame, options: EvidenceOptions, epoch: int, kafka_version: str) -> Outcome:
    """Show how each replica would answer OffsetsForLeaderEpoch.

    For a topic or partition of a running cluster the leader is asked as well, and the rows show differences.

    $ kctl epoch end-offset --epoch 3 /data/kafka/orders-0
    $ kctl epoch end-offset --epoch 3 --kafka-version 1.1 broker-1/data
    $ kctl epoch end-offset --epoch 3 --bootstrap-server kafka1:9092 orders-0
    """
    from kctl.replica.epoch_rows import end_offset_rows
    from kctl.replication.rules import rules_for

    rules = rules_for(kafka_version)
    evidence = options.find(frame, reads_once=True)
    rows = list(end_offset_rows(_copies(frame, options, evidence), epoch, rules))
    return Outcome(
        [*rows, *_leaders_answers(frame, options.paths, rows, epoch)], text=folding(end_offset_text)
    )


def _leaders_answers(frame: Frame, paths: tuple[str, ...], rows: Sequence[Row], epoch: int) -> Iterator[Row]:
    """The answers of the leaders of partitions that were read from the running cluster."""
    from commands.cli.live_paths import is_live
    from kctl.model import TopicPartition

    live = {
        TopicPartition(str(row["topic"]), int(str(row["partition"]))): row
        for row in rows
        if is_live(frame, paths, f"{row['topic']}-{row['partition']}", str(row["topic"]))
    }
    if not live:
        return
    from kctl.replica.epoch_rows import answer_difference
    from kctl.rows.live import LEADER_END_OFFSET
    from kctl.wire.reading import read_cluster
    from kctl.wire.replicas.fetching import ask_leaders

    with wire(frame) as connected:
        state = read_cluster(connected, {tp.topic for tp in live})
        answers = ask_leaders(connected, state, live, epoch)
    for answer in answers:
        difference = None
        if answer.error is None:
            difference = answer_difference(live[answer.partition], answer.leader_epoch, answer.end_offset)
        else:
            frame.raise_status(3)
        broker_id = answer.leader if answer.leader >= 0 else None
        yield LEADER_END_OFFSET.of(answer, broker_id=broker_id, requested_epoch=epoch, difference=difference)


@command("truncation", paged=True)
@evidence("broker", "moment", "topic")
@option("--leader FOLDER", "Log directory of the leader.", into="leaders", required=True, type=GIVEN)
@RULES_OF_VERSION
def truncation(frame: Frame, options: EvidenceOptions, leaders: str, kafka_version: str) -> Outcome:
    """Show the offset that each follower would truncate to under a leader.

    $ kctl epoch truncation broker-1/data/orders-0 --leader broker-2/data/orders-0
    $ kctl epoch truncation broker-1/data --leader broker-2/data --kafka-version 0.10.2
    """
    from kctl.replica.epoch_rows import truncation_rows
    from kctl.replication.rules import rules_for

    rules = rules_for(kafka_version)
    evidence = options.find(frame, reads_once=True)
    leading = EvidenceOptions((leaders,)).find(frame, reads_once=True)
    rows = truncation_rows(_copies(frame, options, evidence), _copies(frame, options, leading), rules)
    return Outcome(rows, text=folding(truncation_text))


@command("compare", status="0 all lineages agree · 3 failed, or not judged · 5 lineages diverge")
@evidence("broker", "moment", "topic")
def compare(frame: Frame, options: EvidenceOptions) -> Outcome:
    """Compare the leader epochs of replicas and show where they diverge.

    $ kctl epoch compare broker-1/data/orders-0 broker-2/data/orders-0
    $ kctl epoch compare evidence/moments/during --topic ledger
    """
    from kctl.copies.moments import assigned_in, clusters_of
    from kctl.evidence.replica_copies import every_copy
    from kctl.judging.judgement import Question, judgement_rows
    from kctl.replica.epoch_rows import compare_rows

    evidence = options.find(frame, reads_once=True)
    clusters = clusters_of(evidence, frame.report)
    options.report_absent(frame, evidence, assigned_in(clusters))
    assigned = {tp: replicas for cluster in clusters.values() for tp, replicas in cluster.replicas.items()}
    items = compare_rows(every_copy(evidence, options.topics), assigned, evidence)
    rows = judgement_rows(items, [Question.DIVERGENCE], options.fit(frame, evidence))
    return Outcome(_with_findings(evidence, rows), text=folding(with_answer(epoch_text)))


def epoch_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a replica, under the name of its partition; differences and branch points below."""
    partition: object = None
    is_compared = False
    for row in rows:
        is_compared = is_compared or row["kind"] == "verdict"
        if row["kind"] != "finding" and (row["topic"], row["partition"]) != partition:
            partition = row["topic"], row["partition"]
            yield page.style(f"{row['topic']}-{row['partition']}", "bold")
        yield from _LINES[str(row["kind"])](row, page)
    if is_compared:
        yield page.style("only epochs were compared; `kctl replica compare` compares bytes", "dim")


def _broker(row: Row) -> str:
    """The broker, and the moment where copies have one."""
    who = "broker ?" if row["broker_id"] is None else f"broker {row['broker_id']}"
    return f"{who} {row['moment']}" if row["moment"] else who


def _or_dash(value: object) -> object:
    return "-" if value is None else value


def _lineage(row: Row, page: Page) -> Iterator[str]:
    yield (
        f"    {_broker(row):<18} [{row['log_start_offset']}, {row['log_end_offset']})  "
        f"high watermark {_or_dash(row['high_watermark'])}  epochs {epochs(row['epochs'])}"
    )


def _difference(row: Row, page: Page) -> Iterator[str]:
    recorded, rebuilt = _or_dash(row["recorded_start"]), _or_dash(row["rebuilt_start"])
    line = f"        epoch {row['epoch']}: checkpoint {recorded}, batches {rebuilt}: {row['meaning']}"
    yield page.style(line, "dim")


def _divergence(row: Row, page: Page) -> Iterator[str]:
    line = f"    {_pair(row)}: different epochs at [{row['from_offset']}, {row['to_offset']})"
    yield page.style(line, "error")


def _verdict(row: Row, page: Page) -> Iterator[str]:
    style = VERDICT_STYLES.get(str(row["verdict"]), "error")
    why = f": {row['reason']}" if row["verdict"] in ("diverged", "unknown") else ""
    yield f"    {_pair(row)}: {page.style(str(row['verdict']), style)}{why}"


def _pair(row: Row) -> str:
    """The two brokers, each with its moment where these differ."""
    ids = cast("list[int]", row["broker_ids"])
    moments = cast("list[str | None]", row["moments"] or [row["moment"]] * 2)
    return ", ".join(f"{id} {moment}" if moment else str(id) for id, moment in zip(ids, moments, strict=True))


def _finding(row: Row, page: Page) -> Iterator[str]:
    yield finding_line(row, page)


_LINES = {
    "lineage": _lineage,
    "epoch_difference": _difference,
    "divergence": _divergence,
    "verdict": _verdict,
    "finding": _finding,
}


def end_offset_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a replica, under the name of its partition; the answer of a running leader below."""
    partition: object = None
    for row in rows:
        if (row["topic"], row["partition"]) != partition:
            partition = row["topic"], row["partition"]
            name = page.style(f"{row['topic']}-{row['partition']}", "bold")
            yield f"{name}  asked for epoch {row['requested_epoch']}"
        if row["kind"] == "end_offset":
            yield f"    {_broker(row):<18} {_answer(row)}"
            continue
        leader = "broker ?" if row["broker_id"] is None else f"broker {row['broker_id']}"
        if row["error"]:
            yield page.style(f"    {leader} (live) gave no answer: {row['error']}", "error")
        else:
            difference = f"; {row['difference']}" if row["difference"] else ""
            yield f"    {leader} (live): {_answer(row)}{difference}"


def _answer(row: Row) -> str:
    if row["end_offset"] == -1:
        return "undefined: the epoch is unknown"
    epoch = "" if row["leader_epoch"] is None else f"epoch {row['leader_epoch']} "
    return f"{epoch}ends at {row['end_offset']}"


def truncation_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a follower: where it would truncate and what that drops; requests and answers below."""
    for row in rows:
        name = page.style(f"{row['topic']}-{row['partition']}", "bold")
        at = f" {row['moment']}" if row["moment"] else ""
        follower = "?" if row["broker_id"] is None else row["broker_id"]
        leader = "?" if row["leader"] is None else row["leader"]
        dropped = row["offsets_dropped"]
        action = (
            f"truncates to {row['truncate_to']} and drops {counted(dropped, 'offset')}"
            if dropped
            else "drops nothing"
        )
        below = ", below its own high watermark" if row["below_own_high_watermark"] else ""
        line = f"broker {follower}{at} {action} under broker {leader}{below}"
        yield f"{name}  {page.style(line, 'error') if below else line}  ({row['algorithm']}, {row['kafka_version']})"
        for exchange in cast("list[dict[str, object]]", row["rounds"]):
            yield f"    {', '.join(f'{key} {_short(value)}' for key, value in exchange.items() if value is not None)}"


def _short(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key} {part}" for key, part in value.items())
    return cell(value)
