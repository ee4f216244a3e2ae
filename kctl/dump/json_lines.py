"""Batches and records of a log as JSON lines, made of columns and not of rows.

The lines are those of the rows of `kctl.dump.batches`. Runs of sound batches become lines as Arrow strings
joined column by column; a run with anything out of the ordinary in it (damage, old magics, records that
cannot be read, a filter that cuts it) goes through the rows.
"""

from collections.abc import Iterator

from formats.log.columns.headers import Headers
from formats.log.log_bytes import LogBytes
from formats.log.records import walk
from kctl.dump.batches import Left, Row, item_rows
from kctl.dump.json_columns import chunk_lines, lines_of_batches
from kctl.dump.plain_runs import has_plain_batches, is_plain
from kctl.dump.seeking import first_position, likely_positions
from kctl.dump.selection import DumpSelection
from kctl.dump.text_columns import Lines
from kctl.scan.options import Chunk, Level, ScanOptions
from kctl.scan.records import Records
from kctl.scan.segment import scan_segment
from kctl.scan.source import Source


def log_lines(
    source: Source, path: str, shown: str, wanted: DumpSelection, left: Left
) -> Iterator[Lines | Row]:
    """The lines of a log in pieces, and rows where there are none; what is wanted and left, in order."""
    log = LogBytes(source)
    last_offset = -1
    options = ScanOptions(
        level=Level.RECORDS if wanted.records else Level.CRC,
        keep_records=wanted.records,
        start=first_position(path, log, wanted),
        max_decompressed_bytes=wanted.max_decompressed_bytes,
    )
    for chunk in scan_segment(source, options, hints=likely_positions(path)):
        if left.is_empty:
            return
        if chunk.position == chunk.end:
            yield from (finding.row() | {"file": shown} for finding in chunk.findings)
        elif wanted.records and chunk.records is not None and is_plain(chunk, chunk.records, wanted):
            yield from chunk_lines(*_at_most(left, chunk.headers, chunk.records), shown, wanted)
        elif not wanted.records and not wanted.is_filtered and has_plain_batches(chunk):
            yield lines_of_batches(chunk.headers[: left.rows], shown)
            left.take_all(len(chunk.headers))
        else:
            yield from _slowly(log, chunk, source, shown, wanted, last_offset, left)
        if len(chunk.headers):
            last_offset = int(chunk.headers.last_offset[-1])
            is_past = wanted.to_offset is not None and last_offset >= wanted.to_offset - 1
            if is_past and chunk.headers.crc_valid[-1]:
                return


def _at_most(left: Left, headers: Headers, records: Records) -> tuple[Headers, Records]:
    """As many records as are left, and the batches up to the one that the last of them is in."""
    most, count = left.rows, len(records)
    left.take_all(count)
    if most is None or count < most:
        return headers, records
    return headers[: int(records.batch[most - 1]) + 1], records[:most]


def _slowly(
    log: LogBytes,
    chunk: Chunk,
    source: Source,
    shown: str,
    wanted: DumpSelection,
    last_offset: int,
    left: Left,
) -> Iterator[Row]:
    for item in walk(log, position=chunk.position, last_offset=last_offset):
        if item.position >= chunk.end or left.is_empty:
            return
        yield from item_rows(item, source, shown, wanted, left)
