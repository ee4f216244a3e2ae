"""Groups as their coordinators know them: state, members, offsets, of all protocols.

Source: KIP-848 (consumer), KIP-932 (share), KIP-1071 (streams), KIP-709 (offsets of several groups); clients/src/main/
resources/common/message/{ListGroups,DescribeGroups,*GroupDescribe,OffsetFetch,DescribeShareGroupOffsets}*.json @ 4.3.0
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from formats.messages.consumer_offsets import ASSIGNMENT
from formats.messages.reading import read_message
from formats.values import Struct
from formats.words import counted
from kctl.changes.kinds.groups import GroupOffset
from kctl.cluster.rights import MissingRight
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, near_names
from kctl.model import TopicPartition
from kctl.wire.adapter import BrokerError, TooOld, Wire, error_name
from kctl.wire.answers.metadata import Places, PlacesRequest, TopicPlaces, places
from kctl.wire.protocol.messages import (
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetFetchRequest,
)
from kctl.wire.reading import read_cluster
from kctl.wire.replicas.fetching import (
    CONSUMER,
    DEBUGGER,
    EARLIEST,
    LATEST,
    UNKNOWN_TOPIC_OR_PARTITION,
    list_offsets,
)
from kctl.wire.rights import failure, right_for

CLASSIC, CONSUMER_PROTOCOL, SHARE, STREAMS = "classic", "consumer", "share", "streams"
BY_GROUP, BY_NAME = 8, 9  # versions of OffsetFetch: the first of many groups, the last with topics by name
GROUP_ID_NOT_FOUND = 69
OFFSETS = "__consumer_offsets"
NAMES_CREATE_NOTHING = 10  # the version of Metadata of 2.8
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
EMPTY = frozenset({"Empty", "Dead"})  # states without members


class ListedGroup(NamedTuple):
    """A group in a list. Fields that the cluster's version lacks are None."""

    group: str
    coordinator: int
    protocol_type: str
    state: str | None
    type: str | None


