"""The requests of each intent, computed from a fresh read of everything that they change.

The protocol has no compare-and-set, so each write records what it expects, and that is read
again just before it is sent (`kctl.wire.writes.commit`). Requests are absolute: sending one twice does no harm.
Nothing here writes; the controller validates what it can (`validate_only`).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from formats.whole_numbers import whole_number
from kctl.changes.intents import Several
from kctl.changes.kinds.codecs import partition_rows
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.elections import ElectPreferred, ElectUnclean
from kctl.changes.kinds.groups import DeleteGroup, RemoveMembers, SetGroupOffsets, offset_rows
from kctl.changes.kinds.reassignments import AlterReplicaLogDirs, Reassign
from kctl.changes.kinds.records import AbortTransaction, DeleteRecords, RecoverRecords
from kctl.changes.kinds.throttles import LISTS, RATES, ClearThrottle, clearing_changes, rates_of_dead, split
from kctl.changes.kinds.topics import AddPartitions, CreateTopic, DeleteTopic
from kctl.cluster import names
from kctl.cluster.config_keys import BROKERS_ONLY
from kctl.cluster.disks import places
from kctl.cluster.intent import Intent, Write
from kctl.cluster.interface import Conflict, refuse_changed
from kctl.cluster.state import NO_LEADER, UNTOLD, ClusterState, Replicas, Topic
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import Json, TopicPartition, counted
from kctl.operations.reassignment.cancellation import refuse_without_leader
from kctl.operations.reassignment.disk_moves import check_log_dirs

REQUEST = "request"  # the action of every write of this backend


def request(name: str, about: str, after: Mapping[str, Json], before: Json = None) -> Write:
    """A write: the name of a request and what it is about, what it says, and what it expects."""
    return Write(
        action=REQUEST,
        target=f"{name} {about}",
        after=json.dumps(after).encode(),
        before=None if before is None else json.dumps(before).encode(),
    )


def name_of(write: Write) -> str:
    """The name of the request."""
    return write.target.partition(" ")[0]


def content(write: Write) -> dict[str, Any]:
    """What the request says."""
    value = json.loads(write.after or b"{}")
    return value if isinstance(value, dict) else {}


def item_count(write: Write) -> int:
    """The number of items of the request; each has its own result in the answer."""
    after = content(write)
    return (
        len(after.get("partitions", ())) or len(after.get("members", ())) or len(after.get("acls", ())) or 1
    )


def existing(state: ClusterState, name: str) -> Topic:
    """The topic. Raises KctlError for an unknown one, Refused for one that is being deleted."""
    if name not in state.topics:
        for problem in state.problems:
            if problem.place == f"topic {name}" and problem.right is None:
                raise KctlError(
                    f"{problem.place}: {problem.reason}",
                    "try again; if it stays, the server.log of the controller shows the cause",
                )
        raise names.absent_topics([name], state)
    if name in state.deleting:
        raise names.topic_leaving(name)
    return state.topics[name]


# --- topics -------------------------------------------------------------------------------------------


def create_topic(fresh: ClusterState, intent: CreateTopic, _: ClusterState) -> list[Write]:
    """The topic with explicit replicas."""
    if intent.topic in fresh.topic_names:
        raise names.topic_exists(intent.topic)
    after: dict[str, Json] = {
        "topic": intent.topic,
        "assignments": {str(p): list(ids) for p, ids in sorted(intent.replicas.items())},
        "configs": dict(sorted(intent.configs.items())),
    }
    return [request("CreateTopics", intent.topic, after)]


def delete_topic(fresh: ClusterState, intent: DeleteTopic, _: ClusterState) -> list[Write]:
    """The topic by its id, where the cluster has ids: never another one of the same name."""
    topic = existing(fresh, intent.topic)
    after: dict[str, Json] = {"topic": intent.topic, "topic_id": topic.topic_id}
    return [request("DeleteTopics", intent.topic, after, {"topic_id": topic.topic_id, "exists": True})]


def add_partitions(fresh: ClusterState, intent: AddPartitions, planned: ClusterState) -> list[Write]:
    """The new total, and the replicas of the new partitions."""
    topic = existing(fresh, intent.topic)
    known = planned.topics.get(intent.topic)
    if known is not None and (
        dict(known.partitions) != dict(topic.partitions) or known.topic_id != topic.topic_id
    ):
        raise Conflict(f"topic {intent.topic} was changed by somebody else; nothing was written")
    first, total = len(topic.partitions), len(topic.partitions) + len(intent.replicas)
    if sorted(intent.replicas) != list(range(first, total)):
        raise names.not_consecutive(intent.topic, total - 1)
    moving = [p for p in topic.partitions if topic.is_reassigning(p)]
    if moving:
        raise names.being_moved(TopicPartition(intent.topic, moving[0]))
    after: dict[str, Json] = {
        "topic": intent.topic,
        "count": total,
        "assignments": [list(intent.replicas[p]) for p in range(first, total)],
    }
    before: Json = {"topic_id": topic.topic_id, "count": first}
    return [request("CreatePartitions", intent.topic, after, before)]


# --- configurations -----------------------------------------------------------------------------------


def alter_config(fresh: ClusterState, intent: AlterConfig, _: ClusterState) -> list[Write]:
    """The keys of one entity, all of them or none; none of a logger's that a restart has reset."""
    if intent.entity_type == "broker-loggers" and _is_so(fresh, intent):
        return []
    return [_alter(fresh, intent)]


