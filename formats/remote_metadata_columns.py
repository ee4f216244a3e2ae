"""Remote log metadata as arrays: the values of many records at once, without an object for each.

Every field behind the topic's name lies at a fixed distance from the name's end, so that one gather of windows
reads them all. What does not fit (lengths of two bytes, tagged fields, partition deletions, anything odd) is
left to the plain reader: `slow` names those rows.

Layout as in remote_log_metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

# From the end of the topic's name on: what both types begin with, then what each goes on with.
_HEAD = [
    ("topic_id_high", ">u8"),
    ("topic_id_low", ">u8"),
    ("partition", ">i4"),
    ("tags_of_partition", "u1"),
    ("id_high", ">u8"),
    ("id_low", ">u8"),
    ("tags_of_id", "u1"),
]
_ADD = np.dtype(
    [
        *_HEAD,
        ("start_offset", ">i8"),
        ("end_offset", ">i8"),
        ("broker_id", ">i4"),
        ("max_timestamp", ">i8"),
        ("event_timestamp", ">i8"),
        ("epochs", "u1"),
    ]
)
_UPDATE = np.dtype([*_HEAD, ("broker_id", ">i4"), ("event_timestamp", ">i8"), ("custom", "u1")])
_EPOCH = np.dtype([("epoch", ">i4"), ("offset", ">i8"), ("tags", "u1")])
NAME_AT = 4


@dataclass(slots=True)
class MetadataColumns:
    """One row a value; where `fast` is False the other columns mean nothing.

    `kind` is 0 for a copy and 1 for an update, whose offsets, sizes and epochs are 0. Positions are in the
    buffer; a custom length of -1 is null.
    """

    fast: Mask
    kind: NDArray[np.uint8]
    name_position: Ints
    name_length: Ints
    topic_id_high: NDArray[np.uint64]
    topic_id_low: NDArray[np.uint64]
    partition: NDArray[np.int32]
    id_position: Ints
    id_high: NDArray[np.uint64]
    id_low: NDArray[np.uint64]
    start_offset: Ints
    end_offset: Ints
    broker_id: NDArray[np.int32]
    max_timestamp: Ints
    event_timestamp: Ints
    epochs_position: Ints
    epochs_count: Ints
    size_in_bytes: NDArray[np.int32]
    custom_position: Ints
    custom_length: Ints
    has_custom: Mask  # layout of 3.6 and later
    state: NDArray[np.int8]

    @property
    def slow(self) -> Ints:
        """Rows that only the plain reader can tell."""
        return np.flatnonzero(~self.fast)


def windows(data: NDArray[np.uint8], positions: Ints, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The bytes at positions as rows of a packed dtype."""
    view = np.ndarray(max(0, len(data) - dtype.itemsize + 1), f"V{dtype.itemsize}", data, strides=(1,))
    return view[positions].view(dtype)


def read_metadata_columns(data: NDArray[np.uint8], starts: Ints, sizes: Ints) -> MetadataColumns:
    """The values at `starts` of a buffer of at least 8 bytes; nothing outside of a value is looked at."""
    rows = len(starts)
    ends = starts + sizes
    columns = _blank(rows)
    # Positions of null and empty values are not looked at: they may lie at the very end.
    legal = sizes >= 8
    at = np.where(legal, starts, 0)
    kind, name = data[at + 1], data[at + 3]
    legal &= (data[at] == 1) & (kind <= 1) & (data[at + 2] == 0) & (name > 0) & (name < 128)
    columns.kind[:] = kind
    columns.name_position[:] = at + NAME_AT
    columns.name_length[:] = name.astype(np.int64) - 1
    after_name = at + 3 + name
    for one, dtype in ((0, _ADD), (1, _UPDATE)):
        which = np.flatnonzero(legal & (kind == one) & (after_name + dtype.itemsize < ends))
        read = windows(data, after_name[which], dtype)
        (_read_adds if one == 0 else _read_updates)(
            columns, data, which, read, after_name[which], ends[which]
        )
    return columns


