"""Transactions that a partition's log holds open: who began them, whether anybody will end them, and the marker.

Source: KIP-664 (DescribeProducers, ListTransactions); KIP-98 (WriteTxnMarkers)
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kafka.protocol.admin.transactions import DescribeProducersRequest, ListTransactionsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer.transaction import WriteTxnMarkersRequest

from kctl.changes.intents import AbortTransaction
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.interface import Cluster, Conflict
from kctl.cluster.names import unknown_partition
from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition
from kctl.wire.adapter import BrokerError, Leaderless, Wire, error_name
from kctl.wire.writes.requests import OwnRequest, RequestItem

ENDED = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})


class PartitionTransaction(NamedTuple):
    """A transaction that is open in a partition; timestamps are milliseconds."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp: int


def leader_of(wire: Wire, tp: TopicPartition) -> int:
    """The partition's leader. Raises KctlError for an unknown partition or one without a leader."""
    requested = MetadataRequest.MetadataRequestTopic(name=tp.topic)
    answer = wire.read(MetadataRequest(topics=[requested], allow_auto_topic_creation=False))
    leaders = {p.partition_index: p.leader_id for topic in answer.topics for p in topic.partitions}
    if tp.partition not in leaders:
        raise unknown_partition(tp, leaders)
    if leaders[tp.partition] < 0:
        raise Leaderless(f"{tp} has no leader")
    return int(leaders[tp.partition])


def open_transactions(wire: Wire, tp: TopicPartition) -> list[PartitionTransaction]:
    """The transactions that are open in a partition, by offset. Raises KctlError."""
    topic = DescribeProducersRequest.TopicRequest(name=tp.topic, partition_indexes=[tp.partition])
    answer = wire.send(DescribeProducersRequest(topics=[topic]), leader_of(wire, tp))
    (partition,) = answer.topics[0].partitions
    if partition.error_code:
        raise BrokerError(
            f"{tp}: its producers cannot be read: {partition.error_message or error_name(partition.error_code)}"
        )
    transactions = [
        PartitionTransaction(
            int(producer.producer_id),
            int(producer.producer_epoch),
            # A producer's first transaction shows -1, which no marker may say.
            max(int(producer.coordinator_epoch), 0),
            int(producer.current_txn_start_offset),
            int(producer.last_timestamp),
        )
        for producer in partition.active_producers
        if producer.current_txn_start_offset >= 0
    ]
    return sorted(transactions, key=lambda transaction: transaction.start_offset)


def known_to_coordinators(wire: Wire, producer_id: int) -> list[tuple[str, str]]:
    """Transactional id and state of a producer's transactions that coordinators have not ended."""
    nodes = wire.nodes
    request = ListTransactionsRequest
    answers = wire.send_all(
        [(n, request(state_filters=[], producer_id_filters=[producer_id], max_version=0)) for n in nodes]
    )
    transactions = []
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, KctlError):
            raise Refused(
                f"{answer.message}: it may coordinate the transaction; nothing was written",
                "abort again when it answers",
            )
        if answer.error_code:
            raise Refused(
                f"broker {node} does not list transactions: {error_name(answer.error_code)}",
                "allow DESCRIBE of transactional ids to this user, and abort again",
            )
        transactions += [
            (str(transaction.transactional_id), str(transaction.transaction_state))
            for transaction in answer.transaction_states
            if transaction.transaction_state not in ENDED
        ]
    return transactions


def plan_abort(
    cluster: Cluster, wire: Wire, tp: TopicPartition, start_offset: int | None, *, force: bool = False
) -> Plan:
    """The plan of ending an open transaction; without `start_offset` the only one.

    Raises Refused if a coordinator still has it, unless `force`; KctlError if none is open.
    """
    transactions = [
        transaction
        for transaction in open_transactions(wire, tp)
        if start_offset in (None, transaction.start_offset)
    ]
    if not transactions:
        where = "" if start_offset is None else f" from offset {start_offset} on"
        raise KctlError(
            f"no transaction is open in {tp}{where}",
            "there is nothing to abort; `kctl transactions hanging` looks for others",
        )
    if len(transactions) > 1:
        offsets = ", ".join(str(transaction.start_offset) for transaction in transactions)
        raise Refused(
            f"{len(transactions)} transactions are open in {tp}, at {offsets}",
            "choose one with --start-offset",
        )
    (transaction,) = transactions
    warnings = []
    for id, state in known_to_coordinators(wire, transaction.producer_id):
        note = f"the coordinator of {id} still has the transaction ({state})"
        if not force:
            raise Refused(f"{note} and will end it; nothing was written", "--force writes the marker anyway")
        warnings.append(f"{note}: it stays {state} there until it times out or the producer ends it")
    intent = AbortTransaction(
        topic=tp.topic,
        partition=tp.partition,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        coordinator_epoch=transaction.coordinator_epoch,
        start_offset=transaction.start_offset,
    )
    return plan_of([intent], cluster, cluster.read_state([tp.topic]), warnings=warnings)


def is_open(wire: Wire, after: Mapping[str, Any]) -> bool:
    """Whether the transaction that a marker is to end is still open."""
    (row,) = after["partitions"]
    transactions = open_transactions(wire, TopicPartition(row["topic"], row["partition"]))
    return any(
        (transaction.producer_id, transaction.start_offset) == (after["producer_id"], after["start_offset"])
        for transaction in transactions
    )


def _abort(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    """Write the marker. Raises Conflict where nothing is open."""
    (row,) = after["partitions"]
    tp = TopicPartition(row["topic"], row["partition"])
    if not is_open(wire, after):
        raise Conflict(
            f"the transaction at offset {after['start_offset']} of {tp} has ended; nothing was written"
        )
    kind = WriteTxnMarkersRequest.WritableTxnMarker
    marker = kind(
        producer_id=after["producer_id"],
        producer_epoch=after["producer_epoch"],
        transaction_result=False,
        topics=[kind.WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
        coordinator_epoch=after["coordinator_epoch"],
    )
    answer = wire.send(WriteTxnMarkersRequest(markers=[marker], max_version=1), leader_of(wire, tp))
    (partition,) = answer.markers[0].topics[0].partitions
    yield RequestItem(str(tp), int(partition.error_code), None)


REQUESTS = {
    "WriteTxnMarkers": OwnRequest(
        _abort, lambda wire, after, of: not is_open(wire, after), lambda wire, before, after: None
    )
}
