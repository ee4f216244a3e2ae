"""The new placement for a goal: the fewest moves, deterministic; and the proposal of Kafka's own tool.

What must move, moves: replicas on brokers that are drained or left out, replication factors that grow. Where
the goal is evenness too, partitions in fewer racks than they could be are spread, and brokers give and take
until their counts differ by one at most, or by as little as racks allow. Then heads are chosen. `brokers` and `add`
even the brokers out; the other goals move only what they must. A replication factor shrinks only if
`replication_factor` says so.
"""

from collections.abc import Mapping, Sequence
from random import Random

from formats.values import Struct, field, replace
from formats.words import counted
from kctl.cluster.moves import Move, cut, ids, moves_of
from kctl.cluster.names import refuse_unknown
from kctl.cluster.placement import Draws, Racks, draw, is_rack_aware, place_replicas
from kctl.cluster.state import ClusterState, Replicas
from kctl.errors import BadValue, Refused
from kctl.model import TopicPartition, some
from kctl.operations.reassignment import rebalance
from kctl.operations.reassignment.plan_files import identity_of


class Situation(Struct, frozen=True, kw_only=True):
    """The replicas of the cluster, the live brokers, and the sizes of partitions."""

    replicas: Mapping[TopicPartition, Replicas]
    racks: Racks  # the live brokers
    sizes: Mapping[TopicPartition, int] | None = None
    left_out: frozenset[int] = frozenset()  # brokers with replicas that cannot be planned


class ReassignmentGoal(Struct, frozen=True, kw_only=True):
    """The goal of the operator; empty fields do nothing."""

    brokers: frozenset[int] = frozenset()
    add: frozenset[int] = frozenset()
    drain: frozenset[int] = frozenset()
    replace: Mapping[int, int] = field(default_factory=dict)
    replication_factor: int | None = None
    topics: frozenset[str] | None = None
    rack_aware: bool = True

    def covers(self, tp: TopicPartition) -> bool:
        """Whether the partition may be changed."""
        return self.topics is None or tp.topic in self.topics

    @property
    def evens_out(self) -> bool:
        """Whether to even out the number of replicas of brokers."""
        return bool(self.brokers or self.add)


def check_goal(now: Situation, goal: ReassignmentGoal) -> None:
    """Raise for an impossible goal: dead targets, too few brokers, unknown topics."""
    _check_targets(now, goal, goal.brokers | goal.add | frozenset(goal.replace.values()))
    if goal.replication_factor is not None and goal.replication_factor < 1:
        raise BadValue(
            f"replication factor {goal.replication_factor}; it must be larger than 0", "give 1 or more"
        )
    known = set(now.racks).union(now.left_out, *now.replicas.values())
    strangers = (goal.drain | frozenset(goal.replace)) - known
    if strangers:
        raise BadValue(
            f"no broker {ids(strangers)} is alive or holds a replica",
            "`kctl cluster brokers` shows the brokers",
        )
    if len(set(goal.replace.values())) < len(goal.replace):
        raise BadValue("two brokers cannot be replaced by the same one", "name a different broker for each")
    if goal.rack_aware:
        is_rack_aware(now.racks)  # raises if only some brokers have a rack
    _check_numbers(now, goal)


def _check_targets(now: Situation, goal: ReassignmentGoal, targets: frozenset[int]) -> None:
    if dead := targets - set(now.racks):
        raise Refused(f"brokers {ids(dead)} are not alive", f"alive are {ids(now.racks)}")
    refuse_unknown(goal.topics, {tp.topic for tp in now.replicas})


def _check_numbers(now: Situation, goal: ReassignmentGoal) -> None:
    takers, leaving = receivers(now, goal), leavers(now, goal)
    for tp, replicas in now.replicas.items():
        factor = goal.replication_factor or len(replicas)
        if goal.covers(tp) and factor > len(takers) and factor > len(takers | (set(replicas) - leaving)):
            raise Refused(
                f"{tp} needs {counted(factor, 'broker')} and may only use {ids(takers) or 'none'}",
                "only --replication-factor lowers a replication factor",
            )


def leavers(now: Situation, goal: ReassignmentGoal) -> frozenset[int]:
    """Brokers that must lose all replicas that the goal covers."""
    if goal.brokers:
        return frozenset().union(*now.replicas.values()) - goal.brokers
    return goal.drain | frozenset(goal.replace)


