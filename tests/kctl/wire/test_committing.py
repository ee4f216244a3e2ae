"""In which order requests are sent, and what is waited for between them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from formats.values import replace
from kctl.access.acl import Acl
from kctl.changes.kinds.access import AlterAcls
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.elections import ElectPreferred
from kctl.changes.kinds.reassignments import Reassign
from kctl.changes.kinds.throttles import DISK_RATE, LEADER_REPLICAS, ClearThrottle, not_read
from kctl.changes.kinds.topics import AddPartitions, CreateTopic, DeleteTopic
from kctl.cluster.intent import Intent, Waited
from kctl.cluster.rights import Right
from kctl.cluster.state import (
    NOT_RETURNED,
    Broker,
    ClusterState,
    EntityConfig,
    PartitionState,
    Problem,
    Quorum,
    Topic,
)
from kctl.cluster.versions import KafkaVersion
from kctl.cluster.visibility import with_hidden_topics
from kctl.errors import KctlError, NotFinished, Refused
from kctl.model import TopicPartition
from kctl.wire import acls
from kctl.wire.cluster import AdminCluster
from kctl.wire.writes import commit as committing
from kctl.wire.writes.commit import WireCommit
from kctl.wire.writes.configs import ConfigOperation, IncrementalAlterConfigs, operations
from kctl.wire.writes.moves import AlterPartitionReassignments, AlterReplicaLogDirs, KnownLogDirs, reassign
from kctl.wire.writes.present import KnownTopic
from kctl.wire.writes.requests import ReplicasOf, Request, RequestItem
from kctl.wire.writes.topics import CreatePartitions, add_partitions

RATE = "leader.replication.throttled.rate"
MOVES, DISKS = "AlterPartitionReassignments", "AlterReplicaLogDirs"
THROTTLE = IncrementalAlterConfigs(
    about="broker 1",
    entity_type="brokers",
    entity_name="1",
    configs=(ConfigOperation(RATE, "SET", "1000"),),
)
ORDER = AlterPartitionReassignments(about="1 partition", partitions=(ReplicasOf("t", 0, (1,)),))
BETWEEN_DISKS = AlterReplicaLogDirs(about="broker 1", expected=KnownLogDirs(()), broker_id=1, partitions=())
KRAFT = Quorum(leader_id=1, leader_epoch=1, high_watermark=5, members=())


def state(rate: str | None, quorum: Quorum | None) -> ClusterState:
    values = {} if rate is None else {RATE: rate}
    config = EntityConfig(entity_type="brokers", entity_name="1", values=values)
    return ClusterState(
        cluster_id=None,
        kafka_version=KafkaVersion(2, 8),
        brokers={1: Broker(broker_id=1, host="h", port=1)},
        controller=None,
        configs={("brokers", "1"): config},
        backend="admin",
        quorum=quorum,
    )


def events(
    monkeypatch: pytest.MonkeyPatch, rates: list[str | None], quorum: Quorum | None, order: Request = ORDER
) -> list[str]:
    """What is sent and read, with what brokers say of the rate each time."""
    seen: list[str] = []

    def send(wire: Any, write: Request) -> list[Any]:
        seen.append(write.target.split()[0])
        return []

    def read_state(*_: Any, **__: Any) -> ClusterState:
        rate = rates.pop(0)
        seen.append(f"rate {rate}")
        return state(rate, quorum)

    monkeypatch.setattr(committing, "send", send)
    monkeypatch.setattr(WireCommit, "_settle", lambda self, writes: None)
    asked = SimpleNamespace(wire=None, read_state=read_state, has_written=False)
    WireCommit(cast(AdminCluster, asked)).carry_out([THROTTLE, order])
    return seen


def test_a_throttle_is_in_force_before_the_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert events(monkeypatch, [None, None, None, "1000"], None) == [
        *("rate None", "IncrementalAlterConfigs"),
        *("rate None", "rate None", "rate 1000", MOVES),
    ]


def test_a_log_of_its_own_keeps_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert events(monkeypatch, [None], KRAFT) == ["rate None", "IncrementalAlterConfigs", MOVES]


@pytest.mark.parametrize("quorum", [None, KRAFT])
def test_moves_between_disks_wait_for_their_throttle(
    monkeypatch: pytest.MonkeyPatch, quorum: Quorum | None
) -> None:
    """A broker is asked for them itself, past the log that brings it the rate."""
    assert events(monkeypatch, [None, None, "1000"], quorum, BETWEEN_DISKS) == [
        *("rate None", "IncrementalAlterConfigs"),
        *("rate None", "rate 1000", DISKS),
    ]


def test_a_throttle_that_nobody_takes_holds_the_move_up_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "IN_FORCE", 0.05)
    seen = events(monkeypatch, [None] * 100, None)
    assert (seen[1], seen[2], seen[-1]) == ("IncrementalAlterConfigs", "rate None", MOVES)


@pytest.mark.parametrize(
    ("before", "present", "expected"),
    [
        (None, None, ["IncrementalAlterConfigs", MOVES]),
        (None, NOT_RETURNED, [MOVES]),  # it was cut off behind the first request
        (
            NOT_RETURNED,
            NOT_RETURNED,
            ["IncrementalAlterConfigs", MOVES],
        ),  # nobody can tell whose it is: once more
        (None, "1000", [MOVES]),
    ],
)
def test_what_a_change_has_set_before_it_was_cut_off_is_not_in_its_way(
    before: str | None, present: str | None, expected: list[str]
) -> None:
    """Brokers of 2.4 say that a rate is set, and not which."""
    tp = TopicPartition("t", 0)
    rate = AlterConfig(entity_type="brokers", entity_name="1", before={RATE: before}, after={RATE: "1000"})
    intent = Reassign(targets={tp: (2, 3)}, origins={tp: (1, 2)}, config_changes=(rate,))
    now = replace(
        state(present, None),
        brokers={id: Broker(broker_id=id, host="h", port=1) for id in (1, 2, 3)},
        topic_names=("t",),
        topics={"t": Topic(name="t", partitions={0: (1, 2)})},
    )
    assert [write.target.split()[0] for write in reassign(now, intent, now)] == expected


def moving(isr: tuple[int, ...], alive: tuple[int, ...], offline: tuple[int, ...] = ()) -> ClusterState:
    """`t-0` on its way from brokers 1 and 2 to 3 and 2."""
    topic = Topic(name="t", partitions={0: (3, 2, 1)}, adding_replicas={0: (3,)}, removing_replicas={0: (1,)})
    leader = next((b for b in isr if b in alive), -1)
    return replace(
        state(None, KRAFT),
        brokers={id: Broker(broker_id=id, host="h", port=1) for id in alive},
        topic_names=("t",),
        topics={"t": topic},
        partition_states={TopicPartition("t", 0): PartitionState(leader, 5, isr, offline_replicas=offline)},
    )


BACK = Reassign(targets={TopicPartition("t", 0): (1, 2)}, origins={TopicPartition("t", 0): (3, 2)})


@pytest.mark.parametrize("alive", [(2, 3), (1, 2), (1, 2, 3)])
def test_a_move_goes_back_past_a_dead_broker(alive: tuple[int, ...]) -> None:
    now = moving((2,), alive)
    assert [write.target.split()[1] for write in reassign(now, BACK, now)] == ["cancel", "order"]
    over = replace(
        now,
        topics={"t": Topic(name="t", partitions={0: (1, 2)})},
    )
    # The broker that is dead does not hold the wait up; one that lives is waited for.
    assert BACK.how_far(over).is_done == (1 not in alive)


def test_a_move_goes_back_past_a_failed_disk() -> None:
    now = moving((2,), (1, 2, 3), offline=(1,))
    assert len(reassign(now, BACK, now)) == 2
    over = replace(now, topics={"t": Topic(name="t", partitions={0: (1, 2)})})
    assert BACK.how_far(over).is_done


@pytest.mark.parametrize(("isr", "alive"), [((3,), (1, 2, 3)), ((2,), (1, 3)), ((), (1, 2, 3))])
def test_a_move_does_not_go_back_to_nobody_in_sync(isr: tuple[int, ...], alive: tuple[int, ...]) -> None:
    now = moving(isr, alive)
    with pytest.raises(Refused, match="none of these is alive and in the ISR"):
        reassign(now, BACK, now)


def test_a_new_move_to_a_dead_broker_is_refused() -> None:
    now = replace(moving((1, 2), (1, 2)), topics={"t": Topic(name="t", partitions={0: (1, 2)})})
    intent = Reassign(targets={TopicPartition("t", 0): (3, 2)}, origins={TopicPartition("t", 0): (1, 2)})
    with pytest.raises(Refused, match="not alive"):
        reassign(now, intent, now)


def test_a_broker_that_is_gone_behind_the_first_request_leaves_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The throttle is written, and whether it is in force cannot be read: not that nothing was written."""
    states = [state(None, None)]

    def read_state(*_: Any, **__: Any) -> ClusterState:
        if not states:
            raise KctlError("no controller answers; nothing was written")
        return states.pop()

    monkeypatch.setattr(committing, "send", lambda wire, write: [])
    asked = SimpleNamespace(wire=None, read_state=read_state, has_written=False)
    with pytest.raises(
        NotFinished, match="1 of 2 requests was carried out: no controller answers; `kctl"
    ) as raised:
        WireCommit(cast(AdminCluster, asked)).carry_out([THROTTLE, ORDER])
    assert raised.value.is_begun


