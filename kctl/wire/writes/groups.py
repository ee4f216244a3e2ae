"""Offsets of groups set and deleted, groups deleted, members removed; by the groups' coordinators.

Source: clients/src/main/resources/common/message/{OffsetCommit,OffsetDelete,DeleteGroups,LeaveGroup,
AlterShareGroupOffsets,DeleteShareGroupOffsets}Request.json @ 4.3.0; group-coordinator/src/main/java/org/apache/kafka/
coordinator/group/GroupMetadataManager.java @ 4.1.0; core/src/main/scala/kafka/server/KafkaApis.scala @ 4.1.2, 4.2.0
(handleAlterShareGroupOffsetsRequest)
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar

from formats.values import Struct, replace
from kctl.changes.kinds.groups import NO_OFFSET, DeleteGroup, GroupOffset, RemoveMembers, SetGroupOffsets
from kctl.cluster.interface import Conflict
from kctl.cluster.requests import needs
from kctl.cluster.state import ClusterState
from kctl.errors import Refused
from kctl.model import TopicPartition
from kctl.wire.adapter import TooOld, Wire
from kctl.wire.groups import BY_NAME, coordinator_of, find_group, read_offsets
from kctl.wire.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
)
from kctl.wire.writes.present import existing_replicas
from kctl.wire.writes.requests import PartitionRow, Quantifier, Request, RequestItem

REASON = "removed with kctl group remove-member"
MOVED = frozenset({14, 15, 16})  # the coordinator is loading, not available, or another broker
MOVING, LOOK = 10.0, 0.2  # seconds to wait for a moving coordinator; between two attempts
UNKNOWN, UNKNOWN_MEMBER_ID, NON_EMPTY_GROUP, SUBSCRIBED, GROUP_ID_NOT_FOUND = -1, 25, 68, 86, 69
REASONS = {
    UNKNOWN_MEMBER_ID: "the group has members, and only they set its offsets",
    NON_EMPTY_GROUP: "the group has members",
    SUBSCRIBED: "a member is subscribed to the topic",
    GROUP_ID_NOT_FOUND: "no such group",
}


def sets_share_offsets(wire: Wire) -> bool:
    """Whether brokers carry out AlterShareGroupOffsets: those of 4.1 answer without an error and change nothing."""
    return (wire.version_of(DescribeShareGroupOffsetsRequest) or 0) >= 1  # with the lag: 4.2 or later


def _ask(wire: Wire, group: str, request: Callable[[], Any], codes: Callable[[Any], Iterable[int]]) -> Any:
    """The answer of a group's coordinator, which is looked up again while it moves to another broker."""
    end = time.monotonic() + MOVING
    while True:
        answer = wire.send(request(), coordinator_of(wire, group))
        if not MOVED & set(codes(answer)) or time.monotonic() > end:
            return answer
        wire.pause(LOOK)


def _of_partitions(answer: Any) -> set[int]:
    codes = {int(p.error_code) for topic in answer.topics for p in topic.partitions}
    return codes | {int(getattr(answer, "error_code", 0))}


def _item(what: object, code: int, message: str | None = None, *partition: Any) -> RequestItem:
    return RequestItem(str(what), int(code), message or REASONS.get(int(code)), *partition)


def _partition_items(answer: Any, group: str) -> Iterator[RequestItem]:
    if getattr(answer, "error_code", 0):
        yield _item(f"group {group}", answer.error_code)
        return
    for topic in answer.topics:
        for p in topic.partitions:
            tp = TopicPartition(str(topic.name), int(p.partition_index))
            yield _item(tp, p.error_code, None, *tp)


def _present(wire: Wire, group: str) -> dict[TopicPartition, int]:
    """The offsets that a group has committed."""
    described = find_group(wire, group)
    offsets = read_offsets(wire, described) if described else {}
    return {tp: at.offset for tp, at in offsets.items() if at is not None}


class OffsetOf(PartitionRow, frozen=True):
    """An offset of a group in a partition; -1 for none."""

    offset: int
    leader_epoch: int | None
    metadata: str | None

    @property
    def value(self) -> int | None:
        """The offset; None for none."""
        return None if self.offset == NO_OFFSET else self.offset


def offset_rows(offsets: Mapping[TopicPartition, GroupOffset | None]) -> tuple[OffsetOf, ...]:
    """The rows of offsets, by topic and number."""
    rows = []
    for tp, at in sorted(offsets.items()):
        offset, leader_epoch, metadata = at or GroupOffset(NO_OFFSET)
        rows.append(OffsetOf(*tp, offset, leader_epoch, metadata))
    return tuple(rows)


class KnownOffsets(Struct, frozen=True, omit_defaults=True):
    """The offsets that a request was computed from; `all`: the group had no others."""

    offsets: tuple[OffsetOf, ...]
    all: bool = False


