"""Run an audit: every part that the evidence has something for, its rows into tables, a summary, the report."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex

from formats.values import Struct, field
from formats.words import counted
from kctl.audit import batch_rows
from kctl.audit.batch_rows import BatchFiles
from kctl.audit.parts import MOST_NOTED, PARTS, Audit, AuditPart
from kctl.audit.resume import FOLDER, forget, is_of_run, keep_below, run_digest
from kctl.audit.tables import TABLE_OF_KIND, TABLES, TableWriter, write_file, write_summary
from kctl.errors import KctlError, Refused, file_error, reason_of
from kctl.evidence.model import FoundEvidence
from kctl.judging.fetching import fitting
from kctl.judging.judgement import Coverage, Judgement, Question
from kctl.judging.sentences import audit_sentence
from kctl.model import Row
from kctl.rows.audit import AUDIT
from kctl.rows.internal_topics import METADATA_PARTITION
from kctl.scan.pool import Engine, Jobs, WorkerDied
from kctl.stores.file_systems import StoreGone
from kctl.stores.mirror import ask_all, given_name, mirror_of, mirrors
from kctl.stores.request_counts import REQUESTS
from kctl.stores.sent_mirrors import SentStore, reached, stores
from kctl.times import iso
from kctl.version import __version__

WritePage = Callable[[Path], object]
DISK_SAYS_NO = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})


class AuditTotals(Struct):
    """The totals of the rows of an audit, for its summary."""

    files: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    severities: Counter[str] = field(default_factory=Counter)
    partitions: set[tuple[object, object]] = field(default_factory=set)
    lost: dict[tuple[object, object], list[tuple[int, int | None]]] = field(default_factory=dict)
    dropped: dict[tuple[object, object], list[tuple[int, int | None]]] = field(default_factory=dict)
    """Ranges of uncommitted records that were dropped at a handover."""
    is_at_least: bool = False
    """Whether more may be lost than the ranges say."""
    brokers: set[int] = field(default_factory=set)
    coverages: dict[Question, Coverage] = field(default_factory=dict)  # of each question asked

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
            ranges = self.dropped if row["cause"] == "handover" else self.lost
            partition_ranges = ranges.setdefault((row["topic"], row["partition"]), [])
            partition_ranges.append((_number(row["from_offset"]), end if isinstance(end, int) else None))
            self.is_at_least |= ranges is self.lost and row["is_at_least"] is True
        is_held = row["kind"] != METADATA_PARTITION.kind  # a cluster has more than the evidence
        if is_held and row.get("topic") is not None and row.get("partition") is not None:
            self.partitions.add((row["topic"], row["partition"]))

    def judge(self, judgement: Judgement) -> None:
        """Take a judgement into the coverage of its question."""
        self.coverages.setdefault(judgement.question, Coverage(judgement.question)).add(judgement)

    def lost_records(self) -> int:
        """Offsets in the union of the loss ranges; one for a range whose end nobody knows."""
        return sum(_covered(ranges) for ranges in self.lost.values())

    def dropped_records(self) -> int:
        """The same for what handovers dropped."""
        return sum(_covered(ranges) for ranges in self.dropped.values())


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _covered(ranges: list[tuple[int, int | None]]) -> int:
    total, reached = 0, -1
    for start, end in sorted((start, start + 1 if end is None else end) for start, end in ranges):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


# --- the output folder ------------------------------------------------------------------------------------

REPORT_FILES = ("summary.json", "report.html")
LEFT = re.compile(
    r"\.\w+\.(old|writing)|\.(summary\.json|report\.html)\.[0-9a-f]+\.writing|\.reach-[0-9a-f]+"
)
"""Unfinished files that a killed run leaves; the next run deletes them."""
OWN_PART = re.compile(r"(part|audit)-[\w-]+\.parquet")


OWN_NAMES = frozenset({*TABLES, *REPORT_FILES})
"""The names in a folder of a report."""


def prepare_folder(out: Path, evidence_paths: tuple[str, ...], *, own: bool, overwrite: bool) -> None:
    """Make the output folder, which lies outside the evidence; `Refused` where it holds what kctl must not replace.

    It may hold an earlier report where that is of this run, which goes on (`own`), or is to be replaced
    (`overwrite`), and beside that report any other file, which stays.
    """
    for path in evidence_paths:
        if out.resolve().is_relative_to(Path(path).resolve()):
            raise Refused(
                f"{out} is inside the evidence {path}",
                "choose another folder with --out; kctl never writes to evidence",
            )
    try:
        out.mkdir(parents=True, exist_ok=True)
        names = sorted(os.listdir(out))
    except OSError as error:
        raise file_error(out, error, KctlError) from error
    tables = [name for name in names if name in TABLES]
    earlier = [*tables, *(name for name in names if name in REPORT_FILES)]
    unfinished = [name for name in names if name == FOLDER or LEFT.fullmatch(name)]
    foreign = [name for name in names if name not in (*earlier, *unfinished)]
    if foreign and "summary.json" not in names:
        raise Refused(f"{out} is not empty ({foreign[0]} lies there)", "name a new folder with --out")
    if earlier and not (own or overwrite):
        raise Refused(
            f"{out} contains an earlier report ({earlier[-1]})",
            "name a new folder with --out, or replace the report with --overwrite",
        )
    if unfinished and not (own or overwrite):
        raise Refused(
            f"{out} contains files of an unfinished run ({unfinished[0]})",
            "continue with --resume if that run used it, or start over with --overwrite",
        )
    for name in (*earlier, *unfinished):
        if (out / name).is_symlink():
            raise Refused(f"{out / name} is a symbolic link", "name a new folder with --out")
    for name in tables:
        table = out / name
        for file in sorted(table.rglob("*")) if table.is_dir() else [table]:
            is_part = file.is_file() and OWN_PART.fullmatch(file.name)
            if file.is_symlink() or not (is_part or (file.is_dir() and file.name.startswith("topic="))):
                raise Refused(f"{file} is not a file of a report", "move it, or name a new folder with --out")
    for name in unfinished:
        if name != FOLDER:
            remains = out / name
            shutil.rmtree(remains) if remains.is_dir() else remains.unlink()


OUT_OF_REACH = (
    "executors must see the evidence and --out at the paths that this machine has: use a file system that all of them "
    "mount (of a report for a URL, TMPDIR)"
)
STORE_OUT_OF_REACH = (
    "give each node the end point and the credentials that this machine has, and the store's package"
)


def check_reach(engine: Engine, out: Path, evidence: FoundEvidence) -> None:
    """`Refused` where an executor does not see the evidence, or writes elsewhere than this machine reads.

    BadValue where the URL of evidence holds what is not to be sent to executors.
    """
    needed_stores = tuple(stores())
    engine.doing = "audit: reach"
    roots = tuple(root.path for root in evidence.roots if mirror_of(str(root.path)) is None)
    probe = out / f".reach-{token_hex(8)}"
    write_file(probe, probe.name)
    try:
        look = partial(_unreached, probe=probe, roots=roots, needed_stores=needed_stores)
        for trouble, hint in filter(None, engine.ordered(look, range(engine.cores * 4))):
            raise Refused(trouble, hint)
    finally:
        probe.unlink(missing_ok=True)


def _unreached(
    number: int, probe: Path, roots: tuple[Path, ...], needed_stores: tuple[SentStore, ...]
) -> tuple[str, str] | None:
    """What this process cannot read or write, with a hint; None if it reaches everything. Runs on executors."""
    where = f"the executor on {socket.gethostname()}"
    if trouble := _unreached_path(where, probe, roots):
        return trouble, OUT_OF_REACH
    if trouble := next(filter(None, map(reached, needed_stores)), None):
        return f"{where} cannot read {trouble}", STORE_OUT_OF_REACH
    return None


def _unreached_path(where: str, probe: Path, roots: tuple[Path, ...]) -> str | None:
    try:
        if probe.read_text() != probe.name:
            return f"{where} sees another {probe.parent}"
        own = probe.with_name(f"{probe.name}{token_hex(4)}")
        own.touch(exist_ok=False)
        own.unlink()
    except OSError as error:
        return f"{where} cannot use {probe.parent}: {reason_of(error)}"
    unseen = next((root for root in roots if not os.access(root, os.R_OK)), None)
    return f"{where} cannot read {unseen}" if unseen else None


# --- the run ----------------------------------------------------------------------------------------------


def run(
    audit: Audit, out: Path, on_row: Callable[[Row], None] = lambda row: None, *, write_page: WritePage,
    resume: bool = False, overwrite: bool = False,
) -> Row:  # fmt: skip
    """Write the tables and the report below `out`; gives the row of kind `audit`, which is summary.json too.

    `write_page` makes the page of the tables in a folder. `resume` keeps what is finished until all is, and begins with
    what an earlier such run kept. `overwrite` replaces an earlier report.
    """
    place = out.absolute()  # workers may have other working folders
    digest = run_digest(audit.paths, audit.checks, sorted(audit.evidence.moments))
    own = resume and is_of_run(place, digest)
    prepare_folder(place, audit.paths, own=own, overwrite=overwrite)
    asked_parts = (
        part for part in PARTS if part.question is None or part.question in (audit.questions or Question)
    )
    parts = tuple(part for part in asked_parts if part.is_there(audit.evidence))
    with disk_errors_in_one_line(place):
        if not own:
            forget(place)
        audit.resume_folder = keep_below(place, digest) if resume else None
        if audit.jobs is not None and not isinstance(audit.jobs, int):
            check_reach(audit.jobs, place, audit.evidence)
    try:
        summary = _run_parts(parts, audit, place, out, on_row, write_page)
    except (WorkerDied, StoreGone) as error:
        hint = (
            "the same command goes on where it was"
            if resume
            else "with --resume a run keeps what is finished"
        )
        error.hint = f"{error.hint}; {hint}"
        raise
    forget(place)
    return summary


def _run_parts(
    parts: tuple[AuditPart, ...], audit: Audit, place: Path, out: Path, on_row: Callable[[Row], None],
    write_page: WritePage, fill_batches: Callable[[TableWriter], None] = lambda writer: None,
) -> Row:  # fmt: skip
    """Every part's rows into the tables of `place`, which the caller named `out`."""
    began, started = time.monotonic(), time.time_ns() // 1_000_000
    questions = [*audit.questions, *(part.question for part in parts if part.question is not None)]
    totals = AuditTotals(
        coverages={question: Coverage(question) for question in Question if question in questions}
    )
    is_local = isinstance(audit.jobs, int | None)
    writers: dict[str, TableWriter] = {}
    try:
        with disk_errors_in_one_line(place), ExitStack() as stack:
            for name in TABLES:
                writers[name] = stack.enter_context(TableWriter(place, name))
            batches = writers["batches"]
            noted = MOST_NOTED if is_local else 0  # what comes from other machines shall stay small
            least = batch_rows.OWN_PART if is_local else batch_rows.OWN_PART_ELSEWHERE
            audit.out, audit.batches = BatchFiles(batches.workers, least, noted), batches
            fill_batches(batches)
            done = [_run_part(part, audit, writers, totals, on_row) for part in parts]
            ask_all()  # some of it may be unread because the store is gone
        with disk_errors_in_one_line(place):
            # A folder without a summary is no report: tables of two runs are never taken for one.
            (place / "summary.json").unlink(missing_ok=True)
            for writer in writers.values():
                writer.put_in_place()
    finally:
        for writer in writers.values():
            shutil.rmtree(writer.aside, ignore_errors=True)
    summary = _summary(audit, out, totals, done, started, time.monotonic() - began)
    with disk_errors_in_one_line(place):
        write_summary(place, summary)
        write_page(place)
    return summary


