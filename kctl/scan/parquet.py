"""Record batches into Parquet files, in bounded memory: `DIR/<table>/<part>.parquet`.

Each worker writes parts of its own; a part appears under its name only when it is whole.
"""

import contextlib
import os
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP_BYTES = 16 << 20
NOBODYS = "topic=__HIVE_DEFAULT_PARTITION__"
LONGEST_NAME = 249
"""Of a topic; what is longer is no topic that Kafka made."""


def topic_folder(topic: str | None) -> str:
    """The folder of a topic's rows in a table."""
    name = quote(topic or "", safe="", errors="replace")
    return f"topic={name}" if 0 < len(name) <= LONGEST_NAME else NOBODYS


class ParquetPart:
    """One file of a table; record batches are gathered into row groups of some megabytes."""

    def __init__(self, folder: Path, table: str, part: str, schema: pa.Schema) -> None:
        self.path = folder / table / f"{part}.parquet"
        self._aside = self.path.with_name(f".{part}.writing")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(self._aside, schema, compression="zstd")
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._size = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        if not batch.num_rows:
            return
        self._held.append(batch)
        self._size += batch.nbytes
        if self._size >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._held, self._schema))
        self._held, self._size = [], 0

    def __enter__(self) -> "ParquetPart":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            with contextlib.suppress(OSError):  # a full disk refuses the footer too
                self._writer.close()
            self._aside.unlink(missing_ok=True)
            return
        if self._held:
            self._flush()
        self._writer.close()
        os.replace(self._aside, self.path)
