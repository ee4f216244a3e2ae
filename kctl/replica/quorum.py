"""What the metadata log of a KRaft cluster says about partitions at each moment, as znodes do elsewhere.

Every node has a copy of the log, or of a snapshot and what follows. Each decision about a partition is a record in
it: leader, leader epoch, ISR; so that it tells more than a znode, which holds the last decision alone.

Source: metadata/src/main/resources/common/metadata/PartitionRecord.json, PartitionChangeRecord.json @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Callable

from formats.cluster_metadata import MetadataRecord
from formats.log_dir_files import FolderKind
from kctl.errors import KctlError
from kctl.evidence.model import Evidence, Replica
from kctl.internal_topics.cluster_image import ClusterImage, PartitionImage
from kctl.internal_topics.metadata_log import TOPIC, read_image, snapshots
from kctl.internal_topics.reading import segments
from kctl.model import TopicPartition
from kctl.replica.moments import PartitionState, Znodes, znodes_of
from kctl.replica.scanned import size_of

# Its records are read one by one; more than this would take longer than all else.
MOST_BYTES = 256 << 20
Moment = str | None


def clusters_of(evidence: Evidence, report: Callable[[KctlError], None]) -> dict[Moment, Znodes]:
    """The cluster at each moment: by znodes, else by the copy of the metadata log that reaches furthest.

    What cannot be read is reported and left out.
    """
    found = znodes_of(evidence, report)
    for moment, replica in _furthest(evidence).items():
        if moment in found or size_of(replica.folder) > MOST_BYTES:
            continue
        try:
            found[moment] = _read(evidence, replica)
        except KctlError as error:
            report(error)
    return found


def _furthest(evidence: Evidence) -> dict[Moment, Replica]:
    best: dict[Moment, tuple[tuple[int, int], Replica]] = {}
    for replica in evidence.replicas:
        if replica.topic != TOPIC or replica.kind is not FolderKind.LIVE:
            continue
        last = segments(replica.folder)[-1:]
        taken = snapshots(replica.folder)[-1:]
        rank = (int(last[0].stem), last[0].stat().st_size) if last else (taken[0][0], 0) if taken else (-1, 0)
        if replica.moment not in best or rank > best[replica.moment][0]:
            best[replica.moment] = rank, replica
    return {moment: replica for moment, (_, replica) in best.items()}


def _read(evidence: Evidence, replica: Replica) -> Znodes:
    file = evidence.place_of(replica.folder, replica.log_dir.root).file or ""
    found = Znodes(replica.moment, file)

    def watch(image: ClusterImage, record: MetadataRecord) -> None:
        values = record.values
        if record.type == "TOPIC_RECORD":
            _forget(found, values["name"])  # a topic of that name from before
        elif record.type in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            partition = image.partitions.get(values["topic_id"], {}).get(values["partition_id"])
            name = image.names.get(values["topic_id"])
            if partition is not None and name is not None:
                where = TopicPartition(name, values["partition_id"])
                found.decisions.setdefault(where, []).append(_state(partition, found))

    image, _ = read_image(replica.folder, watch=watch)
    _take(found, image)
    return found


def _forget(found: Znodes, topic: str) -> None:
    for where in [one for one in found.decisions if one.topic == topic]:
        del found.decisions[where]


def _state(partition: PartitionImage, found: Znodes) -> PartitionState:
    return PartitionState(
        partition.leader,
        partition.leader_epoch,
        tuple(partition.isr),
        found.moment,
        found.file,
        tuple(partition.eligible_leader_replicas),
    )


def _take(found: Znodes, image: ClusterImage) -> None:
    """The cluster as it was at the end of the log."""
    for topic_id, name in image.names.items():
        found.topic_ids[name] = topic_id
        found.created[name] = 0  # there are no transactions of ZooKeeper; the ids tell topics apart
        for number, partition in image.partitions.get(topic_id, {}).items():
            where = TopicPartition(name, number)
            found.states[where] = _state(partition, found)
            found.replicas[where] = tuple(partition.replicas)
    found.live |= {id for id, broker in image.brokers.items() if not broker.fenced}
    for (kind, name), configs in image.configs.items():
        if kind == "topic" or (kind, name) == ("broker", ""):
            found.take_config(name, configs)
