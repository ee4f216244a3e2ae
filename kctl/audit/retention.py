"""Segments that retention should have deleted by the settings in the evidence, and why they are still there.

A copy's own time is the newest record of its log directory: the broker ran then. Nothing is said where the evidence
lacks the settings of the topic, or the `server.properties` that holds where the topic has none.

Source: `deleteOldSegments`, `deletableSegments` (`K:log/UnifiedLog.scala @ 3.9.0`); the largest timestamp of a closed
segment is the last entry of its time index (`K:log/LogSegment.java @ 3.9.0`, onBecomeInactiveSegment).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

from formats.log_dir.file_names import FolderKind
from formats.log_dir.index_files import TIME_ENTRY_SIZE, read_time_index
from formats.values import Struct
from kctl.checks.directory import CLEANER, HIGH_WATERMARK, read_checkpoints
from kctl.checks.report import CheckOptions
from kctl.checks.retention import TOLERATED, last_written
from kctl.copies.moments import clusters_of
from kctl.evidence.model import FoundEvidence, Replica
from kctl.evidence.settings import settings_in
from kctl.files import open_file
from kctl.findings import Finding, Place
from kctl.findings import retention as codes
from kctl.log.folder import LogSegment, read_folder
from kctl.times import iso

HOUR = 3_600_000
LOOKED_AT = 2  # segments at each end of a log
# Settings of the broker that hold where the topic has none, best first, with what a unit is in the topic's.
OF_BROKER = {
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", HOUR),
    ),
    "retention.bytes": (("log.retention.bytes", 1),),
}
DEFAULTS = {"retention.ms": 7 * 24 * HOUR, "retention.bytes": -1}


class Setting(NamedTuple):
    """A number that holds for a topic, and where it is set."""

    value: int
    where: str


class DatedSegment(Struct, dict=True):
    """A segment with its size and its largest timestamp."""

    segment: LogSegment
    size: int

    @cached_property
    def latest_ms(self) -> int | None:
        """The timestamp of the last entry of its time index; None where that is empty, padded with zeros or not there.

        Read when it is asked for: a cluster has many segments, and in an object store each is a request.
        """
        index = self.segment.time_index
        if index is None or index.size_in_bytes < TIME_ENTRY_SIZE:
            return None
        try:
            with open_file(index.path) as file:
                file.seek((index.size_in_bytes // TIME_ENTRY_SIZE - 1) * TIME_ENTRY_SIZE)
                entries = read_time_index(file.read(TIME_ENTRY_SIZE))
        except OSError:
            return None
        return max((entry.timestamp for entry in entries), default=0) or None


def retention_findings(evidence: FoundEvidence) -> Iterator[Finding]:
    """Findings about every live replica of the newest moment whose retention is known."""
    moment = evidence.moments[-1] if evidence.moments else None
    clusters = clusters_of(evidence, lambda error: None)
    cluster = clusters.get(moment, clusters.get(None))
    if cluster is None:
        return
    properties = {
        id(log_dir): settings.values for settings in settings_in(evidence) for log_dir in settings.log_dirs
    }
    unlimited: set[str] = set()
    for log_dir in evidence.log_dirs:
        if log_dir.moment != moment or not log_dir.is_whole:
            continue
        of_broker = {**properties.get(id(log_dir), {}), **cluster.configs.get("", {})}
        is_known = id(log_dir) in properties
        replicas = [
            replica
            for replica in evidence.replicas
            if replica.log_dir is log_dir
            and replica.kind is FolderKind.LIVE
            and replica.topic in cluster.topic_ids.keys() | cluster.created.keys()
        ]
        segments = {replica.folder: segments_of(replica) for replica in replicas}
        alive_ms = alive_until(segments.values())
        checkpoints = read_checkpoints(log_dir, Place(), CheckOptions())
        for replica in replicas:
            topic = cluster.configs.get(replica.topic, {})
            policy = topic.get("cleanup.policy", of_broker.get("log.cleanup.policy", "delete"))
            is_compacted = cluster.is_compacted(replica.topic) or "delete" not in policy
            if is_compacted or checkpoints.get(CLEANER, replica.topic_partition) is not None:
                continue
            time = setting("retention.ms", topic, of_broker, is_known=is_known)
            size = setting("retention.bytes", topic, of_broker, is_known=is_known)
            if time is None:
                continue
            is_unlimited = time.value < 0 and size is not None and size.value < 0
            if (
                is_unlimited
                and size
                and not replica.topic.startswith("__")
                and replica.topic not in unlimited
            ):
                unlimited.add(replica.topic)
                yield codes.RETENTION_UNLIMITED.at(
                    Place(topic=replica.topic, moment=moment),
                    topic=replica.topic,
                    time_setting=f"retention.ms={time.value} ({time.where})",
                    size_setting=f"retention.bytes={size.value} ({size.where})",
                )
            if time.value >= 0 and alive_ms is not None:
                is_tiered = topic.get("remote.storage.enable") == "true"
                high = checkpoints.get(HIGH_WATERMARK, replica.topic_partition)
                yield from _kept(replica, segments[replica.folder], time, alive_ms, high, is_tiered=is_tiered)
                if size is not None and size.value >= 0 and not is_tiered:
                    yield from _cut_by_size(replica, segments[replica.folder], time, size, alive_ms)


def setting(
    name: str, topic: Mapping[str, str], of_broker: Mapping[str, str], *, is_known: bool
) -> Setting | None:
    """What holds for a topic; None where that depends on a file that the evidence lacks, or is no number.

    `is_known` says whether the broker's `server.properties` is there.
    """
    with suppress(ValueError):
        if name in topic:
            return Setting(int(topic[name]), "set on the topic")
        for key, unit in OF_BROKER[name]:
            if key in of_broker:
                value = int(of_broker[key])
                return Setting(value * unit if value >= 0 else -1, f"{key} of the broker")
        if is_known:
            return Setting(DEFAULTS[name], "the default")
    return None


def segments_of(replica: Replica) -> list[DatedSegment]:
    """The segments of a partition folder; none where it cannot be listed."""
    try:
        logs = read_folder(replica.folder).logs
    except OSError:
        return []
    return [DatedSegment(log, log.log.size_in_bytes if log.log else 0) for log in logs]


def alive_until(logs: Iterable[list[DatedSegment]]) -> int | None:
    """The newest time of the last segments of logs that had come when they were written: the broker ran then."""
    newest: int | None = None
    for segments in logs:
        last = segments[-LOOKED_AT:]
        written = last_written(segment.segment for segment in last)
        for segment in last:
            if segment.latest_ms is None or written is None or segment.latest_ms > written + TOLERATED:
                continue
            newest = max(newest or 0, segment.latest_ms)
    return newest


def _cut_by_size(
    replica: Replica, segments: list[DatedSegment], time: Setting, size: Setting, alive_ms: int
) -> Iterator[Finding]:
    """A log whose start retention by size has moved before retention by time would have."""
    held = sum(segment.size for segment in segments)
    first_ms = segments[0].latest_ms if segments else None
    if first_ms is None or not segments[0].segment.base_offset or held < size.value:
        return
    if alive_ms - time.value < first_ms <= alive_ms:
        yield codes.RETENTION_BY_SIZE.at(
            Place(
                broker_id=replica.broker_id,
                topic=replica.topic,
                partition=replica.partition,
                moment=replica.moment,
                base_offset=segments[0].segment.base_offset,
            ),
            partition=replica.topic_partition,
            broker="?" if replica.broker_id is None else replica.broker_id,
            time=iso(first_ms),
            time_setting=f"retention.ms={time.value} ({time.where})",
            size_setting=f"retention.bytes={size.value} ({size.where})",
            bytes=held,
        )


def _kept(
    replica: Replica,
    segments: list[DatedSegment],
    time: Setting,
    alive_ms: int,
    high_watermark: int | None,
    *,
    is_tiered: bool,
) -> Iterator[Finding]:
    """Findings about segments that the replica keeps past their retention; up to an hour counts as no delay."""
    closed, due_by = segments[:-1], alive_ms - time.value - HOUR

    def is_overdue(segment: DatedSegment) -> bool:
        return segment.latest_ms is not None and segment.latest_ms < due_by

    # If retention is behind, the first segments or the last one are overdue too, so that most logs need no full search.
    if not any(map(is_overdue, [*closed[:LOOKED_AT], *closed[-1:]])):
        return
    overdue = [segment for segment in closed if segment.latest_ms is not None and segment.latest_ms < due_by]
    if not overdue:
        return
    place = Place(
        broker_id=replica.broker_id,
        topic=replica.topic,
        partition=replica.partition,
        moment=replica.moment,
        base_offset=overdue[0].segment.base_offset,
    )
    details: dict[str, Any] = {
        "partition": replica.topic_partition,
        "broker": "?" if replica.broker_id is None else replica.broker_id,
        "setting": f"retention.ms={time.value} ({time.where})",
    }
    blocker = next((segment for segment in closed if segment not in overdue), None)
    behind = (
        [segment for segment in overdue if segment.segment.base_offset > blocker.segment.base_offset]
        if blocker
        else []
    )
    if blocker is not None and blocker.latest_ms is not None and behind:
        is_future = blocker.latest_ms > alive_ms + TOLERATED
        yield codes.RETENTION_BLOCKED.at(
            place,
            severity=None if is_future else codes.RETENTION_OVERDUE.severity,
            blocker=blocker.segment.base_offset,
            time=iso(blocker.latest_ms),
            why=(
                f"which had not come when the copy was taken ({iso(alive_ms)} or later)"
                if is_future
                else f"which stays until {iso(blocker.latest_ms + time.value)}"
            ),
            segments=len(behind),
            bytes=sum(segment.size for segment in behind),
            **details,
        )
    first = [segment for segment in overdue if segment not in behind]
    if first:
        end = segments[len(first)].segment.base_offset  # the active one is never among them
        if high_watermark is not None and high_watermark < end:
            why = f"the high watermark is {high_watermark}, and only segments below it are deleted"
        elif is_tiered:
            why = "the topic is tiered, and a segment stays until it is copied to the tier"
        else:
            why = "the evidence does not say why; the broker may have been down, or the setting new"
        yield codes.RETENTION_OVERDUE.at(
            place, segments=len(first), bytes=sum(segment.size for segment in first), why=why, **details
        )
