"""The fewest moves that bring every replica onto an allowed broker and every broker between its bounds.

The problem is a flow of least cost: replicas leave brokers that hold too many (or may hold none) for
brokers that hold too few, a replica back at its origin costs nothing. Nearly all of it are single moves,
taken greedily, each of which is a shortest path; what is left takes shortest paths through other brokers,
which send on what they hold. Where even those end nowhere the bound of a broker gives way, never the plan.

Brokers and partitions are indexes here, for speed: a plan for 300,000 replicas is made of millions of these steps.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple
from zlib import crc32

NOWHERE = -1


class ReplicaSets:
    """The members of every partition; `move` changes one, `may_move` says whether it is allowed.

    A replica that must go somewhere is either still on a broker that may keep nothing, or waits NOWHERE (a replication
    factor that grows). Racks are a hard constraint: after every move the partition can still reach as many racks as
    `racks_needed` says.
    """

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
        self.checks = 0  # steps examined, a measure of the work of searches
        # Ordered sets: what a plan does must not depend on hashes.
        self.partitions_on: list[dict[int, None]] = [{} for _ in may_stay]
        for partition, replicas in enumerate(current):
            for broker in replicas:
                self._add(partition, broker)
        self.racks_needed: list[int] = []

    def _add(self, partition: int, broker: int) -> None:
        self.partitions_on[broker][partition] = None
        self.load[broker] += 1
        if self.sizes is not None:
            self.bytes[broker] += self.sizes[partition]

    def _take(self, partition: int, broker: int) -> None:
        del self.partitions_on[broker][partition]
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
        """Moves more (1), the same (0) or fewer (-1) than before, compared with the original placement."""
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
            for partition in self.partitions_on[source]:
                if not missing:
                    break
                if partition not in self.changed:
                    for target in missing:
                        self._note(best, partition, source, target, 1)
                    missing = [t for t in missing if t not in best]
        return best

    def _changed_at(self, broker: int) -> Iterator[int]:
        partitions = self.partitions_on[broker]
        if len(partitions) < len(self.changed):
            return (p for p in partitions if p in self.changed)
        return (p for p in sorted(self.changed) if p in partitions)

    def _note(
        self, best: dict[int, tuple[int, int]], partition: int, source: int, target: int, cost: int
    ) -> None:
        self.checks += 1
        known = best.get(target)
        if (known is None or known[0] > cost) and self.may_move(partition, source, target):
            best[target] = cost, partition


class ReplicaBounds(NamedTuple):
    """How many replicas each broker, by index, should end with.

    Even means floor and ceiling of the mean, except where racks forbid it: a rack of few brokers can hold each
    partition once only, so the others take what it cannot.
    """

    least: list[int]
    most: list[int]


def even_bounds(sets: ReplicaSets, targets: Sequence[int]) -> ReplicaBounds:
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
    return ReplicaBounds(least, most)


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


def level_bounds(sets: ReplicaSets, targets: Sequence[int]) -> ReplicaBounds:
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
    return ReplicaBounds([0] * brokers, most)


SEARCHED_STEPS = 2_000_000  # after so many a bound gives way without a search: keeps time near n log n
Path = list[tuple[int, int, int]]  # (partition, source, target) in the order in which they are made


class Rebalance:
    """One run over replica sets. `may_uproot`: replicas that need not move may make way on a path.

    `loads` are from before replicas were freed to spread partitions over racks.
    """

    def __init__(
        self,
        sets: ReplicaSets,
        bounds: ReplicaBounds,
        topic_of: Sequence[int],
        targets: Sequence[int],
        loads: Sequence[int],
        *,
        may_uproot: bool,
    ) -> None:
        self.sets = sets
        self.loads = loads
        self.targets = targets
        self.target_set = set(targets)
        self.least, self.most = bounds
        self.topic_of = topic_of
        self.may_uproot = may_uproot

    def run(self) -> None:
        """Place what must move, then even out."""
        self._least_moves = self._fewest_possible()
        waiting = self._place(list(self._must_move()), self.least)
        self._shed(self.least)
        waiting = self._place(waiting, self.most)
        self._shed(self.most)
        for partition, source in waiting:
            self._force(partition, source)
        self._fill()
        while self.may_uproot and self._made() > self._least_moves and self._improve():
            pass

    def _fewest_possible(self) -> int:
        """A lower bound of moves: replicas that must leave, the excess, and the deficit."""
        must = sum(1 for _ in self._must_move())
        freed = sum(self.loads) - sum(self.sets.load)  # to spread over racks; which of them was a choice
        too_many = sum(max(0, self.loads[b] - self.most[b]) for b in self.targets)
        too_few = sum(max(0, self.least[b] - self.loads[b]) for b in self.targets)
        return max(must, must - freed + too_many, too_few)

    def _made(self) -> int:
        """Replicas that are new on their broker."""
        sets = self.sets
        return sum(b not in sets.origin[p] for p in sets.changed for b in sets.members[p])

    def _must_move(self) -> Iterator[tuple[int, int]]:
        sets = self.sets
        for partition, members in enumerate(sets.members):
            for _ in range(sets.replication_factors[partition] - len(members)):
                yield partition, NOWHERE
            for broker in members:
                if not sets.may_stay[broker]:
                    yield partition, broker

    # --- single moves ---------------------------------------------------------------------------------

    def _room(self, bound: Sequence[int]) -> list[tuple[int, int, int]]:
        heap = [self._rank(b, bound) for b in self.targets if self.sets.load[b] < bound[b]]
        heapify(heap)
        return heap

    def _rank(self, broker: int, bound: Sequence[int]) -> tuple[int, int, int]:
        """The sort key for the emptiest first: by bytes if sizes are known, otherwise by the room below the bound."""
        return self.sets.bytes[broker], self.sets.load[broker] - bound[broker], broker

    def _place(self, waiting: Iterable[tuple[int, int]], bound: Sequence[int]) -> list[tuple[int, int]]:
        """Place each replica on the emptiest broker below its bound; returns those for which there is none."""
        heap = self._room(bound)
        unplaced = []
        for partition, source in waiting:
            target = self._take_room(heap, partition, source, bound)
            if target is None:
                unplaced.append((partition, source))
        if not self._room(bound):
            return unplaced
        return [(p, s) for p, s in unplaced if not self._along_path(self._first_steps(p, s), s, bound)]

    def _take_room(
        self, heap: list[tuple[int, int, int]], partition: int, source: int, bound: Sequence[int]
    ) -> int | None:
        skipped = []
        target = None
        while heap:
            entry = heappop(heap)
            if self.sets.may_move(partition, source, entry[2]):
                target = entry[2]
                self.sets.move(partition, source, target)
                if self.sets.load[target] < bound[target]:
                    heappush(heap, self._rank(target, bound))
                break
            skipped.append(entry)
        for entry in skipped:
            heappush(heap, entry)
        return target

    def _shed(self, bound: Sequence[int]) -> None:
        """Move replicas from brokers above `most` to brokers below the bound."""
        sets = self.sets
        heap = self._room(bound)
        over = sorted(
            (b for b in self.targets if sets.load[b] > self.most[b]), key=lambda b: (-sets.load[b], b)
        )
        for broker in over:
            excess = sets.load[broker] - self.most[broker]
            for partition in self._best_to_leave(broker, excess):
                if sets.load[broker] <= self.most[broker] or not heap:
                    break
                self._take_room(heap, partition, broker, bound)
        for broker in over:
            while sets.load[broker] > self.most[broker] and self._room(bound):
                steps = sets.steps_from(broker, self.target_set, may_uproot=True)
                if not self._along_path(steps, broker, bound):
                    break

    def _best_to_leave(self, broker: int, excess: int) -> list[int]:
        """The partitions of a broker, ordered so that any prefix is a fair share of every topic.

        With sizes, those come first that remove the surplus bytes in `excess` moves.
        """
        sets = self.sets
        partitions = sorted(sets.partitions_on[broker])
        count: dict[int, int] = {}
        for partition in partitions:
            count[self.topic_of[partition]] = count.get(self.topic_of[partition], 0) + 1
        count_so_far: dict[int, int] = {}
        order = []
        wanted_size = 0
        if sets.sizes is not None:
            mean = sum(sets.bytes[b] for b in self.targets) // max(1, len(self.targets))
            wanted_size = max(0, sets.bytes[broker] - mean) // max(1, excess)
        for partition in partitions:
            topic = self.topic_of[partition]
            count_so_far[topic] = count_so_far.get(topic, 0) + 1
            distance = abs(sets.sizes[partition] - wanted_size) if sets.sizes is not None else 0
            share = (2 * count_so_far[topic] - 1) / count[topic]
            order.append((distance, share, crc32(b"%d" % partition), partition))
        order.sort()
        return [partition for *_, partition in order]

    def _fill(self) -> None:
        """Fill brokers below `least` from others that can spare replicas, the fullest first."""
        sets = self.sets
        poor = [b for b in self.targets if sets.load[b] < self.least[b]]
        if not poor:
            return
        donors = sorted(
            (b for b in self.targets if sets.load[b] > self.least[b]),
            key=lambda b: (self.least[b] - sets.load[b], b),
        )
        want = sum(self.least[b] - sets.load[b] for b in poor)
        spare = sum(sets.load[b] - self.least[b] for b in donors)
        heap = self._room(self.least)
        for broker in donors:
            # Each gives in proportion to what it has to spare, then the fullest the rest.
            share = -(-(sets.load[broker] - self.least[broker]) * min(want, spare) // max(1, spare))
            for partition in self._best_to_leave(broker, share):
                if share <= 0 or not heap or sets.load[broker] <= self.least[broker]:
                    break
                share -= self._take_room(heap, partition, broker, self.least) is not None
        for broker in poor:
            while sets.load[broker] < self.least[broker] and self._pull(broker):
                pass

    def _pull(self, poor: int) -> bool:
        """Find a replica for a broker that no single move reached, over a path of moves."""
        bound = [0] * len(self.least)
        bound[poor] = self.least[poor]
        donors = [b for b in self.targets if self.sets.load[b] > self.least[b]]
        for donor in sorted(donors, key=lambda b: (self.least[b] - self.sets.load[b], b)):
            steps = self.sets.steps_from(donor, self.target_set, may_uproot=True)
            if self._along_path(steps, donor, bound):
                return True
        return False

    # --- paths ----------------------------------------------------------------------------------------

    def _first_steps(self, partition: int, source: int) -> dict[int, tuple[int, int]]:
        sets = self.sets
        return {
            target: (sets.cost(partition, source, target), partition)
            for target in self.targets
            if sets.may_move(partition, source, target)
        }

    def _along_path(self, steps: dict[int, tuple[int, int]], source: int, bound: Sequence[int]) -> bool:
        """Move along the cheapest path from the source to a broker below its bound; False where there is none."""
        if self.sets.checks > SEARCHED_STEPS or not steps:
            return False
        path = self._cheapest(steps, source, bound)
        return path is not None and self._make(path)

    def _cheapest(self, steps: dict[int, tuple[int, int]], source: int, bound: Sequence[int]) -> Path | None:
        load = self.sets.load
        cost = {target: step[0] for target, step in steps.items()}
        came: dict[int, tuple[int, int]] = {target: (source, step[1]) for target, step in steps.items()}
        queue = deque(sorted(steps, key=lambda b: (cost[b], b)))
        queued = set(queue)
        while queue:
            broker = queue.popleft()
            queued.discard(broker)
            if load[broker] < bound[broker]:
                continue
            onward = self.sets.steps_from(broker, self.target_set, may_uproot=self.may_uproot)
            for target, (more, partition) in onward.items():
                total = cost[broker] + more
                if target == source or total >= cost.get(target, total + 1) or _passes(came, broker, target):
                    continue
                cost[target] = total
                came[target] = broker, partition
                if target not in queued:
                    queue.append(target)
                    queued.add(target)
        ends = [b for b in cost if load[b] < bound[b]]
        if not ends:
            return None
        end = min(ends, key=lambda b: (cost[b], self._rank(b, bound)))
        return _path_to(came, end, source)

    def _make(self, path: Path) -> bool:
        """Make the moves from the far end; if one of them is no longer legal, undo all."""
        done: Path = []
        for partition, source, target in path:
            if source != NOWHERE and partition not in self.sets.partitions_on[source]:
                break
            if not self.sets.may_move(partition, source, target):
                break
            self.sets.move(partition, source, target)
            done.append((partition, source, target))
        if len(done) == len(path):
            return True
        for partition, source, target in reversed(done):
            self.sets.move(partition, target, source)
        return False

    def _improve(self) -> bool:
        """Make one round of moves that ends with fewer than before; False where there is none.

        Greedy moves are not always part of the best plan (above all which replica leaves a repeated rack).
        A round closes among brokers, or leads from one above its least to one below its most.
        """
        sets = self.sets
        if not sets.changed or sets.checks + len(sets.changed) * len(self.targets) > SEARCHED_STEPS:
            return False
        onward = {b: sets.steps_from(b, self.target_set, may_uproot=True) for b in self.targets}
        giving = [b for b in self.targets if sets.load[b] > self.least[b]]
        for taker in self.targets:
            if sets.load[taker] < self.most[taker]:
                onward[taker] |= {
                    g: (0, NOWHERE) for g in giving if g != taker and onward[taker].get(g, (1, 0))[0] > 0
                }
        cycle = negative_cycle(onward)
        return bool(cycle) and self._make([step for step in cycle if step[0] != NOWHERE])

    def _force(self, partition: int, source: int) -> None:
        """Place a replica for which no broker has room on the emptiest broker allowed."""
        legal = [t for t in self.targets if self.sets.may_move(partition, source, t)]
        target = min(legal, key=lambda b: self._rank(b, self.most))
        self.sets.move(partition, source, target)


def negative_cycle(onward: dict[int, dict[int, tuple[int, int]]]) -> Path:
    """Moves (partition, source, target), last first, of a cycle whose costs add up to less than nothing; or none."""
    cost = dict.fromkeys(onward, 0)
    came: dict[int, tuple[int, int]] = {}
    last = None
    for _ in range(len(onward) + 1):
        last = None
        for source, steps in onward.items():
            for target, (more, partition) in steps.items():
                if cost[source] + more < cost[target]:
                    cost[target] = cost[source] + more
                    came[target] = source, partition
                    last = target
        if last is None:
            return []
    for _ in onward:  # far enough back to be on the cycle
        assert last is not None
        last = came[last][0]
    cycle: Path = []
    assert last is not None
    broker: int = last
    while not cycle or broker != last:
        before, partition = came[broker]
        cycle.append((partition, before, broker))
        broker = before
    return cycle


def _passes(came: dict[int, tuple[int, int]], broker: int, target: int) -> bool:
    """Whether the way to a broker already leads through the target."""
    while broker in came:
        if broker == target:
            return True
        broker = came[broker][0]
    return broker == target


def _path_to(came: dict[int, tuple[int, int]], end: int, source: int) -> Path:
    path = []
    while True:
        before, partition = came[end]
        path.append((partition, before, end))
        if before == source:
            return path
        end = before


STEPS = 20_000_000  # a bound on the work of the last evening-out, far above what real clusters need


class PreferredLeaders:
    """The head of every partition, and how many each broker has.

    The order of a replica list moves no data; only its head matters, and only to elections. A head that stays is kept
    while that leaves the brokers as even as they were.
    """

    def __init__(self, heads: list[int | None], members: Sequence[Sequence[int]], brokers: int) -> None:
        self.heads = heads
        self.members = members
        self.led: list[dict[int, None]] = [{} for _ in range(brokers)]
        for partition, head in enumerate(heads):
            if head is not None:
                self.led[head][partition] = None
        self.steps_left = STEPS

    def choose(self, partition: int, preferred: Sequence[int]) -> None:
        """Give a partition without head one: of its members the one that leads least, earlier ones first."""
        head = min(preferred, key=lambda b: (len(self.led[b]), preferred.index(b)))
        self.heads[partition] = head
        self.led[head][partition] = None

    def spread(self, brokers: Iterable[int]) -> int:
        """The difference between the most and the least leaderships of a broker."""
        counts = [len(self.led[b]) for b in brokers]
        return max(counts) - min(counts) if counts else 0

    def even_out(self, movable: set[int], brokers: Sequence[int]) -> None:
        """Move heads of these partitions along chains of brokers until no chain makes the counts more even."""
        led = [dict.fromkeys(p for p in partitions if p in movable) for partitions in self.led]
        inside = set(brokers)
        settled: set[int] = set()
        while len(settled) < len(inside) and self.steps_left > 0:
            fullest = max(inside - settled, key=lambda b: (len(self.led[b]), -b))
            chain = self._chain(fullest, led, inside)
            if not chain:
                settled.add(fullest)
            for partition, source, target in chain:
                for table in (self.led, led):
                    del table[source][partition]
                    table[target][partition] = None
                self.heads[partition] = target

    def _chain(
        self, fullest: int, led: list[dict[int, None]], inside: set[int]
    ) -> list[tuple[int, int, int]]:
        """Head changes (partition, from, to) that take one from a broker to the least loaded it reaches."""
        came: dict[int, tuple[int, int]] = {}
        queue = deque([fullest])
        least = min(len(self.led[b]) for b in inside)
        end = None
        while queue and end is None and len(came) < len(inside) - 1:
            broker = queue.popleft()
            for partition in led[broker]:
                self.steps_left -= 1
                for member in self.members[partition]:
                    if member in inside and member not in came and member != fullest:
                        came[member] = broker, partition
                        queue.append(member)
                        if len(self.led[member]) == least:
                            end = member
                if end is not None or len(came) == len(inside) - 1:
                    break
        if end is None and came:
            end = min(came, key=lambda b: (len(self.led[b]), b))
        if end is None or len(self.led[end]) + 2 > len(self.led[fullest]):
            return []
        chain = []
        while end != fullest:
            before, partition = came[end]
            chain.append((partition, before, end))
            end = before
        return chain
