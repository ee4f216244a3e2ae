"""`kctl audit`: all checks over the evidence of a cluster, with tables, a summary and a report."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from commands.cli.answer import with_answer
from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN, GIVEN_PATH, STORE_OR_PATH, flag, option
from commands.cli.render import Outcome, Page, Row, folding
from formats.words import counted
from kctl.errors import BadValue, KctlError, UnreadableFile, file_error, two_slashes
from kctl.files import read_text
from kctl.judging.judgement import Question

if TYPE_CHECKING:
    from kctl.audit.publishing import Target
    from kctl.evidence.model import FoundEvidence
    from kctl.model import Progress
    from kctl.scan.pool import Engine

SEVERITIES = ("error", "warning")
SHOWN = 10  # losses on a terminal
SHOWN_IN_MEMORY = 16 << 20  # bytes of rows that wait for the end of the run; the rest waits on disk
MASTER = option(
    "--master URL",
    "Spark master for --engine spark: spark://..., yarn, k8s://..., sc://..., local[N].",
    default="local[*]",
)


@command(
    "run",
    has_metrics=True,
    status="0 all that was asked is whole · 3 a path could not be opened, or something could not be judged · 4 --out contains other files · 5 something is wrong",
)
@evidence("broker", "moment", "jobs", "compacted", "acks")
@option(
    "--out DIRECTORY",
    "Write tables and report to this folder or URL; needed but for --dry-run.",
    into="where",
    type=STORE_OR_PATH,
)
@option(
    "--engine", "Run on this machine or on Spark.", type=click.Choice(["local", "spark"]), default="local"
)
@MASTER
@flag("--merge", "Join the tables of audits made on the brokers and compare; EVIDENCE are their folders.")
@flag("--resume", "Keep finished work in DIRECTORY/.resume and continue a killed run.")
@flag("--overwrite", "Replace an earlier report in DIRECTORY.")
@flag(
    "--dry-run", "List what the evidence holds, with tasks, requests and an estimate of time; write nothing."
)
@option(
    "--questions LIST",
    f"Judge these questions only, comma-separated: {', '.join(Question)}.  [default: all that the evidence covers]",
)
@option(
    "--digests",
    "Digest of each file, computed as it is read.",
    type=click.Choice(["none", "sha256", "blake2b"]),
    default="sha256",
)
@flag("--no-sha256", "Do not compute the SHA-256 of each file.")
def run(
    frame: Frame,
    options: EvidenceOptions,
    where: str | None,
    digests: str,
    no_sha256: bool,
    questions: str | None,
    engine: str,
    master: str,
    merge: bool,
    resume: bool,
    overwrite: bool,
    dry_run: bool,
) -> Outcome:
    """Check everything in the evidence and write tables and an HTML report.

    EVIDENCE is one or more folders with log directories, broker logs, znode exports and tiers, of one moment or
    several, nested in any way. The evidence is never written to.

    A terminal shows a summary. A pipe gets every row, tab-separated; with --color always the summary.

    $ kctl audit run evidence/ --out report
    $ kctl audit run broker-1/ broker-2/ broker-3/ --out report --jobs 8
    $ kctl audit run /var/lib/kafka/data --out /tmp/report --digests none --output jsonl
    $ kctl audit run /mnt/evidence --out /mnt/report --engine spark --master spark://host:7077
    $ kctl audit run /mnt/evidence --out /mnt/report --resume
    $ kctl audit run s3://incident-42/evidence --out s3://incident-42/report
    $ kctl audit run s3://incident-42/evidence --out /mnt/report --engine spark --master yarn
    $ kctl audit run s3://incident-42/evidence --dry-run
    $ kctl audit run --merge broker-1-report/ broker-2-report/ --out report
    $ kctl audit run /var/lib/kafka/data --out report --overwrite --output openmetrics > audit.prom.tmp
    """
    from commands.cli.openmetrics import as_metrics, audit_metrics
    from kctl.audit.parts import Audit
    from kctl.audit.run import merge as merge_audits
    from kctl.audit.run import run as run_audit
    from kctl.checks.report import CheckOptions
    from kctl.evidence.discover import discover
    from kctl.report.page import write_report

    frame.acks = options.acks
    _refuse_master(engine)
    paths = options.paths
    evidence = discover(()) if merge else options.find(frame)
    if paths and set(paths) <= set(evidence.unopened):
        return Outcome()  # none of them can be opened, which is reported already
    if dry_run:
        return _estimated(evidence, options, _cores(engine, master, options.jobs), merge=merge)
    if where is None:
        raise click.UsageError("Missing option '--out'")
    target, out = _target(where, resume=resume, overwrite=overwrite)
    checks = CheckOptions(compacted=frozenset(options.compacted))
    digest = None if digests == "none" or (no_sha256 and digests == "sha256") else digests
    audit = Audit(
        evidence,
        paths,
        frame.report,
        checks,
        options.jobs,
        digest,
        questions=parse_questions(questions),
        options=options.named(),
        progress=frame.progress(),
        out_name=target.shown_url if target else "",
    )

    def make(keep: Callable[[Row], None]) -> Row:
        with _engine(engine, master, audit.progress) as started:
            audit.jobs = started or options.jobs
            if merge:
                with _reading_tables():
                    summary = merge_audits(
                        list(map(Path, paths)), out, audit, keep, write_page=write_report, overwrite=overwrite
                    )
            else:
                summary = run_audit(
                    audit, out, keep, write_page=write_report, resume=resume, overwrite=overwrite
                )
            if target:
                target.publish(out)
        return summary

    following: list[str] = []
    text = partial(audit_text, out=out, following=following)
    rows = _shown_rows(make)
    encoded = as_metrics(frame, "audit run", rows, audit_metrics)
    return Outcome(rows, text=folding(with_answer(text, following)), encoded=encoded)


def _shown_rows(make: Callable[[Callable[[Row], None]], Row]) -> Iterator[Row]:
    """The rows that are printed: findings and losses that `make` hands out, then judgements and the summary."""
    with tempfile.SpooledTemporaryFile(SHOWN_IN_MEMORY) as shown:

        def keep(row: Row) -> None:
            if row["kind"] in ("finding", "loss", "judgement"):
                shown.write(json.dumps(row).encode() + b"\n")

        summary = make(keep)
        shown.seek(0)
        yield from map(json.loads, shown)
        yield from cast("list[Row]", summary["judgements"])
        yield summary


@contextmanager
def _reading_tables(where: str = "") -> Iterator[None]:
    """KctlError for what goes wrong with tables that were read back: others may have written them."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise KctlError(
            f"{where}the tables were not written by `kctl audit run`, or are damaged ({type(error).__name__}: {error})",
            "run `kctl audit run` again",
        ) from error


