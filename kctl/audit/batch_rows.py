"""The tables `batches` and `segments`, filled by the scan that verifies: nothing is read twice."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from formats.log.columns.headers import concatenated
from formats.values import field, replace
from kctl.audit.read_files import ReadFiles
from kctl.audit.slices import read_before
from kctl.checks.parallel import SlicedTask
from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions, ReplicaTask, Report
from kctl.copies.scanned import NotedRun, ScanNotes, noted_run
from kctl.findings import Place
from kctl.log.folder import FolderFile
from kctl.scan.options import Chunk
from kctl.scan.parquet import ParquetPart, WrittenPart
from kctl.scan.tables import SCHEMAS, batches_table

ROWS_OF_A_RUN = 1 << 16  # as many as a block of the smallest batches has
OWN_PART = 50_000
"""A folder with more batches than this gets a Parquet file of its own, written where it is scanned."""
OWN_PART_ELSEWHERE = 1000
"""The same where other machines scan: their results come to one in hundreds."""


class BatchFiles(NamedTuple):
    """Where folders with more than `least_rows` batches write files of their own, and what is noted of files."""

    folder: Path
    least_rows: int
    digest: str | None = None  # the algorithm
    noted: int = 0  # bytes, the most that is noted of a folder's headers

    def path_of(self, place: Place) -> Path:
        """The file of a partition folder: the same in every run."""
        name = f"part-{sha256(f'{place}'.encode('utf-8', 'surrogateescape')).hexdigest()[:20]}.parquet"
        return self.folder / name


class ReportWithBatches(Report):
    """A report, and the folder's rows of `batches` if they are few."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    segment_times: dict[str, int] = field(default_factory=dict)  # file name to its largest timestamp
    part: WrittenPart | None = None  # the file with its rows if they are many
    notes: dict[str, list[NotedRun]] = field(default_factory=dict)  # of logs by path, if they are few
    digests: dict[str, str] = field(default_factory=dict)  # of files, by the names that their places have


class NotedLogs:
    """The headers of the logs of one folder as `kctl.replica` reads them, in runs of many chunks."""

    def __init__(self, most: int) -> None:
        self.notes = ScanNotes(most)
        self._path: Path | None = None
        self._is_known = False
        self._chunks: list[Chunk] = []
        self._runs: list[NotedRun] = []

    def take(self, path: Path, chunk: Chunk) -> None:
        """The next chunk of a log."""
        if path != self._path:
            self.finish()
            self._path, self._is_known = path, bool(self.notes.most)
        headers = chunk.headers
        # The headers of compressed sets of magic 0 and 1 tell less than a scan of their records.
        self._is_known &= not (headers.codec[headers.magic < 2] != 0).any()
        # Damaged batches are read again with their neighbours.
        self._is_known &= not chunk.damage and bool(headers.crc_valid.all())
        if not self._is_known:
            return
        self._chunks.append(chunk)
        if sum(len(earlier.headers) for earlier in self._chunks) >= ROWS_OF_A_RUN:
            self._join()
        if sum(run.size for run in self._runs) > self.notes.most:
            self._is_known, self._runs = False, []

    def _join(self) -> None:
        if self._chunks:
            headers = concatenated([chunk.headers for chunk in self._chunks])
            self._runs.append(noted_run(self._chunks[-1].end, headers))
        self._chunks = []

    def finish(self) -> dict[str, list[NotedRun]]:
        """The runs of the logs whose headers are noted as a whole."""
        self._join()
        if self._path and self._is_known and self._runs:
            self.notes.add(self._path, self._runs)
        self._path, self._runs = None, []
        return self.notes.runs


class BatchRows:
    """Takes the chunks of one folder; keeps few rows, writes many."""

    def __init__(self, parts: BatchFiles, place: Place) -> None:
        self.parts, self.place = parts, place
        self.batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.times: dict[str, int] = {}
        self.part: ParquetPart | None = None
        self.notes = NotedLogs(parts.noted)

    def __call__(self, file: FolderFile, chunk: Chunk) -> None:
        headers = chunk.headers
        self.notes.take(file.path, chunk)
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
        self.batches.append(rows)
        if self.rows > self.parts.least_rows:
            self.part = ParquetPart(self.parts.path_of(self.place), SCHEMAS["batches"])
            for batch in self.batches:
                self.part.write(batch)
            self.batches = []


def check_with_batches(task: ReplicaTask, options: CheckOptions, parts: BatchFiles) -> Report:
    """`check_replica`, with every batch as a row of `batches`, and digests of files. Runs in worker processes."""
    rows = BatchRows(parts, task.place)
    try:
        report, digests = _checked(task, options, rows, parts)
        part = rows.part.close() if rows.part else None
    except BaseException:
        if rows.part:
            rows.part.abandon()
        raise
    fields = {name: getattr(report, name) for name in Report.__struct_fields__}
    return ReportWithBatches(
        **fields,
        batches=rows.batches,
        segment_times=rows.times,
        part=part,
        digests=digests,
        notes=rows.notes.finish(),
    )


def _checked(
    task: ReplicaTask, options: CheckOptions, rows: BatchRows, parts: BatchFiles
) -> tuple[Report, dict[str, str]]:
    """The report, and the digest of each of its files that can be read."""
    sliced = task if isinstance(task, SlicedTask) else None
    logs, slice_digests = read_before(sliced, parts.folder) if sliced else (None, {})
    if parts.digest is None:
        return check_replica(task, options, rows, parts=logs), {}
    read_files = ReadFiles(parts.digest)
    read_files.digests.update(slice_digests)
    with read_files.looking():
        report = check_replica(task, options, rows, parts=logs)
    names = [str(file.place.file) for file in report.files]
    paths = {name: task.folder / name.rpartition("/")[2] for name in names}
    digests = read_files.of(paths.values())
    return report, {name: digests[path] for name, path in paths.items() if path in digests}
