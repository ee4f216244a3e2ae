"""A `ClusterState` from a cluster's answers, all of them about a moment not before the reading began.

In KRaft every broker applies the metadata log by itself: the high watermark of the quorum is read first, and
the broker used for reads gets the time to catch up. With ZooKeeper the controller is used, whose
view is the newest; the code that writes waits for its own writes.

Source: KIP-584 (finalized features epoch), KIP-836 (DescribeQuorum), KIP-113 (DescribeLogDirs); metadata/src/main/java/
org/apache/kafka/metadata/publisher/FeaturesPublisher.java @ 3.9.0
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Unpack
from urllib.parse import quote

from kctl.cluster.config_keys import BROKERS_ONLY
from kctl.cluster.disks import DENIED, BrokerLogDir, StoredReplica
from kctl.cluster.interface import Scope
from kctl.cluster.names import sanitized
from kctl.cluster.rights import MissingRight, Right
from kctl.cluster.state import (
    BEHIND,
    ELR_FEATURE,
    MIN_ISR,
    QUORUM,
    Broker,
    ClusterState,
    Controller,
    EntityConfig,
    PartitionState,
    Problem,
    Quorum,
    Replicas,
    Topic,
    unread,
)
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import BrokerError, NoAnswer, TooOld, Wire, error_name
from kctl.wire.answers import configs
from kctl.wire.answers.metadata import Places, PlacesRequest, TopicPlaces, places
from kctl.wire.hidden import visibility_of
from kctl.wire.protocol.messages import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
)
from kctl.wire.quorum import NoController, ask_controller, read_quorum
from kctl.wire.rights import denied, failure, problem

NOT_CONTROLLER, NOT_AUTHORIZED, CLUSTER_AUTHORIZATION_FAILED = 41, 29, 31
SHORT, LONG = 0.01, 0.08  # seconds between two looks at how far a broker is
LATE = 2.0  # seconds that brokers have to apply what was committed
MOMENT = 0.5  # seconds for another broker to accept a connection
NEW = partial(tuple.__new__, TopicPartition)
ELR_PAGE = 2000  # partitions; brokers give no more in an answer


def read_cluster(
    wire: Wire,
    topics: Collection[str] | None = None,
    *,
    is_exact: bool = True,
    needs_controller: bool = False,
    **scope: Unpack[Scope],
) -> ClusterState:
    """The cluster now, or as a broker knows it if that need not be exact; see `kctl.cluster.interface.Cluster`.

    In a KRaft cluster without a controller it warns, and returns what brokers know; raises NoController if one is needed.
    """
    if wire.version_of(DescribeQuorumRequest) is None:
        read_from_controller(wire)
    try:
        # The list comes from the controller, so a broker's later answers are not older.
        moving = read_reassignments(wire)
        quorum = read_quorum(wire)
    except NoController as none:
        if needs_controller:
            raise
        wire.warn(none.message)
        moving, quorum, is_exact = {}, none.quorum, False
    features = await_metadata(wire, quorum if is_exact else None)
    node = wire.node
    metadata = places(wire.read(PlacesRequest(topics=None)))
    brokers = _brokers(wire, metadata)
    live = [id for id, broker in brokers.items() if not broker.is_fenced]
    if any(wire.address_of(id) != (brokers[id].host, brokers[id].port) for id in live):
        wire.refresh_nodes()  # one has come back since the table was read, maybe at another address
    names = tuple(sorted(topic.name for topic in metadata.topics if topic.name is not None))
    listed, problems = _listed(wire, metadata, names if topics is None else topics)
    if moving is None and scope.get("partition_states", True):
        problems = [*problems, denied(wire, "reassignments", Right("Describe"))]
    elif moving and topics is None and (unlisted := {tp.topic for tp in moving} - set(names)):
        hidden_moves = _refused(wire, sorted(unlisted))
        problems += [problem._replace(place=f"reassignment of {problem.place}") for problem in hidden_moves]
    has_quorum = wire.version_of(DescribeQuorumRequest) is not None
    topics_by_name = {
        str(topic.name): _topic(topic, moving or {}) for topic in listed if not topic.error_code
    }
    states = _states(listed) if scope.get("partition_states", True) else {}
    names_to_read = topics_by_name if topics is not None else names
    if is_exact and "brokers" in scope.get("configs", ()):
        problems = [*problems, *brokers_behind(wire, quorum, brokers)]
    values, files, config_problems = read_configs(
        wire, scope.get("configs", ()), list(names_to_read), sorted(brokers), scope.get("config_keys")
    )
    min_isr: dict[str, str] = {}
    are_denied = any(p.right and p.place.startswith("configuration of broker") for p in config_problems)
    if are_denied and "topics" in scope.get("configs", ()):
        min_isr = _min_isr_in_force(wire, sorted(topics_by_name))
    log_dir_brokers = scope.get("log_dirs_of", ())
    log_dir_brokers = wire.nodes if log_dir_brokers is None else log_dir_brokers
    eligible, last_known = _eligible(wire, features, topics_by_name, states)
    if is_exact and wire.node != node:  # it is gone, and the one that answered instead may be behind
        return read_cluster(wire, topics, needs_controller=needs_controller, **scope)
    return ClusterState(
        cluster_id=metadata.cluster_id,
        kafka_version=scope.get("kafka_version") or KafkaVersion(*(*wire.broker_version, 0)[:2]),
        brokers=brokers,
        controller=_controller(wire, quorum, metadata.controller_id),
        topic_names=names,
        topics=topics_by_name,
        partition_states=states,
        configs=values,
        broker_files=files,
        min_isr_in_force=min_isr,
        problems=(*problems, *config_problems),
        not_quorum=denied(wire, QUORUM, Right("Describe")) if has_quorum and quorum is None else None,
        principal=wire.principal,
        hidden=visibility_of(wire).hidden if scope.get("visibility") else "",
        backend="admin",
        quorum=quorum,
        features=features,
        eligible_leaders=eligible,
        last_known_leaders=last_known,
        log_dirs=tuple(read_log_dirs(wire, log_dir_brokers, topics, live) if log_dir_brokers else ()),
    )


def _listed(wire: Wire, metadata: Places, names: Collection[str]) -> tuple[list[TopicPlaces], list[Problem]]:
    """The existing topics of these names, and the problems of some."""
    answered = {topic.name: topic for topic in metadata.topics if topic.name is not None}
    wanted_names = set(names)
    listed = [topic for topic in answered.values() if topic.name in wanted_names]
    problems = _refused(wire, sorted(wanted_names - answered.keys()))
    problems += [_problem(wire, str(topic.name), topic.error_code) for topic in listed if topic.error_code]
    return listed, problems


# --- reading what is not old --------------------------------------------------------------------------


def await_metadata(wire: Wire, quorum: Quorum | None) -> dict[str, int]:
    """Wait until the broker used for reads has applied all that the quorum had committed; returns its features.

    Up to 4.0 brokers learn what is committed only with the next record, half a second later. If the controller is
    a broker as well it knows already, and is used. Raises NoAnswer if none catches up: its answers would
    be old.
    """
    end, pause = time.monotonic() + wire.access.timeout, SHORT
    while True:
        try:
            answer = wire.read(_api_versions())
        except TooOld:
            return {}
        features = {
            str(feature.name): int(feature.max_version_level) for feature in answer.finalized_features or ()
        }
        if quorum is None or (answer.finalized_features_epoch or 0) >= quorum.high_watermark - 1:
            return features
        if pause == SHORT and wire.read_from(quorum.leader_id, MOMENT):
            pause = 2 * SHORT
            continue
        if time.monotonic() > end:
            raise NoAnswer(
                f"broker {wire.node} is behind the controller: it has applied the metadata up to "
                f"{answer.finalized_features_epoch}, committed is {quorum.high_watermark}",
                wire.node,
                "its answers would be out of date; wait longer with --timeout",
            )
        time.sleep(pause)
        pause = min(2 * pause, LONG)


def brokers_behind(wire: Wire, quorum: Quorum | None, brokers: Collection[int]) -> list[Problem]:
    """Wait until each broker has applied what the quorum had committed, since only it returns its configuration.

    Returns those that stay behind. A broker that does not answer is reported by the later request. Without a
    controller nothing is committed.
    """
    if quorum is None or quorum.lost:
        return []
    end, pause = time.monotonic() + LATE, SHORT
    behind = sorted(set(brokers) & set(wire.nodes) - {wire.node})
    while behind:
        answers = wire.send_all([(node, _api_versions()) for node in behind], timeout=LATE)
        behind = [
            node
            for node, answer in zip(behind, answers, strict=True)
            if not isinstance(answer, KctlError)
            and (answer.finalized_features_epoch or 0) < quorum.high_watermark - 1
        ]
        if not behind or time.monotonic() > end:
            break
        time.sleep(pause)
        pause = min(2 * pause, LONG)
    return [Problem(f"configuration of broker {node}", BEHIND) for node in behind]


def _api_versions() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="kctl", client_software_version="1", min_version=3)


def read_from_controller(wire: Wire) -> None:
    """With ZooKeeper: read from the controller, if it answers."""
    wire.read_from(wire.read(MetadataRequest(topics=[])).controller_id)


def await_controller(wire: Wire) -> None:
    """Read from the controller that brokers name now, a moment after one said that it is not it.

    With ZooKeeper brokers name a dead controller until the next is elected, which its session's timeout delays.
    """
    wire.pause(LONG)
    wire.refresh_nodes()
    read_from_controller(wire)


def read_reassignments(wire: Wire) -> dict[TopicPartition, tuple[Replicas, Replicas]] | None:
    """Adding and removing replicas of every partition that is being moved; None without the right. Raises KctlError."""
    milliseconds = int(wire.access.timeout * 1000)
    try:
        answer = ask_controller(
            wire, lambda: ListPartitionReassignmentsRequest(timeout_ms=milliseconds, topics=None)
        )
    except TooOld:
        return {}
    end = time.monotonic() + wire.access.timeout
    while answer.error_code == NOT_CONTROLLER and time.monotonic() < end:
        await_controller(wire)
        answer = wire.read(ListPartitionReassignmentsRequest(timeout_ms=milliseconds, topics=None))
    if answer.error_code == CLUSTER_AUTHORIZATION_FAILED:
        return None
    if answer.error_code:
        raise failure(
            wire, "reassignments", "ListPartitionReassignments", answer.error_code, "", answer.error_message
        )
    return {
        TopicPartition(str(topic.name), int(partition.partition_index)): (
            tuple(partition.adding_replicas),
            tuple(partition.removing_replicas),
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


# --- parts --------------------------------------------------------------------------------------------


def _brokers(wire: Wire, metadata: Places) -> dict[int, Broker]:
    if wire.version_of(DescribeClusterRequest) is None:
        listed: Iterable[Any] = metadata.brokers
        return {
            broker.node_id: Broker(
                broker_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in listed
        }
    fenced_too = (wire.version_of(DescribeClusterRequest) or 0) >= 2
    answer = wire.read(DescribeClusterRequest(include_fenced_brokers=fenced_too))
    if answer.error_code:
        message = answer.error_message or error_name(answer.error_code)
        raise BrokerError(f"{wire.location}: the cluster cannot be described: {message}")
    return {
        broker.broker_id: Broker(
            broker_id=broker.broker_id,
            host=broker.host,
            port=broker.port,
            rack=broker.rack,
            is_fenced=bool(fenced_too and broker.is_fenced),
        )
        for broker in answer.brokers
    }


def _controller(wire: Wire, quorum: Quorum | None, controller_id: int) -> Controller | None:
    if quorum is not None:
        is_led = quorum.leader_id >= 0
        return Controller(
            broker_id=quorum.leader_id if is_led else None,
            epoch=quorum.leader_epoch if is_led else None,
            is_kraft=True,
        )
    # Brokers of KRaft name one of them at random.
    is_told = controller_id >= 0 and wire.version_of(DescribeQuorumRequest) is None
    return Controller(broker_id=controller_id, epoch=None) if is_told else None


def _topic(placed: TopicPlaces, moving: Mapping[TopicPartition, tuple[Replicas, Replicas]]) -> Topic:
    name = str(placed.name)
    adding: dict[int, Replicas] = {}
    removing: dict[int, Replicas] = {}
    for number, replicas in placed.partitions.items() if moving else ():
        moves = moving.get(TopicPartition(name, number))
        if moves is not None and set(moves[0]) | set(moves[1]) <= set(replicas):  # else it has just ended
            adding[number], removing[number] = moves
    return Topic(
        name=name,
        partitions=placed.partitions,
        adding_replicas=adding,
        removing_replicas=removing,
        topic_id=placed.topic_id,
    )


def read_partition_states(wire: Wire, names: Iterable[str]) -> dict[TopicPartition, PartitionState]:
    """The leaders, epochs and ISRs of topics now; those of a topic that cannot be read are left out. Raises KctlError."""
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(names)]
    answer = places(wire.read(PlacesRequest(topics=topics, allow_auto_topic_creation=False)))
    return _states(topic for topic in answer.topics if not topic.error_code)


def _states(topics: Iterable[TopicPlaces]) -> dict[TopicPartition, PartitionState]:
    states: dict[TopicPartition, PartitionState] = {}
    for topic in topics:
        names = map(NEW, zip(repeat(topic.name), topic.states, strict=False))
        states.update(zip(names, topic.states.values(), strict=True))
    return states


def _refused(wire: Wire, names: list[str]) -> list[Problem]:
    """Problems of requested topics that are not listed: the unauthorized ones, not the missing ones."""
    if not names:
        return []
    requested = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    answer = wire.read(MetadataRequest(topics=requested, allow_auto_topic_creation=False))
    return [
        _problem(wire, str(t.name), t.error_code) for t in answer.topics if t.error_code == NOT_AUTHORIZED
    ]


def _problem(wire: Wire, topic: str, code: int) -> Problem:
    return problem(wire, f"topic {topic}", "Metadata", code, topic)


def _eligible(
    wire: Wire,
    features: Mapping[str, int],
    topics: Mapping[str, Topic],
    states: Mapping[TopicPartition, PartitionState],
) -> tuple[dict[TopicPartition, Replicas], dict[TopicPartition, Replicas]]:
    """Eligible and last known leader replicas of the partitions whose ISR has not all replicas (KIP-966)."""
    from kctl.wire.protocol.messages import DescribeTopicPartitionsRequest

    if not features.get(ELR_FEATURE):
        return {}, {}
    names = sorted(
        {
            tp.topic
            for tp, state in states.items()
            if tp.topic in topics and len(state.isr) < len(topics[tp.topic].partitions[tp.partition])
        }
    )
    eligible: dict[TopicPartition, Replicas] = {}
    last_known: dict[TopicPartition, Replicas] = {}
    if not names:
        return eligible, last_known
    cursor: Any = None
    while True:
        requested = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names]
        request = DescribeTopicPartitionsRequest(
            topics=requested, response_partition_limit=ELR_PAGE, cursor=cursor
        )
        answer = wire.read(request)
        for topic in answer.topics:
            for p in topic.partitions:
                tp = TopicPartition(str(topic.name), p.partition_index)
                if p.eligible_leader_replicas:
                    eligible[tp] = tuple(p.eligible_leader_replicas)
                if p.last_known_elr:
                    last_known[tp] = tuple(p.last_known_elr)
        if answer.next_cursor is None:
            return eligible, last_known
        at = answer.next_cursor
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=at.topic_name, partition_index=at.partition_index
        )
        names = [name for name in names if name >= at.topic_name]


# --- configurations -----------------------------------------------------------------------------------

DEFAULT_CONFIG = 5  # the source of a default
DEFAULT = "<default>"
TOPICS_IN_A_REQUEST = 500
QUOTA_TYPES = {"clients": "client-id", "users": "user", "ips": "ip"}
Configs = dict[tuple[str, str], EntityConfig]
Files = dict[int, dict[str, str]]  # by broker


def read_configs(
    wire: Wire,
    types: Collection[str],
    topics: Sequence[str],
    brokers: Sequence[int],
    keys: Collection[str] | None = None,
) -> tuple[Configs, Files, list[Problem]]:
    """The values set for entities of these types (`keys` None: all), those in brokers' files, and what could not be read.

    Defaults are left out. A broker returns only its own configuration, so that of a dead one cannot be read.
    """
    entries: Configs = {}
    files: Files = {}
    problems: list[Problem] = []
    if "topics" in types:
        for first in range(0, len(topics), TOPICS_IN_A_REQUEST):
            _topic_configs(wire, topics[first : first + TOPICS_IN_A_REQUEST], keys, entries, problems)
    if "brokers" in types:
        _broker_configs(wire, brokers, keys, entries, files, problems)
    for kind in QUOTA_TYPES.keys() & set(types):
        _quotas(wire, kind, entries, problems)
    for kind in BROKERS_ONLY & set(types):
        from kctl.wire.configs import names_of, read_set

        try:
            names = (
                [str(id) for id in brokers if id in wire.nodes]
                if kind == "broker-loggers"
                else names_of(wire, kind)
            )
        except (TooOld, MissingRight) as error:
            problems.append(unread(f"configurations of {kind}", error))
            continue
        more, wrong = read_set(wire, kind, names)
        entries |= more
        problems += wrong
    return entries, files, problems


def _min_isr_in_force(wire: Wire, topics: Sequence[str]) -> dict[str, str]:
    """min.insync.replicas by topic, from the topics' descriptions; those that may not be described are left out."""
    from kctl.wire.configs import in_force

    return {
        name: str(config.value)
        for name, described in in_force(wire, "topics", topics, [MIN_ISR])
        if not isinstance(described, KctlError)
        for config in described
    }


