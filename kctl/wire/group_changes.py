"""Changes of groups: new offsets, offsets and groups deleted, members taken out; planned, sent, and looked at again.

Source: clients/src/main/resources/common/message/{OffsetCommit,OffsetDelete,DeleteGroups,LeaveGroup,
AlterShareGroupOffsets,DeleteShareGroupOffsets}Request.json @ 4.3.0; group-coordinator/src/main/java/org/apache/kafka/
coordinator/group/GroupMetadataManager.java @ 4.1.0
"""

import csv
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from kafka.protocol.admin.groups import DeleteGroupsRequest
from kafka.protocol.consumer.group import LeaveGroupRequest, OffsetCommitRequest, OffsetDeleteRequest

from formats.values import Struct
from kctl.changes.intents import (
    DeleteGroup,
    GroupOffset,
    Intent,
    RemoveMembers,
    SetGroupOffsets,
    counted,
    offsets_from,
)
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.interface import Cluster, Conflict
from kctl.cluster.topics import partitions_named, topics_named
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import TopicPartition
from kctl.wire.adapter import Leaderless, Wire
from kctl.wire.groups import (
    BY_NAME,
    SHARE,
    ConsumerGroup,
    coordinator_of,
    find_group,
    read_group,
    read_offsets,
    watermarks,
)
from kctl.wire.replicas.fetching import EARLIEST
from kctl.wire.writes.requests import OwnRequest, RequestItem

REASON = "removed with kctl group remove-member"
MOVED = frozenset({14, 15, 16})  # the coordinator is loading, is not there, or is another broker
MOVING, LOOK = 10.0, 0.2  # seconds in which a coordinator is found again; between two looks
UNKNOWN_MEMBER_ID, NON_EMPTY_GROUP, SUBSCRIBED, GROUP_ID_NOT_FOUND = 25, 68, 86, 69
REASONS = {
    UNKNOWN_MEMBER_ID: "the group has members, and only they set its offsets",
    NON_EMPTY_GROUP: "the group has members",
    SUBSCRIBED: "a member is subscribed to the topic",
    GROUP_ID_NOT_FOUND: "no such group",
}


# --- which offsets ------------------------------------------------------------------------------------


class ResetGoal(Struct, frozen=True, kw_only=True):
    """Where to put offsets; one of these. `time` is milliseconds."""

    earliest: bool = False
    latest: bool = False
    current: bool = False
    offset: int | None = None
    shift: int | None = None
    time: int | None = None
    listed: Mapping[TopicPartition, int] | None = None

    @property
    def count(self) -> int:
        """How many were given."""
        flags = self.earliest, self.latest, self.current
        return sum(flags) + sum(v is not None for v in (self.offset, self.shift, self.time, self.listed))


class Reset(NamedTuple):
    """A partition's offset now (None: none) and then."""

    partition: TopicPartition
    offset: int | None
    new_offset: int
    was_outside: bool

    @property
    def change(self) -> int | None:
        """By how many records; None where there was no offset."""
        return None if self.offset is None else self.new_offset - self.offset

    @property
    def skips(self) -> int | None:
        """Records that the group does not read."""
        return None if self.change is None else max(0, self.change)

    @property
    def repeats(self) -> int | None:
        """Records that the group reads again."""
        return None if self.change is None else max(0, -self.change)


def parse_offsets(text: str, name: str) -> dict[TopicPartition, int]:
    """Lines `TOPIC,PARTITION,OFFSET` of a file, as Kafka's own tool reads and writes them. Raises BadValue."""
    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        if not row:
            continue
        if len(row) != 3 or not all(part.strip().isdecimal() for part in row[1:]) or not row[0].strip():
            raise BadValue(
                f"{name}:{number}: {','.join(row)[:100]!r} is not TOPIC,PARTITION,OFFSET",
                "correct that line; `kctl group export` writes such files",
            )
        tp = TopicPartition(row[0].strip(), int(row[1]))
        if tp in found:
            raise BadValue(f"{name}:{number}: {tp} is listed twice", "remove one of the lines")
        found[tp] = int(row[2])
    if not found:
        raise BadValue(
            f"{name} lists no offset", "write lines TOPIC,PARTITION,OFFSET, as `kctl group export` does"
        )
    return found


def resets_to(wire: Wire, present: Mapping[TopicPartition, int | None], goal: ResetGoal) -> list[Reset]:
    """The new offset of each partition, inside its log. Raises KctlError where a partition has no leader."""
    partitions = list(present)
    starts, ends = watermarks(wire, partitions, EARLIEST), watermarks(wire, partitions)
    times = watermarks(wire, partitions, goal.time) if goal.time is not None else {}
    found = []
    for tp, now in present.items():
        if tp not in starts or tp not in ends:
            raise Leaderless(f"{tp} has no leader, so the start and end of its log are unknown")
        if goal.earliest:
            wanted = starts[tp]
        elif goal.offset is not None:
            wanted = goal.offset
        elif goal.listed is not None:
            wanted = goal.listed[tp]
        elif goal.shift is not None:
            if now is None:
                raise KctlError(
                    f"{tp}: the group has no offset to shift",
                    "give it an offset with --to-offset, --to-earliest or --to-latest",
                )
            wanted = now + goal.shift
        elif goal.current and now is not None:
            wanted = now
        elif goal.time is not None and times.get(tp, -1) >= 0:
            wanted = times[tp]
        else:
            wanted = ends[tp]  # also where no record is of that time or later
        inside = min(max(wanted, starts[tp]), ends[tp])
        found.append(Reset(tp, now, inside, inside != wanted))
    return found


