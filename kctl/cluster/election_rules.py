"""Who becomes leader, by the rules of a ZooKeeper controller of a given version.

Assignment order, not the ISR's, decides since 0.8.2; an unclean election takes the first live replica, not the
longest log; the last member never leaves the ISR (before 1.1: only where unclean elections are off).

Source: core/src/main/scala/kafka/controller/PartitionLeaderSelector.scala @ 0.8.1.1, 0.8.2.1, 0.10.2.1;
core/src/main/scala/kafka/controller/Election.scala @ 2.8.2; .../ReplicaStateMachine.scala @ 2.8.2
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kctl.cluster.state import NO_LEADER, Replicas
from kctl.cluster.versions import V0_8_2, V0_10_1, V1_1, V2_4, KafkaVersion


class Elected(NamedTuple):
    """The outcome of an election."""

    leader: int
    isr: Replicas
    leader_epoch: int
    unclean: bool = False


class NotElected(NamedTuple):
    """No leader was found (`reason`), or none was needed (`not_needed`, `not_in_isr`)."""

    reason: str


class ElectionRules(NamedTuple):
    """What differs between versions."""

    offline_by_isr_order: bool = False  # until 0.8.1
    shutdown_by_isr_order: bool = False  # until 0.10.0 (KAFKA-3670)
    last_isr_member_always_stays: bool = True  # from 1.1
    new_controller_leaves_the_dead: bool = False  # until 2.3: as they stand (KAFKA-3143)


def rules_of(version: KafkaVersion) -> ElectionRules:
    """The rules of a version."""
    return ElectionRules(version < V0_8_2, version < V0_10_1, version >= V1_1, version < V2_4)


def elect_offline(
    replicas: Sequence[int],
    isr: Sequence[int],
    live: Collection[int],
    leader_epoch: int,
    *,
    unclean: bool,
    by_isr_order: bool = False,
) -> Elected | NotElected:
    """A leader for a partition whose own is gone."""
    if by_isr_order and (first := next((b for b in isr if b in live), None)) is not None:
        return Elected(first, tuple(b for b in isr if b in live), leader_epoch + 1)
    for broker in replicas:
        if broker in live and broker in isr:
            return Elected(broker, tuple(b for b in isr if b in live), leader_epoch + 1)
    if not unclean:
        return NotElected("no_isr_replica_online")
    leader = next((b for b in replicas if b in live), None)
    if leader is None:
        return NotElected("no_replica_online")
    return Elected(leader, (leader,), leader_epoch + 1, unclean=True)


def elect_for_shutdown(
    replicas: Sequence[int],
    isr: Sequence[int],
    live_or_shutting_down: Collection[int],
    shutting_down: Collection[int],
    leader_epoch: int,
    *,
    by_isr_order: bool = False,
) -> Elected | NotElected:
    """The next leader when brokers shut down in order; all that shut down leave the ISR."""
    stays = tuple(b for b in isr if b not in shutting_down)
    for broker in isr if by_isr_order else replicas:
        if broker in live_or_shutting_down and broker in stays:
            return Elected(broker, stays, leader_epoch + 1)
    return NotElected("no_other_isr_replica")


def remove_from_isr(
    replica: int, leader: int, isr: Sequence[int], leader_epoch: int, *, last_stays: bool
) -> Elected | NotElected:
    """The ISR after a replica goes offline. `last_stays`: the only member stays, without a leader."""
    if replica not in isr:
        return NotElected("not_in_isr")
    rest = tuple(b for b in isr if b != replica)
    if not rest and last_stays:
        rest = tuple(isr)
    return Elected(NO_LEADER if leader == replica else leader, rest, leader_epoch + 1)


class Imbalance(NamedTuple):
    """For a preferred leader: the partitions that it does not lead, and all that prefer it."""

    not_led: int
    total: int


def leader_imbalance(partitions: Mapping[object, tuple[Sequence[int], int]]) -> dict[int, Imbalance]:
    """By preferred leader; a partition is given as its replicas and its leader."""
    imbalances: dict[int, Imbalance] = {}
    for replicas, leader in partitions.values():
        if replicas:
            before = imbalances.get(replicas[0], Imbalance(0, 0))
            imbalances[replicas[0]] = Imbalance(before.not_led + (leader != replicas[0]), before.total + 1)
    return dict(sorted(imbalances.items()))