def read_broker_settings(wire: Wire, keys: Sequence[str]) -> dict[int, dict[str, str | None] | KctlError]:
    """The settings in force on each broker, by key: from its file, changed since, or a default; or its error.

    A secret that is set is None; one that is not set is absent, as are keys that the broker does not know.
    """
    from kctl.wire.protocol.messages import DescribeConfigsRequest

    def request(id: int) -> DescribeConfigsRequest:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=configs.BROKER, resource_name=str(id), configuration_keys=list(keys)
        )
        return DescribeConfigsRequest(
            resources=[resource], include_synonyms=False, include_documentation=False
        )

    nodes = wire.nodes
    answers = wire.send_all([(id, request(id)) for id in nodes])
    settings: dict[int, dict[str, str | None] | KctlError] = {}
    for id, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, KctlError):
            settings[id] = answer
        elif (result := answer.results[0]).error_code:
            place = f"configuration of broker {id}"
            settings[id] = failure(wire, place, "DescribeConfigs", result.error_code)
        else:
            values = ((str(c.name), c.value or None, c.config_source) for c in result.configs)
            settings[id] = {
                name: value for name, value, source in values if value or source != DEFAULT_CONFIG
            }
    return settings


def _topic_configs(
    wire: Wire, names: Sequence[str], keys: Collection[str] | None, entries: Configs, problems: list[Problem]
) -> None:
    request = configs.described(configs.TOPIC, names, None if keys is None else sorted(keys))
    answer = wire.read(request)
    for result in answer.results:
        name = str(result.resource_name)
        if result.error_code:
            place = f"configuration of topic {name}"
            problems.append(problem(wire, place, "DescribeConfigs", result.error_code, name))
            continue
        values = configs.values_from(result, (configs.DYNAMIC_TOPIC,))
        if values:
            entries["topics", name] = EntityConfig(entity_type="topics", entity_name=name, values=values)


