"""Lost records produced again: in order, idempotent, acks=all, by one process at a time.

A transactional id of each partition (`kctl.recover.TOPIC-PARTITION`) has the coordinator give out a new producer epoch;
a transaction without records, aborted at once, brings that epoch into the partition. From then on its leader refuses
what another process with an older epoch sends, or has sent and the network still holds: what the log has now is all
that there is, and writing goes on behind it. The records themselves belong to no transaction, since consumers that
read uncommitted would see those of an aborted one.

Source: KIP-98; core/src/main/scala/kafka/coordinator/transaction/TransactionCoordinator.scala,
storage/.../internals/log/ProducerAppendInfo.java @ 3.9.0; KIP-890 (epochs of EndTxn)
"""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import asdict

from formats.log.record_batch import NO_SEQUENCE, write_batch
from formats.whole_numbers import whole_number
from formats.words import counted
from kctl.changes import kept_records as kept
from kctl.changes.faults import reach
from kctl.changes.kept_records import LostRecord
from kctl.changes.kinds.records import RecoverRecords
from kctl.cluster.interface import Conflict
from kctl.cluster.rights import MissingRight
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import V0_11, parse_version
from kctl.errors import KctlError, NotFinished, Refused
from kctl.model import OffsetRange, TopicPartition
from kctl.replica.recovery.marks import WrittenSoFar, marked, written_so_far
from kctl.wire.adapter import SERVER_ROOM, BrokerError, NoAnswer, Wire, error_name
from kctl.wire.configs import in_force
from kctl.wire.protocol.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from kctl.wire.replicas.fetching import LATEST, list_offsets
from kctl.wire.replicas.present import led, place_of, present_records
from kctl.wire.rights import failure, right_for
from kctl.wire.writes.present import KnownTopic, existing, existing_replicas
from kctl.wire.writes.requests import PartitionRow, Quantifier, Request, RequestItem

PREFIX = "kctl.recover."  # of transactional ids
TRANSACTION = 1  # the kind of coordinator
# Answers after which a request is sent again: of a moving leader or coordinator, of replicas that are behind.
COORDINATOR_MOVES = frozenset({14, 15, 16, 51})
LEADER_MOVES = frozenset({3, 5, 6, 7, 13, 19, 20, 72, 74, 75, 76, 97})
TOO_LARGE = frozenset({10, 18})  # a record, or a batch
MAY_BE_THERE = frozenset({7, 20})  # timed out, or appended and not on enough replicas
OTHER_WRITER = frozenset({47, 90})  # an older epoch: another process has begun
BY_NAME = 12  # the last version of Produce that names topics
MIN_ISR = "min.insync.replicas"
COORDINATED = 10.0  # seconds in which a coordinator is found; for the first, brokers create a topic
PATIENCE, LOOK = 30.0, 0.2  # seconds for leaders and coordinators that move; between two attempts
TIMEOUT_MS = 60_000  # of a transaction without records; the coordinator aborts it by itself then
ALL = -1  # acks


class Producer(NamedTuple):
    """The producer that a partition's leader accepts now."""

    producer_id: int
    producer_epoch: int


NO_PRODUCER = Producer(-1, -1)
"""For topics of a message format without headers and producer ids."""
FORMAT = "message.format.version"
ARRIVING = 3.0  # seconds in which a leader appends what a process sent before it was killed


def _has_headers(wire: Wire, topic: str) -> bool:
    """Whether a topic's message format has headers: brokers convert records to older ones up to 3.x (KIP-724)."""
    for _, configs in in_force(wire, "topics", [topic], [FORMAT]):
        for config in () if isinstance(configs, KctlError) else configs:
            if config.key == FORMAT and config.value:
                return parse_version(config.value.partition("-")[0]) >= V0_11
    return True


def _producer_of(wire: Wire, recovery: "Produce") -> Producer:
    """The producer to write with, after which nothing of an earlier one comes into the partition, as far as possible."""
    if not _has_headers(wire, recovery.topic):
        return _unfenced(wire, recovery)
    try:
        return fenced_producer(wire, recovery.tp)
    except NoCoordinator as error:
        wire.warn(f"{error.message}; do not recover the same records in another place at the same time")
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS, max_version=4)
    answer = wire.read(request)
    if answer.error_code:
        raise failure(wire, "a producer id", "InitProducerId", int(answer.error_code))
    wire.pause(ARRIVING)
    return Producer(int(answer.producer_id), int(answer.producer_epoch))


