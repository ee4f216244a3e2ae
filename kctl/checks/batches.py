"""Headers of a run of batches: what each says of itself, and how it follows the one before."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.columns.headers import Headers
from formats.record_batch import CONTROL, HEADER_SIZE, TRANSACTIONAL
from kctl.checks.edges import EPOCHS_AT_START, Edge, Epoch, divide, offset_gap, runs_ahead
from kctl.checks.producers import ProducerChecks
from kctl.findings import Finding, FindingType, Place, segments
from kctl.scan.options import ScanOptions

Mask = NDArray[np.bool_]
RowFinding = tuple[int, Finding]  # the row of the batch it is about

KNOWN_ATTRIBUTES = {0: 0x07, 1: 0x0F, 2: 0x7F}
HIGHEST_CODEC = {0: 3, 1: 3, 2: 4}
CLUSTER_METADATA = "__cluster_metadata"
OFFSETS_OF_A_SEGMENT = 2**31 - 1


class BatchChecks:
    """Checks of headers in the order of the file; what the next run is compared with is kept."""

    def __init__(self, options: ScanOptions) -> None:
        self.options = options
        self.edge = Edge(options.place)
        self._producers = ProducerChecks(options.place)
        self.edge.producers = self._producers.producers
        self.left_out: Counter[str] = Counter()
        self._room = options.max_findings

    def of(self, headers: Headers, computed: Mapping[int, int]) -> list[RowFinding]:
        """What is wrong with these batches, each with its row; `computed` are the CRCs of unsound ones by row."""
        if headers.crc_valid.all():
            return self._of_sound(headers)
        wrong = self._some(~headers.crc_valid, segments.BATCH_CRC_MISMATCH)
        found = [(row, self._crc_mismatch(headers, row, computed.get(row, 0))) for row in wrong]
        # What an unsound header says is not worth a word, nor a comparison.
        numbers = np.flatnonzero(headers.crc_valid)
        if len(numbers):
            sound = headers[numbers]
            found += [(int(numbers[row]), finding) for row, finding in self._of_sound(sound)]
        return found

    def _of_sound(self, headers: Headers) -> list[RowFinding]:
        found = [*self._of_each(headers), *self._of_neighbours(headers)]
        said: list[Finding] = []
        gaps: list[Finding] = []
        divide(self._producers.of(headers), said, gaps)
        self._keep(gaps)
        if said:
            found += [(int(np.searchsorted(headers.position, one.place.position or 0)), one) for one in said]
        full = headers.records_count == headers.last_offset_delta + 1
        if not self.edge.shows_compaction and not full.all():
            self.edge.shows_compaction = bool(
                (~full & (headers.magic == 2) & (headers.records_count >= 0)).any()
            )
        return found

    def _some(self, mask: Mask, kind: FindingType) -> list[int]:
        """The rows that may still be listed; a file that is wrong all over is not worth a sentence for each."""
        found = rows(mask)
        listed = found[: self._room]
        self._room -= len(listed)
        if len(listed) < len(found):
            self.left_out[kind.code] += len(found) - len(listed)
        return listed

    def _keep(self, gaps: list[Finding]) -> None:
        """Put gaps aside until it is known whether the topic is compacted."""
        self.edge.gaps += gaps[: max(0, self.options.max_findings - len(self.edge.gaps))]

    def _crc_mismatch(self, headers: Headers, row: int, computed: int) -> Finding:
        stored = int(headers.crc[row])
        return self._at(headers, row, segments.BATCH_CRC_MISMATCH, stored=stored, computed=computed)

    def _at(self, headers: Headers, row: int, kind: FindingType, **details: int | str) -> Finding:
        return kind.at(place_of(headers, row, self.options.place), **details)  # type: ignore[arg-type]

    def _of_each(self, headers: Headers) -> Iterable[RowFinding]:
        if headers.attributes.any():
            yield from self._attributes(headers)
        new = headers.magic == 2
        for row in self._some(new & (headers.last_offset_delta < 0), segments.ILLEGAL_OFFSET_DELTA):
            delta = int(headers.last_offset_delta[row])
            yield row, self._at(headers, row, segments.ILLEGAL_OFFSET_DELTA, last_offset_delta=delta)
        span = headers.last_offset_delta.astype(np.int64) + 1
        wrong = new & ((headers.records_count < 0) | (headers.records_count > np.maximum(span, 0)))
        for row in self._some(wrong, segments.RECORDS_COUNT_TOO_LARGE):
            count = int(headers.records_count[row])
            why = "it is negative" if count < 0 else f"its offsets span {int(span[row])}"
            yield row, self._at(headers, row, segments.RECORDS_COUNT_TOO_LARGE, count=count, why=why)
        empty = new & (headers.records_count == 0) & (headers.size_in_bytes > HEADER_SIZE)
        for row in self._some(empty, segments.RECORDS_COUNT_TOO_LARGE):
            why = f"{int(headers.size_in_bytes[row]) - HEADER_SIZE} bytes follow the header"
            yield row, self._at(headers, row, segments.RECORDS_COUNT_TOO_LARGE, count=0, why=why)
        # -1 is written before there are leader epochs; nothing below it ever is.
        for row in self._some(new & (headers.partition_leader_epoch < -1), segments.EPOCH_WRONG):
            epoch = int(headers.partition_leader_epoch[row])
            yield row, self._at(headers, row, segments.EPOCH_WRONG, leader_epoch=epoch, why="it is negative")
        yield from self._producer_fields(headers)
        yield from self._against_name(headers)

    def _attributes(self, headers: Headers) -> Iterable[RowFinding]:
        """Attributes that mean nothing in their magic."""
        known = np.array([KNOWN_ATTRIBUTES[m] for m in (0, 1, 2)], np.int16)[headers.magic]
        highest = np.array([HIGHEST_CODEC[m] for m in (0, 1, 2)], np.int16)[headers.magic]
        for row in self._some((headers.attributes & ~known) != 0, segments.UNKNOWN_ATTRIBUTES):
            bits = int(headers.attributes[row]) & ~int(known[row]) & 0xFFFF
            yield row, self._at(headers, row, segments.UNKNOWN_ATTRIBUTES, bits=bits)
        for row in self._some(headers.codec > highest, segments.UNKNOWN_CODEC):
            details = {"codec": int(headers.codec[row]), "magic": int(headers.magic[row])}
            yield row, self._at(headers, row, segments.UNKNOWN_CODEC, **details)

    def _producer_fields(self, headers: Headers) -> Iterable[RowFinding]:
        """Producer ids, epochs and sequences that no producer has (`S:LogValidator.java @ 3.9.0`)."""
        new, known = headers.magic == 2, headers.producer_id >= 0
        is_control = headers.attributes & CONTROL != 0
        nobody = new & ~known & (headers.attributes & TRANSACTIONAL != 0)
        if self.options.place.topic not in (
            None,
            CLUSTER_METADATA,
        ):  # Raft's control batches have no producer
            nobody |= new & ~known & is_control
        half = new & known & ((headers.producer_epoch < 0) | (~is_control & (headers.base_sequence < 0)))
        for row in self._some(nobody | half, segments.PRODUCER_FIELDS):
            why = "transactions and their markers have a producer" if nobody[row] else "they come together"
            details = {
                "producer_id": int(headers.producer_id[row]),
                "producer_epoch": int(headers.producer_epoch[row]),
                "base_sequence": int(headers.base_sequence[row]),
            }
            yield row, self._at(headers, row, segments.PRODUCER_FIELDS, why=why, **details)

    def _against_name(self, headers: Headers) -> Iterable[RowFinding]:
        named = self.options.base_offset
        if named is None:
            return
        for row in self._some(headers.base_offset < named, segments.OFFSET_BELOW_NAME):
            offset = int(headers.base_offset[row])
            yield row, self._at(headers, row, segments.OFFSET_BELOW_NAME, base_offset=offset, named=named)
        for row in self._some(headers.last_offset > named + OFFSETS_OF_A_SEGMENT, segments.OFFSET_TOO_FAR):
            offset = int(headers.last_offset[row])
            yield row, self._at(headers, row, segments.OFFSET_TOO_FAR, last_offset=offset, named=named)

    def _of_neighbours(self, headers: Headers) -> Iterable[RowFinding]:
        """Each batch against the one before it only: after one wrong offset or epoch the rest is not wrong too."""
        edge = self.edge
        is_first = edge.first is None
        if is_first:
            edge.first = place_of(headers, 0, edge.place)
        before = np.concatenate(
            ([-1 if edge.last_offset is None else edge.last_offset], headers.last_offset[:-1])
        )
        back = headers.base_offset <= before
        back[0] &= not is_first
        for row in self._some(back, segments.OFFSETS_GO_BACK):
            details = {"base_offset": int(headers.base_offset[row]), "previous": int(before[row])}
            yield row, self._at(headers, row, segments.OFFSETS_GO_BACK, **details)
        is_new = headers.magic == 2
        new_before = np.concatenate(([edge.last_is_new], is_new[:-1]))
        gap = (headers.base_offset > before + 1) & is_new & new_before & (before >= 0)
        room = self.options.max_findings - len(edge.gaps)
        if not edge.shows_compaction and room > 0:
            self._keep(
                [offset_gap(place_of(headers, row, edge.place), int(before[row])) for row in rows(gap)[:room]]
            )
        if is_first:
            edge.first_is_new = bool(is_new[0])
        edge.last_offset, edge.last_is_new = int(headers.last_offset[-1]), bool(is_new[-1])
        yield from self._epochs(headers)

    def _epochs(self, headers: Headers) -> Iterable[RowFinding]:
        """Epochs that go back. The first batches are looked at with what is before them, where parts are stitched."""
        edge, epochs = self.edge, headers.partition_leader_epoch
        carried = [Epoch(-1, False, edge.place)] * (2 - len(edge.last_epochs)) + edge.last_epochs
        behind = np.concatenate(([one.leader_epoch for one in carried], epochs))
        before, earlier = behind[1:-1], behind[:-2]
        back = (epochs < before) & (headers.magic == 2)
        left = EPOCHS_AT_START - len(edge.first_epochs)
        back[:left] = False
        edge.first_epochs += [self._epoch(headers, row) for row in range(min(left, len(epochs)))]
        for row in self._some(back, segments.EPOCH_GOES_BACK):
            details: dict[str, Any] = {"leader_epoch": int(epochs[row]), "previous": int(before[row])}
            if not runs_ahead(earlier[row], epochs[row]):
                yield row, self._at(headers, row, segments.EPOCH_GOES_BACK, **details)
            elif row > 0:
                yield row - 1, self._at(headers, row - 1, segments.EPOCH_RUNS_AHEAD, **details)
            else:
                yield row, segments.EPOCH_RUNS_AHEAD.at(carried[-1].place, **details)
        last = [self._epoch(headers, row) for row in range(max(0, len(epochs) - 2), len(epochs))]
        edge.last_epochs = [*edge.last_epochs, *last][-2:]

    def _epoch(self, headers: Headers, row: int) -> Epoch:
        place = place_of(headers, row, self.options.place)
        return Epoch(int(headers.partition_leader_epoch[row]), bool(headers.magic[row] == 2), place)


def rows(mask: Mask) -> list[int]:
    """Numbers of the rows for which the mask holds."""
    found: list[int] = np.flatnonzero(mask).tolist()
    return found


def place_of(headers: Headers, row: int, place: Place) -> Place:
    """Where one batch is."""
    return replace(
        place,
        position=int(headers.position[row]),
        size_in_bytes=int(headers.size_in_bytes[row]),
        base_offset=int(headers.base_offset[row]),
        last_offset=int(headers.last_offset[row]),
    )
