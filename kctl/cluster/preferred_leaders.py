"""Which replica of each changed partition comes first, so that preferred leaderships stay even.

The order of a replica list moves no data; only its head matters, and only to elections. A head that stays
is kept while that leaves the brokers as even as they were.
"""

from collections import deque
from collections.abc import Iterable, Sequence

STEPS = 20_000_000  # a bound on the work of the last evening-out, far above what real clusters need


class PreferredLeaders:
    """The head of every partition, and how many each broker has."""

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
        """The difference between the broker that leads most and the one that leads least."""
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
