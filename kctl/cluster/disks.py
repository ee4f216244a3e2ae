"""The log directories of brokers: which have failed, the replicas on each, free space.

Source: KIP-113 (DescribeLogDirs), KIP-827 (total and usable bytes), KIP-1066 (cordoned directories)
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kctl.model import TopicPartition

DENIED = "CLUSTER_AUTHORIZATION_FAILED"  # of a broker that does not describe its directories to this user


class StoredReplica(NamedTuple):
    """A replica in a log directory. `is_future`: a copy that will replace the one in another directory."""

    partition: TopicPartition
    size_in_bytes: int
    is_future: bool = False
    offset_lag: int | None = None  # of a future replica, records behind the one that it replaces


ReplicaDirs = Mapping[tuple[TopicPartition, int], str]  # paths by partition and broker


class BrokerLogDir(NamedTuple):
    """A log directory, or a broker that did not describe its own (`path` is None then, and `error` says why).

    Bytes are of the file system, so two directories of one disk both have all of it; None: unknown.
    """

    broker_id: int
    path: str | None
    error: str | None = None
    total_bytes: int | None = None
    usable_bytes: int | None = None
    is_cordoned: bool = False
    replicas: tuple[StoredReplica, ...] = ()

    @property
    def state(self) -> str:
        """One of online, failed, cordoned, unreachable."""
        if self.path is None:
            return "unreachable"
        return "failed" if self.error else "cordoned" if self.is_cordoned else "online"

    @property
    def is_denied(self) -> bool:
        """Whether the broker does not describe its directories to this user."""
        return self.path is None and self.error == DENIED

    @property
    def size_in_bytes(self) -> int:
        """The size of all replicas, future ones included."""
        return sum(replica.size_in_bytes for replica in self.replicas)


class ReplicaPlace(NamedTuple):
    """A replica's log directory, and the directory that it is being copied to."""

    log_dir: str
    size_in_bytes: int
    future_log_dir: str | None = None
    future_size_in_bytes: int = 0

    @property
    def target(self) -> str:
        """The directory that it ends up in."""
        return self.future_log_dir or self.log_dir

    def bytes_to(self, path: str) -> int:
        """Bytes still to be copied to bring it into a directory."""
        if self.target != path:
            return self.size_in_bytes
        return 0 if self.future_log_dir is None else max(self.size_in_bytes - self.future_size_in_bytes, 0)


def places(log_dirs: Iterable[BrokerLogDir]) -> dict[tuple[TopicPartition, int], ReplicaPlace]:
    """The place of every replica, except those on failed disks, which brokers do not report."""
    places: dict[tuple[TopicPartition, int], ReplicaPlace] = {}
    copies: dict[tuple[TopicPartition, int], tuple[str, int]] = {}
    for log_dir in log_dirs:
        for replica in log_dir.replicas if log_dir.path is not None else ():
            key = replica.partition, log_dir.broker_id
            if replica.is_future:
                copies[key] = str(log_dir.path), replica.size_in_bytes
            else:
                places[key] = ReplicaPlace(str(log_dir.path), replica.size_in_bytes)
    for key, (path, size) in copies.items():
        if key in places:
            places[key] = places[key]._replace(future_log_dir=path, future_size_in_bytes=size)
    return places


def replica_sizes(log_dirs: Iterable[BrokerLogDir]) -> dict[tuple[TopicPartition, int], int]:
    """The bytes of each replica by partition and broker, copies between disks left out."""
    return {key: place.size_in_bytes for key, place in places(log_dirs).items()}
