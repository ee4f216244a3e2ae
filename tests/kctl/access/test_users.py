"""Credentials as Kafka computes them, and where passwords may come from."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from formats.znodes.security import format_scram, parse_scram
from kctl.access.users import Salted, credential_of, generated_password, salted
from kctl.errors import BadValue
from tests.conftest import rows


def test_the_example_of_rfc_7677() -> None:
    """RFC 7677 section 3: user "user", password "pencil"; the server's signature follows from its key."""
    import hashlib
    import hmac

    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    password = Salted(salt, hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096), 4096)
    credential = credential_of("SCRAM-SHA-256", password)
    message = (
        "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = base64.b64encode(hmac.digest(credential.server_key, message.encode(), "sha256"))
    assert signature == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    client_signature = hmac.digest(credential.stored_key, message.encode(), "sha256")
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    client_key = bytes(a ^ b for a, b in zip(client_signature, proof, strict=True))
    assert hashlib.sha256(client_key).digest() == credential.stored_key
    assert parse_scram(format_scram(credential)) == credential


def test_salts_and_passwords_are_new_each_time() -> None:
    first, second = (salted("SCRAM-SHA-512", b"pencil", 4096) for _ in range(2))
    assert first.salt != second.salt and len(first.salt) >= 20 and len(first.salted_password) == 64
    assert generated_password() != generated_password()
    for iterations in (4095, 16385):
        with pytest.raises(BadValue):
            salted("SCRAM-SHA-256", b"pencil", iterations)


def test_wrong_usage(tmp_path: Path) -> None:
    def status(*args: object) -> int:
        return rows("user", *args, "--bootstrap-server", "127.0.0.1:1", "--timeout", "1", "--yes").status

    file = tmp_path / "password"
    assert status("create", "jürgen", "--password-file", file) == 2
    assert status("create", "") == 2
    assert status("create", "a", "--password-file", file, "--generate-to", file) == 2
    assert status("create", "a", "--iterations", "1000") == 2
    assert status("create", "a", "--mechanism", "PLAIN") == 2
