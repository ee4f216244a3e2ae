"""Topics created, deleted and grown.

Source: clients/src/main/resources/common/message/{CreateTopics,DeleteTopics,CreatePartitions}Request.json @ 4.3.0
"""

import uuid
from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar

from kctl.changes.kinds.topics import AddPartitions, CreateTopic, DeleteTopic
from kctl.cluster import names
from kctl.cluster.interface import Conflict
from kctl.cluster.preflight import check_growth
from kctl.cluster.state import ClusterState, Replicas
from kctl.model import TopicPartition
from kctl.wire.adapter import Wire, parse_id
from kctl.wire.protocol.messages import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from kctl.wire.writes.present import KnownTopic, existing
from kctl.wire.writes.requests import TOPIC_ALREADY_EXISTS, Request, RequestItem, ask, milliseconds


class CreateTopics(Request, frozen=True, kw_only=True):
    """A topic with explicit replicas."""

    is_validated: ClassVar[bool] = True
    # With ZooKeeper brokers stop showing a topic when its deletion begins, and the controller has it until it ends.
    passing_errors: ClassVar[Collection[int]] = (TOPIC_ALREADY_EXISTS,)
    topic: str
    assignments: Mapping[int, Replicas]
    configs: Mapping[str, str]

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = CreateTopicsRequest.CreatableTopic
        topic = kind(
            name=self.topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                kind.CreatableReplicaAssignment(partition_index=p, broker_ids=list(ids))
                for p, ids in self.assignments.items()
            ],
            configs=[kind.CreatableTopicConfig(name=key, value=value) for key, value in self.configs.items()],
        )
        request = CreateTopicsRequest(
            topics=[topic], timeout_ms=milliseconds(wire), validate_only=validate_only
        )
        for result in ask(wire, request).topics:
            yield RequestItem(
                f"topic {result.name}", result.error_code, result.error_message, str(result.name)
            )

    def is_shown(self, state: ClusterState) -> bool:
        topic = state.topics.get(self.topic)
        return topic is not None and dict(topic.partitions) == dict(self.assignments)

    def shows_at_once(self, state: ClusterState) -> bool:
        """With ZooKeeper a topic with a dead broker may never be complete."""
        return state.quorum is not None


class DeleteTopics(Request, frozen=True, kw_only=True):
    """A topic by its id, where the cluster has ids: never another one of the same name."""

    expected: KnownTopic
    topic: str
    topic_id: str | None

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = DeleteTopicsRequest.DeleteTopicState
        if (wire.version_of(DeleteTopicsRequest) or 0) >= 6:
            state = (
                kind(name=None, topic_id=parse_id(self.topic_id))
                if self.topic_id
                else kind(name=self.topic, topic_id=uuid.UUID(int=0))
            )
            request = DeleteTopicsRequest(topics=[state], timeout_ms=milliseconds(wire), min_version=6)
        else:
            request = DeleteTopicsRequest(
                topic_names=[self.topic], timeout_ms=milliseconds(wire), max_version=5
            )
        for response in ask(wire, request).responses:
            message = getattr(response, "error_message", None)
            yield RequestItem(f"topic {self.topic}", response.error_code, message, self.topic)

    def refuse_other_state(self, state: ClusterState) -> None:
        self.expected.refuse_other(self.topic, state)

    def is_shown(self, state: ClusterState) -> bool:
        topic = state.topics.get(self.topic)
        if state.why_unseen(self.topic) is not None:
            return False
        return topic is None or (self.topic_id is not None and topic.topic_id != self.topic_id)


class CreatePartitions(Request, frozen=True, kw_only=True):
    """The new total of a topic, and the replicas of its new partitions."""

    is_validated: ClassVar[bool] = True
    expected: KnownTopic
    topic: str
    count: int
    assignments: tuple[Replicas, ...]

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = CreatePartitionsRequest.CreatePartitionsTopic
        topic = kind(
            name=self.topic,
            count=self.count,
            assignments=[kind.CreatePartitionsAssignment(broker_ids=list(ids)) for ids in self.assignments],
        )
        request = CreatePartitionsRequest(
            topics=[topic], timeout_ms=milliseconds(wire), validate_only=validate_only
        )
        for result in ask(wire, request).results:
            yield RequestItem(
                f"topic {result.name}", result.error_code, result.error_message, str(result.name)
            )

    def refuse_other_state(self, state: ClusterState) -> None:
        self.expected.refuse_other(self.topic, state)

    def is_shown(self, state: ClusterState) -> bool:
        topic = state.topics.get(self.topic)
        added = enumerate(self.assignments, self.count - len(self.assignments))
        return topic is not None and all(topic.partitions.get(p) == ids for p, ids in added)


# --- requests of intents ------------------------------------------------------------------------------


def create_topic(fresh: ClusterState, intent: CreateTopic, _: ClusterState) -> list[Request]:
    """The topic, where there is none of its name."""
    if intent.topic in fresh.topic_names:
        raise names.topic_exists(intent.topic)
    return [
        CreateTopics(
            about=intent.topic,
            topic=intent.topic,
            assignments=dict(sorted(intent.replicas.items())),
            configs=dict(sorted(intent.configs.items())),
        )
    ]


def delete_topic(fresh: ClusterState, intent: DeleteTopic, _: ClusterState) -> list[Request]:
    """The topic that there is."""
    id = existing(fresh, intent.topic).topic_id
    expected = KnownTopic(topic_id=id, exists=True)
    return [DeleteTopics(about=intent.topic, topic=intent.topic, topic_id=id, expected=expected)]


def add_partitions(fresh: ClusterState, intent: AddPartitions, planned: ClusterState) -> list[Request]:
    """The new partitions, where the topic is as it was planned."""
    topic = existing(fresh, intent.topic)
    known = planned.topics.get(intent.topic)
    first = len(topic.partitions)
    total = check_growth(
        intent.topic, topic.partitions, intent.replicas, None if known is None else known.partitions
    )
    if known is not None and known.topic_id != topic.topic_id:
        raise Conflict(f"topic {intent.topic} was changed by somebody else; nothing was written")
    moving = [p for p in topic.partitions if topic.is_reassigning(p)]
    if moving:
        raise names.being_moved(TopicPartition(intent.topic, moving[0]))
    return [
        CreatePartitions(
            about=intent.topic,
            topic=intent.topic,
            count=total,
            assignments=tuple(tuple(intent.replicas[p]) for p in range(first, total)),
            expected=KnownTopic(topic_id=topic.topic_id, count=first),
        )
    ]
