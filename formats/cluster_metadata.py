"""Records of `__cluster_metadata`, the log of a KRaft cluster, and of its snapshots.

A value is a frame version (1 since 3.0; 0 in the preview of 2.8, which 3.x refuses), a type and a version, each an
unsigned varint, and a flexible message. Bytes left over after the message are an error.

Source: metadata/src/main/resources/common/metadata/*.json @ 3.9.0-rc3 and 4.3.0;
server-common/src/main/java/org/apache/kafka/server/common/serialization/AbstractApiMessageSerde.java @ 3.9.0-rc3
"""

from typing import NamedTuple

from formats.errors import FormatError
from formats.layout import Bytes
from formats.message_schema import ALWAYS, Field, Message, Since, Struct, Values, read_message, write_message
from formats.varint import read_unsigned, write_unsigned

FRAME_VERSION = 1

END_POINT = Struct(
    (
        Field("name", "string"),
        Field("host", "string"),
        Field("port", "uint16"),
        Field("security_protocol", "int16"),
    )
)
FEATURE = Struct(
    (
        Field("name", "string"),
        Field("min_supported_version", "int16"),
        Field("max_supported_version", "int16"),
    )
)

# Every type of record, by its key.
RECORDS: dict[int, Message] = {
    one.key: one
    for one in (
        Message(
            "REGISTER_BROKER_RECORD",
            0,
            Since(0, 4),
            ALWAYS,
            Struct(
                (
                    Field("broker_id", "int32"),
                    Field("is_migrating_zk_broker", "bool", versions=Since(2)),
                    Field("incarnation_id", "uuid"),
                    Field("broker_epoch", "int64"),
                    Field("end_points", END_POINT, array=True),
                    Field("features", FEATURE, array=True),
                    Field("rack", "string", nullable=ALWAYS),
                    Field("fenced", "bool", default=True),
                    Field("in_controlled_shutdown", "bool", versions=Since(1)),
                    Field("log_dirs", "uuid", versions=Since(3), array=True, tag=0),
                    Field(
                        "cordoned_log_dirs", "uuid", versions=Since(4), nullable=Since(4), array=True, tag=1
                    ),
                )
            ),
        ),
        Message(
            "UNREGISTER_BROKER_RECORD",
            1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("broker_id", "int32"),
                    Field("broker_epoch", "int64"),
                )
            ),
        ),
        Message(
            "TOPIC_RECORD",
            2,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("name", "string"),
                    Field("topic_id", "uuid"),
                )
            ),
        ),
        Message(
            "PARTITION_RECORD",
            3,
            Since(0, 2),
            ALWAYS,
            Struct(
                (
                    Field("partition_id", "int32", default=-1),
                    Field("topic_id", "uuid"),
                    Field("replicas", "int32", array=True),
                    Field("isr", "int32", array=True),
                    Field("removing_replicas", "int32", array=True),
                    Field("adding_replicas", "int32", array=True),
                    Field("leader", "int32", default=-1),
                    Field("leader_recovery_state", "int8", tag=0),
                    Field("leader_epoch", "int32", default=-1),
                    Field("partition_epoch", "int32", default=-1),
                    Field("directories", "uuid", versions=Since(1), array=True),
                    Field(
                        "eligible_leader_replicas",
                        "int32",
                        versions=Since(2),
                        nullable=Since(2),
                        array=True,
                        tag=1,
                    ),
                    Field("last_known_elr", "int32", versions=Since(2), nullable=Since(2), array=True, tag=2),
                )
            ),
        ),
        Message(
            "CONFIG_RECORD",
            4,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("resource_type", "int8"),
                    Field("resource_name", "string"),
                    Field("name", "string"),
                    Field("value", "string", nullable=ALWAYS),
                )
            ),
        ),
        Message(
            "PARTITION_CHANGE_RECORD",
            5,
            Since(0, 2),
            ALWAYS,
            Struct(
                (
                    Field("partition_id", "int32", default=-1),
                    Field("topic_id", "uuid"),
                    Field("isr", "int32", nullable=ALWAYS, array=True, tag=0),
                    Field("leader", "int32", tag=1, default=-2),
                    Field("replicas", "int32", nullable=ALWAYS, array=True, tag=2),
                    Field("removing_replicas", "int32", nullable=ALWAYS, array=True, tag=3),
                    Field("adding_replicas", "int32", nullable=ALWAYS, array=True, tag=4),
                    Field("leader_recovery_state", "int8", tag=5, default=-1),
                    Field("directories", "uuid", versions=Since(1), nullable=Since(1), array=True, tag=8),
                    Field(
                        "eligible_leader_replicas",
                        "int32",
                        versions=Since(2),
                        nullable=Since(2),
                        array=True,
                        tag=6,
                    ),
                    Field("last_known_elr", "int32", versions=Since(2), nullable=Since(2), array=True, tag=7),
                )
            ),
        ),
        Message(
            "FENCE_BROKER_RECORD",
            7,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("id", "int32"),
                    Field("epoch", "int64"),
                )
            ),
        ),
        Message(
            "UNFENCE_BROKER_RECORD",
            8,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("id", "int32"),
                    Field("epoch", "int64"),
                )
            ),
        ),
        Message("REMOVE_TOPIC_RECORD", 9, Since(0, 0), ALWAYS, Struct((Field("topic_id", "uuid"),))),
        Message(
            "DELEGATION_TOKEN_RECORD",
            10,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("owner", "string"),
                    Field("requester", "string"),
                    Field("renewers", "string", array=True),
                    Field("issue_timestamp", "int64"),
                    Field("max_timestamp", "int64"),
                    Field("expiration_timestamp", "int64"),
                    Field("token_id", "string"),
                )
            ),
        ),
        Message(
            "USER_SCRAM_CREDENTIAL_RECORD",
            11,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("name", "string"),
                    Field("mechanism", "int8"),
                    Field("salt", "bytes"),
                    Field("stored_key", "bytes"),
                    Field("server_key", "bytes"),
                    Field("iterations", "int32"),
                )
            ),
        ),
        Message(
            "FEATURE_LEVEL_RECORD",
            12,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("name", "string"),
                    Field("feature_level", "int16"),
                )
            ),
        ),
        Message(
            "CLIENT_QUOTA_RECORD",
            14,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field(
                        "entity",
                        Struct(
                            (
                                Field("entity_type", "string"),
                                Field("entity_name", "string", nullable=ALWAYS),
                            )
                        ),
                        array=True,
                    ),
                    Field("key", "string"),
                    Field("value", "float64"),
                    Field("remove", "bool"),
                )
            ),
        ),
        Message(
            "PRODUCER_IDS_RECORD",
            15,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("broker_id", "int32"),
                    Field("broker_epoch", "int64", default=-1),
                    Field("next_producer_id", "int64"),
                )
            ),
        ),
        Message(
            "BROKER_REGISTRATION_CHANGE_RECORD",
            17,
            Since(0, 3),
            ALWAYS,
            Struct(
                (
                    Field("broker_id", "int32"),
                    Field("broker_epoch", "int64"),
                    Field("fenced", "int8", tag=0),
                    Field("in_controlled_shutdown", "int8", versions=Since(1), tag=1),
                    Field("log_dirs", "uuid", versions=Since(2), array=True, tag=2),
                    Field(
                        "cordoned_log_dirs", "uuid", versions=Since(3), nullable=Since(3), array=True, tag=3
                    ),
                )
            ),
        ),
        Message(
            "ACCESS_CONTROL_ENTRY_RECORD",
            18,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("id", "uuid"),
                    Field("resource_type", "int8"),
                    Field("resource_name", "string"),
                    Field("pattern_type", "int8"),
                    Field("principal", "string"),
                    Field("host", "string"),
                    Field("operation", "int8"),
                    Field("permission_type", "int8"),
                )
            ),
        ),
        Message(
            "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", 19, Since(0, 0), ALWAYS, Struct((Field("id", "uuid"),))
        ),
        Message("NO_OP_RECORD", 20, Since(0, 0), ALWAYS, Struct(())),
        Message(
            "ZK_MIGRATION_STATE_RECORD",
            21,
            Since(0, 0),
            ALWAYS,
            Struct((Field("zk_migration_state", "int8"),)),
        ),
        Message(
            "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
            22,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("name", "string"),
                    Field("mechanism", "int8"),
                )
            ),
        ),
        Message(
            "BEGIN_TRANSACTION_RECORD",
            23,
            Since(0, 0),
            ALWAYS,
            Struct((Field("name", "string", nullable=ALWAYS, tag=0),)),
        ),
        Message("END_TRANSACTION_RECORD", 24, Since(0, 0), ALWAYS, Struct(())),
        Message(
            "ABORT_TRANSACTION_RECORD",
            25,
            Since(0, 0),
            ALWAYS,
            Struct((Field("reason", "string", nullable=ALWAYS, tag=0),)),
        ),
        Message(
            "REMOVE_DELEGATION_TOKEN_RECORD", 26, Since(0, 0), ALWAYS, Struct((Field("token_id", "string"),))
        ),
        Message(
            "REGISTER_CONTROLLER_RECORD",
            27,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("controller_id", "int32"),
                    Field("incarnation_id", "uuid"),
                    Field("zk_migration_ready", "bool"),
                    Field("end_points", END_POINT, array=True),
                    Field("features", FEATURE, array=True),
                )
            ),
        ),
        Message("CLEAR_ELR_RECORD", 28, Since(0, 0), ALWAYS, Struct((Field("topic_name", "string"),))),
    )
}
BY_NAME: dict[str, Message] = {one.name: one for one in RECORDS.values()}


class MetadataRecord(NamedTuple):
    """A record: its type (`TOPIC_RECORD`), the version of its message, its fields by name in snake case."""

    type: str
    version: int
    values: Values


def read_metadata_record(data: Bytes) -> MetadataRecord:
    """The record that a value holds; `FormatError` for an unknown frame, type or version, and for garbage behind it."""
    frame, position = read_unsigned(data, 0)
    if frame != FRAME_VERSION:
        raise FormatError(f"Could not deserialize metadata record due to unknown frame version {frame}", 0)
    key, position = read_unsigned(data, position)
    version, position = read_unsigned(data, position)
    message = RECORDS.get(key)
    if message is None:
        raise FormatError(f"Unknown metadata id {key}", 1)
    values, end = read_message(message, version, data, position)
    if end != len(data):
        raise FormatError(f"Found {len(data) - end} byte(s) of garbage after {key}", end)
    return MetadataRecord(message.name, version, values)


def write_metadata_record(record: MetadataRecord) -> bytes:
    """The value of a record."""
    message = BY_NAME[record.type]
    head = write_unsigned(FRAME_VERSION) + write_unsigned(message.key) + write_unsigned(record.version)
    return head + write_message(message, record.version, record.values)
