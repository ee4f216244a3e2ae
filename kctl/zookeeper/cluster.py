"""A cluster behind ZooKeeper, live or recorded: the first backend of `kctl.cluster.interface`."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Unpack

from formats.errors import FormatError
from formats.whole_numbers import whole_number
from formats.znodes.consumers import parse_consumer
from formats.znodes.requests import (
    CHANGE_NAME,
    Requested,
    format_election,
    format_reassignment,
    parse_config_change,
)
from kctl.cluster.intent import Intent, Write
from kctl.cluster.interface import Cluster, Conflict, Oddity, Scope
from kctl.cluster.old_consumers import OldGroup, OldMember
from kctl.cluster.state import ClusterState, Problem, Replicas
from kctl.cluster.versions import V2_0
from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition
from kctl.zookeeper.reading import read_cluster
from kctl.zookeeper.store import (
    LARGEST_REQUEST,
    HiddenZnodes,
    OutcomeUnknown,
    ZnodeReader,
    ZnodeStore,
    request_size,
)
from kctl.zookeeper.writes import writes_for

ASKING = 3.0  # seconds for a broker to return log end offsets
SETTLING = 5.0  # seconds to find out whether a lost write was carried out
REQUEST_ROOM = 20_000  # bytes of a request, for throttles and checks beside the partitions


class RecordedCluster(Cluster):
    """A cluster at the time of an export of its znodes: it can be read but not changed."""

    backend = "snapshot"

    def __init__(self, reader: ZnodeReader) -> None:
        self.reader = reader
        self.location = reader.location

    def read_state(self, topics: Collection[str] | None = None, **scope: Unpack[Scope]) -> ClusterState:
        """See `kctl.cluster.interface.Cluster`; live: from a server that has seen every write of this session."""
        return read_cluster(self.reader, topics, **scope)

    def _refuse(self) -> Conflict:
        return Conflict(
            f"{self.location} is a snapshot: it can be read, not changed",
            "name the cluster itself with --zookeeper or --context",
        )

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        """Raises Conflict."""
        raise self._refuse()

    def commit(self, writes: Sequence[Write]) -> None:
        """Raises Conflict."""
        raise self._refuse()

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Raises Conflict."""
        raise self._refuse()

    def request_partitions_fitting(
        self, partitions: Sequence[tuple[TopicPartition, Replicas]], kind: str
    ) -> int:
        """All of them: a plan may be made from a snapshot."""
        return len(partitions)

    def scram_users(self, problems: list[Problem]) -> dict[str, dict[str, int | None]]:
        from kctl.zookeeper.access import iterations_of, read_users

        return {
            user: {mechanism: iterations_of(value) or None for mechanism, value in credentials.items()}
            for user, credentials in read_users(self.reader, problems).items()
        }

    def read_oddities(self, state: ClusterState, now: int) -> Sequence[Oddity]:
        """Notifications that brokers choke on, deletion markers by age."""
        return [*_notifications(self.reader, state), *_markers(self.reader, state, now)]

    def read_old_groups(self) -> Sequence[OldGroup]:
        """Every group below `/consumers`, by name. What cannot be read is in the group's `problems`."""
        return [_group(self.reader, name) for name in self.reader.children(CONSUMERS) or []]

    def close(self) -> None:
        """End the session, if there is one."""
        self.reader.close()


