"""Connections to an ensemble of which some servers say nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from struct import pack, unpack

import pytest

from kctl.errors import KctlError
from kctl.zookeeper.connection import Ensemble, EnsembleAccess


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def granting() -> Iterator[int]:
    """The port of a server that gives one client a session, and answers nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            one, _ = server.accept()
            with one:
                (size,) = unpack(">i", one.recv(4, socket.MSG_WAITALL))
                one.recv(size, socket.MSG_WAITALL)
                session = pack(">iiqi16s?", 0, 10_000, 77, 16, bytes(16), False)
                one.sendall(pack(">i", len(session)) + session)
                one.recv(1)  # its end

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.fixture(autouse=True)
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """kazoo tries the servers in any order."""
    monkeypatch.setattr("kazoo.protocol.connection.random.shuffle", lambda servers: None)


def test_a_silent_server_leaves_time_for_the_next_one(silent: int, granting: int) -> None:
    hosts = f"127.0.0.1:{silent},127.0.0.1:{granting}/kafka"
    ensemble = Ensemble(EnsembleAccess(hosts=hosts, timeout=4))
    assert not ensemble.is_read_only
    ensemble.close()


@pytest.mark.slow
def test_silent_servers_are_one_line(silent: int) -> None:
    hosts = f"127.0.0.1:{silent},127.0.0.1:{silent}"
    with pytest.raises(KctlError) as raised:
        Ensemble(EnsembleAccess(hosts=hosts, timeout=1))
    assert raised.value.message == (
        f"ZooKeeper {hosts} could not be reached within 1 s; a connection is accepted, but no answer comes: is the server stuck?"
    )
