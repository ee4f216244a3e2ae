"""What becomes of a request that a broker does not carry out at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kctl.changes.plan import Write
from kctl.wire.writes import requests as sending
from kctl.wire.writes.requests import QUOTA_EXCEEDED, RequestItem, send


class Waiting:
    """A wire that notes how often somebody waited."""

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
    assert send(wire, request()) == []  # type: ignore[arg-type]
    assert wire.pauses == 2


def test_a_quota_that_stays_used_up_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PATIENCE", 0.0)
    answering(monkeypatch, [QUOTA_EXCEEDED])
    (item,) = send(Waiting(), request())  # type: ignore[arg-type]
    assert "controller_mutation_rate" in item.reason and "THROTTLING_QUOTA_EXCEEDED" in item.reason
