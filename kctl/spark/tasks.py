"""Any function over any items on executors, results in order: how an audit runs on Spark.

The same functions that the local pool runs are sent as the partitions of a data source, which works on
classic masters and over Connect alike. Items go out in waves, so that the driver holds few results.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kctl.errors import KctlError
from kctl.spark.data_source import freeze_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")

SCHEMA = pa.schema([("number", pa.int64()), ("result", pa.binary())])
PARTITIONS_A_WAVE = 4
"""For each core: enough that a slow one does not keep the others waiting."""
ITEMS_A_PARTITION = 64


class Chunk(InputPartition):
    """Some items, pickled."""

    def __init__(self, first: int, items: list[bytes]) -> None:
        self.first, self.items = first, items


class TasksReader(DataSourceReader):
    """Runs the function over the items of its partitions."""

    def __init__(self, work: bytes) -> None:
        self.work = work

    def partitions(self) -> list[InputPartition]:
        _, chunks = pickle.loads(self.work)  # noqa: S301  # our own, from the driver
        return [Chunk(first, items) for first, items in chunks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Chunk)
        freeze_once()
        function = pickle.loads(pickle.loads(self.work)[0])  # noqa: S301
        for number, item in enumerate(partition.items, partition.first):
            result = cloudpickle.dumps(function(pickle.loads(item)))  # noqa: S301
            yield pa.RecordBatch.from_pydict({"number": [number], "result": [result]}, SCHEMA)


class Tasks(DataSource):
    """The data source; its work comes as an option."""

    @classmethod
    def name(cls) -> str:
        return "kctl-tasks"

    def schema(self) -> str:
        return "number bigint, result binary"

    def reader(self, schema: StructType) -> DataSourceReader:
        return TasksReader(base64.b64decode(self.options["work"]))


class SparkEngine:
    """An engine of `kctl.scan.pool`: the functions of the local pool, run by executors."""

    def __init__(self, spark: SparkSession, cores: int) -> None:
        self.spark, self.cores = spark, cores
        spark.dataSource.register(Tasks)

    def ordered(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """function(item) for each item, in order; `KctlError` with the task's own words where one fails."""
        body = cloudpickle.dumps(function)
        waiting = iter(items)
        size = 1
        while wave := list(islice(waiting, size * self.cores * PARTITIONS_A_WAVE)):
            chunks = [
                (at, [pickle.dumps(one) for one in wave[at : at + size]]) for at in range(0, len(wave), size)
            ]
            work = base64.b64encode(pickle.dumps((body, chunks))).decode()
            yield from _results(self.spark, work)
            # The first wave shows results early; later ones have fewer, larger partitions.
            size = min(ITEMS_A_PARTITION, size * 4)


def cores_of(spark: SparkSession) -> int:
    """How many tasks run at once; a guess over Connect, which does not say."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:
        return 8


def _results(spark: SparkSession, work: str) -> Iterator[Any]:
    try:
        rows = spark.read.format("kctl-tasks").option("work", work).load().collect()
    except Exception as error:  # py4j and gRPC have families of their own
        raise KctlError(f"a Spark task failed: {_cause(error)}") from error
    for row in sorted(rows, key=lambda one: one["number"]):
        yield pickle.loads(bytes(row["result"]))  # noqa: S301  # from our own executors


def _cause(error: BaseException) -> str:
    """The last line of a Python traceback inside a Spark error, else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = [
        line
        for line in lines
        if ("Error:" in line or "Exception:" in line) and not line.startswith(("at ", "Caused by", "org."))
    ]
    return (python or lines or [type(error).__name__])[-1 if python else 0]
