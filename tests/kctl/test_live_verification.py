"""`replica verify` over made-up brokers: what differs is found, in whatever pieces the bytes come."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from kctl.cluster.state import Broker, ClusterState, EntityConfig, PartitionState, Topic
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.replicas import verification
from kctl.wire.replicas.fetching import CONSUMER, EARLIEST, OFFSET_OUT_OF_RANGE, Fetched, FetchPosition
from kctl.wire.replicas.verification import Options, ReplicaVerification, Verified
from tests.kctl.replica.test_compare import batch

TP = TopicPartition("ledger", 0)
Log = list[tuple[int, int, bytes]]  # first offset, next offset, bytes


def log(*batches: tuple[int, int, str, int]) -> Log:
    return [(start, end, batch(start, end, text, epoch)) for start, end, text, epoch in batches]


class FakeBrokers:
    """A fetcher over logs in memory; an answer ends within a batch, as a broker's does."""

    def __init__(
        self, logs: Mapping[int, Log], watermark: int, marks: Mapping[int, int] | None = None
    ) -> None:
        self.logs = logs
        self.watermark = watermark
        self.marks = marks or {}
        self.size = 150

    def fetch(self, wanted: Sequence[FetchPosition], size: int) -> list[Fetched | KctlError]:
        return [self._one(one) for one in wanted]

    def _one(self, one: FetchPosition) -> Fetched:
        mark = self.marks.get(one.node, self.watermark)
        data = b"".join(d for _, end, d in self.logs[one.node] if end > one.offset and end <= mark)
        first = next((len(d) for _, end, d in self.logs[one.node] if end > one.offset and end <= mark), 0)
        return Fetched(data[: max(self.size, first)], mark, self.logs[one.node][0][0])

    def offsets(
        self, _: Any, wanted: Sequence[tuple[int, TopicPartition]], place: int, *, replica_id: int = -2
    ) -> Any:
        def offset(node: int) -> int:
            if place == EARLIEST:
                return self.logs[node][0][0]
            return self.watermark if replica_id == CONSUMER else self.logs[node][-1][1]

        return {(node, tp): offset(node) for node, tp in wanted}


def put_in_place(monkeypatch: pytest.MonkeyPatch, brokers: FakeBrokers) -> None:
    """Of what speaks to brokers."""
    monkeypatch.setattr(verification, "Fetcher", lambda wire, ids: brokers)
    monkeypatch.setattr(verification, "list_offsets", brokers.offsets)
    monkeypatch.setattr(
        verification, "local_starts", lambda wire, wanted: brokers.offsets(wire, wanted, EARLIEST)
    )


def verified(
    monkeypatch: pytest.MonkeyPatch,
    brokers: FakeBrokers,
    *,
    policy: str = "delete",
    alive: Sequence[int] = (1, 2, 3),
    leader: int = 1,
    adding: tuple[int, ...] = (),
    begin: int = 0,
    patience: float = 0.05,
) -> Verified:
    ids = sorted(brokers.logs)
    state = ClusterState(
        cluster_id="c",
        kafka_version=KafkaVersion(4, 3),
        brokers={id: Broker(broker_id=id, host="h", port=1) for id in alive},
        controller=None,
        topic_names=("ledger",),
        topics={"ledger": Topic(name="ledger", partitions={0: tuple(ids)}, adding_replicas={0: adding})},
        partition_states={TP: PartitionState(leader, 0, tuple(ids))},
        configs={
            ("topics", "ledger"): EntityConfig(
                entity_type="topics", entity_name="ledger", values={"cleanup.policy": policy}
            )
        },
    )
    put_in_place(monkeypatch, brokers)
    monkeypatch.setattr(verification, "CATCHING_UP", patience)
    options = Options(begin={TP: begin})
    (found,) = ReplicaVerification(None, state, options).results([TP])  # type: ignore[arg-type]
    return found


WHOLE = log((0, 3, "a", 0), (3, 6, "b", 0), (6, 9, "c", 1), (9, 12, "d", 1))


def test_equal_logs_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, FakeBrokers({1: WHOLE, 2: WHOLE, 3: WHOLE}, 12))
    assert (found.verdict, found.batches, found.offset, found.findings) == ("equal", 4, 12, [])


