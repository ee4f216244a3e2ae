"""What a client says in a login by SASL: each mechanism yields messages and is sent the answers; it ends once it is done.

Source: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), RFC 7628 and KIP-255 (OAUTHBEARER, with extensions by KIP-342), RFC 4752
(GSSAPI)
"""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from typing import Any

from kctl.wire.access import Access

Mechanism = Generator[bytes, bytes, None]
Tokens = Callable[[], str]
# Of SCRAM: fewer make the password easy to guess for who pretends to be the server, and more keep the client busy. The
# least is Kafka's (clients/.../scram/internals/ScramMechanism.java @ 4.3.0; RFC 7677 section 4).
LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 1_000_000
ONLY_LOGIN = 1  # the security layer that Kafka has: none after the login
MECHANISM_OF = {"AWS_MSK_IAM": "OAUTHBEARER"}  # MSK takes tokens that are signed with credentials of AWS


class SaslAuthenticationFailed(Exception):
    """A broker refuses the login, or is not the one that knows the password; the text is its message."""


class UnsupportedSaslMechanism(Exception):
    """A broker does not offer the mechanism."""


def mechanism_name(access: Access) -> str | None:
    """The mechanism by the name that brokers have for it; None without a login."""
    return MECHANISM_OF.get(access.sasl_mechanism or "", access.sasl_mechanism)


def login(access: Access, host: str, tokens: Tokens | None) -> Mechanism:
    """The client's side of a login to a host."""
    name = mechanism_name(access)
    if name == "PLAIN":
        return _plain(access)
    if name == "OAUTHBEARER" and tokens is not None:
        return _bearer(access, tokens())
    if name == "GSSAPI":
        return _gssapi(access.sasl_kerberos_service or "kafka", host)
    return _scram(access, str(name).removeprefix("SCRAM-").replace("-", "").lower())


def _plain(access: Access) -> Mechanism:
    yield f"\0{access.sasl_username}\0{access.sasl_password}".encode()


def scram_name(name: str) -> str:
    """A user's name as SCRAM sends it: without its separators (RFC 5802 section 5.1)."""
    return name.replace("=", "=3D").replace(",", "=2C")


def _scram(access: Access, hash_name: str) -> Mechanism:
    nonce = secrets.token_hex(16)
    mine = f"n={scram_name(access.sasl_username or '')},r={nonce}"
    challenge = (yield f"n,,{mine}".encode()).decode()
    asked = _attributes(challenge)
    told = asked.get("r", ""), asked.get("s"), asked.get("i", "")
    if not told[0].startswith(nonce) or told[0] == nonce or not told[1] or not told[2].isdecimal():
        raise SaslAuthenticationFailed("the server's first message is not one of SCRAM")
    if not LEAST_ITERATIONS <= int(asked["i"]) <= MOST_ITERATIONS:
        raise SaslAuthenticationFailed(f"the server asks for {asked['i']} iterations")

    def mac(key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, hash_name)

    password = (access.sasl_password or "").encode()
    salted = hashlib.pbkdf2_hmac(hash_name, password, b64decode(asked.get("s", "")), int(asked["i"]))
    without_proof = f"c={b64encode(b'n,,').decode()},r={asked['r']}"
    said = f"{mine},{challenge},{without_proof}".encode()
    key = mac(salted, b"Client Key")
    signature = mac(hashlib.new(hash_name, key).digest(), said)
    proof = bytes(left ^ right for left, right in zip(key, signature, strict=True))
    last = _attributes((yield f"{without_proof},p={b64encode(proof).decode()}".encode()).decode())
    expected = mac(mac(salted, b"Server Key"), said)
    if not hmac.compare_digest(b64decode(last.get("v", "")), expected):
        raise SaslAuthenticationFailed("the server does not know the password either")


def _attributes(message: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in message.split(",")}


def extensions(access: Access) -> dict[str, str]:
    """The extensions that go with a token."""
    pairs = (part.partition("=") for part in (access.sasl_oauth_extensions or "").split(",") if part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _bearer(access: Access, token: str) -> Mechanism:
    more = "".join(f"{key}={value}\1" for key, value in extensions(access).items())
    if (yield f"n,,\1auth=Bearer {token}\1{more}\1".encode()):
        yield b"\1"  # after an error the server waits for this, and then refuses in words
        raise SaslAuthenticationFailed("")


def _gssapi(service: str, host: str) -> Mechanism:
    import gssapi

    name = gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service)
    context: Any = gssapi.SecurityContext(name=name.canonicalize(gssapi.MechType.kerberos), usage="initiate")
    token = context.step()
    while not context.complete:
        token = context.step((yield token or b""))
    offered = context.unwrap((yield token or b"")).message
    yield context.wrap(bytes([offered[0] & ONLY_LOGIN]) + offered[1:4], False).message
