"""The lines of Kafka's dump tool for runs of sound batches, joined from columns.

The same text as `kctl.dump.kafka_text.log` makes batch by batch, many times quicker.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.errors import FormatError
from formats.kafka_text.dump_log_segments import (
    batch_end,
    batch_flags,
    control_text,
    java_text,
    optional_long,
)
from formats.log.columns.headers import Headers
from formats.log.record_batch import TIMESTAMP_TYPE, Record
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
from kctl.dump.text_columns import Lines, joined, slices
from kctl.scan.records import Records

TIMES = pa.array([b"CreateTime: ", b"LogAppendTime: "], pa.binary())


def kafka_lines(headers: Headers, records: Records) -> Iterator[Lines]:
    """The lines of batches, each followed by those of its records."""
    times = _times(headers)
    return run_lines(headers, records, batch_columns, lambda chosen: record_columns(chosen, times, headers))


def _times(headers: Headers) -> Any:
    return TIMES.take(pa.array((headers.attributes & TIMESTAMP_TYPE != 0).astype(np.int8)))


def batch_columns(headers: Headers) -> Columns:
    """The line of each batch of magic 2, to be joined."""
    return (
        b"baseOffset: ", headers.base_offset,
        b" lastOffset: ", headers.last_offset,
        b" count: ", headers.records_count,
        b" baseSequence: ", headers.base_sequence,
        b" lastSequence: ", last_sequences(headers),
        b" producerId: ", headers.producer_id,
        b" producerEpoch: ", headers.producer_epoch,
        b" partitionLeaderEpoch: ", headers.partition_leader_epoch,
        by_attributes(headers, lambda bits: batch_flags(bits).encode()), b" deleteHorizonMs: ",
        delete_horizons(headers, optional_long(None).encode(), b"OptionalLong[", b"]"),
        b" position: ", headers.position, b" ",
        _times(headers),
        headers.max_timestamp,
        b" size: ", headers.size_in_bytes,
        by_attributes(headers, lambda bits: batch_end(bits).encode()), headers.crc, b" isvalid: true\n",
    )  # fmt: skip


def record_columns(records: Records, times: Any, headers: Headers) -> Columns:
    """The line of each record, to be joined."""
    control = is_control(headers, records)
    header_keys = header_lists(
        records,
        b"",
        lambda keys, sizes, *_: (_java_texts(b"", records.data, keys, keys + sizes),),
    )
    key = _text(b" key: ", records.data, records.key_position, records.key_size, control)
    value = _text(b" payload: ", records.data, records.value_position, records.value_size, control)
    return (
        b"| offset: ", records.offset, b" ", times.take(pa.array(records.batch)), records.timestamp,
        b" keySize: ", records.key_size, b" valueSize: ", records.value_size,
        b" sequence: ", records.sequence, b" headerKeys: [", header_keys, b"]",
        control_texts(records, headers, b"", _control), key, value, b"\n",
    )  # fmt: skip


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
