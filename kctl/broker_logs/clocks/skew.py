"""How far brokers' clocks are apart, from pairs of lines of which one must have come before the other.

What a controller sends, a broker receives later; what a broker answers, the controller receives later. Each
pair of times bounds how far the one clock can be ahead of the other; with pairs in both directions the bounds
close in from both sides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from formats.values import Struct, field
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.broker_logs.events import Event

DECIDED = frozenset(("C15", "C20", "E15", "E17"))
SENT = frozenset(("C01", "C02"))
RECEIVED = frozenset(("B01", "B02"))
STARTED = frozenset(("L01", "L02", "L03", "L04"))
HANDLED = frozenset(("B01", "B02", "B08", "B09", "B36", "B37"))
ANSWERED = "C12"
WANTED = DECIDED | STARTED | SENT | RECEIVED | HANDLED | {ANSWERED}
NODE = re.compile(r"\(id: (\d{1,19})|\bid:(\d{1,19}),")
MOST = 200_000
# Requests take some milliseconds; a smallest delay beyond this is a difference of clocks.
PLAUSIBLE = 2_000
ENOUGH = 5
# By how many milliseconds bounds may contradict each other: times are rounded.
ROUNDED = 10
# Lines about one request are not further apart than this.
SAME = 5_000


class State(NamedTuple):
    """A state of a partition that a controller decides or sends, and that brokers hear of."""

    topic_partition: TopicPartition
    leader_epoch: int
    controller_id: int | None = None
    """Who sent it, None for the decision itself."""
    controller_epoch: int | None = None


class HandledRequest(NamedTuple):
    """A request that a broker handles and a controller sees answered."""

    controller_id: int
    controller_epoch: int
    broker_id: int
    correlation_id: int


class ClockBounds(Struct):
    """How far a broker's clock is ahead of another's, in milliseconds."""

    at_least: int | None = None
    at_most: int | None = None
    pairs: int = 0

    def add(self, *, at_least: int | None = None, at_most: int | None = None) -> None:
        """Take one more pair into account."""
        self.pairs += 1
        if at_least is not None:
            self.at_least = at_least if self.at_least is None else max(self.at_least, at_least)
        if at_most is not None:
            self.at_most = at_most if self.at_most is None else min(self.at_most, at_most)

    @property
    def estimate(self) -> int:
        """The middle of the bounds; 0 where they allow that the clocks agree."""
        low, high = self.at_least, self.at_most
        if low is not None and high is not None:
            if low > high:
                # The sending that was paired was not the first: what requests say is left.
                return max(low, 0)
            return 0 if low <= 0 <= high else (low + high) // 2
        if high is not None:
            return high if high < 0 or (high > PLAUSIBLE and self.pairs >= ENOUGH) else 0
        return max(low or 0, 0)


class Skew(Struct):
    """Clocks of brokers against that of the broker that most pairs lead to."""

    bounds: dict[tuple[int, int], ClockBounds] = field(default_factory=dict)
    """(a, b): how far the clock of b is ahead of that of a."""
    ahead: dict[int, int] = field(default_factory=dict)
    reference: int | None = None

    def shifts(self) -> dict[int | None, int]:
        """What to add to each broker's times to put them in order."""
        return {broker_id: -offset for broker_id, offset in self.ahead.items() if offset}

    def sentences(self) -> list[str]:
        """The estimate in words."""
        if self.reference is None:
            return ["clock skew: no two lines of different brokers that must be in order"]
        out = []
        for broker_id, offset in sorted(self.ahead.items()):
            if offset:
                side = "ahead of" if offset > 0 else "behind"
                out.append(
                    f"the clock of broker {broker_id} is about {abs(offset)} ms {side} that of broker {self.reference}"
                )
        return out or ["clock skew: every pair of lines is in order"]


