"""Topics: created, deleted, given more partitions."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from formats.values import field
from formats.words import counted
from kctl.changes.kinds.codecs import REPLICAS, TEXTS
from kctl.cluster.intent import Intent, IntentCodec, Waited
from kctl.cluster.names import brokers_named
from kctl.cluster.state import NO_LEADER, ClusterState, Replicas
from kctl.cluster.versions import V0_11, V1_0
from kctl.errors import Refused
from kctl.model import Json, TopicPartition, command_line

LEADERLESS = "no replica of it is alive"
Configs = Mapping[str, str]


def without_controller(state: ClusterState) -> list[str]:
    """A warning where there is no controller."""
    if not state.has_controller:
        return ["there is no controller now: nothing happens until a broker becomes one"]
    return []


def why_stuck(state: ClusterState, name: str) -> list[str]:
    """What keeps the controller from deleting a topic now; a KRaft controller waits for nothing."""
    topic = state.topics.get(name)
    reasons = without_controller(state)
    if topic is None or state.quorum is not None:
        return reasons
    dead = sorted({id for ids in topic.partitions.values() for id in ids if not state.is_alive(id)})
    if dead:
        reasons.append(f"{brokers_named(dead)} {'is' if len(dead) == 1 else 'are'} not alive")
    if any(state.is_reassigning(TopicPartition(name, p)) for p in topic.partitions):
        reasons.append("its partitions are being reassigned")
    electing = state.election.partitions if state.election else {}
    if state.kafka_version < V0_11 and any(tp.topic == name for tp in electing):
        reasons.append("a preferred election of it is under way")
    return reasons


def _why_absent(topic: str, state: ClusterState) -> str:
    return state.why_not_read(f"topic {topic}") or f"topic {topic} is not there"


def _with_leaders(name: str, replicas: Mapping[int, Replicas], state: ClusterState) -> Waited:
    missing = []
    for partition, ids in sorted(replicas.items()):
        partition_state = state.partition_states.get(TopicPartition(name, partition))
        if partition_state is None or partition_state.leader == NO_LEADER:
            alive = any(state.is_alive(id) for id in ids)
            why = "; ".join(without_controller(state)) or (
                "the controller has not got to it" if alive else LEADERLESS
            )
            missing.append(f"{name}-{partition} has no leader: {why}")
    return Waited(len(replicas) - len(missing), len(replicas), tuple(missing))


class CreateTopic(Intent, frozen=True, kw_only=True):
    """A new topic with explicit replicas. Inverse: delete it."""

    kind: ClassVar[str] = "create-topic"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"replicas": REPLICAS, "configs": TEXTS}
    does: ClassVar[str] = "create topic {topic} with {replicas:partition}"
    topic: str
    replicas: Mapping[int, Replicas]
    configs: Configs = field(default_factory=dict)

    def inverse(self) -> Intent:
        return DeleteTopic(topic=self.topic)

    def how_far(self, state: ClusterState) -> Waited:
        """Every partition has a leader."""
        if self.topic not in state.topic_names:
            place = f"topic {self.topic}"
            hidden = [
                problem.reason for problem in state.problems if problem.place == place and problem.right
            ]
            # A right that is missing does not come by waiting.
            failed = f"{place} cannot be seen ({hidden[0]})" if hidden else ""
            return Waited(0, len(self.replicas), (_why_absent(self.topic, state),), failed)
        return _with_leaders(self.topic, self.replicas, state)

    def stands(self, state: ClusterState) -> bool:
        return self.topic in state.topics

    @property
    def topic_made(self) -> str:
        return self.topic

    def is_as_made(self, state: ClusterState) -> bool:
        topic = state.topics.get(self.topic)
        return topic is not None and dict(topic.partitions) == dict(self.replicas)


class DeleteTopic(Intent, frozen=True, kw_only=True):
    """Mark a topic for deletion. No inverse: once the controller has read it nothing stops it."""

    kind: ClassVar[str] = "delete-topic"
    does: ClassVar[str] = "delete topic {topic}"
    final: ClassVar[str] = "no release stops a deletion that the controller has seen"
    topic: str

    def how_far(self, state: ClusterState) -> Waited:
        """Marker and topic are gone. A marker that goes while the topic stays means that deletion is off (1.0+)."""
        marked, exists = self.topic in state.deleting, self.topic in state.topic_names
        if (why := state.why_unseen(self.topic)) is not None and not exists:
            return Waited(0, 1, failed=f"topic {self.topic} cannot be seen ({why})")
        if not marked and not exists:
            return Waited(1, 1)
        if exists and not marked:
            return Waited(
                0, 1, failed="the controller took the request away: delete.topic.enable is false on it"
            )
        reasons = why_stuck(state, self.topic)
        if not reasons and state.kafka_version < V1_0:
            reasons = ["delete.topic.enable may be false: then the topic goes when it is turned on"]
        return Waited(0, 1, tuple(reasons) or ("the brokers are at it",))

    def lost_with(
        self, state: ClusterState, ends: Callable[[], Mapping[TopicPartition, int]]
    ) -> Sequence[str]:
        """What was written into the topic since it was created."""
        known = ends()
        partitions = [tp for tp in state.partition_states if tp.topic == self.topic]
        if records := sum(known.get(tp, 0) for tp in partitions):
            verb = "was" if records == 1 else "were"
            return (
                f"{counted(records, 'record')} {verb} written to topic {self.topic} since, and would be deleted with it",
            )
        if unknown := sum(tp not in known for tp in partitions):
            return (
                f"it is unknown whether anything was written to {counted(unknown, 'partition')} of topic {self.topic} since",
            )
        return ()

    def refuse_changed(
        self,
        state: ClusterState,
        change_id: str,
        earlier: Sequence[Intent],
        noted: Callable[[str], Mapping[str, Json]],
    ) -> None:
        made = next((i for i in earlier if isinstance(i, CreateTopic) and i.topic == self.topic), None)
        if made is None:
            raise Refused(
                f"change {change_id} did not create topic {self.topic}, which its undo would delete",
                f"delete it yourself with `{command_line('kctl topic delete', [self.topic])}` if it is not needed",
            )
        topic = state.topics.get(made.topic)
        if topic is None:
            raise Refused(f"topic {made.topic} no longer exists", "there is nothing left to undo")
        if not made.is_as_made(state):
            raise Refused(
                f"topic {made.topic} has been changed since: its partitions are not those that were created",
                f"delete it yourself with `{command_line('kctl topic delete', [made.topic])}` if it is not needed",
            )
        recorded = noted(made.topic)
        known = (recorded.get("created_at"), topic.created_at), (recorded.get("topic_id"), topic.topic_id)
        if any(then is not None and then != now for then, now in known):
            raise Refused(
                f"topic {made.topic} was deleted and created again by someone else",
                f"delete it yourself with `{command_line('kctl topic delete', [made.topic])}` if it is not needed",
            )


class AddPartitions(Intent, frozen=True, kw_only=True):
    """New partitions, numbered on from the present ones. No inverse."""

    kind: ClassVar[str] = "add-partitions"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"replicas": REPLICAS}
    does: ClassVar[str] = "add {replicas:partition} to topic {topic}"
    final: ClassVar[str] = "Kafka cannot take partitions away from a topic"
    topic: str
    replicas: Mapping[int, Replicas]  # of the new partitions only

    def how_far(self, state: ClusterState) -> Waited:
        """The topic still has the new partitions, and each has a leader."""
        topic = state.topics.get(self.topic)
        if topic is None:
            return Waited(0, len(self.replicas), (_why_absent(self.topic, state),))
        lost = [p for p in self.replicas if p not in topic.partitions]
        if lost:
            return Waited(0, len(self.replicas), (f"partition {lost[0]} of {self.topic} no longer exists",))
        return _with_leaders(self.topic, self.replicas, state)

    def stands(self, state: ClusterState) -> bool:
        topic = state.topics.get(self.topic)
        return topic is not None and self.replicas.keys() <= topic.partitions.keys()
