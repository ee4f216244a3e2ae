"""A cluster behind ZooKeeper: the first backend of `kctl.cluster.interface`."""

import time
from collections.abc import Collection, Mapping, Sequence

from formats.znode_requests import Requested, format_election, format_reassignment
from kctl.changes.intents import Intent
from kctl.changes.plan import Write
from kctl.cluster.disk_sizes import ReplicaSize
from kctl.cluster.interface import Conflict, Oddity
from kctl.cluster.old_groups import OldGroup
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition
from kctl.zookeeper.oddities import read_oddities
from kctl.zookeeper.old_groups import read_old_groups
from kctl.zookeeper.reading import read_cluster
from kctl.zookeeper.store import LARGEST_REQUEST, OutcomeUnknown, ZnodeReader, ZnodeStore, request_size
from kctl.zookeeper.writes import writes_for

ASKING = 3.0  # seconds that a broker may take to say where a log ends
SETTLING = 5.0  # seconds in which the fate of a lost write is found out
REQUEST_ROOM = 20_000  # of a request, for throttles and checks beside the partitions


class ZookeeperCluster:
    """See `kctl.cluster.interface.Cluster`."""

    backend = "zookeeper"

    def __init__(self, store: ZnodeStore) -> None:
        self.store = store
        self.location = store.location

    def read_state(
        self,
        topics: Collection[str] | None = None,
        *,
        partition_states: bool = True,
        configs: Collection[str] = (),
        config_keys: Collection[str] | None = None,
        kafka_version: KafkaVersion | None = None,
        recent: bool = False,
    ) -> ClusterState:
        """The cluster now, from a server that has seen every write of this session."""
        return read_cluster(
            self.store,
            topics,
            partition_states=partition_states,
            configs=configs,
            kafka_version=kafka_version,
        )

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        """The transaction of an intent, no larger than the server takes."""
        writes = writes_for(self.store, intent, state)
        size = request_size(writes)
        if size > LARGEST_REQUEST:
            raise Refused(
                f"the request would be {size:,} bytes, and ZooKeeper takes {LARGEST_REQUEST:,}; nothing was written",
                "make smaller batches",
            )
        return writes

    def commit(self, writes: Sequence[Write]) -> None:
        """Write it; where the connection was lost, find out whether it was."""
        try:
            self.store.transact(writes)
        except OutcomeUnknown as unknown:
            end = time.monotonic() + SETTLING
            while True:
                self.store.sync()
                verdict = self.outcome(writes)
                if verdict is True:
                    return
                # An old session's request may still be on its way until the server has given it up.
                if verdict is False and time.monotonic() > end:
                    raise KctlError(f"{unknown}; nothing was written") from None
                if verdict is None:
                    raise
                time.sleep(0.2)

    def outcome(self, writes: Sequence[Write]) -> bool | None:
        """Whether a transaction was carried out; None where what was written has been changed or used up since."""
        found = [w for w in writes if w.action in ("set", "create", "delete") and not w.sequence]
        nodes = self.store.get_many([w.target for w in found])
        verdicts: set[bool | None] = set()
        for write, node in zip(found, nodes, strict=True):
            if write.action == "delete":
                verdicts.add(True if node is None else None)
            elif node is not None and node.data == write.after and _is_next(write, node.stat.version):
                return True
            elif (write.action == "set" and node is not None and node.stat.version == write.version) or (
                write.action == "create" and node is None and not _is_used_up(write.target)
            ):
                return False
            else:
                verdicts.add(None)
        return verdicts.pop() if len(verdicts) == 1 else None

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Whether a transaction that was sent before has been carried out, for sure."""
        self.store.sync()
        return self.outcome(writes) is True

    def request_partitions_fitting(
        self, partitions: Sequence[tuple[TopicPartition, Replicas]], kind: str
    ) -> int:
        """How many partitions, from the front, fit in one request."""
        encode = format_reassignment if kind == "reassign" else format_election
        around = len(encode([])) - 1  # a comma follows each
        used = REQUEST_ROOM
        for count, (tp, replicas) in enumerate(partitions):
            used += len(encode([Requested(tp.topic, tp.partition, tuple(replicas))])) - around
            if used > LARGEST_REQUEST:
                return count
        return len(partitions)

    def replica_sizes(self, topics: Collection[str] | None = None) -> list[ReplicaSize] | None:
        """None: ZooKeeper has no sizes."""
        return None

    def log_ends(self, state: ClusterState) -> Mapping[TopicPartition, int]:
        """By a plain connection to each leader, where it takes one."""
        from kctl.cluster.log_ends import log_end_offsets

        return log_end_offsets(state.partition_states, state, ASKING)

    def read_oddities(self, state: ClusterState, now: int) -> Sequence[Oddity]:
        """Notifications that brokers choke on, deletion markers by age."""
        return read_oddities(self.store, state, now)

    def read_old_groups(self) -> Sequence[OldGroup]:
        """The groups below `/consumers`."""
        return read_old_groups(self.store)

    def close(self) -> None:
        """End the session."""
        self.store.close()

    def __enter__(self) -> "ZookeeperCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_next(write: Write, version: int) -> bool:
    return version == (0 if write.version is None else write.version + 1)


def _is_used_up(path: str) -> bool:
    """Whether the controller deletes what is created there once it is done with it."""
    return path.startswith("/admin/")


class RecordedCluster:
    """A cluster as it was when its znodes were exported: it can be read and not changed."""

    backend = "snapshot"

    def __init__(self, reader: ZnodeReader) -> None:
        self.reader = reader
        self.location = reader.location

    def read_state(
        self,
        topics: Collection[str] | None = None,
        *,
        partition_states: bool = True,
        configs: Collection[str] = (),
        config_keys: Collection[str] | None = None,
        kafka_version: KafkaVersion | None = None,
        recent: bool = False,
    ) -> ClusterState:
        """The cluster as recorded."""
        return read_cluster(
            self.reader,
            topics,
            partition_states=partition_states,
            configs=configs,
            kafka_version=kafka_version,
        )

    def _refuse(self) -> Conflict:
        return Conflict(f"{self.location} is a snapshot: it can be read, not changed")

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        """Refused."""
        raise self._refuse()

    def commit(self, writes: Sequence[Write]) -> None:
        """Refused."""
        raise self._refuse()

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Refused."""
        raise self._refuse()

    def request_partitions_fitting(
        self, partitions: Sequence[tuple[TopicPartition, Replicas]], kind: str
    ) -> int:
        """All of them: a plan may be made from a snapshot."""
        return len(partitions)

    def replica_sizes(self, topics: Collection[str] | None = None) -> list[ReplicaSize] | None:
        """None: ZooKeeper has no sizes."""
        return None

    def log_ends(self, state: ClusterState) -> Mapping[TopicPartition, int]:
        """None: nobody is asked."""
        return {}

    def read_oddities(self, state: ClusterState, now: int) -> Sequence[Oddity]:
        """As recorded."""
        return read_oddities(self.reader, state, now)

    def read_old_groups(self) -> Sequence[OldGroup]:
        """As recorded."""
        return read_old_groups(self.reader)

    def close(self) -> None:
        """Nothing to end."""
        self.reader.close()

    def __enter__(self) -> "RecordedCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