def clear_throttle(fresh: ClusterState, intent: ClearThrottle, _: ClusterState) -> list[Write]:
    """The configurations without a reassignment's throttles, where they are still set; dead brokers last."""
    writes = [_alter(fresh, change) for change in clearing_changes(intent, fresh)]
    for broker, rates in rates_of_dead(intent, fresh).items() if fresh.quorum is not None else ():
        change = AlterConfig(entity_type="brokers", entity_name=str(broker), after=rates, before={})
        after: dict[str, Json] = {
            "entity_type": "brokers",
            "entity_name": str(broker),
            "configs": operations(change),
            "at_controller": True,
        }
        writes.append(request("IncrementalAlterConfigs", f"broker {broker}, by the controller", after))
    return writes


def _alter(fresh: ClusterState, change: AlterConfig) -> Write:
    kind, name = change.entity_type, change.entity_name
    if (problem := fresh.unread_config(kind, name)) is not None:
        raise KctlError(
            f"{problem.place}: {problem.reason}; nothing was written",
            problem.hint
            if problem.right is not None
            else "kctl compares a value before it changes it: try again",
        )
    if kind == "topics":
        existing(fresh, name)
    elif (
        kind in ("brokers", "broker-loggers")
        and (id := whole_number(name)) is not None
        and not fresh.is_alive(id)
    ):
        raise Refused(
            f"broker {name} is not alive, and only the broker itself can apply its configuration; nothing was written",
            f"start broker {name}"
            + (", or set the entity `<default>`, which applies to all" if kind == "brokers" else ""),
        )
    refuse_changed(kind, name, change.before, fresh.config(kind, name))
    after: dict[str, Json] = {"entity_type": kind, "entity_name": name, "configs": operations(change)}
    before: Json = {"configs": dict(change.before)}
    return request(
        "IncrementalAlterConfigs" if kind in ("topics", "brokers", *BROKERS_ONLY) else "AlterClientQuotas",
        f"{kind.removesuffix('s')} {name}",
        after,
        before,
    )


def operations(change: AlterConfig) -> list[Json]:
    """The operation on each key. Throttled replicas are appended and subtracted, so that those of others stay."""
    rows: list[Json] = []
    for key, value in sorted(change.after.items()):
        was = change.before.get(key)
        if value is None or (value == UNTOLD and key in RATES):  # an unknown value cannot be restored
            rows.append({"key": key, "operation": "DELETE"})
            continue
        if key in LISTS and was:
            previous, current = split(was), split(value)
            added = [item for item in current if item not in previous]
            gone = [item for item in previous if item not in current]
            if bool(added) != bool(gone):
                operation = "APPEND" if added else "SUBTRACT"
                rows.append({"key": key, "operation": operation, "value": ",".join(added or gone)})
                continue
        rows.append({"key": key, "operation": "SET", "value": value})
    return rows


# --- moving and electing ------------------------------------------------------------------------------


