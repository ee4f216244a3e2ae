"""`scan_segment`: a segment as chunks of columns, with damage and findings, in bounded memory.

    with local_file(path) as source:
        scan = scan_segment(source, ScanOptions(base_offset=0))
        for chunk in scan:                      # consecutive runs of bytes [chunk.position, chunk.end)
            chunk.headers.base_offset           # numpy columns, one row a batch (formats.columns.headers.Headers)
            chunk.headers.crc_valid             # False: a batch whose length is believed and whose CRC is wrong
            chunk.damage                        # ranges that are no batch (formats.records.Damage)
            chunk.findings                      # kctl.findings.Finding, at most options.max_findings in all
        scan.totals                             # batches, records, good_bytes, damaged_bytes, next_offset, ...
        scan.edge                               # stitched([edges of a partition in order]) says what crosses files

Every byte between `start` and `end` is in exactly one batch or one damage. Nothing raises for what the
bytes are; a source that cannot be read or changes while it is read is a finding in the last chunk. Columns
are the chunk's own and may be kept; what `chunk.records` holds is valid until the next chunk only.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from formats.columns.headers import Headers
from formats.records import Damage, Reason
from kctl.checks.batches import BatchChecks, RowFinding, place_of
from kctl.checks.damage import finding_of
from kctl.checks.edges import Edge
from kctl.checks.records import check_large_batch, check_records
from kctl.findings import Finding, segments
from kctl.findings import evidence as evidence_findings
from kctl.scan.message_groups import message_groups
from kctl.scan.options import Chunk, Level, ScanOptions, Totals
from kctl.scan.record_groups import Group, batch_groups
from kctl.scan.records import records_of
from kctl.scan.runs import NO_HEADERS, Run, Runs
from kctl.scan.source import Source

HARMLESS = (Reason.TORN_TAIL, Reason.ZEROS)


class SegmentScan:
    """One pass over a segment; iterate it once, then look at `totals`."""

    def __init__(self, source: Source, options: ScanOptions, hints: NDArray[np.int64] | None = None) -> None:
        self.source = source
        self.options = options
        self.totals = Totals()
        self.left_out: Counter[str] = Counter()
        self._checks = BatchChecks(options)
        end = source.size if options.end is None else min(options.end, source.size)
        self._runs = Runs(
            source,
            options.start,
            end,
            crc=options.level >= Level.CRC,
            last_offset=options.last_offset,
            hints=hints,
        )
        self._end = end

    @property
    def edge(self) -> Edge:
        """How what was scanned so far begins and ends; see `kctl.checks.edges.stitched`."""
        return self._checks.edge

    @property
    def wrong_hint(self) -> int | None:
        """The first hint that turned out to be no batch boundary."""
        return self._runs.wrong_hint

    def __iter__(self) -> Iterator[Chunk]:
        position = self.options.start
        try:
            for run in self._runs:
                for chunk in self._chunks(run):
                    yield chunk
                    position = chunk.end
        except OSError as error:
            where = replace(self.options.place, position=position)
            found = evidence_findings.UNREADABLE.at(where, reason=error.strerror or str(error))
            yield Chunk(position, position, NO_HEADERS, (), self._limited([found]))
        self.left_out.update(self._checks.left_out)
        last = self._limited(self._changes())
        if last or self.left_out:
            yield Chunk(position, position, NO_HEADERS, (), (*last, *self._rest()))

    def _chunks(self, run: Run) -> Iterator[Chunk]:
        """A run as one chunk, or one for each group of its records."""
        headers, place = run.headers, self.options.place
        of_batches = self._checks.of(headers, self._runs.block) if len(headers) else []
        position = run.position
        for group in self._groups(run):
            if group.after == group.first:
                continue
            rows = (
                headers if group.after - group.first == len(headers) else headers[group.first : group.after]
            )
            of_records = check_records(group, headers, place)
            for row in group.too_large:
                of_records += self._of_large(headers, row)
            mine = [pair for pair in of_batches if group.first <= pair[0] < group.after]
            findings = [finding for _, finding in sorted([*mine, *of_records], key=lambda pair: pair[0])]
            end = int(rows.next_position[-1])
            self._count(rows, None)
            records = records_of(group, rows) if self.options.keep_records else None
            yield Chunk(position, end, rows, (), self._limited(findings), records)
            position = end
        if position < run.end or run.damage is not None:
            yield self._rest_of(run, position, of_batches)

    def _groups(self, run: Run) -> Iterator[Group]:
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

    def _rest_of(self, run: Run, position: int, of_batches: list[RowFinding]) -> Chunk:
        """What is left of a run whose records were not decoded: all its batches, or its damage alone."""
        done = position > run.position
        headers = NO_HEADERS if done else run.headers
        said = [] if done else of_batches
        if self.options.level >= Level.RECORDS and not done and not run.in_block:
            for row in np.flatnonzero(headers.crc_valid & (headers.records_count > 0)).tolist():
                said = [*said, *self._of_large(headers, row)]
        findings = [finding for _, finding in sorted(said, key=lambda pair: pair[0])]
        damage: tuple[Damage, ...] = ()
        if run.damage is not None:
            damage = (run.damage,)
            is_last = run.end >= self.source.size
            findings.append(finding_of(run.damage, self.source, self.options.place, is_last=is_last))
        self._count(headers, run.damage)
        return Chunk(position, run.end, headers, damage, self._limited(findings))

    def _of_large(self, headers: Headers, row: int) -> list[RowFinding]:
        """What is wrong with the records of a batch that does not come into memory whole."""
        if headers.magic[row] < 2:
            where = place_of(headers, row, self.options.place)
            return [(row, segments.NOT_EXAMINED.at(where, limit=self.options.max_decompressed_bytes))]
        limit = self.options.max_decompressed_bytes
        return check_large_batch(headers, row, self.source, self.options.place, limit)[1]

    def _count(self, headers: Headers, damage: Damage | None) -> None:
        totals = self.totals
        if damage is not None:
            if damage.reason in HARMLESS:
                totals.good_bytes += damage.size_in_bytes
            else:
                totals.damaged_bytes += damage.size_in_bytes
        if not len(headers):
            return
        valid = headers.crc_valid
        good = int(headers.size_in_bytes[valid].sum())
        totals.batches += len(headers)
        totals.records += int(np.maximum(headers.records_count, 0).sum())
        totals.good_bytes += good
        totals.damaged_bytes += int(headers.size_in_bytes.sum()) - good
        if totals.base_offset is None:
            totals.base_offset = int(headers.base_offset[0])
        if valid.any():
            latest = int(headers.last_offset[valid].max()) + 1
            totals.next_offset = max(totals.next_offset or 0, latest)
            totals.max_timestamp = max(totals.max_timestamp, int(headers.max_timestamp[valid].max()))

    def _changes(self) -> list[Finding]:
        """What happened to the source while it was read."""
        try:
            now = self.source.current_size()
        except OSError:
            return [evidence_findings.VANISHED.at(self.options.place)]
        before = self.source.size
        if now == before:
            return []
        return [segments.FILE_CHANGED.at(self.options.place, before=before, after=now)]

    def _limited(self, findings: list[Finding]) -> tuple[Finding, ...]:
        """Those that may still be listed; the rest is counted."""
        room = max(0, self.options.max_findings - self.totals.findings)
        self.left_out.update(finding.code for finding in findings[room:])
        self.totals.findings += len(findings)
        return tuple(findings[:room])

    def _rest(self) -> tuple[Finding, ...]:
        """One finding that says how many were left out."""
        if not self.left_out:
            return ()
        codes = ", ".join(f"{count} {code}" for code, count in sorted(self.left_out.items()))
        count = sum(self.left_out.values())
        return (segments.TOO_MANY_FINDINGS.at(self.options.place, count=count, codes=codes),)


def scan_segment(
    source: Source, options: ScanOptions | None = None, *, hints: NDArray[np.int64] | None = None
) -> SegmentScan:
    """A scan of the source; `hints` are positions of batches, from its index where there is one."""
    return SegmentScan(source, options or ScanOptions(), hints)
