"""The lines of Kafka's dump tool for runs of sound batches, joined from columns.

The same text as `kctl.dump.kafka_text.log` makes batch by batch, many times quicker.
"""

from collections.abc import Iterator
from string import Formatter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.errors import FormatError
from formats.kafka_text.dump_log_segments import (
    BATCH_LINE,
    KEY,
    OF_ATTRIBUTES,
    PAYLOAD,
    RECORD_LINE,
    control_text,
    java_text,
    optional_long,
)
from formats.log.columns.headers import Headers
from formats.log.record_batch import Record
from kctl.dump.plain_runs import (
    Columns,
    by_attributes,
    control_texts,
    delete_horizons,
    header_lists,
    is_control,
    last_sequences,
    run_lines,
)
from kctl.dump.text_columns import Column, Lines, joined, slices
from kctl.scan.records import Records


def kafka_lines(headers: Headers, records: Records) -> Iterator[Lines]:
    """The lines of batches, each followed by those of its records."""
    times = _of_attributes(headers, "time")
    return run_lines(headers, records, batch_columns, lambda chosen: record_columns(chosen, times, headers))


def _of_attributes(headers: Headers, name: str) -> Column:
    return by_attributes(headers, lambda bits: OF_ATTRIBUTES[name](bits).encode())


def filled(line: str, owner: object, **values: Column | Columns) -> Columns:
    """A line with fields in braces, to be joined; `{x.NAME}` is the owner's column of that name."""
    columns: list[Column] = []
    for text, name, _, _ in Formatter().parse(line):
        columns.append(text.encode())
        if name is not None:
            value = getattr(owner, name.partition(".")[2]) if "." in name else values[name]
            columns += value if isinstance(value, tuple) else (value,)
    return tuple(columns)


def batch_columns(headers: Headers) -> Columns:
    """The line of each batch of magic 2, to be joined."""
    return filled(
        BATCH_LINE,
        headers,
        position=headers.position,
        last_sequence=last_sequences(headers),
        delete_horizon=delete_horizons(headers, optional_long(None).encode(), b"OptionalLong[", b"]"),
        is_valid=b"true",
        **{name: _of_attributes(headers, name) for name in OF_ATTRIBUTES},
    )


def record_columns(records: Records, times: Column, headers: Headers) -> Columns:
    """The line of each record, to be joined; `times` are the names of the batches' timestamps."""
    control = is_control(headers, records)
    return filled(
        RECORD_LINE,
        records,
        time=times if isinstance(times, bytes) else times.take(pa.array(records.batch)),
        key_size=records.key_size,
        value_size=records.value_size,
        header_keys=header_lists(
            records, b"", lambda keys, sizes, *_: (_java_texts(b"", records.data, keys, keys + sizes),)
        ),
        contents=(
            control_texts(records, headers, b"", _control),
            _text(KEY.encode(), records.data, records.key_position, records.key_size, control),
            _text(PAYLOAD.encode(), records.data, records.value_position, records.value_size, control),
        ),
    )


def _control(key: bytes | None, value: bytes | None) -> bytes:
    return control_text(Record(0, 0, key, value)).encode()


def controls_are_sound(headers: Headers, records: Records) -> bool:
    """Whether every control record can be read; what Kafka prints of others is no matter of columns."""
    try:
        control_texts(records, headers, b"", _control)
    except FormatError:
        return False
    return True


def _text(
    before: bytes,
    data: NDArray[np.uint8],
    positions: Ints,
    sizes: Ints,
    control: Mask,
) -> Any:
    """A key or payload as text, nothing where it is null or a control record's."""
    is_empty = (sizes < 0) | control
    if is_empty.all():
        return b""
    ends = positions + np.where(is_empty, 0, sizes)
    column = _java_texts(before, data, positions, ends)
    return pc.if_else(pa.array(is_empty), pa.scalar(b"", pa.binary()), column) if is_empty.any() else column


def _java_texts(before: bytes, data: NDArray[np.uint8], starts: Ints, ends: Ints) -> pa.Array:
    """data[start:end] of each row as Java reads it, with the same text before each."""
    column = joined(before, slices(data, starts, ends))
    odd = pc.invert(pc.string_is_ascii(column.view(pa.string())))
    if not odd.true_count:
        return column
    octets = memoryview(data.data)
    rows = np.flatnonzero(odd.to_numpy(zero_copy_only=False))
    texts = [
        before + java_text(bytes(octets[start:end])).encode()
        for start, end in zip(starts[rows].tolist(), ends[rows].tolist(), strict=True)
    ]
    return pc.replace_with_mask(column, odd, pa.array(texts, pa.binary()))
