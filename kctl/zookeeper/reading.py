"""A `ClusterState` from znodes, live or recorded, in three rounds of bulk reads.

First the single znodes and lists of names, then brokers, topics and configurations, then the states of all
partitions. Unparsable znodes become a `Problem` each. Topics and partition states, of which there
are ten thousand, are parsed by typed decoders first; what these reject goes to the parser in `formats`, which is
as lenient as Kafka and has an error text.
"""

import contextlib
import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, Unpack

import msgspec

from formats.errors import FormatError
from formats.values import Struct, field
from formats.whole_numbers import whole_number
from formats.znodes import cluster as znodes
from formats.znodes.json_text import parse_object, text
from formats.znodes.requests import RequestZnode, parse_election, parse_reassignment
from kctl.cluster.interface import Scope
from kctl.cluster.state import (
    CONTROLLER_EPOCH,
    DELETIONS,
    MOVES,
    Broker,
    ClusterState,
    Controller,
    ControllerRequest,
    Endpoint,
    EntityConfig,
    PartitionState,
    Problem,
    Replicas,
    Topic,
)
from kctl.cluster.versions import (
    V0_8_2,
    V0_9,
    V0_10,
    V0_10_1,
    V0_10_2,
    V0_11,
    V1_0,
    V1_1,
    V2_4,
    V2_7,
    V2_8,
    V3_4,
    KafkaVersion,
)
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.zookeeper.store import HIDDEN, HiddenZnodes, Znode, ZnodeReader

ONE_OF = (
    "/controller",
    "/controller_epoch",
    "/cluster/id",
    "/migration",
    "/admin/reassign_partitions",
    "/admin/preferred_replica_election",
)
# Markers before topics: the controller deletes a topic before its marker, so that a marker missed here means
# that the topic is gone below, or that the controller does not delete.
LISTS = ("/brokers/ids", "/admin/delete_topics", "/brokers/topics", "/", "/config")
# Znodes that a reading can do without. If one is hidden, the problem has this place. The root and /config only tell the version.
BESIDE = {
    "/controller_epoch": CONTROLLER_EPOCH,
    "/cluster/id": "cluster id",
    "/migration": "migration",
    "/admin/reassign_partitions": f"{MOVES} request",
    "/admin/preferred_replica_election": "election request",
    "/admin/delete_topics": DELETIONS,
    "/": "",
    "/config": "",
}
T = TypeVar("T")


class ClusterReading(Struct):
    """One reading of a cluster, and its problems."""

    reader: ZnodeReader
    problems: list[Problem] = field(default_factory=list)
    hidden_topics: list[HiddenZnodes] = field(default_factory=list)

    def configurations(
        self, read: Callable[[Sequence[str]], list[T]], places: Mapping[str, str]
    ) -> list[T | None]:
        """What `read` gives for the paths, whose values are places of problems. None, with a problem noted, for a hidden one."""
        try:
            return [*read(list(places))]
        except HiddenZnodes as hidden:
            self.problems += [
                Problem(places[path], f"{path}: {HIDDEN}", is_hidden=True) for path in hidden.paths
            ]
            return [*hidden.values]

    def beside(self, read: Callable[[Sequence[str]], list[T]], paths: Sequence[str]) -> list[T | None]:
        """What `read` gives for the paths. None, with a problem noted, for a hidden one of `BESIDE`.

        Raises HiddenZnodes for the others: without the brokers, the list of topics and the controller there is no cluster.
        """
        try:
            return [*read(paths)]
        except HiddenZnodes as hidden:
            if not BESIDE.keys() >= {*hidden.paths}:
                raise
            self.problems += [
                Problem(BESIDE[path], f"{path}: {HIDDEN}", is_hidden=True)
                for path in hidden.paths
                if BESIDE[path]
            ]
            return [*hidden.values]

    def topics(self, paths: Sequence[str]) -> list[Znode | None]:
        """The znodes of topics, and of their partitions; None, which is noted, for a hidden one."""
        try:
            return self.reader.get_many(paths)
        except HiddenZnodes as hidden:
            self.hidden_topics.append(hidden)
            return [*hidden.values]

    def parse(self, path: str, node: Znode | None, parser: Callable[[bytes], T]) -> T | None:
        """The parsed znode; None, with a problem noted, if it cannot be parsed."""
        if node is None:
            return None
        try:
            return parser(node.data)
        except FormatError as error:
            self.problems.append(Problem(path, error.what))
            return None


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Turn off cyclic garbage collection for the duration of the block.

    A reading creates tens of thousands of small values, all kept and none in a cycle. Collecting repeatedly while they
    are created doubles the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@uncollected()
