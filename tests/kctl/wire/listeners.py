"""Listeners that speak as much of Kafka's protocol as comes before a login."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from struct import pack, unpack

BROKER = (0, 1, 3, 17, 18, 36)
CONTROLLER = (1, 17, 18, 36, 52, 55)
ILLEGAL_SASL_STATE, UNSUPPORTED_SASL_MECHANISM, UNSUPPORTED_VERSION, SASL_AUTHENTICATION_FAILED = (
    34,
    33,
    35,
    58,
)


def answer(
    request: bytes,
    keys: tuple[int, ...],
    mechanisms: tuple[str, ...],
    advertised: int | None,
    refuses: str = "",
    lifetime: int = 0,
) -> bytes | None:
    """The answer to a request; None where a broker ends the connection."""
    key, version, correlation, size = unpack(">hhih", request[:10])
    body = request[10 + size :]
    if key == 18:
        rest = pack(">hi", UNSUPPORTED_VERSION if version else 0, len(keys)) + b"".join(
            pack(">hhh", one, 0, one != 18) for one in keys
        )
    elif key == 17:
        (length,) = unpack(">h", body[:2])
        error = UNSUPPORTED_SASL_MECHANISM
        if not mechanisms:
            error = ILLEGAL_SASL_STATE
        elif body[2 : 2 + length].decode() in mechanisms:
            error = 0
        rest = pack(">hi", error, len(mechanisms))
        rest += b"".join(pack(">h", len(name)) + name.encode() for name in mechanisms)
    elif key == 36 and refuses:
        rest = pack(">hh", SASL_AUTHENTICATION_FAILED, len(refuses)) + refuses.encode() + pack(">i", 0)
        rest += pack(">q", 0) if version else b""
    elif key == 36 and lifetime:
        rest = pack(">hhiq", 0, -1, 0, lifetime)
    elif key == 3 and advertised:  # Metadata 1: one broker, which is the controller, and no topic
        rest = pack(">iih9sihii", 1, 7, 9, b"127.0.0.1", advertised, -1, 7, 0)
    else:
        return None
    return pack(">i", correlation) + rest


@contextmanager
def listener(
    *,
    tls: ssl.SSLContext | None = None,
    keys: tuple[int, ...] = BROKER,
    mechanisms: tuple[str, ...] = (),
    advertised: int | None = None,
    refuses: str = "",
    lifetime: int = 0,
) -> Iterator[int]:
    """The port of a listener, which ends connections that send it something else; one is advertised at a port.

    `refuses` is what it answers to who logs in; else whoever does is let in for a `lifetime` in milliseconds.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(plain: socket.socket) -> None:
            try:
                with tls.wrap_socket(plain, server_side=True) if tls else plain as sock:
                    while size := sock.recv(4, 0 if tls else socket.MSG_WAITALL):
                        (count,) = unpack(">i", size)
                        if (
                            not 10 <= count < 1000
                            or (
                                reply := answer(
                                    sock.recv(count), keys, mechanisms, advertised, refuses, lifetime
                                )
                            )
                            is None
                        ):
                            return
                        sock.sendall(pack(">i", len(reply)) + reply)
            except (OSError, ValueError):
                pass

        def accept() -> None:
            while True:
                try:
                    sock, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(sock,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