class GroupMember(NamedTuple):
    """A member and its partitions; None if its assignment cannot be decoded.

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
    """A group with its members. Epochs are of the newer protocols."""

    group: str
    coordinator: int
    type: str
    state: str
    protocol_type: str | None
    protocol: str | None
    members: tuple[GroupMember, ...]
    epoch: int | None = None
    assignment_epoch: int | None = None

    @property
    def is_active(self) -> bool:
        """Whether it has members; then brokers refuse to change its offsets."""
        return self.state not in EMPTY


def list_groups(wire: Wire) -> tuple[list[ListedGroup], list[KctlError]]:
    """The groups of every coordinator, by name, and the errors of brokers that did not answer."""
    nodes = wire.nodes
    answers = wire.send_all([(node, ListGroupsRequest(states_filter=[], types_filter=[])) for node in nodes])
    groups, failures = [], []
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, KctlError):
            failures.append(answer)
        elif answer.error_code:
            failures.append(failure(wire, f"groups of broker {node}", "ListGroups", answer.error_code))
        else:
            groups += [
                ListedGroup(
                    str(group.group_id),
                    node,
                    str(group.protocol_type),
                    getattr(group, "group_state", None) or None,
                    (getattr(group, "group_type", None) or "").lower() or None,
                )
                for group in answer.groups
            ]
    return sorted(groups), failures


def offsets_partitions(wire: Wire) -> dict[int, bool]:
    """Whether each partition of __consumer_offsets lacks a live leader; empty if there is no such topic."""
    metadata, topic = _offsets_topic(wire)
    alive = {node.node_id for node in metadata.brokers}
    return {number: state.leader not in alive for number, state in topic.states.items()} if topic else {}


def _offsets_topic(wire: Wire) -> tuple[Places, TopicPlaces | None]:
    """What brokers say of __consumer_offsets; None for the topic if it is not in their answer.

    Brokers up to 2.7 create it where a request names it, so that all topics are read there.

    Source: KafkaApis.scala (getTopicMetadata) @ 2.7.2, 2.8.2
    """
    topics = None
    if (wire.version_of(MetadataRequest) or 0) >= NAMES_CREATE_NOTHING:
        topics = [PlacesRequest.MetadataRequestTopic(name=OFFSETS)]
    metadata = places(wire.read(PlacesRequest(topics=topics, allow_auto_topic_creation=False)))
    return metadata, next((topic for topic in metadata.topics if topic.name == OFFSETS), None)


def _is_without_groups(wire: Wire) -> bool:
    """Whether brokers have no __consumer_offsets, which they create once they are asked for a coordinator.

    False where it may be hidden.
    """
    _, topic = _offsets_topic(wire)
    if topic is not None:
        return topic.error_code == UNKNOWN_TOPIC_OR_PARTITION
    from kctl.wire.hidden import visibility_of  # only where the answer is not one of that topic

    visibility = visibility_of(wire)
    return not (visibility.hidden or visibility.unproven)


START_COORDINATORS = f"start the brokers that hold {OFFSETS}: `kctl topic describe {OFFSETS}`"


def require_coordinators(wire: Wire) -> None:
    """Raises KctlError if a partition of __consumer_offsets has no leader: its groups are not listed."""
    if silent := sum(offsets_partitions(wire).values()):
        raise KctlError(
            f"{counted(silent, 'partition')} of {OFFSETS} {'has' if silent == 1 else 'have'} no leader, so that not "
            "every group is known",
            START_COORDINATORS,
        )


UNTIL_CREATED = 5.0
"""Seconds that brokers take at most to create __consumer_offsets, which they do when they are first asked for a group."""


def coordinator_of(wire: Wire, group: str) -> int:
    """The broker that coordinates a group. Raises KctlError."""
    until = time.monotonic() + UNTIL_CREATED
    while True:
        coordinator = _asked_for(wire, group)
        if coordinator.error_code != COORDINATOR_NOT_AVAILABLE:
            leaderless = {}
            break
        leaderless = offsets_partitions(wire)
        if any(leaderless.values()) or time.monotonic() > until:
            break
        time.sleep(0.1)
    if coordinator.error_code:
        from kctl.internal_topics.transactions import partition_for  # groups and transactional ids alike

        partition = partition_for(group, len(leaderless) or 1)
        if leaderless.get(partition):
            raise KctlError(
                f"group {group} has no coordinator: {OFFSETS}-{partition} has no leader", START_COORDINATORS
            )
        if (right := right_for("FindCoordinator", coordinator.error_code, group)) is not None:
            raise MissingRight(right, wire.principal, f"group {group}")
        raise BrokerError(f"group {group} has no coordinator now: {error_name(coordinator.error_code)}")
    return int(coordinator.node_id)


def _asked_for(wire: Wire, group: str) -> Any:
    """The answer to the question for the coordinator of a group."""
    if (wire.version_of(FindCoordinatorRequest) or 0) < 4:
        return wire.read(FindCoordinatorRequest(key=group, key_type=0, max_version=3))
    answer = wire.read(FindCoordinatorRequest(key_type=0, coordinator_keys=[group], min_version=4))
    (coordinator,) = answer.coordinators
    return coordinator


def read_group(wire: Wire, group: str) -> ConsumerGroup:
    """A group with its members. Raises KctlError for an unknown one."""
    described = find_group(wire, group)
    if described is None:
        known = [group.group for group in list_groups(wire)[0]]
        hint = near_names(group, known, otherwise="`kctl group list` lists the groups")
        raise KctlError(f"no group {group}", hint)
    return described


def find_group(wire: Wire, group: str) -> ConsumerGroup | None:
    """A group with its members; None if there is no such group. Raises KctlError if a coordinator does not answer.

    Nothing is created where the cluster never had a group.
    """
    if _is_without_groups(wire):
        return None
    return find_groups(wire, {coordinator_of(wire, group): [group]}).get(group)


def find_groups(
    wire: Wire, names: Mapping[int, Sequence[str]], denied: dict[str, KctlError] | None = None
) -> dict[str, ConsumerGroup]:
    """Groups with their members, from their coordinators; unknown ones are left out.

    A coordinator describes a group only in a request of its protocol, so each protocol is tried. What it does not
    describe goes to `denied`, by name; without that it is raised, as is a coordinator that does not answer.
    """
    groups: dict[str, ConsumerGroup] = {}
    remaining = {node: list(group_names) for node, group_names in names.items()}
    requests: list[tuple[str, Any]] = [(CLASSIC, None)]
    requests += [
        (type, f"{type.capitalize()}GroupDescribeRequest") for type in (CONSUMER_PROTOCOL, SHARE, STREAMS)
    ]
    for type, request in requests:
        remaining = {
            node: unknown
            for node, group_names in remaining.items()
            if (unknown := [name for name in group_names if name not in groups])
        }
        if remaining:
            groups |= _of_protocol(wire, remaining, type, request, denied)
    return groups


def _of_protocol(
    wire: Wire,
    names: Mapping[int, Sequence[str]],
    type: str,
    request: str | None,
    denied: dict[str, KctlError] | None,
) -> dict[str, ConsumerGroup]:
    """The groups among them that use one protocol."""
    if request is None:
        requests = [
            (node, DescribeGroupsRequest(groups=list(group_names))) for node, group_names in names.items()
        ]
    else:
        from kctl.wire.protocol import messages

        kind = getattr(messages, request)
        if wire.version_of(kind) is None:
            return {}
        requests = [
            (node, kind(group_ids=list(group_names), include_authorized_operations=False))
            for node, group_names in names.items()
        ]
    groups = {}
    until = time.monotonic() + UNTIL_CREATED
    answers = wire.send_all(requests)
    while type == CLASSIC and _is_loading(answers) and time.monotonic() < until:
        time.sleep(0.1)
        answers = wire.send_all(requests)
    for node, answer in zip(names, answers, strict=True):
        if isinstance(answer, TooOld):
            continue
        if isinstance(answer, KctlError):
            raise answer
        for group in answer.groups:
            if type != CLASSIC and not group.error_code:
                groups[str(group.group_id)] = _described(group, type, node)
            elif type == CLASSIC and group.error_code not in (0, GROUP_ID_NOT_FOUND):
                name = str(group.group_id)
                error = failure(wire, f"group {name}", "DescribeGroups", group.error_code, name)
                if denied is None:
                    raise error
                denied[name] = error
            elif type == CLASSIC and not group.error_code and group.group_state != "Dead":
                groups[str(group.group_id)] = _classic(group, node)
    return groups


def _is_loading(answers: Iterable[Any]) -> bool:
    """Whether a coordinator does not know yet that it is one, or still reads its groups."""
    return any(
        group.error_code in (COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR)
        for answer in answers
        if not isinstance(answer, KctlError)
        for group in answer.groups
    )


def _classic(group: Any, coordinator: int) -> ConsumerGroup:
    return ConsumerGroup(
        group=str(group.group_id),
        coordinator=coordinator,
        type=CLASSIC,
        state=str(group.group_state),
        protocol_type=str(group.protocol_type) or None,
        protocol=group.protocol_data or None,
        members=tuple(
            GroupMember(
                str(member.member_id),
                getattr(member, "group_instance_id", None),
                str(member.client_id),
                str(member.client_host),
                _assignment(member.member_assignment) if group.protocol_type == "consumer" else None,
            )
            for member in group.members
        ),
    )


def _described(group: Any, type: str, coordinator: int) -> ConsumerGroup:
    """A group of one of the newer protocols."""
    stream_members = _stream_tasks(group) if type == STREAMS else {}
    return ConsumerGroup(
        group=str(group.group_id),
        coordinator=coordinator,
        type=type,
        state=str(group.group_state),
        protocol_type=type,
        protocol=getattr(group, "assignor_name", None) or None,
        epoch=int(group.group_epoch),
        assignment_epoch=int(group.assignment_epoch),
        members=tuple(
            stream_members.get(str(member.member_id))
            or GroupMember(
                str(member.member_id),
                getattr(member, "instance_id", None),
                str(member.client_id),
                str(member.client_host),
                _assigned(member.assignment),
                int(member.member_epoch),
                tuple(map(str, member.subscribed_topic_names or ())),
                _assigned(member.target_assignment) if type == CONSUMER_PROTOCOL else None,
            )
            for member in group.members
        ),
    )


def _assigned(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(str(t.topic_name), int(p)) for t in assignment.topic_partitions for p in t.partitions
    )


def _stream_tasks(group: Any) -> dict[str, GroupMember]:
    """The members of a group of Kafka Streams; an active task reads its partition of each source topic."""
    topology = {
        str(subtopology.subtopology_id): [
            *map(str, subtopology.source_topics),
            *(str(topic.name) for topic in subtopology.repartition_source_topics),
        ]
        for subtopology in (group.topology.subtopologies if group.topology else None) or ()
    }

    def tasks(assigned: Iterable[Any]) -> tuple[str, ...]:
        return tuple(f"{task.subtopology_id}_{p}" for task in assigned for p in task.partitions)

    return {
        str(member.member_id): GroupMember(
            str(member.member_id),
            member.instance_id,
            str(member.client_id),
            str(member.client_host),
            tuple(
                TopicPartition(topic, int(p))
                for task in member.assignment.active_tasks
                for topic in topology.get(str(task.subtopology_id), ())
                for p in task.partitions
            ),
            int(member.member_epoch),
            tuple(sorted({topic for topics in topology.values() for topic in topics})),
            None,
            tasks(member.assignment.active_tasks),
            tasks(member.assignment.standby_tasks),
            tasks(member.assignment.warmup_tasks),
        )
        for member in group.members
    }


def _assignment(data: bytes | None) -> tuple[TopicPartition, ...] | None:
    if not data:
        return ()
    version = int.from_bytes(data[:2], "big", signed=True)
    try:
        decoded, _ = read_message(ASSIGNMENT, min(version, ASSIGNMENT.versions.last), data, 2)
    except ValueError:  # whatever a member put there
        return None
    return tuple(
        TopicPartition(t["topic"], p) for t in decoded["assigned_partitions"] for p in t["partitions"]
    )


def read_offsets(
    wire: Wire, group: ConsumerGroup, partitions: Mapping[str, Collection[int]] | None = None
) -> dict[TopicPartition, GroupOffset]:
    """The offsets of a group, by topic and partition: committed offsets, or a share group's start offsets.

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
                kind.OffsetFetchRequestTopics(name=name, partition_indexes=sorted(numbers))
                for name, numbers in partitions.items()
            ]
        )
        group_request = kind(group_id=group, topics=topics)
        request = OffsetFetchRequest(
            groups=[group_request], require_stable=False, min_version=BY_GROUP, max_version=BY_NAME
        )
        (answer,) = wire.send(request, coordinator).groups
    else:
        answer = wire.send(OffsetFetchRequest(group_id=group, topics=None, max_version=7), coordinator)
    if answer.error_code:
        raise failure(wire, f"offsets of group {group}", "OffsetFetch", answer.error_code, group)
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
    """A share group's start offsets, and its lag if the coordinator returns it (4.2 and later)."""
    from kctl.wire.protocol.messages import DescribeShareGroupOffsetsRequest as Request

    group_request = Request.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    (answer,) = wire.send(Request(groups=[group_request]), coordinator).groups
    if answer.error_code:
        place, message = f"offsets of group {group}", answer.error_message
        raise failure(wire, place, "DescribeShareGroupOffsets", answer.error_code, group, message)

    def known_or_none(value: Any) -> int | None:
        return None if value is None or value < 0 else int(value)

    offsets = {
        TopicPartition(str(topic.topic_name), int(p.partition_index)): (
            GroupOffset(int(p.start_offset), known_or_none(p.leader_epoch)),
            known_or_none(getattr(p, "lag", None)),
        )
        for topic in answer.topics
        for p in topic.partitions
        if not p.error_code and p.start_offset >= 0  # otherwise nothing was delivered yet
    }
    return dict(sorted(offsets.items()))


