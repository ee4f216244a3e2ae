"""Notes from brokers' logs about replicas: leaderships, loads, cuts and high watermarks of each log.

The logs are read once. Only lines about the end of a log, a cut or a high watermark are kept, by partition; a table
of templates says which line proves what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from formats.values import Struct, field
from kctl.broker_logs.clocks.offsets import CODES
from kctl.broker_logs.events import Event
from kctl.broker_logs.history.leaderships import Leadership
from kctl.broker_logs.history.timeline import Timeline, timeline
from kctl.broker_logs.merging import prepare
from kctl.broker_logs.sources import Sources
from kctl.findings import Finding
from kctl.model import TopicPartition

KAFKA_SERVERS = ("kafka.server.KafkaServer", "kafka.server.KafkaServerStartable", "kafka.server.BrokerServer")
# `Log(dir=..., topic=t, partition=0, ..., logEndOffset=50)` in the line of a log that was loaded (2.6 to 3.9).
LOADED = re.compile(
    r"topic=(?P<topic>[\w.-]+), partition=(?P<partition>\d{1,18}),.*logEndOffset=(?P<end>\d{1,18})"
)
# `[orders,2], initOffset 5 to broker` or `orders-2, initOffset ...`: the log end when a fetcher is created (to 0.11).
FETCHED = re.compile(
    r"(?:\[(?P<old>[\w.-]+),(?P<id>\d{1,18})\]|(?P<topic>[\w.-]+)-(?P<partition>\d{1,18})), initOffset (?P<end>\d{1,18}) to"
)

# `orders-0 -> (offset=108, leaderEpoch=8)`: the high watermark of a log when its fetcher is created (2.1 to 2.7).
# `core/src/main/scala/kafka/server/ReplicaManager.scala, makeFollowers @ 2.4.0`
FETCHED_FROM_MARK = re.compile(
    r"(?P<topic>[\w.-]+)-(?P<partition>\d{1,18}) -> \(offset=(?P<mark>\d{1,18}), leaderEpoch=(?P<epoch>\d{1,18})\)"
)


class Note(NamedTuple):
    """One log line about a replica; numbers that the line lacks are None."""

    what: str
    broker_id: int
    time_ms: int
    proof: dict[str, object]
    offset: int | None = None  # where a cut or an epoch begins
    log_end_offset: int | None = None
    high_watermark: int | None = None
    leader_epoch: int | None = None


# Template to the kind of note: a role, a loaded log, a cut, a fall-back to the own high watermark, ...
WHAT = {
    "L01": "leader", "L03": "leader", "S12": "leader", "S13": "leader",
    "L02": "follower", "L04": "follower",
    "R01": "loaded", "R02": "loaded", "R03": "loaded", "R04": "loaded",
    "R07": "recovered", "R08": "recovered", "R20": "created",
    "T04": "asked_to_cut", "T05": "cut",
    "T08": "fell_back", "T13": "fell_back", "T14": "fell_back",
    "T21": "reset", "T22": "reset",
    "S06": "shrank", "S03": "isr_of_leader", "S05": "isr_of_leader",
    "S09": "stale", "S10": "stale",
    "S02": "initial_high_watermark",
}  # fmt: skip


class LogNotes(Struct):
    """The notes from all logs; without logs `history` is None."""

    history: Timeline | None = None
    notes: dict[TopicPartition, list[Note]] = field(default_factory=dict)
    starts: dict[int, list[int]] = field(default_factory=dict)
    """When each broker's process started, UTC milliseconds."""
    last_ms: dict[int, int] = field(default_factory=dict)
    """When each broker wrote its last line."""
    zones: list[Finding] = field(default_factory=list)
    """Findings about the time zones of the brokers' logs."""
    is_doubtful: bool = False
    """Whether the order of lines of different brokers is unknown."""
    ahead: Mapping[int, int] = field(default_factory=dict)
    """By how many milliseconds the clocks of brokers are ahead."""

    def of(self, partition: TopicPartition, *what: str, broker_id: int | None = None) -> list[Note]:
        """The notes of these kinds about a partition in order of time, of one broker if it is given."""
        return [
            note
            for note in self.notes.get(partition, [])
            if note.what in what and broker_id in (None, note.broker_id)
        ]

    def leaderships(self, partition: TopicPartition) -> list[Leadership]:
        """The leaderships of the topic that has the name now, by ascending epoch."""
        leaderships = self.history.of(partition) if self.history else []
        return [
            leadership
            for leadership in leaderships
            if (leadership.cluster, leadership.incarnation)
            == (leaderships[-1].cluster, leaderships[-1].incarnation)
        ]

    def began_at(self, partition: TopicPartition) -> int:
        """When the topic that has the name now was first seen; earlier lines are about another topic."""
        leaderships = self.history.of(partition) if self.history else []
        present = self.leaderships(partition)
        return present[0].from_ms if present and len(present) < len(leaderships) else 0

    def started_between(self, broker_id: int, after_ms: int, until_ms: int) -> bool:
        return any(after_ms < start <= until_ms for start in self.starts.get(broker_id, ()))


