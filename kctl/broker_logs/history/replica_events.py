"""What brokers print about their own replicas: cuts, starts as leader or follower, high watermarks, log ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from formats.values import Struct, field
from kctl.broker_logs.events import Event
from kctl.findings import Finding, Place
from kctl.findings import state_log as say
from kctl.model import TopicPartition

MINIMUM = re.compile(r"min\.insync\.replicas ?(?:->|=|:) ?(\d{1,19})")
# Template to the field with the offset that a log is cut to.
CUTS = {
    "T04": "offset",
    "T05": "offset",
    "T12": "offset",
    "T13": "high_watermark",
    "T14": "offset",
    "T15": "offset",
}
STARTS = {
    "L01": "leader",
    "L03": "leader",
    "S12": "leader",
    "S13": "leader",
    "L02": "follower",
    "L04": "follower",
}
ENDS = {"R01": "log_end_offset", "R02": "log_end_offset", "R03": "log_end_offset"}
WATERMARKS = frozenset(("S02", "S14"))
DOUBTS = frozenset(
    (
        "T08",
        "T09",
        "T10",
        "T11",
        "T18",
        "T19",
        "T20",
        "T21",
        "T22",
        "T23",
        "T24",
        "T25",
        "R07",
        "R08",
        "R09",
        "S01",
        "S15",
    )
)
MOST = 200_000


class LoggedTruncation(NamedTuple):
    """A broker cut its copy of a partition back, or said that it would."""

    topic_partition: TopicPartition
    broker_id: int | None
    time_ms: int
    offset: int
    high_watermark: int | None
    leader_epoch: int | None
    proof: dict[str, object]


class ReplicaStart(NamedTuple):
    """A broker began to lead or to follow."""

    topic_partition: TopicPartition
    broker_id: int | None
    time_ms: int
    role: str
    leader_epoch: int | None
    log_end_offset: int | None
    """As printed at the start: for followers before they cut anything."""
    high_watermark: int | None
    proof: dict[str, object]


class HighWatermark(NamedTuple):
    """A high watermark that a broker printed."""

    topic_partition: TopicPartition
    broker_id: int | None
    time_ms: int
    high_watermark: int
    proof: dict[str, object]


class Doubt(NamedTuple):
    """A line that puts the content of a replica in doubt: resets, corrupt segments, unknown epochs."""

    topic_partition: TopicPartition | None
    broker_id: int | None
    time_ms: int
    event: str
    proof: dict[str, object]


class ReplicaLines(Struct):
    """Lines about replicas, in order of time."""

    truncations: list[LoggedTruncation] = field(default_factory=list)
    starts: list[ReplicaStart] = field(default_factory=list)
    high_watermarks: list[HighWatermark] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    minimum_isr: dict[str, int] = field(default_factory=dict)

    def note(self, event: Event, partition: TopicPartition | None, time_ms: int) -> None:
        """Take a line into account."""
        name = event.event or ""
        if name in DOUBTS and len(self.doubts) < MOST:
            self.doubts.append(Doubt(partition, event.broker_id, time_ms, name, event.proof()))
        if name == "U30":
            minimum = event.number("min_insync_replicas")
            if minimum is not None:
                self.minimum_isr[""] = minimum
        if partition is None:
            return
        if name in CUTS:
            self._note_cut(event, partition, time_ms)
        elif name in STARTS:
            self._note_start(event, partition, time_ms)
        elif name in WATERMARKS:
            self._note_watermark(event, partition, time_ms)
        elif name == "R20":
            in_properties = MINIMUM.search(str(event.fields.get("properties", "")))
            if in_properties:
                self.minimum_isr[partition.topic] = int(in_properties[1])

    def _note_cut(self, event: Event, partition: TopicPartition, time_ms: int) -> None:
        offset = event.number(CUTS[event.event or ""])
        if offset is not None and len(self.truncations) < MOST:
            self.truncations.append(
                LoggedTruncation(
                    partition,
                    event.broker_id,
                    time_ms,
                    offset,
                    event.number("high_watermark"),
                    event.number("leader_epoch"),
                    event.proof(),
                )
            )

    def _note_start(self, event: Event, partition: TopicPartition, time_ms: int) -> None:
        if len(self.starts) < MOST:
            self.starts.append(
                ReplicaStart(
                    partition,
                    event.broker_id,
                    time_ms,
                    STARTS[event.event or ""],
                    event.number("leader_epoch"),
                    event.number("offset"),
                    event.number("high_watermark"),
                    event.proof(),
                )
            )
        watermark = event.number("high_watermark")
        if watermark is not None:
            self._add_watermark(event, partition, time_ms, watermark)

    def _note_watermark(self, event: Event, partition: TopicPartition, time_ms: int) -> None:
        watermark = event.number("high_watermark")
        if watermark is None:
            offset_text = re.search(r"offset=(\d{1,19})", str(event.fields.get("new", "")))
            watermark = int(offset_text[1]) if offset_text else None
        if watermark is not None:
            self._add_watermark(event, partition, time_ms, watermark)

    def _add_watermark(self, event: Event, partition: TopicPartition, time_ms: int, watermark: int) -> None:
        if len(self.high_watermarks) < MOST:
            self.high_watermarks.append(
                HighWatermark(partition, event.broker_id, time_ms, watermark, event.proof())
            )

    def findings(self) -> Iterator[Finding]:
        """Cuts below the high watermark."""
        marks_told: set[tuple[object, ...]] = set()
        for cut in self.truncations:
            if cut.proof["event"] != "T12" or cut.high_watermark is None:
                continue
            key = cut.topic_partition, cut.broker_id, cut.offset, cut.high_watermark
            if key in marks_told:
                continue
            marks_told.add(key)
            topic, partition = cut.topic_partition
            yield say.COMMITTED_TRUNCATED.at(
                Place(broker_id=cut.broker_id, topic=topic, partition=partition, file=str(cut.proof["file"])),
                broker=cut.broker_id,
                partition=cut.topic_partition,
                offset=cut.offset,
                high_watermark=cut.high_watermark,
                line=cut.proof["line"],
            )
