"""Runs of a scan with nothing out of the ordinary: their lines are joined from columns, not made row by row.

What the lines are, JSON or Kafka's text, is two functions: the columns of a batch's line, those of a record's.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.arrays import Ints, Mask
from formats.log.columns.headers import Headers
from formats.log.columns.record_headers import header_fields
from formats.log.record_batch import CONTROL, DELETE_HORIZON
from kctl.dump.selection import DumpSelection
from kctl.dump.text_columns import (
    Column,
    Lines,
    at_first_rows,
    either,
    ends_of,
    joined,
    lines_of,
    pieces_of,
    texts_at,
)
from kctl.scan.options import Chunk
from kctl.scan.records import Records

EVERYTHING = DumpSelection()
Columns = tuple[Column, ...]


def has_plain_batches(chunk: Chunk) -> bool:
    """Whether all of it is sound batches of magic 2."""
    headers = chunk.headers
    return not chunk.damage and bool((headers.magic == 2).all() and headers.crc_valid.all())


LARGEST_AS_COLUMN = 1 << 20  # bytes of a record: the columns of its text take many times as much


def is_plain(chunk: Chunk, records: Records, selection: DumpSelection = EVERYTHING) -> bool:
    """Whether the chunk has all records of its batches, and all are selected."""
    headers = chunk.headers
    if not len(records) or not has_plain_batches(chunk) or records.size_in_bytes.max() > LARGEST_AS_COLUMN:
        return False
    if int(headers.records_count.sum(dtype=np.int64)) != len(records) or selection.key is not None:
        return False
    if not selection.is_filtered:
        return True
    return all(
        selection.offset_is_in(int(offset)) and selection.time_is_in(int(timestamp))
        for offset, timestamp in (
            (records.offset.min(), records.timestamp.min()),
            (records.offset.max(), records.timestamp.max()),
        )
    ) and bool((headers.records_count > 0).all())


# --- lines --------------------------------------------------------------------------------------------


def run_lines(
    headers: Headers,
    records: Records,
    of_batches: Callable[[Headers], Columns],
    of_records: Callable[[Records], Columns],
) -> Iterator[Lines]:
    """The lines of sound batches of magic 2, each followed by those of its records."""
    batches_before = 0
    for rows in pieces_of(records.position):
        chosen = records[rows]
        new = headers[batches_before : int(chosen.batch[-1]) + 1]
        batches = chosen.batch - batches_before
        before = of_batches(new) if len(new) else ()
        if len(new) and not (len(new) == len(chosen) and batches[0] == 0 and (np.diff(batches) == 1).all()):
            before = (at_first_rows(joined(*before), batches),)
        yield lines_of(joined(*before, *of_records(chosen)))
        batches_before += len(new)
    yield batch_lines(headers[batches_before:], of_batches)


def batch_lines(headers: Headers, of_batches: Callable[[Headers], Columns]) -> Lines:
    """The lines of sound batches of magic 2 alone."""
    return lines_of(joined(*of_batches(headers))) if len(headers) else b""


def last_sequences(headers: Headers) -> Column:
    """The sequence of each batch's last record; -1 where there are none."""
    last = headers.base_sequence.astype(np.int64) + headers.last_offset_delta
    return np.where(headers.base_sequence >= 0, last & 0x7FFFFFFF, -1)


def by_attributes(headers: Headers, text: Callable[[int], bytes]) -> Column:
    """The text of each batch's attributes."""
    if (headers.attributes == headers.attributes[0]).all():
        return text(int(headers.attributes[0]))
    bits, indexes = np.unique(headers.attributes, return_inverse=True)
    return pa.array([text(value) for value in bits.tolist()], pa.binary()).take(pa.array(indexes))


def delete_horizons(headers: Headers, none: bytes, *around: bytes) -> Column:
    """The delete horizon of each batch between two constants, `none` where it has none."""
    has = (headers.attributes & DELETE_HORIZON) != 0
    if not has.any():
        return none
    before, behind = around or (b"", b"")
    texts = joined(before, headers.base_timestamp, behind)
    return pc.if_else(pa.array(has), texts, pa.scalar(none, pa.binary()))


def is_control(headers: Headers, records: Records) -> Mask:
    """Which records are those of control batches."""
    control: Mask = (headers.attributes[records.batch] & CONTROL) != 0
    return control


def control_texts(
    records: Records, headers: Headers, none: bytes, text: Callable[[bytes | None, bytes | None], bytes]
) -> Column:
    """The text of each control record; `none` for other records."""
    rows = np.flatnonzero(is_control(headers, records))
    if not len(rows):
        return none
    texts: list[bytes] = [none] * len(records)
    chosen = records[rows]
    for row, key, value in zip(rows.tolist(), chosen.keys(), chosen.values(), strict=True):
        texts[row] = text(key, value)
    return pa.array(texts, pa.binary())


def header_lists(
    records: Records, begins: bytes, texts: Callable[[Ints, Ints, Ints, Ints], Columns]
) -> Column:
    """The headers of each record with commas between them.

    Each is what `begins` it, and its `texts`, made of positions and sizes of keys and values.
    """
    counts = records.headers_count
    if not (counts > 0).any():
        return b""
    fields = header_fields(records.data, records.headers_position, counts)
    edges = np.concatenate(([0], np.cumsum(counts)))
    is_behind = np.ones(edges[-1], np.bool_)
    is_behind[edges[:-1][counts > 0]] = False
    column = joined(either(is_behind, b"," + begins, begins), *texts(*fields))
    return texts_at(ends_of(column)[edges], column.buffers()[2])
