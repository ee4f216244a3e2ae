"""Which offsets a reset gives, files of offsets, and what is known of a group's lag."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from formats.values import replace
from kctl.changes.entry import Entry, new_entry
from kctl.changes.kinds.groups import DeleteGroup, GroupOffset, RemoveMembers, SetGroupOffsets
from kctl.changes.plan import Plan, Stage
from kctl.cluster.names import is_named, partitions_named
from kctl.cluster.state import ClusterState, PartitionState, Topic
from kctl.cluster.versions import KafkaVersion
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import TopicPartition
from kctl.wire import group_resets
from kctl.wire.answers.metadata import Node, Places, TopicPlaces
from kctl.wire.group_resets import ResetGoal, parse_offsets, resets_to
from kctl.wire.groups import PartitionLag, require_coordinators, total_lag
from kctl.wire.writes import groups as group_requests
from kctl.wire.writes.groups import DeleteShareGroupOffsets, KnownOffsets, offset_rows, set_group_offsets

A, B = TopicPartition("a", 0), TopicPartition("a", 1)
STARTS, ENDS, AT_TIME = {A: 10, B: 0}, {A: 100, B: 50}, {A: 70, B: -1}


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs from 10 to 100 and from 0 to 50; of time 5 the first has a record, the other none."""
    places = {-1: ENDS, -2: STARTS, 5: AT_TIME}

    def watermarks(wire: Any, partitions: Any, place: int = -1) -> dict[TopicPartition, int]:
        return {tp: places[place][tp] for tp in partitions if tp in places[place]}

    monkeypatch.setattr(group_resets, "watermarks", watermarks)


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        (ResetGoal(earliest=True), [(10, False), (0, False)]),
        (ResetGoal(latest=True), [(100, False), (50, False)]),
        (ResetGoal(offset=60), [(60, False), (50, True)]),
        (ResetGoal(offset=5), [(10, True), (5, False)]),
        (ResetGoal(shift=-25), [(15, False), (0, True)]),
        (ResetGoal(time=5), [(70, False), (50, False)]),
        (ResetGoal(current=True), [(40, False), (20, False)]),
        (ResetGoal(listed={A: 11, B: 99}), [(11, False), (50, True)]),
    ],
)
def test_where_offsets_go(logs: None, goal: ResetGoal, expected: list[tuple[int, bool]]) -> None:
    assert goal.count == 1
    found = resets_to(SimpleNamespace(), {A: 40, B: 20}, goal)  # type: ignore[arg-type]
    assert [(one.new_offset, one.was_outside) for one in found] == expected
    for one in found:
        assert one.change is not None and one.skips is not None and one.repeats is not None
        assert one.skips - one.repeats == one.change and 0 in (one.skips, one.repeats)


def test_a_partition_without_an_offset(logs: None) -> None:
    (one,) = resets_to(SimpleNamespace(), {A: None}, ResetGoal(current=True))  # type: ignore[arg-type]
    assert (one.new_offset, one.change, one.skips, one.repeats) == (100, None, None, None)
    with pytest.raises(KctlError, match="no offset to shift"):
        resets_to(SimpleNamespace(), {A: None}, ResetGoal(shift=1))  # type: ignore[arg-type]
    with pytest.raises(KctlError, match="c-0 has no leader"):
        resets_to(SimpleNamespace(), {TopicPartition("c", 0): 1}, ResetGoal(latest=True))  # type: ignore[arg-type]


def test_a_file_of_offsets() -> None:
    assert parse_offsets('"a",0,7\n\na,1,0\n', "f") == {A: 7, B: 0}
    for text, says in (
        ("a,0", "f:1"),
        ("a,0,-1", "not TOPIC"),
        ("a,0,1\na,0,2", "f:2: a-0 is listed twice"),
        ("", "lists no"),
    ):
        with pytest.raises(BadValue, match=says):
            parse_offsets(text, "f")


def test_names_of_partitions() -> None:
    state = ClusterState(
        cluster_id=None,
        kafka_version=KafkaVersion(4, 3),
        brokers={},
        controller=None,
        topics={"a": Topic(name="a", partitions={1: (1,), 0: (1,)})},
    )
    assert partitions_named(["a"], state) == [A, B] == partitions_named(["a:1", "a:0,1"], state)
    for name, error in (("b", KctlError), ("a:2", KctlError), ("a:x", BadValue)):
        with pytest.raises(error):
            partitions_named([name], state)
    assert is_named(B, ["b", "a:0,1"]) and not is_named(B, ["a:0"]) and is_named(A, ["a"])


