"""A connection, requests to chosen brokers, bounded waits.

With `first_ready` and `shortcuts` the one place that touches the inside of kafka-python.

    with Wire(access) as wire:
        answer = wire.send(MetadataRequest(topics=None))                # to the broker that is read from
        answers = wire.send_all([(1, request), (2, request)])           # at once; a failure stands for its answer

Nothing here retries a write. `PRIVATE` lists every name used that the library does not document.
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import kafka.errors as kafka_errors
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.schemas.fields.struct import StructField

from kctl.errors import BadValue, KctlError
from kctl.wire.causes import cause_among, cause_of, listening
from kctl.wire.first_ready import bootstrap, first_ready
from kctl.wire.shortcuts.receiving import receive_quickly
from kctl.wire.shortcuts.small_messages import take_small_messages

# (class, name): documented nowhere, so that a test holds each against the installed library.
PRIVATE = (
    (KafkaConnectionManager, "bootstrap"),
    (KafkaConnectionManager, "send"),
    (KafkaConnectionManager, "run"),
    (KafkaConnectionManager, "wait_for"),
    (KafkaConnectionManager, "close"),
    (KafkaConnectionManager, "get_connection"),
    (KafkaConnection, "init_future"),
    (KafkaConnection, "pause"),
    (NetworkSelector, "start"),
    (NetworkSelector, "sleep"),
    (NetworkSelector, "stop"),
    (KafkaTCPTransport, "_sock_recv"),
    (KafkaSSLTransport, "_sock_recv"),
    (KafkaBytes, "read"),
    (ApiMessage, "_version"),
    (StructField, "compiled_decode_from"),
    (StructField, "compiled_encode_into"),
)
receive_quickly()
take_small_messages()
IN_FLIGHT = 500  # requests to a broker at once; above its limit the library refuses or hangs
LARGEST_ANSWER = 512 << 20  # bytes
SERVER_ROOM = 5.0  # seconds by which the client waits longer than the broker
LONGEST_PAUSE = 60.0  # seconds for which a broker may ask while a quota is used up
LOOK = 0.02  # seconds between two looks at whether they are over


class Access(NamedTuple):
    """Where the brokers are and how to speak to them. `timeout` is seconds for any one answer."""

    servers: str
    timeout: float = 10.0
    tls: bool = False
    tls_ca: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_key_password: str | None = None
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = None

    def settings(self) -> dict[str, Any]:
        """The library's settings."""
        encrypted = bool(self.tls or self.tls_ca or self.tls_certificate)
        protocol = ("SASL_" if self.sasl_mechanism else "") + ("SSL" if encrypted else "PLAINTEXT")
        return {
            "bootstrap_servers": server_list(self.servers),
            "client_id": "kctl",
            "security_protocol": protocol if protocol != "PLAINTEXT" else "PLAINTEXT",
            "ssl_cafile": self.tls_ca,
            "ssl_certfile": self.tls_certificate,
            "ssl_keyfile": self.tls_key,
            "ssl_password": self.tls_key_password,
            "sasl_mechanism": self.sasl_mechanism,
            "sasl_plain_username": self.sasl_username,
            "sasl_plain_password": self.sasl_password,
            "max_in_flight_requests_per_connection": IN_FLIGHT,
            "receive_message_max_bytes": LARGEST_ANSWER,
            "request_timeout_ms": int((self.timeout + SERVER_ROOM) * 1000),
            "socket_connection_setup_timeout_ms": int(self.timeout * 1000),
            "reconnect_backoff_max_ms": 1000,
        }


class NoAnswer(KctlError):
    """A broker could not be reached or did not answer: whether it did what was asked is not known."""

    def __init__(self, message: str, node: int | None = None, hint: str = "") -> None:
        super().__init__(message, hint)
        self.node = node


class TooOld(KctlError):
    """The broker does not know a request."""


