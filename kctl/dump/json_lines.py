"""Batches and records of a log as JSON lines, made of columns and not of rows.

The lines are those of the rows of `kctl.dump.batches`. Runs of sound batches become lines as Arrow strings
joined column by column; a run with anything out of the ordinary in it (damage, old magics, records that
cannot be read, a filter that cuts it) goes through the rows.
"""

from collections.abc import Iterator

from formats.log_bytes import LogBytes
from formats.records import walk
from kctl.dump.batches import Left, Row, item_rows
from kctl.dump.json_columns import chunk_lines
from kctl.dump.plain_runs import is_plain
from kctl.dump.seeking import first_position
from kctl.dump.text_columns import Lines
from kctl.dump.wanted import Wanted
from kctl.scan.options import Chunk, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import LocalFile


def log_lines(source: LocalFile, path: str, shown: str, wanted: Wanted) -> Iterator[Lines | Row]:
    """The lines of a log in pieces, and rows where there are none; everything that is wanted, in order."""
    log = LogBytes(source)
    last_offset = -1
    options = ScanOptions(
        keep_records=True,
        start=first_position(path, log, wanted),
        max_decompressed_bytes=wanted.max_decompressed_bytes,
    )
    for chunk in scan_segment(source, options):
        if chunk.position == chunk.end:
            yield from (finding.row() | {"file": shown} for finding in chunk.findings)
        elif chunk.records is not None and is_plain(chunk, chunk.records, wanted):
            yield from chunk_lines(chunk.headers, chunk.records, shown, wanted)
        else:
            yield from _slowly(log, chunk, source, shown, wanted, last_offset)
        if len(chunk.headers):
            last_offset = int(chunk.headers.last_offset[-1])
            if (
                wanted.to_offset is not None
                and chunk.headers.crc_valid[-1]
                and last_offset >= wanted.to_offset - 1
            ):
                return


def _slowly(
    log: LogBytes, chunk: Chunk, source: LocalFile, shown: str, wanted: Wanted, last_offset: int
) -> Iterator[Row]:
    for item in walk(log, position=chunk.position, last_offset=last_offset):
        if item.position >= chunk.end:
            return
        yield from item_rows(item, source, shown, wanted, Left(None))
