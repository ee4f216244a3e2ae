"""The input of a check of files, and its result: a report for each file, and facts about the log.

Reports travel from worker processes, so they hold plain values; findings are limited per file and the rest
is counted, so that a wrecked disk stays small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import NamedTuple

from formats.compression import DEFAULT_LIMIT
from formats.log_dir.file_names import FolderKind
from formats.values import Struct, field, replace
from kctl.checks.digests import Digest
from kctl.findings import Finding, FindingType, Place, Severity
from kctl.findings.segments import TOO_MANY_FINDINGS
from kctl.rows.verify import FILE
from kctl.scan.options import Level, ScanTotals
from kctl.scan.splits import Split

DEFAULT_MAX_FINDINGS = 10_000


class CheckOptions(Struct, frozen=True, kw_only=True):
    """How thorough the checks are, and which topics are known to be compacted."""

    level: Level = Level.RECORDS
    max_decompressed_bytes: int = DEFAULT_LIMIT
    max_findings: int = DEFAULT_MAX_FINDINGS
    compacted: frozenset[str] = frozenset()  # topics known to be compacted
    digest: str | None = None  # the algorithm; None: files get none
    one_by_one: bool = False  # whether nothing of a folder may be read before the folder's turn


class ReadSlice(NamedTuple):
    """The result of reading a slice of a log beforehand; a slice without bytes has no file."""

    log: str
    split: Split = Split(0, 0)
    file: str = ""
    size: int = 0  # of the file
    error: OSError | None = None
    digest: str | None = None  # of the log


class ReplicaTask(Struct, frozen=True):
    """A partition folder to check, and what its log directory says about it. Sent to worker processes."""

    folder: Path
    place: Place  # `file` is the folder's own path as rows say it
    kind: FolderKind = FolderKind.LIVE
    is_clean: bool = False
    is_marked: bool = True  # whether the log directory's checkpoints were there to be read
    is_fetched: bool = False  # whether a broker gave the batches, and no other file
    recovery_point: int = 0
    log_start_offset: int = 0
    is_compacted: bool | None = None  # None: not known
    has_time_indexes: bool = False  # whether the broker writes them, as other folders of it show
    slices: tuple[ReadSlice, ...] = ()  # of its logs, if an audit has read them before
    bytes_read: int = 0  # in these slices
    is_led: bool = False  # whether an audit's leading process checks it while others read parts of its logs

    def place_of(self, name: str) -> Place:
        """The place of a file of the folder."""
        above = self.place.file
        return replace(self.place, file=name if above in (None, ".") else f"{above}/{name}")


class FileReport(Struct):
    """One file: what it is, what it holds, what is wrong with it."""

    place: Place
    type: str
    size_in_bytes: int
    max_findings: int = DEFAULT_MAX_FINDINGS
    batches: int | None = None
    records: int | None = None
    base_offset: int | None = None
    next_offset: int | None = None
    damaged_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    left_out: dict[tuple[str, Severity], int] = field(default_factory=dict)
    """How many findings are not listed, by code and severity."""
    totals: ScanTotals | None = None
    """Counts of the scan of a log that was read to its end."""
    digest: Digest | None = None
    """None where none is wanted."""

    @property
    def good_bytes(self) -> int:
        """Bytes that are not damaged."""
        return self.size_in_bytes - self.damaged_bytes

    @property
    def max_timestamp(self) -> int | None:
        """The largest timestamp of the sound batches, -1 where they have none; None without such a batch."""
        totals = self.totals
        return None if totals is None or totals.next_offset is None else totals.max_timestamp

    @property
    def has_room(self) -> bool:
        """Whether another finding would be listed, not only counted."""
        return len(self.findings) < self.max_findings

    def say(self, type_: FindingType, place: Place | None = None, **details: str | int) -> None:
        """Add a finding about this file; beyond the limit it is only counted."""
        if self.has_room:
            self.findings.append(type_.at(place or self.place, severity=None, **details))
        else:
            self._leave_out(type_.code, type_.severity)

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings; those beyond the limit are counted."""
        for finding in findings:
            if len(self.findings) < self.max_findings:
                self.findings.append(finding)
            else:
                self._leave_out(finding.code, finding.severity)

    def _leave_out(self, code: str, severity: Severity, count: int = 1) -> None:
        self.left_out[code, severity] = self.left_out.get((code, severity), 0) + count

    def take(self, draft: FileReport) -> None:
        """Add the findings and figures of a draft."""
        self.add(draft.findings)
        for (code, severity), count in draft.left_out.items():
            self._leave_out(code, severity, count)
        self.damaged_bytes += draft.damaged_bytes
        self.base_offset = self.base_offset if draft.base_offset is None else draft.base_offset

    def take_as_info(self, codes: Container[str]) -> None:
        """Findings of these codes are no more than information here."""
        self.findings = [replace(f, severity=Severity.INFO) if f.code in codes else f for f in self.findings]
        left_out, self.left_out = self.left_out, {}
        for (code, severity), count in left_out.items():
            self._leave_out(code, Severity.INFO if code in codes else severity, count)

    def at(self, position: int, size_in_bytes: int) -> Place:
        """A place in this file."""
        return replace(self.place, position=position, size_in_bytes=size_in_bytes)

    def all_findings(self) -> list[Finding]:
        """The listed findings, and one that counts the others, as severe as the worst of them."""
        if not self.left_out:
            return self.findings
        codes: Counter[str] = Counter()
        for (code, _), count in self.left_out.items():
            codes[code] += count
        worst = min((severity for _, severity in self.left_out), key=list(Severity).index)
        texts = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
        not_listed = TOO_MANY_FINDINGS.at(self.place, severity=worst, count=codes.total(), codes=texts)
        return [*self.findings, not_listed]

    def row(self) -> dict[str, object]:
        """The row of kind `file`."""
        return FILE.of(self, self.place)


