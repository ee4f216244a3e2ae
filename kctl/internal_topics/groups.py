"""Groups and their committed offsets, folded from `__consumer_offsets`.

The last record of a key counts; a tombstone takes it away. Consumer groups of KIP-848 keep their state in records
of other types (3 to 8); classic groups in one (2).
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from formats.errors import FormatError
from formats.messages.consumer_offsets import (
    ASSIGNMENT,
    SUBSCRIPTION,
    GroupRecord,
    UnknownRecordType,
    read_group_record,
    read_member_part,
)
from formats.messages.schema import Message
from formats.values import Struct, field, replace
from kctl.internal_topics.reading import TopicRecord
from kctl.model import TopicPartition

CONSUMER = "consumer"


class OffsetCommit(NamedTuple):
    """An offset that a group committed for a partition, and the record that says so; no offset is a tombstone."""

    group: str
    topic: str
    partition: int
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    commit_timestamp: int | None
    expire_timestamp: int | None
    log_partition: int
    log_offset: int
    timestamp: int | None = None  # of the record


class Removal(NamedTuple):
    """A committed offset that a tombstone took away."""

    commit: OffsetCommit
    tombstone: OffsetCommit


class PendingCommit(NamedTuple):
    """An offset that an open transaction wrote: it counts from the commit of the transaction on."""

    commit: OffsetCommit
    producer_id: int
    producer_epoch: int


class Member(NamedTuple):
    """A member of a group. `topics` and `assignment` are None where its protocol is not the consumer's."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    topics: list[str] | None
    assignment: list[TopicPartition] | None


class RecordedGroup(Struct, frozen=True):
    """A group as its last records have it. `protocol_type` is None where only offsets are known of it."""

    group: str
    protocol_type: str | None = None
    protocol: str | None = None
    generation: int | None = None
    leader: str | None = None
    state_timestamp: int | None = None
    members: tuple[Member, ...] = ()
    log_partition: int | None = None

    @property
    def state(self) -> str:
        """Empty, Stable, or Offsets where nothing but commits is known of it."""
        if self.protocol_type is None:
            return "Offsets"
        return "Stable" if self.members else "Empty"


class Groups(Struct):
    """All groups, and what each has committed."""

    groups: dict[str, RecordedGroup] = field(default_factory=dict)
    commits: dict[str, dict[TopicPartition, OffsetCommit]] = field(default_factory=dict)
    removed: dict[str, dict[TopicPartition, Removal]] = field(default_factory=dict)
    """Offsets that a tombstone took away and that were not committed again, where the log still holds both."""
    pending: list[PendingCommit] = field(default_factory=list)
    unknown_types: dict[int, int] = field(default_factory=dict)
    unreadable: list[tuple[int, int, str]] = field(default_factory=list)

    def names(self) -> list[str]:
        """The names of all groups with state or offsets."""
        return sorted(set(self.groups) | set(self.commits))

    def group(self, name: str) -> RecordedGroup:
        """The group; one without state if it has offsets only."""
        return self.groups.get(name) or RecordedGroup(
            name, log_partition=next((c.log_partition for c in self.commits.get(name, {}).values()), None)
        )


def read_group_records(
    records: Iterable[TopicRecord], into: Groups
) -> Iterator[tuple[TopicRecord, GroupRecord]]:
    """The records that can be read; those that cannot are counted in `into`."""
    for record in records:
        if record.key is None:
            into.unreadable.append((record.partition, record.offset, "the record has no key"))
            continue
        try:
            yield record, read_group_record(record.key, record.value)
        except UnknownRecordType as error:
            into.unknown_types[error.position] = into.unknown_types.get(error.position, 0) + 1
        except FormatError as error:
            into.unreadable.append((record.partition, record.offset, str(error)))


def commit_of(record: TopicRecord, read: GroupRecord) -> OffsetCommit | None:
    """The commit that a record is; None for a record of another type."""
    if read.key.message.name != "OffsetCommitKey":
        return None
    key, place = read.key.values, (record.partition, record.offset)
    if read.value is None:
        return OffsetCommit(
            key["group"],
            key["topic"],
            key["partition"],
            None,
            None,
            None,
            None,
            None,
            *place,
            record.timestamp,
        )
    value = read.value.values
    epoch = value["leader_epoch"]
    expires = value["expire_timestamp"] if read.value.version == 1 else None
    return OffsetCommit(
        key["group"], key["topic"], key["partition"], value["offset"], epoch if epoch >= 0 else None,
        value["metadata"], value["commit_timestamp"], expires, *place, record.timestamp,
    )  # fmt: skip


