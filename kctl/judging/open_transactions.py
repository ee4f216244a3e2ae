"""Transactions that data logs hold open as rows, with a judgement of each partition: whether one hangs there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from formats.log.records import LogEntry
from formats.values import Struct
from kctl.copies.moments import INTERNAL_COMPACTED, clusters_of
from kctl.evidence.alive import Registered
from kctl.evidence.model import FoundEvidence, Replica
from kctl.evidence.replica_copies import live_copies
from kctl.findings import Place
from kctl.findings.internal_topics import HANGING_TRANSACTION
from kctl.internal_topics.reading import (
    Unreadable,
    copies_to_read,
    entries,
    segments,
)
from kctl.internal_topics.rows import TRANSACTION_STATE, transactions_in, unreadable_rows
from kctl.internal_topics.transactions import (
    OpenTransaction,
    Transaction,
    abort_command,
    is_ended,
    none_began_in,
    open_transactions,
    why_it_hangs,
)
from kctl.judging.judgement import Judgement
from kctl.judging.transactions import judge_transactions
from kctl.model import Row
from kctl.rows.internal_topics import OPEN_TRANSACTION


def open_rows(evidence: FoundEvidence, *, every: bool) -> Iterator[Row | Judgement]:
    """Open transactions of data logs that no coordinator will end (`every`: all of them), and judgements.

    `hanging` is null where the evidence does not tell: without the part of `__transaction_state` that may know better.
    """
    stored = transactions_in(evidence)
    state = stored[0] if stored else None
    unseen = _unseen_in(evidence)
    cut: set[int] = set()  # partitions of __transaction_state
    # It comes first: what the others' coordinators know depends on it.
    for topic in sorted(
        {replica.topic for replica in evidence.replicas}, key=lambda name: (name != TRANSACTION_STATE, name)
    ):
        for replica in copies_to_read(evidence, topic):
            trouble: list[Unreadable] = []
            read = _Read()
            log_entries = entries(replica.folder, trouble, arriving=replica.arriving)
            hanging: list[bool | None] = []
            for transaction in open_transactions(replica.topic_partition, read.follow(log_entries)):
                if not is_ended(transaction, replica.folder, log_end=read.end):
                    coordinator = state.of_producer(transaction.producer_id) if state else None
                    is_decided = state is not None and (
                        coordinator.log_partition not in cut if coordinator else state.is_whole and not cut
                    )
                    why = why_it_hangs(transaction, coordinator) if is_decided else None
                    hanging.append(bool(why) if is_decided else None)
                    if why or every or not is_decided:
                        yield from _rows_of(transaction, coordinator, hanging[-1], why)
            closed = [unreadable for unreadable in trouble if unreadable.is_closed]
            yield from unreadable_rows(topic, [], closed)
            lacking, hole = unseen(replica, read)
            if lacking and topic == TRANSACTION_STATE:
                cut.add(replica.partition)
            reasons = [unreadable.what for unreadable in trouble]
            yield judge_transactions(replica.topic_partition, hanging, reasons, lacking, hole)


class _Read(Struct):
    """How far a log was read, and the first offsets [FROM, TO) in its middle at which it holds nothing."""

    end: int = 0
    hole: tuple[int, int] | None = None

    def follow(self, log_entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
        """The same entries; updates `end` and `hole` meanwhile."""
        is_first = True
        for entry in log_entries:
            # Of wrappers before message format 2 only the last offset is stored.
            if not is_first and self.hole is None and entry.batch and entry.base_offset > self.end:
                self.hole = self.end, entry.base_offset
            is_first = False
            self.end = entry.last_offset + 1
            yield entry


Range = tuple[int, int] | None


def _unseen_in(evidence: FoundEvidence) -> Callable[[Replica, _Read], tuple[Range, Range]]:
    """Which offsets [FROM, TO) a copy lacks of what its broker had, at its end and in its middle; None where none.

    The checkpoint of a broker that ran may have been copied after the log, and be ahead of it. In the middle a
    cleaner may have taken records, of another copy too that this one was fetched from, which is no loss, and a snapshot
    behind them knows what is open.
    """
    registered = Registered(evidence)
    copies = {copy.folder: copy for copy in live_copies(evidence)}
    cleaned = {copy.partition for copy in copies.values() if copy.checkpoint("cleaner") is not None}
    clusters = cache(lambda: tuple(clusters_of(evidence, lambda error: None).values()))

    def unseen(replica: Replica, read: _Read) -> tuple[Range, Range]:
        copy, log_end = copies.get(replica.folder), read.end
        may_be_cleaned = copy is None or not copy.was_never_cleaned or copy.partition in cleaned
        hole = None if may_be_cleaned or replica.topic in INTERNAL_COMPACTED else read.hole
        if hole and (
            none_began_in(hole, replica.folder, log_end)
            or any(cluster.is_compacted(replica.topic) for cluster in clusters())
        ):
            hole = None
        high_watermark = (copy.checkpoint("high_watermark") if copy else None) or 0
        if log_end >= high_watermark or registered.ran(replica.broker_id, replica.moment):
            return None, hole
        last = segments(replica.folder)[-1:]  # it may be empty
        log_end = max(log_end, *(int(path.stem) for path in last), 0)
        return ((log_end, high_watermark) if log_end < high_watermark else None), hole

    return unseen


def _rows_of(
    transaction: OpenTransaction, coordinator: Transaction | None, hanging: bool | None, why: str | None
) -> Iterator[Row]:
    yield OPEN_TRANSACTION(
        **transaction._asdict(),
        transactional_id=coordinator.transactional_id if coordinator else None,
        hanging=hanging,
        why=why,
        abort_command=abort_command(transaction) if why else None,
    )
    if why:
        place = Place(
            topic=transaction.topic,
            partition=transaction.partition,
            base_offset=transaction.first_offset,
            last_offset=transaction.last_offset,
        )
        yield HANGING_TRANSACTION.at(
            place, producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch, why=why
        ).row()
