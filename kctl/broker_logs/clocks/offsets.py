"""How brokers' times lie to each other, from lines that were written at the same moment.

What a controller sends, the broker receives some milliseconds later, and all brokers hear of a change together: where
such pairs lie as far apart again and again, the two brokers print times of different zones, or the clock of one is
wrong. Before 2.3 no line says which zone a broker's times are in: whole multiples of a quarter of an hour are zones.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from formats.broker_logs.table import every_table
from formats.broker_logs.template import landmark
from formats.values import Struct, field, replace
from formats.words import counted
from kctl.broker_logs.clocks.quorum import WANTED as OF_THE_QUORUM
from kctl.broker_logs.clocks.quorum import QuorumPairs
from kctl.broker_logs.clocks.skew import RECEIVED, ROUNDED, SENT, ClockBounds, OrderedPairs, State, state_of
from kctl.broker_logs.clocks.skew import WANTED as ORDERED
from kctl.findings import Finding, Place
from kctl.findings import state_log as codes
from kctl.text_logs.blocks import Reading, blocks_of
from kctl.text_logs.log_files import LogFile, LogSource
from kctl.text_logs.opening import STDIN
from kctl.text_logs.shapes import Shapes
from kctl.text_logs.zones import HOUR, QUARTER, UNKNOWN, Zone, shown_offset

if TYPE_CHECKING:
    from kctl.broker_logs.events import Event

HEARD = RECEIVED | {"B36", "L03", "L04"}
WANTED = SENT | HEARD | ORDERED | OF_THE_QUORUM
FURTHEST = 26 * HOUR
# A difference of a whole day is no zone: a daily job sends the same state again.
DAY = 24 * HOUR
# How far hosts' clocks may be off, and how far the pairs of one offset may lie apart.
OFF = 60_000
TIGHT = 5_000
# Pairs of one request prove one delay only: the offset must come again later.
APART = 5_000
FEWEST_PAIRS = 3
FEWEST_MOMENTS = 2
# Of all moments, those that must agree.
SHARE = 2 / 3
# Requests take some milliseconds; more is a wrong clock, and beyond an hour nobody can tell what it is.
DELAY = 2_000
MOST_AHEAD = HOUR
# A difference that one request after a long absence may explain; if it is larger, the clocks or the zones differ.
PLAUSIBLE = 300_000
# How much of the end of each log is read, then how much where that does not say enough; packed bytes count for more.
# A broker that says nothing in the second is of a level, or a kind of cluster, that prints no such lines.
ENDS = (256 << 10, SILENT := 2 << 20, 32 << 20)
PACKED = 16

# The findings about clocks, made by `ClockOffsets.findings`.
CODES = (codes.LOG_ZONE_ESTIMATED.code, codes.LOG_CLOCK_OFF.code, codes.LOG_CLOCK_DOUBTFUL.code)

# The kinds of files that have what controllers send and brokers receive.
OF_STATES = ("state-change", "stdout", "other")

Pair = tuple[int, int]


class ClockOffsets(Struct):
    """How far the clocks of brokers differ, by pairs of lines about the same state."""

    offsets: dict[int, int] = field(default_factory=dict)
    """By the broker's zone: milliseconds that its times are ahead of those of another; a multiple of 15 minutes."""
    ahead: dict[int, int] = field(default_factory=dict)
    """By its clock, beside that: milliseconds."""
    pairs: dict[int, int] = field(default_factory=dict)
    """How many pairs of lines agree on that."""
    beside: dict[int, int] = field(default_factory=dict)
    """The broker whose times they were put beside."""
    doubtful: dict[int, str] = field(default_factory=dict)
    """Brokers whose times cannot be put beside those of the others, and why."""

    def findings(self) -> Iterator[Finding]:
        """One for each broker that was shifted, or that could not be."""
        for broker_id, offset in sorted(self.offsets.items()):
            yield codes.LOG_ZONE_ESTIMATED.at(
                Place(broker_id=broker_id),
                broker=broker_id,
                offset=shown_offset(offset),
                reference=self.beside[broker_id],
                pairs=self.pairs[broker_id],
            )
        for broker_id, ahead in sorted(self.ahead.items()):
            yield codes.LOG_CLOCK_OFF.at(
                Place(broker_id=broker_id),
                broker=broker_id,
                seconds=abs(ahead) / 1000,
                side="ahead of" if ahead > 0 else "behind",
                reference=self.beside[broker_id],
                pairs=self.pairs[broker_id],
            )
        for broker_id, reason in sorted(self.doubtful.items()):
            yield codes.LOG_CLOCK_DOUBTFUL.at(Place(broker_id=broker_id), broker=broker_id, reason=reason)


