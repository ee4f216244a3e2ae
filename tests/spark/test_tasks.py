"""What the engine sends of a store with its work, and what it makes of Spark's counts; no Spark is started here."""

from __future__ import annotations

import re
import shutil
import signal
import sys
import zipfile
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from kctl.evidence.discover import discover
from kctl.evidence.replica_copies import copies_of
from kctl.model import TopicPartition
from kctl.replica.comparison.search import CompareOptions, ComparisonTask, compared_task, comparison_rows
from kctl.spark.session import prepare
from kctl.spark.tasks import PLAIN, Packed, SparkEngine, TaskFailed, interrupts, packed
from kctl.stores.mirror import local_path
from kctl.stores.sent_mirrors import mirrors_laid
from tests.kctl.stores.test_mirror import URL, Handler, forgotten, store

__all__ = ["forgotten", "store"]  # fixtures


def comparisons() -> list[ComparisonTask]:
    """One of each partition of the store."""
    found = copies_of(discover((local_path(URL),)))
    return [
        ComparisonTask(partition, moment, copies, (), None)
        for partition, by_moment in found.items()
        for moment, copies in by_moment.items()
    ]


def listed(sent: Packed) -> list[str]:
    return sorted(key for part in sent.mirrors for key, _, _ in part.files)


def test_a_comparison_goes_with_the_folders_that_it_reads_alone(store: Handler) -> None:
    """However many other partitions lie beside them; and it needs no more."""
    folders = sorted(store.folder.glob("broker-*/data/stock-1"))
    for folder in folders:
        for number in range(1, 20):
            shutil.copytree(folder, folder.with_name(f"other-{number}"))
    tasks = comparisons()
    assert len(tasks) >= 20 and len(folders) > 1
    (task,) = (one for one in tasks if one.partition == TopicPartition("stock", 1))
    sent = packed(0, [task])
    assert listed(sent) == sorted(
        str(path.relative_to(store.folder)) for folder in folders for path in folder.iterdir()
    )
    here = [*comparison_rows(compared_task(task), CompareOptions())]
    with mirrors_laid(sent.mirrors):
        there = [*comparison_rows(compared_task(PLAIN.loads(sent.items[0])), CompareOptions())]
    assert there == here and here[-1]["verdict"] == "equal"


def test_paths_that_mean_the_same_are_listed_once(store: Handler) -> None:
    """The folder of a mirror, and folders in it."""
    root = discover((local_path(URL),)).log_dirs[0].root.path
    files = listed(packed(0, [root, root / "broker-1", root / "broker-1" / "data" / ".." / "data"]))
    assert files == sorted(
        str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if path.is_file()
    )


class Job(NamedTuple):
    """What a tracker says of a job."""

    group: str
    status: str
    stageIds: tuple[int, ...]


class Stage(NamedTuple):
    """The same of a stage."""

    stageId: int
    numCompletedTasks: int
    numFailedTasks: int


class Tracker:
    """Stands in for that of a SparkContext; remembers which jobs it was asked for."""

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        self.stages: dict[int, Stage] = {}
        self.asked: list[int] = []

    def add(self, number: int, group: str, status: str, completed: int, failed: int = 0) -> None:
        self.jobs[number] = Job(group, status, (number,))
        self.stages[number] = Stage(number, completed, failed)

    def getActiveStageIds(self) -> list[int]:
        return [number for number, job in self.jobs.items() if job.status == "RUNNING"]

    def getJobIdsForGroup(self, group: str) -> list[int]:
        return [number for number, job in self.jobs.items() if job.group == group]

    def getJobInfo(self, number: int) -> Job:
        self.asked.append(number)
        return self.jobs[number]

    def getStageInfo(self, number: int) -> Stage:
        return self.stages[number]


def engine_of(tracker: Tracker) -> SparkEngine:
    spark: Any = SimpleNamespace(
        dataSource=SimpleNamespace(register=lambda source: None),
        sparkContext=SimpleNamespace(statusTracker=lambda: tracker),
    )
    return SparkEngine(spark, 2)