def fold_groups(records: Iterable[TopicRecord]) -> Groups:
    """The state that the records leave."""
    state = Groups()
    for record, read in read_group_records(records, state):
        commit = commit_of(record, read)
        if commit is not None:
            _keep_commit(state, commit)
        elif read.key.message.name in FOLDS:
            FOLDS[read.key.message.name](state, record, read)
    return state


def _keep_commit(state: Groups, commit: OffsetCommit) -> None:
    key = TopicPartition(commit.topic, commit.partition)
    if commit.offset is not None:
        state.commits.setdefault(commit.group, {})[key] = commit
        state.removed.get(commit.group, {}).pop(key, None)
        return
    group_commits = state.commits.get(commit.group, {})
    before = group_commits.pop(key, None)
    if before is not None:
        state.removed.setdefault(commit.group, {})[key] = Removal(before, commit)
    if not group_commits:
        state.commits.pop(commit.group, None)


def _classic(state: Groups, record: TopicRecord, read: GroupRecord) -> None:
    name = read.key.values["group"]
    if read.value is None:
        state.groups.pop(name, None)
        return
    values = read.value.values
    consumer = values["protocol_type"] == CONSUMER
    stamp = values["current_state_timestamp"]
    state.groups[name] = RecordedGroup(
        name, values["protocol_type"], values["protocol"], values["generation"], values["leader"],
        stamp if stamp >= 0 else None,
        tuple(_classic_member(member, consumer) for member in values["members"]),
        record.partition,
    )  # fmt: skip


def _classic_member(values: dict[str, Any], consumer: bool) -> Member:
    subscription = _part(SUBSCRIPTION, values["subscription"]) if consumer else None
    assignment = _part(ASSIGNMENT, values["assignment"]) if consumer else None
    return Member(
        values["member_id"],
        values["group_instance_id"],
        values["client_id"],
        values["client_host"],
        sorted(subscription["topics"]) if subscription else None,
        _partitions(assignment["assigned_partitions"]) if assignment else None,
    )


def _partitions(topics: list[dict[str, Any]]) -> list[TopicPartition]:
    return sorted(TopicPartition(topic["topic"], p) for topic in topics for p in topic["partitions"])


def _part(message: Message, data: bytes) -> dict[str, Any] | None:
    try:
        return read_member_part(message, data).values
    except FormatError:
        return None


def _consumer_group(state: Groups, record: TopicRecord, read: GroupRecord) -> None:
    name = read.key.values["group_id"]
    if read.value is None:
        state.groups.pop(name, None)
        return
    group = state.groups.get(name) or RecordedGroup(name, log_partition=record.partition)
    state.groups[name] = replace(
        group, protocol_type=CONSUMER, protocol="consumer (KIP-848)", generation=read.value.values["epoch"]
    )


def _consumer_member(state: Groups, record: TopicRecord, read: GroupRecord) -> None:
    name, member = read.key.values["group_id"], read.key.values["member_id"]
    group = state.groups.get(name)
    other_members = (
        tuple(group_member for group_member in group.members if group_member.member_id != member)
        if group
        else ()
    )
    if read.value is None:
        if group:
            state.groups[name] = replace(group, members=other_members)
        return
    values = read.value.values
    new_member = Member(
        member,
        values["instance_id"],
        values["client_id"],
        values["client_host"],
        sorted(values["subscribed_topic_names"]),
        None,
    )
    state.groups[name] = replace(
        group or RecordedGroup(name, CONSUMER, log_partition=record.partition),
        members=(*other_members, new_member),
    )


# How each type of record changes the state; the other types hold nothing that is shown.
FOLDS = {
    "GroupMetadataKey": _classic,
    "ConsumerGroupMetadataKey": _consumer_group,
    "ConsumerGroupMemberMetadataKey": _consumer_member,
}


def reset_lines(commits: Iterable[OffsetCommit]) -> Iterator[str]:
    """Lines that `kafka-consumer-groups --reset-offsets --from-file` takes for one group: topic,partition,offset."""
    for commit in sorted(commits, key=lambda c: (c.topic, c.partition)):
        yield f"{commit.topic},{commit.partition},{commit.offset}"
