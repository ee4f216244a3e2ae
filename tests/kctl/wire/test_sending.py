"""What becomes of a request that a broker does not carry out at once."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.cluster.state import Endpoint, Quorum, QuorumMember
from kctl.errors import KctlError
from kctl.wire import quorum as quorums
from kctl.wire.adapter import NoAnswer
from kctl.wire.protocol.connection import Connection, NotKnown
from kctl.wire.writes import requests, sending
from kctl.wire.writes.configs import IncrementalAlterConfigs
from kctl.wire.writes.groups import DeleteGroups, KnownOffsets, OffsetDelete
from kctl.wire.writes.moves import AlterPartitionReassignments
from kctl.wire.writes.present import KnownTopic
from kctl.wire.writes.requests import (
    NOT_CONTROLLER,
    QUOTA_EXCEEDED,
    TOPIC_ALREADY_EXISTS,
    ReplicasOf,
    Request,
    RequestItem,
)
from kctl.wire.writes.topics import CreateTopics, DeleteTopics


class Waiting:
    """A wire that notes how often somebody waited."""

    principal = "User:ann"

    def __init__(self) -> None:
        self.pauses = 0

    def pause(self, seconds: float) -> None:
        self.pauses += 1


def answering(monkeypatch: pytest.MonkeyPatch, codes: list[int]) -> None:
    """The answers to one request, one after the other."""

    def send(self: CreateTopics, wire: Any, validate_only: bool) -> Iterator[RequestItem]:
        yield RequestItem("topic t", codes.pop(0), None, "t")

    monkeypatch.setattr(CreateTopics, "send", send)


def request() -> CreateTopics:
    return CreateTopics(about="t", topic="t", assignments={}, configs={})


class Upgraded:
    """A wire that reads from a broker of one version, and writes to one of another."""

    access, node, principal = SimpleNamespace(timeout=1.0), 1, "User:ann"

    def __init__(self, read_from: int, written_to: int) -> None:
        self.read_from, self.written_to = read_from, written_to
        self.sent = list[Any]()

    def version_of(self, request: Any) -> int:
        return self.read_from

    def send(self, request: Any, node: Any, timeout: float) -> Any:
        version = Connection.version_for(
            SimpleNamespace(versions={request.MESSAGE.key: (0, self.written_to)}),  # type: ignore[arg-type]
            request,
        )
        self.sent.append(type(request).decoded(request.encoded(version), version))
        return SimpleNamespace(responses=(), error_code=0)


@pytest.mark.parametrize("topic_id", [None, "AAAAAAAAAAAAAAAAAAAAAQ"])
@pytest.mark.parametrize(("read_from", "written_to"), [(5, 5), (5, 6), (6, 5), (6, 6)])
def test_a_deletion_names_its_topic_while_brokers_are_upgraded(
    read_from: int, written_to: int, topic_id: str | None
) -> None:
    wire = Upgraded(read_from, written_to)
    deletion = DeleteTopics(about="t", expected=KnownTopic(topic_id), topic="t", topic_id=topic_id)
    try:
        list(deletion.send(wire, False))  # type: ignore[arg-type]
    except NotKnown:
        assert (read_from, written_to) == (6, 5)
        return
    (sent,) = wire.sent
    named = [*sent.topic_names, *(topic.name or topic.topic_id.int for topic in sent.topics)]
    assert named == [1 if topic_id and read_from == 6 else "t"]


@pytest.mark.parametrize(("read_from", "written_to"), [(0, 0), (0, 1), (1, 1)])
def test_a_factor_that_is_kept_is_asked_for_where_it_is_known(read_from: int, written_to: int) -> None:
    wire = Upgraded(read_from, written_to)
    moves = AlterPartitionReassignments(about="", partitions=(ReplicasOf("t", 0, (1,)),), keep_factor=True)
    list(moves.send(wire, False))  # type: ignore[arg-type]
    assert wire.sent[0].allow_replication_factor_change == (read_from < 1)
    with pytest.raises(NotKnown):
        list(moves.send(Upgraded(1, 0), False))  # type: ignore[arg-type]


def test_a_quota_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Waiting()
    answering(monkeypatch, [QUOTA_EXCEEDED, QUOTA_EXCEEDED, 0])
    assert sending.send(wire, request()) == []  # type: ignore[arg-type]
    assert wire.pauses == 2


def test_the_next_controller_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ZooKeeper brokers name a dead controller until its session has ended."""
    wire, waits = Waiting(), list[Any]()
    monkeypatch.setattr(sending, "await_controller", waits.append)
    answering(monkeypatch, [NOT_CONTROLLER, NOT_CONTROLLER, NOT_CONTROLLER, QUOTA_EXCEEDED, 0])
    assert sending.send(wire, request()) == []  # type: ignore[arg-type]
    assert waits == [wire] * 3 and wire.pauses == 1


