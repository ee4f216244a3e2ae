"""Files of the TLS settings: PEM, PKCS #12, JKS; each mistake in them is a sentence with the file, before any connection.

`tests/data/key-stores` is made by Java's keytool: a key with another password than its store, the certificate in stores of
trusted ones, as JKS and PKCS #12.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.jks import WrongPassword, decrypt_key, read_jks
from kctl.errors import KctlError
from kctl.tls import files
from kctl.tls.files import client_context
from tests.conftest import HERE, kctl
from tests.kctl.certificates import made

STORES = HERE / "data" / "key-stores"
CA = made("authority")
OWN = made("ann", CA)
OTHER = made("bob", CA)
NAMES = ("ca", "ca_password", "certificate", "certificate_password", "key", "key_password")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of each kind, which is the working directory."""
    for name, text in {
        "ca.pem": CA.pem,
        "own.pem": f"Subject: ann\n{OWN.pem}",
        "own.key": OWN.key_pem(),
        "both.pem": OWN.pem + OWN.key_pem(),
        "encrypted.key": OWN.key_pem("right"),
        "other.key": OTHER.key_pem(),
        "text.pem": "hello\n",
        "empty.pem": "",
        "damaged.pem": CA.pem.replace("MII", "!!!"),
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "own.p12").write_bytes(OWN.pkcs12("right", CA))
    (tmp_path / "ca.der").write_bytes(CA.certificate.public_bytes(Encoding.DER))
    (tmp_path / "torn.jks").write_bytes((STORES / "me.jks").read_bytes()[:300])
    (tmp_path / "keys.jceks").write_bytes(b"\xce\xce\xce\xce\0\0\0\2")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def context(**chosen: Any) -> ssl.SSLContext:
    settings_of_tls: dict[str, Any] = {f"tls_{name}": chosen.get(name) for name in NAMES}
    return client_context(
        SimpleNamespace(**settings_of_tls, tls_check_hostname=chosen.get("check_hostname", True))
    )


@pytest.mark.parametrize(
    "values",
    [
        {"ca": "ca.pem"},
        {"ca": CA.pem.replace("\n", " ")},
        {"ca": str(STORES / "trust.jks")},
        {"ca": str(STORES / "trust.jks"), "ca_password": "store-password"},
        {"ca": str(STORES / "trust.p12"), "ca_password": "store-password"},
        {"certificate": "own.pem", "key": "own.key"},
        {"certificate": "both.pem"},
        {"certificate": "own.pem", "key": "encrypted.key", "key_password": "right"},
        {"certificate": OWN.pem, "key": OWN.key_pem("right").replace("\n", " "), "key_password": "right"},
        {"certificate": "own.p12", "certificate_password": "right"},
        {"certificate": "own.p12", "key_password": "right"},
        {"certificate": str(STORES / "me.jks"), "certificate_password": "store-password", "key_password": "key-password"},
    ],
)  # fmt: skip
def test_what_can_be_used(values: dict[str, Any]) -> None:
    built = context(**values)
    assert built.verify_mode is ssl.CERT_REQUIRED and built.check_hostname
    if "ca" in values:
        assert built.cert_store_stats()["x509"] == 1


def test_the_host_name_is_checked_unless_it_is_turned_off() -> None:
    built = context(ca="ca.pem", check_hostname=False)
    assert not built.check_hostname and built.verify_mode is ssl.CERT_REQUIRED


