"""What an unclean election would lose, from what each replica says of its own epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from formats.log_dir.checkpoints import EpochEntry
from kctl.cluster.state import Broker, ClusterState, PartitionState, Topic
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition
from kctl.operations.unclean import ReplicaEnd, best_of, candidates_of
from kctl.wire.replicas.epochs import (
    Answer,
    Questions,
    ReplicaEpochEnd,
    all_epochs,
    ask_all,
    common_end,
    last_record,
)

TP = TopicPartition("orders", 0)
Log = list[tuple[int, int]]  # epochs with the offset behind the last record of each


def asked(logs: Mapping[int, Log], seen: list[int] | None = None) -> Any:
    """Replicas that answer as Kafka's cache of epochs does."""

    def ask(wanted: Mapping[tuple[int, TopicPartition], int]) -> dict[tuple[int, TopicPartition], Answer]:
        if seen is not None:
            seen.append(len(wanted))
        return {of: told(logs[of[0]], epoch) for of, epoch in wanted.items()}

    def told(log: Log, epoch: int) -> Answer:
        if not log or epoch > log[-1][0]:
            return None
        below = [one for one in log if one[0] <= epoch]
        return ReplicaEpochEnd(*below[-1]) if below else ReplicaEpochEnd(epoch, 0)

    return ask


@pytest.mark.parametrize("highest", [0, 1, 3, 4, 7, 50, 5000])
@pytest.mark.parametrize("log", [[], [(0, 10)], [(0, 10), (3, 25)], [(2, 7)], [(40, 1000)]])
def test_the_last_record_is_found(highest: int, log: Log) -> None:
    known = [one for one in log if one[0] <= highest]
    questions: dict[Any, Questions] = {(1, TP): last_record(1, highest)}
    rounds: list[int] = []
    (end,) = ask_all(asked({1: known}, rounds), questions).values()
    assert end == (ReplicaEnd(*known[-1]) if known else ReplicaEnd(-1, 0))
    assert len(rounds) <= 30


def test_every_epoch_is_found() -> None:
    """Of an epoch below its first a broker says that it ends where the first begins: records of before 0.11 have none."""

    def ask(wanted: Mapping[tuple[int, TopicPartition], int]) -> dict[tuple[int, TopicPartition], Answer]:
        ends = {5: 200, 6: 200, 7: 300}
        answers = {
            epoch: ReplicaEpochEnd(min(epoch, 5 if epoch < 7 else 7), ends.get(epoch, 100))
            for epoch in range(8)
        }
        return {of: answers.get(epoch) for of, epoch in wanted.items()}

    (entries,) = ask_all(ask, {(1, TP): all_epochs(1, 9, 0)}).values()
    assert entries == [EpochEntry(5, 100), EpochEntry(7, 200)]


def test_a_broker_that_goes_round_in_circles_is_an_error() -> None:
    (found,) = ask_all(
        lambda wanted: dict.fromkeys(wanted, ReplicaEpochEnd(7, 300)), {(1, TP): all_epochs(1, 7, 0)}
    ).values()
    assert isinstance(found, KctlError) and "epoch 7 ends before epoch 7" in found.message


@pytest.mark.parametrize(
    ("one", "best", "expected"),
    [
        ([(0, 60)], [(0, 100)], 60),
        ([(0, 100)], [(0, 100)], 100),
        ([(0, 60), (1, 80)], [(0, 60), (1, 70), (2, 90)], 70),
        ([(0, 60), (1, 80)], [(0, 50), (2, 90)], 50),
        ([(0, 60), (1, 80), (3, 95)], [(0, 60), (2, 70), (4, 90)], 60),
        ([], [(0, 5)], 0),
    ],
)
def test_where_histories_part(one: Log, best: Log, expected: int) -> None:
    logs = {1: one, 2: best}
    ends = {b: ReplicaEnd(*log[-1]) if log else ReplicaEnd(-1, 0) for b, log in logs.items()}
    assert best_of(ends) == (2 if ends[2] != ends[1] else 1)
    assert list(ask_all(asked(logs), {(1, TP): common_end(1, 2, ends)}).values()) == [expected]
    assert list(ask_all(asked(logs), {(2, TP): common_end(2, 2, ends)}).values()) == [ends[2].log_end_offset]


def test_an_error_is_no_answer() -> None:
    def ask(wanted: Mapping[Any, int]) -> dict[Any, Answer]:
        return dict.fromkeys(wanted, KctlError("no"))

    (found,) = ask_all(ask, {(1, TP): last_record(1, 3)}).values()
    assert isinstance(found, KctlError)


def state(**more: Any) -> ClusterState:
    """A partition on 1, 2 and 3; 3 is dead."""
    return ClusterState(
        cluster_id=None,
        kafka_version=KafkaVersion(4, 3),
        brokers={id: Broker(broker_id=id, host="h", port=1) for id in (1, 2)},
        controller=None,
        topics={"orders": Topic(name="orders", partitions={0: (1, 2, 3)})},
        **more,
    )


ENDS = {1: ReplicaEnd(0, 60), 2: ReplicaEnd(1, 100)}
COMMON = {1: 55, 2: 100}


def losses(now: ClusterState, to: int | None = None) -> list[tuple[int | None, int | None, bool]]:
    found = candidates_of(TP, now, ENDS, COMMON, to)
    return [(one.lost_at_least, one.lost_at_most, one.is_proposed) for one in found]


def test_what_is_not_known_is_not_said() -> None:
    silent = {TP: PartitionState(leader=-1, leader_epoch=3, isr=(3,))}
    assert losses(state(partition_states=silent)) == [(45, None, False), (0, None, True), (None, None, False)]
    assert [p for *_, p in losses(state(partition_states=silent), 1)] == [True, False, False]
    told = {TP: PartitionState(leader=-1, leader_epoch=3, isr=(2,))}
    assert losses(state(partition_states=told)) == [(45, 45, False), (0, 0, True), (None, None, False)]
    nobody = {TP: PartitionState(leader=-1, leader_epoch=3, isr=())}
    assert losses(state(partition_states=nobody))[1] == (0, None, True), "any replica may have more"
    eligible = state(partition_states=nobody, eligible_leaders={TP: (3,)})
    assert losses(eligible)[0] == (45, None, False)
    assert losses(state(partition_states=nobody, last_known_leaders={TP: (2,)}))[0] == (45, 45, False)


def test_who_cannot_lead_is_refused() -> None:
    for broker, why in ((3, "is not alive"), (7, "has no replica")):
        with pytest.raises(Refused, match=why):
            losses(state(), broker)
