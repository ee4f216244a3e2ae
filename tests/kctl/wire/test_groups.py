"""What is said of a group's lag, and of offsets that a broker does not set."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kctl.changes.kinds.groups import GroupOffset
from kctl.cluster.interface import Visibility
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire import groups, hidden
from kctl.wire.adapter import TooOld
from kctl.wire.answers.metadata import Places, PlacesRequest, TopicPlaces
from kctl.wire.group_offsets import offset_findings
from kctl.wire.groups import CLASSIC, SHARE, ConsumerGroup, lags_of, total_lag
from kctl.wire.replicas.fetching import DEBUGGER, EARLIEST
from kctl.wire.writes import groups as group_requests
from kctl.wire.writes.groups import AlterShareGroupOffsets, KnownOffsets, OffsetOf

TP = TopicPartition("orders", 0)


@pytest.mark.parametrize(("type", "told", "lag"), [(CLASSIC, None, 60), (SHARE, None, None), (SHARE, 3, 3)])
def test_the_lag_of_a_share_group_is_what_its_coordinator_tells(
    monkeypatch: pytest.MonkeyPatch, type: str, told: int | None, lag: int | None
) -> None:
    """Where it begins to read may be written long after it has read on."""
    at = GroupOffset(40, None)
    monkeypatch.setattr(groups, "_share_offsets", lambda *_: {TP: (at, told)})
    monkeypatch.setattr(groups, "read_committed", lambda *_: {TP: at})
    monkeypatch.setattr(
        groups, "watermarks", lambda wire, tps, place, state: {TP: 0 if place == EARLIEST else 100}
    )
    nothing: Any = None
    group = ConsumerGroup(
        group="g", coordinator=1, type=type, state="Stable", protocol_type=None, protocol=None, members=()
    )
    (found,) = lags_of(nothing, group)
    assert (found.committed, found.high_watermark, found.lag) == (at, 100, lag)
    assert total_lag([found]) == lag


NOTHING: Any = None
GROUP = ConsumerGroup(
    group="g", coordinator=1, type=CLASSIC, state="Empty", protocol_type=None, protocol=None, members=()
)


@pytest.mark.parametrize(
    ("committed", "log", "lag", "outside", "gone"),
    [
        (500, (0, 100, 100), None, "beyond_end", 400),
        (40, (60, 100, 100), None, "below_start", 20),
        (100, (0, 100, 100), 0, None, None),
        (60, (60, 100, 100), 40, None, None),
        # A new leader's high watermark may be behind what the last one's was.
        (105, (0, 100, 110), 0, None, None),
    ],
)
def test_an_offset_outside_the_log_has_no_lag(
    monkeypatch: pytest.MonkeyPatch,
    committed: int,
    log: tuple[int, int, int],
    lag: int | None,
    outside: str | None,
    gone: int | None,
) -> None:
    start, high_watermark, end = log

    def watermarks(wire: Any, tps: Any, place: int, state: Any, *, replica_id: int = -1) -> dict[Any, int]:
        return {TP: start if place == EARLIEST else end if replica_id == DEBUGGER else high_watermark}

    monkeypatch.setattr(groups, "read_committed", lambda *_: {TP: GroupOffset(committed, None)})
    monkeypatch.setattr(groups, "watermarks", watermarks)
    lags = lags_of(NOTHING, GROUP)
    (of_partition,) = lags
    assert (of_partition.lag, of_partition.out_of_range, of_partition.records_gone) == (lag, outside, gone)
    assert total_lag(lags) == lag
    messages = [finding.message for finding in offset_findings("g", lags, None, 0)]
    assert len(messages) == (outside is not None)
    if outside == "beyond_end":
        assert messages == [
            "Group g committed offset 500 of orders-0, and the log ends at 100: 400 offsets that the group had passed are not there."
        ]
    elif outside:
        assert messages == [
            "Group g committed offset 40 of orders-0, and the log begins at 60: up to 20 records are gone that the group has not read."
        ]


def test_a_group_that_goes_on_while_its_log_is_deleted_is_within_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kafka Streams deletes what it has read: the second look at the offset is after the log's start."""
    answers = iter([40, 90])
    monkeypatch.setattr(groups, "read_committed", lambda *_: {TP: GroupOffset(next(answers), None)})
    monkeypatch.setattr(
        groups, "watermarks", lambda wire, tps, place, state: {TP: 80 if place == EARLIEST else 100}
    )
    (of_partition,) = lags_of(NOTHING, GROUP)
    assert of_partition.out_of_range is None


SHARE_OFFSETS = AlterShareGroupOffsets(
    about="group g",
    expected=KnownOffsets(()),
    group="g",
    partitions=(OffsetOf("orders", 0, 4, None, None),),
)


