"""The state of idempotent and transactional producers at any offset of a log, from its batches alone.

What a broker does when it loads a log without a snapshot: a data batch updates epoch, sequence and offsets of
its producer and may open a transaction; an end marker closes it, and an ABORT of a transaction that is not
empty becomes an entry of the transaction index. Source: S:ProducerAppendInfo.java, S:ProducerStateManager.java,
S:ProducerStateEntry.java @ 3.9.0-rc3 (S = storage/src/main/java/org/apache/kafka/storage/internals/log)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from formats.arrays import Ints
from formats.compression import decompress
from formats.errors import FormatError
from formats.log.columns.headers import Headers
from formats.log.control_records import ControlType, read_key, read_marker
from formats.log.record_batch import (
    CONTROL,
    HEADER_SIZE,
    TRANSACTIONAL,
    read_header,
    read_records,
    sequence_at,
)
from formats.log_dir.index_files import AbortedTransaction
from formats.log_dir.producer_snapshot import ProducerEntry
from formats.values import Struct, field
from kctl.scan.source import Source

NONE = -1
LARGEST_MARKER = 1 << 16  # a control batch is never larger in health
MOST_PRODUCERS = 200_000
"""Producers that are held at once; a broker forgets one that was idle for a day."""
MOST_ABORTED = 200_000
"""Aborted transactions of a segment that are held."""


class ProducerState(Struct):
    """One producer; -1 stands for absent."""

    producer_id: int
    producer_epoch: int = NONE
    last_sequence: int = NONE
    last_offset: int = NONE
    offset_delta: int = 0
    timestamp: int = NONE
    coordinator_epoch: int = NONE
    current_txn_first_offset: int = NONE
    data_timestamp: int = NONE  # of the last data batch: up to 2.3 a marker left the timestamp as it was
    marker_offset: int = NONE  # of a marker behind the last data batch: what 0.11 took for the last offset

    def new_epoch(self, producer_epoch: int) -> None:
        """A changed epoch forgets the batches of the one before."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.last_sequence = self.last_offset = NONE
            self.offset_delta = 0
            self.data_timestamp = self.marker_offset = NONE

    def entry(self) -> ProducerEntry:
        """The row of a snapshot as 2.4 and later write it."""
        return ProducerEntry(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            last_sequence=self.last_sequence,
            last_offset=self.last_offset,
            offset_delta=self.offset_delta,
            timestamp=self.timestamp,
            coordinator_epoch=self.coordinator_epoch,
            current_txn_first_offset=self.current_txn_first_offset,
        )

    def entry_of_1_0(self) -> ProducerEntry:
        """The row as 1.0 to 2.3 wrote it: with the timestamp of the last data batch."""
        entry = self.entry()
        return entry._replace(timestamp=self.data_timestamp) if self.data_timestamp != NONE else entry

    def entry_of_0_11(self) -> ProducerEntry:
        """The row as 0.11 wrote it: a marker counts as the last offset."""
        entry = self.entry()
        if self.marker_offset == NONE:
            return entry
        return entry._replace(last_offset=self.marker_offset, offset_delta=0)


class Marker(NamedTuple):
    """The end marker of a transaction."""

    is_abort: bool
    coordinator_epoch: int
    timestamp: int


class Aborted(NamedTuple):
    """An aborted transaction, and whether its beginning was in the log.

    `next_first_offset` is where the next transaction of another producer begins, if none was open at the marker: a
    follower, or a replica between log directories, that appends both at once takes that for the last stable offset
    (`S:ProducerStateManager.java`, lastStableOffset; all that an append begins is there before the first of it ends).
    """

    entry: AbortedTransaction
    has_beginning: bool
    next_first_offset: int = NONE


ReadMarker = Callable[[int, int], Marker | None]


def read_marker_at(source: Source, position: int, size_in_bytes: int) -> Marker | None:
    """The end marker in the control batch at position; None where it holds none or cannot be read."""
    if size_in_bytes > LARGEST_MARKER:
        return None
    data = source.read_at(position, size_in_bytes)
    try:
        header = read_header(data)
        body = decompress(header.codec, data[HEADER_SIZE:], magic=2, limit=LARGEST_MARKER)
        record = next(iter(read_records(header, body)), None)
        if record is None:
            return None
        type_ = read_key(record.key).type
        if type_ not in (ControlType.ABORT, ControlType.COMMIT):
            return None
        epoch = read_marker(record.value).coordinator_epoch
    except FormatError:
        return None
    return Marker(type_ == ControlType.ABORT, epoch, record.timestamp)


