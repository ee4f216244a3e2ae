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
from formats.remote_metadata_columns import Ints, MetadataColumns, read_epochs, windows

ID_CHARACTERS = 22
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STATES = pa.array([state.name for state in SegmentState])
_ID = np.dtype("V16")
_WORD = np.dtype(">u8")

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


def _partitions(
    data: NDArray[np.uint8], columns: MetadataColumns, which: Ints
) -> tuple[Text, NDArray[np.bool_]]:
    """`topicId:topic-partition` of rows, and which rows' names are not those of their group."""
    k = columns.topic_id_high[which] * np.uint64(0x9E3779B97F4A7C15)
    k ^= columns.topic_id_low[which] + (columns.partition[which].astype(np.uint64) << np.uint64(1))
    _, first, group = np.unique(k, return_index=True, return_inverse=True)
    ids = uuid_texts(
        data, columns.name_position[which[first]] + columns.name_length[which[first]]
    ).to_pylist()
    texts = []
    odd = np.zeros(len(which), np.bool_)
    for index, row in enumerate(which[first].tolist()):
        at, size = int(columns.name_position[row]), int(columns.name_length[row])
        try:
            name = data[at : at + size].tobytes().decode()
        except UnicodeDecodeError:
            name, odd[group == index] = "", True
        texts.append(f"{ids[index]}:{name}-{columns.partition[row]}")
    odd |= ~same_names(data, columns, which, first, group)
    return pa.array(texts, pa.string()).take(arrow(group)), odd


def same_names(
    data: NDArray[np.uint8], columns: MetadataColumns, which: Ints, first: Ints, group: Ints
) -> NDArray[np.bool_]:
    """Whether rows `which` have topic id, partition and name of their group's row, `which[first][group]`."""
    one = which[first]
    same: NDArray[np.bool_] = columns.topic_id_high[which] == columns.topic_id_high[one][group]
    for column in (columns.topic_id_low, columns.partition, columns.name_length):
        same &= column[which] == column[one][group]
    length, start = columns.name_length[which], columns.name_position[which]
    for at in range(0, int(length.max(initial=0)), 8):
        # Words that begin behind a name's end are not looked at: it may be that of the buffer.
        held = columns.name_length[one] > at
        words = windows(data, columns.name_position[one] + np.where(held, at, 0), _WORD)
        found = windows(data, start + np.where(length > at, at, 0), _WORD)
        differs = (found ^ words[group]).astype(np.uint64)
        # Bytes behind the name's end are shifted out; a shift by all 64 bits is not defined, so in two steps.
        shift = (np.uint64(8) - np.clip(length - at, 0, 8).astype(np.uint64)) * np.uint64(4)
        same &= (differs >> shift >> shift) == 0
    return same


def _text(numbers: NDArray[Any]) -> Text:
    return pc.cast(arrow(numbers), pa.string())


def _epochs(data: NDArray[np.uint8], columns: MetadataColumns, which: Ints) -> Text:
    counts = columns.epochs_count[which]
    epoch, offset = read_epochs(data, columns.epochs_position[which], counts)
    each = pc.binary_join_element_wise(_text(epoch), _text(offset), word("="))
    ends = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(arrow(ends), each), ", ")


def _custom(columns: MetadataColumns, which: Ints) -> Text:
    length = columns.custom_length[which]
    if columns.has_custom[which].all() and (length < 0).all():
        return word(", customMetadata=Optional.empty")
    held = pc.binary_join_element_wise(
        word(", customMetadata=Optional[CustomMetadata{"), _text(length), word(" bytes}]"), word("")
    )
    new, null = _mask(columns.has_custom[which]), _mask(length < 0)
    return pc.if_else(new, pc.if_else(null, word(", customMetadata=Optional.empty"), held), word(""))


def format_kafka_lines(
    data: NDArray[np.uint8],
    columns: MetadataColumns,
    metadata_partition: int | None,
    offsets: Ints,
    plain: Callable[[int], str | None],
) -> bytes:
    """The lines of all rows; `plain` prints a row that does not fit, None where it cannot be printed."""
    rows = len(offsets)
    head = pc.binary_join_element_wise(
        word(f"partition: {metadata_partition}, offset: "), _text(offsets), word(", value: "), word("")
    )
    odd = ~columns.fast
    parts, where = [], []
    for kind, event in ((0, _adds), (1, _updates)):
        which = np.flatnonzero(columns.fast & (columns.kind == kind))
        if not len(which):
            continue
        partitions, strange = _partitions(data, columns, which)
        odd[which[strange]] = True
        ids = pc.binary_join_element_wise(
            word("{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition="),
            partitions,
            word(", id="),
            uuid_texts(data, columns.id_position[which]),
            word("}"),
            word(""),
        )
        parts.append(event(data, columns, which, head.take(arrow(which)), ids))
        where.append(which)
    slow = np.flatnonzero(odd)
    if len(slow):
        lines = [plain(row) for row in slow.tolist()]
        parts.append(pa.array(["" if line is None else f"{line}\n" for line in lines], pa.string()))
        where.append(slow)
    return _in_order(parts, where, odd, rows)


def _in_order(parts: list[Text], where: list[Ints], odd: NDArray[np.bool_], rows: int) -> bytes:
    """The bytes of all lines in the order of their rows."""
    if not parts:
        return b""
    place = np.empty(rows, np.int64)
    base = 0
    for part, which in zip(parts, where, strict=True):
        place[which] = base + np.arange(len(which))  # the plain rows come last, and win
        base += len(part)
    lines = pa.concat_arrays([part.cast(pa.large_string()) for part in parts]).take(arrow(place))
    ends = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset : lines.offset + len(lines) + 1]
    held = lines.buffers()[2]
    return b"" if held is None else held[int(ends[0]) : int(ends[-1])].to_pybytes()


def _adds(data: NDArray[np.uint8], columns: MetadataColumns, which: Ints, head: Text, ids: Text) -> Text:
    return pc.binary_join_element_wise(
        head,
        word("RemoteLogSegmentMetadata"),
        ids,
        word(", startOffset="),
        _text(columns.start_offset[which]),
        word(", endOffset="),
        _text(columns.end_offset[which]),
        word(", brokerId="),
        _text(columns.broker_id[which]),
        word(", maxTimestampMs="),
        _text(columns.max_timestamp[which]),
        word(", eventTimestampMs="),
        _text(columns.event_timestamp[which]),
        word(", segmentLeaderEpochs={"),
        _epochs(data, columns, which),
        word("}, segmentSizeInBytes="),
        _text(columns.size_in_bytes[which]),
        _custom(columns, which),
        word(", state="),
        _STATES.take(arrow(columns.state[which])),
        word("}\n"),
        word(""),
    )


def _updates(data: NDArray[np.uint8], columns: MetadataColumns, which: Ints, head: Text, ids: Text) -> Text:
    return pc.binary_join_element_wise(
        head,
        word("RemoteLogSegmentMetadataUpdate"),
        ids,
        _custom(columns, which),
        word(", state="),
        _STATES.take(arrow(columns.state[which])),
        word(", eventTimestampMs="),
        _text(columns.event_timestamp[which]),
        word(", brokerId="),
        _text(columns.broker_id[which]),
        word("}\n"),
        word(""),
    )
