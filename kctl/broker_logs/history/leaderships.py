"""Who led a partition in which leader epoch, put together from every line that says something about it.

The controller decides a leadership and prints it; brokers print what they were told. Each line is an
observation of one leader epoch: the best of them proves it, the others fill in what it does not say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from formats.values import Struct, field
from kctl.broker_logs.events import Event
from kctl.model import TopicPartition
from kctl.times import iso

NO_LEADER = -1
LEADER_DURING_DELETE = -2
# How much a line proves: the controller's decision, the new leader's own words, what was sent, what was heard.
RANKS = {
    "C15": 0, "C20": 0, "E17": 0, "E15": 1, "Q01": 0, "Q02": 0, "Q03": 0, "Q04": 2, "Q05": 0, "Q06": 0,
    "C28": 1, "C29": 1, "L01": 2, "L03": 2, "S12": 2, "S13": 2, "C01": 3, "C02": 3, "C04": 4, "C05": 4, "C06": 4,
    "L04": 4, "L06": 5, "L08": 5, "L12": 5, "L13": 5, "B01": 5, "B02": 5, "L02": 5, "B36": 6, "E24": 6,
}  # fmt: skip
# Lines that are printed once for an epoch, when it begins; in the order of epochs where one process follows another.
FIRST_SAID = frozenset(("C15", "L01", "L03", "S12", "S13"))
# A broker's lines may come a little before the controller's where clocks differ.
CLOCK_SLACK = 2_000


class IsrChange(NamedTuple):
    """A change of the ISR within a leader epoch."""

    time_ms: int
    isr: tuple[int, ...]
    version: int | None
    file: str
    line: int | None
    offset: int | None = None
    """Of the record, where a metadata log has the change."""

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
    """Whether it had begun when the logs begin, so that `from_ms` is only when it was first seen."""
    rank: int = 9
    version: int | None = None
    stated: tuple[int, frozenset[int]] | None = None
    """The last version of the partition's state that came with its ISR, and this ISR."""
    cluster: int = 1
    """Its number among the clusters that followed each other on the same disks."""
    topic_id: str | None = None
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
        )

    def contradicts(self, observation: Observation) -> bool:
        """Whether a line has another ISR in the same version, which one topic never has."""
        if self.stated is None or observation.isr is None:
            return False
        version, isr = self.stated
        return observation.version == version and isr != frozenset(observation.isr)

    def see(self, observation: Observation, time_ms: int) -> None:
        """Take over what a line says."""
        if observation.version is not None and observation.isr is not None:
            self.stated = observation.version, frozenset(observation.isr)
        rank = RANKS.get(observation.event.event or "", 8)
        self.last_seen_ms = max(self.last_seen_ms, time_ms)
        if observation.leader is not None and (self.leader is None or rank < self.rank):
            self.leader = observation.leader
        if self.controller_epoch is None:
            self.controller_epoch = observation.controller_epoch
        self.from_state = self.from_state or observation.from_state
        self.recovery_state = self.recovery_state or observation.recovery_state
        self.replicas = observation.replicas or self.replicas
        if observation.isr is not None:
            self._see_isr(observation, time_ms, rank)
        if rank < self.rank:
            self.proofs.insert(0, observation.event.proof())
            del self.proofs[3:]
            self.rank = rank
            if rank <= 2 and time_ms - self.from_ms < CLOCK_SLACK:
                self.from_ms = time_ms

    def _see_isr(self, observation: Observation, time_ms: int, rank: int) -> None:
        assert observation.isr is not None
        if self.isr is None or (rank < self.rank and rank <= 1 and not self.isr_changes):
            self.isr, self.version = observation.isr, observation.version
            return
        if observation.isr == self.last_isr:
            self.version = observation.version if observation.version is not None else self.version
            return
        if (
            observation.version is not None
            and self.version is not None
            and observation.version <= self.version
        ):
            return
        # Without a version only the controller and the leader are believed: other brokers may lag behind.
        if observation.version is None and rank >= 5:
            return
        self.add_isr(time_ms, observation.isr, observation.version, observation.event)

    def add_isr(self, time_ms: int, isr: tuple[int, ...], version: int | None, event: Event) -> None:
        """Note that the ISR changed."""
        if isr == self.last_isr:
            self.version = version if version is not None else self.version
            return
        if self.isr is None:
            self.isr = isr
        else:
            self.isr_changes.append(IsrChange(time_ms, isr, version, event.file, event.line))
        self.version = version if version is not None else self.version


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
        # A topic that is deleted and made again starts with epoch 0 again: one dict for each.
        self.lives: list[dict[int, Leadership]] = [{}]
        self.ended: list[int | None] = [None]
        self.topic_ids: list[str | None] = [None]
        self._announced: tuple[int, str, Event] | None = None

    @property
    def epochs(self) -> dict[int, Leadership]:
        """The leaderships of the topic that has the name now."""
        return self.lives[-1]

    @property
    def current(self) -> Leadership | None:
        """The leadership with the highest epoch."""
        return self.epochs[max(self.epochs)] if self.epochs else None

    @property
    def is_over(self) -> bool:
        """Whether its topic, or its cluster, is gone."""
        return self.ended[-1] is not None

    def begin_again(self) -> None:
        """A topic of this name was created: what follows is about that one."""
        if self.epochs and (self.ended[-1] is not None or not self.is_doubtful):
            self.lives.append({})
            self.ended.append(None)
            self.topic_ids.append(None)

    def end(self, time_ms: int) -> None:
        """The topic was deleted."""
        if self.epochs and self.ended[-1] is None:
            self.ended[-1] = time_ms

    def announce(self, leader: int, from_state: str, event: Event, time_ms: int) -> None:
        """A transition without its epoch, as controllers print until 1.0: it is the epoch that just began or the next."""
        current = self.current
        if current is not None and current.leader == leader and time_ms - current.from_ms < CLOCK_SLACK:
            _announced(current, from_state, event)
        else:
            self._announced = leader, from_state, event

    def observe(self, observation: Observation, time_ms: int) -> Leadership | None:
        """Take a line into account; None where it says that no such partition any more."""
        if observation.leader == LEADER_DURING_DELETE:
            self.end(time_ms)
            return None
        if self._falls(observation, time_ms):
            self.end(time_ms)
            self.begin_again()
        known = self.epochs.get(observation.leader_epoch)
        if known is None:
            known = self.epochs[observation.leader_epoch] = Leadership(
                self.topic_partition, observation.leader_epoch, from_ms=time_ms, cluster=self.cluster
            )
            known.began_before = len(self.epochs) == 1 and not is_beginning(observation)
            if self._announced and observation.leader == self._announced[0]:
                _announced(known, *self._announced[1:])
            self._announced = None
        known.see(observation, time_ms)
        return known

    def _falls(self, observation: Observation, time_ms: int) -> bool:
        """Whether its epochs begin again, as those of a topic do that was deleted and made again."""
        name = observation.event.event or ""
        same = self.epochs.get(observation.leader_epoch)
        if same is not None and same.contradicts(observation):
            if self.topic_ids[-1] and observation.event.fields.get("topic_id") == self.topic_ids[-1]:
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
        for epochs, ended, topic_id in zip(self.lives, self.ended, self.topic_ids, strict=True):
            leaderships = [epochs[epoch] for epoch in sorted(epochs)]
            if leaderships:
                leaderships[0].topic_id = topic_id
                yield list(self._with_ends(leaderships, ended))

    def _with_ends(self, leaderships: list[Leadership], ended: int | None) -> Iterator[Leadership]:
        for number, leadership in enumerate(leaderships):
            yield leadership
            following = leaderships[number + 1] if number + 1 < len(leaderships) else None
            if following is None:
                leadership.to_ms = ended
                return
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
                    cause="not in these logs",
                    cluster=self.cluster,
                )


def _announced(leadership: Leadership, from_state: str, event: Event) -> None:
    leadership.from_state = leadership.from_state or from_state
    if leadership.rank > 0 and not any(proof["event"] == event.event for proof in leadership.proofs):
        leadership.proofs.insert(0, event.proof())
        leadership.rank = min(leadership.rank, 1)
        time_ms = event.time_ms
        leadership.from_ms = time_ms if time_ms is not None else leadership.from_ms
        leadership.began_before = False


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
    if proof.get("line") is not None:
        return f"{proof['file']}:{proof['line']}"
    offset = proof.get("offset")
    return str(proof["file"]) if offset is None else f"{proof['file']}, offset {offset}"


def is_beginning(observation: Observation) -> bool:
    """Whether a line is the decision itself, not a later mention of it."""
    return (
        RANKS.get(observation.event.event or "", 8) <= 1
        or observation.from_state is not None
        or observation.leader_epoch == 0
    )
