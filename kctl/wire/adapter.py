"""Connections to brokers: requests to chosen brokers, bounded waits, and the cause of a failed connection.

    with Wire(access) as wire:
        answer = wire.send(MetadataRequest(topics=None))                # to the broker used for reads
        answers = wire.send_all([(1, request), (2, request)])           # at once; a failure takes the place of an answer

Of several brokers the first that accepts a connection is used; the next one is tried if one says nothing for a
moment, since a host that accepts connections and never answers would otherwise use up the time for all
of them. Nothing here retries a write. Only this module and `shortcuts` touch the inside of kafka-python; `PRIVATE`
lists every name used that the library does not document.
"""

import logging
import random
import time
import uuid
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import kafka.errors as kafka_errors
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.admin.cluster import DescribeQuorumRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.schemas.fields.struct import StructField

from kctl.cluster.versions import needs
from kctl.errors import KctlError
from kctl.wire.access import SERVER_ROOM as SERVER_ROOM
from kctl.wire.access import Access as Access
from kctl.wire.access import access_from as access_from
from kctl.wire.access import server_list as server_list
from kctl.wire.causes import (
    FINAL,
    JUST_FAILED,
    NO_ANSWER,
    NO_ROUTE,
    NOT_LET_IN,
    REFUSED,
    UNKNOWN_HOST,
    UNREACHABLE,
    Check,
    accepts,
    cause_among,
    cause_in,
    cause_of,
    diagnoses,
    refuse_unusable,
)
from kctl.wire.logins import check_login, exposed_secrets, principal_of, provider_of, refusal_of, tokens_of
from kctl.wire.shortcuts.receiving import receive_quickly
from kctl.wire.shortcuts.small_messages import take_small_messages

DIAGNOSIS = 2.0  # seconds to find out what a listener is
CONNECT = 3.0  # seconds for a host to accept a connection
HEAD_START = 0.5  # seconds before the next broker is tried as well
READY_POLL_INTERVAL = 0.005  # seconds between two looks
ENOUGH_REFUSALS = 2


async def first_ready(
    net: Any, manager: Any, nodes: Sequence[Any], seconds: float, lasting: float = 0.0, **how: Any
) -> tuple[Any, Exception | None]:
    """The first node whose connection is ready; None and the error if none is ready in time.

    A connection that is not ready by then continues to set up for `lasting` seconds: other requests may need it.
    """
    end, next_at = time.monotonic() + seconds, 0.0
    untried, tried = list(nodes), list[Any]()
    failure: Exception | None = None
    while True:
        now = time.monotonic()
        for connection in tried:
            if connection.init_future.succeeded():
                return connection.node_id, None
            if connection.init_future.is_done:
                failure = connection.init_future.exception
        tried = [connection for connection in tried if not connection.init_future.is_done]
        if now >= end or not (untried or tried):
            return None, failure or TimeoutError(NO_ANSWER)
        if untried and (not tried or now >= next_at):
            next_at = now + HEAD_START
            try:
                milliseconds = max(end - now, lasting) * 1000
                tried.append(manager.get_connection(untried.pop(0), timeout_ms=milliseconds, **how))
            except Exception as error:
                failure = error
            continue
        await net.sleep(READY_POLL_INTERVAL)


def bootstrap(net: Any, manager: Any, seconds: float, refusals: Callable[[], int]) -> None:
    """Read the table of brokers from one of the servers. Raises the library's errors.

    `refusals` returns how many final refusals there were: after ENOUGH_REFUSALS of them nothing is waited for.
    """
    end = time.monotonic() + seconds
    servers = manager.cluster._bootstrap_brokers
    if len(servers) > 1:
        first = manager.run(_first_server, net, manager, list(servers), seconds)
        if first is not None:
            manager.cluster._bootstrap_brokers = {first: servers[first]}
    try:
        manager.run(_bootstrapped, net, manager, end, refusals)
    finally:
        manager.cluster._bootstrap_brokers = servers