class ZookeeperCluster(RecordedCluster):
    """A live cluster; see `kctl.cluster.interface.Cluster`."""

    backend = "zookeeper"

    def __init__(self, store: ZnodeStore) -> None:
        super().__init__(store)
        self.store = store

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        """The transaction of an intent, no larger than the server accepts."""
        writes = writes_for(self.store, intent, state)
        size = request_size(writes)
        if size > LARGEST_REQUEST:
            raise Refused(
                f"the request would be {size:,} bytes, and ZooKeeper takes {LARGEST_REQUEST:,}; nothing was written",
                "use smaller batches",
            )
        return writes

    def commit(self, writes: Sequence[Write]) -> None:
        """Write the transaction; after a lost connection, find out whether it was written."""
        try:
            self.store.transact(writes)
        except OutcomeUnknown as unknown:
            end = time.monotonic() + SETTLING
            while True:
                self.store.sync()
                verdict = self.outcome(writes)
                if verdict is True:
                    return
                # An old session's request may still arrive until the session expires.
                if verdict is False and time.monotonic() > end:
                    raise KctlError(
                        f"{unknown.message}; nothing was written",
                        "run the command again once ZooKeeper answers",
                    ) from None
                if verdict is None:
                    raise
                time.sleep(0.2)

    def outcome(self, writes: Sequence[Write]) -> bool | None:
        """Whether a transaction was carried out; None if its znodes have been changed or consumed since."""
        checked_writes = [w for w in writes if w.action in ("set", "create", "delete") and not w.sequence]
        nodes = self.store.get_many([w.target for w in checked_writes])
        verdicts: set[bool | None] = set()
        for write, node in zip(checked_writes, nodes, strict=True):
            if write.action == "delete":
                verdicts.add(True if node is None else None)
            elif node is not None and node.data == write.after and _is_next(write, node.stat.version):
                return True
            elif (write.action == "set" and node is not None and node.stat.version == write.version) or (
                write.action == "create" and node is None and not _is_used_up(write.target)
            ):
                return False
            else:
                verdicts.add(None)
        return verdicts.pop() if len(verdicts) == 1 else None

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Whether an earlier transaction has certainly been carried out."""
        self.store.sync()
        return self.outcome(writes) is True

    def request_partitions_fitting(
        self, partitions: Sequence[tuple[TopicPartition, Replicas]], kind: str
    ) -> int:
        """How many partitions, from the front, fit in one request."""
        encode = format_reassignment if kind == "reassign" else format_election
        around = len(encode([])) - 1  # a comma follows each
        used = REQUEST_ROOM
        for count, (tp, replicas) in enumerate(partitions):
            used += len(encode([Requested(tp.topic, tp.partition, tuple(replicas))])) - around
            if used > LARGEST_REQUEST:
                return count
        return len(partitions)

    def log_ends(self, state: ClusterState) -> Mapping[TopicPartition, int]:
        """From each leader that accepts a plain connection."""
        from kctl.cluster.log_ends import log_end_offsets

        return log_end_offsets(state.partition_states, state, ASKING)


def _is_next(write: Write, version: int) -> bool:
    return version == (0 if write.version is None else write.version + 1)


def _is_used_up(path: str) -> bool:
    """Whether the controller deletes the znode when it is done with it."""
    return path.startswith("/admin/")


CHANGES, DELETIONS = "/config/changes", "/admin/delete_topics"


def _notifications(reader: ZnodeReader, state: ClusterState) -> Iterator[Oddity]:
    try:
        names = reader.children(CHANGES) or []
        paths = [f"{CHANGES}/{name}" for name in names]
        nodes = reader.get_many(paths)
    except HiddenZnodes as hidden:
        yield Oddity("notification-unread", CHANGES, hidden.message)
        return
    for name, path, node in zip(names, paths, nodes, strict=True):
        if not CHANGE_NAME.fullmatch(name):
            yield Oddity("notification", path, "its name is not config_change_ and ten digits")
        elif node is not None:
            try:
                parse_config_change(node.data)
            except FormatError as error:
                # From 2.0 on brokers log it and go on.
                if state.kafka_version < V2_0:
                    yield Oddity("notification", path, error.what)


def _markers(reader: ZnodeReader, state: ClusterState, now: int) -> Iterator[Oddity]:
    paths = [f"{DELETIONS}/{name}" for name in sorted(state.deleting)]
    try:
        nodes = reader.get_many(paths)
    except HiddenZnodes as hidden:
        nodes = [*hidden.values]
    for path, node in zip(paths, nodes, strict=True):
        if node is not None:
            age = max(now - node.stat.ctime, 0)
            yield Oddity("old-deletion", path, f"it has been there for {age // 1000} s", age)


CONSUMERS = "/consumers"


def _group(reader: ZnodeReader, name: str) -> OldGroup:
    problems: list[str] = []
    base = f"{CONSUMERS}/{name}"
    owners = {tp: data.decode("utf-8", "replace") for tp, data in _by_partition(reader, f"{base}/owners")}
    offsets = {}
    for tp, data in _by_partition(reader, f"{base}/offsets"):
        try:
            offsets[tp] = int(data)
        except ValueError:
            problems.append(f"{base}/offsets/{tp.topic}/{tp.partition}: {data[:40]!r} is not an offset")
    members = tuple(_members(reader, f"{base}/ids", problems))
    return OldGroup(name=name, members=members, owners=owners, offsets=offsets, problems=tuple(problems))


def _members(reader: ZnodeReader, base: str, problems: list[str]) -> Iterator[OldMember]:
    names = reader.children(base) or []
    paths = [f"{base}/{name}" for name in names]
    for name, path, node in zip(names, paths, reader.get_many(paths), strict=True):
        if node is None:
            continue
        try:
            consumer = parse_consumer(node.data)
        except FormatError as error:
            problems.append(f"{path}: {error.what}")
            continue
        yield OldMember(
            member_id=name,
            subscription=dict(consumer.subscription),
            pattern=consumer.pattern,
            registered_at=consumer.timestamp,
        )


def _by_partition(reader: ZnodeReader, base: str) -> Iterator[tuple[TopicPartition, bytes]]:
    topics = reader.children(base) or []
    folders = [f"{base}/{topic}" for topic in topics]
    places = [
        (TopicPartition(topic, partition), f"{folder}/{number}")
        for topic, folder, numbers in zip(topics, folders, reader.children_many(folders), strict=True)
        for number in numbers or ()
        if (partition := whole_number(number)) is not None
    ]
    for (tp, _), node in zip(places, reader.get_many([path for _, path in places]), strict=True):
        if node is not None:
            yield tp, node.data