def reassign(fresh: ClusterState, intent: Reassign, _: ClusterState) -> list[Write]:
    """Throttles first, then cancellations of running moves, then the targets."""
    cancelled: dict[TopicPartition, Replicas] = {}
    moved: dict[TopicPartition, Replicas] = {}
    for tp, target in sorted(intent.targets.items()):
        present = _present(fresh, tp)
        topic = fresh.topics[tp.topic]
        origin = intent.origins.get(tp)
        is_running = topic.is_reassigning(tp.partition)
        goes_back = is_running and set(target) == set(topic.origin_replicas(tp.partition))
        (refuse_without_leader if goes_back else check_target)(tp, target, fresh)
        if is_running:
            running = set(topic.target_replicas(tp.partition))
            if running == set(target):
                continue  # already running, nothing to request
            if origin is None or running != set(origin) or not goes_back:
                raise names.being_moved(tp)
            cancelled[tp] = target
        elif present != target:
            if origin is not None and present != tuple(origin):
                raise Conflict(
                    f"{tp} is on {list(present)}, not on {list(origin)} as it was planned; nothing was written"
                )
            moved[tp] = target
    changes = [
        change for change in intent.config_changes if _can_take(fresh, change) and not _is_so(fresh, change)
    ]
    writes = [_alter(fresh, change) for change in changes]
    if cancelled:
        writes.append(
            request(
                "AlterPartitionReassignments",
                f"cancel {len(cancelled)}",
                {"partitions": [{**_row(tp), "replicas": None} for tp in cancelled]},
                {"partitions": [_moving_row(fresh, tp) for tp in cancelled]},
            )
        )
        writes.append(
            request(
                "AlterPartitionReassignments",
                f"order {len(cancelled)}",
                {"partitions": partition_rows(cancelled), "keep_factor": True},
            )
        )
    if moved:
        keep = all(len(fresh.replicas(tp) or ()) == len(target) for tp, target in moved.items())
        writes.append(
            request(
                "AlterPartitionReassignments",
                f"move {len(moved)}",
                {"partitions": partition_rows(moved), "keep_factor": keep},
                {"partitions": [_moving_row(fresh, tp) for tp in moved]},
            )
        )
    return writes


def alter_replica_log_dirs(fresh: ClusterState, intent: AlterReplicaLogDirs, _: ClusterState) -> list[Write]:
    """Throttles first, then a request a broker, with its own request for future replicas."""
    check_log_dirs(intent.log_dirs, fresh)
    placed = places(fresh.log_dirs)
    requests: dict[tuple[int, bool], list[tuple[TopicPartition, str, str | None]]] = {}
    for (tp, broker), path in sorted(intent.log_dirs.items()):
        place, previous = placed.get((tp, broker)), intent.previous_log_dirs.get((tp, broker))
        present = place and place.target
        if present == path:
            continue  # done, or running
        if previous is not None and present != previous:
            raise Conflict(
                f"{tp} is in {present} of broker {broker}, not in {previous} as it was planned; nothing was written"
            )
        requests.setdefault((broker, place is None), []).append((tp, path, present))
    changes = [change for change in intent.config_changes if not _is_so(fresh, change)]
    writes = [_alter(fresh, change) for change in changes]
    for (broker, is_to_come), rows in sorted(requests.items()):
        after: dict[str, Json] = {
            "broker_id": broker,
            "partitions": [{**_row(tp), "log_dir": path} for tp, path, _ in rows],
        }
        if is_to_come:
            after["is_to_come"] = True
        before: Json = {"log_dirs": [{**_row(tp), "log_dir": present} for tp, _, present in rows]}
        writes.append(request("AlterReplicaLogDirs", f"broker {broker}", after, before))
    return writes


def _present(state: ClusterState, tp: TopicPartition) -> Replicas:
    partitions = existing(state, tp.topic).partitions
    present = partitions.get(tp.partition)
    if present is None:
        raise names.unknown_partition(tp, partitions)
    return present


def _row(tp: TopicPartition) -> dict[str, Json]:
    return {"topic": tp.topic, "partition": tp.partition}


def _moving_row(state: ClusterState, tp: TopicPartition) -> Json:
    topic = state.topics[tp.topic]
    return {
        **_row(tp),
        "replicas": list(topic.partitions[tp.partition]),
        "adding": list(topic.adding_replicas.get(tp.partition, ())),
        "removing": list(topic.removing_replicas.get(tp.partition, ())),
    }


def _can_take(state: ClusterState, change: AlterConfig) -> bool:
    """Whether the change can be applied: a dead broker copies nothing, and needs no throttle."""
    return (
        change.entity_type != "brokers"
        or (id := whole_number(change.entity_name)) is None
        or state.is_alive(id)
    )


