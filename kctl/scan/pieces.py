"""A source as pieces: runs of bytes whose records were read and judged, each by itself.

This is the part of a scan that costs time, and nothing in it depends on what lies before or behind: it may be done
for several parts of a segment at once. `kctl.scan.segment` checks what depends on the order, as pieces come in.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from formats.arrays import Ints
from formats.log.columns.headers import Headers
from formats.log.records import CRC_AT, Damage, LogBytes
from formats.values import Struct, replace
from kctl.findings import segments
from kctl.scan.checks.check import RowFinding, place_of
from kctl.scan.checks.records import check_large_batch
from kctl.scan.checks.table import record_checks
from kctl.scan.damage import finding_of
from kctl.scan.message_groups import message_groups
from kctl.scan.options import Level, ScanOptions
from kctl.scan.record_groups import RecordGroup, batch_groups
from kctl.scan.records import Records, records_of
from kctl.scan.runs import NO_HEADERS, BatchRun, BatchRuns
from kctl.scan.source import Source


class ScannedPiece(Struct, frozen=True):
    """Bytes [position, end): batches, then at most one range that is none."""

    position: int
    end: int
    headers: Headers
    damage: Damage | None
    computed: dict[int, int]  # row of a batch whose CRC is wrong to the CRC that its bytes have
    findings: list[RowFinding]  # about records and damage, by row; damage has the row behind the last one
    records: Records | None = None
    # As stored, if reading compressed sets of magic 0 and 1 changed them.
    stored: Headers | None = None
    is_examined: bool = False  # whether the checks of headers by themselves have found nothing


class PieceScan:
    """The pieces of a source between `options.start` and `options.end`, in order. Iterate once."""

    def __init__(self, source: Source, options: ScanOptions, hints: Ints | None = None) -> None:
        self.source = source
        self.options = options
        self._record_checks = record_checks()
        end = source.size if options.end is None else min(options.end, source.size)
        self._runs = BatchRuns(
            source,
            options.start,
            end,
            crc=options.level >= Level.CRC,
            last_offset=options.last_offset,
            hints=hints,
        )

    def __iter__(self) -> Iterator[ScannedPiece]:
        for run in self._runs:
            yield from self._of_run(run)

    def _of_run(self, run: BatchRun) -> Iterator[ScannedPiece]:
        """A run as one piece, or one for each group of its records."""
        position, stored = run.position, as_stored(run.headers)
        for group in self._groups(run):
            if group.after > group.first:
                piece = self._of_group(run, group, position, stored)
                yield piece
                position = piece.end
        if position < run.end or run.damage is not None:
            yield self._rest_of(run, position)

    def _groups(self, run: BatchRun) -> Iterator[RecordGroup]:
        """The records of a run, groups of old messages and of batches in turn."""
        if self.options.level < Level.RECORDS or not run.in_block:
            return
        is_old = run.headers.magic < 2
        edges = [0, *(np.flatnonzero(np.diff(is_old)) + 1).tolist(), len(is_old)]
        for first, after in pairwise(edges):
            read = message_groups if is_old[first] else batch_groups
            limit = self.options.max_decompressed_bytes
            for group in read(run.headers[first:after], self._runs.block, limit=limit):
                yield group.moved(first)

    def _of_group(
        self, run: BatchRun, group: RecordGroup, position: int, stored: Headers | None
    ) -> ScannedPiece:
        headers = run.headers
        whole = group.after - group.first == len(headers)
        rows = headers if whole else headers[group.first : group.after]
        findings: list[RowFinding] = []
        for check in self._record_checks:
            for suspects in check(group, headers, self.options):
                findings += suspects.findings(headers, self.options.place)
        for row in group.too_large:
            findings += self._of_large(headers, row)
        findings = [(row - group.first, finding) for row, finding in findings]
        records = records_of(group, rows) if self.options.keep_records else None
        computed = computed_crcs(rows, self._runs.log)
        before = stored[group.first : group.after] if stored is not None else None
        return ScannedPiece(
            position, int(rows.next_position[-1]), rows, None, computed, findings, records, before
        )

    def _rest_of(self, run: BatchRun, position: int) -> ScannedPiece:
        """What is left of a run whose records were not decoded: all its batches, or its damage alone."""
        headers = NO_HEADERS if position > run.position else run.headers
        findings: list[RowFinding] = []
        if self.options.level >= Level.RECORDS and not run.in_block:
            for row in np.flatnonzero(headers.crc_valid & (headers.records_count > 0)).tolist():
                findings += self._of_large(headers, row)
        if run.damage is not None:
            is_last = run.end >= self.source.size
            place = self.options.place
            findings.append((len(headers), finding_of(run.damage, self.source, place, is_last=is_last)))
        computed = computed_crcs(headers, self._runs.log)
        return ScannedPiece(position, run.end, headers, run.damage, computed, findings)

    def _of_large(self, headers: Headers, row: int) -> list[RowFinding]:
        """What is wrong with the records of a batch that is too large for memory."""
        limit = self.options.max_decompressed_bytes
        if headers.magic[row] < 2:
            where = place_of(headers, row, self.options.place)
            return [(row, segments.NOT_EXAMINED.at(where, limit=limit, examined=0))]
        return check_large_batch(headers, row, self.source, self.options.place, limit)


def as_stored(headers: Headers) -> Headers | None:
    """A copy of what reading compressed sets of magic 0 and 1 changes; None where there are none."""
    if not (headers.codec[headers.magic < 2] != 0).any():
        return None
    changed = ("base_offset", "last_offset_delta", "records_count")
    return replace(headers, **{name: getattr(headers, name).copy() for name in changed})


def computed_crcs(headers: Headers, log: LogBytes) -> dict[int, int]:
    """The CRC that the bytes of each unsound batch have, by row."""
    crcs = {}
    for row in np.flatnonzero(~headers.crc_valid).tolist():
        magic, start = int(headers.magic[row]), int(headers.position[row])
        crcs[row] = log.crc(magic, start + CRC_AT[magic], start + int(headers.size_in_bytes[row]))
    return crcs
