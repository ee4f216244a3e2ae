"""Logins by SASL, against servers that know the password, do not know it, or are none."""

from __future__ import annotations

import hashlib
import hmac
import sys
from base64 import b64decode, b64encode
from types import SimpleNamespace

import pytest

from kctl.wire.access import Access
from kctl.wire.protocol.sasl import SaslAuthenticationFailed, login, mechanism_name

SALT, ITERATIONS = b"salt", 4096


def access(mechanism: str, **others: str) -> Access:
    return Access("h:1", sasl_mechanism=mechanism, sasl_username="a,b=c", sasl_password="pässword", **others)  # type: ignore[arg-type]


def test_plain() -> None:
    mechanism = login(access("PLAIN"), "h", None)
    assert next(mechanism) == "\0a,b=c\0pässword".encode()
    with pytest.raises(StopIteration):
        mechanism.send(b"")


@pytest.mark.parametrize(("name", "hash_name"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
def test_scram(name: str, hash_name: str) -> None:
    mechanism = login(access(name), "h", None)
    first = next(mechanism).decode()
    assert first.startswith("n,,n=a=2Cb=3Dc,r=")
    bare = first.removeprefix("n,,")
    nonce = bare.rpartition("r=")[2] + "server"
    challenge = f"r={nonce},s={b64encode(SALT).decode()},i={ITERATIONS}"
    final = mechanism.send(challenge.encode()).decode()
    without_proof, _, proof = final.rpartition(",p=")
    assert without_proof == f"c=biws,r={nonce}"
    said = f"{bare},{challenge},{without_proof}".encode()
    salted = hashlib.pbkdf2_hmac(hash_name, "pässword".encode(), SALT, ITERATIONS)
    stored = hashlib.new(hash_name, hmac.digest(salted, b"Client Key", hash_name)).digest()
    signature = hmac.digest(stored, said, hash_name)
    key = bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True))
    assert hashlib.new(hash_name, key).digest() == stored, "the client has proved that it knows the password"
    server = hmac.digest(hmac.digest(salted, b"Server Key", hash_name), said, hash_name)
    with pytest.raises(StopIteration):
        mechanism.send(b"v=" + b64encode(server))


def test_the_example_of_the_standard(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 7677 section 3."""
    monkeypatch.setattr("secrets.token_hex", lambda size: "rOprNGfwEbeRWgbNEkqO")
    example = Access("h:1", sasl_mechanism="SCRAM-SHA-256", sasl_username="user", sasl_password="pencil")
    mechanism = login(example, "h", None)
    assert next(mechanism) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert mechanism.send(challenge).endswith(b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    with pytest.raises(StopIteration):
        mechanism.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    "challenge",
    ["", "r=another,s=c2FsdA==,i=4096", "r={}x,s=c2FsdA==,i=4095", "r={},s=c2FsdA==,i=4096", "r={}x,i=4096", "r={},s=c2FsdA==,i=0", "r={},s=c2FsdA==,i=9999999", "r={},s=c2FsdA==,i=x", "e=other-error"],
)  # fmt: skip
def test_a_server_that_asks_for_something_else(challenge: str) -> None:
    mechanism = login(access("SCRAM-SHA-256"), "h", None)
    nonce = next(mechanism).decode().rpartition("r=")[2]
    with pytest.raises(SaslAuthenticationFailed):
        mechanism.send(challenge.format(nonce).encode())


@pytest.mark.parametrize("last", [b"", b"v=", b"v=AAAA", b"e=invalid-proof"])
def test_a_server_that_does_not_know_the_password(last: bytes) -> None:
    mechanism = login(access("SCRAM-SHA-512"), "h", None)
    nonce = next(mechanism).decode().rpartition("r=")[2]
    mechanism.send(f"r={nonce}x,s=c2FsdA==,i=4096".encode())
    with pytest.raises(SaslAuthenticationFailed):
        mechanism.send(last)


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "AWS_MSK_IAM"])
def test_a_token(mechanism: str) -> None:
    assert mechanism_name(access(mechanism)) == "OAUTHBEARER"
    accepted = login(access(mechanism), "h", lambda: "a.b.c")
    assert next(accepted) == b"n,,\1auth=Bearer a.b.c\1\1"
    with pytest.raises(StopIteration):
        accepted.send(b"")
    refused = login(access(mechanism), "h", lambda: "a.b.c")
    next(refused)
    assert refused.send(b'{"status":"invalid_token"}') == b"\1"
    with pytest.raises(SaslAuthenticationFailed):
        refused.send(b"")


def test_extensions_go_with_the_token() -> None:
    with_extensions = access("OAUTHBEARER", sasl_oauth_extensions="logicalCluster=lkc-1, identityPoolId=p")
    mechanism = login(with_extensions, "h", lambda: "t")
    assert next(mechanism) == b"n,,\1auth=Bearer t\1logicalCluster=lkc-1\1identityPoolId=p\1\1"


def test_a_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tokens of Kerberos, an empty message, and the choice of no security layer among those offered."""

    class Context:
        complete = False

        def __init__(self, name: str, usage: str) -> None:
            assert (name, usage) == ("kafka@broker1 of kerberos", "initiate")

        def step(self, token: bytes | None = None) -> bytes | None:
            self.complete = token == b"reply"
            return None if token else b"request"

        def unwrap(self, message: bytes) -> SimpleNamespace:
            return SimpleNamespace(message=message.removeprefix(b"wrapped "))

        def wrap(self, message: bytes, encrypt: bool) -> SimpleNamespace:
            assert not encrypt
            return SimpleNamespace(message=b"wrapped " + message)

    class Name(str):
        def __new__(cls, name: str, kind: str) -> Name:
            assert kind == "hostbased"
            return super().__new__(cls, name)

        def canonicalize(self, mechanism: str) -> str:
            return f"{self} of {mechanism}"

    fake = SimpleNamespace(
        Name=Name,
        NameType=SimpleNamespace(hostbased_service="hostbased"),
        MechType=SimpleNamespace(kerberos="kerberos"),
        SecurityContext=Context,
    )
    monkeypatch.setitem(sys.modules, "gssapi", fake)
    mechanism = login(Access("h:1", sasl_mechanism="GSSAPI"), "broker1", None)
    assert next(mechanism) == b"request"
    assert mechanism.send(b"reply") == b""
    assert mechanism.send(b"wrapped \x07\x00\x10\x00") == b"wrapped \x01\x00\x10\x00"
    with pytest.raises(StopIteration):
        mechanism.send(b"")
