"""Changes of groups: setting and deleting offsets, deleting groups, removing members; plans, requests and checks.

Source: clients/src/main/resources/common/message/{OffsetCommit,OffsetDelete,DeleteGroups,LeaveGroup,
AlterShareGroupOffsets,DeleteShareGroupOffsets}Request.json @ 4.3.0; group-coordinator/src/main/java/org/apache/kafka/
coordinator/group/GroupMetadataManager.java @ 4.1.0; core/src/main/scala/kafka/server/KafkaApis.scala @ 4.1.2, 4.2.0
(handleAlterShareGroupOffsetsRequest)
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from kctl.changes.kinds.groups import DeleteGroup, GroupOffset, RemoveMembers, SetGroupOffsets, offsets_from
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.intent import Intent
from kctl.cluster.interface import Cluster, Conflict
from kctl.cluster.requests import needs as since
from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition, counted
from kctl.wire.adapter import TooOld, Wire
from kctl.wire.group_resets import ChosenReset
from kctl.wire.groups import (
    BY_NAME,
    SHARE,
    ConsumerGroup,
    coordinator_of,
    find_group,
    read_group,
    read_offsets,
)
from kctl.wire.hidden import why_offsets_may_be_hidden
from kctl.wire.protocol.messages import (
    DeleteGroupsRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
)
from kctl.wire.writes.requests import OwnRequest, Quantifier, RequestItem

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


# --- plans --------------------------------------------------------------------------------------------


def _sets_share_offsets(wire: Wire) -> bool:
    """Whether brokers carry out AlterShareGroupOffsets: those of 4.1 answer without an error and change nothing."""
    from kctl.wire.protocol.messages import DescribeShareGroupOffsetsRequest

    return (wire.version_of(DescribeShareGroupOffsetsRequest) or 0) >= 1  # with the lag: 4.2 or later


def _word_for(wire: Wire, groups: Iterable[ConsumerGroup], accepted: bool) -> str:
    """The option that is needed if deleted offsets cannot be set again; none if it was given."""
    is_final = any(group.type == SHARE for group in groups) and not _sets_share_offsets(wire)
    return "--accept-loss" if is_final and not accepted else ""


def plan_reset(cluster: Cluster, group: str, chosen: ChosenReset) -> Plan:
    """The plan of setting offsets. Raises Refused while the group has members."""
    if chosen.group is not None:
        _require_empty(chosen.group)
    moved = {reset.partition: reset for reset in chosen.resets if reset.offset != reset.new_offset}
    warnings = [
        f"{reset.partition}: the offset asked for is not in the log, the nearest is taken"
        for reset in moved.values()
        if reset.was_outside
    ][:10]
    if chosen.group is not None and chosen.group.type == SHARE and moved:
        warnings.append(
            "what a share group has acknowledged above its offset is forgotten, and delivered again"
        )
    if chosen.group is None:
        warnings.append(f"there is no group {group}: this creates it")
    intent = SetGroupOffsets(
        group=group,
        is_share=chosen.group is not None and chosen.group.type == SHARE,
        offsets={tp: GroupOffset(reset.new_offset) for tp, reset in moved.items()},
        previous={tp: chosen.present.get(tp) for tp in moved},
    )
    return _plan(cluster, [intent] if moved else [], warnings, f"set the offsets of group {group}")


def plan_offset_deletion(
    cluster: Cluster,
    wire: Wire,
    group: ConsumerGroup,
    present: Mapping[TopicPartition, GroupOffset],
    gone: Iterable[TopicPartition],
    *,
    accepted: bool,
) -> Plan:
    """The plan of deleting offsets. Raises Refused while the group has members."""
    _require_empty(group)
    intent = SetGroupOffsets(
        group=group.group,
        is_share=group.type == SHARE,
        offsets=dict.fromkeys(gone),
        previous={tp: present.get(tp) for tp in gone},
    )
    title = f"delete offsets of group {group.group}"
    return _plan(cluster, [intent] if intent.offsets else [], (), title, _word_for(wire, [group], accepted))


def plan_group_deletion(cluster: Cluster, wire: Wire, names: Sequence[str], *, accepted: bool) -> Plan:
    """The plan of deleting groups. Raises Refused while one has members, KctlError for an unknown one."""
    groups = [read_group(wire, name) for name in dict.fromkeys(names)]
    intents = []
    for group in groups:
        _require_empty(group)
        intents.append(
            DeleteGroup(group=group.group, is_share=group.type == SHARE, previous=read_offsets(wire, group))
        )
    title = f"delete {counted(len(intents), 'group')}"
    word, hidden = _word_for(wire, groups, accepted), why_offsets_may_be_hidden(wire)
    if hidden:
        warnings = (f"{hidden}: these are deleted as well, and cannot be brought back",)
        return _plan(cluster, intents, warnings, title, needs="" if accepted else "--accept-loss")
    return _plan(cluster, intents, (), title, word)


def plan_member_removal(cluster: Cluster, wire: Wire, name: str, members: Sequence[str]) -> Plan:
    """The plan of removing members, by member id or group instance id. Raises KctlError for an unknown one."""
    group = read_group(wire, name)
    ids = {m.member_id: m.member_id for m in group.members}
    ids |= {m.group_instance_id: m.member_id for m in group.members if m.group_instance_id}
    for member in members:
        if member not in ids:
            raise KctlError(f"group {name} has no member {member}", f"see `kctl group describe {name}`")
    intent = RemoveMembers(group=name, members=tuple(dict.fromkeys(ids[m] for m in members)))
    return _plan(
        cluster, [intent], ("a consumer that still runs joins again within seconds: stop it first",), ""
    )


def _plan(
    cluster: Cluster,
    intents: Sequence[Intent],
    warnings: Iterable[str],
    title: str,
    word: str = "",
    needs: str = "",
) -> Plan:
    if not intents:
        return Plan(title=title, stages=())
    if word:
        warnings = (
            *warnings,
            f"deleted offsets of share groups cannot be brought back: {since('AlterShareGroupOffsets')}",
        )
    state = cluster.read_state((), partition_states=False, recent=True)
    title = title if len(intents) > 1 else ""
    return plan_of(intents, cluster, state, title=title, warnings=warnings, needs=word or needs)


def _require_empty(group: ConsumerGroup) -> None:
    if group.is_active:
        members = counted(len(group.members), "member") if group.members else f"state {group.state}"
        raise Refused(
            f"group {group.group} has {members}, and brokers only change a group without members; nothing was written",
            f"stop its consumers; `kctl group describe {group.group}` shows where they run",
        )


# --- requests -----------------------------------------------------------------------------------------


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


def _topics(
    after: Mapping[str, Any],
    topic: Callable[..., Any],
    partition: Callable[[Mapping[str, Any]], Any],
    name: str,
) -> list[Any]:
    """The topics of a request with their partitions, each made from its row; `name` is the field of the topic's name."""
    rows = groupby(after["partitions"], itemgetter("topic"))  # they are sorted
    return [
        topic(**{name: topic_name, "partitions": list(map(partition, topic_rows))})
        for topic_name, topic_rows in rows
    ]


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


