"""Several brokers, of which some say nothing: the others are tried meanwhile, and every wait has an end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.errors import BadValue, KctlError
from kctl.wire import adapter as module
from kctl.wire.adapter import Access, Wire
from kctl.wire.logins import tokens_of


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
    """With TLS too, where the handshake has no end."""
    ports = {"silent": silent, "refusing": refusing}
    servers = ",".join(f"127.0.0.1:{ports[one]}" for one in order)
    with pytest.raises(KctlError) as raised:
        Wire(Access(servers=servers, timeout=1, tls=tls))
    assert str(raised.value).startswith(f"no broker of {servers} can be used: ")
    assert "\n" not in str(raised.value)
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
    for token in ("a.b.", "c.d."):
        file.write_text(f"{token}\n")
        assert tokens() == token
