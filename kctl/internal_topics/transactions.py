"""Transactions: what the coordinator knows (`__transaction_state`), what data logs hold open, and which hang.

A transaction hangs when a data log waits for a marker that the coordinator is not going to write: the coordinator
does not know the producer, knows it with a newer epoch, or holds its transaction for ended or without this partition.
The last stable offset of the partition stands still there, and `read_committed` consumers with it (KIP-664).

A producer snapshot may tell that a transaction ended whose marker is no longer in the log. The cleaner up to 2.1
takes a marker whose records lie in an earlier segment for one without records, and removes it while they stay
(`core:LogCleaner.scala`, cleanSegments @ 2.1.1; since 2.2.0 one state covers a whole cleaning). The broker goes by its
snapshots and holds nothing open.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError
from formats.log.record_batch import BatchHeader
from formats.log.records import LogEntry
from formats.log_dir.producer_snapshot import ProducerEntry, read_snapshot
from formats.messages.transaction_state import TransactionStatus, read_transaction_record
from formats.values import Struct, field
from kctl.files import read_whole
from kctl.internal_topics.reading import TopicRecord
from kctl.log.folder import read_folder
from kctl.model import TopicPartition

# States in which the coordinator still has markers to write, to the partitions that it lists.
UNDER_WAY = frozenset(
    {
        TransactionStatus.Ongoing,
        TransactionStatus.PrepareCommit,
        TransactionStatus.PrepareAbort,
        TransactionStatus.PrepareEpochFence,
    }
)

# Those in which it is about to: with its own epoch, which is ahead of the producer's after a timeout or a fence, and
# since 4.0 at each end (`core:TransactionCoordinator.scala @ 0.11.0.3`, abortTimedOutTransactions; KIP-890).
ENDING = frozenset({TransactionStatus.PrepareCommit.name, TransactionStatus.PrepareAbort.name})

DEFAULT_PARTITIONS = 50
"""transaction.state.log.num.partitions"""


class Transaction(NamedTuple):
    """A transactional id as its coordinator has it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_timestamp: int | None
    last_update_timestamp: int
    partitions: tuple[TopicPartition, ...]
    log_partition: int
    log_offset: int


class Transactions(Struct):
    """All transactional ids that the coordinators know."""

    by_id: dict[str, Transaction] = field(default_factory=dict)
    unreadable: list[tuple[int, int, str]] = field(default_factory=list)
    is_whole: bool = True
    """Whether every partition of the topic was there and could be read: else a producer may be known elsewhere."""

    def of_producer(self, producer_id: int) -> Transaction | None:
        """The transaction of a producer."""
        return next(
            (transaction for transaction in self.by_id.values() if transaction.producer_id == producer_id),
            None,
        )


def transaction_of(record: TopicRecord) -> tuple[str, Transaction | None]:
    """The transactional id of a record, and its state; None for a tombstone. `FormatError` where it cannot be read."""
    state_record = read_transaction_record(record.key or b"", record.value)
    if state_record.value is None:
        return state_record.transactional_id, None
    values = state_record.value
    status = values["transaction_status"]
    name = (
        TransactionStatus(status).name
        if status in TransactionStatus.__members__.values()
        else f"Unknown({status})"
    )
    started = values["transaction_start_timestamp_ms"]
    partitions = tuple(
        sorted(
            TopicPartition(topic["topic"], p)
            for topic in values["transaction_partitions"] or ()
            for p in topic["partition_ids"]
        )
    )
    return state_record.transactional_id, Transaction(
        state_record.transactional_id, values["producer_id"], values["producer_epoch"], name, values["transaction_timeout_ms"],
        started if started >= 0 else None, values["transaction_last_update_timestamp_ms"], partitions,
        record.partition, record.offset,
    )  # fmt: skip


def partition_for(transactional_id: str, count: int) -> int:
    """The partition of `__transaction_state` that has a transactional id, of so many.

    Source: TransactionStateManager.partitionFor (abs of Java's String.hashCode, modulo the count) @ 3.9.0-rc3
    """
    code = 0
    units = transactional_id.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >> 31 else code
    return (0 if signed == -(1 << 31) else abs(signed)) % count


def is_every_partition(partitions_read: set[int], transactions: Iterable[Transaction]) -> bool:
    """Whether these are all partitions of `__transaction_state`, as far as the evidence tells.

    They are not where a number is missing or an id lies where it would not with so many; nor where every id lies
    where it would with the default count, of which these are the first few.
    """
    ids, count = list(transactions), len(partitions_read)

    def fit(partitions: int) -> bool:
        return all(
            partition_for(transaction.transactional_id, partitions) == transaction.log_partition
            for transaction in ids
        )

    return (
        partitions_read == set(range(count))
        and fit(count)
        and (count >= DEFAULT_PARTITIONS or not fit(DEFAULT_PARTITIONS))
    )


