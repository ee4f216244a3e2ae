"""Groups, offsets and transactions of evidence as rows: what the commands print and the audit writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from formats.records import Entry
from kctl.errors import KctlError
from kctl.evidence.model import Evidence
from kctl.findings import Place
from kctl.findings.internal_topics import (
    HANGING_TRANSACTION,
    LOG_UNREADABLE,
    RECORD_TYPE_UNKNOWN,
    RECORD_UNREADABLE,
)
from kctl.internal_topics.ended_transactions import is_ended
from kctl.internal_topics.groups import Commit, Groups, Member, fold_groups
from kctl.internal_topics.metadata_log import TOPIC as CLUSTER_METADATA
from kctl.internal_topics.metadata_rows import furthest_image, metadata_folders, metadata_rows
from kctl.internal_topics.reading import NOW, AsOf, Unreadable, copies_to_read, entries, topic_records
from kctl.internal_topics.transactions import (
    OpenTransaction,
    Transaction,
    Transactions,
    abort_command,
    fold_transactions,
    is_every_partition,
    open_transactions,
    why_it_hangs,
)
from kctl.rows.internal_topics import COMMITTED_OFFSET, GROUP, GROUP_MEMBER, OPEN_TRANSACTION, TRANSACTION

Row = dict[str, object]
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"


def groups_in(evidence: Evidence, as_of: AsOf = NOW) -> tuple[Groups, list[Unreadable]] | None:
    """The groups, and what could not be read; None where no copy of the topic is there."""
    trouble: list[Unreadable] = []
    copies = copies_to_read(evidence, CONSUMER_OFFSETS)
    if not copies:
        return None
    records = (r for one in copies for r in topic_records(one, as_of=as_of, trouble=trouble))
    return fold_groups(records), trouble


def transactions_in(evidence: Evidence, as_of: AsOf = NOW) -> tuple[Transactions, list[Unreadable]] | None:
    """The transactional ids that coordinators know; None where no copy of the topic is there."""
    trouble: list[Unreadable] = []
    copies = copies_to_read(evidence, TRANSACTION_STATE)
    if not copies:
        return None
    records = (r for one in copies for r in topic_records(one, as_of=as_of, trouble=trouble))
    state = fold_transactions(records)
    there = {one.partition for one in copies}
    state.is_whole = not (trouble or state.unreadable) and is_every_partition(there, state.by_id.values())
    return state, trouble


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
    values = commit._asdict()
    del values["log_timestamp"]
    return COMMITTED_OFFSET(**values)


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
    for one in trouble:
        place = Place(topic=topic, file=str(one.file), position=one.position)
        yield LOG_UNREADABLE.at(place, what=one.what).row()


def unknown_rows(groups: Groups) -> Iterator[Row]:
    """Findings about records of types that kctl does not know."""
    for kind, count in sorted(groups.unknown_types.items()):
        place = Place(topic=CONSUMER_OFFSETS)
        yield RECORD_TYPE_UNKNOWN.at(place, count=count, type=kind, topic=CONSUMER_OFFSETS).row()


def open_rows(evidence: Evidence, *, every: bool) -> Iterator[Row]:
    """Transactions that data logs hold open, but those that somebody will end; `every`: those too.

    `hanging` is null where the evidence does not tell: without the part of `__transaction_state` that may know better.
    """
    known = transactions_in(evidence)
    state = known[0] if known else None
    for topic in sorted({replica.topic for replica in evidence.replicas}):
        for replica in copies_to_read(evidence, topic):
            trouble: list[Unreadable] = []
            last = [-1]
            found = entries(replica.folder, trouble, arriving=replica.arriving)
            for one in open_transactions(replica.topic_partition, _followed(found, last)):
                if not is_ended(one, replica.folder, log_end=last[0] + 1):
                    yield from _rows_of(one, state, every)
            yield from unreadable_rows(topic, [], [one for one in trouble if one.is_closed])


def _followed(found: Iterable[Entry], last: list[int]) -> Iterator[Entry]:
    """The same entries; `last` is kept at the last offset so far."""
    for entry in found:
        last[0] = entry.last_offset
        yield entry


def _rows_of(one: OpenTransaction, state: Transactions | None, every: bool) -> Iterator[Row]:
    coordinator = state.of_producer(one.producer_id) if state else None
    is_decided = state is not None and (coordinator is not None or state.is_whole)
    why = why_it_hangs(one, coordinator) if is_decided else None
    if why or every or not is_decided:
        yield OPEN_TRANSACTION(
            **one._asdict(),
            transactional_id=coordinator.transactional_id if coordinator else None,
            hanging=bool(why) if is_decided else None,
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
    groups = groups_in(evidence)
    if groups:
        for name in groups[0].names():
            yield group_row(groups[0], name)
            yield from (member_row(name, one) for one in groups[0].group(name).members)
            for _, commit in sorted(groups[0].commits.get(name, {}).items()):
                yield commit_row(commit)
        yield from unreadable_rows(CONSUMER_OFFSETS, groups[0].unreadable, groups[1])
        yield from unknown_rows(groups[0])
    transactions = transactions_in(evidence)
    if transactions:
        yield from (transaction_row(one) for _, one in sorted(transactions[0].by_id.items()))
        yield from unreadable_rows(TRANSACTION_STATE, transactions[0].unreadable, transactions[1])
        yield from open_rows(evidence, every=True)
    yield from _metadata_rows(metadata_folders(evidence))


def _metadata_rows(copies: list[Path]) -> Iterator[Row]:
    if not copies:
        return
    try:
        image, trouble = furthest_image(copies)
    except KctlError as error:
        yield from unreadable_rows(CLUSTER_METADATA, [], [Unreadable(copies[0], 0, str(error))])
        return
    yield from metadata_rows(image)
    yield from unreadable_rows(CLUSTER_METADATA, [], trouble)