def _estimated(
    evidence: FoundEvidence, options: EvidenceOptions, cores: int | None, *, merge: bool
) -> Outcome:
    """What the evidence holds, and what the audit would do."""
    from commands.inventory import picture
    from kctl.audit.estimate import estimate, estimate_text
    from kctl.evidence.discover import given_broker_folders
    from kctl.evidence.inventory import Inventory

    if merge:
        raise BadValue("--dry-run with --merge", "a merge reads the tables of the audits, and no evidence")
    row = estimate(evidence, options.paths, cores)
    files = Inventory(evidence.roots, given_broker_folders(options.brokers)).rows()

    def text(rows: Iterable[Row], page: Page) -> Iterator[str]:
        yield from picture(files, page, options.paths, next_command=False)
        yield ""
        yield from estimate_text(row)

    return Outcome(chain(files, [row]), text=text)


def _cores(engine: str, master: str, jobs: int | None) -> int | None:
    """How many cores work at once; None where a cluster decides."""
    from kctl.scan.pool import default_jobs

    if engine == "local":
        return jobs or default_jobs()
    if not master.startswith("local"):
        return None
    number = re.match(r"local\[(\d+)", master)
    return int(number[1]) if number else default_jobs() if "*" in master else 1


def _refuse_master(engine: str) -> None:
    """UsageError where a master is named for an engine that has none: whoever names one means Spark."""
    named = click.get_current_context().get_parameter_source("master")
    if engine != "spark" and named is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--master needs --engine spark")