def test_a_lag_that_is_not_known_is_not_0() -> None:
    def lag(value: int | None) -> PartitionLag:
        return PartitionLag(A, None, None, value, None)

    assert total_lag([lag(3), lag(0)]) == 3 and total_lag([lag(0)]) == 0
    assert total_lag([lag(3), lag(None)]) is None and total_lag([]) is None


def test_the_journal_keeps_offsets_as_they_were() -> None:
    was = {A: GroupOffset(5, 2, "mine"), B: None}
    reset = SetGroupOffsets(group="g", offsets={A: GroupOffset(9), B: GroupOffset(1)}, previous=was)
    deletion = DeleteGroup(group="g", previous={A: GroupOffset(5, 2, "mine")})
    intents = [reset, deletion, RemoveMembers(group="g", members=("m",))]
    plan = Plan(title="t", stages=tuple(Stage(intent=one) for one in intents))
    made = new_entry(
        plan, command="c", reason=None, cluster_id=None, backend="admin", location="l", kafka_version=None
    )
    read = Entry.from_json(json.loads(json.dumps(made.to_json())))
    assert [stage.intent for stage in read.stages] == intents
    assert read.stages[0].undo == (reset.inverse(),) and read.stages[0].undo[0].offsets == was  # type: ignore[attr-defined]
    assert read.stages[1].undo[0].previous == {A: None}  # type: ignore[attr-defined]
    assert "joins again" in read.stages[2].undo_refused
    for wrong in ({"topic": "a"}, {**made.to_json()["stages"][0]["intent"]["offsets"][0], "offset": "9"}):  # type: ignore[index,call-overload]
        entry: Any = json.loads(json.dumps(made.to_json()))
        entry["stages"][0]["intent"]["offsets"] = [wrong]
        with pytest.raises((KeyError, TypeError, ValueError)):
            Entry.from_json(entry)


def test_offsets_are_set_and_deleted_in_requests_of_their_own() -> None:
    state = ClusterState(
        cluster_id=None,
        kafka_version=KafkaVersion(4, 3),
        brokers={},
        controller=None,
        topic_names=("a",),
        topics={"a": Topic(name="a", partitions={0: (1,), 1: (1,)})},
    )
    mixed = SetGroupOffsets(group="g", offsets={A: GroupOffset(1), B: None}, previous={})
    both = [write.target for write in set_group_offsets(state, mixed, state)]
    assert both == ["OffsetCommit group g", "OffsetDelete group g"]


def test_offsets_of_a_share_group_are_deleted_for_whole_topics_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers would delete those of the other partitions as well."""
    monkeypatch.setattr(group_requests, "_present", lambda *_: {A: 1, B: 2})
    request = DeleteShareGroupOffsets(
        about="group g",
        expected=KnownOffsets(offset_rows({A: GroupOffset(1)})),
        group="g",
        partitions=offset_rows({A: None}),
    )
    with pytest.raises(Refused, match="a-1 would keep its own"):
        request.refuse_other_answers(SimpleNamespace())  # type: ignore[arg-type]
    whole = replace(request, partitions=offset_rows({A: None, B: None}))
    whole.refuse_other_answers(SimpleNamespace())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("leaders", "silent"), [((1, 2), ""), ((1, -1), "1 partition of"), ((3, -1), "2 partitions of")]
)
def test_groups_of_a_coordinator_that_is_gone_are_missed(leaders: tuple[int, ...], silent: str) -> None:
    states = {p: PartitionState(leader, 0, (1,)) for p, leader in enumerate(leaders)}
    topic = TopicPlaces("__consumer_offsets", 0, None, dict.fromkeys(states, (1,)), states)
    answer = Places(None, -1, [Node(1, "h", 1, None), Node(2, "h", 2, None)], [topic])
    wire: Any = SimpleNamespace(read=lambda request: answer, version_of=lambda request: 12)
    if not silent:
        require_coordinators(wire)
        return
    with pytest.raises(KctlError, match=f"{silent} __consumer_offsets ha.* no leader"):
        require_coordinators(wire)
