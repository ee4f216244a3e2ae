"""The ids of topics that no line of a log names, from the copies of their partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kctl.broker_logs.history.leaderships import Leadership
from kctl.evidence.model import FoundEvidence
from kctl.model import TopicPartition


def name_topics(leaderships: Mapping[TopicPartition, Sequence[Leadership]], evidence: FoundEvidence) -> None:
    """Set the id where all copies of a topic name the same, and the logs know of one topic of the name only."""
    ids: dict[str, set[str]] = {}
    for replica in evidence.replicas:
        if replica.topic_id is not None:
            ids.setdefault(replica.topic, set()).add(replica.topic_id)
    for partition, of_partition in leaderships.items():
        named = ids.get(partition.topic, set())
        known = {leadership.topic_id for leadership in of_partition} - {None}
        is_one = all(leadership.incarnation == 1 for leadership in of_partition)
        if len(named) == 1 and is_one and not known:
            for leadership in of_partition:
                (leadership.topic_id,) = named
