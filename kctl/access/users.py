"""SCRAM credentials: from a password, and what a user may be called.

Passwords are taken as they are, in UTF-8: Kafka does not prepare them as RFC 5802 asks.

Source: clients/src/main/java/org/apache/kafka/common/security/scram/internals/{ScramFormatter,ScramMechanism,ScramMessages}.java
@ 3.9.0-rc3; metadata/src/main/java/org/apache/kafka/controller/ScramControlManager.java @ 3.9.0-rc3
"""

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

from formats.words import counted
from formats.znodes.security import ScramCredential
from kctl.cluster.intent import Intent
from kctl.errors import BadValue, Refused

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MOST_ITERATIONS, FEWEST_ITERATIONS = 16384, 4096
SALT_BITS = 130  # Kafka's salts are numbers of so many bits, in letters and digits
GENERATED = 24  # random bytes of a generated password


class Salted(NamedTuple):
    """What brokers are sent in the place of a password."""

    salt: bytes
    salted_password: bytes
    iterations: int


def salted(mechanism: str, password: bytes, iterations: int) -> Salted:
    """A password with a new salt. Raises BadValue for a number of iterations that brokers do not take."""
    if not FEWEST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise BadValue(
            f"{counted(iterations, 'iteration')}: too {'few' if iterations < FEWEST_ITERATIONS else 'many'}",
            f"brokers take {FEWEST_ITERATIONS:,} to {MOST_ITERATIONS:,}",
        )
    salt = _letters(secrets.randbits(SALT_BITS)).encode()
    return Salted(salt, hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations), iterations)


def _letters(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    while number:
        number, digit = divmod(number, len(digits))
        text = digits[digit] + text
    return text or "0"


def credential_of(mechanism: str, password: Salted) -> ScramCredential:
    """What brokers store: keys from which the password does not follow."""
    name = HASHES[mechanism]
    client_key = hmac.digest(password.salted_password, b"Client Key", name)
    server_key = hmac.digest(password.salted_password, b"Server Key", name)
    return ScramCredential(
        password.salt, hashlib.new(name, client_key).digest(), server_key, password.iterations
    )


def generated_password() -> str:
    """A new password that needs no quoting anywhere."""
    return secrets.token_urlsafe(GENERATED)


def check_user(name: str) -> str:
    """The user's name. Raises BadValue for one with which nobody can log in."""
    if not name or not re.fullmatch(r"[\x20-\x7e]+", name):
        raise BadValue(
            f"nobody can log in by SCRAM as {name!r}",
            "brokers take names of ASCII characters only (Kafka's ScramMessages)",
        )
    return name


def password_not_kept(intent: Intent) -> Refused:
    """The error that a change cannot go on, since its password was nowhere written."""
    return Refused(
        f"{intent}: the password is not in the journal; nothing was written",
        "run `kctl user create` or `kctl user set-password` again, with the password",
    )
