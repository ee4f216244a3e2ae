"""Headers of batches: what each says of itself, and how it follows the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from formats.log.columns.headers import Headers
from formats.log.record_batch import CONTROL, HEADER_SIZE, TRANSACTIONAL
from kctl.findings import NOWHERE, Finding, FindingType, Place, segments
from kctl.scan.checks.check import LogCheck, Suspects, always, place_of, rows_of
from kctl.scan.options import ScanOptions

KNOWN_ATTRIBUTES = np.array([0x07, 0x0F, 0x7F], np.int16)  # by magic
HIGHEST_CODEC = np.array([3, 3, 4], np.int16)  # by magic
CLUSTER_METADATA = "__cluster_metadata"
OFFSETS_OF_A_SEGMENT = 2**31 - 1
# A leader epoch grows by one with each decision of the controller, so consecutive batches are never this far apart.
FAR = 1 << 16


# --- each by itself -----------------------------------------------------------------------------------


def crc_mismatches(headers: Headers, computed: Mapping[int, int]) -> Suspects:
    """Batches whose CRC is wrong; `computed` are the CRCs that their bytes have, by row."""
    return Suspects(
        segments.BATCH_CRC_MISMATCH,
        rows_of(~headers.crc_valid),
        lambda row: {"stored": int(headers.crc[row]), "computed": computed.get(row, 0)},
    )


def attributes(headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Attributes that mean nothing in their magic."""
    if not headers.attributes.any():
        return
    known_attributes, magic = KNOWN_ATTRIBUTES[headers.magic], headers.magic
    yield Suspects(
        segments.UNKNOWN_ATTRIBUTES,
        rows_of((headers.attributes & ~known_attributes) != 0),
        lambda row: {"bits": int(headers.attributes[row]) & ~int(known_attributes[row]) & 0xFFFF},
    )
    yield Suspects(
        segments.UNKNOWN_CODEC,
        rows_of(headers.codec > HIGHEST_CODEC[magic]),
        lambda row: {"codec": int(headers.codec[row]), "magic": int(magic[row])},
    )