def read_cluster(
    reader: ZnodeReader, topics: Collection[str] | None = None, **scope: Unpack[Scope]
) -> ClusterState:
    """The cluster now; see `kctl.cluster.interface.Cluster.read_state`."""
    read = ClusterReading(reader)
    singles = dict(zip(ONE_OF, read.beside(reader.get_many, ONE_OF), strict=True))
    lists = dict(zip(LISTS, read.beside(reader.children_many, LISTS), strict=True))
    if lists["/brokers/ids"] is None:
        raise KctlError(
            f"there is no Kafka cluster at {reader.location}: no /brokers/ids below it",
            "check the chroot: a connect string is HOST:PORT,HOST:PORT/chroot",
        )
    names = tuple(lists["/brokers/topics"] or ())
    deleting = frozenset(lists["/admin/delete_topics"] or ())
    brokers, registrations = _brokers(read, lists["/brokers/ids"])
    chosen = set(names if topics is None else topics)
    topic_list = tuple(name for name in names if name in chosen)
    topics_by_name, versions = _topics(read, topic_list, deleting)
    controller = _controller(read, singles)
    claimed = controller is not None and controller.is_kraft
    # Without a controller a KRaft quorum may be about to claim the cluster again.
    has_controller = controller is not None and controller.broker_id is not None
    is_rolled_back = has_controller and not claimed and _was_copied(singles["/migration"])
    signs = Signs(
        registrations=registrations,
        topic_versions=versions,
        root=frozenset(lists["/"] or ()),
        config=frozenset(lists["/config"] or ()),
        has_cluster_id=singles["/cluster/id"] is not None,
        controller=read.parse("/controller", singles["/controller"], znodes.parse_controller),
    )
    partition_states = _states(read, topics_by_name) if scope.get("partition_states", True) else {}
    return ClusterState(
        cluster_id=_cluster_id(read, singles["/cluster/id"]),
        kafka_version=scope.get("kafka_version") or guess_version(signs),
        brokers=brokers,
        controller=controller,
        topic_names=names,
        topics=topics_by_name,
        partition_states=partition_states,
        configs=_configs(read, scope.get("configs", ()), topic_list if topics is not None else None),
        reassignment=_request(read, "/admin/reassign_partitions", singles, parse_reassignment),
        election=_request(read, "/admin/preferred_replica_election", singles, parse_election),
        deleting=deleting,
        is_migrating=claimed or (singles["/migration"] is not None and not is_rolled_back),
        is_rolled_back=is_rolled_back,
        problems=tuple(dict.fromkeys(read.problems)),
        hidden="; ".join(hidden.message for hidden in read.hidden_topics),
    )


def _was_copied(migration: Znode | None) -> bool:
    """Whether a KRaft quorum has copied the metadata to its log, by /migration."""
    try:
        return migration is not None and znodes.parse_migration(migration.data).kraft_metadata_offset >= 0
    except FormatError:
        return False


def _cluster_id(read: ClusterReading, node: Znode | None) -> str | None:
    return read.parse("/cluster/id", node, lambda data: text(parse_object(data), "id"))


def _controller(read: ClusterReading, singles: Mapping[str, Znode | None]) -> Controller | None:
    node = singles["/controller"]
    epoch = read.parse("/controller_epoch", singles["/controller_epoch"], znodes.parse_number)
    parsed = read.parse("/controller", node, znodes.parse_controller)
    if node is None or parsed is None:
        return Controller(broker_id=None, epoch=epoch) if epoch is not None else None
    kraft_epoch = parsed.kraft_controller_epoch
    return Controller(
        broker_id=parsed.broker_id,
        epoch=epoch,
        # An election creates an ephemeral node; only a KRaft quorum that claims the cluster a persistent one.
        is_kraft=node.stat.ephemeral_owner == 0 or (kraft_epoch is not None and kraft_epoch >= 0),
        elected_at=parsed.timestamp,
    )