class OrderedPairs(Struct):
    sent: dict[State, dict[int, int]] = field(default_factory=dict)
    received: dict[tuple[State, int], int] = field(default_factory=dict)
    handled: dict[HandledRequest, tuple[int, int]] = field(default_factory=dict)
    answered: dict[HandledRequest, list[int]] = field(default_factory=dict)

    def note(self, event: Event) -> None:
        """Remember when a state was sent and received, a request handled and answered."""
        name = event.event or ""
        time_ms, broker_id = event.logged_ms, event.broker_id
        if time_ms is None or broker_id is None or len(self.received) + len(self.handled) > MOST:
            return
        state = state_of(event, is_request=name in SENT or name in RECEIVED)
        if state is not None and (name in SENT or name in DECIDED):
            by = self.sent.setdefault(state, {})
            by[broker_id] = min(time_ms, by.get(broker_id, time_ms))
        elif state is not None and (name in RECEIVED or name in STARTED):
            key = state, broker_id
            self.received[key] = min(time_ms, self.received.get(key, time_ms))
        if name in HANDLED:
            request = _request(event, broker_id)
            if request is not None:
                first, last = self.handled.get(request, (time_ms, time_ms))
                self.handled[request] = min(first, time_ms), max(last, time_ms)
        elif name == ANSWERED:
            node = NODE.search(str(event.fields.get("node", "")))
            request = _request(event, int(node[1] or node[2])) if node else None
            if request is not None:
                self.answered.setdefault(request, []).append(time_ms)

    def bounds(self) -> dict[tuple[int, int], ClockBounds]:
        """What the pairs say. A state that several controllers sent, and a request whose number was used again
        after a broker came back, pair with nothing."""
        bounds_of_pair: dict[tuple[int, int], ClockBounds] = {}
        for request, (first, last) in self.handled.items():
            answered = self.answered.get(request, ())
            if len(answered) == 1 and last - first < SAME and request.broker_id != request.controller_id:
                key = request.controller_id, request.broker_id
                bounds_of_pair.setdefault(key, ClockBounds()).add(at_least=last - answered[0])
        for (state, receiver), received in self.received.items():
            by = self.sent.get(state, {})
            if len(by) == 1 and receiver not in by:
                ((sender, sent),) = by.items()
                bounds = bounds_of_pair.setdefault((sender, receiver), ClockBounds())
                # It is received only later: that it was sent before is in a part of the log that was not read.
                if bounds.at_least is None or received - sent >= bounds.at_least - ROUNDED:
                    bounds.add(at_most=received - sent)
        return {pair: bounds for pair, bounds in bounds_of_pair.items() if bounds.pairs}


def state_of(event: Event, *, is_request: bool) -> State | None:
    """The state that a line is about: as a decision by its leader epoch, as a request also by who sent it."""
    partition = event.topic_partition
    epoch: object = event.fields.get("leader_epoch")
    for name in ("state", "partition_state", "leader_and_isr"):
        state = event.fields.get(name)
        if isinstance(state, dict):
            epoch = state.get("leader_epoch")
    if partition is None or not isinstance(epoch, int):
        return None
    if not is_request:
        return State(partition, epoch)
    return State(partition, epoch, event.number("controller_id"), event.number("controller_epoch"))


def _request(event: Event, broker_id: int) -> HandledRequest | None:
    controller, epoch, number = (
        event.number(name) for name in ("controller_id", "controller_epoch", "correlation_id")
    )
    if controller is None or epoch is None or number is None:
        return None
    return HandledRequest(controller, epoch, broker_id, number)


def estimate_skew(events: Iterable[Event]) -> Skew:
    """The clocks' offsets, by who sent, received and answered the same things."""
    pairs = OrderedPairs()
    for event in events:
        pairs.note(event)
    skew = Skew(pairs.bounds())
    counts: dict[int, int] = {}
    for (a, b), bounds in skew.bounds.items():
        counts[a] = counts.get(a, 0) + bounds.pairs
        counts[b] = counts.get(b, 0) + bounds.pairs
    if counts:
        skew.reference = max(sorted(counts), key=lambda broker_id: counts[broker_id])
        _spread(skew, skew.reference)
    return skew


def _spread(skew: Skew, reference: int) -> None:
    """Offsets against the reference, over other brokers where no pair leads there directly."""
    known = {reference: 0}
    waiting = [reference]
    while waiting:
        here = waiting.pop(0)
        for a, b in sorted(skew.bounds):
            if here in (a, b):
                other = b if a == here else a
                if other not in known:
                    known[other] = known[here] + _between(skew, here, other).estimate
                    waiting.append(other)
    skew.ahead = {broker_id: offset for broker_id, offset in known.items() if broker_id != reference}


def _between(skew: Skew, here: int, there: int) -> ClockBounds:
    """Both directions together."""
    both = ClockBounds()
    forth, back = skew.bounds.get((here, there)), skew.bounds.get((there, here))
    if forth is not None:
        both.add(at_least=forth.at_least, at_most=forth.at_most)
        both.pairs += forth.pairs - 1
    if back is not None:
        both.add(
            at_least=None if back.at_most is None else -back.at_most,
            at_most=None if back.at_least is None else -back.at_least,
        )
        both.pairs += back.pairs - 1
    return both
