"""The parts of an audit: each has a name and a function that returns rows; a new part is one more line of `PARTS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from formats.errors import FormatError
from formats.log_dir.file_names import REMOTE_INDEX_CACHE, FolderKind
from formats.log_dir.producer_snapshot import read_entries
from formats.values import Struct, field, replace
from kctl.audit.batch_rows import BatchFiles
from kctl.audit.tables import TableWriter
from kctl.checks.digests import ALGORITHMS
from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions
from kctl.errors import KctlError
from kctl.evidence.model import FoundEvidence, LogDir
from kctl.files import read_whole
from kctl.judging.judgement import Judgement, Question
from kctl.log.folder import read_folder
from kctl.model import SILENT, Progress, Row
from kctl.rows.audit import SEGMENT
from kctl.scan.noted import ScanNotes
from kctl.scan.options import ScanTotals
from kctl.scan.pool import Jobs

if TYPE_CHECKING:
    from kctl.checks.report import FileReport
    from kctl.findings import Place
    from kctl.internal_topics.groups import Groups

MOST_NOTED = 27_000_000  # bytes: of a million batches at the least
CLUSTER_METADATA = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", CLUSTER_METADATA})


class Audit(Struct):
    """The input of every part. `report` is called with each error of reading; the rest goes on."""

    evidence: FoundEvidence
    paths: tuple[str, ...]
    report: Callable[[Exception], None]
    checks: CheckOptions = field(default_factory=CheckOptions)
    jobs: Jobs = None
    digest: str | None = "sha256"  # the algorithm; None: files have none
    options: tuple[tuple[str, str], ...] = ()  # --broker and --moment as given
    questions: tuple[Question, ...] = ()  # none: all that the evidence has anything on
    now: int | None = None  # milliseconds; for what depends on the time, such as retention
    progress: Progress = SILENT
    out: BatchFiles | None = None  # where workers write many batches; None: `batches` is not written
    notes: ScanNotes = field(
        default_factory=lambda: ScanNotes(MOST_NOTED)
    )  # of the scan, for the parts behind it
    out_name: str = ""  # what the folder of the report is called, where it stands for a URL
    resume_folder: Path | None = None  # of finished work, for a run that goes on; see kctl.audit.resume
    batches: TableWriter | None = None


class AuditPart(NamedTuple):
    """A part of the audit; `is_there` tells whether the evidence has anything for it, `question` what it answers."""

    name: str
    is_there: Callable[[FoundEvidence], bool]
    rows: Callable[[Audit], Iterator[Row | Judgement]]
    question: Question | None = None


def files_and_findings(audit: Audit) -> Iterator[Row | Judgement]:
    """Every file verified: its findings, then what it holds, with its digest; every batch and segment."""
    from kctl.audit.batch_rows import BatchCheck, FolderBatches
    from kctl.audit.resume import check_or_recall, digests, is_kept
    from kctl.audit.slices import with_slices
    from kctl.checks.parallel import Check
    from kctl.checks.report import FileReport, ReplicaTask, Report
    from kctl.judging.integrity import Integrity
    from kctl.verification.verify import verify

    def take(report: Report) -> None:
        added = report.added
        if isinstance(added, FolderBatches):
            if audit.batches:
                audit.batches.batches(added.rows)
                if added.part:
                    audit.batches.take_in(added.part)
            for path, runs in added.notes.items():
                audit.notes.add(path, runs)

    out, resume_folder = audit.out, audit.resume_folder
    check: Check = check_replica
    if out:
        check = BatchCheck(out)
    if resume_folder and out:
        check = partial(check_or_recall, check=check, resume_folder=resume_folder, out=out)

    def prepare(tasks: list[ReplicaTask], options: CheckOptions) -> Sequence[ReplicaTask]:
        if out is None:
            return tasks
        return with_slices(
            tasks, options, audit.jobs, audit.progress, to=out.folder,
            is_kept=lambda task, options: bool(resume_folder and is_kept(task, options, resume_folder)),
        )  # fmt: skip

    items = verify(
        audit.evidence, replace(audit.checks, digest=audit.digest, one_by_one=bool(resume_folder)), jobs=audit.jobs, progress=audit.progress,
        check=check, prepare=prepare, on_report=take,
    )  # fmt: skip
    integrity = Integrity()
    for failure in audit.evidence.failures:
        integrity.path(*failure.message.split(": ", 1))
    undigested: list[tuple[Path, list[Row]]] = []
    for item in items:
        integrity.item(item)
        if not isinstance(item, FileReport):
            yield item.row()
            continue
        rows = file_rows(item)
        if audit.digest and not (item.digest and item.digest.value):
            undigested.append((_path_of(audit, item.place), rows))
        else:
            yield from rows
    if audit.digest:
        paths = [path for path, _ in undigested]
        digest_by_path = digests(paths, audit.digest, audit.jobs, audit.progress, audit.resume_folder)
        for path, rows in undigested:
            rows[0][audit.digest] = digest_by_path.get(path)
            yield from rows
    yield from integrity.judgements()


def file_rows(file: FileReport) -> list[Row]:
    """The row of `files`, and of a log that of `segments` behind it: their columns are those of its report."""
    from kctl.rows.audit import EXAMINED

    digest = file.digest
    digest_columns = {
        name: digest.value if digest and digest.algorithm == name else None for name in ALGORITHMS
    }
    rows = [EXAMINED.of(file, file.place, **digest_columns)]
    if file.type == "log":
        rows.append(SEGMENT.of(file, file.place, file.totals or ScanTotals()))
    return rows


def _path_of(audit: Audit, place: Place) -> Path:
    """The path of a file from its place: below the evidence named, or the file that was given."""
    name = str(place.file)
    for root in audit.evidence.roots:
        if place.evidence in (None, root.given_path):
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
                evidence=log_dir.root.given_path if len(audit.evidence.roots) > 1 else None,
                moment=log_dir.moment,
                broker_id=log_dir.broker_id,
                file=str(file),
                checkpoint=file.name,
                topic=row.get("topic"),
                partition=row.get("partition"),
                epoch=row.get("epoch"),
                offset=row.get("offset") if row.get("offset") is not None else row.get("start_offset"),
            )


def identities(audit: Audit) -> Iterator[Row]:
    """Identities that the cluster's metadata, logs and other disks state otherwise than a log directory does."""
    from kctl.copies.moments import clusters_of
    from kctl.judging.identities import cluster_findings

    for finding in cluster_findings(audit.evidence, clusters_of(audit.evidence, lambda error: None)):
        yield finding.row()


