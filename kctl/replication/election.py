"""Who leads: the controller's choices in ZooKeeper mode, and what an ISR looks like after.

Every decision that succeeds raises the leader epoch by one, also when the leader stays. In an unclean election
the assignment's order decides, not the longest log.

Source: core/src/main/scala/kafka/controller/PartitionLeaderSelector.scala @ 0.8.0, 0.8.2.1, 0.10.2.1;
core/src/main/scala/kafka/controller/Election.scala @ 2.8.2;
core/src/main/scala/kafka/controller/PartitionStateMachine.scala @ 0.8.2.1, 2.8.2;
core/src/main/scala/kafka/controller/ReplicaStateMachine.scala @ 2.8.2
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

NO_LEADER = -1
LEADER_DURING_DELETE = -2


class Order(enum.StrEnum):
    """In which order candidates are looked at."""

    ISR_ORDER = "isr_order"  # offline: 0.8.0 to 0.8.1.1; controlled shutdown: up to 0.9
    ASSIGNMENT_ORDER = "assignment_order"


class KeepLast(enum.StrEnum):
    """When the last ISR member stays in the stored ISR although it is gone."""

    WHEN_UNCLEAN_DISABLED = "when_unclean_disabled"  # 0.8.2 to 1.0
    ALWAYS = "always"  # 1.1 and later


class Elected(NamedTuple):
    """A decision: the leader, the ISR in Kafka's order, the epoch, and whether it was unclean."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int
    unclean: bool = False


class NotElected(NamedTuple):
    """No decision, and why; `needed` is False where the leader is already right."""

    why: str
    needed: bool = True


class Imbalance(NamedTuple):
    """Partitions whose preferred replica a broker is, and how many of them it does not lead."""

    not_led: int
    total: int
    triggers: bool


def elect_offline_partition(
    assignment: Sequence[int],
    isr: Sequence[int],
    live: Collection[int],
    leader_epoch: int,
    *,
    unclean_enabled: bool,
    order: Order = Order.ASSIGNMENT_ORDER,
) -> Elected | NotElected:
    """The leader of a partition that has none. Up to 0.8.1.1 unclean elections were always allowed."""
    candidates = isr if order is Order.ISR_ORDER else [r for r in assignment if r in isr]
    leader = next((r for r in candidates if r in live), None)
    if leader is not None:
        return Elected(leader, tuple(r for r in isr if r in live), leader_epoch + 1)
    if not unclean_enabled:
        return NotElected("no_isr_replica_online")
    leader = next((r for r in assignment if r in live), None)
    if leader is None:
        return NotElected("no_replica_online")
    return Elected(leader, (leader,), leader_epoch + 1, unclean=True)


def elect_new_partition(assignment: Sequence[int], live: Collection[int]) -> Elected | NotElected:
    """The first leader: the first assigned replica that is alive; the ISR is the live part of the assignment."""
    alive = tuple(r for r in assignment if r in live)
    return Elected(alive[0], alive, 0) if alive else NotElected("no_assigned_replica_alive")


def elect_preferred(
    assignment: Sequence[int],
    isr: Sequence[int],
    live: Collection[int],
    current_leader: int,
    leader_epoch: int,
) -> Elected | NotElected:
    """Back to the head of the assignment, if it is alive and in the ISR."""
    preferred = assignment[0]
    if preferred == current_leader:
        return NotElected("preferred_replica_leads", needed=False)
    if preferred not in live or preferred not in isr:
        return NotElected("preferred_replica_not_eligible")
    return Elected(preferred, tuple(isr), leader_epoch + 1)


def elect_reassign(
    target_replicas: Sequence[int], isr: Sequence[int], live: Collection[int], leader_epoch: int
) -> Elected | NotElected:
    """The leader after a reassignment: the first of the target that is alive and in the ISR."""
    leader = next((r for r in target_replicas if r in live and r in isr), None)
    if leader is None:
        return NotElected("no_target_replica_in_sync")
    return Elected(leader, tuple(isr), leader_epoch + 1)


def elect_controlled_shutdown(
    assignment: Sequence[int],
    isr: Sequence[int],
    live_or_shutting_down: Collection[int],
    shutting_down: Collection[int],
    leader_epoch: int,
    *,
    order: Order = Order.ASSIGNMENT_ORDER,
) -> Elected | NotElected:
    """The leader when brokers say goodbye: another ISR member; those that leave are taken out of the ISR."""
    candidates = isr if order is Order.ISR_ORDER else assignment
    leader = next(
        (r for r in candidates if r in isr and r in live_or_shutting_down and r not in shutting_down), None
    )
    if leader is None:
        return NotElected("no_other_isr_replica")
    return Elected(leader, tuple(r for r in isr if r not in shutting_down), leader_epoch + 1)


def remove_replica_from_isr(
    replica: int,
    leader: int,
    isr: Sequence[int],
    leader_epoch: int,
    *,
    unclean_enabled: bool,
    keep_last: KeepLast = KeepLast.ALWAYS,
) -> Elected | NotElected:
    """The state after a broker went away: out of the ISR, no leader (-1) if it led, the epoch one higher."""
    if replica not in isr:
        return NotElected("not_in_isr", needed=False)
    rest = tuple(r for r in isr if r != replica)
    if not rest and (keep_last is KeepLast.ALWAYS or not unclean_enabled):
        rest = tuple(isr)
    return Elected(NO_LEADER if leader == replica else leader, rest, leader_epoch + 1)


def leader_imbalance(
    partitions: Iterable[tuple[Sequence[int], int]], leader_imbalance_per_broker_percentage: int = 10
) -> dict[int, Imbalance]:
    """For each preferred broker what it does not lead; triggers when the ratio is strictly above the percentage."""
    counts: dict[int, list[int]] = {}
    for assignment, leader in partitions:
        count = counts.setdefault(assignment[0], [0, 0])
        count[0] += leader != assignment[0]
        count[1] += 1
    return {
        broker: Imbalance(missed, total, missed * 100 > total * leader_imbalance_per_broker_percentage)
        for broker, (missed, total) in counts.items()
    }
