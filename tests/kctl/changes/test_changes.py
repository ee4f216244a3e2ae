"""A change from plan to undo, on ZooKeeper in a dict."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from formats.values import replace
from kctl.changes import apply as applying
from kctl.changes.apply import ChangeRun, deadline
from kctl.changes.entry import Entry, new_entry
from kctl.changes.intents import intent_from_json, intent_to_json
from kctl.changes.journal import CHAIN, Journal
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.elections import ElectPreferred, MoveController
from kctl.changes.kinds.reassignments import Reassign, ReplaceStuckReassignment
from kctl.changes.kinds.throttles import ClearThrottle
from kctl.changes.kinds.topics import AddPartitions, CreateTopic, DeleteTopic
from kctl.changes.plan import Plan, Stage
from kctl.changes.undo import plan_undo
from kctl.cluster.backends import BACKENDS
from kctl.cluster.intent import Intent, PlainWrite, Write
from kctl.cluster.interface import Conflict
from kctl.cluster.state import Broker, ClusterState, Quorum
from kctl.cluster.versions import V1_1, V2_4, V2_8, KafkaVersion
from kctl.errors import KctlError, NotFinished, Refused
from kctl.model import TopicPartition
from kctl.operations.configs import plan_configs
from kctl.operations.topics import NewTopic, plan_creation, plan_deletion, plan_growth
from kctl.zookeeper.cluster import ZookeeperCluster
from tests.fakes import FakeStore, add_topic, fake_cluster, obedient_controller, put_state

A0 = TopicPartition("a", 0)


@pytest.fixture
def store() -> FakeStore:
    found = fake_cluster()
    obedient_controller(found)
    return found


@pytest.fixture
def course(store: FakeStore, tmp_path: Path) -> ChangeRun:
    return ChangeRun(
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


def carry_out(plan: Plan, course: ChangeRun) -> Entry:
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


def test_an_entry_survives_the_journal(course: ChangeRun) -> None:
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    found = course.journal.find(entry.id)
    assert found == entry
    assert found.state == "applied" and found.is_finished
    assert found.stages[0].undo == (DeleteTopic(topic="a"),)


@pytest.mark.parametrize("factor", [1.0, 0.9, 0.5])
def test_what_is_written_to_the_journal_can_be_read(
    factor: float, course: ChangeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = entry_of(plan_creation(course.cluster, NEW))
    course.journal.write(entry)
    size = (course.journal.folder / f"{entry.id}.json").stat().st_size
    monkeypatch.setattr("kctl.changes.journal.LARGEST_ENTRY", int(size * factor))
    if factor > 0.6:
        course.journal.write(entry)
        assert course.journal.find(entry.id) == entry
    else:
        with pytest.raises(KctlError, match="nothing more was changed"):
            course.journal.write(entry)


def test_a_long_entry_stands_in_one_line(course: ChangeRun) -> None:
    entry = entry_of(plan_creation(course.cluster, NEW))
    path = course.journal.folder / f"{entry.id}.json"
    course.journal.write(entry)
    assert path.read_text().count("\n") > 30
    entry.details["much"] = ["x" * 100] * 5000
    course.journal.write(entry)
    assert path.read_text().count("\n") == 1
    assert course.journal.find(entry.id) == entry


# --- the journal's files ---


def test_the_journal_is_private_and_chained(course: ChangeRun) -> None:
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
def test_verify_finds_a_changed_a_removed_and_a_resealed_entry(course: ChangeRun, harm: Any) -> None:
    first = carry_out(plan_creation(course.cluster, NEW), course)
    carry_out(plan_growth(course.cluster, "a", 3), course)
    harm(course.journal.folder / f"{first.id}.json")
    assert course.journal.verify()


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path.parent / CHAIN).read_text().splitlines()]


def write_lines(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    (path.parent / CHAIN).write_text("".join(json.dumps(line) + "\n" for line in lines))


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def change_intent(path: Path) -> None:
    entry = json.loads(path.read_text())
    entry["stages"][0]["undo"][0]["topic"] = "payments"
    path.write_text(json.dumps(entry))


def swap(path: Path) -> None:
    other = next(p for p in sorted(path.parent.glob("*.json")) if p != path)
    path.write_bytes(other.read_bytes())


def seal_again(path: Path) -> None:
    """An edit with a line of the chain that has the right digest of the file, and no right hash."""
    edit(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    lines = lines_of(path)
    write_lines(path, [*lines, {**lines[-1], "id": path.stem, "sha256": digest}])


def break_link(path: Path) -> None:
    lines = lines_of(path)
    write_lines(path, [{**lines[0], "previous": "f" * 64}, *lines[1:]])


# What somebody may do to a journal to have kctl write something else.
TAMPERING: dict[str, Callable[[Path], object]] = {
    "a text is edited": edit,
    "what undoes it is edited": change_intent,
    "its cluster is edited": lambda path: change(path, cluster_id=None),
    "its place is edited": lambda path: change(path, location="elsewhere:2181"),
    "its state is edited": lambda path: change(path, undone_by=None, outcome="x"),
    "another entry's content is put in its place": swap,
    "the chain is gone": lambda path: (path.parent / CHAIN).unlink(),
    "the chain is empty": lambda path: write_lines(path, []),
    "the chain lacks its first line": roll_back_and_reseal,
    "the lines of the chain are in another order": lambda path: write_lines(path, lines_of(path)[::-1]),
    "it is sealed again without the hash": seal_again,
    "a line of the chain follows from nothing": break_link,
    "a line of another entry follows from nothing": lambda path: write_lines(
        path, [*(lines := lines_of(path))[:-1], {**lines[-1], "previous": "f" * 64}]
    ),
    "a line of the chain is no object": lambda path: (path.parent / CHAIN).write_text("[" * 100_000 + "\n"),
    "it is no JSON": lambda path: path.write_text("{"),
    "it is no object": lambda path: path.write_text("[]"),
    "its JSON is deep": lambda path: path.write_text("[" * 100_000),
    "it holds half of a surrogate pair": lambda path: change(path, title="\ud800"),
}


@pytest.mark.parametrize("tamper", TAMPERING.values(), ids=TAMPERING)
def test_nothing_is_taken_from_an_entry_that_was_tampered_with(
    store: FakeStore, course: ChangeRun, tamper: Callable[[Path], object]
) -> None:
    first = carry_out(plan_creation(course.cluster, NEW), course)
    carry_out(plan_growth(course.cluster, "a", 3), course)
    assert course.journal.find_sealed(first.id) == first
    tamper(course.journal.folder / f"{first.id}.json")
    with pytest.raises(Refused) as refused:
        course.journal.find_sealed(first.id)
    assert refused.value.exit_code == 4 and "nothing was written" in refused.value.hint


def test_an_entry_under_another_name_is_none(course: ChangeRun) -> None:
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    path = course.journal.folder / f"{entry.id}.json"
    path.with_name("other.json").write_bytes(path.read_bytes())
    with pytest.raises(KctlError, match=f"its own id is {entry.id}"):
        course.journal.find("other")


def test_a_move_to_where_the_replicas_are_is_nothing_to_undo(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "b", [[1, 2]])
    here = {TopicPartition("b", 0): (1, 2)}
    entry = entry_of(Plan(title="t", stages=(Stage(intent=Reassign(targets=here, origins=here)),)))
    entry.stages[0].state, entry.stages[0].undo = "finished", (Reassign(targets=here, origins=here),)
    assert plan_undo(entry, course).stages == ()


def test_another_entry_that_is_gone_does_not_keep_a_change_from_being_undone(course: ChangeRun) -> None:
    first = carry_out(plan_creation(course.cluster, NEW), course)
    second = carry_out(plan_growth(course.cluster, "a", 3), course)
    (course.journal.folder / f"{first.id}.json").unlink()
    assert course.journal.find_sealed(second.id) == second


@pytest.mark.parametrize("content", ["[" * 100_000, "{", "[]", "7", '{"format": 1}', "\x00"])
def test_what_is_no_entry_is_said_in_one_line(course: ChangeRun, content: str) -> None:
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    (course.journal.folder / f"{entry.id}.json").write_text(content)
    with pytest.raises(KctlError, match="not a journal entry"):
        course.journal.find(entry.id)


def test_verify_finds_an_entry_that_was_put_there(course: ChangeRun) -> None:
    first = carry_out(plan_creation(course.cluster, NEW), course)
    path = course.journal.folder / f"{first.id}.json"
    (course.journal.folder / "2020-01-01T00:00:00Z-000000.json").write_bytes(path.read_bytes())
    assert [one.reason for one in course.journal.verify()] == ["the file was never sealed"]


def test_a_line_of_the_chain_cut_off_by_a_kill_is_no_harm(course: ChangeRun) -> None:
    carry_out(plan_creation(course.cluster, NEW), course)
    chain = course.journal.folder / CHAIN
    chain.write_bytes(chain.read_bytes() + b'{"id": "20')
    assert course.journal.verify() == []
    carry_out(plan_growth(course.cluster, "a", 3), course)
    assert course.journal.verify() == []


def test_only_one_writes_to_a_cluster_at_a_time(course: ChangeRun) -> None:
    one, other = course.journal, Journal(course.journal.folder)
    with one.exclusively("cluster", deadline(0)):
        with (
            pytest.raises(Refused, match="another kctl is writing"),
            other.exclusively("cluster", deadline(0)),
        ):
            pass
        with other.exclusively("another cluster", deadline(0)):
            pass
    with other.exclusively("cluster", deadline(0)):
        assert list(other.entries(pytest.fail)) == [] and other.verify() == []


def test_secrets_are_not_in_the_journal(store: FakeStore, course: ChangeRun) -> None:
    store.put("/config/users/u", {"version": 1, "config": {"SCRAM-SHA-256": "salt=abc,stored_key=hush"}})
    plan = plan_configs(course.cluster, "users", "u", set={"producer_byte_rate": "100"})
    entry = carry_out(plan, course)
    written = (course.journal.folder / f"{entry.id}.json").read_text()
    assert "hush" not in written and "(redacted)" in written
    assert "hush" in store.nodes["/config/users/u"].data.decode()


def test_the_journal_is_on_disk_before_the_first_write(store: FakeStore, course: ChangeRun) -> None:
    seen: list[str] = []
    store.before_transact = lambda: seen.extend(e.stages[0].state for e in course.journal.entries(print))
    carry_out(plan_creation(course.cluster, NEW), course)
    assert seen == ["writing"]


def test_a_journal_that_cannot_be_written_keeps_the_change_from_happening(
    store: FakeStore, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    course = ChangeRun(
        cluster=ZookeeperCluster(store), journal=Journal(blocked / "journal"), wait=True, until=deadline(1)
    )
    with pytest.raises(KctlError, match="journal"):
        carry_out(plan_creation(course.cluster, NEW), course)
    assert store.transactions == []


# --- compare and set ---


def test_a_change_between_plan_and_write_is_refused(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "a", [[1, 2]])
    plan = plan_growth(course.cluster, "a", 2)
    store.put("/brokers/topics/a", {"version": 3, "partitions": {"0": [3, 2]}, "x": 1})
    with pytest.raises(Conflict, match="changed by somebody else"):
        carry_out(plan, course)
    assert store.json("/brokers/topics/a")["partitions"] == {"0": [3, 2]}  # type: ignore[index,call-overload]
    (entry,) = course.journal.entries(print)
    assert entry.state == "planned" and "changed by somebody else" in (entry.outcome or "")


def test_a_controller_that_moved_between_plan_and_write_is_noticed(
    store: FakeStore, course: ChangeRun
) -> None:
    plan = plan_creation(course.cluster, NEW)
    store.put("/controller_epoch", b"8")
    with pytest.raises(Conflict):
        carry_out(plan, course)
    assert "/brokers/topics/a" not in store.nodes


# --- unfinished, resumed, undone ---


def test_what_is_not_done_in_time_is_journalled_as_applied(store: FakeStore, course: ChangeRun) -> None:
    store.after_transact = lambda: None
    quick = ChangeRun(cluster=course.cluster, journal=course.journal, wait=True, until=deadline(0))
    entry = entry_of(plan_creation(course.cluster, NEW))
    with pytest.raises(NotFinished, match="no leader"):
        applying.apply(entry, quick)
    assert course.journal.find(entry.id).state == "applied"
    assert not entry.is_finished


class Killed(BaseException):
    """kctl ends here."""


def killed_at(point: str, entry: Entry, course: ChangeRun, monkeypatch: pytest.MonkeyPatch) -> Entry:
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
    store: FakeStore, course: ChangeRun, monkeypatch: pytest.MonkeyPatch, point: str
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
    store: FakeStore, course: ChangeRun, monkeypatch: pytest.MonkeyPatch, is_resumed: bool
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


class Later(ZookeeperCluster):
    """Brokers that show a write only as it is worked out anew, which they refuse since it is not as it was."""

    late: Sequence[Write] = ()
    is_lost = False

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        late, self.late = self.late, ()
        if late and not self.is_lost:
            super().commit(late)
        if late:
            raise Conflict("it is not as it was planned; nothing was written")
        return super().writes_for(intent, state)


@pytest.mark.parametrize("is_lost", [True, False])
def test_what_becomes_visible_before_it_is_written_again_is_no_conflict(
    store: FakeStore, course: ChangeRun, monkeypatch: pytest.MonkeyPatch, is_lost: bool
) -> None:
    cluster = Later(store)
    late = replace(course, cluster=cluster, wait=False)
    plan = plan_creation(cluster, NEW)
    entry = killed_at("before-write:0", entry_of(plan), late, monkeypatch)
    cluster.late, cluster.is_lost = plan.stages[0].writes, is_lost
    if is_lost:  # it was somebody else
        with pytest.raises(KctlError, match="not as it was planned"):
            applying.resume(entry, late)
        return
    applying.resume(entry, late)
    found = late.journal.find(entry.id)
    assert found.state == "applied" and len(store.transactions) == 1
    assert [write.target for write in found.stages[0].writes] == [
        write.target for write in plan.stages[0].writes
    ]


@pytest.mark.parametrize("point", ("journalled", "before-write:0", "after-write:0", "written:0"))
def test_a_change_that_nothing_waits_for_is_resumed(
    store: FakeStore, course: ChangeRun, monkeypatch: pytest.MonkeyPatch, point: str
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
    store: FakeStore, course: ChangeRun, monkeypatch: pytest.MonkeyPatch, point: str
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
        ({0: 0}, ("it is unknown whether anything was written to 1 partition of topic a since",)),
    ],
)
def test_undo_of_a_creation_warns_of_what_was_written_since(
    course: ChangeRun, monkeypatch: pytest.MonkeyPatch, ends: dict[int, int], warnings: tuple[str, ...]
) -> None:
    found = carry_out(plan_creation(course.cluster, NEW), course)
    told = {TopicPartition("a", number): end for number, end in ends.items()}
    monkeypatch.setattr(course.cluster, "log_ends", lambda state: told)
    assert plan_undo(found, course).warnings == warnings


def test_undo_of_a_configuration_leaves_what_others_set(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "a", [[1]])
    entry = carry_out(plan_configs(course.cluster, "topics", "a", set={"retention.ms": "5"}), course)
    carry_out(plan_configs(course.cluster, "topics", "a", set={"segment.ms": "7"}), course)
    carry_out(plan_undo(entry, course), course)
    assert store.json("/config/topics/a") == {"version": 1, "config": {"segment.ms": "7"}}


UNCLEAN = {"unclean.leader.election.enable": "true"}
CLEAN = {"unclean.leader.election.enable": "false"}


def test_undo_that_lets_a_partition_elect_unclean_needs_its_own_word(
    store: FakeStore, course: ChangeRun
) -> None:
    add_topic(store, "a", [[1, 2]])
    store.put("/config/topics/a", {"version": 1, "config": UNCLEAN})
    entry = carry_out(plan_configs(course.cluster, "topics", "a", set=CLEAN), course)
    assert not plan_undo(entry, course).needs
    put_state(store, "a", 0, -1, [1])
    plan = plan_undo(entry, course)
    assert plan.needs == "--accept-loss" and "without a leader (a-0)" in plan.warnings[0]
    accepted = plan_undo(entry, course, accepted=True)
    assert not accepted.needs and accepted.details == {"undoes": entry.id, "may_elect_unclean": ["a-0"]}


@pytest.mark.parametrize("given", [False, True])
def test_resume_asks_for_the_word_where_it_was_not_given(
    store: FakeStore, course: ChangeRun, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    """A partition may have lost its leader since the change was planned."""
    add_topic(store, "a", [[1, 2]])
    if given:
        put_state(store, "a", 0, -1, [1])
    entry = entry_of(plan_configs(course.cluster, "topics", "a", set=UNCLEAN, accepted=given))
    course.journal.write(entry)
    put_state(store, "a", 0, -1, [1])
    if not given:
        with pytest.raises(Refused, match=r"without a leader .a-0.* nothing was written") as refused:
            applying.resume(entry, course)
        assert "--accept-loss" in refused.value.hint
        assert store.json("/config/topics/a")["config"] == {}  # type: ignore[index,call-overload]
    applying.resume(entry, course, accepted=not given)
    assert store.json("/config/topics/a")["config"] == UNCLEAN  # type: ignore[index,call-overload]


def test_undo_refuses_a_value_that_somebody_changed_since(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "a", [[1]])
    entry = carry_out(plan_configs(course.cluster, "topics", "a", set={"retention.ms": "5"}), course)
    carry_out(plan_configs(course.cluster, "topics", "a", set={"retention.ms": "6"}), course)
    with pytest.raises(Refused, match="is '6', not '5'"):
        plan_undo(entry, course)


def test_undo_refuses_what_has_no_way_back_with_the_reason(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "a", [[1]])
    grown = carry_out(plan_growth(course.cluster, "a", 2), course)
    with pytest.raises(Refused, match="cannot take partitions away"):
        plan_undo(grown, course)
    deleted = carry_out(plan_deletion(course.cluster, "a"), course)
    with pytest.raises(Refused, match="no release stops a deletion"):
        plan_undo(deleted, course)


def test_undo_of_a_creation_refuses_a_topic_that_has_grown(store: FakeStore, course: ChangeRun) -> None:
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    carry_out(plan_growth(course.cluster, "a", 4), course)
    with pytest.raises(Refused, match="has been changed since"):
        plan_undo(entry, course)


def test_undo_of_a_creation_refuses_a_topic_that_somebody_made_anew(
    store: FakeStore, course: ChangeRun
) -> None:
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    carry_out(plan_deletion(course.cluster, "a"), course)
    carry_out(plan_creation(course.cluster, NEW), course)
    with pytest.raises(Refused, match="created again by someone else"):
        plan_undo(entry, course)


def test_undo_of_a_creation_goes_by_the_topics_id_where_it_has_one(
    store: FakeStore, course: ChangeRun
) -> None:
    """Same name, same replicas, same moment: only the id tells that it is another topic."""
    act = store.after_transact

    def name_it(id: str) -> None:
        act()
        if "/brokers/topics/a" in store.nodes:
            store.put("/brokers/topics/a", {**store.json("/brokers/topics/a"), "topic_id": id})  # type: ignore[dict-item]

    store.after_transact = lambda: name_it("A" * 22)
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    name_it("B" * 22)
    with pytest.raises(Refused, match="created again by someone else"):
        plan_undo(entry, course)
    name_it("A" * 22)
    carry_out(plan_undo(entry, course), course)
    assert "/brokers/topics/a" not in store.nodes


def test_undo_of_a_move_refuses_a_dead_broker(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "a", [[1, 2]])
    intent = Reassign(targets={A0: (2, 3)}, origins={A0: (1, 2)})
    state = course.cluster.read_state()
    plan = Plan(title="move", stages=(Stage(intent=intent, writes=course.cluster.writes_for(intent, state)),))
    entry = entry_of(plan)
    entry.stages[0].state = "planned"
    no_wait = ChangeRun(cluster=course.cluster, journal=course.journal, wait=False, until=deadline(1))
    applying.apply(entry, no_wait)
    assert store.json("/brokers/topics/a")["partitions"] == {"0": [2, 3]}  # type: ignore[index,call-overload]
    store.remove("/brokers/ids/1")
    with pytest.raises(Refused, match="broker 1, not alive"):
        plan_undo(entry, course)


def test_stages_after_the_first_are_worked_out_anew(store: FakeStore, course: ChangeRun) -> None:
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


def test_an_entry_of_another_format_is_no_crash(course: ChangeRun) -> None:
    course.journal.folder.mkdir(parents=True)
    (course.journal.folder / "x.json").write_text('{"format": 99}')
    reported: list[Exception] = []
    assert list(course.journal.entries(reported.append)) == []
    assert "format 99" in str(reported[0])
    assert os.listdir(course.journal.folder) == ["x.json"]


# --- stages, one by one ---


def two_stages(course: ChangeRun) -> Plan:
    """Two values of one topic after each other; the writes of both are worked out from the state before."""
    first = AlterConfig(
        entity_type="topics", entity_name="a", after={"retention.ms": "1"}, before={"retention.ms": None}
    )
    second = replace(first, after={"segment.ms": "2"}, before={"segment.ms": None})
    state = course.cluster.read_state()
    stages = (
        Stage(intent=intent, writes=course.cluster.writes_for(intent, state)) for intent in (first, second)
    )
    return Plan(title="twice", stages=tuple(stages))


def test_only_the_first_stage_is_written_as_it_was_shown(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "a", [[1]])
    assert carry_out(two_stages(course), course).is_finished
    assert store.json("/config/topics/a")["config"] == {"retention.ms": "1", "segment.ms": "2"}  # type: ignore[index,call-overload]


def test_without_waiting_no_stage_is_written_behind_one_that_may_not_be_done(
    store: FakeStore, course: ChangeRun
) -> None:
    add_topic(store, "a", [[1]])
    entry = entry_of(two_stages(course))
    with pytest.raises(NotFinished, match="stage 1 of 2 is written, the rest is not") as unfinished:
        applying.apply(entry, replace(course, wait=False))
    assert (
        unfinished.value.hint
        == f"`kctl journal resume {entry.id}` waits on, then does the rest: {entry.stages[1].intent}"
    )
    assert [stage.state for stage in course.journal.find(entry.id).stages] == ["written", "planned"]
    assert store.json("/config/topics/a")["config"] == {"retention.ms": "1"}  # type: ignore[index,call-overload]
    applying.resume(entry, course)
    assert course.journal.find(entry.id).is_finished


def test_a_refused_stage_is_worked_out_anew_when_it_is_resumed(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "a", [[1]])
    entry = entry_of(two_stages(course))
    store.put("/config/topics/a", {"version": 1, "config": {"max.message.bytes": "9"}})  # somebody else
    with pytest.raises(Refused):
        applying.apply(entry, course)
    assert course.journal.find(entry.id).stages[0].state == "refused"
    applying.resume(entry, course)
    assert store.json("/config/topics/a")["config"] == {  # type: ignore[index,call-overload]
        "max.message.bytes": "9",
        "retention.ms": "1",
        "segment.ms": "2",
    }


def test_a_stage_that_was_written_keeps_its_writes_when_it_is_resumed(
    store: FakeStore, course: ChangeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = killed_at("after-write:0", entry_of(plan_creation(course.cluster, NEW)), course, monkeypatch)
    written = found.stages[0].writes
    applying.resume(found, course)
    assert course.journal.find(found.id).stages[0].writes == written != ()


def test_a_topic_that_is_there_or_being_deleted_is_not_created(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "a", [[1]])
    create = CreateTopic(topic="a", replicas={0: (1,)}, configs={})
    with pytest.raises(Refused, match="topic a already exists"):
        course.cluster.writes_for(create, course.cluster.read_state())
    store.put("/admin/delete_topics/a", b"")
    with pytest.raises(Refused, match="marked for deletion"):
        course.cluster.writes_for(create, course.cluster.read_state())


def test_what_was_read_before_an_interruption_is_read_again(
    store: FakeStore, course: ChangeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_topic(store, "a", [[1]])
    found = killed_at("journalled", entry_of(two_stages(course)), course, monkeypatch)
    store.put("/config/topics/a", {"version": 1, "config": {"max.message.bytes": "9"}})  # somebody else
    applying.resume(found, course)
    assert len(store.json("/config/topics/a")["config"]) == 3  # type: ignore[index,call-overload,arg-type]


def test_an_interrupted_change_that_was_undone_is_not_resumed(
    course: ChangeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = killed_at("written:0", entry_of(plan_creation(course.cluster, NEW)), course, monkeypatch)
    carry_out(plan_undo(found, course), course)
    with pytest.raises(Refused, match="was undone by"):
        applying.resume(course.journal.find(found.id), course)
    with pytest.raises(Refused, match="was undone by"):
        plan_undo(course.journal.find(found.id), course)


def test_a_topic_that_is_not_as_it_was_made_is_not_taken_for_it(store: FakeStore, course: ChangeRun) -> None:
    store.after_transact = lambda: store.put("/brokers/topics/a", {"version": 3, "partitions": {"0": [3]}})
    entry = entry_of(plan_creation(course.cluster, NEW))
    applying.apply(entry, replace(course, wait=False))
    assert "created_at" not in entry.details


@pytest.mark.parametrize(("version", "form"), [(V1_1, 1), (V2_4, 2), (V2_8, 3)])
def test_a_topic_is_written_as_the_oldest_broker_reads_it(
    course: ChangeRun, version: KafkaVersion, form: int
) -> None:
    state = replace(course.cluster.read_state(), kafka_version=version)
    writes = course.cluster.writes_for(CreateTopic(topic="a", replicas={0: (1,)}, configs={}), state)
    assert [
        json.loads(w.after)["version"] for w in writes if w.target == "/brokers/topics/a" and w.after
    ] == [form]


def test_partitions_are_not_added_to_a_topic_that_changed_since(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "a", [[1]])
    state = course.cluster.read_state()
    store.put("/brokers/topics/a", {"version": 3, "partitions": {"0": [2]}})
    with pytest.raises(Conflict, match="changed by somebody else"):
        course.cluster.writes_for(AddPartitions(topic="a", replicas={1: (1,)}), state)


def test_a_topic_that_is_gone_or_was_moved_since_is_not_deleted(store: FakeStore, course: ChangeRun) -> None:
    entry = carry_out(plan_creation(course.cluster, NEW), course)
    store.put("/brokers/topics/a", {"version": 3, "partitions": {"0": [3], "1": [2, 3]}})
    with pytest.raises(Refused, match="has been changed since"):
        plan_undo(entry, course)
    store.remove("/brokers/topics/a")
    with pytest.raises(Refused, match="no longer exists"):
        plan_undo(entry, course)


def test_entries_are_listed_by_time_and_found_by_what_only_one_begins_with(course: ChangeRun) -> None:
    first = carry_out(plan_creation(course.cluster, NEW), course)
    second = carry_out(plan_growth(course.cluster, "a", 3), course)
    second.time = "9999"
    course.journal.write(second)
    assert [entry.id for entry in course.journal.entries(print)] == [first.id, second.id]
    with pytest.raises(KctlError, match="matches 2 changes"):
        course.journal.find(first.id[:4])


def test_a_deletion_is_of_the_topic_that_was_read(store: FakeStore, course: ChangeRun) -> None:
    add_topic(store, "a", [[1]])
    writes = course.cluster.writes_for(DeleteTopic(topic="a"), course.cluster.read_state())
    versions = {write.target: write.version for write in writes if write.action == "check"}
    assert versions["/brokers/topics/a"] == store.nodes["/brokers/topics/a"].stat.version


def test_a_controller_that_is_another_by_now_is_left_alone(course: ChangeRun) -> None:
    with pytest.raises(Conflict, match="broker 3 is no longer the controller"):
        course.cluster.writes_for(MoveController(broker_id=3), course.cluster.read_state())


def test_what_ended_half_way_says_so_over_the_whole_change(course: ChangeRun, store: FakeStore) -> None:
    """The second step is refused: what the first one wrote counts."""
    add_topic(store, "b", [[1, 2]])
    stages = tuple(
        Stage(
            intent=AlterConfig(
                entity_type="topics", entity_name="b", after={"k": after}, before={"k": before}
            )
        )
        for before, after in ((None, "1"), ("2", "3"))
    )
    entry = entry_of(Plan(title="two steps", stages=stages))
    with pytest.raises(NotFinished, match="1 carried out, 1 refused, 0 unknown"):
        applying.apply(entry, course)
    assert entry.state == "partly_applied" and entry.outcome
    assert "nothing was written" not in entry.outcome and f"journal undo {entry.id}" in entry.outcome


def test_a_part_of_a_step_stands_whatever_comes_of_the_rest(
    course: ChangeRun, store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted, and neither forgotten by a resume that is refused nor taken for nothing by an undo."""
    add_topic(store, "b", [[1, 2]])
    change = AlterConfig(entity_type="topics", entity_name="b", after={"k": "1"}, before={"k": None})
    entry = entry_of(Plan(title="one step", stages=(Stage(intent=change),)))
    part = NotFinished("1 of 2 items was carried out")
    part.is_begun = True

    def fail(error: KctlError) -> None:
        def commit(writes: Sequence[Write]) -> None:
            raise error

        monkeypatch.setattr(course.cluster, "commit", commit)

    fail(part)
    with pytest.raises(NotFinished, match=f"1 in part.*journal undo {entry.id}"):
        applying.apply(entry, course)
    fail(Refused("it is not to be; nothing was written"))
    found = course.journal.find(entry.id)
    with pytest.raises(NotFinished, match="1 in part, 0 refused") as raised:
        applying.resume(found, course)
    assert "nothing was written" not in str(raised.value)
    found = course.journal.find(entry.id)
    assert (found.state, found.stages[0].state, found.stages[0].is_begun) == (
        "partly_applied",
        "refused",
        True,
    )
    monkeypatch.undo()
    with pytest.raises(Conflict, match="is not set"):  # it is not passed over as what was never written
        plan_undo(found, course)


