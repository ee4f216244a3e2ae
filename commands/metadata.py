"""`kctl metadata`: the state of a KRaft cluster, read from its metadata log as of an offset or a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.evidence_options import as_of_option, evidence_options, find_evidence, read_as_of
from commands.frame import Frame, command
from commands.render import Outcome, Row

if TYPE_CHECKING:
    from kctl.internal_topics.cluster_image import ClusterImage


@command(
    "show",
    examples="kctl metadata show /var/lib/kafka/data\nkctl metadata show evidence/ --as-of 1042 --topic orders",
    status="0 read · 3 no metadata log there, or it does not reach back that far · 5 some of its records cannot be read",
)
@evidence_options
@as_of_option
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only this topic.")
def show(frame: Frame, topics: tuple[str, ...], **options: Any) -> Outcome:
    """Show topics, partitions, brokers, features and configurations of a KRaft cluster."""
    from kctl.errors import KctlError
    from kctl.internal_topics.metadata_log import TOPIC, read_image
    from kctl.internal_topics.rows import unreadable_rows

    evidence = find_evidence(frame, options["paths"], options["brokers"], options["moments"])
    folders = [one.path / f"{TOPIC}-0" for one in evidence.log_dirs if (one.path / f"{TOPIC}-0").is_dir()]
    named = [Path(path) for path in options["paths"] if Path(path).name == f"{TOPIC}-0"]
    if not (folders or named):
        raise KctlError(f"no {TOPIC}-0 in {' '.join(options['paths'])}", "name a controller's log directory")
    images = [
        read_image(folder, read_as_of(options["as_of"])) for folder in dict.fromkeys((*folders, *named))
    ]
    image, trouble = max(images, key=lambda one: one[0].end_offset)
    return Outcome([*rows_of(image, set(topics)), *unreadable_rows(TOPIC, [], trouble)])


def rows_of(image: ClusterImage, topics: set[str]) -> Iterator[Row]:
    """The cluster, then its brokers, then its topics with their partitions."""
    from kctl.internal_topics.cluster_image import shown_value
    from kctl.rows.internal_topics import METADATA, METADATA_BROKER, METADATA_PARTITION, METADATA_TOPIC

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
    for topic_id, name in sorted(image.names.items(), key=lambda one: one[1]):
        if topics and name not in topics:
            continue
        partitions = image.partitions.get(topic_id, {})
        yield METADATA_TOPIC(
            topic=name, topic_id=topic_id, partitions=len(partitions), configs=configs("topic", name)
        )
        for number, one in sorted(partitions.items()):
            yield METADATA_PARTITION(
                topic=name, topic_id=topic_id, partition=number, leader=one.leader, leader_epoch=one.leader_epoch,
                partition_epoch=one.partition_epoch, replicas=one.replicas, isr=one.isr,
                adding_replicas=one.adding_replicas, removing_replicas=one.removing_replicas,
                eligible_leader_replicas=one.eligible_leader_replicas,
            )  # fmt: skip