def _target(where: str, *, resume: bool, overwrite: bool) -> tuple[Target | None, Path]:
    """Where the report goes: the prefix of a store and the folder that it is made in, or that folder alone."""
    from kctl.stores.file_systems import is_url

    if hint := two_slashes(where):
        raise BadValue(f"{where!r} is neither a URL nor a folder", hint)
    if where.startswith("file://"):
        raise BadValue(f"{where!r} is a URL of this machine", "give --out the path")
    if not is_url(where):
        return None, Path(where)
    if resume:
        raise BadValue(
            f"--resume with --out {where}", "write to a folder that every process sees, and copy it"
        )
    from kctl.audit.publishing import Target
    from kctl.audit.run import OWN_NAMES

    target = Target(where)
    target.refuse_others(OWN_NAMES, overwrite=overwrite)
    folder = tempfile.mkdtemp(prefix="kctl-report-")

    def remove() -> None:
        if not target.kept:
            shutil.rmtree(folder, ignore_errors=True)

    click.get_current_context().call_on_close(remove)
    return target, Path(folder)


def parse_questions(text: str | None) -> tuple[Question, ...]:
    """The questions of a comma-separated list; BadValue for a name that is none."""
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in list(Question):
            raise BadValue(f"{name!r} is not a question", f"the questions are {', '.join(Question)}")
    return tuple(question for question in Question if question in names)


@contextmanager
def _engine(name: str, master: str, progress: Progress) -> Iterator[Engine | None]:
    """The engine for the work; None for processes of this machine."""
    if name == "local":
        yield None
        return
    with _spark(master) as spark:
        from kctl.spark.tasks import (
            SparkEngine,
            cores_of,
        )  # behind the session, which says what is not installed

        yield SparkEngine(spark, cores_of(spark), progress)


@contextmanager
def _spark(master: str) -> Iterator[Any]:
    """A Spark session without log messages."""
    import logging

    from kctl.spark.session import session

    # py4j logs a traceback for a call that Ctrl-C interrupts; the exception is raised anyway.
    logging.getLogger().addHandler(logging.NullHandler())
    with session(master) as spark:
        yield spark


def audit_text(
    rows: Iterable[Row], page: Page, out: Path | None = None, following: list[str] | None = None
) -> Iterator[str]:
    """Losses, findings by code, then totals and, from the tables in `out`, what happened; the next command goes to `following`."""
    from collections import Counter

    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    losses = 0
    for row in rows:
        if row["kind"] == "finding":
            key = str(row["severity"]), str(row["code"])
            counts[key] += 1
            first.setdefault(key, f"{_where(row)}{row['message']}")
        elif row["kind"] == "loss":
            losses += 1
            if losses <= SHOWN:
                yield _loss_line(row)
        else:
            if losses > SHOWN:
                yield f"{counted(losses - SHOWN, 'more loss', 'more losses')}, which the report lists"
            yield from _findings_lines(counts, first, page)
            yield from _last_lines(row, page, out, [] if following is None else following)


def _where(row: Row) -> str:
    """The file of a finding, else its partition, with a colon."""
    partition = f"{row['topic']}-{row['partition']}" if row["partition"] is not None else row["topic"]
    place = row["file"] or partition
    return f"{place}: " if place else ""


def _loss_line(row: Row) -> str:
    from kctl.replica.loss.words import cause_words, offsets_of

    name = f"{row['topic']}-{row['partition']}"
    return f"lost  {name}  offsets {offsets_of(row)}  {row['class']}  {cause_words(row['cause'])}"


def _findings_lines(
    counts: dict[tuple[str, str], int], first: dict[tuple[str, str], str], page: Page
) -> Iterator[str]:
    from textwrap import wrap

    order = ("error", "warning", "info")
    for severity, code in sorted(counts, key=lambda key: (order.index(key[0]), -counts[key])):
        yield f"{page.style(f'{severity:<8}', severity)} {counts[severity, code]:>6,}  {code}"
        if severity in SEVERITIES:
            yield from wrap(
                first[severity, code], page.width, initial_indent=" " * 17, subsequent_indent=" " * 17
            )


