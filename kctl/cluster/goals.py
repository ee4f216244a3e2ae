"""What a reassignment is to achieve, and whether the cluster can.

`brokers` and `add` even the brokers out; the others move only what they must. Shrinking a replication
factor is never a result, only what `replication_factor` asked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kctl.cluster.placement import Racks, is_rack_aware
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import TopicPartition

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Where every replica of the cluster is, which brokers live, and how large partitions are."""

    replicas: Mapping[TopicPartition, Replicas]
    racks: Racks  # the live brokers
    sizes: Mapping[TopicPartition, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What the operator asked for; empty fields ask for nothing."""

    brokers: frozenset[int] = frozenset()
    add: frozenset[int] = frozenset()
    drain: frozenset[int] = frozenset()
    replace: Mapping[int, int] = field(default_factory=dict)
    replication_factor: int | None = None
    topics: frozenset[str] | None = None
    rack_aware: bool = True

    def covers(self, tp: TopicPartition) -> bool:
        """Whether the partition may be touched."""
        return self.topics is None or tp.topic in self.topics

    @property
    def evens_out(self) -> bool:
        """Whether the number of replicas of brokers is to become even."""
        return bool(self.brokers or self.add)


def check_goal(now: Situation, goal: Goal) -> None:
    """Raise what cannot be: targets that are dead, too few brokers, topics that are not there."""
    targets = goal.brokers | goal.add | frozenset(goal.replace.values())
    dead = targets - set(now.racks)
    if dead:
        raise Refused(f"brokers {ids(dead)} are not alive", f"alive are {ids(now.racks)}")
    missing = (goal.topics or frozenset()) - {tp.topic for tp in now.replicas}
    if missing:
        raise KctlError(f"no topic {', '.join(sorted(missing))}", "`kctl topic list` lists them")
    if goal.replication_factor is not None and goal.replication_factor < 1:
        raise BadValue(f"replication factor {goal.replication_factor}; it must be larger than 0")
    known = set(now.racks).union(*now.replicas.values())
    strangers = (goal.drain | frozenset(goal.replace)) - known
    if strangers:
        raise BadValue(f"brokers {ids(strangers)} are neither alive nor hold a replica")
    if len(set(goal.replace.values())) < len(goal.replace):
        raise BadValue("two brokers cannot be replaced by the same one")
    if goal.rack_aware:
        is_rack_aware(now.racks)  # raises where only some brokers have a rack
    _check_numbers(now, goal)


def _check_numbers(now: Situation, goal: Goal) -> None:
    takers, leaving = receivers(now, goal), leavers(now, goal)
    for tp, replicas in now.replicas.items():
        factor = goal.replication_factor or len(replicas)
        if goal.covers(tp) and factor > len(takers) and factor > len(takers | (set(replicas) - leaving)):
            raise Refused(
                f"{tp} needs {factor} brokers and may only use {ids(takers) or 'none'}",
                "a replication factor shrinks only where --replication-factor asks for it",
            )


def leavers(now: Situation, goal: Goal) -> frozenset[int]:
    """Brokers that may keep nothing of what the goal covers."""
    if goal.brokers:
        return frozenset().union(*now.replicas.values()) - goal.brokers
    return goal.drain | frozenset(goal.replace)


def receivers(now: Situation, goal: Goal) -> set[int]:
    """Live brokers that may take replicas."""
    if goal.brokers:
        return set(goal.brokers)
    return set(now.racks) - goal.drain - set(goal.replace)


def ids(brokers: Iterable[int]) -> str:
    """Broker ids as people write them: `1, 2, 5`."""
    return ", ".join(map(str, sorted(brokers)))
