"""Every record of a topic, read by plain Fetch requests that brokers from 0.8.2 to 3.9 answer.

No client of Kafka is in between, whose caches and time-outs a slow machine would test as well. Records have no
compression. Source: clients/src/main/resources/common/message/FetchRequest.json @ 3.9.0-rc3 (version 0)
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tests.brokers.cluster import Cluster
from tests.brokers.processes import eventually

FETCH, VERSION, SIZE = 1, 0, 1 << 20
CLIENT = b"tests"


@dataclass
class Reading:
    """How far a partition is read, and what kept it from going on."""

    topic: str
    partition: int
    offset: int = 0
    end: int | None = None  # the high watermark when it was first heard of
    said: str = ""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} is read to {self.end}, it was to {self.offset}; {self.said}"


def values_of(c: Cluster, topic: str) -> list[bytes]:
    """The values of all records that are committed now, by partition and offset."""
    if c.zookeeper is None:
        return _by_client(c, topic)
    partitions = sorted(map(int, c.znode(f"/brokers/topics/{topic}")["partitions"]))
    return [value for partition in partitions for value in _partition(c, Reading(topic, partition))]


def _by_client(c: Cluster, topic: str) -> list[bytes]:
    """The same from a KRaft cluster, whose newer brokers know no request that is so old."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=c.bootstrap.split(","), enable_auto_commit=False)
    try:
        for _ in eventually(f"topic {topic} is known"):
            if numbers := consumer.partitions_for_topic(topic):
                break
        partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        consumer.seek_to_beginning(*partitions)
        values: list[bytes] = []
        for _ in eventually(f"{topic} is read to {ends}"):
            values += [one.value for some in consumer.poll(500).values() for one in some]
            if all(consumer.position(one) >= end for one, end in ends.items()):
                break
        return values
    finally:
        consumer.close()


def _partition(c: Cluster, reading: Reading) -> Iterator[bytes]:
    topic, partition = reading.topic, reading.partition
    for _ in eventually(lambda: str(reading)):
        leader = c.znode(f"/brokers/topics/{topic}/partitions/{partition}/state")["leader"]
        try:
            while reading.end is None or reading.offset < reading.end:
                error, high_watermark, data = _fetch(c.brokers[leader].port, topic, partition, reading.offset)
                if error:
                    reading.said = f"broker {leader} answered error {error}"
                    break
                reading.end = high_watermark if reading.end is None else reading.end
                for offset, value in _messages(data):
                    if reading.offset <= offset:
                        yield value
                        reading.offset = offset + 1
            else:
                return
        except (OSError, KeyError, struct.error) as error:
            reading.said = f"broker {leader}: {type(error).__name__} {error}"


def _fetch(port: int, topic: str, partition: int, offset: int) -> tuple[int, int, bytes]:
    """Error code, high watermark and messages of one partition."""
    name = topic.encode()
    request = (
        struct.pack(">hhih", FETCH, VERSION, 1, len(CLIENT)) + CLIENT + struct.pack(">iiii", -1, 100, 1, 1)
    )
    request += struct.pack(">h", len(name)) + name + struct.pack(">iiqi", 1, partition, offset, SIZE)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        stream = connection.makefile("rb")
        (size,) = struct.unpack(">i", stream.read(4))
        answer = stream.read(size)
    at = 4 + 4 + 2 + len(name) + 4
    _, error, high_watermark, length = struct.unpack_from(">ihqi", answer, at)
    return error, high_watermark, answer[at + 18 : at + 18 + length]


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Offset and value of each message that is whole, of magic 0 or 1."""
    at = 0
    while at + 12 <= len(data):
        offset, size = struct.unpack_from(">qi", data, at)
        if at + 12 + size > len(data):
            return
        magic = data[at + 16]
        key_at = at + 18 + (8 if magic else 0)
        (key_length,) = struct.unpack_from(">i", data, key_at)
        value_at = key_at + 4 + max(key_length, 0)
        (length,) = struct.unpack_from(">i", data, value_at)
        yield offset, data[value_at + 4 : value_at + 4 + max(length, 0)]
        at += 12 + size
