"""What is wrong with the offsets of groups in evidence: outside the logs, pending in a transaction, removed.

Coordinators write the same tombstones where offsets expire and where somebody deletes them. What tells them apart is the
line that a broker logs, or the time between the commit and the tombstone (`core:GroupMetadataManager.scala` @ 3.9.1,
cleanupGroupMetadata, getExpiredOffsetsMap).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from formats.errors import FormatError
from formats.log.records import LogEntry, walk
from formats.log_dir.checkpoints import parse_offset_checkpoint
from formats.log_dir.file_names import FolderKind
from formats.values import replace
from formats.whole_numbers import whole_number
from kctl.copies.moments import Znodes, clusters_of
from kctl.evidence.alive import Registered
from kctl.evidence.model import FoundEvidence, LogDir, Replica
from kctl.files import read_lenient
from kctl.findings import Finding, Place, Severity
from kctl.findings.groups import (
    GROUP_OFFSET_BELOW_START,
    GROUP_OFFSET_BEYOND_END,
    GROUP_OFFSET_PENDING,
    GROUP_OFFSETS_REMOVED,
)
from kctl.internal_topics.groups import Groups, OffsetCommit, PendingCommit, Removal
from kctl.internal_topics.reading import segments
from kctl.internal_topics.transactions import OpenTransaction, Transactions, why_it_hangs
from kctl.model import TopicPartition, command_line
from kctl.scan.source import opened_source
from kctl.times import iso

RETENTION = "offsets.retention.minutes"
MINUTE, DAY = 60_000, 86_400_000
NEAR = 10_000
"""Milliseconds between a tombstone and the line of the same removal."""
SHORTEST, LONGEST = DAY, 7 * DAY
"""The defaults of offsets.retention.minutes: up to 1.1, and since 2.0."""
EXPIRED, GROUPS_DELETED, OFFSETS_DELETED, OF_DELETED_TOPIC = "G146", "G10", "G19", "G11"
MOST_GROUPS = 100
"""Groups whose removed offsets an audit lists, the newest."""


class LoggedRemoval(NamedTuple):
    """A line about offsets that were removed."""

    time: int
    event: str
    text: str


def removal_lines(evidence: FoundEvidence) -> list[LoggedRemoval]:
    """The lines of brokers about offsets that were removed."""
    if not evidence.broker_logs:
        return []
    from kctl.broker_logs.merging import prepare
    from kctl.broker_logs.sources import sources_in

    wanted = frozenset({EXPIRED, GROUPS_DELETED, OFFSETS_DELETED, OF_DELETED_TOPIC})
    merging = prepare(sources_in(evidence))
    return [
        LoggedRemoval(event.time_ms, event.event or "", event.message)
        for event in merging.events(None, wanted)
        if event.time_ms is not None
    ]


def removal_findings(evidence: FoundEvidence, groups: Groups, names: Iterable[str]) -> Iterator[Finding]:
    """For each of these groups that lost offsets to tombstones, and committed none since: when, how, what they were."""
    chosen = [name for name in names if groups.removed.get(name)]
    if not chosen:
        return
    lines, minutes = removal_lines(evidence), _retention_minutes(evidence)
    for name in chosen:
        by_time: dict[int, list[Removal]] = {}
        for removal in groups.removed[name].values():
            by_time.setdefault(removal.tombstone.timestamp or -1, []).append(removal)
        for time, removals in sorted(by_time.items()):
            last = max(removals, key=lambda removal: removal.commit.commit_timestamp or -1)
            since = groups.group(name).state_timestamp
            before = iso(time - 1) if time >= 0 else last.tombstone.log_offset
            yield GROUP_OFFSETS_REMOVED.at(
                Place(topic=last.commit.topic, partition=last.commit.partition),
                count=len(removals),
                group=name,
                time=iso(time) or "an unknown time",
                how=_how(last, time, since, lines, minutes),
                partition=TopicPartition(last.commit.topic, last.commit.partition),
                offset=last.commit.offset,
                committed=iso(last.commit.commit_timestamp),
                command=command_line("kctl offsets reset-file", [name, "EVIDENCE"], ["--as-of", str(before)]),
            )


def newest_removed(groups: Groups) -> list[str]:
    """The groups without offsets that lost theirs last, newest first."""
    gone = [name for name in groups.removed if groups.removed[name] and name not in groups.commits]
    return sorted(
        gone,
        key=lambda name: max(r.tombstone.timestamp or -1 for r in groups.removed[name].values()),
        reverse=True,
    )[:MOST_GROUPS]


def _how(
    last: Removal, time: int, empty_since: int | None, lines: list[LoggedRemoval], minutes: int | None
) -> str:
    """Whether offsets expired or were deleted, and what says so."""
    near = [line for line in lines if abs(line.time - time) <= NEAR]
    for line in near:
        is_named = last.commit.group in line.text or last.commit.topic in line.text
        if line.event in (GROUPS_DELETED, OFFSETS_DELETED) and is_named:
            return f"somebody deleted them (`{line.text}`)"
        if line.event == OF_DELETED_TOPIC and is_named:
            return f"their topic was deleted (`{line.text}`)"
    for line in near:
        if line.event == EXPIRED:
            return f"they expired (`{line.text}`)"
    expires = last.commit.expire_timestamp
    if expires is not None and expires >= 0:
        return "they expired, as their record says" if time >= expires else "somebody deleted them"
    idle = time - max(
        last.commit.commit_timestamp or -1, empty_since if empty_since and empty_since < time else -1
    )
    if minutes is not None:
        if idle >= minutes * MINUTE:
            return f"they expired ({RETENTION}={minutes})"
        return f"somebody deleted them, or the topic ({RETENTION}={minutes} was not over)"
    if idle >= LONGEST:
        return f"they expired, if {RETENTION} is not longer than its default of 7 days"
    short = f" {_span(idle)} after the commit" if idle >= 0 else ""
    return (
        f"they expired or somebody deleted them{short}; {RETENTION} and the log of the coordinator would tell, which are not "
        "in the evidence"
    )


def _span(milliseconds: int) -> str:
    minutes = milliseconds // MINUTE
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def _retention_minutes(evidence: FoundEvidence) -> int | None:
    """The shortest offsets.retention.minutes in `server.properties` of the evidence; None where none has it."""
    from kctl.evidence.settings import settings_in

    numbers = [whole_number(settings.values.get(RETENTION, "").strip()) for settings in settings_in(evidence)]
    return min((number for number in numbers if number is not None), default=None)


def pending_findings(
    pending: Iterable[PendingCommit], transactions: Transactions | None
) -> Iterator[Finding]:
    """For each partition of a group with an offset in an open transaction: which, since when, how it ends."""
    newest: dict[tuple[str, str, int], PendingCommit] = {}
    for one in pending:
        newest[one.commit.group, one.commit.topic, one.commit.partition] = one
    for one in newest.values():
        commit, log = one.commit, TopicPartition("__consumer_offsets", one.commit.log_partition)
        known = transactions.of_producer(one.producer_id) if transactions else None
        opened = OpenTransaction(
            *log,
            one.producer_id,
            one.producer_epoch,
            commit.log_offset,
            commit.log_offset,
            commit.timestamp or -1,
        )
        is_decided = transactions is not None and (known is not None or transactions.is_whole)
        why = why_it_hangs(opened, known) if is_decided else None
        held = f"producer {one.producer_id} epoch {one.producer_epoch}, offset {commit.offset} written at {iso(commit.timestamp)}"
        if known is not None:
            since = "" if known.start_timestamp is None else f" since {iso(known.start_timestamp)}"
            held = f"transactional id {known.transactional_id} ({held}), {known.state}{since}"
        if why:
            end = f"no coordinator will end it ({why}): `kctl transactions abort {log}`"
        elif known is not None:
            end = f"it ends with its producer, or {known.timeout_ms / 1000:g} s after it began"
        else:
            end = "which transactional id has it is not in the evidence"
        yield GROUP_OFFSET_PENDING.at(
            Place(topic=commit.topic, partition=commit.partition),
            severity=None if why else Severity.INFO,
            group=commit.group,
            partition=TopicPartition(commit.topic, commit.partition),
            held=f"{held}; {end}",
        )


class LogEdges(NamedTuple):
    """The ends of a partition's log by its copies of the last moment: the lowest start and the highest end."""

    start: int
    end: int
    last_timestamp: int
    is_whole: bool
    """Whether the copies of all replicas are there, and their brokers had stopped."""


