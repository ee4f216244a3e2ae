"""The Kafka version of a cluster, as far as visible, and the requests that versions know.

ZooKeeper never names the version. What is found is a lower bound: the forms of znodes that brokers have
written and the paths that they made at start-up. `--kafka-version` pins it where the bound is too low.
"""

import re
from typing import NamedTuple

from kctl.errors import BadValue


class KafkaVersion(NamedTuple):
    """A Kafka release as far as it matters: 0.8.2, 0.10.1, 1.1, 2.8, 3.9; compares in order."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}" if self.major == 0 else f"{self.major}.{self.minor}"


def parse_version(text: str) -> KafkaVersion:
    """The version that `2.8`, `0.10.2.1` or `3.9.1` stands for; from 1.0 the third number is ignored."""
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9}){1,3}", text):
        raise BadValue(f"{text!r} is not a Kafka version", "write it as 0.10.2 or 2.8")
    parts = [int(part) for part in text.split(".")]
    patch = parts[2] if parts[0] == 0 and len(parts) > 2 else 0
    return KafkaVersion(parts[0], parts[1], patch)


# Requests that not all versions from 2.4 on know: the first version that answers them without a setting for unstable
# requests, and the KIP.
SINCE = {
    "IncrementalAlterConfigs": ("2.3", 339),
    "AlterPartitionReassignments": ("2.4", 455),
    "ListPartitionReassignments": ("2.4", 455),
    "OffsetDelete": ("2.4", 496),
    "configuration of broker-loggers": ("2.4", 412),
    "AlterClientQuotas": ("2.6", 546),
    "DescribeClientQuotas": ("2.6", 546),
    "reading the epochs of replicas": ("2.7", 595),
    "AlterUserScramCredentials": ("2.7", 554),
    "DescribeUserScramCredentials": ("2.7", 554),
    "DescribeCluster": ("2.8", 700),
    "DescribeProducers": ("2.8", 664),
    "DescribeQuorum": ("3.0", 595),
    "FetchSnapshot": ("3.0", 630),
    "DescribeTransactions": ("3.0", 664),
    "ListTransactions": ("3.0", 664),
    "creating tokens for others": ("3.3", 373),
    "UnregisterBroker": ("3.3", 631),
    "UpdateFeatures": ("3.3", 778),
    "finding where the local part of a log begins": ("3.5", 405),
    "configuration of client-metrics": ("3.7", 714),
    "listing configurations of client-metrics": ("3.7", 714),
    "ConsumerGroupDescribe": ("3.8", 848),
    "DescribeTopicPartitions": ("3.8", 966),
    "AddRaftVoter": ("3.9", 853),
    "RemoveRaftVoter": ("3.9", 853),
    "changing voters": ("3.9", 853),
    "asking the active controller directly": ("3.9", 853),
    "configuration of groups": ("4.0", 848),
    "ShareGroupDescribe": ("4.1", 932),
    "DescribeShareGroupOffsets": ("4.1", 932),
    "DeleteShareGroupOffsets": ("4.1", 932),
    "ListConfigResources": ("4.1", 1142),
    "listing configurations of groups": ("4.1", 1142),
    "AlterShareGroupOffsets": ("4.2", 932),
    "StreamsGroupDescribe": ("4.2", 1071),
}


def needs(request: str) -> str:
    """The clause that a request needs a newer Kafka; all supported versions know requests that are not in the table."""
    version, kip = SINCE.get(request, ("2.4", None))
    return f"{request} needs Kafka {version}" + (f" (KIP-{kip})" if kip else "")


V0_8_2 = KafkaVersion(0, 8, 2)
V0_9 = KafkaVersion(0, 9)
V0_10 = KafkaVersion(0, 10)
V0_10_1 = KafkaVersion(0, 10, 1)
V0_10_2 = KafkaVersion(0, 10, 2)
V0_11 = KafkaVersion(0, 11)
V1_0 = KafkaVersion(1, 0)
V1_1 = KafkaVersion(1, 1)
V2_0 = KafkaVersion(2, 0)
V2_1 = KafkaVersion(2, 1)
V2_3 = KafkaVersion(2, 3)
V2_4 = KafkaVersion(2, 4)
V2_7 = KafkaVersion(2, 7)
V2_8 = KafkaVersion(2, 8)
V3_0 = KafkaVersion(3, 0)
V3_4 = KafkaVersion(3, 4)
V3_7 = KafkaVersion(3, 7)
V3_9 = KafkaVersion(3, 9)
V4_0 = KafkaVersion(4, 0)
FIRST_UNKNOWN = KafkaVersion(4, 4)
"""The first version whose rules kctl does not know."""
