"""Cuts of segments as record batches of a table; runs on executors. Imports no pyspark.

Other files are not read except offset indexes, so that only Kafka's own topics and batches show compaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.values import Struct, field, replace
from kctl.checks.replica import COMPACTED
from kctl.checks.report import FileReport
from kctl.checks.segments import follow_scan
from kctl.errors import KctlError, reason_of
from kctl.findings import Finding
from kctl.findings import evidence as codes
from kctl.scan.checks.table import LogChecks
from kctl.scan.options import Chunk, Level, ScanOptions
from kctl.scan.segment import SegmentScan, scan_segment
from kctl.scan.source import Source
from kctl.scan.splits import TARGET, Split, hints_of, plan_splits
from kctl.scan.tables import SCHEMAS, batches_table, findings_table, records_table, segment_row
from kctl.spark.listing import SegmentRef
from kctl.spark.planning import Filters, SegmentCut
from kctl.spark.seeking import indexed_start, part_within
from kctl.tier.stores import Store, open_store

LARGEST_INDEX = 64 << 20
ROWS_AT_ONCE, BYTES_AT_ONCE = 16384, 8 << 20  # of a record batch for Spark
# What must be read for each table; filters on batches need only headers.
LEVELS = {"batches": Level.CRC, "records": Level.RECORDS, "segments": Level.CRC}
STAMPS = {"records": "timestamp", "batches": "max_timestamp"}


def read_pieces(
    pieces: Sequence[SegmentCut], table: str, columns: Sequence[str], filters: Filters, target: int = TARGET
) -> Iterator[pa.RecordBatch]:
    """The rows of the cuts with these columns, in the order of the segments.

    A segment that vanished or cannot be read is a row of `findings`, and missing in the other tables. The cuts for
    `findings` are whole logs, one after the other, as `plan` returns them.
    """
    for _, of_log in groupby(pieces, key=lambda piece: piece.segment.log):
        log = _Log()
        for piece in of_log:
            yield from _read_piece(piece, table, columns, filters, target, log)
        if table == "findings":
            is_compacted = log.was_cleaned or piece.segment.topic in COMPACTED
            findings = log.checks.finish(is_compacted=True if is_compacted else None)
            yield from findings_rows(table, columns, findings)


class _Log(Struct):
    """What the segments of one log share."""

    checks: LogChecks = field(default_factory=LogChecks)
    was_cleaned: bool = False


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer, larger batches: each batch costs Spark a millisecond."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield from _joined(waiting)
            waiting, rows, size = [], 0, 0
    yield from _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


@lru_cache(maxsize=4)
def _store(where: str) -> Store:
    return open_store(where)


def _read_piece(
    piece: SegmentCut, table: str, columns: Sequence[str], filters: Filters, target: int, log: _Log
) -> Iterator[pa.RecordBatch]:
    segment = piece.segment
    try:
        source = _store(segment.store).open(segment.key)
    except (OSError, KctlError) as error:
        if isinstance(error, FileNotFoundError):
            finding = codes.VANISHED.at(segment.place())
        else:
            finding = codes.UNREADABLE.at(segment.place(), reason=reason_of(error))
        yield from findings_rows(table, columns, [finding])
        return
    try:
        index = _index(segment)
        hints = hints_of(index)
        if table == "findings":
            yield from findings_rows(table, columns, _findings_of(segment, source, hints, log))
            return
        splits = plan_splits(source, hints, target) if piece.of > 1 else [Split(0, source.size)]
        if piece.number >= len(splits):
            return
        split: Split | None = splits[piece.number]
        if table in STAMPS and split is not None:
            start = indexed_start(source, index, hints, segment.base_offset, filters.from_offset)
            split = Split(max(start, split.start), split.end)
            split = part_within(source, split, hints, filters) if split.start < split.end else None
        if split is not None:
            yield from _read_split(segment, source, split, hints, table, columns, filters)
    finally:
        source.close()


def _findings_of(
    segment: SegmentRef, source: Source, hints: np.ndarray[tuple[int], np.dtype[np.int64]], log: _Log
) -> list[Finding]:
    """The findings of a segment, including how it follows the segments before it."""
    place = segment.place()
    known = True if segment.topic in COMPACTED else None
    options = ScanOptions(base_offset=segment.base_offset, is_compacted=known, place=place)
    report = FileReport(place, "log", source.size)
    scan = scan_segment(source, options, hints=hints, checks=log.checks)
    scanned = follow_scan(scan, report, next_segment=segment.next_base_offset)
    log.was_cleaned |= scanned.was_cleaned
    return report.all_findings()


def _index(segment: SegmentRef) -> bytes:
    """The offset index; empty if it is missing or cannot be read."""
    if segment.index_key is None:
        return b""
    try:
        index = _store(segment.store).open(segment.index_key)
    except (OSError, KctlError):
        return b""
    try:
        return index.read_at(0, min(index.size, LARGEST_INDEX))
    except OSError:
        return b""
    finally:
        index.close()


def _read_split(
    segment: SegmentRef, source: Source, split: Split, hints: np.ndarray[tuple[int], np.dtype[np.int64]],
    table: str, columns: Sequence[str], filters: Filters,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    place = segment.place()
    inside = hints[(hints >= split.start) & (hints < split.end)]
    options = ScanOptions(
        level=LEVELS[table], keep_records=table == "records", start=split.start,
        end=split.end, base_offset=segment.base_offset, place=place,
    )  # fmt: skip
    scan = scan_segment(source, options, hints=inside)
    chunks: Iterator[Chunk] = iter(scan)
    if table == "batches":
        chunks = _with_old_sets_opened(source, options, chunks)
    for chunk in chunks:
        if table == "batches" and len(chunk.headers):
            yield from _chosen(batches_table(chunk, place, _needed(table, columns)), table, columns, filters)
        elif table == "records" and chunk.records is not None and _may_have_rows(chunk, filters):
            yield from _chosen(records_table(chunk, place, _needed(table, columns)), table, columns, filters)
        elif table == "segments" and _old_sets(chunk):
            # Their records are counted only if they are opened.
            scan = scan_segment(source, replace(options, level=Level.RECORDS), hints=inside)
            for _ in scan:
                pass
            break
    if table == "segments":
        yield _segment(scan, segment, columns)


def _old_sets(chunk: Chunk) -> bool:
    """Whether compressed sets of magic 0 or 1 are among the batches: only their records have the first offset."""
    return bool((chunk.headers.records_count < 0).any())


def _with_old_sets_opened(source: Source, options: ScanOptions, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    for chunk in chunks:
        if _old_sets(chunk):
            opened = replace(options, level=Level.RECORDS, start=chunk.position, end=chunk.end)
            yield from scan_segment(source, opened)
        else:
            yield chunk


def _may_have_rows(chunk: Chunk, filters: Filters) -> bool:
    headers = chunk.headers
    if not len(headers):
        return False
    if filters.from_offset is not None and int(headers.last_offset.max()) < filters.from_offset:
        return False
    return not (filters.to_offset is not None and int(headers.base_offset.min()) > filters.to_offset)


def _needed(table: str, columns: Sequence[str]) -> list[str]:
    """The selected columns, and those that filters compare."""
    filtered = (
        ("offset", "timestamp") if table == "records" else ("base_offset", "last_offset", "max_timestamp")
    )
    return [name for name in SCHEMAS[table].names if name in columns or name in filtered]


def _chosen(
    rows: pa.RecordBatch, table: str, columns: Sequence[str], filters: Filters
) -> Iterator[pa.RecordBatch]:
    """The rows within the bounds, with the selected columns in their order."""
    first, last = ("offset", "offset") if table == "records" else ("base_offset", "last_offset")
    keep = None
    bounds = (
        (last, filters.from_offset, pc.greater_equal), (first, filters.to_offset, pc.less_equal),
        (STAMPS[table], filters.from_time, pc.greater_equal), (STAMPS[table], filters.to_time, pc.less_equal),
    )  # fmt: skip
    for name, bound, compare in bounds:
        if bound is not None:
            matches = compare(rows.column(name), bound)
            keep = matches if keep is None else pc.and_(keep, matches)
    if keep is not None:
        rows = rows.filter(keep)
    if rows.num_rows:
        yield rows.select(list(columns))


def findings_rows(
    table: str, columns: Sequence[str], findings: Sequence[Finding]
) -> Iterator[pa.RecordBatch]:
    """Findings as rows, if the table is `findings`."""
    if table == "findings" and findings:
        yield findings_table(findings).select(list(columns))


def _segment(scan: SegmentScan, segment: SegmentRef, columns: Sequence[str]) -> pa.RecordBatch:
    row = segment_row(segment.place(), segment.size_in_bytes, scan.totals)
    return pa.RecordBatch.from_pylist([row], SCHEMAS["segments"]).select(list(columns))
