"""Requests to the brokers of a cluster: to chosen ones, with bounded waits, and the cause where no answer comes.

    with Wire(access) as wire:
        answer = wire.send(MetadataRequest(topics=None))                # to the broker used for reads
        answers = wire.send_all([(1, request), (2, request)])           # at once; a failure takes the place of an answer

Of several brokers the first that lets the client in is used; the next one is tried if one says nothing for a
moment, since a host that accepts connections and never answers would otherwise use up the time for all
of them. Nothing here retries a write.
"""

import contextlib
import random
import threading
import time
import uuid
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from kctl.cluster.requests import REQUESTS, needs
from kctl.errors import KctlError
from kctl.wire.access import SERVER_ROOM as SERVER_ROOM
from kctl.wire.access import Access as Access
from kctl.wire.access import access_from as access_from
from kctl.wire.access import address_of, server_list
from kctl.wire.causes import (
    FINAL,
    NO_ANSWER,
    NO_BROKERS,
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
    text_of,
)
from kctl.wire.logins import check_login, exposed_secrets, principal_of, refusal_of, tokens_of
from kctl.wire.protocol.connection import Address, Call, Connection, NotKnown, exchange
from kctl.wire.protocol.connections import HEAD_START, Connections
from kctl.wire.protocol.error_names import error_name as error_name
from kctl.wire.protocol.messages import DescribeQuorumRequest, MetadataRequest
from kctl.wire.protocol.release import release_of
from kctl.wire.protocol.sasl import SaslAuthenticationFailed, mechanism_name

DIAGNOSIS = 2.0  # seconds to find out what a listener is
CONNECT = 3.0  # seconds for a host to accept a connection
RETRY = 0.1  # seconds before servers are tried again; twice as many each time
ENOUGH_REFUSALS = 2

ADVERTISED = {
    REFUSED: "which refuses connections",
    NO_ANSWER: "which does not answer",
    UNKNOWN_HOST: "a host name that is not known here",
    NO_ROUTE: "to which there is no route",
}
CORRECT_ADVERTISED = "name a listener whose advertised address can be reached from here, or correct advertised.listeners of the broker"
FEW = 3
FORWARDED_HINT = (
    "check that both run: a broker waits for a controller that hangs for up to 30 s (controller.socket.timeout.ms), "
    "even when another has been elected; then ask again"
)
LONGEST_PAUSE = 60.0  # seconds of throttling that a broker may ask for
WORTH_A_WARNING = 0.5


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


