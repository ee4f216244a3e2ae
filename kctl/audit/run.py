"""Run an audit: every part that the evidence has something for, its rows into tables, a summary, the report."""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kctl import __version__
from kctl.audit.batch_rows import Parts
from kctl.audit.by_topic import TopicTableWriter
from kctl.audit.parts import PARTS, Audit, Part
from kctl.audit.resume import forget, keep_below
from kctl.audit.tables import TABLE_OF_KIND, TABLES, TableWriter, table_writer, write_summary
from kctl.errors import KctlError, Refused, reason_of
from kctl.rows.audit import AUDIT
from kctl.rows.internal_topics import METADATA_PARTITION
from kctl.scan.pool import WorkerDied
from kctl.scan.tables import SCHEMAS
from kctl.times import iso

Row = dict[str, object]
DISK_SAYS_NO = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})


@dataclass
class Totals:
    """What the rows add up to."""

    files: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    severities: Counter[str] = field(default_factory=Counter)
    partitions: set[tuple[object, object]] = field(default_factory=set)
    lost: dict[tuple[object, object], list[tuple[int, int | None]]] = field(default_factory=dict)
    brokers: set[int] = field(default_factory=set)

    def count(self, row: Row) -> None:
        """Take a row into account."""
        if row["kind"] == "finding":
            self.severities[str(row["severity"])] += 1
        elif row["kind"] == "examined":
            if isinstance(row["broker_id"], int):
                self.brokers.add(row["broker_id"])
            self.files += 1
            self.bytes += _number(row["size_in_bytes"])
            self.batches += _number(row["batches"])
            self.records += _number(row["records"])
        elif row["kind"] == "loss":
            end = row["to_offset"]
            held = self.lost.setdefault((row["topic"], row["partition"]), [])
            held.append((_number(row["from_offset"]), end if isinstance(end, int) else None))
        is_held = row["kind"] != METADATA_PARTITION.kind  # a cluster has more than the evidence
        if is_held and row.get("topic") is not None and row.get("partition") is not None:
            self.partitions.add((row["topic"], row["partition"]))

    def lost_records(self) -> int:
        """Offsets in the union of the loss ranges; one for a range whose end nobody knows."""
        return sum(_covered(ranges) for ranges in self.lost.values())


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _covered(ranges: list[tuple[int, int | None]]) -> int:
    total, reached = 0, -1
    for start, end in sorted((start, start + 1 if end is None else end) for start, end in ranges):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def prepare_folder(out: Path, evidence_paths: tuple[str, ...]) -> None:
    """Make the output folder; it may hold an earlier audit, nothing else, and lies outside the evidence."""
    place = out.resolve()
    for path in evidence_paths:
        if place.is_relative_to(Path(path).resolve()):
            raise Refused(
                f"{out} lies inside the evidence {path}",
                "write elsewhere with --out; evidence is never written to",
            )
    known = {*TABLES, "batches", "summary.json", "report.html", "resume"}
    if out.is_dir():
        foreign = sorted(
            one.name
            for one in out.iterdir()
            if one.name.lstrip(".").split(".")[0] not in {n.split(".")[0] for n in known}
        )
        if foreign and not (out / "summary.json").exists():
            raise Refused(f"{out} is not empty ({foreign[0]} lies there)", "name a new folder with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KctlError(f"{out}: {reason_of(error)}") from error


def run(
    audit: Audit, out: Path, on_row: Callable[[Row], None] = lambda row: None, *, resume: bool = False
) -> Row:
    """Write the tables and the report below `out`; gives the row of kind `audit`, which is summary.json too.

    `resume` keeps what is finished until all is, and begins with what an earlier such run kept.
    """
    prepare_folder(out, audit.paths)
    parts = tuple(part for part in PARTS if part.is_there(audit.evidence))
    with said_in_one_line(out):
        audit.kept = keep_below(out) if resume else None
    summary = _run_parts(parts, audit, out, on_row)
    forget(out)
    return summary


def _run_parts(
    parts: tuple[Part, ...], audit: Audit, out: Path, on_row: Callable[[Row], None],
    fill_batches: Callable[[TableWriter], None] = lambda writer: None,
) -> Row:  # fmt: skip
    began, started = time.monotonic(), time.time_ns() // 1_000_000
    totals = Totals()
    with said_in_one_line(out), ExitStack() as stack:
        writers = {name: stack.enter_context(table_writer(out, name)) for name in TABLES}
        by_topic = not isinstance(audit.jobs, int | None)  # an engine of many machines
        kind = TopicTableWriter if by_topic else TableWriter
        batches = stack.enter_context(kind(out, "batches", SCHEMAS["batches"]))
        audit.out, audit.write_batches = Parts(batches.workers, by_topic), batches.batches
        fill_batches(batches)
        done = [_run_part(part, audit, writers, totals, on_row) for part in parts]
    summary = _summary(audit, out, totals, done, started, time.monotonic() - began)
    with said_in_one_line(out):
        write_summary(out, summary)
        write_report(out)
    return summary


@contextmanager
def said_in_one_line(out: Path) -> Iterator[None]:
    """A full or read-only disk below `out` as a `KctlError`; other errors are none of its business."""
    try:
        yield
    except OSError as error:
        mine = str(error.filename or "").startswith(str(out))
        if error.errno not in DISK_SAYS_NO and not mine:
            raise
        why = os.strerror(error.errno).lower() if error.errno else str(error).splitlines()[0]
        raise KctlError(
            f"{out}: {why}", "no table was left half written; name another folder with --out"
        ) from error


def merge(
    folders: list[Path], out: Path, audit: Audit, on_row: Callable[[Row], None] = lambda row: None
) -> Row:
    """Join the audits in the folders into one below `out`, and compare what their brokers hold."""
    from kctl.audit.merge import compared_rows, join_batches, joined_rows

    prepare_folder(out, tuple(map(str, folders)))
    parts = (
        Part("join", lambda evidence: True, lambda audit: joined_rows(folders)),
        Part("compare", lambda evidence: True, lambda audit: compared_rows(folders)),
    )
    return _run_parts(parts, audit, out, on_row, lambda writer: join_batches(folders, writer))


def _run_part(
    part: Part, audit: Audit, writers: dict[str, TableWriter], totals: Totals, on_row: Callable[[Row], None]
) -> Row:
    began, state = time.monotonic(), "done"
    try:
        for row in part.rows(audit):
            table = TABLE_OF_KIND.get(str(row["kind"]))
            if table:
                writers[table].row(row)
                totals.count(row)
                on_row(row)
    except WorkerDied:
        raise  # tables without what it was to find would look like a better audit than there is
    except KctlError as error:
        audit.report(error)
        state = f"could not: {error}"
    return {"name": part.name, "state": state, "seconds": round(time.monotonic() - began, 3)}


def write_report(out: Path) -> Path:
    """The HTML report of the tables in a folder; gives its path."""
    from kctl.audit.tables import Tables
    from kctl.report.page import render

    path = out / "report.html"
    aside = out / ".report.html.writing"
    aside.write_text(render(Tables(out)), encoding="utf-8", errors="replace")
    aside.replace(path)
    return path


def _summary(audit: Audit, out: Path, totals: Totals, done: list[Row], started: int, seconds: float) -> Row:
    evidence, errors = audit.evidence, totals.severities["error"]
    compared = any(part["name"] == "loss" and part["state"] == "done" for part in done)
    lost = totals.lost_records() if compared else None
    return AUDIT(
        verdict=verdict(totals, lost, done),
        evidence=" ".join(audit.paths),
        kctl=__version__,
        started=iso(started),
        seconds=round(seconds, 3),
        files=totals.files,
        bytes=totals.bytes,
        batches=totals.batches,
        records=totals.records,
        brokers=sorted({*evidence.broker_ids, *totals.brokers}),
        moments=list(evidence.moments),
        partitions=len(totals.partitions),
        errors=errors,
        warnings=totals.severities["warning"],
        infos=totals.severities["info"],
        lost_records=lost,
        parts=done,
        report=str(out / "report.html"),
    )


def verdict(totals: Totals, lost: int | None, parts: Iterable[Row] = ()) -> str:
    """The verdict in one sentence; silence about parts that could not be done would read as health."""
    said = list(_clauses(totals, lost))
    undone = [str(part["name"]) for part in parts if str(part["state"]).startswith("could not")]
    if undone:
        said.append(f"not everything could be examined: {', '.join(undone)}")
    if not said:
        return "Nothing wrong was found."
    return f"{'; '.join(said)[0].upper()}{'; '.join(said)[1:]}."


def _clauses(totals: Totals, lost: int | None) -> Iterator[str]:
    if lost:
        partitions = len(totals.lost)
        yield f"{lost:,} records are lost in {partitions:,} partition{'' if partitions == 1 else 's'}"
    errors, warnings = totals.severities["error"], totals.severities["warning"]
    if errors:
        yield f"{errors:,} error{'' if errors == 1 else 's'} found"
    if warnings:
        yield f"{warnings:,} warning{'' if warnings == 1 else 's'}"
