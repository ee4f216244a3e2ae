"""Batches and records of a log as JSON lines, made of columns and not of rows.

The lines are those of the rows of `kctl.dump.batches`. Runs of sound batches become lines as Arrow strings
joined column by column; a run with anything out of the ordinary in it (damage, old magics, records that
cannot be read, a filter that cuts it) goes through the rows.
"""

from collections.abc import Iterator

import numpy as np

from formats.log_bytes import LogBytes
from formats.records import walk
from kctl.dump.batches import Left, Row, item_rows
from kctl.dump.json_columns import Lines, chunk_lines
from kctl.dump.seeking import first_position
from kctl.dump.wanted import Wanted
from kctl.scan.options import Chunk, ScanOptions
from kctl.scan.records import Records
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


def is_plain(chunk: Chunk, records: Records, wanted: Wanted) -> bool:
    """Whether all records of all batches are there, and all of them are wanted."""
    headers = chunk.headers
    if chunk.damage or not len(records) or (headers.magic < 2).any() or not headers.crc_valid.all():
        return False
    if int(headers.records_count.sum(dtype=np.int64)) != len(records) or wanted.key is not None:
        return False
    if not wanted.is_filtered:
        return True
    return all(
        wanted.offset_is_in(int(offset)) and wanted.time_is_in(int(timestamp))
        for offset, timestamp in (
            (records.offset.min(), records.timestamp.min()),
            (records.offset.max(), records.timestamp.max()),
        )
    ) and bool((headers.records_count > 0).all())
