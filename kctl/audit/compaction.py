"""What cleaners have not compacted, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from formats.errors import FormatError
from formats.log_dir.file_names import FolderKind
from formats.log_dir.producer_snapshot import read_entries
from kctl.audit.retention import DatedSegment, alive_until, segments_of
from kctl.checks.directory import CLEANER, read_checkpoints
from kctl.checks.report import CheckOptions
from kctl.checks.retention import DAY
from kctl.copies.moments import Znodes, clusters_of
from kctl.evidence.model import BrokerLogKind, FoundEvidence, Replica
from kctl.files import read_whole
from kctl.findings import Finding, Place, Severity
from kctl.findings.failures import COMPACTION_BEHIND, COMPACTION_STANDS_STILL, COMPACTION_STOPPED
from kctl.log.folder import read_folder
from kctl.model import TopicPartition
from kctl.times import iso

if TYPE_CHECKING:
    from kctl.broker_logs.failures import LoggedCause

DIRTY_RATIO = 0.5
# A cleaner that has something to do, and does nothing for so long, stands still: it looks for work every 15 seconds.
STILL_MS = 30 * 60_000
TELL_OF_CLEANERS = frozenset({BrokerLogKind.LOG_CLEANER, BrokerLogKind.SERVER, BrokerLogKind.STDOUT})


def uncompacted(evidence: FoundEvidence, stopped: Mapping[int, LoggedCause]) -> Iterator[Finding]:
    """For each partition that the cleaner of a broker compacted before it stopped: what it has not compacted since.

    The active segment is never compacted, so that it does not count. Of several moments the newest is meant.
    """
    newest = evidence.moments[-1] if evidence.moments else None
    for log_dir in evidence.log_dirs:
        logged = stopped.get(-1 if log_dir.broker_id is None else log_dir.broker_id)
        if logged is None or log_dir.moment not in (None, newest):
            continue
        checkpoints = read_checkpoints(log_dir, Place(), CheckOptions())
        for replica in evidence.replicas:
            offset = checkpoints.get(CLEANER, replica.topic_partition)
            if replica.log_dir is not log_dir or offset is None or replica.kind is not FolderKind.LIVE:
                continue
            try:
                closed = read_folder(replica.folder).logs[:-1]
            except OSError:
                continue
            behind = [segment for segment in closed if segment.base_offset >= offset]
            if behind:
                yield COMPACTION_STOPPED.at(
                    Place(
                        broker_id=log_dir.broker_id,
                        topic=replica.topic,
                        partition=replica.partition,
                        file=logged.file,
                        line=logged.line,
                        moment=log_dir.moment,
                    ),
                    broker=logged.broker_id,
                    time=iso(logged.time_ms),
                    partition=replica.topic_partition,
                    offset=offset,
                    bytes=sum(segment.log.size_in_bytes for segment in behind if segment.log),
                    segments=len(behind),
                    why=logged.exception or "The logs do not say why",
                    line=logged.line,
                )


def behind(evidence: FoundEvidence) -> Iterator[Finding]:
    """Partitions whose cleaner lets wait what it could have compacted a day before the newest record of a compacted topic.

    A cleaner compacts a log where more than `min.cleanable.dirty.ratio` (half, unless it is set) of its bytes are behind
    the checkpoint. An open transaction holds it back: nothing from its first offset on is compacted (`firstUncleanableOffset`,
    `K:log/LogCleanerManager.scala @ 3.9.0`).
    """
    with_logs = {log.broker_id for log in evidence.broker_logs if log.kind in TELL_OF_CLEANERS}
    for replica, segments, offset, alive_ms in compacted_logs(evidence):
        closed = segments[:-1]
        dirty = [segment for segment in closed if segment.segment.base_offset >= offset]
        waiting = [
            segment
            for segment in dirty
            if segment.latest_ms is not None and segment.latest_ms < alive_ms - DAY
        ]
        size, of = sum(segment.size for segment in dirty), sum(segment.size for segment in closed)
        if not waiting or size <= of * DIRTY_RATIO:
            continue
        unstable = first_unstable(replica.folder)
        is_held = unstable is not None and unstable < waiting[-1].segment.base_offset
        if not is_held and replica.broker_id in with_logs:
            continue  # they say whether the cleaner died
        yield COMPACTION_BEHIND.at(
            place_of(replica),
            severity=None if is_held else Severity.INFO,
            partition=replica.topic_partition,
            broker="?" if replica.broker_id is None else replica.broker_id,
            bytes=size,
            of=of,
            offset=offset,
            why=(
                f"a transaction that is open since offset {unstable} holds it back"
                if is_held
                else "log-cleaner.log, which would say why, is not in the evidence"
            ),
        )


def place_of(replica: Replica) -> Place:
    """The place of a finding about a whole log."""
    return Place(
        broker_id=replica.broker_id, topic=replica.topic, partition=replica.partition, moment=replica.moment
    )


class CompactedLog(NamedTuple):
    """A log that a cleaner compacted up to an offset; its broker ran until `alive_ms` at least."""

    replica: Replica
    segments: list[DatedSegment]
    offset: int
    alive_ms: int


def compacted_logs(evidence: FoundEvidence) -> Iterator[CompactedLog]:
    """The live replicas of the newest moment that have an entry in the cleaner's checkpoint."""
    newest = evidence.moments[-1] if evidence.moments else None
    for log_dir in evidence.log_dirs:
        if log_dir.moment not in (None, newest):
            continue
        checkpoints = read_checkpoints(log_dir, Place(), CheckOptions())
        if CLEANER not in checkpoints.entries:
            continue
        offsets = {
            replica.folder: (replica, offset)
            for replica in evidence.replicas
            if replica.log_dir is log_dir
            and replica.kind is FolderKind.LIVE
            and (offset := checkpoints.get(CLEANER, replica.topic_partition)) is not None
        }
        segments = {folder: segments_of(replica) for folder, (replica, _) in offsets.items()}
        alive_ms = alive_until(segments.values())
        for folder, (replica, offset) in offsets.items():
            if alive_ms is not None:
                yield CompactedLog(replica, segments[folder], offset, alive_ms)