def _brokers(
    read: ClusterReading, names: Iterable[str]
) -> tuple[dict[int, Broker], list[tuple[znodes.BrokerZnode, int]]]:
    ids = sorted(id for name in names if (id := whole_number(name)) is not None)
    paths = [f"/brokers/ids/{id}" for id in ids]
    brokers: dict[int, Broker] = {}
    registrations: list[tuple[znodes.BrokerZnode, int]] = []
    for id, path, node in zip(ids, paths, read.reader.get_many(paths), strict=True):
        if node is None:
            continue
        parsed = read.parse(path, node, znodes.parse_broker)
        if parsed is None:
            brokers[id] = Broker(broker_id=id, host=None, port=-1, broker_epoch=node.stat.czxid)
            continue
        registrations.append((parsed, node.stat.version))
        endpoints = tuple(Endpoint(*endpoint) for endpoint in parsed.endpoints)
        first = endpoints[0] if endpoints and not parsed.host else None
        brokers[id] = Broker(
            broker_id=id,
            host=first.host if first else parsed.host,
            port=first.port if first else parsed.port,
            rack=parsed.rack,
            endpoints=endpoints,
            broker_epoch=node.stat.czxid,
            registered_at=parsed.timestamp,
        )
    return brokers, registrations


def _topics(
    read: ClusterReading, names: Collection[str], deleting: frozenset[str]
) -> tuple[dict[str, Topic], set[int]]:
    paths = [f"/brokers/topics/{name}" for name in names]
    topics: dict[str, Topic] = {}
    versions: set[int] = set()
    for name, path, node in zip(names, paths, read.topics(paths), strict=True):
        parsed = read.parse(path, node, parse_topic_quickly)
        if node is None or parsed is None:
            continue
        versions.add(parsed.version)
        topics[name] = Topic(
            name=name,
            partitions=parsed.partitions,
            adding_replicas=parsed.adding_replicas,
            removing_replicas=parsed.removing_replicas,
            topic_id=parsed.topic_id,
            version=node.stat.version,
            is_marked_for_deletion=name in deleting,
            created_at=node.stat.ctime,
        )
    return topics, versions


def _states(read: ClusterReading, topics: Mapping[str, Topic]) -> dict[TopicPartition, PartitionState]:
    partitions = [TopicPartition(name, p) for name, topic in topics.items() for p in sorted(topic.partitions)]
    paths = [f"/brokers/topics/{name}/partitions/{p}/state" for name, p in partitions]
    states: dict[TopicPartition, PartitionState] = {}
    for tp, path, node in zip(partitions, paths, read.topics(paths), strict=True):
        if node is not None:
            try:
                states[tp] = parse_partition_state_quickly(node.data, node.stat.version)
            except FormatError as error:
                read.problems.append(Problem(path, error.what))
    return states


def _configs(
    read: ClusterReading, types: Collection[str], topics: Collection[str] | None
) -> dict[tuple[str, str], EntityConfig]:
    names: list[tuple[str, str]] = []
    listed = [kind for kind in types if kind != "topics" or topics is None]
    of_kinds = {f"/config/{kind}": f"configurations of {kind}" for kind in listed}
    for kind, below in zip(listed, read.configurations(read.reader.children_many, of_kinds), strict=True):
        names += [(kind, name) for name in below or ()]
    if topics is not None and "topics" in types:
        names += [("topics", name) for name in topics]
    users = [name for kind, name in names if kind == "users"]
    below_users = read.reader.children_many([f"/config/users/{name}/clients" for name in users])
    for name, clients in zip(users, below_users, strict=True):
        names += [("users", f"{name}/clients/{client}") for client in clients or ()]
    configs: dict[tuple[str, str], EntityConfig] = {}
    paths = {
        f"/config/{kind}/{name}": f"configuration of {kind.removesuffix('s')} {name}" for kind, name in names
    }
    for (kind, name), path, node in zip(
        names, paths, read.configurations(read.reader.get_many, paths), strict=True
    ):
        # A user with only clients below it is a znode without content.
        parsed = read.parse(path, node, znodes.parse_config) if node and node.data else None
        if node is not None and parsed is not None:
            configs[kind, name] = EntityConfig(
                entity_type=kind, entity_name=name, values=parsed.config, version=node.stat.version
            )
    return configs


def _request(
    read: ClusterReading,
    path: str,
    singles: Mapping[str, Znode | None],
    parser: Callable[[bytes | None], RequestZnode],
) -> ControllerRequest | None:
    node = singles[path]
    if node is None:
        return None
    common = {"created_at": node.stat.ctime, "version": node.stat.version}
    try:
        parsed = parser(node.data)
    except FormatError as error:
        read.problems.append(Problem(path, error.what))
        return ControllerRequest(partitions={}, unreadable=error.what, **common)
    targets: dict[TopicPartition, Replicas] = {
        TopicPartition(partition.topic, partition.partition): partition.replicas
        for partition in parsed.partitions
    }
    unreadable = None
    if parsed.unknown_keys:
        unreadable = f"it has the keys {', '.join(parsed.unknown_keys)}, which controllers since 2.0 refuse"
        read.problems.append(Problem(path, unreadable))
    return ControllerRequest(partitions=targets, unreadable=unreadable, **common)


