"""Any function over any items on executors, results in order: how an audit runs on Spark.

Functions are sent as partitions of a data source, which works on classic masters and over Connect; items and results
use Spark's own connections and serialization. Items are sent in waves, so that the driver holds few results; the next
wave begins while the last tasks of one run.
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

from formats.words import counted
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
    "Slice": "parts of logs",
    "ComparisonTask": "partitions",
    "PosixPath": "files",
    "int": "probes",
}
"""Nouns for the classes of items, shown on Spark's pages."""
PARTITIONS_A_WAVE = 4
"""For each core: enough that a slow one does not delay the others."""
FIRST_ITEMS, ITEMS_A_PARTITION = 4, 64
"""The first wave gives results early; later ones have fewer, larger partitions."""
MOST_ITEMS = 512
"""Of a wave, unless there are more cores: the driver has all results of a wave in memory."""
WAVES_AT_ONCE, MOST_WAVES = 2, 32
"""A wave waits for its largest item; others begin meanwhile."""
MOST_HELD = 128 << 20
"""No wave begins while so many bytes of results wait for earlier ones."""
NEEDED = "executors need Python {}.{} as the driver has it, numpy, pyarrow and msgspec: see PYSPARK_PYTHON in docs/spark.md"
UNFIT = ("No module named", "PYTHON_VERSION_MISMATCH", "Cannot run program")
"""What Python or Spark says if an executor lacks something."""
LOOK_EVERY = 0.5  # seconds between looks at the number of finished tasks


class TaskFailed(WorkerDied):
    """A function failed on an executor, or its process died, as often as Spark tries it."""

    hint = "the executors' logs say more; name fewer files to find the one"


class Packed(NamedTuple):
    """Serialized items, and the mirrored files that they open: an item's `opens`, else all paths in it."""

    first: int
    items: list[bytes]
    mirrors: list[SentMirror]


class ItemsPartition(InputPartition):
    """Packed items as a partition of the job."""

    def __init__(self, packed: Packed) -> None:
        self.packed = packed


class Pickler(cloudpickle.CloudPickler):
    """Notes which paths of mirrors it meets, and writes them so that they become the reader's own."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.mirror_paths: list[str] = []

    def reducer_override(self, value: Any) -> Any:  # the name that pickle requires
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
    """Packed items; `first` is the number of the first one."""
    serialized, opened = [], list[Any]()
    for item in items:
        data, mirror_paths = pickled(item)
        serialized.append(data)
        opened += getattr(item, "opens", mirror_paths)
    return Packed(first, serialized, mirrors_for(map(str, opened)))


class TasksReader(DataSourceReader):
    """Runs the function over the items of a partition."""

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
                except StoreGone as error:  # Spark would repeat the task and show its stack
                    counted = CountedResult(error, 0, 0)
                result, _ = pickled(counted)
                yield pa.RecordBatch.from_pydict({"number": [number], "result": [result]}, SCHEMA)
                if isinstance(counted.result, StoreGone):
                    return


class Tasks(DataSource):
    """The data source of tasks; its work comes as an option."""

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

    Python drops exceptions raised in a finalizer, and py4j waits for Java in one.
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
        self._ended: set[int] = set()  # jobs whose stages are final
        spark.dataSource.register(Tasks)

    def ordered(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """function(item) for each item, in order; `TaskFailed` with the task's own message if one fails."""
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
                # An early end (error, Ctrl-C, closed reader): stop work that is no longer needed.
                if running:
                    self._cancel()
                pool.shutdown(wait=False, cancel_futures=True)

    def _wants_another(self, running: Iterable[Wave]) -> bool:
        """Whether to start another wave because the running ones will soon leave cores idle."""
        waves = unfinished = bytes_waiting = 0
        for wave in running:
            waves += 1
            if not wave.results.done():
                unfinished += wave.tasks
            elif not wave.results.exception():
                bytes_waiting += sum(map(len, wave.results.result()))
        return wants_another(waves, unfinished - self._completed(), bytes_waiting, self.cores)

    def _waves(self, body: bytes, waiting: Iterator[Item]) -> Iterator[tuple[str, int, str]]:
        """Each wave as an option of the data source, its number of tasks, and what they are."""
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
        """Tasks that are done in waves that are not."""
        with suppress(Exception):  # Connect does not say
            stages = self._stages()
            # These are the stages of all jobs in the session.
            active = self.spark.sparkContext.statusTracker().getActiveStageIds()
            return sum(stages[number].numCompletedTasks for number in active if number in stages)
        return 0

    def _say_tasks(self) -> None:
        if self.progress is SILENT:
            return
        # A wave that is done but not yet taken is in neither count.
        self._tasks_noted = max(self._tasks_noted, min(self._done + self._completed(), self._tasks_begun))
        self.progress.note(f"{self._tasks_noted:,} of {counted(self._tasks_begun, 'task')}")

    def _results(self, work: str, description: str) -> list[bytes]:
        """The serialized results of a wave, in order. Runs in a thread of its own."""
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
        """Count the failed tasks that Spark reports."""
        try:
            self._stages()
            self.retries = sum(self._failed.values())
        except Exception:  # Connect does not say
            self.retries = None

    def _stages(self) -> dict[int, SparkStageInfo]:
        """The stages of own jobs that were still running, by id; counts their failed tasks."""
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
