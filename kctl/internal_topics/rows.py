"""Groups, offsets and transactions as rows: what the commands print and the audit writes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from formats.log_dir.file_names import FolderKind
from kctl.evidence.model import FoundEvidence, Replica
from kctl.evidence.replica_copies import partitions_in
from kctl.findings import Place
from kctl.findings.internal_topics import (
    LOG_UNREADABLE,
    RECORD_TYPE_UNKNOWN,
    RECORD_UNREADABLE,
)
from kctl.internal_topics.reading import (
    NOW,
    AsOf,
    TopicRecord,
    Unreadable,
    topic_records,
    whole_copies,
)
from kctl.internal_topics.transactions import (
    Transaction,
    Transactions,
    fold_transactions,
    is_every_partition,
)
from kctl.model import Row
from kctl.rows.internal_topics import (
    COMMITTED_OFFSET,
    GROUP,
    GROUP_MEMBER,
    TRANSACTION,
)

if TYPE_CHECKING:
    from kctl.internal_topics.groups import Groups, Member, OffsetCommit, PendingCommit

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"


def groups_in(evidence: FoundEvidence, as_of: AsOf = NOW) -> tuple[Groups, list[Unreadable]] | None:
    """The groups, and what could not be read; None without a copy of the topic."""
    from kctl.internal_topics.groups import fold_groups

    trouble: list[Unreadable] = []
    copies = whole_copies(evidence, CONSUMER_OFFSETS)
    if not copies:
        return None
    still_open: dict[Replica, Open] = {copy: {} for copy in copies}
    groups = fold_groups(
        record
        for copy in copies
        for record in topic_records(copy, as_of=as_of, trouble=trouble, still_open=still_open[copy])
    )
    for copy, by_producer in still_open.items():
        for (producer_id, epoch), records in by_producer.items():
            if records:
                groups.pending += _pending(copy, producer_id, epoch, records)
    return groups, trouble


Open = dict[tuple[int, int], list[TopicRecord]]


def _pending(
    copy: Replica, producer_id: int, epoch: int, records: list[TopicRecord]
) -> Iterator[PendingCommit]:
    """The offsets among the records of an open transaction, unless a snapshot says that it has ended."""
    from kctl.internal_topics.groups import Groups, PendingCommit, commit_of, read_group_records
    from kctl.internal_topics.transactions import OpenTransaction, is_ended

    first, last = records[0], records[-1]
    whole = OpenTransaction(
        CONSUMER_OFFSETS, copy.partition, producer_id, epoch, first.offset, last.offset, last.timestamp or -1
    )
    if not copy.arriving and is_ended(whole, copy.folder, sys.maxsize):
        return
    for record, read in read_group_records(records, Groups()):
        commit = commit_of(record, read)
        if commit is not None:
            yield PendingCommit(commit, producer_id, epoch)


def transactions_in(
    evidence: FoundEvidence, as_of: AsOf = NOW
) -> tuple[Transactions, list[Unreadable]] | None:
    """The transactional ids that coordinators know, and what could not be read; None without a copy of the topic."""
    trouble: list[Unreadable] = []
    copies = whole_copies(evidence, TRANSACTION_STATE)
    if not copies:
        return None
    state = fold_transactions(_records(copies, as_of, trouble))
    partitions = {copy.partition for copy in copies}
    state.is_whole = not (trouble or state.unreadable) and is_every_partition(
        partitions, state.by_id.values()
    )
    return state, trouble


def _records(copies: Iterable[Replica], as_of: AsOf, trouble: list[Unreadable]) -> Iterator[TopicRecord]:
    return (record for copy in copies for record in topic_records(copy, as_of=as_of, trouble=trouble))


MOST_PARTITIONS = 100_000
"""More than a topic has; a number beyond is no partition's."""


def partitions_without_copy(evidence: FoundEvidence, topic: str) -> list[int]:
    """Partitions of an internal topic without a copy in the evidence, ascending.

    Partition numbers have no gaps, so the highest known one tells all; checkpoints name every partition of a broker.
    """
    copied = {
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
    highest = max((number for number in copied | named if number < MOST_PARTITIONS), default=-1)
    return sorted({*range(highest + 1)} - copied)


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


def commit_row(commit: OffsetCommit) -> Row:
    """The row of a commit."""
    return COMMITTED_OFFSET(**commit._asdict())


def transaction_row(transaction: Transaction) -> Row:
    """The row of a transactional id."""
    return TRANSACTION(**{**transaction._asdict(), "partitions": list(map(str, transaction.partitions))})


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
