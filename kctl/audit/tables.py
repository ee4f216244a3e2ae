"""The tables of an audit: which there are, their schema, and how they are written and read.

One schema in all files of a table, so that readers see the same columns whichever they look at. A table is written
aside and moved into place when it is whole. Timestamps are int64 milliseconds; numbers beyond 64 bits are null; lists
and objects are JSON text, so that every engine reads them alike.
"""

import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from formats import bounded_json
from formats.words import counted
from kctl.errors import KctlError, reason_of
from kctl.files import LARGEST_TABLE, open_file, read_text, what_it_is
from kctl.rows import row_type
from kctl.rows.audit import AUDIT
from kctl.scan.parquet import ParquetPart, WrittenPart, part_difference
from kctl.scan.tables import PACKED_BATCHES, arrow_schema, storable

if TYPE_CHECKING:
    import pyarrow.dataset as ds

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
    "judgements": "judging.JUDGEMENT",
    "leaders": "state_log.LEADER",
    "broker_states": "state_log.BROKER_STATE",
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
    "batches": "audit.BATCH",  # written as columns, by `kctl.scan.tables`; every other one row by row
}
# What a row of a kind is written to.
TABLE_OF_KIND = {row_type(name).kind: table for table, name in TABLES.items()}

ROWS_AT_ONCE = 2048
MOST_NAMED = 5  # parts in an error
ANEW = "run the audit again"


def _schema_of(table: str) -> pa.Schema:
    return arrow_schema(row_type(TABLES[table]))


def _column(values: Iterable[object], kind: pa.DataType) -> pa.Array:
    if kind == pa.string():
        plain = (v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values)
        return pa.array([v if v is None else storable(v) for v in plain], kind)
    if kind == pa.int64():  # a sum of numbers of evidence may be more than they hold
        values = (v if not isinstance(v, int) or -(2**63) <= v < 2**63 else None for v in values)
    return pa.array(list(values), kind)


