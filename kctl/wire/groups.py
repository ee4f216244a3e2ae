"""Consumer groups as their coordinators know them: state, members, committed offsets; both protocols.

Source: KIP-848 (the newer protocol), KIP-709 (offsets of several groups); clients/src/main/resources/common/message/
{ListGroups,DescribeGroups,ConsumerGroupDescribe,OffsetFetch}*.json @ 4.3.0
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka.protocol.admin.groups import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer.group import OffsetFetchRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.metadata import FindCoordinatorRequest

from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import TooOld, Wire, error_name

CLASSIC, CONSUMER = "classic", "consumer"
BY_GROUP, BY_NAME = 8, 9  # versions of OffsetFetch: the first of many groups, the last with topics by name
GROUP_ID_NOT_FOUND = 69


class Listed(NamedTuple):
    """A group in a list. What the cluster's version does not tell is None."""

    group: str
    coordinator: int
    protocol_type: str
    state: str | None
    type: str | None


class Member(NamedTuple):
    """A member, and the partitions that it has; None where its assignment cannot be read."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...] | None


class Committed(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int | None
    metadata: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group in full. `epoch` is of the newer protocol."""

    group: str
    coordinator: int
    type: str
    state: str
    protocol: str | None
    epoch: int | None
    members: tuple[Member, ...]


def list_groups(wire: Wire) -> tuple[list[Listed], list[KctlError]]:
    """The groups of every coordinator, by name, and what brokers did not answer."""
    nodes = wire.nodes
    answers = wire.send_all([(node, ListGroupsRequest(states_filter=[], types_filter=[])) for node in nodes])
    found, failures = [], []
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, KctlError):
            failures.append(answer)
        elif answer.error_code:
            failures.append(KctlError(f"broker {node} lists no groups: {error_name(answer.error_code)}"))
        else:
            found += [
                Listed(
                    str(one.group_id),
                    node,
                    str(one.protocol_type),
                    getattr(one, "group_state", None) or None,
                    (getattr(one, "group_type", None) or "").lower() or None,
                )
                for one in answer.groups
            ]
    return sorted(found), failures


def coordinator_of(wire: Wire, group: str) -> int:
    """The broker that coordinates a group. Raises KctlError."""
    if (wire.version_of(FindCoordinatorRequest) or 0) >= 4:
        answer = wire.read(FindCoordinatorRequest(key_type=0, coordinator_keys=[group], min_version=4))
        (found,) = answer.coordinators
    else:
        found = wire.read(FindCoordinatorRequest(key=group, key_type=0, max_version=3))
    if found.error_code:
        raise KctlError(f"group {group} has no coordinator now: {error_name(found.error_code)}")
    return int(found.node_id)


def read_group(wire: Wire, group: str) -> Group:
    """A group with its members. Raises KctlError for an unknown one."""
    coordinator = coordinator_of(wire, group)
    newer = _of_consumer_protocol(wire, group, coordinator)
    if newer is not None:
        return newer
    (one,) = wire.send(DescribeGroupsRequest(groups=[group]), coordinator).groups
    if one.error_code or one.group_state == "Dead":
        known = one.error_code in (0, GROUP_ID_NOT_FOUND)
        raise KctlError(f"no group {group}" if known else f"group {group}: {error_name(one.error_code)}")
    return Group(
        group=group,
        coordinator=coordinator,
        type=CLASSIC,
        state=str(one.group_state),
        protocol=one.protocol_data or None,
        epoch=None,
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


def _of_consumer_protocol(wire: Wire, group: str, coordinator: int) -> Group | None:
    from kctl.wire.messages import ConsumerGroupDescribeRequest

    if wire.version_of(ConsumerGroupDescribeRequest) is None:
        return None
    try:
        answer = wire.send(
            ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False), coordinator
        )
    except TooOld:
        return None
    (one,) = answer.groups
    if one.error_code:
        return None
    return Group(
        group=group,
        coordinator=coordinator,
        type=CONSUMER,
        state=str(one.group_state),
        protocol=one.assignor_name or None,
        epoch=int(one.group_epoch),
        members=tuple(
            Member(
                str(m.member_id),
                m.instance_id,
                str(m.client_id),
                str(m.client_host),
                tuple(
                    TopicPartition(str(t.topic_name), int(p))
                    for t in m.assignment.topic_partitions
                    for p in t.partitions
                ),
            )
            for m in one.members
        ),
    )


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


def read_committed(wire: Wire, group: str, coordinator: int) -> dict[TopicPartition, Committed]:
    """The committed offsets of a group, by topic and partition. Raises KctlError."""
    if (wire.version_of(OffsetFetchRequest) or 0) >= BY_GROUP:
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
        request = OffsetFetchRequest(
            groups=[wanted], require_stable=False, min_version=BY_GROUP, max_version=BY_NAME
        )
        (answer,) = wire.send(request, coordinator).groups
    else:
        answer = wire.send(OffsetFetchRequest(group_id=group, topics=None, max_version=7), coordinator)
    if answer.error_code:
        raise KctlError(f"group {group}: its offsets are not told: {error_name(answer.error_code)}")
    return dict(sorted(_committed(answer.topics)))


def _committed(topics: Iterable[Any]) -> Iterable[tuple[TopicPartition, Committed]]:
    for topic in topics:
        for p in topic.partitions:
            if not p.error_code and p.committed_offset >= 0:
                epoch = getattr(p, "committed_leader_epoch", None)
                yield (
                    TopicPartition(str(topic.name), int(p.partition_index)),
                    Committed(
                        int(p.committed_offset),
                        None if epoch is None or epoch < 0 else int(epoch),
                        p.metadata or None,
                    ),
                )