def test_other_records_are_a_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    other = log((0, 3, "a", 0), (3, 6, "x", 0), (6, 9, "c", 1), (9, 12, "d", 1))
    found = verified(monkeypatch, FakeBrokers({1: WHOLE, 2: WHOLE, 3: other}, 12))
    assert found.verdict == "diverged" and found.offset == 12
    assert [(d.broker_ids, d.from_offset, d.to_offset) for d in found.divergences] == [
        ((1, 3), 3, 6),
        ((2, 3), 3, 6),
    ]


def test_a_missing_batch_is_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, FakeBrokers({1: WHOLE, 2: [WHOLE[0], *WHOLE[2:]]}, 12))
    assert (found.verdict, [f.code for f in found.findings]) == ("hole", ["replica-hole"])


def test_a_missing_batch_of_a_compacted_topic_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = FakeBrokers({1: WHOLE, 2: [WHOLE[0], *WHOLE[2:]]}, 12)
    assert verified(monkeypatch, brokers, policy="compact").verdict == "equal"


def test_a_wrong_crc_on_every_side_is_damage_too(monkeypatch: pytest.MonkeyPatch) -> None:
    start, end, data = WHOLE[1]
    wrong = [WHOLE[0], (start, end, data[:-1] + bytes([data[-1] ^ 1])), *WHOLE[2:]]
    found = verified(monkeypatch, FakeBrokers({1: wrong, 2: wrong}, 12))
    codes = [f.code for f in found.findings]
    assert found.verdict == "damaged" and codes.count("replica-damaged-copy") == 2
    assert "replica-batch-damaged-everywhere" in codes


def test_a_follower_that_is_behind_is_compared_as_far_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, FakeBrokers({1: WHOLE, 2: WHOLE, 3: WHOLE}, 12, {3: 6}))
    (finding,) = found.findings
    assert (finding.code, finding.place.broker_id) == ("replica-behind-watermark", 3)
    assert (found.verdict, found.offset, found.compared) == ("equal", 12, [1, 2])


def test_a_dead_broker_makes_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, FakeBrokers({1: WHOLE, 2: WHOLE, 3: WHOLE}, 12), alive=(1, 2))
    assert (found.verdict, found.compared) == ("unknown", [1, 2])
    assert [f.code for f in found.findings] == ["replica-not-verified"]


def test_a_leader_that_is_being_added_tells_how_far_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A preferred election in the middle of a move: the leader is none of the replicas that are compared."""
    brokers = FakeBrokers({1: WHOLE, 2: WHOLE, 3: WHOLE}, 9)
    found = verified(monkeypatch, brokers, leader=3, adding=(3,))
    assert (found.verdict, found.batches, found.to_offset, found.findings) == ("equal", 3, 9, [])


def test_what_is_committed_ends_it_where_the_leader_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other replicas have more in their logs: they are not behind a leader of whom nothing is known."""
    brokers = FakeBrokers({1: WHOLE, 2: WHOLE, 3: WHOLE}, 12, {2: 9, 3: 9})
    found = verified(monkeypatch, brokers, alive=(2, 3))
    assert [(f.code, f.place.broker_id) for f in found.findings] == [("replica-not-verified", 1)]
    assert (found.verdict, found.batches, found.offset, found.compared) == ("unknown", 3, 9, [2, 3])


def test_without_a_leader_nothing_is_called_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, FakeBrokers({1: WHOLE, 2: WHOLE}, 12), leader=-1)
    assert (found.verdict, found.batches, found.offset) == ("unknown", 4, 12)
    assert "leader" in found.reason


@pytest.mark.parametrize(("begin", "batches", "first"), [(6, 2, 6), (12, 0, 12), (15, 4, 0)])
def test_what_was_compared_and_is_gone_is_compared_again(
    monkeypatch: pytest.MonkeyPatch, begin: int, batches: int, first: int
) -> None:
    """An unclean election: other records take the place of those that an earlier run has seen."""
    found = verified(monkeypatch, FakeBrokers({1: WHOLE, 2: WHOLE}, 12), alive=(1, 2), begin=begin)
    assert (found.verdict, found.batches, found.from_offset, found.offset) == ("equal", batches, first, 12)


class FakeRetention(FakeBrokers):
    """Broker 2 deletes its first batch when it is first asked for it."""

    def _one(self, one: FetchPosition) -> Fetched:
        if one.node == 2 and one.offset < 3:
            self.logs = {**self.logs, 2: WHOLE[1:]}
            return Fetched(b"", -1, -1, OFFSET_OUT_OF_RANGE)
        return super()._one(one)


