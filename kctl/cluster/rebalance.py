"""The fewest moves that bring every replica onto an allowed broker and every broker between its bounds.

The problem is a flow of least cost: replicas leave brokers that hold too many (or may hold none) for
brokers that hold too few, a replica back at its origin costs nothing. Nearly all of it are single moves,
taken greedily, each of which is a shortest path; what is left takes shortest paths through other brokers,
which send on what they hold. Where even those end nowhere the bound of a broker gives way, never the plan.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from zlib import crc32

from kctl.cluster.bounds import Bounds
from kctl.cluster.replica_sets import NOWHERE, ReplicaSets

SEARCHED_STEPS = 2_000_000  # after so many a bound gives way without a search: keeps time near n log n
Path = list[tuple[int, int, int]]  # (partition, source, target) in the order in which they are made


class Rebalance:
    """One run over replica sets. `may_uproot`: replicas that need not move may make way on a path.

    `loads` are those from before replicas were freed to spread partitions over racks.
    """

    def __init__(
        self,
        sets: ReplicaSets,
        bounds: Bounds,
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
        """A number of moves that no placement can do without: what must go, what is too much, what is too little."""
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
        """The emptiest first: by bytes where sizes are known, else by what is missing to the bound."""
        return self.sets.bytes[broker], self.sets.load[broker] - bound[broker], broker

    def _place(self, waiting: Iterable[tuple[int, int]], bound: Sequence[int]) -> list[tuple[int, int]]:
        """Place each replica on the emptiest broker below its bound; gives back those for which there is none."""
        heap = self._room(bound)
        left = []
        for partition, source in waiting:
            target = self._take_room(heap, partition, source, bound)
            if target is None:
                left.append((partition, source))
        if not self._room(bound):
            return left
        return [(p, s) for p, s in left if not self._along_path(self._first_steps(p, s), s, bound)]

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
        """Take from brokers above `most` until they are not, onto brokers below the bound."""
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
        """What a broker holds, such that any beginning of the list is a fair share of every topic.

        With sizes, those come first that take the bytes too many along in as many moves as there are.
        """
        sets = self.sets
        held = sorted(sets.held[broker])
        count: dict[int, int] = {}
        for partition in held:
            count[self.topic_of[partition]] = count.get(self.topic_of[partition], 0) + 1
        seen: dict[int, int] = {}
        order = []
        wanted = 0
        if sets.sizes is not None:
            mean = sum(sets.bytes[b] for b in self.targets) // max(1, len(self.targets))
            wanted = max(0, sets.bytes[broker] - mean) // max(1, excess)
        for partition in held:
            topic = self.topic_of[partition]
            seen[topic] = seen.get(topic, 0) + 1
            distance = abs(sets.sizes[partition] - wanted) if sets.sizes is not None else 0
            share = (2 * seen[topic] - 1) / count[topic]
            order.append((distance, share, crc32(b"%d" % partition), partition))
        order.sort()
        return [partition for *_, partition in order]

    def _fill(self) -> None:
        """Give brokers below `least` what others can spare, the fullest first."""
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
        """One replica for a broker that no single move reached, from wherever a path leads to it."""
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
        """Make the moves from the far end; if one of them is no longer legal take all back."""
        done: Path = []
        for partition, source, target in path:
            if source != NOWHERE and partition not in self.sets.held[source]:
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

        What is taken greedily is not always part of the best (which replica leaves a rack that repeats, above all).
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
        """Place a replica for which no broker has room on the emptiest that may take it."""
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
