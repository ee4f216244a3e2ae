"""Remote log metadata as arrays: the values of many records at once, without an object for each.

Every field after the topic's name is at a fixed distance from the name's end, so that one gather of windows reads them
all. Everything else (lengths of two bytes, tagged fields, partition deletions, anything odd) is left to the plain
reader; `columns_of_records` turns its records into the same columns.

Source: as for remote_log_metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.messages.remote_log_metadata import (
    RecordLayout,
    SegmentMetadata,
    SegmentMetadataUpdate,
    write_remote_log_metadata,
)
from formats.values import Struct

Octets = NDArray[np.uint8]

# After the topic's name: the fields of both types, then those of each type.
_HEAD = [
    ("topic_id_high", ">u8"),
    ("topic_id_low", ">u8"),
    ("partition", ">i4"),
    ("tags_of_partition", "u1"),
    ("id_high", ">u8"),
    ("id_low", ">u8"),
    ("tags_of_id", "u1"),
]
_COPY = np.dtype(
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
_SIZE = np.dtype(">i4")
EPOCH_SIZE = _EPOCH.itemsize
NAME_AT = 4
_ID_AT = 21
COPY, UPDATE = 0, 1
_DTYPES = (_COPY, _UPDATE)

# A value's first four bytes as a number: frame 1, type 0 or 1, version 0, the length of the name plus one.
_BEGINNING = np.dtype("<u4")
_FIXED, _PLAIN, _TYPE = 0x80FFFEFF, 0x00000001, 0x00000100
_NO_NAME, _NAME_AT = 0x00FFFFFF, 24


class MetadataColumns(Struct):
    """Records of one type, a row each. Positions are in `data`; a custom length of -1 is null."""

    kind: int  # 0 for copies, 1 for updates
    data: Octets
    rows: Ints  # the index of each value that was read
    name_length: Ints
    at: Ints  # where the topic's name ends
    fields: NDArray[Any]  # the fields after the name, as stored
    epochs_count: Ints  # 0 in updates
    custom_position: Ints
    custom_length: Ints
    has_custom: Mask  # layout of 3.6 and later
    state: Octets

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: Mask | Ints) -> MetadataColumns:
        return MetadataColumns(self.kind, self.data, *(getattr(self, name)[which] for name in _BY_ROW))

    def column(self, name: str) -> NDArray[Any]:
        """A field of every row, as a number."""
        stored = self.fields[name]
        return stored.astype(stored.dtype.newbyteorder("="))

    @property
    def name_position(self) -> Ints:
        return self.at - self.name_length

    @property
    def id_position(self) -> Ints:
        return self.at + _ID_AT

    @property
    def epochs_position(self) -> Ints:
        return self.at + _COPY.itemsize

    @property
    def size_in_bytes(self) -> NDArray[np.int32]:
        """Of copies: it stands before the length of the custom metadata."""
        return windows(self.data, self.custom_position - 5, _SIZE).astype(np.int32)


_BY_ROW = tuple(name for name in MetadataColumns.__struct_fields__ if name not in ("kind", "data"))


class MetadataRead(NamedTuple):
    """Values read as columns, and the rows that only the plain reader can read."""

    copies: MetadataColumns
    updates: MetadataColumns
    slow: Ints


def windows(data: Octets, positions: Ints, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The bytes at positions as rows of a packed dtype."""
    view = np.ndarray(max(0, len(data) - dtype.itemsize + 1), f"V{dtype.itemsize}", data, strides=(1,))
    return view[positions].view(dtype)


def read_metadata_columns(data: Octets, starts: Ints, sizes: Ints) -> MetadataRead:
    """Columns of the values at `starts` of a buffer of at least 8 bytes; nothing outside of a value is read."""
    ends = starts + sizes
    # Positions of null and empty values are not read: they may be at the very end.
    legal = sizes >= 8
    start = starts if legal.all() else np.where(legal, starts, 0)
    head = windows(data, start, _BEGINNING)
    legal &= ((head & _FIXED) == _PLAIN) & (head > _NO_NAME)
    name_length = (head >> _NAME_AT).astype(np.int64) - 1
    at = start + name_length + NAME_AT
    is_update = (head & _TYPE) != 0
    slow = np.ones(len(starts), np.bool_)

    def read(kind: int, mask: Mask) -> MetadataColumns:
        dtype = _DTYPES[kind]
        rows = np.flatnonzero(mask & (at + dtype.itemsize < ends))
        after_name = at[rows]
        fields = windows(data, after_name, dtype)
        values = _FixedFields(kind, data, rows, name_length[rows], after_name, fields, ends[rows])
        columns = _columns(values, *(_copies(values) if kind == COPY else _updates(values)))
        slow[columns.rows] = False
        return columns

    copies, updates = read(COPY, legal & ~is_update), read(UPDATE, legal & is_update)
    return MetadataRead(copies, updates, np.flatnonzero(slow))


class _FixedFields(NamedTuple):
    """Values that have all fields of fixed size."""

    kind: int
    data: Octets
    rows: Ints
    name_length: Ints
    at: Ints
    fields: NDArray[Any]
    ends: Ints


