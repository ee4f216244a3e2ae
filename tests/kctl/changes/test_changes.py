"""A change from plan to undo, on ZooKeeper in a dict."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kctl.changes import apply as applying
from kctl.changes.apply import Course, deadline
from kctl.changes.entry import Entry, new_entry
from kctl.changes.intents import (
    AddPartitions,
    AlterConfig,
    ClearThrottle,
    CreateTopic,
    DeleteTopic,
    ElectPreferred,
    Intent,
    MoveController,
    Reassign,
    ReplaceStuckReassignment,
    intent_from_json,
    intent_to_json,
)
from kctl.changes.journal import CHAIN, Journal
from kctl.changes.plan import Plan, Stage, Write
from kctl.changes.undo import plan_undo
from kctl.cluster.configs import plan_configs
from kctl.cluster.interface import Conflict
from kctl.cluster.topics import NewTopic, plan_creation, plan_deletion, plan_growth
from kctl.errors import KctlError, NotFinished, Refused
from kctl.model import TopicPartition
from kctl.zookeeper.cluster import ZookeeperCluster
from tests.fakes import FakeStore, add_topic, fake_cluster, obedient_controller

A0 = TopicPartition("a", 0)


@pytest.fixture
def store() -> FakeStore:
    found = fake_cluster()
    obedient_controller(found)
    return found


@pytest.fixture
def course(store: FakeStore, tmp_path: Path) -> Course:
    return Course(
        cluster=ZookeeperCluster(store), journal=Journal(tmp_path / "journal"), wait=True, until=deadline(1)
    )


def entry_of(plan: Plan) -> Entry:
    return new_entry(
        plan,
        command="kctl test",
        reason="why not",
        cluster_id="W1mYKYRPRZqt8XjSxCjVnQ",
        backend="zookeeper",
        location="fake:2181/kafka",
        kafka_version=None,
        undoes=plan.details.get("undoes"),  # type: ignore[arg-type]
    )


def carry_out(plan: Plan, course: Course) -> Entry:
    entry = entry_of(plan)
    applying.apply(entry, course)
    return entry


NEW = NewTopic(name="a", replicas={0: (1, 2), 1: (2, 3)}, configs={"retention.ms": "5"})


# --- intents and entries ---


INTENTS: list[Intent] = [
    CreateTopic(topic="a", replicas={0: (1, 2)}, configs={"x": "y"}),
    DeleteTopic(topic="a"),
    AddPartitions(topic="a", replicas={3: (1,)}),
    AlterConfig(entity_type="topics", entity_name="a", after={"k": None}, before={"k": "v"}),
    Reassign(
        targets={A0: (1, 2)},
        origins={A0: (2, 3)},
        config_changes=(
            AlterConfig(entity_type="brokers", entity_name="1", after={"r": "5"}, before={"r": None}),
        ),
    ),
    ElectPreferred(partitions=(A0,)),
    MoveController(broker_id=3),
    ReplaceStuckReassignment(targets={A0: (1,)}, stuck={A0: (9,)}, broker_id=3),
]


@pytest.mark.parametrize("intent", INTENTS, ids=lambda i: i.kind)
def test_an_intent_survives_its_json(intent: Intent) -> None:
    assert intent_from_json(json.loads(json.dumps(intent_to_json(intent)))) == intent


@pytest.mark.parametrize("intent", INTENTS, ids=lambda i: i.kind)
def test_an_inverse_leads_back_or_says_why_not(intent: Intent) -> None:
    try:
        back = intent.inverse()
    except Refused as refused:
        assert intent.final and intent.final in str(refused)
    else:
        if not isinstance(intent, CreateTopic):
            assert back.inverse() == intent


def test_an_entry_survives_the_journal(course: Course) -> None:
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    found = course.journal.find(entry.id)
    assert found == entry
    assert found.state == "applied" and found.is_finished
    assert found.stages[0].undo == (DeleteTopic(topic="a"),)


# --- the journal's files ---


def test_the_journal_is_private_and_chained(course: Course) -> None:
    carry_out(plan_creation(course.cluster, NEW), course)
    for path in course.journal.folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(course.journal.folder.stat().st_mode) == 0o700
    assert course.journal.verify() == []


def edit(path: Path) -> None:
    path.write_text(path.read_text().replace("why not", "because"))


def roll_back_and_reseal(path: Path) -> None:
    """An edit that also appends a line to the chain, with the hash of nothing that was there before."""
    edit(path)
    chain = path.parent / CHAIN
    chain.write_text("".join(chain.read_text().splitlines(keepends=True)[1:]))


@pytest.mark.parametrize("harm", [edit, Path.unlink, roll_back_and_reseal], ids=lambda f: f.__name__)
def test_verify_finds_a_changed_a_removed_and_a_resealed_entry(course: Course, harm: Any) -> None:
    first = carry_out(plan_creation(course.cluster, NEW), course)
    carry_out(plan_growth(course.cluster, "a", 3), course)
    harm(course.journal.folder / f"{first.id}.json")
    assert course.journal.verify()


def test_verify_finds_an_entry_that_was_put_there(course: Course) -> None:
    first = carry_out(plan_creation(course.cluster, NEW), course)
    path = course.journal.folder / f"{first.id}.json"
    (course.journal.folder / "2020-01-01T00:00:00Z-000000.json").write_bytes(path.read_bytes())
    assert [one.reason for one in course.journal.verify()] == ["the file was never sealed"]


def test_a_line_of_the_chain_cut_off_by_a_kill_is_no_harm(course: Course) -> None:
    carry_out(plan_creation(course.cluster, NEW), course)
    chain = course.journal.folder / CHAIN
    chain.write_bytes(chain.read_bytes() + b'{"id": "20')
    assert course.journal.verify() == []
    carry_out(plan_growth(course.cluster, "a", 3), course)
    assert course.journal.verify() == []


def test_only_one_writes_to_a_cluster_at_a_time(course: Course) -> None:
    one, other = course.journal, Journal(course.journal.folder)
    with one.alone("cluster", deadline(0)):
        with pytest.raises(Refused, match="another kctl is writing"), other.alone("cluster", deadline(0)):
            pass
        with other.alone("another cluster", deadline(0)):
            pass
    with other.alone("cluster", deadline(0)):
        assert list(other.entries(pytest.fail)) == [] and other.verify() == []


def test_secrets_are_not_in_the_journal(store: FakeStore, course: Course) -> None:
    store.put("/config/users/u", {"version": 1, "config": {"SCRAM-SHA-256": "salt=abc,stored_key=hush"}})
    plan = plan_configs(course.cluster, "users", "u", set={"producer_byte_rate": "100"})
    entry = carry_out(plan, course)
    written = (course.journal.folder / f"{entry.id}.json").read_text()
    assert "hush" not in written and "(redacted)" in written
    assert "hush" in store.nodes["/config/users/u"].data.decode()


def test_the_journal_is_on_disk_before_the_first_write(store: FakeStore, course: Course) -> None:
    seen: list[str] = []
    store.before_transact = lambda: seen.extend(e.stages[0].state for e in course.journal.entries(print))
    carry_out(plan_creation(course.cluster, NEW), course)
    assert seen == ["writing"]


def test_a_journal_that_cannot_be_written_keeps_the_change_from_happening(
    store: FakeStore, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    course = Course(
        cluster=ZookeeperCluster(store), journal=Journal(blocked / "journal"), wait=True, until=deadline(1)
    )
    with pytest.raises(KctlError, match="journal"):
        carry_out(plan_creation(course.cluster, NEW), course)
    assert store.transactions == []


# --- compare and set ---


def test_a_change_between_plan_and_write_is_refused(store: FakeStore, course: Course) -> None:
    add_topic(store, "a", [[1, 2]])
    plan = plan_growth(course.cluster, "a", 2)
    store.put("/brokers/topics/a", {"version": 3, "partitions": {"0": [3, 2]}, "x": 1})
    with pytest.raises(Conflict, match="changed by somebody else"):
        carry_out(plan, course)
    assert store.json("/brokers/topics/a")["partitions"] == {"0": [3, 2]}  # type: ignore[index,call-overload]
    (entry,) = course.journal.entries(print)
    assert entry.state == "planned" and "changed by somebody else" in (entry.outcome or "")


def test_a_controller_that_moved_between_plan_and_write_is_noticed(store: FakeStore, course: Course) -> None:
    plan = plan_creation(course.cluster, NEW)
    store.put("/controller_epoch", b"8")
    with pytest.raises(Conflict):
        carry_out(plan, course)
    assert "/brokers/topics/a" not in store.nodes


# --- unfinished, resumed, undone ---


def test_what_is_not_done_in_time_is_journalled_as_applied(store: FakeStore, course: Course) -> None:
    store.after_transact = lambda: None
    quick = Course(cluster=course.cluster, journal=course.journal, wait=True, until=deadline(0))
    entry = entry_of(plan_creation(course.cluster, NEW))
    with pytest.raises(NotFinished, match="no leader"):
        applying.apply(entry, quick)
    assert course.journal.find(entry.id).state == "applied"
    assert not entry.is_finished


class Killed(BaseException):
    """kctl ends here."""


def killed_at(point: str, entry: Entry, course: Course, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """Apply until a point is reached; what the journal says then."""

    def reach(reached: str) -> None:
        if reached == point:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(applying, "reach", reach)
        with pytest.raises(Killed):
            applying.apply(entry, course)
    if point == "planned":
        return entry
    return course.journal.find(entry.id)


POINTS = ("journalled", "before-write:0", "after-write:0", "written:0", "finished:0", "applied")


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_change_is_resumed(
    store: FakeStore, course: Course, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    found = killed_at(point, entry_of(plan_creation(course.cluster, NEW)), course, monkeypatch)
    if found.is_finished:
        with pytest.raises(Refused, match="is finished"):
            applying.resume(found, course)
    else:
        applying.resume(found, course)
    assert course.journal.find(found.id).is_finished
    assert len(store.transactions) == 1
    assert store.json("/config/topics/a") == {"version": 1, "config": {"retention.ms": "5"}}


class Late(ZookeeperCluster):
    """Brokers that show what was written before only after they were asked again."""

    backend = "admin"
    late: Write | None = None

    def commit(self, writes: Sequence[Write]) -> None:
        """What is late comes to be, and the request that was worked out without it is refused."""
        late, self.late = self.late, None
        super().commit(writes if late is None else [late])
        if late is not None:
            raise Conflict("it is not as it was read; nothing was written")


RATE = "leader.replication.throttled.rate"


@pytest.mark.parametrize("is_resumed", [True, False])
def test_what_becomes_visible_while_a_change_is_resumed_is_no_conflict(
    store: FakeStore, course: Course, monkeypatch: pytest.MonkeyPatch, is_resumed: bool
) -> None:
    for broker in (1, 2):
        store.put(f"/config/brokers/{broker}", {"version": 1, "config": {RATE: "1000"}})
    intent = ClearThrottle(throttled={}, rates={"1": {RATE: None}, "2": {RATE: None}})
    cluster = Late(store)
    late = replace(course, cluster=cluster, wait=False)
    writes = cluster.writes_for(intent, cluster.read_state((), configs={"brokers"}))
    entry = entry_of(Plan(title="clear", stages=(Stage(intent=intent, writes=writes),)))
    if is_resumed:
        entry = killed_at("before-write:0", entry, late, monkeypatch)
    cluster.late = next(write for write in writes if write.target == "/config/brokers/1")
    if is_resumed:
        applying.resume(entry, late)
        assert late.journal.find(entry.id).state == "applied"
    else:
        with pytest.raises(Conflict):
            applying.apply(entry, late)
    left = [name for name in (1, 2) if store.json(f"/config/brokers/{name}")["config"]]
    assert left == ([] if is_resumed else [2])


@pytest.mark.parametrize("point", ("journalled", "before-write:0", "after-write:0", "written:0"))
def test_a_change_that_nothing_waits_for_is_resumed(
    store: FakeStore, course: Course, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """That there is nothing to wait for does not mean that it was written."""
    add_topic(store, "a", [[1, 2]])
    key = "follower.replication.throttled.replicas"
    store.put("/config/topics/a", {"version": 1, "config": {key: "0:3,1:7"}})
    clear = ClearThrottle(throttled={"a": {key: ("0:3",)}}, rates={})
    state = course.cluster.read_state(configs=("topics", "brokers"))
    stage = Stage(intent=clear, writes=course.cluster.writes_for(clear, state))
    found = killed_at(point, entry_of(Plan(title="clear", stages=(stage,))), course, monkeypatch)
    applying.resume(found, course)
    assert course.journal.find(found.id).is_finished and len(store.transactions) == 1
    assert store.json("/config/topics/a") == {"version": 1, "config": {key: "1:7"}}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_change_is_undone(
    store: FakeStore, course: Course, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    found = killed_at(point, entry_of(plan_creation(course.cluster, NEW)), course, monkeypatch)
    plan = plan_undo(found, course)
    if plan.is_empty:
        assert point in ("journalled", "before-write:0")
    else:
        undo = carry_out(plan, course)
        assert course.journal.find(found.id).state == "undone"
        assert course.journal.find(found.id).undone_by == undo.id
    assert "/brokers/topics/a" not in store.nodes


@pytest.mark.parametrize(
    ("ends", "warnings"),
    [
        ({0: 7, 1: 5}, ("12 records were written to topic a since, and would be deleted with it",)),
        ({0: 1, 1: 0}, ("1 record was written to topic a since, and would be deleted with it",)),
        ({0: 0, 1: 0}, ()),
        ({0: 0}, ("nobody tells whether anything was written to 1 partition of topic a since",)),
    ],
)
def test_undo_of_a_creation_warns_of_what_was_written_since(
    course: Course, monkeypatch: pytest.MonkeyPatch, ends: dict[int, int], warnings: tuple[str, ...]
) -> None:
    found = carry_out(plan_creation(course.cluster, NEW), course)
    told = {TopicPartition("a", number): end for number, end in ends.items()}
    monkeypatch.setattr(course.cluster, "log_ends", lambda state: told)
    assert plan_undo(found, course).warnings == warnings


def test_undo_of_a_configuration_leaves_what_others_set(store: FakeStore, course: Course) -> None:
    add_topic(store, "a", [[1]])
    entry = carry_out(plan_configs(course.cluster, "topics", "a", set={"retention.ms": "5"}), course)
    carry_out(plan_configs(course.cluster, "topics", "a", set={"segment.ms": "7"}), course)
    carry_out(plan_undo(entry, course), course)
    assert store.json("/config/topics/a") == {"version": 1, "config": {"segment.ms": "7"}}


def test_undo_refuses_a_value_that_somebody_changed_since(store: FakeStore, course: Course) -> None:
    add_topic(store, "a", [[1]])
    entry = carry_out(plan_configs(course.cluster, "topics", "a", set={"retention.ms": "5"}), course)
    carry_out(plan_configs(course.cluster, "topics", "a", set={"retention.ms": "6"}), course)
    with pytest.raises(Refused, match="is '6', not '5'"):
        plan_undo(entry, course)


def test_undo_refuses_what_has_no_way_back_with_the_reason(store: FakeStore, course: Course) -> None:
    add_topic(store, "a", [[1]])
    grown = carry_out(plan_growth(course.cluster, "a", 2), course)
    with pytest.raises(Refused, match="cannot take partitions away"):
        plan_undo(grown, course)
    deleted = carry_out(plan_deletion(course.cluster, "a"), course)
    with pytest.raises(Refused, match="no release stops a deletion"):
        plan_undo(deleted, course)


def test_undo_of_a_creation_refuses_a_topic_that_has_grown(store: FakeStore, course: Course) -> None:
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    carry_out(plan_growth(course.cluster, "a", 4), course)
    with pytest.raises(Refused, match="has been changed since"):
        plan_undo(entry, course)


def test_undo_of_a_creation_refuses_a_topic_that_somebody_made_anew(store: FakeStore, course: Course) -> None:
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    carry_out(plan_deletion(course.cluster, "a"), course)
    carry_out(plan_creation(course.cluster, NEW), course)
    with pytest.raises(Refused, match="created again since"):
        plan_undo(entry, course)


def test_undo_of_a_creation_goes_by_the_topics_id_where_it_has_one(store: FakeStore, course: Course) -> None:
    """Same name, same replicas, same moment: only the id tells that it is another topic."""
    act = store.after_transact

    def name_it(id: str) -> None:
        act()
        if "/brokers/topics/a" in store.nodes:
            store.put("/brokers/topics/a", {**store.json("/brokers/topics/a"), "topic_id": id})  # type: ignore[dict-item]

    store.after_transact = lambda: name_it("A" * 22)
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    name_it("B" * 22)
    with pytest.raises(Refused, match="created again since"):
        plan_undo(entry, course)
    name_it("A" * 22)
    carry_out(plan_undo(entry, course), course)
    assert "/brokers/topics/a" not in store.nodes


def test_undo_of_a_move_refuses_a_dead_broker(store: FakeStore, course: Course) -> None:
    add_topic(store, "a", [[1, 2]])
    intent = Reassign(targets={A0: (2, 3)}, origins={A0: (1, 2)})
    state = course.cluster.read_state()
    plan = Plan(title="move", stages=(Stage(intent=intent, writes=course.cluster.writes_for(intent, state)),))
    entry = entry_of(plan)
    entry.stages[0].state = "planned"
    no_wait = Course(cluster=course.cluster, journal=course.journal, wait=False, until=deadline(1))
    applying.apply(entry, no_wait)
    assert store.json("/brokers/topics/a")["partitions"] == {"0": [2, 3]}  # type: ignore[index,call-overload]
    store.remove("/brokers/ids/1")
    with pytest.raises(Refused, match="broker 1, not alive"):
        plan_undo(entry, course)


def test_stages_after_the_first_are_worked_out_anew(store: FakeStore, course: Course) -> None:
    add_topic(store, "a", [[1]])
    first = AlterConfig(
        entity_type="topics", entity_name="a", after={"retention.ms": "1"}, before={"retention.ms": None}
    )
    second = AlterConfig(
        entity_type="topics", entity_name="a", after={"retention.ms": "2"}, before={"retention.ms": "1"}
    )
    state = course.cluster.read_state()
    writes = course.cluster.writes_for(first, state)
    entry = carry_out(
        Plan(title="twice", stages=(Stage(intent=first, writes=writes), Stage(intent=second))), course
    )
    assert entry.is_finished
    assert store.json("/config/topics/a")["config"] == {"retention.ms": "2"}  # type: ignore[index,call-overload]
    carry_out(plan_undo(entry, course), course)
    assert store.json("/config/topics/a")["config"] == {}  # type: ignore[index,call-overload]


def test_an_entry_of_another_format_is_no_crash(course: Course) -> None:
    course.journal.folder.mkdir(parents=True)
    (course.journal.folder / "x.json").write_text('{"format": 99}')
    reported: list[Exception] = []
    assert list(course.journal.entries(reported.append)) == []
    assert "format 99" in str(reported[0])
    assert os.listdir(course.journal.folder) == ["x.json"]
