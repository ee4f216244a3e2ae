"""What a scan on Spark costs against the local engine and against what people do today; how large listings plan.

    python -m benchmarks.spark                      # 4 GB, into a section of benchmarks/RESULTS.md
    python -m benchmarks.spark --size 64M --print   # small, printed only

Rates are bytes by second of CPU, page cache warm: of the process that scans, or of Spark's JVM and all Python processes
below it, garbage collection and compilation included. Start-up, measured on segments of one batch, is stated apart and
taken off. Of some runs the best counts; the first one, in which the JVM still interprets and compiles, is told as well.
Segments are names of one file, so that many bytes are scanned and few are in the page cache. Wall-clock on a machine that does other work at the same time would say little.
"""

import argparse
import datetime
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks import results
from benchmarks.corpus import bytes_of, make, shape_of
from benchmarks.kafka_jars import CACHE
from benchmarks.measure import machine
from benchmarks.parts import Line, at_least, at_most
from benchmarks.plain_decoder import sizes_of
from kctl.scan.pool import default_jobs
from kctl.scan.splits import TARGET
from kctl.scan.tables import SCHEMAS
from kctl.spark import listing
from kctl.spark.listing import SegmentRef, list_segments
from kctl.spark.planning import Filters, SegmentCut, plan, target_for
from kctl.spark.reading import read_pieces
from kctl.spark.session import session
from kctl.tier.stores import StoredObject
from tests.spark.test_cluster import cluster_below

SEGMENTS = 8
NARROW = ["offset", "timestamp", "key_size", "value_size"]
PLACES = ["base_offset", "last_offset", "max_timestamp", "size_in_bytes"]
ASKED = (
    ("batches", None, 0.8),
    ("batches", PLACES, 0.8),
    ("findings", None, 0.6),
    ("records", NARROW, 0.6),
)
RUNS = {"batches": 10}  # until the JVM has compiled what it runs for each row of 27 columns
ON_WORKERS = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1", "spark.executor.cores": "1"}
PETABYTE, MANY_CORES = 10**15, 1000


