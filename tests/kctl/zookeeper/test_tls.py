"""Mistakes in the TLS settings of an ensemble: each is found in a moment, and is one sentence."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.errors import KctlError
from kctl.zookeeper.connection import Ensemble, EnsembleAccess
from tests.kctl.certificates import made
from tests.kctl.wire.listeners import listener

CA = made("authority")
SERVER = made("zookeeper", CA, names=("127.0.0.1",))


@pytest.fixture
def ca(tmp_path: Path) -> str:
    (tmp_path / "ca.pem").write_text(CA.pem)
    return str(tmp_path / "ca.pem")


@pytest.fixture
def clear_text() -> Iterator[int]:
    """The port of a server without TLS, which answers srvr."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    sock, _ = server.accept()
                except OSError:
                    return
                with sock:
                    if sock.recv(4) == b"srvr":
                        sock.sendall(b"Zookeeper version: 3.9.3-1\n")

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def refusal(port: int, **settings: object) -> str:
    """What is said, long before the time for an answer is over."""
    begun = time.monotonic()
    with pytest.raises(KctlError) as refused:
        Ensemble(EnsembleAccess(hosts=f"127.0.0.1:{port}/kafka", timeout=20, **settings))
    assert time.monotonic() - begun < 15
    return refused.value.message.replace(f"127.0.0.1:{port}", "it")


def test_clear_text_and_tls(
    tmp_path: Path, ca: str, clear_text: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kctl.zookeeper.connection.PROBE_TIMEOUT", 0.6)
    with listener(tls=SERVER.server_context(tmp_path)) as port:
        assert refusal(port) == (
            "ZooKeeper it cannot be used: it speaks TLS there, and the connection is in clear text"
        )
    assert (
        refusal(clear_text, tls=True, tls_ca=ca) == "ZooKeeper it cannot be used: it does not speak TLS there"
    )


@pytest.mark.slow
def test_certificates(tmp_path: Path, ca: str) -> None:
    with listener(tls=SERVER.server_context(tmp_path, CA)) as port:
        assert refusal(port, tls=True, tls_ca=ca) == (
            "ZooKeeper it cannot be used: it requires a client certificate, and none is set"
        )
        stranger = made("eve", made("another"))
        own = {"tls_certificate": stranger.pem, "tls_key": stranger.key_pem()}
        assert refusal(port, tls=True, tls_ca=ca, **own) == (
            "ZooKeeper it cannot be used: it refuses the client certificate: unknown ca"
        )
        assert refusal(port, tls=True).startswith(
            "ZooKeeper it cannot be used: the certificate is not trusted: "
        )
    with listener(tls=made("zk", CA, names=("zk1",)).server_context(tmp_path)) as port:
        assert refusal(port, tls=True, tls_ca=ca) == (
            "ZooKeeper it cannot be used: its certificate is not for 127.0.0.1, but for zk1"
        )
    old = made("zk", CA, names=("127.0.0.1",), days=(-9, -2))
    with listener(tls=old.server_context(tmp_path)) as port:
        assert refusal(port, tls=True, tls_ca=ca).startswith(
            "ZooKeeper it cannot be used: its certificate expired "
        )


def test_files_are_checked_before_a_connection(tmp_path: Path) -> None:
    assert refusal(1, tls=True, tls_ca=str(tmp_path / "none.pem")) == (
        f"tls_ca {tmp_path}/none.pem: no such file or directory"
    )
