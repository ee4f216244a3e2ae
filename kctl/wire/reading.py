"""A `ClusterState` from a cluster's answers, all of them about a moment not before the reading began.

In KRaft every broker applies the metadata log by itself: the high watermark of the quorum is asked for first, and
the broker that is read from is given the time to come that far. With ZooKeeper the controller is read from, whose
own view is the newest there is; what kctl has just written is waited for by whoever wrote it.

Source: KIP-584 (finalized features epoch), KIP-836 (DescribeQuorum); metadata/src/main/java/org/apache/kafka/metadata/
publisher/FeaturesPublisher.java @ 3.9.0
"""

import time
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import repeat
from typing import Any

from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeQuorumRequest
from kafka.protocol.admin.topics import ListPartitionReassignmentsRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from kctl.cluster.state import (
    Broker,
    ClusterState,
    Controller,
    PartitionState,
    Problem,
    Quorum,
    QuorumMember,
    Replicas,
    Topic,
)
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import NoAnswer, TooOld, Wire, error_name
from kctl.wire.configs import read_configs
from kctl.wire.shortcuts.metadata import Places, PlacesRequest, TopicPlaces, places

NO_ERROR, NOT_CONTROLLER, NOT_AUTHORIZED = 0, 41, 29
SHORT, LONG = 0.01, 0.08  # seconds between two looks at how far a broker is
MOMENT = 0.5  # seconds that another broker has to take a connection
METADATA_TOPIC = "__cluster_metadata"
NEW = partial(tuple.__new__, TopicPartition)
ELR_PAGE = 2000  # partitions; brokers give no more in an answer


def read_cluster(
    wire: Wire,
    topics: Collection[str] | None = None,
    *,
    partition_states: bool = True,
    configs: Collection[str] = (),
    config_keys: Collection[str] | None = None,
    kafka_version: KafkaVersion | None = None,
    is_exact: bool = True,
) -> ClusterState:
    """The cluster now, or where that need not be exact as a broker knows it; see `kctl.cluster.interface.Cluster`."""
    if wire.version_of(DescribeQuorumRequest) is None:
        read_from_controller(wire)
    # The list comes from the controller, so that what is read from a broker afterwards is not older.
    moving = read_reassignments(wire)
    quorum = read_quorum(wire)
    features = await_metadata(wire, quorum if is_exact else None)
    node = wire.node
    metadata = places(wire.read(PlacesRequest(topics=None)))
    brokers = _brokers(wire, metadata)
    names = tuple(sorted(one.name for one in metadata.topics if one.name is not None))
    listed, problems = _listed(wire, metadata, names if topics is None else topics)
    found = {str(one.name): _topic(one, moving) for one in listed if not one.error_code}
    states = _states(listed) if partition_states else {}
    wanted = found if topics is not None else names
    values, config_problems = read_configs(wire, configs, list(wanted), sorted(brokers), config_keys)
    eligible = _eligible(wire, features, found, states)
    if is_exact and wire.node != node:  # it is gone, and the one that answered instead may be behind
        return read_cluster(
            wire,
            topics,
            partition_states=partition_states,
            configs=configs,
            config_keys=config_keys,
            kafka_version=kafka_version,
        )
    return ClusterState(
        cluster_id=metadata.cluster_id,
        kafka_version=kafka_version or KafkaVersion(*(*wire.broker_version, 0)[:2]),
        brokers=brokers,
        controller=_controller(quorum, metadata.controller_id),
        topic_names=names,
        topics=found,
        partition_states=states,
        configs=values,
        problems=(*problems, *config_problems),
        backend="admin",
        quorum=quorum,
        features=features,
        eligible_leaders=eligible,
    )


def _listed(wire: Wire, metadata: Places, wanted: Collection[str]) -> tuple[list[TopicPlaces], list[Problem]]:
    """The topics wanted that are there, and what is wrong with some."""
    answered = {one.name: one for one in metadata.topics if one.name is not None}
    chosen = set(wanted)
    listed = [one for one in answered.values() if one.name in chosen]
    problems = _refused(wire, sorted(chosen - answered.keys()))
    problems += [_problem(str(one.name), one.error_code) for one in listed if one.error_code]
    return listed, problems


# --- reading what is not old --------------------------------------------------------------------------


def read_quorum(wire: Wire) -> Quorum | None:
    """The KRaft quorum, as its leader sees it; None with ZooKeeper, or where it may not be seen."""
    if wire.version_of(DescribeQuorumRequest) is None:
        return None
    partition = DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    answer = wire.read(DescribeQuorumRequest(topics=[topic]))
    if answer.error_code or not answer.topics:
        return None
    (one,) = answer.topics[0].partitions
    if one.error_code:
        return None
    members = [*((m, True) for m in one.current_voters), *((m, False) for m in one.observers)]
    return Quorum(
        leader_id=one.leader_id,
        leader_epoch=one.leader_epoch,
        high_watermark=one.high_watermark,
        members=tuple(
            QuorumMember(m.replica_id, is_voter, m.log_end_offset, _known(m.last_caught_up_timestamp))
            for m, is_voter in members
        ),
    )


def _known(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


def await_metadata(wire: Wire, quorum: Quorum | None) -> dict[str, int]:
    """Wait until the broker that is read from has applied all that the quorum had committed; its features.

    Up to 4.0 brokers learn what is committed with the next record only, half a second later. Where the controller is
    a broker as well it knows already, and is read from. Raises NoAnswer where none comes that far: its answers would
    be old.
    """
    end, pause = time.monotonic() + wire.access.timeout, SHORT
    while True:
        request = ApiVersionsRequest(client_software_name="kctl", client_software_version="1", min_version=3)
        try:
            answer = wire.read(request)
        except TooOld:
            return {}
        features = {str(one.name): int(one.max_version_level) for one in answer.finalized_features or ()}
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
                "what it says would be old; give it longer with --timeout",
            )
        time.sleep(pause)
        pause = min(2 * pause, LONG)


