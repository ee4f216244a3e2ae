"""A connection to a node: TLS, versions, login; requests and their answers in the order of the requests.

    connection = open_connection(("kafka1", 9092), access, tls, tokens, end)
    call = connection.call(MetadataRequest(topics=None))
    exchange([connection], end, ended)
    call.answer

Sockets do not block: what several connections have to write and to read goes on at the same time, so that a broker that
waits for its answers to be read does not stop the others.

Source: clients/src/main/resources/common/message/{Request,Response}Header.json @ 4.3.0; KIP-368 (end of a session);
KIP-219 (pauses for quotas); KIP-511 (ApiVersions)
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from struct import Struct
from typing import TYPE_CHECKING, Any

from formats.binary.varint import after_tags
from kctl.version import __version__
from kctl.wire.access import LARGEST_ANSWER, Access
from kctl.wire.causes import NO_ANSWER
from kctl.wire.protocol.error_names import error_name
from kctl.wire.protocol.messages import (
    ApiVersionsRequest,
    ProtocolRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kctl.wire.protocol.sasl import (
    SaslAuthenticationFailed,
    Tokens,
    UnsupportedSaslMechanism,
    login,
    mechanism_name,
)

if TYPE_CHECKING:
    import ssl

HEAD, SIZE = Struct(">hhih"), Struct(">i")
UNSUPPORTED_SASL_MECHANISM, UNSUPPORTED_VERSION = 33, 35
API_VERSIONS = "ApiVersions"  # whose answers never have tagged fields in the header
SHARE = 0.85  # of a session, after which there is a new login
AT_ONCE = 256 << 10  # bytes that are handed to a socket
LARGEST_BEFORE_LOGIN = 1 << 20  # bytes of an answer of what may not be a broker at all
AHEAD = 64  # bytes of room behind an answer: headers of batches are decoded in windows
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

Address = tuple[str, int]


class NotKnown(Exception):
    """The node knows no version of the request that can be sent."""


class Ended(Exception):
    """The client has been closed meanwhile."""


class Call:
    """A request that was sent, and its answer or the error in its place."""

    def __init__(self, request: Any, version: int, correlation: int) -> None:
        self.request, self.version, self.correlation = request, version, correlation
        self.answer: Any = None
        self.error: Exception | None = None


class Connection:
    """A socket with what is to be sent, and what is expected."""

    def __init__(self, sock: socket.socket, client_id: str) -> None:
        self._sock, self._client = sock, client_id.encode()
        self._correlation = 0
        self._out = deque[memoryview]()
        self._head = memoryview(bytearray(SIZE.size))
        self._got = 0
        self._body: memoryview | None = None
        self.waiting = deque[Call]()
        self.versions: dict[int, tuple[int, int]] = {}
        """By key of a request: the first and the last version that the node knows."""
        self.paused_until = 0.0
        self.session_ends = float("inf")
        self.is_open = True
        self.largest_answer = LARGEST_ANSWER

    # --- requests ---

    def version_for(self, request: Any) -> int:
        """The newest version of a request (or its class) that both sides know. Raises NotKnown."""
        first, last = self.versions.get(request.MESSAGE.key, (0, -1))
        known = request.MESSAGE.versions.last
        least = 0
        if isinstance(request, ProtocolRequest):
            known, least = min(known, request.max_version), request.min_version
        version = int(min(last, known))
        if version < max(first, least):
            raise NotKnown(request.NAME)
        return version

    def call(self, request: Any, version: int | None = None) -> Call:
        """Put a request behind those that are to be sent. Raises NotKnown."""
        version = self.version_for(request) if version is None else version
        self._correlation = (self._correlation + 1) % 2**31
        call = Call(request, version, self._correlation)
        head = HEAD.pack(request.MESSAGE.key, version, call.correlation, len(self._client)) + self._client
        tags = b"\0" if version in request.MESSAGE.flexible else b""
        body = request.encoded(version)
        size = SIZE.pack(len(head) + len(tags) + len(body))
        self._out.append(memoryview(b"".join((size, head, tags, body))))
        self.waiting.append(call)
        return call

    def ask(self, request: Any, end: float, version: int | None = None) -> Any:
        """The answer to one request; raises what `exchange` puts in its place."""
        call = self.call(request, version)
        exchange([self], end)
        if call.error is not None:
            raise call.error
        return call.answer

    # --- bytes ---

    @property
    def events(self) -> int:
        """What the socket is waited for."""
        return READ | WRITE if self._out else READ

    def fileno(self) -> int:
        """The number of the socket."""
        return self._sock.fileno()

    def proceed(self) -> None:
        """Send and receive what is possible at once; a failure ends the connection and takes the place of answers."""
        try:
            self._send()
            self._receive()
        except (OSError, ValueError) as error:
            if not _would_block(error):
                self.fail(error)

    def _send(self) -> None:
        try:
            while self._out:
                sent = self._sock.send(self._out[0][:AT_ONCE])
                if sent == len(self._out[0]):
                    self._out.popleft()
                else:
                    self._out[0] = self._out[0][sent:]
        except OSError as error:
            if not _would_block(error):
                raise

    def _receive(self) -> None:
        """Read answers until none is expected, or the socket has no more."""
        while self.waiting:
            room = self._head if self._body is None else self._body
            while self._got < len(room):
                count = self._sock.recv_into(room[self._got :])
                if not count:
                    raise ConnectionResetError("socket disconnected")
                self._got += count
            self._got = 0
            if self._body is None:
                (size,) = SIZE.unpack(self._head)
                if not SIZE.size <= size <= self.largest_answer:
                    raise ValueError(f"an answer of {size} bytes")
                self._body = memoryview(bytearray(size + AHEAD))[:size]
            else:
                body, self._body = self._body, None
                self._complete(body)

    def _complete(self, data: memoryview) -> None:
        call = self.waiting[0]
        if SIZE.unpack_from(data)[0] != call.correlation:
            raise ValueError("an answer to another request")
        flexible = call.version in call.request.MESSAGE.flexible
        begin = after_tags(data, SIZE.size) if flexible and call.request.NAME != API_VERSIONS else SIZE.size
        call.answer = call.request.answered(data[begin:], call.version)
        self.waiting.popleft()
        pause: int = getattr(call.answer, "throttle_time_ms", 0)
        if pause > 0:
            self.paused_until = max(self.paused_until, time.monotonic() + pause / 1000)

    # --- ends ---

    def fail(self, error: Exception) -> None:
        """End the connection; the error takes the place of all answers that are missing."""
        self.close()
        while self.waiting:
            self.waiting.popleft().error = error

    @property
    def is_usable(self) -> bool:
        """Whether requests can be sent: nobody has closed it, nothing is missing, and the session lasts."""
        if not self.is_open or self.waiting or time.monotonic() >= self.session_ends:
            return False
        try:
            self._sock.recv(1)
        except OSError as error:
            return _would_block(error)
        return False  # the other side closed it, or says what nobody asked for

    def shut_down(self) -> None:
        """Wake who waits for the socket, from another thread."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        self.is_open = False
        self._sock.close()