async def _bootstrapped(net: Any, manager: Any, end: float, refusals: Callable[[], int]) -> None:
    """The library's own time-out does not apply during a TLS handshake without answer."""
    before = refusals()
    future = manager.bootstrap_async(max(1, int((end - time.monotonic()) * 1000)))
    while not future.is_done:
        if time.monotonic() >= end or refusals() - before >= ENOUGH_REFUSALS:
            raise TimeoutError(NO_ANSWER)
        await net.sleep(READY_POLL_INTERVAL)
    await future


async def _first_server(net: Any, manager: Any, names: list[str], seconds: float) -> str | None:
    """The server whose connection is ready first; the others are closed."""
    order = random.sample(names, len(names))
    how = {"pop_on_close": False, "refresh_metadata_on_err": False, "reset_backoff_on_connect": False}
    first: str | None
    first, _ = await first_ready(net, manager, order, seconds, **how)
    for name in names:
        if name != first and (connection := manager._conns.pop(name, None)) is not None:
            connection.close()
    return first


ATTEMPT = ("Bootstrap connection to", "Bootstrap attempt to")
NOISE = ("not ready; waiting", "Unable to bootstrap")


ADVERTISED = {
    REFUSED: "which refuses connections",
    NO_ANSWER: "which does not answer",
    UNKNOWN_HOST: "a host name that is not known here",
    NO_ROUTE: "to which there is no route",
}
CORRECT_ADVERTISED = "name a listener whose advertised address can be reached from here, or correct advertised.listeners of the broker"
FEW = 3


class ConnectionLog(logging.Handler):
    """The library's log messages, and the number of refusals."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self.refusals = 0
        self.is_final = False
        """Whether the last attempt was refused for a reason that stays."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of a record, except noise."""
        message = record.getMessage()
        if any(noise in message for noise in NOISE):
            return
        self.messages.append(message)
        if message.startswith(ATTEMPT):
            cause = cause_in(message)
            self.refusals += cause not in UNREACHABLE
            self.is_final = cause in FINAL


@contextmanager
def listening() -> Iterator[ConnectionLog]:
    """The library's log while the block runs."""
    log, logger = ConnectionLog(), logging.getLogger("kafka.net")
    logger.addHandler(log)
    try:
        yield log
    finally:
        logger.removeHandler(log)


# (class, name): undocumented, so a test checks each against the installed library.
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
# What brokers of KRaft clusters send on to the controller: who of the two is silent cannot be told.
FORWARDED = frozenset(
    {
        "AddRaftVoter",
        "AlterClientQuotas",
        "AlterPartitionReassignments",
        "CreateDelegationToken",
        "CreatePartitions",
        "CreateTopics",
        "DeleteTopics",
        "DescribeQuorum",
        "ElectLeaders",
        "ExpireDelegationToken",
        "IncrementalAlterConfigs",
        "ListPartitionReassignments",
        "RemoveRaftVoter",
        "RenewDelegationToken",
        "UnregisterBroker",
        "UpdateFeatures",
    }
)
FORWARDED_HINT = (
    "check that both run: a broker waits for a controller that hangs for up to 30 s (controller.socket.timeout.ms), "
    "even when another has been elected; then ask again"
)
LONGEST_PAUSE = 60.0  # seconds of throttling that a broker may ask for
POLL_INTERVAL = 0.02  # seconds


class NoAnswer(KctlError):
    """A broker could not be reached or did not answer: it is unknown whether it carried out the request."""

    hint = "check that it runs and that its listener can be reached from here"

    def __init__(self, message: str, node: int | None = None, hint: str = "") -> None:
        super().__init__(message, hint)
        self.node = node


class TooOld(KctlError):
    """The broker does not know a request."""

    hint = "upgrade the broker, or use --zookeeper where the cluster has one"


class BrokerError(KctlError):
    """A broker answered with an error."""

    hint = "ask again; where it stays so, the server.log of that broker says why"


class Leaderless(KctlError):
    """A partition has no leader, so no broker answers for it."""

    hint = "start the brokers that hold its replicas; `kctl topic describe` shows which these are"


