"""Send writes as requests to the broker or controller that carries them out, and check each item of the answers.

Source: clients/src/main/resources/common/message/*.json @ 4.3.0; KIP-339 (incremental configs), KIP-455
(reassignments), KIP-460 (elections), KIP-546 (quotas)
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

from kctl.cluster.intent import Write
from kctl.cluster.interface import Cluster, Conflict
from kctl.cluster.requests import needs
from kctl.cluster.rights import Right, grant, missing
from kctl.errors import BadValue, KctlError, Refused, RefusedItem
from kctl.model import TopicPartition
from kctl.wire.adapter import SERVER_ROOM, BrokerError, NoAnswer, Wire, error_name, parse_id
from kctl.wire.answers.configs import AT_THE_BROKER, KINDS
from kctl.wire.protocol.messages import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from kctl.wire.reading import DEFAULT, QUOTA_TYPES
from kctl.wire.writes.planning import name_of

OPERATIONS = {"SET": 0, "DELETE": 1, "APPEND": 2, "SUBTRACT": 3}
ELECTIONS = {"preferred": 0, "unclean": 1}
NOT_CONTROLLER, REQUEST_TIMED_OUT, ELECTION_NOT_NEEDED = 41, 7, 84
REPLICA_NOT_AVAILABLE = 9
QUOTA_EXCEEDED = 89  # of changes of topics and partitions (KIP-599)
SENT_AGAIN = {NOT_CONTROLLER, QUOTA_EXCEEDED}
# Seconds to wait for a controller or such a quota, beyond the throttle time of each answer.
PATIENCE, PAUSE = 60.0, 0.1
# Meaning of an item's error: a bad name or value (exit status 2), could not be done (3), somebody was faster (4).
BAD_VALUES = frozenset({17, 37, 38, 39, 40, 42})
COULD_NOT = frozenset({3, 29, 30, 31, 58, 69, 100, 102, 127})
CONFLICTS = frozenset({85})


class RequestItem(NamedTuple):
    """The result of one item of a request."""

    what: str
    error_code: int
    error_message: str | None
    topic: str | None = None
    partition: int | None = None
    right: Right | None = None  # that is missing
    principal: str = ""

    def refused(self, request: str) -> RefusedItem:
        """The item as callers see it."""
        return RefusedItem(
            request=request,
            what=self.what,
            error_code=self.error_code,
            error=error_name(self.error_code),
            reason=missing(self.right, self.principal) if self.right else self.error_message or None,
            topic=self.topic,
            partition=self.partition,
        )

    @property
    def reason(self) -> str:
        """Why it was not done, with the broker's message."""
        name = error_name(self.error_code)
        if self.right is not None:
            return f"{self.what}: {missing(self.right, self.principal)}"
        if self.error_code == QUOTA_EXCEEDED:
            return f"{self.what}: the quota of changes (controller_mutation_rate) is used up ({name})"
        message = (self.error_message or "").strip().rstrip(".")
        return f"{self.what}: {message} ({name})" if message else f"{self.what}: {name}"

    def error(self, done: str = "nothing was written") -> KctlError:
        """The exception for the item."""
        text = f"{self.reason}; {done}"
        if self.right is not None:
            return KctlError(text, grant([self.right], self.principal))
        if self.error_code in BAD_VALUES:
            return BadValue(text, "give what the broker asks for")
        if self.error_code in COULD_NOT:
            return BrokerError(text)
        if self.error_code in CONFLICTS:
            return Conflict(text)
        return Refused(text, "the controller gave this reason; its controller.log may have more")


Sender = Callable[[Wire, Mapping[str, Any], bool], Iterator[RequestItem]]


def can_be_validated(write: Write) -> bool:
    """Whether the controller can validate the request beforehand."""
    return name_of(write) in (
        "CreateTopics",
        "CreatePartitions",
        "IncrementalAlterConfigs",
        "UpdateFeatures",
    )


def milliseconds(wire: Wire) -> int:
    """How long a broker may take."""
    return int(wire.access.timeout * 1000)


def ask(wire: Wire, request: Any, node: int | None = None) -> Any:
    """The answer to a request that changes something."""
    # A request that waits in the broker until its own time is over must not be lost by the client before that.
    return wire.send(request, node, timeout=wire.access.timeout + SERVER_ROOM)


