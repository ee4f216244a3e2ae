"""Connections to nodes: requests and answers on sockets, pauses, ends, and several that are opened side by side."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from struct import pack, unpack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.errors import KctlError
from kctl.wire import adapter
from kctl.wire.access import LARGEST_ANSWER
from kctl.wire.adapter import Access, NoAnswer, Wire
from kctl.wire.protocol import connection as protocol
from kctl.wire.protocol import connections
from kctl.wire.protocol.connection import Connection, NotKnown, exchange, open_connection
from kctl.wire.protocol.connections import Connections
from kctl.wire.protocol.messages import DescribeQuorumRequest, MetadataRequest, MetadataResponse
from tests.kctl.wire.listeners import listener

NEVER = float("inf")


def framed(correlation: int, cluster: str, version: int = 9, pause: int = 0, brokers: int = 0) -> bytes:
    head = pack(">i", correlation) + b"\0" * (version >= 9)
    listed = [MetadataResponse.MetadataResponseBroker(node_id=1, host="h" * 1000, port=1)] * brokers
    answer = MetadataResponse(cluster_id=cluster, throttle_time_ms=pause, brokers=listed)
    data = head + answer.encoded(version)
    return pack(">i", len(data)) + data


@contextmanager
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    """A connection that knows Metadata, and the other end."""
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        connection = Connection(here, "kctl")
        connection.versions = {3: (0, 9)}
        yield connection, there


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.integers(0, 200), min_size=1, max_size=4),
    parts=st.lists(st.integers(1, 150_000), min_size=1, max_size=20),
)
def test_answers_are_received_whole_however_they_come(sizes: list[int], parts: list[int]) -> None:
    with pair() as (connection, there):
        calls = [connection.call(MetadataRequest(topics=None)) for _ in sizes]
        left = memoryview(b"".join(framed(at, "c", brokers=size) for at, size in enumerate(sizes, 1)))
        there.setblocking(False)
        turn = 0
        while left or connection.waiting:
            with suppress(BlockingIOError):
                left = left[there.send(left[: parts[turn % len(parts)]]) :] if left else left
            turn += 1
            connection.proceed()
        assert [len(call.answer.brokers) for call in calls] == sizes


def test_much_is_written_while_answers_are_read() -> None:
    """A node that waits for its answers to be read is not waited for in turn."""
    count, size = 40, 100
    with pair() as (connection, there):
        asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t" * 1000)] * size)
        calls = [connection.call(asked) for _ in range(count)]

        def serve() -> None:
            for number in range(1, count + 1):
                (length,) = unpack(">i", there.recv(4, socket.MSG_WAITALL))
                there.recv(length, socket.MSG_WAITALL)
                there.sendall(framed(number, "c", brokers=size))

        threading.Thread(target=serve, daemon=True).start()
        exchange([connection], time.monotonic() + 30)
        assert [len(call.answer.brokers) for call in calls] == [size] * count


def test_what_is_no_answer_ends_the_connection() -> None:
    for data in (
        pack(">i", 3) + bytes(3),
        pack(">i", -1),
        framed(7, "c"),
        pack(">i", 6) + pack(">i", 1) + b"\0\xff",
    ):
        with pair() as (connection, there):
            call = connection.call(MetadataRequest(topics=None))
            there.sendall(data)
            exchange([connection], time.monotonic() + 5)
            assert isinstance(call.error, ValueError) and not connection.is_usable


def test_who_closes_or_says_nothing_is_an_error_in_place_of_each_answer() -> None:
    with pair() as (connection, there):
        calls = [connection.call(MetadataRequest(topics=None)) for _ in range(2)]
        there.sendall(framed(1, "c"))
        there.shutdown(socket.SHUT_WR)
        exchange([connection], time.monotonic() + 5)
        assert calls[0].error is None and "disconnected" in str(calls[1].error)
    with pair() as (connection, _):
        call = connection.call(MetadataRequest(topics=None))
        exchange([connection], time.monotonic() + 0.01)
        assert isinstance(call.error, TimeoutError) and not connection.is_usable


def test_the_newest_version_that_both_know() -> None:
    with pair() as (connection, _):
        connection.versions = {3: (4, 12)}
        assert connection.version_for(MetadataRequest) == 12
        assert connection.version_for(MetadataRequest(max_version=7)) == 7
        for request in (
            MetadataRequest(max_version=3),
            MetadataRequest(min_version=13),
            DescribeQuorumRequest(),
        ):
            with pytest.raises(NotKnown):
                connection.version_for(request)


def test_a_connection_that_was_closed_or_whose_session_ends_is_not_used() -> None:
    with pair() as (connection, there):
        assert connection.is_usable
        connection.session_ends = time.monotonic()
        assert not connection.is_usable
        connection.session_ends = NEVER
        there.close()
        assert not connection.is_usable


# --- several nodes --------------------------------------------------------------------------------------

Node = tuple[float, Exception | None]
SILENT: Node = (NEVER, None)
REFUSED: Node = (0.0, ConnectionError("refused"))
READY: Node = (0.0, None)


class Nodes:
    """Nodes that are ready, fail (an exception) or say nothing, after so many seconds."""

    def __init__(self, nodes: dict[int, Node], monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes, self.asked, self.ends = nodes, list[int](), list[float]()
        self.newest = dict[int, int]()  # version of Metadata, where it is not 9
        self.given_up = threading.Event()
        self.others = list[socket.socket]()
        monkeypatch.setattr(connections, "open_connection", self.open)

    def open(self, address: tuple[str, int], *_: Any) -> Connection:
        node = address[1]
        self.asked.append(node)
        end = _[3]
        self.ends.append(end - time.monotonic())
        after, error = self.nodes[node]
        if self.given_up.wait(min(after, max(0.0, end - time.monotonic()))) or after == NEVER:
            raise TimeoutError("no answer in time")
        if error is not None:
            raise error
        here, there = socket.socketpair()
        here.setblocking(False)
        self.others.append(there)
        connection = Connection(here, "kctl")
        connection.versions = {3: (0, self.newest.get(node, 9))}
        return connection

    def connected(self, seconds: float = 10) -> Connections:
        found = Connections(Access(servers="h", timeout=seconds), None, None)
        found.addresses = {node: ("h", node) for node in self.nodes}
        return found


@pytest.mark.parametrize(
    ("nodes", "first", "asked", "head_start", "seconds"),
    [
        ({1: READY, 2: READY}, 1, [1], 30, 60),
        ({1: SILENT, 2: READY, 3: READY}, 2, [1, 2], 1, 60),
        ({1: REFUSED, 2: REFUSED, 3: READY}, 3, [1, 2, 3], 30, 60),
        ({1: SILENT, 2: SILENT, 3: SILENT}, None, [1, 2, 3], 0.02, 1),
        ({1: REFUSED, 2: REFUSED}, None, [1, 2], 30, 60),
    ],
)
def test_the_first_that_is_ready(
    monkeypatch: pytest.MonkeyPatch,
    nodes: dict[int, Node],
    first: int | None,
    asked: list[int],
    head_start: float,
    seconds: float,
) -> None:
    """The next is asked once the one before has refused, or has had its head start."""
    monkeypatch.setattr(connections, "HEAD_START", head_start)
    fake = Nodes(nodes, monkeypatch)
    found, failures = fake.connected().first(sorted(nodes), seconds)
    assert (found, fake.asked) == (first, asked)
    expected = ["refused"] * list(nodes.values()).count(REFUSED)
    expected += ["no answer in time"] * (first is None and SILENT in nodes.values())
    assert [str(one) for one in failures] == expected
    fake.given_up.set()


def wire_of(found: Connections, node: int = 1) -> Wire:
    wire = object.__new__(Wire)
    wire.access, wire.node, wire.location = Access(servers="h", timeout=10), node, "h"
    wire._connections, wire._lock, wire._is_stale, wire._tokens = found, threading.RLock(), False, None
    wire._brokers = {node: address for node, address in found.addresses.items() if isinstance(node, int)}
    wire._versions = {3: (0, 9)}
    return wire


def test_who_waits_a_moment_only_does_not_cut_the_connection_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A far broker needs longer for TLS and SASL; other requests go to it as well, and would fail."""
    fake = Nodes({1: READY, 2: (0.1, None)}, monkeypatch)
    wire = wire_of(fake.connected())
    assert not wire.read_from(2, 0.01) and wire.node == 1
    assert fake.ends[0] > 9
    assert wire.read_from(2) and wire.node == 2 and fake.asked == [2]


