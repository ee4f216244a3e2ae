"""Lines in which a leader changes its ISR, and what shows that it was no longer the leader."""

from __future__ import annotations

from formats.values import Struct, field
from kctl.broker_logs.events import Event
from kctl.broker_logs.history.leaderships import GRANTED, PartitionHistory
from kctl.findings import Finding, Place
from kctl.findings import state_log as state_log_findings
from kctl.model import TopicPartition

# Template to the field with the new ISR. S03 to S06 are printed before the change is written.
CHANGES = {
    "S03": "new_isr",
    "S04": "new_isr",
    "S05": "new_isr",
    "S06": "new_isr",
    "S07": "isr",
    "S08": "isr",
    "F71": "isr",
}
REFUSED = frozenset(("S09", "S10", "S11", "E32"))
ANNOUNCED = frozenset(("S03", "S04", "S05", "S06"))
# What brokers print that tell of each change that they made (2.4).
TELLING = frozenset(("S07", "S08", "S13", "L01", "L02", "L03", "L04"))
# A broker may print a change that it made just before it heard of its successor.
LATE = 1_000


class IsrLines(Struct):
    """What leaders print about their ISRs."""

    stale: dict[tuple[TopicPartition, int, str], Finding] = field(default_factory=dict)
    """Brokers that acted as leaders after they were replaced, or tried to: by partition, broker and what it was."""
    telling: set[int] = field(default_factory=set)
    """Brokers that tell of each change that they made, not only that they are about to."""

    def note(self, event: Event, history: PartitionHistory, time_ms: int) -> None:
        """Take a line into account."""
        name = event.event or ""
        if name in TELLING and event.broker_id is not None:
            self.telling.add(event.broker_id)
        if name in CHANGES:
            self._note_change(event, history, time_ms)
        elif name in REFUSED and event.broker_id is not None:
            current = history.current
            if current is not None and current.leader not in (event.broker_id, None, -1):
                self._note_stale(event, history.topic_partition, "its change of the ISR was refused")
            if name == "S09":
                self._take_back(event, history, time_ms)

    @staticmethod
    def _take_back(event: Event, history: PartitionHistory, time_ms: int) -> None:
        """Take back a change of an ISR that a leader announced and that failed; other epochs may have begun since."""
        for epoch in sorted(history.epochs, reverse=True)[:4]:
            changes = history.epochs[epoch].isr_changes
            if changes and changes[-1].version is None and changes[-1].file == event.file:
                if time_ms - changes[-1].time_ms < LATE:
                    changes.pop()
                return

    def _note_change(self, event: Event, history: PartitionHistory, time_ms: int) -> None:
        isr = event.fields.get(CHANGES[event.event or ""])
        current = history.current
        if current is None or not isinstance(isr, list) or history.is_over:
            return
        # A line whose broker nobody knows is taken for the leader's: only leaders print these.
        is_others = event.broker_id not in (None, current.leader) and event.event not in GRANTED
        if current.leader is not None and current.leader >= 0 and is_others:
            if time_ms - current.from_ms > LATE:
                self._note_stale(event, history.topic_partition, "it tried to change the ISR")
            return
        if current.leader == -1:
            return
        announced_by = event.broker_id if event.event in ANNOUNCED else None
        old_isr = event.fields.get("old_isr")
        if isinstance(old_isr, list):
            current = history.changed_from(frozenset(old_isr), current, time_ms)
            current.take_back(tuple(old_isr), event.broker_id)
        current.last_seen_ms = max(current.last_seen_ms, time_ms)
        version = event.number("version")
        if version is None:
            version = event.number("new_version")
        if event.event not in GRANTED or current.version is None or (version or 0) >= current.version:
            current.add_isr(time_ms, tuple(isr), version, event, announced_by)

    def _note_stale(self, event: Event, partition: TopicPartition, what: str) -> None:
        assert event.broker_id is not None
        key = partition, event.broker_id, what
        if key not in self.stale:
            self.stale[key] = state_log_findings.ZOMBIE_LEADER_WRITE.at(
                Place(event.broker_id, file=event.file).in_partition(partition),
                broker=event.broker_id,
                partition=partition,
                what=what,
                line=event.line,
            )