def test_a_throttle_that_stays_is_named(course: ChangeRun, store: FakeStore) -> None:
    rate = AlterConfig(entity_type="brokers", entity_name="1", after={"r": "5"}, before={"r": None})
    lists = AlterConfig(entity_type="topics", entity_name="a", after={"l": "0:1"}, before={"l": None})
    moves = [
        Reassign(targets={A0: (1, 2)}, origins={A0: (2, 3)}, config_changes=changes)
        for changes in ((rate, lists), (replace(lists, entity_name="b"),))
    ]
    clear = ClearThrottle(throttled={}, rates={})
    entry = entry_of(Plan(title="moves", stages=tuple(Stage(intent=one) for one in (*moves, clear))))
    assert applying.throttle_left(entry) == ""
    entry.stages[0].state = "written"
    assert applying.throttle_left(entry) == "broker 1 and topic a"
    entry.stages[1].state = "writing"
    assert applying.throttle_left(entry) == "broker 1 and topics a, b"
    entry.stages[2].state = "finished"
    assert applying.throttle_left(entry) == ""


def test_a_topic_made_anew_is_not_the_one_that_a_change_was_made_for(
    course: ChangeRun, store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion that was cut off before it was asked for would delete the records of another topic."""
    carry_out(plan_creation(course.cluster, NEW), course)
    entry = killed_at("journalled", entry_of(plan_deletion(course.cluster, "a")), course, monkeypatch)
    store.remove("/brokers/topics/a")
    store.zxid += 10
    add_topic(store, "a", [[1, 2], [2, 3]])
    with pytest.raises(Refused, match="topic a was deleted and created again since"):
        applying.resume(entry, course)
    assert course.cluster.read_state(["a"]).topics and entry.state == "planned"


def test_undo_of_a_configuration_leaves_a_topic_made_anew(course: ChangeRun, store: FakeStore) -> None:
    add_topic(store, "b", [[1, 2]])
    entry = carry_out(plan_configs(course.cluster, "topics", "b", set={"retention.ms": "5"}), course)
    store.remove("/brokers/topics/b")
    store.zxid += 10
    add_topic(store, "b", [[1, 2]])
    with pytest.raises(Refused, match="topic b was deleted and created again since"):
        plan_undo(entry, course)


def full_disk(monkeypatch: pytest.MonkeyPatch, course: ChangeRun) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kctl.changes.journal._write_synced", refuse)


@pytest.mark.parametrize("point", ["after-write:0", "written:0", "finished:0"])
def test_a_disk_that_fills_up_behind_a_write_leaves_a_change_to_go_on_with(
    course: ChangeRun, store: FakeStore, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    entry = entry_of(plan_creation(course.cluster, NEW))
    with monkeypatch.context() as patch:
        patch.setattr(applying, "reach", lambda name: full_disk(patch, course) if name == point else None)
        with pytest.raises(NotFinished, match=f"no space left.*journal resume {entry.id}"):
            applying.apply(entry, course)
    found = course.journal.find(entry.id)
    assert course.journal.verify() == [] and found.is_finished is (point == "finished:0")
    carry_out(plan_growth(course.cluster, "a", 3), course)  # another one is written meanwhile
    found = course.journal.find_sealed(entry.id)
    assert found.state in ("partly_applied", "applied")


def test_what_was_sealed_and_not_put_in_place_is_put_there_by_the_next_change(
    course: ChangeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kctl was killed between the two; a change of another one comes before it is resumed."""
    entry = entry_of(plan_creation(course.cluster, NEW))
    course.journal.write(entry)
    entry.outcome = "later"

    def killed(self: Path, target: Path) -> Path:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "rename", killed)
        course.journal.write(entry)
    assert course.journal.find(entry.id).outcome is None and course.journal.verify() == []
    course.journal.write(entry_of(plan_creation(course.cluster, replace(NEW, name="other"))))
    assert course.journal.verify() == [] and course.journal.find_sealed(entry.id).outcome == "later"