def read_log_notes(
    sources: Sources, is_selected: Callable[[TopicPartition], bool] = lambda partition: True
) -> LogNotes:
    """The notes from these logs about the partitions for which `is_selected` is true."""
    log_notes = LogNotes()
    if not sources.sources:
        return log_notes
    merging = prepare(sources)
    log_notes.zones = [finding for finding in sources.findings if finding.code in CODES]
    log_notes.is_doubtful, log_notes.ahead = bool(merging.doubtful), merging.ahead
    events = _noted_events(merging.events(), log_notes, is_selected)
    log_notes.history = timeline(events, is_selected, merging.doubtful, merging.ahead)
    return log_notes


def _noted_events(
    events: Iterable[Event], log_notes: LogNotes, is_selected: Callable[[TopicPartition], bool]
) -> Iterator[Event]:
    fetched: dict[tuple[int, TopicPartition], Note] = {}
    for event in events:
        name = event.event
        is_start = name == "U16" or (name == "U11" and event.logger in KAFKA_SERVERS)
        if is_start and event.broker_id is not None:
            log_notes.starts.setdefault(event.broker_id, []).append(event.time_ms or 0)
        if event.broker_id is not None and (time_ms := event.time_ms) is not None:
            log_notes.last_ms[event.broker_id] = max(time_ms, log_notes.last_ms.get(event.broker_id, 0))
        if name == "T01":
            fetched.update(_fetched(event))
        elif name == "T02":
            _note_marks(log_notes, event, is_selected)
        elif name in WHAT:
            _note(log_notes, event, is_selected)
            if name == "T04":
                _cut_after_all(log_notes, event, fetched)
        yield event


def _fetched(event: Event) -> Iterator[tuple[tuple[int, TopicPartition], Note]]:
    """Where each log of a new fetcher ends."""
    if event.broker_id is None or event.time_ms is None:
        return
    for match in FETCHED.finditer(str(event.fields.get("listed", ""))):
        partition = TopicPartition(match["old"] or match["topic"], int(match["id"] or match["partition"]))
        end = int(match["end"])
        note = Note("follower", event.broker_id, event.time_ms, event.proof(), end, end)
        yield (event.broker_id, partition), note


def _note_marks(log_notes: LogNotes, event: Event, is_selected: Callable[[TopicPartition], bool]) -> None:
    """The high watermarks of the logs of a new fetcher.

    The line may follow the first cut that the fetcher makes: a mark above the cut was taken before it.
    """
    if event.broker_id is None or event.time_ms is None:
        return
    source = str(event.fields.get("to_broker", ""))
    if source == str(event.broker_id) or ":-1)" in source:
        return  # a replica that moves to another disk, from the one of the same broker
    for match in FETCHED_FROM_MARK.finditer(str(event.fields.get("listed", ""))):
        partition = TopicPartition(match["topic"], int(match["partition"]))
        if not is_selected(partition):
            continue
        mark, epoch = int(match["mark"]), int(match["epoch"])
        note = Note("fetching", event.broker_id, event.time_ms, event.proof(), None, None, mark, epoch)
        notes = log_notes.notes.setdefault(partition, [])
        last = notes[-1] if notes else None
        is_before_cut = (
            last is not None
            and (last.what, last.broker_id) == ("cut", event.broker_id)
            and last.offset is not None
            and mark > last.offset
        )
        notes.insert(len(notes) - is_before_cut, note)


def _cut_after_all(
    log_notes: LogNotes, event: Event, fetched: dict[tuple[int, TopicPartition], Note]
) -> None:
    """Until 0.11 the line is printed before a cut is known to change anything: it does if the log ended beyond the offset."""
    partition, offset = event.topic_partition, event.number("offset")
    if event.broker_id is None or partition is None or offset is None:
        return
    began = fetched.pop((event.broker_id, partition), None)
    notes = log_notes.notes.get(partition)
    if began is None or not notes or notes[-1].what != "asked_to_cut":
        return
    if began.offset is not None and began.offset > offset:
        notes[-1:] = [began, notes[-1]._replace(what="cut")]


def _note(log_notes: LogNotes, event: Event, is_selected: Callable[[TopicPartition], bool]) -> None:
    if event.broker_id is None or event.time_ms is None:
        return
    what = WHAT[event.event or ""]
    partition = event.topic_partition
    log_end = event.number("log_end_offset")
    offset = event.number("offset")
    if event.event == "R04":
        match = LOADED.search(event.message)
        if match is None:
            return
        partition = TopicPartition(match["topic"], int(match["partition"]))
        log_end = int(match["end"])
    elif what == "reset":
        if event.fields.get("which") != "latest":
            return
        log_end, offset = offset, event.number("new_offset")
    elif what == "follower":
        log_end = offset
    if partition is None or not is_selected(partition):
        return
    note = Note(
        what,
        event.broker_id,
        event.time_ms,
        event.proof(),
        offset,
        log_end,
        event.number("high_watermark"),
        event.number("leader_epoch"),
    )
    log_notes.notes.setdefault(partition, []).append(note)
