"""The KRaft quorum as its leader sees it, and how its absence is detected.

Brokers hold requests for the controller until there is one: without one DescribeQuorum and ListPartitionReassignments are never
answered. The epoch of the finalized features shows it, since it follows the metadata log: an active controller writes
to it twice a second even if nothing happens.

Source: KIP-595, KIP-836 (DescribeQuorum), KIP-835 (no-op records), KIP-853 (voters, directory ids, listeners), KIP-919
(DescribeCluster of controllers); clients/src/main/resources/common/message/DescribeQuorumResponse.json @ 4.3.0
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from formats.whole_numbers import whole_number
from formats.words import counted
from kctl.cluster.state import Endpoint, Quorum, QuorumMember
from kctl.errors import KctlError
from kctl.wire.adapter import NoAnswer, Wire
from kctl.wire.protocol.messages import ApiVersionsRequest, DescribeClusterRequest, DescribeQuorumRequest

METADATA_TOPIC = "__cluster_metadata"
# Seconds for an answer from the controller, before checking whether there is one; for the check, in which an active
# controller writes two records; and for a broker's own answers.
PROMPT, LOOK, QUICK = 0.5, 1.1, 1.0
LOOKED_AT = 3  # brokers: one alone may be cut off from the controller
ANSWERING = 2000  # milliseconds since its last fetch, within which a voter counts as alive; it fetches every half second
VOTERS, SERVERS = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
CONTROLLERS = 2  # the type of endpoints
VERSIONS_REQUEST = struct.pack(">ihhih", 10, 18, 0, 0, -1)  # size, ApiVersions, version, number, no client id
NO_CONTROLLER = (
    "brokers still serve producers and consumers; no leader is elected, and nothing can be changed"
)


class NoController(KctlError):
    """The quorum has no leader; `voters` are the known ones, with whether each answers."""

    hint = "start controllers until a majority of the voters answers"

    def __init__(self, voters: Mapping[int, tuple[Endpoint, bool]]) -> None:
        answer = sum(is_listening for _, is_listening in voters.values())
        count = f": {answer} of {counted(len(voters), 'voter')} answer" if voters else ""
        super().__init__(f"no active controller{count}; {NO_CONTROLLER}")
        self.voters = voters

    @property
    def quorum(self) -> Quorum:
        """The quorum as far as it is known."""
        members = tuple(
            QuorumMember(id, True, -1, None, is_answering=is_listening, endpoints=(endpoint,))
            for id, (endpoint, is_listening) in sorted(self.voters.items())
        )
        return Quorum(leader_id=-1, leader_epoch=-1, high_watermark=-1, members=members, lost=self.message)


def read_quorum(wire: Wire) -> Quorum | None:
    """The quorum; None with ZooKeeper, or without the permission to see it. Raises NoController."""
    if wire.version_of(DescribeQuorumRequest) is None:
        return None
    answer = ask_controller(wire, describe_quorum)
    # Not before: a leader that has lost its voters still answers requests that commit nothing.
    wire.has_seen_controller = True
    if answer.error_code or not answer.topics:
        return None
    (partition,) = answer.topics[0].partitions
    if partition.error_code:
        return None
    replicas = [
        *((replica, True) for replica in partition.current_voters),
        *((replica, False) for replica in partition.observers),
    ]
    times = [replica.last_fetch_timestamp for replica, _ in replicas] + [
        replica.last_caught_up_timestamp for replica, _ in replicas
    ]
    now = max((time for time in times if time is not None), default=-1)  # by the leader's clock
    endpoints = {
        int(node.node_id): tuple(Endpoint(str(at.name), str(at.host), int(at.port)) for at in node.listeners)
        for node in getattr(answer, "nodes", None) or ()
    }
    return Quorum(
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        members=tuple(
            _member(
                replica,
                is_voter,
                replica.replica_id == partition.leader_id,
                now,
                endpoints.get(replica.replica_id, ()),
            )
            for replica, is_voter in replicas
        ),
    )


def describe_quorum() -> DescribeQuorumRequest:
    """The question for the quorum."""
    partition = DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return DescribeQuorumRequest(topics=[topic])


def _member(
    replica: Any, is_voter: bool, is_leader: bool, now: int, endpoints: tuple[Endpoint, ...]
) -> QuorumMember:
    from kctl.wire.answers.metadata import kafka_id

    fetched, id = _known(replica.last_fetch_timestamp), getattr(replica, "replica_directory_id", None)
    is_answering = is_leader or (fetched is not None and now - fetched <= ANSWERING)
    return QuorumMember(
        replica.replica_id,
        is_voter,
        replica.log_end_offset,
        _known(replica.last_caught_up_timestamp),
        last_fetch_at=fetched,
        directory_id=kafka_id(id.bytes) if id is not None else None,
        is_answering=None if now < 0 else is_answering,
        endpoints=endpoints,
    )


def _known(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


# --- is there a controller? -----------------------------------------------------------------------------


def ask_controller(wire: Wire, request: Callable[[], Any]) -> Any:
    """The answer to a request that brokers forward to the controller.

    Raises NoController after two seconds if there is none; later in a command, after there was one, the error of a broker
    that does not answer.
    """
    if wire.has_seen_controller or wire.version_of(DescribeQuorumRequest) is None:
        return wire.read(request())
    # A broker too busy to return its epoch is no evidence of a controller.
    if wire.without_controller is not None and _epochs(wire, [wire.node]) in ({}, wire.without_controller):
        raise NoController(_voters(wire))
    try:
        answer = wire.send(request(), timeout=min(PROMPT, wire.access.timeout))
    except NoAnswer:
        answer = _look(wire, request)
    return answer


def _look(wire: Wire, request: Callable[[], Any]) -> Any:
    """Ask several brokers again, and check meanwhile whether the metadata log grows."""
    nodes = [wire.node, *(node for node in wire.nodes if node != wire.node)][:LOOKED_AT]
    before = _epochs(wire, nodes)
    for node, answer in zip(nodes, wire.send_all([(n, request()) for n in nodes], timeout=LOOK), strict=True):
        if not isinstance(answer, KctlError):
            wire.read_from(node)
            return answer
    after = _epochs(wire, [*before])
    if not before:
        return wire.read(request())
    if any(after.get(node, epoch) > epoch for node, epoch in before.items()):
        return _wait(wire, sorted(after, key=nodes.index), request)
    wire.without_controller = {wire.node: after.get(wire.node, -1)}
    raise NoController(_voters(wire))


def _wait(wire: Wire, nodes: list[int], request: Callable[[], Any]) -> Any:
    """Ask these brokers once more, as long as any answer may take. Raises NoAnswer for the first of them."""
    answers = wire.send_all([(node, request()) for node in nodes])
    for node, answer in zip(nodes, answers, strict=True):
        if not isinstance(answer, KctlError):
            wire.read_from(node)
            return answer
    raise answers[0]


def _epochs(wire: Wire, nodes: list[int]) -> dict[int, int]:
    """The epoch of the finalized features by broker; brokers that do not answer at once are left out."""
    requests = [
        (node, ApiVersionsRequest(client_software_name="kctl", client_software_version="1", min_version=3))
        for node in nodes
    ]
    answers = wire.send_all(requests, timeout=QUICK)
    return {
        node: int(answer.finalized_features_epoch or 0)
        for node, answer in zip(nodes, answers, strict=True)
        if not isinstance(answer, KctlError)
    }


def _voters(wire: Wire) -> dict[int, tuple[Endpoint, bool]]:
    """The voters in the broker's configuration file, and whether each answers.

    With a dynamic quorum the file has addresses only: a controller that answers knows their ids.
    """
    from kctl.wire.answers.configs import BROKER, STATIC_BROKER, described, values_from

    answer = wire.send(described(BROKER, [str(wire.node)], [VOTERS, SERVERS]), timeout=wire.access.timeout)
    file = values_from(answer.results[0], (STATIC_BROKER,))
    endpoints = {}
    for number, text in enumerate((file.get(VOTERS) or file.get(SERVERS) or "").split(","), 2):
        id, _, address = text.strip().rpartition("@")
        host, _, port = address.rpartition(":")
        if host and (at := whole_number(port)) is not None:
            endpoints[int(id or -number)] = Endpoint("", host, at)
    reachable = listening(set(endpoints.values()), QUICK, answers=True)
    nameless = any(id < 0 for id in endpoints)
    ids_by_address = {
        (at.host, at.port): id for id, at in (_registered(wire, reachable, QUICK) if nameless else {}).items()
    }
    return {
        ids_by_address.get((endpoint.host, endpoint.port), id): (endpoint, endpoint in reachable)
        for id, endpoint in endpoints.items()
    }


def listening(endpoints: set[Endpoint], seconds: float = 0.4, *, answers: bool = False) -> set[Endpoint]:
    """The endpoints that accept a connection within `seconds`, and with `answers` react to a request.

    The kernel accepts connections of a process that hangs. A request for versions is answered before a login, and ends
    the connection where TLS is wanted.
    """
    waiting: dict[int, tuple[socket.socket, Endpoint]] = {}
    reachable, end = set(), time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        poll = select.poll()
        for endpoint in endpoints:
            try:
                family, kind, protocol, _, address = socket.getaddrinfo(
                    endpoint.host, endpoint.port, type=socket.SOCK_STREAM
                )[0]
            except OSError:
                continue
            opened = stack.enter_context(socket.socket(family, kind, protocol))
            opened.setblocking(False)
            if opened.connect_ex(address) in (0, errno.EINPROGRESS):
                waiting[opened.fileno()] = opened, endpoint
                poll.register(opened, select.POLLOUT)
        asked = set[int]()
        while waiting and (remaining := end - time.monotonic()) > 0:
            for descriptor, _ in poll.poll(remaining * 1000):
                opened, endpoint = waiting[descriptor]
                is_open = descriptor in asked or not opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if is_open and answers and descriptor not in asked:
                    asked.add(descriptor)
                    with contextlib.suppress(OSError):
                        opened.send(VERSIONS_REQUEST)
                    poll.modify(opened, select.POLLIN)
                    continue
                poll.unregister(descriptor)
                del waiting[descriptor]
                if is_open:
                    reachable.add(endpoint)
    return reachable


def controllers(wire: Wire, quorum: Quorum) -> dict[int, Endpoint]:
    """The endpoints of all registered controllers, voters or not, from one of the voters.

    Only controllers know observers (KIP-919, from 3.7). Empty if none of them answers.
    """
    return _registered(
        wire, [at for member in quorum.members if member.is_answering for at in member.endpoints]
    )


def _registered(
    wire: Wire, endpoints: Iterable[Endpoint], timeout: float | None = None
) -> dict[int, Endpoint]:
    """The same, from the first of the endpoints that answers."""
    for endpoint in endpoints:
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS, min_version=1)
        with contextlib.suppress(KctlError):
            answer = wire.send_to(endpoint.host, endpoint.port, request, timeout=timeout)
            if not answer.error_code:
                return {
                    int(node.broker_id): Endpoint(endpoint.listener, str(node.host), int(node.port))
                    for node in answer.brokers
                }
    return {}