def _last_lines(row: Row, page: Page, out: Path | None, following: list[str]) -> Iterator[str]:
    from kctl.audit.tables import Tables
    from kctl.replica.loss.words import where_else
    from kctl.report.answer import START, answer_of
    from kctl.report.incidents import incidents

    yield ""
    amounts = f"{counted(row['files'], 'file')}, {counted(row['bytes'], 'byte')}, {counted(row['records'], 'record')}"
    brokers = row["brokers"] if isinstance(row["brokers"], list | tuple) else ()
    of_brokers = f" of brokers {', '.join(map(str, brokers))}" if brokers else ""
    yield f"{amounts}{of_brokers} in {row['seconds']} s"
    yield f"report   {row['report']}"
    if out is None:
        return
    tables = Tables(out)
    answer = answer_of(tables, incidents(tables))
    sentences = [sentence for sentence in answer.sentences if sentence not in answer.coverages]
    if sentences:
        yield page.style(" ".join(sentences), answer.severity or "bold")
    yield from (f"  {sentence}" for sentence, _ in answer.incidents)
    if answer.more_incidents:
        yield f"  {answer.more_incidents}"
    if elsewhere := where_else(answer.losses):
        yield elsewhere
    if answer.severity in SEVERITIES:
        commands = [command for command, _ in answer.commands]
        following += [commands[0], *(command for command in commands[1:] if command.startswith(START))]


@command("report", status="0 written · 3 no audit found")
@click.argument("folder", type=GIVEN_PATH)
@option(
    "--format",
    "Write report.html to the folder, or print its first screen as Markdown.",
    into="form",
    type=click.Choice(["html", "markdown"]),
    default="html",
)
def report(frame: Frame, folder: Path, form: str) -> Outcome | None:
    """Write the HTML report again from the tables of an audit.

    --format markdown writes no file. It prints a text for a ticket: what happened, what to run next, what is lost, and
    what was not judged.

    $ kctl audit report report/
    $ kctl audit report report/ --format markdown > ticket.md
    """
    if form == "markdown":
        from kctl.audit.tables import Tables
        from kctl.report.answer import markdown

        return Outcome(encoded=lambda _: [markdown(Tables(folder)).encode("utf-8", "replace")])
    from kctl.report.page import write_report

    with _reading_tables(f"{folder}: "):
        frame.note(f"written {write_report(folder)}")
    return None


@command(
    "sql", status="0 done · 2 the statement is refused · 3 no audit found, or the engine is not installed"
)
@click.argument("folder", type=GIVEN_PATH)
@click.argument("statement", required=False)
@option("--file FILE", "Read the statement from FILE; `-` is standard input.", type=GIVEN)
@option("--engine", "Query engine.", type=click.Choice(["duckdb", "spark"]), default="duckdb")
@MASTER
def sql(
    frame: Frame, folder: Path, statement: str | None, file: str | None, engine: str, master: str
) -> Outcome:
    """Query the tables of an audit with SQL.

    $ kctl audit sql report/ "SELECT code, count(*) FROM findings GROUP BY code ORDER BY 2 DESC"
    $ kctl audit sql report/ --file docs/sql/largest-batches.sql --output jsonl
    $ kctl audit sql /mnt/report --file docs/sql/late-timestamps.sql --engine spark --master spark://host:7077
    """
    from kctl.audit.tables import Tables

    if (statement is None) == (file is None):
        raise click.UsageError("give a statement or --file, not both")
    _refuse_master(engine)
    query_text, tables = str(statement) if file is None else _statement_in(file), Tables(folder)

    def rows() -> Iterator[Row]:
        if engine == "duckdb":
            from kctl.audit.sql import query

            yield from ({"kind": "row", **row} for row in query(tables, query_text))
            return
        with _spark(master) as spark:
            from kctl.spark.sql import query as query_spark

            yield from ({"kind": "row", **row} for row in query_spark(spark, tables, query_text))

    return Outcome(rows())


def _statement_in(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return read_text(file, follow=True)
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{file}: is not UTF-8 text", f"byte {error.start}") from None
    except OSError as error:
        raise file_error(file, error) from None