def test_retention_may_be_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, FakeRetention({1: WHOLE, 2: WHOLE}, 12), alive=(1, 2))
    assert (found.verdict, found.batches, found.offset, found.findings) == ("equal", 3, 12, [])
    assert found.compared == [1, 2]


class FakeCleaned(FakeBrokers):
    """Broker 2 has cleaned, so that bytes differ; once it is asked alone it deletes its first batches."""

    def fetch(self, wanted: Sequence[FetchPosition], size: int) -> list[Fetched | KctlError]:
        if [one.node for one in wanted] == [2]:
            self.logs = {**self.logs, 2: WHOLE[2:]}
        return super().fetch(wanted, size)

    def _one(self, one: FetchPosition) -> Fetched:
        if one.offset < self.logs[one.node][0][0]:
            return Fetched(b"", -1, -1, OFFSET_OUT_OF_RANGE)
        return super()._one(one)


def test_retention_may_be_faster_than_a_look_at_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned = [(0, 3, batch(0, 3, "", 0)), *WHOLE[2:]]
    found = verified(monkeypatch, FakeCleaned({1: WHOLE, 2: cleaned}, 12), policy="compact", alive=(1, 2))
    assert (found.verdict, found.offset, found.findings) == ("equal", 12, [])
    assert found.compared == [1, 2]


class FakePartitions(FakeBrokers):
    """Many partitions with the same log on two brokers, but those where it is given in `nothing_behind`."""

    def __init__(self, nothing_behind: Mapping[int, int], limit: int) -> None:
        super().__init__({1: WHOLE, 2: WHOLE}, 12)
        self.nothing_behind = nothing_behind
        self.limit = limit
        self.asked: list[int] = []

    def fetch(self, wanted: Sequence[FetchPosition], size: int) -> list[Fetched | KctlError]:
        """`limit` bytes of a broker at once; the first that is asked for is given in any case."""
        self.asked.append(len(wanted))
        given: dict[int, int] = {}
        found: list[Fetched | KctlError] = []
        for one in wanted:
            answer = self._one(one)
            end = self.nothing_behind.get(one.partition.partition, 12)
            is_full = given.get(one.node, 0) >= self.limit
            data = b"" if one.offset >= end or is_full else answer.data
            given[one.node] = given.get(one.node, 0) + len(data)
            found.append(answer._replace(data=data))
        return found


def verified_all(
    monkeypatch: pytest.MonkeyPatch, brokers: FakePartitions, count: int, wire: Any = None
) -> Iterator[Verified]:
    partitions = [TopicPartition("ledger", n) for n in range(count)]
    state = ClusterState(
        cluster_id="c",
        kafka_version=KafkaVersion(4, 3),
        brokers={id: Broker(broker_id=id, host="h", port=1) for id in (1, 2)},
        controller=None,
        topic_names=("ledger",),
        topics={"ledger": Topic(name="ledger", partitions=dict.fromkeys(range(count), (1, 2)))},
        partition_states={tp: PartitionState(1, 0, (1, 2)) for tp in partitions},
    )
    put_in_place(monkeypatch, brokers)
    return ReplicaVerification(wire, state, Options()).results(partitions)


@pytest.mark.slow
def test_small_partitions_are_asked_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = FakePartitions({}, limit=1 << 30)
    found = list(verified_all(monkeypatch, brokers, 3000))
    assert {(one.verdict, one.offset, one.batches) for one in found} == {("equal", 12, 4)}
    assert max(brokers.asked) == 2 * verification.MOST_AT_ONCE and len(brokers.asked) < 40


