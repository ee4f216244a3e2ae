"""Brokers' logs as a history: who led each partition and when, who was controller, which broker was up.

`timeline` reads events in order and keeps what they prove; its size goes with the number of leaderships, not
with that of lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kctl.broker_logs.causes import BY_PARTITION, Causes
from kctl.broker_logs.copies import CUTS, DOUBTS, STARTS, WATERMARKS, ReplicaLines, Truncation
from kctl.broker_logs.events import Event
from kctl.broker_logs.isr import CHANGES, REFUSED, IsrLines
from kctl.broker_logs.leaderships import RANKS, Leadership, PartitionHistory
from kctl.broker_logs.lives import CONTROLLER_STARTS, OWN, SEEN, BrokerState, Lives
from kctl.broker_logs.observations import FINDERS, observations
from kctl.broker_logs.terms import BEGINS, CONTROLLER_LINES, REJECTIONS, RESIGNS, ControllerTerm, Terms
from kctl.findings import Finding, Place
from kctl.findings import state_log as say
from kctl.model import TopicPartition

# Templates that a history is made of; the others need not be looked at.
WANTED: frozenset[str] = frozenset().union(
    FINDERS, BY_PARTITION, OWN, SEEN, BEGINS, RESIGNS, REJECTIONS, CUTS, STARTS, WATERMARKS, DOUBTS, CHANGES, REFUSED,
    CONTROLLER_LINES, (CONTROLLER_STARTS,),
    ("C13", "C14", "C16", "E12", "E21", "E22", "E30", "K02", "Q11", "Q12", "Q13", "Q14", "Q15", "Q16", "R20", "U30"),
)  # fmt: skip
# Lines that say again and again what is known: each broker and each request repeats the state of a partition.
REPEATED = frozenset(("C01", "C02", "C04", "C05", "C06", "B01", "B02", "B36", "L06", "L08"))
SPEAKING = frozenset(("C03", "C07"))
MOST_SEEN = 100_000
STATE_CHANGES = "state.change.logger"
TOPIC_DELETED = "successfully completed"


@dataclass
class Timeline:
    """What the logs say, as values."""

    leaderships: dict[TopicPartition, list[Leadership]]
    """In order of epochs; where a topic was deleted and made again, those of the first come first."""
    controllers: list[ControllerTerm]
    brokers: list[BrokerState]
    lines: ReplicaLines
    """What brokers say about their replicas: truncations, starts as leader or follower, high watermarks."""
    isr_lines: IsrLines
    minimum_isr: dict[str, int]
    """min.insync.replicas by topic, where the logs say it; the brokers' default under `""`."""
    levels: dict[int, set[str]] = field(default_factory=dict)
    """Levels of the lines of each broker's state-change log."""
    first_ms: int | None = None
    last_ms: int | None = None
    servers: frozenset[int] = frozenset()
    """Brokers whose server.log is among the logs, so that each change of an ISR that they made is seen."""

    def of(self, partition: TopicPartition) -> list[Leadership]:
        """The leaderships of one partition; none where the logs do not name it."""
        return self.leaderships.get(partition, [])

    def leader_at(self, partition: TopicPartition, time_ms: int) -> Leadership | None:
        """The leadership in force at a time."""
        for one in reversed(self.of(partition)):
            if one.from_ms <= time_ms and (one.to_ms is None or time_ms <= one.to_ms):
                return one
        return None

    @property
    def unclean(self) -> list[Leadership]:
        """Unclean elections."""
        return [one for ones in self.leaderships.values() for one in ones if one.is_unclean]

    @property
    def truncations(self) -> list[Truncation]:
        """Every cut of a replica that a broker printed."""
        return self.lines.truncations

    def findings(self, min_isr: int | None = None) -> Iterator[Finding]:
        """Unclean elections, ISRs below the minimum, cuts below the high watermark, stale leaders and controllers."""
        for ones in self.leaderships.values():
            for number, one in enumerate(ones):
                if one.is_unclean:
                    yield _unclean(one, ones[:number])
            yield from self._below_minimum(ones, min_isr)
        yield from self.lines.findings()
        yield from self.isr_lines.findings()
        for broker_id, levels in sorted(self.levels.items()):
            if "TRACE" not in levels:
                yield say.LOG_LEVEL_TOO_HIGH.at(Place(broker_id=broker_id), broker=broker_id)
        for term in self.controllers:
            if term.rejections:
                first = term.rejections[0]
                yield say.STALE_CONTROLLER.at(
                    Place(broker_id=_int(first["broker_id"]), file=str(first["file"])),
                    broker=first["broker_id"],
                    controller=term.broker_id,
                    epoch=term.controller_epoch,
                    known=first["latest_controller_epoch"],
                )

    def _below_minimum(self, ones: list[Leadership], min_isr: int | None) -> Iterator[Finding]:
        for one in ones:
            topic, partition = one.topic_partition
            minimum = min_isr or self.minimum_isr.get(topic, self.minimum_isr.get("", 1))
            changes = [(one.isr, one.proofs[0] if one.proofs else {})] if one.isr is not None else []
            changes += [(change.isr, {"file": change.file}) for change in one.isr_changes]
            for isr, proof in changes:
                if isr is not None and 0 < len(isr) < minimum:
                    yield say.ISR_BELOW_MINIMUM.at(
                        Place(topic=topic, partition=partition, file=str(proof.get("file") or "") or None),
                        partition=one.topic_partition,
                        isr=",".join(map(str, isr)),
                        minimum=minimum,
                    )
                    break


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _unclean(one: Leadership, before: list[Leadership]) -> Finding:
    isr = next((b.last_isr for b in reversed(before) if b.last_isr), None) or ()
    if one.leader in isr:
        isr = ()  # what an ISR before says is not what the controller went by
    proof = one.proofs[0] if one.proofs else {}
    topic, partition = one.topic_partition
    return say.UNCLEAN_LEADER_ELECTION.at(
        Place(
            topic=topic, partition=partition, broker_id=one.leader, file=str(proof.get("file") or "") or None
        ),
        leader=one.leader,
        partition=one.topic_partition,
        epoch=one.leader_epoch,
        isr=",".join(map(str, isr)),
    )