@contextmanager
def disk_errors_in_one_line(out: Path) -> Iterator[None]:
    """Turn errors of a full or read-only disk below `out` into `KctlError`; all others pass."""
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
    folders: list[Path], out: Path, audit: Audit, on_row: Callable[[Row], None] = lambda row: None, *,
    write_page: WritePage, overwrite: bool = False,
) -> Row:  # fmt: skip
    """Join the audits in the folders into one below `out`, and compare what their brokers hold."""
    from kctl.audit.merge import compared_rows, join_batches, joined_rows

    place = out.absolute()
    prepare_folder(place, tuple(map(str, folders)), own=False, overwrite=overwrite)
    forget(place)
    parts = (
        AuditPart("join", lambda evidence: True, lambda audit: joined_rows(folders)),
        AuditPart(
            "compare", lambda evidence: True, lambda audit: compared_rows(folders), Question.DIVERGENCE
        ),
    )
    return _run_parts(
        parts, audit, place, out, on_row, write_page, lambda writer: join_batches(folders, writer)
    )


def _run_part(
    part: AuditPart,
    audit: Audit,
    writers: dict[str, TableWriter],
    totals: AuditTotals,
    on_row: Callable[[Row], None],
) -> Row:
    began, state = time.monotonic(), "done"
    if not isinstance(audit.jobs, int | None):
        audit.jobs.doing = f"audit: {part.name}"
    fit = fitting(audit.evidence)
    try:
        for item in part.rows(audit):
            item = fit(item) if isinstance(item, Judgement) else item
            row = item.row() if isinstance(item, Judgement) else item
            if isinstance(item, Judgement):
                totals.judge(item)
            table = TABLE_OF_KIND.get(str(row["kind"]))
            if table:
                writers[table].row(row)
                totals.count(row)
                on_row(row)
    except (WorkerDied, StoreGone):
        raise  # tables without what it was to find would look like a better audit than there is
    except KctlError as error:
        audit.report(error)
        state = f"could not: {error.message}"
    return {"name": part.name, "state": state, "seconds": round(time.monotonic() - began, 3)}


