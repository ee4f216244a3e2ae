"""Any function over any items on executors, results in order: how an audit runs on Spark.

Functions are sent as partitions of a data source, which works on classic masters and over Connect alike; items and
results go over Spark's own connections in its serialization. Items go out in waves, so that the driver holds few results;
while one wave's last tasks run, the next has begun.
"""

from __future__ import annotations

import base64
import io
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import PurePath
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

import pyarrow as pa
from pyspark.serializers import CloudPickleSerializer, CPickleSerializer, cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kctl.model import SILENT, Progress
from kctl.scan.pool import WorkerDied
from kctl.spark.data_source import freeze_once
from kctl.stores.file_systems import StoreGone
from kctl.stores.request_counts import CountedResult, result_of, run_counted
from kctl.stores.sent_mirrors import SentMirror, mirrors_for, mirrors_laid, place_of, placed

if TYPE_CHECKING:
    from pyspark import SparkStageInfo
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")

PLAIN, WITH_CODE = CPickleSerializer(), CloudPickleSerializer()
SCHEMA = pa.schema([("number", pa.int64()), ("result", pa.binary())])
NOUNS = {
    "ReplicaTask": "folders",
    "SlicedTask": "folders",
    "Slice": "parts of logs",
    "ComparisonTask": "partitions",
    "PosixPath": "files",
    "int": "probes",
}
"""What items are, for those who look at Spark's pages."""
PARTITIONS_A_WAVE = 4
"""For each core: enough that a slow one does not keep the others waiting."""
FIRST_ITEMS, ITEMS_A_PARTITION = 4, 64
"""The first wave shows results early; later ones have fewer, larger partitions."""
MOST_ITEMS = 512
"""Of a wave, unless there are more cores than that: results of a wave are in the driver's memory at once."""
WAVES_AT_ONCE, MOST_WAVES = 2, 32
"""A wave waits for its largest item; others begin meanwhile."""
MOST_HELD = 128 << 20
"""Bytes of results that wait for those before them, from which on no wave begins."""
NEEDED = "executors need Python {}.{} as the driver has it, numpy, pyarrow and msgspec: see PYSPARK_PYTHON in docs/spark.md"
UNFIT = ("No module named", "PYTHON_VERSION_MISMATCH", "Cannot run program")
"""What Python or Spark says where an executor lacks something of it."""
LOOK_EVERY = 0.5  # seconds, at how many tasks are done


class TaskFailed(WorkerDied):
    """A function failed on an executor, or its process died, as often as Spark tries."""

    hint = "the executors' logs say more; name fewer files to find the one"


class Packed(NamedTuple):
    """Some items, serialized, and the files of stores that they open: what an item says, else all paths in it."""

    first: int
    items: list[bytes]
    mirrors: list[SentMirror]


class ItemsPartition(InputPartition):
    """The same as a partition."""

    def __init__(self, packed: Packed) -> None:
        self.packed = packed


