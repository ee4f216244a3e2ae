"""The metadata in ZooKeeper as entities, with the times at which it was written."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from urllib.parse import unquote

from formats.errors import FormatError
from formats.secrets import WITHHELD
from formats.values import Struct, field
from formats.znodes.cluster import (
    ControllerZnode,
    MigrationZnode,
    parse_controller,
    parse_features,
    parse_migration,
    parse_producer_id_block,
)
from formats.znodes.security import (
    SCRAM_MECHANISMS,
    parse_acls,
    parse_delegation_token,
    parse_scram,
    protocol_name,
)
from kctl.cluster.state import ClusterState, Problem
from kctl.migration.entities import (
    DEFAULT,
    JAVA_DOUBLE,
    NEXT_PRODUCER_ID,
    PRESENT,
    PRODUCER_IDS,
    Entities,
    Entity,
    Value,
    acl_entity,
    acl_field,
    config_value,
    partition_entity,
    quota_entity,
    quota_value,
)
from kctl.zookeeper.access import TOKENS
from kctl.zookeeper.reading import read_cluster
from kctl.zookeeper.store import Znode, ZnodeReader, walk

CONFIGS = ("topics", "brokers", "clients", "users", "ips")
PATTERNS = {"LITERAL": "/kafka-acl", "PREFIXED": "/kafka-acl-extended/prefixed"}
SECRET, UNREADABLE = "the export has no secrets", "it cannot be read"  # why something is not compared
# The parents of znodes that come and go; for topics only the list, since their states change all the time.
ROOTS = {
    "config": ("/config",),
    "quota": ("/config/users", "/config/clients", "/config/ips"),
    "user": ("/config/users",),
    "acl": tuple(PATTERNS.values()),
    "delegation_token": (TOKENS,),
}
LISTS = {"topic": "/brokers/topics", "partition": "/brokers/topics"}


class ZookeeperSide(Struct, dict=True):
    """The znodes of a cluster."""

    reader: ZnodeReader
    state: ClusterState
    controller: ControllerZnode | None = None
    migration: MigrationZnode | None = None
    producer_ids_by_kraft: bool = False  # the block was written by a KRaft controller
    entities: Entities = field(default_factory=dict)
    paths: dict[Entity, str] = field(default_factory=dict)
    withheld: dict[tuple[Entity, str | None], str] = field(default_factory=dict)
    """Fields that cannot be compared (None: none of the entity), and why."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_claimed(self) -> bool:
        """Whether a KRaft controller is the controller."""
        epoch = self.controller.kraft_controller_epoch if self.controller else None
        return epoch is not None and epoch >= 0

    @property
    def reached(self) -> int | None:
        """The offset of the metadata log up to which ZooKeeper is complete; None before the copy."""
        offset = self.migration.kraft_metadata_offset if self.migration else -1
        return offset if offset >= 0 else None

    def written_at(self, entity: Entity) -> int | None:
        """When the znode of an entity was written last, in milliseconds; None if it has none."""
        path = self.paths.get(entity)
        node = self.reader.get(path) if path else None
        return node.stat.mtime if node else None

    @cached_property
    def newest(self) -> int:
        """When any znode was written last, in milliseconds."""
        return max((max(node.stat.ctime, node.stat.mtime) for _, node in walk(self.reader)), default=0)

    def is_list_changed(self, entity_type: str, since: int) -> bool:
        """Whether entities of a type may have been created or deleted after a time in milliseconds.

        The stat of a parent has the transaction of that change but no time: compare it with transactions whose
        times are known.
        """
        nodes = list(walk(self.reader))
        stats = [node.stat for _, node in nodes]
        pairs = [pair for stat in stats for pair in ((stat.czxid, stat.ctime), (stat.mzxid, stat.mtime))]
        known = max((zxid for zxid, time in pairs if time <= since), default=0)
        roots = ROOTS.get(entity_type, ())
        return any(
            max(node.stat.pzxid, node.stat.mzxid if roots else 0) > known
            for path, node in nodes
            if path == LISTS.get(entity_type) or any(path == r or path.startswith(f"{r}/") for r in roots)
        )

    def has_traces_of_kraft(self) -> bool:
        """Whether a KRaft controller wrote here: its controller epoch is lower than those that exist."""
        if self.producer_ids_by_kraft:
            return True
        if self.controller is None or self.controller.version < 2:  # there was none before 3.4
            return False
        states = self.state.partition_states
        nodes = self.reader.get_many([f"/brokers/topics/{t}/partitions/{p}/state" for t, p in states])
        written = sorted(
            (node.stat.mzxid, state.controller_epoch or 0)
            for node, state in zip(nodes, states.values(), strict=True)
            if node is not None
        )
        return any(later[1] < earlier[1] for earlier, later in pairwise(written))