def _is_so(state: ClusterState, change: AlterConfig) -> bool:
    """Whether the change is in force already, as after a stage that was cut off between its requests.

    So is a value that brokers do not return, if none was set when the change was planned.
    """
    present = state.config(change.entity_type, change.entity_name)
    return all(
        present.get(key) == value
        or (value is not None and change.before.get(key) is None and state.is_untold(present.get(key)))
        for key, value in change.after.items()
    )


def check_target(tp: TopicPartition, target: Replicas, state: ClusterState) -> None:
    """Refuse what a controller accepts and never finishes, or what would lose data. Raises BadValue, Refused."""
    if not target:
        raise names.no_replicas(tp)
    if len(set(target)) < len(target):
        raise BadValue(
            f"{tp} would have a broker twice: {list(target)}", "name each broker once for it in the plan"
        )
    if dead := sorted(b for b in target if not state.is_alive(b)):
        raise names.dead_targets(tp, dead)


def elect_preferred(fresh: ClusterState, intent: ElectPreferred, _: ClusterState) -> list[Write]:
    """The election of partitions whose first replica can lead."""
    rows = []
    for tp in sorted(intent.partitions):
        replicas, partition_state = _present(fresh, tp), fresh.partition_states.get(tp)
        if partition_state is not None and partition_state.leader == replicas[0]:
            continue
        if (
            not fresh.is_alive(replicas[0])
            or partition_state is None
            or replicas[0] not in partition_state.isr
        ):
            raise names.not_electable(tp, replicas[0], is_alive=fresh.is_alive(replicas[0]))
        rows.append({**_row(tp), "preferred": replicas[0], "leader": partition_state.leader})
    if not rows:
        return []
    after: dict[str, Json] = {"election": "preferred", "partitions": list(rows)}
    return [request("ElectLeaders", f"preferred {len(rows)}", after)]


def elect_unclean(fresh: ClusterState, intent: ElectUnclean, _: ClusterState) -> list[Write]:
    """Put the chosen replica first if the controller would take another, elect, and restore the order."""
    ordered: dict[TopicPartition, Replicas] = {}
    elections: list[Json] = []
    leaderless: list[Json] = []
    restored: dict[TopicPartition, Replicas] = {}
    for tp, (broker,) in sorted(intent.chosen.items()):
        present, partition_state = _present(fresh, tp), fresh.partition_states.get(tp)
        leader = NO_LEADER if partition_state is None else partition_state.leader
        if sorted(present) != sorted(intent.origins[tp]):
            raise Conflict(f"{tp} is on {list(present)} by now; nothing was written")
        if leader != broker and fresh.is_alive(leader):
            raise Conflict(f"broker {leader} leads {tp} by now; nothing was written")
        if leader != broker:
            if next((b for b in present if fresh.is_replica_alive(tp, b)), None) != broker:
                ordered[tp] = (broker, *(b for b in present if b != broker))
            elections.append({**_row(tp), "to": broker})
            leaderless.append(_row(tp))
        if tp in ordered or present != intent.origins[tp]:
            restored[tp] = tuple(intent.origins[tp])
    writes = []
    for name, orders in (("first", ordered), ("elect", {}), ("order", restored)):
        if name == "elect" and elections:
            after: dict[str, Json] = {"election": "unclean", "partitions": elections}
            writes.append(
                request("ElectLeaders", f"unclean {len(elections)}", after, {"leaderless": leaderless})
            )
        elif orders:
            rows: dict[str, Json] = {"partitions": partition_rows(orders), "keep_factor": True}
            writes.append(request("AlterPartitionReassignments", f"{name} {len(orders)}", rows))
    return writes


def abort_transaction(fresh: ClusterState, intent: AbortTransaction, _: ClusterState) -> list[Write]:
    """The marker, to the partition's leader."""
    tp = TopicPartition(intent.topic, intent.partition)
    _present(fresh, tp)
    after: dict[str, Json] = {
        "partitions": [_row(tp)],
        "producer_id": intent.producer_id,
        "producer_epoch": intent.producer_epoch,
        "coordinator_epoch": intent.coordinator_epoch,
        "start_offset": intent.start_offset,
    }
    return [request("WriteTxnMarkers", f"abort {tp}", after)]


