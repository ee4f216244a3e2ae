"""Groups, offsets and transactions as rows: what the commands print and the audit writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from formats.log.records import Entry
from formats.log_dir.file_names import FolderKind
from formats.values import Struct
from kctl.evidence.alive import Registered
from kctl.evidence.model import Evidence, Replica
from kctl.findings import Place
from kctl.findings.internal_topics import (
    HANGING_TRANSACTION,
    LOG_UNREADABLE,
    RECORD_TYPE_UNKNOWN,
    RECORD_UNREADABLE,
)
from kctl.internal_topics.groups import Commit, Groups, Member, fold_groups
from kctl.internal_topics.reading import (
    NOW,
    AsOf,
    TopicRecord,
    Unreadable,
    copies_to_read,
    entries,
    segments,
    topic_records,
    whole_copies,
)
from kctl.internal_topics.transactions import (
    OpenTransaction,
    Transaction,
    Transactions,
    abort_command,
    fold_transactions,
    is_ended,
    is_every_partition,
    none_began_in,
    open_transactions,
    why_it_hangs,
)
from kctl.judging.judgement import Judgement
from kctl.judging.transactions import judge_transactions
from kctl.replica.copies.copy import live_copies, partitions_in
from kctl.replica.copies.moments import INTERNAL_COMPACTED, clusters_of
from kctl.rows.internal_topics import (
    COMMITTED_OFFSET,
    GROUP,
    GROUP_MEMBER,
    OPEN_TRANSACTION,
    TRANSACTION,
)

Row = dict[str, object]
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"


def groups_in(evidence: Evidence, as_of: AsOf = NOW) -> tuple[Groups, list[Unreadable]] | None:
    """The groups, and what could not be read; None where no copy of the topic is there."""
    trouble: list[Unreadable] = []
    copies = whole_copies(evidence, CONSUMER_OFFSETS)
    return (fold_groups(_records(copies, as_of, trouble)), trouble) if copies else None


def transactions_in(evidence: Evidence, as_of: AsOf = NOW) -> tuple[Transactions, list[Unreadable]] | None:
    """The transactional ids that coordinators know; None where no copy of the topic is there."""
    trouble: list[Unreadable] = []
    copies = whole_copies(evidence, TRANSACTION_STATE)
    if not copies:
        return None
    state = fold_transactions(_records(copies, as_of, trouble))
    there = {copy.partition for copy in copies}
    state.is_whole = not (trouble or state.unreadable) and is_every_partition(there, state.by_id.values())
    return state, trouble


def _records(copies: Iterable[Replica], as_of: AsOf, trouble: list[Unreadable]) -> Iterator[TopicRecord]:
    return (record for copy in copies for record in topic_records(copy, as_of=as_of, trouble=trouble))


MOST_PARTITIONS = 100_000
"""More than a topic has; a number beyond is no partition's."""


def partitions_without_copy(evidence: Evidence, topic: str) -> list[int]:
    """Partitions of an internal topic that are told of and of which no copy is there, ascending.

    Numbers have no gaps, so that each tells of those below it; checkpoints name every partition of their broker.
    """
    there = {
        replica.partition
        for replica in evidence.replicas
        if replica.topic == topic and replica.kind is FolderKind.LIVE
    }
    named = {
        where.partition
        for log_dir in evidence.log_dirs
        for where in partitions_in(log_dir)
        if where.topic == topic
    }
    told = max((number for number in there | named if number < MOST_PARTITIONS), default=-1)
    return sorted({*range(told + 1)} - there)


def group_row(groups: Groups, name: str) -> Row:
    """The row of a group."""
    group, commits = groups.group(name), groups.commits.get(name, {}).values()
    return GROUP(
        group=name,
        state=group.state,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        generation=group.generation,
        leader=group.leader,
        state_timestamp=group.state_timestamp,
        members=len(group.members),
        offsets=len(commits),
        last_commit_timestamp=max(
            (c.commit_timestamp for c in commits if c.commit_timestamp is not None), default=None
        ),
        log_partition=group.log_partition,
    )


def member_row(group: str, member: Member) -> Row:
    """The row of a member."""
    values = member._asdict()
    values["assignment"] = None if member.assignment is None else list(map(str, member.assignment))
    return GROUP_MEMBER(group=group, **values)


def commit_row(commit: Commit) -> Row:
    """The row of a commit."""
    return COMMITTED_OFFSET(**commit._asdict())


def transaction_row(one: Transaction) -> Row:
    """The row of a transactional id."""
    return TRANSACTION(**{**one._asdict(), "partitions": list(map(str, one.partitions))})


def unreadable_rows(
    topic: str, records: Iterable[tuple[int, int, str]], trouble: Iterable[Unreadable]
) -> Iterator[Row]:
    """Findings about records and ranges that could not be read."""
    for partition, offset, what in records:
        place = Place(topic=topic, partition=partition, base_offset=offset, last_offset=offset)
        yield RECORD_UNREADABLE.at(place, offset=offset, topic=topic, partition=partition, what=what).row()
    for unreadable in trouble:
        place = Place(topic=topic, file=str(unreadable.file), position=unreadable.position)
        yield LOG_UNREADABLE.at(place, what=unreadable.what).row()


