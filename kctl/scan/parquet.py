"""Record batches into Parquet files, in bounded memory: `DIR/<part>.parquet`.

Each worker writes parts of its own and reports their rows and bytes; a part appears under its name only when it is
whole.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from formats.words import counted

ROW_GROUP_BYTES = 16 << 20
BATCHES_AT_ONCE = 128
RISING = frozenset(("position", "base_offset", "last_offset", "base_timestamp", "max_timestamp"))
"""Columns that rise by about as much in each row, so that the differences are smaller than a dictionary, and sooner written."""

UNLIKE = frozenset(("crc",))
"""Columns of values that are all different."""


class WrittenPart(NamedTuple):
    """A file of a table as its writer reports it."""

    name: str
    rows: int
    bytes: int


class ParquetPart:
    """One file of a table; record batches are gathered into row groups of some megabytes.

    A file says nothing of Arrow: its columns are those of the schema, texts that are numbers of few there are texts in it.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        # A task may run twice at a time, on two machines: each writes a file of its own, with the same rows.
        self._aside = path.with_name(f".{path.name}.{token_hex(8)}.writing")
        path.parent.mkdir(parents=True, exist_ok=True)
        rising = [field.name for field in schema if field.name in RISING and field.type == pa.int64()]
        self._writer = pq.ParquetWriter(
            self._aside,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name not in rising and name not in UNLIKE],
            column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
            store_schema=False,  # texts that come as numbers of few are texts to every reader
        )
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._small: list[pa.RecordBatch] = []
        self._size = 0
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        if not batch.num_rows:
            return
        self.rows += batch.num_rows
        self._small.append(batch)
        if len(self._small) == BATCHES_AT_ONCE:
            self._gather()
        self._size += batch.nbytes
        if self._size >= ROW_GROUP_BYTES:
            self._flush()

    def _gather(self) -> None:
        """Copy batches into one: of small ones, the columns' objects take many times their bytes."""
        self._batches += pa.Table.from_batches(self._small, self._schema).combine_chunks().to_batches()
        self._small = []

    def _flush(self) -> None:
        rows = pa.Table.from_batches(self._batches + self._small, self._schema)
        self._writer.write_table(rows.unify_dictionaries())
        self._batches, self._small, self._size = [], [], 0

    def close(self) -> WrittenPart:
        """Put the file in place."""
        if self._batches or self._small:
            self._flush()
        self._writer.close()
        written = WrittenPart(self.path.name, self.rows, self._aside.stat().st_size)
        os.replace(self._aside, self.path)
        return written

    def abandon(self) -> None:
        """Take the file away, which is not whole."""
        with contextlib.suppress(OSError):  # a full disk refuses the footer too
            self._writer.close()
        self._aside.unlink(missing_ok=True)

    def __enter__(self) -> ParquetPart:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


def part_difference(file: BinaryIO, part: WrittenPart, schema: pa.Schema) -> str | None:
    """How a file differs from the part that its writer reported; None where it does not."""
    size = os.fstat(file.fileno()).st_size
    if size != part.bytes:
        return f"{part.name} has {size:,} bytes, {part.bytes:,} were written"
    try:
        metadata = pq.read_metadata(file)
        rows, file_schema = metadata.num_rows, metadata.schema.to_arrow_schema()
    except (OSError, pa.ArrowException) as error:
        return f"{part.name} cannot be read: {str(error).splitlines()[0]}"
    if rows != part.rows:
        return f"{part.name} has {counted(rows, 'row')}, {part.rows:,} were written"
    return None if file_schema.equals(schema) else f"{part.name} has another schema than the table"