def test_tasks_of_other_jobs_in_the_session_are_not_counted() -> None:
    tracker = Tracker()
    engine = engine_of(tracker)
    assert engine._tag != engine_of(tracker)._tag
    tracker.add(1, engine._tag, "RUNNING", completed=3)
    tracker.add(2, "a notebook", "RUNNING", completed=500)
    tracker.add(3, engine._tag, "SUCCEEDED", completed=40)
    assert engine._completed() == 3


def test_a_job_that_ended_is_asked_for_once() -> None:
    """An audit has thousands, and each question is a call into another process."""
    tracker = Tracker()
    engine = engine_of(tracker)
    for number in range(50):
        tracker.add(number, engine._tag, "RUNNING", completed=1, failed=1)
        assert engine._completed() == 1
        tracker.add(number, engine._tag, "SUCCEEDED", completed=2, failed=3)
        engine._count_retries()
        engine._count_retries()
        assert engine._completed() == 0 and engine.retries == 3 * (number + 1)
    assert len(tracker.asked) == 2 * 50
    tracker.jobs.clear()  # Spark forgets old ones
    engine._count_retries()
    assert engine.retries == 150


def test_jobs_that_spark_no_longer_knows_or_does_not_tell() -> None:
    tracker = Tracker()
    engine = engine_of(tracker)
    tracker.getJobInfo = lambda number: None  # type: ignore[assignment,method-assign,return-value]
    tracker.add(1, engine._tag, "RUNNING", completed=3)
    engine._count_retries()
    assert (engine._completed(), engine.retries) == (0, 0)
    del engine.spark.sparkContext  # as over Connect
    engine._count_retries()
    assert (engine._completed(), engine.retries) == (0, None)


@pytest.mark.parametrize(
    ("said", "cause", "is_unfit"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11.\n"
            "Please check environment variables PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON are correctly set.",
            "Python in worker has different version: 3.9", True,
        ),
        (
            "An error occurred while calling o51.collectToPython.\n: org.apache.spark.SparkException: Job aborted: Lost "
            'task 0.3 (executor 0): java.io.IOException: Cannot run program "/opt/python": error=2, No such file\n\tat java',
            'Cannot run program "/opt/python"', True,
        ),
        ("Traceback (most recent call last):\nModuleNotFoundError: No module named 'msgspec'\n", "'msgspec'", True),
        ("Traceback (most recent call last):\nMemoryError: no room\n", "no room", False),
    ],
)  # fmt: skip
def test_an_executor_that_lacks_something_is_told_what(said: str, cause: str, is_unfit: bool) -> None:
    engine = engine_of(Tracker())
    engine.spark.addTag = lambda tag: None  # type: ignore[method-assign]
    engine.spark.read = SimpleNamespace(format=lambda name: fail(said))  # type: ignore[misc,assignment]
    with pytest.raises(TaskFailed, match=re.escape(cause)) as raised:
        engine._results("work", "what")
    wanted = "executors need Python {}.{} as the driver has it".format(*sys.version_info)
    assert (wanted in raised.value.hint) == is_unfit
    assert "\n" not in raised.value.message


def fail(words: str) -> None:
    raise RuntimeError(words)


def test_an_interrupt_whose_exception_is_lost_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    lost: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    own = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell starts what it puts behind deaf to it
    try:
        with interrupts() as seen:
            assert not seen
            Finalized()
            assert seen == [signal.SIGINT] and lost[0].exc_type is KeyboardInterrupt
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, own)


def test_a_session_that_somebody_else_made_is_sent_the_code_once() -> None:
    settings: dict[str, str] = {}
    sent: list[list[str]] = []
    registered: list[str] = []

    def send(path: str) -> None:
        with zipfile.ZipFile(path) as archive:
            sent.append(archive.namelist())

    spark: Any = SimpleNamespace(
        dataSource=SimpleNamespace(register=lambda source: registered.append(source.name())),
        conf=SimpleNamespace(get=settings.get, set=settings.__setitem__),
        sparkContext=SimpleNamespace(addPyFile=send),
    )
    prepare(spark)
    prepare(spark)
    assert registered == ["kafka-segments"] and len(sent) == 1
    assert {"kctl/spark/tasks.py", "formats/values.py"} <= {*sent[0]}
