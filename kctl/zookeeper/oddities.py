"""What is wrong in places that only ZooKeeper has: notifications that brokers choke on, markers that stay.

A child of `/config/changes` whose name is no number stops every pass over the notifications in every version; one
whose content cannot be read stops it for ever up to 1.1.
"""

from collections.abc import Iterator, Sequence

from formats.errors import FormatError
from formats.znode_requests import CHANGE_NAME, parse_config_change
from kctl.cluster.interface import Oddity
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import V2_0
from kctl.zookeeper.store import ZnodeReader

CHANGES, DELETIONS = "/config/changes", "/admin/delete_topics"


def read_oddities(reader: ZnodeReader, state: ClusterState, now: int) -> Sequence[Oddity]:
    """See `kctl.cluster.interface.Cluster.read_oddities`."""
    return [*_notifications(reader, state), *_markers(reader, state, now)]


def _notifications(reader: ZnodeReader, state: ClusterState) -> Iterator[Oddity]:
    names = reader.children(CHANGES) or []
    paths = [f"{CHANGES}/{name}" for name in names]
    for name, path, node in zip(names, paths, reader.get_many(paths), strict=True):
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
    for path, node in zip(paths, reader.get_many(paths), strict=True):
        if node is not None:
            age = max(now - node.stat.ctime, 0)
            yield Oddity("old-deletion", path, f"it has been there for {age // 1000} s", age)
