"""What a scan on Spark costs against the local engine and against what people do today; how large listings plan.

    python -m benchmarks.spark                      # 256 MB, into a section of benchmarks/RESULTS.md
    python -m benchmarks.spark --size 32M --print   # small, printed only

Rates are wall-clock with as many tasks as cores, page cache warm, start-up left out and stated apart: on a machine
that does other work at the same time only the ratios mean something, and those not much.
"""

import argparse
import datetime
import random
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import results
from benchmarks.corpus import bytes_of, make, shape_of
from benchmarks.kafka_jars import CACHE
from benchmarks.measure import machine
from benchmarks.parts import Line, at_least, at_most
from benchmarks.plain_decoder import records_of
from kctl.remote.stores import StoredObject
from kctl.scan.pool import default_jobs, ordered
from kctl.scan.tables import SCHEMAS
from kctl.spark import listing
from kctl.spark.listing import SegmentRef, list_segments
from kctl.spark.planning import Piece, Wanted, plan
from kctl.spark.reading import read_pieces
from kctl.spark.session import session

NARROW = "offset bigint, timestamp bigint, size_in_bytes bigint"
ASKED = (("batches", None, 0.6), ("findings", None, 0.6), ("records", NARROW, 0.4))
SPLIT = 32 << 20
PETABYTE, MANY_CORES = 10**15, 1000


def best(work: Callable[[], object], repeats: int = 3) -> float:
    """The least wall seconds of some runs."""
    times = []
    for _ in range(repeats):
        began = time.monotonic()
        work()
        times.append(time.monotonic() - began)
    return min(times)


def scan_locally(pieces: list[Piece], table: str, columns: list[str]) -> int:
    """What a worker of the local engine does with the same pieces; gives the rows."""
    return sum(batch.num_rows for batch in read_pieces(pieces, table, columns, Wanted(), SPLIT))


def part_rates(folder: Path, spark: Any, seconds: dict[str, float]) -> Iterator[Line]:
    """Spark against the local engine on the same files, and against `binaryFile` with a Python function."""
    segments = list_segments(str(folder), [])
    size = sum(one.size_in_bytes for one in segments)
    cores = default_jobs()
    for table, columns, goal in ASKED:
        names = [one.split()[0] for one in columns.split(", ")] if columns else SCHEMAS[table].names
        names = [name for name in names if name in SCHEMAS[table].names]
        work = plan(segments, table, Wanted(), SPLIT)
        run = partial(scan_locally, table=table, columns=names)
        local = best(lambda: sum(ordered(run, work, jobs=cores)))  # noqa: B023  # called at once
        reader = spark.read.format("kafka-segments").option("table", table).option("split_bytes", SPLIT)
        if columns:
            reader = reader.schema(", ".join(f"{name} bigint" for name in names))
        frame = reader.load(str(folder))
        on_spark = best(lambda: frame.write.format("noop").mode("overwrite").save())  # noqa: B023
        seconds[table] = on_spark
        said = f"{size / on_spark / cores / 1e6:,.0f} MB/s a core against {size / local / cores / 1e6:,.0f}"
        yield at_least(f"{table}, Spark against the local engine", local / on_spark, goal, said)


def part_today(folder: Path, spark: Any, seconds: dict[str, float], size: int) -> Iterator[Line]:
    """`binaryFile` and a function around a plain decoder: how it is done without kctl."""
    from pyspark.sql.functions import udf

    count = udf(lambda content: records_of(bytes(content)), "bigint")
    log = make(CACHE / "spark-small", shape_of("none-100x100"), 8 << 20)
    frame = spark.read.format("binaryFile").load(str(log.parent / "*.log"))
    frame = frame.select(count("content").alias("n"))
    wall = best(lambda: frame.write.format("noop").mode("overwrite").save(), 2)
    # One file is one task there, so one core did it.
    theirs, ours = log.stat().st_size / wall, size / seconds["records"] / default_jobs()
    yield at_least("records, against binaryFile and a function in Python, per core", ours / theirs, 20,
                   f"{ours / 1e6:,.0f} MB/s against {theirs / 1e6:,.1f}")  # fmt: skip


class Synthetic:
    """A store with so many segments, each of a gibibyte, and nothing in them."""

    def __init__(self, count: int) -> None:
        self.name, self.count = "synthetic", count

    def objects(self, say: Any) -> Iterator[StoredObject]:
        """A hundred segments a partition, twenty brokers."""
        for number in range(self.count):
            broker, partition, segment = number % 20, number // 20 // 100, number // 20 % 100
            key = f"broker-{broker}/data/orders-{partition}/{segment * 1_000_000:020}"
            yield StoredObject(f"{key}.index", 1 << 20)
            yield StoredObject(f"{key}.log", 1 << 30)

    def open(self, key: str) -> Any:
        """Nothing is there."""
        raise FileNotFoundError(key)