def read_zookeeper_side(reader: ZnodeReader) -> ZookeeperSide:
    """The znodes as entities. Raises KctlError if there is no cluster."""
    state = read_cluster(reader, configs=CONFIGS)
    side = ZookeeperSide(reader, state)
    side.problems += state.problems
    _singles(side)
    _topics(side)
    for (kind, name), config in sorted(state.configs.items()):
        _config(side, kind, name, dict(config.values))
    for pattern, root in PATTERNS.items():
        for resource_type, name, path, node in _resources(reader, root):
            _acl(side, acl_entity(protocol_name(resource_type), name, pattern), path, node)
    for name, node in _below(reader, TOKENS):
        _token(side, Entity("delegation_token", name), f"{TOKENS}/{name}", node)
    for id, broker in state.brokers.items():
        entity = Entity("broker", str(id))
        ends: Value = sorted(f"{e.listener}://{e.host}:{e.port}" for e in broker.endpoints)
        side.entities[entity] = {"rack": broker.rack, "end_points": ends}
        side.paths[entity] = f"/brokers/ids/{id}"
    _note_unreadable(side)
    return side


def _singles(side: ZookeeperSide) -> None:
    paths = ("/controller", "/migration", "/latest_producer_id_block", "/feature")
    controller, migration, block, feature = side.reader.get_many(paths)
    with suppress(FormatError):  # it is among the problems of the state
        side.controller = parse_controller(controller.data) if controller else None
    if migration is not None:
        try:
            side.migration = parse_migration(migration.data)
        except FormatError as error:
            side.problems.append(Problem("/migration", error.what))
    entity = Entity(PRODUCER_IDS, PRODUCER_IDS)
    if block is not None and block.data:
        side.paths[entity] = "/latest_producer_id_block"
        try:
            parsed = parse_producer_id_block(block.data)
        except FormatError as error:
            side.problems.append(Problem("/latest_producer_id_block", error.what))
        else:
            side.producer_ids_by_kraft = parsed.broker_id == -1
            side.entities[entity] = {NEXT_PRODUCER_ID: parsed.next_producer_id}
    if feature is not None and feature.data:
        try:
            levels = parse_features(feature.data)[2]
        except FormatError as error:
            side.problems.append(Problem("/feature", error.what))
        else:
            for name, level in levels.items():
                side.entities[Entity("feature", name)] = {"finalized_level": str(level)}


def _topics(side: ZookeeperSide) -> None:
    for name, topic in side.state.topics.items():
        entity = Entity("topic", name)
        side.entities[entity] = {"topic_id": topic.topic_id}
        side.paths[entity] = f"/brokers/topics/{name}"
        for number, replicas in topic.partitions.items():
            partition = partition_entity(name, number)
            values: dict[str, Value] = {
                "replicas": list(replicas),
                "adding_replicas": list(topic.adding_replicas.get(number, ())),
                "removing_replicas": list(topic.removing_replicas.get(number, ())),
            }
            side.paths[partition] = f"/brokers/topics/{name}"
            side.entities[partition] = values
    for (name, number), state in side.state.partition_states.items():
        partition = partition_entity(name, number)
        side.paths[partition] = f"/brokers/topics/{name}/partitions/{number}/state"
        if partition in side.entities:
            side.entities[partition] |= {
                "leader": state.leader, "leader_epoch": state.leader_epoch, "isr": list(state.isr),
            }  # fmt: skip


def _config(side: ZookeeperSide, kind: str, name: str, values: dict[str, str]) -> None:
    """A configuration; for users, clients and ips: their quotas and SCRAM credentials."""
    path = f"/config/{kind}/{name}"
    if kind in ("topics", "brokers"):
        _add(
            side,
            Entity("config", f"{kind.removesuffix('s')} {name}"),
            path,
            {key: config_value(key, value) for key, value in values.items()},
        )
        return
    entity = _quota_of(kind, name)
    user = Entity("user", unquote(name))
    for mechanism in SCRAM_MECHANISMS.values() if kind == "users" else ():
        credential = values.pop(mechanism, None)
        if credential is None:
            continue
        try:
            digest: Value = parse_scram(credential).digest
        except FormatError as error:
            digest = None
            if credential.startswith("(redacted"):
                side.withheld[user, mechanism] = SECRET
            else:
                side.problems.append(Problem(path, f"{mechanism} is {error.what}"))
                side.withheld[user, mechanism] = UNREADABLE
        _add(side, user, path, {mechanism: digest})
    for key, value in values.items():
        if not JAVA_DOUBLE.fullmatch(value):
            side.problems.append(Problem(path, f"{config_value(key, key)} is not a number"))
    _add(side, entity, path, {key: quota_value(value) for key, value in values.items()})