def fold_transactions(records: Iterable[TopicRecord]) -> Transactions:
    """The state that the records leave."""
    state = Transactions()
    for record in records:
        try:
            name, transaction = transaction_of(record)
        except FormatError as error:
            state.unreadable.append((record.partition, record.offset, str(error)))
        else:
            if transaction is None:
                state.by_id.pop(name, None)
            else:
                state.by_id[name] = transaction
    return state


class OpenTransaction(NamedTuple):
    """A transaction that a data log holds open: nothing from `first_offset` on is stable."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    last_timestamp: int


def open_transactions(partition: TopicPartition, entries: Iterable[LogEntry]) -> list[OpenTransaction]:
    """The transactions that a log has begun and not ended, by first offset."""
    open_by_producer: dict[int, OpenTransaction] = {}
    for entry in entries:
        batch = entry.batch
        if batch is None or not batch.is_transactional or batch.producer_id < 0:
            continue
        if batch.is_control:
            open_by_producer.pop(batch.producer_id, None)
        else:
            open_by_producer[batch.producer_id] = _extended(
                partition, open_by_producer.get(batch.producer_id), batch
            )
    return sorted(open_by_producer.values(), key=lambda transaction: transaction.first_offset)


def _extended(
    partition: TopicPartition, before: OpenTransaction | None, batch: BatchHeader
) -> OpenTransaction:
    first = before.first_offset if before else batch.base_offset
    return OpenTransaction(
        partition.topic,
        partition.partition,
        batch.producer_id,
        batch.producer_epoch,
        first,
        batch.last_offset,
        batch.max_timestamp,
    )


def why_it_hangs(transaction: OpenTransaction, coordinator: Transaction | None) -> str | None:
    """Why no coordinator will end an open transaction; None if one will."""
    if coordinator is None:
        return f"no transactional id has producer {transaction.producer_id}"
    is_listed = TopicPartition(transaction.topic, transaction.partition) in coordinator.partitions
    if coordinator.producer_epoch > transaction.producer_epoch and not (
        is_listed and coordinator.state in ENDING
    ):
        return f"the coordinator has gone on to producer epoch {coordinator.producer_epoch}"
    if coordinator.state not in {status.name for status in UNDER_WAY}:
        return f"the coordinator holds {coordinator.transactional_id} for {coordinator.state}"
    if not is_listed:
        return f"{coordinator.transactional_id} is {coordinator.state} without this partition"
    return None


def abort_command(transaction: OpenTransaction) -> str:
    """The command of Kafka's tools that writes the missing marker; brokers of 3.0 and later find the producer."""
    return (
        f"kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic {transaction.topic} "
        f"--partition {transaction.partition} --start-offset {transaction.first_offset}"
    )


def is_ended(transaction: OpenTransaction, folder: Path, log_end: int) -> bool:
    """Whether the transaction is closed in the newest readable producer snapshot after its records."""
    producers = _known_behind(transaction.last_offset + 1, folder, log_end)
    return producers is not None and not any(_holds(producer, transaction) for producer in producers)


def none_began_in(hole: tuple[int, int], folder: Path, log_end: int) -> bool:
    """Whether the newest readable producer snapshot after a hole has no open transaction that began in the hole."""
    producers = _known_behind(hole[1], folder, log_end)
    return producers is not None and not any(
        hole[0] <= producer.current_txn_first_offset < hole[1] for producer in producers
    )


def _known_behind(offset: int, folder: Path, log_end: int) -> list[ProducerEntry] | None:
    """The producers in the newest readable snapshot at or after an offset; None if there is none.

    A snapshot beyond the log's end is ignored: a broker deletes it at its start.
    """
    try:
        snapshots = read_folder(folder).snapshots
    except OSError:
        return None
    for file in reversed(snapshots):
        if file.named and offset <= file.named.base_offset <= log_end:
            with suppress(OSError, FormatError):
                return list(read_snapshot(read_whole(file.path)))
    return None


def _holds(producer: ProducerEntry, transaction: OpenTransaction) -> bool:
    """Whether a snapshot entry has the transaction open. Kafka keeps the entry until it ends (isExpired)."""
    return (
        producer.producer_id == transaction.producer_id
        and 0 <= producer.current_txn_first_offset <= transaction.last_offset
    )
