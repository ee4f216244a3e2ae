"""`spark.read.format("kafka-segments")`: the tables of a scan as a Spark data source (Spark 4.1 and later).

Options and filters: docs/spark.md. Filters are exact only because Spark applies its own again. Rows of one partition of
the job come in the order of the log.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from kctl.errors import KctlError, near_names
from kctl.findings import Finding
from kctl.scan.splits import TARGET
from kctl.scan.tables import SCHEMAS
from kctl.spark.listing import list_segments
from kctl.spark.paths import matches
from kctl.spark.planning import Filters, SegmentCut, plan, target_for
from kctl.spark.reading import findings_rows, gathered, read_pieces

TABLES = ("batches", "records", "findings", "segments")
DDL = {
    pa.int64(): "bigint",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.float64(): "double",
}
LEAST_SPLIT = 32 << 20
# Spark passes a list given to `load` as `paths`.
OPTIONS = ("table", "path", "paths", "split_bytes", "least_split_bytes", "pushdown")

# What a filter on a column sets: two bounds (least, most) of Filters, or a set.
SETS = {"topic": "topics", "partition": "partitions", "broker_id": "brokers"}
RANGES = {
    "offset": ("from_offset", "to_offset"),
    "timestamp": ("from_time", "to_time"),
    "base_offset": (None, "to_offset"),
    "last_offset": ("from_offset", None),
    "max_timestamp": ("from_time", "to_time"),
    "partition_leader_epoch": ("from_epoch", "to_epoch"),
}


def ddl_of(schema: pa.Schema) -> str:
    """An Arrow schema in Spark's DDL."""
    return ", ".join(f"`{field.name}` {_type(field.type)}" for field in schema)


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{kind.field(i).name}:{_type(kind.field(i).type)}' for i in range(kind.num_fields))}>"
    return DDL[kind]


class JobPartition(InputPartition):
    """The cuts that one partition of the job reads, and the target size that they were planned with.

    The first partition has the findings of the listing.
    """

    def __init__(self, pieces: list[SegmentCut], target: int, findings: list[Finding]) -> None:
        self.pieces, self.target, self.findings = pieces, target, findings


class Reader(DataSourceReader):
    """Plans on the driver, reads on executors."""

    def __init__(self, where: list[str], table: str, columns: list[str], target: int) -> None:
        self.where, self.table, self.columns, self.target = where, table, columns, target
        self.filters = Filters()

    def partitions(self) -> list[InputPartition]:
        findings: list[Finding] = []
        segments = [segment for root in self.where for segment in list_segments(root, findings)]
        target = target_for(segments, self.target)
        partitions = plan(segments, self.table, self.filters, target) or [[]]
        return [
            JobPartition(pieces, target, [] if number else findings)
            for number, pieces in enumerate(partitions)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, JobPartition)
        freeze_once()
        listed = findings_rows(self.table, self.columns, partition.findings)
        rows = read_pieces(partition.pieces, self.table, self.columns, self.filters, partition.target)
        return gathered(chain(listed, rows))


class FilteringReader(Reader):
    """A reader with filter pushdown: Spark fails if a reader defines `pushFilters` while pushdown is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # the name that Spark requires
        """Use the filters; return those that Spark must check again.

        Filters that are not returned show as pushed: those on what all rows of a segment have in common. A finding may have
        no segment.
        """
        self.filters = filters_of(filters)
        return [filter_ for filter_ in filters if self.table == "findings" or not is_exact(filter_)]


class KafkaSegments(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kafka-segments"

    @property
    def table(self) -> str:
        table = str(self.options.get("table", "batches"))
        if table not in TABLES:
            raise KctlError(f"no table {table!r}", f"there are {', '.join(TABLES)}")
        return table

    def _number(self, option: str, default: int) -> int:
        text = self.options.get(option, default)
        try:
            return int(text)
        except ValueError:
            raise KctlError(f"{option} is not a number: {text!r}", "give a number of bytes") from None

    def _flag(self, option: str) -> bool:
        text = str(self.options.get(option, "false"))
        if text.lower() not in ("true", "false"):
            raise KctlError(
                f"{option} is neither true nor false: {text!r}", f"give {option}=true, or leave it out"
            )
        return text.lower() == "true"

    def schema(self) -> str:
        return ddl_of(SCHEMAS[self.table])

    def reader(self, schema: StructType) -> DataSourceReader:
        for option in self.options:
            if option.lower() not in OPTIONS:
                raise KctlError(
                    f"unknown option {option!r}",
                    near_names(option, OPTIONS, otherwise=f"there are {', '.join(OPTIONS)}"),
                )
        where = paths_of(self.options)
        unknown = [name for name in schema.fieldNames() if name not in SCHEMAS[self.table].names]
        if unknown:
            raise KctlError(
                f"the table {self.table} has no column {unknown[0]!r}",
                f"its columns are {', '.join(SCHEMAS[self.table].names)}",
            )
        target = max(1, self._number("least_split_bytes", LEAST_SPLIT), self._number("split_bytes", TARGET))
        kind = FilteringReader if self._flag("pushdown") else Reader
        return kind(where, self.table, list(schema.fieldNames()), target)


def paths_of(options: Mapping[str, str]) -> list[str]:
    """The folders and URIs given to `load`, each once; of patterns the folders that match."""
    given = json.loads(options["paths"]) if options.get("paths") else [options.get("path")]
    paths: dict[str, None] = {}
    for path in filter(None, given):
        # Executors have other working directories.
        paths |= dict.fromkeys(match if "://" in match else os.path.abspath(match) for match in matches(path))
    if not paths:
        raise KctlError("no path given", "call load() with a folder or a URI")
    return list(paths)


def filters_of(filters: Iterable[Filter]) -> Filters:
    """The bounds that AND-ed filters set; filters without usable bounds are left to Spark."""
    sets: dict[str, Any] = {}
    bounds: dict[str, Any] = {}
    for filter_ in filters:
        name = _column_of(filter_)
        if name in SETS and isinstance(filter_, (EqualTo, In)):
            values = frozenset(filter_.value if isinstance(filter_, In) else (filter_.value,))
            key = SETS[name]
            sets[key] = sets[key] & values if key in sets else values
        elif name in RANGES:
            _bound(filter_, RANGES[name], bounds)
    return Filters(**{**sets, **bounds})


def _column_of(filter_: Filter) -> str:
    attribute: tuple[str, ...] = getattr(filter_, "attribute", ())
    return str(attribute[0]) if len(attribute) == 1 else ""


def is_exact(filter_: Filter) -> bool:
    """Whether segments alone decide the filter for every row."""
    if not isinstance(filter_, (EqualTo, In)) or _column_of(filter_) not in SETS:
        return False
    return None not in (filter_.value if isinstance(filter_, In) else (filter_.value,))


def _bound(filter_: Filter, names: tuple[str | None, str | None], bounds: dict[str, Any]) -> None:
    value = getattr(filter_, "value", None)
    if not isinstance(value, int):
        return
    least, most = names
    step = 1 if isinstance(filter_, (GreaterThan, LessThan)) else 0
    if least and isinstance(filter_, (EqualTo, GreaterThan, GreaterThanOrEqual)):
        bounds[least] = max(bounds.get(least, value + step), value + step)
    if most and isinstance(filter_, (EqualTo, LessThan, LessThanOrEqual)):
        bounds[most] = min(bounds.get(most, value - step), value - step)


_frozen = False


def freeze_once() -> None:
    """Hide imported objects from the garbage collector: a worker collects after every task."""
    global _frozen  # one flag a process, set once
    if not _frozen:
        gc.collect()
        gc.freeze()
        _frozen = True
