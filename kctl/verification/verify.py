"""Verification of evidence from one end to the other, as a stream: files with their findings, then a summary.

Partition folders are independent of each other and go to worker processes; the directory's own checkpoints
come after its partitions, for they are compared with the logs' ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from formats.log_dir.file_names import FolderKind
from formats.values import Struct, field, replace
from kctl.checks.evidence import (
    DirectoryCheck,
    cleaned_topics,
    loose_task,
    open_directory,
    task_of,
    topic_id_findings,
)
from kctl.checks.parallel import Check, NamedTask, Task, reports
from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions, FileReport, ReplicaTask, Report
from kctl.evidence.alive import Registered
from kctl.evidence.model import FoundEvidence
from kctl.findings import Finding, Place, Severity
from kctl.model import SILENT, Progress, TopicPartition
from kctl.rows.common import SUMMARY
from kctl.scan.pool import Jobs
from kctl.verification.tiered_topics import TieredTopics


class Verification(Struct):
    """Counts of a run; iterate `verify` to the end before `row`."""

    files: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    findings: dict[Severity, int] = field(default_factory=lambda: dict.fromkeys(Severity, 0))
    began: float = field(default_factory=time.monotonic)

    def count(self, item: Finding | FileReport) -> None:
        """Take an item into the counts."""
        if isinstance(item, Finding):
            self.findings[item.severity] += 1
            return
        self.files += 1
        self.bytes += item.size_in_bytes
        self.batches += item.batches or 0
        self.records += item.records or 0
        for (_, severity), number in item.left_out.items():
            self.findings[severity] += number

    def row(self) -> dict[str, object]:
        """The row of kind `summary`."""
        return SUMMARY(
            files=self.files,
            bytes=self.bytes,
            batches=self.batches,
            records=self.records,
            errors=self.findings[Severity.ERROR],
            warnings=self.findings[Severity.WARNING],
            seconds=round(time.monotonic() - self.began, 3),
        )


def verify(
    evidence: FoundEvidence,
    options: CheckOptions,
    *,
    jobs: Jobs = None,
    progress: Progress = SILENT,
    check: Check = check_replica,
    prepare: Callable[[list[ReplicaTask], CheckOptions], Sequence[Task]] = lambda tasks, options: tasks,
    on_report: Callable[[Report], None] = lambda report: None,
) -> Iterator[Finding | FileReport]:
    """Each file after its findings, directory by directory; findings about the whole come last.

    `check` is run in worker processes in place of `check_replica`, and may do more; `on_report` is called with each of
    its reports. `prepare` may read logs beforehand; it returns the tasks in the same order.
    """
    progress.start("verifying", _size(evidence) if progress is not SILENT else None)
    topic_ids: list[tuple[Place, str]] = []
    named = [NamedTask(path, evidence.place_of(path, root)) for path, root in evidence.files]
    local_jobs = jobs if jobs is None or isinstance(jobs, int) else 1
    undigested = replace(options, digest=None)  # an audit makes these digests afterwards, in parallel
    for report in reports(named, check_replica, undigested, local_jobs, progress):
        yield from items_of(report)
    for report in _replica_reports(evidence, options, jobs, topic_ids, check, prepare, progress):
        on_report(report)
        yield from items_of(report)
    yield from evidence.findings
    if evidence.log_dirs:  # a file alone states no identity
        from kctl.identities.of_folders import folder_findings
        from kctl.identities.owners import owner_findings

        yield from folder_findings(evidence)
        yield from owner_findings(evidence)
    yield from topic_id_findings(topic_ids)


def items_of(report: Report) -> Iterator[Finding | FileReport]:
    """A report as a stream: the findings of each file before it, those about the folder last."""
    for file in report.files:
        yield from file.all_findings()
        yield file
    yield from report.findings


def _size(evidence: FoundEvidence) -> int:
    total = 0
    folders = [replica.folder for replica in evidence.replicas] + [f for f, _ in evidence.loose_folders]
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                total += sum(e.stat(follow_symlinks=False).st_size for e in entries)
        except OSError:
            continue
    return total + sum(path.stat().st_size for path, _ in evidence.files if path.exists())


def _replica_reports(
    evidence: FoundEvidence,
    options: CheckOptions,
    jobs: Jobs,
    topic_ids: list[tuple[Place, str]],
    check: Check,
    prepare: Callable[[list[ReplicaTask], CheckOptions], Sequence[Task]],
    progress: Progress,
) -> Iterator[Report]:
    """Reports of partition folders in the order of the evidence, each directory's own behind its last one."""
    registered = Registered(evidence)
    directories = {
        log_dir.path: open_directory(log_dir, evidence, options, registered) for log_dir in evidence.log_dirs
    }
    # A replica that was fetched after a compaction has its gaps, and no entry of a cleaner yet.
    options = replace(options, compacted=options.compacted | cleaned_topics(directories.values()))
    work: list[tuple[DirectoryCheck | None, TopicPartition | None, ReplicaTask]] = []
    for log_dir, replicas in groupby(evidence.replicas, key=lambda replica: replica.log_dir):
        directory = directories[log_dir.path]
        for replica in replicas:
            is_live = replica.kind is FolderKind.LIVE
            partition = replica.topic_partition if is_live else None
            work.append((directory, partition, task_of(replica, directory, evidence, options)))
    work += [
        (None, None, loose_task(folder, log_dir, evidence)) for folder, log_dir in evidence.loose_folders
    ]
    folders_left = dict.fromkeys(directories, 0)
    for owner, _, _ in work:
        if owner:
            folders_left[owner.log_dir.path] += 1
    for directory in directories.values():
        if not folders_left[directory.log_dir.path] and directory.log_dir.is_whole:
            yield directory.finish()
    done = reports(prepare([task for _, _, task in work], options), check, options, jobs, progress)
    tiered = TieredTopics(evidence)
    for (owner, partition, task), report in zip(work, done, strict=True):
        tiered.settle(report, task)
        yield report
        if report.facts.topic_id and task.kind is FolderKind.LIVE:
            topic_ids.append((task.place, report.facts.topic_id))
        if owner is None:
            continue
        if partition is not None:
            owner.logs[partition] = report.facts
        folders_left[owner.log_dir.path] -= 1
        if not folders_left[owner.log_dir.path] and owner.log_dir.is_whole:
            yield owner.finish()
            yield owner.index_cache(evidence, options)
