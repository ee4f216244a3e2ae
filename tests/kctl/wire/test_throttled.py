"""A broker that asks for a pause: who sends waits for its end, but not for ever, and not once all is ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from kctl.wire import adapter
from kctl.wire.adapter import Access, NoAnswer, Wire


class Paused(KafkaConnection):  # type: ignore[misc]
    """A connection of the library that answers at once, when it is not paused."""

    def send_request(self, request: Any, request_timeout_ms: int | None = None) -> Any:
        if not self.paused:
            from kafka.future import Future

            return Future().success("an answer")
        return super().send_request(request, request_timeout_ms)


@pytest.fixture
def wire() -> Iterator[Wire]:
    """With a connection to broker 1, who has asked for a pause."""
    found = object.__new__(Wire)
    found.access, found.node = Access(servers="127.0.0.1:1"), 1
    found._net = NetworkSelector(client_id="kctl")
    found._manager = KafkaConnectionManager(found._net, **found.access.settings())
    connection = Paused(found._net, node_id=1)
    connection.initializing, connection.connected = False, True
    connection.pause("throttle")
    found._manager._conns[1] = connection
    found._net.start()
    yield found
    found.close()


def test_a_pause_is_waited_for(wire: Wire) -> None:
    connection = wire._manager._conns[1]
    threading.Timer(0.05, connection.unpause, ["throttle"]).start()
    assert wire.send_all([(1, "a request")]) == ["an answer"]


def test_a_pause_that_is_too_long_is_said(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "LONGEST_PAUSE", 0.01)
    (found,) = wire.send_all([(1, "a request")])
    assert isinstance(found, NoAnswer) and "quota" in str(found)


def test_pauses_of_several_brokers_end_together(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run at the same time; one after the other they would add up."""
    looks = count()
    monkeypatch.setattr(adapter, "time", SimpleNamespace(monotonic=lambda: float(next(looks))))
    monkeypatch.setattr(adapter, "LONGEST_PAUSE", 20.0)
    monkeypatch.setattr(adapter, "POLL_INTERVAL", 0.0)
    wire._manager._conns |= dict.fromkeys(range(2, 11), wire._manager._conns[1])
    found = wire.send_all([(node, "a request") for node in range(1, 11)])
    assert all(isinstance(one, NoAnswer) for one in found) and next(looks) < 2 * 20


def test_nobody_waits_once_the_connections_are_ended(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, said, sleep = threading.Event(), list[Any](), wire._net.sleep

    def waited(seconds: float) -> Any:
        waits.set()
        return sleep(seconds)

    def ask() -> None:
        try:
            said.append(wire.send_all([(1, "a request")]))
        except Exception as error:
            said.append(error)

    monkeypatch.setattr(wire._net, "sleep", waited)
    asking = threading.Thread(target=ask)
    asking.start()
    waits.wait()
    wire.close()
    asking.join(30)
    assert not asking.is_alive() and len(said) == 1
