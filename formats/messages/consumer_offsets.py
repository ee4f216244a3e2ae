"""Records of `__consumer_offsets`: offset commits, and the state of groups of every protocol.

A key starts with an int16 that is both its type and its version, a value with the int16 of its version; a null
value is a tombstone. 0.8.2 writes key version 0 and 0.9 and later version 1, with the same layout.

Source: core/src/main/scala/kafka/server/OffsetManager.scala @ 0.8.2.2;
group-coordinator/src/main/resources/common/message/*.json @ 3.9.0-rc3 and 4.3.0;
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/CoordinatorRecordSerde.java @ 3.9.0-rc3
"""

from typing import NamedTuple

from formats.binary.layout import Bytes
from formats.errors import FormatError
from formats.messages.reading import read_message, take
from formats.messages.schema import Message, Values, parse
from formats.messages.writing import write_message

MESSAGES = parse("""
OffsetCommitKey 0-1
  group string, topic string, partition int32
OffsetCommitValue 0-4 flexible 4+
  offset int64
  leader_epoch int32 3+ = -1
  metadata string, commit_timestamp int64
  expire_timestamp int64 1 = -1
  topic_id uuid 4+ tag 0

Member
  member_id string
  group_instance_id ?string 3+ = null
  client_id string, client_host string
  rebalance_timeout int32 1+ = -1
  session_timeout int32, subscription bytes, assignment bytes
GroupMetadataKey 2
  group string
GroupMetadataValue 0-4 flexible 4+
  protocol_type string, generation int32, protocol ?string, leader ?string
  current_state_timestamp int64 2+ = -1
  members []Member

ConsumerGroupMetadataKey 3
  group_id string
ConsumerGroupMetadataValue 0 flexible 0+
  epoch int32
  metadata_hash int64 tag 0

PartitionMetadata
  partition int32, racks []string
TopicMetadata
  topic_id uuid, topic_name string, num_partitions int32, partition_metadata []PartitionMetadata
ConsumerGroupPartitionMetadataKey 4
  group_id string
ConsumerGroupPartitionMetadataValue 0 flexible 0+
  topics []TopicMetadata

ClassicProtocol
  name string, metadata bytes
ClassicMemberMetadata
  session_timeout_ms int32, supported_protocols []ClassicProtocol
ConsumerGroupMemberMetadataKey 5
  group_id string, member_id string
ConsumerGroupMemberMetadataValue 0 flexible 0+
  instance_id ?string, rack_id ?string, client_id string, client_host string
  subscribed_topic_names []string, subscribed_topic_regex ?string
  rebalance_timeout_ms int32 = -1
  server_assignor ?string
  classic_member_metadata ?ClassicMemberMetadata tag 0

ConsumerGroupTargetAssignmentMetadataKey 6
  group_id string
ConsumerGroupTargetAssignmentMetadataValue 0 flexible 0+
  assignment_epoch int32
  assignment_timestamp int64 tag 0

TopicPartitions
  topic_id uuid, partitions []int32
ConsumerGroupTargetAssignmentMemberKey 7
  group_id string, member_id string
ConsumerGroupTargetAssignmentMemberValue 0 flexible 0+
  topic_partitions []TopicPartitions

TopicPartitionsAtEpochs
  topic_id uuid, partitions []int32
  assignment_epochs ?[]int32 tag 0
ConsumerGroupCurrentMemberAssignmentKey 8
  group_id string, member_id string
ConsumerGroupCurrentMemberAssignmentValue 0 flexible 0+
  member_epoch int32, previous_member_epoch int32, state int8
  assigned_partitions []TopicPartitionsAtEpochs
  partitions_pending_revocation []TopicPartitionsAtEpochs

ConsumerGroupRegularExpressionKey 16
  group_id string, regular_expression string
ConsumerGroupRegularExpressionValue 0 flexible 0+
  topics []string, version int64, timestamp int64

ShareGroupPartitionMetadataKey 9
  group_id string
ShareGroupPartitionMetadataValue 0 flexible 0+
  topics []TopicMetadata

ShareGroupMemberMetadataKey 10
  group_id string, member_id string
ShareGroupMemberMetadataValue 0 flexible 0+
  rack_id ?string, client_id string, client_host string, subscribed_topic_names []string

ShareGroupMetadataKey 11
  group_id string
ShareGroupMetadataValue 0 flexible 0+
  epoch int32, metadata_hash int64

ShareGroupTargetAssignmentMetadataKey 12
  group_id string
ShareGroupTargetAssignmentMetadataValue 0 flexible 0+
  assignment_epoch int32
  assignment_timestamp int64 tag 0

ShareGroupTargetAssignmentMemberKey 13
  group_id string, member_id string
ShareGroupTargetAssignmentMemberValue 0 flexible 0+
  topic_partitions []TopicPartitions

ShareGroupCurrentMemberAssignmentKey 14
  group_id string, member_id string
ShareGroupCurrentMemberAssignmentValue 0 flexible 0+
  member_epoch int32, previous_member_epoch int32, state int8, assigned_partitions []TopicPartitions

TopicPartitionsInfo
  topic_id uuid, topic_name string, partitions []int32
TopicInfo
  topic_id uuid, topic_name string
ShareGroupStatePartitionMetadataKey 15
  group_id string
ShareGroupStatePartitionMetadataValue 0 flexible 0+
  initializing_topics []TopicPartitionsInfo, initialized_topics []TopicPartitionsInfo
  deleting_topics []TopicInfo

KeyValue
  key string, value string
StreamsGroupMetadataKey 17
  group_id string
StreamsGroupMetadataValue 0 flexible 0+
  epoch int32, metadata_hash int64
  validated_topology_epoch int32 tag 0 = -1
  last_assignment_configs ?[]KeyValue tag 1

Endpoint
  host string, port uint16
StreamsGroupMemberMetadataKey 19
  group_id string, member_id string
StreamsGroupMemberMetadataValue 0 flexible 0+
  instance_id ?string, rack_id ?string, client_id string, client_host string
  rebalance_timeout_ms int32 = -1
  topology_epoch int32, process_id string, user_endpoint ?Endpoint = null, client_tags []KeyValue

StreamsGroupTargetAssignmentMetadataKey 20
  group_id string
StreamsGroupTargetAssignmentMetadataValue 0 flexible 0+
  assignment_epoch int32
  assignment_timestamp int64 tag 0

TaskIds
  subtopology_id string, partitions []int32
StreamsGroupTargetAssignmentMemberKey 21
  group_id string, member_id string
StreamsGroupTargetAssignmentMemberValue 0 flexible 0+
  active_tasks []TaskIds, standby_tasks []TaskIds, warmup_tasks []TaskIds

TaskIdsAtEpochs
  subtopology_id string, partitions []int32
  assignment_epochs ?[]int32 tag 0
StreamsGroupCurrentMemberAssignmentKey 22
  group_id string, member_id string
StreamsGroupCurrentMemberAssignmentValue 0 flexible 0+
  member_epoch int32, previous_member_epoch int32, state int8
  active_tasks []TaskIdsAtEpochs, standby_tasks []TaskIdsAtEpochs, warmup_tasks []TaskIdsAtEpochs
  active_tasks_pending_revocation []TaskIdsAtEpochs
  standby_tasks_pending_revocation []TaskIdsAtEpochs
  warmup_tasks_pending_revocation []TaskIdsAtEpochs

InternalTopic
  name string, partitions int32, replication_factor int16, topic_configs []KeyValue
CopartitionGroup
  source_topics []int16, source_topic_regex []int16, repartition_source_topics []int16
Subtopology
  subtopology_id string, source_topics []string, source_topic_regex []string
  state_changelog_topics []InternalTopic, repartition_sink_topics []string
  repartition_source_topics []InternalTopic, copartition_groups []CopartitionGroup
StreamsGroupTopologyKey 23
  group_id string
StreamsGroupTopologyValue 0 flexible 0+
  epoch int32, subtopologies []Subtopology

OwnedPartitions
  topic string 1+
  partitions []int32 1+
ConsumerProtocolSubscription 0+
  topics []string, user_data ?bytes = null
  owned_partitions []OwnedPartitions 1+
  generation_id int32 2+ = -1
  rack_id ?string 3+ = null

TopicNamePartitions
  topic string, partitions []int32
ConsumerProtocolAssignment 0+
  assigned_partitions []TopicNamePartitions, user_data ?bytes = null
""")
# Key and value of each type of record.
TYPES = tuple(
    (key, MESSAGES[name.removesuffix("Key") + "Value"])
    for name, key in MESSAGES.items()
    if name.endswith("Key")
)
BY_KEY_VERSION: dict[int, tuple[Message, Message]] = {
    version: (key, value)
    for key, value in TYPES
    for version in range(key.versions.first, key.versions.last + 1)
}
# What a member of a group of protocol type `consumer` puts into its subscription and assignment.
SUBSCRIPTION, ASSIGNMENT = MESSAGES["ConsumerProtocolSubscription"], MESSAGES["ConsumerProtocolAssignment"]