class GroupRequest(Request, frozen=True, kw_only=True):
    """A request about one group."""

    is_to_be_seen: ClassVar[bool] = True
    group: str


class OffsetsRequest(GroupRequest, frozen=True, kw_only=True):
    """Offsets of a group that are to be set or deleted."""

    expected: KnownOffsets
    partitions: tuple[OffsetOf, ...]

    @property
    def former_rows(self) -> Sequence[PartitionRow]:
        return self.expected.offsets

    def request_topics(
        self, topic: Callable[..., Any], partition: Callable[[OffsetOf], Any], name: str = "name"
    ) -> list[Any]:
        """The topics of the message with their partitions, each made from its row; `name`: its field of a topic's name."""
        return [
            topic(**{name: topic_name, "partitions": list(map(partition, rows))})
            for topic_name, rows in groupby(self.partitions, attrgetter("topic"))  # they are sorted
        ]

    def without_done(self, wire: Wire) -> "OffsetsRequest":
        """The request without the partitions whose offset is as it is to be: no right on their topics is needed."""
        present = _present(wire, self.group)
        return replace(
            self, partitions=tuple(row for row in self.partitions if present.get(row.tp) != row.value)
        )

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        present = _present(wire, self.group)
        return of(present.get(row.tp) == row.value for row in self.partitions)

    def refuse_other_answers(self, wire: Wire) -> None:
        refuse_other_offsets(wire, self.group, self.expected, self.partitions)


def refuse_other_offsets(
    wire: Wire, group: str, expected: KnownOffsets, rows: Iterable[OffsetOf] = ()
) -> None:
    """Raise Conflict if an offset is neither as it was read nor as it is to be: a part may have been set before."""
    present = _present(wire, group)
    known, wanted = ({row.tp: row.value for row in of} for of in (expected.offsets, rows))
    for tp in sorted({*known, *present} if expected.all else known):
        now, then = present.get(tp), known.get(tp)
        if now != then and not (tp in wanted and now == wanted[tp]):
            is_now, was = ("none" if offset is None else f"{offset:,}" for offset in (now, then))
            raise Conflict(
                f"the offset of group {group} in {tp} is {is_now}, not {was} as it was read; nothing was written"
            )


class OffsetCommit(OffsetsRequest, frozen=True, kw_only=True):
    """Offsets to set."""

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = OffsetCommitRequest.OffsetCommitRequestTopic
        left = self.without_done(wire)
        if not left.partitions:
            return

        def partition(row: OffsetOf) -> Any:
            return kind.OffsetCommitRequestPartition(
                partition_index=row.partition,
                committed_offset=row.offset,
                committed_leader_epoch=-1 if row.leader_epoch is None else row.leader_epoch,
                committed_metadata=row.metadata or "",
            )

        def request() -> Any:
            return OffsetCommitRequest(
                group_id=self.group,
                generation_id_or_member_epoch=-1,
                member_id="",
                topics=left.request_topics(kind, partition),
                max_version=BY_NAME,
            )

        yield from _partition_items(_ask(wire, self.group, request, _of_partitions), self.group)


class OffsetDelete(OffsetsRequest, frozen=True, kw_only=True):
    """Offsets to delete."""

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
        left = self.without_done(wire)
        if not left.partitions:
            return

        def partition(row: OffsetOf) -> Any:
            return kind.OffsetDeleteRequestPartition(partition_index=row.partition)

        def request() -> Any:
            return OffsetDeleteRequest(group_id=self.group, topics=left.request_topics(kind, partition))

        yield from _partition_items(_ask(wire, self.group, request, _of_partitions), self.group)


class ShareOffsetsRequest(OffsetsRequest, frozen=True, kw_only=True):
    """Offsets of a share group."""

    def ask(self, wire: Wire, request: Callable[[], Any]) -> Iterator[RequestItem]:
        """The results of the answer."""
        answer = _ask(wire, self.group, request, lambda answer: [answer.error_code])
        if answer.error_code:
            yield _item(f"group {self.group}", answer.error_code, answer.error_message)
            return
        missing = {row.topic for row in self.partitions}
        for topic in answer.responses:
            name = str(topic.topic_name)
            missing.discard(name)
            for result in getattr(topic, "partitions", None) or [topic]:
                number = getattr(result, "partition_index", None)
                what = f"topic {name}" if number is None else TopicPartition(name, int(number))
                yield _item(what, result.error_code, result.error_message, name, number)
        for name in sorted(missing):
            yield _item(f"topic {name}", UNKNOWN, "the answer leaves it out, and so it was not done", name)


