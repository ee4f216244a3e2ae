"""Every check of health finds what it is for and nothing else; predictions; old consumers; elections."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from formats.values import replace
from kctl.changes.kinds.elections import ElectPreferred, MoveController
from kctl.cluster.interface import Oddity
from kctl.cluster.log_ends import answer, log_end_offsets, request, total_lag
from kctl.cluster.old_consumers import OldMember, deal, streams
from kctl.cluster.partition_health import health_of
from kctl.cluster.prediction import may_be_unclean, predict
from kctl.cluster.state import ClusterState, PartitionState, Problem, Quorum, QuorumMember
from kctl.cluster.versions import parse_version
from kctl.errors import BadValue, Refused
from kctl.model import TopicPartition
from kctl.operations.elections import candidates, plan_preferred_election
from kctl.operations.health import CHECKS, HealthFacts, check_health
from kctl.zookeeper.cluster import ZookeeperCluster
from tests.fakes import FakeStore, add_topic, fake_cluster, put_state

IDS = ["AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"]
NOW = 2000


@pytest.fixture
def store() -> FakeStore:
    made = fake_cluster()
    add_topic(made, "a", [[1, 2], [2, 3]], topic_id=IDS[0])
    add_topic(made, "b", [[3, 1]], topic_id=IDS[1])
    return made


def look(store: FakeStore, version: str | None = None) -> ClusterState:
    pinned = parse_version(version) if version else None
    return ZookeeperCluster(store).read_state(configs=("topics", "brokers"), kafka_version=pinned)


def sick(
    store: FakeStore, now: int = NOW, version: str | None = None, growth: int = 0
) -> dict[str, tuple[str, ...]]:
    state = look(store, version)
    oddities = ZookeeperCluster(store).read_oddities(state, now)
    found = {
        r.check: r.examples
        for r in check_health(HealthFacts(state, oddities, now, growth))
        if r.status != "good"
    }
    assert [r.check for r in check_health(HealthFacts(state, oddities, now))] == [
        check.name for check in CHECKS if check.name != "group-offsets"
    ]
    return found


# --- health -------------------------------------------------------------------------------------------


def test_a_healthy_cluster_has_nothing(store: FakeStore) -> None:
    assert sick(store) == {}


def topic(store: FakeStore, name: str, **values: Any) -> None:
    store.put(f"/brokers/topics/{name}", {"version": 3, "topic_id": IDS[0], **values})


def reassigning(store: FakeStore) -> None:
    topic(
        store, "a", partitions={"0": [1, 3, 2], "1": [2, 3]}, adding_replicas={"0": [3]}, removing_replicas={}
    )


Sickness = Callable[[FakeStore], object]
SICK: dict[str, tuple[Sickness, str]] = {
    "controller": (lambda s: s.remove("/controller"), "there is no controller"),
    "migration": (lambda s: s.put("/migration", {"version": 0}), "a KRaft quorum has claimed"),
    "unreadable": (
        lambda s: s.put("/brokers/topics/a/partitions/0/state", b"{"),
        "/brokers/topics/a/partitions/0",
    ),
    "dead-brokers": (lambda s: s.remove("/brokers/ids/3"), "broker 3 is not alive and holds 2 replicas"),
    "offline": (lambda s: put_state(s, "a", 0, -1, [2]), "a-0 has no live leader"),
    "under-min-isr": (
        lambda s: (
            s.put("/config/topics/a", {"version": 1, "config": {"min.insync.replicas": "2"}}),
            put_state(s, "a", 0, 1, [1]),
        ),
        "a-0 has 1 in the ISR",
    ),
    "under-replicated": (lambda s: put_state(s, "a", 0, 1, [1]), "a-0 has 1 of 2 replicas"),
    "isr-outside-replicas": (lambda s: put_state(s, "a", 0, 1, [1, 2, 3]), "a-0: [3] in the ISR"),
    "isr-not-alive": (lambda s: s.remove("/brokers/ids/3"), "a-1: [3] in the ISR and not alive"),
    "future-controller-epoch": (
        lambda s: s.put("/controller_epoch", b"6"),
        "controller epoch 7, the present one is 6",
    ),
    "empty-target": (
        lambda s: topic(
            s, "a", partitions={"0": [1, 2], "1": [2, 3]}, adding_replicas={}, removing_replicas={"0": [1, 2]}
        ),
        "a-0 would have no replicas left",
    ),
    "topic-ids": (lambda s: topic(s, "b", partitions={"0": [3, 1]}), "has the id"),
    "partition-numbers": (
        lambda s: topic(s, "a", partitions={"0": [1, 2], "3": [2, 3]}),
        "[0, 3], with gaps",
    ),
    "orphan-configs": (
        lambda s: s.put("/config/topics/gone", {"version": 1, "config": {}}),
        "gone has a configuration but does not exist",
    ),
    "requests": (
        lambda s: s.put("/admin/reassign_partitions", {"version": 1, "partitions": [], "comment": "mine"}),
        "the controller ignores the waiting reassignment",
    ),
    "deletions": (
        lambda s: (s.put("/admin/delete_topics/a", b""), s.remove("/brokers/ids/3")),
        "the deletion of a waits for brokers [3]",
    ),
    "notifications": (lambda s: s.put("/config/changes/probe", b""), "/config/changes/probe: its name"),
    "throttles": (
        lambda s: s.put(
            "/config/brokers/1", {"version": 1, "config": {"leader.replication.throttled.rate": "5"}}
        ),
        "leader.replication.throttled.rate of broker 1 is '5'",
    ),
    "min-isr-above-replicas": (
        lambda s: s.put("/config/topics/a", {"version": 1, "config": {"min.insync.replicas": "3"}}),
        "a: min.insync.replicas=3 is more than the replication factor 2: acks=all never works up to Kafka 3.6",
    ),
    "moving": (reassigning, "a-0 is being moved"),
    "non-preferred-leaders": (lambda s: put_state(s, "a", 0, 2, [1, 2]), "a-0 is led by 2, preferred is 1"),
}


@pytest.mark.parametrize("check", SICK)
def test_each_check_finds_what_it_is_for(store: FakeStore, check: str) -> None:
    make, says = SICK[check]
    make(store)
    found = sick(store)
    assert check in found, found
    assert any(says in example for example in found[check]), found[check]


def test_every_check_has_its_sickness() -> None:
    assert {check.name for check in CHECKS} == {
        *SICK,
        "controller-loop",
        "migration-rolled-back",
        "quorum",
        "failed-disks",
        "silent-brokers",
        "group-offsets",
    }


@pytest.mark.parametrize(
    ("version", "under", "says"),
    [
        ("3.6", True, "acks=all never works up to Kafka 3.6, and asks for 1"),
        ("3.7", False, "acks=all asks for 1 in the ISR, as Kafka 3.7 and later do (KAFKA-15583)"),
    ],
)
def test_a_min_isr_above_the_replication_factor(
    store: FakeStore, version: str, under: bool, says: str
) -> None:
    """Leaders of 3.7 and later ask for no more than there are replicas."""
    topic(store, "a", partitions={"0": [1]})
    put_state(store, "a", 0, 1, [1])
    store.put("/config/topics/a", {"version": 1, "config": {"min.insync.replicas": "2"}})
    found = sick(store, version=version)
    assert ("under-min-isr" in found) is under
    (example,) = found["min-isr-above-replicas"]
    assert (
        example.startswith("a: min.insync.replicas=2 is more than the replication factor 1")
        and says in example
    )
    assert health_of(TopicPartition("a", 0), look(store, version)).is_under_min_isr is under


@pytest.mark.parametrize(
    ("isr", "alive", "says"),
    [
        ([1, 2], True, "preferred is 1"),
        ([2], True, "preferred is 1, which is not in the ISR"),
        ([2], False, "preferred is 1, which is not alive"),
    ],
)
def test_which_leaders_an_election_puts_back(
    store: FakeStore, isr: list[int], alive: bool, says: str
) -> None:
    put_state(store, "a", 0, 2, isr)
    if not alive:
        store.remove("/brokers/ids/1")
    assert sick(store)["non-preferred-leaders"][0] == f"a-0 is led by 2, {says}"


@pytest.mark.parametrize(
    ("protocol", "missing"),
    [("2.7-IV2", ()), ("2.8", ("a has no topic id",)), ("3.9-IV0", ("a has no topic id",))],
)
def test_topic_ids_are_given_from_protocol_2_8_on(
    store: FakeStore, protocol: str, missing: tuple[str, ...]
) -> None:
    files = {1: {"inter.broker.protocol.version": protocol}}
    topic(store, "a", version=2, partitions={"0": [1, 2], "1": [2, 3]}, topic_id=None)
    state = replace(look(store, "3.9"), broker_files=files)
    found = {r.check: r.examples for r in check_health(HealthFacts(state, (), NOW)) if r.status != "good"}
    assert found.get("topic-ids", ()) == missing


@pytest.mark.parametrize(
    ("oddities", "status", "examples"),
    [
        ((), "good", ()),
        ((Oddity("group-offset", "a-0", "Group g committed 5"),), "warning", ("Group g committed 5",)),
        (
            (Oddity("group-offset-unread", "groups", "broker 2 is silent"),),
            "unknown",
            ("broker 2 is silent",),
        ),
    ],
)
def test_offsets_of_groups_are_known_to_brokers_alone(
    store: FakeStore, oddities: tuple[Oddity, ...], status: str, examples: tuple[str, ...]
) -> None:
    state = replace(look(store), backend="admin")
    (result,) = (r for r in check_health(HealthFacts(state, oddities, NOW)) if r.check == "group-offsets")
    assert (result.status, result.examples) == (status, examples)


def test_a_failed_disk(store: FakeStore) -> None:
    """Its broker is alive, and the replicas on it are not; what nothing is on is told by the broker alone."""
    tp = TopicPartition("a", 0)
    state = look(store)
    offline = {tp: state.partition_states[tp]._replace(offline_replicas=(1,))}
    state = replace(state, partition_states={**state.partition_states, **offline})
    oddity = Oddity("failed-disk", "log directory /data of broker 1", "KAFKA_STORAGE_ERROR", broker_id=1)
    found = {
        r.check: r.examples for r in check_health(HealthFacts(state, (oddity,), NOW)) if r.status != "good"
    }
    assert found["failed-disks"] == (
        "log directory /data of broker 1: KAFKA_STORAGE_ERROR",
        "broker 1 has 1 replica on failed disks: a-0",
    )
    assert found["isr-not-alive"] == ("a-0: [1] in the ISR and not alive",)
    other = {r.check for r in check_health(HealthFacts(state, (), NOW)) if r.status != "good"}
    assert "failed-disks" not in other, (
        "its broker says that no disk has failed: it stops, or has just started"
    )
    assert {str(c.partition): c.reason for c in candidates(state)}["a-0"] is None, "it still leads"
    put_state(store, "a", 0, 2, [2])
    led = replace(
        state,
        partition_states={
            **look(store).partition_states,
            tp: PartitionState(2, 1, (2,), offline_replicas=(1,)),
        },
    )
    assert candidates(led, ["a"])[0].reason == "broker 1, its preferred leader, has it on a failed disk"


def test_a_broker_that_does_not_answer_is_nothing_unreadable(store: FakeStore) -> None:
    """Killed a moment ago, and its session is not over yet."""
    problem = Problem("configuration of broker 2", "broker 2 does not answer: connection refused", 2)
    state = replace(look(store), problems=(problem,))
    found = {r.check: r.examples for r in check_health(HealthFacts(state, (), NOW)) if r.status != "good"}
    assert found == {"silent-brokers": ("broker 2 does not answer: connection refused",)}


def test_what_zookeeper_hides_is_unknown_and_no_fault(store: FakeStore) -> None:
    hidden = Problem("configurations of brokers", "/config/brokers: hidden", is_hidden=True)
    state = replace(look(store), problems=(hidden,), hidden="/brokers/topics/x: hidden")
    results = {result.check: result for result in check_health(HealthFacts(state, (), NOW))}
    assert (
        results["unreadable"].status == "unknown"
        and "may not start again" not in results["unreadable"].meaning
    )
    assert {results[name].status for name in ("offline", "under-replicated", "under-min-isr")} == {"unknown"}
    assert results["controller"].status == "good"


def test_voters_that_are_behind(store: FakeStore) -> None:
    members = (
        QuorumMember(1, True, 100, 90_000),
        QuorumMember(2, True, 40, 60_000),
        QuorumMember(3, True, 0, None),
        QuorumMember(4, False, 10, 1),
    )
    quorum = Quorum(leader_id=1, leader_epoch=3, high_watermark=99, members=members)
    state = replace(look(store), quorum=quorum)
    found = {r.check: r.examples for r in check_health(HealthFacts(state, (), NOW))}
    assert found["quorum"] == ("voter 2 is 30 s behind", "voter 3 is not heard of")


def test_a_voter_whose_directory_is_gone(store: FakeStore) -> None:
    """Controller 3 got an empty disk: the voter is a node with a directory."""
    members = (
        QuorumMember(1, True, 100, 90_000, directory_id="A", is_answering=True),
        QuorumMember(3, True, 0, None, directory_id="B", is_answering=False),
        QuorumMember(3, False, 100, 90_000, directory_id="C", is_answering=True),
    )
    state = replace(
        look(store), quorum=Quorum(leader_id=1, leader_epoch=3, high_watermark=99, members=members)
    )
    found = {r.check: r.examples for r in check_health(HealthFacts(state, (), NOW))}
    assert found["quorum"] == (
        "voter 3 is directory B, which is gone; node 3 is an observer with directory C; "
        "`kctl quorum remove 3`, then `kctl quorum add 3`",
    )


def test_a_migration_that_was_rolled_back(store: FakeStore) -> None:
    """The cluster is under migration no more, and `/migration` has to go before the next one."""
    numbers = {"kraft_controller_id": 3000, "kraft_controller_epoch": 1, "kraft_metadata_epoch": 1}
    store.put("/migration", {"version": 0, "kraft_metadata_offset": 500, **numbers})
    assert not look(store).is_migrating
    found = {
        r.check: r.examples[0] for r in check_health(HealthFacts(look(store), (), NOW)) if r.status != "good"
    }
    assert list(found) == ["migration-rolled-back"]
    assert "delete the znode" in found["migration-rolled-back"]
    store.remove("/controller")
    assert look(store).is_migrating, "a KRaft quorum may claim it again"


def test_a_voter_that_has_just_died_is_told(store: FakeStore) -> None:
    """It does not fetch any more; it is long before it counts as far behind."""
    members = tuple(
        QuorumMember(id, True, 9, 100_000 - ago, last_fetch_at=100_000 - ago, is_answering=ago < 2000)
        for id, ago in ((1, 0), (2, 400), (3, 5000))
    )
    state = replace(look(store), quorum=Quorum(1, 3, 9, members))
    found = {r.check: r.examples for r in check_health(HealthFacts(state, (), NOW))}
    assert found["quorum"] == ("voter 3 does not answer",)


def test_an_offline_partition_says_who_may_lead_it(store: FakeStore) -> None:
    put_state(store, "a", 0, -1, [])
    state = replace(look(store), eligible_leaders={TopicPartition("a", 0): (2,)})
    found = {r.check: r.examples for r in check_health(HealthFacts(state, (), NOW))}
    assert found["offline"] == ("a-0 has no live leader; it comes back without loss with broker 2",)


@pytest.mark.parametrize("eligible", [{TopicPartition("a", 0): (2,)}, {}])
def test_a_broker_alone_brings_no_failed_disk_back(
    store: FakeStore, eligible: dict[TopicPartition, tuple[int, ...]]
) -> None:
    put_state(store, "a", 0, -1, [] if eligible else [2])
    state = look(store)
    tp = TopicPartition("a", 0)
    offline = {**state.partition_states, tp: state.partition_states[tp]._replace(offline_replicas=(2,))}
    state = replace(state, eligible_leaders=eligible, partition_states=offline)
    found = {r.check: r.examples for r in check_health(HealthFacts(state, (), NOW))}
    assert found["offline"] == ("a-0 has no live leader; broker 2 has it on a failed disk",)


def test_controllers_that_follow_each_other(store: FakeStore) -> None:
    assert sick(store, growth=1) == {}, "one election is no loop"
    assert "controller-loop" in sick(store, growth=3)


def test_what_waits_too_long(store: FakeStore) -> None:
    store.put("/admin/delete_topics/a", b"")
    store.put(
        "/admin/preferred_replica_election", {"version": 1, "partitions": [{"topic": "a", "partition": 0}]}
    )
    assert sick(store) == {}
    found = sick(store, now=3_600_000)
    assert "/admin/delete_topics/a: it has been there for" in found["deletions"][0]
    assert "an election has been waiting for 59 min" in found["requests"][0]


def test_a_poisoned_notification_is_one_up_to_1_1_only(store: FakeStore) -> None:
    store.put("/config/changes/config_change_0000000001", b'{"version":7}')
    assert "version is 7" in sick(store, version="1.1")["notifications"][0]
    assert "notifications" not in sick(store, version="2.8")


# --- predictions ----------------------------------------------------------------------------------------


def fates(store: FakeStore, *stop: int, version: str | None = None, **how: Any) -> dict[str, tuple[Any, ...]]:
    return {
        str(p.partition): (p.outcome, p.leader, p.isr) for p in predict(look(store, version), stop, **how)
    }


def test_a_crash(store: FakeStore) -> None:
    assert fates(store, 1) == {
        "a-0": ("new_leader", 2, (2,)),
        "a-1": ("unaffected", 2, (2, 3)),
        "b-0": ("isr_shrinks", 3, (3,)),
    }
    assert fates(store, 1, 2)["a-0"] == ("offline", -1, (2,))
    put_state(store, "a", 1, 2, [2])
    assert fates(store, 2)["a-1"] == ("offline", -1, (2,))
    assert fates(store, 2, unclean=True)["a-1"] == ("unclean", 3, (3,))


def test_the_topic_decides_on_unclean_elections(store: FakeStore) -> None:
    put_state(store, "a", 1, 2, [2])
    config = {"version": 1, "config": {"unclean.leader.election.enable": "false"}}
    store.put("/config/topics/a", config)
    assert fates(store, 2, unclean=True)["a-1"][0] == "offline"
    store.remove("/config/topics/a")
    assert fates(store, 2, version="0.10.2")["a-1"][0] == "unclean", "the default up to 0.10.2"
    store.put("/config/brokers/<default>", config)
    assert not may_be_unclean("a", look(store, "0.10.2"), None)
    assert may_be_unclean("a", look(store), True)


def test_the_last_of_the_isr_by_version(store: FakeStore) -> None:
    add_topic(store, "c", [[2]])
    config = {"version": 1, "config": {"unclean.leader.election.enable": "true"}}
    store.put("/config/topics/c", config)
    assert fates(store, 2, version="0.11")["c-0"] == ("offline", -1, ())
    assert fates(store, 2, version="1.1")["c-0"] == ("offline", -1, (2,))


def test_a_new_controller_until_2_3_leaves_what_it_cannot_mend(store: FakeStore) -> None:
    put_state(store, "a", 0, 1, [1])
    assert fates(store, 1, version="2.3")["a-0"] == ("offline", 1, (1,)), "broker 1 is controller"
    assert fates(store, 1, version="2.4")["a-0"] == ("offline", -1, (1,))
    put_state(store, "a", 1, 2, [2])
    assert fates(store, 2, version="2.3")["a-1"] == ("offline", -1, (2,)), "and 2 is not"


def test_a_controlled_shutdown(store: FakeStore) -> None:
    add_topic(store, "c", [[1, 2, 3]])
    put_state(store, "c", 0, 1, [3, 1, 2])
    assert fates(store, 1, how="controlled")["c-0"] == ("new_leader", 2, (3, 2))
    assert fates(store, 1, how="controlled", version="0.9")["c-0"] == ("new_leader", 3, (3, 2))
    assert fates(store, 1, 2, how="controlled")["c-0"] == ("new_leader", 3, (3,))
    assert fates(store, 1, 2, how="controlled")["a-0"] == ("offline", -1, (2,))


def test_when_all_stop_nobody_writes_anything(store: FakeStore) -> None:
    assert {fate[0] for fate in fates(store, 1, 2, 3).values()} == {"unaffected"}


def test_only_live_brokers_can_stop(store: FakeStore) -> None:
    with pytest.raises(BadValue, match="not alive now: 8, 9"):
        fates(store, 8, 9)


# --- elections --------------------------------------------------------------------------------------------


def test_an_election_is_asked_for_where_it_helps(store: FakeStore) -> None:
    cluster = ZookeeperCluster(store)
    put_state(store, "a", 0, 2, [1, 2])
    put_state(store, "a", 1, 3, [3])
    add_topic(store, "dead", [[9, 1]])
    put_state(store, "dead", 0, 1, [1])
    store.put("/brokers/topics/never", {"version": 3, "partitions": {"0": [1], "1": []}})
    found = candidates(look(store))
    assert {str(c.partition): (c.state, c.reason) for c in found} == {
        "a-0": ("not_started", None),
        "a-1": ("failed", "broker 2, its preferred leader, is not in the ISR"),
        "b-0": ("done", None),
        "dead-0": ("failed", "broker 9, its preferred leader, is not alive"),
        "never-0": ("failed", "it never had a leader"),
        "never-1": ("failed", "it has no replicas"),
    }
    made = plan_preferred_election(cluster, look(store), found)
    (stage,) = made.stages
    assert stage.writes[-1].after == b'{"version":1,"partitions":[{"topic":"a","partition":0}]}'
    assert plan_preferred_election(cluster, look(store), candidates(look(store), ["b"])).is_empty


def test_elections_are_cut_by_size(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for p in (0, 1):
        put_state(store, "a", p, [2, 3][p], [1, 2, 3])
    monkeypatch.setattr(ZookeeperCluster, "request_partitions_fitting", lambda self, partitions, kind: 1)
    made = plan_preferred_election(ZookeeperCluster(store), look(store), candidates(look(store)))
    assert [stage.intent.partitions for stage in made.stages] == [  # type: ignore[attr-defined]
        (TopicPartition("a", 0),),
        (TopicPartition("a", 1),),
    ]


def test_an_election_under_way_is_refused(store: FakeStore) -> None:
    put_state(store, "a", 0, 2, [1, 2])
    store.put(
        "/admin/preferred_replica_election", {"version": 1, "partitions": [{"topic": "b", "partition": 0}]}
    )
    state = look(store)
    with pytest.raises(Refused, match="another preferred election is under way"):
        plan_preferred_election(ZookeeperCluster(store), state, candidates(state))


def test_when_an_election_is_over(store: FakeStore) -> None:
    intent = ElectPreferred(partitions=(TopicPartition("a", 0), TopicPartition("b", 0)))
    path = "/admin/preferred_replica_election"
    store.put(path, {"version": 1, "partitions": [{"topic": "a", "partition": 0}]})
    assert not intent.how_far(look(store)).is_done
    store.remove(path)
    assert intent.how_far(look(store)).is_done
    put_state(store, "a", 0, 2, [1, 2])
    assert "a-0 is led by 2, not by 1" in intent.how_far(look(store)).failed
    assert MoveController(broker_id=1).how_far(look(store)).is_done
    store.remove("/controller")
    assert not MoveController(broker_id=1).how_far(look(store)).is_done


# --- old consumers ----------------------------------------------------------------------------------------


def consumers(store: FakeStore) -> None:
    base = "/consumers/g"
    for name, streams_ in (("g_h1", {"a": 1}), ("g_h2", {"a": 2})):
        store.put(
            f"{base}/ids/{name}",
            {"version": 1, "subscription": streams_, "pattern": "static", "timestamp": "1700000000000"},
        )
    store.put(f"{base}/owners/a/0", b"g_h1-0")
    store.put(f"{base}/owners/a/1", b"g_h9-0")
    store.put(f"{base}/offsets/a/0", b"70")
    store.put(f"{base}/offsets/a/1", b"many")


def test_old_groups(store: FakeStore) -> None:
    consumers(store)
    (group,) = ZookeeperCluster(store).read_old_groups()
    assert [m.member_id for m in group.members] == ["g_h1", "g_h2"]
    assert group.offsets == {TopicPartition("a", 0): 70}
    assert group.owners[TopicPartition("a", 1)] == "g_h9-0"
    assert "b'many' is not an offset" in group.problems[0]
    assert total_lag(group.offsets, {TopicPartition("a", 0): 100}) == 30
    assert total_lag(group.offsets, {}) is None


def test_dealing_partitions(store: FakeStore) -> None:
    consumers(store)
    (group,) = ZookeeperCluster(store).read_old_groups()
    dealt = [(one.thread, str(one.partition)) for one in deal(group, look(store), "range")]
    assert dealt == [("g_h1-0", "a-0"), ("g_h2-0", "a-1"), ("g_h2-1", "None")]
    assert len(list(deal(group, look(store), "roundrobin"))) == 3
    store.put("/consumers/g/ids/g_h3", {"version": 1, "subscription": {"b": 1}, "pattern": "static"})
    (group,) = ZookeeperCluster(store).read_old_groups()
    with pytest.raises(Refused, match="round robin needs all members of g"):
        list(deal(group, look(store), "roundrobin"))


@pytest.mark.parametrize(
    ("pattern", "kind", "expected"),
    [
        ("a.*", "white_list", {"a": 2, "ab": 2}),
        ("a,b", "white_list", {"a": 2, "b": 2}),
        ("a", "black_list", {"ab": 2, "b": 2}),
        ("(", "white_list", {}),
    ],
)
def test_subscriptions_by_pattern(pattern: str, kind: str, expected: dict[str, int]) -> None:
    member = OldMember(member_id="m", subscription={pattern: 2}, pattern=kind)
    assert streams(member, ["a", "ab", "b"]) == expected


def reply(*partitions: tuple[int, int, list[int]]) -> bytes:
    body = struct.pack(">ii", 1, 1) + struct.pack(">h", 1) + b"a" + struct.pack(">i", len(partitions))
    for number, error, offsets in partitions:
        body += struct.pack(">ihi", number, error, len(offsets)) + b"".join(
            struct.pack(">q", o) for o in offsets
        )
    return body


def test_log_ends_on_the_wire() -> None:
    assert answer(reply((0, 0, [100]), (1, 6, []), (2, 0, [7]))) == {
        TopicPartition("a", 0): 100,
        TopicPartition("a", 2): 7,
    }
    sent = request([TopicPartition("a", 0), TopicPartition("a", 1)])
    assert struct.unpack_from(">i", sent)[0] == len(sent) - 4
    assert struct.unpack_from(">hh", sent, 4) == (2, 0)


@pytest.mark.parametrize("said", [reply((0, 0, [100])), b"\xff" * 40, b"", struct.pack(">ii", 1, 1 << 30)])
def test_whatever_a_broker_says_is_taken(store: FakeStore, said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(struct.pack(">i", len(said)) + said)

        thread = threading.Thread(target=serve)
        thread.start()
        store.put(
            "/brokers/ids/1",
            {
                "version": 4,
                "host": "127.0.0.1",
                "port": 1,
                "jmx_port": -1,
                "timestamp": "1",
                "endpoints": [f"PLAINTEXT://127.0.0.1:{server.getsockname()[1]}"],
            },
        )
        ends = log_end_offsets([TopicPartition("a", 0)], look(store), 5)
        thread.join()
    assert ends == ({TopicPartition("a", 0): 100} if said == reply((0, 0, [100])) else {})