class Wire:
    """Connections to a cluster's brokers. Close it, or use it as a context manager.

    Raises KctlError with the cause in its line where no broker of the list can be used.
    """

    are_controllers = False

    def __init__(self, access: Access, warn: Callable[[str], None] = lambda text: None) -> None:
        self.access = access
        self._warn, self._warned = warn, set[str]()
        self.location = access.servers
        self._causes: dict[int, str] = {}  # by node, of the last failure
        # Whether a KRaft controller has answered; else the epochs of features that showed that there is none.
        self.has_seen_controller = False
        self.without_controller: dict[int, int] | None = None
        # Of tokens that were created over this connection, by id: secrets, for the one who asked.
        self.token_hmacs: dict[str, bytes] = {}
        self._servers = server_list(access.servers)
        hosts = [server.rpartition(":")[0].strip("[]") for server in self._servers]
        check_login(access, hosts)
        for text in exposed_secrets(access, hosts):
            self.warn(text)
        settings = access.settings()
        self._tokens = tokens_of(access, hosts)
        if self._tokens is not None:
            settings["sasl_oauth_token_provider"] = provider_of(access, self._tokens)
        if access.is_encrypted:
            from kctl.tls.files import client_context

            settings["ssl_context"] = client_context(access)
        self._tls = settings.get("ssl_context")
        refuse_unusable(self._servers, *self._within(CONNECT, accepts))
        self._net: Any = NetworkSelector(client_id=settings["client_id"])
        with listening() as log:
            try:
                self._manager: Any = KafkaConnectionManager(self._net, **settings)
                self._net.start()
                self._bootstrap(log)
                self.node = self._first_node()
            except KctlError:
                self.close()
                raise
            except Exception as error:
                messages = list(log.messages)  # closing adds messages
                self.close()
                raise self._no_cluster(error, messages) from None

    def _no_cluster(self, error: BaseException, messages: Sequence[str]) -> KctlError:
        access = self.access
        text = error.message if isinstance(error, KctlError) else f"{type(error).__name__}: {error}"
        cause = cause_among([text, *messages], with_sasl=bool(access.sasl_mechanism))
        if cause == NOT_LET_IN:
            telling = [
                message for message in [text, *messages] if "SaslAuthenticationFailedError: " in message
            ]
            cause = refusal_of(access.sasl_mechanism, telling[-1] if telling else "", self._tokens)
        if (
            cause_in(text) == NO_ANSWER and cause in UNREACHABLE
        ):  # another one of them, or a port, took the connection
            return KctlError(
                f"no broker of {access.servers} can be used: a connection is accepted, but no answer came within "
                f"{access.timeout:g} s",
                "check that a broker listens there and is not stuck; KCTL_ANSWER_TIMEOUT sets the time",
            )
        return KctlError(
            f"no broker of {access.servers} can be used: {cause}",
            "check addresses, ports and the security settings of the context",
        )

    def _bootstrap(self, log: ConnectionLog) -> None:
        """Read the table of brokers. Raises KctlError where the listeners are not what they are taken for."""
        end = time.monotonic() + self.access.timeout
        while True:
            try:
                return bootstrap(
                    self._net, self._manager, max(0.01, end - time.monotonic()), lambda: log.refusals
                )
            except Exception:
                refuse_unusable(self._servers, *self._within(DIAGNOSIS, self._diagnosis), only_sure=True)
                if log.is_final or time.monotonic() >= end:
                    raise

    def _within(self, seconds: float, check: Callable[[float], Check]) -> tuple[float, Check]:
        """The time for a check of listeners, and the check."""
        within = min(seconds, self.access.timeout)
        return within, check(within)

    def _diagnosis(self, seconds: float) -> Check:
        """A check of what a listener is."""
        from kctl.wire.diagnosis import Expected, diagnose

        expected = Expected(
            self._tls,
            has_certificate=bool(self.access.tls_certificate),
            sasl_mechanism=self.access.settings()["sasl_mechanism"],
            is_controller=self.are_controllers,
        )
        return lambda host, port: diagnose(host, port, expected, seconds)

    @property
    def principal(self) -> str:
        """The principal that brokers make of this connection by default; in words where it is not known."""
        return principal_of(self.access, self._tokens)

    # --- brokers ---

    @property
    def nodes(self) -> list[int]:
        """Ids of the brokers in the cluster's metadata, ascending."""
        return sorted(int(broker.node_id) for broker in self._manager.cluster.brokers())

    def address_of(self, node: int) -> tuple[str, int] | None:
        """Where a broker listens by the cluster's metadata; None for one that is not there."""
        broker = self._manager.cluster.broker_metadata(node)
        return None if broker is None else (broker.host, broker.port)

    def refresh_nodes(self) -> None:
        """Read the table of brokers again, which shows brokers that came back."""
        try:
            self._manager.run(self._manager.cluster.refresh_metadata)
        except Exception as error:
            raise NoAnswer(f"{self.location}: {cause_of(error)}") from None

    def _first_node(self) -> int:
        """The broker to read from for the whole run: the first that accepts a connection."""
        nodes = self.nodes
        if not nodes:
            raise self._no_cluster(BrokerError("the cluster reports no broker"), [])
        soon = min(CONNECT, self.access.timeout)
        node, failure = self._ready(nodes, soon)
        if node is None:
            self._refuse_advertised(nodes)
            node, failure = self._ready(nodes, max(0.01, self.access.timeout - soon))
        if node is None:
            raise self._no_cluster(failure, [])
        return node  # type: ignore[no-any-return]

    def _refuse_advertised(self, nodes: Sequence[Any]) -> None:
        """Raise KctlError if no address in the table of brokers can be used, with the reason of each."""
        brokers = {node: self._manager.cluster.broker_metadata(node) for node in nodes}
        addresses = {node: f"{broker.host}:{broker.port}" for node, broker in brokers.items() if broker}
        found = diagnoses(list(addresses.values()), *self._within(DIAGNOSIS, self._diagnosis))
        if None in found.values():
            return
        sentences, hint = [], CORRECT_ADVERTISED
        for node, address in addresses.items():
            diagnosis = found[address]
            assert diagnosis is not None
            clause = ADVERTISED.get(diagnosis.clause)
            words = f", {clause}" if clause else f": {diagnosis.clause}"
            hint = hint if clause else diagnosis.hint
            subject = "controller" if self.are_controllers else f"broker {node} advertises"
            sentences.append(f"{subject} {address}{words}")
        more = [f"and {len(sentences) - FEW} more"] if len(sentences) > FEW else []
        raise KctlError(
            f"no broker of {self.access.servers} can be used: {'; '.join(sentences[:FEW] + more)}", hint
        )

    def _ready(self, nodes: Sequence[int], seconds: float | None = None) -> tuple[Any, Any]:
        usual = self.access.timeout
        within = usual if seconds is None else seconds
        return self._manager.run(first_ready, self._net, self._manager, nodes, within, usual)  # type: ignore[no-any-return]

    # --- requests ---

    def version_of(self, request: Any, node: int | None = None) -> int | None:
        """The version of a request (its class) that the cluster and the library share; None if the cluster lacks it."""
        try:
            return int(self._manager.broker_version_data.api_version(request))
        except Exception:
            return None

    @property
    def broker_version(self) -> tuple[int, ...]:
        """The broker's release, derived from the versions of its requests."""
        return tuple(self._manager.broker_version_data.broker_version)

    def send(self, request: Any, node: int | None = None, *, timeout: float | None = None) -> Any:
        """The answer of one broker, by default of the one used for reads. Raises NoAnswer, TooOld."""
        (answer,) = self.send_all([(self.node if node is None else node, request)], timeout=timeout)
        if isinstance(answer, KctlError):
            raise answer
        return answer

    def send_to(self, host: str, port: int, request: Any, *, timeout: float | None = None) -> Any:
        """The answer of a node that is not a broker. Raises NoAnswer, TooOld."""
        node: Any = f"{host}:{port}"
        known = MetadataResponse.MetadataResponseBroker(node_id=node, host=host, port=port, rack=None)
        self._manager.cluster._coordinator_brokers[node] = known
        return self.send(request, node, timeout=timeout)

    def read(self, request: Any) -> Any:
        """As `send`, for a request that changes nothing: if the broker is gone, it goes to another one."""
        try:
            return self.send(request)
        except NoAnswer:
            self._change_node()
            return self.send(_again(request))

    def read_from(self, node: int, seconds: float | None = None) -> bool:
        """Read from another broker from now on, if it accepts a connection in time; returns whether it did."""
        if node == self.node or node not in self.nodes:
            return False
        ready, _ = self._ready([node], seconds)
        if ready is not None:
            self.node = node
        return ready is not None

    def _change_node(self) -> None:
        node, _ = self._ready([node for node in self.nodes if node != self.node])
        if node is not None:
            self.node = int(node)

    def send_all(
        self, requests: Sequence[tuple[int, Any]], *, timeout: float | None = None
    ) -> list[Any | KctlError]:
        """The answers in order, all requested at once; a `KctlError` in place of a missing one."""
        milliseconds = int((self.access.timeout if timeout is None else timeout) * 1000)

        async def send_and_wait() -> list[Any]:
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
                    remaining = max(1, (end - time.monotonic()) * 1000)
                    answers.append(await self._manager.wait_for(future, remaining))
                except Exception as error:
                    answers.append(error)
            return answers

        answers = self._manager.run(send_and_wait)
        return [
            self._failure(answer, node, request) if isinstance(answer, Exception) else answer
            for answer, (node, request) in zip(answers, requests, strict=True)
        ]

    async def _unthrottled(self, node: int, end: float) -> None:
        """Wait for the throttle time of a broker: until then the library refuses to send."""
        while (connection := self._manager._conns.get(node)) is not None and connection.paused:
            if time.monotonic() > end:
                reason = f"it asks for a pause of more than {LONGEST_PAUSE:.0f} s: a quota of this client is used up"
                raise NoAnswer(f"broker {node} is not asked, since {reason}", node)
            await self._net.sleep(POLL_INTERVAL)

    def _failure(self, error: Exception, node: int, request: Any) -> KctlError:
        if isinstance(error, KctlError):
            return error
        name = type(error).__name__
        known = (kind.__name__ for kind in type(request).__mro__ if kind.__module__.startswith("kafka."))
        request_name = next(known, type(request).__name__).removesuffix("Request")
        if name == "IncompatibleBrokerVersion":
            return TooOld(f"broker {node} is too old: {needs(request_name)}")
        if name == "UnknownBrokerIdError":
            return NoAnswer(f"broker {node} is not in the cluster now", node)
        # The library does not reconnect at once, and then no longer reports the cause.
        if (cause := cause_of(error)) == JUST_FAILED:
            cause = self._causes.get(node, JUST_FAILED)
        if cause == NOT_LET_IN:
            cause = refusal_of(self.access.sasl_mechanism, f"{type(error).__name__}: {error}", self._tokens)
        self._causes[node] = cause
        if (
            cause == NO_ANSWER
            and request_name in FORWARDED
            and self.version_of(DescribeQuorumRequest) is not None
        ):
            text = f"the controller does not answer {request_name} through broker {node}: {cause}"
            return NoAnswer(text, hint=FORWARDED_HINT)
        return NoAnswer(f"broker {node} does not answer {request_name}: {cause}", node)

    def warn(self, text: str) -> None:
        """Pass a warning on, each text once."""
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)

    def pause(self, seconds: float) -> None:
        """Wait; tests replace this."""
        time.sleep(seconds)

    def close(self) -> None:
        """End all connections and the library's thread."""
        manager = getattr(self, "_manager", None)
        if manager is not None:
            manager.close()
        self._net.stop(timeout_ms=2000)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Controllers(Wire):
    """Connections to KRaft controllers, which do not answer Metadata: `nodes` are those in the access's servers.

    Nodes are the library's names for them, in the given order.
    """

    are_controllers = True

    def _bootstrap(self, log: ConnectionLog) -> None:
        """No Metadata request is sent."""

    @property
    def nodes(self) -> list[Any]:
        """The controllers."""
        return list(self._manager.cluster._bootstrap_brokers)


def _again(request: Any) -> Any:
    """The request without the version negotiated with another broker."""
    request._version = None  # the property takes only numbers
    return request


def error_name(code: int) -> str:
    """Kafka's name of an error code, `NOT_CONTROLLER`."""
    error = kafka_errors.for_code(code)
    return str(getattr(error, "message", None) or error.__name__)


def parse_id(text: str) -> uuid.UUID:
    """The id of a topic or directory from Kafka's form."""
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=="))