class TableWriter:
    """Rows or record batches of one table into Parquet, and the parts that worker processes write themselves.

    Left without an exception, the table is whole in a folder aside and every part is as it was reported;
    `put_in_place` gives it its name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.schema = folder, name, _schema_of(name)
        self.aside = folder / f".{name}.writing"
        self.workers = self.aside / "workers"  # where worker processes write parts
        self._rows: list[Mapping[str, object]] = []
        self._parts: dict[str, WrittenPart] = {}

    def __enter__(self) -> "TableWriter":
        shutil.rmtree(self.aside, ignore_errors=True)
        try:
            self.aside.mkdir()
            schema = PACKED_BATCHES if self.name == "batches" else self.schema
            self._part = ParquetPart(self.aside / "part-00000.parquet", schema)
        except BaseException:  # the disk is full, or Ctrl-C
            shutil.rmtree(self.aside, ignore_errors=True)
            raise
        return self

    def row(self, row: Mapping[str, object]) -> None:
        """Add a row."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._flush()

    def batches(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add record batches of `PACKED_BATCHES`; they are gathered into row groups of some megabytes."""
        for batch in batches:
            self._part.write(batch)

    def take_in(self, part: WrittenPart) -> None:
        """A part that a worker reports to have written below `workers`."""
        if part.name in self._parts:
            raise KctlError(f"table {self.name}: two tasks wrote {part.name}", "start over with --overwrite")
        self._parts[part.name] = part

    def _flush(self) -> None:
        columns = [_column([row.get(field.name) for row in self._rows], field.type) for field in self.schema]
        self._part.write(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        self._rows = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                self._part.abandon()
                return
            if self._rows:
                self._flush()
            self._check_parts()
            for name in self._parts:
                os.rename(self.workers / name, self.aside / name)
            written = self._part.close()
            if self._parts and not written.rows:
                self._part.path.unlink()
            shutil.rmtree(self.workers, ignore_errors=True)
            kind = None
        except BaseException as raised:  # the disk is full, or Ctrl-C
            kind = type(raised)
            raise
        finally:
            if kind is not None:
                shutil.rmtree(self.aside, ignore_errors=True)

    def _check_parts(self) -> None:
        """`KctlError` where the parts of workers are not those that they reported: the table would lack rows."""
        unknown = {path.name for path in self.workers.glob("*.parquet")} - self._parts.keys()
        wrong = [f"{name} was not reported by any task" for name in sorted(unknown)]
        for part in self._parts.values():
            try:
                with open_file(self.workers / part.name) as file:
                    difference = part_difference(file, part, self.schema)
            except OSError as error:
                difference = f"{part.name} ({counted(part.rows, 'row')}): {reason_of(error)}"
            wrong += [difference] if difference else []
        if wrong:
            and_more = f"; and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
            raise KctlError(
                f"table {self.name}: parts in {self.workers} are missing or differ from what tasks wrote: "
                f"{'; '.join(wrong[:MOST_NAMED])}{and_more}",
                "executors and this machine must share the folder of --out",
            )

    def put_in_place(self) -> None:
        """Give the table its name, in place of an earlier one."""
        place, old = self.folder / self.name, self.folder / f".{self.name}.old"
        shutil.rmtree(old, ignore_errors=True)
        if place.exists():
            place.rename(old)
        self.aside.rename(place)
        shutil.rmtree(old, ignore_errors=True)


def write_file(path: Path, text: str) -> None:
    """A text file, whole or not at all; a symbolic link in its place is replaced, not followed."""
    aside = path.with_name(f".{path.name}.{token_hex(8)}.writing")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(aside, flags, 0o666), "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_summary(folder: Path, summary: Mapping[str, object]) -> None:
    """`summary.json`."""
    write_file(folder / "summary.json", json.dumps(summary, indent=2) + "\n")


def damaged(place: str, error: Exception) -> KctlError:
    """The error of a table that Arrow cannot read."""
    return KctlError(f"{place}: damaged ({str(error).splitlines()[0].rstrip('.')})", ANEW)


class Tables:
    """The tables of a finished audit, read in bounded pieces."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            summary: Any = bounded_json.loads(read_text(folder / "summary.json", LARGEST_TABLE))
            problem = AUDIT.problem_of(summary)
        except (OSError, ValueError, RecursionError) as error:
            problem = reason_of(error)
        if problem:
            raise KctlError(
                f"{folder}: not an audit (summary.json: {problem})",
                "make one with `kctl audit run EVIDENCE --out DIR`",
            )
        self.summary: dict[str, Any] = summary

    def has(self, name: str) -> bool:
        """Whether the audit wrote this table. KctlError where something else than a folder lies in its place."""
        try:
            mode = (self.folder / name).lstat().st_mode
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(mode):
            raise KctlError(f"{self.folder / name}: is {what_it_is(mode)}, not a table", ANEW)
        return True

    def names(self) -> list[str]:
        """The tables that are there."""
        return sorted(name for name in TABLES if self.has(name))

    def parts(self, name: str) -> list[Path]:
        """The files of the table. KctlError names one that is damaged or of another schema."""
        if not self.has(name):
            return []
        schema = _schema_of(name)
        parts = sorted((self.folder / name).rglob("*.parquet"))
        for part in parts:
            try:
                with open_file(part) as file:  # a named pipe would be waited for
                    is_ours = pq.read_schema(file).equals(schema)
            except (OSError, pa.ArrowException) as error:
                raise damaged(str(part), error) from error
            if not is_ours:
                raise KctlError(f"{part}: does not have the schema of this version of kctl", ANEW)
        if not parts:
            raise KctlError(f"{self.folder / name}: the table has no parts", ANEW)
        return parts

    def dataset(self, name: str) -> "ds.Dataset":
        """The table as an Arrow dataset."""
        import pyarrow.dataset as ds  # loads all of Arrow's functions

        return ds.dataset(list(map(str, self.parts(name))), schema=_schema_of(name), format="parquet")

    def rows(self, name: str, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
        """Its rows, a batch in memory at a time; nothing where the table was not written."""
        fields = row_type(TABLES[name]).fields
        strict = [item for item in fields.items() if item[1].choices or not item[1].fits(None)]
        try:
            for row in chain.from_iterable(map(pa.RecordBatch.to_pylist, self._batches(name, columns))):
                for key, field in strict:
                    value = row.get(key, "")
                    if (value is None or (field.choices and key in row)) and not field.fits(value):
                        raise KctlError(f"{self.folder / name}: {key} cannot be {value!r}", ANEW)
                yield row
        except (OSError, pa.ArrowException) as error:
            raise damaged(str(self.folder / name), error) from error

    def _batches(self, name: str, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        for part in self.parts(name):
            with pq.ParquetFile(part) as file:
                yield from file.iter_batches(ROWS_AT_ONCE, columns=columns)

    def count(self, name: str) -> int:
        """How many rows it has."""
        return sum(pq.read_metadata(part).num_rows for part in self.parts(name))