@pytest.mark.parametrize(("replicas", "is_begun"), [({0: (1,), 1: (2,)}, True), ({0: (3,), 1: (2,)}, False)])
def test_a_request_of_which_a_part_was_carried_out(replicas: dict[int, Any], is_begun: bool) -> None:
    rows = (ReplicasOf("t", 0, (1,)), ReplicasOf("t", 1, (3,)))
    now = replace(state(None, None), topics={"t": Topic(name="t", partitions=replicas)})
    commit = WireCommit(cast(AdminCluster, SimpleNamespace(wire=None, read_state=lambda *_, **__: now)))
    moves = [AlterPartitionReassignments(about="2 partitions", partitions=rows)]
    assert commit.is_begun(moves) is is_begun and not commit.is_written(moves)


@pytest.mark.parametrize(("replicas", "is_seen"), [((1,), True), ((2,), False)])
def test_of_an_end_and_a_new_move_the_last_is_to_be_seen(
    monkeypatch: pytest.MonkeyPatch, replicas: tuple[int, ...], is_seen: bool
) -> None:
    monkeypatch.setattr(committing, "SETTLING", 0.01)
    monkeypatch.setattr(committing, "send", lambda wire, request: [])
    now = replace(state(None, KRAFT), topics={"t": Topic(name="t", partitions={0: replicas})})
    end = AlterPartitionReassignments(about="1 partition", partitions=(ReplicasOf("t", 0, None),))
    asked = SimpleNamespace(wire=None, read_state=lambda *_, **__: now, has_written=False)
    commit = WireCommit(cast(AdminCluster, asked))
    if is_seen:
        commit.carry_out([end, ORDER])
    else:
        with pytest.raises(NotFinished, match="it was acknowledged, but is not to be seen"):
            commit.carry_out([end, ORDER])