def _summary(
    audit: Audit, out: Path, totals: AuditTotals, done: list[Row], started: int, seconds: float
) -> Row:
    evidence, errors = audit.evidence, totals.severities["error"]
    loss = totals.coverages.get(Question.LOSS)
    lost = totals.lost_records() if totals.lost or (loss and loss.judged) else None
    return AUDIT(
        verdict=verdict(totals, lost, done),
        evidence=given_name(shlex.join(audit.paths)),
        options=[list(option) for option in audit.options],
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
        judgements=[coverage.row() for coverage in totals.coverages.values()],
        parts=done,
        **_costs(audit.jobs),
        report=f"{audit.out_name or out}/report.html",
    )


def _costs(jobs: Jobs) -> Row:
    """The columns of the summary about requests to stores and repeated tasks."""
    counts = REQUESTS if mirrors() else None
    return {
        "requests": counts.requests if counts else None,
        "bytes_read": counts.bytes if counts else None,
        "retries": None if isinstance(jobs, int | None) else jobs.retries,
    }


def verdict(totals: AuditTotals, lost: int | None, parts: Iterable[Row] = ()) -> str:
    """The verdict in one sentence; silence about parts that could not be done would read as health."""
    clauses = list(_clauses(totals, lost))
    undone = [str(part["name"]) for part in parts if str(part["state"]).startswith("could not")]
    if undone:
        clauses.append(f"not everything could be examined: {', '.join(undone)}")
    return audit_sentence(clauses, [coverage.row() for coverage in totals.coverages.values()])


def _clauses(totals: AuditTotals, lost: int | None) -> Iterator[str]:
    if lost:
        partitions = len(totals.lost)
        at_least = "at least " if totals.is_at_least else ""
        yield f"{at_least}{counted(lost, 'record')} {'is' if lost == 1 else 'are'} lost in {counted(partitions, 'partition')}"
    dropped = totals.dropped_records()
    if dropped:
        yield f"{dropped:,} uncommitted records were dropped at a handover"
    errors, warnings = totals.severities["error"], totals.severities["warning"]
    if errors:
        yield f"{errors:,} error{'' if errors == 1 else 's'} found"
    if warnings:
        yield f"{warnings:,} warning{'' if warnings == 1 else 's'}"
