"""Groups as their coordinators know them: state, members, offsets, of all protocols.

Source: KIP-848 (consumer), KIP-932 (share), KIP-1071 (streams), KIP-709 (offsets of several groups); clients/src/main/
resources/common/message/{ListGroups,DescribeGroups,*GroupDescribe,OffsetFetch,DescribeShareGroupOffsets}*.json @ 4.3.0
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.protocol.admin.groups import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer.group import OffsetFetchRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.metadata import FindCoordinatorRequest

from formats.values import Struct
from kctl.changes.intents import GroupOffset, counted
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, near_names
from kctl.model import TopicPartition
from kctl.wire.adapter import BrokerError, TooOld, Wire, error_name
from kctl.wire.reading import read_cluster
from kctl.wire.replicas.fetching import CONSUMER, LATEST, list_offsets
from kctl.wire.shortcuts.metadata import PlacesRequest, places

CLASSIC, CONSUMER_PROTOCOL, SHARE, STREAMS = "classic", "consumer", "share", "streams"
BY_GROUP, BY_NAME = 8, 9  # versions of OffsetFetch: the first of many groups, the last with topics by name
GROUP_ID_NOT_FOUND = 69
OFFSETS = "__consumer_offsets"
EMPTY = frozenset({"Empty", "Dead"})  # states without members


class ListedGroup(NamedTuple):
    """A group in a list. What the cluster's version does not tell is None."""

    group: str
    coordinator: int
    protocol_type: str
    state: str | None
    type: str | None


class Member(NamedTuple):
    """A member, and the partitions that it has; None where its assignment cannot be read.

    `epoch`, `subscription` and `target_assignment` are of the newer protocols, tasks (`SUBTOPOLOGY_PARTITION`) of streams.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...] | None
    epoch: int | None = None
    subscription: tuple[str, ...] | None = None
    target_assignment: tuple[TopicPartition, ...] | None = None
    active_tasks: tuple[str, ...] | None = None
    standby_tasks: tuple[str, ...] | None = None
    warmup_tasks: tuple[str, ...] | None = None


class ConsumerGroup(Struct, frozen=True, kw_only=True):
    """A group in full. Epochs are of the newer protocols."""

    group: str
    coordinator: int
    type: str
    state: str
    protocol_type: str | None
    protocol: str | None
    members: tuple[Member, ...]
    epoch: int | None = None
    assignment_epoch: int | None = None

    @property
    def is_active(self) -> bool:
        """Whether it has members, so that brokers let nobody else set its offsets."""
        return self.state not in EMPTY


def list_groups(wire: Wire) -> tuple[list[ListedGroup], list[KctlError]]:
    """The groups of every coordinator, by name, and what brokers did not answer."""
    nodes = wire.nodes
    answers = wire.send_all([(node, ListGroupsRequest(states_filter=[], types_filter=[])) for node in nodes])
    found, failures = [], []
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, KctlError):
            failures.append(answer)
        elif answer.error_code:
            failures.append(
                BrokerError(
                    f"broker {node} does not list its groups: {error_name(answer.error_code)}",
                    "`kctl group list` lists the groups",
                )
            )
        else:
            found += [
                ListedGroup(
                    str(group.group_id),
                    node,
                    str(group.protocol_type),
                    getattr(group, "group_state", None) or None,
                    (getattr(group, "group_type", None) or "").lower() or None,
                )
                for group in answer.groups
            ]
    return sorted(found), failures


def require_coordinators(wire: Wire) -> None:
    """Raises KctlError where a partition of the groups' own topic has no leader: nobody lists its groups."""
    topic = PlacesRequest.MetadataRequestTopic(name=OFFSETS)
    metadata = places(wire.read(PlacesRequest(topics=[topic], allow_auto_topic_creation=False)))
    alive = {node.node_id for node in metadata.brokers}
    silent = sum(led.leader not in alive for topic in metadata.topics for led in topic.states.values())
    if silent:
        raise KctlError(
            f"{counted(silent, 'partition')} of {OFFSETS} {'has' if silent == 1 else 'have'} no leader, so that not "
            "every group is known",
            f"start the brokers that hold {OFFSETS}: `kctl topic describe {OFFSETS}`",
        )