class AlterShareGroupOffsets(ShareOffsetsRequest, frozen=True, kw_only=True):
    """Offsets of a share group to set."""

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic

        def partition(row: OffsetOf) -> Any:
            return kind.AlterShareGroupOffsetsRequestPartition(
                partition_index=row.partition, start_offset=row.offset
            )

        def request() -> Any:
            topics = self.request_topics(kind, partition, "topic_name")
            return AlterShareGroupOffsetsRequest(group_id=self.group, topics=topics)

        yield from self.ask(wire, request)

    def refuse_other_answers(self, wire: Wire) -> None:
        if not sets_share_offsets(wire):
            raise TooOld(
                f"the brokers are too old to set offsets of share groups: {needs('AlterShareGroupOffsets')}; "
                "nothing was written",
                "delete the offsets, so that the group begins as share.auto.offset.reset says",
            )
        super().refuse_other_answers(wire)


class DeleteShareGroupOffsets(ShareOffsetsRequest, frozen=True, kw_only=True):
    """Offsets of a share group to delete, those of whole topics."""

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic

        def request() -> Any:
            names = dict.fromkeys(row.topic for row in self.partitions)
            topics = [kind(topic_name=name) for name in names]
            return DeleteShareGroupOffsetsRequest(group_id=self.group, topics=topics)

        yield from self.ask(wire, request)

    def refuse_other_answers(self, wire: Wire) -> None:
        """As for other offsets; refuses parts of topics too, since brokers delete those of whole topics."""
        super().refuse_other_answers(wire)
        chosen = {row.tp for row in self.partitions}
        topics = {tp.topic for tp in chosen}
        for tp in _present(wire, self.group):
            if tp.topic in topics and tp not in chosen:
                raise Refused(
                    f"offsets of a share group are deleted for whole topics only, and {tp} would keep its own; "
                    "nothing was written",
                    "name all partitions of the topic, or the topic without partitions",
                )


class DeleteGroups(GroupRequest, frozen=True, kw_only=True):
    """A group, if its offsets are still those that the journal keeps."""

    expected: KnownOffsets

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        answer = _ask(
            wire,
            self.group,
            lambda: DeleteGroupsRequest(groups_names=[self.group]),
            lambda answer: [result.error_code for result in answer.results],
        )
        for result in answer.results:
            yield _item(f"group {result.group_id}", result.error_code)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        return find_group(wire, self.group) is None

    def refuse_other_answers(self, wire: Wire) -> None:
        refuse_other_offsets(wire, self.group, self.expected)


class LeaveGroup(GroupRequest, frozen=True, kw_only=True):
    """Members of a group, by their ids."""

    members: tuple[str, ...]

    @property
    def item_count(self) -> int:
        return len(self.members)

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = LeaveGroupRequest.MemberIdentity

        def request() -> Any:
            members = [kind(member_id=id, group_instance_id=None, reason=REASON) for id in self.members]
            return LeaveGroupRequest(group_id=self.group, members=members, min_version=3)

        answer = _ask(wire, self.group, request, lambda answer: [answer.error_code])
        if answer.error_code:
            yield _item(f"group {self.group}", answer.error_code)
            return
        for member in answer.members:
            gone = "it is no longer in the group" if member.error_code == UNKNOWN_MEMBER_ID else None
            yield _item(f"member {member.member_id}", member.error_code, gone)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        group = find_group(wire, self.group)
        present = {member.member_id for member in group.members} if group else ()
        return of(member not in present for member in self.members)


# --- requests of intents ------------------------------------------------------------------------------


def set_group_offsets(fresh: ClusterState, intent: SetGroupOffsets, _: ClusterState) -> list[Request]:
    """The offsets to set, then those to delete."""
    kinds: tuple[type[OffsetsRequest], type[OffsetsRequest]] = (
        (AlterShareGroupOffsets, DeleteShareGroupOffsets) if intent.is_share else (OffsetCommit, OffsetDelete)
    )
    requests: list[Request] = []
    for kind, is_set in zip(kinds, (True, False), strict=True):
        chosen = {tp: at for tp, at in intent.offsets.items() if (at is not None) is is_set}
        if not chosen:
            continue
        for tp in chosen if is_set else ():
            existing_replicas(fresh, tp)
        request = kind(
            about=f"group {intent.group}",
            expected=KnownOffsets(offset_rows({tp: intent.previous.get(tp) for tp in chosen})),
            group=intent.group,
            partitions=offset_rows(chosen),
        )
        requests.append(request)
    return requests


def delete_group(fresh: ClusterState, intent: DeleteGroup, _: ClusterState) -> list[Request]:
    """The group with its offsets."""
    expected = KnownOffsets(offset_rows(intent.previous), all=True)
    return [DeleteGroups(about=f"group {intent.group}", expected=expected, group=intent.group)]


def remove_members(fresh: ClusterState, intent: RemoveMembers, _: ClusterState) -> list[Request]:
    """The members, by their ids."""
    return [LeaveGroup(about=f"group {intent.group}", group=intent.group, members=tuple(intent.members))]
