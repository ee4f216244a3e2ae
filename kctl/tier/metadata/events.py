"""The events of segments in a chunk of records, as columns, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.tier.metadata_columns import MetadataColumns

Column = NDArray[Any]


class Events:
    """A row for each record, records of one type after those of another; `row` is their order in the log."""

    def __init__(
        self, parts: Sequence[tuple[MetadataColumns, Column]], offsets: Column, metadata_partition: int | None
    ) -> None:
        """`parts` are columns and the partitions of their rows; `offsets` are those of all records that were read."""
        self.metadata_partition = metadata_partition
        self._parts = [columns for columns, _ in parts]
        self._edges = [*accumulate(map(len, self._parts), initial=0)]
        self._offsets = offsets
        self.partition: Column = np.concatenate([codes for _, codes in parts])
        self.row = self._of_each("rows")
        self.id_high, self.id_low = self.column("id_high"), self.column("id_low")
        self.event_timestamp, self.broker_id = self.column("event_timestamp"), self.column("broker_id")
        self.custom_length, self.has_custom = self._of_each("custom_length"), self._of_each("has_custom")
        kinds = [np.uint8(part.kind << 2) | part.state for part in self._parts]
        self.step: Column = np.concatenate(kinds)

    def __len__(self) -> int:
        return len(self.row)

    def _of_each(self, name: str) -> Column:
        return np.concatenate([getattr(part, name) for part in self._parts])

    def column(self, name: str) -> Column:
        """A field that both types have."""
        stored = self._parts[0].fields.dtype[name]
        column: Column = np.empty(len(self), stored.newbyteorder("="))
        for part, first, after in zip(self._parts, self._edges, self._edges[1:], strict=False):
            column[first:after] = part.fields[name]
        return column

    def offset(self, which: Column | slice) -> Column:
        offsets: Column = self._offsets[self.row[which]]
        return offsets

    def parts(self, which: Column) -> Iterator[tuple[MetadataColumns, Column, Column]]:
        """Where events are read from: columns, rows of them, and which of the events they are, as a mask."""
        for part, first, after in zip(self._parts, self._edges, self._edges[1:], strict=False):
            inside = (which >= first) & (which < after)
            if inside.any():
                yield part, which[inside] - first, inside

    def by_segment(self, chosen: Column | None) -> tuple[Column, Column]:
        """The order in which each segment's events are together, oldest first, and where each segment begins."""
        which = np.arange(len(self)) if chosen is None else chosen
        rows = self.row[which]
        high, low = self.id_high[which], self.id_low[which]
        # The row in the low bits of each hash keeps the order, and gives the row after sorting.
        numbers = np.uint64((1 << max(1, int(rows.max(initial=0)).bit_length())) - 1)
        keys = (high ^ low * np.uint64(0x9E3779B97F4A7C15)) & ~numbers | rows.view(np.uint64)
        keys.sort()
        at = np.empty(len(self._offsets), np.int64)
        at[rows] = which
        order = at[(keys & numbers).view(np.int64)]
        first = self._begins(order)
        if (first[1:] & ((keys[1:] ^ keys[:-1]) <= numbers)).any():  # two ids have the same hash
            order = which[np.lexsort((rows, low, high))]
            first = self._begins(order)
        return order, first

    def _begins(self, order: Column) -> Column:
        high, low = self.id_high[order], self.id_low[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        return first
