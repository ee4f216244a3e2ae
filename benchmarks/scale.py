"""A petabyte on paper: splits, the scheduler that spreads them, requests and hours. The figures of docs/scale.md.

    python -m benchmarks.scale

Sizes of partitions are drawn (log-normal, median 5 GB, mean 12 GB), segments have a gibibyte. What is planned is planned by the
code that plans jobs; what is not there is the cluster: a task takes its bytes by a rate that was measured, and what each
task costs besides.
"""

from __future__ import annotations

import heapq
import random
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kctl.audit.estimate import A_TASK, AROUND_A_READ, RATE, TOGETHER
from kctl.audit.slices import LARGE, OF_A_CORE
from kctl.scan.splits import TARGET
from kctl.spark.listing import SegmentRef
from kctl.spark.planning import Filters, plan
from kctl.stores.objects import RANGE

GIB = 1 << 30
PETABYTE = 10**15
CORES = 1000
BESIDE_A_LOG = 2  # files of a segment that an audit reads too: its indexes


def partition(number: int, size: int, segment: int = GIB) -> Iterator[SegmentRef]:
    """The segments of a partition of this size."""
    for at, start in enumerate(range(0, size, segment)):
        left = min(segment, size - start)
        key = f"topic-{number}-0/{at * 1_000_000:020}.log"
        yield SegmentRef("s", key, None, left, at * 1_000_000, None, f"topic-{number}", 0, 1, None)


def drawn(seed: int, total: int) -> Iterator[int]:
    """Sizes of partitions until they are this much together."""
    rng = random.Random(seed)
    while total > 0:
        size = min(int(rng.lognormvariate(22.4, 1.3)), total)
        yield size
        total -= size


def splits(sizes: Iterable[int], target: int = TARGET) -> array[int]:
    """The bytes of each task of a scan of partitions of these sizes."""
    segments = [one for number, size in enumerate(sizes) for one in partition(number, size)]
    return array(
        "q",
        (
            sum(one.segment.size_in_bytes // one.of for one in task)
            for task in plan(segments, "batches", Filters(), target)
        ),
    )


def seconds_of(size: int) -> float:
    """Of a task on one core."""
    return size / RATE + A_TASK


def makespan(waves: Sequence[Sequence[float]], cores: int) -> float:
    """Seconds until all tasks are done: each goes to the core that is free first, and waves begin as the engine begins them."""
    from kctl.spark.tasks import wants_another

    left = list(map(len, waves))
    waiting: deque[tuple[float, int]] = deque()
    busy: list[tuple[float, int]] = []
    now, first, begun, open_tasks = 0.0, 0, 0, 0
    while True:
        while begun < len(waves) and wants_another(begun - first, open_tasks, 0, cores):
            waiting.extend((seconds, begun) for seconds in waves[begun])
            open_tasks += len(waves[begun])
            begun += 1
        while waiting and len(busy) < cores:
            seconds, wave = waiting.popleft()
            heapq.heappush(busy, (now + seconds, wave))
        if not busy:
            return now
        now, wave = heapq.heappop(busy)
        open_tasks -= 1
        left[wave] -= 1
        while first < begun and not left[first]:
            first += 1


class Scan(NamedTuple):
    """A scan of many brokers by the data source, a job each."""

    bytes: int
    tasks: int
    largest: float  # seconds of the longest task against the mean
    idle: float  # part of the cores' time in which they waited


def scan(brokers: int, of_each: int, cores: int = CORES) -> Scan:
    """Plan and schedule it."""
    total = tasks = 0
    longest = spent = elapsed = 0.0
    for number in range(brokers):
        sizes = splits(drawn(number, of_each))
        seconds = [seconds_of(size) for size in sizes]
        total, tasks, spent = total + sum(sizes), tasks + len(sizes), spent + sum(seconds)
        longest = max(longest, *seconds)
        elapsed += makespan([seconds], cores)
    return Scan(total, tasks, longest / (spent / tasks), 1 - spent / (elapsed * cores))


def audit(total: int, cores: int = CORES) -> tuple[float, float, float]:
    """Hours of an audit; of its longest task; hours if no core ever waited.

    Tasks are partition folders, but large ones are read by segments first, and then put together.
    """
    sizes = [int(size) for size in drawn(0, total)]
    least = max(LARGE, sum(sizes) // (cores * OF_A_CORE))
    cut = [size for size in sizes if size >= least]
    slices = [seconds_of(min(GIB, size - at)) for size in cut for at in range(0, size, GIB)]
    seconds = [size / TOGETHER + A_TASK if size >= least else seconds_of(size) for size in sizes]
    done = _on_engine(slices, cores) + _on_engine(seconds, cores)
    return done / 3600, max(seconds) / 3600, (sum(slices) + sum(seconds)) / cores / 3600


def _on_engine(seconds: list[float], cores: int) -> float:
    """Seconds of items that the engine of an audit spreads."""
    from kctl.spark.tasks import ITEMS_A_PARTITION, MOST_ITEMS, PARTITIONS_A_WAVE

    tasks = cores * PARTITIONS_A_WAVE
    items = min(ITEMS_A_PARTITION, max(1, MOST_ITEMS // tasks))
    chunks = [sum(seconds[at : at + items]) for at in range(0, len(seconds), items)]
    waves = [chunks[at : at + tasks] for at in range(0, len(chunks), tasks)]
    return makespan(waves, cores)


def requests(total: int) -> int:
    """Of an audit of a store: each segment in ranges, its indexes, and what each object costs besides."""
    return total // GIB * (GIB // RANGE + AROUND_A_READ + BESIDE_A_LOG * (AROUND_A_READ + 1))


def main() -> None:
    """Print the figures."""
    found = scan(100, 1_350_000_000_000)
    print(
        f"scan: {found.bytes / 1e12:,.0f} TB in {found.tasks:,} tasks; the longest takes {found.largest:.2f} times the mean; cores wait {found.idle:.1%} of the time"
    )
    hours, largest, ideal = audit(PETABYTE)
    print(
        f"audit of 1 PB on {CORES:,} cores: {hours:.1f} h; {ideal:.1f} h if no core waited; the longest task {largest:.1f} h"
    )
    print(f"requests: {requests(PETABYTE):,}, listings {PETABYTE // GIB * (1 + BESIDE_A_LOG) // 1000:,}")


if __name__ == "__main__":
    main()