class Pickler(cloudpickle.CloudPickler):
    """Notes which paths of mirrors it meets, and writes them so that they are the reader's own."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.mirror_paths: list[str] = []

    def reducer_override(self, value: Any) -> Any:  # pickle's name
        """Pickle a path of a mirror so that the reader gets its own path; everything else as usual."""
        if isinstance(value, PurePath) and (place := place_of(str(value))):
            self.mirror_paths.append(str(value))
            return placed, place
        return super().reducer_override(value)


def pickled(value: object) -> tuple[bytes, list[str]]:
    """A value, and the paths of mirrors in it."""
    file = io.BytesIO()
    pickler = Pickler(file)
    pickler.dump(value)
    return file.getvalue(), pickler.mirror_paths


def packed(first: int, items: Iterable[object]) -> Packed:
    """Some items, of which the first has this number."""
    pickled_items = [(item, *pickled(item)) for item in items]
    opened = (
        path for item, _, mirror_paths in pickled_items for path in getattr(item, "opens", mirror_paths)
    )
    return Packed(first, [data for _, data, _ in pickled_items], mirrors_for(map(str, opened)))


class TasksReader(DataSourceReader):
    """Runs the function over the items of its partitions."""

    def __init__(self, work: bytes) -> None:
        self.work = work

    def partitions(self) -> list[InputPartition]:
        _, chunks = PLAIN.loads(self.work)
        return [ItemsPartition(chunk) for chunk in chunks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ItemsPartition)
        freeze_once()
        function = PLAIN.loads(PLAIN.loads(self.work)[0])
        with mirrors_laid(partition.packed.mirrors):
            for number, item in enumerate(partition.packed.items, partition.packed.first):
                try:
                    counted = run_counted(function, PLAIN.loads(item))
                except StoreGone as error:  # Spark would begin the task again, and quote its stack
                    counted = CountedResult(error, 0, 0)
                result, _ = pickled(counted)
                yield pa.RecordBatch.from_pydict({"number": [number], "result": [result]}, SCHEMA)
                if isinstance(counted.result, StoreGone):
                    return


class Tasks(DataSource):
    """The data source; its work comes as an option."""

    @classmethod
    def name(cls) -> str:
        return "kctl-tasks"

    def schema(self) -> str:
        return "number bigint, result binary"

    def reader(self, schema: StructType) -> DataSourceReader:
        return TasksReader(base64.b64decode(self.options["work"]))


class Wave(NamedTuple):
    """A wave that has begun."""

    results: Future[list[bytes]]
    tasks: int


def wants_another(waves: int, unfinished: int, bytes_waiting: int, cores: int) -> bool:
    """Whether to start another wave, given the running waves, their unfinished tasks and the results not yet taken."""
    if waves < WAVES_AT_ONCE:
        return True
    return waves < MOST_WAVES and unfinished < cores * PARTITIONS_A_WAVE and bytes_waiting < MOST_HELD


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A list that gets an item for each Ctrl-C, even if the KeyboardInterrupt is lost.

    Python drops exceptions raised while an object is finalized, and py4j waits for Java in a finalizer.
    """
    signals: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(handler):
        yield signals
        return

    def note(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield signals
    finally:
        signal.signal(signal.SIGINT, handler)


class SparkEngine:
    """An engine of `kctl.scan.pool`: the functions of the local pool, run by executors."""

    def __init__(self, spark: SparkSession, cores: int, progress: Progress = SILENT) -> None:
        self.spark, self.cores, self.progress = spark, cores, progress
        self.doing = "work"
        self.retries: int | None = 0
        self._tag = f"kctl-{uuid4()}"
        self._tasks_begun = 0  # tasks of all waves that were begun
        self._done = 0  # tasks of waves whose results were taken
        self._tasks_noted = 0
        self._failed: dict[int, int] = {}  # tasks by stage
        self._ended: set[int] = set()  # jobs whose stages will not change any more
        spark.dataSource.register(Tasks)

    def ordered(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """function(item) for each item, in order; `TaskFailed` with the task's own words where one fails."""
        pool = ThreadPoolExecutor(MOST_WAVES, thread_name_prefix="kctl-wave")
        waves = self._waves(WITH_CODE.dumps(function), iter(items))
        running: deque[Wave] = deque()

        def begin() -> None:
            while self._wants_another(running) and (wave := next(waves, None)):
                work, tasks, what = wave
                self._tasks_begun += tasks
                running.append(Wave(pool.submit(self._results, work, f"kctl {self.doing} {what}"), tasks))

        with interrupts() as interrupted:
            try:
                begin()
                while running:
                    while not wait([running[0].results], LOOK_EVERY).done:
                        if interrupted:
                            raise KeyboardInterrupt
                        self._say_tasks()
                        begin()
                    yield from self._first_results(running)
                    begin()
            finally:
                # Left early (an error, Ctrl-C, a reader that went away): nobody waits for work that nobody wants.
                if running:
                    self._cancel()
                pool.shutdown(wait=False, cancel_futures=True)

    def _wants_another(self, running: Iterable[Wave]) -> bool:
        """Whether to start another wave because the running ones will soon leave cores idle."""
        waves = list(running)
        is_done_by_wave = [wave.results.done() for wave in waves]
        unfinished = sum(
            wave.tasks for wave, is_done in zip(waves, is_done_by_wave, strict=True) if not is_done
        )
        bytes_waiting = sum(
            sum(map(len, wave.results.result()))
            for wave, is_done in zip(waves, is_done_by_wave, strict=True)
            if is_done and not wave.results.exception()
        )
        return wants_another(len(waves), unfinished - self._completed(), bytes_waiting, self.cores)

    def _waves(self, body: bytes, waiting: Iterator[Item]) -> Iterator[tuple[str, int, str]]:
        """Each wave as an option of the data source, how many tasks it has, and of what they are."""
        at_once = self.cores * PARTITIONS_A_WAVE
        most = min(ITEMS_A_PARTITION, max(1, MOST_ITEMS // at_once))
        size = min(most, FIRST_ITEMS)
        while wave := list(islice(waiting, size * at_once)):
            chunks = [packed(at, wave[at : at + size]) for at in range(0, len(wave), size)]
            what = f"{len(wave):,} {NOUNS.get(type(wave[0]).__name__, 'items')}"
            yield base64.b64encode(PLAIN.dumps((body, chunks))).decode(), len(chunks), what
            size = min(most, size * 4)

    def _first_results(self, running: deque[Wave]) -> Iterator[Any]:
        """The results of the first wave, which is done."""
        wave = running[0]
        results = wave.results.result()
        self._count_retries()
        running.popleft()
        self._done += wave.tasks
        for result in results:
            yield result_of(PLAIN.loads(result))

    def _completed(self) -> int:
        """Tasks that are done, of waves that are not."""
        with suppress(Exception):  # Connect does not say
            stages = self._stages()
            # These are of all that run in the session.
            active = self.spark.sparkContext.statusTracker().getActiveStageIds()
            return sum(stages[number].numCompletedTasks for number in active if number in stages)
        return 0

    def _say_tasks(self) -> None:
        if self.progress is SILENT:
            return
        # A wave that is done and not yet taken is in neither count.
        self._tasks_noted = max(self._tasks_noted, min(self._done + self._completed(), self._tasks_begun))
        self.progress.note(f"{self._tasks_noted:,} of {self._tasks_begun:,} tasks")

    def _results(self, work: str, description: str) -> list[bytes]:
        """What the executors made of a wave, in order, serialized. Runs in a thread of its own."""
        try:
            self.spark.addTag(self._tag)
            with suppress(Exception):  # Connect has none
                self.spark.sparkContext.setJobGroup(self._tag, description, interruptOnCancel=True)
            rows = self.spark.read.format(Tasks.name()).option("work", work).load().collect()
        except Exception as error:  # py4j and gRPC have families of their own
            cause = _cause(error)
            is_unfit = any(words in cause for words in UNFIT)
            hint = NEEDED.format(*sys.version_info) if is_unfit else TaskFailed.hint
            raise TaskFailed(f"a Spark task failed: {cause}", hint) from error
        rows.sort(key=lambda row: row["number"])
        return [bytes(row["result"]) for row in rows]

    def _count_retries(self) -> None:
        """Take in what Spark says of the jobs so far."""
        try:
            self._stages()
            self.retries = sum(self._failed.values())
        except Exception:  # Connect does not say
            self.retries = None

    def _stages(self) -> dict[int, SparkStageInfo]:
        """Those of own jobs that were not known to have ended, by their ids; what failed of them is taken in."""
        tracker = self.spark.sparkContext.statusTracker()
        stages: dict[int, SparkStageInfo] = {}
        for number in set(tracker.getJobIdsForGroup(self._tag)) - self._ended:
            if not (job := tracker.getJobInfo(number)):
                continue
            for stage_id in job.stageIds:
                if stage := tracker.getStageInfo(stage_id):
                    stages[stage_id], self._failed[stage_id] = stage, stage.numFailedTasks
            if job.status in ("SUCCEEDED", "FAILED"):
                self._ended.add(number)
        return stages

    def _cancel(self) -> None:
        with suppress(Exception):  # the session may be gone already
            self.spark.interruptTag(self._tag)
        with suppress(Exception):
            self.spark.sparkContext.cancelJobGroup(self._tag)


def cores_of(spark: SparkSession) -> int:
    """How many tasks run at once; a guess over Connect, which does not say."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:
        return 8


def _cause(error: BaseException) -> str:
    """The last line of a Python traceback inside a Spark error, else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = [
        line
        for line in lines
        if ("Error:" in line or "Exception:" in line) and not line.startswith(("at ", "Caused by", "org."))
    ]
    return (python or lines or [type(error).__name__])[-1 if python else 0]
