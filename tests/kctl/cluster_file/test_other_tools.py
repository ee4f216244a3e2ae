"""Files of topicctl and Strimzi, and what kafka-topics describes, become files of kctl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kctl.cluster_file.loading import load
from kctl.cluster_file.other_tools import OF_BROKERS, read_other
from kctl.cluster_file.writing import document_of, yaml_lines
from kctl.errors import KctlError
from tests.conftest import kctl

TOPICCTL = """
meta:
  name: page-views
  cluster: my-cluster
  environment: stage
  region: us-west-2
  description: |
    Views of pages.
spec:
  partitions: 9
  replicationFactor: 2
  retentionMinutes: 360
  placement:
    strategy: in-rack
    picker: randomized
  settings:
    cleanup.policy: delete
    max.message.bytes: 5542880
    follower.replication.throttled.replicas: ["4:4", "5:5"]
"""
STRIMZI = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata:
  name: my-topic
  labels: {strimzi.io/cluster: my-cluster}
spec:
  topicName: My_Topic
  partitions: 3
  replicas: 2
  config:
    retention.ms: 7200000
    segment.bytes: 1073741824
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: my-user}
spec:
  authentication: {type: scram-sha-512}
  authorization:
    type: simple
    acls:
      - resource: {type: topic, name: my-, patternType: prefix}
        operations: [Describe, Read, DescribeConfigs]
        host: "*"
      - resource: {type: cluster}
        operation: IdempotentWrite
      - resource: {type: transactionalId, name: tx}
        operations: [Write]
        type: deny
        host: 10.0.0.1
  quotas: {producerByteRate: 1048576, requestPercentage: 55}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: of-tls}
spec:
  authentication: {type: tls}
  authorization:
    type: simple
    acls: [{resource: {type: group, name: g, patternType: literal}, operations: [Read]}]
---
apiVersion: v1
kind: Secret
metadata: {name: my-user}
"""
DESCRIBED = """\
Topic: orders\tTopicId: B57WEb3hTLWViMpfhRvCYA\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: cleanup.policy=compact,delete,retention.ms=5
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2
\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,3\tIsr: 2,3
Topic:plain\tPartitionCount:1\tReplicationFactor:1\tConfigs:
\tTopic: plain\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1
Topic: __consumer_offsets\tPartitionCount: 50\tReplicationFactor: 3\tConfigs: cleanup.policy=compact
"""
WANTED: dict[str, tuple[str, dict[str, Any], str]] = {
    "topicctl": (
        TOPICCTL,
        {
            "topics": {
                "page-views": {
                    "partitions": 9,
                    "replication_factor": 2,
                    "configs": {
                        "cleanup.policy": "delete",
                        "follower.replication.throttled.replicas": "4:4,5:5",
                        "max.message.bytes": "5542880",
                        "retention.ms": "21600000",
                    },
                }
            }
        },
        "the placement in-rack is not taken over",
    ),
    "strimzi": (
        STRIMZI,
        {
            "users": {"my-user": {"mechanisms": {"SCRAM-SHA-512": 4096}}},
            "topics": {
                "My_Topic": {
                    "partitions": 3,
                    "replication_factor": 2,
                    "configs": {"retention.ms": "7200000", "segment.bytes": "1073741824"},
                }
            },
            "quotas": [{"user": "my-user", "producer_byte_rate": 1048576, "request_percentage": 55}],
            "acls": [
                {"principals": "User:CN=of-tls", "group": "g", "operations": ["read"]},
                {"principals": "User:my-user", "cluster": True, "operations": ["idempotent_write"]},
                {
                    "principals": "User:my-user",
                    "topic": "my-",
                    "pattern": "prefixed",
                    "operations": ["describe", "describe_configs", "read"],
                },
                {
                    "principals": "User:my-user",
                    "transactional_id": "tx",
                    "operations": ["write"],
                    "hosts": "10.0.0.1",
                    "permission": "deny",
                },
            ],
        },
        "Secret is not taken over",
    ),
    "kafka-topics": (
        DESCRIBED,
        {
            "topics": {
                "orders": {
                    "partitions": 2,
                    "replication_factor": 2,
                    "configs": {"cleanup.policy": "compact,delete", "retention.ms": "5"},
                },
                "plain": {"partitions": 1, "replication_factor": 1},
            }
        },
        "__consumer_offsets is Kafka's own topic, and left out",
    ),
}


