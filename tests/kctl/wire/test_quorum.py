"""Whether a KRaft cluster has a controller: told by the metadata log that grows, or stands still."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from commands.cli.render import Page
from commands.cluster.quorum import describe_text, member_rows, quorum_row
from kctl.cluster.state import Endpoint, Quorum
from kctl.errors import KctlError
from kctl.wire.adapter import Access, NoAnswer, Wire
from kctl.wire.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
)
from kctl.wire.quorum import NoController, ask_controller, listening, read_quorum

SILENT = NoAnswer("broker 1 does not answer DescribeQuorum: no answer in time", 1)


class FakeWire:
    """Brokers 1 and 2. The controller answers through those named; the log grows by `growth` between two looks."""

    def __init__(
        self, through: tuple[int, ...] = (), growth: int = 0, voters: str = "", silent: bool = False
    ) -> None:
        self.access, self.node, self.nodes = Access(servers="h"), 1, [1, 2]
        self.has_seen_controller, self.without_controller = False, None
        self.through, self.growth, self.voters, self.silent = through, growth, voters, silent
        self.epoch, self.asked, self.answer = 100, 0, SimpleNamespace()
        self.file_key = "controller.quorum.voters"
        self.hanging, self.through_in_time, self.waits = (
            set[int](),
            tuple[int, ...](),
            list[tuple[int, ...]](),
        )

    def version_of(self, request: Any) -> int:
        return 2

    def _one(self, node: int, request: Any) -> Any:
        if isinstance(request, ApiVersionsRequest):
            return SILENT if self.silent else SimpleNamespace(finalized_features_epoch=self.epoch)
        if isinstance(request, DescribeQuorumRequest):
            self.asked += 1
            return self.answer if node in self.through else SILENT
        config = SimpleNamespace(name=self.file_key, value=self.voters, config_source=4)
        return SimpleNamespace(results=[SimpleNamespace(configs=[config])])

    def send_all(self, requests: Any, *, timeout: float | None = None) -> list[Any]:
        nodes = tuple(node for node, _ in requests)
        if timeout is None:
            self.waits.append(nodes)
            return [self.answer if node in self.through_in_time else SILENT for node in nodes]
        answers = [SILENT if node in self.hanging else self._one(node, request) for node, request in requests]
        if requests and isinstance(requests[0][1], ApiVersionsRequest):
            self.epoch += self.growth
        return answers

    def send(self, request: Any, *, timeout: float | None = None) -> Any:
        (answer,) = self.send_all([(self.node, request)], timeout=timeout or 10)
        if isinstance(answer, KctlError):
            raise answer
        return answer

    def read(self, request: Any) -> Any:
        return self.answer  # however long it takes

    def read_from(self, node: int) -> bool:
        self.node = node
        return True


def ask(wire: FakeWire) -> Any:
    return ask_controller(wire, lambda: DescribeQuorumRequest(topics=[]))  # type: ignore[arg-type]


def test_a_controller_that_answers_is_asked_once() -> None:
    wire = FakeWire(through=(1,))
    assert ask(wire) is wire.answer and wire.asked == 1 and not wire.has_seen_controller
    wire.answer = SimpleNamespace(error_code=29)
    assert read_quorum(wire) is None and wire.has_seen_controller  # type: ignore[arg-type]
    assert ask(wire) is wire.answer and wire.asked == 2, "from then on as patiently as anything else"


def test_a_leader_that_is_alone_answers_some_requests_for_a_while() -> None:
    wire = FakeWire(through=(1,))
    ask(wire)
    wire.through = ()
    with pytest.raises(NoController):
        read_quorum(wire)  # type: ignore[arg-type]


def test_a_broker_that_is_cut_off_from_the_controller_is_not_read_from() -> None:
    wire = FakeWire(through=(2,))
    assert ask(wire) is wire.answer
    assert wire.node == 2


@pytest.mark.parametrize("wire", [FakeWire(growth=1), FakeWire(silent=True)])
def test_a_slow_controller_is_waited_for(wire: FakeWire) -> None:
    """Somebody writes to the log, or nobody can tell."""
    wire.through_in_time = (1,)
    assert ask(wire) is wire.answer


def test_a_controller_that_hangs_is_asked_through_the_brokers_that_answer() -> None:
    """A broker goes on asking the one that hung although another is elected; not all brokers had asked it."""
    wire = FakeWire(growth=1)
    wire.nodes, wire.hanging, wire.through_in_time = [1, 2, 3], {3}, (2,)
    assert ask(wire) is wire.answer and wire.node == 2
    assert wire.waits == [(1, 2)], "all at once, the one that hangs itself not again"
    wire.through_in_time = ()
    with pytest.raises(NoAnswer) as silent:
        ask(wire)
    assert silent.value is SILENT


@pytest.mark.parametrize(
    ("request_class", "is_kraft", "error", "says"),
    [
        (DescribeQuorumRequest, True, TimeoutError(), "the controller does not answer DescribeQuorum through broker 2: no answer in time"),
        (DescribeQuorumRequest, True, OSError("Connection refused"), "broker 2 does not answer DescribeQuorum: connection refused"),
        (CreateTopicsRequest, False, TimeoutError(), "broker 2 does not answer CreateTopics: no answer in time"),
        (DescribeConfigsRequest, True, TimeoutError(), "broker 2 does not answer DescribeConfigs: no answer in time"),
    ],
)  # fmt: skip
def test_a_broker_is_not_blamed_for_a_controller(
    request_class: Any, is_kraft: bool, error: Exception, says: str
) -> None:
    wire = SimpleNamespace(version_of=lambda _: 2 if is_kraft else None)
    failure = Wire._failure(wire, error, 2, request_class())  # type: ignore[arg-type]
    assert isinstance(failure, NoAnswer) and failure.message == says
    assert failure.node == (None if says.startswith("the controller") else 2)
    assert ("controller.socket.timeout.ms" in failure.hint) == (failure.node is None)


@contextmanager
def answering_server() -> Iterator[int]:
    """The port of a server that ends each connection once it has read a request, as one that wants TLS does."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        assert connection.recv(100) == b"\0\0\0\x0a\0\x12\0\0\0\0\0\0\xff\xff"

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_a_log_that_stands_still_has_no_controller() -> None:
    """The kernel accepts connections for a process that hangs: that is no answer."""
    with (
        answering_server() as up,
        socket.create_server(("127.0.0.1", 0)) as hanging,
        socket.socket() as closed,
    ):
        closed.bind(("127.0.0.1", 0))
        down, hangs = closed.getsockname()[1], hanging.getsockname()[1]
        wire = FakeWire(voters=f"101@127.0.0.1:{up},102@127.0.0.1:{down},103@127.0.0.1:{hangs}")
        with pytest.raises(
            NoController, match=r"^no active controller: 1 of 3 voters answer; brokers still"
        ) as none:
            read_quorum(wire)  # type: ignore[arg-type]
        asked = wire.asked
        with pytest.raises(NoController):
            ask(wire)
        assert wire.asked == asked, "known from the look before"
        wire.through, wire.epoch = (1,), wire.epoch + 2
        assert ask(wire) is wire.answer, "until the log goes on"
    quorum = none.value.quorum
    assert quorum.voters == {101, 102, 103} and quorum.dead_voters == {102, 103} and not quorum.has_majority
    assert quorum.lost == none.value.message


