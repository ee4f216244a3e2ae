"""What an audit consists of: each part is a name and a function that gives rows; a new part is one more line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kctl.audit.batch_rows import Parts as BatchParts
from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions
from kctl.errors import KctlError
from kctl.evidence.model import Evidence
from kctl.model import SILENT, Progress
from kctl.rows.audit import SEGMENT
from kctl.scan.pool import Jobs

Row = dict[str, object]
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__cluster_metadata"})


@dataclass
class Audit:
    """What every part has to work with. `report` takes what could not be read while the rest goes on."""

    evidence: Evidence
    paths: tuple[str, ...]
    report: Callable[[Exception], None]
    checks: CheckOptions = field(default_factory=CheckOptions)
    jobs: Jobs = None
    sha256: bool = True
    now: int | None = None  # milliseconds; for what depends on the time, such as retention
    progress: Progress = SILENT
    out: BatchParts | None = (
        None  # where workers write many batches themselves; None: `batches` is not written
    )
    kept: Path | None = None  # where what is finished is kept for a run that goes on; see kctl.audit.resume
    write_batches: Callable[[list[Any]], None] = lambda batches: None


class Part(NamedTuple):
    """A part of the audit; `is_there` tells whether the evidence has anything for it."""

    name: str
    is_there: Callable[[Evidence], bool]
    rows: Callable[[Audit], Iterator[Row]]


def files_and_findings(audit: Audit) -> Iterator[Row]:
    """Every file verified: its findings, then what it holds, with its SHA-256; every batch and segment."""
    from kctl.audit.batch_rows import ReportWithBatches, check_with_batches
    from kctl.audit.digests import digests
    from kctl.audit.resume import check_or_recall
    from kctl.checks.parallel import Check
    from kctl.checks.report import FileReport, Report
    from kctl.checks.verify import verify
    from kctl.rows.audit import EXAMINED

    files: list[Row] = []
    times: dict[tuple[object, object, object], int] = {}

    def take(report: Report) -> None:
        if isinstance(report, ReportWithBatches):
            audit.write_batches(report.batches)
            for file in report.files:
                if file.place.file in report.segment_times:
                    key = file.place.evidence, file.place.moment, file.place.file
                    times[key] = report.segment_times[str(file.place.file)]

    check: Check = partial(check_with_batches, parts=audit.out) if audit.out else check_replica
    if audit.kept:
        check = partial(check_or_recall, check=check, kept=audit.kept, parts=audit.out)
    items = verify(
        audit.evidence, audit.checks, jobs=audit.jobs, progress=audit.progress, check=check, on_report=take
    )
    for item in items:
        if isinstance(item, FileReport):
            files.append(item.row())
        else:
            yield item.row()
    keys = [key for key in EXAMINED.fields if key != "sha256"]
    sums = (
        digests([_path_of(audit, row) for row in files], audit.jobs, audit.progress, audit.kept)
        if audit.sha256
        else {}
    )
    for row in files:
        yield EXAMINED(**{key: row.get(key) for key in keys}, sha256=sums.get(_path_of(audit, row)))
        if row["type"] == "log":
            latest = times.get((row["evidence"], row["moment"], row["file"]))
            yield SEGMENT(
                **{key: row.get(key) for key in SEGMENT.fields if key != "max_timestamp"},
                max_timestamp=latest,
            )


def _path_of(audit: Audit, row: Row) -> Path:
    """The path of a file from its row: below the evidence named, or the file that was given."""
    name = str(row["file"])
    for root in audit.evidence.roots:
        if row["evidence"] in (None, root.given):
            return root.path / name if root.is_folder else root.path
    return Path(name)


def checkpoints(audit: Audit) -> Iterator[Row]:
    """The entries of every checkpoint file that can be read; the others are findings of the files."""
    from kctl.dump.checkpoints import BadBelowFolder, checkpoint_rows
    from kctl.rows.audit import CHECKPOINT

    def pass_over(error: Exception) -> None:
        if not isinstance(error, (BadBelowFolder, KctlError)):
            audit.report(error)

    for log_dir in audit.evidence.log_dirs:
        for row in checkpoint_rows([str(log_dir.path)], pass_over):
            file = Path(str(row["file"]))
            yield CHECKPOINT(
                evidence=log_dir.root.given if len(audit.evidence.roots) > 1 else None,
                moment=log_dir.moment,
                broker_id=log_dir.broker_id,
                file=str(file),
                checkpoint=file.name,
                topic=row.get("topic"),
                partition=row.get("partition"),
                epoch=row.get("epoch"),
                offset=row.get("offset") if row.get("offset") is not None else row.get("start_offset"),
            )


def comparison(audit: Audit) -> Iterator[Row]:
    """Lineages, divergences and verdicts of every partition that several brokers hold."""
    from kctl.replica.comparing import ComparedEvidence, CompareOptions, comparison_rows

    options = CompareOptions(compacted=audit.checks.compacted, jobs=audit.jobs)
    for found in ComparedEvidence(audit.evidence, options, audit.report).comparisons(audit.progress):
        yield from comparison_rows(found, options)


def losses(audit: Audit) -> Iterator[Row]:
    """Records that a leader once held and the present lineage lacks."""
    from kctl.replica.losing import LossOptions, LossSearch, loss_row

    options = LossOptions(compacted=audit.checks.compacted)
    search = LossSearch(audit.evidence, options, audit.report)
    for result in search.results(audit.progress):
        for one in result.losses:
            yield loss_row(one, tier=search.tier)
        for finding in result.findings:
            yield finding.row()


def leaderships(audit: Audit) -> Iterator[Row]:
    """Who led when, from the brokers' logs."""
    from kctl.broker_logs.events import prepare
    from kctl.broker_logs.sources import find_sources
    from kctl.broker_logs.timeline import WANTED, timeline

    merging = prepare(find_sources(audit.paths), {}, None)
    found = timeline(merging.events(None, WANTED), doubtful=merging.doubtful)
    for ones in found.leaderships.values():
        for one in ones:
            yield one.row()
    for finding in (*found.findings(None), *merging.sources.findings, *merging.reading.findings):
        yield finding.row()


