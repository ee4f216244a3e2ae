"""The metadata log of a KRaft quorum, copied from its leader as a new member copies it.

Requests go to a controller's own listener: DescribeQuorum names the leader; Fetch and FetchSnapshot are what
members copy the log with. For a client that is no replica nothing is stored, and no watermark moves.

Source: KIP-595 (Fetch), KIP-630 (FetchSnapshot); raft/src/main/java/org/apache/kafka/raft/KafkaRaftClient.java @ 3.9.0
"""

import uuid
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from formats.errors import FormatError
from formats.log.record_batch import BatchHeader, read_header
from kctl.errors import KctlError, file_error
from kctl.wire.adapter import BrokerError, Controllers, error_name
from kctl.wire.protocol.messages import DescribeQuorumRequest, FetchRequest, FetchSnapshotRequest

METADATA_TOPIC = "__cluster_metadata"
TOPIC_ID = uuid.UUID(int=1)  # the same everywhere; Kafka 3.1 and later ask for it
BY_ID, LAST = (
    13,
    14,
)  # versions of Fetch: from the first with ids of topics, to the last with a plain replica id
A_PIECE = 8 << 20  # bytes
LARGEST_SNAPSHOT = 4 << 30  # bytes


class Leader(NamedTuple):
    """The leader of the quorum, one of the nodes of `Controllers`."""

    node: Any
    epoch: int
    high_watermark: int


def find_leader(controllers: Controllers) -> Leader:
    """The leader of the quorum. Raises KctlError if it is not one of the named controllers."""
    partition = DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    why = "none of them is the leader of the quorum"
    for node in controllers.nodes:
        (answer,) = controllers.send_all([(node, DescribeQuorumRequest(topics=[topic]))])
        if isinstance(answer, KctlError):
            why = answer.message
            continue
        code = answer.error_code or answer.topics[0].partitions[0].error_code
        if not code:
            (partition_state,) = answer.topics[0].partitions
            return Leader(node, int(partition_state.leader_epoch), int(partition_state.high_watermark))
        why = error_name(code)
    raise KctlError(
        f"no metadata from {controllers.location}: {why}", "name the listeners of all controllers"
    )


def copy_metadata_log(controllers: Controllers, folder: Path) -> None:
    """Copy the log up to its high watermark, and the snapshot before it. Raises KctlError."""
    leader = find_leader(controllers)
    offset, epoch = 0, 0
    answer = _fetched(controllers, leader, offset, epoch)
    snapshot = answer.snapshot_id
    if snapshot is not None and snapshot.end_offset >= 0:
        offset, epoch = int(snapshot.end_offset), int(snapshot.epoch)
        _copy_snapshot(controllers, leader, folder, offset, epoch)
        answer = _fetched(controllers, leader, offset, epoch)
    try:
        with (folder / f"{offset:020d}.log").open("wb") as file:
            while offset < leader.high_watermark:
                batches = _batches(answer.records or b"", offset)
                if not batches:
                    raise BrokerError(
                        f"{controllers.location}: the log ends at {offset}, below {leader.high_watermark}"
                    )
                for header, data in batches:
                    if header.last_offset >= leader.high_watermark:
                        return
                    file.write(data)
                    offset, epoch = header.last_offset + 1, header.partition_leader_epoch
                if offset < leader.high_watermark:
                    answer = _fetched(controllers, leader, offset, epoch)
    except OSError as error:
        raise file_error(folder, error, KctlError, "set TMPDIR to another folder") from error


def _batches(data: bytes, offset: int) -> list[tuple[BatchHeader, bytes]]:
    """The whole batches at the front of an answer, from an offset on."""
    batches, position = list[tuple[BatchHeader, bytes]](), 0
    while position < len(data):
        try:
            header = read_header(data, position)
        except FormatError:
            break
        end = position + header.size_in_bytes
        if end > len(data) or header.last_offset < offset:
            break
        batches.append((header, data[position:end]))
        position, offset = end, header.last_offset + 1
    return batches


def _fetched(controllers: Controllers, leader: Leader, offset: int, epoch: int) -> Any:
    """The partition's part of the answer to a Fetch. Raises KctlError."""
    kind = FetchRequest.FetchTopic
    partition = kind.FetchPartition(
        partition=0,
        current_leader_epoch=leader.epoch,
        fetch_offset=offset,
        last_fetched_epoch=epoch,
        log_start_offset=-1,
        partition_max_bytes=A_PIECE,
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=A_PIECE,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[kind(topic_id=TOPIC_ID, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
        min_version=BY_ID,
        max_version=LAST,
    )
    answer = controllers.send(request, leader.node)
    code = answer.error_code or answer.responses[0].partitions[0].error_code
    if code:
        raise BrokerError(f"{controllers.location} returns no metadata: {error_name(code)}")
    return answer.responses[0].partitions[0]


def _copy_snapshot(
    controllers: Controllers, leader: Leader, folder: Path, end_offset: int, epoch: int
) -> None:
    try:
        with (folder / f"{end_offset:020d}-{epoch:010d}.checkpoint").open("wb") as file:
            _write_snapshot(controllers, leader, file, end_offset, epoch)
    except OSError as error:
        raise file_error(folder, error, KctlError, "set TMPDIR to another folder") from error


def _write_snapshot(
    controllers: Controllers, leader: Leader, file: BinaryIO, end_offset: int, epoch: int
) -> None:
    kind = FetchSnapshotRequest.TopicSnapshot
    id = kind.PartitionSnapshot.SnapshotId(end_offset=end_offset, epoch=epoch)
    position = 0
    while True:
        partition = kind.PartitionSnapshot(
            partition=0, current_leader_epoch=leader.epoch, snapshot_id=id, position=position
        )
        request = FetchSnapshotRequest(
            replica_id=-1, max_bytes=A_PIECE, topics=[kind(name=METADATA_TOPIC, partitions=[partition])]
        )
        answer = controllers.send(request, leader.node)
        code = answer.error_code or answer.topics[0].partitions[0].error_code
        if code:
            raise BrokerError(f"{controllers.location} returns no snapshot: {error_name(code)}")
        (part,) = answer.topics[0].partitions
        data = part.unaligned_records or b""
        file.write(data)
        position += len(data)
        if position >= part.size:
            return
        if not data or part.size > LARGEST_SNAPSHOT:
            raise BrokerError(f"{controllers.location}: the snapshot ends at {position} of {part.size} bytes")