def test_another_broker_is_read_from_where_it_takes_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = wire_of(Nodes({1: READY, 2: READY, 3: REFUSED}, monkeypatch).connected())
    assert not wire.read_from(1) and not wire.read_from(3) and not wire.read_from(4) and wire.node == 1
    assert wire.read_from(2) and wire.node == 2


def serving(there: socket.socket, answers: Callable[[int], bytes]) -> None:
    def serve() -> None:
        with suppress(OSError):
            while len(size := there.recv(4, socket.MSG_WAITALL)) == 4:
                request = there.recv(unpack(">i", size)[0], socket.MSG_WAITALL)
                there.sendall(answers(unpack(">i", request[4:8])[0]))

    threading.Thread(target=serve, daemon=True).start()


def naming(fake: Nodes, monkeypatch: pytest.MonkeyPatch, names: dict[int, int]) -> None:
    """Each node's answer to Metadata names so many brokers, all of which are node 1."""

    def open_node(address: tuple[str, int], *how: Any) -> Connection:
        connection = Nodes.open(fake, address, *how)
        serving(fake.others[-1], lambda correlation: framed(correlation, "c", brokers=names[address[1]]))
        return connection

    monkeypatch.setattr(connections, "open_connection", open_node)


@pytest.mark.parametrize(("names", "reads_from"), [({1: 0, 2: 1}, 2), ({1: 1, 2: 0}, 1), ({1: 0, 2: 0}, 2)])
def test_a_broker_that_knows_none_yet_is_left_for_another(
    monkeypatch: pytest.MonkeyPatch, names: dict[int, int], reads_from: int
) -> None:
    """As it answers right after its start; it would show a cluster without brokers and topics."""
    fake = Nodes({1: READY, 2: READY}, monkeypatch)
    wire = wire_of(fake.connected())
    naming(fake, monkeypatch, names)
    wire._connections.opened([1, 2], 5)
    answer = wire.read(MetadataRequest(topics=None))
    assert (len(answer.brokers), wire.node) == (names[reads_from], reads_from)