@pytest.mark.parametrize("tells", [True, False])
def test_voters_of_which_files_have_addresses_alone(tells: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that answers knows whose addresses they are; they are never taken for brokers of those numbers."""
    with answering_server() as up, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        down = closed.getsockname()[1]
        wire = FakeWire(voters=f"127.0.0.1:{down},127.0.0.1:{up}")
        wire.file_key = "controller.quorum.bootstrap.servers"
        asked = []

        def send_to(host: str, port: int, request: Any, *, timeout: float | None = None) -> Any:
            asked.append((port, timeout))
            nodes = [SimpleNamespace(broker_id=n, host=host, port=p) for n, p in ((101, down), (102, up))]
            if not tells:
                raise SILENT
            return SimpleNamespace(error_code=0, brokers=nodes)

        monkeypatch.setattr(wire, "send_to", send_to, raising=False)
        with pytest.raises(NoController, match=r"^no active controller: 1 of 2 voters answer") as none:
            read_quorum(wire)  # type: ignore[arg-type]
    assert asked == [(up, 1.0)]
    quorum = none.value.quorum
    assert quorum.voters == ({101, 102} if tells else {-2, -3})
    assert quorum.dead_voters == ({101} if tells else {-2})
    (dead,) = (one for one in quorum.members if not one.is_answering)
    assert dead.voter == ("voter 101" if tells else f"the voter at 127.0.0.1:{down}")
    lines = list(describe_text([quorum_row(quorum), *member_rows(quorum)], Page(80, color=False)))
    assert lines[0] == "no active controller: 1 of 2 voters answer"
    assert quorum_row(quorum)["voters"] == ([101, 102] if tells else [])
    assert lines[2].split()[0] == ("101" if tells else "?")


def test_who_takes_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        up = Endpoint("", "127.0.0.1", server.getsockname()[1])
        nowhere = Endpoint("", "host.invalid", 1)
        assert listening({up, nowhere}) == {up}
    assert listening({up}) == set() == listening(set())


def test_without_names_of_voters_nobody_is_counted() -> None:
    with pytest.raises(NoController, match=r"^no active controller; brokers still"):
        ask(FakeWire())
    assert Quorum(leader_id=1, leader_epoch=1, high_watermark=1).has_majority
