"""The log directories of brokers: which have failed, what is on each, how much room there is.

Source: KIP-113 (DescribeLogDirs), KIP-827 (total and usable bytes), KIP-1066 (cordoned directories)
"""

from typing import NamedTuple

from kctl.model import TopicPartition


class StoredReplica(NamedTuple):
    """A replica in a log directory. `is_future`: a copy that will replace the one in another directory."""

    partition: TopicPartition
    size_in_bytes: int
    is_future: bool = False
    offset_lag: int | None = None  # of a future replica, records behind the one that it replaces


class LogDir(NamedTuple):
    """A log directory, or a broker that did not tell of its own (`path` is None then, and `error` says why).

    Bytes are of the file system, so that two directories of one disk both have all of it; None: not told.
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
    def size_in_bytes(self) -> int:
        """Of all replicas, future ones included."""
        return sum(one.size_in_bytes for one in self.replicas)