def comparison(audit: Audit) -> Iterator[Row | Judgement]:
    """Lineages, divergences and verdicts of every partition that several brokers hold."""
    from kctl.replica.comparison.search import ComparedEvidence, CompareOptions, comparison_rows

    options = CompareOptions(compacted=audit.checks.compacted, jobs=audit.jobs, notes=audit.notes)
    compared = ComparedEvidence(audit.evidence, options, audit.report)
    for compared_partition in compared.comparisons(audit.progress):
        yield from comparison_rows(compared_partition, options)
        yield compared.judgement(compared_partition)
    yield from compared.not_compared()


def losses(audit: Audit) -> Iterator[Row | Judgement]:
    """Records that a leader once held and the present lineage lacks."""
    from kctl.replica.loss.search import LossOptions, LossSearch

    options = LossOptions(compacted=audit.checks.compacted, notes=audit.notes)
    search = LossSearch(audit.evidence, options, audit.report)
    processes = audit.jobs if isinstance(audit.jobs, int) else None
    for number, (*rows, judgement) in enumerate(search.by_partition(None, audit.progress, processes)):
        yield from rows
        if not number:
            yield from (finding.row() for finding in search.about_no_partition)
        yield judgement
    yield from search.without_copies()


def leaderships(audit: Audit) -> Iterator[Row | Judgement]:
    """Who led when and which broker was up, from the brokers' logs and the metadata log."""
    from kctl.audit.compaction import uncompacted
    from kctl.broker_logs.failures import FAILURE_LINES, Failures
    from kctl.broker_logs.history.decided import settle
    from kctl.broker_logs.history.timeline import WANTED, timeline
    from kctl.broker_logs.history.topic_ids import name_topics
    from kctl.broker_logs.merging import prepare
    from kctl.broker_logs.sources import sources_in
    from kctl.copies.newest_epochs import newest_epochs
    from kctl.internal_topics.decisions import decided_in
    from kctl.judging.leadership import judge_leadership, judge_silent

    merging = prepare(sources_in(audit.evidence), {}, None)
    failures = Failures()
    events = merging.events(None, WANTED | FAILURE_LINES)
    history = timeline(failures.noted(events, WANTED), doubtful=merging.doubtful, ahead=merging.ahead)
    failures.explain(history.brokers)
    decided = decided_in(audit.evidence, audit.report)
    if decided is not None:
        history.leaderships = settle(history.leaderships, decided, ahead=merging.ahead)
    name_topics(history.leaderships, audit.evidence)
    for leadership in chain.from_iterable(history.leaderships.values()):
        yield leadership.row()
    for state in history.brokers:
        yield state.row()
    for finding in (
        *history.findings(None),
        *failures.findings(history.brokers),
        *uncompacted(audit.evidence, failures.cleaners_stopped(history.brokers)),
        *merging.sources.findings,
        *merging.reading.findings,
    ):
        yield finding.row()
    newest = newest_epochs(audit.evidence)
    for partition, partition_leaderships in history.leaderships.items():
        yield judge_leadership(partition, partition_leaderships, newest=newest.get(partition))
    copied = {
        replica.topic_partition for replica in audit.evidence.replicas if replica.kind is FolderKind.LIVE
    }
    for partition in sorted(copied - history.leaderships.keys()):
        if partition.topic != CLUSTER_METADATA:  # its leaders are elected by its own quorum
            yield judge_silent(partition)