class _BrokerMessages(Struct):
    """When each broker printed what it sent, was sent, and heard."""

    sent: dict[tuple[State, int], dict[int, list[int]]] = field(default_factory=dict)
    received: dict[tuple[State, int], list[int]] = field(default_factory=dict)
    heard: dict[tuple[State, bool], dict[int, int]] = field(default_factory=dict)
    # By what a line prints of it: a state is sent to each of its brokers, and heard by each.
    states: dict[bytes, State | None] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=Shapes)
    ordered: OrderedPairs = field(default_factory=OrderedPairs)
    quorum: QuorumPairs = field(default_factory=QuorumPairs)

    def note(self, event: Event) -> None:
        """Take a line into account."""
        self.ordered.note(event)
        self.quorum.note(event)
        if event.event not in SENT and event.event not in HEARD:
            return
        time_ms, broker_id = event.logged_ms, event.broker_id
        state = self._state_of(event)
        if time_ms is None or broker_id is None or state is None:
            return
        if event.event in SENT:
            target = event.number("to_broker")
            if target is None or target == broker_id:
                return
            self.sent.setdefault((state, target), {}).setdefault(broker_id, []).append(time_ms)
            return
        if broker_id in self.quorum.catching_up:
            return
        if event.event in RECEIVED:
            self.received.setdefault((state, broker_id), []).append(time_ms)
        time_by_broker = self.heard.setdefault((state, event.event in RECEIVED), {})
        time_by_broker[broker_id] = min(time_ms, time_by_broker.get(broker_id, time_ms))

    def _state_of(self, event: Event) -> State | None:
        key = event.state_key()
        if not key:
            return state_of(event, is_request=True)
        if key not in self.states:
            self.states[key] = state_of(event, is_request=True)
        return self.states[key]

    def speaking(self) -> set[int]:
        """The brokers that sent or heard anything."""
        senders = (by for targets in self.sent.values() for by in targets)
        return set(senders).union(*self.heard.values())

    def requests(self) -> dict[Pair, list[Pair]]:
        """By two brokers, the lower id first: times of each of what the one sent and the other received."""
        times_by_pair: dict[Pair, list[Pair]] = {}
        for (state, receiver), times_by_sender in self.sent.items():
            received = self.received.get((state, receiver), [])
            for sender, sent in times_by_sender.items():
                # Sent again after a restart it is received again; where the counts differ, which is which is open.
                if len(times_by_sender) == 1 and len(sent) == len(received):
                    for of_sender, of_receiver in zip(sent, received, strict=True):
                        _add(times_by_pair, sender, receiver, of_sender, of_receiver)
        return times_by_pair

    def limits(self) -> dict[Pair, ClockBounds]:
        """By two brokers: between what the second clock is ahead, as far as lines of which one came first tell."""
        both: dict[Pair, ClockBounds] = {}
        for (a, b), bounds in chain(self.ordered.bounds().items(), self.quorum.bounds().items()):
            low, high = bounds.at_least, bounds.at_most
            if a > b:
                a, b, low, high = b, a, None if high is None else -high, None if low is None else -low
            one = both.setdefault((a, b), ClockBounds())
            one.add(at_least=low, at_most=high)
            one.pairs += bounds.pairs - 1
        return both

    def together(self) -> dict[Pair, list[Pair]]:
        """By two brokers: times at which both first heard of the same."""
        times_by_pair: dict[Pair, list[Pair]] = {}
        for time_by_broker in self.heard.values():
            brokers = sorted(time_by_broker)
            for number, first in enumerate(brokers):
                for second in brokers[number + 1 :]:
                    _add(times_by_pair, first, second, time_by_broker[first], time_by_broker[second])
        return times_by_pair


