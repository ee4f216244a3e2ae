"""ZooKeeper in a dict, and a controller that does at once what it is asked, for tests without processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from formats.znodes.json_text import Json
from kctl.cluster.intent import Write
from kctl.cluster.interface import Conflict
from kctl.zookeeper.store import Acl, Stat, Znode, parent_of


class FakeStore:
    """A `ZnodeStore` in a dict. `before_transact` runs before each transaction, as another client would."""

    def __init__(self, nodes: Mapping[str, Json | bytes] | None = None) -> None:
        self.location = "fake:2181/kafka"
        self.nodes: dict[str, Znode] = {"/": Znode(b"", Stat(*[0] * 11))}
        self.zxid = 0
        self.counters: dict[str, int] = {}
        self.transactions: list[list[Write]] = []
        self.before_transact: Callable[[], None] = lambda: None
        self.after_transact: Callable[[], None] = lambda: None
        for path, value in (nodes or {}).items():
            self.put(path, value)

    # --- what a test does past kctl ---

    def put(self, path: str, value: Json | bytes, *, ephemeral: bool = False) -> None:
        """Set or create a znode and its parents."""
        data = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
        parent = parent_of(path)
        if parent not in self.nodes:
            self.put(parent, b"")
        self._store(path, data, ephemeral)

    def remove(self, path: str) -> None:
        """Delete a znode and everything below."""
        for name in [name for name in self.nodes if name == path or name.startswith(path + "/")]:
            del self.nodes[name]

    def json(self, path: str) -> Json:
        """A znode's JSON."""
        value: Json = json.loads(self.nodes[path].data)
        return value

    def _store(self, path: str, data: bytes, ephemeral: bool = False) -> None:
        self.zxid += 1
        old = self.nodes.get(path)
        if old is None:
            parent = parent_of(path)
            self.counters[parent] = self.counters.get(parent, 0) + 1
            owner = 0x1000 if ephemeral else 0
            stat = Stat(self.zxid, self.zxid, 1000 + self.zxid, 1000, 0, 0, 0, owner, len(data), 0, self.zxid)
        else:
            stat = old.stat._replace(mzxid=self.zxid, version=old.stat.version + 1, data_length=len(data))
        self.nodes[path] = Znode(data, stat)

    # --- ZnodeStore ---

    def get(self, path: str) -> Znode | None:
        return self.nodes.get(path)

    def children(self, path: str) -> list[str] | None:
        if path not in self.nodes:
            return None
        return sorted(
            name.rsplit("/", 1)[1] for name in self.nodes if name != "/" and parent_of(name) == path
        )

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        return [self.get(path) for path in paths]

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        return [self.children(path) for path in paths]

    def acl(self, path: str) -> list[Acl]:
        return []

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass

    def transact(self, writes: Sequence[Write]) -> list[str]:
        self.before_transact()
        made: set[str] = set()
        gone: set[str] = set()
        for write in writes:
            self._check(write, made, gone)
        names = [self._carry_out(write) for write in writes]
        self.transactions.append(list(writes))
        self.after_transact()
        return names

    def _check(self, write: Write, made: set[str], gone: set[str]) -> None:
        node = self.nodes.get(write.target)
        if write.action == "create":
            parent = parent_of(write.target)
            if parent not in self.nodes and parent not in made:
                raise Conflict(f"{parent} no longer exists; nothing was written")
            is_there = node is not None or write.target in made
            if is_there and write.target not in gone and not write.sequence:
                raise Conflict(f"{write.target} already exists; nothing was written")
            made.add(write.target)
        elif node is None:
            raise Conflict(f"{write.target} no longer exists; nothing was written")
        elif write.version is not None and node.stat.version != write.version:
            raise Conflict(f"{write.target} was changed by somebody else; nothing was written")
        if write.action == "delete":
            gone.add(write.target)

    def _carry_out(self, write: Write) -> str:
        if write.action == "delete":
            del self.nodes[write.target]
        elif write.action in ("create", "set"):
            target = write.target
            if write.sequence:
                target += f"{self.counters.get(parent_of(target), 0):010d}"
            self._store(target, write.after or b"")
            return target
        return write.target


