"""Which metadata records to read: up to which time or offset, and of which segments."""

from __future__ import annotations

import re

from formats.messages.remote_log_metadata import RemoteLogMetadata
from formats.values import Struct
from kctl.times import parse_time

# Smaller numbers are offsets: as a time they would lie before 1973.
EARLIEST_TIME = 100_000_000_000


class MetadataAsOf(Struct, frozen=True):
    """Records up to an event time (ms), or up to an offset of the metadata partitions or of one of them."""

    time: int | None = None
    offset: int | None = None
    metadata_partition: int | None = None


NOW = MetadataAsOf()


def parse_as_of(text: str) -> MetadataAsOf:
    """Parse `PARTITION:OFFSET`, an offset, milliseconds or ISO 8601."""
    both = re.fullmatch(r"(\d{1,9}):(\d{1,18})", text)
    if both:
        return MetadataAsOf(offset=int(both[2]), metadata_partition=int(both[1]))
    if re.fullmatch(r"\d{1,18}", text) and int(text) < EARLIEST_TIME:
        return MetadataAsOf(offset=int(text))
    return MetadataAsOf(time=parse_time(text))


EXACT = ("topic", "topic_id", "partition", "segment_id", "broker_id", "state")


class MetadataSelection(Struct, frozen=True):
    """Which records to show; None is any."""

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
        return self == MetadataSelection()

    def __contains__(self, record: RemoteLogMetadata) -> bool:
        fields = record._asdict()
        where = fields.get("topic_id_partition")
        fields |= {
            **(where._asdict() if where else {}),
            "segment_id": fields.get("remote_log_segment_id"),
            "state": record.state.name,
        }
        if any(getattr(self, name) not in (None, fields.get(name)) for name in EXACT):
            return False
        time = record.event_timestamp
        return (self.since is None or time >= self.since) and (self.until is None or time <= self.until)
