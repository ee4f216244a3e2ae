"""The KRaft cluster as rows: what `metadata show` prints and the audit writes."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from kctl.errors import KctlError
from kctl.evidence.model import FoundEvidence
from kctl.internal_topics.cluster_image import CLUSTER_METADATA, ClusterImage, read_image, shown_value
from kctl.internal_topics.reading import NOW, AsOf, Unreadable
from kctl.internal_topics.rows import unreadable_rows
from kctl.model import Row
from kctl.rows.internal_topics import METADATA, METADATA_BROKER, METADATA_PARTITION, METADATA_TOPIC


def furthest_rows(copies: list[Path]) -> Iterator[Row]:
    """The cluster by the copy that reaches furthest, and what could not be read; nothing without a copy."""
    if not copies:
        return
    try:
        image, trouble = furthest_image(copies)
    except KctlError as error:
        yield from unreadable_rows(CLUSTER_METADATA, [], [Unreadable(copies[0], 0, error.message)])
        return
    yield from metadata_rows(image)
    yield from unreadable_rows(CLUSTER_METADATA, [], trouble)


def metadata_folders(evidence: FoundEvidence) -> list[Path]:
    """The copies of the metadata log."""
    folders = (log_dir.path / f"{CLUSTER_METADATA}-0" for log_dir in evidence.log_dirs)
    return [folder for folder in folders if folder.is_dir()]


def furthest_image(folders: Iterable[Path], as_of: AsOf = NOW) -> tuple[ClusterImage, list[Unreadable]]:
    """The image of the copy that reaches furthest, of a whole one where it is there, and what could not be read of it.

    `KctlError` where no copy gives one.
    """
    images, error = [], None
    for folder in folders:
        try:
            images.append(read_image(folder, as_of))
        except KctlError as raised:
            error = raised
    if not images:
        raise error or KctlError(f"no copy of {CLUSTER_METADATA}", "name a controller's log directory")
    return max(images, key=lambda image: (image[0].end_offset, not image[1]))


def metadata_rows(image: ClusterImage, topics: Iterable[str] = ()) -> Iterator[Row]:
    """The cluster, then its brokers, then its topics (these, or all) with their partitions."""

    def configs(kind: str, name: str) -> dict[str, str]:
        return {
            key: shown_value(key, value) for key, value in sorted(image.configs.get((kind, name), {}).items())
        }

    yield METADATA(
        end_offset=image.end_offset, features=image.features, controllers=image.controllers, topics=len(image.names),
        partitions=sum(map(len, image.partitions.values())), brokers=len(image.brokers),
        default_configs=configs("broker", ""), acls=len(image.acls), scram_users=len(image.scram_users),
        next_producer_id=image.next_producer_id, unknown_records=image.left_out,
    )  # fmt: skip
    for broker_id, broker in sorted(image.brokers.items()):
        yield METADATA_BROKER(
            broker_id=broker_id, broker_epoch=broker.broker_epoch, rack=broker.rack, fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown, end_points=broker.end_points,
            configs=configs("broker", str(broker_id)),
        )  # fmt: skip
    names = set(topics)
    for topic_id, name in sorted(image.names.items(), key=lambda item: item[1]):
        if not names or name in names:
            partitions = image.partitions.get(topic_id, {})
            yield METADATA_TOPIC(
                topic=name, topic_id=topic_id, partitions=len(partitions), configs=configs("topic", name)
            )
            yield from _partition_rows(image, topic_id, name)


def _partition_rows(image: ClusterImage, topic_id: str, name: str) -> Iterator[Row]:
    for number, partition in sorted(image.partitions.get(topic_id, {}).items()):
        yield METADATA_PARTITION(
            topic=name, topic_id=topic_id, partition=number, leader=partition.leader, leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch, replicas=partition.replicas, isr=partition.isr,
            adding_replicas=partition.adding_replicas, removing_replicas=partition.removing_replicas,
            eligible_leader_replicas=partition.eligible_leader_replicas, last_known_elr=partition.last_known_elr,
        )  # fmt: skip
