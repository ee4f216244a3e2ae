"""What a request needs of the state, and what it refuses where that has changed since it was computed."""

from collections.abc import Iterable

from formats.values import Struct
from kctl.cluster import names
from kctl.cluster.interface import Conflict
from kctl.cluster.state import ClusterState, Replicas, Topic
from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition
from kctl.wire.writes.requests import PartitionRow


class KnownTopic(Struct, frozen=True, omit_defaults=True):
    """The topic that a request was computed from; None for an id where the cluster has none."""

    topic_id: str | None
    exists: bool = False
    count: int | None = None

    def refuse_other(self, name: str, state: ClusterState) -> None:
        """Raise Conflict if the topic of this name is another one now, or has grown; Refused where it is hidden."""
        topic = state.topics.get(name)
        refuse_hidden(name, state)
        if topic is None or topic.topic_id != self.topic_id:
            gone = "is gone" if topic is None else "was deleted and created again"
            raise Conflict(f"topic {name} {gone} since it was read; nothing was written")
        if self.count is not None and len(topic.partitions) != self.count:
            raise Conflict(f"topic {name} was changed by somebody else; nothing was written")


class Placed(PartitionRow, frozen=True):
    """The replicas of a partition, with those that a move under way adds and removes."""

    replicas: Replicas
    adding: Replicas
    removing: Replicas


class PlacedPartitions(Struct, frozen=True):
    """The places of the partitions that a request was computed from."""

    partitions: tuple[Placed, ...]


def placed(state: ClusterState, partitions: Iterable[TopicPartition]) -> PlacedPartitions:
    """Where partitions of the state are."""
    rows = []
    for tp in partitions:
        topic = state.topics[tp.topic]
        adding, removing = (
            tuple(of.get(tp.partition, ())) for of in (topic.adding_replicas, topic.removing_replicas)
        )
        rows.append(Placed(*tp, tuple(topic.partitions[tp.partition]), adding, removing))
    return PlacedPartitions(tuple(rows))


def refuse_moved(expected: PlacedPartitions, state: ClusterState) -> None:
    """Raise Conflict if a partition is not where it was, or is being moved; Refused where its topic is hidden."""
    for row in expected.partitions:
        present = state.replicas(row.tp)
        refuse_hidden(row.topic, state)
        if present is None:
            raise Conflict(f"{row.tp} is gone since it was read; nothing was written")
        (now,) = placed(state, [row.tp]).partitions
        if (now.adding, now.removing) != (row.adding, row.removing):
            raise Conflict(f"{row.tp} is being moved by somebody else; nothing was written")
        if present != row.replicas:
            raise Conflict(
                f"{row.tp} is on {list(present)}, not on {list(row.replicas)} as it was read; nothing was written"
            )


def refuse_hidden(topic: str, state: ClusterState) -> None:
    """Raise Refused for a topic that brokers hide."""
    if (why := state.why_unseen(topic)) is not None:
        raise Refused(
            f"topic {topic} cannot be seen ({why}); nothing was written",
            "kctl compares a topic before it changes it: run it as a user that may describe it",
        )


def existing(state: ClusterState, name: str) -> Topic:
    """The topic. Raises KctlError for an unknown one, Refused for one that is being deleted."""
    if name not in state.topics:
        for problem in state.problems:
            if problem.place == f"topic {name}" and problem.right is None:
                raise KctlError(
                    f"{problem.place}: {problem.reason}",
                    "try again; if it stays, the server.log of the controller shows the cause",
                )
        raise names.absent_topics([name], state)
    if name in state.deleting:
        raise names.topic_leaving(name)
    return state.topics[name]


def existing_replicas(state: ClusterState, tp: TopicPartition) -> Replicas:
    """The replicas of a partition. Raises KctlError for an unknown one, Refused as `existing`."""
    partitions = existing(state, tp.topic).partitions
    present = partitions.get(tp.partition)
    if present is None:
        raise names.unknown_partition(tp, partitions)
    return present