class LogFacts(Struct):
    """Facts about a log that the directory's checkpoints are compared with."""

    first_base_offset: int | None = None  # the first segment's
    segment_bases: frozenset[int] = frozenset()  # base offsets of all segments
    log_end_offset: int | None = None  # behind the last sound batch; None without a segment
    is_whole: bool = True  # no damage, and every segment could be read
    follows_from: int | None = None  # from here to the end each batch begins where the one before ended
    topic_id: str | None = None
    looks_compacted: bool = False
    cut_in_gap: frozenset[int] = frozenset()  # where a truncation between records may have left the end
    looks_new: bool = False  # empty from 0, without a trace of records
    metadata_snapshots: frozenset[int] = (
        frozenset()
    )  # offsets that KRaft snapshots reach: the log may start there


class Report(Struct):
    """What was found in one partition folder, or in one file."""

    files: list[FileReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)  # about the folder as a whole
    facts: LogFacts = field(default_factory=LogFacts)
    segments: int = 0
    added: object = None  # what a check that does more than `check_replica` adds, of a class of its own

    @property
    def size_in_bytes(self) -> int:
        """The sum over all files."""
        return sum(file.size_in_bytes for file in self.files)

    def all_findings(self) -> list[Finding]:
        """Every finding, files first."""
        return [f for file in self.files for f in file.all_findings()] + self.findings

    def file(self, place: Place, type_: str, size_in_bytes: int, options: CheckOptions) -> FileReport:
        """A report of one more file."""
        digest = Digest(options.digest) if options.digest else None
        file_report = FileReport(place, type_, size_in_bytes, options.max_findings, digest=digest)
        self.files.append(file_report)
        return file_report


class Unsettled(Struct):
    """The findings on a file for either case: the log has all its batches, or a cleaner has removed some.

    Which case holds is known at the end of the log.
    """

    report: FileReport
    if_whole: FileReport
    if_cleaned: FileReport

    def settle(self, is_cleaned: bool) -> None:
        """Take the one or the other into the report."""
        self.report.take(self.if_cleaned if is_cleaned else self.if_whole)


def judge_twice(
    report: FileReport, judge: Callable[[FileReport, bool], None], is_known: bool
) -> list[Unsettled]:
    """Judge a file twice, as if its log had all batches and as if some were missing; the second only if not `is_known`.

    `judge` takes the report and whether every batch is there. If both give the same, the findings go to the report at
    once; else the cases are returned, to be settled at the end of the log.
    """
    drafts = []
    for is_whole in (True, False) if is_known else (False,):
        drafts.append(FileReport(report.place, report.type, report.size_in_bytes, report.max_findings))
        judge(drafts[-1], is_whole)
        if not drafts[0].findings and not drafts[0].left_out:
            break
    if len(drafts) == 1:
        report.take(drafts[0])
        return []
    return [Unsettled(report, *drafts)]
