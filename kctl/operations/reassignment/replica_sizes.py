"""Sizes of partitions, from a file or from log directories.

A file has the output of `kafka-log-dirs --describe` (its two lines of text and the JSON), or a JSON object of
`"topic-partition": bytes`. A folder holds log directories, copied or live: the sizes of their files count.
If replicas differ, the largest is the partition's size.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from formats import bounded_json
from formats.log_dir.file_names import FolderKind, parse_partition_folder
from kctl.cluster.moves import ReplicaSize
from kctl.errors import KctlError, UnreadableFile, file_error
from kctl.evidence.discover import discover
from kctl.files import LARGEST_TABLE, read_text
from kctl.model import Json, TopicPartition


def read_disk_sizes(path: Path) -> list[ReplicaSize]:
    """Every replica in the file or folder. Raises UnreadableFile for anything else."""
    try:
        if path.is_dir():
            return list(_from_folder(path))
        text = read_text(path, LARGEST_TABLE, follow=True)
    except (OSError, UnicodeDecodeError) as error:
        raise file_error(path, error) from error
    for candidate in (text, *(line for line in text.splitlines() if line.lstrip().startswith("{"))):
        try:
            values = bounded_json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        replicas = _from_json(values)
        if replicas is not None:
            return replicas
    raise UnreadableFile(
        f"{path} holds no sizes", "give what kafka-log-dirs prints, or a folder of log directories"
    )


def partition_sizes(replicas: list[ReplicaSize]) -> dict[TopicPartition, int]:
    """The largest replica of each partition."""
    sizes: dict[TopicPartition, int] = {}
    for replica in replicas:
        sizes[replica.partition] = max(sizes.get(replica.partition, 0), replica.size_in_bytes)
    return sizes


def _from_json(values: Json) -> list[ReplicaSize] | None:
    if not isinstance(values, dict):
        return None
    brokers = values.get("brokers")
    if isinstance(brokers, list):
        return list(_from_log_dirs(brokers))
    replicas = []
    for name, size in values.items():
        folder = parse_partition_folder(name)
        if folder is None or not isinstance(size, int) or size < 0:
            return None
        replicas.append(ReplicaSize(TopicPartition(folder.topic, folder.partition), None, size))
    return replicas


def _from_log_dirs(brokers: list[Json]) -> Iterator[ReplicaSize]:
    for broker in filter(_is_object, brokers):
        assert isinstance(broker, dict)
        id = broker.get("broker")
        for log_dir in filter(_is_object, _list(broker.get("logDirs"))):
            assert isinstance(log_dir, dict)
            for partition in filter(_is_object, _list(log_dir.get("partitions"))):
                assert isinstance(partition, dict)
                folder = parse_partition_folder(str(partition.get("partition")))
                size = partition.get("size")
                if folder and isinstance(size, int) and not partition.get("isFuture"):
                    tp = TopicPartition(folder.topic, folder.partition)
                    yield ReplicaSize(tp, id if isinstance(id, int) else None, size)


def _is_object(value: Json) -> bool:
    return isinstance(value, Mapping)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _from_folder(path: Path) -> Iterator[ReplicaSize]:
    evidence = discover([path])
    if not evidence.log_dirs:
        raise KctlError(
            f"{path} holds no log directory",
            "name a folder that holds brokers' log directories, or the output of kafka-log-dirs",
        )
    for replica in evidence.replicas:
        if replica.kind is FolderKind.LIVE:
            yield ReplicaSize(replica.topic_partition, replica.broker_id, _size(replica.folder))


def _size(folder: Path) -> int:
    """The bytes of a folder's files; one that is deleted meanwhile counts as 0."""
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_file(follow_symlinks=False):
                        total += entry.stat(follow_symlinks=False).st_size
                except OSError:
                    continue
    except OSError:
        return total
    return total