def test_a_table_without_brokers_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Nodes({1: READY, 2: READY}, monkeypatch)
    wire = wire_of(fake.connected())
    naming(fake, monkeypatch, {1: 0, 2: 0})
    wire._connections.opened([1, 2], 5)
    wire._is_stale = True
    (answer,) = wire.send_all([(2, MetadataRequest(topics=None))])
    assert not isinstance(answer, KctlError) and wire.nodes == [1, 2]


@pytest.mark.parametrize("names", [{1: 0, 2: 1}, {1: 0, 2: 0}])
def test_of_the_servers_one_that_knows_brokers_is_believed(
    monkeypatch: pytest.MonkeyPatch, names: dict[int, int]
) -> None:
    fake = Nodes({1: READY, 2: READY}, monkeypatch)
    naming(fake, monkeypatch, names)
    monkeypatch.setattr(adapter, "refuse_unusable", lambda *how, **also: None)
    monkeypatch.setattr(Wire, "_first_node", lambda wire: min(wire.nodes))
    orders = cycle([["h:1", "h:2"], ["h:2", "h:1"]])
    monkeypatch.setattr(adapter.random, "sample", lambda servers, count: next(orders))
    access = Access(servers="h:1,h:2", timeout=5 if any(names.values()) else 0.3)
    if any(names.values()):
        with Wire(access) as wire:
            assert wire.nodes == [1]
    else:
        with pytest.raises(KctlError, match="h:1,h:2 can be used: the cluster reports no broker"):
            Wire(access)


