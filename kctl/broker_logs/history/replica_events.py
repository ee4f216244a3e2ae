"""What brokers print about their replicas beside who leads: cuts below the high watermark, and how small an ISR may be."""

from __future__ import annotations

import re

from formats.values import Struct, field
from kctl.broker_logs.events import Event
from kctl.findings import Finding, Place
from kctl.findings import state_log as state_log_findings
from kctl.model import TopicPartition

CUTS_BELOW, CREATES, CONFIGURES = "T12", "R20", "U30"
REPLICA_LINES = frozenset((CUTS_BELOW, CREATES, CONFIGURES))
MINIMUM = re.compile(r"min\.insync\.replicas ?(?:->|=|:) ?(\d{1,19})")
MOST = 200_000


class ReplicaLines(Struct):
    """Lines about replicas."""

    cuts: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    minimum_isr: dict[str, int] = field(default_factory=dict)
    """min.insync.replicas by topic; the brokers' default under `""`."""

    def note(self, event: Event, partition: TopicPartition | None) -> None:
        """Take a line into account."""
        if event.event == CONFIGURES:
            minimum = event.number("min_insync_replicas")
            if minimum is not None:
                self.minimum_isr[""] = minimum
        elif partition is not None and event.event == CREATES:
            in_properties = MINIMUM.search(str(event.fields.get("properties", "")))
            if in_properties:
                self.minimum_isr[partition.topic] = int(in_properties[1])
        elif partition is not None and event.event == CUTS_BELOW:
            self._note_cut(event, partition)

    def _note_cut(self, event: Event, partition: TopicPartition) -> None:
        offset, high_watermark = event.number("offset"), event.number("high_watermark")
        key = partition, event.broker_id, offset, high_watermark
        if None in (offset, high_watermark) or key in self.cuts or len(self.cuts) == MOST:
            return
        self.cuts[key] = state_log_findings.COMMITTED_TRUNCATED.at(
            Place(event.broker_id, file=event.file).in_partition(partition),
            broker=event.broker_id,
            partition=partition,
            offset=offset,
            high_watermark=high_watermark,
            line=event.line,
        )
