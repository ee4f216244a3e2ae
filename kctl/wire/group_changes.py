"""Plans that change groups: setting and deleting offsets, deleting groups, removing members."""

from collections.abc import Iterable, Mapping, Sequence

from formats.words import counted
from kctl.changes.kinds.groups import DeleteGroup, GroupOffset, RemoveMembers, SetGroupOffsets
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.intent import Intent
from kctl.cluster.interface import Cluster
from kctl.cluster.requests import needs as since
from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition, command_line
from kctl.wire.adapter import Wire
from kctl.wire.group_resets import ChosenReset
from kctl.wire.groups import SHARE, ConsumerGroup, read_group, read_offsets
from kctl.wire.hidden import why_offsets_may_be_hidden
from kctl.wire.writes.groups import sets_share_offsets


def _word_for(wire: Wire, groups: Iterable[ConsumerGroup], accepted: bool) -> str:
    """The option that is needed if deleted offsets cannot be set again; none if it was given."""
    is_final = any(group.type == SHARE for group in groups) and not sets_share_offsets(wire)
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
            raise KctlError(
                f"group {name} has no member {member}", f"see `{command_line('kctl group describe', [name])}`"
            )
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
            f"stop its consumers; `{command_line('kctl group describe', [group.group])}` shows where they run",
        )
