"""In which order requests are sent, and what is waited for between them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kctl.changes.plan import Write
from kctl.cluster.state import ClusterState, EntityConfig, Quorum
from kctl.cluster.versions import KafkaVersion
from kctl.wire import committing
from kctl.wire.cluster import AdminCluster
from kctl.wire.committing import MOVES, Commit
from kctl.wire.writes import request

RATE = "leader.replication.throttled.rate"
THROTTLE = request(
    "IncrementalAlterConfigs",
    "broker 1",
    {
        "entity_type": "brokers",
        "entity_name": "1",
        "configs": [{"key": RATE, "operation": "SET", "value": "1000"}],
    },
)
ORDER = request(MOVES, "1 partition", {"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]})
KRAFT = Quorum(leader_id=1, leader_epoch=1, high_watermark=5, members=())


def state(rate: str | None, quorum: Quorum | None) -> ClusterState:
    values = {} if rate is None else {RATE: rate}
    config = EntityConfig(entity_type="brokers", entity_name="1", values=values)
    return ClusterState(
        cluster_id=None,
        kafka_version=KafkaVersion(2, 8),
        brokers={},
        controller=None,
        configs={("brokers", "1"): config},
        backend="admin",
        quorum=quorum,
    )


def events(monkeypatch: pytest.MonkeyPatch, rates: list[str | None], quorum: Quorum | None) -> list[str]:
    """What is sent and read, with what brokers say of the rate each time."""
    seen: list[str] = []

    def send(wire: Any, write: Write) -> list[Any]:
        seen.append(write.target.split()[0])
        return []

    def read_state(*_: Any, **__: Any) -> ClusterState:
        rate = rates.pop(0)
        seen.append(f"rate {rate}")
        return state(rate, quorum)

    monkeypatch.setattr(committing, "send", send)
    monkeypatch.setattr(Commit, "_settle", lambda self, writes: None)
    asked = SimpleNamespace(wire=None, read_state=read_state, has_written=False)
    Commit(cast(AdminCluster, asked)).carry_out([THROTTLE, ORDER])
    return seen


def test_a_throttle_is_in_force_before_the_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert events(monkeypatch, [None, None, None, "1000"], None) == [
        *("rate None", "IncrementalAlterConfigs"),
        *("rate None", "rate None", "rate 1000", MOVES),
    ]


def test_a_log_of_its_own_keeps_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert events(monkeypatch, [None], KRAFT) == ["rate None", "IncrementalAlterConfigs", MOVES]


def test_a_throttle_that_nobody_takes_holds_the_move_up_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "IN_FORCE", 0.05)
    seen = events(monkeypatch, [None] * 100, None)
    assert (seen[1], seen[2], seen[-1]) == ("IncrementalAlterConfigs", "rate None", MOVES)
