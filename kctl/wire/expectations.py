"""What a write expects to find, held against a fresh state; and whether a write has been carried out.

Both work on the write's JSON alone, so that a journal entry is enough.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kctl.changes.plan import Write
from kctl.cluster.interface import Conflict
from kctl.cluster.state import UNTOLD, ClusterState, Replicas
from kctl.model import TopicPartition
from kctl.wire.writes import refuse_changed


def name_of(write: Write) -> str:
    """The name of the request."""
    return write.target.partition(" ")[0]


def content(write: Write) -> dict[str, Any]:
    """What the request says."""
    found = json.loads(write.after or b"{}")
    return found if isinstance(found, dict) else {}


def item_count(write: Write) -> int:
    """How many things the request asks for, each answered by itself."""
    return len(content(write).get("partitions", ())) or 1


def topics_touched(writes: Sequence[Write]) -> set[str]:
    """The topics that the writes are about."""
    found: set[str] = set()
    for write in writes:
        after = content(write)
        if "topic" in after:
            found.add(str(after["topic"]))
        found |= {str(row["topic"]) for row in after.get("partitions", ())}
        if after.get("entity_type") == "topics":
            found.add(str(after["entity_name"]))
    return found


def config_types_touched(writes: Sequence[Write]) -> set[str]:
    """The entity types whose configurations the writes are about."""
    return {str(kind) for write in writes if (kind := content(write).get("entity_type")) is not None}


def refuse_other_state(write: Write, state: ClusterState) -> None:
    """Raise Conflict where the cluster is not what the write was worked out from."""
    if write.before is None:
        return
    before, after = json.loads(write.before), content(write)
    if "configs" in before:
        refuse_changed(state, after["entity_type"], after["entity_name"], before["configs"])
    if "topic_id" in before:
        _refuse_other_topic(after["topic"], before, state)
    for row in before.get("partitions", ()):
        _refuse_other_partition(row, state)


def _refuse_other_topic(name: str, before: Mapping[str, Any], state: ClusterState) -> None:
    topic = state.topics.get(name)
    if topic is None or topic.topic_id != before["topic_id"]:
        gone = "is gone" if topic is None else "was deleted and created again"
        raise Conflict(f"topic {name} {gone} since it was read; nothing was written")
    count = before.get("count")
    if count is not None and len(topic.partitions) != count:
        raise Conflict(f"topic {name} was changed by somebody else; nothing was written")


def _refuse_other_partition(row: Mapping[str, Any], state: ClusterState) -> None:
    tp = TopicPartition(row["topic"], row["partition"])
    present = state.replicas(tp)
    if present is None:
        raise Conflict(f"{tp} is gone since it was read; nothing was written")
    topic = state.topics[tp.topic]
    adding = topic.adding_replicas.get(tp.partition, ())
    removing = topic.removing_replicas.get(tp.partition, ())
    if (adding, removing) != (tuple(row["adding"]), tuple(row["removing"])):
        raise Conflict(f"{tp} is being moved by somebody else; nothing was written")
    if present != tuple(row["replicas"]):
        raise Conflict(
            f"{tp} is on {list(present)}, not on {row['replicas']} as it was read; nothing was written"
        )


# --- has it been done? --------------------------------------------------------------------------------


def is_done(write: Write, state: ClusterState) -> bool:
    """Whether the cluster shows what the write asks for."""
    return CHECKS[name_of(write)](content(write), state)


def can_tell(write: Write, state: ClusterState) -> bool:
    """Whether the cluster shows if it was done: a value that brokers keep to themselves looks as it did before."""
    before, after = json.loads(write.before or b"{}").get("configs", {}), content(write)
    return not any(
        before.get(one["key"]) == UNTOLD
        and state.is_untold(state.config(after["entity_type"], after["entity_name"]).get(one["key"]))
        for one in after.get("configs", ())
    )


def _created(after: Mapping[str, Any], state: ClusterState) -> bool:
    topic = state.topics.get(after["topic"])
    wanted = {int(p): tuple(ids) for p, ids in after["assignments"].items()}
    return topic is not None and dict(topic.partitions) == wanted


def _deleted(after: Mapping[str, Any], state: ClusterState) -> bool:
    topic = state.topics.get(after["topic"])
    return topic is None or (after["topic_id"] is not None and topic.topic_id != after["topic_id"])


def _grown(after: Mapping[str, Any], state: ClusterState) -> bool:
    topic = state.topics.get(after["topic"])
    first = int(after["count"]) - len(after["assignments"])
    wanted = {p: tuple(ids) for p, ids in enumerate(after["assignments"], first)}
    return topic is not None and all(topic.partitions.get(p) == ids for p, ids in wanted.items())


def _configured(after: Mapping[str, Any], state: ClusterState) -> bool:
    present = state.config(after["entity_type"], after["entity_name"])
    for one in after["configs"]:
        key, operation, value = one["key"], one["operation"], one.get("value")
        found = present.get(key)
        items = set((found or "").split(","))
        named = set((value or "").split(","))
        if not {
            "SET": found in (value, UNTOLD),
            "DELETE": found is None,
            "APPEND": named <= items,
            "SUBTRACT": not named & items,
        }[operation]:
            return False
    return True


def _reassigned(after: Mapping[str, Any], state: ClusterState) -> bool:
    return all(_goes_to(row, state) for row in after["partitions"])


def _goes_to(row: Mapping[str, Any], state: ClusterState) -> bool:
    tp = TopicPartition(row["topic"], row["partition"])
    topic = state.topics.get(tp.topic)
    if topic is None:
        return False
    if row["replicas"] is None:
        return not topic.is_reassigning(tp.partition)
    target: Replicas = tuple(row["replicas"])
    if topic.is_reassigning(tp.partition):
        return set(topic.target_replicas(tp.partition)) == set(target)
    return topic.partitions.get(tp.partition) == target


def _elected(after: Mapping[str, Any], state: ClusterState) -> bool:
    for row in after["partitions"]:
        found = state.partition_states.get(TopicPartition(row["topic"], row["partition"]))
        if found is None or found.leader != row["preferred"]:
            return False
    return True


CHECKS = {
    "CreateTopics": _created,
    "DeleteTopics": _deleted,
    "CreatePartitions": _grown,
    "IncrementalAlterConfigs": _configured,
    "AlterClientQuotas": _configured,
    "AlterPartitionReassignments": _reassigned,
    "ElectLeaders": _elected,
}