def ask_leader(wire: Wire, request: Any) -> Any:
    """The answer of the active controller, at its own listener (KIP-919): it accepts configurations of dead brokers."""
    from kctl.wire.quorum import describe_quorum, read_quorum

    quorum = read_quorum(wire)
    leader = quorum.member(quorum.leader_id) if quorum else None
    for at in leader.endpoints if leader else ():
        try:  # before anything is sent that changes something
            wire.send_to(at.host, at.port, describe_quorum())
        except NoAnswer as error:
            raise KctlError(
                f"the active controller takes no request of this connection at {at.host}:{at.port} (listener "
                f"{at.listener}): {error.message.rpartition(': ')[2]}; nothing was written",
                "brokers do not pass this request on, and controllers may want other credentials or TLS than brokers: use "
                "settings that both accept",
            ) from None
        return wire.send_to(at.host, at.port, request)
    raise KctlError(
        f"the listener of the active controller is unknown: {needs('asking the active controller directly')}",
        "upgrade the controllers, or name them with --bootstrap-server",
    )


def _create_topics(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    kind = CreateTopicsRequest.CreatableTopic
    topic = kind(
        name=after["topic"],
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            kind.CreatableReplicaAssignment(partition_index=int(p), broker_ids=ids)
            for p, ids in after["assignments"].items()
        ],
        configs=[kind.CreatableTopicConfig(name=key, value=value) for key, value in after["configs"].items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=milliseconds(wire), validate_only=validate_only)
    for result in ask(wire, request).topics:
        yield RequestItem(f"topic {result.name}", result.error_code, result.error_message, str(result.name))


def _delete_topics(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    version = wire.version_of(DeleteTopicsRequest) or 0
    name = after["topic"]
    if version >= 6:
        id = after["topic_id"]
        state = (
            DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=parse_id(id))
            if id
            else DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=uuid.UUID(int=0))
        )
        request = DeleteTopicsRequest(topics=[state], timeout_ms=milliseconds(wire), min_version=6)
    else:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=milliseconds(wire), max_version=5)
    for response in ask(wire, request).responses:
        yield RequestItem(
            f"topic {name}", response.error_code, getattr(response, "error_message", None), name
        )