def coordinator_of(wire: Wire, group: str) -> int:
    """The broker that coordinates a group. Raises KctlError."""
    if (wire.version_of(FindCoordinatorRequest) or 0) >= 4:
        answer = wire.read(FindCoordinatorRequest(key_type=0, coordinator_keys=[group], min_version=4))
        (found,) = answer.coordinators
    else:
        found = wire.read(FindCoordinatorRequest(key=group, key_type=0, max_version=3))
    if found.error_code:
        raise BrokerError(f"group {group} has no coordinator now: {error_name(found.error_code)}")
    return int(found.node_id)


def read_group(wire: Wire, group: str) -> ConsumerGroup:
    """A group with its members. Raises KctlError for an unknown one."""
    found = find_group(wire, group)
    if found is None:
        known = [one.group for one in list_groups(wire)[0]]
        hint = near_names(group, known, otherwise="`kctl group list` lists the groups")
        raise KctlError(f"no group {group}", hint)
    return found


def find_group(wire: Wire, group: str) -> ConsumerGroup | None:
    """A group with its members; None where no such group. Raises KctlError where nobody can tell."""
    return find_groups(wire, {coordinator_of(wire, group): [group]}).get(group)


def find_groups(wire: Wire, names: Mapping[int, Sequence[str]]) -> dict[str, ConsumerGroup]:
    """Groups with their members, asked for at their coordinators; those that are not there are left out.

    A coordinator describes a group in the words of its own protocol only, so that one is asked for after the other.
    """
    found: dict[str, ConsumerGroup] = {}
    left = {node: list(groups) for node, groups in names.items()}
    requests: list[tuple[str, Any]] = [(CLASSIC, None)]
    requests += [
        (type, f"{type.capitalize()}GroupDescribeRequest") for type in (CONSUMER_PROTOCOL, SHARE, STREAMS)
    ]
    for type, request in requests:
        left = {
            node: rest
            for node, some in left.items()
            if (rest := [name for name in some if name not in found])
        }
        if left:
            found |= _of_protocol(wire, left, type, request)
    return found


def _of_protocol(
    wire: Wire, names: Mapping[int, Sequence[str]], type: str, request: str | None
) -> dict[str, ConsumerGroup]:
    """Those of the groups that are of one protocol."""
    if request is None:
        asked = [(node, DescribeGroupsRequest(groups=list(some))) for node, some in names.items()]
    else:
        from kctl.wire import messages

        kind = getattr(messages, request)
        if wire.version_of(kind) is None:
            return {}
        asked = [
            (node, kind(group_ids=list(some), include_authorized_operations=False))
            for node, some in names.items()
        ]
    found = {}
    for node, answer in zip(names, wire.send_all(asked), strict=True):
        if isinstance(answer, TooOld):
            continue
        if isinstance(answer, KctlError):
            raise answer
        for one in answer.groups:
            if type != CLASSIC and not one.error_code:
                found[str(one.group_id)] = _described(one, type, node)
            elif type == CLASSIC and one.error_code not in (0, GROUP_ID_NOT_FOUND):
                raise BrokerError(f"group {one.group_id}: {error_name(one.error_code)}")
            elif type == CLASSIC and not one.error_code and one.group_state != "Dead":
                found[str(one.group_id)] = _classic(one, node)
    return found


def _classic(one: Any, coordinator: int) -> ConsumerGroup:
    return ConsumerGroup(
        group=str(one.group_id),
        coordinator=coordinator,
        type=CLASSIC,
        state=str(one.group_state),
        protocol_type=str(one.protocol_type) or None,
        protocol=one.protocol_data or None,
        members=tuple(
            Member(
                str(m.member_id),
                getattr(m, "group_instance_id", None),
                str(m.client_id),
                str(m.client_host),
                _assignment(m.member_assignment) if one.protocol_type == "consumer" else None,
            )
            for m in one.members
        ),
    )


