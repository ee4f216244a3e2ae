"""`kctl audit`: everything over the evidence of a whole cluster, as tables, a summary and a report."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.evidence_options import evidence_options, find_evidence
from commands.frame import Frame, command
from commands.path_types import GIVEN, GIVEN_PATH
from commands.render import Outcome, Page, Row
from kctl.errors import UnreadableFile

if TYPE_CHECKING:
    from kctl.model import Progress
    from kctl.scan.pool import Engine

SEVERITIES = ("error", "warning")
MASTER = click.option(
    "--master",
    default="local[*]",
    show_default=True,
    metavar="URL",
    help="With --engine spark: spark://..., yarn, k8s://..., sc://..., local[N].",
)


@command(
    "run",
    examples="""
    kctl audit run evidence/ --out report
    kctl audit run broker-1/ broker-2/ broker-3/ --out report --jobs 8
    kctl audit run /var/lib/kafka/data --out /tmp/report --no-sha256 --output jsonl
    kctl audit run /mnt/evidence --out /mnt/report --engine spark --master spark://host:7077
    kctl audit run /mnt/evidence --out /mnt/report --resume
    kctl audit run --merge broker-1-report/ broker-2-report/ --out report
    """,
    status="0 nothing wrong · 3 a path could not be opened · 4 the folder --out is in use · 5 something is wrong",
)
@evidence_options
@click.option(
    "--out",
    required=True,
    type=GIVEN_PATH,
    metavar="DIRECTORY",
    help="Folder for tables and report.",
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Worker processes.  [default: one a core]")
@click.option(
    "--compacted", multiple=True, metavar="TOPIC", help="A topic that is compacted; may be repeated."
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="What does the work.",
)
@MASTER
@click.option(
    "--merge",
    is_flag=True,
    help="EVIDENCE are folders of audits made on the brokers: join their tables and compare.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Keep in DIR/.resume what is finished, and go on from there after a run that was killed.",
)
@click.option("--no-sha256", is_flag=True, help="Do not compute the SHA-256 of each file.")
def run(
    frame: Frame, paths: tuple[str, ...], brokers: tuple[str, ...], moments: tuple[str, ...],
    out: Path, jobs: int | None, compacted: tuple[str, ...], no_sha256: bool, engine: str, master: str, merge: bool,
    resume: bool,
) -> Outcome:  # fmt: skip
    """Examine everything in the evidence, and write tables and an HTML report.

    EVIDENCE is one folder or several: log directories, brokers' logs, znode exports, tiers, of one moment or
    of many, nested in any way. Nothing is written to it.
    """
    from kctl.audit.parts import Audit
    from kctl.audit.run import merge as merge_audits
    from kctl.audit.run import run as run_audit
    from kctl.checks.report import CheckOptions
    from kctl.evidence.discover import discover

    evidence = discover(()) if merge else find_evidence(frame, paths, brokers, moments)
    if evidence.failures and len(evidence.failures) >= len(paths):
        return Outcome()  # none of them can be opened, which is said already
    audit = Audit(
        evidence, paths, frame.report, CheckOptions(compacted=frozenset(compacted)), jobs, not no_sha256,
        progress=frame.progress(),
    )  # fmt: skip

    def rows() -> Iterator[Row]:
        found: list[Row] = []

        def keep(row: Row) -> None:
            if row["kind"] in ("finding", "loss"):
                found.append(row)

        with _engine(engine, master, audit.progress) as started:
            audit.jobs = started or jobs
            if merge:
                summary = merge_audits([Path(path) for path in paths], out, audit, keep)
            else:
                summary = run_audit(audit, out, keep, resume=resume)
        yield from found
        yield summary

    return Outcome(rows(), text=audit_text)


@contextmanager
def _engine(name: str, master: str, progress: Progress) -> Iterator[Engine | None]:
    """The engine that does the work; None for this machine's processes."""
    if name == "local":
        yield None
        return
    from kctl.spark.tasks import SparkEngine, cores_of

    with _spark(master) as spark:
        yield SparkEngine(spark, cores_of(spark), progress)