def test_offsets_that_the_answer_leaves_out_were_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers of 4.1 answer without an error and without a topic."""
    answer = SimpleNamespace(error_code=0, error_message=None, responses=[])
    monkeypatch.setattr(group_requests, "_ask", lambda *_: answer)
    (item,) = SHARE_OFFSETS.send(None, False)  # type: ignore[arg-type]
    assert item.error_code and item.topic == "orders" and "not done" in item.reason
    done = SimpleNamespace(partition_index=0, error_code=0, error_message=None)
    answer.responses = [SimpleNamespace(topic_name="orders", partitions=[done])]
    assert [item.error_code for item in SHARE_OFFSETS.send(None, False)] == [0]  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [None, 0])
def test_offsets_of_share_groups_are_not_sent_to_brokers_that_ignore_them(version: int | None) -> None:
    wire: Any = SimpleNamespace(version_of=lambda request: version)
    with pytest.raises(TooOld, match=r"needs Kafka 4\.2"):
        SHARE_OFFSETS.refuse_other_answers(wire)


@pytest.mark.parametrize(
    ("leader", "says"),
    [
        (-1, "group billing has no coordinator: __consumer_offsets-1 has no leader"),
        (1, "group billing has no coordinator now: COORDINATOR_NOT_AVAILABLE"),
        (None, "group billing has no coordinator now: COORDINATOR_NOT_AVAILABLE"),
    ],
)
def test_why_a_group_has_no_coordinator(
    monkeypatch: pytest.MonkeyPatch, leader: int | None, says: str
) -> None:
    """`abs("billing".hashCode()) % 4` is 1."""
    states = {number: SimpleNamespace(leader=leader if number == 1 else 1) for number in range(4)}
    topic = SimpleNamespace(name=groups.OFFSETS, states=states if leader is not None else {})
    monkeypatch.setattr(
        groups, "places", lambda _: SimpleNamespace(brokers=[SimpleNamespace(node_id=1)], topics=[topic])
    )
    monkeypatch.setattr(groups, "UNTIL_CREATED", 0.2)
    found = SimpleNamespace(coordinators=[SimpleNamespace(error_code=15, node_id=-1)])
    wire: Any = SimpleNamespace(version_of=lambda _: 4, read=lambda _: found)
    with pytest.raises(KctlError) as raised:
        groups.coordinator_of(wire, "billing")
    assert raised.value.message == says


def test_a_coordinator_is_waited_for_while_its_topic_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "places", lambda _: SimpleNamespace(brokers=[], topics=[]))
    answers = iter([15, 15, 0])
    wire: Any = SimpleNamespace(
        version_of=lambda _: 4,
        read=lambda request: SimpleNamespace(
            coordinators=[SimpleNamespace(error_code=next(answers), node_id=7)]
            if hasattr(request, "coordinator_keys")
            else []
        ),
    )
    assert groups.coordinator_of(wire, "billing") == 7


class GroupsWire:
    """Brokers of 2.8 or 2.7 that answer about one topic, and note what they are asked."""

    principal = "User:a"

    def __init__(self, topic: tuple[str, int] | None, version: int) -> None:
        self.topic, self.version, self.asked = topic, version, list[str]()

    def version_of(self, request: Any) -> int:
        return self.version

    def read(self, request: Any) -> Any:
        if isinstance(request, PlacesRequest):
            named = [topic.name for topic in request.topics or ()]
            self.asked += named or ["all topics"]
            topics = [TopicPlaces(self.topic[0], self.topic[1], None, {}, {})] if self.topic else []
            return Places(None, 1, [], topics)
        self.asked.append(type(request).__name__)
        raise KctlError("asked for more")


@pytest.mark.parametrize(
    ("topic", "version", "visibility", "is_asked"),
    [
        ((groups.OFFSETS, 3), 11, None, False),
        ((groups.OFFSETS, 29), 11, None, True),  # the user may not describe it
        ((groups.OFFSETS, 0), 9, None, True),
        (("orders", 0), 9, Visibility(), False),
        (("orders", 0), 9, Visibility("Describe on topics"), True),
        (None, 9, Visibility("", "another authorizer"), True),
    ],
)
def test_a_question_for_a_group_creates_nothing(
    monkeypatch: pytest.MonkeyPatch,
    topic: tuple[str, int] | None,
    version: int,
    visibility: Visibility | None,
    is_asked: bool,
) -> None:
    """Brokers create __consumer_offsets once they are asked for a coordinator; those up to 2.7 where it is named."""
    monkeypatch.setattr(hidden, "visibility_of", lambda wire: visibility)
    wire = GroupsWire(topic, version)
    asked: Any = wire
    if is_asked:
        with pytest.raises(KctlError, match="asked for more"):
            groups.find_group(asked, "billing")
    else:
        assert groups.find_group(asked, "billing") is None
    names = groups.OFFSETS if version > 9 else "all topics"
    assert wire.asked == [names, *["FindCoordinatorRequest"] * is_asked]