def _would_block(error: Exception) -> bool:
    """Whether a socket, also one with TLS, is only to be waited for."""
    return isinstance(error, (BlockingIOError, InterruptedError)) or type(error).__name__ in (
        "SSLWantReadError",
        "SSLWantWriteError",
    )


def exchange(
    connections: Iterable[Connection], end: float, is_ended: Callable[[], bool] = lambda: False
) -> None:
    """Send what is to be sent, and wait for all answers; by `end` (monotonic) errors stand in the place of those missing."""
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            connection.proceed()
            if connection.waiting:
                selector.register(connection, connection.events)
        while selector.get_map():
            ready = selector.select(max(0.0, end - time.monotonic()))
            left = [key.fileobj for key in selector.get_map().values()]
            if is_ended() or (not ready and time.monotonic() >= end):
                for one in left:
                    one.fail(Ended() if is_ended() else TimeoutError(NO_ANSWER))  # type: ignore[union-attr]
                return
            for key, _ in ready:
                connection = key.fileobj  # type: ignore[assignment]
                number = key.fd
                connection.proceed()
                if not connection.waiting:
                    selector.unregister(number)
                elif connection.events != key.events:
                    selector.modify(number, connection.events)


# --- opening --------------------------------------------------------------------------------------------


def open_connection(
    address: Address,
    access: Access,
    tls: ssl.SSLContext | None,
    tokens: Tokens | None,
    end: float,
    began: Callable[[socket.socket], None] = lambda sock: None,
) -> Connection:
    """A connection that is logged in by `end` (monotonic). Raises OSError, ValueError, KctlError and the errors of SASL.

    `began` is given the socket as soon as there is one.
    """
    sock = socket.create_connection(address, timeout=_left(end))
    try:
        began(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            sock = _encrypted(sock, tls, address[0], end)
            began(sock)
        sock.setblocking(False)
        connection = Connection(sock, access.client_id or "kctl")
        connection.largest_answer = LARGEST_BEFORE_LOGIN
        _learn_versions(connection, end)
        if access.sasl_mechanism:
            _log_in(connection, access, address[0], tokens, end)
        connection.largest_answer = LARGEST_ANSWER
    except BaseException:
        sock.close()
        raise
    return connection


def _left(end: float) -> float:
    return max(0.001, end - time.monotonic())


def _encrypted(sock: socket.socket, tls: ssl.SSLContext, host: str, end: float) -> socket.socket:
    sock.settimeout(_left(end))
    try:
        return tls.wrap_socket(sock, server_hostname=host.rstrip("."))
    except TimeoutError:
        raise
    except OSError as error:
        raise ConnectionError(f"Handshake failed: {error}") from error


def _learn_versions(connection: Connection, end: float) -> None:
    """Ask which versions the node knows; one that does not know the version of this request says so in the oldest."""
    request = ApiVersionsRequest(client_software_name="kctl", client_software_version=__version__)
    answer = connection.ask(request, end, 3)
    if answer.error_code == UNSUPPORTED_VERSION:
        answer = connection.ask(request, end, 0)
    if answer.error_code:
        raise ConnectionError(f"ApiVersions: {error_name(answer.error_code)}")
    connection.versions = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}


def _log_in(connection: Connection, access: Access, host: str, tokens: Tokens | None, end: float) -> None:
    name = mechanism_name(access)
    answer = connection.ask(SaslHandshakeRequest(mechanism=name, min_version=1), end)
    if answer.error_code == UNSUPPORTED_SASL_MECHANISM:
        raise UnsupportedSaslMechanism(f"{name}; there are {', '.join(answer.mechanisms)}")
    if answer.error_code:
        raise ConnectionError(f"SaslHandshake: {error_name(answer.error_code)}")
    mechanism = login(access, host, tokens)
    message = next(mechanism)
    while True:
        answer = connection.ask(SaslAuthenticateRequest(auth_bytes=message), end)
        if answer.error_code:
            raise SaslAuthenticationFailed(answer.error_message or "")
        try:
            message = mechanism.send(answer.auth_bytes)
        except StopIteration:
            break
        except ValueError:
            raise SaslAuthenticationFailed(f"what the server says is no message of {name}") from None
    if answer.session_lifetime_ms > 0:
        connection.session_ends = time.monotonic() + answer.session_lifetime_ms / 1000 * SHARE
