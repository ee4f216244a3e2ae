"""Why a listener that accepts connections cannot be used: a short dialogue in TLS and Kafka's protocol finds out.

    diagnose("kafka1", 9093, Expected(tls=context), 2.0)        # Diagnosis("it does not speak TLS there: ...", hint)

Kafka's listeners say nothing about what they are; a wrong client is disconnected. But ApiVersions and SaslHandshake are
answered before a login, TLS says in alerts what it lacks, and a certificate that is not accepted can be looked at.

Source: clients/src/main/resources/common/message/{ApiVersions,SaslHandshake}{Request,Response}.json,
clients/src/main/java/org/apache/kafka/common/security/authenticator/SaslServerAuthenticator.java,
core/src/main/scala/kafka/server/{KafkaApis,ControllerApis}.scala @ 4.1.0
"""

import socket
import ssl
import time
from struct import Struct, error, pack
from typing import NamedTuple

from kctl.model import Diagnosis
from kctl.tls.causes import (
    IN_CLEAR_TEXT,
    alert_after_handshake,
    alert_of,
    certificate_refused,
    connected,
    speaks_tls,
)

METADATA, SASL_HANDSHAKE, API_VERSIONS, VOTE = 3, 17, 18, 52
ILLEGAL_SASL_STATE = 34
LARGEST_ANSWER = 64 << 10  # bytes
SIZE, HEAD = Struct(">i"), Struct(">hhih")
SET_SASL = (
    "set sasl_mechanism in the context, or security.protocol and sasl.mechanism in the client properties"
)


class Expected(NamedTuple):
    """What the client takes the listener for."""

    tls: ssl.SSLContext | None = None
    has_certificate: bool = False  # of its own
    sasl_mechanism: str | None = None
    is_controller: bool = False


class _NotKafka(Exception):
    """What comes back is no answer of Kafka's protocol."""


def diagnose(host: str, port: int, expected: Expected, seconds: float) -> Diagnosis | None:
    """What does not fit between client and listener; None where nothing of it was found. OSError without a connection."""
    end = time.monotonic() + seconds
    sock = connected(host, port, end)
    if expected.tls is None:
        otherwise = None
        with sock:
            try:
                return _dialogue(sock, expected)
            except _NotKafka:
                otherwise = Diagnosis("what answers there is not Kafka", "check the port")
            except OSError:
                pass
        return IN_CLEAR_TEXT if speaks_tls(host, port, end) else otherwise
    try:
        with expected.tls.wrap_socket(sock, server_hostname=host.rstrip(".")) as encrypted:
            return _dialogue(encrypted, expected)
    except ssl.SSLCertVerificationError as refused:
        return certificate_refused(host, port, expected.tls, refused, max(0.1, end - time.monotonic()))
    except ssl.SSLError as failure:
        if alert := alert_of(failure, has_certificate=expected.has_certificate):
            return alert
    except (OSError, _NotKafka):
        pass
    finally:
        sock.close()
    alert = alert_after_handshake(host, port, expected.tls, end, has_certificate=expected.has_certificate)
    return alert or _is_it_clear_text(host, port, end)


def _dialogue(sock: socket.socket, expected: Expected) -> Diagnosis | None:
    """What the listener's answers say before a login. Raises OSError, _NotKafka."""
    answer = _ask(sock, API_VERSIONS, 0, b"")
    keys = {key for key, _, _ in Struct(">hhh").iter_unpack(answer[6 : 6 + (len(answer) - 6) // 6 * 6])}
    # An error is answered with no list, or with that of the oldest version.
    if expected.is_controller and METADATA in keys:
        return Diagnosis("that is a broker's listener, not a controller's", "name the controllers' listeners")
    if not expected.is_controller and METADATA not in keys and VOTE in keys:
        return Diagnosis(
            "that is a controller's listener, not a broker's",
            "name a listener of the brokers: advertised.listeners in their server.properties",
        )
    mechanism = (expected.sasl_mechanism or "").encode()
    answer = _ask(sock, SASL_HANDSHAKE, 1, pack(">h", len(mechanism)) + mechanism)
    code, mechanisms = _mechanisms(answer)
    if code == ILLEGAL_SASL_STATE and expected.sasl_mechanism:
        return Diagnosis(
            f"the listener has no SASL, and {expected.sasl_mechanism} is set",
            "leave sasl_mechanism out for this listener, or name the one with SASL",
        )
    if code == ILLEGAL_SASL_STATE or not mechanisms:
        return None
    if not expected.sasl_mechanism:
        return Diagnosis(f"the listener requires a login by SASL: {', '.join(mechanisms)}", SET_SASL)
    if expected.sasl_mechanism not in mechanisms:
        return Diagnosis(
            f"the SASL mechanism is not enabled there: {expected.sasl_mechanism}; there are {', '.join(mechanisms)}",
            "choose one of them, or name the listener that has it",
        )
    return None


def _ask(sock: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """The answer of a request without its size and correlation; its first two bytes are the error code or a count."""
    client = b"kctl"
    request = HEAD.pack(key, version, 1, len(client)) + client + body
    sock.sendall(SIZE.pack(len(request)) + request)
    (size,) = SIZE.unpack(_receive(sock, 4))
    if not 6 <= size <= LARGEST_ANSWER:
        raise _NotKafka
    answer = _receive(sock, size)
    if answer[:4] != b"\0\0\0\1":
        raise _NotKafka
    return answer[4:]


def _receive(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            raise ConnectionResetError
        data += piece
    return data


def _mechanisms(answer: bytes) -> tuple[int, list[str]]:
    try:
        code, count = Struct(">hi").unpack_from(answer)
        names, at = list[str](), 6
        for _ in range(min(count, 100)):
            (size,) = Struct(">h").unpack_from(answer, at)
            names.append(answer[at + 2 : at + 2 + size].decode("ascii", "replace"))
            at += 2 + size
    except error:
        raise _NotKafka from None
    return code, names


def _is_it_clear_text(host: str, port: int, end: float) -> Diagnosis | None:
    """Whether the listener that does not speak TLS answers in clear text."""
    try:
        with connected(host, port, end) as sock:
            answer = _ask(sock, API_VERSIONS, 0, b"")
            code, _ = _mechanisms(_ask(sock, SASL_HANDSHAKE, 1, pack(">h", 0)))
    except (OSError, _NotKafka):
        return None
    del answer
    protocol = "PLAINTEXT" if code == ILLEGAL_SASL_STATE else "SASL_PLAINTEXT"
    return Diagnosis(
        f"it does not speak TLS there: the listener is {protocol}",
        f"name the listener with TLS, or set security.protocol={protocol} (leave tls, tls_ca and tls_certificate out)",
    )
