"""The tables `batches` and `segments`, filled by the scan that verifies: nothing is read twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from formats.log.columns.headers import Headers, concatenated
from formats.values import Struct, replace
from kctl.audit.slices import read_before
from kctl.checks.digests import digest_of
from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions, ReplicaTask, Report
from kctl.checks.segments import LogPieces
from kctl.findings import Place
from kctl.log.folder import Folder, FolderFile
from kctl.scan.noted import NotedRun, ScanNotes, noted_run
from kctl.scan.options import Chunk
from kctl.scan.parquet import ParquetPart, WrittenPart
from kctl.scan.tables import PACKED_BATCHES, packed_batches

ROWS_OF_A_RUN = 1 << 16  # as many as a block of the smallest batches has
OWN_PART = 25_000
"""Folders that are checked together and have more batches than this get a Parquet file of their own, written where they are scanned."""
OWN_PART_ELSEWHERE = 1000
"""The same where other machines scan: their results come to one in hundreds."""


Notes = Mapping[Path, Sequence[NotedRun]]
NO_NOTES: Notes = {}


class BatchFiles(NamedTuple):
    """Where work with more than `least_rows` batches writes a file of its own, and what is noted of files."""

    folder: Path
    least_rows: int
    noted: int = 0  # bytes, the most that is noted of a folder's headers

    def path_of(self, place: Place) -> Path:
        """The file of a partition folder, and of those that are checked with it: the same in every run."""
        name = f"part-{sha256(f'{place}'.encode('utf-8', 'surrogateescape')).hexdigest()[:20]}.parquet"
        return self.folder / name


class FolderBatches(NamedTuple):
    """What an audit adds to the report on a folder: rows of `batches`, and headers that later parts need not read again.

    Of folders that were checked together, the last one has the rows of all.
    """

    rows: list[pa.RecordBatch]  # if they are few
    part: WrittenPart | None = None  # the file with the rows if they are many
    notes: Notes = NO_NOTES  # of logs, if they are few


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

    def finish(self) -> Notes:
        """The runs of the logs whose headers are noted as a whole."""
        self._join()
        if self._path and self._is_known and self._runs:
            self.notes.add(self._path, self._runs)
        self._path, self._runs = None, []
        return self.notes.runs


class BatchRows:
    """Takes the chunks of one folder after another; keeps few rows, writes many."""

    def __init__(self, parts: BatchFiles, place: Place) -> None:
        self.parts = parts
        self.path = parts.path_of(place)
        self.rows = 0  # that are in memory
        self.part: ParquetPart | None = None
        self._headers: list[Headers] = []
        self._places: list[tuple[Place, int]] = []  # of the headers, with their number
        self.begin(place)

    def begin(self, place: Place) -> None:
        """The chunks that follow are of the folder at this place."""
        self.place, self.notes = place, NotedLogs(self.parts.noted)

    def __call__(self, file: FolderFile, chunk: Chunk) -> None:
        headers = chunk.headers
        self.notes.take(file.path, chunk)
        if not len(headers):
            return
        name = f"{self.place.file}/{file.name}" if self.place.file not in (None, ".") else file.name
        name = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        self._headers.append(headers)
        self._places.append((replace(self.place, file=name), len(headers)))
        self.rows += len(headers)
        if self.rows > self.parts.least_rows:
            self.part = self.part or ParquetPart(self.path, PACKED_BATCHES)
            self.part.write(self._taken())

    def _taken(self) -> pa.RecordBatch:
        """The rows that are in memory, which are forgotten here."""
        rows = packed_batches(concatenated(self._headers), self._places)
        self._headers, self._places, self.rows = [], [], 0
        return rows

    def close(self) -> FolderBatches:
        """The rows of all folders, or the file that has them."""
        rows = [self._taken()] if self.rows else []
        if self.part is None:
            return FolderBatches(rows)
        for last in rows:
            self.part.write(last)
        return FolderBatches([], self.part.close())


class BatchCheck(Struct, frozen=True):
    """`check_replica`, with every batch as a row of `batches`, and digests of files. Runs in worker processes."""

    out: BatchFiles

    def __call__(
        self,
        task: ReplicaTask,
        options: CheckOptions,
        *,
        folder: Folder | None = None,
        parts: LogPieces | None = None,
    ) -> Report:
        """The report on one folder."""
        if task.slices:
            parts = read_before(task, self.out.folder)
        return self.of_several([(task, folder)], options, parts)[0]

    def of_several(
        self,
        folders: Sequence[tuple[ReplicaTask, Folder | None]],
        options: CheckOptions,
        parts: LogPieces | None,
    ) -> list[Report]:
        """The reports on folders, whose rows are in one file if they are many."""
        rows = BatchRows(self.out, folders[0][0].place)
        reports: list[Report] = []
        notes: Notes = NO_NOTES
        try:
            for task, folder in folders:
                rows.begin(task.place)
                reports.append(check_replica(task, options, rows, folder=folder, parts=parts))
                _digest_unread(task, reports[-1])
                notes = rows.notes.finish()
                reports[-1].added = FolderBatches([], notes=notes)
            reports[-1].added = rows.close()._replace(notes=notes)
        except BaseException:
            if rows.part:
                rows.part.abandon()
            raise
        return reports


def _digest_unread(task: ReplicaTask, report: Report) -> None:
    """Fill in the digests of files that no check reads."""
    for file in report.files:
        if file.digest and file.digest.value is None:
            path = task.folder / str(file.place.file).rpartition("/")[2]
            file.digest.value = digest_of(path, file.digest.algorithm)[0]