def _broker_configs(
    wire: Wire,
    ids: Sequence[int],
    keys: Collection[str] | None,
    entries: Configs,
    files: Files,
    problems: list[Problem],
) -> None:
    alive = [id for id in ids if id in wire.nodes]
    listed_keys = None if keys is None else sorted(keys)
    requests = [(id, configs.described(configs.BROKER, [str(id)], listed_keys)) for id in alive]
    answers = wire.send_all([*requests, (wire.node, configs.described(configs.BROKER, [""], listed_keys))])
    names = [*map(str, alive), DEFAULT]
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, KctlError):
            silent = answer.node if isinstance(answer, NoAnswer) else None
            problems.append(Problem(f"configuration of broker {name}", answer.message, silent))
            continue
        (result,) = answer.results
        if result.error_code:
            place = f"configuration of broker {name}"
            problems.append(problem(wire, place, "DescribeConfigs", result.error_code))
            continue
        values = configs.values_from(
            result, (configs.DYNAMIC_DEFAULT,) if name == DEFAULT else (configs.DYNAMIC_BROKER,)
        )
        if values:
            entries["brokers", name] = EntityConfig(entity_type="brokers", entity_name=name, values=values)
        if name != DEFAULT:
            files[int(name)] = configs.values_from(result, (configs.STATIC_BROKER,))


