"""A `ClusterState` from znodes, live or recorded, in three rounds of bulk reads.

First what there is one of (controller, requests, names), then brokers, topics and configurations, then the
states of all partitions. What cannot be parsed becomes a `Problem` and the rest stands.
"""

import contextlib
import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from formats.errors import FormatError
from formats.znode_json import parse_object, text
from formats.znode_requests import RequestZnode, parse_election, parse_reassignment
from formats.znodes import (
    BrokerZnode,
    parse_broker,
    parse_config,
    parse_controller,
    parse_number,
)
from kctl.cluster.state import (
    Broker,
    ClusterState,
    Controller,
    Endpoint,
    EntityConfig,
    PartitionState,
    Problem,
    Replicas,
    Request,
    Topic,
)
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.zookeeper import quick_parsing
from kctl.zookeeper.store import Znode, ZnodeReader
from kctl.zookeeper.version_guess import Signs, guess_version

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
T = TypeVar("T")


@dataclass(slots=True)
class Read:
    """One reading of a cluster, and what went wrong in it."""

    reader: ZnodeReader
    problems: list[Problem] = field(default_factory=list)

    def parse(self, path: str, node: Znode | None, parser: Callable[[bytes], T]) -> T | None:
        """The parsed znode; None, and a problem noted, where it cannot be."""
        if node is None:
            return None
        try:
            return parser(node.data)
        except FormatError as error:
            self.problems.append(Problem(path, error.what))
            return None


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """A time without cyclic garbage collection.

    A reading makes tens of thousands of small values that all stay and are in no cycle. To look through them again
    and again as they come costs as much as all the rest of it.
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
    reader: ZnodeReader,
    topics: Collection[str] | None = None,
    *,
    partition_states: bool = True,
    configs: Collection[str] = (),
    kafka_version: KafkaVersion | None = None,
) -> ClusterState:
    """The cluster now; see `kctl.cluster.interface.Cluster.read_state`."""
    read = Read(reader)
    singles = dict(zip(ONE_OF, reader.get_many(ONE_OF), strict=True))
    lists = dict(zip(LISTS, reader.children_many(LISTS), strict=True))
    if lists["/brokers/ids"] is None:
        raise KctlError(
            f"there is no Kafka cluster at {reader.location}: no /brokers/ids below it",
            "is the chroot right? A connect string is HOST:PORT,HOST:PORT/chroot",
        )
    names = tuple(lists["/brokers/topics"] or ())
    deleting = frozenset(lists["/admin/delete_topics"] or ())
    brokers, registrations = _brokers(read, lists["/brokers/ids"])
    chosen = set(names if topics is None else topics)
    wanted = tuple(name for name in names if name in chosen)
    found, versions = _topics(read, wanted, deleting)
    controller = _controller(read, singles)
    claimed = controller is not None and controller.is_kraft
    signs = Signs(
        registrations=registrations,
        topic_versions=versions,
        root=frozenset(lists["/"] or ()),
        config=frozenset(lists["/config"] or ()),
        has_cluster_id=singles["/cluster/id"] is not None,
        controller=read.parse("/controller", singles["/controller"], parse_controller),
    )
    return ClusterState(
        cluster_id=_cluster_id(read, singles["/cluster/id"]),
        kafka_version=kafka_version or guess_version(signs),
        brokers=brokers,
        controller=controller,
        topic_names=names,
        topics=found,
        partition_states=_states(read, found) if partition_states else {},
        configs=_configs(read, configs, wanted if topics is not None else None),
        reassignment=_request(read, "/admin/reassign_partitions", singles, parse_reassignment),
        election=_request(read, "/admin/preferred_replica_election", singles, parse_election),
        deleting=deleting,
        is_migrating=singles["/migration"] is not None or claimed,
        problems=tuple(dict.fromkeys(read.problems)),
    )


def _cluster_id(read: Read, node: Znode | None) -> str | None:
    return read.parse("/cluster/id", node, lambda data: text(parse_object(data), "id"))


def _controller(read: Read, singles: Mapping[str, Znode | None]) -> Controller | None:
    node = singles["/controller"]
    epoch = read.parse("/controller_epoch", singles["/controller_epoch"], parse_number)
    parsed = read.parse("/controller", node, parse_controller)
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


def _brokers(read: Read, names: Iterable[str]) -> tuple[dict[int, Broker], list[tuple[BrokerZnode, int]]]:
    ids = sorted(int(name) for name in names if name.isascii() and name.isdigit())
    paths = [f"/brokers/ids/{id}" for id in ids]
    found: dict[int, Broker] = {}
    registrations: list[tuple[BrokerZnode, int]] = []
    for id, path, node in zip(ids, paths, read.reader.get_many(paths), strict=True):
        if node is None:
            continue
        parsed = read.parse(path, node, parse_broker)
        if parsed is None:
            found[id] = Broker(broker_id=id, host=None, port=-1, broker_epoch=node.stat.czxid)
            continue
        registrations.append((parsed, node.stat.version))
        endpoints = tuple(Endpoint(*endpoint) for endpoint in parsed.endpoints)
        first = endpoints[0] if endpoints and not parsed.host else None
        found[id] = Broker(
            broker_id=id,
            host=first.host if first else parsed.host,
            port=first.port if first else parsed.port,
            rack=parsed.rack,
            endpoints=endpoints,
            broker_epoch=node.stat.czxid,
            registered_at=parsed.timestamp,
        )
    return found, registrations


def _topics(
    read: Read, names: Collection[str], deleting: frozenset[str]
) -> tuple[dict[str, Topic], set[int]]:
    paths = [f"/brokers/topics/{name}" for name in names]
    found: dict[str, Topic] = {}
    versions: set[int] = set()
    for name, path, node in zip(names, paths, read.reader.get_many(paths), strict=True):
        parsed = read.parse(path, node, quick_parsing.topic)
        if node is None or parsed is None:
            continue
        versions.add(parsed.version)
        found[name] = Topic(
            name=name,
            partitions=parsed.partitions,
            adding_replicas=parsed.adding_replicas,
            removing_replicas=parsed.removing_replicas,
            topic_id=parsed.topic_id,
            version=node.stat.version,
            is_marked_for_deletion=name in deleting,
            created_at=node.stat.ctime,
        )
    return found, versions


def _states(read: Read, topics: Mapping[str, Topic]) -> dict[TopicPartition, PartitionState]:
    partitions = [TopicPartition(name, p) for name, topic in topics.items() for p in sorted(topic.partitions)]
    paths = [f"/brokers/topics/{name}/partitions/{p}/state" for name, p in partitions]
    found: dict[TopicPartition, PartitionState] = {}
    for tp, path, node in zip(partitions, paths, read.reader.get_many(paths), strict=True):
        if node is not None:
            try:
                found[tp] = quick_parsing.partition_state(node.data, node.stat.version)
            except FormatError as error:
                read.problems.append(Problem(path, error.what))
    return found


def _configs(
    read: Read, types: Collection[str], topics: Collection[str] | None
) -> dict[tuple[str, str], EntityConfig]:
    names: list[tuple[str, str]] = []
    listed = [kind for kind in types if kind != "topics" or topics is None]
    for kind, below in zip(
        listed, read.reader.children_many([f"/config/{kind}" for kind in listed]), strict=True
    ):
        names += [(kind, name) for name in below or ()]
    if topics is not None and "topics" in types:
        names += [("topics", name) for name in topics]
    users = [name for kind, name in names if kind == "users"]
    below_users = read.reader.children_many([f"/config/users/{name}/clients" for name in users])
    for name, clients in zip(users, below_users, strict=True):
        names += [("users", f"{name}/clients/{client}") for client in clients or ()]
    found: dict[tuple[str, str], EntityConfig] = {}
    paths = [f"/config/{kind}/{name}" for kind, name in names]
    for (kind, name), path, node in zip(names, paths, read.reader.get_many(paths), strict=True):
        # A user that only has clients below it is a znode without content.
        parsed = read.parse(path, node, parse_config) if node and node.data else None
        if node is not None and parsed is not None:
            found[kind, name] = EntityConfig(
                entity_type=kind, entity_name=name, values=parsed.config, version=node.stat.version
            )
    return found


def _request(
    read: Read,
    path: str,
    singles: Mapping[str, Znode | None],
    parser: Callable[[bytes | None], RequestZnode],
) -> Request | None:
    node = singles[path]
    if node is None:
        return None
    common = {"created_at": node.stat.ctime, "version": node.stat.version}
    try:
        parsed = parser(node.data)
    except FormatError as error:
        read.problems.append(Problem(path, error.what))
        return Request(partitions={}, unreadable=error.what, **common)
    targets: dict[TopicPartition, Replicas] = {
        TopicPartition(one.topic, one.partition): one.replicas for one in parsed.partitions
    }
    unreadable = None
    if parsed.unknown_keys:
        unreadable = f"it has the keys {', '.join(parsed.unknown_keys)}, which controllers since 2.0 refuse"
        read.problems.append(Problem(path, unreadable))
    return Request(partitions=targets, unreadable=unreadable, **common)