MAY_BE_OLDER = " The copies may be older than the commit, or another replica may reach further."


def outside_findings(evidence: FoundEvidence, commits: Iterable[OffsetCommit]) -> Iterator[Finding]:
    """For each committed offset that no copy of its partition has: beyond the end of all, or below the start of all.

    Of a broker that may have run, a log that ends before the commit was written proves nothing.
    """
    edges = _Edges(evidence)
    for commit in commits:
        tp = TopicPartition(commit.topic, commit.partition)
        log = edges.of(tp, commit.offset or 0)
        if commit.offset is None or log is None:
            continue
        place = Place(topic=commit.topic, partition=commit.partition)
        if commit.offset < log.start:
            yield GROUP_OFFSET_BELOW_START.at(
                place,
                group=commit.group,
                partition=tp,
                offset=commit.offset,
                edge=log.start,
                gone=log.start - commit.offset,
            )
        elif commit.offset > log.end:
            finding = GROUP_OFFSET_BEYOND_END.at(
                place,
                group=commit.group,
                partition=tp,
                offset=commit.offset,
                edge=log.end,
                gone=commit.offset - log.end,
            )
            is_proven = log.is_whole or log.last_timestamp >= (commit.commit_timestamp or 0) > 0
            if not is_proven:
                finding = replace(finding, severity=Severity.INFO, message=finding.message + MAY_BE_OLDER)
            yield finding


