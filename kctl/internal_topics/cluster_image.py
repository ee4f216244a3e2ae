"""The state of a KRaft cluster as of an offset or a time: the newest snapshot before it, and the records since.

Source: metadata/src/main/java/org/apache/kafka/image/*Delta.java @ 3.9.0-rc3
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from formats.errors import FormatError
from formats.log.control_records import ControlType, fields_of, read_key
from formats.log.records import Damage, LogEntry, iterate_records, walk
from formats.log_dir.file_names import FileState
from formats.messages.cluster_metadata import MetadataRecord, read_metadata_record
from formats.messages.schema import Values
from formats.secrets import REDACTED, is_secret_key, redact_text
from formats.values import Struct, field
from formats.znodes.security import ScramCredential
from kctl.errors import KctlError, reason_of
from kctl.internal_topics.reading import LIMIT, NOW, AsOf, Unreadable, entries
from kctl.log.folder import read_folder
from kctl.scan.source import opened_source

PARTITION_LISTS = (
    "replicas", "isr", "adding_replicas", "removing_replicas", "eligible_leader_replicas", "last_known_elr", "directories",
)  # fmt: skip
# Kinds of configuration resource (clients/.../config/ConfigResource.java @ 3.9.0-rc3).
RESOURCES = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
NO_LEADER_CHANGE = -2
# metadata/src/main/java/org/apache/kafka/metadata/migration/ZkMigrationState.java @ 3.9.0-rc3
MIGRATION_STATES = ("NONE", "MIGRATION", "PRE_MIGRATION", "POST_MIGRATION")


class LoggedRecord(NamedTuple):
    """A record where it stands in the log."""

    offset: int | None
    """None in a snapshot."""
    record: MetadataRecord
    time_ms: int = -1
    writer: int | None = None
    """The node that led the quorum then, whose clock gave the time; None where the log does not name it."""


class PartitionImage(Struct):
    """A partition as the controller has it."""

    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)
    eligible_leader_replicas: list[int] = field(default_factory=list)
    leader_recovery_state: int = 0
    directories: list[str] = field(default_factory=list)
    last_known_elr: list[int] = field(default_factory=list)


class BrokerImage(Struct):
    """A registered broker."""

    broker_epoch: int
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    end_points: list[str]
    is_migrating_zk_broker: bool = False  # it runs in ZooKeeper mode and is ready to migrate (KIP-866)
    log_dirs: list[str] = field(default_factory=list)


class ClusterImage(Struct):
    """The cluster by the metadata log up to `end_offset` (exclusive)."""

    end_offset: int = 0
    start_offset: int = 0  # of the first record after the snapshot
    timestamp: int | None = None  # of the newest record, milliseconds
    names: dict[str, str] = field(default_factory=dict)  # topic id to name
    partitions: dict[str, dict[int, PartitionImage]] = field(default_factory=dict)  # by topic id
    configs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    controllers: list[int] = field(default_factory=list)
    features: dict[str, int] = field(default_factory=dict)
    quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = field(default_factory=dict)
    acls: dict[str, Values] = field(default_factory=dict)
    scram_users: dict[tuple[str, int], str] = field(default_factory=dict)  # by user and mechanism: a digest
    scram_iterations: dict[tuple[str, int], int] = field(default_factory=dict)  # likewise
    delegation_tokens: dict[str, Values] = field(default_factory=dict)
    zk_migration_state: int = 0  # of `MIGRATION_STATES`
    is_ready_to_migrate: dict[int, bool] = field(default_factory=dict)  # by controller
    next_producer_id: int = 0
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    watch: "Callable[[ClusterImage, LoggedRecord], None] | None" = None
    """Called after each record that counts."""

    def apply(self, records: Iterable[LoggedRecord]) -> None:
        """Take in records; those of an aborted transaction never count (KIP-868)."""
        pending: list[LoggedRecord] | None = None
        for logged in records:
            self.timestamp = max(logged.time_ms, self.timestamp or 0)
            if logged.record.type == "BEGIN_TRANSACTION_RECORD":
                pending = []
            elif logged.record.type == "END_TRANSACTION_RECORD":
                for pending_record in pending or ():
                    self._take(pending_record)
                pending = None
            elif logged.record.type == "ABORT_TRANSACTION_RECORD":
                pending = None
            elif pending is not None:
                pending.append(logged)
            else:
                self._take(logged)

    def _take(self, logged: LoggedRecord) -> None:
        record = logged.record
        if logged.offset is not None:
            self.end_offset = max(self.end_offset, logged.offset + 1)
        fold = FOLDS.get(record.type)
        if fold:
            fold(self, record.values)
        elif record.type not in SAYS_NOTHING:
            self.left_out[record.type] = self.left_out.get(record.type, 0) + 1
        if self.watch:
            self.watch(self, logged)


def _topic(image: ClusterImage, values: Values) -> None:
    image.names[values["topic_id"]] = values["name"]
    image.partitions[values["topic_id"]] = {}


def _remove_topic(image: ClusterImage, values: Values) -> None:
    name = image.names.pop(values["topic_id"], None)
    image.partitions.pop(values["topic_id"], None)
    image.configs.pop(("topic", name or ""), None)


def _partition(image: ClusterImage, values: Values) -> None:
    image.partitions.setdefault(values["topic_id"], {})[values["partition_id"]] = PartitionImage(
        values["replicas"], values["isr"], values["leader"], values["leader_epoch"], values["partition_epoch"],
        values["adding_replicas"], values["removing_replicas"], values["eligible_leader_replicas"] or [],
        values["leader_recovery_state"], values["directories"], values["last_known_elr"] or [],
    )  # fmt: skip


def _partition_change(image: ClusterImage, values: Values) -> None:
    partition = image.partitions.get(values["topic_id"], {}).get(values["partition_id"])
    if partition is None:
        return
    for name in PARTITION_LISTS:
        if values[name] is not None:
            setattr(partition, name, values[name])
    if values["leader"] != NO_LEADER_CHANGE:
        partition.leader = values["leader"]
        partition.leader_epoch += 1
    if values["leader_recovery_state"] >= 0:
        partition.leader_recovery_state = values["leader_recovery_state"]
    partition.partition_epoch += 1


def _clear_eligible(image: ClusterImage, values: Values) -> None:
    """The controller clears the eligible leader replicas of one topic or, without a name, of all."""
    for topic_id, name in image.names.items():
        for partition in image.partitions.get(topic_id, {}).values():
            has_eligible = partition.eligible_leader_replicas or partition.last_known_elr
            if values["topic_name"] in ("", name) and has_eligible:
                partition.eligible_leader_replicas, partition.last_known_elr = [], []
                partition.partition_epoch += 1


def _config(image: ClusterImage, values: Values) -> None:
    key = (RESOURCES.get(values["resource_type"], str(values["resource_type"])), values["resource_name"])
    configs = image.configs.setdefault(key, {})
    if values["value"] is None:
        configs.pop(values["name"], None)
    else:
        configs[values["name"]] = values["value"]


def _register_broker(image: ClusterImage, values: Values) -> None:
    ends = [
        f"{end_point['name']}://{end_point['host']}:{end_point['port']}" for end_point in values["end_points"]
    ]
    image.brokers[values["broker_id"]] = BrokerImage(
        values["broker_epoch"], values["rack"], values["fenced"], values["in_controlled_shutdown"], ends,
        values["is_migrating_zk_broker"], values["log_dirs"],
    )  # fmt: skip


def _change_broker(image: ClusterImage, values: Values) -> None:
    broker = image.brokers.get(values["broker_id"])
    if broker:
        broker.fenced = {1: True, -1: False}.get(values["fenced"], broker.fenced)
        broker.in_controlled_shutdown = broker.in_controlled_shutdown or values["in_controlled_shutdown"] == 1
        broker.log_dirs = values["log_dirs"] or broker.log_dirs


def _fence(fenced: bool) -> "Callable[[ClusterImage, Values], None]":
    def fold(image: ClusterImage, values: Values) -> None:
        if values["id"] in image.brokers:
            image.brokers[values["id"]].fenced = fenced

    return fold


def _unregister_broker(image: ClusterImage, values: Values) -> None:
    image.brokers.pop(values["broker_id"], None)


def _feature(image: ClusterImage, values: Values) -> None:
    if values["feature_level"]:
        image.features[values["name"]] = values["feature_level"]
    else:
        image.features.pop(values["name"], None)


def _quota(image: ClusterImage, values: Values) -> None:
    entity = tuple(sorted({part["entity_type"]: part["entity_name"] for part in values["entity"]}.items()))
    quotas = image.quotas.setdefault(entity, {})
    if values["remove"]:
        quotas.pop(values["key"], None)
    else:
        quotas[values["key"]] = values["value"]


def _producer_ids(image: ClusterImage, values: Values) -> None:
    image.next_producer_id = values["next_producer_id"]


def _controller(image: ClusterImage, values: Values) -> None:
    if values["controller_id"] not in image.controllers:
        image.controllers.append(values["controller_id"])
    image.is_ready_to_migrate[values["controller_id"]] = values["zk_migration_ready"]


def _scram(image: ClusterImage, values: Values) -> None:
    credential = ScramCredential(*(values[name] for name in ScramCredential._fields))
    image.scram_users[values["name"], values["mechanism"]] = credential.digest
    image.scram_iterations[values["name"], values["mechanism"]] = credential.iterations


def _remove_scram(image: ClusterImage, values: Values) -> None:
    image.scram_users.pop((values["name"], values["mechanism"]), None)


def _token(image: ClusterImage, values: Values) -> None:
    image.delegation_tokens[values["token_id"]] = values


def _remove_token(image: ClusterImage, values: Values) -> None:
    image.delegation_tokens.pop(values["token_id"], None)


def _zk_migration_state(image: ClusterImage, values: Values) -> None:
    image.zk_migration_state = values["zk_migration_state"]


def _acl(image: ClusterImage, values: Values) -> None:
    image.acls[values["id"]] = {key: value for key, value in values.items() if key != "id"}


def _remove_acl(image: ClusterImage, values: Values) -> None:
    image.acls.pop(values["id"], None)


# What each type of record does to the image.
FOLDS: dict[str, Callable[[ClusterImage, Values], None]] = {
    "TOPIC_RECORD": _topic,
    "REMOVE_TOPIC_RECORD": _remove_topic,
    "PARTITION_RECORD": _partition,
    "PARTITION_CHANGE_RECORD": _partition_change,
    "CLEAR_ELR_RECORD": _clear_eligible,
    "CONFIG_RECORD": _config,
    "REGISTER_BROKER_RECORD": _register_broker,
    "BROKER_REGISTRATION_CHANGE_RECORD": _change_broker,
    "FENCE_BROKER_RECORD": _fence(True),
    "UNFENCE_BROKER_RECORD": _fence(False),
    "UNREGISTER_BROKER_RECORD": _unregister_broker,
    "FEATURE_LEVEL_RECORD": _feature,
    "CLIENT_QUOTA_RECORD": _quota,
    "PRODUCER_IDS_RECORD": _producer_ids,
    "REGISTER_CONTROLLER_RECORD": _controller,
    "USER_SCRAM_CREDENTIAL_RECORD": _scram,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": _remove_scram,
    "ACCESS_CONTROL_ENTRY_RECORD": _acl,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": _remove_acl,
    "DELEGATION_TOKEN_RECORD": _token,
    "REMOVE_DELEGATION_TOKEN_RECORD": _remove_token,
    "ZK_MIGRATION_STATE_RECORD": _zk_migration_state,
}
SAYS_NOTHING = frozenset({"NO_OP_RECORD"})


def shown_value(name: str, value: Any) -> str:
    """The value of a configuration as text, redacted if it is secret."""
    return REDACTED if is_secret_key(name) else redact_text(str(value))


CLUSTER_METADATA = "__cluster_metadata"
Watch = Callable[[ClusterImage, LoggedRecord], None] | None


def snapshots(folder: Path) -> list[tuple[int, Path]]:
    """End offset (exclusive) and path of each whole snapshot, oldest first; one that waits to be deleted is whole."""
    return sorted(
        (snapshot.named.base_offset, snapshot.path)
        for snapshot in read_folder(folder).kraft_snapshots
        if snapshot.named and snapshot.named.state is not FileState.PART
    )


def read_image(
    folder: Path, as_of: AsOf = NOW, watch: Watch = None, *, whole_log: bool = False
) -> tuple[ClusterImage, list[Unreadable]]:
    """The cluster as of an offset or a time, and the parts of the log that could not be read.

    `watch` is called after each record with the image as it is then; with `whole_log` also after records of the log
    that the newest snapshot covers. `KctlError` if neither the log nor a snapshot reaches back that far.
    """
    trouble: list[Unreadable] = []
    image = ClusterImage(watch=watch)
    start = 0
    first = next(entries(folder, []), None)
    usable = snapshots(folder)[::-1]
    if whole_log and first is not None:
        usable = [snapshot for snapshot in usable[::-1] if 0 < first.base_offset <= snapshot[0]]
    for end, path in usable:
        # The header of a snapshot has the time of the last record in it; the offset is enough to go by.
        if as_of.offset is None or end <= as_of.offset:
            snapshot_image = _from_snapshot(path, end, as_of, trouble, watch)
            if snapshot_image is not None:
                image, start = snapshot_image, end
                break
    if start == 0 and first is not None and first.base_offset > 0:
        damaged = "".join(f"; {snapshot.file.name}: {snapshot.what}" for snapshot in trouble)
        raise KctlError(
            f"{folder.name}: the log starts at {first.base_offset} and no whole snapshot reaches back that far{damaged}",
            "copy the .checkpoint files of the folder too, or ask for a later state",
        )
    if start == 0 and first is None and trouble:
        raise KctlError(
            f"{folder.name}: there are no records, and {trouble[0].file.name} is not a complete snapshot: {trouble[0].what}",
            "use the folder of another controller",
        )
    image.apply(_records(entries(folder, trouble), folder, as_of, trouble, start))
    return image, trouble


def _from_snapshot(
    path: Path, end: int, as_of: AsOf, trouble: list[Unreadable], watch: Watch
) -> ClusterImage | None:
    """The image in a snapshot; None if it is newer than the requested time, or not whole."""
    image = ClusterImage(watch=watch)
    with ExitStack() as stack:
        try:
            data = stack.enter_context(opened_source(path))
            items = list(walk(data))
        except OSError as error:
            trouble.append(Unreadable(path, 0, reason_of(error), is_closed=True))
            return None
        if (partial := _partial(items)) is not None:
            trouble.append(Unreadable(path, *partial))
            return None
        sound = [item for item in items if isinstance(item, LogEntry)]
        newest = max(
            (entry.batch.max_timestamp for entry in sound if entry.batch and not entry.batch.is_control),
            default=-1,
        )
        if as_of.timestamp is not None and newest > as_of.timestamp:
            return None
        records = _records(iter(sound), path, NOW, trouble, -1)
        image.apply(logged._replace(offset=None) for logged in records)
    image.start_offset = image.end_offset = end
    return image


def _partial(items: Sequence[LogEntry | Damage]) -> tuple[int, str] | None:
    """Position and reason of what a snapshot lacks; None for a whole one."""
    for item in items:
        if isinstance(item, Damage):
            return item.position, str(item.reason)
        if not item.crc_valid:
            return item.position, "crc-mismatch"
    sound = [item for item in items if isinstance(item, LogEntry)]
    if not sound or not _has_control(sound[0], ControlType.SNAPSHOT_HEADER):
        return 0, "it does not begin with a snapshot's header"
    if not _has_control(sound[-1], ControlType.SNAPSHOT_FOOTER):
        return sound[-1].position, "it has no footer: its end is missing"
    return None


def _has_control(entry: LogEntry, type_: ControlType) -> bool:
    if entry.batch is None or not entry.batch.is_control:
        return False
    try:
        return any(read_key(record.key).type == type_ for record in iterate_records(entry, limit=LIMIT))
    except FormatError:
        return False


def _records(
    sound: Iterator[LogEntry], place: Path, as_of: AsOf, trouble: list[Unreadable], start: int
) -> Iterator[LoggedRecord]:
    next_offset: int | None = None if start < 0 else start
    leaders: dict[int, int] = {}
    for entry in sound:
        batch = entry.batch
        if batch is not None and batch.is_control and (leader := _leader_in(entry)) is not None:
            leaders[batch.partition_leader_epoch] = leader
        if batch is None or batch.last_offset < start:
            continue
        if next_offset is not None and entry.base_offset > next_offset:
            trouble.append(
                Unreadable(
                    place, entry.position, f"offsets {next_offset} to {entry.base_offset - 1} are not there"
                )
            )
        next_offset = None if next_offset is None else batch.last_offset + 1
        if batch.is_control:
            continue
        try:
            for record in iterate_records(entry, limit=LIMIT):
                if record.offset >= start and as_of.includes(record.offset, record.timestamp):
                    metadata_record = read_metadata_record(record.value or b"")
                    writer = leaders.get(batch.partition_leader_epoch)
                    yield LoggedRecord(record.offset, metadata_record, record.timestamp, writer)
        except FormatError as error:
            trouble.append(Unreadable(place, entry.position, str(error)))


def _leader_in(entry: LogEntry) -> int | None:
    """The node that a control batch says leads the quorum in the batch's epoch."""
    try:
        for record in iterate_records(entry, limit=LIMIT):
            fields = fields_of(record.key, record.value)
            if fields["name"] == ControlType.LEADER_CHANGE.name:
                value = fields["value"]
                leader = value["leaderId"] if isinstance(value, dict) else None
                return leader if isinstance(leader, int) else None
    except FormatError:
        pass
    return None