def cluster_nodes(*, brokers: Sequence[int] = (1, 2, 3), form: int = 5) -> dict[str, Json | bytes]:
    """The znodes of a small cluster of 2.8 (or, with another form, older)."""
    nodes: dict[str, Json | bytes] = {
        "/brokers/ids": b"",
        "/brokers/topics": b"",
        "/admin/delete_topics": b"",
        "/config/topics": b"",
        "/config/changes": b"",
        "/config/brokers": b"",
        "/controller_epoch": b"7",
        "/cluster/id": {"version": "1", "id": "W1mYKYRPRZqt8XjSxCjVnQ"},
    }
    if form >= 5:
        nodes |= {"/feature": {"version": 1, "status": 1, "features": {}}, "/config/ips": b""}
    for id in brokers:
        nodes[f"/brokers/ids/{id}"] = {
            "version": form,
            "host": "127.0.0.1",
            "port": 9090 + id,
            "jmx_port": -1,
            "timestamp": "1700000000000",
            **({"endpoints": [f"PLAINTEXT://127.0.0.1:{9090 + id}"]} if form >= 2 else {}),
        }
    return nodes


def fake_cluster(*, brokers: Sequence[int] = (1, 2, 3), form: int = 5) -> FakeStore:
    """A store with a small cluster, whose broker 1 is controller."""
    store = FakeStore(cluster_nodes(brokers=brokers, form=form))
    store.put("/controller", {"version": 1, "brokerid": 1, "timestamp": "1700000000000"}, ephemeral=True)
    return store


def add_topic(store: FakeStore, name: str, replicas: Sequence[Sequence[int]], **other: Json) -> None:
    """A topic with leaders, as a controller leaves it."""
    partitions: dict[str, Json] = {str(p): list(ids) for p, ids in enumerate(replicas)}
    store.put(f"/brokers/topics/{name}", {"version": 3, "partitions": partitions, **other})
    store.put(f"/config/topics/{name}", {"version": 1, "config": {}})
    for p, ids in enumerate(replicas):
        put_state(store, name, p, ids[0], ids)


def put_state(
    store: FakeStore, topic: str, partition: int, leader: int, isr: Sequence[int], epoch: int = 0
) -> None:
    """A partition's state."""
    store.put(
        f"/brokers/topics/{topic}/partitions/{partition}/state",
        {"version": 1, "leader": leader, "leader_epoch": epoch, "controller_epoch": 7, "isr": list(isr)},
    )


def obedient_controller(store: FakeStore) -> None:
    """From now on new partitions get leaders, moves are done and deletions too, after each transaction."""

    def act() -> None:
        for name in store.children("/admin/delete_topics") or ():
            for path in (f"/brokers/topics/{name}", f"/config/topics/{name}", f"/admin/delete_topics/{name}"):
                store.remove(path)
        _move(store)
        store.remove("/admin/preferred_replica_election")
        for name in store.children("/brokers/topics") or ():
            partitions = store.json(f"/brokers/topics/{name}")["partitions"]  # type: ignore[index,call-overload]
            for p, ids in partitions.items():  # type: ignore[union-attr]
                if f"/brokers/topics/{name}/partitions/{p}/state" not in store.nodes:
                    put_state(store, name, int(p), ids[0], ids)  # type: ignore[index,arg-type]

    store.after_transact = act


def _move(store: FakeStore) -> None:
    if "/admin/reassign_partitions" not in store.nodes:
        return
    request = store.json("/admin/reassign_partitions")
    for row in request["partitions"]:  # type: ignore[index,call-overload,union-attr]
        path = f"/brokers/topics/{row['topic']}"  # type: ignore[index,call-overload]
        topic = store.json(path)
        topic["partitions"][str(row["partition"])] = row["replicas"]  # type: ignore[index,call-overload]
        store.put(path, topic)
        put_state(store, row["topic"], row["partition"], row["replicas"][0], row["replicas"])  # type: ignore[index,call-overload,arg-type]
    store.remove("/admin/reassign_partitions")