# --- quick parsing ------------------------------------------------------------------------------------


class QuickState(msgspec.Struct, gc=False):
    """`.../state`, with the defaults of the slow parser."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    version: int = 1
    leader_recovery_state: int = 0


class QuickTopic(msgspec.Struct, gc=False):
    """`/brokers/topics/TOPIC` without unknown keys, which the quick decoder could not keep."""

    partitions: dict[str, tuple[int, ...]]
    version: int = 1
    adding_replicas: dict[str, tuple[int, ...]] = {}
    removing_replicas: dict[str, tuple[int, ...]] = {}
    topic_id: str | None = None


STATE: msgspec.json.Decoder[QuickState] = msgspec.json.Decoder(QuickState)
TOPIC: msgspec.json.Decoder[QuickTopic] = msgspec.json.Decoder(QuickTopic)


def parse_partition_state_quickly(data: bytes, partition_epoch: int) -> PartitionState:
    """Leader and ISR. Raises FormatError."""
    try:
        state: Any = STATE.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        state = znodes.parse_partition_state(data)
    return PartitionState(
        state.leader,
        state.leader_epoch,
        state.isr,
        state.controller_epoch,
        partition_epoch,
    )


def parse_topic_quickly(data: bytes) -> znodes.TopicZnode:
    """A topic's replicas, without unknown keys. Raises FormatError."""
    try:
        topic = TOPIC.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return znodes.parse_topic(data)
    maps = (topic.partitions, topic.adding_replicas, topic.removing_replicas)
    if (topic.topic_id is not None and len(topic.topic_id) != 22) or not all(map(_all_numbers, maps)):
        return znodes.parse_topic(data)
    return znodes.TopicZnode(
        version=topic.version,
        partitions={int(p): ids for p, ids in topic.partitions.items()},
        adding_replicas={int(p): ids for p, ids in topic.adding_replicas.items()},
        removing_replicas={int(p): ids for p, ids in topic.removing_replicas.items()},
        topic_id=topic.topic_id,
    )


def _all_numbers(partitions: dict[str, tuple[int, ...]]) -> bool:
    return all(name.isascii() and name.isdigit() and len(name) < 10 for name in partitions)


# --- the version --------------------------------------------------------------------------------------
# The lowest version that the znodes are consistent with. Brokers write forms by their inter.broker.protocol.version,
# so a cluster in an upgrade looks as old as its brokers still speak, which is what a writer has to go by. Signs that
# only newer brokers leave raise the bound.

V2_2 = KafkaVersion(2, 2)


class Signs(Struct, frozen=True, kw_only=True):
    """The evidence for a guess of the version."""

    registrations: Collection[tuple[znodes.BrokerZnode, int]]  # with the znode's data version
    topic_versions: Collection[int]
    root: frozenset[str]  # names below the chroot
    config: frozenset[str]  # names below /config
    has_cluster_id: bool
    controller: znodes.ControllerZnode | None


def guess_version(signs: Signs) -> KafkaVersion:
    """A lower bound of the oldest broker's version; without a live broker, of the last writer."""
    lowest = _by_registration(signs)
    if lowest is None:
        lowest = V0_10_2 if signs.has_cluster_id else V0_8_2
    if lowest < V0_10_2:
        return lowest
    newest_form = max(signs.topic_versions, default=1)
    raised = (
        ("latest_producer_id_block" in signs.root, V0_11),
        ("log_dir_event_notification" in signs.root, V1_0),
        ("log_dir_event_notification" in signs.root and {"users", "brokers"} <= signs.config, V1_1),
        # From 2.2 a broker creates its node empty and sets it in one transaction.
        (signs.registrations and all(version >= 1 for _, version in signs.registrations), V2_2),
        (newest_form >= 2, V2_4),
        ("feature" in signs.root, V2_7),
        (newest_form >= 3 or "ips" in signs.config, V2_8),
        (signs.controller is not None and signs.controller.version >= 2, V3_4),
    )
    return max([lowest, *(version for sign, version in raised if sign)])


def _by_registration(signs: Signs) -> KafkaVersion | None:
    forms = [broker.version for broker, _ in signs.registrations]
    if not forms:
        return None
    oldest = min(forms)
    if oldest == 1:
        return V0_8_2
    if oldest == 2:
        return V0_9
    if oldest == 3:
        return V0_10_1 if signs.has_cluster_id else V0_10
    return V2_7 if oldest >= 5 else V0_10_2
