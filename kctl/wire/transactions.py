"""Transactions that a partition's log holds open: who began them, whether anybody will end them, and the marker.

Source: KIP-664 (DescribeProducers, ListTransactions); KIP-98 (WriteTxnMarkers)
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from formats.words import counted
from kctl.changes.kinds.records import AbortTransaction
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.interface import Cluster, Conflict
from kctl.cluster.names import unknown_partition
from kctl.cluster.requests import needs
from kctl.cluster.rights import TOPIC, TRANSACTIONAL_ID, MissingRight, Right, grant
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, Refused
from kctl.findings import Place
from kctl.findings.internal_topics import HANGING_TRANSACTION
from kctl.internal_topics.transactions import OpenTransaction, Transaction, why_it_hangs
from kctl.judging.judgement import Judgement, JudgementSubject, MissingEvidence, Question, Verdict
from kctl.judging.transactions import judge_transactions
from kctl.model import Row, TopicPartition, command_line
from kctl.rows.internal_topics import OPEN_TRANSACTION
from kctl.wire.adapter import BrokerError, Leaderless, TooOld, Wire
from kctl.wire.hidden import visibility_of
from kctl.wire.protocol.messages import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    MetadataRequest,
    WriteTxnMarkersRequest,
)
from kctl.wire.rights import failure, right_for
from kctl.wire.writes.present import existing_replicas
from kctl.wire.writes.requests import PartitionRow, Quantifier, Request, RequestItem

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
    for topic in answer.topics:
        if (right := right_for("Metadata", topic.error_code, tp.topic)) is not None:
            raise MissingRight(right, wire.principal, f"topic {tp.topic}")
    leaders = {p.partition_index: p.leader_id for topic in answer.topics for p in topic.partitions}
    if tp.partition not in leaders:
        raise unknown_partition(tp, leaders)
    if leaders[tp.partition] < 0:
        raise Leaderless(f"{tp} has no leader")
    return int(leaders[tp.partition])


def open_transactions(wire: Wire, tp: TopicPartition) -> list[PartitionTransaction]:
    """The transactions that are open in a partition, by offset. Raises KctlError."""
    open_in = _open_at(wire, {leader_of(wire, tp): [tp]})[tp]
    if isinstance(open_in, KctlError):
        raise open_in
    return open_in


Open = list[PartitionTransaction]


def _open_at(
    wire: Wire, led: Mapping[int, Sequence[TopicPartition]]
) -> dict[TopicPartition, Open | KctlError]:
    """The open transactions of partitions, by offset, from their leaders; or why a leader does not tell."""
    return {
        tp: answer if isinstance(answer, KctlError) else _open_in(answer)
        for tp, answer in producers_at(wire, led).items()
    }


def producers_at(
    wire: Wire, led: Mapping[int, Sequence[TopicPartition]]
) -> dict[TopicPartition, list[Any] | KctlError]:
    """The producers that leaders know in partitions, as they answer; or why one does not tell."""
    requests = [
        (
            leader,
            DescribeProducersRequest(
                topics=[
                    DescribeProducersRequest.TopicRequest(
                        name=topic, partition_indexes=[tp.partition for tp in of_topic]
                    )
                    for topic, of_topic in groupby(sorted(partitions), key=lambda tp: tp.topic)
                ]
            ),
        )
        for leader, partitions in led.items()
    ]
    missing = BrokerError("the answer does not include it")
    answers: dict[TopicPartition, list[Any] | KctlError] = {tp: missing for tps in led.values() for tp in tps}
    for (leader, _), answer in zip(requests, wire.send_all(requests), strict=True):
        if isinstance(answer, KctlError):
            answers |= dict.fromkeys(led[leader], answer)
            continue
        for topic in answer.topics:
            for partition in topic.partitions:
                tp = TopicPartition(str(topic.name), int(partition.partition_index))
                code, message = partition.error_code, partition.error_message
                answers[tp] = (
                    failure(wire, f"producers of {tp}", "DescribeProducers", code, tp.topic, message)
                    if code
                    else list(partition.active_producers)
                )
    return answers


def _open_in(producers: Iterable[Any]) -> Open:
    transactions = [
        PartitionTransaction(
            int(producer.producer_id),
            int(producer.producer_epoch),
            # A producer's first transaction shows -1, which no marker may say.
            max(int(producer.coordinator_epoch), 0),
            int(producer.current_txn_start_offset),
            int(producer.last_timestamp),
        )
        for producer in producers
        if producer.current_txn_start_offset >= 0
    ]
    return sorted(transactions, key=lambda transaction: transaction.start_offset)


class OpenInPartition(NamedTuple):
    """A transaction that is open in a partition, and what its coordinator knows of it.

    `hangs`: no coordinator will end it, for the reason `why`; None if a coordinator could not be asked.
    """

    partition: TopicPartition
    transaction: PartitionTransaction
    coordinator: Transaction | None
    hangs: bool | None
    why: str | None


def find_open(
    wire: Wire, state: ClusterState, partitions: Iterable[TopicPartition]
) -> tuple[list[OpenInPartition], dict[TopicPartition, KctlError]]:
    """The open transactions of partitions, by partition and offset, and the partitions that could not be read."""
    led: dict[int, list[TopicPartition]] = {}
    failures: dict[TopicPartition, KctlError] = {}
    for tp in sorted(partitions):
        leader = state.leader(tp)
        if leader is None or leader < 0:
            failures[tp] = Leaderless(f"{tp} has no leader")
        else:
            led.setdefault(leader, []).append(tp)
    open_in: list[tuple[TopicPartition, PartitionTransaction]] = []
    for tp, answer in sorted(_open_at(wire, led).items(), key=lambda item: item[0]):
        if isinstance(answer, KctlError):
            failures[tp] = answer
        else:
            open_in += [(tp, transaction) for transaction in answer]
    return _coordinated(wire, open_in, led), failures


def with_coordinators(wire: Wire, tp: TopicPartition) -> list[OpenInPartition]:
    """The open transactions of one partition, by offset. Raises KctlError."""
    leader = leader_of(wire, tp)
    answer = _open_at(wire, {leader: [tp]})[tp]
    if isinstance(answer, KctlError):
        raise answer
    return _coordinated(wire, [(tp, transaction) for transaction in answer], {leader: [tp]})


def _coordinated(
    wire: Wire,
    open_in: Sequence[tuple[TopicPartition, PartitionTransaction]],
    led: Mapping[int, Sequence[TopicPartition]],
) -> list[OpenInPartition]:
    """What coordinators know of open transactions.

    One that seems to hang is looked at once more: its marker may have been written meanwhile.
    """
    if not open_in:
        return []
    known, unread = coordinated(wire, {transaction.producer_id for _, transaction in open_in})
    judged = []
    for tp, transaction in open_in:
        coordinator = known.get(transaction.producer_id)
        if coordinator is None and unread:
            judged.append(OpenInPartition(tp, transaction, None, None, unread))
            continue
        why = why_it_hangs(
            OpenTransaction(
                *tp,
                transaction.producer_id,
                transaction.producer_epoch,
                transaction.start_offset,
                transaction.start_offset,
                transaction.last_timestamp,
            ),
            coordinator,
        )
        judged.append(OpenInPartition(tp, transaction, coordinator, why is not None, why))
    suspects = {one.partition for one in judged if one.hangs}
    if not suspects:
        return judged
    again = _open_at(
        wire,
        {leader: chosen for leader, tps in led.items() if (chosen := [tp for tp in tps if tp in suspects])},
    )

    def is_still(one: OpenInPartition) -> bool:
        answer = again.get(one.partition)
        return not isinstance(answer, list) or any(
            (now.producer_id, now.start_offset) == (one.transaction.producer_id, one.transaction.start_offset)
            for now in answer
        )

    return [one for one in judged if not one.hangs or is_still(one)]


def lacking_request(wire: Wire) -> str | None:
    """The request that tells open transactions and that the brokers are too old for; None if they know both."""
    requests = (DescribeProducersRequest, ListTransactionsRequest)
    lacking = (request.__name__ for request in requests if wire.version_of(request) is None)
    return next((name.removesuffix("Request") for name in lacking), None)


def asked_rows(
    wire: Wire, state: ClusterState, partitions: Sequence[TopicPartition], *, every: bool
) -> Iterator[Row | Judgement]:
    """Open transactions of partitions that no coordinator will end (`every`: all of them), and judgements.

    Raises KctlError where the brokers are too old to be asked.
    """
    if lacking := lacking_request(wire):
        raise TooOld(needs(lacking), "name the topics and __transaction_state: kctl then reads their logs")
    transactions, failures = find_open(wire, state, partitions)
    if state.hidden:
        get = grant([Right("Describe", TOPIC, "*")], wire.principal)
        missing = MissingEvidence("topics that are hidden", None, None, state.hidden, get)
        yield Judgement(
            Question.TRANSACTIONS, Verdict.COULD_NOT_JUDGE, JudgementSubject(), state.hidden, (missing,)
        )
    by_partition: dict[TopicPartition, list[OpenInPartition]] = {}
    for transaction in transactions:
        by_partition.setdefault(transaction.partition, []).append(transaction)
    for tp in partitions:
        open_in = by_partition.get(tp, [])
        for held in open_in:
            if held.hangs is not False or every:
                yield from _rows_of(held)
        subject = JudgementSubject(tp.topic, tp.partition)
        if tp in failures:
            failure = failures[tp]
            missing = MissingEvidence(
                "the producers of its leader", None, None, failure.message, failure.hint or ""
            )
            yield Judgement(
                Question.TRANSACTIONS, Verdict.COULD_NOT_JUDGE, subject, failure.message, (missing,)
            )
        elif unread := next((held.why for held in open_in if held.hangs is None), None):
            are_hidden = bool(visibility_of(wire, "transactional ids").hidden)
            right = Right("Describe", TRANSACTIONAL_ID, "*")
            get = grant([right], wire.principal) if are_hidden else "run it again when they answer"
            missing = MissingEvidence("the coordinators' answers", None, None, unread, get)
            verdict = Verdict.DAMAGED if any(held.hangs for held in open_in) else Verdict.COULD_NOT_JUDGE
            yield Judgement(Question.TRANSACTIONS, verdict, subject, unread, (missing,))
        else:
            yield judge_transactions(tp, [held.hangs for held in open_in if held.hangs is not None])


def _rows_of(held: OpenInPartition) -> Iterator[Row]:
    opened, known = held.transaction, held.coordinator
    at = ("--start-offset", str(opened.start_offset))
    command = command_line("kctl transactions abort", [str(held.partition)], at)
    yield OPEN_TRANSACTION(
        **held.partition._asdict(),
        producer_id=opened.producer_id,
        producer_epoch=opened.producer_epoch,
        first_offset=opened.start_offset,
        last_timestamp=opened.last_timestamp,
        transactional_id=known.transactional_id if known else None,
        hanging=held.hangs,
        why=held.why if held.hangs else None,
        abort_command=command if held.hangs else None,
    )
    if held.hangs:
        place = Place(
            topic=held.partition.topic, partition=held.partition.partition, base_offset=opened.start_offset
        )
        yield HANGING_TRANSACTION.at(
            place, producer_id=opened.producer_id, producer_epoch=opened.producer_epoch, why=held.why
        ).row()


def coordinated(wire: Wire, producer_ids: Collection[int]) -> tuple[dict[int, Transaction], str | None]:
    """What coordinators know of producers (of all without any), by id, and why one could not be asked."""
    nodes, unread = wire.nodes, "; ".join(filter(None, visibility_of(wire, "transactional ids"))) or None
    request = ListTransactionsRequest
    answers = wire.send_all(
        [
            (n, request(state_filters=[], producer_id_filters=sorted(producer_ids), max_version=0))
            for n in nodes
        ]
    )
    ids: dict[int, list[str]] = {}
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, KctlError):
            unread = answer.message
        elif answer.error_code:
            place = f"transactions of broker {node}"
            unread = failure(wire, place, "ListTransactions", answer.error_code).message
        else:
            ids[node] = [str(t.transactional_id) for t in answer.transaction_states]
    asked = [
        (node, DescribeTransactionsRequest(transactional_ids=names)) for node, names in ids.items() if names
    ]
    known: dict[int, Transaction] = {}
    for _, answer in zip(asked, wire.send_all(asked), strict=True):
        if isinstance(answer, KctlError):
            unread = answer.message
            continue
        for described in answer.transaction_states:
            if described.error_code:
                name = str(described.transactional_id)
                unread = failure(
                    wire, f"transaction {name}", "DescribeTransactions", described.error_code, name
                ).message
                continue
            partitions = tuple(
                TopicPartition(str(topic.topic), int(number))
                for topic in described.topics
                for number in topic.partitions
            )
            started = int(described.transaction_start_time_ms)
            known[int(described.producer_id)] = Transaction(
                str(described.transactional_id),
                int(described.producer_id),
                int(described.producer_epoch),
                str(described.transaction_state),
                int(described.transaction_timeout_ms),
                started if started >= 0 else None,
                -1,
                partitions,
                -1,
                -1,
            )
    return known, unread


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
            why = failure(wire, f"transactions of broker {node}", "ListTransactions", answer.error_code)
            raise Refused(f"{why.message}; nothing was written", why.hint)
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
            f"{counted(len(transactions), 'open transaction')} in {tp}, at {offsets}",
            "choose one with --start-offset",
        )
    (transaction,) = transactions
    warnings = []
    if why := "; ".join(filter(None, visibility_of(wire, "transactional ids"))):
        note = f"whether a coordinator still has the transaction is unknown: {why}"
        if not force:
            raise Refused(
                f"{note}; nothing was written",
                f"{grant([Right('Describe', TRANSACTIONAL_ID, '*')], wire.principal)}; --force writes the marker anyway",
            )
        warnings.append(note)
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


class WriteTxnMarkers(Request, frozen=True, kw_only=True):
    """The marker that ends a transaction of a partition, to the partition's leader."""

    is_to_be_seen: ClassVar[bool] = True
    partitions: tuple[PartitionRow, ...]
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int

    def _is_open(self, wire: Wire) -> bool:
        (row,) = self.partitions
        return any(
            (transaction.producer_id, transaction.start_offset) == (self.producer_id, self.start_offset)
            for transaction in open_transactions(wire, row.tp)
        )

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        """Write the marker. Raises Conflict where nothing is open."""
        (row,) = self.partitions
        if not self._is_open(wire):
            raise Conflict(
                f"the transaction at offset {self.start_offset} of {row.tp} has ended; nothing was written"
            )
        kind = WriteTxnMarkersRequest.WritableTxnMarker
        marker = kind(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            transaction_result=False,
            topics=[kind.WritableTxnMarkerTopic(name=row.topic, partition_indexes=[row.partition])],
            coordinator_epoch=self.coordinator_epoch,
        )
        answer = wire.send(WriteTxnMarkersRequest(markers=[marker], max_version=1), leader_of(wire, row.tp))
        (partition,) = answer.markers[0].topics[0].partitions
        yield RequestItem(str(row.tp), int(partition.error_code), None)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        return not self._is_open(wire)


def abort_transaction(fresh: ClusterState, intent: AbortTransaction, _: ClusterState) -> list[Request]:
    """The marker that ends the transaction."""
    row = PartitionRow(intent.topic, intent.partition)
    existing_replicas(fresh, row.tp)
    return [
        WriteTxnMarkers(
            about=f"abort {row.tp}",
            partitions=(row,),
            producer_id=intent.producer_id,
            producer_epoch=intent.producer_epoch,
            coordinator_epoch=intent.coordinator_epoch,
            start_offset=intent.start_offset,
        )
    ]
