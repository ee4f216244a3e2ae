"""Moves between the disks of a broker: what is chosen, what is refused, how far a copy is."""

from typing import Any

import pytest

from kctl.changes.intents import intent_from_json, intent_to_json
from kctl.changes.kinds.reassignments import AlterReplicaLogDirs
from kctl.cluster.disks import BrokerLogDir, StoredReplica
from kctl.cluster.state import Broker, ClusterState, Topic
from kctl.cluster.versions import KafkaVersion
from kctl.errors import BadValue, Refused
from kctl.model import TopicPartition
from kctl.operations.reassignment.disk_balance import plan_balance, plan_to_log_dir
from kctl.operations.reassignment.disk_moves import check_log_dirs, disk_moves, with_disk_moves
from kctl.operations.reassignment.verification import MoveStatus

A, B = "/a", "/b"


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def log_dir(
    path: str | None, sizes: dict[int, int], *, copies: dict[int, int] | None = None, **more: Any
) -> BrokerLogDir:
    replicas = [StoredReplica(tp(n), size) for n, size in sizes.items()]
    replicas += [StoredReplica(tp(n), size, True, 0) for n, size in (copies or {}).items()]
    return BrokerLogDir(1, path, replicas=tuple(replicas), **more)


def state(*log_dirs: BrokerLogDir, partitions: int = 20, backend: str = "admin") -> ClusterState:
    return ClusterState(
        cluster_id="c",
        kafka_version=KafkaVersion(4, 1),
        brokers={1: Broker(1, "h", 1), 2: Broker(2, "h", 2)},
        controller=None,
        topics={"t": Topic(name="t", partitions=dict.fromkeys(range(partitions), (1, 2)))},
        log_dirs=log_dirs,
        backend=backend,
    )


def test_few_moves_even_disks_out() -> None:
    planned = plan_balance(state(log_dir(A, {0: 50, 1: 30, 2: 10, 3: 10}), log_dir(B, {})), 1)
    assert [(m.partition.partition, m.to_log_dir, m.size_in_bytes) for m in planned.moves] == [(0, B, 50)]
    assert [(load.size_in_bytes_before, load.size_in_bytes_after) for load in planned.loads] == [
        (100, 50),
        (0, 50),
    ]


def test_what_is_on_its_way_to_a_disk_is_no_move_to_it() -> None:
    on_its_way = state(log_dir(A, {0: 50, 1: 30}), log_dir(B, {}, copies={0: 50}))
    planned = plan_to_log_dir(on_its_way, 1, B, None, [0])
    assert planned.moves == [] and disk_moves({(tp(0), 1): B}, on_its_way) == []
    (back,) = disk_moves({(tp(0), 1): A}, on_its_way)
    assert (back.from_log_dir, back.to_log_dir) == (B, A)


def test_three_disks_and_a_replica_that_is_larger_than_the_rest() -> None:
    full, c = {0: 900, 1: 50, 2: 50, 3: 50}, "/c"
    planned = plan_balance(state(log_dir(A, full), log_dir(B, {}), log_dir(c, {4: 30})), 1)
    after = {load.log_dir: load.size_in_bytes_after for load in planned.loads}
    assert after == {A: 900, B: 100, c: 80} and len(planned.moves) == 3


def test_what_is_even_enough_stays() -> None:
    assert plan_balance(state(log_dir(A, {0: 51, 1: 1}), log_dir(B, {2: 51})), 1).moves == []


def test_room_is_respected_and_what_is_not_online_left_out() -> None:
    crowded = state(
        log_dir(A, {0: 60, 1: 20, 2: 20}),
        log_dir(B, {}, usable_bytes=30),
        log_dir("/c", {3: 500}, is_cordoned=True),
    )
    planned = plan_balance(crowded, 1)
    assert [(m.partition.partition, m.to_log_dir) for m in planned.moves] == [(1, B)]
    with pytest.raises(Refused, match="does not have two usable log directories: /a"):
        plan_balance(state(log_dir(A, {0: 9}), log_dir("/c", {}, is_cordoned=True)), 1)


FAILED = log_dir("/c", {}, error="KAFKA_STORAGE_ERROR")