def _quotas(wire: Wire, kind: str, entries: Configs, problems: list[Problem]) -> None:
    from kctl.wire.protocol.messages import DescribeClientQuotasRequest

    component = DescribeClientQuotasRequest.ComponentData(
        entity_type=QUOTA_TYPES[kind], match_type=2, match=None
    )
    try:
        answer = wire.read(DescribeClientQuotasRequest(components=[component], strict=False))
    except TooOld as error:
        problems.append(Problem(f"configurations of {kind}", error.message))
        return
    if answer.error_code:
        place = f"configurations of {kind}"
        problems.append(problem(wire, place, "DescribeClientQuotas", answer.error_code))
        return
    for entry in answer.entries or ():
        parts = {str(e.entity_type): _stored_name(str(e.entity_type), e.entity_name) for e in entry.entity}
        name = _quota_entity(kind, parts)
        if name is not None:
            values = {str(v.key): _number(v.value) for v in entry.values}
            entries[kind, name] = EntityConfig(entity_type=kind, entity_name=name, values=values)


def _stored_name(kind: str, name: str | None) -> str:
    """A name as configurations have it, in ZooKeeper too: users and clients percent-encoded."""
    if name is None:
        return DEFAULT
    if name == DEFAULT:  # of somebody who is called so
        return quote(name, safe="")
    return name if kind == "ip" else sanitized(name)


