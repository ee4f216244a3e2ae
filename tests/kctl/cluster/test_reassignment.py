"""Plans carried out, throttled, verified, explained and cancelled: on ZooKeeper in a dict with a quick controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formats.values import replace
from kctl.changes.apply import ChangeRun, apply, deadline
from kctl.changes.entry import Entry, new_entry
from kctl.changes.intents import intent_from_json, intent_to_json
from kctl.changes.journal import Journal
from kctl.changes.kinds.reassignments import Reassign
from kctl.changes.kinds.throttles import (
    DISK_RATE,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ClearThrottle,
    clearing_changes,
    left_over,
    throttles_set,
    unused_throttles,
)
from kctl.changes.plan import Plan
from kctl.changes.undo import plan_undo
from kctl.cluster.disks import BrokerLogDir, StoredReplica
from kctl.cluster.moves import ReplicaSize, by_replica, moving_targets
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.versions import parse_version
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import TopicPartition
from kctl.operations.reassignment.cancellation import plan_cancellation
from kctl.operations.reassignment.execution import Execution, plan_execution
from kctl.operations.reassignment.plan_files import PlanFile
from kctl.operations.reassignment.planner import ReassignmentGoal, plan, plan_like_kafka
from kctl.operations.reassignment.verification import entries_of, explain, move_statuses, owners, throttle_of
from kctl.zookeeper.cluster import ZookeeperCluster
from tests.fakes import FakeStore, add_topic, fake_cluster, obedient_controller, put_state

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TARGETS: dict[TopicPartition, Replicas] = {A0: (1, 3), B0: (3, 1)}
REASSIGNMENT = "/admin/reassign_partitions"


@pytest.fixture
def store() -> FakeStore:
    made = fake_cluster()
    add_topic(made, "a", [[1, 2], [2, 3]])
    add_topic(made, "b", [[2, 1]])
    return made


@pytest.fixture
def cluster(store: FakeStore) -> ZookeeperCluster:
    return ZookeeperCluster(store)


def look(cluster: ZookeeperCluster) -> ClusterState:
    return cluster.read_state(configs=("topics", "brokers"))


def execution(targets: dict[TopicPartition, Replicas], **more: Any) -> Execution:
    given = {"file": "p.json", "plan_id": "1" * 64, "batches": [targets], **more}
    return Execution(targets=targets, **given)


def planned(cluster: ZookeeperCluster, targets: dict[TopicPartition, Replicas], **more: Any) -> Plan:
    return plan_execution(cluster, execution(targets, **more), look(cluster))


def entry_of(made: Plan) -> Entry:
    return new_entry(
        made,
        command="kctl reassign execute p.json",
        reason=None,
        cluster_id=None,
        backend="zookeeper",
        location="",
        kafka_version=None,
    )


def course(cluster: ZookeeperCluster, folder: Path) -> ChangeRun:
    return ChangeRun(cluster=cluster, journal=Journal(folder), wait=True, until=deadline(5))


# --- execution ----------------------------------------------------------------------------------------


def test_a_plan_is_carried_out_and_undone(
    store: FakeStore, cluster: ZookeeperCluster, tmp_path: Path
) -> None:
    obedient_controller(store)
    made = planned(cluster, TARGETS, throttle=1000, batches=[{A0: (1, 3)}, {B0: (3, 1)}])
    assert [stage.intent.kind for stage in made.stages] == ["reassign", "reassign", "clear-throttle"]
    entry = entry_of(made)
    apply(entry, course(cluster, tmp_path))
    assert entry.is_finished
    state = look(cluster)
    assert state.replicas(A0) == (1, 3)
    assert state.replicas(B0) == (3, 1)
    assert throttles_set(state) == []
    undo = entry_of(plan_undo(entry, course(cluster, tmp_path)))
    apply(undo, course(cluster, tmp_path))
    state = look(cluster)
    assert state.replicas(A0) == (1, 2)
    assert state.replicas(B0) == (2, 1)


def test_throttles_go_onto_the_real_sources_and_targets(store: FakeStore, cluster: ZookeeperCluster) -> None:
    store.put("/config/topics/a", {"version": 1, "config": {FOLLOWER_REPLICAS: "7:9", "retention.ms": "5"}})
    made = planned(cluster, TARGETS, throttle=5000)
    written = {w.target: w.after for w in made.stages[0].writes if w.after and not w.sequence}
    assert b'"7:9,0:3"' in written["/config/topics/a"]
    assert b'"0:1,0:2"' in written["/config/topics/a"]
    assert b'"retention.ms":"5"' in written["/config/topics/a"]
    assert b'"0:2,0:1"' in written["/config/topics/b"]
    assert all(f"/config/brokers/{broker}" in written for broker in (1, 2, 3))
    assert written["/config/brokers/3"].count(b'"5000"') == 2
    assert REASSIGNMENT in written


def test_everything_stays_throttled_by_a_star(store: FakeStore, cluster: ZookeeperCluster) -> None:
    store.put("/config/topics/a", {"version": 1, "config": {FOLLOWER_REPLICAS: "*", LEADER_REPLICAS: "*"}})
    made = planned(cluster, {A0: (1, 3)}, throttle=5000)
    assert "/config/topics/a" not in {w.target for w in made.stages[0].writes if w.action == "set"}


def test_a_throttle_is_read_back_after_it_was_written(
    store: FakeStore, cluster: ZookeeperCluster, tmp_path: Path
) -> None:
    """Somebody takes a part of it away at once: the move goes on, and kctl says what does not hold."""
    obedient_controller(store)
    whole, said = store.after_transact, []

    def somebody() -> None:
        whole()
        if store.transactions[-1][-1].target == REASSIGNMENT:
            store.put("/config/topics/a", {"version": 1, "config": {FOLLOWER_REPLICAS: "1:3"}})

    for interfering in (whole, somebody):
        store.after_transact = interfering
        targets = {A0: (1, 3)} if interfering is whole else {A0: (1, 2)}
        given = replace(course(cluster, tmp_path), note=said.append)
        apply(entry_of(planned(cluster, targets, throttle=1000)), given)
    assert [text for text in said if "not in force" in text] == [
        f"warning: the throttle is not in force: {LEADER_REPLICAS} of topic a, {FOLLOWER_REPLICAS} of topic a"
    ]


def test_without_a_throttle_it_says_so_loudly(cluster: ZookeeperCluster) -> None:
    made = planned(cluster, TARGETS, sizes={A0: 1 << 30, B0: 1 << 30})
    (warning,) = made.warnings
    assert warning.startswith(
        "no --throttle: 2 replicas of 2 partitions are copied as fast as the network allows"
    )
    assert "about 21 s at 100 MiB/s" in warning
    assert "not covered: a-0, b-0" in warning
    assert planned(cluster, {A0: (2, 1)}).warnings == (), "nothing is copied"


def test_nothing_to_do_is_an_empty_plan(cluster: ZookeeperCluster) -> None:
    assert planned(cluster, {A0: (1, 2)}).is_empty


def no(store: FakeStore) -> None:
    pass


@pytest.mark.parametrize(
    ("change", "targets", "error", "says"),
    [
        (
            no,
            {TopicPartition("zz", 0): (1,), TopicPartition("zz", 1): (2,)},
            KctlError,
            "no partition zz-0, zz-1",
        ),
        (
            no,
            {A0: (1, 8), A1: (9, 2)},
            Refused,
            "brokers 8, 9 are not alive, and the moves of a-0, a-1 would",
        ),
        (
            lambda s: s.put("/admin/delete_topics/a", b""),
            TARGETS,
            Refused,
            "topics a are marked for deletion",
        ),
        (
            lambda s: s.remove("/brokers/topics/a/partitions/0/state"),
            TARGETS,
            Refused,
            "a-0 never had a leader",
        ),
        (
            lambda s: s.put(
                REASSIGNMENT, {"version": 1, "partitions": [{"topic": "a", "partition": 1, "replicas": [1]}]}
            ),
            TARGETS,
            Refused,
            "under way since 1970-01-01 00:00:01 UTC: a-1 is left in it",
        ),
        (
            lambda s: s.put(
                "/brokers/topics/a",
                {
                    "version": 3,
                    "partitions": {"0": [3, 1, 2]},
                    "adding_replicas": {"0": [3]},
                    "removing_replicas": {},
                },
            ),
            {A0: (1, 3)},
            Refused,
            "a-0 is already being moved",
        ),
    ],
)
def test_what_must_not_be_done_is_refused_with_all_of_it(
    store: FakeStore, cluster: ZookeeperCluster, change: Any, targets: Any, error: type[KctlError], says: str
) -> None:
    change(store)
    before = dict(store.nodes)
    with pytest.raises(error, match=says):
        planned(cluster, targets)
    assert store.nodes == before


def test_old_versions_have_no_throttles(cluster: ZookeeperCluster) -> None:
    old = ZookeeperCluster(fake_cluster(form=1))
    add_topic(old.store, "a", [[1, 2]])  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="has no throttles"):
        planned(old, {A0: (1, 3)}, throttle=10)
    with pytest.raises(BadValue, match="would stop the move for ever"):
        planned(cluster, TARGETS, throttle=0)


def test_what_deserves_a_warning(store: FakeStore, cluster: ZookeeperCluster) -> None:
    put_state(store, "a", 0, -1, [2])
    add_topic(store, "c", [[1, 9]])
    store.remove("/controller")
    store.put("/config/brokers/<default>", {"version": 1, "config": {"min.insync.replicas": "2"}})
    made = planned(cluster, {A0: (1,), TopicPartition("c", 0): (1, 2)})
    told = " | ".join(made.warnings)
    assert "a-0 will have fewer replicas than now" in told
    assert "| a-0 will have fewer replicas than min.insync.replicas: acks=all never works there" in told
    assert "a-0 has no leader now" in told
    assert "brokers 9 are not alive and will keep folders" in told
    assert "there is no controller" in told


# --- clearing -----------------------------------------------------------------------------------------


def throttled_store(store: FakeStore) -> None:
    store.put(
        "/config/topics/a",
        {"version": 1, "config": {LEADER_REPLICAS: "0:1,0:2,1:2", FOLLOWER_REPLICAS: "0:3,1:1"}},
    )
    for broker in (1, 2, 3):
        store.put(
            f"/config/brokers/{broker}", {"version": 1, "config": {LEADER_RATE: "9", FOLLOWER_RATE: "9"}}
        )


OWN = ClearThrottle(
    throttled={"a": {LEADER_REPLICAS: ("0:1", "0:2"), FOLLOWER_REPLICAS: ("0:3",)}},
    rates={"1": {LEADER_RATE: None, FOLLOWER_RATE: None}, "3": {LEADER_RATE: "50", FOLLOWER_RATE: None}},
)


def test_only_the_own_throttle_is_cleared(store: FakeStore, cluster: ZookeeperCluster) -> None:
    throttled_store(store)
    changes = clearing_changes(OWN, look(cluster))
    assert [(c.entity_name, dict(c.after)) for c in changes] == [
        ("a", {LEADER_REPLICAS: "1:2", FOLLOWER_REPLICAS: "1:1"}),
        # Broker 1 keeps its rates: replica 1:1 of another plan is throttled there.
        ("3", {LEADER_RATE: "50", FOLLOWER_RATE: None}),
    ]
    cluster.commit(cluster.writes_for(OWN, look(cluster)))
    assert left_over(OWN, look(cluster)) == []
    assert clearing_changes(OWN, look(cluster)) == [], "twice does no harm"
    assert intent_from_json(intent_to_json(OWN)) == OWN


def test_throttles_that_nothing_needs(store: FakeStore, cluster: ZookeeperCluster) -> None:
    throttled_store(store)
    store.put(
        REASSIGNMENT, {"version": 1, "partitions": [{"topic": "a", "partition": 1, "replicas": [2, 1]}]}
    )
    state = look(cluster)
    used = {(t.entity_type, t.entity_name, t.key): t.is_used for t in throttles_set(state)}
    assert used["topics", "a", LEADER_REPLICAS]
    assert used["brokers", "3", FOLLOWER_RATE]
    changes = clearing_changes(unused_throttles(state), state)
    assert [(c.entity_name, dict(c.after)) for c in changes] == [
        ("a", {LEADER_REPLICAS: "1:2", FOLLOWER_REPLICAS: "1:1"}),
        ("3", {LEADER_RATE: None, FOLLOWER_RATE: None}),
    ]


@pytest.mark.parametrize(
    ("dirs", "is_used"),
    [
        ((), True),  # nobody tells
        ((BrokerLogDir(2, None, "no answer"),), True),
        ((BrokerLogDir(2, "/a"), BrokerLogDir(2, "/b", replicas=(StoredReplica(A0, 5),))), False),
        (
            (BrokerLogDir(2, "/a"), BrokerLogDir(2, "/b", replicas=(StoredReplica(A0, 5, is_future=True),))),
            True,
        ),
        ((BrokerLogDir(3, "/a"),), True),
    ],
)
def test_the_rate_of_copies_between_disks_is_needed_while_any_runs(
    store: FakeStore, cluster: ZookeeperCluster, dirs: tuple[BrokerLogDir, ...], is_used: bool
) -> None:
    store.put("/config/brokers/2", {"version": 1, "config": {DISK_RATE: "50"}})
    state = replace(look(cluster), log_dirs=dirs)
    assert [(t.entity_name, t.key, t.value, t.is_used) for t in throttles_set(state)] == [
        ("2", DISK_RATE, "50", is_used)
    ]
    changes = clearing_changes(unused_throttles(state), state)
    assert [(c.entity_name, dict(c.after)) for c in changes] == (
        [] if is_used else [("2", {DISK_RATE: None})]
    )


def test_the_throttle_of_a_plan_is_known_from_the_journal_or_the_lists(
    store: FakeStore, cluster: ZookeeperCluster, tmp_path: Path
) -> None:
    made = planned(cluster, {A0: (1, 3)}, throttle=9, clear_at_end=False)
    entry = entry_of(made)
    known = throttle_of({A0: (1, 3)}, [entry], look(cluster))
    assert known.throttled == {"a": {LEADER_REPLICAS: ("0:1", "0:2"), FOLLOWER_REPLICAS: ("0:3",)}}
    assert known.rates["3"] == {LEADER_RATE: None, FOLLOWER_RATE: None}
    assert owners([entry])["brokers", "3", LEADER_RATE] == "1" * 64
    throttled_store(store)
    found = throttle_of({A0: (1, 3)}, [], look(cluster))
    assert found.throttled == known.throttled


# --- verification ---------------------------------------------------------------------------------------


def verdicts(cluster: ZookeeperCluster, targets: Any, entries: Any = ()) -> dict[str, tuple[str, str | None]]:
    return {str(s.partition): (s.state, s.reason) for s in move_statuses(targets, look(cluster), entries)}


def test_verdicts(store: FakeStore, cluster: ZookeeperCluster) -> None:
    assert verdicts(cluster, {A0: (1, 2), A1: (1, 3), TopicPartition("zz", 3): (1,)}) == {
        "a-0": ("done", None),
        "a-1": ("not_started", None),
        "zz-3": ("failed", "no such partition"),
    }
    put_state(store, "a", 0, 1, [1])
    assert verdicts(cluster, {A0: (1, 2)}) == {
        "a-0": ("in_progress", "in place, waits for broker 2 to join the ISR")
    }
    assert verdicts(cluster, {A0: (2, 1)})["a-0"][0] == "not_started", "the order counts"


def test_verdicts_while_it_moves(store: FakeStore, cluster: ZookeeperCluster) -> None:
    topic = {
        "version": 3,
        "partitions": {"0": [1, 3, 2], "1": [2, 3]},
        "adding_replicas": {"0": [3]},
        "removing_replicas": {"0": [2]},
    }
    store.put("/brokers/topics/a", topic)
    assert verdicts(cluster, {A0: (1, 3)})["a-0"] == (
        "in_progress",
        "waits for broker 3 to join the ISR",
    )
    assert verdicts(cluster, {A0: (3, 2)})["a-0"][0] == "failed"
    assert moving_targets(look(cluster)) == {A0: (1, 3)}
    sizes = by_replica([ReplicaSize(A0, 1, 100), ReplicaSize(A0, 3, 40), ReplicaSize(A0, None, 9)])
    (one,) = move_statuses({A0: (1, 3)}, look(cluster), (), sizes)
    assert (one.bytes_done, one.bytes_left, one.missing) == (40, 60, (3,))


def test_a_move_that_the_controller_dropped(cluster: ZookeeperCluster) -> None:
    entry = entry_of(planned(cluster, {A0: (1, 3)}))
    entry.stages[0].state = "written"
    found = verdicts(cluster, {A0: (1, 3)}, [entry])
    assert found["a-0"][0] == "failed"
    assert "the controller dropped it, or it was moved since" in str(found["a-0"][1])
    assert entries_of([entry], "1" * 64) == [entry]
    assert entries_of([entry], "2" * 64) == []


def test_a_wait_ends_with_the_request(store: FakeStore, cluster: ZookeeperCluster) -> None:
    intent = Reassign(targets={A0: (1, 3)}, origins={A0: (1, 2)})
    store.put(
        REASSIGNMENT, {"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 3]}]}
    )
    waited = intent.how_far(look(cluster))
    assert not waited.is_done
    assert not waited.failed
    store.remove(REASSIGNMENT)
    assert "the controller took a-0 off the list" in intent.how_far(look(cluster)).failed
    add_topic(store, "a", [[1, 3], [2, 3]])
    assert intent.how_far(look(cluster)).is_done


# --- stuck moves and cancelling -----------------------------------------------------------------------


def ask(store: FakeStore, *rows: tuple[str, int, list[int]], **more: Any) -> None:
    listed: Any = [{"topic": t, "partition": p, "replicas": r, **more} for t, p, r in rows]
    store.put(REASSIGNMENT, {"version": 1, "partitions": listed})


def test_why_a_move_does_not_end(store: FakeStore, cluster: ZookeeperCluster) -> None:
    assert list(explain(look(cluster))) == []
    ask(store, ("a", 0, [1, 9]))
    dead = " ".join(explain(look(cluster), now=2000))
    assert "broker 9 is not alive: a-0 wait for it" in dead and "PLAN --move-controller`" in dead
    by_brokers = " ".join(explain(replace(look(cluster), backend="admin"), now=2000))
    assert "`kctl reassign cancel PLAN`" in by_brokers
    assert "may have lost its watch" in " ".join(explain(look(cluster), now=100_000))
    assert "lost its watch" not in " ".join(explain(look(cluster), now=2000))
    ask(store, ("a", 0, [1, 1]))
    assert "a-0 names a broker twice" in " ".join(explain(look(cluster), now=2000))
    ask(store, ("a", 0, [1, 3]), log_dirs=["any", "any"])
    assert "the controller ignores the waiting reassignment" in " ".join(explain(look(cluster), now=2000))
    store.put(REASSIGNMENT, b"{not json")
    assert "the controller ignores" in " ".join(explain(look(cluster), now=2000))


PLAN = PlanFile(path=Path("p.json"), targets={A0: (1, 9)})


def test_cancelling_what_never_ends(store: FakeStore, cluster: ZookeeperCluster) -> None:
    ask(store, ("a", 0, [1, 9]))
    with pytest.raises(Refused, match=r"broker 9 is not alive.*needs --move-controller"):
        plan_cancellation(cluster, PLAN, {A0: (1, 2)})
    made = plan_cancellation(cluster, PLAN, {A0: (1, 2)}, move_controller=True)
    (stage,) = made.stages
    actions = [(w.action, w.target) for w in stage.writes if w.action != "check"]
    assert actions == [("delete", REASSIGNMENT), ("create", REASSIGNMENT), ("delete", "/controller")]
    assert b'"replicas":[1,2]' in (stage.writes[-2].after or b"")
    assert "broker 1 no longer controller" in made.warnings[0]


@pytest.mark.parametrize(
    ("version", "said"),
    [("0.8.2", "would repeat the old move"), ("1.1", "finishes what it had begun"), ("2.1", None)],
)
def test_what_a_deposed_controller_may_still_do(
    store: FakeStore, cluster: ZookeeperCluster, version: str, said: str | None
) -> None:
    ask(store, ("a", 0, [1, 9]))
    known = parse_version(version)
    made = plan_cancellation(cluster, PLAN, {A0: (1, 2)}, version=known, move_controller=True)
    assert [said in one for one in made.warnings[1:]] == ([True] if said else [])


def test_cancelling_is_refused_where_it_would_harm(store: FakeStore, cluster: ZookeeperCluster) -> None:
    ask(store, ("a", 0, [1, 9]), ("b", 0, [3, 9]))
    with pytest.raises(Refused, match="also moves b-0"):
        plan_cancellation(cluster, PLAN, {A0: (1, 2)}, move_controller=True)
    ask(store, ("a", 0, [1, 9]))
    with pytest.raises(Refused, match="brokers 7, where a-0 would go back to, are not alive"):
        plan_cancellation(cluster, PLAN, {A0: (1, 7)}, move_controller=True)
    other = replace(PLAN, targets={A0: (3, 2)})
    with pytest.raises(Refused, match=r"a-0 is being moved to \[1, 9\], and p.json says \[3, 2\]"):
        plan_cancellation(cluster, other, {})


def test_cancelling_what_is_not_moving_does_nothing(cluster: ZookeeperCluster) -> None:
    assert plan_cancellation(cluster, PLAN, {}).is_empty


def test_where_a_partition_came_from(store: FakeStore, cluster: ZookeeperCluster) -> None:
    # From 2.4 on the topic tells it, in an order that may be the target's; what was recorded is better.
    store.put(
        "/brokers/topics/a",
        {
            "version": 3,
            "partitions": {"0": [3, 9, 2, 1]},
            "adding_replicas": {"0": [9]},
            "removing_replicas": {"0": [1]},
        },
    )
    ask(store, ("a", 0, [3, 9, 2]))
    plan_ = replace(PLAN, targets={A0: (3, 9, 2)})
    for known, expected in (({}, b"[3,2,1]"), ({A0: (1, 2, 3)}, b"[1,2,3]"), ({A0: (1, 2)}, b"[3,2,1]")):
        made = plan_cancellation(cluster, plan_, known, move_controller=True)  # type: ignore[arg-type]
        assert b'"replicas":' + expected in (made.stages[0].writes[-2].after or b"")


# --- plans from a state ---------------------------------------------------------------------------------


def test_what_cannot_be_planned_is_left_out_or_refused(store: FakeStore, cluster: ZookeeperCluster) -> None:
    store.put("/brokers/topics/odd", {"version": 3, "partitions": {"0": [], "1": [2, 2]}})
    add_topic(store, "going", [[2]])
    store.put("/admin/delete_topics/going", b"")
    add_topic(store, "lost", [[9, 2]])
    put_state(store, "lost", 0, -1, [9])
    made = plan(look(cluster), ReassignmentGoal(drain=frozenset({2})))
    assert {tp.topic for tp in made.targets} == {"a", "b"}
    assert any("odd-0, odd-1" in note for note in made.notes)
    assert any("marked for deletion: going" in note for note in made.notes)
    assert any("no replica in sync is alive: lost-0" in note for note in made.notes)
    ask(store, ("a", 1, [1, 3]))
    with pytest.raises(Refused, match="a-1 is being moved now"):
        plan(look(cluster), ReassignmentGoal(drain=frozenset({2})))
    assert plan(look(cluster), ReassignmentGoal(drain=frozenset({2}), topics=frozenset({"b"}))).targets


def test_like_kafka_is_repeatable_and_moves_more(cluster: ZookeeperCluster) -> None:
    goal = ReassignmentGoal(brokers=frozenset({1, 2, 3}))
    state = look(cluster)
    one = plan_like_kafka(state, goal, seed=4)
    assert one.targets == plan_like_kafka(state, goal, seed=4).targets
    assert all(len(replicas) == 2 for replicas in one.targets.values())
    assert any(plan_like_kafka(state, goal, seed=s).targets != one.targets for s in range(9))
    with pytest.raises(Refused, match="brokers 9 are not alive"):
        plan_like_kafka(state, ReassignmentGoal(brokers=frozenset({9})))
