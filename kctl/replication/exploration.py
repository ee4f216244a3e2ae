"""Random faults that test the protocol's promises, and the shortest sequence that breaks one.

Promises: while every election was clean, a committed record stays on the leader at its offset; replicas that are
up agree below their high watermarks. Seeds make runs repeatable.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from formats.values import Struct
from kctl.replication.rules import ReplicationRules
from kctl.replication.scenario import ScenarioRun, Step

EPISODE = 40  # steps until a new partition is started
SHORTENED = 10  # so many sequences are shortened; there may be thousands
WEIGHTS = {
    "produce": 4,
    "fetch": 8,
    "crash": 4,
    "restart": 7,
    "elect": 3,
    "checkpoint": 1,
    "flush": 2,
    "shrink-isr": 1,
}


class Violation(Struct, frozen=True):
    """A broken promise, and the steps that lead to it."""

    promise: str  # committed_record_lost, logs_differ_below_high_watermark
    offset: int
    record: str | None
    brokers: tuple[int, ...]
    steps: tuple[Step, ...]
    found_at: int


Broken = tuple[str, int, str | None, tuple[int, ...]]
"""A broken promise, the offset, the lost record if one is lost, and the brokers."""


def explore(
    rules: ReplicationRules,
    *,
    steps: int,
    seed: int,
    brokers: Sequence[int] = (1, 2, 3),
    power_failures: bool = False,
) -> Iterator[Violation]:
    """Broken promises within so many random steps; the steps of the first ten are made as short as possible."""
    choose = random.Random(seed)
    brokers_used, steps_taken = brokers, list[Step]()
    run, violations = ScenarioRun.start(rules, brokers_used, unclean=False), 0
    for number in range(1, steps + 1):
        step = _random_step(choose, run, power_failures)
        steps_taken.append(step)
        run.take(step)
        broken = _broken(run)
        if broken is not None:
            violations += 1
            short = tuple(steps_taken)
            if violations <= SHORTENED:
                short, broken = _shortened(rules, brokers_used, short, broken)
            yield Violation(*broken, short, number)
        if broken is not None or len(steps_taken) >= EPISODE:
            brokers_used, steps_taken = (brokers if choose.random() < 0.3 else brokers[:2]), []
            run = ScenarioRun.start(rules, brokers_used, unclean=False)


def _random_step(choose: random.Random, run: ScenarioRun, power_failures: bool) -> Step:
    """A step that can do something now; mostly brokers are up and fetch."""
    replicas, leader = run.partition.replicas, run.partition.leader
    up = [broker_id for broker_id, replica in replicas.items() if replica.up]
    followers = [broker_id for broker_id in up if broker_id != leader]
    who = dict.fromkeys(("crash", "flush", "checkpoint"), up)
    who |= {"fetch": followers if run.leading_replica else [], "shrink-isr": followers}
    who["restart"] = [broker_id for broker_id in replicas if broker_id not in up]
    possible = [action for action in WEIGHTS if who.get(action, [0])]
    action = choose.choices(possible, [WEIGHTS[name] for name in possible])[0]
    if action == "crash" and power_failures and choose.random() < 0.5:
        return Step("power-failure", tuple(choose.sample(up, choose.randint(1, len(up)))))
    if action in ("produce", "elect"):
        return Step(action, count=choose.randint(1, 2) if action == "produce" else 1)
    return Step(action, (choose.choice(who.get(action, up)),))


def _broken(run: ScenarioRun) -> Broken | None:
    if run.unclean_elections == 0:
        lost = run.lost()
        if lost:
            return "committed_record_lost", lost[0].offset, lost[0].record, (run.partition.leader,)
    differing = run.diverged(below_high_watermark=True)
    if differing and run.leading_replica is not None:
        pair, offset = next(iter(differing.items()))
        return "logs_differ_below_high_watermark", offset, None, pair
    return None


def _outcome(rules: ReplicationRules, brokers: Sequence[int], steps: Sequence[Step]) -> Broken | None:
    run = ScenarioRun.start(rules, brokers, unclean=False)
    for step in steps:
        run.take(step)
        broken = _broken(run)
        if broken is not None:
            return broken
    return None


def _shortened(
    rules: ReplicationRules, brokers: Sequence[int], steps: tuple[Step, ...], broken: Broken
) -> tuple[tuple[Step, ...], Broken]:
    """The steps without those that are not needed to break the same promise, and how they break it."""
    index = len(steps) - 1
    while index >= 0:
        without = steps[:index] + steps[index + 1 :]
        outcome = _outcome(rules, brokers, without)
        if outcome is not None and outcome[0] == broken[0]:
            broken = outcome
            steps, index = (
                without,
                len(without),
            )  # from the end again: earlier steps may have become unnecessary
        index -= 1
    return steps, broken
