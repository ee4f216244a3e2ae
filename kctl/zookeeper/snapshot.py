"""Recorded znodes, read as if they were live: from `kctl znode export` and recordings of incidents."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kctl.errors import UnreadableFile
from kctl.evidence.znodes import ExportedZnode, read_znodes
from kctl.zookeeper.store import Stat, Znode, parent_of

MOST_MISSING = 16 << 20  # characters of the paths of znodes that are known only from paths below them


class Recorded:
    """A `ZnodeReader` over znodes in memory. Parents that were not exported exist, with no content."""

    def __init__(self, location: str, nodes: Mapping[str, Znode]) -> None:
        self.location = location
        self._nodes = dict(nodes)
        self._children: dict[str, set[str]] = {}
        self._missing = 0
        for path in nodes:
            self._note(path)
        for path, below in self._children.items():
            if node := self._nodes.get(path):
                self._nodes[path] = node._replace(stat=node.stat._replace(num_children=len(below)))

    def _note(self, path: str) -> None:
        while path != "/":
            parent = parent_of(path)
            below = self._children.get(parent)
            if below is None:
                below = self._children[parent] = set()
                self._missing += 0 if parent in self._nodes else len(parent)
                if self._missing > MOST_MISSING:
                    raise UnreadableFile(
                        f"{self.location}: parents of its znodes were not exported, or are too deep",
                        "export the whole tree again with `kctl znode export`",
                    )
            name = path.rsplit("/", 1)[1]
            if name in below:
                return
            below.add(name)
            path = parent

    def get(self, path: str) -> Znode | None:
        """A znode."""
        node = self._nodes.get(path)
        if node is None and path in self._children:
            return Znode(b"", Stat(*[0] * 11))
        return node

    def children(self, path: str) -> list[str] | None:
        """The names below it, sorted."""
        if path not in self._nodes and path not in self._children:
            return None
        return sorted(self._children.get(path, ()))

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Many znodes, in the order asked for."""
        return [self.get(path) for path in paths]

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """The names below many znodes."""
        return [self.children(path) for path in paths]

    def sync(self) -> None:
        """Does nothing: a record does not change."""

    def close(self) -> None:
        """Nothing is open."""


def read_snapshot(path: Path) -> Recorded:
    """The znodes of an export, without the chroot. Raises UnreadableFile."""
    exported = read_znodes(path)
    if not exported:
        raise UnreadableFile(
            f"{path}: the file is empty: it holds no znode", "give a file that `kctl znode export` wrote"
        )
    return Recorded(str(path), {name: _znode(exported.pop(name)) for name in list(exported)})


def _znode(exported: ExportedZnode) -> Znode:
    data = exported.data or b""
    return Znode(
        data,
        Stat(
            czxid=exported.czxid,
            mzxid=exported.mzxid,
            ctime=exported.ctime,
            mtime=exported.mtime,
            version=exported.version,
            cversion=exported.cversion,
            aversion=0,
            ephemeral_owner=exported.ephemeral_owner,
            data_length=len(data),
            num_children=0,
            pzxid=exported.pzxid,
        ),
    )
