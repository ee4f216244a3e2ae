"""How far brokers' clocks are apart, from pairs of lines of which one must have come before the other.

What a controller sends a broker receives later: a receipt that carries an earlier time than the sending shows
that the receiver's clock is behind by at least that much. With messages in both directions the offset between
two clocks is bounded from both sides; the middle of the bounds is the estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kctl.broker_logs.events import Event
from kctl.model import TopicPartition

# Lines of a controller about a request, and of a broker about the same one.
SENT = frozenset(("C01", "C02", "C06"))
RECEIVED = {"B01": "state", "B02": "state", "B36": "state"}
STARTS = frozenset(("L01", "L03", "L02", "L04"))
ANSWERED = frozenset(("C12",))
MOST = 100_000


@dataclass(slots=True)
class Offset:
    """Bounds of how far the clock of one broker is ahead of another's, in milliseconds."""

    at_least: int | None = None
    at_most: int | None = None
    pairs: int = 0

    @property
    def estimate(self) -> int | None:
        """The middle of the bounds; 0 where both directions allow it, the one bound where only one is known."""
        low, high = self.at_least, self.at_most
        if low is not None and low > 0:
            return low if high is None or high < low else min(high, low)
        if high is not None and high < 0:
            return high if low is None or low > high else max(low, high)
        return 0 if low is not None or high is not None else None


@dataclass
class Skew:
    """Offsets of brokers' clocks against that of the broker that most pairs lead to."""

    offsets: dict[tuple[int, int], Offset] = field(default_factory=dict)
    ahead: dict[int, int] = field(default_factory=dict)
    """Milliseconds that each broker's clock is ahead of the reference's."""
    reference: int | None = None

    def shifts(self) -> dict[int | None, int]:
        """What to add to each broker's times to put them in order."""
        return {broker_id: -offset for broker_id, offset in self.ahead.items() if offset}

    def sentences(self) -> list[str]:
        """The estimate in words."""
        if self.reference is None:
            return ["clock skew: no pair of lines of two brokers that must be in order"]
        out = []
        for broker_id, offset in sorted(self.ahead.items()):
            if broker_id != self.reference and offset:
                side = "ahead of" if offset > 0 else "behind"
                out.append(
                    f"clock of broker {broker_id} is at least {abs(offset)} ms {side} that of broker {self.reference}"
                )
        return out or ["clock skew: every pair of lines is in order"]


def estimate_skew(events: Iterable[Event]) -> Skew:
    """The clocks' offsets, from who sent and who received the same state of the same partition."""
    sent: dict[tuple[TopicPartition, int, int, int], tuple[int, int]] = {}
    skew = Skew()
    for event in events:
        name = event.event or ""
        if name == "C15" or name in SENT:
            _note_sent(event, sent)
        elif name in RECEIVED or name in STARTS:
            _note_received(event, sent, skew)
        elif name in ANSWERED:
            continue
    _against_reference(skew)
    return skew


def _key(event: Event) -> tuple[TopicPartition, int, int] | None:
    partition = event.topic_partition
    fields = event.fields
    epoch: object = fields.get("leader_epoch")
    version: object = None
    for name in ("state", "partition_state", "leader_and_isr"):
        state = fields.get(name)
        if isinstance(state, dict):
            epoch = state.get("leader_epoch", epoch)
            version = state.get("zk_version", state.get("partition_epoch"))
    if partition is None or not isinstance(epoch, int):
        return None
    return partition, epoch, version if isinstance(version, int) else -1


def _note_sent(event: Event, sent: dict[tuple[TopicPartition, int, int, int], tuple[int, int]]) -> None:
    key = _key(event)
    time_ms = event.logged_ms
    if key is None or time_ms is None or event.broker_id is None:
        return
    if len(sent) < MOST:
        partition, epoch, version = key
        # The first time that anybody could know of this epoch, and of this version of the state.
        for which in {version, -1}:
            sent.setdefault((partition, epoch, which, 0), (time_ms, event.broker_id))


def _note_received(
    event: Event, sent: dict[tuple[TopicPartition, int, int, int], tuple[int, int]], skew: Skew
) -> None:
    key = _key(event)
    time_ms = event.logged_ms
    if key is None or time_ms is None or event.broker_id is None:
        return
    partition, epoch, version = key
    first = sent.get((partition, epoch, version, 0))
    if first is None or first[1] == event.broker_id:
        return
    sent_ms, sender = first
    offset = skew.offsets.setdefault((sender, event.broker_id), Offset())
    offset.pairs += 1
    # Received before it was sent by this much: the receiver's clock is behind at least that far.
    gap = time_ms - sent_ms
    offset.at_most = gap if offset.at_most is None else min(offset.at_most, gap)


def _against_reference(skew: Skew) -> None:
    counts: dict[int, int] = {}
    for (a, b), offset in skew.offsets.items():
        counts[a] = counts.get(a, 0) + offset.pairs
        counts[b] = counts.get(b, 0) + offset.pairs
    if not counts:
        return
    skew.reference = max(sorted(counts), key=lambda broker_id: counts[broker_id])
    for broker_id in counts:
        if broker_id != skew.reference:
            there = skew.offsets.get((skew.reference, broker_id))
            back = skew.offsets.get((broker_id, skew.reference))
            both = Offset(
                None if back is None or back.at_most is None else -back.at_most,
                there.at_most if there else None,
            )
            skew.ahead[broker_id] = both.estimate or 0