def server_list(text: str) -> list[str]:
    """`HOST:PORT,HOST:PORT` as a list. Raises BadValue."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    for part in found:
        host, colon, port = part.rpartition(":")
        if colon and (not host or not port.isdigit() or not 0 < int(port) < 65536):
            raise BadValue(f"{part!r} is not HOST:PORT", "write --bootstrap-server kafka1:9092,kafka2:9092")
    if not found:
        raise BadValue("no bootstrap server is named", "write --bootstrap-server kafka1:9092,kafka2:9092")
    return [part if re.search(r":\d+$", part) else f"{part}:9092" for part in found]


class Wire:
    """Connections to a cluster's brokers. Close it, or use it as a context manager.

    Raises KctlError with the cause in its line where no broker of the list can be used.
    """

    def __init__(self, access: Access) -> None:
        self.access = access
        self.location = access.servers
        self._net: Any = NetworkSelector(client_id="kctl")
        if "SSL" in access.settings()["security_protocol"]:
            import ssl

            ssl.create_default_context  # noqa: B018  # imports it now, before there are threads
        with listening() as heard:
            try:
                self._manager: Any = KafkaConnectionManager(self._net, **access.settings())
                self._net.start()
                bootstrap(self._net, self._manager, access.timeout, lambda: heard.refusals)
            except Exception as error:
                said = list(heard.words)  # to close adds words of its own
                self.close()
                raise _no_cluster(access, error, said) from None
        try:
            self.node = self._first_node()
        except KctlError:
            self.close()
            raise

    # --- brokers ---

    @property
    def nodes(self) -> list[int]:
        """Ids of the brokers that the cluster says it has, ascending."""
        return sorted(int(one.node_id) for one in self._manager.cluster.brokers())

    def refresh_nodes(self) -> None:
        """Ask for the table of brokers again: one that came back is not known otherwise."""
        with self._translated(None):
            self._manager.run(self._manager.cluster.refresh_metadata)

    def _first_node(self) -> int:
        """The broker to read from for the whole run: the first that takes a connection."""
        nodes = self.nodes
        if not nodes:
            raise _no_cluster(self.access, KctlError("the cluster names no broker"), [])
        node, failure = self._ready(nodes)
        if node is None:
            raise _no_cluster(self.access, failure, [])
        return int(node)

    def _ready(self, nodes: Sequence[int], seconds: float | None = None) -> tuple[Any, Any]:
        usual = self.access.timeout
        within = usual if seconds is None else seconds
        return self._manager.run(first_ready, self._net, self._manager, nodes, within, usual)  # type: ignore[no-any-return]

    # --- requests ---

    def version_of(self, request: Any, node: int | None = None) -> int | None:
        """The version of a request (its class) that is spoken with the cluster; None where it is not known there."""
        try:
            return int(self._manager.broker_version_data.api_version(request))
        except Exception:
            return None

    @property
    def broker_version(self) -> tuple[int, ...]:
        """The broker's release, as far as the versions of its requests tell."""
        return tuple(self._manager.broker_version_data.broker_version)

    def send(self, request: Any, node: int | None = None, *, timeout: float | None = None) -> Any:
        """The answer of one broker, by default of the one that is read from. Raises NoAnswer, TooOld."""
        (answer,) = self.send_all([(self.node if node is None else node, request)], timeout=timeout)
        if isinstance(answer, KctlError):
            raise answer
        return answer

    def read(self, request: Any) -> Any:
        """As `send`, for a request that changes nothing: where the broker is gone, another one is asked."""
        try:
            return self.send(request)
        except NoAnswer:
            self._change_node()
            return self.send(_again(request))

    def read_from(self, node: int, seconds: float | None = None) -> bool:
        """Read from this broker from now on, if it is another one and takes a connection in time; whether it is so."""
        if node == self.node or node not in self.nodes:
            return False
        found, _ = self._ready([node], seconds)
        if found is not None:
            self.node = node
        return found is not None

    def _change_node(self) -> None:
        node, _ = self._ready([node for node in self.nodes if node != self.node])
        if node is not None:
            self.node = int(node)

    def send_all(
        self, requests: Sequence[tuple[int, Any]], *, timeout: float | None = None
    ) -> list[Any | KctlError]:
        """The answers in order, all asked at once; a `KctlError` stands where there is none."""
        milliseconds = int((self.access.timeout if timeout is None else timeout) * 1000)

        async def all_of_them() -> list[Any]:
            futures, patience = [], time.monotonic() + LONGEST_PAUSE
            for node, request in requests:
                try:
                    await self._unthrottled(node, patience)
                    futures.append(self._manager.send(request, node_id=node, request_timeout_ms=milliseconds))
                except Exception as error:
                    futures.append(error)
            answers, end = [], time.monotonic() + milliseconds / 1000 + 1
            for future in futures:
                if isinstance(future, Exception):
                    answers.append(future)
                    continue
                try:
                    left = max(1, (end - time.monotonic()) * 1000)
                    answers.append(await self._manager.wait_for(future, left))
                except Exception as error:
                    answers.append(error)
            return answers

        answers = self._manager.run(all_of_them)
        return [
            self._failure(answer, node, request) if isinstance(answer, Exception) else answer
            for answer, (node, request) in zip(answers, requests, strict=True)
        ]

    async def _unthrottled(self, node: int, end: float) -> None:
        """Wait as long as a broker asks for because of a quota: until then the library refuses to send."""
        while (connection := self._manager._conns.get(node)) is not None and connection.paused:
            if time.monotonic() > end:
                reason = f"it asks for a pause of more than {LONGEST_PAUSE:.0f} s: a quota of this client is used up"
                raise NoAnswer(f"broker {node} is not asked, since {reason}", node)
            await self._net.sleep(LOOK)

    def _failure(self, error: Exception, node: int, request: Any) -> KctlError:
        if isinstance(error, KctlError):
            return error
        name = type(error).__name__
        asked = type(request).__name__.removesuffix("Request")
        if name == "IncompatibleBrokerVersion":
            return TooOld(f"broker {node} is too old: it does not know {asked}")
        if name == "UnknownBrokerIdError":
            return NoAnswer(f"broker {node} is not in the cluster now", node)
        return NoAnswer(f"broker {node} does not answer {asked}: {cause_of(error)}", node)

    @contextmanager
    def _translated(self, node: int | None) -> Iterator[None]:
        try:
            yield
        except KctlError:
            raise
        except Exception as error:
            raise NoAnswer(f"{self.location}: {cause_of(error)}", node) from None

    def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def close(self) -> None:
        """End all connections and the library's thread."""
        manager = getattr(self, "_manager", None)
        if manager is not None:
            manager.close()
        self._net.stop(timeout_ms=2000)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _again(request: Any) -> Any:
    """The request without the version that was agreed on with another broker."""
    request._version = None  # the property takes numbers alone
    return request


def _no_cluster(access: Access, error: BaseException, words: Sequence[str]) -> KctlError:
    cause = cause_among([f"{type(error).__name__}: {error}", *words], with_sasl=bool(access.sasl_mechanism))
    return KctlError(f"no broker of {access.servers} can be used: {cause}")


def error_name(code: int) -> str:
    """Kafka's name of an error code, `NOT_CONTROLLER`."""
    found = kafka_errors.for_code(code)
    return str(getattr(found, "message", None) or found.__name__)
