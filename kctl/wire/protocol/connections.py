"""Connections to nodes, opened when they are needed, several at the same time.

Each is opened in a thread, since nothing else bounds the time in which names are resolved; a node that is slow to let
the client in does not delay the others, and a connection that comes late is there for the next request.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kctl.wire.access import Access
from kctl.wire.causes import NO_ANSWER
from kctl.wire.protocol.connection import Address, Connection, Ended, open_connection
from kctl.wire.protocol.sasl import Tokens

if TYPE_CHECKING:
    import ssl

HEAD_START = 0.5  # seconds before the next node is tried as well

Node = Any  # the id of a broker, or the address of another node
Open = Callable[[Address, float, Callable[[socket.socket], None]], Connection]


class Opening(threading.Thread):
    """An attempt to open a connection; `changed` is notified at its end."""

    def __init__(self, open_: Open, address: Address, seconds: float, changed: threading.Condition) -> None:
        super().__init__(daemon=True)
        self._open, self._address, self._end = open_, address, time.monotonic() + seconds
        self._changed = changed
        self._sock: socket.socket | None = None
        self.is_given_up = False
        self.is_done = False
        self.connection: Connection | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        """Open it."""
        try:
            connection = self._open(self._address, self._end, self._began)
        except Exception as error:
            connection, self.error = None, error
        with self._changed:
            self.connection, self.is_done = connection, True
            if self.is_given_up and connection is not None:
                connection.close()
            self._changed.notify_all()

    def _began(self, sock: socket.socket) -> None:
        self._sock = sock
        if self.is_given_up:
            sock.close()

    def give_up(self) -> None:
        """End it from another thread."""
        self.is_given_up = True
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)


class Connections:
    """The connections of a client, by node."""

    def __init__(self, access: Access, tls: ssl.SSLContext | None, tokens: Tokens | None) -> None:
        self.addresses: dict[Node, Address] = {}
        self.versions: dict[Node, dict[int, tuple[int, int]]] = {}
        """By node that there was a connection to: the versions of requests that it knows."""
        self._open: Open = lambda address, end, began: open_connection(
            address, access, tls, tokens, end, began
        )
        self._usual = access.timeout
        self._connections: dict[Node, Connection] = {}
        self._openings: dict[Node, Opening] = {}
        self._changed = threading.Condition()
        self.ended = threading.Event()

    def present(self, node: Node) -> Connection | None:
        """The connection to a node, where there is one that can be used."""
        found = self._connections.get(node)
        if found is None or found.is_usable:
            return found
        found.close()
        del self._connections[node]
        return None

    def adopt(self, node: Node, connection: Connection) -> None:
        """Use a connection for a node, also one that was opened for another name of it."""
        self._connections[node] = connection
        self.versions[node] = connection.versions

    def place(self, brokers: Mapping[int, Address]) -> None:
        """Note where brokers are now; what leads to the former address of one that moved or went is closed."""
        for node, address in list(self.addresses.items()):
            if isinstance(node, int) and brokers.get(node) != address:
                del self.addresses[node]
                if (connection := self._connections.pop(node, None)) is not None:
                    connection.close()
                if (opening := self._openings.pop(node, None)) is not None:
                    opening.give_up()
        self.addresses |= brokers

    def settle(self, nodes: Iterable[Node]) -> None:
        """Take up what came of attempts that nobody waited for; an error of that time says nothing about now."""
        with self._changed:
            for node in nodes:
                opening = self._openings.get(node)
                if opening is not None and opening.is_done:
                    del self._openings[node]
                    if opening.connection is not None:
                        self.adopt(node, opening.connection)

    def forget(self, node: Node) -> Connection | None:
        """Take a connection out, without closing it."""
        return self._connections.pop(node, None)

    def opened(self, nodes: Iterable[Node], seconds: float) -> dict[Node, Connection | Exception | None]:
        """The connections to nodes that are there within a time, or why there is none; None for those that take longer."""
        found: dict[Node, Connection | Exception | None] = {}
        for node in nodes:
            if (there := self.present(node)) is None:
                self._begin(node)
            found[node] = there
        end = time.monotonic() + seconds
        while True:
            missing = [node for node, one in found.items() if one is None]
            with self._changed:
                for node in missing:
                    found[node] = self._result(node)
                missing = [node for node in missing if found[node] is None]
                if not missing or time.monotonic() >= end:
                    return found
                self._changed.wait(max(0.0, end - time.monotonic()))

    def first(self, nodes: Sequence[Node], seconds: float) -> tuple[Node, list[Exception]]:
        """The first node with a connection, None if there is none in time; and the errors of the others.

        The next one is tried as well if one says nothing for a moment. A connection that is not ready by then goes on
        being set up: other requests may need it.
        """
        end, next_at = time.monotonic() + seconds, 0.0
        untried, tried = list(nodes), list[Node]()
        failures = list[Exception]()
        self.settle(untried)
        while True:
            now = time.monotonic()
            if untried and (not tried or now >= next_at):
                next_at = now + HEAD_START
                tried.append(untried.pop(0))
                if self.present(tried[-1]) is None:
                    self._begin(tried[-1])
            with self._changed:
                for node in list(tried):
                    result = self._connections.get(node) or self._result(node)
                    if isinstance(result, Connection):
                        return node, failures
                    if result is not None:
                        failures.append(result)
                        tried.remove(node)
                if now >= end and tried:
                    failures.append(TimeoutError(NO_ANSWER))
                if now >= end or not (untried or tried):
                    return None, failures
                if tried:
                    self._changed.wait(max(0.0, min(end, next_at if untried else end) - now))

    def _begin(self, node: Node) -> None:
        if node not in self._openings and not self.ended.is_set():
            self._openings[node] = Opening(self._open, self.addresses[node], self._usual, self._changed)
            self._openings[node].start()

    def _result(self, node: Node) -> Connection | Exception | None:
        """What has become of an attempt; None while it lasts."""
        opening = self._openings.get(node)
        if opening is None:
            return Ended() if self.ended.is_set() else self._connections.get(node)
        if not opening.is_done:
            return Ended() if self.ended.is_set() else None
        del self._openings[node]
        if opening.connection is None:
            return opening.error or Ended()
        self.adopt(node, opening.connection)
        return opening.connection

    def close_others(self, nodes: Collection[Node]) -> None:
        """Close connections and give attempts up, except those to some nodes."""
        for node in [node for node in self._connections if node not in nodes]:
            self._connections.pop(node).close()
        for node in [node for node in self._openings if node not in nodes]:
            self._openings.pop(node).give_up()

    def close(self) -> None:
        """End all connections; who waits for one gets Ended."""
        self.ended.set()
        for connection in list(self._connections.values()):
            connection.shut_down()
        with self._changed:
            for opening in self._openings.values():
                opening.give_up()
            self._changed.notify_all()