class UnknownRecordType(FormatError):
    """A key of a type that this version of Kafka does not know; `position` is that type."""


class Versioned(NamedTuple):
    """A message with the version that it was written in."""

    message: Message
    version: int
    values: Values


class GroupRecord(NamedTuple):
    """A record of the topic; no value is a tombstone."""

    key: Versioned
    value: Versioned | None


def version_of(data: Bytes, name: str) -> int:
    """The version that a key or value starts with; `name` is which of them, for the error."""
    if len(data) < 2:
        raise FormatError(f"Could not read version from {name}'s buffer.", 0)
    return int.from_bytes(data[:2], "big", signed=True)


def read_group_record(key: Bytes, value: Bytes | None) -> GroupRecord:
    """The record; `UnknownRecordType` for a type from the future, `FormatError` for bytes that are not one."""
    kind = version_of(key, "key")
    if kind not in BY_KEY_VERSION:
        raise UnknownRecordType(f"record type {kind} is unknown", kind)
    key_message, value_message = BY_KEY_VERSION[kind]
    read_key = Versioned(key_message, kind, read_message(key_message, kind, key, 2)[0])
    if value is None:
        return GroupRecord(read_key, None)
    version = version_of(value, "value")
    return GroupRecord(
        read_key, Versioned(value_message, version, read_message(value_message, version, value, 2)[0])
    )


def write_versioned(message: Message, version: int, values: Values) -> bytes:
    """A key or a value: its version and its message."""
    return version.to_bytes(2, "big", signed=True) + write_message(message, version, values)


def read_member_part(message: Message, data: Bytes) -> Versioned:
    """A subscription or an assignment; newer versions are read with the newest known layout, as Kafka does."""
    raw, position = take(data, 0, 2)
    version = int.from_bytes(raw, "big", signed=True)
    return Versioned(message, version, read_message(message, version, data, position)[0])
