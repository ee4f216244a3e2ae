"""How the high watermark travels: FETCH requests of followers, round by round.

A follower learns the high watermark from the answer to a fetch; the leader learns that data arrived only from
the offset of the next fetch. Up to 0.8.1.1 the broker updates the position first and reads then, since 0.8.2 it
reads first, so that the answer carries the high watermark from before the update, unless nothing was there to
send and the request was parked. 2.4.0 to 2.5.1 answer a parked request at once when there is a newer high
watermark (KIP-392; removed in 2.6.0).

Source: core/src/main/scala/kafka/server/KafkaApis.scala @ 0.8.1.1;
core/src/main/scala/kafka/server/ReplicaManager.scala @ 0.8.2.1, 2.3.1, 2.5.1, 2.6.0;
core/src/main/scala/kafka/server/DelayedFetch.scala @ 0.8.2.1, 3.9.0-rc3
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from kctl.replication.high_watermark import follower_high_watermark


class FetchOrder(enum.StrEnum):
    """What the broker does first with a follower's fetch."""

    UPDATE_THEN_READ = "update_then_read"  # 0.8.0 to 0.8.1.1
    READ_THEN_UPDATE = "read_then_update"  # 0.8.2.0 and later


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """What a leader sends back: records from `first_offset` on, and a high watermark."""

    first_offset: int
    count: int
    high_watermark: int


@dataclass(slots=True)
class Follower:
    """A follower's own view."""

    log_end_offset: int = 0
    high_watermark: int = 0


@dataclass
class FetchRounds:
    """A leader whose followers are all in the ISR, one step at a time."""

    followers: dict[str, Follower]
    order: FetchOrder = FetchOrder.READ_THEN_UPDATE
    answers_newer_high_watermark: bool = False
    fetch_min_bytes: int = 1
    log_end_offset: int = 0
    high_watermark: int = 0
    remote: dict[str, int] = field(default_factory=dict)
    answers: dict[str, FetchAnswer] = field(default_factory=dict)
    parked: dict[str, int] = field(default_factory=dict)
    last_sent: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.remote = {name: follower.log_end_offset for name, follower in self.followers.items()}

    def produce(self, count: int) -> None:
        """The leader appends; parked fetches wake up and are read again."""
        self.log_end_offset += count
        self._advance()
        for name in list(self.parked):
            if self.log_end_offset - self.parked[name] >= self.fetch_min_bytes:
                self.fetch_wait_expires(name)

    def fetch(self, name: str) -> None:
        """A follower's fetch arrives: answered at once, or parked."""
        offset = self.followers[name].log_end_offset
        before = self.high_watermark
        self.remote[name] = offset
        self._advance()
        shown = self.high_watermark if self.order is FetchOrder.UPDATE_THEN_READ else before
        if self.log_end_offset - offset >= self.fetch_min_bytes:
            self._answer(name, offset, shown)
        elif self.answers_newer_high_watermark and self.high_watermark > self.last_sent.get(name, -1):
            self._answer(name, offset, self.high_watermark)
        else:
            self.parked[name] = offset

    def fetch_wait_expires(self, name: str) -> None:
        """A parked fetch completes: it is read again, with the high watermark of now."""
        self._answer(name, self.parked.pop(name), self.high_watermark)

    def deliver(self, name: str) -> None:
        """The follower gets its answer, appends, and sets its high watermark."""
        answer, follower = self.answers.pop(name), self.followers[name]
        follower.log_end_offset += answer.count
        follower.high_watermark = follower_high_watermark(
            log_end_offset=follower.log_end_offset,
            leader_high_watermark=answer.high_watermark,
            log_start_offset=0,
        )

    def _answer(self, name: str, offset: int, high_watermark: int) -> None:
        self.answers[name] = FetchAnswer(offset, self.log_end_offset - offset, high_watermark)
        self.last_sent[name] = high_watermark

    def _advance(self) -> None:
        self.high_watermark = max(self.high_watermark, min([self.log_end_offset, *self.remote.values()]))