def watermarks(
    wire: Wire,
    partitions: Sequence[TopicPartition],
    place: int = LATEST,
    state: ClusterState | None = None,
    *,
    replica_id: int = CONSUMER,
) -> dict[TopicPartition, int]:
    """The high watermark, or another place, of partitions from their leaders; leaderless ones are left out.

    `state` has the leaders; without it it is read.
    """
    if not partitions:
        return {}
    state = state or read_cluster(wire, {tp.topic for tp in partitions})
    led = [
        (partition_state.leader, tp)
        for tp in partitions
        if (partition_state := state.partition_states.get(tp)) is not None and partition_state.leader >= 0
    ]
    offsets = list_offsets(wire, led, place, replica_id=replica_id)
    return {tp: offset for (_, tp), offset in offsets.items() if isinstance(offset, int)}


BEYOND_END, BELOW_START = "beyond_end", "below_start"


class PartitionLag(NamedTuple):
    """A partition that a group reads or has read: its offset (None: none), the high watermark, how far it is behind.

    An offset that the log does not have (`out_of_range`) has no lag. `log_end_offset` is then the leader's, above the
    high watermark as well.
    """

    partition: TopicPartition
    committed: GroupOffset | None
    high_watermark: int | None
    lag: int | None
    member_id: str | None
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    out_of_range: str | None = None

    @property
    def records_gone(self) -> int | None:
        """The offsets between the group's and the log, at most so many records; None if it is within the log."""
        if self.committed is None or self.out_of_range is None:
            return None
        if self.out_of_range == BEYOND_END:
            return self.committed.offset - (self.log_end_offset or 0)
        return (self.log_start_offset or 0) - self.committed.offset