def _add(times_by_pair: dict[Pair, list[Pair]], a: int, b: int, time_of_a: int, time_of_b: int) -> None:
    key, times = ((a, b), (time_of_a, time_of_b)) if a < b else ((b, a), (time_of_b, time_of_a))
    times_by_pair.setdefault(key, []).append(times)


def agreed_gap(pairs: Sequence[Pair]) -> tuple[int, int] | None:
    """How far the second clock is ahead, in milliseconds, and how many pairs agree on it.

    None where they are too few, of one moment only, or contradict each other.
    """
    clusters: dict[int, list[Pair]] = {}
    for pair in pairs:
        clusters.setdefault(round((pair[1] - pair[0]) / QUARTER), []).append(pair)
    if not clusters:
        return None
    agreeing = max(clusters.values(), key=lambda cluster: (_moments(cluster), len(cluster)))
    gaps = sorted(second - first for first, second in agreeing)
    # A request is late now and then, never early: the usual delay is the smallest that comes again.
    usual = gaps[len(gaps) // 2]
    tight = [pair for pair in agreeing if abs(pair[1] - pair[0] - usual) <= TIGHT]
    if abs(usual) > FURTHEST or abs(abs(usual) - DAY) <= OFF:
        return None
    if len(tight) < FEWEST_PAIRS or _moments(tight) < FEWEST_MOMENTS:
        return None
    if _moments(tight) < SHARE * sum(_moments(cluster) for cluster in clusters.values()):
        return None
    return usual, len(tight)


def _within(bounds: ClockBounds, gap: tuple[int, int] | None) -> tuple[int, int] | None:
    """How far the second clock is ahead, and how many pairs agree: by bounds from both sides where these are close, else by
    what the pairs say, as far as the bounds allow.

    0 where the bounds allow that the clocks agree, and are close or contradict the pairs by nearly as much as these say: a
    slow broker is no wrong clock.
    """
    low, high = bounds.at_least, bounds.at_most
    if low is not None and high is not None and -ROUNDED <= high - low <= TIGHT:
        return 0 if low <= 0 <= high else (low + high) // 2, bounds.pairs
    if gap is None:
        return None
    ahead, pairs = gap
    nearest = ahead if low is None else max(ahead, low)
    nearest = nearest if high is None else min(nearest, high)
    may_agree = (low is None or low <= 0) and (high is None or high >= 0)
    return 0 if may_agree and abs(nearest) <= 2 * abs(nearest - ahead) else nearest, pairs


def _moments(pairs: Sequence[Pair]) -> int:
    """At how many moments the pairs were written, by the clock that saw fewer."""
    counts = []
    for side in (0, 1):
        count, last = 0, None
        for time in sorted(pair[side] for pair in pairs):
            if last is None or time - last > APART:
                count, last = count + 1, time
        counts.append(count)
    return min(counts)


def estimate_offsets(sources: Sequence[LogSource], zones: dict[int | None, Zone]) -> ClockOffsets:
    """How the times of brokers lie to each other.

    The ends of the logs are read, which mostly overlap; more of them where these do not say enough.
    """
    brokers = {source.broker_id for source in sources if source.broker_id is not None}
    open_ids = {b for b in brokers if zones.get(b, UNKNOWN) is UNKNOWN}
    clock_offsets = ClockOffsets()
    if len(brokers) < 2:
        return clock_offsets
    of_brokers = [source for source in sources if source.broker_id is not None]
    with_states = {source.broker_id for source in of_brokers if source.kind in OF_STATES}
    # Without such a file every logger of a broker may write to one file of another name.
    speaking = [s for s in of_brokers if s.kind in OF_STATES or s.broker_id not in with_states]
    shapes = Shapes()
    for most in ENDS if open_ids else ENDS[:2]:
        messages = _BrokerMessages(shapes=shapes)
        are_whole = [_listen(messages, source, zones.get(source.broker_id), most) for source in speaking]
        clock_offsets, placed = _weighed(messages, brokers, open_ids)
        missing = brokers - placed
        is_enough = not missing and (
            most >= SILENT or not clock_offsets.ahead
        )  # how far off takes more pairs
        if is_enough or all(are_whole) or (most >= SILENT and not missing & messages.speaking()):
            break
    # Nodes of KRaft seldom say what they hear of partitions, and controllers never; what they say of each other is exact.
    for most in ENDS[1:] if missing or clock_offsets.ahead else ():
        messages = _BrokerMessages(shapes=shapes)
        are_whole = [_listen(messages, source, zones.get(source.broker_id), most) for source in of_brokers]
        if not messages.quorum.is_there:
            break
        clock_offsets, placed = _weighed(messages, brokers, open_ids)
        if placed == brokers or all(are_whole):
            break
    return clock_offsets


def _weighed(
    messages: _BrokerMessages, brokers: set[int], open_ids: set[int]
) -> tuple[ClockOffsets, set[int]]:
    """What the lines say, and of which brokers together: the most that pairs lead to from one another."""
    clock_offsets = ClockOffsets()
    requests, together, limits = messages.requests(), messages.together(), messages.limits()
    edges = {
        key: edge
        for key in sorted(requests.keys() | together.keys() | limits.keys())
        if (
            edge := _within(
                limits.get(key, ClockBounds()),
                agreed_gap(requests.get(key, [])) or agreed_gap(together.get(key, [])),
            )
        )
    }
    placed = _placed(edges, brokers - open_ids)
    for component in placed:
        _settle(clock_offsets, component, edges, brokers - open_ids)
    _doubt(clock_offsets, requests, edges, placed, open_ids)
    most = max(map(len, placed), default=0)
    return clock_offsets, next((set(component) for component in placed if len(component) == most), set())


def _listen(messages: _BrokerMessages, source: LogSource, zone: Zone | None, most_bytes: int) -> bool:
    """Take the end of a source into account; whether that was all of it."""
    from kctl.broker_logs.events import Event
    from kctl.broker_logs.filters import records_with

    newest: list[LogFile] = []
    bytes_left = most_bytes
    for file in reversed(source.files):
        if file.path == STDIN or file.is_utc or not os.path.isfile(file.path):
            break
        if bytes_left <= 0:
            break
        newest.append(file)
        path = file.part or file.path
        bytes_left -= os.path.getsize(path) * (PACKED if path.endswith((".gz", ".zst")) else 1)
    newest_part = replace(source, files=tuple(reversed(newest)))
    templates = every_table().by_id
    words = sorted({landmark(templates[name]) for name in WANTED if name in templates})
    for block in blocks_of(newest_part, 0, zone, Reading(), skip=max(-bytes_left, 0)):
        telling = block.only(records_with(block, words))
        for index, shape in enumerate(messages.shapes.parse(telling)):
            if shape.id in WANTED:
                messages.note(Event(telling, index, shape))
    return bytes_left >= 0 and len(newest) == len(source.files)


def _placed(edges: dict[Pair, tuple[int, int]], known: set[int]) -> list[dict[int, int]]:
    """Brokers that pairs lead to from one another, each with its offset against the first of them."""
    components: list[dict[int, int]] = []
    neighbours = _neighbours(edges)
    for start in sorted(neighbours, key=lambda b: (b not in known, b)):
        if not any(start in component for component in components):
            components.append(_offsets_from(start, neighbours))
    return components


def _neighbours(edges: dict[Pair, tuple[int, int]]) -> dict[int, list[Pair]]:
    """By broker: those that it has pairs with, and how far their times are ahead of its own."""
    neighbours: dict[int, list[Pair]] = {}
    for (a, b), (offset, _) in edges.items():
        neighbours.setdefault(a, []).append((b, offset))
        neighbours.setdefault(b, []).append((a, -offset))
    return neighbours


def _offsets_from(start: int, neighbours: dict[int, list[Pair]]) -> dict[int, int]:
    """How far each broker's times are ahead of those of `start`, by its own pairs with it where there are any."""
    offsets, waiting = {start: 0}, deque([start])
    while waiting:
        broker_id = waiting.popleft()
        for neighbour, distance in neighbours[broker_id]:
            if neighbour not in offsets:
                offsets[neighbour] = offsets[broker_id] + distance
                waiting.append(neighbour)
    return offsets


def _settle(
    clock_offsets: ClockOffsets,
    component: dict[int, int],
    edges: dict[Pair, tuple[int, int]],
    known: set[int],
) -> None:
    """Shift to what most of those have whose zone is known, else to what most have: to the lowest id's in doubt."""
    anchors = sorted(known & component.keys()) or sorted(component)
    neighbours = _neighbours(edges)
    offsets_from = {anchor: _offsets_from(anchor, neighbours) for anchor in anchors}
    reference = max(
        anchors, key=lambda b: (sum(abs(offsets_from[b][other]) <= DELAY for other in anchors), -b)
    )
    component = offsets_from[reference]
    pairs: Counter[int] = Counter()
    for edge, (_, count) in edges.items():
        for broker_id in edge:
            pairs[broker_id] = max(pairs[broker_id], count)
    for (a, b), (gap, _) in edges.items():
        if a in component and abs(component[b] - component[a] - gap) > TIGHT:
            for broker_id in {a, b} - known:
                clock_offsets.doubtful[broker_id] = (
                    f"pairs of lines of brokers {a} and {b} contradict those of others"
                )
    for broker_id, ahead in component.items():
        zone = round(ahead / QUARTER) * QUARTER
        if broker_id in known or abs(ahead - zone) > OFF:
            zone = 0
        ahead -= zone
        if zone:
            clock_offsets.offsets[broker_id] = zone
        if DELAY < abs(ahead) <= MOST_AHEAD:
            clock_offsets.ahead[broker_id] = ahead
        elif abs(ahead) > MOST_AHEAD and broker_id not in known:
            clock_offsets.doubtful[broker_id] = (
                f"they are {abs(ahead) // 1000} s off those of broker {reference}"
            )
        clock_offsets.beside[broker_id] = reference
        clock_offsets.pairs[broker_id] = pairs[broker_id]


def _doubt(
    clock_offsets: ClockOffsets,
    requests: dict[Pair, list[Pair]],
    edges: dict[Pair, tuple[int, int]],
    placed: list[dict[int, int]],
    open_ids: set[int],
) -> None:
    """Name brokers whose pairs lie far apart without telling a zone."""
    for (a, b), pairs in sorted(requests.items()):
        if (a, b) in edges or any(a in component and b in component for component in placed):
            continue
        gaps = sorted(second - first for first, second in pairs)
        middle = gaps[len(gaps) // 2]
        if abs(middle) > PLAUSIBLE:
            for broker_id in sorted({a, b} & open_ids):
                reason = f"{counted(len(pairs), 'pair')} of lines of brokers {a} and {b} lie{'s' if len(pairs) == 1 else ''} about {abs(middle) // 1000} s apart"
                clock_offsets.doubtful.setdefault(broker_id, reason)
