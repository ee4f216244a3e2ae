"""How large replicas are on the brokers' disks, those that are being copied as well.

The lag that brokers report with it is of no use for a move: it is counted from the replica's own high watermark.

Source: KIP-113; clients/src/main/resources/common/message/DescribeLogDirsResponse.json @ 4.3.0
"""

from collections.abc import Collection

from kafka.protocol.admin.cluster import DescribeLogDirsRequest

from kctl.cluster.disk_sizes import ReplicaSize
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import Wire


def read_replica_sizes(wire: Wire, topics: Collection[str] | None = None) -> list[ReplicaSize]:
    """Every replica of these topics (None: of all); brokers that do not answer are left out."""
    nodes = wire.nodes
    answers = wire.send_all([(node, DescribeLogDirsRequest(topics=None)) for node in nodes])
    found = []
    for node, answer in zip(nodes, answers, strict=True):
        for folder in () if isinstance(answer, KctlError) else answer.results:
            for topic in folder.topics:
                if topics is None or topic.name in topics:
                    found += [
                        ReplicaSize(
                            TopicPartition(str(topic.name), int(p.partition_index)),
                            node,
                            int(p.partition_size),
                        )
                        for p in topic.partitions
                        if not p.is_future_key
                    ]
    return found
