"""Idempotent producers and transactions as their batches tell them.

A gap in the sequences is normal in a compacted log.

Source: storage/src/main/java/org/apache/kafka/storage/internals/log/ProducerAppendInfo.java @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from formats.arrays import Ints
from formats.log.columns.headers import Headers
from formats.log.record_batch import CONTROL, TRANSACTIONAL
from formats.values import Struct
from kctl.findings import NOWHERE, Finding, Place, segments
from kctl.scan.checks.check import LogCheck, Suspects, always, place_of
from kctl.scan.options import ScanOptions
from kctl.scan.producer_state import MOST_PRODUCERS

HIGHEST_SEQUENCE = 2**31 - 1
OFFSETS_TOPIC = "__consumer_offsets"


class Batch(Struct, frozen=True):
    """The fields of a producer's batch that are compared with its next batch."""

    producer_epoch: int
    first_sequence: int
    last_sequence: int
    is_transactional: bool
    place: Place


class Producer(Struct):
    """The last batches of a producer id."""

    last: Batch | None = None
    """The last batch with sequences, without its place. Markers and transactional offset commits have no sequences."""
    open_since: Batch | None = None  # the first batch of the transaction that is open


class ProducerOrder(LogCheck):
    """Sequences and epochs of producers that do not follow each other, and transactions that stay open."""

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}  # the one idle for longest first
        self._began_to_forget: Place | None = None

    def feed(self, headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
        rows = np.flatnonzero(headers.producer_id >= 0)
        if not len(rows):
            return
        ids = headers.producer_id[rows]
        order = np.argsort(ids, kind="stable") if (ids != ids[0]).any() else np.arange(len(ids))
        rows, ids = rows[order], ids[order]
        yield from _between_neighbours(headers, rows, ids, options.place)
        edges = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist(), len(ids)]
        # The producer that wrote last comes last.
        for at in np.argsort(rows[np.array(edges[1:]) - 1]).tolist():
            run = rows[edges[at] : edges[at + 1]]
            yield from self._follow(int(ids[edges[at]]), headers, run, options.place)

    def _follow(self, producer_id: int, headers: Headers, rows: Ints, place: Place) -> Iterator[Suspects]:
        """The next batches of one producer: the first against the last one known."""
        producer = self.producers.pop(producer_id, None) or Producer()
        if len(self.producers) >= MOST_PRODUCERS:
            self._began_to_forget = self._began_to_forget or place_of(headers, int(rows[0]), place)
            for idle in list(islice(self.producers, MOST_PRODUCERS // 2)):
                del self.producers[idle]
        self.producers[producer_id] = producer
        with_sequence = rows[headers.base_sequence[rows] >= 0]
        if len(with_sequence):
            first = int(with_sequence[0])
            if producer.last is not None:
                yield from _judged(producer_id, producer.last, _batch(headers, first, place), first)
            producer.last = _batch(headers, int(with_sequence[-1]), None)
        transactional = rows[(headers.attributes[rows] & TRANSACTIONAL) != 0]
        markers = transactional[(headers.attributes[transactional] & CONTROL) != 0]
        if len(markers):
            producer.open_since = None
            transactional = transactional[transactional > markers[-1]]
        if producer.open_since is None and len(transactional):
            producer.open_since = _batch(headers, int(transactional[0]), place)

    def finish(self) -> Iterator[Finding]:
        if self._began_to_forget:
            yield segments.PRODUCERS_FORGOTTEN.at(self._began_to_forget, most=MOST_PRODUCERS)
        for producer_id, producer in sorted(self.producers.items()):
            since = producer.open_since
            if since is not None:
                epoch, offset = since.producer_epoch, since.place.base_offset
                yield segments.OPEN_TRANSACTION.at(
                    since.place, producer_id=producer_id, producer_epoch=epoch, first_offset=offset
                )


def _between_neighbours(headers: Headers, rows: Ints, ids: Ints, place: Place) -> Iterator[Suspects]:
    """Neighbours of one producer that do not follow each other plainly, looked at one by one."""
    has_sequence = headers.base_sequence[rows] >= 0
    rows, ids = rows[has_sequence], ids[has_sequence]
    first = headers.base_sequence[rows].astype(np.int64)
    last = (first + headers.last_offset_delta[rows]) & HIGHEST_SEQUENCE
    epochs = headers.producer_epoch[rows]
    expected = np.where(last[:-1] == HIGHEST_SEQUENCE, 0, last[:-1] + 1)
    expected = np.where(epochs[1:] == epochs[:-1], expected, 0)
    plain = (first[1:] == expected) & (epochs[1:] >= epochs[:-1])
    for at in np.flatnonzero(~plain & (ids[1:] == ids[:-1])).tolist():
        before, row = int(rows[at]), int(rows[at + 1])
        pair = _batch(headers, before, place), _batch(headers, row, place)
        yield from _judged(int(ids[at]), *pair, row)


def _judged(producer_id: int, before: Batch, after: Batch, row: int) -> Iterator[Suspects]:
    """What is wrong with the batch of a row, which follows `before` among those of its producer."""
    details: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": after.producer_epoch}
    if after.producer_epoch < before.producer_epoch:
        details |= {"previous": before.producer_epoch}
        yield Suspects(segments.PRODUCER_EPOCH_GOES_BACK, [row], always(**details))
        return
    same = after.producer_epoch == before.producer_epoch
    expected = (before.last_sequence + 1) & HIGHEST_SEQUENCE if same else 0
    if after.first_sequence == expected or (same and _by_coordinator(before, after)):
        return
    ahead = (after.first_sequence - expected) & HIGHEST_SEQUENCE
    details |= {"first": after.first_sequence}
    if same and ahead > HIGHEST_SEQUENCE // 2:
        details |= {"last": after.last_sequence}
        yield Suspects(segments.SEQUENCE_DUPLICATE, [row], always(**details))
    else:
        details |= {"previous": before.last_sequence if same else -1}
        yield Suspects(segments.SEQUENCE_GAP, [row], always(**details), is_gap=True)


def _by_coordinator(before: Batch, after: Batch) -> bool:
    """Whether a group coordinator wrote them: its transactional offset commits all have sequence 0."""
    zero = before.first_sequence == after.first_sequence == 0
    return zero and after.is_transactional and after.place.topic in (None, OFFSETS_TOPIC)


def _batch(headers: Headers, row: int, place: Place | None) -> Batch:
    sequence = int(headers.base_sequence[row])
    last = (sequence + int(headers.last_offset_delta[row])) & HIGHEST_SEQUENCE if sequence >= 0 else -1
    transactional = bool(headers.attributes[row] & TRANSACTIONAL)
    where = NOWHERE if place is None else place_of(headers, row, place)
    return Batch(int(headers.producer_epoch[row]), sequence, last, transactional, where)
