"""What is asked about metadata records: as of when, and which ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from formats.remote_log_metadata import (
    PartitionDelete,
    RemoteLogMetadata,
    SegmentMetadataSnapshot,
)
from kctl.errors import BadValue

# Smaller numbers are offsets: as a time they would lie before 1973.
EARLIEST_TIME = 100_000_000_000


@dataclass(frozen=True, slots=True)
class AsOf:
    """Records up to an event time (ms), or up to an offset of the metadata partitions or of one of them."""

    time: int | None = None
    offset: int | None = None
    metadata_partition: int | None = None


NOW = AsOf()


def parse_time(text: str) -> int:
    """Milliseconds from a number of them or from ISO 8601; without an offset it is UTC."""
    if re.fullmatch(r"\d{1,18}", text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadValue(f"{text!r} is no time (milliseconds, or 2026-11-21T13:24:08Z)") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_as_of(text: str) -> AsOf:
    """`PARTITION:OFFSET`, an offset, milliseconds or ISO 8601."""
    both = re.fullmatch(r"(\d{1,9}):(\d{1,18})", text)
    if both:
        return AsOf(offset=int(both[2]), metadata_partition=int(both[1]))
    if re.fullmatch(r"\d{1,18}", text) and int(text) < EARLIEST_TIME:
        return AsOf(offset=int(text))
    return AsOf(time=parse_time(text))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records; None is any."""

    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    segment_id: str | None = None
    broker_id: int | None = None
    state: str | None = None
    since: int | None = None
    until: int | None = None

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return self == Wanted()

    def __contains__(self, record: RemoteLogMetadata) -> bool:
        if isinstance(record, SegmentMetadataSnapshot):
            where = None
        else:
            where = record.topic_id_partition
        segment_id = None if isinstance(record, PartitionDelete) else record.remote_log_segment_id
        pairs = (
            (self.topic, where and where.topic),
            (self.topic_id, where and where.topic_id),
            (self.partition, None if where is None else where.partition),
            (self.segment_id, segment_id),
            (self.broker_id, record.broker_id),
            (self.state, record.state.name),
        )
        if any(wanted is not None and wanted != found for wanted, found in pairs):
            return False
        time = record.event_timestamp
        return (self.since is None or time >= self.since) and (self.until is None or time <= self.until)