def tiered_storage(audit: Audit) -> Iterator[Row | Judgement]:
    """Metadata of tiered storage against its objects against the local logs."""
    from kctl.tier.audit.audit import tier_rows

    return tier_rows(audit.evidence, audit.now, audit.progress)


def internal_topics(audit: Audit) -> Iterator[Row]:
    """Groups with their offsets, what coordinators know of transactions, the state of a KRaft cluster."""
    from kctl.internal_topics import rows
    from kctl.internal_topics.metadata_rows import furthest_rows, metadata_folders

    groups = rows.groups_in(audit.evidence)
    if groups:
        for name in groups[0].names():
            yield rows.group_row(groups[0], name)
            yield from (rows.member_row(name, member) for member in groups[0].group(name).members)
            for _, commit in sorted(groups[0].commits.get(name, {}).items()):
                yield rows.commit_row(commit)
        yield from _group_findings(audit, groups[0])
        yield from rows.unreadable_rows(rows.CONSUMER_OFFSETS, groups[0].unreadable, groups[1])
        yield from rows.unknown_rows(groups[0])
    transactions = rows.transactions_in(audit.evidence)
    if transactions:
        yield from (
            rows.transaction_row(transaction) for _, transaction in sorted(transactions[0].by_id.items())
        )
        yield from rows.unreadable_rows(rows.TRANSACTION_STATE, transactions[0].unreadable, transactions[1])
    yield from furthest_rows(metadata_folders(audit.evidence))


def _group_findings(audit: Audit, groups: Groups) -> Iterator[Row]:
    from kctl.internal_topics import rows
    from kctl.judging import group_findings

    commits = (
        commit for name in groups.names() for _, commit in sorted(groups.commits.get(name, {}).items())
    )
    yield from (finding.row() for finding in group_findings.outside_findings(audit.evidence, commits))
    state = rows.transactions_in(audit.evidence) if groups.pending else None
    pending = group_findings.pending_findings(groups.pending, state[0] if state else None)
    yield from (finding.row() for finding in pending)
    removed = group_findings.newest_removed(groups)
    yield from (finding.row() for finding in group_findings.removal_findings(audit.evidence, groups, removed))


def compaction(audit: Audit) -> Iterator[Row]:
    """Partitions whose cleaner is behind, and why; and the tombstones that it keeps."""
    from kctl.audit.compaction import behind, stood_still
    from kctl.audit.tombstones import kept_tombstones

    findings = (*behind(audit.evidence), *stood_still(audit.evidence), *kept_tombstones(audit.evidence))
    yield from (finding.row() for finding in findings)


def retention(audit: Audit) -> Iterator[Row]:
    """Segments that retention should have deleted, and why they are still there."""
    from kctl.audit.retention import retention_findings

    yield from (finding.row() for finding in retention_findings(audit.evidence))


def access(audit: Audit) -> Iterator[Row]:
    """Findings about rules of access and users, of the newest moment."""
    from kctl.access.audit import audit_access
    from kctl.access_sources.evidence import views_in

    for view in views_in(audit.evidence):
        yield from (finding.row() for finding in audit_access(view))


