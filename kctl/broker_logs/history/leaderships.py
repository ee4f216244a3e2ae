"""Who led a partition in which leader epoch, put together from every line that says something about it.

The controller decides a leadership and prints it; brokers print what they were told. Each line is an
observation of one leader epoch: the best of them proves it, the others fill in what it does not say.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.values import Struct, field
from kctl.model import TopicPartition
from kctl.times import iso

if TYPE_CHECKING:
    from kctl.broker_logs.events import Event

NO_LEADER = -1
LEADER_DURING_DELETE = -2
# How much a line proves: the controller's decision, the new leader's own words, what was sent, what was heard.
RANKS = {
    "C15": 0, "C20": 0, "E17": 0, "E15": 1, "Q01": 0, "Q02": 0, "Q03": 0, "Q04": 2, "Q05": 0, "Q06": 0,
    "C28": 1, "C29": 1, "L01": 2, "L03": 2, "S12": 2, "S13": 2, "C01": 3, "C02": 3, "C04": 4, "C05": 4, "C06": 4,
    "L04": 4, "L06": 5, "L08": 5, "L12": 5, "L13": 5, "B01": 5, "B02": 5, "L02": 5, "F72": 5, "B36": 6, "E24": 6,
}  # fmt: skip
# Of an epoch that no line tells of.
NOT_RETURNED = 9
# Lines that are printed once for an epoch, when it begins; in the order of epochs where one process follows another.
FIRST_SAID = frozenset(("C15", "L01", "L03", "S12", "S13"))
# A leader says that a change of its ISR is made.
MADE = frozenset(("S07", "S08", "L06", "L12"))
# A controller says that it made one that a leader asked for.
GRANTED = frozenset(("F71", "F72"))
# A broker's lines may come a little before the controller's where clocks differ.
CLOCK_SLACK = 2_000
# In which a controller hears of a change that a leader made (until 2.6 leaders gather them for up to a minute).
UNHEARD = 60_000
SURE, LIKELY = "sure", "likely"
# The cause of an epoch that no line tells of.
MISSING = "not in these logs"
# Sent again when a broker starts or the controller changes, unless it carries the sender's own controller epoch.
SENT = frozenset(("C01", "C02", "C04", "C05", "C06"))


class IsrChange(NamedTuple):
    """A change of the ISR within a leader epoch."""

    time_ms: int
    isr: tuple[int, ...]
    version: int | None
    file: str
    line: int | None
    offset: int | None = None
    """Of the record, where a metadata log has the change."""
    announced_by: int | None = None
    """The broker that said that it is about to make it, and has not said that it is made."""
    seen: tuple[int, str, int | None] | None = None
    """When others first tell of an ISR that was announced, and the file and the number of their line."""

    def row(self) -> dict[str, object]:
        """As rows say it."""
        row: dict[str, object] = {
            "time": iso(self.time_ms),
            "isr": list(self.isr),
            "file": self.file,
            "line": self.line,
        }
        return row if self.offset is None else {**row, "offset": self.offset}


class Observation(NamedTuple):
    """What one line says about one leader epoch; None where it does not say."""

    event: Event
    leader_epoch: int
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    controller_epoch: int | None = None
    version: int | None = None
    replicas: tuple[int, ...] | None = None
    from_state: str | None = None
    recovery_state: str | None = None
    is_mention: bool = False
    """Whether the line only mentions the epoch: it is about a later one, or says again what was decided before."""

    @property
    def rank(self) -> int:
        """How much the line proves of this epoch, 0 the most."""
        return 7 if self.is_mention else RANKS.get(self.event.event or "", 8)

    @property
    def is_exact(self) -> bool:
        """Whether the line is printed as the epoch begins, so that its time is when it began."""
        name = self.event.event or ""
        is_first_sent = name in SENT and self.controller_epoch == self.event.number("controller_epoch")
        is_first = name in FIRST_SAID and not self._is_of_new_process
        return not self.is_mention and (
            self.rank <= 1 or self.from_state is not None or is_first or is_first_sent
        )

    @property
    def is_of_earlier_term(self) -> bool:
        """Whether the controller that sends it comes after the one that decided it."""
        sent_in = self.event.number("controller_epoch")
        return sent_in is not None and self.controller_epoch is not None and self.controller_epoch < sent_in

    @property
    def _is_of_new_process(self) -> bool:
        """Whether a leader that just started says that it leads: it may have led before."""
        return self.leader_epoch > 0 and self.event.number("previous_leader_epoch") == -1


class Leadership(Struct):
    """One leader epoch of a partition."""

    topic_partition: TopicPartition
    leader_epoch: int
    leader: int | None = None
    controller_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    isr_changes: list[IsrChange] = field(default_factory=list)
    from_ms: int = 0
    to_ms: int | None = None
    last_seen_ms: int = 0
    how: str = "unknown"
    cause: str = ""
    from_state: str | None = None
    recovery_state: str | None = None
    replicas: tuple[int, ...] = ()
    proofs: list[dict[str, object]] = field(default_factory=list)
    began_before: bool = False
    """Whether `from_ms` is only when it was first seen: no line that tells of it is from when it began."""
    strength: str = SURE
    """Whether states and words decide how it began, or only that the words were said about then."""
    is_exact: bool = False
    """Whether a line tells of it that is printed as it begins."""
    is_told_late: bool = False
    """Whether the controller after the one that decided it was the first to tell of it."""
    begun_by: str | None = None
    """The template of the line in which the controller decided it."""
    removed: int | None = None
    """The replica that this decision took out of the ISR."""
    rank: int = NOT_RETURNED
    first_version: int | None = None
    """The version of the state that began it, as far as the logs say."""
    version: int | None = None
    stated: tuple[int, frozenset[int]] | None = None
    """The last version of the partition's state that came with its ISR, and this ISR."""
    cluster: int = 1
    """Its number among the clusters that followed each other on the same disks."""
    topic_id: str | None = None
    incarnation: int = 1
    """Its number among the topics of that name."""
    clock_offset_ms: int | None = None
    """How far the clock of the broker that printed the first proof is ahead: times are corrected by it."""
    is_decided: bool = False
    """Whether a metadata log tells of it, so that lines of logs only add to it."""

    @property
    def is_unclean(self) -> bool:
        """Whether the leader was elected from outside the ISR."""
        return self.how == "unclean"

    @property
    def last_isr(self) -> tuple[int, ...] | None:
        """The ISR at its end, as far as the logs say."""
        return self.isr_changes[-1].isr if self.isr_changes else self.isr

    @property
    def last_version(self) -> int | None:
        """The version of its last state: each change without one adds one."""
        if self.version is None:
            return None
        return self.version + sum(
            1 for _ in takewhile(lambda c: c.version is None, reversed(self.isr_changes))
        )

    def row(self) -> dict[str, object]:
        """The row of kind `leader`."""
        from kctl.rows.state_log import LEADER

        return LEADER(
            topic=self.topic_partition.topic,
            partition=self.topic_partition.partition,
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            controller_epoch=self.controller_epoch,
            isr=None if self.isr is None else list(self.isr),
            isr_changes=[change.row() for change in self.isr_changes],
            from_time=iso(self.from_ms),
            to_time=None if self.to_ms is None else iso(self.to_ms),
            how=self.how,
            evidence=list(self.proofs),
            cause=self.cause or None,
            began_before=self.began_before,
            cluster=self.cluster,
            strength=None if self.how == "unknown" else self.strength,
            topic_id=self.topic_id,
            incarnation=self.incarnation,
            clock_offset_ms=self.clock_offset_ms,
        )

    def contradicts(self, observation: Observation) -> bool:
        """Whether a line has another ISR in the same version, which one topic never has."""
        if self.stated is None or observation.isr is None:
            return False
        version, isr = self.stated
        return observation.version == version and isr != frozenset(observation.isr)

    def see(self, observation: Observation, time_ms: int) -> None:
        """Add what a line states."""
        if observation.version is not None and observation.isr is not None:
            self.stated = observation.version, frozenset(observation.isr)
        rank = observation.rank
        self.last_seen_ms = max(self.last_seen_ms, time_ms)
        if observation.leader is not None and (self.leader is None or rank < self.rank):
            self.leader = observation.leader
        if self.controller_epoch is None and not observation.is_mention:
            self.controller_epoch = observation.controller_epoch
        self.from_state = self.from_state or observation.from_state
        self.recovery_state = self.recovery_state or observation.recovery_state
        self.replicas = self.replicas or observation.replicas or ()
        if self.begun_by is None and rank <= 1:
            self.begun_by, self.removed = observation.event.event, observation.event.number("replica")
        self.is_told_late |= observation.is_of_earlier_term and not self.is_exact
        is_early = rank <= 1 or not self.is_told_late
        if observation.is_exact and is_early and time_ms - self.from_ms < CLOCK_SLACK:
            self.is_exact = True
        if observation.version is not None and (
            self.first_version is None or observation.version < self.first_version
        ):
            self.first_version = observation.version
        if observation.isr is not None:
            self._note_isr(observation, time_ms, rank)
        if rank < self.rank:
            self.proofs.insert(0, observation.event.proof())
            del self.proofs[3:]
            self.rank = rank
            if rank <= 2 and time_ms - self.from_ms < CLOCK_SLACK:
                self.from_ms = time_ms

    def _note_isr(self, observation: Observation, time_ms: int, rank: int) -> None:
        assert observation.isr is not None
        if self.isr is None or (rank < self.rank and rank <= 1 and not self.isr_changes):
            self.isr, self.version = observation.isr, observation.version
            return
        if observation.isr == self.last_isr:
            self._confirm_isr(observation.version, observation.event, time_ms)
            return
        if (
            observation.version is not None
            and self.version is not None
            and observation.version <= self.version
        ):
            return
        if self._is_earlier_isr(observation, time_ms):
            return
        # Without a version only the controller and the leader are believed: other brokers may lag behind.
        if observation.version is None and rank >= 5:
            return
        self.add_isr(time_ms, observation.isr, observation.version, observation.event)

    def _is_earlier_isr(self, observation: Observation, time_ms: int) -> bool:
        """Whether a line states an ISR of before the last change, which the leader announced: requests may come late.

        A controller that did not hear of the change yet, which takes seconds, states it without a version.
        """
        if not self.isr_changes or self.isr_changes[-1].announced_by is None:
            return False
        if observation.version is None and time_ms - self.isr_changes[-1].time_ms > UNHEARD:
            return False  # the leader may never have made the change
        version = self.first_version
        for isr, known in [
            (self.isr, None),
            *((change.isr, change.version) for change in self.isr_changes[:-1]),
        ]:
            if known is not None:
                version = known
            if isr == observation.isr and observation.version in (version, None):
                return True
            version = None if version is None else version + 1
        return False

    def add_isr(
        self,
        time_ms: int,
        isr: tuple[int, ...],
        version: int | None,
        event: Event,
        announced_by: int | None = None,
    ) -> None:
        """Note that the ISR changed, or that a broker is about to change it."""
        if isr == self.last_isr:
            if announced_by is None:
                self._confirm_isr(version, event, time_ms)
            return
        if self.isr is None:
            self.isr = isr
        else:
            change = IsrChange(time_ms, isr, version, event.file, event.line, announced_by=announced_by)
            self.isr_changes.append(change)
        self.version = version if version is not None else self.version

    def _confirm_isr(self, version: int | None, event: Event, time_ms: int) -> None:
        """Confirm the last ISR by a line that states it: where it was announced long before, it was made only now."""
        self.version = version if version is not None else self.version
        if self.isr_changes:
            last = self.isr_changes[-1]
            known = version if version is not None else last.version
            is_own = event.event in MADE and last.announced_by == event.broker_id is not None
            if is_own or (event.event in GRANTED and last.announced_by is not None):
                is_late = time_ms - last.time_ms > CLOCK_SLACK
                last = last._replace(announced_by=None, time_ms=time_ms if is_late else last.time_ms)
            elif last.announced_by is not None and last.seen is None:
                last = last._replace(seen=(time_ms, event.file, event.line))
            self.isr_changes[-1] = last._replace(version=known)

    def take_back(self, isr: tuple[int, ...], broker_id: int | None) -> None:
        """Take back changes that a broker announced before: it announces another one from this ISR, so it did not make them."""
        if (
            self.isr_changes
            and self.isr_changes[-1].announced_by == broker_id is not None
            and self.isr_changes[-1].seen is None
            and set(isr) != set(self.isr_changes[-1].isr)
        ):
            self.isr_changes.pop()

    def drop_announced(self, telling: Container[int], is_kraft: bool) -> None:
        """Leave out announced changes that were not made, of brokers that also log each change that they made.

        Where somebody else tells of such an ISR it was made: in a KRaft cluster, whose controllers may answer late or never,
        by then only.
        """
        changes, self.isr_changes, isr = self.isr_changes, [], self.isr
        for change in changes:
            if change.seen is not None:
                if is_kraft and change.announced_by in telling:
                    time_ms, file, line = change.seen
                    change = change._replace(time_ms=time_ms, file=file, line=line)
                change = change._replace(announced_by=None)
            if change.announced_by not in telling and change.isr != isr:
                self.isr_changes.append(change)
                isr = change.isr