def lags_of(wire: Wire, group: ConsumerGroup, state: ClusterState | None = None) -> list[PartitionLag]:
    """Every partition with an offset or a member, by topic and number; one without an offset has no lag.

    A share group's start offset does not give its lag: brokers write it one acknowledgement late, so it
    may stay 0 though all is acknowledged. Brokers before 4.2 do not return the lag. `state` has the leaders.
    """
    share_lags: dict[TopicPartition, int | None] = {}
    if group.type == SHARE:
        shared = _share_offsets(wire, group.group, group.coordinator)
        offsets = {tp: at for tp, (at, _) in shared.items()}
        share_lags = {tp: lag for tp, (_, lag) in shared.items()}
    else:
        offsets = read_committed(wire, group.group, group.coordinator)
    owners = {tp: member.member_id for member in group.members for tp in member.assignment or ()}
    partitions = sorted({*offsets, *owners})
    ends = watermarks(wire, partitions, LATEST, state)
    if group.type == SHARE:
        return [
            PartitionLag(tp, offsets.get(tp), ends.get(tp), share_lags.get(tp), owners.get(tp))
            for tp in partitions
        ]
    starts = watermarks(wire, [tp for tp in partitions if tp in offsets], EARLIEST, state)
    outside = _outside(wire, group, offsets, starts, ends, state)
    lags = []
    for tp in partitions:
        at, end = offsets.get(tp), ends.get(tp)
        if tp in outside:
            lags.append(outside[tp]._replace(high_watermark=end, member_id=owners.get(tp)))
        else:
            # Up to the log's end a consumer may have been ahead of a new leader's high watermark (KIP-207).
            lag = None if at is None or end is None else max(0, end - at.offset)
            lags.append(PartitionLag(tp, at, end, lag, owners.get(tp), starts.get(tp)))
    return lags


