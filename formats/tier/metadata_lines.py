"""Lines of Kafka's RemoteLogMetadataFormatter for many records at once, joined column by column.

The text equals that of `kafka_text.remote_log_metadata`, which also prints the rows that do not fit.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable
from functools import cache
from string import Formatter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.kafka_text.remote_log_metadata import CUSTOM, EVENTS, LINE, NO_CUSTOM, format_kafka_line
from formats.messages.remote_log_metadata import (
    RemoteLogMetadata,
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
)
from formats.tier.metadata_columns import MetadataColumns, MetadataRead, read_epochs, windows
from formats.tier.metadata_partitions import Codes, PartitionCodes

ID_CHARACTERS = 22
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STATES = pa.array([state.name for state in SegmentState])
_ID = np.dtype("V16")

Text = Any  # a pyarrow string array or scalar
_TYPES = {"int8": pa.int8(), "int32": pa.int32(), "int64": pa.int64(), "uint8": pa.uint8()}


def arrow(numbers: NDArray[Any]) -> Any:
    """The numbers as a pyarrow array over the same memory; `pa.array` would look for pandas each time."""
    numbers = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(_TYPES[numbers.dtype.name], len(numbers), [None, pa.py_buffer(numbers)])


@cache
def word(text: str) -> Any:
    """A text that every row has, as a scalar; creating it each time costs more than joining it."""
    return pa.scalar(text)


def _mask(rows: Mask) -> Any:
    return pc.cast(arrow(rows.astype(np.uint8)), pa.bool_())


def uuid_texts(data: NDArray[np.uint8], positions: Ints) -> Text:
    """The texts of the ids at positions."""
    padded = np.zeros((len(positions), 18), np.uint8)
    padded[:, :16] = windows(data, positions, _ID).view(np.uint8).reshape(-1, 16)
    text = binascii.b2a_base64(padded.tobytes(), newline=False).translate(_URL_SAFE)
    text_bytes = np.frombuffer(text, np.uint8).reshape(-1, 24)[:, :ID_CHARACTERS].tobytes()
    ends = np.arange(len(positions) + 1, dtype=np.int32) * ID_CHARACTERS
    return pa.StringArray.from_buffers(len(positions), pa.py_buffer(ends), pa.py_buffer(text_bytes))


def _text(numbers: NDArray[Any]) -> Text:
    return pc.cast(arrow(numbers), pa.string())


def _epochs(columns: MetadataColumns) -> Text:
    counts = columns.epochs_count
    epoch, offset = read_epochs(columns.data, columns.epochs_position, counts)
    each = pc.binary_join_element_wise(_text(epoch), _text(offset), word("="))
    ends = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(arrow(ends), each), ", ")


def _custom(columns: MetadataColumns) -> Text:
    length = columns.custom_length
    if columns.has_custom.all() and (length < 0).all():
        return word(NO_CUSTOM)
    before, behind = CUSTOM.split("%s")
    with_length = pc.binary_join_element_wise(word(before), _text(length), word(behind), word(""))
    new, null = _mask(columns.has_custom), _mask(length < 0)
    return pc.if_else(new, pc.if_else(null, word(NO_CUSTOM), with_length), word(""))


_TEMPLATES = {
    made: [(text, name) for text, name, _, _ in Formatter().parse(EVENTS[made] + "\n")]
    for made in (SegmentMetadata, SegmentMetadataUpdate)
}
# How a field's text is made for all rows; other fields are printed as numbers.
_FIELDS: dict[str, Callable[[MetadataColumns], Text]] = {
    "remote_log_segment_id": lambda columns: uuid_texts(columns.data, columns.id_position),
    "epochs": _epochs,
    "size_in_bytes": lambda columns: _text(columns.size_in_bytes),
    "custom": _custom,
    "state": lambda columns: _STATES.take(arrow(columns.state)),
}


class KafkaLines:
    """Prints records of one log, many at a time; partitions are remembered."""

    def __init__(self) -> None:
        self._codes = PartitionCodes()
        self._partitions: Text = pa.array([], pa.string())

    def lines(
        self,
        read: MetadataRead,
        metadata_partition: int | None,
        offsets: Ints,
        plain: Callable[[list[int]], Iterable[tuple[int, RemoteLogMetadata]]],
    ) -> bytes:
        """The lines of all rows in order; `plain` reads the rows that do not fit, without those that are no record."""
        before, behind = LINE.format(metadata_partition, "{}").split("{}")
        head = pc.binary_join_element_wise(word(before), _text(offsets), word(behind), word(""))
        coded, odd = self._codes.coded(read)
        parts, where = [], []
        for (columns, codes), type_ in zip(coded, _TEMPLATES, strict=True):
            if not len(columns):
                continue
            parts.append(self._event(_TEMPLATES[type_], head.take(arrow(columns.rows)), columns, codes))
            where.append(columns.rows)
        if len(odd):
            records = dict(plain(odd.tolist()))
            lines = [
                f"{format_kafka_line(metadata_partition, int(offsets[row]), records[row])}\n"
                if row in records
                else ""
                for row in odd.tolist()
            ]
            parts.append(pa.array(lines, pa.string()))
            where.append(odd)
        return _in_order(parts, where, len(offsets))

    def _event(
        self, template: list[tuple[str, str | None]], head: Text, columns: MetadataColumns, codes: Codes
    ) -> Text:
        pieces = [head]
        for text, name in template:
            pieces.append(word(text))
            if name == "topic_id_partition":
                pieces.append(self._texts().take(arrow(codes)))
            elif name:
                field = _FIELDS.get(name)
                pieces.append(field(columns) if field else _text(columns.column(name)))
        return pc.binary_join_element_wise(*pieces, word(""))

    def _texts(self) -> Text:
        """`topicId:topic-partition` of each partition."""
        known = self._codes.partitions
        if len(self._partitions) < len(known):
            self._partitions = pa.array(map(str, known), pa.string())
        return self._partitions


def _in_order(parts: list[Text], where: list[Ints], rows: int) -> bytes:
    """The bytes of all lines in the order of their rows."""
    if not parts:
        return b""
    place = np.empty(rows, np.int64)
    place[np.concatenate(where)] = np.arange(rows)
    lines = pa.concat_arrays([part.cast(pa.large_string()) for part in parts]).take(arrow(place))
    ends = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset : lines.offset + len(lines) + 1]
    text_buffer = lines.buffers()[2]
    return b"" if text_buffer is None else text_buffer[int(ends[0]) : int(ends[-1])].to_pybytes()