def delete_records(fresh: ClusterState, intent: DeleteRecords, _: ClusterState) -> list[Write]:
    """The first offset that each partition keeps, to the partitions' leaders."""
    topic = existing(fresh, intent.topic)
    for partition in intent.to_offsets:
        _present(fresh, TopicPartition(intent.topic, partition))
    rows = [
        {**_row(TopicPartition(intent.topic, p)), "to_offset": offset}
        for p, offset in sorted(intent.to_offsets.items())
    ]
    after: dict[str, Json] = {"topic": intent.topic, "partitions": list(rows)}
    return [request("DeleteRecords", f"topic {intent.topic}", after, {"topic_id": topic.topic_id})]


def recover_records(fresh: ClusterState, intent: RecoverRecords, _: ClusterState) -> list[Write]:
    """The records, to the partition's leader."""
    topic = existing(fresh, intent.topic)
    tp = TopicPartition(intent.topic, intent.partition)
    _present(fresh, tp)
    after: dict[str, Json] = {**intent.to_json(), "partitions": [_row(tp)]}
    return [
        request(
            "Produce", f"{counted(intent.records, 'record')} to {tp}", after, {"topic_id": topic.topic_id}
        )
    ]


# --- groups -------------------------------------------------------------------------------------------


def set_group_offsets(fresh: ClusterState, intent: SetGroupOffsets, _: ClusterState) -> list[Write]:
    """The offsets to set, then those to delete."""
    writes = []
    kinds = (
        ("AlterShareGroupOffsets", "DeleteShareGroupOffsets")
        if intent.is_share
        else ("OffsetCommit", "OffsetDelete")
    )
    for name, is_set in zip(kinds, (True, False), strict=True):
        chosen = {tp: at for tp, at in intent.offsets.items() if (at is not None) is is_set}
        if chosen:
            for tp in chosen if is_set else ():
                _present(fresh, tp)
            before: Json = {"offsets": offset_rows({tp: intent.previous.get(tp) for tp in chosen})}
            after: dict[str, Json] = {"group": intent.group, "partitions": offset_rows(chosen)}
            writes.append(request(name, f"group {intent.group}", after, before))
    return writes


def delete_group(fresh: ClusterState, intent: DeleteGroup, _: ClusterState) -> list[Write]:
    """The group, if its offsets are still those that the journal keeps."""
    before: Json = {"offsets": offset_rows(intent.previous), "all": True}
    return [request("DeleteGroups", f"group {intent.group}", {"group": intent.group}, before)]


def remove_members(fresh: ClusterState, intent: RemoveMembers, _: ClusterState) -> list[Write]:
    """The members, by their ids."""
    after: dict[str, Json] = {"group": intent.group, "members": list(intent.members)}
    return [request("LeaveGroup", f"group {intent.group}", after)]


def _no_such_request(why: str) -> "Translation":
    def refuse(fresh: ClusterState, intent: Intent, planned: ClusterState) -> list[Write]:
        raise Refused(
            f"{intent}: {why}; nothing was written",
            "use --zookeeper, or a Kafka tool of that version",
        )

    return refuse


def several(fresh: ClusterState, intent: Several, planned: ClusterState) -> list[Write]:
    """The requests of each, in order."""
    return [write for part in intent.parts for write in TRANSLATIONS[part.kind](fresh, part, planned)]


Translation = Callable[[ClusterState, Any, ClusterState], Iterable[Write]]
TRANSLATIONS: dict[str, Translation] = {
    "create-topic": create_topic,
    "delete-topic": delete_topic,
    "add-partitions": add_partitions,
    "alter-config": alter_config,
    "several": several,
    "wait-until": lambda fresh, intent, planned: (),
    "clear-throttle": clear_throttle,
    "reassign": reassign,
    "alter-replica-log-dirs": alter_replica_log_dirs,
    "elect-preferred": elect_preferred,
    "elect-unclean": elect_unclean,
    "abort-transaction": abort_transaction,
    "delete-records": delete_records,
    "recover-records": recover_records,
    "set-group-offsets": set_group_offsets,
    "delete-group": delete_group,
    "remove-members": remove_members,
    "move-controller": _no_such_request("no request moves the controller; restart it"),
    "replace-stuck-reassignment": _no_such_request(
        "brokers cancel a move that is stuck: leave --move-controller out"
    ),
}
