"""Batches and their records as the lines of rows: columns of text, joined line by line as Arrow strings."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.kafka_text.dump_log_segments import time_name
from formats.log.columns.headers import Headers
from formats.log.record_batch import (
    CODEC_MASK,
    CONTROL,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    Record,
)
from kctl.dump.batches import codec
from kctl.dump.decoded import decoded
from kctl.dump.escaped_texts import field, odd_rows
from kctl.dump.plain_runs import (
    Columns,
    batch_lines,
    by_attributes,
    control_texts,
    delete_horizons,
    header_lists,
    last_sequences,
    run_lines,
)
from kctl.dump.selection import DumpSelection
from kctl.dump.spelling import Spelling, json_spelling
from kctl.dump.text_columns import Column, Lines
from kctl.dump.values import header_rows
from kctl.rows import RowType
from kctl.rows.dump import BATCH, RECORD
from kctl.scan.records import Records

Values = Mapping[str, Column | Columns]


def chunk_lines(
    headers: Headers, records: Records, file: str, selection: DumpSelection, spelling: Spelling
) -> Iterator[Lines]:
    """The lines of sound batches of magic 2, each followed by those of its records."""
    return run_lines(
        headers,
        records,
        lambda batches: batch_columns(batches, file, spelling),
        lambda chosen: record_columns(chosen, file, headers, selection, spelling),
    )


def lines_of_batches(headers: Headers, file: str, spelling: Spelling) -> Lines:
    """The lines of sound batches of magic 2 alone."""
    return batch_lines(headers, lambda batches: batch_columns(batches, file, spelling))


def line_columns(row: RowType, values: Values, owner: object, spelling: Spelling) -> Columns:
    """The line of each row, to be joined; a field without a value is the owner's column of that name."""
    columns: list[Column] = [spelling.begin(row.kind)]
    for name in spelling.names(row):
        value = values[name] if name in values else getattr(owner, name)
        columns.append(spelling.before(name) if name in row.required else spelling.separator)
        columns += value if isinstance(value, tuple) else (value,)
    return (*columns, spelling.end)


def batch_columns(headers: Headers, file: str, spelling: Spelling) -> Columns:
    """The line of each batch, to be joined."""

    def text(of_bits: Callable[[int], object]) -> Column:
        return by_attributes(headers, lambda bits: spelling.value(of_bits(bits)))

    values: Values = {
        "file": spelling.value(file),
        "crc_valid": spelling.value(True),
        "codec": text(lambda bits: codec(bits & CODEC_MASK)),
        "timestamp_type": text(lambda bits: time_name(bool(bits & TIMESTAMP_TYPE))),
        "batch_length": headers.size_in_bytes - LOG_OVERHEAD,
        "delete_horizon_ms": delete_horizons(headers, spelling.value(None)),
        "last_sequence": last_sequences(headers),
        "is_transactional": text(lambda bits: bool(bits & TRANSACTIONAL)),
        "is_control": text(lambda bits: bool(bits & CONTROL)),
    }
    return line_columns(BATCH, values, headers, spelling)


def record_columns(
    records: Records, file: str, headers: Headers, selection: DumpSelection, spelling: Spelling
) -> Columns:
    """The line of each record, to be joined."""

    def control(key: bytes | None, value: bytes | None) -> bytes:
        return spelling.value(decoded(selection.topic, True, Record(0, 0, key, value)))

    def text(name: str, form: str) -> Columns:
        positions, sizes = getattr(records, f"{name}_position"), getattr(records, f"{name}_size")
        return tuple(field(name, records.data, positions, sizes, form, spelling))

    values: Values = {
        "file": spelling.value(file),
        "position": headers.position[records.batch],
        "headers": (b"[", _headers(records, spelling), b"]"),
        "decoded": control_texts(records, headers, spelling.value(None), control),
        "key": text("key", selection.keys),
        "value": text("value", selection.values),
    }
    return line_columns(RECORD, values, records, spelling)


def _headers(records: Records, spelling: Spelling) -> Column:
    """The header list of each record, without its brackets: JSON in every form."""
    data, as_json = records.data, json_spelling()
    column = header_lists(
        records,
        b"{",
        lambda keys, key_sizes, values, value_sizes: (
            *field("key", data, keys, key_sizes, "utf8", as_json), b",",
            *field("value", data, values, value_sizes, "utf8", as_json), b"}",
        ),
    )  # fmt: skip
    if isinstance(column, bytes) or spelling.odd is None:
        return column
    odd = odd_rows(column, spelling)
    if not odd.any():
        return column
    written = [spelling.value(header_rows(listed))[1:-1] for listed in records[np.flatnonzero(odd)].headers()]
    return pc.replace_with_mask(column, pa.array(odd), pa.array(written, pa.binary()))
