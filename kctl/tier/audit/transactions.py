"""Producers and aborted transactions of one segment, followed batch by batch."""

from __future__ import annotations

import numpy as np

from formats.errors import FormatError
from formats.log.columns.headers import Headers
from formats.log.control_records import ControlType, read_key
from formats.log.record_batch import CONTROL, HEADER_SIZE, TRANSACTIONAL, read_header, read_records
from formats.values import Struct, field
from kctl.scan.source import Source


class SegmentTransactions(Struct):
    """The transactions of one segment; those that began before it have no begin here."""

    aborts: dict[int, int] = field(default_factory=dict)  # offset of an ABORT marker -> producer id
    # Offset of an ABORT marker -> first offset, if it is in the segment.
    begun: dict[int, int] = field(default_factory=dict)
    last_offsets: dict[int, int] = field(default_factory=dict)  # producer id -> last offset with a sequence
    _open: dict[int, int] = field(default_factory=dict)  # producer id -> first offset of its transaction here

    def feed(self, headers: Headers, log: Source) -> None:
        """Take the next sound batches."""
        with_id = np.flatnonzero((headers.producer_id >= 0) & (headers.magic == 2))
        if not len(with_id):
            return
        control = (headers.attributes[with_id] & CONTROL) != 0
        data = with_id[~control]
        numbered = data[headers.base_sequence[data] >= 0]
        # The last batch of a producer counts.
        ids, offsets = headers.producer_id[numbered].tolist(), headers.last_offset[numbered].tolist()
        self.last_offsets.update(zip(ids, offsets, strict=True))
        if not control.any() and not (headers.attributes[data] & TRANSACTIONAL).any():
            return
        for row in with_id.tolist():
            producer = int(headers.producer_id[row])
            if not headers.attributes[row] & CONTROL:
                if headers.attributes[row] & TRANSACTIONAL:
                    self._open.setdefault(producer, int(headers.base_offset[row]))
                continue
            self._end(producer, row, headers, log)

    def _end(self, producer: int, row: int, headers: Headers, log: Source) -> None:
        since = self._open.pop(producer, None)
        data = log.read_at(int(headers.position[row]), int(headers.size_in_bytes[row]))
        try:
            record = next(read_records(read_header(data), data[HEADER_SIZE:]))
            kind = read_key(record.key).type
        except (FormatError, StopIteration):
            return
        if kind == ControlType.ABORT:
            offset = int(headers.last_offset[row])
            self.aborts[offset] = producer
            if since is not None:
                self.begun[offset] = since

    @property
    def surely_aborted(self) -> bool:
        """Whether a transaction began and was aborted within the segment."""
        return bool(self.begun)
