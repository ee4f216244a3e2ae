"""Elections: of preferred leaders, of unclean ones, of the controller."""

from collections.abc import Mapping
from typing import ClassVar

from kctl.changes.kinds.codecs import BY_PARTITION
from kctl.cluster.intent import Intent, IntentCodec, Waited
from kctl.cluster.state import ClusterState, Replicas
from kctl.model import TopicPartition

PARTITIONS = IntentCodec(
    lambda value: [{"topic": tp.topic, "partition": tp.partition} for tp in value],
    lambda value: tuple(TopicPartition(row["topic"], row["partition"]) for row in value),
)


class ElectPreferred(Intent, frozen=True, kw_only=True):
    """Ask the controller to make each partition's first replica its leader. No inverse."""

    kind: ClassVar[str] = "elect-preferred"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"partitions": PARTITIONS}
    does: ClassVar[str] = "elect the preferred leader of {partitions:partition}"
    final: ClassVar[str] = "who leads follows from the order of the replicas; reassign to change it"
    partitions: tuple[TopicPartition, ...]

    @property
    def may_be_lost(self) -> bool:
        """True: an elected leader may have lost the lead again before kctl goes on."""
        return True

    def how_far(self, state: ClusterState) -> Waited:
        """The progress of an election; the controller removes the request whatever the result."""
        missing = []
        for tp in self.partitions:
            replicas, leader = state.replicas(tp), state.leader(tp)
            if (why := state.why_unseen(tp.topic)) is not None:
                missing.append(f"{tp} cannot be seen ({why})")
            elif replicas and leader != replicas[0]:
                missing.append(f"{tp} is led by {leader}, not by {replicas[0]}")
        done = len(self.partitions) - len(missing)
        if state.election is not None:
            # Having all leaders does not end the wait: the next request needs this one removed.
            return Waited(min(done, len(self.partitions) - 1), len(self.partitions), tuple(missing))
        failed = f"not all of them are seen to be elected: {'; '.join(missing[:3])}" if missing else ""
        return Waited(done, len(self.partitions), tuple(missing), failed)


class ElectUnclean(Intent, frozen=True, kw_only=True):
    """Make a replica outside the ISR the leader of each partition that has none. No inverse.

    `chosen` has one broker a partition; a controller takes the first live replica, so that the order of replicas is
    changed for a moment where that is another one. `origins` is the order that stays.
    """

    kind: ClassVar[str] = "elect-unclean"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"chosen": BY_PARTITION, "origins": BY_PARTITION}
    does: ClassVar[str] = "elect an unclean leader of {chosen:partition}"
    final: ClassVar[str] = "what only other replicas had is truncated when they come back"
    chosen: Mapping[TopicPartition, Replicas]
    origins: Mapping[TopicPartition, Replicas]

    def how_far(self, state: ClusterState) -> Waited:
        """The progress: the chosen brokers lead, and the replicas are in their order again."""
        missing, failed = [], ""
        for tp, (broker,) in self.chosen.items():
            leader = partition_state.leader if (partition_state := state.partition_states.get(tp)) else -1
            if leader == broker and state.replicas(tp) == tuple(self.origins[tp]):
                continue
            missing.append(f"{tp} is led by {leader}, not by {broker}")
            if leader != broker and state.is_alive(leader):
                failed = f"broker {leader} leads {tp}, not {broker}"
        return Waited(len(self.chosen) - len(missing), len(self.chosen), tuple(missing), failed)


class MoveController(Intent, frozen=True, kw_only=True):
    """Make another broker controller (by deleting `/controller`). No inverse."""

    kind: ClassVar[str] = "move-controller"
    does: ClassVar[str] = "move the controller away from broker {broker_id}"
    final: ClassVar[str] = "any broker may be controller, and none can be chosen"
    broker_id: int  # the present controller

    def how_far(self, state: ClusterState) -> Waited:
        """Whether there is a controller again."""
        return Waited(int(state.has_controller), 1, ("there is no controller yet",))
