"""What became of the transactions in a lost range, as far as the copy that holds them tells.

A data batch belongs to the transaction that the next marker of its producer ends; without one it was still open
when the copy ends.

Source: storage/.../internals/log/ProducerAppendInfo.java, clients/.../record/ControlRecordType.java @ 3.9.0-rc3
"""

from __future__ import annotations

import enum

from formats.control_records import ControlType, read_key
from formats.errors import FormatError
from formats.records import Entry, records_of
from kctl.replica.copies import Copy
from kctl.replica.lost_batches import batches_between
from kctl.replica.record_ranges import LIMIT, entries

END_OF_ALL = 1 << 62


class Outcome(enum.StrEnum):
    """Of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


OUTCOMES: dict[int, Outcome] = {
    ControlType.ABORT: Outcome.ABORTED,
    ControlType.COMMIT: Outcome.COMMITTED,
}


def transaction_outcomes(copy: Copy, start: int, end: int) -> dict[int, Outcome]:
    """By base offset the outcome of each transactional data batch of [start, end); reads on to the last marker."""
    found: dict[int, Outcome] = {}
    waiting: dict[int, list[int]] = {}  # producer id -> base offsets
    for log, batches in batches_between(copy, start, END_OF_ALL):
        for row in range(len(batches)):
            if batches.first_offset[row] >= end and not waiting:
                return found
            for entry in entries(log, batches, [row]):
                if entry.batch is None or not entry.batch.is_transactional:
                    continue
                producer = entry.batch.producer_id
                if entry.batch.is_control:
                    outcome = _outcome(entry)
                    found |= dict.fromkeys(waiting.pop(producer, ()), outcome)
                elif entry.base_offset < end:
                    waiting.setdefault(producer, []).append(entry.base_offset)
    found |= {base: Outcome.OPEN for bases in waiting.values() for base in bases}
    return found


def _outcome(marker: Entry) -> Outcome:
    """What a marker says; one that cannot be read leaves it open."""
    try:
        kind = read_key(next(iter(records_of(marker, limit=LIMIT))).key).type
    except (FormatError, StopIteration):
        return Outcome.OPEN
    return OUTCOMES.get(kind, Outcome.OPEN)
