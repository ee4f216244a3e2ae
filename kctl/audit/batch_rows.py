"""The tables `batches` and `segments`, filled by the scan that verifies: nothing is read twice."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from msgspec import field
from msgspec.structs import replace

from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions, ReplicaTask, Report
from kctl.findings import Place
from kctl.log.folder import FolderFile
from kctl.scan.options import Chunk
from kctl.scan.parquet import ParquetPart, WrittenPart
from kctl.scan.tables import SCHEMAS, batches_table

OWN_PART = 50_000
"""A folder with more batches than this gets a Parquet file of its own, written where it is scanned."""
OWN_PART_ELSEWHERE = 1000
"""The same where other machines scan: their results come to one in hundreds."""


class Parts(NamedTuple):
    """Where folders with more than `least_rows` batches write files of their own."""

    folder: Path
    least_rows: int

    def path_of(self, place: Place) -> Path:
        """The file of a partition folder: the same in every run."""
        name = f"part-{sha256(f'{place}'.encode('utf-8', 'surrogateescape')).hexdigest()[:20]}.parquet"
        return self.folder / name


class ReportWithBatches(Report):
    """A report, and the folder's rows of `batches` where they are few."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    segment_times: dict[str, int] = field(default_factory=dict)  # file name to its largest timestamp
    part: WrittenPart | None = None  # the file with its rows where they are many


class BatchRows:
    """Takes the chunks of one folder; keeps few rows, writes many."""

    def __init__(self, parts: Parts, place: Place) -> None:
        self.parts, self.place = parts, place
        self.held: list[pa.RecordBatch] = []
        self.rows = 0
        self.times: dict[str, int] = {}
        self.part: ParquetPart | None = None

    def __call__(self, file: FolderFile, chunk: Chunk) -> None:
        headers = chunk.headers
        if not len(headers):
            return
        name = f"{self.place.file}/{file.name}" if self.place.file not in (None, ".") else file.name
        name = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        valid = headers.crc_valid
        if valid.any():
            self.times[name] = max(self.times.get(name, -1), int(headers.max_timestamp[valid].max()))
        rows = batches_table(chunk, replace(self.place, file=name))
        self.rows += rows.num_rows
        if self.part is not None:
            self.part.write(rows)
            return
        self.held.append(rows)
        if self.rows > self.parts.least_rows:
            self.part = ParquetPart(self.parts.path_of(self.place), SCHEMAS["batches"])
            for batch in self.held:
                self.part.write(batch)
            self.held = []


def check_with_batches(task: ReplicaTask, options: CheckOptions, parts: Parts) -> Report:
    """`check_replica`, with every batch as a row of `batches`. Runs in worker processes."""
    rows = BatchRows(parts, task.place)
    try:
        report = check_replica(task, options, rows)
        part = rows.part.close() if rows.part else None
    except BaseException:
        if rows.part:
            rows.part.abandon()
        raise
    given = {name: getattr(report, name) for name in Report.__struct_fields__}
    return ReportWithBatches(**given, batches=rows.held, segment_times=rows.times, part=part)