MISTAKES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"ca": "none.pem"}, "tls_ca none.pem: no such file or directory"),
    ({"ca": "."}, "tls_ca .: is a folder, not a file"),
    ({"ca": "text.pem"}, "tls_ca text.pem: no certificate in it: it is not PEM"),
    ({"ca": "empty.pem"}, "tls_ca empty.pem: the file is empty"),
    ({"ca": "own.key"}, "tls_ca own.key: no certificate in it, only private key"),
    ({"ca": "damaged.pem"}, "tls_ca damaged.pem: a certificate in it is damaged"),
    ({"ca": "ca.der"}, "tls_ca ca.der is DER, not PEM"),
    ({"ca": str(STORES / "trust.jks"), "ca_password": "wrong"}, f"tls_ca {STORES}/trust.jks: the password is wrong"),
    ({"ca": str(STORES / "trust.p12"), "ca_password": "wrong"},
     f"tls_ca {STORES}/trust.p12: the password is wrong or the file is damaged"),
    ({"ca": "torn.jks"}, "tls_ca torn.jks: the key store is damaged (the key store ends in the middle of an entry"),
    ({"ca": "keys.jceks"}, "tls_ca keys.jceks is a JCEKS key store, which kctl does not read"),
    ({"certificate": "own.pem"}, "tls_certificate own.pem: no private key in it, only certificate"),
    ({"certificate": "own.pem", "key": "none.key"}, "tls_key none.key: no such file or directory"),
    ({"certificate": "own.pem", "key": "text.pem"}, "tls_key text.pem: no private key in it: it is not PEM"),
    ({"certificate": "own.pem", "key": "other.key"},
     "tls_key other.key: the key is not that of the first certificate in own.pem"),
    ({"certificate": "own.pem", "key": "encrypted.key", "key_password": "wrong"}, "tls_key encrypted.key: the password is wrong"),
    ({"certificate": "own.p12", "certificate_password": "wrong"},
     "tls_certificate own.p12: the password is wrong or the file is damaged"),
    ({"certificate": str(STORES / "me.jks"), "certificate_password": "store-password"},
     f"tls_certificate {STORES}/me.jks: the password is wrong"),
    ({"certificate": str(STORES / "me.jks"), "certificate_password": "wrong", "key_password": "key-password"},
     f"tls_certificate {STORES}/me.jks: the password is wrong"),
    ({"key": "own.key"}, "tls_key own.key is set without tls_certificate"),
)  # fmt: skip


@pytest.mark.parametrize(("values", "sentence"), MISTAKES)
def test_mistakes(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(KctlError) as refused:
        context(**values)
    assert refused.value.message.startswith(sentence)
    assert refused.value.hint


NO_PASSWORD = (
    {"certificate": "own.pem", "key": "encrypted.key"},
    "encrypted.key is encrypted, and no password is set",
)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["bootstrap-server", "zookeeper"])
def test_a_mistake_is_found_before_anything_is_connected(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a second of CPU, with its file and its hint."""
    monkeypatch.setattr(files, "has_terminal", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        at = (f"--{backend}", f"127.0.0.1:{server.getsockname()[1]}")
        for values, sentence in (*MISTAKES, NO_PASSWORD):
            env = {f"KCTL_TLS_{name.upper()}": value for name, value in values.items()}
            begun = time.process_time()
            ran = kctl(
                "topic", "list", *at, env={"KCTL_CONFIG": os.devnull + "/none", "KCTL_TLS": "true", **env}
            )
            assert time.process_time() - begun < 1
            assert ran.status == (2 if sentence == NO_PASSWORD[1] else 3) and len(ran.errors) == 1, ran.err
            error, hint = ran.err.splitlines()[-2:]
            assert error.startswith(f"kctl: {sentence}") and hint.startswith("      "), ran.err
            with pytest.raises(BlockingIOError):
                server.accept()


def test_the_password_is_asked_for_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[str] = []

    def typed(question: str) -> str:
        questions.append(question)
        return "right"

    monkeypatch.setattr("getpass.getpass", typed)
    monkeypatch.setattr(files, "has_terminal", lambda: True)
    files.password_of.cache_clear()
    for _ in range(2):
        context(certificate="own.pem", key="encrypted.key")
    assert questions == ["Password of encrypted.key: "]
    files.password_of.cache_clear()


def test_without_a_terminal_the_missing_password_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "has_terminal", lambda: False)
    for values in ({"certificate": "own.pem", "key": "encrypted.key"}, {"certificate": "own.p12"}):
        name = values.get("key", "own.p12")
        with pytest.raises(KctlError, match=f"^{name} is encrypted, and no password is set; ") as refused:
            context(**values)
        assert refused.value.message


@given(st.integers(0, 505), st.binary(max_size=30))
@settings(max_examples=50)
def test_a_damaged_store_is_read_or_refused(at: int, other: bytes) -> None:
    whole = (STORES / "me.jks").read_bytes()
    for data in (whole[:at] + other, whole[:at] + other + whole[at + len(other) :]):
        try:
            for entry, _ in read_jks(data, None).keys:
                decrypt_key(entry, "key-password")
        except (FormatError, WrongPassword):
            pass


def test_a_key_of_java() -> None:
    store = read_jks((STORES / "me.jks").read_bytes(), "store-password")
    ((entry, chain),) = store.keys
    assert decrypt_key(entry, "key-password")[:1] == b"\x30" and len(chain) == 1
    with pytest.raises(WrongPassword):
        decrypt_key(entry, "store-password")
    (trusted,) = read_jks((STORES / "trust.jks").read_bytes(), None).trusted
    assert trusted == chain[0]