def _blank(rows: int) -> MetadataColumns:
    def zeros(dtype: Any) -> NDArray[Any]:
        return np.zeros(rows, dtype)

    types: dict[str, Any] = {
        "fast": np.bool_,
        "has_custom": np.bool_,
        "kind": np.uint8,
        "state": np.int8,
        "partition": np.int32,
        "broker_id": np.int32,
        "size_in_bytes": np.int32,
    } | dict.fromkeys(("topic_id_high", "topic_id_low", "id_high", "id_low"), np.uint64)
    names = MetadataColumns.__slots__
    return MetadataColumns(**{name: zeros(types.get(name, np.int64)) for name in names})


def _put_head(columns: MetadataColumns, which: Ints, read: NDArray[Any], at: Ints) -> Mask:
    for name in (
        "topic_id_high",
        "topic_id_low",
        "partition",
        "id_high",
        "id_low",
        "broker_id",
        "event_timestamp",
    ):
        getattr(columns, name)[which] = read[name]
    columns.id_position[which] = at + 21
    fine: Mask = (read["tags_of_partition"] == 0) & (read["tags_of_id"] == 0)
    return fine


def _read_adds(
    columns: MetadataColumns, data: NDArray[np.uint8], which: Ints, read: NDArray[Any], at: Ints, ends: Ints
) -> None:
    fine = _put_head(columns, which, read, at)
    for name in ("start_offset", "end_offset", "max_timestamp"):
        getattr(columns, name)[which] = read[name]
    count = read["epochs"].astype(np.int64) - 1
    epochs_at = at + _ADD.itemsize
    size_at = epochs_at + _EPOCH.itemsize * count
    fine &= (count > 0) & (count < 127) & (size_at + 6 <= ends)
    fine &= (read["start_offset"] >= 0) & (read["end_offset"] >= read["start_offset"])
    size_at = np.where(fine, size_at, at)
    columns.epochs_position[which], columns.epochs_count[which] = epochs_at, count
    columns.size_in_bytes[which] = windows(data, size_at, np.dtype(">i4"))
    fine &= _epochs_are_plain(data, np.where(fine, epochs_at, at), np.where(fine, count, 0))
    _put_tail(columns, data, which, fine, size_at + 4, ends)


def _read_updates(
    columns: MetadataColumns, data: NDArray[np.uint8], which: Ints, read: NDArray[Any], at: Ints, ends: Ints
) -> None:
    fine = _put_head(columns, which, read, at)
    _put_tail(columns, data, which, fine, at + _UPDATE.itemsize - 1, ends)


def _put_tail(
    columns: MetadataColumns, data: NDArray[np.uint8], which: Ints, fine: Mask, custom_at: Ints, ends: Ints
) -> None:
    """Custom metadata, state and the last tags; which layout it is follows from where the value ends."""
    length = data[custom_at].astype(np.int64)
    new = fine & (length < 128) & (custom_at + np.maximum(length, 1) + 2 == ends)
    old = fine & ~new & (custom_at + 2 == ends)
    state = data[np.maximum(ends - 2, 0)]
    columns.state[which] = state
    columns.has_custom[which] = new
    columns.custom_position[which] = custom_at + 1
    columns.custom_length[which] = np.where(new, length - 1, -1)
    columns.fast[which] = (new | old) & (state <= 3) & (data[np.maximum(ends - 1, 0)] == 0)


def epoch_rows(positions: Ints, counts: Ints) -> Ints:
    """The position of every epoch of rows whose epochs begin at `positions`."""
    first = np.repeat(positions, counts)
    ordinal = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows: Ints = first + ordinal * _EPOCH.itemsize
    return rows


def read_epochs(data: NDArray[np.uint8], positions: Ints, counts: Ints) -> tuple[NDArray[np.int32], Ints]:
    """Epochs and their offsets, row after row."""
    read = windows(data, epoch_rows(positions, counts), _EPOCH)
    return read["epoch"].astype(np.int32), read["offset"].astype(np.int64)


def _epochs_are_plain(data: NDArray[np.uint8], positions: Ints, counts: Ints) -> Mask:
    """Whether the epochs of each row are ascending and carry no tagged field."""
    read = windows(data, epoch_rows(positions, counts), _EPOCH)
    odd = read["tags"] != 0
    row = np.repeat(np.arange(len(counts)), counts)
    epoch = read["epoch"]
    odd[1:] |= (epoch[1:] <= epoch[:-1]) & (row[1:] == row[:-1])
    plain = np.ones(len(counts), np.bool_)
    plain[row[odd]] = False
    return plain