@dataclass
class _Builder:
    wanted: Callable[[TopicPartition], bool]
    doubtful: frozenset[int] = frozenset()
    histories: dict[TopicPartition, PartitionHistory] = field(default_factory=dict)
    causes: Causes = field(default_factory=Causes)
    terms: Terms = field(default_factory=Terms)
    lives: Lives = field(default_factory=Lives)
    lines: ReplicaLines = field(default_factory=ReplicaLines)
    isr_lines: IsrLines = field(default_factory=IsrLines)
    first_ms: int | None = None
    last_ms: int | None = None
    levels: dict[int, set[str]] = field(default_factory=dict)
    # What repeated lines said, and the leadership that they were about.
    seen: dict[bytes, Leadership | None] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Take one event into account."""
        time_ms = event.time_ms
        if time_ms is None:
            return
        self.first_ms = time_ms if self.first_ms is None else self.first_ms
        self.last_ms = time_ms
        if event.logger == STATE_CHANGES and event.broker_id is not None:
            self.levels.setdefault(event.broker_id, set()).add(event.level)
        if event.event is None or self._is_known(event, time_ms):
            return
        self.causes.note(event, time_ms)
        self.terms.note(event, time_ms)
        self.lives.note(event, time_ms)
        partition = event.topic_partition
        if partition is not None and not self.wanted(partition):
            return
        self._note_creation(event, partition, time_ms)
        for where, seen in observations(event):
            if self.wanted(where):
                found = self._history(where).observe(seen, time_ms)
                if event.event in REPEATED and event.shape.state and found is not None:
                    self._remember(event, found)
        self.lines.note(event, partition, time_ms)
        if partition is not None:
            self.isr_lines.note(event, self._history(partition), time_ms)

    def _is_known(self, event: Event, time_ms: int) -> bool:
        """Whether a line only repeats what an earlier one proved at least as well."""
        name = event.event or ""
        if not event.shape.state:
            return False
        if name in SPEAKING:
            key = event.state_key()
            if key in self.seen:
                return True
            self.seen[key] = None
        elif name in REPEATED:
            known = self.seen.get(event.state_key())
            if known is not None and RANKS[name] >= known.rank:
                known.last_seen_ms = max(known.last_seen_ms, time_ms)
                return True
        return False

    def _remember(self, event: Event, one: Leadership) -> None:
        if len(self.seen) > MOST_SEEN:
            self.seen.clear()
        self.seen[event.state_key()] = one

    def _history(self, partition: TopicPartition) -> PartitionHistory:
        known = self.histories.get(partition)
        if known is None:
            known = self.histories[partition] = PartitionHistory(partition, is_doubtful=bool(self.doubtful))
        return known

    def _note_creation(self, event: Event, partition: TopicPartition | None, time_ms: int) -> None:
        if event.event == "E30" and TOPIC_DELETED in str(event.fields.get("what", "")):
            for known, history in self.histories.items():
                if known.topic == event.fields.get("topic"):
                    history.end(time_ms)
        if partition is None:
            return
        states = event.fields.get("from_state"), event.fields.get("to_state")
        leader = event.number("leader")
        if event.event == "C14" and leader is not None:
            self._history(partition).announce(leader, str(states[0]), event, time_ms)
        elif event.event == "C16" and states[1] == "NonExistentPartition":
            self._history(partition).end(time_ms)
        elif event.event == "C13" and states[0] == "NonExistentPartition":
            self._history(partition).begin_again()
            self.seen.clear()
        elif event.event in ("K02", "Q03", "Q04", "L03"):
            self._note_topic_id(event, partition)

    def _note_topic_id(self, event: Event, partition: TopicPartition) -> None:
        """KRaft has no line for a new topic of an old name but the id."""
        topic_id = event.fields.get("topic_id")
        if not isinstance(topic_id, str):
            return
        history = self._history(partition)
        known = history.topic_ids[-1]
        if known is not None and known != topic_id:
            history.begin_again()
            self.seen.clear()
        history.topic_ids[-1] = topic_id

    def finished(self) -> Timeline:
        """Everything decided."""
        leaderships: dict[TopicPartition, list[Leadership]] = {}
        for partition in sorted(self.histories):
            for ones in self.histories[partition].finished():
                self._decide(ones)
                leaderships.setdefault(partition, []).extend(ones)
        return Timeline(
            leaderships,
            self.terms.finished(),
            self.lives.finished(),
            self.lines,
            self.isr_lines,
            self.lines.minimum_isr,
            self.levels,
            self.first_ms,
            self.last_ms,
            frozenset(self.causes.servers),
        )

    def _decide(self, ones: list[Leadership]) -> None:
        before: Leadership | None = None
        known: tuple[int, ...] | None = None
        for one in ones:
            self.causes.decide(before, one, known)
            known = one.last_isr or known if one.leader is not None else None
            before = one


def timeline(
    events: Iterable[Event],
    wanted: Callable[[TopicPartition], bool] = lambda partition: True,
    doubtful: frozenset[int] = frozenset(),
) -> Timeline:
    """The history that events prove; `wanted` leaves out partitions that nobody asks about.

    `doubtful` are brokers whose times cannot be put beside those of the others, see `Merge.doubtful`.
    """
    builder = _Builder(wanted, doubtful, causes=Causes(doubtful))
    for event in events:
        builder.add(event)
    return builder.finished()
