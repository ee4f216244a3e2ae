"""Which brokers hold which partition while a plan is being made, and which single moves are legal.

Brokers and partitions are indexes here, for speed: a plan for 300,000 replicas is made of millions of
these steps. A replica that must go somewhere is either still on a broker that may keep nothing, or waits
NOWHERE (a replication factor that grows). Racks are a hard constraint: after every move the partition can
still reach as many racks as `racks_needed` says.
"""

from collections.abc import Iterator, Sequence

NOWHERE = -1


class ReplicaSets:
    """The members of every partition; `move` changes one, `may_move` says whether it is allowed."""

    def __init__(
        self,
        current: Sequence[Sequence[int]],
        replication_factors: Sequence[int],
        may_stay: Sequence[bool],
        rack: Sequence[int] | None,
        sizes: Sequence[int] | None,
    ) -> None:
        self.origin = current
        self.members = [list(replicas) for replicas in current]
        self.replication_factors = replication_factors
        self.may_stay = may_stay
        self.rack = rack
        self.sizes = sizes
        self.load = [0] * len(may_stay)
        self.bytes = [0] * len(may_stay)
        self.changed: set[int] = set()
        self.checks = 0  # steps looked at, a measure of the work done in searches
        # Ordered sets: what a plan does must not depend on hashes.
        self.held: list[dict[int, None]] = [{} for _ in may_stay]
        for partition, replicas in enumerate(current):
            for broker in replicas:
                self._add(partition, broker)
        self.racks_needed: list[int] = []

    def _add(self, partition: int, broker: int) -> None:
        self.held[broker][partition] = None
        self.load[broker] += 1
        if self.sizes is not None:
            self.bytes[broker] += self.sizes[partition]

    def _take(self, partition: int, broker: int) -> None:
        del self.held[broker][partition]
        self.load[broker] -= 1
        if self.sizes is not None:
            self.bytes[broker] -= self.sizes[partition]

    def move(self, partition: int, source: int, target: int) -> None:
        """Put a replica on another broker; either may be NOWHERE."""
        members = self.members[partition]
        if source == NOWHERE:
            members.append(target)
        elif target == NOWHERE:
            members.remove(source)
        else:
            members[members.index(source)] = target
        if source != NOWHERE:
            self._take(partition, source)
        if target != NOWHERE:
            self._add(partition, target)
        self.changed.add(partition)

    def racks_covered(self, partition: int) -> int:
        """Racks that hold a replica which may stay."""
        assert self.rack is not None
        return len({self.rack[b] for b in self.members[partition] if self.may_stay[b]})

    def may_move(self, partition: int, source: int, target: int) -> bool:
        """Whether the target may take this replica: not twice on a broker, racks still within reach."""
        members = self.members[partition]
        if target in members:
            return False
        if self.rack is None:
            return True
        rack, may_stay = self.rack, self.may_stay
        covered = {rack[target]}
        placed = 1
        for broker in members:
            if broker != source and may_stay[broker]:
                covered.add(rack[broker])
                placed += 1
        return len(covered) + self.replication_factors[partition] - placed >= self.racks_needed[partition]

    def cost(self, partition: int, source: int, target: int) -> int:
        """Moves more (1), the same (0) or fewer (-1) than before, counted against where replicas were at first."""
        origin = self.origin[partition]
        return (target not in origin) - (source != NOWHERE and source not in origin)

    def steps_from(self, source: int, targets: set[int], *, may_uproot: bool) -> dict[int, tuple[int, int]]:
        """For each target within one move of the source: the least cost, and a partition that has it.

        Without `may_uproot` only replicas that the plan moves anyway are sent on.
        """
        best: dict[int, tuple[int, int]] = {}
        dearer_than = {cost: [t for t in sorted(targets) if t != source] for cost in (0, 1)}
        # Every changed partition may lead back to its origin; beyond that a few reach all there is to reach.
        for partition in self._changed_at(source):
            cost = 0 if source not in self.origin[partition] else 1
            for target in self.origin[partition]:
                known = best.get(target)
                if target in targets and (known is None or known[0] > cost - 1):
                    self._note(best, partition, source, target, cost - 1)
            if cost and not may_uproot:
                continue
            if dearer_than[cost]:
                for target in dearer_than[cost]:
                    self._note(best, partition, source, target, cost)
                dearer_than[cost] = [t for t in dearer_than[cost] if t not in best or best[t][0] > cost]
        if may_uproot:
            missing = [t for t in dearer_than[1] if t not in best]
            for partition in self.held[source]:
                if not missing:
                    break
                if partition not in self.changed:
                    for target in missing:
                        self._note(best, partition, source, target, 1)
                    missing = [t for t in missing if t not in best]
        return best

    def _changed_at(self, broker: int) -> Iterator[int]:
        held = self.held[broker]
        if len(held) < len(self.changed):
            return (p for p in held if p in self.changed)
        return (p for p in sorted(self.changed) if p in held)

    def _note(
        self, best: dict[int, tuple[int, int]], partition: int, source: int, target: int, cost: int
    ) -> None:
        self.checks += 1
        known = best.get(target)
        if (known is None or known[0] > cost) and self.may_move(partition, source, target):
            best[target] = cost, partition