def stood_still(evidence: FoundEvidence) -> Iterator[Finding]:
    """Partitions whose cleaner did nothing between the last two moments of a broker, though it could have all the time."""
    clusters = clusters_of(evidence, lambda error: None) if len(evidence.moments) > 1 else {}
    of_moment: dict[str | None, dict[tuple[int | None, TopicPartition], Replica]] = {}
    for replica in evidence.replicas:
        if replica.kind is FolderKind.LIVE:
            of_moment.setdefault(replica.moment, {})[replica.broker_id, replica.topic_partition] = replica
    newest = evidence.moments[-1] if evidence.moments else None
    checkpoints = cache(lambda path: read_checkpoints(by_path[path], Place(), CheckOptions()))
    by_path = {log_dir.path: log_dir for log_dir in evidence.log_dirs}
    for (broker_id, partition), replica in of_moment.get(newest, {}).items() if clusters else ():
        cluster = clusters.get(newest, clusters.get(None))
        earlier = next(
            (
                of_moment[moment][broker_id, partition]
                for moment in reversed(evidence.moments[:-1])
                if (broker_id, partition) in of_moment.get(moment, {})
            ),
            None,
        )
        offset = checkpoints(replica.log_dir.path).get(CLEANER, partition)
        if earlier is None or offset is None or cluster is None or partition.topic not in cluster.created:
            continue
        if checkpoints(earlier.log_dir.path).get(CLEANER, partition) != offset:
            continue
        ratio = cleaner_setting(cluster, partition.topic, "min.cleanable.dirty.ratio", DIRTY_RATIO)
        lag_ms = cleaner_setting(cluster, partition.topic, "min.compaction.lag.ms", 0)
        logs = [segments_of(earlier), segments_of(replica)]
        first_ms, last_ms = (alive_until([segments]) for segments in logs)
        closed = [segments[:-1] for segments in logs]
        dirty = [[s for s in segments if s.segment.base_offset >= offset] for segments in closed]
        sizes = [
            (sum(s.size for s in part), sum(s.size for s in of))
            for part, of in zip(dirty, closed, strict=True)
        ]
        is_due = bool(sizes[0][0]) and sizes[0][0] > sizes[0][1] * ratio and sizes[1][0] > sizes[0][0]
        if not is_due or first_ms is None or last_ms is None or last_ms - first_ms < STILL_MS + lag_ms:
            continue
        unstable = first_unstable(replica.folder)
        yield COMPACTION_STANDS_STILL.at(
            Place(broker_id=broker_id, topic=partition.topic, partition=partition.partition, moment=newest),
            severity=None if unstable is not None else Severity.INFO,  # it may have been down in between
            broker="?" if broker_id is None else broker_id,
            partition=partition,
            offset=offset,
            before=earlier.moment or "",
            after=newest or "",
            minutes=int((last_ms - first_ms) // 60_000),
            bytes=sizes[0][0],
            of=sizes[0][1],
            now=sizes[1][0],
            why=(
                "the logs do not say why"
                if unstable is None
                else f"a transaction that is open since offset {unstable} holds it back"
            ),
        )


def cleaner_setting(cluster: Znodes | None, topic: str, name: str, default: float) -> float:
    """A setting of the cleaner as far as the metadata have it."""
    configs = cluster.configs if cluster else {}
    values = (configs.get(topic, {}).get(name), configs.get("", {}).get(f"log.cleaner.{name}"))
    with suppress(ValueError):
        return next((float(value) for value in values if value is not None), default)
    return default


def first_unstable(folder: Path) -> int | None:
    """The first offset of the oldest transaction that the newest producer snapshot has open; None without one."""
    try:
        newest = read_folder(folder).snapshots[-1:]
        entries = [*read_entries(read_whole(newest[0].path))] if newest else []
    except (OSError, FormatError):
        return None
    return min(
        (entry.current_txn_first_offset for entry in entries if entry.current_txn_first_offset >= 0),
        default=None,
    )
