"""Znodes read for one intent, and the writes that every intent may need. Nothing here writes."""

from formats.values import Struct, field
from formats.whole_numbers import whole_number
from kctl.cluster.intent import PlainWrite, Write
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import KafkaVersion
from kctl.zookeeper.store import Znode, ZnodeStore, parent_of


class FreshZnodes(Struct, frozen=True):
    """Znodes read from the store for one intent, each once, and the state that its plan was made from."""

    store: ZnodeStore
    state: ClusterState
    read: dict[str, Znode | None] = field(default_factory=dict)

    @property
    def version(self) -> KafkaVersion:
        """The version of the oldest broker."""
        return self.state.kafka_version

    def get(self, *paths: str) -> list[Znode | None]:
        """Znodes as first read by this translation; new ones are read at once."""
        new = [path for path in dict.fromkeys(paths) if path not in self.read]
        if new:
            self.read.update(zip(new, self.store.get_many(new), strict=True))
        return [self.read[path] for path in paths]

    def live_brokers(self) -> set[int]:
        """Ids of the brokers that are registered now."""
        return {
            id for name in self.store.children("/brokers/ids") or () if (id := whole_number(name)) is not None
        }


def set_or_create(path: str, node: Znode | None, data: bytes) -> Write:
    """The write that gives a znode this content, whether it exists or not."""
    if node is None:
        return PlainWrite(action="create", target=path, after=data)
    return PlainWrite(action="set", target=path, after=data, before=node.data, version=node.stat.version)


def missing_parents(fresh: FreshZnodes, path: str, made: set[str]) -> list[Write]:
    """Creates of missing parents of a path: brokers before 1.1 do not make all of them."""
    missing: list[Write] = []
    parent = parent_of(path)
    while parent not in ("/", "/config") and parent not in made and fresh.get(parent)[0] is None:
        made.add(parent)
        missing.insert(0, PlainWrite(action="create", target=parent, after=b""))
        parent = parent_of(parent)
    return missing