@pytest.mark.parametrize("tool", WANTED)
def test_what_is_taken_over(tool: str, tmp_path: Path) -> None:
    text, wanted, remark = WANTED[tool]
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "one.yaml").write_text(text)
    (folder / "README.txt").write_text("notes\n")
    taken = read_other(tool, folder)
    document = document_of(taken.resources)
    assert document == {"kctl": 1, **wanted}
    assert any(remark in text for text in taken.remarks), taken.remarks
    out = tmp_path / "cluster.yaml"
    ran = kctl("export", "--from", tool, folder, "--to", out)
    assert ran.status == 0 and remark in ran.err
    assert yaml.safe_load(out.read_text())["topics"].keys() == wanted["topics"].keys()
    assert out.read_text().splitlines()[-1] == [*yaml_lines(document)][-1]
    assert load([out], {}, {}).resources.keys() == {resource.key for resource in taken.resources}


def test_what_kafka_topics_describes_of_brokers_and_of_uneven_topics_is_said(tmp_path: Path) -> None:
    path = tmp_path / "described.txt"
    path.write_text(DESCRIBED.replace("Replicas: 2,3\t", "Replicas: 2,3,1\t"))
    taken = read_other("kafka-topics", path)
    (orders,) = (resource for resource in taken.resources if resource.name == "orders")
    assert orders.fields["replicas"] == "1:2,2:3:1"
    assert document_of([orders])["topics"]["orders"]["replicas"] == ["1:2", "2:3:1"]  # type: ignore[index, call-overload]
    assert f"{path}:1: replication_factor 2, but 3 of partition 1: all replicas are listed" in taken.remarks
    assert f"{path}: {OF_BROKERS}" in taken.remarks
    moving = "Replicas: 2,3,1\tIsr: 2,3\tAdding Replicas: 1\tRemoving Replicas: 3"
    path.write_text(DESCRIBED.replace("Replicas: 2,3\tIsr: 2,3", moving))
    assert "replicas" not in read_other("kafka-topics", path).resources[0].fields
    path.write_text("".join(DESCRIBED.splitlines(keepends=True)[3:5]))
    assert read_other("kafka-topics", path).remarks == []


BAD = (
    ("topicctl", "meta: {}\nspec: {partitions: 1}\n", 1, "the topic has no meta.name"),
    ("topicctl", "meta: {name: a}\nspec: {partitions: x}\n", 2, "partitions is 'x'"),
    ("topicctl", "meta: {name: 'a b'}\nspec: {partitions: 1}\n", 1, "'a b' is not a topic name"),
    ("strimzi", "kind: KafkaTopic\nspec: {partitions: 1}\n", 1, "the KafkaTopic has no metadata.name"),
    ("strimzi", "kind: KafkaTopic\nmetadata: {name: a}\nspec: {replicas: 0}\n", 3, "replicas is '0'"),
    ("kafka-topics", "Topic: a\tPartitionCount: 0\tReplicationFactor: 1\tConfigs:\n", 1, "partitions is '0'"),
    ("kafka-topics", "\nTopic: a\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: x\n", 2, "'x' is not KEY=VALUE"),
)  # fmt: skip


@pytest.mark.parametrize(("tool", "text", "line", "what"), BAD)
def test_what_is_wrong_has_its_line(tool: str, text: str, line: int, what: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(KctlError) as raised:
        read_other(tool, path)
    assert raised.value.message.startswith(f"{path}:{line}: {what}"), raised.value.message


def test_nothing_of_the_tool_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Secret\n")
    for tool in WANTED:
        with pytest.raises(KctlError, match=f"nothing of {tool} here"):
            read_other(tool, tmp_path)