def receivers(now: Situation, goal: ReassignmentGoal) -> set[int]:
    """Live brokers that may get replicas."""
    if goal.brokers:
        return set(goal.brokers)
    return set(now.racks) - goal.drain - set(goal.replace)


def plan_placement(now: Situation, goal: ReassignmentGoal) -> dict[TopicPartition, Replicas]:
    """The new replica lists of the partitions that change, by topic and number; empty if nothing has to."""
    check_goal(now, goal)
    return _Planning(now, goal).result()


class _Planning:
    """One run: the goal in terms of indexes, and the way back."""

    def __init__(self, now: Situation, goal: ReassignmentGoal) -> None:
        self.now, self.goal = now, goal
        self.scope = sorted(tp for tp in now.replicas if goal.covers(tp))
        self.ids = sorted(set(now.racks).union(*now.replicas.values()))
        self.index = {broker: i for i, broker in enumerate(self.ids)}
        leaving = leavers(now, goal)
        self.may_stay = [broker not in leaving for broker in self.ids]
        taking = receivers(now, goal)
        self.targets = [i for i, broker in enumerate(self.ids) if broker in taking]
        self.rack = self._racks()
        index = self.index
        self.current = [tuple([index[b] for b in now.replicas[tp]]) for tp in self.scope]
        self.factors = [goal.replication_factor or len(replicas) for replicas in self.current]
        sizes = [now.sizes.get(tp, 0) for tp in self.scope] if now.sizes is not None else None
        self.sets = rebalance.ReplicaSets(self.current, self.factors, self.may_stay, self.rack, sizes)

    def _racks(self) -> list[int] | None:
        """A number for each broker's rack; a dead broker, whose rack is unknown, has its own. None: no racks."""
        racks = self.now.racks
        if not self.goal.rack_aware or not is_rack_aware(racks):
            return None
        names = {name: i for i, name in enumerate(sorted({str(rack) for rack in racks.values()}))}
        if len(names) < 2:
            return None
        return [names[str(racks[b])] if b in racks else len(names) + i for i, b in enumerate(self.ids)]

    def result(self) -> dict[TopicPartition, Replicas]:
        """The changed partitions with their new lists."""
        for old, new in self.goal.replace.items():
            self._replace(self.index[old], self.index[new])
        self._shrink()
        self._set_racks_needed()
        loads = list(self.sets.load)
        if self.goal.brokers:
            self._spread_over_racks()
        bounds = self._bounds()
        topics = {name: i for i, name in enumerate(sorted({tp.topic for tp in self.scope}))}
        topic_of = [topics[tp.topic] for tp in self.scope]
        rebalance.Rebalance(
            self.sets, bounds, topic_of, self.targets, loads, may_uproot=bool(self.goal.brokers)
        ).run()
        self._check_the_living()
        return self._ordered()

    def _replace(self, old: int, new: int) -> None:
        """Replace one broker by another unless it has the partition already; the rest is placed as in a drain."""
        for partition in list(self.sets.partitions_on[old]):
            if new not in self.sets.members[partition]:
                self.sets.move(partition, old, new)

    def _shrink(self) -> None:
        """Remove surplus replicas: from leavers first, then from repeated racks, then from the fullest brokers."""
        sets = self.sets
        for partition, members in enumerate(sets.members):
            while len(members) > self.factors[partition]:
                worst = max(members, key=lambda b: self._dispensable(partition, b))
                sets.move(partition, worst, rebalance.NOWHERE)

    def _dispensable(self, partition: int, broker: int) -> tuple[bool, bool, bool, int, int]:
        members = self.sets.members[partition]
        repeats = self.rack is not None and any(
            self.rack[member] == self.rack[broker] for member in members if member != broker
        )
        is_dead = self.ids[broker] not in self.now.racks
        place = members.index(broker)
        return not self.may_stay[broker], is_dead, repeats, place > 0, self.sets.load[broker]

    def _set_racks_needed(self) -> None:
        """Set the number of racks that each partition needs: the most possible to even out, otherwise what fewest moves allow."""
        if self.rack is None:
            return
        reachable = len({self.rack[b] for b in self.targets})
        for partition, factor in enumerate(self.factors):
            best = min(factor, reachable)
            if not self.goal.brokers:
                staying = sum(self.may_stay[b] for b in self.sets.members[partition])
                best = min(best, self.sets.racks_covered(partition) + factor - staying)
            self.sets.racks_needed.append(best)

    def _spread_over_racks(self) -> None:
        """Free replicas in repeated racks, of partitions that need more racks."""
        sets, rack = self.sets, self.rack
        if rack is None:
            return
        for partition, needed in enumerate(sets.racks_needed):
            while True:
                staying = [b for b in sets.members[partition] if self.may_stay[b]]
                covered = {rack[b] for b in staying}
                if len(covered) + self.factors[partition] - len(staying) >= needed:
                    break
                repeated = [b for b in staying if sum(rack[o] == rack[b] for o in staying) > 1]
                sets.move(partition, max(repeated, key=lambda b: (sets.load[b], -b)), rebalance.NOWHERE)

    def _bounds(self) -> rebalance.ReplicaBounds:
        sets = self.sets
        if self.goal.brokers:
            return rebalance.even_bounds(sets, self.targets)
        if self.goal.add:
            # The old brokers keep what they have and give; only the new ones must reach their share.
            even = rebalance.even_bounds(sets, self.targets)
            new = {self.index[b] for b in self.goal.add}
            most = [max(sets.load[b], m) if b not in new else m for b, m in enumerate(even.most)]
            return rebalance.ReplicaBounds(
                [min(sets.load[b], n) if b not in new else n for b, n in enumerate(even.least)], most
            )
        self._count_what_is_not_covered()
        return rebalance.level_bounds(sets, self.targets)

    def _count_what_is_not_covered(self) -> None:
        """Count other topics' replicas too: a drained replica goes where the whole cluster has most room."""
        sizes = self.now.sizes
        for tp, replicas in self.now.replicas.items():
            if not self.goal.covers(tp):
                for broker in replicas:
                    self.sets.load[self.index[broker]] += 1
                    self.sets.bytes[self.index[broker]] += sizes.get(tp, 0) if sizes else 0

    def _check_the_living(self) -> None:
        """Raise for a partition that moves and keeps a replica on a dead broker: the move would never finish."""
        alive = set(self.now.racks)
        stuck = {
            self.ids[broker]
            for partition in self.sets.changed
            for broker in self.sets.members[partition]
            if set(self.sets.members[partition]) != set(self.current[partition])
            and self.ids[broker] not in alive
        }
        if stuck:
            raise Refused(
                f"partitions that would move also have replicas on brokers {ids(stuck)}, which are not alive; "
                "their moves would never finish",
                f"drain those too (--drain {','.join(map(str, sorted(stuck | self.goal.drain)))})",
            )

    # --- order of the lists ---------------------------------------------------------------------------

    def _ordered(self) -> dict[TopicPartition, Replicas]:
        moved = [p for p in sorted(self.sets.changed) if set(self.sets.members[p]) != set(self.current[p])]
        lists = {p: in_order(self.current[p], self.sets.members[p], self.may_stay) for p in moved}
        if not self.goal.replace:
            self._choose_heads(lists)
        named = {p: tuple(self.ids[b] for b in replicas) for p, replicas in lists.items()}
        return {self.scope[p]: named[p] for p in sorted(named)}

    def _choose_heads(self, lists: dict[int, list[int]]) -> None:
        """Put a head first such that leaderships are as even as before, or more."""
        members: list[Sequence[int]] = list(self.current)
        heads: list[int | None] = [replicas[0] if replicas else None for replicas in self.current]
        before = rebalance.PreferredLeaders(list(heads), members, len(self.ids)).spread(self.targets)
        for partition, replicas in lists.items():
            members[partition] = replicas
            heads[partition] = heads[partition] if heads[partition] in replicas else None
        leaders = rebalance.PreferredLeaders(heads, members, len(self.ids))
        for partition, replicas in lists.items():
            if heads[partition] is None:
                staying = [b for b in replicas if b in self.current[partition]]
                leaders.choose(partition, staying + [b for b in replicas if b not in staying])
        orphaned = {p for p in lists if self.current[p][0] not in lists[p]}
        for movable in (orphaned, set(lists), set(range(len(members))) if self.goal.evens_out else set()):
            if movable and leaders.spread(self.targets) > max(1, 0 if self.goal.evens_out else before):
                leaders.even_out(movable, self.targets)
        for partition, now in enumerate(members):
            head = leaders.heads[partition]
            if head is not None and (partition in lists or head != now[0]):
                lists[partition] = [head, *(b for b in now if b != head)]


