"""Which partitions without a leader a change of `unclean.leader.election.enable` lets elect an unclean one.

The controller looks at the topic's value, at its own broker's, at that of all brokers, at last into its own file: a
value that is removed brings the next into force.

Source: metadata/src/main/java/org/apache/kafka/controller/ConfigurationControlManager.java @ 3.9.0-rc3;
core/src/main/scala/kafka/controller/PartitionStateMachine.scala @ 3.9.0-rc3
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from formats.values import replace
from formats.words import counted
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.plan import Plan
from kctl.cluster.config_keys import UNCLEAN
from kctl.cluster.intent import Intent
from kctl.cluster.interface import Cluster
from kctl.cluster.state import DEFAULT, ClusterState
from kctl.cluster.versions import KafkaVersion
from kctl.errors import Refused
from kctl.model import TopicPartition

ACCEPTED = "may_elect_unclean"  # of a journal entry's details: the partitions for which the word was given
WORD = "--accept-loss"
Values = Mapping[tuple[str, str], str | None]  # of the key, by entity


class Allowed(NamedTuple):
    """Unclean elections that a change allows: of the partitions in `waiting`, which have no leader, and of others.

    `is_known` is False where only a controller's own file decides, which it does not tell.
    """

    waiting: tuple[TopicPartition, ...] = ()
    is_known: bool = True
    is_for_others: bool = False


def newly_allowed(
    cluster: Cluster, intents: Sequence[Intent], kafka_version: KafkaVersion | None = None
) -> Allowed:
    """The unclean elections that the intents allow, carried out in order, and that are not allowed now."""
    changes = [
        change
        for intent in intents
        for change in intent.parts
        if isinstance(change, AlterConfig)
        and change.entity_type in ("topics", "brokers")
        and UNCLEAN in change.after
    ]
    if not changes:
        return Allowed()
    everywhere = any(change.entity_type == "brokers" for change in changes)
    names = None if everywhere else {change.entity_name for change in changes}
    state = cluster.read_state(names, kafka_version=kafka_version)
    leaderless = [
        tp for tp, partition in state.partition_states.items() if not state.is_alive(partition.leader)
    ]
    named = {tp.topic for tp in leaderless} | {
        change.entity_name for change in changes if change.entity_type == "topics"
    }
    configured = cluster.read_state(
        named, partition_states=False, configs=("topics", "brokers"), config_keys={UNCLEAN}, kafka_version=kafka_version
    )  # fmt: skip
    before: Values = {entity: config.values.get(UNCLEAN) for entity, config in configured.configs.items()}
    after = [before]
    for change in changes:
        after.append({**after[-1], (change.entity_type, change.entity_name): change.after[UNCLEAN]})
    controllers = _controllers(configured, changes)

    def becomes_allowed(topic: str) -> Iterator[bool | None]:
        """Whether an unclean election of a topic becomes allowed, for each controller; None where its own file decides."""
        for controller in controllers:
            was = _is_allowed(configured, before, topic, controller)
            for values in after[1:]:
                now = _is_allowed(configured, values, topic, controller)
                yield now if was is False or (was is None and now) else False

    waiting = {tp: set(becomes_allowed(tp.topic)) & {True, None} for tp in leaderless}
    affected = tuple(tp for tp, how in waiting.items() if how)
    others = ["", *named] if everywhere else named  # no topic is called "": it has no value of its own
    return Allowed(
        waiting=affected,
        is_known=all(True in waiting[tp] for tp in affected),
        is_for_others=any(True in becomes_allowed(topic) for topic in others),
    )


def _controllers(state: ClusterState, changes: Collection[AlterConfig]) -> set[int]:
    """The nodes whose files may decide: brokers that return their settings, where some vote; else voters, else all brokers."""
    able = set(state.quorum.voters) if state.quorum and state.quorum.voters else set(state.brokers)
    changed = {
        int(change.entity_name)
        for change in changes
        if change.entity_type == "brokers" and change.entity_name != DEFAULT
    }
    told = able & (state.broker_files.keys() | changed)
    active = {state.controller.broker_id} if told and state.controller and state.has_controller else set()
    return (told | able & active) or able or {-1}


def _is_allowed(state: ClusterState, values: Values, topic: str, controller: int) -> bool | None:
    """Whether the controller would elect an unclean leader of a topic; None where its file decides and is not known."""
    for entity in (("topics", topic), ("brokers", str(controller)), ("brokers", DEFAULT)):
        if (value := values.get(entity)) is not None:
            return _is_true(value)
    file = state.broker_files.get(controller)
    # Brokers tell the value in force: one that was changed while they run hides that of their file.
    is_hidden = any(UNCLEAN in state.config("brokers", name) for name in (str(controller), DEFAULT))
    return None if file is None or (is_hidden and UNCLEAN not in file) else _is_true(file.get(UNCLEAN, ""))


def _is_true(value: str) -> bool:
    return value.strip().lower() == "true"


def guarded(
    cluster: Cluster,
    intents: Sequence[Intent],
    plan: Plan,
    *,
    accepted: bool = False,
    kafka_version: KafkaVersion | None = None,
) -> Plan:
    """The plan with a warning of what its intents allow; it needs an option where records may be lost at once."""
    allowed = newly_allowed(cluster, intents, kafka_version)
    if allowed.waiting:
        return replace(
            plan,
            warnings=(*plan.warnings, _allowed_in_words(allowed)),
            details={**plan.details, ACCEPTED: list(map(str, allowed.waiting))},
            needs=" and ".join(filter(None, (plan.needs, "" if accepted else WORD))),
        )
    if allowed.is_for_others:
        warning = (
            "a replica without the last committed records may then lead, and these are lost; "
            "`kctl elect unclean` chooses the one that loses least, and says how much"
        )
        return replace(plan, warnings=(*plan.warnings, warning))
    return plan


def _allowed_in_words(allowed: Allowed) -> str:
    file = "" if allowed.is_known else "if a controller's own file allows it, which cannot be read here, "
    return (
        f"{counted(len(allowed.waiting), 'partition')} without a leader ({allowed.waiting[0]}): {file}the next replica "
        "that is there is elected, however far behind it is; `kctl elect unclean` chooses the one that loses least"
    )


def refuse_unaccepted(
    cluster: Cluster,
    intents: Sequence[Intent],
    details: Mapping[str, object],
    kafka_version: KafkaVersion | None = None,
) -> None:
    """Raise Refused where intents allow unclean elections of partitions for which the option was not given."""
    allowed = newly_allowed(cluster, intents, kafka_version)
    known = details.get(ACCEPTED)
    accepted = set(known) if isinstance(known, list) else set()
    if unaccepted := tuple(tp for tp in allowed.waiting if str(tp) not in accepted):
        raise Refused(
            f"{_allowed_in_words(allowed._replace(waiting=unaccepted))}; nothing was written",
            f"add {WORD} if you want this",
        )
