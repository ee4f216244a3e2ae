"""`kctl log-dir start`: what a broker does to its log directories when it starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from commands.cli.answer import with_answer
from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN, flag, option
from commands.cli.render import Outcome, Page, Row, finding_line, folding
from formats.words import counted, in_unit
from kctl.errors import BadValue

if TYPE_CHECKING:
    from kctl.evidence.model import FoundEvidence
    from kctl.judging.judgement import Judgement

IS_GOOD = ("nothing is cut", "in other copies", "no readable record")
QUIET = ("load", "recover", "cut_epochs", "drop_snapshot")


@command(
    "start",
    status="0 it starts and destroys nothing · 3 failed, or not judged · 5 it does not start, or destroys records",
)
@evidence("broker", "moment", metavar="FOLDER...")
@option(
    "--kafka-version VERSION", "Apply the rules of this Kafka version.  [default: by the files, at most 3.9]"
)
@option(
    "--other-copies EVIDENCE...",
    "Compare with the copies of other brokers below this folder; repeatable.",
    type=GIVEN,
)
@flag("--all", "Show every step on a terminal, with those that change no record.", into="everything")
def start(
    frame: Frame,
    options: EvidenceOptions,
    kafka_version: str | None,
    other_copies: Sequence[str],
    everything: bool,
) -> Outcome:
    """Forecast what a broker does to these log directories when it starts.

    FOLDER is a log directory or holds those of one broker, stopped or copied. The forecast says whether the process
    starts, which log directories go offline, and what is recovered, truncated, deleted and renamed. Records that the
    start would destroy are looked for in the copies of the other brokers. Nothing is written.

    $ kctl log-dir start /var/lib/kafka/data --kafka-version 3.9
    $ kctl log-dir start broker-3/data --other-copies broker-1/data --other-copies broker-2/data
    $ kctl log-dir start evidence/ --output jsonl | jq 'select(.only_copy)'
    """
    from functools import partial

    from kctl.judging.judgement import Question, judgement_rows
    from kctl.log_dir_start.rules import start_rules

    if kafka_version is not None:
        start_rules(kafka_version)
    evidence = options.find(frame)
    for log_dir in evidence.log_dirs:
        if log_dir.root.is_folder and not log_dir.path.is_relative_to(log_dir.root.path):
            raise BadValue(
                f"{log_dir.root.given_path} is a partition folder, and a broker starts on a log directory",
                f"name the folder that holds it: {log_dir.path}",
            )
    others = [EvidenceOptions((path,)).find(frame) for path in other_copies]
    rows = judgement_rows(_forecast(frame, evidence, others, kafka_version), [Question.START])
    return Outcome(rows, text=folding(with_answer(partial(start_text, everything=everything))))


def _forecast(
    frame: Frame, evidence: FoundEvidence, others: Sequence[FoundEvidence], kafka_version: str | None
) -> Iterator[Row | Judgement]:
    from itertools import chain

    from kctl.identities.of_folders import folder_findings
    from kctl.judging.start import judge_start
    from kctl.judging.start_rows import start_rows
    from kctl.log_dir_start.forecast import starts
    from kctl.log_dir_start.room import room_findings

    for finding in chain(evidence.findings, folder_findings(evidence)):
        yield finding.row()
    if not evidence.log_dirs:
        frame.fail("no log directory found", "name the folder that holds meta.properties or the checkpoints")
    for broker_start in starts(evidence, others, kafka_version):
        yield from (finding.row() for finding in room_findings(evidence, broker_start.rooms))
        judgement = judge_start(broker_start)
        yield from start_rows(broker_start, evidence, judgement.reason)
        yield judgement


def start_text(rows: Iterable[Row], page: Page, *, everything: bool = False) -> Iterator[str]:
    """A block a broker: whether it starts, what it destroys, then the other steps."""
    for row in rows:
        if row["kind"] == "finding":
            yield finding_line(row, page)
        elif row["kind"] == "start":
            yield from _start_text(row, page)
        elif everything or row["step"] not in QUIET:
            yield _step_text(row, page)


def _start_text(row: Row, page: Page) -> Iterator[str]:
    style = "good" if row["starts"] and str(row["reason"]).endswith(IS_GOOD) else "error"
    reason = str(row["reason"])
    moment = f" (moment {row['moment']})" if row["moment"] is not None else ""
    yield page.style(f"{reason[0].upper()}{reason[1:]}{moment}.", style)
    if row["exception"] is not None:
        yield f"    Kafka ends with {row['exception']}: {row['fails_with']}"
    free = row["bytes_free"]
    room = "its free room is unknown" if free is None else f"{_amount(free)} are free"
    yield (
        f"    Rules of Kafka {row['kafka_version']}; {counted(row['partitions'], 'partition folder')}, "
        f"{_amount(row['bytes_read'])} of logs are read, {_amount(row['bytes_written'])} of indexes written; {room}"
    )


def _amount(size: object) -> str:
    amount, unit = in_unit(float(str(size)))
    return f"{amount:,.0f} {unit}"


def _step_text(row: Row, page: Page) -> str:
    name = str(row["log_dir"] if row["folder"] is None else row["folder"])
    lost = page.style("  NO OTHER COPY", "error") if row["only_copy"] else ""
    records = f"  {counted(row['records_cut'], 'record')}" if row["records_cut"] else ""
    return f"    {page.style(name, 'bold')}  {row['message']}{records}{lost}"
