"""Idempotent producers and transactions as their batches tell them, over any cut of a log.

A part of a log gives one `Producer` for each producer id in it: how it begins, how it ends. Parts are joined
in order, with the same rules between two parts as between two batches, so that it does not matter where a
log was cut. A gap in the sequences is normal in a compacted log, so gaps are kept and said at the end.

Source: storage/src/main/java/org/apache/kafka/storage/internals/log/ProducerAppendInfo.java @ 3.9.0-rc3
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.columns.headers import Headers
from formats.record_batch import CONTROL, TRANSACTIONAL
from kctl.findings import Finding, Place, segments

Ints = NDArray[np.int64]

HIGHEST_SEQUENCE = 2**31 - 1
OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(frozen=True, slots=True)
class Batch:
    """What of a producer's batch is compared with the next one."""

    producer_epoch: int
    first_sequence: int
    last_sequence: int
    is_transactional: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Producer:
    """One producer id in one part of a log."""

    producer_id: int
    first: Batch | None  # with sequences; None where it has only markers or transactional offset commits
    last: Batch | None
    highest_epoch: int
    has_marker: bool = False  # whether a transaction ended in this part
    open_since: Batch | None = None  # the first batch of the transaction that is open at its end


Producers = dict[int, Producer]
Said = tuple[bool, Finding]
"""A finding, and whether it is one that compaction explains."""


def judged(producer_id: int, before: Batch, after: Batch) -> Iterator[Said]:
    """What is wrong between two batches of a producer that follow each other in the log."""
    details: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": after.producer_epoch}
    if after.producer_epoch < before.producer_epoch:
        yield (
            False,
            segments.PRODUCER_EPOCH_GOES_BACK.at(after.place, previous=before.producer_epoch, **details),
        )
        return
    same = after.producer_epoch == before.producer_epoch
    expected = _next(before.last_sequence) if same else 0
    if after.first_sequence == expected or (same and _by_coordinator(before, after)):
        return
    ahead = (after.first_sequence - expected) & HIGHEST_SEQUENCE
    if same and ahead > HIGHEST_SEQUENCE // 2:
        found: dict[str, Any] = {"first": after.first_sequence, "last": after.last_sequence}
        yield False, segments.SEQUENCE_DUPLICATE.at(after.place, **found, **details)
    else:
        previous = before.last_sequence if same else -1
        yield (
            True,
            segments.SEQUENCE_GAP.at(after.place, previous=previous, first=after.first_sequence, **details),
        )


def _by_coordinator(before: Batch, after: Batch) -> bool:
    """Whether a group coordinator wrote them: its transactional offset commits all have sequence 0."""
    zero = before.first_sequence == after.first_sequence == 0
    return zero and after.is_transactional and after.place.topic in (None, OFFSETS_TOPIC)


def _next(sequence: int) -> int:
    return 0 if sequence == HIGHEST_SEQUENCE else sequence + 1


def joined(before: Producer, after: Producer) -> tuple[Producer, list[Said]]:
    """One producer over two parts that follow each other, and what is wrong between them."""
    found: list[Said] = []
    if before.last is not None and after.first is not None:
        found = list(judged(after.producer_id, before.last, after.first))
    open_since = after.open_since if after.has_marker else before.open_since or after.open_since
    whole = Producer(
        producer_id=after.producer_id,
        first=before.first or after.first,
        last=after.last or before.last,
        highest_epoch=max(before.highest_epoch, after.highest_epoch),
        has_marker=before.has_marker or after.has_marker,
        open_since=open_since,
    )
    return whole, found


class ProducerChecks:
    """Producers of the batches seen so far, chunk by chunk."""

    def __init__(self, place: Place) -> None:
        self.producers: Producers = {}
        self._place = place

    def of(self, headers: Headers) -> list[Said]:
        """What is wrong with the sequences of these batches."""
        rows = np.flatnonzero(headers.producer_id >= 0)
        if not len(rows):
            return []
        ids = headers.producer_id[rows]
        order = np.argsort(ids, kind="stable") if (ids != ids[0]).any() else np.arange(len(ids))
        rows, ids = rows[order], ids[order]
        found = self._inside(headers, rows, ids)
        edges = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist(), len(ids)]
        for first, after in pairwise(edges):
            producer = self._part(headers, rows[first:after])
            known = self.producers.get(producer.producer_id)
            if known is not None:
                producer, between = joined(known, producer)
                found += between
            self.producers[producer.producer_id] = producer
        return found

    def _inside(self, headers: Headers, rows: Ints, ids: Ints) -> list[Said]:
        """Neighbours of one producer that do not follow each other plainly, looked at one by one."""
        held = headers.base_sequence[rows] >= 0
        rows, ids = rows[held], ids[held]
        first = headers.base_sequence[rows].astype(np.int64)
        last = (first + headers.last_offset_delta[rows]) & HIGHEST_SEQUENCE
        epochs = headers.producer_epoch[rows]
        expected = np.where(last[:-1] == HIGHEST_SEQUENCE, 0, last[:-1] + 1)
        expected = np.where(epochs[1:] == epochs[:-1], expected, 0)
        plain = (first[1:] == expected) & (epochs[1:] >= epochs[:-1])
        odd = np.flatnonzero(~plain & (ids[1:] == ids[:-1]))
        found: list[Said] = []
        for at in odd.tolist():
            before, after = self._batch(headers, int(rows[at])), self._batch(headers, int(rows[at + 1]))
            found += judged(int(ids[at]), before, after)
        return found

    def _part(self, headers: Headers, rows: Ints) -> Producer:
        """One producer's batches in these headers, in order."""
        with_sequence = rows[headers.base_sequence[rows] >= 0]
        transactional = rows[(headers.attributes[rows] & TRANSACTIONAL) != 0]
        markers = transactional[(headers.attributes[transactional] & CONTROL) != 0]
        since = transactional[transactional > markers[-1]] if len(markers) else transactional
        return Producer(
            producer_id=int(headers.producer_id[rows[0]]),
            first=self._batch(headers, int(with_sequence[0])) if len(with_sequence) else None,
            last=self._batch(headers, int(with_sequence[-1])) if len(with_sequence) else None,
            highest_epoch=int(headers.producer_epoch[rows].max()),
            has_marker=len(markers) > 0,
            open_since=self._batch(headers, int(since[0])) if len(since) else None,
        )

    def _batch(self, headers: Headers, row: int) -> Batch:
        sequence = int(headers.base_sequence[row])
        last = (sequence + int(headers.last_offset_delta[row])) & HIGHEST_SEQUENCE if sequence >= 0 else -1
        where = replace(
            self._place,
            position=int(headers.position[row]),
            size_in_bytes=int(headers.size_in_bytes[row]),
            base_offset=int(headers.base_offset[row]),
            last_offset=int(headers.last_offset[row]),
        )
        transactional = bool(headers.attributes[row] & TRANSACTIONAL)
        return Batch(int(headers.producer_epoch[row]), sequence, last, transactional, where)