def part_planning(count: int = 100_000) -> Iterator[Line]:
    """Listing and planning of a large store."""
    real = listing.open_store
    listing.open_store = lambda where: Synthetic(count)  # type: ignore[assignment,return-value]
    try:
        began = time.monotonic()
        segments = list_segments("synthetic", [])
        work = plan(segments, "batches", Wanted())
        seconds = time.monotonic() - began
    finally:
        listing.open_store = real
    assert len(segments) == count
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    said = f"{len(work):,} tasks, at most {memory:,} MB of memory in this process"
    yield at_most(f"planning {count:,} segments", seconds, 60, " s", said)


class Broker(NamedTuple):
    """What planning one broker gave."""

    bytes: int
    tasks: int
    largest: int


def simulated(number: int) -> Broker:
    """A broker of about a terabyte: partitions of very different sizes, segments of a gibibyte and a rest."""
    rng = random.Random(number)
    segments: list[SegmentRef] = []
    for partition in range(100):
        left = int(rng.lognormvariate(22.4, 1.3))
        base = 0
        while left > 0:
            size = min(left, 1 << 30)
            key = f"topic-{partition % 40}-{partition}/{base:020}.log"
            segments.append(
                SegmentRef(
                    "s", key, None, size, base, None, f"topic-{partition % 40}", partition, number, None
                )
            )
            left, base = left - size, base + 1_000_000
    work = plan(segments, "batches", Wanted())
    sizes = [sum(one.segment.size_in_bytes // one.of for one in pieces) for pieces in work]
    return Broker(sum(one.size_in_bytes for one in segments), len(work), max(sizes, default=0))


def part_simulation(rate: float, brokers: int) -> Iterator[Line]:
    """Many brokers, a job for each, and what a petabyte would take."""
    began = time.monotonic()
    found = [simulated(number) for number in range(brokers)]
    seconds = time.monotonic() - began
    total, tasks = sum(one.bytes for one in found), sum(one.tasks for one in found)
    mean = total / tasks
    yield Line(
        f"{brokers:,} brokers simulated",
        f"{total / 1e12:,.0f} TB, {tasks:,} tasks, planned in {seconds:,.1f} s",
    )
    yield Line(
        "tasks of a broker", f"{tasks / brokers:,.0f} on average, {max(one.tasks for one in found):,} at most"
    )
    yield Line("largest task against the average", f"{max(one.largest for one in found) / mean:.2f} times")
    spread = sorted(one.bytes for one in found)
    yield Line("largest broker against the median", f"{spread[-1] / spread[len(spread) // 2]:.2f} times")
    hours = PETABYTE / rate / MANY_CORES / 3600
    overhead = PETABYTE / mean * 0.01 / MANY_CORES / 60
    yield Line(
        f"estimate for 1 PB on {MANY_CORES:,} cores",
        f"{hours:,.1f} h at {rate / 1e6:,.0f} MB/s a core, plus {overhead:,.1f} min for {PETABYTE / mean:,.0f} tasks"
        " of 10 ms overhead; no storage and no network was measured",
    )


def main() -> None:
    """Measure everything."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--size", type=bytes_of, default=bytes_of("256M"))
    arguments.add_argument("--brokers", type=int, default=1000)
    arguments.add_argument("--print", action="store_true", help="do not write RESULTS.md")
    given = arguments.parse_args()
    folder = CACHE / f"spark-{given.size}"
    make(folder, shape_of("none-100x100"), given.size)
    size = sum(one.size_in_bytes for one in list_segments(str(folder), []))
    lines: list[Line] = []

    def say(found: Iterator[Line]) -> None:
        for line in found:
            lines.append(line)
            print(f"  {line.what}: {line.figure}  {line.goal}", flush=True)

    seconds: dict[str, float] = {}
    began = time.monotonic()
    with session(f"local[{default_jobs()}]") as spark:
        spark.read.format("kafka-segments").option("table", "segments").load(str(folder)).count()
        say(iter([Line("start-up, with the first job", f"{time.monotonic() - began:.1f} s")]))
        say(part_rates(folder, spark, seconds))
        say(part_today(folder, spark, seconds, size))
    say(part_planning())
    say(part_simulation(size / seconds["findings"] / default_jobs(), given.brokers))
    today = datetime.datetime.now(datetime.UTC).date()
    head = f"Measured {today} by `make bench-spark` on {machine()}; {size / 1e6:,.0f} MB of batches of 100 records of 100 B."
    if not given.print:
        rates = " ".join((__doc__ or "")[(__doc__ or "").index("Rates are") :].split())
        results.write_section("spark", f"{head} {rates}\n\n{results.table(lines)}")


if __name__ == "__main__":
    main()