def join_ends(leaderships: Sequence[Leadership]) -> None:
    """Each of a topic's leaderships ends when the next epoch begins.

    The lines that show the two beginnings may be of two brokers, and out of order by what they were late: the decision of a
    controller is the time of both.
    """
    for leadership, following in reversed(list(pairwise(leaderships))):
        if following.leader_epoch != leadership.leader_epoch + 1:
            continue
        if following.from_ms < leadership.from_ms:
            is_later = leadership.is_decided and not following.is_decided
            both_ms = leadership.from_ms if is_later else following.from_ms
            leadership.from_ms = following.from_ms = both_ms
        leadership.to_ms = following.from_ms


class _Topic(Struct):
    """What is known of one topic; several may have had the name, one after the other."""

    epochs: dict[int, Leadership] = field(default_factory=dict)
    ended_ms: int | None = None
    topic_id: str | None = None


class PartitionHistory:
    """The leaderships of one partition, of one topic of that name after the other."""

    def __init__(
        self, topic_partition: TopicPartition, *, is_doubtful: bool = False, cluster: int = 1
    ) -> None:
        self.topic_partition = topic_partition
        self.cluster = cluster
        # The last epoch that a controller decided, or a broker said it leads in, by the folder of its logs.
        self._said: dict[tuple[str, int | None], int] = {}
        # Where the order of brokers' lines is not known, what follows a creation may have come before it.
        self.is_doubtful = is_doubtful
        # A topic that is deleted and made again starts with epoch 0 again.
        self.topics = [_Topic()]
        self._announced: tuple[int, str, Event] | None = None
        # The first leader epoch that a controller named in its term, by controller epoch.
        self._first_named: dict[int, int] = {}

    @property
    def epochs(self) -> dict[int, Leadership]:
        """The leaderships of the topic that has the name now."""
        return self.topics[-1].epochs

    @property
    def current(self) -> Leadership | None:
        """The leadership with the highest epoch."""
        return self.epochs[max(self.epochs)] if self.epochs else None

    def changed_from(self, isr: frozenset[int], current: Leadership, time_ms: int) -> Leadership:
        """The leadership whose leader changed this ISR: the one before, where only that had it.

        Another broker whose clock is behind may have told of the newer epoch already.
        """
        if time_ms - current.from_ms > CLOCK_SLACK:
            return current
        before = self.epochs.get(current.leader_epoch - 1)
        if before is None or before.leader != current.leader or isr == set(current.last_isr or isr):
            return current
        return before if isr == set(before.last_isr or ()) else current

    @property
    def is_over(self) -> bool:
        """Whether its topic, or its cluster, is gone."""
        return self.topics[-1].ended_ms is not None

    def has_just_begun(self, time_ms: int) -> bool:
        """Whether the topic that has the name was created by now: a broker hears of it, and its clock is a little behind."""
        first = self.epochs.get(0)
        return (
            not self.is_over
            and len(self.epochs) == 1
            and first is not None
            and 0 <= time_ms - first.from_ms < CLOCK_SLACK
        )

    def begin_again(self) -> None:
        """Begin a new topic of this name: what follows is about that one."""
        if self.epochs and (self.is_over or not self.is_doubtful):
            self.topics.append(_Topic())
            # What was said of the topic before says nothing of this one.
            self._said.clear()
            self._first_named.clear()

    def end(self, time_ms: int) -> None:
        """Note that the topic was deleted."""
        if self.epochs and not self.is_over:
            self.topics[-1].ended_ms = time_ms

    def announce(self, leader: int, from_state: str, event: Event, time_ms: int) -> None:
        """Note a transition without an epoch, as controllers log it until 1.0: of the epoch that just began, or of the next.

        They print one too for an election that was not needed, of a leader that is online already.
        """
        current = self.current
        # A leader is selected (E15) before it is written, which may take long.
        is_awaited = from_state == "OfflinePartition" and current is not None and current.begun_by == "E15"
        if (
            current is not None
            and current.leader == leader
            and ((is_awaited and current.from_state is None) or time_ms - current.from_ms < CLOCK_SLACK)
        ):
            _announced(current, from_state, event)
        elif current is None or current.leader != leader or from_state != "OnlinePartition":
            self._announced = leader, from_state, event

    def _is_decided_in_term(self, observation: Observation) -> bool:
        """Whether the controller decided this epoch: it had named an earlier one in the same term."""
        term = observation.event.number("controller_epoch")
        if term is None:
            return False
        return self._first_named.setdefault(term, observation.leader_epoch) < observation.leader_epoch

    def observe(
        self, observation: Observation, time_ms: int, *, is_retold: bool = False
    ) -> Leadership | None:
        """The leadership that a line is about, with what it says; None where the partition is deleted.

        `is_retold`: the controller has just begun, and logs all states again.
        """
        if not self._is_decided_in_term(observation) and is_retold:
            observation = observation._replace(is_mention=True)
        if observation.leader == LEADER_DURING_DELETE:
            self.end(time_ms)
            return None
        if self._epochs_begin_again(observation, time_ms):
            self.end(time_ms)
            self.begin_again()
        known = self.epochs.get(observation.leader_epoch)
        if known is None:
            known = self.epochs[observation.leader_epoch] = Leadership(
                self.topic_partition, observation.leader_epoch, from_ms=time_ms, cluster=self.cluster
            )
            is_decision = observation.rank <= 1 or observation.from_state is not None
            known.began_before = len(self.epochs) == 1 and not is_decision and observation.leader_epoch != 0
            if self._announced and observation.leader == self._announced[0]:
                _announced(known, *self._announced[1:])
            self._announced = None
        known.see(observation, time_ms)
        return known

    def _epochs_begin_again(self, observation: Observation, time_ms: int) -> bool:
        """Whether the line is of a topic that was deleted and made again, whose epochs begin anew."""
        name = observation.event.event or ""
        same = self.epochs.get(observation.leader_epoch)
        if same is not None and same.contradicts(observation):
            topic_id = self.topics[-1].topic_id
            if topic_id and observation.event.fields.get("topic_id") == topic_id:
                return False  # a KRaft controller printed a decision that it could not commit
            return time_ms - same.from_ms > CLOCK_SLACK and not self.is_doubtful
        if name not in FIRST_SAID or not self.epochs:
            return False
        # What a controller decided, and what a broker was told later, each have an order of their own.
        broker_id = None if name == "C15" else observation.event.broker_id
        speaker = os.path.dirname(observation.event.source.path), broker_id
        before = self._said.get(speaker, observation.leader_epoch)
        self._said[speaker] = observation.leader_epoch
        first = self.epochs.get(0)
        if name == "C15" and observation.from_state == "NewPartition" and first is not None:
            return time_ms - first.from_ms > CLOCK_SLACK and not self.is_doubtful
        return observation.leader_epoch < before

    def finished(self) -> Iterator[list[Leadership]]:
        """The leaderships of each topic of the name in order of epochs, with ends, gaps named as such."""
        for incarnation, topic in enumerate((topic for topic in self.topics if topic.epochs), 1):
            known = [topic.epochs[epoch] for epoch in sorted(topic.epochs)]
            leaderships = list(self._with_ends(known, topic.ended_ms))
            for leadership in leaderships:
                leadership.topic_id, leadership.incarnation = topic.topic_id, incarnation
            yield leaderships

    def _with_ends(self, leaderships: list[Leadership], ended: int | None) -> Iterator[Leadership]:
        for number, leadership in enumerate(leaderships):
            yield leadership
            following = leaderships[number + 1] if number + 1 < len(leaderships) else None
            if following is None:
                leadership.to_ms = ended
                return
            is_late = leadership.began_before or following.from_ms - leadership.from_ms > CLOCK_SLACK
            following.began_before |= is_late and not following.is_exact
            leadership.to_ms = max(following.from_ms, leadership.from_ms)
            missing = range(leadership.leader_epoch + 1, following.leader_epoch)
            if missing:
                leadership.to_ms = min(max(leadership.last_seen_ms, leadership.from_ms), leadership.to_ms)
            for epoch in missing[:100]:
                yield Leadership(
                    self.topic_partition,
                    epoch,
                    from_ms=leadership.to_ms,
                    to_ms=following.from_ms,
                    last_seen_ms=leadership.to_ms,
                    cause=MISSING,
                    cluster=self.cluster,
                )