def read_from_controller(wire: Wire) -> None:
    """With ZooKeeper: read from the controller, where it answers."""
    wire.read_from(wire.read(MetadataRequest(topics=[])).controller_id)


def read_reassignments(wire: Wire) -> dict[TopicPartition, tuple[Replicas, Replicas]]:
    """Adding and removing replicas of every partition that is being moved. Raises KctlError."""
    request = ListPartitionReassignmentsRequest(timeout_ms=int(wire.access.timeout * 1000), topics=None)
    try:
        answer = wire.read(request)
    except TooOld:
        return {}
    if answer.error_code == NOT_CONTROLLER:
        wire.refresh_nodes()
        read_from_controller(wire)
        answer = wire.read(ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None))
    if answer.error_code:
        said = answer.error_message or error_name(answer.error_code)
        raise KctlError(f"{wire.location}: reassignments cannot be listed: {said}")
    return {
        TopicPartition(str(topic.name), int(one.partition_index)): (
            tuple(one.adding_replicas),
            tuple(one.removing_replicas),
        )
        for topic in answer.topics
        for one in topic.partitions
    }


# --- parts --------------------------------------------------------------------------------------------


def _brokers(wire: Wire, metadata: Places) -> dict[int, Broker]:
    if wire.version_of(DescribeClusterRequest) is None:
        listed: Iterable[Any] = metadata.brokers
        return {b.node_id: Broker(broker_id=b.node_id, host=b.host, port=b.port, rack=b.rack) for b in listed}
    fenced_too = (wire.version_of(DescribeClusterRequest) or 0) >= 2
    answer = wire.read(DescribeClusterRequest(include_fenced_brokers=fenced_too))
    if answer.error_code:
        said = answer.error_message or error_name(answer.error_code)
        raise KctlError(f"{wire.location}: the cluster cannot be described: {said}")
    return {
        b.broker_id: Broker(
            broker_id=b.broker_id,
            host=b.host,
            port=b.port,
            rack=b.rack,
            is_fenced=bool(fenced_too and b.is_fenced),
        )
        for b in answer.brokers
    }


def _controller(quorum: Quorum | None, controller_id: int) -> Controller | None:
    if quorum is not None:
        leader = quorum.leader_id if quorum.leader_id >= 0 else None
        return Controller(broker_id=leader, epoch=quorum.leader_epoch, is_kraft=True)
    return Controller(broker_id=controller_id, epoch=None) if controller_id >= 0 else None


def _topic(one: TopicPlaces, moving: Mapping[TopicPartition, tuple[Replicas, Replicas]]) -> Topic:
    name = str(one.name)
    adding: dict[int, Replicas] = {}
    removing: dict[int, Replicas] = {}
    for number, replicas in one.partitions.items() if moving else ():
        found = moving.get(TopicPartition(name, number))
        if found is not None and set(found[0]) | set(found[1]) <= set(replicas):  # else it has just ended
            adding[number], removing[number] = found
    return Topic(
        name=name,
        partitions=one.partitions,
        adding_replicas=adding,
        removing_replicas=removing,
        topic_id=one.topic_id,
    )


def _states(topics: Iterable[TopicPlaces]) -> dict[TopicPartition, PartitionState]:
    found: dict[TopicPartition, PartitionState] = {}
    for one in topics:
        names = map(NEW, zip(repeat(one.name), one.states, strict=False))
        found.update(zip(names, one.states.values(), strict=True))
    return found


def _refused(wire: Wire, names: list[str]) -> list[Problem]:
    """Topics that were asked for and not listed: those that may not be seen, apart from those that are not there."""
    if not names:
        return []
    wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    answer = wire.read(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
    return [_problem(str(t.name), t.error_code) for t in answer.topics if t.error_code == NOT_AUTHORIZED]


def _problem(topic: str, code: int) -> Problem:
    return Problem(f"topic {topic}", "not authorized" if code == NOT_AUTHORIZED else error_name(code))


def _eligible(
    wire: Wire,
    features: Mapping[str, int],
    topics: Mapping[str, Topic],
    states: Mapping[TopicPartition, PartitionState],
) -> dict[TopicPartition, Replicas]:
    """Eligible leader replicas of the partitions whose ISR has not all replicas (KIP-966)."""
    from kafka.protocol.admin.topics import DescribeTopicPartitionsRequest

    from kctl.cluster.kraft_prediction import ELR_FEATURE

    if not features.get(ELR_FEATURE):
        return {}
    names = sorted(
        {
            tp.topic
            for tp, state in states.items()
            if tp.topic in topics and len(state.isr) < len(topics[tp.topic].partitions[tp.partition])
        }
    )
    found: dict[TopicPartition, Replicas] = {}
    if not names:
        return found
    cursor: Any = None
    while True:
        asked = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names]
        request = DescribeTopicPartitionsRequest(
            topics=asked, response_partition_limit=ELR_PAGE, cursor=cursor
        )
        answer = wire.read(request)
        for topic in answer.topics:
            for p in topic.partitions:
                if p.eligible_leader_replicas:
                    tp = TopicPartition(str(topic.name), p.partition_index)
                    found[tp] = tuple(p.eligible_leader_replicas)
        if answer.next_cursor is None:
            return found
        at = answer.next_cursor
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=at.topic_name, partition_index=at.partition_index
        )
        names = [name for name in names if name >= at.topic_name]
