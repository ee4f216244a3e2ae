"""What is wrong with a connection is one sentence, and said at once: not when the time for an answer is over."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, kctl
from tests.kctl.certificates import Certificate, made
from tests.kctl.wire.listeners import CONTROLLER, listener

CA = made("authority")
SERVER = made("server", CA, names=("127.0.0.1",))
OTHER_HOST = made("server", CA, names=("kafka1", "10.0.0.1"))
EXPIRED = made("server", CA, names=("127.0.0.1",), days=(-9, -2))
STRANGER = made("eve", made("another"))
ENDED = f"{EXPIRED.certificate.not_valid_after_utc.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
AT_ONCE = 3.0  # seconds, of the ten that an answer may take
ATTEMPTS = 4  # a busy machine is slow now and then, a time-out every time


def token(expires: int) -> str:
    parts = ({"alg": "none"}, {"sub": "ann", "exp": expires})
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + "."
    )


@dataclass(frozen=True)
class Mistake:
    """A server and the settings that do not fit with it; what is said."""

    said: str
    settings: dict[str, str] = field(default_factory=dict)
    server: Certificate | None = None
    wants_certificate: bool = False
    listens: dict[str, Any] = field(default_factory=dict)


EXPIRED_TOKEN = token(1_700_000_000)
TLS = {"KCTL_TLS": "true", "KCTL_TLS_CA": "CA"}
OWN = {**TLS, "KCTL_TLS_CERTIFICATE": STRANGER.pem, "KCTL_TLS_KEY": STRANGER.key_pem()}
PLAIN = {"KCTL_SASL_MECHANISM": "PLAIN", "KCTL_SASL_USERNAME": "ann", "KCTL_SASL_PASSWORD": "hush"}
SCRAM = {**PLAIN, "KCTL_SASL_MECHANISM": "SCRAM-SHA-512"}
TOKEN = {"KCTL_SASL_MECHANISM": "OAUTHBEARER", "KCTL_SASL_TOKEN_FILE": "EXPIRED"}
OF_TLS = {
    "the other speaks TLS": Mistake("it speaks TLS there, and the connection is in clear text", {}, SERVER),
    "unknown authority": Mistake("the certificate is not trusted: ", {"KCTL_TLS": "true"}, SERVER),
    "another host": Mistake(
        "its certificate is not for 127.0.0.1, but for kafka1, 10.0.0.1", TLS, OTHER_HOST
    ),
    "expired": Mistake(f"its certificate expired {ENDED}", TLS, EXPIRED),
    "client certificate": Mistake("it requires a client certificate, and none is set", TLS, SERVER, True),
    "another client certificate": Mistake("it refuses the client certificate: unknown ca", OWN, SERVER, True),
}
OF_BROKERS = {
    "clear text": Mistake("it does not speak TLS there: the listener is PLAINTEXT", TLS),
    "clear text with SASL": Mistake(
        "it does not speak TLS there: the listener is SASL_PLAINTEXT", TLS, listens={"mechanisms": ("PLAIN",)}
    ),
    "a controller": Mistake("that is a controller's listener, not a broker's", listens={"keys": CONTROLLER}),
    "SASL": Mistake("the listener has no SASL, and PLAIN is set", PLAIN),
    "SASL behind TLS": Mistake("the listener has no SASL, and PLAIN is set", PLAIN | TLS, SERVER),
    "no SASL": Mistake("the listener requires a login by SASL: PLAIN", listens={"mechanisms": ("PLAIN",)}),
    "another mechanism": Mistake(
        "the SASL mechanism is not enabled there: SCRAM-SHA-512; there are PLAIN",
        SCRAM,
        listens={"mechanisms": ("PLAIN",)},
    ),
    "password": Mistake(
        "user or password is wrong",
        PLAIN,
        listens={"mechanisms": ("PLAIN",), "refuses": "Invalid username or password"},
    ),
    "expired token": Mistake(
        "the token is not accepted: it expired 2023-11-14 22:13:20 UTC",
        TOKEN,
        listens={"mechanisms": ("OAUTHBEARER",), "refuses": '{"status":"invalid_token"}'},
    ),
}


def at_once(*args: object, within: float = AT_ONCE, **env: str) -> Ran:
    """How a command ended, which has to be so in that time."""
    took = []
    for _ in range(ATTEMPTS):
        begun = time.monotonic()
        ran = kctl(*args, env={"KCTL_ANSWER_TIMEOUT": "", **env})
        took.append(time.monotonic() - begun)
        if took[-1] <= within:
            break
    assert min(took) <= within, took
    assert ran.status == 3 and len(ran.errors) == 1, ran.err
    assert "hush" not in ran.err and "PRIVATE" not in ran.err and EXPIRED_TOKEN not in ran.err
    return ran


@contextmanager
def not_fitting(mistake: Mistake, folder: Path) -> Iterator[tuple[int, dict[str, str]]]:
    (folder / "ca.pem").write_text(CA.pem)
    (folder / "token").write_text(EXPIRED_TOKEN)
    (folder / "token").chmod(0o600)
    files = {"CA": str(folder / "ca.pem"), "EXPIRED": str(folder / "token")}
    env = {key: files.get(value, value) for key, value in mistake.settings.items()}
    tls = mistake.server and mistake.server.server_context(
        folder, *([CA] if mistake.wants_certificate else [])
    )
    with listener(tls=tls, **mistake.listens) as port:
        yield port, env


@pytest.mark.parametrize("name", [*OF_TLS, *OF_BROKERS])
def test_a_broker_that_does_not_fit(name: str, tmp_path: Path) -> None:
    mistake = (OF_TLS | OF_BROKERS)[name]
    with not_fitting(mistake, tmp_path) as (port, env):
        ran = at_once("topic", "list", "--bootstrap-server", f"127.0.0.1:{port}", **env)
        assert ran.err.startswith(f"kctl: no broker of 127.0.0.1:{port} can be used: {mistake.said}"), ran.err


def test_an_address_that_is_advertised_and_refuses() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with listener(advertised=taken.getsockname()[1]) as port:
            ran = at_once("topic", "list", "--bootstrap-server", f"127.0.0.1:{port}")
        assert f"broker 7 advertises 127.0.0.1:{taken.getsockname()[1]}, which refuses connections" in ran.err


@pytest.mark.parametrize("name", OF_TLS)
def test_a_zookeeper_that_does_not_fit(name: str, tmp_path: Path) -> None:
    mistake = OF_TLS[name]
    with not_fitting(mistake, tmp_path) as (port, env):
        ran = at_once("topic", "list", "--zookeeper", f"127.0.0.1:{port}/kafka", **env)
        assert ran.err.startswith(f"kctl: ZooKeeper 127.0.0.1:{port} cannot be used: {mistake.said}"), ran.err


@contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """The port of a server that answers what begins with `srvr`, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(sock: socket.socket) -> None:
            with sock:
                if reply and sock.recv(4) == b"srvr":
                    sock.sendall(reply)
                elif not reply:
                    ended.wait()

        def accept() -> None:
            while True:
                try:
                    sock, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(sock,), daemon=True).start()

        ended = threading.Event()
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        ended.set()
        server.shutdown(socket.SHUT_RDWR)


def test_a_zookeeper_without_tls(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CA.pem)
    with answering(b"Zookeeper version: 3.9.3-1\n") as port:
        env = {"KCTL_TLS": "true", "KCTL_TLS_CA": str(tmp_path / "ca.pem")}
        ran = at_once("topic", "list", "--zookeeper", f"127.0.0.1:{port}", **env)
        assert f"ZooKeeper 127.0.0.1:{port} cannot be used: it does not speak TLS there\n" in ran.err


@pytest.mark.slow
def test_a_zookeeper_that_says_nothing() -> None:
    """It may be one that waits for its disk, so it has the time that --timeout gives, and no more than three seconds beside."""
    with answering(b"") as port:
        ran = at_once(
            "topic", "list", "--zookeeper", f"127.0.0.1:{port}", "--timeout", "1s", within=1 + AT_ONCE
        )
        assert "within 1 s; a connection is accepted, but no answer comes" in ran.err
