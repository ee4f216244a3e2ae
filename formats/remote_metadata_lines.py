"""Lines of Kafka's RemoteLogMetadataFormatter for many records at once, joined column by column.

The text is that of `remote_log_metadata_text.format_kafka_line`, which also prints the rows that do not fit.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from formats.remote_log_metadata import SegmentState
from formats.remote_metadata_columns import Ints, MetadataColumns, MetadataRead, read_epochs, windows
from formats.remote_metadata_partitions import PartitionCodes

ID_CHARACTERS = 22
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STATES = pa.array([state.name for state in SegmentState])
_ID = np.dtype("V16")

Text = Any  # a pyarrow string array or scalar
_TYPES = {
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
}


def arrow(numbers: NDArray[Any]) -> Any:
    """The numbers as a pyarrow array over the same memory; `pa.array` would look for pandas each time."""
    held = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(_TYPES[held.dtype.name], len(held), [None, pa.py_buffer(held)])


@cache
def word(text: str) -> Any:
    """A piece of text that every row has; making it each time costs more than joining it."""
    return pa.scalar(text)


def _mask(rows: NDArray[np.bool_]) -> Any:
    return pc.cast(arrow(rows.astype(np.uint8)), pa.bool_())


def uuid_texts(data: NDArray[np.uint8], positions: Ints) -> Text:
    """The texts of the ids at positions."""
    padded = np.zeros((len(positions), 18), np.uint8)
    padded[:, :16] = windows(data, positions, _ID).view(np.uint8).reshape(-1, 16)
    text = binascii.b2a_base64(padded.tobytes(), newline=False).translate(_URL_SAFE)
    kept = np.frombuffer(text, np.uint8).reshape(-1, 24)[:, :ID_CHARACTERS].tobytes()
    ends = np.arange(len(positions) + 1, dtype=np.int32) * ID_CHARACTERS
    return pa.StringArray.from_buffers(len(positions), pa.py_buffer(ends), pa.py_buffer(kept))


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
        return word(", customMetadata=Optional.empty")
    held = pc.binary_join_element_wise(
        word(", customMetadata=Optional[CustomMetadata{"), _text(length), word(" bytes}]"), word("")
    )
    new, null = _mask(columns.has_custom), _mask(length < 0)
    return pc.if_else(new, pc.if_else(null, word(", customMetadata=Optional.empty"), held), word(""))


class KafkaLines:
    """Prints records of one log, many at a time; partitions that were met are known from then on."""

    def __init__(self) -> None:
        self._codes = PartitionCodes()
        self._partitions: Text = pa.array([], pa.string())

    def lines(
        self,
        read: MetadataRead,
        metadata_partition: int | None,
        offsets: Ints,
        plain: Callable[[int], str | None],
    ) -> bytes:
        """The lines of all rows; `plain` prints a row that does not fit, None where it cannot be printed."""
        head = pc.binary_join_element_wise(
            word(f"partition: {metadata_partition}, offset: "), _text(offsets), word(", value: "), word("")
        )
        parts, where, slow = [], [], [read.slow]
        for columns, event in ((read.copies, _copies), (read.updates, _updates)):
            codes = self._codes.of(columns)
            odd = codes < 0
            if odd.any():
                slow.append(columns.rows[odd])
                columns, codes = columns[~odd], codes[~odd]
            if len(columns):
                ids = pc.binary_join_element_wise(
                    word("{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition="),
                    self._texts().take(arrow(codes)),
                    word(", id="),
                    uuid_texts(columns.data, columns.id_position),
                    word("}"),
                    word(""),
                )
                parts.append(event(columns, head.take(arrow(columns.rows)), ids))
                where.append(columns.rows)
        odd_rows = np.sort(np.concatenate(slow))
        if len(odd_rows):
            lines = [plain(row) for row in odd_rows.tolist()]
            parts.append(pa.array(["" if line is None else f"{line}\n" for line in lines], pa.string()))
            where.append(odd_rows)
        return _in_order(parts, where, len(offsets))

    def _texts(self) -> Text:
        """`topicId:topic-partition` of each partition."""
        known = self._codes.partitions
        if len(self._partitions) < len(known):
            texts = [f"{one.topic_id}:{one.topic}-{one.partition}" for one in known]
            self._partitions = pa.array(texts, pa.string())
        return self._partitions


def _in_order(parts: list[Text], where: list[Ints], rows: int) -> bytes:
    """The bytes of all lines in the order of their rows."""
    if not parts:
        return b""
    place = np.empty(rows, np.int64)
    place[np.concatenate(where)] = np.arange(rows)
    lines = pa.concat_arrays([part.cast(pa.large_string()) for part in parts]).take(arrow(place))
    ends = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset : lines.offset + len(lines) + 1]
    held = lines.buffers()[2]
    return b"" if held is None else held[int(ends[0]) : int(ends[-1])].to_pybytes()


def _copies(columns: MetadataColumns, head: Text, ids: Text) -> Text:
    return pc.binary_join_element_wise(
        head,
        word("RemoteLogSegmentMetadata"),
        ids,
        word(", startOffset="),
        _text(columns.column("start_offset")),
        word(", endOffset="),
        _text(columns.column("end_offset")),
        word(", brokerId="),
        _text(columns.column("broker_id")),
        word(", maxTimestampMs="),
        _text(columns.column("max_timestamp")),
        word(", eventTimestampMs="),
        _text(columns.column("event_timestamp")),
        word(", segmentLeaderEpochs={"),
        _epochs(columns),
        word("}, segmentSizeInBytes="),
        _text(columns.size_in_bytes),
        _custom(columns),
        word(", state="),
        _STATES.take(arrow(columns.state)),
        word("}\n"),
        word(""),
    )


def _updates(columns: MetadataColumns, head: Text, ids: Text) -> Text:
    return pc.binary_join_element_wise(
        head,
        word("RemoteLogSegmentMetadataUpdate"),
        ids,
        _custom(columns),
        word(", state="),
        _STATES.take(arrow(columns.state)),
        word(", eventTimestampMs="),
        _text(columns.column("event_timestamp")),
        word(", brokerId="),
        _text(columns.column("broker_id")),
        word("}\n"),
        word(""),
    )
