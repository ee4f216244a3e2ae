"""Segments and logs: columns of batches and records, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.log_dir.file_names import parse_partition_folder
from kctl.api.values import Values
from kctl.errors import KctlError, UnreadableFile, reason_of
from kctl.files import open_file

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from kctl.spark.listing import SegmentRef
    from kctl.spark.planning import Filters


class Columns:
    """Rows of a log in columns, read when they are asked for: iterate over Arrow record batches, or take them whole."""

    def __init__(self, log: Segment, table: str, columns: Sequence[str] | None, filters: Filters) -> None:
        from kctl.scan.tables import schema_of

        try:
            self.schema: pyarrow.Schema = schema_of(table, columns)
        except KeyError:
            names = schema_of(table).names
            unknown = ", ".join(sorted({*(columns or ())} - {*names}))
            raise KctlError(
                f"{table} have no column {unknown}", f"the columns are {', '.join(names)}"
            ) from None
        self._log, self._table, self._filters = log, table, filters

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        from kctl.spark.planning import plan
        from kctl.spark.reading import read_pieces

        segments = self._log._segments()
        for segment in segments:  # what cannot be opened would be nothing but rows that are missing
            try:
                open_file(Path(segment.store, segment.key)).close()
            except OSError as error:
                raise UnreadableFile(f"{segment.key}: {reason_of(error)}", "`verify` says more") from error
        for of_job in plan(segments, self._table, self._filters):
            yield from read_pieces(of_job, self._table, self.schema.names, self._filters)

    def to_arrow(self) -> pyarrow.Table:
        """All of it as a table; takes the memory that its rows take."""
        import pyarrow

        return pyarrow.Table.from_batches(list(self), schema=self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """All of it as a data frame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All of it as a data frame; needs Polars."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __repr__(self) -> str:
        return f"<{self._table} of {self._log.path}: {', '.join(self.schema.names)}>"


class Segment:
    """A segment's `.log` file, or the folder of one partition with all its segments."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from kctl.stores.mirror import local_path

        self.path = os.fspath(path)
        self._local = Path(local_path(self.path))
        if not self._local.exists():
            raise UnreadableFile(
                f"{self.path}: no such file or folder", "name a .log file or the folder of a partition"
            )

    def batches(self, *, columns: Sequence[str] | None = None) -> Columns:
        """Record batches: `base_offset`, `last_offset`, `max_timestamp`, `codec`, `producer_id`, ... ; sizes in bytes.

        Timestamps are milliseconds since 1970. Damaged bytes give no row: `verify` names them.
        """
        from kctl.spark.planning import Filters

        return Columns(self, "batches", columns, Filters())

    def records(
        self,
        *,
        from_offset: int | None = None,
        to_offset: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> Columns:
        """Records with offsets in [from_offset, to_offset], decompressed: `offset`, `timestamp`, `key`, `value`, ...

        The offset index says where to begin. A column that is not asked for is not decoded.
        """
        from kctl.spark.planning import Filters

        return Columns(self, "records", columns, Filters(from_offset=from_offset, to_offset=to_offset))

    def verify(self) -> Values:
        """What is wrong, as rows `finding`; empty where every byte is sound."""
        from kctl.api.evidence import Evidence

        return Evidence(self.path).verify()

    def _segments(self) -> list[SegmentRef]:
        from kctl.log.folder import read_folder
        from kctl.spark.listing import SegmentRef

        path = self._local.resolve()
        folder = path if path.is_dir() else path.parent
        named = parse_partition_folder(folder.name)
        logs = [segment for segment in read_folder(folder).logs if segment.log]
        refs = []
        for segment, after in zip_longest(logs, logs[1:]):
            log, index = segment.log, segment.index
            assert log is not None
            if path in (folder, log.path):
                refs.append(
                    SegmentRef(
                        store=str(folder.parent),
                        key=f"{folder.name}/{log.path.name}",
                        index_key=f"{folder.name}/{index.path.name}" if index else None,
                        size_in_bytes=log.size_in_bytes,
                        base_offset=segment.base_offset,
                        next_base_offset=after.base_offset if after else None,
                        topic=named.topic if named else "",
                        partition=named.partition if named else -1,
                        broker_id=None,
                        moment=None,
                    )
                )
        if not refs:
            raise UnreadableFile(
                f"{self.path}: no segment is here", "name a .log file or the folder of a partition"
            )
        return refs

    def __repr__(self) -> str:
        return f"Segment({self.path!r})"

    def _repr_html_(self) -> Any:
        return self.verify()._repr_html_()


def open_segment(path: str | os.PathLike[str]) -> Segment:
    """A segment, or the folder of one log: a local path or a URL (`s3://`, `gs://`, `abfs://`, `hdfs://`).

    Raises UnreadableFile where nothing is there, KctlError where the store cannot be reached.
    """
    return Segment(path)
