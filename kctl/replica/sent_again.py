"""Which lost records their producers sent again.

A leader that fails has records that no follower has fetched yet. A producer with acks=all, whose request was not
answered, sends them again to the next leader, with the times that they had: they are in the present log behind the
point where the other ends, at other offsets. Records without times of their own prove nothing.

Source: clients/src/main/java/org/apache/kafka/clients/producer/internals/Sender.java @ 3.9.0-rc3
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from formats.errors import FormatError
from formats.records import records_of
from kctl.replica.copies import Copy
from kctl.replica.lost_batches import NO_END, batches_between
from kctl.replica.record_ranges import LIMIT, Content, content_of, entries

# A tail that no follower has fetched is short, and what is sent again comes soon.
MOST_LOST = 20_000
MOST_LOOKED_AT = 100_000


def sent_again(lost: Copy, present: Copy, start: int, end: int) -> list[tuple[int, int]]:
    """The ranges of [start, end) of one copy whose records the present one holds as well, from `start` on.

    Markers of transactions belong to the records around them: they count where every record is there again.
    """
    wanted: dict[int, Content] = {}
    for offset, content in _records(lost, start, end):
        if content.timestamp <= 0 or len(wanted) == MOST_LOST:
            return []
        wanted[offset] = content
    there = _found(present, start, Counter(wanted.values()))
    again = []
    for offset, content in wanted.items():
        if there[content] > 0:
            there[content] -= 1
            again.append(offset)
    if wanted and len(again) == len(wanted):
        return [(start, end)]
    return _runs(again)


def _found(present: Copy, start: int, wanted: Counter[Content]) -> Counter[Content]:
    """How often the present log holds each of these records."""
    found: Counter[Content] = Counter()
    missing = wanted.total()
    for looked_at, (_, content) in enumerate(_records(present, start, NO_END)):
        if not missing or looked_at == MOST_LOOKED_AT:
            break
        if found[content] < wanted[content]:
            found[content] += 1
            missing -= 1
    return found


def _records(copy: Copy, start: int, end: int) -> Iterator[tuple[int, Content]]:
    """The records of [start, end) that are no markers, batch by batch."""
    for log, batches in batches_between(copy, start, end):
        for entry in entries(log, batches, range(len(batches))):
            if entry.batch is not None and entry.batch.is_control:
                continue
            try:
                for record in records_of(entry, limit=LIMIT):
                    if start <= record.offset < end:
                        yield record.offset, content_of(entry.magic, record)
            except FormatError:
                continue


def _runs(offsets: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and runs[-1][1] == offset:
            runs[-1] = runs[-1][0], offset + 1
        else:
            runs.append((offset, offset + 1))
    return runs
