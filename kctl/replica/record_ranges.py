"""At which offsets two replicas hold different records, where their batches are not the same bytes.

Only batches that differ are decompressed. A record is its key, value, headers and timestamp; what the message
format of one side does not have (headers before magic 2, a timestamp in magic 0) is not compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from formats.errors import FormatError
from formats.record_batch import Record
from formats.records import Entry, records_of, walk
from kctl.errors import reason_of
from kctl.replica.replica_log import Batches, ReplicaLog

LIMIT = 256 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """A record as far as it can be compared: digests instead of bytes, so that windows stay small."""

    magic: int
    body: bytes
    timestamp: int
    headers: bytes


def contents(log: ReplicaLog, batches: Batches, rows: Iterable[int]) -> dict[int, Content]:
    """The records of these batches by offset; a batch that cannot be decoded gives none."""
    found: dict[int, Content] = {}
    for entry in entries(log, batches, rows):
        try:
            for record in records_of(entry, limit=LIMIT):
                found[record.offset] = content_of(entry.magic, record)
        except FormatError as error:
            log.problems.append(f"batch at offset {entry.base_offset} cannot be decoded: {error}")
    return found


def entries(log: ReplicaLog, batches: Batches, rows: Iterable[int]) -> Iterable[Entry]:
    """These batches with their bytes, read anew."""
    for row in rows:
        path = log.files[int(batches.segment[row])]
        try:
            with path.open("rb", buffering=0) as file:
                file.seek(int(batches.position[row]))
                data = file.read(int(batches.size_in_bytes[row]))
        except OSError as error:
            log.problems.append(f"{path.name} cannot be read again: {reason_of(error)}")
            return
        for item in walk(data, check_crc=False):
            if isinstance(item, Entry):
                yield item


def content_of(magic: int, record: Record) -> Content:
    body = hashlib.blake2b(digest_size=16)
    for part in (record.key, record.value):
        body.update(b"\0" if part is None else b"\1%d " % len(part) + bytes(part))
    headers = (
        hashlib.blake2b(repr(record.headers).encode(), digest_size=8).digest() if record.headers else b""
    )
    return Content(magic, body.digest(), record.timestamp, headers)


def is_same(first: Content, second: Content) -> bool:
    """Whether two records are the same as far as their formats let one say."""
    if first.body != second.body:
        return False
    older = min(first.magic, second.magic)
    if older >= 1 and first.timestamp != second.timestamp:
        return False
    return older < 2 or first.headers == second.headers


@dataclass
class Ranges:
    """Maximal ranges of offsets, put together from pieces in ascending order."""

    found: list[list[int]] = field(default_factory=list)

    def add(self, start: int, end: int, *, joined_from: int | None = None) -> None:
        """Add [start, end); with `joined_from`, nothing that both sides share lies between there and start."""
        last = self.found[-1] if self.found else None
        if last and (last[1] >= start or (joined_from is not None and last[1] >= joined_from)):
            last[1] = max(last[1], end)
        else:
            self.found.append([start, end])

    def add_differences(self, first: dict[int, Content], second: dict[int, Content]) -> None:
        """Add the offsets at which both hold records and those are not the same."""
        after_shared: int | None = None
        for offset in sorted(first.keys() & second.keys()):
            if is_same(first[offset], second[offset]):
                after_shared = None
                continue
            self.add(offset, offset + 1, joined_from=after_shared)
            after_shared = offset + 1


def overlapping(batches: Batches, spans: Sequence[tuple[int, int]]) -> list[int]:
    """Indexes of the batches that may hold an offset of any of these ascending spans [from, to)."""
    rows: dict[int, None] = {}
    for start, end in spans:
        low = int(batches.last_offset.searchsorted(start))
        high = int(batches.first_offset.searchsorted(end))
        rows.update(dict.fromkeys(range(low, high)))
    return list(rows)