def _copies(values: _FixedFields) -> tuple[Mask, Ints, Ints]:
    """Which values are plain up to the size, where the length of their custom metadata is, and their number of epochs."""
    fields = values.fields
    start, count = fields["start_offset"].astype(np.int64), fields["epochs"].astype(np.int64) - 1
    epochs_at = values.at + _COPY.itemsize
    custom_at = epochs_at + EPOCH_SIZE * count + _SIZE.itemsize
    fine = (count > 0) & (count < 127) & (custom_at + 2 <= values.ends)
    fine &= (start >= 0) & (fields["end_offset"].astype(np.int64) >= start)
    if fine.all():
        fine &= _epochs_are_plain(values.data, epochs_at, count)
    else:
        fine[fine] = _epochs_are_plain(values.data, epochs_at[fine], count[fine])
    return fine, custom_at, count


def _updates(values: _FixedFields) -> tuple[Mask, Ints, Ints]:
    """The same for updates; all are plain."""
    none = np.zeros(len(values.rows), np.int64)
    return none == 0, values.at + (_UPDATE.itemsize - 1), none


def _columns(values: _FixedFields, fine: Mask, custom_at: Ints, epochs: Ints) -> MetadataColumns:
    """Add custom metadata, state and last tags; the layout follows from where the value ends."""
    fine &= (values.fields["tags_of_partition"] == 0) & (values.fields["tags_of_id"] == 0)
    data, ends = values.data, values.ends
    length = data.take(np.minimum(custom_at, ends - 1)).astype(np.int64)
    room = ends - custom_at
    new = (length < 128) & (np.maximum(length, 1) + 2 == room)
    state = data.take(ends - 2)
    fine &= (new | (room == 2)) & (state <= 3) & (data.take(ends - 1) == 0)
    columns = MetadataColumns(
        kind=values.kind,
        data=data,
        rows=values.rows,
        name_length=values.name_length,
        at=values.at,
        fields=values.fields,
        epochs_count=epochs,
        custom_position=custom_at + 1,
        custom_length=np.where(new, length - 1, -1),
        has_custom=new,
        state=state,
    )
    return columns if fine.all() else columns[fine]


def epoch_rows(positions: Ints, counts: Ints) -> Ints:
    """The position of every epoch of rows whose epochs begin at `positions`."""
    if (counts == 1).all():
        return positions
    first = np.repeat(positions, counts)
    ordinal = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows: Ints = first + ordinal * EPOCH_SIZE
    return rows


def epoch_bytes(data: Octets, positions: Ints, counts: Ints) -> Octets:
    """The bytes of these epochs, row after row."""
    return windows(data, epoch_rows(positions, counts), _EPOCH).view(np.uint8)


def read_epochs(data: Octets, positions: Ints, counts: Ints) -> tuple[NDArray[np.int32], Ints]:
    """Epochs and their offsets, row after row."""
    read = windows(data, epoch_rows(positions, counts), _EPOCH)
    return read["epoch"].astype(np.int32), read["offset"].astype(np.int64)


def _epochs_are_plain(data: Octets, positions: Ints, counts: Ints) -> Mask:
    """Whether the epochs of each row are ascending and have no tagged field."""
    each = epoch_rows(positions, counts)
    if len(each) == len(counts):
        tags: Mask = data.take(positions + (EPOCH_SIZE - 1)) == 0
        return tags
    read = windows(data, each, _EPOCH)
    odd = read["tags"] != 0
    row = np.repeat(np.arange(len(counts)), counts)
    epoch = read["epoch"]
    odd[1:] |= (epoch[1:] <= epoch[:-1]) & (row[1:] == row[:-1])
    plain = np.ones(len(counts), np.bool_)
    plain[row[odd]] = False
    return plain


def columns_of_records(
    records: Sequence[SegmentMetadata] | Sequence[SegmentMetadataUpdate], rows: Sequence[int]
) -> MetadataColumns:
    """Records of one type as columns with bytes of their own, without the topic's name."""
    dtype = _COPY if isinstance(records[0], SegmentMetadata) else _UPDATE
    buffer, places = bytearray(), []
    for record in records:
        start, count = len(buffer), 0
        nameless = record.topic_id_partition._replace(topic="")
        value = write_remote_log_metadata(record._replace(topic_id_partition=nameless, custom_metadata=None))
        buffer += value[NAME_AT : NAME_AT + dtype.itemsize]
        if isinstance(record, SegmentMetadata):
            count = len(record.segment_leader_epochs)
            buffer += np.array([(*epoch, 0) for epoch in record.segment_leader_epochs], _EPOCH).tobytes()
            buffer += np.array([record.size_in_bytes], _SIZE).tobytes() + b"\0"
        custom = record.custom_metadata
        places.append((start, count, len(buffer), -1 if custom is None else len(custom)))
        buffer += custom or b""
    data = np.frombuffer(bytes(buffer), np.uint8)
    starts, counts, positions, lengths = np.array(places, np.int64).T
    nothing = np.zeros(len(records), np.int64)
    return MetadataColumns(
        kind=COPY if dtype is _COPY else UPDATE,
        data=data,
        rows=np.array(rows, np.int64),
        name_length=nothing,
        at=starts,
        fields=windows(data, starts, dtype),
        epochs_count=counts,
        custom_position=positions,
        custom_length=lengths,
        has_custom=np.array([r.layout is RecordLayout.WITH_CUSTOM_METADATA for r in records], np.bool_),
        state=np.array([record.state for record in records], np.uint8),
    )
