"""The tables of an audit: which there are, their schema, and how they are written and read.

`DIR/<table>/*.parquet`, or `DIR/batches/topic=NAME/*.parquet` from Spark; a table is written aside and moved into place when it is whole, so that a run that
failed leaves no half table and a run made again replaces. Timestamps are int64 milliseconds; lists and
objects are JSON text, so that every engine reads them alike.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from kctl.errors import KctlError, reason_of
from kctl.rows import RowType
from kctl.rows.find import row_type
from kctl.scan.parquet import ParquetPart

# Table, and the row type that it holds (`MODULE.NAME` of kctl/rows).
TABLES: dict[str, str] = {
    "files": "audit.EXAMINED",
    "findings": "common.FINDING",
    "segments": "audit.SEGMENT",
    "checkpoints": "audit.CHECKPOINT",
    "lineages": "replica.LINEAGE",
    "divergences": "replica.DIVERGENCE",
    "verdicts": "replica.VERDICT",
    "losses": "replica.LOSS",
    "leaders": "state_log.LEADER",
    "groups": "internal_topics.GROUP",
    "members": "internal_topics.GROUP_MEMBER",
    "committed_offsets": "internal_topics.COMMITTED_OFFSET",
    "transactions": "internal_topics.TRANSACTION",
    "open_transactions": "internal_topics.OPEN_TRANSACTION",
    "metadata": "internal_topics.METADATA",
    "metadata_brokers": "internal_topics.METADATA_BROKER",
    "metadata_topics": "internal_topics.METADATA_TOPIC",
    "metadata_partitions": "internal_topics.METADATA_PARTITION",
    "remote_segments": "remote.REMOTE_SEGMENT",
    "tier_partitions": "remote.TIER_PARTITION",
}
# What a row of a kind is written to.
TABLE_OF_KIND = {row_type(name).kind: table for table, name in TABLES.items()}

ARROW = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
ROWS_AT_ONCE = 16_384


def arrow_schema(rows: RowType) -> pa.Schema:
    """The Arrow schema of a row type."""
    return pa.schema(
        [
            (name, ARROW.get(field.types[0] if field.types else "", pa.string()))
            for name, field in rows.fields.items()
        ]
    )


def _column(values: Iterable[object], kind: pa.DataType) -> pa.Array:
    if kind == pa.string():
        plain = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
        return pa.array([v if v is None else v.encode("utf-8", "replace").decode() for v in plain], kind)
    return pa.array(list(values), kind)


class TableWriter:
    """Rows or record batches of one table into Parquet; in place only when left without an exception."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self.folder, self.name, self.schema = folder, name, schema
        self.aside = folder / f".{name}.writing"
        self._rows: list[Mapping[str, object]] = []

    def __enter__(self) -> "TableWriter":
        shutil.rmtree(self.aside, ignore_errors=True)
        try:
            self.aside.mkdir(parents=True)
            self._part = ParquetPart(self.aside.parent, self.aside.name, "part-00000", self.schema)
        except BaseException:  # the disk is full, or Ctrl-C
            shutil.rmtree(self.aside, ignore_errors=True)
            raise
        return self

    @property
    def workers(self) -> Path:
        """The folder below which worker processes write parts of their own, in a folder of the table's name."""
        return self.aside / "workers"

    def row(self, row: Mapping[str, object]) -> None:
        """Add a row."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._flush()

    def batches(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add record batches; they are gathered into row groups of some megabytes."""
        for batch in batches:
            self._part.write(batch)

    def _flush(self) -> None:
        columns = [_column([row.get(field.name) for row in self._rows], field.type) for field in self.schema]
        self._part.write(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        self._rows = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._part.__exit__(kind, error, trace)
            shutil.rmtree(self.aside, ignore_errors=True)
            return
        try:
            if self._rows:
                self._flush()
            self._part.__exit__(None, None, None)
            self._take_in_parts_of_workers()
        except BaseException:  # the disk is full, or Ctrl-C
            shutil.rmtree(self.aside, ignore_errors=True)
            raise
        self._put_in_place()

    def _put_in_place(self) -> None:
        place = self.folder / self.name
        if place.exists():
            old = self.folder / f".{self.name}.old"
            shutil.rmtree(old, ignore_errors=True)
            place.rename(old)
            self.aside.rename(place)
            shutil.rmtree(old, ignore_errors=True)
        else:
            self.aside.rename(place)

    def _take_in_parts_of_workers(self) -> None:
        for part in sorted(self.workers.glob("*/*.parquet")):
            folder = self.aside if part.parent.name == self.name else self.aside / part.parent.name
            folder.mkdir(exist_ok=True)
            part.rename(folder / part.name)
        shutil.rmtree(self.workers, ignore_errors=True)


def table_writer(folder: Path, name: str) -> TableWriter:
    """The writer of a table of rows."""
    return TableWriter(folder, name, arrow_schema(row_type(TABLES[name])))


def write_summary(folder: Path, summary: Mapping[str, object]) -> None:
    """`summary.json`, whole or not at all."""
    aside = folder / ".summary.json.writing"
    aside.write_text(
        json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", errors="replace"
    )
    os.replace(aside, folder / "summary.json")


class Tables:
    """The tables of a finished audit, read in bounded pieces."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.summary: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            why = f"summary.json: {reason_of(error)}"
            raise KctlError(
                f"{folder}: no audit lies here ({why})", "make one with `kctl audit run EVIDENCE --out DIR`"
            ) from error

    def has(self, name: str) -> bool:
        """Whether the audit wrote this table."""
        return (self.folder / name).is_dir()

    def names(self) -> list[str]:
        """The tables that are there."""
        return sorted(
            one.name for one in self.folder.iterdir() if one.is_dir() and not one.name.startswith(".")
        )

    def dataset(self, name: str) -> ds.Dataset:
        """The table as an Arrow dataset."""
        return ds.dataset(self.folder / name, format="parquet")

    def rows(
        self, name: str, columns: list[str] | None = None, where: ds.Expression | None = None
    ) -> Iterator[dict[str, Any]]:
        """Its rows, a batch in memory at a time; nothing where the table was not written."""
        if not self.has(name):
            return
        for batch in self.dataset(name).to_batches(columns=columns, filter=where):
            yield from batch.to_pylist()

    def count(self, name: str) -> int:
        """How many rows it has."""
        return int(self.dataset(name).count_rows()) if self.has(name) else 0
