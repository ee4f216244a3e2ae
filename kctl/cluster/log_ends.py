"""Log end offsets from the leaders, by the oldest request that every ZooKeeper-mode broker answers.

ListOffsets version 0 over plain connections, one a broker. Leaders that cannot be asked (TLS, SASL, dead ones) are
left out: their lag is unknown.

Source: core/src/main/scala/kafka/api/OffsetRequest.scala @ 0.8.2.1;
clients/src/main/resources/common/message/ListOffsetsRequest.json @ 3.9.0-rc3
"""

import socket
import struct
from collections.abc import Iterable, Mapping

from kctl.cluster.state import Broker, ClusterState
from kctl.model import TopicPartition

LIST_OFFSETS, VERSION, LATEST = 2, 0, -1
LARGEST_ANSWER = 64 << 20
CLIENT = b"kctl"


def log_end_offsets(
    partitions: Iterable[TopicPartition], state: ClusterState, timeout: float
) -> dict[TopicPartition, int]:
    """The log end offset of each partition whose leader answered."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for tp in sorted(set(partitions)):
        partition_state = state.partition_states.get(tp)
        if partition_state is not None and state.is_alive(partition_state.leader):
            by_leader.setdefault(partition_state.leader, []).append(tp)
    ends: dict[TopicPartition, int] = {}
    for leader, listed in by_leader.items():
        address = _plain_address(state.brokers[leader])
        if address is not None:
            try:
                ends |= _ask(address, listed, timeout)
            except (OSError, struct.error, IndexError, UnicodeDecodeError):
                continue
    return ends


def _plain_address(broker: Broker) -> tuple[str, int] | None:
    for endpoint in broker.endpoints:
        if (endpoint.security_protocol or endpoint.listener) == "PLAINTEXT":
            return endpoint.host, endpoint.port
    if not broker.endpoints and broker.host is not None and broker.port > 0:
        return broker.host, broker.port
    return None


def _ask(
    address: tuple[str, int], partitions: list[TopicPartition], timeout: float
) -> dict[TopicPartition, int]:
    with socket.create_connection(address, timeout=timeout) as connection:
        connection.sendall(request(partitions))
        size = struct.unpack(">i", _exactly(connection, 4))[0]
        if not 4 <= size <= LARGEST_ANSWER:
            raise OSError(f"an answer of {size} bytes")
        return answer(_exactly(connection, size))


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 16))
        if not part:
            raise OSError("the connection ended")
        parts += part
    return bytes(parts)


def request(partitions: list[TopicPartition]) -> bytes:
    """The request in full, its size in front."""
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    body = struct.pack(">hhih", LIST_OFFSETS, VERSION, 1, len(CLIENT)) + CLIENT
    body += struct.pack(">ii", -1, len(topics))
    for topic, numbers in topics.items():
        name = topic.encode()
        body += struct.pack(">h", len(name)) + name + struct.pack(">i", len(numbers))
        for number in numbers:
            body += struct.pack(">iqi", number, LATEST, 1)
    return struct.pack(">i", len(body)) + body


def answer(data: bytes) -> dict[TopicPartition, int]:
    """The offsets in an answer; partitions with an error are left out."""
    ends: dict[TopicPartition, int] = {}
    (count,) = struct.unpack_from(">i", data, 4)
    position = 8
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, position)
        topic = data[position + 2 : position + 2 + length].decode()
        (partitions,) = struct.unpack_from(">i", data, position + 2 + length)
        position += 6 + length
        for _ in range(partitions):
            partition, error, offsets = struct.unpack_from(">ihi", data, position)
            position += 10
            if not error and offsets > 0:
                ends[TopicPartition(topic, partition)] = struct.unpack_from(">q", data, position)[0]
            position += 8 * max(offsets, 0)
    return ends


def lag_of(offset: int | None, end: int | None) -> int | None:
    """Records between a committed offset and the log end; None where either is not known."""
    return None if offset is None or end is None else max(end - offset, 0)


def total_lag(offsets: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int | None:
    """The lag of all partitions together; None where one of them is not known."""
    lags = [lag_of(offset, ends.get(tp)) for tp, offset in offsets.items()]
    return (
        None if not lags or any(lag is None for lag in lags) else sum(lag for lag in lags if lag is not None)
    )
