"""What is said where brokers lack something: which Kafka has it."""

from __future__ import annotations

import re
from pathlib import Path

from kctl.cluster.versions import SINCE, KafkaVersion, needs, parse_version
from kctl.wire.messages import MESSAGES

WIRE = Path(__file__).parents[3] / "kctl"
# What brokers of 2.4, the oldest that kctl works with, know.
OLDER = {
    "AlterReplicaLogDirs", "ApiVersions", "CreatePartitions", "CreateTopics", "DeleteGroups", "DeleteRecords",
    "CreateAcls", "DeleteAcls", "DeleteTopics", "DescribeAcls", "CreateDelegationToken", "DescribeDelegationToken", "ExpireDelegationToken", "RenewDelegationToken", "DescribeConfigs", "DescribeGroups", "DescribeLogDirs", "ElectLeaders", "Fetch", "FindCoordinator",
    "LeaveGroup", "ListGroups", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "OffsetForLeaderEpoch",
    "WriteTxnMarkers", "AddPartitionsToTxn", "EndTxn", "InitProducerId", "Produce",
}  # fmt: skip


def test_of_every_request_it_is_known_since_when_there_is_one() -> None:
    sources = "\n".join(path.read_text() for path in sorted((WIRE / "wire").rglob("*.py")))
    imported = re.findall(
        r"from (?:kafka\.protocol|kctl\.wire\.messages)[.\w]* import (\([^)]*\)|.*)", sources
    )
    sent = {name for text in imported for name in re.findall(r"(\w+)Request\b", text)} | MESSAGES
    assert len(sent) > 30
    assert sent - OLDER - SINCE.keys() == set()


def test_nothing_is_listed_that_is_never_said() -> None:
    sources = "\n".join(path.read_text() for path in sorted(WIRE.rglob("*.py")) if path.name != "versions.py")
    for what in SINCE:
        kind = what.rpartition(" of ")
        is_said = f"{what}Request" in sources or f"'{what}'" in sources or f'"{what}"' in sources
        assert is_said or f"{kind[0]} of {{kind}}" in sources, what


def test_the_sentence() -> None:
    assert needs("DescribeShareGroupOffsets") == "DescribeShareGroupOffsets needs Kafka 4.1 (KIP-932)"
    assert needs("Metadata") == "Metadata needs Kafka 2.4"
    assert all(parse_version(version) >= KafkaVersion(2, 3) for version, _ in SINCE.values())
