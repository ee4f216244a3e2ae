"""What is read before a write is never older than what kctl has written, whichever broker is read from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kctl.cluster.state import ClusterState, Quorum
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError
from kctl.wire import cluster as module
from kctl.wire import reading
from kctl.wire.adapter import Access, NoAnswer
from kctl.wire.answers.metadata import Node, Places
from kctl.wire.cluster import AdminCluster

QUORUM = Quorum(leader_id=9, leader_epoch=1, high_watermark=100, members=())
STATE = ClusterState(
    cluster_id="c",
    kafka_version=KafkaVersion(4, 3),
    brokers={},
    controller=None,
    topic_names=(),
    topics={},
    partition_states={},
    quorum=QUORUM,
)


class FakeWire:
    """Read from broker 1; after so many answers it is gone, and broker 2 gives the next one."""

    location = "h:1"
    principal = "User:ANONYMOUS"
    broker_version = (4, 3)
    nodes = (1,)

    def __init__(self, lasts: int = 1000) -> None:
        self.node, self.lasts = 1, lasts

    def version_of(self, request: Any) -> None:
        return None

    def address_of(self, node: int) -> tuple[str, int]:
        return "h", 1

    def read(self, request: Any) -> Places:
        self.lasts -= 1
        if self.lasts < 0:
            self.node = 2
        return Places("c", 1, [Node(1, "h", 1, None)], [])


class Readings:
    """Whether each reading waited for the metadata; one fails where it is told so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.exact: list[bool] = []
        self.fails = False
        monkeypatch.setattr(module, "read_cluster", self)

    def __call__(self, *_: Any, is_exact: bool, **__: Any) -> ClusterState:
        self.exact.append(is_exact)
        if self.fails:
            raise NoAnswer("broker 1 is behind the controller", 1)
        return STATE


def test_what_was_written_is_waited_for_until_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    readings, cluster = Readings(monkeypatch), AdminCluster(FakeWire())  # type: ignore[arg-type]
    cluster.read_state(recent=True)
    cluster.has_written, readings.fails = True, True
    with pytest.raises(NoAnswer):
        cluster.read_state()
    readings.fails = False
    for _ in range(2):
        cluster.read_state(recent=True)
    assert readings.exact == [False, True, True, False]


def test_another_broker_has_to_have_seen_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = FakeWire()
    readings, cluster = Readings(monkeypatch), AdminCluster(wire)  # type: ignore[arg-type]
    cluster.read_state()
    wire.node = 2
    for _ in range(2):
        cluster.read_state(recent=True)
    assert readings.exact == [True, True, False]


@pytest.mark.parametrize(("is_exact", "waited_for"), [(True, [1, 2]), (False, [1])])
def test_a_broker_that_takes_over_in_the_middle_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, is_exact: bool, waited_for: list[int]
) -> None:
    """The first one had applied all of the metadata; the one that answered instead may not have."""
    found: list[int] = []
    wire = FakeWire(lasts=0)
    monkeypatch.setattr(reading, "read_from_controller", lambda wire: None)
    monkeypatch.setattr(reading, "read_reassignments", lambda wire: {})
    monkeypatch.setattr(reading, "read_quorum", lambda wire: QUORUM)
    monkeypatch.setattr(reading, "read_configs", lambda *_: ({}, {}, []))
    monkeypatch.setattr(reading, "await_metadata", lambda wire, quorum: found.append(wire.node) or {})
    reading.read_cluster(wire, is_exact=is_exact)  # type: ignore[arg-type]
    assert found == waited_for


class ElectingWire(FakeWire):
    """With ZooKeeper: brokers name controller 3, which is dead, until 2 is elected."""

    def __init__(self, elections: int, timeout: float = 60) -> None:
        super().__init__()
        self.access = Access(servers="h", timeout=timeout)
        self.elections, self.waits, self.has_seen_controller = elections, 0, False

    def pause(self, seconds: float) -> None:
        self.waits += 1

    def refresh_nodes(self) -> None:
        pass

    def read_from(self, node: int, seconds: float | None = None) -> bool:
        self.node = node if node == 2 else self.node
        return node == 2

    def read(self, request: Any) -> Any:
        if type(request).__name__ == "MetadataRequest":
            return SimpleNamespace(controller_id=3 if self.waits < self.elections else 2)
        code = 0 if self.node == 2 else reading.NOT_CONTROLLER
        return SimpleNamespace(error_code=code, error_message=None, topics=[])


