"""Batches and records of a log as lines of an output form, made of columns and not of rows.

The lines are those of the rows of `kctl.dump.batches`. Runs of sound batches become lines as Arrow strings
joined column by column; a run with anything out of the ordinary in it (damage, old magics, records that
cannot be read, a filter that cuts it) goes through the rows.
"""

from collections.abc import Iterator

from formats.log.columns.headers import Headers
from formats.log.log_bytes import LogBytes
from formats.log.records import walk
from kctl.dump.batches import RowLimit, item_rows
from kctl.dump.plain_runs import has_plain_batches, is_plain
from kctl.dump.row_columns import chunk_lines, lines_of_batches
from kctl.dump.seeking import first_position, likely_positions
from kctl.dump.selection import DumpSelection
from kctl.dump.spelling import Spelling
from kctl.dump.text_columns import Lines
from kctl.model import Row
from kctl.scan.options import Chunk, Level, ScanOptions
from kctl.scan.records import Records
from kctl.scan.segment import scan_segment
from kctl.scan.source import Source


def log_lines(
    source: Source, path: str, file: str, selection: DumpSelection, row_limit: RowLimit, spelling: Spelling
) -> Iterator[Lines | Row]:
    """The selected lines of a log, in pieces, and rows where columns do not do, up to the limit."""
    log = LogBytes(source)
    last_offset = -1
    options = ScanOptions(
        level=Level.RECORDS if selection.records else Level.CRC,
        keep_records=selection.records,
        start=first_position(path, log, selection),
        max_decompressed_bytes=selection.max_decompressed_bytes,
    )
    for chunk in scan_segment(source, options, hints=likely_positions(path)):
        if row_limit.is_empty:
            return
        if chunk.position == chunk.end:
            yield from (finding.row() | {"file": file} for finding in chunk.findings)
        elif selection.records and chunk.records is not None and is_plain(chunk, chunk.records, selection):
            headers, records = _at_most(row_limit, chunk.headers, chunk.records)
            yield from chunk_lines(headers, records, file, selection, spelling)
        elif not selection.records and not selection.is_filtered and has_plain_batches(chunk):
            yield lines_of_batches(chunk.headers[: row_limit.rows], file, spelling)
            row_limit.take_all(len(chunk.headers))
        else:
            yield from _rows(log, chunk, source, file, selection, last_offset, row_limit)
        if len(chunk.headers):
            last_offset = int(chunk.headers.last_offset[-1])
            is_past = selection.to_offset is not None and last_offset >= selection.to_offset - 1
            if is_past and chunk.headers.crc_valid[-1]:
                return


def _at_most(row_limit: RowLimit, headers: Headers, records: Records) -> tuple[Headers, Records]:
    """The records up to the limit, and the batches up to the one of the last record."""
    most, count = row_limit.rows, len(records)
    row_limit.take_all(count)
    if most is None or count < most:
        return headers, records
    return headers[: int(records.batch[most - 1]) + 1], records[:most]


def _rows(
    log: LogBytes,
    chunk: Chunk,
    source: Source,
    file: str,
    selection: DumpSelection,
    last_offset: int,
    row_limit: RowLimit,
) -> Iterator[Row]:
    for item in walk(log, position=chunk.position, last_offset=last_offset):
        if item.position >= chunk.end or row_limit.is_empty:
            return
        yield from item_rows(item, source, file, selection, row_limit)