class ProducerReplay(Struct):
    """Producers after the batches that were fed, in the order of the log."""

    producers: dict[int, ProducerState] = field(default_factory=dict)
    open: dict[int, int] = field(default_factory=dict)  # producer id to first offset, oldest first
    aborted: list[Aborted] = field(default_factory=list)
    # Of `aborted`, by producer: those without a next one.
    alone: dict[int, list[int]] = field(default_factory=dict)
    is_whole: bool = True  # no producer was forgotten, and no aborted transaction left out

    def feed(self, headers: Headers, read_marker: ReadMarker) -> None:
        """The next batches. Only sound ones of producers count; plain runs are taken at once."""
        use = (headers.producer_id >= 0) & headers.crc_valid & (headers.magic == 2)
        rows = np.flatnonzero(use)
        if not len(rows):
            return
        special = (headers.attributes[rows] & (TRANSACTIONAL | CONTROL)) != 0
        edges = [0, *(np.flatnonzero(np.diff(special)) + 1).tolist(), len(rows)]
        for first, after in pairwise(edges):
            part = rows[first:after]
            if special[first]:
                for row in part.tolist():
                    self._batch(headers, row, read_marker)
            else:
                self._last_of_each(headers, part)

    def take_aborted(self) -> list[Aborted]:
        """The transactions aborted since the last call: those of a segment, where its end is reached."""
        aborted, self.aborted, self.alone = self.aborted, [], {}
        return aborted

    def _forget(self) -> None:
        """Drop the producers that were idle longest."""
        states = sorted(
            self.producers.values(), key=lambda state: max(state.last_offset, state.marker_offset)
        )
        for state in states[: MOST_PRODUCERS // 2]:
            del self.producers[state.producer_id]
            self.open.pop(state.producer_id, None)
        self.is_whole = False

    def _last_of_each(self, headers: Headers, rows: Ints) -> None:
        """Batches of no transaction: the last of each producer decides, but an older epoch forgets first."""
        ids = headers.producer_id[rows]
        _, index = np.unique(ids[::-1], return_index=True)
        for at in sorted((len(rows) - 1 - index).tolist()):
            self._data(headers, int(rows[at]))

    def _batch(self, headers: Headers, row: int, read_marker: ReadMarker) -> None:
        if not headers.attributes[row] & CONTROL:
            self._data(headers, row)
            return
        marker = read_marker(int(headers.position[row]), int(headers.size_in_bytes[row]))
        if marker is not None:
            self._marker(headers, row, marker)

    def _state(self, headers: Headers, row: int) -> ProducerState:
        producer_id = int(headers.producer_id[row])
        state = self.producers.get(producer_id)
        if state is None:
            if len(self.producers) >= MOST_PRODUCERS:
                self._forget()
            state = self.producers[producer_id] = ProducerState(producer_id)
        return state

    def _data(self, headers: Headers, row: int) -> None:
        state = self._state(headers, row)
        state.new_epoch(int(headers.producer_epoch[row]))
        delta, base = int(headers.last_offset_delta[row]), int(headers.base_offset[row])
        state.last_sequence = sequence_at(int(headers.base_sequence[row]), delta)
        state.last_offset, state.offset_delta = base + delta, delta
        state.timestamp = state.data_timestamp = int(headers.max_timestamp[row])
        state.marker_offset = NONE
        if headers.attributes[row] & TRANSACTIONAL and state.current_txn_first_offset == NONE:
            state.current_txn_first_offset = base
            self.open[state.producer_id] = base
            self._begun(state.producer_id, base)

    def _begun(self, producer_id: int, first_offset: int) -> None:
        """A transaction begins: it is the next one of those that others ended alone."""
        for ended in [producer for producer in self.alone if producer != producer_id]:
            for at in self.alone.pop(ended):
                self.aborted[at] = self.aborted[at]._replace(next_first_offset=first_offset)

    def _marker(self, headers: Headers, row: int, marker: Marker) -> None:
        state, offset = self._state(headers, row), int(headers.base_offset[row])
        first = state.current_txn_first_offset
        self.open.pop(state.producer_id, None)
        self.is_whole &= not marker.is_abort or len(self.aborted) < MOST_ABORTED
        if marker.is_abort and len(self.aborted) <= MOST_ABORTED:  # one more shows that there are more
            stable = min(self.open.values(), default=offset + 1)
            entry = AbortedTransaction(0, state.producer_id, first, offset, stable)
            if not self.open:
                self.alone.setdefault(state.producer_id, []).append(len(self.aborted))
            self.aborted.append(Aborted(entry, first != NONE))
        state.new_epoch(int(headers.producer_epoch[row]))
        state.current_txn_first_offset = NONE
        state.coordinator_epoch, state.timestamp = marker.coordinator_epoch, marker.timestamp
        state.marker_offset = offset