def test_the_next_controller_is_waited_for() -> None:
    wire = ElectingWire(elections=4)
    assert reading.read_reassignments(wire) == {} and (wire.node, wire.waits) == (2, 4)  # type: ignore[arg-type]


def test_no_controller_is_waited_for_no_longer_than_is_allowed() -> None:
    wire = ElectingWire(elections=1000, timeout=0.0)
    with pytest.raises(KctlError, match="NOT_CONTROLLER"):
        reading.read_reassignments(wire)  # type: ignore[arg-type]


class LaggingWire:
    """Broker 1 has applied the metadata up to 50; the controller, 9, all of it."""

    def __init__(self, *, is_reachable: bool, catches_up: bool = False, timeout: float = 60) -> None:
        self.access = Access(servers="h", timeout=timeout)
        self.node, self.applied = 1, {1: 50, 9: 99}
        self.is_reachable, self.catches_up = is_reachable, catches_up
        self.tried: list[int] = []

    def read(self, request: Any) -> Any:
        answer = SimpleNamespace(finalized_features=[], finalized_features_epoch=self.applied[self.node])
        self.applied[1] += 49 if self.catches_up else 0
        return answer

    def read_from(self, node: int, seconds: float) -> bool:
        self.tried.append(node)
        self.node = node if self.is_reachable else self.node
        return self.is_reachable


@pytest.mark.parametrize(("is_reachable", "catches_up", "node"), [(True, False, 9), (False, True, 1)])
def test_the_controller_is_read_from_where_another_broker_is_behind(
    is_reachable: bool, catches_up: bool, node: int
) -> None:
    wire = LaggingWire(is_reachable=is_reachable, catches_up=catches_up)
    assert reading.await_metadata(wire, QUORUM) == {}  # type: ignore[arg-type]
    assert wire.node == node and wire.tried == [9]


def test_metadata_that_stays_old_is_not_read() -> None:
    wire = LaggingWire(is_reachable=False, timeout=0.1)
    with pytest.raises(NoAnswer, match="applied the metadata up to 50, committed is 100"):
        reading.await_metadata(wire, QUORUM)  # type: ignore[arg-type]
    assert wire.tried == [9]
    assert reading.await_metadata(wire, None) == {}  # type: ignore[arg-type]


def test_the_configuration_of_a_broker_is_asked_for_once_it_has_applied_what_was_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up to 4.0 a broker may be half a second behind the one that is read from; 3 stays so, and 4 does not answer."""
    monkeypatch.setattr(reading, "LATE", 0.3)
    applied = {2: iter([98, 98, 99]), 3: iter([98] * 1000)}
    asked: list[list[int]] = []

    def send_all(requests: list[tuple[int, Any]], timeout: float) -> list[Any]:
        asked.append([node for node, _ in requests])
        return [
            NoAnswer("no", 4) if node == 4 else SimpleNamespace(finalized_features_epoch=next(applied[node]))
            for node in asked[-1]
        ]

    wire: Any = SimpleNamespace(node=1, nodes=[1, 2, 3, 4], send_all=send_all)
    (problem,) = reading.brokers_behind(wire, QUORUM, [1, 2, 3, 4, 5])
    assert problem.place == "configuration of broker 3" and "behind the controller" in problem.reason
    assert problem.hint.startswith("ask again")  # what it tells is shown
    assert asked[:4] == [[2, 3, 4], [2, 3], [2, 3], [3]]
    applied[3] = iter([99])
    assert reading.brokers_behind(wire, QUORUM, [1, 3]) == []
    applied[3] = iter([98] * 1000)
    assert reading.brokers_behind(wire, QUORUM._replace(lost="lost"), [1, 3]) == []