def in_order(before: Sequence[int], members: Sequence[int], may_stay: Sequence[bool]) -> list[int]:
    """The new list: replicas that stay keep their order, each new one takes the place of one that leaves."""
    new = [b for b in members if b not in before]
    result = []
    for broker in before:
        if broker in members:
            result.append(broker)
        elif new:
            result.append(new.pop(0))
    return result + new


class Planned(Struct, frozen=True, kw_only=True):
    """A plan, and its situation. `notes` say what was left out and why."""

    now: Situation
    targets: Mapping[TopicPartition, Replicas]
    notes: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """See `kctl.operations.reassignment.plan_files.identity_of`."""
        return identity_of(self.targets)

    @property
    def origins(self) -> dict[TopicPartition, Replicas]:
        """The present replicas of the plan's partitions."""
        return {tp: self.now.replicas[tp] for tp in self.targets}

    @property
    def after(self) -> dict[TopicPartition, Replicas]:
        """The replicas of the whole cluster after the plan."""
        return {**self.now.replicas, **self.targets}

    def moves(self) -> list[Move]:
        """The partitions that change, with sizes where known."""
        return list(moves_of(self.targets, self.origins, self.now.sizes))

    def batches(
        self, *, most_bytes: int, most_data: int | None, most_moves: int | None
    ) -> list[dict[TopicPartition, Replicas]]:
        """The plan cut into batches."""
        return cut(
            self.targets,
            {move.partition: move.data for move in self.moves()},
            most_bytes=most_bytes,
            most_data=most_data,
            most_moves=most_moves,
        )


