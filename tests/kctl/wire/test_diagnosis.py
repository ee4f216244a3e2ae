"""What a listener is found to be, by listeners of every kind on this machine."""

from __future__ import annotations

import socket
import threading
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.errors import KctlError
from kctl.model import Diagnosis
from kctl.tls.files import client_context
from kctl.wire.adapter import Access, Wire
from kctl.wire.diagnosis import Expected, diagnose
from tests.kctl.certificates import Certificate, made
from tests.kctl.wire.listeners import CONTROLLER, listener

CA = made("authority")
SERVER = made("broker", CA, names=("127.0.0.1", "localhost"))
OWN = made("ann", CA)
LOGIN = {"sasl_mechanism": "PLAIN", "sasl_username": "ann", "sasl_password": "right"}


def expected(folder: Path, own: Certificate | None = None, ca: Certificate = CA, **others: Any) -> Expected:
    """A client with TLS."""
    (folder / "ca.pem").write_text(ca.pem)
    settings: dict[str, Any] = dict.fromkeys(
        f"tls_{name}"
        for name in ("ca", "ca_password", "certificate", "certificate_password", "key", "key_password")
    )
    settings |= {"tls_ca": str(folder / "ca.pem"), "tls_check_hostname": True}
    if own is not None:
        settings["tls_certificate"] = own.pem + own.key_pem()
    return Expected(client_context(SimpleNamespace(**settings)), has_certificate=own is not None, **others)


def clause_of(port: int, how: Expected, host: str = "127.0.0.1") -> str | None:
    found = diagnose(host, port, how, 2.0)
    return found and found.clause


def test_what_fits_has_no_diagnosis(tmp_path: Path) -> None:
    with listener() as port:
        assert clause_of(port, Expected()) is None
    with listener(mechanisms=("PLAIN",)) as port:
        assert clause_of(port, Expected(sasl_mechanism="PLAIN")) is None
    with listener(keys=CONTROLLER) as port:
        assert clause_of(port, Expected(is_controller=True)) is None
    with listener(tls=SERVER.server_context(tmp_path, CA)) as port:
        assert clause_of(port, expected(tmp_path, OWN)) is None


def test_roles_and_logins() -> None:
    with listener(keys=CONTROLLER) as port:
        assert clause_of(port, Expected()) == "that is a controller's listener, not a broker's"
    with listener() as port:
        assert (
            clause_of(port, Expected(is_controller=True)) == "that is a broker's listener, not a controller's"
        )
        assert (
            clause_of(port, Expected(sasl_mechanism="PLAIN")) == "the listener has no SASL, and PLAIN is set"
        )
    with listener(mechanisms=("PLAIN", "SCRAM-SHA-512")) as port:
        assert clause_of(port, Expected()) == "the listener requires a login by SASL: PLAIN, SCRAM-SHA-512"
        assert clause_of(port, Expected(sasl_mechanism="GSSAPI")) == (
            "the SASL mechanism is not enabled there: GSSAPI; there are PLAIN, SCRAM-SHA-512"
        )


def test_clear_text_and_tls_where_the_other_is_spoken(tmp_path: Path) -> None:
    with listener(tls=SERVER.server_context(tmp_path)) as port:
        assert clause_of(port, Expected()) == "it speaks TLS there, and the connection is in clear text"
    with listener() as port:
        assert clause_of(port, expected(tmp_path)) == "it does not speak TLS there: the listener is PLAINTEXT"
    with listener(mechanisms=("PLAIN",)) as port:
        assert (
            clause_of(port, expected(tmp_path))
            == "it does not speak TLS there: the listener is SASL_PLAINTEXT"
        )


def test_certificates_of_servers(tmp_path: Path) -> None:
    other_host = made("broker", CA, names=("kafka1", "10.0.0.1"))
    with listener(tls=other_host.server_context(tmp_path)) as port:
        assert clause_of(port, expected(tmp_path)) == (
            "its certificate is not for 127.0.0.1, but for kafka1, 10.0.0.1"
        )
    expired = made("broker", CA, names=("127.0.0.1",), days=(-9, -2))
    end = expired.certificate.not_valid_after_utc.astimezone(UTC)
    with listener(tls=expired.server_context(tmp_path)) as port:
        assert clause_of(port, expected(tmp_path)) == f"its certificate expired {end:%Y-%m-%d %H:%M:%S} UTC"
    early = made("broker", CA, names=("127.0.0.1",), days=(5, 9))
    begin = early.certificate.not_valid_before_utc
    with listener(tls=early.server_context(tmp_path)) as port:
        assert clause_of(port, expected(tmp_path)) == (
            f"its certificate is valid only from {begin:%Y-%m-%d %H:%M:%S} UTC"
        )
    with listener(tls=SERVER.server_context(tmp_path)) as port:
        clause = clause_of(port, expected(tmp_path, ca=made("another")))
        assert clause is not None and clause.startswith("the certificate is not trusted: ")


def test_certificates_of_clients(tmp_path: Path) -> None:
    with listener(tls=SERVER.server_context(tmp_path, CA)) as port:
        assert clause_of(port, expected(tmp_path)) == "it requires a client certificate, and none is set"
        stranger = made("eve", made("another"))
        assert (
            clause_of(port, expected(tmp_path, stranger)) == "it refuses the client certificate: unknown ca"
        )
        old = made("ann", CA, days=(-9, -2))
        assert clause_of(port, expected(tmp_path, old)) == "it refuses the client certificate: expired"


def test_what_is_not_kafka() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            for _ in range(2):
                sock, _ = server.accept()
                with sock:
                    sock.recv(100)
                    sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        found = diagnose("127.0.0.1", server.getsockname()[1], Expected(), 2.0)
        assert found == Diagnosis("what answers there is not Kafka", "check the port")
        thread.join()


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            diagnose("127.0.0.1", taken.getsockname()[1], Expected(), 2.0)


@pytest.mark.parametrize(
    ("listens", "access", "cause"),
    [
        ({"keys": CONTROLLER}, {}, "that is a controller's listener, not a broker's"),
        ({}, {"tls": True}, "it does not speak TLS there: the listener is PLAINTEXT"),
        ({}, LOGIN, "the listener has no SASL, and PLAIN is set"),
        ({"mechanisms": ("GSSAPI",)}, {}, "the listener requires a login by SASL: GSSAPI"),
        ({"mechanisms": ("GSSAPI",)}, LOGIN, "the SASL mechanism is not enabled there: PLAIN; there are GSSAPI"),
    ],
)  # fmt: skip
def test_a_connection_ends_at_once_with_the_cause(
    listens: dict[str, Any], access: dict[str, Any], cause: str
) -> None:
    with listener(**listens) as port, pytest.raises(KctlError) as refused:
        Wire(Access(f"127.0.0.1:{port}", timeout=3600, **access))
    assert refused.value.message == f"no broker of 127.0.0.1:{port} can be used: {cause}"


def test_an_advertised_address_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken, listener(tls=SERVER.server_context(tmp_path)) as encrypted:
        taken.bind(("127.0.0.1", 0))
        nobody = taken.getsockname()[1]
        for advertised, cause in (
            (nobody, ", which refuses connections"),
            (encrypted, ": it speaks TLS there, and the connection is in clear text"),
        ):
            with listener(advertised=advertised) as port, pytest.raises(KctlError) as refused:
                Wire(Access(f"127.0.0.1:{port}", timeout=1))
            assert refused.value.message == (
                f"no broker of 127.0.0.1:{port} can be used: broker 7 advertises 127.0.0.1:{advertised}{cause}"
            )