@pytest.mark.parametrize(
    ("partitions", "is_shown"),
    [({0: (9,), 1: (1,), 2: (2,)}, True), ({0: (9,), 1: (1,)}, False), ({0: (1,), 1: (2,), 2: (9,)}, False)],
)
def test_new_partitions_are_those_behind_the_former_ones(partitions: dict[int, Any], is_shown: bool) -> None:
    request = CreatePartitions(
        about="t", topic="t", count=3, assignments=((1,), (2,)), expected=KnownTopic(topic_id=None, count=1)
    )
    now = replace(state(None, KRAFT), topics={"t": Topic(name="t", partitions=partitions)})
    assert request.is_shown(now) is is_shown


HIDDEN = Problem("topic t", "not authorized")
TP = TopicPartition("t", 0)


def seen_as(intent: Intent, *problems: Problem, **values: Any) -> Waited:
    return intent.how_far(replace(state(None, KRAFT), problems=problems, **values))


@pytest.mark.parametrize(
    "intent",
    [
        Reassign(targets={TP: (1, 2)}, origins={TP: (1, 3)}),
        ElectPreferred(partitions=(TP,)),
        DeleteTopic(topic="t"),
        AlterConfig(entity_type="topics", entity_name="t", after={"k": None}, before={"k": "1"}),
    ],
    ids=lambda intent: intent.kind,
)
def test_what_may_not_be_seen_is_neither_done_nor_gone(intent: Intent) -> None:
    """A right that was withdrawn while the change was waited for."""
    waited = seen_as(intent, HIDDEN)
    assert not waited.is_done
    words = " ".join((*waited.missing, waited.failed))
    assert "not authorized" in words and "gone" not in words


@pytest.mark.parametrize("right", [None, Right("Describe", "Topic", "t")])
def test_a_new_topic_is_waited_for_unless_its_user_may_not_see_it(right: Right | None) -> None:
    waited = seen_as(CreateTopic(topic="t", replicas={0: (1,)}), HIDDEN._replace(right=right))
    assert not waited.is_done and "not authorized" in waited.missing[0]
    assert waited.failed == ("topic t cannot be seen (not authorized)" if right else "")