def _quota_entity(kind: str, parts: dict[str, str]) -> str | None:
    if kind == "users":
        user, client = parts.get("user"), parts.get("client-id")
        return user if client is None or user is None else f"{user}/clients/{client}"
    return parts.get(QUOTA_TYPES[kind]) if len(parts) == 1 else None


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def read_log_dirs(
    wire: Wire,
    brokers: Collection[int],
    topics: Collection[str] | Mapping[str, Sequence[int]] | None = None,
    live: Collection[int] | None = None,
) -> list[BrokerLogDir]:
    """The log directories of these brokers with the replicas of these topics (None: all), by broker and path.

    With their partitions in `topics`, brokers leave out the others. `live`: brokers known to be alive.

    A broker that does not answer is one row without a path. The replicas of a failed directory are unknown.
    """
    from kctl.wire.protocol.messages import DescribeLogDirsRequest

    asked_brokers = sorted(set(brokers) & set(wire.nodes if live is None else live) & set(wire.nodes))
    # A broker filters only by partitions, or leaves out all topics.
    requested: list[Any] | None = None if topics is None or topics else []
    if topics and isinstance(topics, Mapping):
        kind = DescribeLogDirsRequest.DescribableLogDirTopic
        requested = [kind(topic=name, partitions=list(numbers)) for name, numbers in topics.items()]
    answers = wire.send_all([(broker, DescribeLogDirsRequest(topics=requested)) for broker in asked_brokers])
    log_dirs = [
        BrokerLogDir(broker, None, "it is not alive") for broker in sorted(set(brokers) - set(asked_brokers))
    ]
    for broker, answer in zip(asked_brokers, answers, strict=True):
        if isinstance(answer, KctlError):
            log_dirs.append(BrokerLogDir(broker, None, answer.message))
        elif code := getattr(answer, "error_code", 0):
            log_dirs.append(BrokerLogDir(broker, None, error_name(code)))
        elif not answer.results:  # up to version 2 of the answer, to a user that may not see them
            log_dirs.append(BrokerLogDir(broker, None, DENIED))
        else:
            log_dirs += (_log_dir(broker, result, topics) for result in answer.results)
    return sorted(log_dirs, key=lambda log_dir: (log_dir.broker_id, log_dir.path or ""))


