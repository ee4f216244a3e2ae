"""What kctl asks of a cluster, whatever stands behind it: ZooKeeper, a snapshot of it, Kafka's Admin protocol.

Reading gives a `ClusterState`. Changing is: `plan` an intent into writes, then `commit` them, all or none,
each only where what it was worked out from still holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypedDict, Unpack

from kctl.errors import KctlError, Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kctl.changes.intents import Intent
    from kctl.changes.plan import Write
    from kctl.cluster.disks import LogDir
    from kctl.cluster.old_consumers import OldGroup
    from kctl.cluster.reassignment.moves import ReplicaSize
    from kctl.cluster.state import ClusterState, Endpoint, Quorum, Replicas
    from kctl.cluster.versions import KafkaVersion
    from kctl.model import TopicPartition


class Conflict(Refused):
    """The state that a change was computed from has changed: another write came between (exit status 4)."""

    hint = "run the command again: it plans again from the current state"


class NoQuorum(KctlError):
    """The cluster has no KRaft quorum, or none that this session may see."""

    hint = "name a KRaft cluster with --bootstrap-server, as a user that may describe the cluster"

    def __init__(
        self, message: str = "the cluster has no KRaft quorum, or it may not be seen", hint: str = ""
    ) -> None:
        super().__init__(message, hint)


def refuse_changed(
    entity_type: str, entity_name: str, expected: Mapping[str, str | None], present: Mapping[str, str]
) -> None:
    """Raise Conflict where a value of a configuration is not the one that was read."""
    for key, value in expected.items():
        if present.get(key) != value:
            now, then = ("not set" if v is None else repr(v) for v in (present.get(key), value))
            raise Conflict(
                f"{key} of {entity_type.removesuffix('s')} {entity_name} is {now}, not {then} as it was read; "
                "nothing was written"
            )


class Oddity(NamedTuple):
    """Something that only a backend knows of: its kind (`notification`, `failed-disk`), where, what, how old (ms), of whom."""

    kind: str
    place: str
    reason: str
    age: int | None = None
    broker_id: int | None = None


class Scope(TypedDict, total=False):
    """What `Cluster.read_state` reads besides topics, and how exactly."""

    partition_states: bool  # True if absent
    configs: Collection[str]  # entity types to read, whole (of topics: of those asked for)
    config_keys: Collection[str] | None  # where only these matter others may be left out; None: all
    kafka_version: KafkaVersion | None  # pins the version
    # What others have written in the last second may be missing, so that nobody waits for it; what kctl has written
    # is there.
    recent: bool
    # Brokers whose log directories are read (None: all), where they can be asked.
    log_dirs_of: Collection[int] | None


class Cluster(Protocol):
    """A cluster of one backend. Use as a context manager, or `close` it.

    Methods with a body here return the answer of a backend that does not know.
    """

    backend: str  # "zookeeper", "snapshot", "admin"
    location: str  # as shown to people and written in the journal: connect string, file, bootstrap servers

    def read_state(self, topics: Collection[str] | None = None, **scope: Unpack[Scope]) -> ClusterState:
        """The cluster now. `topics`: only these (None: all, empty: names only); unknown names are left out.

        Raises KctlError where the cluster does not answer or is none.
        """

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        """The writes of one intent, worked out from a fresh read of what it touches.

        Raises Refused (exists, under way, changed since `state`), KctlError (unknown topic), both before
        anything is written, and where a request would be too large for the server.
        """

    def commit(self, writes: Sequence[Write]) -> None:
        """Write all of it or nothing. Raises Conflict where an expectation fails, KctlError where it cannot.

        When it returns, all is written; when the connection went away in the middle it finds out by reading.
        """

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Whether a transaction that was sent before has been carried out, as far as reading can tell."""

    def request_partitions_fitting(
        self, partitions: Sequence[tuple[TopicPartition, Replicas]], kind: str
    ) -> int:
        """How many partitions, from the front, fit in one request of a kind: `reassign` or `elect-preferred`."""

    def config_keys(self, entity_type: str, entity_name: str) -> Collection[str] | None:
        """The keys that brokers take for an entity; None where they cannot be asked. Raises KctlError."""
        return None

    def replica_sizes(self, topics: Collection[str] | None = None) -> list[ReplicaSize] | None:
        """The size of every replica, of these topics or all, on brokers that answer; None where it cannot be asked."""
        return None

    def read_log_dirs(
        self, brokers: Collection[int], topics: Collection[str] | None = None
    ) -> list[LogDir] | None:
        """The log directories of these brokers and the replicas of these topics (None: all) there, by broker and path.

        None where it cannot be asked.
        """
        return None

    def controllers(self, quorum: Quorum) -> dict[int, Endpoint]:
        """Where the controllers of a KRaft cluster listen, as far as one of them tells."""
        return {}

    def supported_features(self) -> tuple[dict[str, tuple[int, int]], list[KctlError]]:
        """The lowest and highest level of each feature that all brokers support, and who did not answer."""
        return {}, []

    def log_ends(self, state: ClusterState) -> Mapping[TopicPartition, int]:
        """Where the logs of the state's partitions end, by their leaders; what is not to be had is left out."""
        return {}

    def read_oddities(self, state: ClusterState, now: int) -> Sequence[Oddity]:
        """What is odd beyond the state; `now` is milliseconds, against which ages are counted."""

    def read_old_groups(self) -> Sequence[OldGroup]:
        """The groups of old consumers, who keep members, owners and offsets in ZooKeeper; elsewhere none."""
        return ()

    def close(self) -> None:
        """End the connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
