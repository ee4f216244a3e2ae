"""The state of the cluster at each moment: leader, ISR, assignment, live brokers, and the topic of each name.

It is read from znodes, from the metadata log of a KRaft cluster, or from what brokers told of it. Every node has a copy of that log, or a snapshot
and the records after it. Each decision about a partition is a record in it (leader, leader epoch, ISR); a znode has
only the last decision.

Source: core/src/main/scala/kafka/zk/ZkData.scala @ 2.8.2;
metadata/src/main/resources/common/metadata/PartitionRecord.json, PartitionChangeRecord.json @ 3.9.0-rc3
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from formats.errors import FormatError
from formats.values import Struct, field
from formats.znodes.cluster import NO_LEADER, parse_config, parse_partition_state, parse_topic
from kctl.cluster.state import DEFAULT
from kctl.errors import KctlError
from kctl.evidence.model import FoundEvidence, Replica, ToldCluster
from kctl.evidence.order import is_order_known
from kctl.evidence.replica_copies import ByMoment, Copy, Moment
from kctl.evidence.told import ToldBroker, ToldConfig, ToldPartition, ToldTopic, told_rows
from kctl.evidence.znodes import ExportedZnode, read_znodes
from kctl.internal_topics.cluster_image import ClusterImage, PartitionImage
from kctl.internal_topics.decisions import Decided, Decision, metadata_logs, read_decisions
from kctl.log.folder import read_folder
from kctl.model import TopicPartition

STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d{1,9})/state")
TOPIC = re.compile(r"/brokers/topics/([^/]+)")
BROKER = re.compile(r"/brokers/ids/(\d{1,9})")
CONFIG = re.compile(r"/config/topics/([^/]+)")
INTERNAL_COMPACTED = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class RecordedState(Struct, frozen=True):
    """A partition's state, and the file it was read from."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    moment: str | None
    file: str
    eligible: tuple[int, ...] = ()
    """Brokers outside the ISR that hold everything committed (KIP-966): electing one of them is clean too."""