class Fencing:
    """A KRaft cluster whose broker 3 has just died: its death is noticed after so many reads."""

    backend, can = "admin", BACKENDS["admin"]

    def __init__(self, reads: int) -> None:
        self.reads, self.told = reads, [0]

    def read_state(self, *_: Any, **__: Any) -> ClusterState:
        self.reads -= 1
        return ClusterState(
            cluster_id="c",
            kafka_version=KafkaVersion(4, 3),
            brokers={
                n: Broker(broker_id=n, host="h", port=1, is_fenced=n == 3 and self.reads < 0) for n in (1, 3)
            },
            controller=None,
            broker_files={1: {}},
            backend="admin",
            quorum=Quorum(leader_id=1, leader_epoch=1, high_watermark=5, members=()),
        )

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        dead = not state.is_alive(3)
        return (PlainWrite(action="request", target="configs"),) if dead else ()

    def dead_brokers_told(self, writes: Sequence[Write]) -> set[int]:
        return {3} if writes else set()

    def commit(self, writes: Sequence[Write]) -> None:
        self.told.append(len(writes))


@pytest.mark.parametrize("reads", [0, 3, 1000])
def test_a_throttle_of_a_broker_that_dies_meanwhile(
    course: ChangeRun, monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    """The controller is asked to take it off once it knows that the broker is dead; before, it may be left."""
    monkeypatch.setattr(applying, "LATE", 1.0)
    fencing = Fencing(reads)
    clear = ClearThrottle(throttled={}, rates={"1": {"r": None}, "3": {"r": None}})
    entry = entry_of(Plan(title="clear", stages=(Stage(intent=clear),)))
    run = replace(course, cluster=fencing)
    if reads == 1000:
        with pytest.raises(NotFinished, match="may be left on broker 3"):
            applying.apply(entry, run)
    else:
        applying.apply(entry, run)
        assert fencing.told[-1] == 1, "the controller was asked"
