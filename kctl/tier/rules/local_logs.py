"""A tiered partition's local logs: which replica leads, and where its log begins and ends.

The leader is from the znode export or the metadata log. Without one, or without its copy in the evidence, the replica
with the newest leader epoch and the greatest end is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from formats.errors import FormatError
from formats.log_dir.producer_snapshot import read_snapshot
from formats.messages.remote_log_metadata import TopicIdPartition
from formats.values import Struct, field
from kctl.copies.moments import Znodes, clusters_of
from kctl.evidence.model import FoundEvidence
from kctl.evidence.replica_copies import Copy, copies_of
from kctl.files import read_whole
from kctl.log.folder import LogSegment, read_folder
from kctl.model import TopicPartition
from kctl.replication.epochs import Entries, loaded, truncate_from_end
from kctl.scan.options import Level, ScanOptions, ScanTotals
from kctl.scan.segment import scan_segment
from kctl.scan.source import opened_source
from kctl.tier.metadata.log import METADATA_TOPIC
from kctl.tier.rules.follower import ReplicaView


def totals_of(segment: LogSegment, level: Level) -> ScanTotals | None:
    """The totals of a scan of a local segment; None if it cannot be read."""
    assert segment.log is not None
    options = ScanOptions(level=level, base_offset=segment.base_offset, max_findings=0)
    try:
        with opened_source(segment.log.path) as source:
            scan = scan_segment(source, options)
            for _ in scan:
                pass
    except OSError:
        return None
    return scan.totals


class LocalLog(Struct, dict=True):
    """One replica's local log."""

    copy: Copy

    @property
    def broker_id(self) -> int:
        return self.copy.broker_id

    @cached_property
    def segments(self) -> list[LogSegment]:
        """Its segments by base offset; empty if the folder cannot be listed."""
        try:
            return read_folder(self.copy.folder).logs
        except OSError:
            return []

    @cached_property
    def first_base_offset(self) -> int:
        """The base offset of the first local segment; 0 without segments."""
        return self.segments[0].base_offset if self.segments else 0

    @cached_property
    def log_end_offset(self) -> int:
        """The offset after the last sound batch."""
        end = self.first_base_offset
        for segment in reversed(self.segments):
            end = max(end, segment.base_offset)
            totals = totals_of(segment, Level.CRC)
            if totals is None:
                continue
            if totals.next_offset is not None:
                return max(end, totals.next_offset)
            if segment.base_offset > 0:
                return end
        return end

    @property
    def checkpointed_log_start(self) -> int | None:
        """The log start offset that the broker wrote last, at most a minute before it stopped."""
        return self.copy.checkpoint("log_start")

    @property
    def log_start_offset(self) -> int:
        """The first offset of the partition, remote or local."""
        written = self.checkpointed_log_start
        return self.first_base_offset if written is None else written

    @property
    def local_log_start_offset(self) -> int:
        return max(self.log_start_offset, self.first_base_offset)

    @cached_property
    def epochs(self) -> Entries:
        """Its leader epochs as the broker has them after loading."""
        return truncate_from_end(loaded(self.copy.recorded_epochs or ()), max(self.log_end_offset, 1))

    @cached_property
    def last_stable_offset(self) -> int:
        """Where the first open transaction begins, else the high watermark, as far as the files say."""
        high = self.copy.checkpoint("high_watermark")
        end = self.log_end_offset if high is None else min(high, self.log_end_offset)
        try:
            data = read_whole(self.copy.folder / f"{self.log_end_offset:020d}.snapshot")
            open_since = [producer.current_txn_first_offset for producer in read_snapshot(data)]
        except (OSError, FormatError):
            return end
        return min([end, *(offset for offset in open_since if offset >= 0)])

    def view(self) -> ReplicaView:
        return ReplicaView(
            self.epochs, self.log_start_offset, self.local_log_start_offset, self.log_end_offset
        )


