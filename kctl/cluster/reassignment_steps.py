"""What a controller does with a reassignment, step by step: until 2.3 by memory, from 2.4 (KIP-455) by the topic.

The target is complete when all of it is in the ISR; extra members do not matter. Until 2.3 the list while
moving is a union in no order; from 2.4 it is the target first, and adding and removing replicas are stored.

Source: core/src/main/scala/kafka/controller/KafkaController.scala @ 0.8.2.1, 2.3.1, 2.8.2;
core/src/main/scala/kafka/controller/ControllerContext.scala @ 2.8.2
"""

from collections.abc import Sequence
from typing import NamedTuple

from kctl.cluster.versions import V0_10_1, KafkaVersion

Replicas = tuple[int, ...]


class Reassigning(NamedTuple):
    """A partition under reassignment as its topic stores it (2.4 and later)."""

    replicas: Replicas
    adding_replicas: Replicas
    removing_replicas: Replicas

    @property
    def target_replicas(self) -> Replicas:
        """Where it goes."""
        return tuple(b for b in self.replicas if b not in self.removing_replicas)

    @property
    def origin_replicas(self) -> Replicas:
        """Where it was; the order may be the target's."""
        return tuple(b for b in self.replicas if b not in self.adding_replicas)

    @property
    def is_being_reassigned(self) -> bool:
        """Whether anything is to be added or removed."""
        return bool(self.adding_replicas or self.removing_replicas)


def reassign_to(replicas: Sequence[int], adding: Sequence[int], target: Sequence[int]) -> Reassigning:
    """What a new target makes of a partition, running already or not: always counted from the origin."""
    origin = [b for b in replicas if b not in adding]
    return Reassigning(
        tuple(dict.fromkeys([*target, *origin])),
        tuple(b for b in target if b not in origin),
        tuple(b for b in origin if b not in target),
    )


def is_complete(target: Sequence[int], isr: Sequence[int]) -> bool:
    """Whether the controller ends the reassignment: every target replica is in the ISR."""
    return set(target) <= set(isr)


def accepts(current: Sequence[int], target: Sequence[int], live: Sequence[int], version: KafkaVersion) -> str:
    """What a controller until 2.3 says to a new entry: `started`, `already_assigned` or `failed_not_all_alive`.

    The check of liveness was dropped in 0.10.1 (KAFKA-4214): from then on such a move waits.
    """
    if list(current) == list(target):
        return "already_assigned"
    if version < V0_10_1 and not set(target) <= set(live):
        return "failed_not_all_alive"
    return "started"


class Step(NamedTuple):
    """The state after a step. Names of steps are those of the controller's own comments."""

    step: str
    replicas: Replicas
    adding_replicas: Replicas
    removing_replicas: Replicas
    leader: int
    isr: Replicas
    leader_epoch: int


def phases(original: Sequence[int], target: Sequence[int], leader_epoch: int) -> list[Step]:
    """The steps from 2.4 on, of a partition that its first replica leads and whose ISR is all of its replicas."""
    moving = reassign_to(original, (), target)
    leader, isr, epoch = original[0], tuple(original), leader_epoch

    def step(name: str, state: Reassigning = moving) -> Step:
        return Step(name, *state, leader, isr, epoch)

    steps = [step("initial", Reassigning(tuple(original), (), ()))]
    if not is_complete(target, isr):
        epoch += 1
        steps.append(step("A2"))
        isr = tuple(sorted({*isr, *moving.adding_replicas}))
        steps.append(step("ISR complete"))
    epoch += 1
    leader = leader if leader in target else next(b for b in target if b in isr)
    steps.append(step("B3"))
    isr, epoch = _without(isr, moving.removing_replicas, epoch)
    steps.append(step("B4"))
    steps.append(step("B6", Reassigning(tuple(target), (), ())))
    return steps


def classic_steps(original: Sequence[int], target: Sequence[int], leader_epoch: int) -> list[Step]:
    """The steps until 2.3; lists are sorted where the controller keeps them as sets. No adding, no removing."""
    leader, isr, epoch = original[0], tuple(original), leader_epoch
    assigned = tuple(sorted({*original, *target}))
    steps = [Step("initial", tuple(original), (), (), leader, isr, epoch)]
    if not is_complete(target, isr):
        epoch += 1
        steps += [Step(str(number), assigned, (), (), leader, isr, epoch) for number in (2, 3)]
        isr = assigned
        steps.append(Step("4", assigned, (), (), leader, isr, epoch))
    epoch += 1
    leader = leader if leader in target else next(b for b in target if b in isr)
    steps.append(Step("7", assigned, (), (), leader, isr, epoch))
    isr, epoch = _without(isr, [b for b in original if b not in target], epoch)
    steps.append(Step("8", assigned, (), (), leader, isr, epoch))
    steps += [Step(str(number), tuple(target), (), (), leader, isr, epoch) for number in (10, 11)]
    return steps


def _without(isr: Replicas, removed: Sequence[int], epoch: int) -> tuple[Replicas, int]:
    """One broker leaves the ISR at a time, each with a new leader epoch."""
    return tuple(b for b in isr if b not in removed), epoch + sum(b in isr for b in removed)
