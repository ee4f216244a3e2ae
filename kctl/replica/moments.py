"""What the znodes of each moment say about partitions: leader, ISR, assignment, who was alive, which topic it is.

Source: core/src/main/scala/kafka/zk/ZkData.scala @ 2.8.2
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from formats.errors import FormatError
from formats.znodes import NO_LEADER, parse_config, parse_partition_state, parse_topic
from kctl.errors import KctlError
from kctl.evidence.model import Evidence
from kctl.evidence.znodes import ExportedZnode, read_znodes
from kctl.log.folder import read_folder
from kctl.model import TopicPartition
from kctl.replica.copies import ByMoment, Copy, Moment

STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d{1,9})/state")
TOPIC = re.compile(r"/brokers/topics/([^/]+)")
BROKER = re.compile(r"/brokers/ids/(\d{1,9})")
CONFIG = re.compile(r"/config/topics/([^/]+)")
INTERNAL_COMPACTED = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition's state znode, and where it was read."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    moment: str | None
    file: str
    eligible: tuple[int, ...] = ()
    """Brokers outside the ISR that hold all that is committed (KIP-966): each may be elected as cleanly."""


@dataclass
class Znodes:
    """The znodes of one moment as far as replicas are concerned."""

    moment: str | None
    file: str
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    replicas: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    live: set[int] = field(default_factory=set)
    created: dict[str, int] = field(default_factory=dict)  # topic to the czxid of its znode
    created_ms: dict[str, int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    minimum_isr: dict[str, int] = field(default_factory=dict)
    """min.insync.replicas by topic; the brokers' default under ``""``."""
    decisions: dict[TopicPartition, list[PartitionState]] = field(default_factory=dict)
    """Every state that is known, oldest first; znodes hold the last only, a metadata log all of them."""

    def is_compacted(self, topic: str) -> bool | None:
        """Whether the topic's own configuration or its name says that it is compacted; None where neither does."""
        if topic in INTERNAL_COMPACTED:
            return True
        policy = self.policies.get(topic)
        return None if policy is None else "compact" in policy

    def take_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Remember what a topic's configuration says; the brokers' default has no name."""
        if topic and "cleanup.policy" in config:
            self.policies[topic] = config["cleanup.policy"]
        if config.get("min.insync.replicas", "").isdecimal():
            self.minimum_isr[topic] = int(config["min.insync.replicas"])

    def state(self, partition: TopicPartition) -> PartitionState | None:
        """The partition's state where it has a leader."""
        found = self.states.get(partition)
        return found if found is not None and found.leader > NO_LEADER else None


def znodes_of(evidence: Evidence, report: Callable[[KctlError], None]) -> dict[str | None, Znodes]:
    """The znodes of each moment that has an export; what cannot be read is reported and left out."""
    found: dict[str | None, Znodes] = {}
    for export in evidence.znode_exports:
        place = evidence.place_of(export.path, export.root)
        try:
            exported = read_znodes(export.path)
        except KctlError as error:
            if not export.root.is_folder:  # below a folder it is a finding of the evidence
                report(error)
            continue
        found[export.moment] = _decoded(exported, export.moment, place.file or "")
    return found


def _decoded(exported: Mapping[str, ExportedZnode], moment: str | None, file: str) -> Znodes:
    znodes = Znodes(moment, file)
    for path, znode in exported.items():
        try:
            _take(znodes, path, znode)
        except FormatError:
            continue  # a znode that nobody can read says nothing
    return znodes


def _take(znodes: Znodes, path: str, znode: ExportedZnode) -> None:
    if match := STATE.fullmatch(path):
        state = parse_partition_state(znode.data)
        partition = TopicPartition(match[1], int(match[2]))
        znodes.states[partition] = PartitionState(
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
        znodes.take_config(match[1], parse_config(znode.data).config)


def furthest_last(order: Sequence[Moment], copies: ByMoment) -> tuple[Moment, ...]:
    """The moments with the one last at which a copy of the partition reaches furthest, by its last segment."""

    def reach(moment: Moment) -> tuple[int, int]:
        return max((_reach(copy) for copy in copies.get(moment, {}).values()), default=(-1, -1))

    return tuple(sorted(order, key=reach))


def _reach(copy: Copy) -> tuple[int, int]:
    try:
        last = read_folder(copy.folder).logs[-1:]
    except OSError:
        return -1, -1
    return max(((one.base_offset, one.log.size_in_bytes) for one in last if one.log), default=(-1, -1))
