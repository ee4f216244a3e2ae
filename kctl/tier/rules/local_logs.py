"""A tiered partition's local logs: which replica leads, where its log begins, ends and what it holds here.

The leader is the one in the znode export; where there is none, or its copy is not in the evidence, the replica
with the newest leader epoch and the greatest end stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from formats import bounded_json
from formats.errors import FormatError
from formats.log_dir.producer_snapshot import read_snapshot
from formats.values import Struct, field
from kctl.errors import KctlError
from kctl.evidence.model import Evidence
from kctl.evidence.znodes import ExportedZnode, read_znodes
from kctl.files import read_whole
from kctl.log.folder import Segment, read_folder
from kctl.model import TopicPartition
from kctl.replica.copies.copy import Copy, copies_of
from kctl.replication.epochs import Entries, loaded, truncate_from_end
from kctl.scan.options import Level, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import opened_source
from kctl.tier.rules.follower import ReplicaView


class LocalLog(Struct, dict=True):
    """One replica's local log."""

    copy: Copy

    @property
    def broker_id(self) -> int:
        """Whose it is."""
        return self.copy.broker_id

    @cached_property
    def segments(self) -> list[Segment]:
        """Its segments by base offset."""
        try:
            return read_folder(self.copy.folder).logs
        except OSError:
            return []

    @cached_property
    def first_base_offset(self) -> int:
        """The base offset of the first local segment."""
        return self.segments[0].base_offset if self.segments else 0

    @cached_property
    def log_end_offset(self) -> int:
        """Behind the last sound batch."""
        end = self.first_base_offset
        for segment in reversed(self.segments):
            end = max(end, segment.base_offset)
            assert segment.log is not None
            options = ScanOptions(level=Level.CRC, base_offset=segment.base_offset, max_findings=0)
            try:
                with opened_source(segment.log.path) as source:
                    scan = scan_segment(source, options)
                    for _ in scan:
                        pass
            except OSError:
                continue
            if scan.totals.next_offset is not None:
                return max(end, scan.totals.next_offset)
            if segment.base_offset > 0:
                return end
        return end

    @property
    def checkpointed_log_start(self) -> int | None:
        """The log start offset that the broker wrote down last, at most a minute before it stopped."""
        return self.copy.checkpoint("log_start")

    @property
    def log_start_offset(self) -> int:
        """The first offset of the partition, in the tier or here."""
        written = self.checkpointed_log_start
        return self.first_base_offset if written is None else written

    @property
    def local_log_start_offset(self) -> int:
        """The first offset that is here."""
        return max(self.log_start_offset, self.first_base_offset)

    @cached_property
    def epochs(self) -> Entries:
        """Its leader epochs, as the broker holds them after loading."""
        return truncate_from_end(loaded(self.copy.recorded_epochs or ()), max(self.log_end_offset, 1))

    @cached_property
    def last_stable_offset(self) -> int:
        """Where the first open transaction begins, else the high watermark; as far as the files tell."""
        high = self.copy.checkpoint("high_watermark")
        end = self.log_end_offset if high is None else min(high, self.log_end_offset)
        try:
            data = read_whole(self.copy.folder / f"{self.log_end_offset:020d}.snapshot")
            open_since = [p.current_txn_first_offset for p in read_snapshot(data)]
        except (OSError, FormatError):
            return end
        return min([end, *(offset for offset in open_since if offset >= 0)])

    def view(self) -> ReplicaView:
        """As others see it."""
        return ReplicaView(
            self.epochs, self.log_start_offset, self.local_log_start_offset, self.log_end_offset
        )


class LocalPartition(Struct, dict=True):
    """The replicas of a partition in the evidence, and who leads it."""

    topic_partition: TopicPartition
    replicas: dict[int, LocalLog]
    told_leader: int | None = None  # by a znode; -1: none
    told_epoch: int | None = None

    @cached_property
    def leader(self) -> LocalLog | None:
        """The leader's log, or the one that stands for it."""
        if self.told_leader in self.replicas:
            return self.replicas[self.told_leader]
        return max(
            self.replicas.values(),
            key=lambda log: (log.epochs[-1][0] if log.epochs else -1, log.log_end_offset),
            default=None,
        )

    @property
    def leader_is_absent(self) -> bool:
        """Whether the evidence names a leader whose log it does not hold."""
        return (
            self.told_leader is not None and self.told_leader >= 0 and self.told_leader not in self.replicas
        )

    @property
    def how(self) -> str:
        """Where the leader was read: in znodes, or from the logs themselves."""
        return "znodes" if self.told_leader in self.replicas else "logs"


class LocalLogs(Struct):
    """Every partition's local logs, topics' ids and settings, of one moment."""

    partitions: dict[TopicPartition, LocalPartition] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)  # topic -> id of the topic that exists
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    ids_are_complete: bool = False  # whether a topic that is not in topic_ids does not exist
    newest: int = -1  # ms, of the znodes
    metadata_partitions: int | None = None  # of the metadata topic

    def topic_of(self, topic_id: str) -> str | None:
        """The topic that has the id now."""
        return next((topic for topic, one in self.topic_ids.items() if one == topic_id), None)


def read_local_logs(evidence: Evidence) -> LocalLogs:
    """The local logs of the newest moment in the evidence."""
    moment = evidence.moments[-1] if evidence.moments else None
    found = LocalLogs()
    for where, by_moment in copies_of(evidence).items():
        copies = by_moment.get(moment, {}) if moment is not None else next(iter(by_moment.values()), {})
        if copies:
            found.partitions[where] = LocalPartition(where, {b: LocalLog(c) for b, c in copies.items()})
            ids = (copy.replica.topic_id for copy in copies.values())
            topic_id = next((known for known in ids if known), None)
            if topic_id:
                found.topic_ids.setdefault(where.topic, topic_id)
    for export in evidence.znode_exports:
        if export.moment in (moment, None):
            try:
                _read_export(found, read_znodes(export.path))
            except KctlError:
                continue  # said by the commands that are about znodes
    return found


def _json(znodes: Mapping[str, ExportedZnode], path: str) -> dict[str, object]:
    znode = znodes.get(path)
    try:
        value = bounded_json.loads(znode.data or b"") if znode else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _read_export(found: LocalLogs, znodes: Mapping[str, ExportedZnode]) -> None:
    topics = [path.removeprefix("/brokers/topics/") for path in znodes if path.startswith("/brokers/topics/")]
    names = [name for name in topics if "/" not in name]
    if names:
        found.ids_are_complete = True
        found.topic_ids.clear()
    found.newest = max([found.newest, *(znode.mtime for znode in znodes.values())])
    held = _json(znodes, "/brokers/topics/__remote_log_metadata").get("partitions")
    found.metadata_partitions = len(held) if isinstance(held, dict) and held else None
    for name in names:
        topic_id = _json(znodes, f"/brokers/topics/{name}").get("topic_id")
        if isinstance(topic_id, str):
            found.topic_ids[name] = topic_id
        config = _json(znodes, f"/config/topics/{name}").get("config")
        found.configs[name] = {str(k): str(v) for k, v in config.items()} if isinstance(config, dict) else {}
    for where, partition in found.partitions.items():
        state = _json(znodes, f"/brokers/topics/{where.topic}/partitions/{where.partition}/state")
        leader, epoch = state.get("leader"), state.get("leader_epoch")
        partition.told_leader = leader if isinstance(leader, int) else None
        partition.told_epoch = epoch if isinstance(epoch, int) else None