def test_a_slow_broker_does_not_delay_requests_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "HEAD_START", 0.01)
    fake = Nodes({1: READY, 2: SILENT}, monkeypatch)
    wire = wire_of(fake.connected(1))
    wire._connections.opened([1], 1)
    asked_at = list[float]()

    def answers(correlation: int) -> bytes:
        asked_at.append(time.monotonic())
        return framed(correlation, "c")

    serving(fake.others[0], answers)
    began = time.monotonic()
    one, other = wire.send_all(
        [(1, MetadataRequest(topics=None)), (2, MetadataRequest(topics=None))], timeout=1
    )
    assert one.cluster_id == "c" and asked_at[0] - began < 0.8
    assert (
        isinstance(other, NoAnswer)
        and other.message == "broker 2 does not answer Metadata: no answer in time"
    )
    fake.given_up.set()


def test_a_broker_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = wire_of(Nodes({1: READY}, monkeypatch).connected())
    (found,) = wire.send_all([(7, MetadataRequest(topics=None))])
    assert (
        isinstance(found, NoAnswer)
        and found.message == "broker 7 is not in the cluster now"
        and found.node == 7
    )


def test_what_came_of_an_attempt_that_nobody_waited_for_decides_nothing_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither its error, nor its connection where the node has closed that since."""
    fake = Nodes({1: READY, 2: (0.02, ConnectionError("refused")), 3: (0.02, None)}, monkeypatch)
    wire = wire_of(fake.connected())
    assert not wire.read_from(2, 0.001) and not wire.read_from(3, 0.001)
    while not all(one.is_done for one in wire._connections._openings.values()):
        time.sleep(0.01)
    fake.others.pop().close()
    fake.nodes |= {2: READY, 3: READY}
    found = wire._connections
    found.settle([2, 3])
    opened = found.opened([2, 3], 5)
    assert all(isinstance(one, Connection) and one.is_usable for one in opened.values())
    assert sorted(fake.asked) == [2, 2, 3, 3]


def test_a_broker_that_moved_or_went_is_not_asked_at_its_former_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = Nodes({1: READY, 2: READY, 3: READY}, monkeypatch)
    found = fake.connected()
    found.opened([1, 2, 3], 5)
    found.addresses["h:9"] = ("h", 9)
    found.place({1: ("h", 1), 3: ("h", 2)})
    assert found.addresses == {1: ("h", 1), 3: ("h", 2), "h:9": ("h", 9)}
    assert [found.present(node) is not None for node in (1, 2, 3)] == [True, False, False]
    (gone,) = wire_of(found).send_all([(2, MetadataRequest(topics=None))])
    assert gone.message == "broker 2 is not in the cluster now"


def test_versions_are_those_of_the_broker_that_is_read_from(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Nodes({1: READY, 2: READY}, monkeypatch)
    fake.newest[2] = 5
    wire = wire_of(fake.connected())
    wire._connections.opened([1, 2], 5)
    assert wire.version_of(MetadataRequest) == 9
    assert wire.read_from(2) and wire.version_of(MetadataRequest) == 5


def test_brokers_that_hang_are_asked_for_their_table_within_the_time_of_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = Nodes(dict.fromkeys(range(1, 7), READY), monkeypatch)
    wire = wire_of(fake.connected())
    wire._connections.opened(fake.nodes, 5)
    wire._is_stale = True
    asked = list[Connection]()

    def hang(self: Connection, *_: Any) -> None:
        asked.append(self)
        time.sleep(0.1)
        raise TimeoutError("no answer in time")

    monkeypatch.setattr(Connection, "ask", hang)
    wire._refresh_where_stale([1], 0.25)
    assert len(asked) <= 3


def test_what_cannot_be_sent_is_said_and_the_rest_is_sent(paused: Wire) -> None:
    long = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t" * 40_000)])
    refused, answer = paused.send_all([(1, long), (1, MetadataRequest(topics=None))])
    assert refused.message == (
        "Metadata to broker 1 was not sent: name has 40,000 bytes, and a text has at most 32,767"
    )
    assert answer.cluster_id == "c"
    longest = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t" * 32_767)])
    assert paused.send(longest).cluster_id == "c"


USER = Access(servers="h", sasl_mechanism="PLAIN", sasl_username="u", sasl_password="p")


def test_a_session_is_left_before_it_ends_and_answers_may_be_large_from_then_on() -> None:
    with listener(mechanisms=("PLAIN",), lifetime=100_000) as port:
        began = time.monotonic()
        connection = open_connection(("127.0.0.1", port), USER, None, None, began + 30)
        assert 85 <= connection.session_ends - began <= 85 + (time.monotonic() - began)
        assert connection.largest_answer == LARGEST_ANSWER
        connection.close()


def test_a_login_that_is_refused_is_not_tried_until_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker may lock the user out."""
    logins = list[int]()
    log_in = protocol._log_in
    monkeypatch.setattr(protocol, "_log_in", lambda *how: (logins.append(1), log_in(*how)))
    with listener(mechanisms=("PLAIN",), refuses="no") as port:
        access = USER._replace(servers=f"127.0.0.1:{port}", timeout=60)
        with pytest.raises(KctlError, match="the login is refused"):
            Wire(access)
    assert len(logins) == 2