class UnknownNode(Exception):
    """The cluster has no broker with that id."""


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
        # Whether a KRaft controller has answered; else the epochs of features that showed that there is none.
        self.has_seen_controller = False
        self.without_controller: dict[int, int] | None = None
        # Of tokens that were created over this connection, by id: secrets, for the one who asked.
        self.token_hmacs: dict[str, bytes] = {}
        self._servers = server_list(access.servers)
        hosts = [address_of(server)[0] for server in self._servers]
        check_login(access, hosts)
        for text in exposed_secrets(access, hosts):
            self.warn(text)
        self._tokens = tokens_of(access, hosts)
        self._tls = None
        if access.is_encrypted:
            from kctl.tls.files import client_context

            self._tls = client_context(access)
        self.node: Any = None
        self._versions: dict[int, tuple[int, int]] = {}
        self._brokers: dict[Any, Address] = {}
        self._is_stale = False  # whether a broker was not where the table has it
        self._lock = threading.RLock()
        refuse_unusable(self._servers, *self._within(CONNECT, accepts))
        self._connections = Connections(access, self._tls, self._tokens)
        try:
            self._bootstrap()
            self.node = self._first_node()
        except BaseException:
            self.close()
            raise

    def _no_cluster(self, failures: Sequence[BaseException]) -> KctlError:
        access = self.access
        texts = [text_of(failure) for failure in failures]
        cause = cause_among(texts, with_sasl=bool(access.sasl_mechanism))
        if cause == NOT_LET_IN:
            refused = [one for one in failures if isinstance(one, SaslAuthenticationFailed)]
            cause = refusal_of(access.sasl_mechanism, str(refused[-1]) if refused else "", self._tokens)
        if (
            cause_in(texts[-1]) == NO_ANSWER and cause in UNREACHABLE
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

    def _bootstrap(self) -> None:
        """Read the table of brokers. Raises KctlError where the listeners are not what they are taken for."""
        end, pause = time.monotonic() + self.access.timeout, RETRY
        self._connections.addresses |= {server: address_of(server) for server in self._servers}
        failures, refusals = list[Exception](), 0
        while True:
            names = random.sample(self._servers, len(self._servers))
            server, failed = self._connections.first(names, max(0.01, end - time.monotonic()))
            if server is not None:
                try:
                    return self._learn_brokers(server, end)
                except (OSError, ValueError, NotKnown) as error:
                    failed.append(error)
            for failure in failed:
                if isinstance(failure, KctlError):
                    raise failure
            failures += failed
            refuse_unusable(self._servers, *self._within(DIAGNOSIS, self._diagnosis), only_sure=True)
            causes = {cause_in(text_of(failure)) for failure in failed}
            refusals += not causes <= UNREACHABLE
            if (causes & FINAL and refusals >= ENOUGH_REFUSALS) or time.monotonic() >= end:
                raise self._no_cluster(failures) from None
            self.pause(min(pause, max(0.0, end - time.monotonic())))
            pause = min(2 * pause, 1.0)

    def _learn_brokers(self, server: str, end: float) -> None:
        """The table of brokers from one of the servers, whose connection stays that of the broker at its address."""
        connection = self._connections.present(server)
        if connection is None:
            raise ConnectionResetError("socket disconnected")
        if MetadataRequest.MESSAGE.key not in connection.versions:
            raise NotKnown("controller (no metadata support)")
        self._versions = connection.versions
        table = connection.ask(MetadataRequest(topics=[]), end)
        self._connections.forget(server)
        if not table.brokers:  # see `read`; other servers may name some
            connection.close()
            raise ConnectionError(NO_BROKERS)
        self._take(table)
        for node, address in self._brokers.items():
            if address == self._connections.addresses[server]:
                self._connections.adopt(node, connection)
                break
        else:
            connection.close()
        self._connections.close_others(self._brokers)

    def _take(self, metadata: Any) -> None:
        with self._lock:
            self._brokers = {int(one.node_id): (str(one.host), int(one.port)) for one in metadata.brokers}
            self._connections.place(self._brokers)
            self._is_stale = False

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
            sasl_mechanism=mechanism_name(self.access),
            is_controller=self.are_controllers,
        )
        return lambda host, port: diagnose(host, port, expected, seconds)

    @property
    def principal(self) -> str:
        """The principal that brokers make of this connection by default; in words where it is not known."""
        return principal_of(self.access, self._tokens)

    # --- brokers ---

    @property
    def nodes(self) -> list[Any]:
        """Ids of the brokers in the cluster's metadata, ascending."""
        return sorted(self._brokers)

    def address_of(self, node: int) -> tuple[str, int] | None:
        """Where a broker listens by the cluster's metadata; None for one that is not there."""
        return self._brokers.get(node)

    def refresh_nodes(self) -> None:
        """Read the table of brokers again, which shows brokers that came back."""
        self._is_stale = False  # so that the request below does not ask for it
        try:
            self._take(self.read(MetadataRequest(topics=[])))
        except NoAnswer as error:
            raise NoAnswer(f"{self.location}: {error.message}") from None

    def _first_node(self) -> Any:
        """The broker to read from for the whole run: the first that accepts a connection."""
        nodes = self.nodes
        if not nodes:
            raise self._no_cluster([BrokerError(NO_BROKERS)])
        soon = min(CONNECT, self.access.timeout)
        open_first = sorted(nodes, key=lambda node: self._connections.present(node) is None)
        node, failures = self._connections.first(open_first, soon)
        if node is None:
            self._refuse_advertised(nodes)
            node, failures = self._connections.first(nodes, max(0.01, self.access.timeout - soon))
        if node is None:
            raise self._no_cluster(failures)
        return node

    def _refuse_advertised(self, nodes: Sequence[Any]) -> None:
        """Raise KctlError if no address in the table of brokers can be used, with the reason of each."""
        addresses = {node: "{}:{}".format(*self._connections.addresses[node]) for node in nodes}
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

    # --- requests ---

    def version_of(self, request: Any) -> int | None:
        """The version of a request (its class) that cluster and kctl share; None if the cluster lacks it."""
        first, last = self._versions_of_node.get(request.MESSAGE.key, (0, -1))
        version = min(last, request.MESSAGE.versions.last)
        return version if version >= first else None

    @property
    def _versions_of_node(self) -> dict[int, tuple[int, int]]:
        """The versions that the broker used for reads knows: in a cluster that is being upgraded others know others."""
        return self._connections.versions.get(self.node, self._versions)

    @property
    def broker_version(self) -> tuple[int, ...]:
        """The broker's release, derived from the versions of its requests."""
        return release_of(self._versions_of_node)

    def send(self, request: Any, node: Any = None, *, timeout: float | None = None) -> Any:
        """The answer of one broker, by default of the one used for reads. Raises NoAnswer, TooOld."""
        (answer,) = self.send_all([(self.node if node is None else node, request)], timeout=timeout)
        if isinstance(answer, KctlError):
            raise answer
        return answer

    def send_to(self, host: str, port: int, request: Any, *, timeout: float | None = None) -> Any:
        """The answer of a node that is not a broker. Raises NoAnswer, TooOld."""
        node = f"{host}:{port}"
        self._connections.addresses[node] = host, port
        return self.send(request, node, timeout=timeout)

    def read(self, request: Any) -> Any:
        """As `send`, for a request that changes nothing: if the broker is gone or knows nothing, it goes to another one.

        With ZooKeeper a broker that has just started names no brokers and no topics until the controller has told it.
        """
        with contextlib.suppress(NoAnswer):
            answer = self.send(request)
            if getattr(answer, "brokers", True):
                return answer
        others = [node for node in self.nodes if node != self.node]
        with self._lock:  # another thread may be using a connection
            node, _ = self._connections.first(others, self.access.timeout)
        if node is not None:
            self.node = node
        return self.send(request)

    def read_from(self, node: int, seconds: float | None = None) -> bool:
        """Read from another broker from now on, if it accepts a connection in time; returns whether it did."""
        if node == self.node or node not in self.nodes:
            return False
        with self._lock:
            ready, _ = self._connections.first([node], self.access.timeout if seconds is None else seconds)
        if ready is not None:
            self.node = node
        return ready is not None

    def send_all(
        self, requests: Sequence[tuple[Any, Any]], *, timeout: float | None = None
    ) -> list[Any | KctlError]:
        """The answers in order, all requested at once; a `KctlError` in place of a missing one."""
        seconds = self.access.timeout if timeout is None else timeout
        outcomes: list[Call | Exception] = [UnknownNode()] * len(requests)
        with self._lock:
            self._connections.settle({node for node, _ in requests})
            self._refresh_where_stale([node for node, _ in requests], seconds)
            waited = {node for node, _ in requests if node in self._connections.addresses}
            end, soon = time.monotonic() + seconds, min(HEAD_START, seconds)
            while waited:  # who is slow to let the client in does not delay requests to the others
                opened = self._connections.opened(waited, soon)
                soon = max(0.0, end - time.monotonic())
                decided = {
                    node: one or TimeoutError(NO_ANSWER)
                    for node, one in opened.items()
                    if one is not None or not soon
                }
                asked = {at: one for at, one in enumerate(requests) if one[0] in decided}
                for at, call in self._asked(asked, decided, seconds).items():
                    outcomes[at] = call
                waited -= decided.keys()
        errors = [one.error if isinstance(one, Call) else one for one in outcomes]
        self._is_stale |= any(isinstance(error, OSError) for error in errors)
        return [
            one.answer if isinstance(one, Call) and error is None else self._failure(error, node, request)
            for one, error, (node, request) in zip(outcomes, errors, requests, strict=True)
        ]

    def _asked(
        self,
        requests: Mapping[int, tuple[Any, Any]],
        nodes: Mapping[Any, Connection | Exception],
        seconds: float,
    ) -> dict[int, Call | Exception]:
        """The calls of requests by number, once all have ended, or why one was not made."""
        calls, patience = dict[int, Call | Exception](), time.monotonic() + LONGEST_PAUSE
        used = set[Connection]()
        for at, (node, request) in requests.items():
            connection = nodes[node]
            if isinstance(connection, Exception):
                calls[at] = connection
                continue
            try:
                self._await_quota(connection, node, patience)
                calls[at] = connection.call(request)
                used.add(connection)
            except (NotKnown, NoAnswer) as error:
                calls[at] = error
            except ValueError as error:
                calls[at] = KctlError(
                    f"{request.NAME} to broker {node} was not sent: {error}",
                    "correct the value, or split the change into several",
                )
        exchange(used, time.monotonic() + seconds, self._connections.ended.is_set)
        return calls

    def _await_quota(self, connection: Connection, node: Any, end: float) -> None:
        """Wait while a broker asks for a pause: it would delay the answers to everything that is sent before."""
        if connection.paused_until > end:
            reason = (
                f"it asks for a pause of more than {LONGEST_PAUSE:.0f} s: a quota of this client is used up"
            )
            raise NoAnswer(f"broker {node} is not asked, since {reason}", node)
        if connection.paused_until - time.monotonic() >= WORTH_A_WARNING:
            client = self.access.client_id or "kctl"
            self.warn(
                f"broker {node} holds back requests of this run: a quota of {self.principal} or of client id {client} "
                "is used up; kctl waits as the broker asks"
            )
        while (seconds := connection.paused_until - time.monotonic()) > 0:
            if self._connections.ended.wait(seconds):
                break

    def _refresh_where_stale(self, nodes: Sequence[Any], seconds: float) -> None:
        """Read the table of brokers again where one was not at its place, or is not in it, if a connection is open."""
        is_known = all(node in self._connections.addresses for node in nodes)
        if self.are_controllers or (is_known and not self._is_stale):
            return
        self._is_stale = False
        end = time.monotonic() + min(CONNECT, seconds)
        for node in self.nodes:
            connection = self._connections.present(node)
            if connection is None or connection.paused_until > (now := time.monotonic()) or now >= end:
                continue
            try:
                table = connection.ask(MetadataRequest(topics=[]), end)
            except (OSError, ValueError):
                continue
            if table.brokers:  # see `read`
                return self._take(table)

    def _failure(self, error: Exception | None, node: Any, request: Any) -> KctlError:
        name = request.NAME
        if isinstance(error, KctlError):
            return error
        if isinstance(error, NotKnown):
            return TooOld(f"broker {node} is too old: {needs(name)}")
        if error is None or isinstance(error, UnknownNode):
            return NoAnswer(f"broker {node} is not in the cluster now", node)
        cause = cause_of(error)
        if cause == NOT_LET_IN:
            said = str(error) if isinstance(error, SaslAuthenticationFailed) else ""
            cause = refusal_of(self.access.sasl_mechanism, said, self._tokens)
        is_forwarded = name in REQUESTS and REQUESTS[name].is_forwarded
        if cause == NO_ANSWER and is_forwarded and self.version_of(DescribeQuorumRequest) is not None:
            text = f"the controller does not answer {name} through broker {node}: {cause}"
            return NoAnswer(text, hint=FORWARDED_HINT)
        return NoAnswer(f"broker {node} does not answer {name}: {cause}", node)

    def warn(self, text: str) -> None:
        """Pass a warning on, each text once."""
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)

    def pause(self, seconds: float) -> None:
        """Wait; tests replace this."""
        time.sleep(seconds)

    def close(self) -> None:
        """End all connections."""
        self._connections.close()  # which wakes another thread that waits
        if self._lock.acquire(timeout=1):
            self._connections.close_others(())
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Controllers(Wire):
    """Connections to KRaft controllers, which do not answer Metadata: `nodes` are the servers of the access, in its order."""

    are_controllers = True

    def _bootstrap(self) -> None:
        """No Metadata request is sent."""
        self._connections.addresses |= {server: address_of(server) for server in self._servers}

    @property
    def nodes(self) -> list[Any]:
        """The controllers."""
        return list(self._servers)


def parse_id(text: str) -> uuid.UUID:
    """The id of a topic or directory from Kafka's form."""
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=="))
