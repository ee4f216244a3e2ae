"""How fields of intents go to JSON and come back."""

from collections.abc import Mapping
from typing import Any, TypedDict

from msgspec import convert

from kctl.cluster.disks import ReplicaDirs
from kctl.cluster.intent import IntentCodec
from kctl.cluster.state import Replicas
from kctl.model import Json, TopicPartition


def partition_rows(partitions: Mapping[TopicPartition, Replicas]) -> list[Json]:
    """Kafka's own list form of replicas by partition, by topic and number."""
    return [
        {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        for tp, replicas in sorted(partitions.items())
    ]


def partitions_from(rows: Json) -> dict[TopicPartition, Replicas]:
    """The inverse of `partition_rows`."""
    assert isinstance(rows, list)
    replicas_by_partition = {}
    for row in rows:
        assert isinstance(row, dict)
        replicas = row["replicas"]
        assert isinstance(replicas, list)
        replicas_by_partition[TopicPartition(str(row["topic"]), int(str(row["partition"])))] = tuple(
            int(str(b)) for b in replicas
        )
    return replicas_by_partition


def replica_dir_rows(log_dirs: ReplicaDirs) -> list[Json]:
    """Log directories of replicas as a list of objects, by topic, number and broker."""
    return [
        {"topic": tp.topic, "partition": tp.partition, "broker_id": broker, "log_dir": path}
        for (tp, broker), path in sorted(log_dirs.items())
    ]


class ReplicaDirRow(TypedDict):
    """A row of `replica_dir_rows`."""

    topic: str
    partition: int
    broker_id: int
    log_dir: str


def replica_dirs_from(rows: Any) -> dict[tuple[TopicPartition, int], str]:
    """The inverse of `replica_dir_rows`; TypeError or ValueError for anything else."""
    return {
        (TopicPartition(row["topic"], row["partition"]), row["broker_id"]): row["log_dir"]
        for row in convert(rows, list[ReplicaDirRow])
    }


TEXTS = IntentCodec(lambda value: dict(sorted(value.items())), dict)
BY_PARTITION = IntentCodec(partition_rows, partitions_from)
REPLICAS = IntentCodec(
    lambda value: {str(partition): list(ids) for partition, ids in sorted(value.items())},
    lambda value: {int(partition): tuple(map(int, ids)) for partition, ids in value.items()},
)
LOG_DIRS = IntentCodec(replica_dir_rows, replica_dirs_from)
NAMES = IntentCodec(list, lambda value: convert(value, tuple[str, ...]))