def _described(one: Any, type: str, coordinator: int) -> ConsumerGroup:
    """A group of one of the newer protocols."""
    of_streams = _stream_tasks(one) if type == STREAMS else {}
    return ConsumerGroup(
        group=str(one.group_id),
        coordinator=coordinator,
        type=type,
        state=str(one.group_state),
        protocol_type=type,
        protocol=getattr(one, "assignor_name", None) or None,
        epoch=int(one.group_epoch),
        assignment_epoch=int(one.assignment_epoch),
        members=tuple(
            of_streams.get(str(m.member_id))
            or Member(
                str(m.member_id),
                getattr(m, "instance_id", None),
                str(m.client_id),
                str(m.client_host),
                _assigned(m.assignment),
                int(m.member_epoch),
                tuple(map(str, m.subscribed_topic_names or ())),
                _assigned(m.target_assignment) if type == CONSUMER_PROTOCOL else None,
            )
            for m in one.members
        ),
    )


def _assigned(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(str(t.topic_name), int(p)) for t in assignment.topic_partitions for p in t.partitions
    )


def _stream_tasks(one: Any) -> dict[str, Member]:
    """The members of a group of Kafka Streams; what an active task reads is its partition of each source topic."""
    topology = {
        str(s.subtopology_id): [
            *map(str, s.source_topics),
            *(str(t.name) for t in s.repartition_source_topics),
        ]
        for s in (one.topology.subtopologies if one.topology else None) or ()
    }

    def tasks(found: Iterable[Any]) -> tuple[str, ...]:
        return tuple(f"{task.subtopology_id}_{p}" for task in found for p in task.partitions)

    return {
        str(m.member_id): Member(
            str(m.member_id),
            m.instance_id,
            str(m.client_id),
            str(m.client_host),
            tuple(
                TopicPartition(topic, int(p))
                for task in m.assignment.active_tasks
                for topic in topology.get(str(task.subtopology_id), ())
                for p in task.partitions
            ),
            int(m.member_epoch),
            tuple(sorted({topic for topics in topology.values() for topic in topics})),
            None,
            tasks(m.assignment.active_tasks),
            tasks(m.assignment.standby_tasks),
            tasks(m.assignment.warmup_tasks),
        )
        for m in one.members
    }


def _assignment(data: bytes | None) -> tuple[TopicPartition, ...] | None:
    if not data:
        return ()
    try:
        decoded = ConsumerProtocolAssignment.decode(bytes(data))
        return tuple(
            TopicPartition(str(t.topic), int(p)) for t in decoded.assigned_partitions for p in t.partitions
        )
    except Exception:  # whatever a member put there: the library raises anything
        return None


def read_offsets(
    wire: Wire, group: ConsumerGroup, partitions: Mapping[str, Collection[int]] | None = None
) -> dict[TopicPartition, GroupOffset]:
    """The offsets of a group, by topic and partition: committed, or of a share group where it begins to read.

    Given `partitions`, by topic, brokers may leave out the others.
    """
    if group.type == SHARE:
        return {tp: at for tp, (at, _) in _share_offsets(wire, group.group, group.coordinator).items()}
    return read_committed(wire, group.group, group.coordinator, partitions)


def read_committed(
    wire: Wire, group: str, coordinator: int, partitions: Mapping[str, Collection[int]] | None = None
) -> dict[TopicPartition, GroupOffset]:
    """The committed offsets of a group, by topic and partition. Raises KctlError."""
    if (wire.version_of(OffsetFetchRequest) or 0) >= BY_GROUP:
        kind = OffsetFetchRequest.OffsetFetchRequestGroup
        topics = (
            None
            if partitions is None
            else [
                kind.OffsetFetchRequestTopics(name=name, partition_indexes=sorted(some))
                for name, some in partitions.items()
            ]
        )
        wanted = kind(group_id=group, topics=topics)
        request = OffsetFetchRequest(
            groups=[wanted], require_stable=False, min_version=BY_GROUP, max_version=BY_NAME
        )
        (answer,) = wire.send(request, coordinator).groups
    else:
        answer = wire.send(OffsetFetchRequest(group_id=group, topics=None, max_version=7), coordinator)
    if answer.error_code:
        raise BrokerError(f"group {group}: its offsets cannot be read: {error_name(answer.error_code)}")
    return dict(sorted(_committed(answer.topics)))


def _committed(topics: Iterable[Any]) -> Iterable[tuple[TopicPartition, GroupOffset]]:
    for topic in topics:
        for p in topic.partitions:
            if not p.error_code and p.committed_offset >= 0:
                epoch = getattr(p, "committed_leader_epoch", None)
                yield (
                    TopicPartition(str(topic.name), int(p.partition_index)),
                    GroupOffset(
                        int(p.committed_offset),
                        None if epoch is None or epoch < 0 else int(epoch),
                        p.metadata or None,
                    ),
                )