@pytest.mark.parametrize("limit", [1, 300, 1 << 30])
def test_partitions_that_give_nothing_hold_nobody_up(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Several of them, of brokers with any limit: what is not given to the first that is asked for is not there."""
    found = list(verified_all(monkeypatch, FakePartitions({1: 3, 2: 0, 5: 6}, limit), 8))
    assert [one.verdict for one in found] == ["unknown" if n in (1, 2, 5) else "equal" for n in range(8)]


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "of_all"), [(1, 1 << 30), (1 << 30, 100)])
def test_no_more_partitions_are_asked_for_than_are_given(
    monkeypatch: pytest.MonkeyPatch, limit: int, of_all: int
) -> None:
    monkeypatch.setattr(verification, "OF_ALL", of_all)
    brokers = FakePartitions({}, limit)
    assert {one.verdict for one in verified_all(monkeypatch, brokers, 200)} == {"equal"}
    assert max(brokers.asked) == 2 * verification.FEWEST_AT_ONCE


class FakeLag(FakePartitions):
    """Broker 2's high watermark of partition 0 comes up to the leader's after the first look."""

    lags = 1

    def _one(self, one: FetchPosition) -> Fetched:
        answer = super()._one(one)
        if self.lags and one.node == 2 and one.partition.partition == 0:
            self.lags -= 1
            return answer._replace(data=b"", high_watermark=one.offset)
        return answer


@pytest.mark.slow
def test_a_follower_that_was_behind_is_looked_at_while_others_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Results come in order: the first partition must not wait until all that follow are compared."""
    monkeypatch.setattr(verification, "LOOK", 0.0)
    monkeypatch.setattr(verification, "MOST_AT_ONCE", verification.FEWEST_AT_ONCE)
    brokers = FakeLag({}, limit=1 << 30)
    found = verified_all(monkeypatch, brokers, 20 * verification.FEWEST_AT_ONCE)
    one = next(found)
    assert (one.partition.partition, one.verdict, one.offset) == (0, "equal", 12)
    rounds = len(brokers.asked)
    assert {one.verdict for one in found} == {"equal"} and rounds < len(brokers.asked) / 2


class FakeQuota(FakePartitions):
    """A broker that asks to wait from the second round on, until the connections are ended."""

    def __init__(self) -> None:
        super().__init__({}, limit=1 << 30)
        self.ended = threading.Event()

    def fetch(self, wanted: Sequence[FetchPosition], size: int) -> list[Fetched | KctlError]:
        if self.asked:
            self.ended.wait(10)
        return super().fetch(wanted, size)

    def close(self) -> None:
        self.ended.set()


@pytest.mark.parametrize("reason", [GeneratorExit, KeyboardInterrupt])
def test_who_stops_early_does_not_wait_for_what_is_on_its_way(
    monkeypatch: pytest.MonkeyPatch, reason: type[BaseException]
) -> None:
    brokers = FakeQuota()
    found = verified_all(monkeypatch, brokers, 100, brokers)
    brokers.size = 1 << 20  # so that one round is enough for those in it
    next(found)
    with pytest.raises(reason):
        found.throw(reason)  # type: ignore[attr-defined]
    assert brokers.ended.is_set()


class FakeRestart(FakeBrokers):
    """Broker 2's high watermark lies before what is asked for, so many times: it is the one of its last checkpoint."""

    def __init__(self, times: int) -> None:
        super().__init__({1: WHOLE, 2: WHOLE, 3: WHOLE}, 12)
        self.times = times

    def _one(self, one: FetchPosition) -> Fetched:
        if one.node == 2 and self.times:
            self.times -= 1
            return Fetched(b"", -1, -1, OFFSET_OUT_OF_RANGE)
        return super()._one(one)


def test_a_replica_that_was_restarted_comes_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "LOOK", 0.001)
    found = verified(monkeypatch, FakeRestart(times=2), patience=60)
    assert (found.verdict, found.offset, found.compared, found.findings) == ("equal", 12, [1, 2, 3], [])


class FakeRetentionOfMany(FakePartitions):
    """Broker 2 has deleted the first batch of all partitions since it was asked where they begin."""

    asked_where = 0

    def _one(self, one: FetchPosition) -> Fetched:
        if one.node == 2 and one.offset < 3:
            self.logs = {**self.logs, 2: WHOLE[1:]}
            return Fetched(b"", -1, -1, OFFSET_OUT_OF_RANGE)
        return super()._one(one)

    def offsets(self, *args: Any, **how: Any) -> Any:
        self.asked_where += 1
        return super().offsets(*args, **how)


def test_where_many_logs_begin_now_is_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = FakeRetentionOfMany({}, limit=1 << 30)
    found = verified_all(monkeypatch, brokers, 100)
    assert {(one.verdict, one.offset, one.batches) for one in found} == {("equal", 12, 3)}
    assert brokers.asked_where <= 3 + len(brokers.asked)


def test_a_replica_that_does_not_reach_the_offset_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, FakeRestart(times=1 << 30))
    (finding,) = found.findings
    assert (finding.code, finding.place.broker_id) == ("replica-not-verified", 2)
    assert "OFFSET_OUT_OF_RANGE" in finding.message
    assert (found.verdict, found.offset, found.compared) == ("unknown", 12, [1, 3])