def has_rules(evidence: FoundEvidence) -> bool:
    """Whether it holds an export of znodes or a copy of a metadata log."""
    return bool(evidence.znode_exports) or any(
        replica.topic == CLUSTER_METADATA for replica in evidence.replicas
    )


def transactions(audit: Audit) -> Iterator[Row | Judgement]:
    """The transactions that data logs hold open, and whether each hangs."""
    from kctl.judging.open_transactions import open_rows

    return open_rows(audit.evidence, every=True)


def has_transactions(evidence: FoundEvidence) -> bool:
    """Whether it holds a copy of `__transaction_state`, or of a partition that transactions wrote to."""
    return any(replica.topic == "__transaction_state" for replica in evidence.replicas) or any(
        _wrote_transactions(replica.folder)
        for replica in evidence.replicas
        if replica.kind is FolderKind.LIVE
    )


def _wrote_transactions(folder: Path) -> bool:
    """Whether a transaction index or the newest producer snapshot has a transaction; the log itself is not read."""
    try:
        partition_folder = read_folder(folder)
        indexes = (segment.transaction_index for segment in partition_folder.logs)
        if any(index.size_in_bytes for index in indexes if index):
            return True
        newest = partition_folder.snapshots[-1:]
        entries = read_entries(read_whole(newest[0].path)) if newest else iter(())
    except (OSError, FormatError):
        return False
    return any(entry.coordinator_epoch >= 0 or entry.current_txn_first_offset >= 0 for entry in entries)


def has_internal_topics(evidence: FoundEvidence) -> bool:
    """Whether it holds a copy of one."""
    return any(replica.topic in INTERNAL_TOPICS for replica in evidence.replicas)


def has_tier(evidence: FoundEvidence) -> bool:
    """Whether it holds objects of a tier, its metadata, or a broker's indexes of remote segments."""
    return (
        bool(evidence.tiers)
        or any(replica.topic == "__remote_log_metadata" for replica in evidence.replicas)
        or any(map(_keeps_indexes, evidence.log_dirs))
    )


def _keeps_indexes(log_dir: LogDir) -> bool:
    with suppress(OSError):  # every broker that may have remote segments has the folder
        return log_dir.is_whole and any((log_dir.path / REMOTE_INDEX_CACHE).iterdir())
    return False


def has_leaders(evidence: FoundEvidence) -> bool:
    """Whether it holds logs of brokers, or a copy of a metadata log."""
    return bool(evidence.broker_logs) or any(
        replica.topic == CLUSTER_METADATA for replica in evidence.replicas
    )


def has_settings(evidence: FoundEvidence) -> bool:
    """Whether it holds log directories, and what says the settings of topics."""
    return bool(evidence.log_dirs) and (
        bool(evidence.znode_exports)
        or any(replica.topic == CLUSTER_METADATA for replica in evidence.replicas)
    )


def has_replicas(evidence: FoundEvidence) -> bool:
    """Whether it holds any partition folder, or a file of one."""
    return bool(evidence.replicas or evidence.files or evidence.loose_folders or evidence.log_dirs)


def has_copies(evidence: FoundEvidence) -> bool:
    """Whether it holds a partition folder."""
    return bool(evidence.replicas)


PARTS: tuple[AuditPart, ...] = (
    AuditPart("verify", has_replicas, files_and_findings, Question.INTEGRITY),
    AuditPart("checkpoints", lambda evidence: bool(evidence.log_dirs), checkpoints),
    AuditPart("identities", lambda evidence: bool(evidence.log_dirs), identities),
    AuditPart("retention", has_settings, retention),
    AuditPart("compaction", lambda evidence: bool(evidence.log_dirs), compaction),
    AuditPart("compare", has_copies, comparison, Question.DIVERGENCE),
    AuditPart("loss", has_copies, losses, Question.LOSS),
    AuditPart("timeline", has_leaders, leaderships, Question.LEADERSHIP),
    AuditPart("internal topics", has_internal_topics, internal_topics),
    AuditPart("access", has_rules, access),
    AuditPart("transactions", has_transactions, transactions, Question.TRANSACTIONS),
    AuditPart("tier", has_tier, tiered_storage, Question.TIER),
)