def _share_offsets(
    wire: Wire, group: str, coordinator: int
) -> dict[TopicPartition, tuple[GroupOffset, int | None]]:
    """Where a share group begins to read, and the lag where its coordinator tells it (4.2 and later)."""
    from kctl.wire.messages import DescribeShareGroupOffsetsRequest as Request

    wanted = Request.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    (answer,) = wire.send(Request(groups=[wanted]), coordinator).groups
    if answer.error_code:
        said = answer.error_message or error_name(answer.error_code)
        raise BrokerError(f"group {group}: its offsets cannot be read: {said}")

    def known(value: Any) -> int | None:
        return None if value is None or value < 0 else int(value)

    found = {
        TopicPartition(str(topic.topic_name), int(p.partition_index)): (
            GroupOffset(int(p.start_offset), known(p.leader_epoch)),
            known(getattr(p, "lag", None)),
        )
        for topic in answer.topics
        for p in topic.partitions
        if not p.error_code and p.start_offset >= 0  # else nothing was delivered yet
    }
    return dict(sorted(found.items()))


def watermarks(
    wire: Wire, partitions: Sequence[TopicPartition], place: int = LATEST, state: ClusterState | None = None
) -> dict[TopicPartition, int]:
    """The high watermark, or another place, of partitions as their leaders tell it; without a leader left out.

    `state` says who leads; it is read where it is not given.
    """
    if not partitions:
        return {}
    state = state or read_cluster(wire, {tp.topic for tp in partitions})
    led = [
        (found.leader, tp)
        for tp in partitions
        if (found := state.partition_states.get(tp)) is not None and found.leader >= 0
    ]
    offsets = list_offsets(wire, led, place, replica_id=CONSUMER)
    return {tp: offset for (_, tp), offset in offsets.items() if isinstance(offset, int)}


class PartitionLag(NamedTuple):
    """A partition that a group reads or has read: its offset (None: none), the high watermark, how far it is behind."""

    partition: TopicPartition
    committed: GroupOffset | None
    high_watermark: int | None
    lag: int | None
    member_id: str | None


def lags_of(wire: Wire, group: ConsumerGroup, state: ClusterState | None = None) -> list[PartitionLag]:
    """Every partition with an offset or a member, by topic and number; one without an offset has no lag.

    Where a share group begins to read says nothing of its lag: brokers write it one acknowledgement late, so that it
    may stay 0 where all is acknowledged. Brokers before 4.2 do not tell the lag. `state` says who leads; it is read where it is not given.
    """
    told: dict[TopicPartition, int | None] = {}
    if group.type == SHARE:
        shared = _share_offsets(wire, group.group, group.coordinator)
        offsets = {tp: at for tp, (at, _) in shared.items()}
        told = {tp: lag for tp, (_, lag) in shared.items()}
    else:
        offsets = read_committed(wire, group.group, group.coordinator)
    owners = {tp: member.member_id for member in group.members for tp in member.assignment or ()}
    partitions = sorted({*offsets, *owners})
    ends = watermarks(wire, partitions, LATEST, state)
    found = []
    for tp in partitions:
        at, end, lag = offsets.get(tp), ends.get(tp), told.get(tp)
        if group.type != SHARE and at is not None and end is not None:
            lag = max(0, end - at.offset)
        found.append(PartitionLag(tp, at, end, lag, owners.get(tp)))
    return found


def total_lag(lags: Sequence[PartitionLag]) -> int | None:
    """The lag of all partitions; None where that of one is not known, or there is none."""
    known = [one.lag for one in lags if one.lag is not None]
    return sum(known) if known and len(known) == len(lags) else None


def read_all_groups(wire: Wire) -> list[ConsumerGroup]:
    """Every group with its members. Raises KctlError where a broker does not list its groups."""
    listed, failures = list_groups(wire)
    if failures:
        raise failures[0]
    names: dict[int, list[str]] = {}
    for one in listed:
        names.setdefault(one.coordinator, []).append(one.group)
    return sorted(find_groups(wire, names).values(), key=lambda group: group.group)