class _Edges:
    """The edges of logs in evidence; logs are read where checkpoints do not tell that an offset is within."""

    def __init__(self, evidence: FoundEvidence) -> None:
        self._evidence = evidence
        self._clusters: Mapping[str | None, Znodes] | None = None
        order = {name: place for place, name in enumerate(evidence.moments)}
        self._registered = Registered(evidence)
        self._checkpoints: dict[tuple[int, str], dict[TopicPartition, int]] = {}
        self._known: dict[TopicPartition, LogEdges] = {}
        copies: dict[TopicPartition, list[Replica]] = {}
        for replica in evidence.replicas:
            if replica.kind is FolderKind.LIVE and not replica.arriving:
                copies.setdefault(replica.topic_partition, []).append(replica)
        self._copies = {
            tp: [
                r
                for r in of
                if order.get(r.moment or "", -1) == max(order.get(x.moment or "", -1) for x in of)
            ]
            for tp, of in copies.items()
        }

    def of(self, tp: TopicPartition, offset: int) -> LogEdges | None:
        """The edges of a partition; None without a copy, and where a checkpoint says that the offset is within."""
        if tp in self._known:
            return self._known[tp]
        copies = self._copies.get(tp, [])
        starts = [start for copy in copies if (start := self._start(copy)) is not None]
        if not starts:
            return None
        marks = [
            self._checkpoint(copy.log_dir, "replication-offset-checkpoint").get(tp, -1) for copy in copies
        ]
        if min(starts) <= offset <= max(marks):
            return None
        ends = [_end_of(copy) for copy in copies]
        known = LogEdges(
            min(starts),
            max(max(end for end, _ in ends), max(marks)),
            max(timestamp for _, timestamp in ends),
            self._is_assigned(tp, copies) and all(map(self._had_stopped, copies)),
        )
        self._known[tp] = known
        return known

    def _had_stopped(self, copy: Replica) -> bool:
        return copy.log_dir.is_clean or self._registered.ran(copy.broker_id, copy.moment) is False

    def _is_assigned(self, tp: TopicPartition, copies: list[Replica]) -> bool:
        """Whether these are the copies of all replicas that the metadata assign; False where nothing tells."""
        if self._clusters is None:
            self._clusters = clusters_of(self._evidence, lambda error: None)
        cluster = self._clusters.get(copies[0].moment, self._clusters.get(None))
        replicas = cluster.replicas.get(tp) if cluster else None
        return replicas is not None and {copy.broker_id for copy in copies} >= set(replicas)

    def _start(self, copy: Replica) -> int | None:
        marked = self._checkpoint(copy.log_dir, "log-start-offset-checkpoint").get(copy.topic_partition)
        if marked is not None:
            return marked
        with suppress(OSError):
            return next((int(path.stem) for path in segments(copy.folder)), None)
        return None

    def _checkpoint(self, log_dir: LogDir, name: str) -> dict[TopicPartition, int]:
        key = id(log_dir), name
        if key not in self._checkpoints:
            entries: dict[TopicPartition, int] = {}
            with suppress(OSError, FormatError):
                entries = {
                    TopicPartition(topic, partition): offset
                    for topic, partition, offset in parse_offset_checkpoint(read_lenient(log_dir.path / name))
                }
            self._checkpoints[key] = entries
        return self._checkpoints[key]


def _end_of(copy: Replica) -> tuple[int, int]:
    """The end of a copy's log, and the newest timestamp in its last segment."""
    end, newest = 0, -1
    with suppress(OSError):
        for path in segments(copy.folder)[-1:]:
            end = max(end, int(path.stem))
            with opened_source(path) as data:
                for item in walk(data):
                    if isinstance(item, LogEntry):
                        end = max(end, item.last_offset + 1)
                        if item.batch is not None:
                            newest = max(newest, item.batch.max_timestamp)
    return end, newest
