"""Who led a partition in which leader epoch, put together from every line that says something about it.

The controller decides a leadership and prints it; brokers print what they were told. Each line is an
observation of one leader epoch: the best of them proves it, the others fill in what it does not say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kctl.broker_logs.events import Event
from kctl.broker_logs.zones import iso
from kctl.model import TopicPartition

NO_LEADER = -1
LEADER_DURING_DELETE = -2
# How much a line proves: the controller's decision, the new leader's own words, what was sent, what was heard.
RANKS = {
    "C15": 0, "C20": 0, "E17": 0, "E15": 1, "Q01": 0, "Q02": 0, "Q03": 0, "Q04": 2, "Q05": 0, "Q06": 0,
    "C28": 1, "C29": 1, "L01": 2, "L03": 2, "S12": 2, "S13": 2, "C01": 3, "C02": 3, "C04": 4, "C05": 4, "C06": 4,
    "L04": 4, "L06": 5, "L08": 5, "B01": 5, "B02": 5, "L02": 5, "B36": 6, "E24": 6,
}  # fmt: skip
# A broker's lines may come a little before the controller's where clocks differ.
CLOCK_SLACK = 2_000


class IsrChange(NamedTuple):
    """A change of the ISR within a leader epoch."""

    time_ms: int
    isr: tuple[int, ...]
    version: int | None
    file: str
    line: int

    def row(self) -> dict[str, object]:
        """As rows say it."""
        return {"time": iso(self.time_ms), "isr": list(self.isr), "file": self.file, "line": self.line}


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


@dataclass
class Leadership:
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
        )

    def see(self, seen: Observation, time_ms: int) -> None:
        """Take over what a line says."""
        rank = RANKS.get(seen.event.event or "", 8)
        self.last_seen_ms = max(self.last_seen_ms, time_ms)
        if seen.leader is not None and (self.leader is None or rank < self.rank):
            self.leader = seen.leader
        if self.controller_epoch is None:
            self.controller_epoch = seen.controller_epoch
        self.from_state = self.from_state or seen.from_state
        self.recovery_state = self.recovery_state or seen.recovery_state
        self.replicas = seen.replicas or self.replicas
        if seen.isr is not None:
            self._see_isr(seen, time_ms, rank)
        if rank < self.rank:
            self.proofs.insert(0, seen.event.proof())
            del self.proofs[3:]
            self.rank = rank
            if rank <= 2 and time_ms - self.from_ms < CLOCK_SLACK:
                self.from_ms = time_ms

    def _see_isr(self, seen: Observation, time_ms: int, rank: int) -> None:
        assert seen.isr is not None
        if self.isr is None or (rank < self.rank and rank <= 1 and not self.isr_changes):
            self.isr, self.version = seen.isr, seen.version
            return
        if seen.isr == self.last_isr:
            self.version = seen.version if seen.version is not None else self.version
            return
        if seen.version is not None and self.version is not None and seen.version <= self.version:
            return
        # Without a version only the controller and the leader are believed: other brokers may lag behind.
        if seen.version is None and rank >= 5:
            return
        self.add_isr(time_ms, seen.isr, seen.version, seen.event)

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

    def __init__(self, topic_partition: TopicPartition, *, is_doubtful: bool = False) -> None:
        self.topic_partition = topic_partition
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

    def observe(self, seen: Observation, time_ms: int) -> Leadership | None:
        """Take a line into account; None where it says that there is no such partition any more."""
        if seen.leader == LEADER_DURING_DELETE:
            self.end(time_ms)
            return None
        known = self.epochs.get(seen.leader_epoch)
        if known is None:
            known = self.epochs[seen.leader_epoch] = Leadership(
                self.topic_partition, seen.leader_epoch, from_ms=time_ms
            )
            known.began_before = len(self.epochs) == 1 and not is_beginning(seen)
            if self._announced and seen.leader == self._announced[0]:
                _announced(known, *self._announced[1:])
            self._announced = None
        known.see(seen, time_ms)
        return known

    def finished(self) -> Iterator[list[Leadership]]:
        """The leaderships of each topic of the name in order of epochs, with ends, gaps named as such."""
        for epochs, ended in zip(self.lives, self.ended, strict=True):
            found = [epochs[epoch] for epoch in sorted(epochs)]
            if found:
                yield list(self._with_ends(found, ended))

    def _with_ends(self, found: list[Leadership], ended: int | None) -> Iterator[Leadership]:
        for number, one in enumerate(found):
            yield one
            following = found[number + 1] if number + 1 < len(found) else None
            if following is None:
                one.to_ms = ended
                return
            one.to_ms = max(following.from_ms, one.from_ms)
            missing = range(one.leader_epoch + 1, following.leader_epoch)
            if missing:
                one.to_ms = min(max(one.last_seen_ms, one.from_ms), one.to_ms)
            for epoch in missing[:100]:
                yield Leadership(
                    self.topic_partition,
                    epoch,
                    from_ms=one.to_ms,
                    to_ms=following.from_ms,
                    cause="not in these logs",
                )


def _announced(one: Leadership, from_state: str, event: Event) -> None:
    one.from_state = one.from_state or from_state
    if one.rank > 0 and not any(proof["event"] == event.event for proof in one.proofs):
        one.proofs.insert(0, event.proof())
        one.rank = min(one.rank, 1)
        time_ms = event.time_ms
        one.from_ms = time_ms if time_ms is not None else one.from_ms
        one.began_before = False


def is_beginning(seen: Observation) -> bool:
    """Whether a line is the decision itself, not a later mention of it."""
    return RANKS.get(seen.event.event or "", 8) <= 1 or seen.from_state is not None or seen.leader_epoch == 0