def below() -> dict[int, float]:
    """CPU seconds so far of each process below this one: the JVM and its Python workers."""
    children: dict[int, list[tuple[int, int]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(
                (int(stat.parent.name), sum(map(int, fields[11:13])))
            )
    found: dict[int, float] = {}
    left = [os.getpid()]
    while left:
        for pid, ticks in children.get(left.pop(), []):
            found[pid] = ticks / os.sysconf("SC_CLK_TCK")
            left.append(pid)
    return found


def this_one() -> dict[int, float]:
    """The same of this process alone."""
    return {os.getpid(): time.process_time()}


def costs_of(
    work: Callable[[], object], clock: Callable[[], dict[int, float]], repeats: int = 3
) -> list[float]:
    """The CPU seconds of some runs. Spark ends workers that were idle for a minute: those cost nothing."""
    costs = []
    for _ in range(repeats):
        before = clock()
        work()
        costs.append(sum(seconds - before.get(pid, 0) for pid, seconds in clock().items()))
    return costs


def least(work: Callable[[], object], clock: Callable[[], dict[int, float]], repeats: int = 3) -> float:
    """The least of them."""
    return min(costs_of(work, clock, repeats))


def corpus(size: int) -> tuple[Path, Path]:
    """A folder of segments that together have the size, and one of as many segments of one batch."""
    shape = shape_of("none-100x100")
    whole, tiny = CACHE / f"spark-{size}", CACHE / "spark-tiny"
    log = make(whole.with_name(f"{whole.name}-one"), shape, size // SEGMENTS)
    for number in range(SEGMENTS):
        folder = whole / f"broker-{number}" / log.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        for file in log.parent.iterdir():
            if not (folder / file.name).exists():
                os.link(file, folder / file.name)
        make(tiny / f"broker-{number}", shape, 15_000)
    return whole, tiny


def scan_locally(pieces: list[SegmentCut], table: str, columns: list[str]) -> int:
    """What a worker of the local engine does with the same pieces; gives the rows."""
    return sum(batch.num_rows for batch in read_pieces(pieces, table, columns, Filters()))


def on_spark(spark: Any, folder: Path, table: str, columns: list[str] | None) -> Callable[[], object]:
    """A scan by Spark whose rows are thrown away."""
    reader = spark.read.format("kafka-segments").option("table", table)
    if columns:
        reader = reader.schema(", ".join(f"{name} bigint" for name in columns))
    frame = reader.load(str(folder))
    return partial(thrown_away, frame)


def thrown_away(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def by_itself(folder: Path, table: str, columns: list[str] | None) -> Callable[[], object]:
    """The same by a process of the local engine."""
    work = plan(list_segments(str(folder), []), table, Filters())
    names = columns or SCHEMAS[table].names
    return lambda: sum(scan_locally(pieces, table, names) for pieces in work)


def part_rates(folders: tuple[Path, Path], spark: Any, rates: dict[str, float]) -> Iterator[Line]:
    """Spark against the local engine on the same files."""
    size = sum(one.size_in_bytes for one in list_segments(str(folders[0]), []))
    for table, columns, goal in ASKED:
        start = least(on_spark(spark, folders[1], table, columns), below)
        costs = costs_of(on_spark(spark, folders[0], table, columns), below, RUNS.get(table, 3))
        alone, begin = (least(by_itself(folder, table, columns), this_one) for folder in folders)
        rates[table] = size / (min(costs) - start)
        rate = size / (alone - begin)
        first = size / (costs[0] - start)
        said = (
            f"{rates[table] / 1e6:,.0f} MB/s a core against {rate / 1e6:,.0f}, {first / 1e6:,.0f} in the first run; "
            f"a query starts in {start:.2f} s of CPU"
        )
        named = f"{table} ({', '.join(columns)})" if columns else f"{table}, every column"
        yield at_least(f"{named}: Spark against the local engine", rates[table] / rate, goal, said)
    yield from part_sums(folders, spark)


def part_sums(folders: tuple[Path, Path], spark: Any) -> Iterator[Line]:
    """A question: batches and bytes by codec, which reads three columns."""
    from pyspark.sql import functions

    def asked(folder: Path) -> Callable[[], object]:
        frame = spark.read.format("kafka-segments").option("table", "batches")
        frame = frame.schema("codec string, size_in_bytes bigint, records_count bigint").load(str(folder))
        sums = [functions.sum(name) for name in ("size_in_bytes", "records_count")]
        return partial(thrown_away, frame.groupBy("codec").agg(functions.count("*"), *sums))

    size = sum(one.size_in_bytes for one in list_segments(str(folders[0]), []))
    start = least(asked(folders[1]), below)
    costs = costs_of(asked(folders[0]), below, RUNS["batches"])
    columns = ["codec", "size_in_bytes", "records_count"]
    alone, begin = (least(by_itself(folder, "batches", columns), this_one) for folder in folders)
    ours, theirs = size / (min(costs) - start), size / (alone - begin)
    said = (
        f"{ours / 1e6:,.0f} MB/s a core, {size / (costs[0] - start) / 1e6:,.0f} in the first run, "
        f"against {theirs / 1e6:,.0f}, which scans and sums nothing"
    )
    yield at_least("batches, sums by codec: Spark against the local engine", ours / theirs, 0.8, said)


def part_workers(folders: tuple[Path, Path]) -> Iterator[Line]:
    """Wall-clock of the same scan on one and on two workers of a standalone cluster, each on a core of its own."""
    with tempfile.TemporaryDirectory() as scratch, cluster_below(Path(scratch)) as (master, _):
        for core, worker in enumerate(map(_pid_of_worker, (1, 2))):
            for thread in Path(f"/proc/{worker}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {core})
        # A JVM keeps the settings of its first session, so that each number of cores has a process of its own.
        found = []
        for cores in (1, 2):
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                found.append(process.submit(_scans_on, master, cores, folders[0]).result())
    for table, alone in found[0].items():
        together = found[1][table]
        said = f"{alone:.1f} s and {together:.1f} s, the driver beside them"
        yield at_least(f"{table}: two workers against one", alone / together, 1.8, said)


def _scans_on(master: str, cores: int, folder: Path) -> dict[str, float]:
    """Seconds of the quickest of five scans, by table."""
    with session(master, settings=ON_WORKERS | {"spark.cores.max": str(cores)}) as spark:
        while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() <= cores:
            time.sleep(0.1)
        scans = {
            table: on_spark(spark, folder, table, columns)
            for table, columns in (("records", NARROW), ("findings", None))
        }
        return {table: min(_seconds_of(scan) for _ in range(5)) for table, scan in scans.items()}


def _pid_of_worker(number: int) -> int:
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = line.read_bytes()
            if b"deploy.worker.Worker" in words and b"work-%d\0" % number in words and b"java" in words[:200]:
                return int(line.parent.name)
    raise LookupError(f"worker {number}")


def _seconds_of(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def part_today(spark: Any, rate: float) -> Iterator[Line]:
    """`binaryFile` and a function around a plain decoder: how it is done without kctl. The same rows come out."""
    from pyspark.sql.functions import col, explode, udf

    kind = "array<struct<offset:bigint,timestamp:bigint,key_size:bigint,value_size:bigint>>"
    read = udf(lambda content: list(sizes_of(bytes(content))), kind)

    def scan(log: Path) -> Callable[[], object]:
        frame = spark.read.format("binaryFile").load(str(log))
        return partial(thrown_away, frame.select(explode(read("content")).alias("r")).select(col("r.*")))

    shape = shape_of("none-100x100")
    log, tiny = make(CACHE / "spark-small", shape, 16 << 20), make(CACHE / "spark-tiny", shape, 15_000)
    whole, start = (least(scan(one), below, 2) for one in (log, tiny))
    theirs = log.stat().st_size / (whole - start)
    yield at_least("records, against binaryFile and a function in Python", rate / theirs, 20,
                   f"{rate / 1e6:,.0f} MB/s a core against {theirs / 1e6:,.1f}")  # fmt: skip


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
    with patch.object(listing, "open_store", lambda where: Synthetic(count)):
        began = time.monotonic()
        segments = list_segments("synthetic", [])
        work = plan(segments, "batches", Filters(), target_for(segments, TARGET))
        seconds = time.monotonic() - began
    assert len(segments) == count
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    said = f"{len(work):,} tasks, at most {memory:,} MB of memory in this process"
    yield at_most(f"planning {count:,} segments", seconds, 60, " s", said)


def part_listing(spark: Any, count: int = 100_000) -> Iterator[Line]:
    """The same with so many files that are there, through Spark: sparse ones of 64 MiB."""
    folder = CACHE / f"spark-listing-{count}"
    for number in range(count):
        log = folder / f"orders-{number // 100}" / f"{number % 100 * 1_000_000:020}.log"
        if number % 100 == 0:
            log.parent.mkdir(parents=True, exist_ok=True)
        if not log.exists():
            log.touch()
            os.truncate(log, 64 << 20)
    began = time.monotonic()
    reader = spark.read.format("kafka-segments").option("table", "batches").schema("crc bigint")
    tasks = reader.load(str(folder)).rdd.getNumPartitions()
    seconds = time.monotonic() - began
    yield at_most(f"{count:,} files listed and planned by Spark", seconds, 60, " s", f"{tasks:,} tasks")


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
    work = plan(segments, "batches", Filters())
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
    arguments.add_argument("--size", type=bytes_of, default=bytes_of("4G"))
    arguments.add_argument("--brokers", type=int, default=1000)
    arguments.add_argument("--workers", action="store_true", help="two workers against one, and nothing else")
    arguments.add_argument("--print", action="store_true", help="do not write RESULTS.md")
    given = arguments.parse_args()
    folders = corpus(given.size)
    lines: list[Line] = []

    def say(found: Iterator[Line]) -> None:
        for line in found:
            lines.append(line)
            print(f"  {line.what}: {line.figure}  {line.goal}", flush=True)

    if given.workers:
        say(part_workers(folders))
        return
    rates: dict[str, float] = {}
    began = time.monotonic()
    with session(f"local[{default_jobs()}]") as spark:
        spark.read.format("kafka-segments").option("table", "segments").load(str(folders[1])).count()
        say(iter([Line("start-up, with the first job", f"{time.monotonic() - began:.1f} s")]))
        say(part_rates(folders, spark, rates))
        say(part_today(spark, rates["records"]))
        say(part_listing(spark))
    say(part_planning())
    say(part_simulation(rates["findings"], given.brokers))
    today = datetime.datetime.now(datetime.UTC).date()
    head = f"Measured {today} by `make bench-spark` on {machine()}; {given.size / 1e6:,.0f} MB of batches of 100 records of 100 B."
    if not given.print:
        rates = " ".join((__doc__ or "")[(__doc__ or "").index("Rates are") :].split())
        results.write_section("spark", f"{head} {rates}\n\n{results.table(lines)}")


if __name__ == "__main__":
    main()