@contextmanager
def _spark(master: str) -> Iterator[Any]:
    """A Spark session that is quiet."""
    import logging

    from kctl.spark.session import session

    # py4j logs a traceback for the call that Ctrl-C cuts off; what matters comes as an exception.
    logging.getLogger().addHandler(logging.NullHandler())
    with session(master) as spark:
        yield spark


def audit_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Findings by code, losses, then the verdict and where the report lies."""
    from collections import Counter

    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for row in rows:
        if row["kind"] == "finding":
            key = str(row["severity"]), str(row["code"])
            counts[key] += 1
            first.setdefault(key, f"{_where(row)}{row['message']}")
        elif row["kind"] == "loss":
            yield _loss_line(row)
        else:
            yield from _findings_lines(counts, first, page)
            yield from _last_lines(row, page)


def _where(row: Row) -> str:
    """The file of a finding, else its partition, before what is said of it."""
    partition = f"{row['topic']}-{row['partition']}" if row["partition"] is not None else row["topic"]
    place = row["file"] or partition
    return f"{place}: " if place else ""


def _loss_line(row: Row) -> str:
    end = "?" if row["to_offset"] is None else f"{row['to_offset']:,}"
    return f"lost  {row['topic']}-{row['partition']}  offsets [{row['from_offset']:,}, {end})  {row['class']}  {row['cause']}"


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


def _last_lines(row: Row, page: Page) -> Iterator[str]:
    yield ""
    amounts = f"{row['files']:,} files, {row['bytes']:,} bytes, {row['records']:,} records"
    brokers = row["brokers"] if isinstance(row["brokers"], list | tuple) else ()
    whose = f" of brokers {', '.join(map(str, brokers))}" if brokers else ""
    yield f"{amounts}{whose} in {row['seconds']} s"
    yield page.style(str(row["verdict"]), "bold")
    yield f"report   {row['report']}"


@command("report", examples="kctl audit report report/", status="0 written · 3 no audit lies there")
@click.argument("folder", type=GIVEN_PATH)
def report(frame: Frame, folder: Path) -> None:
    """Make the HTML report anew from the tables of an audit."""
    from kctl.audit.run import write_report

    frame.note(f"written {write_report(folder)}")


@command(
    "sql",
    examples="""
    kctl audit sql report/ "SELECT code, count(*) FROM findings GROUP BY code ORDER BY 2 DESC"
    kctl audit sql report/ --file docs/sql/largest-batches.sql --output jsonl
    kctl audit sql /mnt/report --file docs/sql/late-timestamps.sql --engine spark --master spark://host:7077
    """,
    status="0 done · 2 the statement is refused · 3 no audit lies there, or the engine is not installed",
)
@click.argument("folder", type=GIVEN_PATH)
@click.argument("statement", required=False)
@click.option("--file", type=GIVEN, metavar="FILE", help="A file with the statement; `-` is standard input.")
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    default="duckdb",
    show_default=True,
    help="What answers.",
)
@MASTER
def sql(
    frame: Frame, folder: Path, statement: str | None, file: str | None, engine: str, master: str
) -> Outcome:
    """Ask the tables of an audit in SQL."""
    from kctl.audit.tables import Tables

    if (statement is None) == (file is None):
        raise click.UsageError("a statement or --file, one of them")
    asked, tables = str(statement) if file is None else _statement_in(file), Tables(folder)

    def rows() -> Iterator[Row]:
        if engine == "duckdb":
            from kctl.audit.sql import query

            yield from ({"kind": "row", **row} for row in query(tables, asked))
            return
        from kctl.spark.sql import query as query_spark

        with _spark(master) as spark:
            yield from ({"kind": "row", **row} for row in query_spark(spark, tables, asked))

    return Outcome(rows())


def _statement_in(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{file}: is no text in UTF-8", f"byte {error.start}") from None
