"""A plan made from a cluster's state: what can be planned at all, the planner or Kafka's own algorithm, batches."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from kctl.cluster.batches import cut
from kctl.cluster.goals import Goal, Situation, ids
from kctl.cluster.moves import Move, moves_of
from kctl.cluster.placement import Draws, draw, place_replicas
from kctl.cluster.plan_files import identity_of
from kctl.cluster.planner import plan_placement
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan, and what it was made from. `notes` say what was left out and why."""

    now: Situation
    targets: Mapping[TopicPartition, Replicas]
    notes: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """See `kctl.cluster.plan_files.identity_of`."""
        return identity_of(self.targets)

    @property
    def origins(self) -> dict[TopicPartition, Replicas]:
        """Where the plan's partitions are now."""
        return {tp: self.now.replicas[tp] for tp in self.targets}

    @property
    def after(self) -> dict[TopicPartition, Replicas]:
        """The whole cluster once the plan is carried out."""
        return {**self.now.replicas, **self.targets}

    def moves(self) -> list[Move]:
        """The partitions that change, with sizes where known."""
        return list(moves_of(self.targets, self.origins, self.now.sizes))

    def batches(
        self, *, most_bytes: int, most_data: int | None, most_moves: int | None
    ) -> list[dict[TopicPartition, Replicas]]:
        """The plan cut into batches."""
        data = {move.partition: move.data for move in self.moves()}
        return cut(
            self.targets,
            lambda tp: data.get(tp, 0),
            most_bytes=most_bytes,
            most_data=most_data,
            most_moves=most_moves,
        )


def situation_of(
    state: ClusterState, goal: Goal, sizes: Mapping[TopicPartition, int] | None
) -> tuple[Situation, tuple[str, ...]]:
    """What the planner needs, and notes on what it cannot plan.

    Raises Refused where partitions that the goal covers are being moved: their way back would be wrong.
    """
    notes = []
    replicas: dict[TopicPartition, Replicas] = {}
    moving, odd, lost, going = [], [], [], set()
    for tp in state.partitions():
        listed = state.topics[tp.topic].partitions[tp.partition]
        if tp.topic in state.deleting:
            going.add(tp.topic)
        elif not listed or len(set(listed)) < len(listed):
            odd.append(tp)
        elif (found := state.partition_states.get(tp)) and not any(map(state.is_alive, found.isr)):
            lost.append(tp)  # nobody could copy it: its move would never end
        else:
            if state.is_reassigning(tp) and goal.covers(tp):
                moving.append(tp)
            replicas[tp] = listed
    if moving:
        raise Refused(
            f"{_some(moving)} {'is' if len(moving) == 1 else 'are'} being moved now",
            "wait for it (`kctl reassign status`), then plan",
        )
    if odd:
        notes.append(f"left out, for their replica lists are empty or name a broker twice: {_some(odd)}")
    if lost:
        notes.append(f"left out, for no replica in sync is alive: {_some(lost)}")
    if going:
        notes.append(f"left out, for they are marked for deletion: {', '.join(sorted(going))}")
    racks = {broker: state.brokers[broker].rack for broker in state.live_brokers}
    return Situation(replicas=replicas, racks=racks, sizes=sizes), tuple(notes)


def plan(state: ClusterState, goal: Goal, sizes: Mapping[TopicPartition, int] | None = None) -> Planned:
    """The plan with the fewest moves. Raises what the planner raises."""
    now, notes = situation_of(state, goal, sizes)
    return Planned(now=now, targets=plan_placement(now, goal), notes=notes)


def plan_like_kafka(
    state: ClusterState,
    goal: Goal,
    *,
    seed: int | None = None,
    draws: Draws | None = None,
    sizes: Mapping[TopicPartition, int] | None = None,
) -> Planned:
    """What `kafka-reassign-partitions --generate` proposes: every topic placed anew, whatever it was before.

    Kafka draws at random; a seed or draws make it repeatable. Source:
    core/src/main/scala/kafka/admin/ReassignPartitionsCommand.scala @ 2.8.2 (`generateAssignment`)
    """
    now, notes = situation_of(state, goal, sizes)
    dead = goal.brokers - set(now.racks)
    if dead:
        raise Refused(f"brokers {ids(dead)} are not alive", f"alive are {ids(now.racks)}")
    missing = (goal.topics or frozenset()) - {tp.topic for tp in now.replicas}
    if missing:
        raise KctlError(f"no topic {', '.join(sorted(missing))}", "`kctl topic list` lists them")
    racks = {b: now.racks[b] if goal.rack_aware else None for b in sorted(goal.brokers)}
    random = Random(seed)
    targets: dict[TopicPartition, Replicas] = {}
    partitions: dict[str, list[TopicPartition]] = {}
    for tp in sorted(now.replicas):
        if goal.covers(tp):
            partitions.setdefault(tp.topic, []).append(tp)
    for topic, listed in partitions.items():
        factor = goal.replication_factor or len(now.replicas[listed[0]])
        placed = place_replicas(racks, len(listed), factor, draws or draw(len(racks), random))
        targets |= {TopicPartition(topic, p): replicas for p, replicas in placed.items()}
    strangers = set(targets) - set(now.replicas)
    if strangers:
        raise Refused(f"topics whose partitions are not numbered from 0 on: {_some(sorted(strangers))}")
    changed = {tp: replicas for tp, replicas in targets.items() if replicas != now.replicas[tp]}
    return replace(Planned(now=now, targets=changed), notes=notes)


def _some(partitions: list[TopicPartition]) -> str:
    shown = ", ".join(map(str, partitions[:5]))
    return shown if len(partitions) <= 5 else f"{shown} and {len(partitions) - 5:,} more"