def test_little_is_allocated_for_who_is_no_broker() -> None:
    """A listener with TLS answers clear text with an alert, whose first bytes are a size of 336 MiB."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve = threading.Thread(
            target=lambda: server.accept()[0].sendall(b"\x15\3\3\0\2\2\x50"), daemon=True
        )
        serve.start()
        with pytest.raises(ValueError, match="an answer of 352518912 bytes"):
            open_connection(server.getsockname(), Access(servers="h"), None, None, time.monotonic() + 5)


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """A client of broker 1, which answers; its connection is there."""
    fake = Nodes({1: READY}, monkeypatch)
    wire = wire_of(fake.connected())
    wire._connections.opened([1], 1)
    serving(fake.others[0], lambda correlation: framed(correlation, "c", pause=50))
    return wire


def test_a_pause_is_waited_for(paused: Wire) -> None:
    request = MetadataRequest(topics=None)
    assert paused.send(request).cluster_id == "c"
    began = time.monotonic()
    assert paused.send(request).cluster_id == "c" and time.monotonic() - began >= 0.04


def test_a_pause_that_is_felt_is_said_once(paused: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    paused._warn, paused._warned = said.append, set()
    for _ in range(2):
        paused.send(MetadataRequest(topics=None))
    assert said == []  # of 50 ms
    monkeypatch.setattr(adapter, "WORTH_A_WARNING", 0.01)
    for _ in range(3):
        paused.send(MetadataRequest(topics=None))
    assert len(said) == 1 and "broker 1 holds back" in said[0] and "client id" in said[0]


def test_a_pause_that_is_too_long_is_said(paused: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    paused.send(MetadataRequest(topics=None))
    monkeypatch.setattr(adapter, "LONGEST_PAUSE", 0.0)
    (found,) = paused.send_all([(1, MetadataRequest(topics=None))])
    assert isinstance(found, NoAnswer) and "quota" in str(found)


@pytest.mark.parametrize("nodes", [{1: READY}, {1: SILENT}])
def test_nobody_waits_once_the_connections_are_ended(
    nodes: dict[int, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Nodes(nodes, monkeypatch)
    wire = wire_of(fake.connected(600))
    said = list[Any]()
    asking = threading.Thread(
        target=lambda: said.append(wire.send_all([(1, MetadataRequest(topics=None))], timeout=600))
    )
    asking.start()
    time.sleep(0.1)
    wire.close()
    asking.join(30)
    assert not asking.is_alive() and isinstance(said[0][0], NoAnswer)
    (after,) = wire.send_all([(1, MetadataRequest(topics=None))])
    assert after.message == "broker 1 does not answer Metadata: the connections were closed meanwhile"
    fake.given_up.set()


def test_a_listener_that_answers_nothing_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = ("127.0.0.1", server.getsockname()[1])
        with pytest.raises(TimeoutError):
            open_connection(address, Access(servers="h"), None, None, time.monotonic() + 0.05)
