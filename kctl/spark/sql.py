"""SQL over the tables of an audit on Spark, for audits that are too large for one machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.audit.tables import Tables
from kctl.errors import BadValue
from kctl.spark.data_source import TABLES, KafkaSegments, ddl_of
from kctl.spark.session import prepare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = {
    "spark.sql.runSQLOnFiles": "false",  # the audit's tables and no other file
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",  # as in DuckDB: a column named group is "group"
}


def query(spark: SparkSession, tables: Tables, statement: str) -> Iterator[dict[str, Any]]:
    """The rows of a statement, one partition in memory at a time. `BadValue` if Spark refuses it."""
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    for name in tables.names():
        if re.search(rf"\b{name}\b", statement, re.IGNORECASE):
            _view(spark, tables, name)
    frame = _frame(spark, statement.strip().rstrip(";"), tables)
    for row in frame.toLocalIterator(prefetchPartitions=True):
        yield {name: _plain(value) for name, value in zip(frame.columns, row, strict=True)}


def views(spark: SparkSession, out: str, evidence: str | None = None) -> list[str]:
    """Create temporary views of all tables of an audit, and of evidence as `evidence_batches` etc.; return their names."""
    tables = Tables(Path(out))
    for name in tables.names():
        _view(spark, tables, name)
    if evidence:
        prepare(spark)
    for name in TABLES if evidence else ():
        frame = spark.read.format(KafkaSegments.name()).option("table", name).load(evidence)
        frame.createOrReplaceTempView(f"evidence_{name}")
    return [*tables.names(), *(f"evidence_{name}" for name in TABLES if evidence)]


def _view(spark: SparkSession, tables: Tables, name: str) -> None:
    # The files have the topic of a row; from folder names Spark would read `7` as a number.
    reader = spark.read.option("recursiveFileLookup", "true").schema(ddl_of(tables.dataset(name).schema))
    reader.parquet(str(tables.folder.resolve() / name)).createOrReplaceTempView(name)


def _frame(spark: SparkSession, statement: str, tables: Tables) -> DataFrame:
    from pyspark.errors import PySparkException

    try:
        # In parentheses only a query is allowed: Spark would run a command as soon as it is parsed.
        spark.sql(f"SELECT * FROM (\n{statement}\n)")  # noqa: S608  # the operator's own words
        return spark.sql(statement)
    except PySparkException as error:
        first = str(error).strip().splitlines()[0]
        raise BadValue(f"SQL: {first}", f"the tables are {', '.join(tables.names())}") from error


def _plain(value: Any) -> Any:
    """A value as DuckDB returns it: no decimals."""
    if isinstance(value, Decimal):
        return (
            int(value)
            if value == value.to_integral_value() and value.as_tuple().exponent == 0
            else float(value)
        )
    return value
