"""The headers of a record that was recovered, which name where it was lost; and records compared without them.

A record is identified by its partition, offset and leader epoch at the time of the loss: after an unclean election one
offset has held several records.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from formats.log.record_batch import Record
from kctl.changes.kept_records import LostRecord
from kctl.model import OffsetRange, TopicPartition

FROM, EPOCH, INCIDENT = b"kctl.recovered.from", b"kctl.recovered.epoch", b"kctl.recovered.incident"
MARKS = frozenset({FROM, EPOCH, INCIDENT})


class Mark(NamedTuple):
    """Where a recovered record was lost: the values of the headers."""

    source: bytes  # TOPIC-PARTITION@OFFSET
    epoch: bytes


def mark_of(partition: TopicPartition, lost: LostRecord) -> Mark:
    """The mark that a lost record of a partition gets."""
    return Mark(f"{partition}@{lost.record.offset}".encode(), str(lost.leader_epoch).encode())


def marked(partition: TopicPartition, lost: LostRecord, incident: str) -> Record:
    """The record with its mark."""
    source, epoch = mark_of(partition, lost)
    headers = ((FROM, source), (EPOCH, epoch), (INCIDENT, incident.encode()))
    return lost.record._replace(headers=(*lost.record.headers, *headers))


def find_mark(record: Record) -> Mark | None:
    """The mark of a record; None for one that was not recovered."""
    if not record.headers:
        return None
    values = {key: value or b"" for key, value in record.headers if key in MARKS}
    return Mark(values[FROM], values.get(EPOCH, b"")) if FROM in values else None


def without_mark(record: Record) -> Record:
    """The record as it was before it was lost."""
    return record._replace(headers=tuple(header for header in record.headers if header[0] not in MARKS))


def digest_of(record: Record, *, with_timestamp: bool = True) -> bytes:
    """A digest of key, value, headers and timestamp; equal for equal records."""
    body = hashlib.blake2b(digest_size=16)
    for part in (record.key, record.value, *(part for header in record.headers for part in header)):
        body.update(b"\0" if part is None else b"\1%d " % len(part) + bytes(part))
    body.update(b"%d" % (record.timestamp if with_timestamp else 0))
    return body.digest()


class PresentRecord(NamedTuple):
    """A record of the present log. `has_own_timestamp`: its producer set the timestamp, not the broker."""

    record: Record
    has_own_timestamp: bool


class WrittenSoFar(NamedTuple):
    """How many records, from the front, are in the present log, and at which offsets."""

    records: int
    offsets: list[OffsetRange]


def written_so_far(
    partition: TopicPartition,
    lost: Iterable[LostRecord],
    present: Iterable[PresentRecord],
    *,
    has_headers: bool = True,
) -> WrittenSoFar:
    """How many of the lost records the present log holds with their marks, in the same order.

    One process writes at a time, in order, so that those are the first ones. A record with the right mark and other
    content does not count. A log of an older message format has no headers: there the content decides.
    """
    expected = iter(lost)
    offsets: list[OffsetRange] = []
    count = 0
    waiting = next(expected, None)
    for record, has_own_timestamp in present:
        if waiting is None:
            break
        if has_headers and find_mark(record) != mark_of(partition, waiting):
            continue
        found, wanted = without_mark(record), waiting.record
        if not has_headers:
            found, wanted = found._replace(headers=()), wanted._replace(headers=())
        if digest_of(found, with_timestamp=has_own_timestamp) != digest_of(
            wanted, with_timestamp=has_own_timestamp
        ):
            continue
        count += 1
        add_offset(offsets, record.offset)
        waiting = next(expected, None)
    return WrittenSoFar(count, offsets)


def add_offset(offsets: list[OffsetRange], offset: int) -> None:
    """Add an offset to ranges [from, to), which grow at their end."""
    if offsets and offsets[-1][1] == offset:
        offsets[-1] = OffsetRange(offsets[-1].from_offset, offset + 1)
    else:
        offsets.append(OffsetRange(offset, offset + 1))