def test_a_dead_broker_does_not_tell_that_a_value_is_unset() -> None:
    unset = AlterConfig(entity_type="brokers", entity_name="2", after={"k": None}, before={"k": "1"})
    assert not seen_as(unset).is_done and "it is not alive" in seen_as(unset).missing[0]
    request = IncrementalAlterConfigs(
        about="broker 2", entity_type="brokers", entity_name="2", configs=operations(unset)
    )
    assert not request.is_shown(state(None, KRAFT))


def test_a_throttle_on_what_cannot_be_read_may_be_left() -> None:
    clear = ClearThrottle(throttled={"t": {RATE: ("0:1",)}}, rates={"1": {}, "10": {}, "9": {}})
    asked: list[Any] = []

    def read_state(topics: Any, **_: Any) -> ClusterState:
        asked.append(topics)
        return replace(state(None, KRAFT), problems=(HIDDEN,))

    cluster = cast(AdminCluster, SimpleNamespace(read_state=read_state))
    now = with_hidden_topics(cluster, clear.throttled, replace(state(None, KRAFT), broker_files={1: {}}))
    assert asked == [["t"]] and not_read(clear, now) == ["broker 9", "broker 10", "topic t"]
    with_hidden_topics(cluster, clear.throttled, replace(state(None, KRAFT), topic_names=("t",)))
    assert asked == [["t"]], "it is listed, and not asked for"


def test_a_rate_that_other_throttled_replicas_need_is_not_left_but_kept() -> None:
    """By a list of `*` the rates of all brokers stay, read or not; that of copies between disks does not."""
    everything = EntityConfig(entity_type="topics", entity_name="other", values={LEADER_REPLICAS: "*"})
    now = replace(state(None, KRAFT), configs={("topics", "other"): everything}, broker_files={})
    now = replace(now, brokers={id: Broker(broker_id=id, host="h", port=1) for id in (1, 2)})
    assert not_read(ClearThrottle(throttled={}, rates={"1": {RATE: None}, "2": {}}), now) == []
    assert not_read(ClearThrottle(throttled={}, rates={"1": {DISK_RATE: None}}), now) == ["broker 1"]


def test_what_the_controller_refuses_beforehand_counts_as_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "send", lambda *_, **__: [RequestItem("topic t", 29, None, "t")])
    now = replace(state(None, KRAFT), topics={"t": Topic(name="t", partitions={0: (1,)})}, topic_names=("t",))
    cluster = cast(AdminCluster, SimpleNamespace(wire=None, read_state=lambda *_, **__: now))
    change = AlterConfig(entity_type="topics", entity_name="t", after={"k": "1"}, before={"k": None})
    with pytest.raises(KctlError) as raised:
        committing.writes_for(cluster, change, now)
    assert [(item.request, item.error_code) for item in raised.value.items] == [
        ("IncrementalAlterConfigs", 29)
    ]


def test_a_plan_of_what_brokers_answered_asks_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another broker may be behind the first: a difference between the two would be taken for somebody else's change."""
    rule = Acl("topic", "a", "literal", "User:ann", "*", "read", "allow")
    answers = [[], [rule]]
    monkeypatch.setattr(acls, "read_acls", lambda _: answers.pop(0))
    cluster = cast(AdminCluster, SimpleNamespace(wire=None, read_state=lambda *_, **__: state(None, KRAFT)))
    (request,) = committing.writes_for(cluster, AlterAcls(added=(rule,)), state(None, KRAFT))
    assert request.target == "CreateAcls on topic a" and answers == [[rule]]


@pytest.mark.parametrize("present", [(0, 1, 3), (0, 1, 2)])
def test_partitions_are_added_behind_those_that_there_are(present: tuple[int, ...]) -> None:
    topic = Topic(name="t", partitions=dict.fromkeys(present, (1,)))
    now = replace(state(None, KRAFT), topics={"t": topic}, topic_names=("t",))
    with pytest.raises(Refused, match="without a gap"):
        add_partitions(now, AddPartitions(topic="t", replicas={2: (1,)}), state(None, KRAFT))


def test_the_requests_of_a_large_change_are_told_apart_by_their_hashes() -> None:
    """The journal looks each of them up, each time that it is written."""
    moves = [replace(ORDER, partitions=(ReplicasOf("t", p, (1,)),)) for p in range(100)]
    assert len(set(map(hash, moves))) == 100
