"""What becomes of a request that a broker does not carry out at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kctl.cluster.intent import Write
from kctl.cluster.state import Endpoint, Quorum, QuorumMember
from kctl.errors import KctlError
from kctl.wire import quorum as quorums
from kctl.wire.adapter import NoAnswer
from kctl.wire.writes import requests, sending
from kctl.wire.writes.requests import NOT_CONTROLLER, QUOTA_EXCEEDED, RequestItem


class Waiting:
    """A wire that notes how often somebody waited."""

    principal = "User:ann"

    def __init__(self) -> None:
        self.pauses = 0

    def pause(self, seconds: float) -> None:
        self.pauses += 1


def answering(monkeypatch: pytest.MonkeyPatch, codes: list[int]) -> None:
    """The answers to one request, one after the other."""

    def sender(wire: Any, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
        yield RequestItem("topic t", codes.pop(0), None, "t")

    monkeypatch.setitem(sending.SENDERS, "CreateTopics", sender)


def request() -> Write:
    return Write(action="set", target="CreateTopics t", after=b"{}")


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
    ("target", "after", "item", "right"),
    [
        ("CreateTopics t", b'{"topic": "t"}', RequestItem("topic t", 29, "no", "t"), "Create on Topic t"),
        ("AlterPartitionReassignments", b"{}", RequestItem("the reassignment", 31, "no"), "Alter on Cluster"),
        ("DeleteGroups", b'{"group": "g"}', RequestItem("group g", 30, None), "Delete on Group g"),
        ("OffsetDelete", b'{"group": "g"}', RequestItem("t-0", 29, None, "t", 0), "Read on Topic t"),
    ],
)
def test_a_missing_right_is_named(
    monkeypatch: pytest.MonkeyPatch, target: str, after: bytes, item: RequestItem, right: str
) -> None:
    monkeypatch.setattr(sending, "_sender", lambda write: lambda wire, after, validate_only: iter([item]))
    (refused,) = sending.send(Waiting(), Write(action="set", target=target, after=after))  # type: ignore[arg-type]
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
