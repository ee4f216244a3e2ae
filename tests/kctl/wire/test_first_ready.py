"""Several brokers, of which some say nothing: the others are tried meanwhile, and every wait has an end."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.errors import BadValue, KctlError
from kctl.wire import adapter as module
from kctl.wire.adapter import Access, Wire, first_ready
from kctl.wire.logins import provider_of, tokens_of


class FakeFuture:
    def __init__(self, after: float, exception: Exception | None) -> None:
        self.at, self.said = time.monotonic() + after, exception

    @property
    def is_done(self) -> bool:
        return time.monotonic() >= self.at

    @property
    def exception(self) -> Exception | None:
        return self.said if self.is_done else None

    def succeeded(self) -> bool:
        return self.is_done and self.said is None


class FakeManager:
    """Nodes that are ready, fail (an exception) or say nothing (None), after so many seconds."""

    def __init__(self, nodes: dict[int, tuple[float, Exception | None]]) -> None:
        self.nodes = nodes
        self.asked: list[int] = []

    def get_connection(self, node: int, timeout_ms: float) -> Any:
        self.asked.append(node)
        after, said = self.nodes[node]
        return type("Connection", (), {"node_id": node, "init_future": FakeFuture(after, said)})()


SILENT = (1e9, None)
REFUSED = (0.0, ConnectionError("refused"))


@pytest.mark.parametrize(
    ("nodes", "first", "asked"),
    [
        ({1: (0.0, None), 2: (0.0, None)}, 1, [1]),
        ({1: SILENT, 2: (0.0, None), 3: (0.0, None)}, 2, [1, 2]),
        ({1: REFUSED, 2: REFUSED, 3: (0.0, None)}, 3, [1, 2, 3]),
        ({1: SILENT, 2: SILENT, 3: SILENT}, None, [1, 2, 3]),
        ({1: REFUSED, 2: REFUSED}, None, [1, 2]),
    ],
)
def test_the_first_that_is_ready(
    monkeypatch: pytest.MonkeyPatch, nodes: dict[int, Any], first: int | None, asked: list[int]
) -> None:
    monkeypatch.setattr(module, "HEAD_START", 0.02)
    manager = FakeManager(nodes)
    found, why = asyncio.run(first_ready(asyncio, manager, sorted(nodes), 0.2))
    assert (found, manager.asked, why is None) == (first, asked, first is not None)
    if REFUSED in nodes.values() and first is None:
        assert str(why) == "refused"


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def refusing() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(
    "order", [("silent",), ("silent", "silent"), ("silent", "refusing"), ("refusing", "silent")]
)
def test_nobody_that_can_be_used_is_one_line(
    order: tuple[str, ...], tls: bool, silent: int, refusing: int
) -> None:
    """With TLS too, where the library waits for the handshake without an end."""
    ports = {"silent": silent, "refusing": refusing}
    servers = ",".join(f"127.0.0.1:{ports[one]}" for one in order)
    with pytest.raises(KctlError) as raised:
        Wire(Access(servers=servers, timeout=1, tls=tls))
    assert str(raised.value).startswith(f"no broker of {servers} can be used: ")
    assert "\n" not in str(raised.value) and "KafkaConnection" not in str(raised.value)
    if "silent" in order:  # whatever else the others say
        assert "a connection is accepted, but no answer came within 1 s" in str(raised.value)
        assert raised.value.hint and "KCTL_ANSWER_TIMEOUT" in raised.value.hint


def test_each_failure_is_named_once(refusing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All hosts are tried side by side, and none for longer than a connection may take."""
    held = threading.Event()

    def create_connection(address: tuple[str, int], timeout: float) -> Any:
        if address[0] == "far":
            held.wait(timeout)
            raise TimeoutError("timed out")
        raise OSError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", create_connection)
    monkeypatch.setattr(module, "CONNECT", 0.3)
    started = time.monotonic()
    with pytest.raises(KctlError) as raised:
        Wire(Access(servers="near,far:1,other:2,far:2", timeout=60))
    assert time.monotonic() - started < 20
    assert raised.value.message == (
        "no broker of near:9092,far:1,other:2,far:2 can be used: near:9092, other:2: connection refused; "
        "far:1, far:2: no answer in time"
    )
    held.set()


def test_a_login_that_cannot_work_is_not_tried() -> None:
    needs = {
        "EXTERNAL": "is not supported",
        "PLAIN": "needs sasl_username",
        "OAUTHBEARER": "needs sasl_token_file",
    }
    for mechanism, says in needs.items():
        with pytest.raises(BadValue, match=says):
            Wire(Access(servers="h", sasl_mechanism=mechanism))


def test_a_token_is_read_anew_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    access = Access(servers="h", sasl_mechanism="OAUTHBEARER", sasl_token_file=str(file))
    with pytest.raises(KctlError, match="token: no such file"):
        Wire(access)
    file.write_text("\n")
    with pytest.raises(KctlError, match="token is empty"):
        Wire(access)
    file.write_text("a.b.")
    tokens = tokens_of(access, ["h"])
    assert tokens is not None
    provider = provider_of(access, tokens)
    for token in ("a.b.", "c.d."):
        file.write_text(f"{token}\n")
        assert provider.token() == token


class FakeCluster(FakeManager):
    """A manager of the library, as far as a broker to read from is chosen."""

    def __init__(self, nodes: dict[int, tuple[float, Exception | None]]) -> None:
        super().__init__(nodes)
        self.cluster = self
        self.milliseconds: list[float] = []

    def brokers(self) -> list[Any]:
        return [type("Broker", (), {"node_id": node})() for node in self.nodes]

    def run(self, what: Any, *args: Any) -> Any:
        return asyncio.run(what(*args))

    def get_connection(self, node: int, timeout_ms: float) -> Any:
        self.milliseconds.append(timeout_ms)
        return super().get_connection(node, timeout_ms)


def connected(manager: FakeCluster) -> Wire:
    wire = object.__new__(Wire)
    wire.access, wire.node = Access(servers="h", timeout=10), 1
    wire._net, wire._manager = asyncio, manager
    return wire


def test_who_waits_a_moment_only_does_not_cut_the_connection_off() -> None:
    """A far broker needs longer for TLS and SASL; other requests go to it as well, and would fail."""
    manager = FakeCluster({1: (0.0, None), 2: SILENT})
    wire = connected(manager)
    assert not wire.read_from(2, 0.01) and wire.node == 1
    assert manager.milliseconds == [10_000]


def test_another_broker_is_read_from_where_it_takes_connections() -> None:
    manager = FakeCluster({1: (0.0, None), 2: (0.0, None), 3: REFUSED})
    wire = connected(manager)
    assert not wire.read_from(1) and not wire.read_from(3) and not wire.read_from(4) and wire.node == 1
    assert wire.read_from(2) and wire.node == 2
