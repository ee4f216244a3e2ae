"""How many replicas each broker should end with, at least and at most.

Even means floor and ceiling of the mean, except where racks forbid it: a rack of few brokers can hold each
partition once only, so the others take what it cannot.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kctl.cluster.replica_sets import ReplicaSets


class Bounds(NamedTuple):
    """By broker index."""

    least: list[int]
    most: list[int]


def even_bounds(sets: ReplicaSets, targets: Sequence[int]) -> Bounds:
    """Floor and ceiling of each target's fair share of all replicas; nothing for the others."""
    brokers = len(sets.load)
    least, most = [0] * brokers, [0] * brokers
    total = sum(sets.replication_factors)
    if sets.rack is None:
        shares = {b: (total, len(targets)) for b in targets}
    else:
        shares = _shares_by_rack(sets, targets, total)
    for broker, (replicas, among) in shares.items():
        least[broker], most[broker] = replicas // among, -(-replicas // among)
    return Bounds(least, most)


def _shares_by_rack(sets: ReplicaSets, targets: Sequence[int], total: int) -> dict[int, tuple[int, int]]:
    """The share of each broker as (replicas, brokers that share them), no rack above what it can hold."""
    assert sets.rack is not None
    racks: dict[int, list[int]] = {}
    for broker in targets:
        racks.setdefault(sets.rack[broker], []).append(broker)
    bounds = {rack: _rack_bounds(sets, len(brokers), len(racks)) for rack, brokers in racks.items()}
    shares: dict[int, tuple[int, int]] = {}
    free = dict(racks)
    while free:
        among = sum(map(len, free.values()))
        above: dict[int, int] = {}
        below: dict[int, int] = {}
        violated = 0
        for rack, brokers in free.items():
            lowest, highest = bounds[rack]
            if total * len(brokers) > highest * among:
                above[rack] = highest
                violated += total * len(brokers) - highest * among
            elif total * len(brokers) < lowest * among:
                below[rack] = lowest
                violated += total * len(brokers) - lowest * among
        # One kind at a time, the one that weighs more: fixing it moves the share of the others the other way.
        fixed = above if violated > 0 or not below else below
        if not fixed:
            shares.update({b: (total, among) for brokers in free.values() for b in brokers})
            break
        for rack, replicas in fixed.items():
            brokers = free.pop(rack)
            shares.update({b: (replicas, len(brokers)) for b in brokers})
            total -= replicas
    return shares


def _rack_bounds(sets: ReplicaSets, brokers: int, racks: int) -> tuple[int, int]:
    """The fewest and most replicas that a rack of so many brokers can hold."""
    lowest = highest = 0
    for factor, needed in zip(sets.replication_factors, sets.racks_needed, strict=True):
        lowest += needed == racks
        highest += min(brokers, factor - needed + 1)
    return lowest, highest


def level_bounds(sets: ReplicaSets, targets: Sequence[int]) -> Bounds:
    """No broker must give anything; what must move fills the emptiest brokers to one level."""
    brokers = len(sets.load)
    waiting = sum(
        factor - sum(sets.may_stay[b] for b in members)
        for factor, members in zip(sets.replication_factors, sets.members, strict=True)
    )
    loads = sorted(sets.load[b] for b in targets)
    level = 0
    for count in range(1, len(loads) + 1):
        # The level at which the `count` emptiest hold everything; right once the next one is above it.
        level = -(-(sum(loads[:count]) + waiting) // count)
        if count == len(loads) or loads[count] >= level:
            break
    most = [0] * brokers
    for broker in targets:
        most[broker] = max(level, sets.load[broker])
    return Bounds([0] * brokers, most)
