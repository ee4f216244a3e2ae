"""The state of a cluster at one moment: brokers, controller, topics, partition states, requests under way.

A value without a connection, the same for every backend. Lists of replicas are tuples in Kafka's order;
the first replica is the preferred one. What could not be read is in `problems`; everything else is valid.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from formats.values import Struct, field
from kctl.cluster.backends import BACKENDS, Abilities
from kctl.cluster.disks import BrokerLogDir
from kctl.cluster.rights import CREDENTIALS, MissingRight, Right, grant, missing
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError
from kctl.model import TopicPartition

NO_LEADER = -1
ELR_FEATURE = "eligible.leader.replicas.version"  # its level is above 0 if KRaft tracks eligible leaders
DEFAULT = "<default>"  # the entity that applies to all of its type
MIN_ISR = "min.insync.replicas"
NOT_RETURNED = ""  # in place of a value that is set and that brokers do not return
Replicas = tuple[int, ...]


class Endpoint(NamedTuple):
    """A listener of a broker; the protocol is None if unknown."""

    listener: str
    host: str
    port: int
    security_protocol: str | None = None


class Broker(NamedTuple):
    """A registered, live broker."""

    broker_id: int
    host: str | None
    port: int
    rack: str | None = None
    endpoints: tuple[Endpoint, ...] = ()
    broker_epoch: int | None = None
    registered_at: int | None = None  # milliseconds
    is_fenced: bool = False


class Controller(NamedTuple):
    """The controller. `is_kraft`: a KRaft quorum has claimed the cluster (migration), or it is one."""

    broker_id: int | None
    epoch: int | None
    is_kraft: bool = False
    elected_at: int | None = None  # milliseconds


class PartitionState(NamedTuple):
    """Leader and ISR of a partition. `partition_epoch` grows with each change of it (the znode's version).

    `offline_replicas`, as brokers report them: those on dead brokers and on failed disks.
    """

    leader: int
    leader_epoch: int
    isr: Replicas
    controller_epoch: int | None = None
    partition_epoch: int | None = None
    offline_replicas: Replicas = ()


class Topic(Struct, frozen=True, kw_only=True):
    """A topic and the replicas of its partitions, adding and removing ones included."""

    name: str
    partitions: Mapping[int, Replicas]
    adding_replicas: Mapping[int, Replicas] = field(default_factory=dict)
    removing_replicas: Mapping[int, Replicas] = field(default_factory=dict)
    topic_id: str | None = None  # Kafka's base64 form, 22 characters
    version: int | None = None  # of the znode, for compare-and-set; None if the backend has none
    is_marked_for_deletion: bool = False
    created_at: int | None = None  # milliseconds

    def target_replicas(self, partition: int) -> Replicas:
        """The replicas after the move: replicas − removing."""
        if not (removing := self.removing_replicas.get(partition)):
            return tuple(self.partitions[partition])
        return tuple(b for b in self.partitions[partition] if b not in removing)

    def origin_replicas(self, partition: int) -> Replicas:
        """The replicas before the move: replicas − adding (2.4+; the order may be the target's)."""
        adding = self.adding_replicas.get(partition, ())
        return tuple(b for b in self.partitions[partition] if b not in adding)

    def is_reassigning(self, partition: int) -> bool:
        """Whether the topic has adding or removing replicas (never before 2.4)."""
        return bool(self.adding_replicas.get(partition) or self.removing_replicas.get(partition))


class EntityConfig(NamedTuple):
    """The dynamic configuration of one entity, as stored: only what was set, values as text."""

    entity_type: str  # topics, brokers, clients, users, ips
    entity_name: str  # `<default>`, or users' and clients' names joined as `USER/clients/CLIENT`
    values: Mapping[str, str]
    version: int | None = None


class ControllerRequest(NamedTuple):
    """A request that waits for the controller: a reassignment or a preferred election."""

    partitions: Mapping[TopicPartition, Replicas]  # targets; empty lists for an election
    created_at: int | None = None  # milliseconds
    version: int | None = None
    unreadable: str | None = None  # why the controller will not accept it


class QuorumMember(NamedTuple):
    """A voter or observer of a KRaft quorum; times are milliseconds by the leader's clock, None if unknown.

    `is_answering`: it leads, or has fetched in the last seconds; None if unknown (before 3.3). If only
    the address of a voter is known its id is below -1, as Kafka numbers such nodes.
    """

    node_id: int
    is_voter: bool
    log_end_offset: int
    last_caught_up_at: int | None
    last_fetch_at: int | None = None
    directory_id: str | None = None  # Kafka's form
    is_answering: bool | None = None
    endpoints: tuple[Endpoint, ...] = ()  # of voters (3.9 and later)

    @property
    def voter(self) -> str:
        """Its name in texts."""
        if self.node_id >= 0:
            return f"voter {self.node_id}"
        return " ".join(["the voter at", *(f"{at.host}:{at.port}" for at in self.endpoints)])


class Quorum(NamedTuple):
    """The KRaft quorum: its leader is the controller. `lost` is why there is no leader (leader and offsets are -1 then)."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    members: tuple[QuorumMember, ...] = ()
    lost: str = ""

    @property
    def voters(self) -> frozenset[int]:
        """Ids of the voters."""
        return frozenset(member.node_id for member in self.members if member.is_voter)

    @property
    def dead_voters(self) -> frozenset[int]:
        """Ids of the voters that do not answer."""
        return frozenset(
            member.node_id for member in self.members if member.is_voter and member.is_answering is False
        )

    @property
    def has_majority(self) -> bool:
        """Whether there is a leader, and more than half of the voters answer."""
        return self.leader_id >= 0 and is_majority(self.voters - self.dead_voters, self.voters)

    @property
    def replaced_voters(self) -> tuple[tuple[QuorumMember, QuorumMember], ...]:
        """Voters whose directory is gone, each with the observer that its node is now: a voter is a node and a directory."""
        return tuple(
            (voter, now)
            for voter in self.members
            if voter.is_voter and voter.directory_id and voter.is_answering is False
            for now in self.members
            if not now.is_voter and now.node_id == voter.node_id and now.is_answering
            if now.directory_id not in (None, voter.directory_id)
        )

    def member(self, node_id: int) -> QuorumMember | None:
        """The member of an id: the voter, or else the last to fetch; a leader lists a node with its lost disk for minutes."""
        members = [member for member in self.members if member.node_id == node_id]
        return max(members, key=lambda member: (member.is_voter, member.last_fetch_at or -1), default=None)


def is_majority(alive: Collection[int], voters: Collection[int]) -> bool:
    """Whether the voters alive can elect a leader and commit writes; true of an unknown set."""
    return not voters or 2 * len(set(alive) & set(voters)) > len(voters)


BEHIND = "it is behind the controller, and may tell what was before"


# Places of problems.
QUORUM, MOVES, CONFIGS = "controller and quorum", "reassignment", "configuration"
CONTROLLER_EPOCH, DELETIONS = "epoch of the controller", "deletion markers"


class Problem(NamedTuple):
    """Something that could not be read: place, reason, and the broker that did not answer or the missing right if that is it."""

    place: str
    reason: str
    silent_broker: int | None = None
    right: Right | None = None  # that is missing
    principal: str = ""
    is_hidden: bool = False  # ZooKeeper does not show it to this session

    @property
    def hint(self) -> str:
        """The hint for people."""
        if self.is_hidden:
            return CREDENTIALS
        if self.right is not None:
            return grant([self.right], self.principal)
        if self.silent_broker is not None:
            return (
                "the output leaves it out; check that it runs and that its listener can be reached from here"
            )
        if self.reason == BEHIND:
            return "ask again, or look at the load of the broker and its controller"
        return "the output leaves it out"


def unread(place: str, error: KctlError) -> Problem:
    """What an error says of a part of a state that was not read because of it."""
    if isinstance(error, MissingRight):
        reason = missing(error.right, error.principal)
        return Problem(place, reason, right=error.right, principal=error.principal)
    reason = error.message.removeprefix(f"{place}: ")
    return Problem(place, reason, is_hidden=error.hint == CREDENTIALS)


class ClusterState(Struct, frozen=True, kw_only=True):
    """Everything read at one moment. `topics` holds only the requested ones; `topic_names` all."""

    cluster_id: str | None
    kafka_version: KafkaVersion  # a lower bound, unless pinned
    brokers: Mapping[int, Broker]
    controller: Controller | None
    topic_names: tuple[str, ...] = ()
    topics: Mapping[str, Topic] = field(default_factory=dict)
    partition_states: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    configs: Mapping[tuple[str, str], EntityConfig] = field(default_factory=dict)
    # The settings in the brokers' own files, by broker, if they return them; read with `configs` of brokers.
    broker_files: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    # min.insync.replicas as the topic's own description has it, where brokers' configurations may not be read.
    min_isr_in_force: Mapping[str, str] = field(default_factory=dict)
    reassignment: ControllerRequest | None = None
    election: ControllerRequest | None = None
    deleting: frozenset[str] = frozenset()
    is_migrating: bool = False
    is_rolled_back: bool = False
    """Whether a KRaft quorum once copied its metadata, and a broker is the controller again."""
    problems: tuple[Problem, ...] = ()
    principal: str = ""  # who brokers take the connection for
    # Why topics are hidden from this user, a clause; of brokers read if requested. ZooKeeper still lists their names.
    hidden: str = ""
    not_quorum: Problem | None = None  # why a KRaft cluster's controller and quorum were not read
    backend: str = "zookeeper"
    quorum: Quorum | None = None  # of a KRaft cluster
    features: Mapping[str, int] = field(default_factory=dict)  # finalized levels
    # Replicas outside the ISR that may lead without loss (KIP-966).
    eligible_leaders: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    # For partitions without eligible leaders.
    last_known_leaders: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    log_dirs: tuple[BrokerLogDir, ...] = ()  # of the requested brokers, with the replicas of `topics`

    @property
    def can(self) -> Abilities:
        """What the backend can from which the state was read."""
        return BACKENDS[self.backend]

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is registered and not fenced."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    def is_replica_alive(self, of: TopicPartition, broker_id: int) -> bool:
        """Whether the broker is alive and its disk with the partition has not failed."""
        partition_state = self.partition_states.get(of)
        return self.is_alive(broker_id) and (
            partition_state is None or broker_id not in partition_state.offline_replicas
        )

    def on_failed_disks(self) -> dict[int, list[TopicPartition]]:
        """The partitions with an offline replica on a live broker, by broker."""
        failed: dict[int, list[TopicPartition]] = {}
        for tp, partition_state in self.partition_states.items():
            for broker in filter(self.is_alive, partition_state.offline_replicas):
                failed.setdefault(broker, []).append(tp)
        return dict(sorted(failed.items()))

    @property
    def has_controller(self) -> bool:
        """Whether there is a controller now, as far as is known; the epoch of the last one outlives it."""
        if self.not_quorum is not None:
            return True
        return self.controller is not None and self.controller.broker_id is not None

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """The problems, with that of the quorum, which few commands ask for."""
        return self.problems if self.not_quorum is None else (*self.problems, self.not_quorum)

    def why_not_read(self, *places: str) -> str | None:
        """Why a part was not read, by the first words of its place: place and reason; None if it was."""
        problems = (p for p in self.all_problems if p.silent_broker is None and p.place.startswith(places))
        return next((f"{problem.place}: {problem.reason}" for problem in problems), None)

    @property
    def knows_min_isr(self) -> bool:
        """Whether min.insync.replicas is known for every topic although brokers' configurations were not read."""
        return bool(self.topics) and self.topics.keys() <= self.min_isr_in_force.keys()

    @property
    def denied_topics(self) -> list[str]:
        """Requested topics that this user may not describe: whether they exist is not known."""
        return [p.right.name for p in self.problems if p.right and p.place == f"topic {p.right.name}"]

    @property
    def why_partial(self) -> str | None:
        """Why counts over all topics are not known; None if they are."""
        return self.hidden or self.why_not_read("topic ") or None

    @property
    def live_brokers(self) -> list[int]:
        """Ids of the live brokers, ascending."""
        return sorted(id for id, broker in self.brokers.items() if not broker.is_fenced)

    def replicas(self, of: TopicPartition) -> Replicas | None:
        """The assigned replicas, adding and removing ones included; None for an unknown partition."""
        topic = self.topics.get(of.topic)
        return None if topic is None else topic.partitions.get(of.partition)

    def isr(self, of: TopicPartition) -> Replicas:
        """The ISR; empty for a partition that never had a leader."""
        partition_state = self.partition_states.get(of)
        return partition_state.isr if partition_state is not None else ()

    def leader(self, of: TopicPartition) -> int | None:
        """The id of the leader or NO_LEADER; None for a partition that never had one."""
        partition_state = self.partition_states.get(of)
        return partition_state.leader if partition_state is not None else None

    def is_reassigning(self, of: TopicPartition) -> bool:
        """Whether the partition is being moved: by its topic (2.4+) or by the waiting request."""
        topic = self.topics.get(of.topic)
        if topic is not None and topic.is_reassigning(of.partition):
            return True
        return self.reassignment is not None and of in self.reassignment.partitions

    def config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        """The values set for the entity."""
        config = self.configs.get((entity_type, entity_name))
        return config.values if config else {}

    def why_unseen(self, topic: str) -> str | None:
        """Why a topic that may be there is not in `topics`; None for one that was read, or is not there."""
        places = (f"topic {topic}", f"/brokers/topics/{topic}")
        if topic in self.topics:
            return None
        is_hidden = self.can.name_all_topics and topic in self.topic_names
        return self._reason_at(places) or (self.hidden if is_hidden else None) or None

    def unread_config(self, entity_type: str, entity_name: str) -> Problem | None:
        """What kept the configuration of an entity, or those of its whole type, from being read; None if nothing did."""
        places = (
            f"configuration of {entity_type.removesuffix('s')} {entity_name}",
            f"configurations of {entity_type}",
        )
        return next((problem for problem in self.problems if problem.place in places), None)

    def why_unread(self, entity_type: str, entity_name: str) -> str | None:
        """Why the configuration of an entity is not known; None if it was read, or nothing says that it was not."""
        if (problem := self.unread_config(entity_type, entity_name)) is not None:
            return problem.reason
        if entity_type == "topics":
            return self.why_unseen(entity_name)
        is_dead = entity_type == "brokers" and entity_name.isdecimal() and not self.is_alive(int(entity_name))
        return "it is not alive" if is_dead and not self.can.keep_configs_of_dead else None

    def _reason_at(self, places: Collection[str]) -> str | None:
        return next((problem.reason for problem in self.problems if problem.place in places), None)

    def topic_value(self, topic: str, leader: int | None, key: str) -> str | None:
        """The value in force for a topic on its leader: its own, the broker's, the brokers' default, the broker's file.

        Without a live leader another broker's file is used, since all should be alike. None: the default of the version.
        """
        places = (("topics", topic), ("brokers", str(leader)), ("brokers", DEFAULT))
        if key == MIN_ISR and topic in self.min_isr_in_force:
            return self.min_isr_in_force[topic]
        for kind, name in places:
            if (value := self.config(kind, name).get(key)) is not None:
                return value
        own = None if leader is None else self.broker_files.get(leader)
        files = self.broker_files.values() if own is None else (own,)
        return next((file[key] for file in files if key in file), None)

    def has_value(self, entity_type: str, entity_name: str, key: str, value: str | None) -> bool:
        """Whether a key has this value (None: is not set), or one that brokers do not return."""
        present = self.config(entity_type, entity_name).get(key)
        return present == value or (value is not None and self.is_not_returned(present))

    def is_not_returned(self, value: str | None) -> bool:
        """Whether a value is set that brokers do not return: brokers of 2.4 hide the rates of throttles too."""
        return self.can.ask_brokers and value == NOT_RETURNED

    def partitions(self) -> Iterator[TopicPartition]:
        """Every partition of the topics read, by topic name and number."""
        for name in sorted(self.topics):
            for partition in sorted(self.topics[name].partitions):
                yield TopicPartition(name, partition)