class LocalPartition(Struct, dict=True):
    """A partition's replicas in the evidence, and its leader."""

    topic_partition: TopicPartition
    replicas: dict[int, LocalLog]
    named_leader: int | None = None  # by the cluster's metadata; -1: none
    named_by: str = "znodes"

    @cached_property
    def leader(self) -> LocalLog | None:
        """The leader's log; without it that of the replica with the newest epoch and the greatest end."""
        if self.named_leader in self.replicas:
            return self.replicas[self.named_leader]
        return max(
            self.replicas.values(),
            key=lambda log: (log.epochs[-1][0] if log.epochs else -1, log.log_end_offset),
            default=None,
        )

    @property
    def leader_is_absent(self) -> bool:
        """Whether the named leader's log is missing in the evidence."""
        leader = self.named_leader
        return leader is not None and leader >= 0 and leader not in self.replicas

    @property
    def how(self) -> str:
        """Where the leader is from: the cluster's metadata, or the logs themselves."""
        return self.named_by if self.named_leader in self.replicas else "logs"


class LocalLogs(Struct):
    """Every partition's local logs and the topics' metadata, at one moment."""

    partitions: dict[TopicPartition, LocalPartition] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)  # topic -> id of the topic that exists
    metadata: Znodes | None = None

    @property
    def newest(self) -> int:
        """When the newest znode or metadata record was written, in milliseconds; -1 without any."""
        return self.metadata.newest if self.metadata else -1

    @property
    def metadata_partitions(self) -> int | None:
        """The number of partitions of the metadata topic; None if unknown."""
        assigned = self.metadata.replicas if self.metadata else {}
        return sum(where.topic == METADATA_TOPIC for where in assigned) or None

    def config(self, topic: str) -> Mapping[str, str]:
        return self.metadata.configs.get(topic, {}) if self.metadata else {}

    def exists(self, topic: str, topic_id: str) -> bool | None:
        """Whether the topic with this id exists; None if the evidence does not say."""
        if topic in self.topic_ids:
            return self.topic_ids[topic] == topic_id
        if self.metadata is None:
            return None
        # An export has the znodes of all topics or of none; a copy of a metadata log may be behind.
        is_whole = self.metadata.is_zookeeper and self.metadata.created
        return False if is_whole or topic_id in self.metadata.removed else None

    def tiered(self) -> Iterator[TopicIdPartition]:
        """The partitions of topics with remote storage enabled whose topic ids are known."""
        if self.metadata is None:
            return
        for where in sorted(self.metadata.replicas.keys() | self.partitions.keys()):
            topic_id = self.topic_ids.get(where.topic)
            if topic_id and self.metadata.is_tiered(where.topic):
                yield TopicIdPartition(topic_id, where.topic, where.partition)


def read_local_logs(evidence: FoundEvidence) -> LocalLogs:
    """The local logs of the newest moment in the evidence."""
    moment = evidence.moments[-1] if evidence.moments else None
    local_logs = LocalLogs()
    for where, by_moment in copies_of(evidence).items():
        copies = by_moment.get(moment, {}) if moment is not None else next(iter(by_moment.values()), {})
        if copies:
            logs = {broker_id: LocalLog(copy) for broker_id, copy in copies.items()}
            local_logs.partitions[where] = LocalPartition(where, logs)
            ids = (copy.replica.topic_id for copy in copies.values())
            topic_id = next((topic_id for topic_id in ids if topic_id), None)
            if topic_id:
                local_logs.topic_ids.setdefault(where.topic, topic_id)
    # Commands that need znodes report what cannot be read.
    clusters = clusters_of(evidence, lambda error: None)
    local_logs.metadata = clusters.get(moment, clusters.get(None))
    if local_logs.metadata is None:
        return local_logs
    if local_logs.metadata.is_zookeeper and local_logs.metadata.created:
        local_logs.topic_ids.clear()
    local_logs.topic_ids |= local_logs.metadata.topic_ids
    for where, partition in local_logs.partitions.items():
        if where in local_logs.metadata.states:
            partition.named_leader = local_logs.metadata.states[where].leader
            partition.named_by = "znodes" if local_logs.metadata.is_zookeeper else "metadata"
    return local_logs
