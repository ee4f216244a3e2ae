"""What a change asks of a cluster, in Kafka's words: one class an intent, plain values, JSON both ways.

A backend turns an intent into its writes; the journal keeps intents, so that a change can be resumed and
undone from what the cluster says then. A new intent is one more class here, a row in the backend's table of
writes, and, where something has to be waited for, a row in `kctl.changes.waiting`.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypedDict, get_type_hints

from msgspec import convert

from formats.values import Struct, field
from kctl.access.acl import Acl
from kctl.cluster.disks import ReplicaDirs
from kctl.cluster.state import Replicas
from kctl.errors import Refused
from kctl.model import Json, TopicPartition, counted
from kctl.times import iso

Configs = Mapping[str, str]


def partition_rows(partitions: Mapping[TopicPartition, Replicas]) -> list[Json]:
    """Kafka's own list form of replicas by partition, by topic and number."""
    return [
        {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        for tp, replicas in sorted(partitions.items())
    ]


def partitions_from(rows: Json) -> dict[TopicPartition, Replicas]:
    """The inverse of `partition_rows`."""
    assert isinstance(rows, list)
    replicas_by_partition = {}
    for row in rows:
        assert isinstance(row, dict)
        replicas = row["replicas"]
        assert isinstance(replicas, list)
        replicas_by_partition[TopicPartition(str(row["topic"]), int(str(row["partition"])))] = tuple(
            int(str(b)) for b in replicas
        )
    return replicas_by_partition


class Worded(NamedTuple):
    """A field of an intent to be formatted: `{replicas}` is its value, `{replicas:partition}` is `3 partitions`."""

    value: Any

    def __format__(self, noun: str) -> str:
        return counted(len(self.value), noun) if noun else str(self.value)


class Intent(Struct, frozen=True, kw_only=True):
    """Base of all intents; `kind` is the stable name in the journal, `final` why there is no way back.

    `does` is what it does, as one clause, with the intent's fields: `{topic}`, or counted, `{replicas:partition}`.
    """

    kind: ClassVar[str]
    does: ClassVar[str]
    final: ClassVar[str] = ""

    def __str__(self) -> str:
        """What it does: `create topic orders with 3 partitions`."""
        return self.does.format(**{name: Worded(getattr(self, name)) for name in self.__struct_fields__})

    def to_json(self) -> dict[str, Json]:
        """The intent's fields for the journal, without `kind`."""
        return {name: CODECS.get(name, PLAIN).to_json(getattr(self, name)) for name in self.__struct_fields__}

    @classmethod
    def from_json(cls, values: Mapping[str, Json]) -> Self:
        """The inverse of `to_json`; KeyError, TypeError, ValueError or AttributeError for anything else."""
        types = get_type_hints(cls)
        return cls(
            **{
                name: CODECS[name].from_json(values[name])
                if name in CODECS
                else convert(values[name], types[name])
                for name in cls.__struct_fields__
            }
        )

    def inverse(self) -> "Intent":
        """The intent that takes this one back; raises Refused with the exact reason where there is none."""
        raise Refused(f"{self} cannot be undone", self.final)


class CreateTopic(Intent, frozen=True, kw_only=True):
    """A new topic with explicit replicas. Inverse: delete it."""

    kind: ClassVar[str] = "create-topic"
    does: ClassVar[str] = "create topic {topic} with {replicas:partition}"
    topic: str
    replicas: Mapping[int, Replicas]
    configs: Configs = field(default_factory=dict)

    def inverse(self) -> Intent:
        return DeleteTopic(topic=self.topic)


class DeleteTopic(Intent, frozen=True, kw_only=True):
    """Mark a topic for deletion. No inverse: once the controller has read it nothing stops it."""

    kind: ClassVar[str] = "delete-topic"
    does: ClassVar[str] = "delete topic {topic}"
    final: ClassVar[str] = "no release stops a deletion that the controller has seen"
    topic: str


class AddPartitions(Intent, frozen=True, kw_only=True):
    """New partitions, numbered on from the present ones. No inverse."""

    kind: ClassVar[str] = "add-partitions"
    does: ClassVar[str] = "add {replicas:partition} to topic {topic}"
    final: ClassVar[str] = "Kafka cannot take partitions away from a topic"
    topic: str
    replicas: Mapping[int, Replicas]  # of the new partitions only


class AlterConfig(Intent, frozen=True, kw_only=True):
    """Set and unset keys of one entity. `before` has the values of exactly these keys (None: not set).

    Refused when a value is no longer the one in `before`. Inverse: `before` and what is set exchanged.
    """

    kind: ClassVar[str] = "alter-config"
    entity_type: str
    entity_name: str
    after: Mapping[str, str | None]  # None: unset
    before: Mapping[str, str | None]

    @classmethod
    def of(
        cls, entity_type: str, entity_name: str, after: Mapping[str, str | None], present: Mapping[str, str]
    ) -> Self:
        """The change of an entity for which `present` is set now."""
        before = {key: present.get(key) for key in after}
        return cls(entity_type=entity_type, entity_name=entity_name, after=after, before=before)

    def __str__(self) -> str:
        name = f"{self.entity_type.removesuffix('s')} {self.entity_name}"
        verb = "unset" if all(value is None for value in self.after.values()) else "set"
        return f"{verb} {', '.join(sorted(self.after))} of {name}"

    def inverse(self) -> Intent:
        return AlterConfig(
            entity_type=self.entity_type, entity_name=self.entity_name, after=self.before, before=self.after
        )


class Several(Intent, frozen=True, kw_only=True):
    """Intents of one kind that are carried out together, in order: one transaction, or one request after the other.

    Inverse: the inverses, the last one first.
    """

    kind: ClassVar[str] = "several"
    parts: tuple[Intent, ...]

    def __str__(self) -> str:
        more = len(self.parts) - 1
        return f"{self.parts[0]}{f' and {more:,} more' if more else ''}"

    def inverse(self) -> Intent:
        return Several(parts=tuple(part.inverse() for part in reversed(self.parts)))


def parts_of(intent: Intent) -> tuple[Intent, ...]:
    """The intents that one is made of: those of `Several`, else itself."""
    return intent.parts if isinstance(intent, Several) else (intent,)


class WaitUntil(Intent, frozen=True, kw_only=True):
    """Go on at a time, in milliseconds; nothing is written."""

    kind: ClassVar[str] = "wait-until"
    time: int

    def __str__(self) -> str:
        return f"wait until {iso(self.time)}"


class Reassign(Intent, frozen=True, kw_only=True):
    """Move partitions to their targets; configuration changes (throttles) go in the same transaction.

    Refused unless each partition's replicas are still its origin, in order. Inverse: the same with target and
    origin exchanged, and the configurations put back; refused where a broker of an origin is not alive.
    """

    kind: ClassVar[str] = "reassign"
    does: ClassVar[str] = "reassign {targets:partition}"
    targets: Mapping[TopicPartition, Replicas]
    origins: Mapping[TopicPartition, Replicas]
    config_changes: tuple[AlterConfig, ...] = ()

    def inverse(self) -> Intent:
        changes = [change.inverse() for change in self.config_changes]
        return Reassign(
            targets=self.origins,
            origins=self.targets,
            config_changes=tuple(change for change in changes if isinstance(change, AlterConfig)),
        )


class AlterReplicaLogDirs(Intent, frozen=True, kw_only=True):
    """Move replicas to other log directories of their brokers; configuration changes (throttles) go before.

    Refused unless each replica is in its previous directory, or on its way there. One without such is not on the
    broker yet, and comes to be in the right place. Inverse: exchanged, which also ends a copy that is under way.
    """

    kind: ClassVar[str] = "alter-replica-log-dirs"
    log_dirs: ReplicaDirs
    previous_log_dirs: ReplicaDirs
    config_changes: tuple[AlterConfig, ...] = ()

    def __str__(self) -> str:
        brokers = sorted({broker for _, broker in self.log_dirs})
        named = f"broker{'' if len(brokers) == 1 else 's'} {', '.join(map(str, brokers))}"
        return f"move {counted(len(self.log_dirs), 'replica')} to other disks of {named}"

    def inverse(self) -> Intent:
        log_dirs = {key: self.log_dirs[key] for key in self.previous_log_dirs}
        return AlterReplicaLogDirs(log_dirs=self.previous_log_dirs, previous_log_dirs=log_dirs)


class ElectPreferred(Intent, frozen=True, kw_only=True):
    """Ask the controller to make each partition's first replica its leader. No inverse."""

    kind: ClassVar[str] = "elect-preferred"
    does: ClassVar[str] = "elect the preferred leader of {partitions:partition}"
    final: ClassVar[str] = "who leads follows from the order of the replicas; reassign to change it"
    partitions: tuple[TopicPartition, ...]


class ElectUnclean(Intent, frozen=True, kw_only=True):
    """Make a replica outside the ISR the leader of each partition that has none. No inverse.

    `chosen` has one broker a partition; a controller takes the first live replica, so that the order of replicas is
    changed for a moment where that is another one. `origins` is the order that stays.
    """

    kind: ClassVar[str] = "elect-unclean"
    does: ClassVar[str] = "elect an unclean leader of {chosen:partition}"
    final: ClassVar[str] = "what only other replicas had is truncated when they come back"
    chosen: Mapping[TopicPartition, Replicas]
    origins: Mapping[TopicPartition, Replicas]


class MoveController(Intent, frozen=True, kw_only=True):
    """Make another broker controller (by deleting `/controller`). No inverse."""

    kind: ClassVar[str] = "move-controller"
    does: ClassVar[str] = "move the controller away from broker {broker_id}"
    final: ClassVar[str] = "any broker may be controller, and none can be chosen"
    broker_id: int  # the present controller


class ReplaceStuckReassignment(Intent, frozen=True, kw_only=True):
    """Take away a waiting reassignment that never ends, put targets in its place and move the controller.

    The one exception to "never delete a waiting request"; only for `reassign cancel --move-controller`.
    `targets` are the origin lists to go back to; `stuck` is what waits now. No inverse.
    """

    kind: ClassVar[str] = "replace-stuck-reassignment"
    does: ClassVar[str] = "replace the stuck reassignment of {stuck:partition}, moving the controller"
    final: ClassVar[str] = "the move that was stuck can be planned again"
    targets: Mapping[TopicPartition, Replicas]
    stuck: Mapping[TopicPartition, Replicas]
    broker_id: int  # the present controller


class ClearThrottle(Intent, frozen=True, kw_only=True):
    """Take a reassignment's throttles away: its replicas off the topics' lists, its rates off the brokers.

    Worked out from what is set then: what others have put on the lists stays, and a broker keeps its rates while
    anything else is throttled there. Doing it twice does no harm, so that it is its own inverse.
    """

    kind: ClassVar[str] = "clear-throttle"
    does: ClassVar[str] = "clear the throttles of {throttled:topic} on {rates:broker}"
    throttled: Mapping[str, Mapping[str, tuple[str, ...]]]  # topic -> key -> PARTITION:BROKER
    rates: Mapping[str, Mapping[str, str | None]]  # broker -> key -> what was set before

    def inverse(self) -> Intent:
        return self


class AbortTransaction(Intent, frozen=True, kw_only=True):
    """End a transaction that a partition's log holds open and its coordinator has forgotten. No inverse.

    `start_offset` is its first one; refused where it is not open any more.
    """

    kind: ClassVar[str] = "abort-transaction"
    does: ClassVar[str] = (
        "abort the transaction of producer {producer_id} in {topic}-{partition} at {start_offset}"
    )
    final: ClassVar[str] = "the marker stands in the log, and readers have gone past it"
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int


class DeleteRecords(Intent, frozen=True, kw_only=True):
    """Delete the records of a topic below an offset of each partition. No inverse."""

    kind: ClassVar[str] = "delete-records"
    does: ClassVar[str] = "delete records of {to_offsets:partition} of topic {topic}"
    final: ClassVar[str] = "deleted records are gone"
    topic: str
    to_offsets: Mapping[int, int]  # by partition


class RecoverRecords(Intent, frozen=True, kw_only=True):
    """Produce lost records again that are kept in a file beside the journal. No inverse.

    What stands in the partition from `begin_offset` on is read first, and what is there already is not written.
    """

    kind: ClassVar[str] = "recover-records"
    final: ClassVar[str] = "consumers may have read the records, and a log gives none back"
    topic: str
    partition: int
    source_topic: str
    records: int
    file: str
    sha256: str
    begin_offset: int
    incident: str
    max_rate: int | None = None

    def __str__(self) -> str:
        source = TopicPartition(self.source_topic, self.partition)
        return f"produce {counted(self.records, 'lost record')} of {source} to {self.topic}-{self.partition}"


class GroupOffset(NamedTuple):
    """An offset that a group committed; of a share group where it begins to read."""

    offset: int
    leader_epoch: int | None = None
    metadata: str | None = None


GroupOffsets = Mapping[TopicPartition, GroupOffset | None]  # None: there is none


class SetGroupOffsets(Intent, frozen=True, kw_only=True):
    """Put a group's offsets where they are to be. Refused where `previous` is not the current value. Inverse: exchanged."""

    kind: ClassVar[str] = "set-group-offsets"
    group: str
    is_share: bool = False
    offsets: GroupOffsets
    previous: GroupOffsets

    def __str__(self) -> str:
        verb = "set" if any(self.offsets.values()) else "delete"
        return f"{verb} the offsets of group {self.group} in {counted(len(self.offsets), 'partition')}"

    def inverse(self) -> Intent:
        return SetGroupOffsets(
            group=self.group, is_share=self.is_share, offsets=self.previous, previous=self.offsets
        )


class DeleteGroup(Intent, frozen=True, kw_only=True):
    """Delete a group that has no members. Inverse: its offsets, which make it again."""

    kind: ClassVar[str] = "delete-group"
    does: ClassVar[str] = "delete group {group} with its offsets in {previous:partition}"
    group: str
    is_share: bool = False
    previous: GroupOffsets

    def inverse(self) -> Intent:
        if not self.previous:
            raise Refused(
                f"group {self.group} had no offsets: a consumer that joins creates it again",
                "there is nothing to undo",
            )
        return SetGroupOffsets(
            group=self.group,
            is_share=self.is_share,
            offsets=self.previous,
            previous=dict.fromkeys(self.previous),
        )


class RemoveMembers(Intent, frozen=True, kw_only=True):
    """Take members out of a group. No inverse."""

    kind: ClassVar[str] = "remove-members"
    does: ClassVar[str] = "remove {members:member} from group {group}"
    final: ClassVar[str] = "a consumer that still runs joins again by itself"
    group: str
    members: tuple[str, ...]


def offset_rows(offsets: GroupOffsets) -> list[Json]:
    """Offsets by topic and number, as a list of objects."""
    return [
        {"topic": tp.topic, "partition": tp.partition, **(at or GroupOffset(NO_OFFSET))._asdict()}
        for tp, at in sorted(offsets.items())
    ]


class OffsetRow(TypedDict):
    """A row of `offset_rows`."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str | None


def offsets_from(rows: Any) -> dict[TopicPartition, GroupOffset | None]:
    """The inverse of `offset_rows`; TypeError or ValueError for anything else."""
    return {
        TopicPartition(row["topic"], row["partition"]): (
            None
            if row["offset"] == NO_OFFSET
            else GroupOffset(row["offset"], row["leader_epoch"], row["metadata"])
        )
        for row in convert(rows, list[OffsetRow])
    }


NO_OFFSET = -1


class AddVoter(Intent, frozen=True, kw_only=True):
    """Let an observer of the KRaft quorum vote. `listeners`: HOST:PORT by name. Inverse: remove it again."""

    kind: ClassVar[str] = "add-voter"
    does: ClassVar[str] = "add node {node_id} to the voters"
    node_id: int
    directory_id: str
    listeners: Mapping[str, str]

    def inverse(self) -> Intent:
        return RemoveVoter(node_id=self.node_id, directory_id=self.directory_id, listeners=self.listeners)


class RemoveVoter(Intent, frozen=True, kw_only=True):
    """Take a node out of the voters; it goes on as an observer. Inverse: add it again, where it listened."""

    kind: ClassVar[str] = "remove-voter"
    does: ClassVar[str] = "remove node {node_id} from the voters"
    node_id: int
    directory_id: str
    listeners: Mapping[str, str]

    def inverse(self) -> Intent:
        if not self.listeners:
            raise Refused(
                f"the former listener of node {self.node_id} is unknown",
                f"add it with `kctl quorum add {self.node_id} --endpoint LISTENER://HOST:PORT`",
            )
        return AddVoter(node_id=self.node_id, directory_id=self.directory_id, listeners=self.listeners)


class UpdateFeatures(Intent, frozen=True, kw_only=True):
    """Set levels of features, all of them or none. Inverse: the previous levels, where no level is one-way."""

    kind: ClassVar[str] = "update-features"
    final: ClassVar[str] = (
        "what the new level writes stands in the metadata log, and older code cannot read it"
    )
    levels: Mapping[str, int]
    previous_levels: Mapping[str, int]
    is_downgrade: bool
    is_reversible: bool

    def __str__(self) -> str:
        return f"set {', '.join(f'{name} to {level}' for name, level in sorted(self.levels.items()))}"

    def inverse(self) -> Intent:
        if not self.is_reversible:
            return Intent.inverse(self)
        return UpdateFeatures(
            levels=self.previous_levels,
            previous_levels=self.levels,
            is_downgrade=not self.is_downgrade,
            is_reversible=True,
        )


class UnregisterBroker(Intent, frozen=True, kw_only=True):
    """Take a broker that is gone for good out of a KRaft cluster. No inverse."""

    kind: ClassVar[str] = "unregister-broker"
    does: ClassVar[str] = "unregister broker {broker_id}"
    final: ClassVar[str] = "a broker registers by itself when it is started"
    broker_id: int


class AlterAcls(Intent, frozen=True, kw_only=True):
    """Create rules that are not there and delete rules that are. Inverse: exchanged.

    Rules are sets: what is there already, or gone already, is left as it is.
    """

    kind: ClassVar[str] = "alter-acls"
    added: tuple[Acl, ...] = ()
    removed: tuple[Acl, ...] = ()

    def __str__(self) -> str:
        parts = (("create", self.added), ("delete", self.removed))
        return " and ".join(
            f"{verb} {acls[0]}" if len(acls) == 1 else f"{verb} {counted(len(acls), 'rule')}"
            for verb, acls in parts
            if acls
        )

    def inverse(self) -> Intent:
        return AlterAcls(added=self.removed, removed=self.added)


class SetScram(Intent, frozen=True, kw_only=True):
    """Give a user a password, which is nowhere kept. Inverse: delete the credentials, where there were none before."""

    kind: ClassVar[str] = "set-scram"
    final: ClassVar[str] = "the former password is not kept: set one again with `kctl user set-password`"
    user: str
    mechanisms: Mapping[str, int]  # iterations by mechanism
    previous_mechanisms: Mapping[str, int]  # those of them that there were

    def __str__(self) -> str:
        verb = "set the password" if self.previous_mechanisms else "create credentials"
        return f"{verb} of user {self.user} ({', '.join(sorted(self.mechanisms))})"

    def inverse(self) -> Intent:
        if self.previous_mechanisms:
            return Intent.inverse(self)
        return DeleteScram(user=self.user, mechanisms=self.mechanisms)


class DeleteScram(Intent, frozen=True, kw_only=True):
    """Take credentials of a user away. No inverse: the password is not kept."""

    kind: ClassVar[str] = "delete-scram"
    final: ClassVar[str] = (
        "the password is not kept: create the user again with `kctl user create`, with a new one"
    )
    user: str
    mechanisms: Mapping[str, int]  # iterations by mechanism

    def __str__(self) -> str:
        return f"delete credentials of user {self.user} ({', '.join(sorted(self.mechanisms))})"


class CreateToken(Intent, frozen=True, kw_only=True):
    """Create a delegation token. Inverse: expire it, once brokers have said which one it is.

    `owner` is a principal, None for the one that connects; `lifetime` is in milliseconds, None for as long as brokers
    allow. `known` are the tokens before.
    """

    kind: ClassVar[str] = "create-token"
    final: ClassVar[str] = "whether it was created, and which token it is, is not known yet"
    owner: str | None
    requester: str  # who connects, in words where it is not known
    renewers: tuple[str, ...]
    lifetime: int | None
    known: tuple[str, ...]

    def __str__(self) -> str:
        renewers = f", which {' and '.join(self.renewers)} may renew" if self.renewers else ""
        return f"create a delegation token of {self.owner or self.requester}{renewers}"


class RenewToken(Intent, frozen=True, kw_only=True):
    """Put off the end of a token, by a time in milliseconds or by the time of the brokers. Inverse: the former end."""

    kind: ClassVar[str] = "renew-token"
    does: ClassVar[str] = "renew token {token_id} of {owner}"
    token_id: str
    owner: str
    period: int | None
    expiry_timestamp: int  # before

    def inverse(self) -> Intent:
        return ExpireToken(token_id=self.token_id, owner=self.owner, at=self.expiry_timestamp)


class ExpireToken(Intent, frozen=True, kw_only=True):
    """End a token at once, which has no inverse; or at a time. Inverse: the former end.

    Refused where `expiry_timestamp` is not the present end of the token.
    """

    kind: ClassVar[str] = "expire-token"
    final: ClassVar[str] = (
        "a token that has expired does not come back: create another with `kctl token create`"
    )
    token_id: str
    owner: str
    at: int | None = None  # None: at once
    expiry_timestamp: int | None = None  # before; None: whatever it is

    def __str__(self) -> str:
        return f"expire token {self.token_id} of {self.owner} {'now' if self.at is None else f'at {iso(self.at)}'}"

    def inverse(self) -> Intent:
        if self.at is None or self.expiry_timestamp is None:
            return Intent.inverse(self)
        return ExpireToken(token_id=self.token_id, owner=self.owner, at=self.expiry_timestamp)


def replica_dir_rows(log_dirs: ReplicaDirs) -> list[Json]:
    """Log directories of replicas as a list of objects, by topic, number and broker."""
    return [
        {"topic": tp.topic, "partition": tp.partition, "broker_id": broker, "log_dir": path}
        for (tp, broker), path in sorted(log_dirs.items())
    ]


class ReplicaDirRow(TypedDict):
    """A row of `replica_dir_rows`."""

    topic: str
    partition: int
    broker_id: int
    log_dir: str


def replica_dirs_from(rows: Any) -> dict[tuple[TopicPartition, int], str]:
    """The inverse of `replica_dir_rows`; TypeError or ValueError for anything else."""
    return {
        (TopicPartition(row["topic"], row["partition"]), row["broker_id"]): row["log_dir"]
        for row in convert(rows, list[ReplicaDirRow])
    }


class IntentCodec(NamedTuple):
    """How a field goes to JSON and comes back."""

    to_json: Callable[[Any], Json]
    from_json: Callable[[Any], Any]


PLAIN = IntentCodec(lambda value: value, lambda value: value)
TEXTS = IntentCodec(lambda value: dict(sorted(value.items())), dict)
BY_PARTITION = IntentCodec(partition_rows, partitions_from)
ACLS = IntentCodec(
    lambda value: [acl._asdict() for acl in value], lambda value: tuple(Acl.from_json(row) for row in value)
)
CODECS: dict[str, IntentCodec] = {  # by field; the others go as they are
    "configs": TEXTS,
    "after": TEXTS,
    "before": TEXTS,
    "listeners": TEXTS,
    "levels": TEXTS,
    "mechanisms": TEXTS,
    "previous_mechanisms": TEXTS,
    "previous_levels": TEXTS,
    "targets": BY_PARTITION,
    "origins": BY_PARTITION,
    "chosen": BY_PARTITION,
    "stuck": BY_PARTITION,
    "replicas": IntentCodec(
        lambda value: {str(partition): list(ids) for partition, ids in sorted(value.items())},
        lambda value: {int(partition): tuple(map(int, ids)) for partition, ids in value.items()},
    ),
    "partitions": IntentCodec(
        lambda value: [{"topic": tp.topic, "partition": tp.partition} for tp in value],
        lambda value: tuple(TopicPartition(row["topic"], row["partition"]) for row in value),
    ),
    "throttled": IntentCodec(
        lambda value: {topic: {k: list(v) for k, v in keys.items()} for topic, keys in value.items()},
        lambda value: {topic: {k: tuple(v) for k, v in keys.items()} for topic, keys in value.items()},
    ),
    "rates": IntentCodec(lambda value: {broker: dict(keys) for broker, keys in value.items()}, dict),
    "to_offsets": IntentCodec(
        lambda value: {str(partition): offset for partition, offset in sorted(value.items())},
        lambda value: {int(partition): int(offset) for partition, offset in value.items()},
    ),
    "offsets": IntentCodec(offset_rows, offsets_from),
    "previous": IntentCodec(offset_rows, offsets_from),
    "log_dirs": IntentCodec(replica_dir_rows, replica_dirs_from),
    "previous_log_dirs": IntentCodec(replica_dir_rows, replica_dirs_from),
    "parts": IntentCodec(
        lambda value: [intent_to_json(part) for part in value],
        lambda value: tuple(intent_from_json(part) for part in value),
    ),
    "added": ACLS,
    "removed": ACLS,
    **dict.fromkeys(
        ("members", "renewers", "known"), IntentCodec(list, lambda value: convert(value, tuple[str, ...]))
    ),
    "config_changes": IntentCodec(
        lambda value: [change.to_json() for change in value],
        lambda value: tuple(AlterConfig.from_json(row) for row in value),
    ),
}

INTENTS: dict[str, type[Intent]] = {intent.kind: intent for intent in Intent.__subclasses__()}


def intent_from_json(values: Mapping[str, Json]) -> Intent:
    """The intent of a journal entry."""
    return INTENTS[str(values["kind"])].from_json(values)


def intent_to_json(intent: Intent) -> dict[str, Json]:
    """The intent for a journal entry, `kind` first."""
    return {"kind": intent.kind, **intent.to_json()}