def _unfenced(wire: Wire, recovery: "Produce") -> Producer:
    """No producer id; what an earlier process had on its way, by its note, has time to arrive."""
    if kept.is_sending(recovery.file):
        wire.pause(ARRIVING)
    return NO_PRODUCER


class NoCoordinator(BrokerError):
    """Nothing coordinates transactions: `__transaction_state` cannot be created, or its partition has no leader."""


class _Coordinated:
    """Requests to the coordinator of a transactional id, sent again while it moves. Raises KctlError."""

    def __init__(self, wire: Wire, name: str) -> None:
        self._wire, self._name = wire, name
        self._node: int | None = None

    def ask(self, request: str, make: Callable[[], Any], code_of: Callable[[Any], int]) -> Any:
        """The answer without an error."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                answer = self._wire.send(make(), self._found())
                code = int(code_of(answer))
            except NoAnswer:
                if time.monotonic() > end:
                    raise
                code, self._node = min(COORDINATOR_MOVES), None
            if not code:
                return answer
            if code in OTHER_WRITER:
                raise _other_writer(self._name.removeprefix(PREFIX))
            if code not in COORDINATOR_MOVES or time.monotonic() > end:
                raise failure(self._wire, f"transactional id {self._name}", request, code, self._name)
            if code != 51:
                self._node = None
            self._wire.pause(LOOK)

    def _found(self) -> int:
        end = time.monotonic() + COORDINATED
        while self._node is None:
            request = FindCoordinatorRequest(key=self._name, key_type=TRANSACTION, max_version=2)
            answer = self._wire.read(request)
            code = int(answer.error_code)
            if not code:
                self._node = int(answer.node_id)
            elif code in COORDINATOR_MOVES and time.monotonic() > end:
                raise NoCoordinator(f"transactional id {self._name} has no coordinator: {error_name(code)}")
            elif code not in COORDINATOR_MOVES:
                place = f"the coordinator of transactional id {self._name}"
                raise failure(self._wire, place, "FindCoordinator", code, self._name)
            else:
                self._wire.pause(LOOK)
        return self._node


def _other_writer(partition: object) -> Conflict:
    return Conflict(
        f"another kctl has begun to recover records into {partition}; nothing more was written here",
        "let that one end; then run `kctl replica recover` again, which leaves out what is there",
    )


def fenced_producer(wire: Wire, tp: TopicPartition) -> Producer:
    """A producer of a new epoch, after which the partition takes nothing from earlier ones. Raises KctlError."""
    name = f"{PREFIX}{tp}"
    coordinated = _Coordinated(wire, name)
    producer = _new_epoch(coordinated, name)
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic

    def add() -> Any:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[topic(name=tp.topic, partitions=[tp.partition])],
            max_version=3,
        )

    def code_of(answer: Any) -> int:
        (partition,) = answer.results_by_topic_v3_and_below[0].results_by_partition
        code = int(partition.partition_error_code)
        if (right := right_for("AddPartitionsToTxn", code, tp.topic)) is not None:
            raise MissingRight(right, wire.principal, f"topic {tp.topic}")
        return code

    coordinated.ask("AddPartitionsToTxn", add, code_of)
    reach(f"opened:{tp.partition}")
    coordinated.ask(
        "EndTxn",
        lambda: EndTxnRequest(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=False,
            max_version=4,
        ),
        lambda answer: answer.error_code,
    )
    reach(f"fenced:{tp.partition}")
    return _new_epoch(coordinated, name)  # answered once the markers are written


def _new_epoch(coordinated: _Coordinated, name: str) -> Producer:
    answer = coordinated.ask(
        "InitProducerId",
        lambda: InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=TIMEOUT_MS, max_version=4
        ),
        lambda answer: answer.error_code,
    )
    return Producer(int(answer.producer_id), int(answer.producer_epoch))


# --- the request --------------------------------------------------------------------------------------------


class Produce(Request, frozen=True, kw_only=True):
    """Lost records that are kept in a file, to the partition's leader.

    The topic's id is all that has to be as it was: what the log has is read before anything is written.
    """

    is_to_be_seen: ClassVar[bool] = True
    expected: KnownTopic
    topic: str
    partition: int
    source_topic: str
    records: int
    file: str
    sha256: str
    begin_offset: int
    incident: str
    max_rate: int | None
    partitions: tuple[PartitionRow, ...]

    @property
    def tp(self) -> TopicPartition:
        """Where they go."""
        return TopicPartition(self.topic, self.partition)

    @property
    def source(self) -> TopicPartition:
        """Where they were lost."""
        return TopicPartition(self.source_topic, self.partition)

    def _written(self, wire: Wire) -> WrittenSoFar:
        """What the log has of the records."""
        present = present_records(wire, self.tp, self.begin_offset)
        lost = kept.kept_records(self.file)
        return written_so_far(self.source, lost, present, has_headers=_has_headers(wire, self.topic))

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        """Write what is not written yet. Raises Conflict where another process writes the same."""
        tp = self.tp
        kept.check_kept(self.file, self.sha256)
        _refuse_few_replicas(wire, tp)
        producer = _producer_of(wire, self)
        _await_committed(wire, tp)
        written = self._written(wire)
        offsets, at_first = list(written.offsets), written.records
        kept.note_written(self.file, offsets)
        reach(f"read-back:{tp.partition}")
        sequence = 0
        pace, leaders = _Pace(wire, self.max_rate), _Leader(wire, tp)
        try:
            batches, parts, number = _remaining(self.file, at_first), list[list[LostRecord]](), 0
            while batch := parts.pop() if parts else next(batches, None):
                data = _produced(batch, self, producer, sequence)
                pace.wait_for(len(data))
                if producer is NO_PRODUCER:
                    kept.note_sending(self.file, sequence)
                base, code, message = _produce(
                    wire, tp, leaders, data, is_idempotent=producer is not NO_PRODUCER
                )
                if code in TOO_LARGE and len(batch) > 1:  # max.message.bytes is less than kctl sends at once
                    middle = len(batch) // 2
                    parts += [batch[middle:], batch[:middle]]
                    continue
                if code and not sequence and not at_first:
                    yield RequestItem(str(tp), code, message, *tp)
                    return
                if code:
                    raise BrokerError(f"{message or error_name(code)}")
                sequence += len(batch)
                _add_range(offsets, base, base + len(batch))
                kept.note_written(self.file, offsets)
                reach(f"produced:{tp.partition}:{number}")
                number += 1
        except (BrokerError, Conflict) as error:
            if not sequence and not at_first:
                raise
            unfinished = NotFinished(
                f"{at_first + sequence:,} of {counted(self.records, 'record')} are in {tp}: {error.message}",
                error.hint,
            )
            unfinished.is_begun = True
            raise unfinished from error

    def refuse_other_state(self, state: ClusterState) -> None:
        self.expected.refuse_other(self.topic, state)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        """Whether the log has all (any) of the records."""
        written = self._written(wire)
        if written.records == self.records:
            kept.note_written(self.file, written.offsets)
        return of([written.records > 0, written.records == self.records])


def recover_records(fresh: ClusterState, intent: RecoverRecords, _: ClusterState) -> list[Request]:
    """The records, where the partition is there."""
    topic = existing(fresh, intent.topic)
    row = PartitionRow(intent.topic, intent.partition)
    existing_replicas(fresh, row.tp)
    return [
        Produce(
            **asdict(intent),
            about=f"{counted(intent.records, 'record')} to {row.tp}",
            expected=KnownTopic(topic_id=topic.topic_id),
            partitions=(row,),
        )
    ]


def _remaining(file: str, done: int) -> Iterator[list[LostRecord]]:
    """The batches that are kept, without their first records."""
    first = 0
    for batch in kept.kept_batches(file):
        if left := batch[max(0, done - first) :]:
            yield left
        first += len(batch)


def _add_range(offsets: list[OffsetRange], start: int, end: int) -> None:
    if offsets and offsets[-1].to_offset == start:
        start = offsets.pop().from_offset
    offsets.append(OffsetRange(start, end))


def _produced(batch: Sequence[LostRecord], recovery: Produce, producer: Producer, sequence: int) -> bytes:
    """A batch as a producer sends it: with the codec of the lost one, offsets from 0 on."""
    is_marked = producer is not NO_PRODUCER
    records = [
        (
            marked(recovery.source, lost, recovery.incident)
            if is_marked
            else lost.record._replace(headers=())
        )._replace(offset=offset)
        for offset, lost in enumerate(batch)
    ]
    return write_batch(
        records,
        codec=batch[0].codec,
        base_offset=0,
        partition_leader_epoch=-1,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence & 0x7FFFFFFF if is_marked else NO_SEQUENCE,
    )


class _Pace:
    """Keeps to a number of bytes a second."""

    def __init__(self, wire: Wire, max_rate: int | None) -> None:
        self._wire, self._rate = wire, max_rate
        self._begun, self._bytes = time.monotonic(), 0

    def wait_for(self, size: int) -> None:
        """Wait until so many bytes may be sent."""
        if self._rate:
            early = self._bytes / self._rate - (time.monotonic() - self._begun)
            if early > 0:
                self._wire.pause(early)
        self._bytes += size


class _Leader:
    """Who leads a partition, as of the last look."""

    def __init__(self, wire: Wire, tp: TopicPartition) -> None:
        self._wire, self._tp = wire, tp
        self.leader: int | None = None
        self.topic_id = uuid.UUID(int=0)
        self.look()

    def look(self) -> None:
        """Read it again; None where nobody leads it or no broker answers."""
        self.leader = None
        with suppress(NoAnswer):
            leader, _, self.topic_id = led(self._wire, self._tp)
            self.leader = leader if leader >= 0 else None


def _produce(
    wire: Wire, tp: TopicPartition, leaders: _Leader, data: bytes, *, is_idempotent: bool
) -> tuple[int, int, str | None]:
    """The first offset of a batch, or the error of the last attempt and its message; NoAnswer if there is none.

    A batch that is sent again has the same sequence: a leader that has it already answers with its offset. One without
    a sequence is sent again only where none of it is in the log.
    """
    end = time.monotonic() + PATIENCE
    while True:
        lost: NoAnswer | None = None
        code, base, message = min(LEADER_MOVES), -1, None
        try:
            if leaders.leader is not None:
                request = _request(wire, tp, leaders.topic_id, data)
                answer = wire.send(request, leaders.leader, timeout=wire.access.timeout + SERVER_ROOM)
                (partition,) = answer.responses[0].partition_responses
                code, base = int(partition.error_code), int(partition.base_offset)
                message = getattr(partition, "error_message", None)
        except NoAnswer as error:
            lost = error
        if code in OTHER_WRITER:
            raise _other_writer(tp)
        is_certain = is_idempotent or (lost is None and code not in MAY_BE_THERE)
        if code not in LEADER_MOVES or not is_certain or time.monotonic() > end:
            if lost is not None:
                raise lost
            return base, code, message
        wire.pause(LOOK)
        leaders.look()


def _request(wire: Wire, tp: TopicPartition, topic_id: uuid.UUID, data: bytes) -> ProduceRequest:
    kind = ProduceRequest.TopicProduceData
    topic = kind(
        name=tp.topic,
        topic_id=topic_id,
        partition_data=[kind.PartitionProduceData(index=tp.partition, records=data)],
    )
    most = {} if topic_id.int else {"max_version": BY_NAME}
    timeout = int(wire.access.timeout * 1000)
    return ProduceRequest(transactional_id=None, acks=ALL, timeout_ms=timeout, topic_data=[topic], **most)


def _refuse_few_replicas(wire: Wire, tp: TopicPartition) -> None:
    """Raise Refused if fewer replicas are in sync than brokers ask for before they take a record with acks=all."""
    isr = led(wire, tp).isr
    values = [
        config.value or ""
        for _, configs in in_force(wire, "topics", [tp.topic], [MIN_ISR])
        if not isinstance(configs, KctlError)  # without the right to read it the leader itself refuses
        for config in configs
        if config.key == MIN_ISR
    ]
    least = (whole_number(values[0]) if values else None) or 1
    if len(isr) < least:
        raise Refused(
            f"{tp} has {counted(len(isr), 'replica')} in sync, and {MIN_ISR} is {least}: brokers refuse acks=all; "
            "nothing was written",
            "start the brokers of its other replicas and wait until they are in sync (`kctl topic describe`)",
        )


def _await_committed(wire: Wire, tp: TopicPartition) -> None:
    """Wait until all that stands in the log is committed, so that it is read back. Raises KctlError."""
    end = time.monotonic() + PATIENCE
    leader = place_of(wire, tp).leader
    log_end = list_offsets(wire, [(leader, tp)], LATEST)[leader, tp]
    if isinstance(log_end, KctlError):
        raise log_end
    while (placed := place_of(wire, tp)).high_watermark < log_end:
        if time.monotonic() > end:
            raise BrokerError(
                f"the log of {tp} ends at {log_end:,} and is committed up to {placed.high_watermark:,} only; nothing was written",
                "wait until its replicas are in sync, then run it again",
            )
        wire.pause(LOOK)