def _quota_of(kind: str, name: str) -> Entity:
    if kind == "ips":
        return quota_entity([("ip", _name(name))])
    if kind == "clients":
        return quota_entity([("client-id", _name(name))])
    user, separator, client = name.partition("/clients/")
    parts: list[tuple[str, str | None]] = [("user", _name(user))]
    return quota_entity([*parts, ("client-id", _name(client))] if separator else parts)


def _name(name: str) -> str | None:
    return None if name == DEFAULT else unquote(name)


def _acl(side: ZookeeperSide, entity: Entity, path: str, node: Znode) -> None:
    if not node.data:
        return
    try:
        rules = parse_acls(node.data)
    except FormatError as error:
        _unparsed(side, entity, path, node.data, error)
        return
    fields = [
        acl_field(
            rule.principal, rule.host, protocol_name(rule.operation), protocol_name(rule.permission_type)
        )
        for rule in rules
    ]
    _add(side, entity, path, dict.fromkeys(fields, PRESENT))


def _token(side: ZookeeperSide, entity: Entity, path: str, node: Znode) -> None:
    try:
        token = parse_delegation_token(node.data)
    except FormatError as error:
        _unparsed(side, entity, path, node.data, error)
        return
    values = token._asdict()
    side.entities[entity] = {**values, "renewers": sorted(token.renewers)}
    side.paths[entity] = path


def _unparsed(side: ZookeeperSide, entity: Entity, path: str, data: bytes, error: FormatError) -> None:
    """Note an entity that exists but cannot be compared: its content is damaged, or not in the export."""
    side.entities[entity] = {}
    side.paths[entity] = path
    if data.startswith(WITHHELD):
        side.withheld[entity, None] = SECRET
    else:
        side.problems.append(Problem(path, error.what))
        side.withheld[entity, None] = UNREADABLE


def _add(side: ZookeeperSide, entity: Entity, path: str, values: dict[str, Value]) -> None:
    if values:
        side.entities.setdefault(entity, {}).update(values)
        side.paths[entity] = path


def _resources(reader: ZnodeReader, root: str) -> Iterator[tuple[str, str, str, Znode]]:
    """Type, name, path and znode of each resource with rules; names may hold slashes."""
    for resource_type in reader.children(root) or ():
        above = f"{root}/{resource_type}"
        for path, node in walk(reader, above):
            if path != above and node.data:
                yield resource_type, path[len(above) + 1 :], path, node


def _below(reader: ZnodeReader, root: str) -> Iterator[tuple[str, Znode]]:
    names = reader.children(root) or []
    for name, node in zip(names, reader.get_many([f"{root}/{name}" for name in names]), strict=True):
        if node is not None:
            yield name, node


def _note_unreadable(side: ZookeeperSide) -> None:
    """Note the entities of unreadable znodes: they exist but cannot be compared."""
    for place in [problem.place for problem in side.problems]:
        parts = place.strip("/").split("/")
        node = side.reader.get(place) if place.startswith("/") else None
        is_withheld = node is not None and node.data.startswith(WITHHELD)
        entity: Entity | None = None
        if parts[:2] == ["brokers", "topics"] and len(parts) == 3:
            entity = Entity("topic", parts[2])
        elif parts[:2] == ["brokers", "topics"] and len(parts) == 6:
            entity = Entity("partition", f"{parts[2]}-{parts[4]}")
        elif parts[:2] == ["brokers", "ids"] and len(parts) == 3:
            entity = Entity("broker", parts[2])
        elif parts[0] == "latest_producer_id_block":
            entity = Entity(PRODUCER_IDS, PRODUCER_IDS)
        elif parts[0] == "config" and len(parts) > 2 and parts[1] in ("topics", "brokers"):
            entity = Entity("config", f"{parts[1].removesuffix('s')} {parts[2]}")
        elif parts[0] == "config" and len(parts) > 2:
            entity = _quota_of(parts[1], "/".join(parts[2:]))
            if parts[1] == "users":
                side.withheld.setdefault((Entity("user", unquote(parts[2])), None), UNREADABLE)
        if entity is not None and not (parts[0] == "config" and entity in side.entities):
            side.entities.setdefault(entity, {})
            side.paths.setdefault(entity, place)
            side.withheld[entity, None] = SECRET if is_withheld else UNREADABLE
    side.problems = [
        problem
        for problem in side.problems
        if not (
            problem.place.startswith("/")
            and (node := side.reader.get(problem.place))
            and node.data.startswith(WITHHELD)
        )
    ]
