"""`kctl segment verify`: segments and the files beside them checked, and the findings on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import click

from commands.cli.answer import with_answer
from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.options import Size, flag, option
from commands.cli.render import Outcome, Page, Row, folding
from formats.values import Struct
from formats.words import counted, in_unit

if TYPE_CHECKING:
    from kctl.checks.report import CheckOptions
    from kctl.evidence.model import FoundEvidence, Root


SHOWN_BEFORE_FOLDING = 1


class Notes(Struct):
    """The notes of one code: the first of them, and how many there are. Healthy logs have many."""

    first: Row
    count: int = 0

    def text(self, page: Page) -> Iterator[str]:
        """The first of them, and the number of the others."""
        yield from finding_text(self.first, page)
        if self.count > 1:
            yield page.style(f"         and {self.count - 1:,} more of these (--all shows each)", "dim")


def verify_text(rows: Iterable[Row], page: Page, *, everything: bool = False) -> Iterator[str]:
    """Errors and warnings file by file, notes by code, then amounts and counts."""
    partitions: set[tuple[object, ...]] = set()
    segments = infos = 0
    notes: dict[str, Notes] = {}
    pending: list[Row] = []
    for row in rows:
        if row["kind"] == "finding":
            infos += row["severity"] == "info"
            if row["severity"] == "info" and not everything:
                notes.setdefault(str(row["code"]), Notes(row)).count += 1
                continue
            if pending and pending[-1]["file"] != row["file"]:
                yield from findings_text(pending, page, everything)
                pending = []
            pending.append(row)
            continue
        yield from findings_text(pending, page, everything)
        pending = []
        if row["kind"] == "file":
            if row["topic"] is not None:
                key = ("evidence", "moment", "broker_id", "topic", "partition")
                partitions.add(tuple(row[name] for name in key))
            segments += row["type"] == "log"
        else:
            for note in notes.values():
                yield from note.text(page)
            yield from summary_text(row, page, len(partitions), segments, infos)


def findings_text(rows: list[Row], page: Page, everything: bool) -> Iterator[str]:
    """Findings of one file; those of one code as one entry with a count, unless all are asked for."""
    rows = sorted(rows, key=lambda row: ("error", "warning", "info").index(str(row["severity"])))
    for _, same in groupby(rows, key=lambda row: (row["severity"], row["code"])):
        group = list(same)
        shown = group if everything else group[:SHOWN_BEFORE_FOLDING]
        for row in shown:
            yield from finding_text(row, page)
        if len(group) > len(shown):
            more = len(group) - len(shown)
            yield page.style(f"         and {more:,} more of these in this file (--all shows each)", "dim")


def finding_text(row: Row, page: Page) -> Iterator[str]:
    """One finding: severity, code and place on a line, and the message below."""
    severity = str(row["severity"])
    where = "  ".join(
        part for part in (str(row["file"] or ""), owner_text(row), range_text(row), offsets_text(row)) if part
    )
    yield f"{page.style(f'{severity:<8}', severity)} {page.style(str(row['code']), 'bold')}  {where}"
    indent = " " * 9
    yield from textwrap.wrap(
        str(row["message"]), max(40, page.width - 1), initial_indent=indent, subsequent_indent=indent
    )


def owner_text(row: Row) -> str:
    """The copy that the file is from, where there are several."""
    return "  ".join(f"{name} {row[name]}" for name in ("evidence", "moment") if row.get(name))


def range_text(row: Row) -> str:
    """The bytes that a finding is about."""
    if row["position"] is None:
        return ""
    size = "" if row["size_in_bytes"] is None else f"+{row['size_in_bytes']:,}"
    return f"bytes {row['position']:,}{size}"


def offsets_text(row: Row) -> str:
    """The offsets that a finding is about, half open."""
    base, last = row["base_offset"], row["last_offset"]
    if not isinstance(base, int):
        return ""
    return f"offset {base}" if not isinstance(last, int) else f"offsets [{base}, {last + 1})"


def summary_text(row: Row, page: Page, partitions: int, segments: int, infos: int) -> Iterator[str]:
    """The last two lines: totals, then counts of findings."""
    totals = [
        counted(partitions, "partition"),
        counted(segments, "segment"),
        counted(row["records"], "record"),
    ]
    yield ""
    yield f"{', '.join(totals)}, {size_text(row['bytes'])} in {row['seconds']:.1f} s"
    errors, warnings = row["errors"], row["warnings"]
    parts = [
        page.style(counted(number, name), style) if number else counted(number, name)
        for number, name, style in (
            (errors, "error", "error"),
            (warnings, "warning", "warning"),
            (infos, "note", "info"),
        )
    ]
    yield ", ".join(parts) + ("   (exit status 5)" if errors or warnings else "")


def size_text(number: object) -> str:
    """Bytes in the largest unit that leaves at least one."""
    amount, unit = in_unit(number if isinstance(number, int) else 0)
    return f"{amount:,.0f} bytes" if unit == "B" else f"{amount:,.1f} {unit}"


LEVELS = ("header", "crc", "records")


@command(
    "verify",
    status="0 every byte is whole · 3 a path or file could not be read · 5 something is wrong (see `kctl finding`)",
)
@evidence("compacted", "jobs", "broker", "moment", metavar="PATH...")
@option(
    "--level",
    "Check batch headers only, CRCs as well, or every record.",
    type=click.Choice(LEVELS),
    default="records",
)
@option(
    "--max-decompressed-bytes",
    "Do not decompress a batch to more than this size.  [default: 256MiB]",
    type=Size(),
    default=256 << 20,
    show_default=False,
)
@option(
    "--max-findings N",
    "List at most N findings per file and count the rest.",
    type=click.IntRange(1),
    default=10_000,
)
@flag("--all", "Show every finding on a terminal, not only the first of each code.", into="everything")
def verify(
    frame: Frame, options: EvidenceOptions, level: str, max_decompressed_bytes: int, max_findings: int, everything: bool
) -> Outcome:  # fmt: skip
    """Check segments and the files beside them, byte by byte.

    PATH is a segment, a partition folder, a log directory, or a folder that holds any of them.
    Nothing is written; a broker may be running.

    $ kctl segment verify /var/lib/kafka/data
    $ kctl segment verify --level crc orders-3/ --output jsonl | jq 'select(.severity == "error")'
    $ kctl segment verify evidence/ --compacted profiles --jobs 4
    """
    from functools import partial

    from kctl.checks.report import CheckOptions
    from kctl.scan.options import Level

    check_options = CheckOptions(
        level=Level[level.upper()],
        max_decompressed_bytes=max_decompressed_bytes,
        max_findings=max_findings,
        compacted=frozenset(options.compacted),
    )
    live: Iterator[str] = iter(())
    if frame.given.get("bootstrap_server"):
        from commands.cli.live_paths import live_files

        paths, live = live_files(frame, options.paths)
        options = options._replace(paths=paths)
    evidence = options.find(frame, may_be_nothing=True)
    nothing_in = list(_unexamined(frame, evidence))
    return Outcome(
        _verified(frame, evidence, nothing_in, live, check_options, options.jobs),
        text=folding(with_answer(partial(verify_text, everything=everything))),
    )


def _unexamined(frame: Frame, evidence: FoundEvidence) -> Iterator[Root]:
    """Report each path without anything to examine, and give its root."""
    from kctl.judging.integrity import NAME_ANOTHER, NO_FILE_OF_KAFKAS, WANTED

    for tier in evidence.tiers:
        frame.note(f"{tier.path}: a tier is not examined here; see `kctl remote audit`")
    for root in evidence.roots:
        known = [replica.log_dir.root for replica in evidence.replicas]
        known += [log_dir.root for log_dir in evidence.log_dirs] + [tier.root for tier in evidence.tiers]
        known += [file_root for _, file_root in evidence.files]
        is_replica = any(replica.folder.is_relative_to(root.path) for replica in evidence.replicas)
        if root not in known and not is_replica and not evidence.findings:
            if root.is_folder:
                frame.fail(f"{root.given_path}: no {WANTED} found here", "name a folder that holds one")
            else:
                frame.fail(f"{root.given_path}: {NO_FILE_OF_KAFKAS}", NAME_ANOTHER)
            yield root


def _verified(
    frame: Frame,
    evidence: FoundEvidence,
    nothing_in: Iterable[Root],
    live: Iterator[str],
    options: CheckOptions,
    jobs: int | None,
) -> Iterator[Row]:
    """Rows of the files, then of the segments of a running cluster as they arrive."""
    from kctl.judging.integrity import Integrity
    from kctl.judging.judgement import Question, judgement_rows
    from kctl.verification.verify import Verification, verify

    counts, integrity = Verification(), Integrity(level=options.level)
    for failure in evidence.failures:
        integrity.path(*failure.message.split(": ", 1))
    for root in nothing_in:
        (integrity.nothing_in if root.is_folder else integrity.no_file_of_kafkas)(root.given_path)
    for item in verify(evidence, options, jobs=jobs, progress=frame.progress()):
        counts.count(item)
        integrity.item(item)
        yield item.row()
    for segment in live:
        for item in verify(EvidenceOptions((segment,)).find(frame), options, jobs=1):
            counts.count(item)
            integrity.item(item)
            yield item.row()
    yield from judgement_rows(integrity.judgements(), [Question.INTEGRITY])
    yield counts.row()
