"""Which right is missing where a broker refuses a request, and for whom.

Source: core/src/main/scala/kafka/server/KafkaApis.scala, ControllerApis.scala @ 4.1.0
"""

from kctl.cluster.rights import CLUSTER, RESOURCES, MissingRight, Right, missing
from kctl.cluster.state import Problem
from kctl.errors import KctlError
from kctl.wire.adapter import BrokerError, Wire, error_name

# The operation that a request needs, by Kafka's name of it; where it differs by resource, by both.
OPERATIONS = {
    "AddPartitionsToTxn": "Write",
    "AddRaftVoter": "Alter",
    "AlterClientQuotas": "AlterConfigs",
    "AlterPartitionReassignments": "Alter",
    "AlterReplicaLogDirs": "Alter",
    "AlterShareGroupOffsets": "Read",
    "AlterUserScramCredentials": "Alter",
    "ConsumerGroupDescribe": "Describe",
    "CreateAcls": "Alter",
    "CreatePartitions": "Alter",
    "CreateTopics": "Create",
    "DeleteAcls": "Alter",
    "DeleteGroups": "Delete",
    "DeleteRecords": "Delete",
    "DeleteShareGroupOffsets": "Delete",
    "DeleteShareGroupOffsets Topic": "Read",
    "DeleteTopics": "Delete",
    "DescribeAcls": "Describe",
    "DescribeClientQuotas": "DescribeConfigs",
    "DescribeDelegationToken": "Describe",
    "DescribeConfigs": "DescribeConfigs",
    "DescribeGroups": "Describe",
    "DescribeLogDirs": "Describe",
    "DescribeProducers": "Read",
    "DescribeQuorum": "Describe",
    "DescribeShareGroupOffsets": "Describe",
    "DescribeTransactions": "Describe",
    "DescribeUserScramCredentials": "Describe",
    "ElectLeaders": "Alter",
    "EndTxn": "Write",
    "Fetch": "Read",
    "FetchSnapshot": "ClusterAction",
    "FindCoordinator": "Describe",
    "IncrementalAlterConfigs": "AlterConfigs",
    "InitProducerId": "Write",
    "InitProducerId Cluster": "IdempotentWrite",
    "LeaveGroup": "Read",
    "ListConfigResources": "DescribeConfigs",
    "ListGroups": "Describe",
    "ListOffsets": "Describe",
    "ListPartitionReassignments": "Describe",
    "ListTransactions": "Describe",
    "Metadata": "Describe",
    "OffsetCommit": "Read",
    "OffsetDelete": "Delete",
    "OffsetDelete Topic": "Read",
    "OffsetFetch": "Describe",
    "OffsetForLeaderEpoch": "Describe",
    "Produce": "Write",
    "RemoveRaftVoter": "Alter",
    "UnregisterBroker": "Alter",
    "UpdateFeatures": "Alter",
    "WriteTxnMarkers": "ClusterAction",
}


def right_for(request: str, code: int, name: str = "") -> Right | None:
    """The right that a request lacks by the error of its answer; None if the error is another one.

    `name` is that of the topic, group or transactional id.
    """
    if (resource := RESOURCES.get(code)) is None:
        return None
    operation = OPERATIONS.get(f"{request} {resource}") or OPERATIONS.get(request)
    if operation is None:
        return None
    return Right(operation, resource, "" if resource == CLUSTER else name)


def failure(
    wire: Wire, place: str, request: str, code: int, name: str = "", message: str | None = ""
) -> KctlError:
    """The error of an answer: the missing right, or the broker's own words about a place."""
    if (right := right_for(request, code, name)) is not None:
        return MissingRight(right, wire.principal, place)
    return BrokerError(f"{place}: {(message or '').rstrip('.') or error_name(code)}")


def problem(wire: Wire, place: str, request: str, code: int, name: str = "") -> Problem:
    """The same for a part of a state that was not read."""
    if (right := right_for(request, code, name)) is not None:
        return denied(wire, place, right)
    return Problem(place, error_name(code))


def denied(wire: Wire, place: str, right: Right) -> Problem:
    """A part of a state that this user may not read."""
    return Problem(place, missing(right, wire.principal), right=right, principal=wire.principal)
