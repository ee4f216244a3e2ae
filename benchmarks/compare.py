"""What comparing replicas costs against verifying them; one part of `benchmarks.run`.

    python -m benchmarks.compare --size 4G          # three replicas of one partition of 4 GiB, and 10,000 small ones

The replicas are links to one set of files, so that they take the room of one.
"""

import argparse
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.corpus import Shape, batches, bytes_of, repeated, shape_of, write_index, write_time_index
from benchmarks.kafka_jars import CACHE
from benchmarks.measure import KCTL, MB, cost_of, machine
from formats.log.columns.headers import gather, walk

BROKERS = (1, 2, 3)
SEGMENT = 1 << 30
SMALL = 10_000
MEMORY = 300 << 20
SHAPE = "none-100x1000"


class Figure(NamedTuple):
    """What was measured, what it should be at least (or at most), and what it was."""

    what: str
    goal: float
    measured: float
    text: str = ""
    is_most: bool = False

    @property
    def reached(self) -> bool:
        """Whether the goal was reached."""
        return self.measured <= self.goal if self.is_most else self.measured >= self.goal


def moved(made: bytes, by: int) -> bytes:
    """The same batches at offsets that begin later."""
    data = np.frombuffer(made + bytes(64), np.uint8).copy()
    positions = walk(data, 0, len(made)).positions
    base = (gather(data, positions).base_offset + by).astype(">i8")
    data[positions[:, None] + np.arange(8)] = base.view(np.uint8).reshape(-1, 8)
    return data[: len(made)].tobytes()


def make_partition(folder: Path, shape: Shape, size: int) -> None:
    """A partition folder of so many bytes in segments."""
    folder.mkdir(parents=True)
    made = batches(shape)
    offset, left = 0, size
    while left > 0:
        log = folder / f"{offset:020d}.log"
        part = min(left, SEGMENT)
        some = moved(made, offset)
        with log.open("wb") as file:
            last = b""
            for piece in repeated(some, part):
                file.write(piece)
                last = piece
        write_index(log, some)
        write_time_index(log, some)
        data = np.frombuffer(last + bytes(64), np.uint8)
        offset = int(gather(data, walk(data, 0, len(last)).positions).last_offset[-1]) + 1
        left -= part
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")


def brokers_with(folder: Path, partitions: dict[str, Path]) -> Path:
    """Three log directories with these partitions, their files linked."""
    for broker in BROKERS:
        data = folder / f"broker-{broker}" / "data"
        for name, source in partitions.items():
            target = data / name
            target.mkdir(parents=True)
            for file in source.iterdir():
                os.link(file, target / file.name)
        (data / "meta.properties").write_text(f"version=0\nbroker.id={broker}\n")
    return folder


def large(work: Path, size: int) -> Iterator[Figure]:
    """Three replicas of one large partition."""
    make_partition(work / "made", shape_of(SHAPE), size)
    evidence = brokers_with(work / "large", {"orders-0": work / "made"})
    total = sum(p.stat().st_size for p in evidence.rglob("*.log"))
    compare = [*KCTL, "replica", "compare", "--output", "jsonl", evidence]
    verify = [*KCTL, "segment", "verify", "--output", "jsonl", "--jobs", 1, evidence]
    ours = min((cost_of([*compare, "--jobs", 1], watch=True) for _ in range(2)), key=lambda cost: cost.cpu)
    theirs = min((cost_of(verify) for _ in range(2)), key=lambda cost: cost.cpu)
    assert ours.status == 0, ours
    text = f"{total / ours.cpu / MB:.0f} MB a CPU second against {total / theirs.cpu / MB:.0f}"
    yield Figure(f"three replicas of {size >> 20} MiB: rate against verify", 0.8, theirs.cpu / ours.cpu, text)
    yield Figure("peak memory, MB", MEMORY / MB, ours.peak / MB, is_most=True)
    two = min((cost_of([*compare, "--jobs", 2]) for _ in range(2)), key=lambda cost: cost.wall)
    yield Figure(
        "two processes: times one", 1.7, ours.wall / two.wall, f"{ours.wall:.1f} s, {two.wall:.1f} s"
    )


def small(work: Path, count: int) -> Iterator[Figure]:
    """Many partitions of three brokers."""
    make_partition(work / "tiny", shape_of("none-1x100"), 400)
    evidence = brokers_with(work / "small", {f"topic.{n}-0": work / "tiny" for n in range(count)})
    ours = cost_of([*KCTL, "replica", "compare", "--output", "jsonl", "--jobs", 1, evidence], watch=True)
    verify = cost_of([*KCTL, "segment", "verify", "--output", "jsonl", "--jobs", 1, evidence])
    lost = cost_of([*KCTL, "replica", "loss", "--output", "jsonl", "--jobs", 1, evidence])
    what = f"{count:,} partitions of three brokers: times verifying them"
    yield Figure(what, 3.0, ours.cpu / verify.cpu, f"{ours.cpu:.1f} s against {verify.cpu:.1f}", is_most=True)
    text = f"{lost.cpu:.1f} s"
    yield Figure(f"{what}, losses", 3.0, lost.cpu / verify.cpu, text, is_most=True)
    yield Figure(f"{count:,} partitions: peak memory, MB", MEMORY / MB, ours.peak / MB, is_most=True)


def run(folder: Path = CACHE / "corpus", size: int = 1 << 30, count: int = SMALL) -> Iterator[Figure]:
    """The figures; what was made for them is removed."""
    work = folder / "compare"
    shutil.rmtree(work, ignore_errors=True)
    try:
        yield from large(work, size)
        yield from small(work, count)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main() -> None:
    """Print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--size", type=bytes_of, default=1 << 30, help="of the large partition")
    arguments.add_argument("--count", type=int, default=SMALL, help="of small partitions")
    given = arguments.parse_args()
    print(machine())
    for one in run(size=given.size, count=given.count):
        goal = f"{'at most' if one.is_most else 'at least'} {one.goal:.3g}"
        print(
            f"{one.what}: {one.measured:.2f}  {goal}  {one.text}  {'ok' if one.reached else 'SHORT'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
