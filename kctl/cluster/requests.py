"""The requests of Kafka's protocol that kctl sends: the right that each needs, since when brokers know it, who answers it.

Source: core/src/main/scala/kafka/server/KafkaApis.scala, ControllerApis.scala @ 4.1.0;
clients/src/main/resources/common/message/*.json @ 4.3.0
"""

from collections.abc import Mapping
from typing import NamedTuple


class RequestKind(NamedTuple):
    """A request."""

    operation: str = ""
    """The operation that it needs, by Kafka's name of it; "" where it needs none."""
    since: str = "2.4"
    """The first version that answers it without a setting for unstable requests; all supported ones know those of 2.4."""
    kip: int | None = None
    is_forwarded: bool = False
    """Whether brokers of KRaft clusters send it on to the controller: who of the two is silent cannot be told."""
    operations: Mapping[str, str] = {}
    """Kinds of resource on which it needs another operation."""


REQUESTS = {
    "AddPartitionsToTxn": RequestKind("Write"),
    "AddRaftVoter": RequestKind("Alter", since="3.9", kip=853, is_forwarded=True),
    "AlterClientQuotas": RequestKind("AlterConfigs", since="2.6", kip=546, is_forwarded=True),
    "AlterPartitionReassignments": RequestKind("Alter", since="2.4", kip=455, is_forwarded=True),
    "AlterReplicaLogDirs": RequestKind("Alter"),
    "AlterShareGroupOffsets": RequestKind("Read", since="4.2", kip=932),
    "AlterUserScramCredentials": RequestKind("Alter", since="2.7", kip=554),
    "ConsumerGroupDescribe": RequestKind("Describe", since="3.8", kip=848),
    "CreateAcls": RequestKind("Alter"),
    "CreateDelegationToken": RequestKind(is_forwarded=True),
    "CreatePartitions": RequestKind("Alter", is_forwarded=True),
    "CreateTopics": RequestKind("Create", is_forwarded=True),
    "DeleteAcls": RequestKind("Alter"),
    "DeleteGroups": RequestKind("Delete"),
    "DeleteRecords": RequestKind("Delete"),
    "DeleteShareGroupOffsets": RequestKind("Delete", since="4.1", kip=932, operations={"Topic": "Read"}),
    "DeleteTopics": RequestKind("Delete", is_forwarded=True),
    "DescribeAcls": RequestKind("Describe"),
    "DescribeClientQuotas": RequestKind("DescribeConfigs", since="2.6", kip=546),
    "DescribeCluster": RequestKind(since="2.8", kip=700),
    "DescribeConfigs": RequestKind("DescribeConfigs"),
    "DescribeDelegationToken": RequestKind("Describe"),
    "DescribeGroups": RequestKind("Describe"),
    "DescribeLogDirs": RequestKind("Describe"),
    "DescribeProducers": RequestKind("Read", since="2.8", kip=664),
    "DescribeQuorum": RequestKind("Describe", since="3.0", kip=595, is_forwarded=True),
    "DescribeShareGroupOffsets": RequestKind("Describe", since="4.1", kip=932),
    "DescribeTopicPartitions": RequestKind(since="3.8", kip=966),
    "DescribeTransactions": RequestKind("Describe", since="3.0", kip=664),
    "DescribeUserScramCredentials": RequestKind("Describe", since="2.7", kip=554),
    "ElectLeaders": RequestKind("Alter", is_forwarded=True),
    "EndTxn": RequestKind("Write"),
    "ExpireDelegationToken": RequestKind(is_forwarded=True),
    "Fetch": RequestKind("Read"),
    "FetchSnapshot": RequestKind("ClusterAction", since="3.0", kip=630),
    "FindCoordinator": RequestKind("Describe"),
    "IncrementalAlterConfigs": RequestKind("AlterConfigs", since="2.3", kip=339, is_forwarded=True),
    "InitProducerId": RequestKind("Write", operations={"Cluster": "IdempotentWrite"}),
    "LeaveGroup": RequestKind("Read"),
    "ListConfigResources": RequestKind("DescribeConfigs", since="4.1", kip=1142),
    "ListGroups": RequestKind("Describe"),
    "ListOffsets": RequestKind("Describe"),
    "ListPartitionReassignments": RequestKind("Describe", since="2.4", kip=455, is_forwarded=True),
    "ListTransactions": RequestKind("Describe", since="3.0", kip=664),
    "Metadata": RequestKind("Describe"),
    "OffsetCommit": RequestKind("Read"),
    "OffsetDelete": RequestKind("Delete", since="2.4", kip=496, operations={"Topic": "Read"}),
    "OffsetFetch": RequestKind("Describe"),
    "OffsetForLeaderEpoch": RequestKind("Describe"),
    "Produce": RequestKind("Write"),
    "RemoveRaftVoter": RequestKind("Alter", since="3.9", kip=853, is_forwarded=True),
    "RenewDelegationToken": RequestKind(is_forwarded=True),
    "ShareGroupDescribe": RequestKind(since="4.1", kip=932),
    "StreamsGroupDescribe": RequestKind(since="4.2", kip=1071),
    "UnregisterBroker": RequestKind("Alter", since="3.3", kip=631, is_forwarded=True),
    "UpdateFeatures": RequestKind("Alter", since="3.3", kip=778, is_forwarded=True),
    "WriteTxnMarkers": RequestKind("ClusterAction"),
}
# What else came with 2.4 or later.
SINCE = {
    "configuration of broker-loggers": ("2.4", 412),
    "reading the epochs of replicas": ("2.7", 595),
    "creating tokens for others": ("3.3", 373),
    "finding where the local part of a log begins": ("3.5", 405),
    "configuration of client-metrics": ("3.7", 714),
    "listing configurations of client-metrics": ("3.7", 714),
    "changing voters": ("3.9", 853),
    "asking the active controller directly": ("3.9", 853),
    "configuration of groups": ("4.0", 848),
    "listing configurations of groups": ("4.1", 1142),
}


def needs(what: str) -> str:
    """The clause that a request, or something else in `SINCE`, needs a newer Kafka."""
    version, kip = since(what)
    return f"{what} needs Kafka {version}" + (f" (KIP-{kip})" if kip else "")


def since(what: str) -> tuple[str, int | None]:
    """The first version with a request or something else, and the KIP."""
    request = REQUESTS.get(what, RequestKind())
    return SINCE.get(what, (request.since, request.kip))
