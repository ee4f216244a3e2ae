"""The interface of clusters, whatever the backend: ZooKeeper, a snapshot of it, Kafka's Admin protocol.

Reading gives a `ClusterState`. Changing is: `plan` an intent into writes, then `commit` them, all or none,
each only if what it was computed from is unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypedDict, Unpack

from kctl.cluster.backends import BACKENDS, Abilities
from kctl.cluster.rights import MissingRight
from kctl.errors import KctlError, Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from kctl.cluster.disks import BrokerLogDir
    from kctl.cluster.intent import Intent, Write
    from kctl.cluster.moves import ReplicaSize
    from kctl.cluster.old_consumers import OldGroup
    from kctl.cluster.state import ClusterState, Endpoint, Problem, Quorum, Replicas
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


def no_quorum(state: ClusterState) -> KctlError:
    """The error for a state without a quorum: the missing right, or that there is none."""
    if (problem := state.not_quorum) is not None and problem.right is not None:
        return MissingRight(problem.right, problem.principal, problem.place)
    return NoQuorum("the cluster has no KRaft quorum")


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


Users = Mapping[str, Mapping[str, int | None]]
"""The iterations of each user's credentials by mechanism."""


class Visibility(NamedTuple):
    """What speaks against a full view of the topics: clauses, empty for nothing.

    `hidden`: brokers hide names of topics from this user. `unproven`: why they may, although no sign of it is there.
    """

    hidden: str = ""
    unproven: str = ""


class Oddity(NamedTuple):
    """A problem that only a backend sees: its kind (`notification`, `failed-disk`), place, reason, age (ms), broker."""

    kind: str
    place: str
    reason: str
    age: int | None = None
    broker_id: int | None = None


class Scope(TypedDict, total=False):
    """What `Cluster.read_state` reads besides topics, and how exactly."""

    partition_states: bool  # True if absent
    configs: Collection[str]  # entity types to read, completely (for topics: of the requested ones)
    config_keys: Collection[str] | None  # keys needed, others may be left out; None: all
    kafka_version: KafkaVersion | None  # pins the version
    # Do not wait for what others have written in the last second; what kctl has written
    # is read in any case.
    recent: bool
    visibility: bool  # find out whether topics may be hidden; False if absent
    # Brokers whose log directories are read (None: all), where they can be asked.
    log_dirs_of: Collection[int] | None


class Cluster(Protocol):
    """A cluster of one backend. Use as a context manager, or `close` it.

    Methods with a body here are for backends that lack the feature.
    """

    backend: str  # "zookeeper", "snapshot", "admin"

    @property
    def can(self) -> Abilities:
        """What this backend can."""
        return BACKENDS[self.backend]

    location: str  # as shown to people and written in the journal: connect string, file, bootstrap servers

    def read_state(self, topics: Collection[str] | None = None, **scope: Unpack[Scope]) -> ClusterState:
        """The cluster now. `topics`: only these (None: all, empty: names only); unknown names are left out.

        Raises KctlError if the cluster does not answer or does not exist.
        """

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        """The writes of one intent, computed from a fresh read of what it changes.

        Raises Refused (exists, under way, changed since `state`), KctlError (unknown topic), both before
        anything is written, and where a request would be too large for the server.
        """

    def commit(self, writes: Sequence[Write]) -> None:
        """Write all of it or nothing. Raises Conflict if an expectation fails, KctlError if it cannot write.

        When it returns, all is written; when the connection went away in the middle it finds out by reading.
        """

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Whether the cluster shows that earlier writes have been carried out."""

    def is_begun(self, writes: Sequence[Write]) -> bool:
        """Whether the cluster shows that some of earlier writes has been carried out; of a transaction, all of it."""
        return self.is_written(writes)

    def dead_brokers_told(self, writes: Sequence[Write]) -> set[int]:
        """The dead brokers whose configuration the controller itself is asked to change by these writes."""
        return set()

    def request_partitions_fitting(
        self, partitions: Sequence[tuple[TopicPartition, Replicas]], kind: str
    ) -> int:
        """How many partitions, from the front, fit in one request of a kind: `reassign` or `elect-preferred`."""

    def taken_back_by(self, intent: Intent, begun_ms: int) -> tuple[Intent, ...] | None:
        """What takes back an intent of a change that began at a time, where only brokers tell; None where they do not.

        () where nothing of it is there. Raises KctlError; Refused where they tell too much to be sure.
        """
        return None

    def scram_users(self, problems: list[Problem]) -> Users:
        """The iterations of each user by mechanism; None where an export holds no credentials. Raises KctlError."""

    def config_keys(self, entity_type: str, entity_name: str) -> Collection[str] | None:
        """The keys that brokers accept for an entity; None if they cannot be asked. Raises KctlError."""
        return None

    def replica_sizes(self, topics: Collection[str] | None = None) -> list[ReplicaSize] | None:
        """The size of every replica, of these topics or all, on brokers that answer; None if brokers cannot be asked."""
        return None

    def read_log_dirs(
        self, brokers: Collection[int], topics: Collection[str] | None = None
    ) -> list[BrokerLogDir] | None:
        """The log directories of these brokers and the replicas of these topics (None: all) there, by broker and path.

        None if brokers cannot be asked.
        """
        return None

    principal: str = ""  # who brokers take this connection for

    def visibility(self) -> Visibility:
        """Whether there may be topics that this user does not see."""
        return Visibility()

    def controllers(self, quorum: Quorum) -> dict[int, Endpoint]:
        """The endpoints of the controllers of a KRaft cluster, if one of them answers."""
        return {}

    def supported_features(self) -> tuple[dict[str, tuple[int, int]], list[KctlError]]:
        """The lowest and highest level of each feature that all brokers support, and the errors of those that did not answer."""
        return {}, []

    def log_ends(self, state: ClusterState) -> Mapping[TopicPartition, int]:
        """Where the logs of the state's partitions end, by their leaders; unknown ones are left out."""
        return {}

    def read_oddities(self, state: ClusterState, now: int) -> Sequence[Oddity]:
        """Problems beyond the state; ages are relative to `now` (milliseconds)."""

    def read_old_groups(self) -> Sequence[OldGroup]:
        """The groups of old consumers, which keep members, owners and offsets in ZooKeeper; elsewhere none."""
        return ()

    def close(self) -> None:
        """End the connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
