"""The plan that takes a change back: the inverse of each stage that may stand, the last one first.

Compare-and-set against what the change left: an inverse names what it expects to find, so that a value set by
somebody else since is never overwritten. Where a stage has no inverse the whole undo is refused, with the
reason, before anything is written.
"""

from collections.abc import Iterator

from kctl.changes.apply import ChangeRun, note_what_takes_back, read_for, split_begun, was_written
from kctl.changes.entry import Entry
from kctl.changes.intents import (
    AlterConfig,
    AlterReplicaLogDirs,
    CreateTopic,
    DeleteTopic,
    Intent,
    Reassign,
    parts_of,
)
from kctl.changes.plan import Plan, plan_of
from kctl.changes.same_topics import made_as, refuse_other_topics
from kctl.cluster.names import dead_targets
from kctl.cluster.state import ClusterState
from kctl.cluster.unclean_allowed import guarded
from kctl.errors import Refused
from kctl.model import counted

BY_BROKERS = ("brokers", "broker-loggers")


def plan_undo(entry: Entry, run: ChangeRun, *, accepted: bool = False) -> Plan:
    """The plan of taking back what stands of a change; empty where nothing of it was written.

    Where a value comes back that lets a partition elect an unclean leader at once, it needs its own word: `accepted`.
    """
    if entry.undone_by:
        raise Refused(
            f"change {entry.id} was undone by {entry.undone_by} already",
            f"`kctl journal show {entry.undone_by}` shows that change",
        )
    split_begun(entry, run)
    intents: list[Intent] = []
    for index in reversed(range(len(entry.stages))):
        stage = entry.stages[index]
        is_unknown = stage.state == "writing" and not stage.is_begun
        if not stage.may_be_written or (is_unknown and not _may_stand(entry, index, run)):
            continue
        if is_unknown:
            note_what_takes_back(stage, run)
        if stage.undo_refused:
            raise Refused(
                stage.undo_refused,
                f"`kctl journal show {entry.id}` shows the former values; restore them by hand where needed",
            )
        intents += [intent for intent in stage.undo if not _is_nothing(intent)]
    title = f"undo {entry.id}: {entry.title}"
    if not intents:
        return Plan(title=title, stages=())
    refuse_other_topics(entry, intents, run.cluster)
    warnings: list[str] = []
    for intent in intents:
        state = read_for(intent, run)
        for part in parts_of(intent):
            _require_left(entry, part, state)
            _require_live(part, state)
        warnings += _lost_with(intent, state, run)
    state, details = read_for(intents[0], run), {"undoes": entry.id}
    plan = plan_of(intents, run.cluster, state, title=title, warnings=warnings, details=details)
    return guarded(run.cluster, intents, plan, accepted=accepted, kafka_version=run.kafka_version)


def _may_stand(entry: Entry, index: int, run: ChangeRun) -> bool:
    """Whether a stage that was cut off has left anything: over Kafka's own protocol also a part of it."""
    return was_written(entry, index, run) or run.cluster.is_begun(entry.stages[index].writes)


def _require_live(intent: Intent, state: ClusterState) -> None:
    """Refuse before the first step what would be refused at a later one: to move back to a broker that is not alive."""
    if isinstance(intent, AlterConfig) and state.backend == "admin" and intent.entity_name.isdecimal():
        if intent.entity_type in BY_BROKERS and not state.is_alive(int(intent.entity_name)):
            raise Refused(
                f"broker {intent.entity_name} is not alive, and only the broker itself can apply its configuration; "
                "nothing was written",
                f"start broker {intent.entity_name}, and undo it then",
            )
        return
    if not isinstance(intent, Reassign):
        return
    for tp, replicas in intent.targets.items():
        topic = state.topics.get(tp.topic)
        is_moving = topic is not None and topic.is_reassigning(tp.partition)  # what runs is cancelled
        if not is_moving and (dead := sorted(broker for broker in replicas if not state.is_alive(broker))):
            raise dead_targets(tp, dead)


def _is_nothing(intent: Intent) -> bool:
    if isinstance(intent, AlterReplicaLogDirs):
        return not intent.log_dirs
    return isinstance(intent, Reassign) and intent.targets == intent.origins


def _lost_with(intent: Intent, state: ClusterState, run: ChangeRun) -> Iterator[str]:
    """What was written into a topic since it was created, and is gone with it."""
    names = {part.topic for part in parts_of(intent) if isinstance(part, DeleteTopic)}
    if not names:
        return
    ends = run.cluster.log_ends(state)
    for name in sorted(names):
        partitions = [tp for tp in state.partition_states if tp.topic == name]
        if records := sum(ends.get(tp, 0) for tp in partitions):
            yield f"{counted(records, 'record')} {'was' if records == 1 else 'were'} written to topic {name} since, and would be deleted with it"
        elif unknown := sum(tp not in ends for tp in partitions):
            yield f"it is unknown whether anything was written to {counted(unknown, 'partition')} of topic {name} since"


def _require_left(entry: Entry, inverse: Intent, state: ClusterState) -> None:
    """Refuse where the cluster is not as the change left it, in what its inverse could not tell by itself."""
    if not isinstance(inverse, DeleteTopic):
        return
    intents = (part for stage in entry.stages for part in parts_of(stage.intent))
    made = next((i for i in intents if isinstance(i, CreateTopic) and i.topic == inverse.topic), None)
    if made is None:
        raise Refused(
            f"change {entry.id} did not create topic {inverse.topic}, which its undo would delete",
            f"delete it yourself with `kctl topic delete {inverse.topic}` if it is not needed",
        )
    topic = state.topics.get(made.topic)
    if topic is None:
        raise Refused(f"topic {made.topic} no longer exists", "there is nothing left to undo")
    if dict(topic.partitions) != dict(made.replicas):
        raise Refused(
            f"topic {made.topic} has been changed since: its partitions are not those that were created",
            f"delete it yourself with `kctl topic delete {made.topic}` if it is not needed",
        )
    noted = made_as(entry, made.topic)
    known = (noted.get("created_at"), topic.created_at), (noted.get("topic_id"), topic.topic_id)
    if any(then is not None and then != now for then, now in known):
        raise Refused(
            f"topic {made.topic} was deleted and created again by someone else",
            f"delete it yourself with `kctl topic delete {made.topic}` if it is not needed",
        )