class ChosenReset(NamedTuple):
    """A group and its offsets as they are now, and where each is to go."""

    group: ConsumerGroup | None  # None: no such group yet
    present: Mapping[TopicPartition, GroupOffset]
    resets: tuple[Reset, ...]


def choose_reset(
    cluster: Cluster, wire: Wire, group: str, topics: Sequence[str], goal: ResetGoal
) -> ChosenReset:
    """The resets of the partitions named, else of all that the group has offsets of.

    Raises KctlError for an unknown group, unless the partitions are named: then its offsets make it.
    """
    described = find_group(wire, group)
    if described is None and not topics and goal.listed is None:
        raise KctlError(
            f"no group {group}",
            "`kctl group list` lists the groups; with --topic you can set offsets before it has members",
        )
    present = read_offsets(wire, described) if described else {}
    if topics:
        state = cluster.read_state(topics_named(topics), recent=True)
        partitions = partitions_named(topics, state)
    else:
        partitions = sorted(present if goal.listed is None else goal.listed)
    if goal.listed is not None:
        partitions = [tp for tp in partitions if tp in goal.listed]
    now = {tp: present[tp].offset if tp in present else None for tp in partitions}
    return ChosenReset(described, present, tuple(resets_to(wire, now, goal)))


# --- plans --------------------------------------------------------------------------------------------


def plan_reset(cluster: Cluster, group: str, chosen: ChosenReset) -> Plan:
    """The plan of putting offsets where they are to be. Raises Refused while the group has members."""
    if chosen.group is not None:
        _require_empty(chosen.group)
    moved = {r.partition: r for r in chosen.resets if r.offset != r.new_offset}
    warnings = [
        f"{r.partition}: the offset asked for is not in the log, the nearest is taken"
        for r in moved.values()
        if r.was_outside
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
        offsets={tp: GroupOffset(r.new_offset) for tp, r in moved.items()},
        previous={tp: chosen.present.get(tp) for tp in moved},
    )
    return _plan(cluster, [intent] if moved else [], warnings, f"set the offsets of group {group}")


def plan_offset_deletion(
    cluster: Cluster,
    group: ConsumerGroup,
    present: Mapping[TopicPartition, GroupOffset],
    gone: Iterable[TopicPartition],
) -> Plan:
    """The plan of deleting offsets. Raises Refused while the group has members."""
    _require_empty(group)
    intent = SetGroupOffsets(
        group=group.group,
        is_share=group.type == SHARE,
        offsets=dict.fromkeys(gone),
        previous={tp: present.get(tp) for tp in gone},
    )
    return _plan(cluster, [intent] if intent.offsets else [], (), f"delete offsets of group {group.group}")


def plan_group_deletion(cluster: Cluster, wire: Wire, groups: Sequence[str]) -> Plan:
    """The plan of deleting groups. Raises Refused while one has members, KctlError for an unknown one."""
    intents = []
    for name in dict.fromkeys(groups):
        group = read_group(wire, name)
        _require_empty(group)
        intents.append(
            DeleteGroup(group=name, is_share=group.type == SHARE, previous=read_offsets(wire, group))
        )
    return _plan(cluster, intents, (), f"delete {counted(len(intents), 'group')}")


def plan_member_removal(cluster: Cluster, wire: Wire, name: str, members: Sequence[str]) -> Plan:
    """The plan of taking members out, by member id or group instance id. Raises KctlError for an unknown one."""
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


def _plan(cluster: Cluster, intents: Sequence[Intent], warnings: Iterable[str], title: str) -> Plan:
    if not intents:
        return Plan(title=title, stages=())
    state = cluster.read_state((), partition_states=False, recent=True)
    return plan_of(intents, cluster, state, title=title if len(intents) > 1 else "", warnings=warnings)


def _require_empty(group: ConsumerGroup) -> None:
    if group.is_active:
        members = counted(len(group.members), "member") if group.members else f"state {group.state}"
        raise Refused(
            f"group {group.group} has {members}, and brokers only change a group without members; nothing was written",
            f"stop its consumers; `kctl group describe {group.group}` shows where they run",
        )


# --- requests -----------------------------------------------------------------------------------------


def _ask(wire: Wire, group: str, request: Callable[[], Any], codes: Callable[[Any], Iterable[int]]) -> Any:
    """The answer of a group's coordinator, which is looked for again while it moves to another broker."""
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
    return [topic(**{name: of, "partitions": list(map(partition, some))}) for of, some in rows]


def _item(what: object, code: int, message: str | None = None, *of: Any) -> RequestItem:
    return RequestItem(str(what), int(code), message or REASONS.get(int(code)), *of)


