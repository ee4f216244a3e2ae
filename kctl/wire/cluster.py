"""A cluster over Kafka's Admin protocol: the second backend of `kctl.cluster.interface`."""

from collections.abc import Collection, Sequence

from kctl.changes.intents import Intent
from kctl.changes.plan import Write
from kctl.cluster.interface import Oddity
from kctl.cluster.old_groups import OldGroup
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.versions import KafkaVersion
from kctl.model import TopicPartition
from kctl.wire.adapter import Wire
from kctl.wire.reading import read_cluster

PARTITIONS_IN_A_REQUEST = 2000


class AdminCluster:
    """See `kctl.cluster.interface.Cluster`."""

    backend = "admin"

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.location = wire.location

    def read_state(
        self,
        topics: Collection[str] | None = None,
        *,
        partition_states: bool = True,
        configs: Collection[str] = (),
        kafka_version: KafkaVersion | None = None,
    ) -> ClusterState:
        """The cluster now, from a broker that has seen all that was committed before."""
        return read_cluster(
            self.wire,
            topics,
            partition_states=partition_states,
            configs=configs,
            kafka_version=kafka_version,
        )

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        """The requests of an intent, each with what it expects to find."""
        raise NotImplementedError

    def commit(self, writes: Sequence[Write]) -> None:
        """Send the requests in order, each after what it expects was read again."""
        raise NotImplementedError

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Whether requests that were sent before have been carried out, as far as reading can tell."""
        return False

    def request_partitions_fitting(
        self, partitions: Sequence[tuple[TopicPartition, Replicas]], kind: str
    ) -> int:
        """How many partitions, from the front, go in one request."""
        return min(len(partitions), PARTITIONS_IN_A_REQUEST)

    def read_oddities(self, state: ClusterState, now: int) -> Sequence[Oddity]:
        """None: brokers keep them to themselves."""
        return ()

    def read_old_groups(self) -> Sequence[OldGroup]:
        """None: such groups live in ZooKeeper alone."""
        return ()

    def close(self) -> None:
        """End the connections."""
        self.wire.close()

    def __enter__(self) -> "AdminCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