def _create_partitions(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    topic = kind(
        name=after["topic"],
        count=after["count"],
        assignments=[kind.CreatePartitionsAssignment(broker_ids=ids) for ids in after["assignments"]],
    )
    request = CreatePartitionsRequest(
        topics=[topic], timeout_ms=milliseconds(wire), validate_only=validate_only
    )
    for result in ask(wire, request).results:
        yield RequestItem(f"topic {result.name}", result.error_code, result.error_message, str(result.name))


def _alter_configs(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    name, is_topic = after["entity_name"], after["entity_type"] == "topics"
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    resource = kind(
        resource_type=KINDS[after["entity_type"]].resource,
        resource_name="" if name == DEFAULT else name,
        configs=[
            kind.AlterableConfig(
                name=config["key"],
                config_operation=OPERATIONS[config["operation"]],
                value=config.get("value"),
            )
            for config in after["configs"]
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    node = int(name) if after["entity_type"] in AT_THE_BROKER and name != DEFAULT else None
    answer = ask_leader(wire, request) if after.get("at_controller") else ask(wire, request, node)
    for result in answer.responses:
        what = f"{after['entity_type'].removesuffix('s')} {name}"
        yield RequestItem(what, result.error_code, result.error_message, name if is_topic else None)


def _alter_quotas(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    kind = AlterClientQuotasRequest.EntryData
    entry = kind(
        entity=[
            kind.EntityData(entity_type=type, entity_name=name)
            for type, name in _components(after["entity_type"], after["entity_name"])
        ],
        ops=[
            kind.OpData(
                key=config["key"],
                value=float(config.get("value") or 0),
                remove=config["operation"] == "DELETE",
            )
            for config in after["configs"]
        ],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    for result in ask(wire, request).entries:
        yield RequestItem(
            f"{after['entity_type']} {after['entity_name']}", result.error_code, result.error_message
        )


def _components(kind: str, name: str) -> list[tuple[str, str | None]]:
    user, separator, client = name.partition("/clients/")
    parts = [("user", user), ("client-id", client)] if separator else [(QUOTA_TYPES[kind], name)]
    # Brokers encode names themselves.
    return [(type, None if part == DEFAULT else unquote(part)) for type, part in parts]


def _by_topic(rows: list[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    rows_by_topic: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        rows_by_topic.setdefault(row["topic"], []).append(row)
    return rows_by_topic


def _alter_reassignments(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    kind = AlterPartitionReassignmentsRequest.ReassignableTopic
    topics = [
        kind(
            name=topic,
            partitions=[
                kind.ReassignablePartition(partition_index=row["partition"], replicas=row["replicas"])
                for row in rows
            ],
        )
        for topic, rows in _by_topic(after["partitions"]).items()
    ]
    request = AlterPartitionReassignmentsRequest(timeout_ms=milliseconds(wire), topics=topics)
    if after.get("keep_factor") and (wire.version_of(AlterPartitionReassignmentsRequest) or 0) >= 1:
        request.allow_replication_factor_change, request.min_version = False, 1
    answer = ask(wire, request)
    if answer.error_code:
        yield RequestItem("the reassignment", answer.error_code, answer.error_message)
    for topic in answer.responses:
        for partition in topic.partitions:
            tp = TopicPartition(str(topic.name), int(partition.partition_index))
            yield RequestItem(str(tp), partition.error_code, partition.error_message, *tp)


def _alter_replica_log_dirs(
    wire: Wire, after: Mapping[str, Any], validate_only: bool
) -> Iterator[RequestItem]:
    from kctl.wire.protocol.messages import AlterReplicaLogDirsRequest

    kind = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    by_path: dict[str, list[Mapping[str, Any]]] = {}
    for row in after["partitions"]:
        by_path.setdefault(row["log_dir"], []).append(row)
    dirs = [
        kind(
            path=path,
            topics=[
                kind.AlterReplicaLogDirTopic(name=topic, partitions=[row["partition"] for row in rows])
                for topic, rows in _by_topic(of_path).items()
            ],
        )
        for path, of_path in by_path.items()
    ]
    # A broker remembers the log directory of a future replica, and answers that it does not have the replica.
    expected = REPLICA_NOT_AVAILABLE if after.get("is_to_come") else 0
    for topic in ask(wire, AlterReplicaLogDirsRequest(dirs=dirs), after["broker_id"]).results:
        for partition in topic.partitions:
            tp = TopicPartition(str(topic.topic_name), int(partition.partition_index))
            yield RequestItem(
                str(tp), 0 if partition.error_code == expected else partition.error_code, None, *tp
            )


def _elect_leaders(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    topics = [
        ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[row["partition"] for row in rows])
        for topic, rows in _by_topic(after["partitions"]).items()
    ]
    request = ElectLeadersRequest(
        election_type=ELECTIONS[after["election"]], topic_partitions=topics, timeout_ms=milliseconds(wire)
    )
    answer = ask(wire, request)
    if answer.error_code:
        yield RequestItem("the election", answer.error_code, None)
    for topic in answer.replica_election_results:
        for result in topic.partition_result:
            if result.error_code != ELECTION_NOT_NEEDED:
                tp = TopicPartition(str(topic.topic), int(result.partition_id))
                yield RequestItem(str(tp), result.error_code, result.error_message, *tp)


SENDERS: dict[str, Sender] = {
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "CreatePartitions": _create_partitions,
    "IncrementalAlterConfigs": _alter_configs,
    "AlterClientQuotas": _alter_quotas,
    "AlterPartitionReassignments": _alter_reassignments,
    "AlterReplicaLogDirs": _alter_replica_log_dirs,
    "ElectLeaders": _elect_leaders,
}


Quantifier = Callable[[Iterable[bool]], bool]


class OwnRequest(NamedTuple):
    """A request whose outcome is not in the metadata: brokers have to be asked."""

    send: Callable[[Wire, Mapping[str, Any]], Iterator[RequestItem]]
    # Of `all` or `any` of its items.
    is_done: Callable[[Wire, Mapping[str, Any], Quantifier], bool]
    # Raises Conflict if what the request was computed from (`before`) has changed.
    refuse_changed: Callable[[Wire, Mapping[str, Any], Mapping[str, Any]], None]


class WireCluster(Cluster, Protocol):
    """A cluster that is written to over its connections."""

    wire: Wire
    has_written: bool  # something that was not read back yet