class Znodes(Struct):
    """The cluster at one moment as far as replicas are concerned: from znodes, a metadata log, or as brokers told."""

    moment: str | None
    file: str
    is_zookeeper: bool = True
    """Whether it was read from znodes."""
    is_whole: bool = True
    """Whether a topic that is not in it is not in the cluster: brokers tell of some topics, and of those that a user may see."""
    states: dict[TopicPartition, RecordedState] = field(default_factory=dict)
    replicas: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    live: set[int] = field(default_factory=set)
    registered: set[int] = field(default_factory=set)
    """Brokers in the metadata log, including those that are down; znodes do not keep these."""
    created: dict[str, int] = field(default_factory=dict)  # topic to the czxid of its znode
    created_ms: dict[str, int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """The configuration of topics; the brokers' default is under the name ``""``."""
    newest: int = -1
    """When the newest znode was changed or the newest record of the metadata log was written, in milliseconds."""
    decisions: dict[TopicPartition, list[Decision]] = field(default_factory=dict)
    """Every state in the metadata log, oldest first; znodes hold only the last one."""
    decided_offsets: range = range(0)
    """The offsets of the metadata log from its first state of a partition to its end."""
    removed: set[str] = field(default_factory=set)
    """Ids of topics that the metadata log says were deleted; znodes of a deleted topic are missing."""

    def is_compacted(self, topic: str) -> bool | None:
        """Whether the topic is compacted by its configuration or its name; None if neither says so."""
        if topic in INTERNAL_COMPACTED:
            return True
        policy = self.configs.get(topic, {}).get("cleanup.policy")
        return None if policy is None else "compact" in policy

    def is_tiered(self, topic: str) -> bool:
        """Whether the topic's configuration enables remote storage."""
        return self.configs.get(topic, {}).get("remote.storage.enable") == "true"

    def minimum_isr(self, topic: str, default: int = 1) -> int:
        """The topic's min.insync.replicas, else that of the brokers, else the default."""
        settings = (self.configs.get(name, {}).get("min.insync.replicas", "") for name in (topic, ""))
        return next((int(minimum) for minimum in settings if minimum.isdecimal()), default)

    def state(self, partition: TopicPartition) -> RecordedState | None:
        """The partition's state; None without a leader."""
        state = self.states.get(partition)
        return state if state is not None and state.leader > NO_LEADER else None


def znodes_of(evidence: FoundEvidence, report: Callable[[KctlError], None]) -> dict[str | None, Znodes]:
    """The znodes of each moment that has an export; what cannot be read is reported and left out."""
    znodes_by_moment: dict[str | None, Znodes] = {}
    for export in evidence.znode_exports:
        place = evidence.place_of(export.path, export.root)
        try:
            exported = read_znodes(export.path)
        except KctlError as error:
            if not export.root.is_folder:  # below a folder it is a finding of the evidence
                report(error)
            continue
        znodes_by_moment[export.moment] = _decoded(exported, export.moment, place.file or "")
    return znodes_by_moment


def _decoded(exported: Mapping[str, ExportedZnode], moment: str | None, file: str) -> Znodes:
    znodes = Znodes(moment, file)
    for path, znode in exported.items():
        try:
            _take_znode(znodes, path, znode)
        except FormatError:
            continue  # an unreadable znode says nothing
    return znodes


def _take_znode(znodes: Znodes, path: str, znode: ExportedZnode) -> None:
    znodes.newest = max(znodes.newest, znode.mtime)
    if match := STATE.fullmatch(path):
        state = parse_partition_state(znode.data)
        partition = TopicPartition(match[1], int(match[2]))
        znodes.states[partition] = RecordedState(
            state.leader, state.leader_epoch, tuple(state.isr), znodes.moment, znodes.file
        )
    elif match := TOPIC.fullmatch(path):
        topic = parse_topic(znode.data)
        znodes.created[match[1]] = znode.czxid
        znodes.created_ms[match[1]] = znode.ctime
        if topic.topic_id:
            znodes.topic_ids[match[1]] = topic.topic_id
        for number, replicas in topic.partitions.items():
            znodes.replicas[TopicPartition(match[1], number)] = tuple(replicas)
    elif match := BROKER.fullmatch(path):
        znodes.live.add(int(match[1]))
    elif match := CONFIG.fullmatch(path):
        znodes.configs[match[1]] = parse_config(znode.data).config


def furthest_last(order: Sequence[Moment], copies: ByMoment) -> tuple[Moment, ...]:
    """The moments, the one whose copy of the partition reaches furthest last, by the last segment."""

    def reach(moment: Moment) -> tuple[int, int]:
        return max((_reach(copy) for copy in copies.get(moment, {}).values()), default=(-1, -1))

    return tuple(sorted(order, key=reach))


def _reach(copy: Copy) -> tuple[int, int]:
    try:
        last = read_folder(copy.folder).logs[-1:]
    except OSError:
        return -1, -1
    ends = ((segment.base_offset, segment.log.size_in_bytes) for segment in last if segment.log)
    return max(ends, default=(-1, -1))


def clusters_of(evidence: FoundEvidence, report: Callable[[KctlError], None]) -> dict[Moment, Znodes]:
    """The cluster at each moment: from znodes, else from the longest copy of the metadata log, else as brokers told.

    What cannot be read is reported and left out.
    """
    znodes_by_moment = znodes_of(evidence, report)
    logs_by_moment = metadata_logs(evidence)
    order = (*reversed(evidence.moments), *({*logs_by_moment} - {*evidence.moments}))
    later: Znodes | None = None
    read: dict[Moment, Znodes] = {}
    for moment in order:
        if moment in znodes_by_moment or moment not in logs_by_moment:
            continue
        try:
            read[moment] = _read_metadata_logs(evidence, moment, logs_by_moment[moment], later)
        except KctlError as error:
            report(error)
        if is_order_known(evidence):
            later = later or read.get(moment)
    for told in evidence.told:
        if told.moment in znodes_by_moment or told.moment in read:
            continue
        try:
            znodes_by_moment[told.moment] = _told(evidence, told)
        except KctlError as error:
            report(error)
    return znodes_by_moment | {moment: read[moment] for moment in logs_by_moment if moment in read}


def _told(evidence: FoundEvidence, told: ToldCluster) -> Znodes:
    """The cluster as brokers told of it. Raises KctlError."""
    file = evidence.place_of(told.path, told.root).file or ""
    cluster = Znodes(told.moment, file, is_zookeeper=False, is_whole=False)
    for row in told_rows(told.path):
        if isinstance(row, ToldBroker):
            cluster.registered.add(row.broker_id)
            if row.is_alive:
                cluster.live.add(row.broker_id)
        elif isinstance(row, ToldTopic):
            if row.topic_id is not None:
                cluster.topic_ids[row.topic] = row.topic_id
            if row.configs is not None:
                cluster.configs[row.topic] = row.configs
        elif isinstance(row, ToldPartition):
            where = TopicPartition(row.topic, row.partition)
            cluster.replicas[where] = tuple(row.replicas)
            if row.leader_epoch is not None and row.leader_epoch >= 0:
                leader = NO_LEADER if row.leader is None else row.leader
                eligible = tuple(row.eligible_leader_replicas or ())
                cluster.states[where] = RecordedState(
                    leader, row.leader_epoch, tuple(row.isr), told.moment, cluster.file, eligible
                )
        elif isinstance(row, ToldConfig) and (row.entity_type, row.entity_name) == ("brokers", DEFAULT):
            defaults = dict(cluster.configs.get("", {}))
            if row.value is not None:
                defaults[row.key] = row.value
            cluster.configs[""] = defaults
    return cluster


def assigned_in(clusters: Mapping[Moment, Znodes]) -> set[TopicPartition]:
    """The partitions that have replicas in the metadata of any moment."""
    return {partition for znodes in clusters.values() for partition in znodes.replicas}


def _read_metadata_logs(
    evidence: FoundEvidence, moment: Moment, logs: Sequence[Replica], later: Znodes | None
) -> Znodes:
    """The cluster at a moment; of copies that differ from the metadata log of a later moment, what it confirms.

    A controller that is cut off appends records that no majority gets; it cuts them when it is back.
    """
    znodes = _cluster_of(read_decisions(evidence, logs), moment)
    if later is None or not unconfirmed(znodes, later):
        return znodes
    for log in logs:
        try:
            other = _cluster_of(read_decisions(evidence, [log]), moment)
        except KctlError:
            continue
        if not unconfirmed(other, later):
            return other
    take_back(znodes, unconfirmed(znodes, later))
    return znodes


def unconfirmed(znodes: Znodes, later: Znodes) -> list[Decision]:
    """The decisions in a metadata log at whose offsets the log of a later moment has other records."""
    confirmed = {
        (decision.offset, decision.topic_partition): decision
        for decisions in later.decisions.values()
        for decision in decisions
    }

    def differs(decision: Decision) -> bool:
        if decision.offset not in later.decided_offsets:
            return False
        same = confirmed.get((decision.offset, decision.topic_partition))
        return same is None or (same.leader_epoch, same.leader, same.isr) != (
            decision.leader_epoch, decision.leader, decision.isr,
        )  # fmt: skip

    return [
        decision
        for decisions in znodes.decisions.values()
        for decision in decisions
        if decision.topic_id == later.topic_ids.get(decision.topic_partition.topic) and differs(decision)
    ]


def take_back(znodes: Znodes, undone: Sequence[Decision]) -> None:
    """Leave decisions out; the state of their partitions is the last one before them."""
    for partition in {decision.topic_partition for decision in undone}:
        first = min(d.offset or 0 for d in undone if d.topic_partition == partition)
        kept = [d for d in znodes.decisions[partition] if (d.offset or 0) < first]
        znodes.decisions[partition] = kept
        if kept:
            last = kept[-1]
            znodes.states[partition] = RecordedState(
                last.leader, last.leader_epoch, last.isr, znodes.moment, znodes.file, last.eligible
            )
        else:
            del znodes.decisions[partition]
            znodes.states.pop(partition, None)


def _cluster_of(decided: Decided, moment: Moment) -> Znodes:
    znodes = Znodes(moment, decided.file, is_zookeeper=False, removed={*decided.removed})
    offsets = [decision.offset for decision in decided.decisions if decision.offset is not None]
    if offsets:
        znodes.decided_offsets = range(min(offsets), max(decided.image.end_offset, max(offsets) + 1))
    for decision in decided.decisions:
        if decision.topic_id in decided.image.names:  # not of an earlier topic of that name
            znodes.decisions.setdefault(decision.topic_partition, []).append(decision)
    _take_image(znodes, decided.image)
    return znodes


def _state(partition: PartitionImage, znodes: Znodes) -> RecordedState:
    return RecordedState(
        partition.leader,
        partition.leader_epoch,
        tuple(partition.isr),
        znodes.moment,
        znodes.file,
        tuple(partition.eligible_leader_replicas),
    )


def _take_image(znodes: Znodes, image: ClusterImage) -> None:
    """Fill in the cluster as it was at the end of the log."""
    znodes.newest = image.timestamp if image.timestamp is not None else -1
    for topic_id, name in image.names.items():
        znodes.topic_ids[name] = topic_id
        znodes.created[name] = 0  # there are no ZooKeeper transactions; topics differ by their ids
        for number, partition in image.partitions.get(topic_id, {}).items():
            where = TopicPartition(name, number)
            znodes.states[where] = _state(partition, znodes)
            znodes.replicas[where] = tuple(partition.replicas)
    znodes.registered |= image.brokers.keys()
    znodes.live |= {id for id, broker in image.brokers.items() if not broker.fenced}
    for (kind, name), configs in image.configs.items():
        if kind == "topic" or (kind, name) == ("broker", ""):
            znodes.configs[name] = configs