def situation_of(
    state: ClusterState, goal: ReassignmentGoal, sizes: Mapping[TopicPartition, int] | None
) -> tuple[Situation, tuple[str, ...]]:
    """The planner's input, and notes on what it cannot plan.

    Raises Refused if partitions that the goal covers are being moved: their way back would be wrong.
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
        elif (partition_state := state.partition_states.get(tp)) and not any(
            state.is_replica_alive(tp, broker) for broker in partition_state.isr
        ):
            lost.append(tp)  # nothing to copy from: its move would never finish
        else:
            if state.is_reassigning(tp) and goal.covers(tp):
                moving.append(tp)
            replicas[tp] = listed
    if moving:
        raise Refused(
            f"{some(moving)} {'is' if len(moving) == 1 else 'are'} being moved now",
            "wait for it (`kctl reassign status`), then plan",
        )
    if odd:
        notes.append(f"left out, for their replica lists are empty or name a broker twice: {some(odd)}")
    if lost:
        notes.append(f"left out, for no replica in sync is alive: {some(lost)}")
    if going:
        notes.append(f"left out, for they are marked for deletion: {', '.join(sorted(going))}")
    racks = {broker: state.brokers[broker].rack for broker in state.live_brokers}
    left_out = frozenset(state.partitions()) - replicas.keys()
    held = (state.topics[tp.topic].partitions[tp.partition] for tp in left_out)
    return Situation(replicas=replicas, racks=racks, sizes=sizes, left_out=frozenset().union(*held)), tuple(
        notes
    )


def plan(
    state: ClusterState, goal: ReassignmentGoal, sizes: Mapping[TopicPartition, int] | None = None
) -> Planned:
    """The plan with the fewest moves."""
    now, notes = situation_of(state, goal, sizes)
    return Planned(now=now, targets=plan_placement(now, goal), notes=notes)


def plan_like_kafka(
    state: ClusterState,
    goal: ReassignmentGoal,
    *,
    seed: int | None = None,
    draws: Draws | None = None,
    sizes: Mapping[TopicPartition, int] | None = None,
) -> Planned:
    """The proposal of `kafka-reassign-partitions --generate`: every topic placed from scratch, whatever it was before.

    Kafka draws at random; a seed or draws make it repeatable. Source:
    core/src/main/scala/kafka/admin/ReassignPartitionsCommand.scala @ 2.8.2 (`generateAssignment`)
    """
    now, notes = situation_of(state, goal, sizes)
    _check_targets(now, goal, goal.brokers)
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
        raise Refused(
            f"topics whose partitions are not numbered from 0 on: {some(sorted(strangers))}",
            "`kctl topic describe` shows its partitions; leave these topics out with --topics",
        )
    changed = {tp: replicas for tp, replicas in targets.items() if replicas != now.replicas[tp]}
    return replace(Planned(now=now, targets=changed), notes=notes)
