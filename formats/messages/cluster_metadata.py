"""Records of `__cluster_metadata`, the log of a KRaft cluster, and of its snapshots.

A value is a frame version (1 since 3.0; 0 in the preview of 2.8, which 3.x refuses), a type and a version, each an
unsigned varint, and a flexible message. Bytes left over after the message are an error.

Source: metadata/src/main/resources/common/metadata/*.json @ 3.9.0-rc3 and 4.3.0;
server-common/src/main/java/org/apache/kafka/server/common/serialization/AbstractApiMessageSerde.java @ 3.9.0-rc3
"""

import re
from typing import NamedTuple

from formats.binary.layout import Bytes
from formats.binary.varint import read_unsigned, write_unsigned
from formats.errors import FormatError
from formats.messages.reading import read_message
from formats.messages.schema import Message, Values, parse
from formats.messages.writing import write_message

FRAME_VERSION = 1
LARGEST_SHORT = (1 << 15) - 1

# Every type of record by the name that Kafka prints for it, such as `TOPIC_RECORD`.
RECORDS: dict[str, Message] = {
    re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper(): message
    for name, message in parse("""
Endpoint
  name string, host string, port uint16, security_protocol int16
Feature
  name string, min_supported_version int16, max_supported_version int16
RegisterBrokerRecord 0-4 flexible 0+ key 0
  broker_id int32
  is_migrating_zk_broker bool 2+
  incarnation_id uuid, broker_epoch int64, end_points []Endpoint, features []Feature, rack ?string
  fenced bool = true
  in_controlled_shutdown bool 1+
  log_dirs []uuid 3+ tag 0
  cordoned_log_dirs ?[]uuid 4+ tag 1 = null

UnregisterBrokerRecord 0 flexible 0+ key 1
  broker_id int32, broker_epoch int64
TopicRecord 0 flexible 0+ key 2
  name string, topic_id uuid

PartitionRecord 0-2 flexible 0+ key 3
  partition_id int32 = -1
  topic_id uuid, replicas []int32, isr []int32, removing_replicas []int32, adding_replicas []int32
  leader int32 = -1
  leader_recovery_state int8 tag 0
  leader_epoch int32 = -1
  partition_epoch int32 = -1
  directories []uuid 1+
  eligible_leader_replicas ?[]int32 2+ tag 1 = null
  last_known_elr ?[]int32 2+ tag 2 = null

ConfigRecord 0 flexible 0+ key 4
  resource_type int8, resource_name string, name string, value ?string

PartitionChangeRecord 0-2 flexible 0+ key 5
  partition_id int32 = -1
  topic_id uuid
  isr ?[]int32 tag 0 = null
  leader int32 tag 1 = -2
  replicas ?[]int32 tag 2 = null
  removing_replicas ?[]int32 tag 3 = null
  adding_replicas ?[]int32 tag 4 = null
  leader_recovery_state int8 tag 5 = -1
  directories ?[]uuid 1+ tag 8 = null
  eligible_leader_replicas ?[]int32 2+ tag 6 = null
  last_known_elr ?[]int32 2+ tag 7 = null

FenceBrokerRecord 0 flexible 0+ key 7
  id int32, epoch int64
UnfenceBrokerRecord 0 flexible 0+ key 8
  id int32, epoch int64
RemoveTopicRecord 0 flexible 0+ key 9
  topic_id uuid

DelegationTokenRecord 0 flexible 0+ key 10
  owner string, requester string, renewers []string
  issue_timestamp int64, max_timestamp int64, expiration_timestamp int64, token_id string

UserScramCredentialRecord 0 flexible 0+ key 11
  name string, mechanism int8, salt bytes, stored_key bytes, server_key bytes, iterations int32
FeatureLevelRecord 0 flexible 0+ key 12
  name string, feature_level int16

Entity
  entity_type string, entity_name ?string
ClientQuotaRecord 0 flexible 0+ key 14
  entity []Entity, key string, value float64, remove bool

ProducerIdsRecord 0 flexible 0+ key 15
  broker_id int32
  broker_epoch int64 = -1
  next_producer_id int64

BrokerRegistrationChangeRecord 0-3 flexible 0+ key 17
  broker_id int32, broker_epoch int64
  fenced int8 tag 0
  in_controlled_shutdown int8 1+ tag 1
  log_dirs []uuid 2+ tag 2
  cordoned_log_dirs ?[]uuid 3+ tag 3 = null

AccessControlEntryRecord 0 flexible 0+ key 18
  id uuid, resource_type int8, resource_name string, pattern_type int8
  principal string, host string, operation int8, permission_type int8

RemoveAccessControlEntryRecord 0 flexible 0+ key 19
  id uuid
NoOpRecord 0 flexible 0+ key 20
ZkMigrationStateRecord 0 flexible 0+ key 21
  zk_migration_state int8
RemoveUserScramCredentialRecord 0 flexible 0+ key 22
  name string, mechanism int8
BeginTransactionRecord 0 flexible 0+ key 23
  name ?string tag 0 = null
EndTransactionRecord 0 flexible 0+ key 24
AbortTransactionRecord 0 flexible 0+ key 25
  reason ?string tag 0 = null
RemoveDelegationTokenRecord 0 flexible 0+ key 26
  token_id string

RegisterControllerRecord 0 flexible 0+ key 27
  controller_id int32, incarnation_id uuid, zk_migration_ready bool
  end_points []Endpoint, features []Feature

ClearElrRecord 0 flexible 0+ key 28
  topic_name string
""").items()
}
BY_KEY = {message.key: (name, message) for name, message in RECORDS.items()}