def _log_dir(broker: int, result: Any, topics: Collection[str] | None) -> BrokerLogDir:
    def known_or_none(name: str) -> int | None:
        value = getattr(result, name, None)
        return None if value is None or value < 0 else int(value)

    return BrokerLogDir(
        broker,
        str(result.log_dir),
        error_name(result.error_code) if result.error_code else None,
        known_or_none("total_bytes"),
        known_or_none("usable_bytes"),
        bool(getattr(result, "is_cordoned", False)),
        tuple(
            StoredReplica(
                TopicPartition(str(topic.name), int(p.partition_index)),
                int(p.partition_size),
                bool(p.is_future_key),
                int(p.offset_lag) if p.is_future_key else None,
            )
            for topic in result.topics
            if topics is None or topic.name in topics
            for p in topic.partitions
        ),
    )


def read_supported_features(wire: Wire) -> tuple[dict[str, tuple[int, int]], list[KctlError]]:
    """The levels of each feature that all brokers support, and the errors of those that did not answer.

    Up to version 3 of the answer features are left out that have a level 0.
    """
    nodes = wire.nodes
    answers = wire.send_all([(node, _api_versions()) for node in nodes])
    failures = [answer for answer in answers if isinstance(answer, KctlError)]
    supported = [
        {
            str(feature.name): (int(feature.min_version), int(feature.max_version))
            for feature in answer.supported_features or ()
        }
        for answer in answers
        if not isinstance(answer, KctlError)
    ]
    shared = set.intersection(*map(set, supported)) if supported else set()
    return {
        name: (max(levels[name][0] for levels in supported), min(levels[name][1] for levels in supported))
        for name in sorted(shared)
    }, failures