def unknown_rows(groups: Groups) -> Iterator[Row]:
    """Findings about records of types that kctl does not know."""
    for kind, count in sorted(groups.unknown_types.items()):
        place = Place(topic=CONSUMER_OFFSETS)
        yield RECORD_TYPE_UNKNOWN.at(place, count=count, type=kind, topic=CONSUMER_OFFSETS).row()


def open_rows(evidence: Evidence, *, every: bool) -> Iterator[Row | Judgement]:
    """Transactions that data logs hold open, but those that somebody will end; `every`: those too; judgements.

    `hanging` is null where the evidence does not tell: without the part of `__transaction_state` that may know better.
    """
    known = transactions_in(evidence)
    state = known[0] if known else None
    unseen = _unseen_in(evidence)
    cut: set[int] = set()  # partitions of __transaction_state
    # It comes first: what the others' coordinators know depends on it.
    for topic in sorted(
        {replica.topic for replica in evidence.replicas}, key=lambda name: (name != TRANSACTION_STATE, name)
    ):
        for replica in copies_to_read(evidence, topic):
            trouble: list[Unreadable] = []
            read = _Read()
            found = entries(replica.folder, trouble, arriving=replica.arriving)
            hanging: list[bool | None] = []
            for one in open_transactions(replica.topic_partition, read.follow(found)):
                if not is_ended(one, replica.folder, log_end=read.end):
                    coordinator = state.of_producer(one.producer_id) if state else None
                    is_decided = state is not None and (
                        coordinator.log_partition not in cut if coordinator else state.is_whole and not cut
                    )
                    why = why_it_hangs(one, coordinator) if is_decided else None
                    hanging.append(bool(why) if is_decided else None)
                    if why or every or not is_decided:
                        yield from _rows_of(one, coordinator, hanging[-1], why)
            closed = [unreadable for unreadable in trouble if unreadable.is_closed]
            yield from unreadable_rows(topic, [], closed)
            lacking, hole = unseen(replica, read)
            if lacking and topic == TRANSACTION_STATE:
                cut.add(replica.partition)
            said = [unreadable.what for unreadable in trouble]
            yield judge_transactions(replica.topic_partition, hanging, said, lacking, hole)


class _Read(Struct):
    """How far a log was read, and the first offsets [FROM, TO) in its middle at which it holds nothing."""

    end: int = 0
    hole: tuple[int, int] | None = None

    def follow(self, found: Iterable[Entry]) -> Iterator[Entry]:
        """The same entries; what is known of the log is kept up to date."""
        is_first = True
        for entry in found:
            # Of wrappers before message format 2 only the last offset is stored.
            if not is_first and self.hole is None and entry.batch and entry.base_offset > self.end:
                self.hole = self.end, entry.base_offset
            is_first = False
            self.end = entry.last_offset + 1
            yield entry


Range = tuple[int, int] | None


def _unseen_in(evidence: Evidence) -> Callable[[Replica, _Read], tuple[Range, Range]]:
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
    one: OpenTransaction, coordinator: Transaction | None, hanging: bool | None, why: str | None
) -> Iterator[Row]:
    yield OPEN_TRANSACTION(
        **one._asdict(),
        transactional_id=coordinator.transactional_id if coordinator else None,
        hanging=hanging,
        why=why,
        abort_command=abort_command(one) if why else None,
    )
    if why:
        place = Place(
            topic=one.topic,
            partition=one.partition,
            base_offset=one.first_offset,
            last_offset=one.last_offset,
        )
        yield HANGING_TRANSACTION.at(
            place, producer_id=one.producer_id, producer_epoch=one.producer_epoch, why=why
        ).row()


def internal_topic_rows(evidence: Evidence) -> Iterator[Row]:
    """Everything that the internal topics of the evidence say, for the audit."""
    from kctl.internal_topics.metadata_rows import furthest_rows, metadata_folders

    groups = groups_in(evidence)
    if groups:
        for name in groups[0].names():
            yield group_row(groups[0], name)
            yield from (member_row(name, member) for member in groups[0].group(name).members)
            for _, commit in sorted(groups[0].commits.get(name, {}).items()):
                yield commit_row(commit)
        yield from unreadable_rows(CONSUMER_OFFSETS, groups[0].unreadable, groups[1])
        yield from unknown_rows(groups[0])
    transactions = transactions_in(evidence)
    if transactions:
        yield from (transaction_row(one) for _, one in sorted(transactions[0].by_id.items()))
        yield from unreadable_rows(TRANSACTION_STATE, transactions[0].unreadable, transactions[1])
    yield from furthest_rows(metadata_folders(evidence))
