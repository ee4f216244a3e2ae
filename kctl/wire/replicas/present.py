"""The records of a partition of a running cluster, from its leader, up to the high watermark; no file is written.

Source: KIP-98 (isolation: a record of a transaction counts once its commit marker is there)
"""

import uuid
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from formats.errors import FormatError
from formats.log.control_records import ControlType, read_key
from formats.log.records import LogEntry, iterate_records, walk
from kctl.cluster.rights import MissingRight
from kctl.errors import KctlError
from kctl.model import SILENT, Progress, TopicPartition
from kctl.replica.recovery.marks import PresentRecord
from kctl.wire.adapter import BrokerError, Leaderless, Wire
from kctl.wire.protocol.messages import MetadataRequest
from kctl.wire.replicas.fetching import (
    CONSUMER,
    EARLIEST,
    LATEST,
    Fetched,
    Fetcher,
    FetchPosition,
    list_offsets,
)
from kctl.wire.rights import right_for

AT_ONCE = 4 << 20  # bytes of an answer; a larger batch comes whole
MOST_WAITING = 1 << 20  # records of transactions that are held until their marker


class Led(NamedTuple):
    """A partition as a broker knows it now; `leader` is negative where there is none, the id zero before 2.8."""

    leader: int
    isr: tuple[int, ...]
    topic_id: uuid.UUID


class Placed(NamedTuple):
    """Which broker leads a partition, and where its log starts and is committed up to."""

    leader: int
    log_start_offset: int
    high_watermark: int


def led(wire: Wire, tp: TopicPartition) -> Led:
    """Who leads a partition. Raises KctlError for an unknown one, and where no broker answers."""
    asked = MetadataRequest.MetadataRequestTopic(name=tp.topic)
    for topic in wire.read(MetadataRequest(topics=[asked], allow_auto_topic_creation=False)).topics:
        if (right := right_for("Metadata", topic.error_code, tp.topic)) is not None:
            raise MissingRight(right, wire.principal, f"topic {tp.topic}")
        for partition in topic.partitions:
            if partition.partition_index == tp.partition:
                id = getattr(topic, "topic_id", None) or uuid.UUID(int=0)
                return Led(int(partition.leader_id), tuple(partition.isr_nodes), id)
    raise BrokerError(f"the brokers know no partition {tp}", "`kctl topic describe` shows which there are")


def place_of(wire: Wire, tp: TopicPartition) -> Placed:
    """Where a partition's log starts and ends, by its leader. Raises KctlError."""
    leader = led(wire, tp).leader
    if leader < 0:
        raise Leaderless(f"{tp} has no leader")
    ends = list_offsets(wire, [(leader, tp)], LATEST, replica_id=CONSUMER)
    starts = list_offsets(wire, [(leader, tp)], EARLIEST, replica_id=CONSUMER)
    for answer in (end := ends[leader, tp], start := starts[leader, tp]):
        if isinstance(answer, KctlError):
            raise answer
    assert isinstance(start, int) and isinstance(end, int)
    return Placed(leader, start, end)


def present_records(
    wire: Wire,
    tp: TopicPartition,
    begin: int,
    until: int | None = None,
    progress: Progress = SILENT,
) -> Iterator[PresentRecord]:
    """The records of [begin, until) that a consumer with read_committed sees; until the high watermark by default.

    What retention has deleted is left out. Raises KctlError where the leader does not give them.
    """
    entries = _entries(wire, tp, begin, until, progress)
    waiting: dict[int, deque[PresentRecord]] = {}  # by producer
    count = 0
    for entry in entries:
        batch = entry.batch
        if batch is not None and batch.is_control:
            records = waiting.pop(batch.producer_id, deque[PresentRecord]())
            count -= len(records)
            if _commits(entry):
                yield from records
            continue
        try:
            for record in iterate_records(entry):
                present = PresentRecord(record, not entry.header.is_log_append_time)
                if record.offset < begin:
                    continue
                if batch is None or not batch.is_transactional:
                    yield present
                    continue
                waiting.setdefault(batch.producer_id, deque()).append(present)
                count += 1
        except FormatError as error:
            raise BrokerError(
                f"{tp}: the batch at offset {entry.base_offset} of the present log cannot be decoded: {error}"
            ) from error
        if count > MOST_WAITING:
            raise BrokerError(
                f"{tp}: transactions with more than {MOST_WAITING:,} records are open at offset {entry.base_offset}",
                "wait until they have ended; `kctl transactions hanging` shows those that nobody will end",
            )


def _commits(marker: LogEntry) -> bool:
    try:
        return read_key(next(iterate_records(marker)).key).type == ControlType.COMMIT
    except (FormatError, StopIteration):
        return False


def _entries(
    wire: Wire,
    tp: TopicPartition,
    begin: int,
    until: int | None,
    progress: Progress,
) -> Iterator[LogEntry]:
    placed = place_of(wire, tp)
    id = led(wire, tp).topic_id
    fetcher = Fetcher(wire, {tp.topic: urlsafe_b64encode(id.bytes)[:22].decode() if id.int else None})
    offset = max(begin, placed.log_start_offset)
    end = placed.high_watermark if until is None else until
    while offset < end:
        (answer,) = fetcher.fetch([FetchPosition(placed.leader, tp, offset)], AT_ONCE)
        if not isinstance(answer, Fetched):
            raise answer
        if answer.error:
            raise BrokerError(f"{tp} from offset {offset} on: {answer.error}")
        before = offset
        for entry in walk(bytes(answer.data)):
            if not isinstance(entry, LogEntry):
                break  # the answer may end within a batch
            if entry.last_offset < offset:
                continue
            offset = entry.last_offset + 1
            yield entry
            if offset >= end:
                return
        progress.advance(offset - before)
        if offset == before:
            raise BrokerError(f"{tp}: no whole batch at offset {offset}")
