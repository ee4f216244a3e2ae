"""A table partitioned by topic, as Spark and Hive lay it out: `DIR/<table>/topic=NAME/*.parquet`.

The topic stands inside the files as well, so that a reader who knows nothing of such folders sees the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from kctl.audit.tables import TableWriter
from kctl.scan.parquet import ParquetPart, topic_folder

MOST_HELD = 64 << 20
"""Bytes of rows that wait until their topic has enough of them for a file."""


class TopicTableWriter(TableWriter):
    """A `TableWriter` whose record batches, each of one topic, go into the folders of their topics."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        super().__init__(folder, name, schema)
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._sizes: dict[str, int] = {}
        self._files = 0

    def batches(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add record batches."""
        for batch in batches:
            if not batch.num_rows:
                continue
            folder = topic_folder(batch.column("topic")[0].as_py())
            self._held.setdefault(folder, []).append(batch)
            self._sizes[folder] = self._sizes.get(folder, 0) + batch.nbytes
        if sum(self._sizes.values()) > MOST_HELD:
            # Those with the most rows: many small files would cost every reader.
            for folder in sorted(self._sizes, key=self._sizes.__getitem__)[::-1]:
                if sum(self._sizes.values()) <= MOST_HELD // 2:
                    break
                self._write(folder)

    def _write(self, folder: str) -> None:
        with ParquetPart(self.aside, folder, f"part-{self._files:05}", self.schema) as part:
            for batch in self._held.pop(folder):
                part.write(batch)
        del self._sizes[folder]
        self._files += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                for folder in list(self._held):
                    self._write(folder)
            except BaseException as raised:
                super().__exit__(type(raised), raised, raised.__traceback__)
                raise
        super().__exit__(kind, error, trace)