def _partition_items(answer: Any, group: str) -> Iterator[RequestItem]:
    if getattr(answer, "error_code", 0):
        yield _item(f"group {group}", answer.error_code)
        return
    for topic in answer.topics:
        for p in topic.partitions:
            tp = TopicPartition(str(topic.name), int(p.partition_index))
            yield _item(tp, p.error_code, None, *tp)


def _commit(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    kind = OffsetCommitRequest.OffsetCommitRequestTopic

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
        lambda answer: [one.error_code for one in answer.results],
    )
    for one in answer.results:
        yield _item(f"group {one.group_id}", one.error_code)


def _remove_members(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    kind = LeaveGroupRequest.MemberIdentity

    def request() -> Any:
        members = [kind(member_id=id, group_instance_id=None, reason=REASON) for id in after["members"]]
        return LeaveGroupRequest(group_id=after["group"], members=members, min_version=3)

    answer = _ask(wire, after["group"], request, lambda answer: [answer.error_code])
    if answer.error_code:
        yield _item(f"group {after['group']}", answer.error_code)
        return
    for one in answer.members:
        gone = one.error_code == UNKNOWN_MEMBER_ID
        yield _item(
            f"member {one.member_id}", one.error_code, "it is no longer in the group" if gone else None
        )


def _of_share(wire: Wire, after: Mapping[str, Any], request: Callable[[], Any]) -> Iterator[RequestItem]:
    answer = _ask(wire, after["group"], request, lambda answer: [answer.error_code])
    if answer.error_code:
        yield _item(f"group {after['group']}", answer.error_code, answer.error_message)
        return
    for topic in answer.responses:
        for one in getattr(topic, "partitions", None) or [topic]:
            number = getattr(one, "partition_index", None)
            name = str(topic.topic_name)
            what = f"topic {name}" if number is None else TopicPartition(name, int(number))
            yield _item(what, one.error_code, one.error_message, name, number)


def _set_share_offsets(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    from kctl.wire.messages import AlterShareGroupOffsetsRequest as Request

    kind = Request.AlterShareGroupOffsetsRequestTopic

    def partition(row: Mapping[str, Any]) -> Any:
        return kind.AlterShareGroupOffsetsRequestPartition(
            partition_index=row["partition"], start_offset=row["offset"]
        )

    def request() -> Any:
        return Request(group_id=after["group"], topics=_topics(after, kind, partition, "topic_name"))

    yield from _of_share(wire, after, request)


def _delete_share_offsets(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    from kctl.wire.messages import DeleteShareGroupOffsetsRequest as Request

    def request() -> Any:
        kind = Request.DeleteShareGroupOffsetsRequestTopic
        names = dict.fromkeys(row["topic"] for row in after["partitions"])
        return Request(group_id=after["group"], topics=[kind(topic_name=name) for name in names])

    yield from _of_share(wire, after, request)


# --- what is there now --------------------------------------------------------------------------------


def _present(wire: Wire, group: str) -> Mapping[TopicPartition, GroupOffset]:
    described = find_group(wire, group)
    return read_offsets(wire, described) if described else {}


def _is_set(wire: Wire, after: Mapping[str, Any]) -> bool:
    present = _present(wire, after["group"])
    wanted = offsets_from(after["partitions"])
    return all(_offset(present.get(tp)) == _offset(at) for tp, at in wanted.items())


def _offset(at: GroupOffset | None) -> int | None:
    return None if at is None else at.offset


def _refuse_other_offsets(wire: Wire, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    present = _present(wire, after["group"])
    expected = offsets_from(before["offsets"])
    chosen = {*expected, *present} if before.get("all") else set(expected)
    for tp in sorted(chosen):
        now, then = _offset(present.get(tp)), _offset(expected.get(tp))
        if now != then:
            says = ("none" if one is None else f"{one:,}" for one in (now, then))
            raise Conflict(
                "the offset of group {} in {} is {}, not {} as it was read; nothing was written".format(
                    after["group"], tp, *says
                )
            )


def _refuse_parts_of_topics(wire: Wire, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """As above; and brokers would delete the offsets of a share group in all partitions of a topic."""
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


def _is_gone(wire: Wire, after: Mapping[str, Any]) -> bool:
    return find_group(wire, after["group"]) is None


def _have_left(wire: Wire, after: Mapping[str, Any]) -> bool:
    group = find_group(wire, after["group"])
    return group is None or not {m.member_id for m in group.members} & set(after["members"])


def _nothing_read(wire: Wire, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Members have no version."""


_offsets = partial(OwnRequest, is_done=_is_set, refuse_changed=_refuse_other_offsets)
REQUESTS = {
    "OffsetCommit": _offsets(_commit),
    "OffsetDelete": _offsets(_delete_offsets),
    "AlterShareGroupOffsets": _offsets(_set_share_offsets),
    "DeleteShareGroupOffsets": OwnRequest(_delete_share_offsets, _is_set, _refuse_parts_of_topics),
    "DeleteGroups": OwnRequest(_delete_group, _is_gone, _refuse_other_offsets),
    "LeaveGroup": OwnRequest(_remove_members, _have_left, _nothing_read),
}
