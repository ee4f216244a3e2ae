"""How far clocks of KRaft nodes are apart, from lines of which one must have come before the other.

A process of a broker names its incarnation before any controller hears of it, and says that it is registered after the
active controller has registered it. The leader of the metadata quorum is elected before others follow it in that epoch.
Each bounds how far one clock can be ahead of the other, whoever was slow, stopped or cut off.

Source: core/src/main/scala/kafka/server/BrokerLifecycleManager.scala @ 3.9.1;
metadata/src/main/java/org/apache/kafka/controller/ClusterControlManager.java @ 2.8.2 to 4.3.0;
raft/src/main/java/org/apache/kafka/raft/QuorumState.java @ 3.9.1
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, product
from typing import TYPE_CHECKING

from formats.values import Struct, field
from kctl.broker_logs.clocks.skew import ClockBounds

if TYPE_CHECKING:
    from kctl.broker_logs.events import Event

STARTS, REGISTERED, UNFENCED = "W05", "U09", "U10"
# A controller names the incarnation that it registers; the first two are printed by the active one alone.
REGISTERS = frozenset(("M08", "M09"))
REPLAYS = frozenset(("Q12", "Q14", "M01", "M02"))
ACTIVE, INACTIVE, FOLLOWS = frozenset(("Q17", "M15")), frozenset(("Q18", "M33")), "Q19"
TAKES_ROLE = "Q23"
WANTED = (
    frozenset((STARTS, REGISTERED, UNFENCED, TAKES_ROLE, FOLLOWS)) | REGISTERS | REPLAYS | ACTIVE | INACTIVE
)
INCARNATION = re.compile(r"incarnationId=([\w-]{22})")
# More nodes than these are not put beside each other over third ones.
MOST_NODES = 64
MOST = 100_000
# Controllers that replay the same, each by its own clock: how many must agree, how closely, and over how long.
FEWEST_AGREEING = 3
TOGETHER = 1_000
APART = 5_000


class QuorumPairs(Struct):
    """When nodes named the same incarnations and epochs, each by its own clock."""

    started: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Broker and time by the incarnation that it names."""
    registered: dict[str, int] = field(default_factory=dict)
    """When the broker of an incarnation says that it is registered."""
    heard: dict[tuple[str, int], int] = field(default_factory=dict)
    """When a controller first names an incarnation."""
    made: dict[tuple[str, int], int] = field(default_factory=dict)
    """When the active controller registers it."""
    led: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Node and time by the epoch of the quorum that it leads."""
    followed: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """When a node follows a leader in an epoch."""
    catching_up: set[int] = field(default_factory=set)
    """Brokers that have begun and were not yet unfenced: they hear late of what was decided before."""
    is_there: bool = False
    """Whether a line of a quorum was met at all."""
    _now: dict[int, str] = field(default_factory=dict)
    _active: set[int] = field(default_factory=set)

    def note(self, event: Event) -> None:
        """Take a line into account."""
        name, time_ms, node = event.event or "", event.logged_ms, event.broker_id
        if time_ms is None or node is None or name not in WANTED or len(self.heard) > MOST:
            return
        self.is_there = True
        if name == STARTS:
            self._now[node] = incarnation = str(event.fields["incarnation_id"])
            self.started.setdefault(incarnation, (node, time_ms))
            self.catching_up.add(node)
        elif name == REGISTERED and node in self._now:
            self.registered.setdefault(self._now[node], time_ms)
        elif name == UNFENCED:
            self.catching_up.discard(node)
        elif name in ACTIVE:
            self._active.add(node)
        elif name in INACTIVE or name == FOLLOWS:
            self._active.discard(node)
        elif name == TAKES_ROLE:
            self._take_role(event, node, time_ms)
        else:
            named = _incarnation(event)
            if named:
                self.heard.setdefault((named, node), time_ms)
                if name in REGISTERS or node in self._active:
                    self.made.setdefault((named, node), time_ms)

    def _take_role(self, event: Event, node: int, time_ms: int) -> None:
        from kctl.broker_logs.history.quorum_terms import role_of

        role = role_of(event)
        if role is None or len(self.followed) > MOST:
            return
        if role.name == "leader":
            self.led.setdefault(role.epoch, (node, time_ms))
        elif role.name == "follower" and role.leader is not None:
            self.followed.setdefault((role.epoch, role.leader, node), time_ms)

    def bounds(self) -> dict[tuple[int, int], ClockBounds]:
        """By two nodes: how far the clock of the second is ahead of that of the first; over third ones too."""
        most: dict[tuple[int, int], int] = {}
        pairs: dict[frozenset[int], int] = {}

        def later(first: int, first_ms: int, second: int, second_ms: int) -> None:
            """The second node wrote its line after the first one."""
            if first != second:
                ahead = second_ms - first_ms
                most[first, second] = min(ahead, most.get((first, second), ahead))
                both = frozenset((first, second))
                pairs[both] = pairs.get(both, 0) + 1

        for (incarnation, controller), time_ms in self.heard.items():
            if incarnation in self.started:
                later(*self.started[incarnation], controller, time_ms)
        for (incarnation, controller), time_ms in self.made.items():
            if incarnation in self.registered:
                later(controller, time_ms, self.started[incarnation][0], self.registered[incarnation])
        for (epoch, leader, node), time_ms in self.followed.items():
            if epoch in self.led and self.led[epoch][0] == leader:
                later(*self.led[epoch], node, time_ms)
        nodes = sorted({node for pair in most for node in pair})
        if len(nodes) <= MOST_NODES:
            _close(most, nodes)
            for first, second, low, high, agreeing in self._heard_together():
                is_open = (first, second) not in most or (second, first) not in most
                at_most, at_least = most.get((first, second), high), -most.get((second, first), -low)
                if is_open and low <= at_most and high >= at_least:  # else the order of lines says otherwise
                    most[first, second], most[second, first] = min(high, at_most), -max(low, at_least)
                    pairs[frozenset((first, second))] = agreeing
            _close(most, nodes)
        bounds: dict[tuple[int, int], ClockBounds] = {}
        for (first, second), ahead in most.items():
            if first < second and (second, first) in most:
                bound = bounds[first, second] = ClockBounds(-most[second, first], ahead)
                bound.pairs = pairs.get(frozenset((first, second)), 2)
        return bounds

    def _heard_together(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Two controllers, the least and the most that the clock of the second is ahead, and how many incarnations say so.

        Both replay what the quorum committed. One that is slow or cut off is late by another time each time, so that
        incarnations of several moments which agree tell of clocks.
        """
        heard: dict[int, dict[str, int]] = {}
        for (incarnation, controller), time_ms in self.heard.items():
            heard.setdefault(controller, {})[incarnation] = time_ms
        for first, second in combinations(sorted(heard)[:MOST_NODES], 2):
            both = [
                (heard[first][one], heard[second][one]) for one in heard[first].keys() & heard[second].keys()
            ]
            if len(both) < FEWEST_AGREEING:
                continue
            middle = sorted(after - before for before, after in both)[(len(both) - 1) // 2]
            agreeing = [pair for pair in both if abs(pair[1] - pair[0] - middle) <= TOGETHER]
            moments = [before for before, _ in agreeing]
            if len(agreeing) >= max(FEWEST_AGREEING, len(both) / 2) and max(moments) - min(moments) > APART:
                ahead = [after - before for before, after in agreeing]
                yield first, second, min(ahead), max(ahead), len(agreeing)


def _close(most: dict[tuple[int, int], int], nodes: Iterable[int]) -> None:
    """Bounds over third nodes, where they are closer."""
    for over, first, second in product(nodes, repeat=3):
        if first != second and (first, over) in most and (over, second) in most:
            ahead = most[first, over] + most[over, second]
            most[first, second] = min(ahead, most.get((first, second), ahead))


def _incarnation(event: Event) -> str | None:
    """The incarnation that a controller's line is about."""
    fields: Mapping[str, object] = event.fields
    named = fields.get("other_incarnation_id") or fields.get("incarnation_id")
    if isinstance(named, str):
        return named
    match = INCARNATION.search(event.message)
    return match[1] if match else None