def _announced(leadership: Leadership, from_state: str, event: Event) -> None:
    leadership.from_state = leadership.from_state or from_state
    if leadership.rank > 0 and not any(proof["event"] == event.event for proof in leadership.proofs):
        leadership.proofs.insert(0, event.proof())
        leadership.rank = min(leadership.rank, 1)
        time_ms = event.time_ms
        leadership.from_ms = time_ms if time_ms is not None else leadership.from_ms
        leadership.began_before, leadership.is_exact = False, True


def where_of(proof: Mapping[str, object]) -> str:
    """Where in its file a proof stands: `line 12`, or `offset 12` of a metadata log; else what it says."""
    for unit in ("offset", "line"):
        if proof.get(unit) is not None:
            return f"{unit} {proof[unit]}"
    return str(proof.get("text") or "no line says where")


def shown_by(proof: Mapping[str, Any]) -> dict[str, Any]:
    """File and line of a proof, as the place of a finding takes them."""
    return {"file": proof.get("file") or None, "line": proof.get("line")}


def place_of(proof: Mapping[str, Any]) -> str:
    """Where a proof stands: `controller.log:12`, or the folder of a metadata log and the offset."""
    if not proof:
        return "no line says where"
    if proof.get("line") is not None:
        return f"{proof['file']}:{proof['line']}"
    offset = proof.get("offset")
    return str(proof["file"]) if offset is None else f"{proof['file']}, offset {offset}"