def counts(headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Offset deltas and counts of records that no batch has."""
    new, count, delta = headers.magic == 2, headers.records_count, headers.last_offset_delta
    yield Suspects(
        segments.ILLEGAL_OFFSET_DELTA,
        rows_of(new & (delta < 0)),
        lambda row: {"last_offset_delta": int(delta[row])},
    )
    span = delta.astype(np.int64) + 1

    def why_too_large(row: int) -> str:
        return "it is negative" if count[row] < 0 else f"its offsets span {int(span[row])}"

    yield Suspects(
        segments.RECORDS_COUNT_TOO_LARGE,
        rows_of(new & ((count < 0) | (count > np.maximum(span, 0)))),
        lambda row: {"count": int(count[row]), "why": why_too_large(row)},
    )
    body = headers.size_in_bytes - HEADER_SIZE
    yield Suspects(
        segments.RECORDS_COUNT_TOO_LARGE,
        rows_of(new & (count == 0) & (body > 0)),
        lambda row: {"count": 0, "why": f"{int(body[row])} bytes follow the header"},
    )


def negative_epochs(headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Leader epochs below -1, which is written before there are leader epochs."""
    epoch = headers.partition_leader_epoch
    yield Suspects(
        segments.EPOCH_WRONG,
        rows_of((headers.magic == 2) & (epoch < -1)),
        lambda row: {"leader_epoch": int(epoch[row]), "why": "it is negative"},
    )


def producer_fields(headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Producer ids, epochs and sequences that no producer has (`S:LogValidator.java @ 3.9.0`)."""
    new, has_producer = headers.magic == 2, headers.producer_id >= 0
    is_control = headers.attributes & CONTROL != 0
    lacks_producer = new & ~has_producer & (headers.attributes & TRANSACTIONAL != 0)
    if options.place.topic not in (None, CLUSTER_METADATA):  # Raft's control batches have no producer
        lacks_producer |= new & ~has_producer & is_control
    is_half_set = (
        new & has_producer & ((headers.producer_epoch < 0) | (~is_control & (headers.base_sequence < 0)))
    )
    yield Suspects(
        segments.PRODUCER_FIELDS,
        rows_of(lacks_producer | is_half_set),
        lambda row: {
            "why": "transactions and their markers have a producer"
            if lacks_producer[row]
            else "they come together",
            "producer_id": int(headers.producer_id[row]),
            "producer_epoch": int(headers.producer_epoch[row]),
            "base_sequence": int(headers.base_sequence[row]),
        },
    )


def offsets_against_name(headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Offsets that a segment of this name cannot hold."""
    named = options.base_offset
    if named is None:
        return
    yield Suspects(
        segments.OFFSET_BELOW_NAME,
        rows_of(headers.base_offset < named),
        lambda row: {"base_offset": int(headers.base_offset[row]), "named": named},
    )
    yield Suspects(
        segments.OFFSET_TOO_FAR,
        rows_of(headers.last_offset > named + OFFSETS_OF_A_SEGMENT),
        lambda row: {"last_offset": int(headers.last_offset[row]), "named": named},
    )


# --- each against the one before it: after one wrong offset or epoch the rest is not wrong too --------


class OffsetOrder(LogCheck):
    """Offsets that go back, or leave some out."""

    def __init__(self) -> None:
        self._last_offset: int | None = None
        self._last_is_new = False  # of magic 2: older batches hide their base offset

    def feed(self, headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
        last_offset = self._last_offset
        before = np.concatenate(([-1 if last_offset is None else last_offset], headers.last_offset[:-1]))
        back = headers.base_offset <= before
        back[0] &= last_offset is not None
        yield Suspects(
            segments.OFFSETS_GO_BACK,
            rows_of(back),
            lambda row: {"base_offset": int(headers.base_offset[row]), "previous": int(before[row])},
        )
        new = headers.magic == 2
        new_before = np.concatenate(([self._last_is_new], new[:-1]))
        yield Suspects(
            segments.OFFSET_GAP,
            rows_of((np.maximum(headers.base_offset, 0) - 1 > before) & new & new_before & (before >= 0)),
            lambda row: {"from_offset": int(before[row]) + 1, "to_offset": int(headers.base_offset[row]) - 1},
            is_gap=True,
        )
        self._last_offset, self._last_is_new = int(headers.last_offset[-1]), bool(new[-1])

    def end_segment_at(self, next_offset: int) -> None:
        if self._last_offset is not None:
            self._last_offset = min(self._last_offset, next_offset - 1)


class Epoch(NamedTuple):
    """The leader epoch of one batch."""

    leader_epoch: int = -1
    is_new: bool = False  # of magic 2: older batches have none
    place: Place = NOWHERE


class EpochOrder(LogCheck):
    """Leader epochs that go back. The two batches before the pair, or the one behind it, decide which of the two is wrong."""

    def __init__(self) -> None:
        self._first: list[Epoch] = []  # of the first three batches
        self._last: list[Epoch] = []  # of the last two

    def feed(self, headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
        epochs = headers.partition_leader_epoch
        carried = [Epoch()] * (2 - len(self._last)) + self._last
        behind = np.concatenate(([epoch.leader_epoch for epoch in carried], epochs))
        before, earlier = behind[1:-1], behind[:-2]
        back = (epochs < before) & (headers.magic == 2)
        back[: max(0, 2 - len(self._first))] = False  # `_first_pair` is about these
        is_ahead = (earlier >= 0) & (earlier <= epochs)  # the batch before is higher than both its neighbours
        for row in rows_of(back):
            details = {"leader_epoch": int(epochs[row]), "previous": int(before[row])}
            if not is_ahead[row]:
                yield Suspects(segments.EPOCH_GOES_BACK, [row], always(**details))
            elif row > 0:
                yield Suspects(segments.EPOCH_RUNS_AHEAD, [row - 1], always(**details))
            else:
                yield Suspects(segments.EPOCH_RUNS_AHEAD, [0], always(**details), carried[-1].place)
        if len(self._first) < 3:
            self._first += [
                _epoch(headers, row, options) for row in range(min(3 - len(self._first), len(epochs)))
            ]
            if len(self._first) == 3:
                for type_, place, details in self._first_pair():
                    yield Suspects(type_, [0], always(**details), place)
        last = [_epoch(headers, row, options) for row in range(max(0, len(epochs) - 2), len(epochs))]
        self._last = [*self._last, *last][-2:]

    def finish(self) -> list[Finding]:
        if len(self._first) == 3:
            return []
        return [type_.at(place, **details) for type_, place, details in self._first_pair()]

    def _first_pair(self) -> Iterator[tuple[FindingType, Place, dict[str, Any]]]:
        """What is wrong with the first two batches of a log: the third one continues the one that is right."""
        if len(self._first) < 2:
            return
        (first, _, first_place), (second, is_new, second_place), *third = self._first
        if not is_new or second >= first:
            return
        is_ahead = second <= third[0].leader_epoch < first if third else first - max(second, 0) >= FAR
        details = {"leader_epoch": second, "previous": first}
        if is_ahead:
            yield segments.EPOCH_RUNS_AHEAD, first_place, details
        else:
            yield segments.EPOCH_GOES_BACK, second_place, details


def _epoch(headers: Headers, row: int, options: ScanOptions) -> Epoch:
    place = place_of(headers, row, options.place)
    return Epoch(int(headers.partition_leader_epoch[row]), bool(headers.magic[row] == 2), place)