def _outside(
    wire: Wire,
    group: ConsumerGroup,
    offsets: Mapping[TopicPartition, GroupOffset],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    state: ClusterState | None,
) -> dict[TopicPartition, PartitionLag]:
    """The partitions whose offset is not in the log: beyond its end, or below its start.

    What was read before is read again: a group that goes on, with a log that is deleted behind it, is within the log.
    """
    beyond = [tp for tp, at in offsets.items() if tp in ends and at.offset > ends[tp]]
    below = [tp for tp, at in offsets.items() if tp in starts and at.offset < starts[tp]]
    if not beyond and not below:
        return {}
    log_ends = log_ends_of(wire, beyond, state) if beyond else {}
    again = read_committed(wire, group.group, group.coordinator)
    outside = {}
    for tp in beyond:
        at, end = again.get(tp), log_ends.get(tp)
        if at is not None and end is not None and at == offsets[tp] and at.offset > end:
            outside[tp] = PartitionLag(tp, at, None, None, None, starts.get(tp), end, BEYOND_END)
    for tp in below:
        at = again.get(tp)
        if at is not None and at.offset < starts[tp]:
            outside[tp] = PartitionLag(tp, at, None, None, None, starts[tp], None, BELOW_START)
    return outside


def log_ends_of(
    wire: Wire, partitions: Sequence[TopicPartition], state: ClusterState | None = None
) -> dict[TopicPartition, int]:
    """The log end offsets of partitions by their leaders, above the high watermark as well."""
    return watermarks(wire, partitions, LATEST, state, replica_id=DEBUGGER)


def total_lag(lags: Sequence[PartitionLag]) -> int | None:
    """The lag of all partitions; None if one is unknown, or there is none."""
    known = [partition_lag.lag for partition_lag in lags if partition_lag.lag is not None]
    return sum(known) if known and len(known) == len(lags) else None


def read_all_groups(wire: Wire) -> list[ConsumerGroup]:
    """Every group with its members. Raises KctlError where a broker does not list its groups."""
    listed, failures = list_groups(wire)
    if failures:
        raise failures[0]
    return sorted(find_groups(wire, by_coordinator(listed)).values(), key=lambda group: group.group)


def by_coordinator(listed: Iterable[ListedGroup]) -> dict[int, list[str]]:
    """The names of groups by the brokers that coordinate them."""
    names: dict[int, list[str]] = {}
    for group in listed:
        names.setdefault(group.coordinator, []).append(group.group)
    return names