def _without_done(wire: Wire, after: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request without the partitions whose offset is as it is to be: no right on their topics is needed."""
    present, wanted = _present(wire, after["group"]), offsets_from(after["partitions"])
    rows = [
        row
        for row in after["partitions"]
        if _offset(present.get(tp := TopicPartition(row["topic"], row["partition"]))) != _offset(wanted[tp])
    ]
    return {**after, "partitions": rows}


def _commit(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    after = _without_done(wire, after)
    if not after["partitions"]:
        return

    def partition(row: Mapping[str, Any]) -> Any:
        return kind.OffsetCommitRequestPartition(
            partition_index=row["partition"],
            committed_offset=row["offset"],
            committed_leader_epoch=-1 if row["leader_epoch"] is None else row["leader_epoch"],
            committed_metadata=row["metadata"] or "",
        )

    def request() -> Any:
        return OffsetCommitRequest(
            group_id=after["group"],
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=_topics(after, kind, partition, "name"),
            max_version=BY_NAME,
        )

    yield from _partition_items(_ask(wire, after["group"], request, _of_partitions), after["group"])


def _delete_offsets(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
    after = _without_done(wire, after)
    if not after["partitions"]:
        return

    def partition(row: Mapping[str, Any]) -> Any:
        return kind.OffsetDeleteRequestPartition(partition_index=row["partition"])

    def request() -> Any:
        return OffsetDeleteRequest(group_id=after["group"], topics=_topics(after, kind, partition, "name"))

    yield from _partition_items(_ask(wire, after["group"], request, _of_partitions), after["group"])


def _delete_group(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    answer = _ask(
        wire,
        after["group"],
        lambda: DeleteGroupsRequest(groups_names=[after["group"]]),
        lambda answer: [result.error_code for result in answer.results],
    )
    for result in answer.results:
        yield _item(f"group {result.group_id}", result.error_code)


def _remove_members(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    kind = LeaveGroupRequest.MemberIdentity

    def request() -> Any:
        members = [kind(member_id=id, group_instance_id=None, reason=REASON) for id in after["members"]]
        return LeaveGroupRequest(group_id=after["group"], members=members, min_version=3)

    answer = _ask(wire, after["group"], request, lambda answer: [answer.error_code])
    if answer.error_code:
        yield _item(f"group {after['group']}", answer.error_code)
        return
    for member in answer.members:
        gone = member.error_code == UNKNOWN_MEMBER_ID
        yield _item(
            f"member {member.member_id}", member.error_code, "it is no longer in the group" if gone else None
        )


def _of_share(wire: Wire, after: Mapping[str, Any], request: Callable[[], Any]) -> Iterator[RequestItem]:
    answer = _ask(wire, after["group"], request, lambda answer: [answer.error_code])
    if answer.error_code:
        yield _item(f"group {after['group']}", answer.error_code, answer.error_message)
        return
    missing = {row["topic"] for row in after["partitions"]}
    for topic in answer.responses:
        name = str(topic.topic_name)
        missing.discard(name)
        for result in getattr(topic, "partitions", None) or [topic]:
            number = getattr(result, "partition_index", None)
            what = f"topic {name}" if number is None else TopicPartition(name, int(number))
            yield _item(what, result.error_code, result.error_message, name, number)
    for name in sorted(missing):
        yield _item(f"topic {name}", UNKNOWN, "the answer leaves it out, and so it was not done", name)


def _set_share_offsets(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    from kctl.wire.protocol.messages import AlterShareGroupOffsetsRequest as Request

    kind = Request.AlterShareGroupOffsetsRequestTopic

    def partition(row: Mapping[str, Any]) -> Any:
        return kind.AlterShareGroupOffsetsRequestPartition(
            partition_index=row["partition"], start_offset=row["offset"]
        )

    def request() -> Any:
        return Request(group_id=after["group"], topics=_topics(after, kind, partition, "topic_name"))

    yield from _of_share(wire, after, request)


def _delete_share_offsets(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    from kctl.wire.protocol.messages import DeleteShareGroupOffsetsRequest as Request

    def request() -> Any:
        kind = Request.DeleteShareGroupOffsetsRequestTopic
        names = dict.fromkeys(row["topic"] for row in after["partitions"])
        return Request(group_id=after["group"], topics=[kind(topic_name=name) for name in names])

    yield from _of_share(wire, after, request)


# --- checks ----------------------------------------------------------------------------------------


def _present(wire: Wire, group: str) -> Mapping[TopicPartition, GroupOffset]:
    described = find_group(wire, group)
    return read_offsets(wire, described) if described else {}


def _is_set(wire: Wire, after: Mapping[str, Any], of: Quantifier) -> bool:
    present = _present(wire, after["group"])
    offsets = offsets_from(after["partitions"])
    return of(_offset(present.get(tp)) == _offset(at) for tp, at in offsets.items())


def _offset(at: GroupOffset | None) -> int | None:
    return None if at is None else at.offset


def _refuse_other_offsets(wire: Wire, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raise Conflict if an offset is neither as it was read nor as it is to be: a part may have been set before."""
    present = _present(wire, after["group"])
    expected, wanted = offsets_from(before["offsets"]), offsets_from(after.get("partitions", ()))
    chosen = {*expected, *present} if before.get("all") else set(expected)
    for tp in sorted(chosen):
        now, then = _offset(present.get(tp)), _offset(expected.get(tp))
        if now != then and not (tp in wanted and now == _offset(wanted[tp])):
            says = ("none" if offset is None else f"{offset:,}" for offset in (now, then))
            raise Conflict(
                "the offset of group {} in {} is {}, not {} as it was read; nothing was written".format(
                    after["group"], tp, *says
                )
            )


def _refuse_what_is_ignored(wire: Wire, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    if not _sets_share_offsets(wire):
        raise TooOld(
            f"the brokers are too old to set offsets of share groups: {since('AlterShareGroupOffsets')}; nothing was written",
            "delete the offsets, so that the group begins as share.auto.offset.reset says",
        )
    _refuse_other_offsets(wire, before, after)


def _refuse_parts_of_topics(wire: Wire, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """As above; refuses parts of topics too, since brokers delete a share group's offsets of whole topics."""
    _refuse_other_offsets(wire, before, after)
    chosen = set(offsets_from(after["partitions"]))
    topics = {tp.topic for tp in chosen}
    for tp in _present(wire, after["group"]):
        if tp.topic in topics and tp not in chosen:
            raise Refused(
                f"offsets of a share group are deleted for whole topics only, and {tp} would keep its own; "
                "nothing was written",
                "name all partitions of the topic, or the topic without partitions",
            )


def _is_gone(wire: Wire, after: Mapping[str, Any], of: Quantifier) -> bool:
    return find_group(wire, after["group"]) is None


def _have_left(wire: Wire, after: Mapping[str, Any], of: Quantifier) -> bool:
    group = find_group(wire, after["group"])
    present = {member.member_id for member in group.members} if group else ()
    return of(member not in present for member in after["members"])


def _nothing_read(wire: Wire, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Members have no version."""


_offsets = partial(OwnRequest, is_done=_is_set, refuse_changed=_refuse_other_offsets)
REQUESTS = {
    "OffsetCommit": _offsets(_commit),
    "OffsetDelete": _offsets(_delete_offsets),
    "AlterShareGroupOffsets": OwnRequest(_set_share_offsets, _is_set, _refuse_what_is_ignored),
    "DeleteShareGroupOffsets": OwnRequest(_delete_share_offsets, _is_set, _refuse_parts_of_topics),
    "DeleteGroups": OwnRequest(_delete_group, _is_gone, _refuse_other_offsets),
    "LeaveGroup": OwnRequest(_remove_members, _have_left, _nothing_read),
}
