"""The records of a chunk as columns, offsets and timestamps absolute."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.log.columns.headers import Headers
from formats.log.columns.record_headers import header_fields
from formats.log.record_batch import TIMESTAMP_TYPE
from formats.values import Struct
from kctl.scan.record_groups import RecordGroup

Octets = NDArray[np.uint8]


class Records(Struct, frozen=True):
    """Records in the order of the log. A size of -1 is null; positions are places in `data`.

    `data` is memory that is used again: copy what is to be kept before the next chunk is asked for. Records
    of batches that cannot be read whole are not here; the chunk's findings name the batch.
    """

    data: Octets
    batch: Ints  # row of the record's batch in the chunk's headers
    offset: Ints
    timestamp: Ints
    sequence: Ints  # -1 where the batch has none
    position: Ints  # of the record itself, its length included
    size_in_bytes: Ints
    key_position: Ints
    key_size: Ints
    value_position: Ints
    value_size: Ints
    headers_position: Ints  # of the first header
    headers_count: Ints

    def __len__(self) -> int:
        return len(self.offset)

    def __getitem__(self, rows: slice | Mask | Ints) -> "Records":
        return Records(self.data, *(getattr(self, name)[rows] for name in COLUMNS))

    def keys(self) -> Iterator[bytes | None]:
        """The keys, one after the other."""
        return self._slices(self.key_position, self.key_size)

    def values(self) -> Iterator[bytes | None]:
        """The values, one after the other."""
        return self._slices(self.value_position, self.value_size)

    def headers(self) -> Iterator[tuple[tuple[bytes, bytes | None], ...]]:
        """The header list of each record."""
        counts = self.headers_count
        keys, key_sizes, values, value_sizes = header_fields(self.data, self.headers_position, counts)
        names = (name or b"" for name in self._slices(keys, key_sizes))
        pairs = zip(names, self._slices(values, value_sizes), strict=True)
        for count in counts.tolist():
            yield tuple(islice(pairs, count)) if count else ()

    def _slices(self, positions: Ints, sizes: Ints) -> Iterator[bytes | None]:
        view = memoryview(self.data.data)
        for start, size in zip(positions.tolist(), sizes.tolist(), strict=True):
            yield bytes(view[start : start + size]) if size >= 0 else None


COLUMNS = tuple(name for name in Records.__struct_fields__ if name != "data")


def records_of(group: RecordGroup, headers: Headers) -> Records:
    """The records of a group; `headers` are those of the group's own batches."""
    counts = np.diff(group.first_rows)
    fields = group.fields
    rows = group.rows - group.first
    batch = np.repeat(rows, counts)
    with np.errstate(over="ignore"):
        timestamp = headers.base_timestamp[batch] + fields.timestamp_delta
    stamped = (headers.attributes[rows] & TIMESTAMP_TYPE) != 0
    if stamped.any():
        timestamp = np.where(np.repeat(stamped, counts), headers.max_timestamp[batch], timestamp)
    sequence = headers.base_sequence[batch].astype(np.int64)
    sequence = np.where(sequence >= 0, (sequence + fields.offset_delta) & 0x7FFFFFFF, -1)
    records = Records(
        data=group.data,
        batch=batch,
        offset=headers.base_offset[batch] + fields.offset_delta,
        timestamp=timestamp,
        sequence=sequence,
        position=fields.position,
        size_in_bytes=fields.size_in_bytes,
        key_position=fields.key_position,
        key_size=fields.key_size,
        value_position=fields.value_position,
        value_size=fields.value_size,
        headers_position=fields.headers_position,
        headers_count=fields.headers_count,
    )
    return records[np.repeat(~group.bad, counts)] if group.bad.any() else records