# The numbers in access control entries (clients/.../common/{resource,acl}/*.java @ 3.9.0-rc3 and 4.3.0).
RESOURCE_TYPES = dict(
    enumerate(("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"), 2)
)
PATTERN_TYPES = {3: "LITERAL", 4: "PREFIXED"}
ACL_OPERATIONS = dict(
    enumerate(
        (
            "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
            "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
        ),
        2,
    )
)  # fmt: skip
ACL_PERMISSIONS = {2: "DENY", 3: "ALLOW"}


class MetadataRecord(NamedTuple):
    """A record: its type (`TOPIC_RECORD`), the version of its message, its fields by name in snake case."""

    type: str
    version: int
    values: Values


def read_metadata_record(data: Bytes) -> MetadataRecord:
    """The record that a value holds; `FormatError` for an unknown frame, type or version, and for garbage behind it."""
    key, version, position = read_metadata_header(data)
    if key not in BY_KEY:
        raise FormatError(f"Unknown metadata id {key}", 1)
    name, message = BY_KEY[key]
    values, end = read_message(message, version, data, position)
    if end != len(data):
        raise FormatError(f"Found {len(data) - end} byte(s) of garbage after {key}", end)
    return MetadataRecord(name, version, values)


def read_metadata_header(data: Bytes) -> tuple[int, int, int]:
    """The key and the version of the record in a value, and where its fields begin.

    `FormatError` in Kafka's words (`server-common/.../serialization/AbstractApiMessageSerde.java @ 3.9.0`).
    """
    numbers: list[int] = []
    position = 0
    for entity in ("frame version", "type", "version"):
        try:
            number, position = read_unsigned(data, position)
        except FormatError as error:
            raise FormatError(f"Error while reading {entity}", error.position) from error
        if number > LARGEST_SHORT:
            raise FormatError(f"Value for {entity} was too large.", position)
        numbers.append(number)
        if not numbers[0]:
            raise FormatError(
                "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release"
                " of KRaft in 2.8 to newer versions are not supported.",
                0,
            )
        if numbers[0] != FRAME_VERSION:
            known = f"(only frame version {FRAME_VERSION} is supported)"
            raise FormatError(
                f"Could not deserialize metadata record due to unknown frame version {numbers[0]}{known}", 0
            )
    _, key, version = numbers
    return key, version, position


def write_metadata_record(record: MetadataRecord) -> bytes:
    """The value of a record."""
    message = RECORDS[record.type]
    head = write_unsigned(FRAME_VERSION) + write_unsigned(message.key) + write_unsigned(record.version)
    return head + write_message(message, record.version, record.values)
