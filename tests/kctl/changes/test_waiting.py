"""How far a change is while it is waited for: bytes where replicas are copied and brokers tell their sizes."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

import pytest

from kctl.changes.kinds.reassignments import Reassign
from kctl.changes.waiting import wait_for
from kctl.cluster.moves import ReplicaSize
from kctl.cluster.state import Broker, ClusterState, PartitionState, Topic
from kctl.cluster.versions import V2_8
from kctl.errors import KctlError
from kctl.model import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
INTENT = Reassign(targets={A0: (3,), A1: (3,)}, origins={A0: (1,), A1: (1,)})
# What each look shows: partitions that are done, and the bytes that broker 3 has of each; the leaders have 1000.
Look = tuple[set[TopicPartition], dict[TopicPartition, int] | None]


class Watcher:
    """Progress as it was told."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def start(self, what: str, total: int | None, unit: str = "bytes") -> None:
        self.said.append(("start", total, unit))

    def advance(self, amount: int) -> None:
        self.said.append(("advance", amount))

    def note(self, text: str) -> None:
        self.said.append(("note", text))

    @property
    def done(self) -> int:
        return sum(one[1] for one in self.said if one[0] == "advance")


class Moving:
    """A cluster that moves on with every look."""

    def __init__(self, looks: list[Look]) -> None:
        self.looks = looks
        self.now: Look = looks[0]

    def read_state(self, topics: Collection[str], **_: object) -> ClusterState:
        self.now = self.looks.pop(0)
        done, _sizes = self.now
        on = {tp: (3,) if tp in done else (3, 1) for tp in (A0, A1)}
        moving = {tp.partition: (3,) for tp in (A0, A1) if tp not in done}
        return ClusterState(
            cluster_id="c",
            kafka_version=V2_8,
            brokers={id: Broker(broker_id=id, host="h", port=1) for id in (1, 3)},
            controller=None,
            topics={
                "a": Topic(
                    name="a",
                    partitions={tp.partition: ids for tp, ids in on.items()},
                    adding_replicas=moving,
                    removing_replicas=dict.fromkeys(moving, (1,)),
                )
            },
            partition_states={
                tp: PartitionState(3 if tp in done else 1, 1, (3,) if tp in done else (1,)) for tp in (A0, A1)
            },
        )

    def replica_sizes(self, topics: Collection[str] | None = None) -> list[ReplicaSize] | None:
        done, sizes = self.now
        if sizes is None:
            raise KctlError("no answer")
        rows = [(tp, 1, 1000) for tp in (A0, A1) if tp not in done] + [(tp, 3, n) for tp, n in sizes.items()]
        return [ReplicaSize(partition=tp, broker_id=id, size_in_bytes=n) for tp, id, n in rows]


def watched(looks: list[Look], monkeypatch: pytest.MonkeyPatch) -> Watcher:
    monkeypatch.setattr("kctl.changes.waiting.PAUSE", 0)
    watcher = Watcher()
    waited = wait_for(INTENT, Moving(looks), until=time.monotonic() + 60, progress=watcher)  # type: ignore[arg-type]
    assert waited.is_done and not waited.failed
    return watcher


def test_bytes_that_are_missing_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = watched(
        [
            (set(), {A0: 0, A1: 200}),
            (set(), {A0: 300, A1: 600}),
            (set(), None),  # nobody answers
            ({A0}, {A0: 1000, A1: 1000}),
            ({A0, A1}, {A0: 1000, A1: 1000}),
        ],
        monkeypatch,
    )
    assert watcher.said[0] == ("start", 1800, "bytes")
    amounts = [one[1] for one in watcher.said if one[0] == "advance"]
    assert amounts == [0, 700, 1099, 1], "the last byte is there when all is in place"
    assert watcher.done == 1800
    assert watcher.said[-2:] == [("note", "2 of 2 partitions"), ("advance", 1)]


def test_what_grows_meanwhile_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Look] = [(set(), {A0: 500, A1: 500}), (set(), {A0: 100, A1: 100}), ({A0, A1}, {A0: 1, A1: 1})]
    assert watched(looks, monkeypatch).done == 1000


@pytest.mark.parametrize("sizes", [None, {A0: 1000, A1: 1000}])
def test_without_bytes_partitions_are_counted(
    monkeypatch: pytest.MonkeyPatch, sizes: dict[TopicPartition, int] | None
) -> None:
    watcher = watched([(set(), sizes), ({A0}, sizes), ({A0, A1}, sizes)], monkeypatch)
    assert watcher.said == [("start", 2, "partitions"), ("advance", 0), ("advance", 1), ("advance", 1)]


def test_a_wait_that_stands_still_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.changes.waiting.PAUSE", 0)
    clock = [0.0]
    monkeypatch.setattr(
        "kctl.changes.waiting.time.monotonic", lambda: clock.__setitem__(0, clock[0] + 1) or clock[0]
    )
    still: Look = (set(), {A0: 100, A1: 100})
    growing: list[Look] = [(set(), {A0: n, A1: n}) for n in range(100, 400)]
    over: Look = ({A0, A1}, {A0: 1000, A1: 1000})
    for looks, is_still in (([still] * 300, True), (growing, False)):
        clock[0] = 0.0
        said: list[str] = []
        cluster = Moving([*looks, over])
        wait_for(INTENT, cluster, until=10_000, note=said.append)  # type: ignore[arg-type]
        assert bool(said) == is_still, said
    clock[0], said = 0.0, []
    wait_for(INTENT, Moving([still] * 150 + [over]), until=10_000, note=said.append)  # type: ignore[arg-type]
    assert said[0].startswith("nothing has moved on for ")
    assert "a-0 waits for a controller; a-1 waits for a controller" in said[0]