def test_a_quota_that_stays_used_up_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PATIENCE", 0.0)
    answering(monkeypatch, [QUOTA_EXCEEDED])
    (item,) = sending.send(Waiting(), request())  # type: ignore[arg-type]
    assert "controller_mutation_rate" in item.reason and "THROTTLING_QUOTA_EXCEEDED" in item.reason


@pytest.mark.parametrize(
    ("codes", "is_validated", "pauses", "failed"),
    [
        ([TOPIC_ALREADY_EXISTS] * 2 + [0], True, 2, []),  # a deletion that ends
        ([TOPIC_ALREADY_EXISTS] * 20, True, 10, [TOPIC_ALREADY_EXISTS]),
        ([TOPIC_ALREADY_EXISTS, 0], False, 0, [TOPIC_ALREADY_EXISTS]),  # it came while it was planned
        ([TOPIC_ALREADY_EXISTS] + [QUOTA_EXCEEDED] * 20 + [0], True, 21, []),
        ([42, 0], True, 0, [42]),
    ],
)
def test_the_end_of_a_deletion_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, codes: list[int], is_validated: bool, pauses: int, failed: list[int]
) -> None:
    wire = Waiting()
    monkeypatch.setattr(sending, "time", SimpleNamespace(monotonic=lambda: float(wire.pauses)))
    answering(monkeypatch, codes)
    items = sending.send(wire, request(), validate_only=is_validated)  # type: ignore[arg-type]
    assert ([item.error_code for item in items], wire.pauses) == (failed, pauses)
    assert all("has not ended" in item.error().hint for item in items if item.error_code != 42)


def test_of_two_errors_the_one_that_takes_longer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Waiting()
    monkeypatch.setattr(sending, "time", SimpleNamespace(monotonic=lambda: float(wire.pauses)))

    def send(self: CreateTopics, wire: Waiting, validate_only: bool) -> Iterator[RequestItem]:
        for code in (TOPIC_ALREADY_EXISTS, QUOTA_EXCEEDED if wire.pauses < 30 else 0):
            yield RequestItem("topic t", code, None, "t")

    monkeypatch.setattr(CreateTopics, "send", send)
    (item,) = sending.send(wire, request(), validate_only=True)  # type: ignore[arg-type]
    assert (item.error_code, wire.pauses) == (TOPIC_ALREADY_EXISTS, 30)


@pytest.mark.parametrize(
    ("asked", "item", "right"),
    [
        (request(), RequestItem("topic t", 29, "no", "t"), "Create on Topic t"),
        (
            AlterPartitionReassignments(about="", partitions=()),
            RequestItem("the reassignment", 31, "no"),
            "Alter on Cluster",
        ),
        (
            DeleteGroups(about="", expected=KnownOffsets(()), group="g"),
            RequestItem("group g", 30, None),
            "Delete on Group g",
        ),
        (
            OffsetDelete(about="", expected=KnownOffsets(()), group="g", partitions=()),
            RequestItem("t-0", 29, None, "t", 0),
            "Read on Topic t",
        ),
        (
            IncrementalAlterConfigs(about="", entity_type="groups", entity_name="g", configs=()),
            RequestItem("group g", 30, None),
            "AlterConfigs on Group g",
        ),
        (
            IncrementalAlterConfigs(about="", entity_type="topics", entity_name="t", configs=()),
            RequestItem("topic t", 29, None),
            "AlterConfigs on Topic t",
        ),
    ],
)
def test_a_missing_right_is_named(
    monkeypatch: pytest.MonkeyPatch, asked: Request, item: RequestItem, right: str
) -> None:
    monkeypatch.setattr(type(asked), "send", lambda self, wire, validate_only: iter([item]))
    (refused,) = sending.send(Waiting(), asked)  # type: ignore[arg-type]
    error = refused.error()
    assert error.message == f"{item.what}: {right} is missing for User:ann; nothing was written"
    assert "kctl acl create --principal User:ann --operation" in error.hint and error.exit_code == 3
    assert refused.refused("x").reason == f"{right} is missing for User:ann"


class OtherCredentials(Waiting):
    """Brokers that answer, and a controller that closes the connection."""

    def send_to(self, host: str, port: int, request: Any) -> Any:
        name = type(request).__name__.removesuffix("Request")
        assert name == "DescribeQuorum", "nothing that changes something may be sent"
        raise NoAnswer(f"broker {host}:{port} does not answer {name}: the connection was closed")


def test_a_controller_that_wants_other_credentials_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = QuorumMember(101, True, 5, None, endpoints=(Endpoint("CONTROLLER", "10.0.0.1", 9094),))
    monkeypatch.setattr(quorums, "read_quorum", lambda wire: Quorum(101, 1, 5, (leader,)))
    with pytest.raises(KctlError) as caught:
        requests.ask_leader(OtherCredentials(), request())  # type: ignore[arg-type]
    assert not isinstance(caught.value, NoAnswer)
    assert "10.0.0.1:9094 (listener CONTROLLER): the connection was closed" in caught.value.message
    assert caught.value.message.endswith("nothing was written")
