"""Access to ZooKeeper: znodes, and the interfaces that the live ensemble and recorded exports implement.

Paths are those below the chroot. An absent znode is None, never an exception. A write always names the
version that it expects; unconditional overwriting is impossible.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from kctl.cluster.intent import Write
from kctl.cluster.rights import CREDENTIALS
from kctl.errors import KctlError
from kctl.model import some

# The server's limit (jute.maxbuffer) is 1,048,575 bytes for a whole request; it answers a larger one by
# closing the connection. Kafka's own clients have the same limit, so a node above it stops the controller.
LARGEST_REQUEST = 1_000_000
# Bytes of one operation besides its path and data: headers, version, an ACL of the usual size.
REQUEST_OVERHEAD = 64
HIDDEN = "ZooKeeper does not allow this session to read it"


class Stat(NamedTuple):
    """ZooKeeper's stat of a znode, in the order of the wire; times are milliseconds."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class Znode(NamedTuple):
    """A znode's content and stat."""

    data: bytes
    stat: Stat


class Acl(NamedTuple):
    """One entry of an access list; permissions are ZooKeeper's bits (31: all, 1: read)."""

    permissions: int
    scheme: str
    id: str


class HiddenZnodes(KctlError):
    """Znodes that ZooKeeper does not show to this session. `values` are those of all that were asked for, None for these."""

    hint = CREDENTIALS

    def __init__(self, paths: Sequence[str], values: Sequence[Any]) -> None:
        self.paths = paths
        self.values = values
        super().__init__(f"{some(list(paths))}: {HIDDEN}")


class ZnodeReader(Protocol):
    """Znodes that can be read: a live ensemble, a recorded snapshot, a dict in a test. Raises HiddenZnodes."""

    location: str

    def get(self, path: str) -> Znode | None:
        """A znode."""

    def children(self, path: str) -> list[str] | None:
        """The names below it, sorted."""

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Many znodes, in the order of `paths`."""

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """The names below many znodes."""

    def sync(self) -> None:
        """Make later reads at least as new as this moment."""

    def close(self) -> None:
        """No more reading."""


class ZnodeStore(ZnodeReader, Protocol):
    """Znodes that can be written too."""

    def acl(self, path: str) -> list[Acl]:
        """The access list of a znode; empty if there is none."""

    def transact(self, writes: Sequence[Write]) -> list[str]:
        """Write all or nothing, and return the name of each target (with its number if it is sequential).

        Raises Conflict if an expectation does not hold, KctlError if certainly nothing was
        written, and OutcomeUnknown if the connection was lost in the middle.
        """


class OutcomeUnknown(KctlError):
    """The connection was lost after a write was sent: it may or may not have been carried out."""

    hint = "`kctl journal resume` looks whether it was, and goes on"


def request_size(writes: Sequence[Write]) -> int:
    """The size of a transaction on the wire, rounded up."""
    return sum(len(w.target.encode()) + w.size_in_bytes + REQUEST_OVERHEAD for w in writes)


def parent_of(path: str) -> str:
    """The path above; `/` for a top one."""
    return path.rsplit("/", 1)[0] or "/"


def walk(reader: ZnodeReader, root: str = "/") -> Iterator[tuple[str, Znode]]:
    """Every znode at and below a path, parents first, level by level."""
    level = [root]
    while level:
        nodes = reader.get_many(level)
        names = reader.children_many([path for path, node in zip(level, nodes, strict=True) if node])
        below: list[str] = []
        listed = iter(names)
        for path, node in zip(level, nodes, strict=True):
            if node is None:  # gone between the two reads
                continue
            yield path, node
            below += [f"{path.rstrip('/')}/{name}" for name in next(listed) or ()]
        level = below