@pytest.mark.parametrize(
    ("now", "path", "says"),
    [
        (state(log_dir(A, {0: 9}), log_dir(B, {})), "/x", "has no log directory /x"),
        (state(log_dir(A, {0: 9}), FAILED), "/c", r"/c of broker 1 has failed \(KAFKA_STORAGE_ERROR\)"),
        (
            state(log_dir(A, {0: 9}), log_dir(B, {}), FAILED),
            B,
            "copies nothing between its disks while /c has failed",
        ),
        (state(log_dir(A, {0: 9}), log_dir(B, {}, is_cordoned=True)), B, "is cordoned"),
        (state(log_dir(A, {0: 9}), log_dir(B, {}, usable_bytes=8)), B, "8 bytes left, and 9 would be copied"),
        (state(log_dir(A, {}), log_dir(B, {})), B, "reports nothing about t-0"),
        (
            state(log_dir(A, {0: 9}), log_dir("/c", {}, copies={0: 1}), log_dir(B, {})),
            B,
            "being copied from /a to /c",
        ),
        (state(log_dir(None, {}, error="it is not alive")), B, "it is not alive"),
        (state(), B, "it is not alive"),
    ],
)
def test_what_a_broker_would_not_do(now: ClusterState, path: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        check_log_dirs({(tp(0), 1): path}, now)


def test_a_copy_is_given_up_whatever_else_has_failed() -> None:
    check_log_dirs({(tp(0), 1): A}, state(log_dir(A, {0: 9}), log_dir(B, {}, copies={0: 1}), FAILED))


def test_zookeeper_and_unknown_brokers() -> None:
    with pytest.raises(Refused, match="not ZooKeeper"):
        plan_balance(state(backend="zookeeper"), 1)
    with pytest.raises(BadValue, match="no broker 7; there are 1, 2"):
        plan_balance(state(), 7)
    with pytest.raises(Refused, match="has no such replica"):
        plan_to_log_dir(state(log_dir(A, {0: 9}), log_dir(B, {})), 1, B, {"t"}, [99])


INTENT = AlterReplicaLogDirs(log_dirs={(tp(0), 1): B}, previous_log_dirs={(tp(0), 1): A})


@pytest.mark.parametrize(
    ("now", "missing", "failed"),
    [
        (state(log_dir(A, {}), log_dir(B, {0: 9})), "", ""),
        (state(log_dir(A, {0: 9}), log_dir(B, {}, copies={0: 4})), "broker 1 copies it from /a to /b", ""),
        (state(log_dir(A, {0: 9}), log_dir(B, {})), "broker 1 does not copy it from /a to /b", ""),
        (state(log_dir(A, {}), log_dir(B, {})), "broker 1 reports nothing about t-0", ""),
        (state(log_dir(None, {}, error="no answer")), "no answer", ""),
        (
            state(log_dir(A, {0: 9}), log_dir(B, {}, error="E")),
            "/b of broker 1 has failed",
            "/b of broker 1 has failed",
        ),
    ],
)
def test_how_far_a_move_is(now: ClusterState, missing: str, failed: str) -> None:
    waited = INTENT.how_far(now)
    assert waited.is_done is not bool(missing)
    assert (
        missing in "".join(waited.missing) and failed in waited.failed and bool(failed) == bool(waited.failed)
    )


def test_where_a_plan_stands() -> None:
    done = MoveStatus(partition=tp(0), state="done", target=(1, 2), replicas=(1, 2), isr=(1, 2), leader=1)
    wanted, key = {(tp(0), 1): B}, (tp(0), 1)
    before = [log_dir(A, {0: 90}), log_dir(B, {}, copies={0: 10})]
    now = state(log_dir(A, {0: 90}), log_dir(B, {}, copies={0: 30}))
    (one,) = with_disk_moves([done], wanted, now, (), before, 2.0)
    assert (one.state, one.bytes_done, one.bytes_left, one.bytes_per_second, one.seconds_left) == (
        "in_progress", 30, 60, 10, 6,
    )  # fmt: skip
    assert with_disk_moves([done], {key: A}, state(log_dir(A, {0: 90}), log_dir(B, {}))) == [done]
    (one,) = with_disk_moves([done], wanted, state(log_dir(A, {0: 90}), log_dir(B, {})))
    assert one.state == "not_started"


def test_the_journal_keeps_it() -> None:
    assert intent_from_json(intent_to_json(INTENT)) == INTENT
    assert INTENT.inverse() == AlterReplicaLogDirs(
        log_dirs=INTENT.previous_log_dirs, previous_log_dirs=INTENT.log_dirs
    )
    to_come = AlterReplicaLogDirs(log_dirs=INTENT.log_dirs, previous_log_dirs={})
    assert to_come.inverse() == AlterReplicaLogDirs(log_dirs={}, previous_log_dirs={})