def tiered_storage(audit: Audit) -> Iterator[Row]:
    """Metadata of tiered storage against its objects against the local logs."""
    from kctl.remote.audit_part import tier_rows

    return tier_rows(audit.evidence, audit.now, audit.progress)


def internal_topics(audit: Audit) -> Iterator[Row]:
    """Groups with their offsets, transactions with those that hang, the state of a KRaft cluster."""
    from kctl.internal_topics.rows import internal_topic_rows

    return internal_topic_rows(audit.evidence)


def has_internal_topics(evidence: Evidence) -> bool:
    """Whether a copy of one is there."""
    return any(one.topic in INTERNAL_TOPICS for one in evidence.replicas)


def has_tier(evidence: Evidence) -> bool:
    """Whether objects of a tier are there, or its metadata."""
    return bool(evidence.tiers) or any(one.topic == "__remote_log_metadata" for one in evidence.replicas)


def has_replicas(evidence: Evidence) -> bool:
    """Whether any partition folder, or a file of one, is there."""
    return bool(evidence.replicas or evidence.files or evidence.loose_folders or evidence.log_dirs)


PARTS: tuple[Part, ...] = (
    Part("verify", has_replicas, files_and_findings),
    Part("checkpoints", lambda evidence: bool(evidence.log_dirs), checkpoints),
    Part("compare", lambda evidence: len(evidence.broker_ids) > 1, comparison),
    Part("loss", lambda evidence: len(evidence.replicas) > 1, losses),
    Part("timeline", lambda evidence: bool(evidence.broker_logs), leaderships),
    Part("internal topics", has_internal_topics, internal_topics),
    Part("tier", has_tier, tiered_storage),
)
