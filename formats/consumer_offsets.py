"""Records of `__consumer_offsets`: offset commits, and the state of groups of every protocol.

A key starts with an int16 that is both its type and its version, a value with the int16 of its version; a null
value is a tombstone. 0.8.2 writes key version 0 and 0.9 and later version 1, with the same layout.

Source: group-coordinator/src/main/resources/common/message/*.json @ 3.9.0-rc3 and trunk;
core/src/main/scala/kafka/server/OffsetManager.scala @ 0.8.2.2;
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/CoordinatorRecordSerde.java @ 3.9.0-rc3
"""

from typing import NamedTuple

from formats.errors import FormatError
from formats.layout import Bytes
from formats.message_schema import (
    ALWAYS,
    NEVER,
    Field,
    Message,
    Since,
    Struct,
    Values,
    read_message,
    take,
    write_message,
)

TOPIC_PARTITIONS = Struct(
    (
        Field("topic_id", "uuid"),
        Field("partitions", "int32", array=True),
    )
)

# Key and value of each type of record.
TYPES: tuple[tuple[Message, Message], ...] = (
    (
        Message(
            "OFFSET_COMMIT_KEY",
            1,
            Since(0, 1),
            NEVER,
            Struct(
                (
                    Field("group", "string"),
                    Field("topic", "string"),
                    Field("partition", "int32"),
                )
            ),
        ),
        Message(
            "OFFSET_COMMIT_VALUE",
            1,
            Since(0, 4),
            Since(4),
            Struct(
                (
                    Field("offset", "int64"),
                    Field("leader_epoch", "int32", versions=Since(3), default=-1),
                    Field("metadata", "string"),
                    Field("commit_timestamp", "int64"),
                    Field("expire_timestamp", "int64", versions=Since(1, 1), default=-1),
                )
            ),
        ),
    ),
    (
        Message("GROUP_METADATA_KEY", 2, Since(2, 2), NEVER, Struct((Field("group", "string"),))),
        Message(
            "GROUP_METADATA_VALUE",
            2,
            Since(0, 4),
            Since(4),
            Struct(
                (
                    Field("protocol_type", "string"),
                    Field("generation", "int32"),
                    Field("protocol", "string", nullable=ALWAYS),
                    Field("leader", "string", nullable=ALWAYS),
                    Field("current_state_timestamp", "int64", versions=Since(2), default=-1),
                    Field(
                        "members",
                        Struct(
                            (
                                Field("member_id", "string"),
                                Field("group_instance_id", "string", versions=Since(3), nullable=Since(3)),
                                Field("client_id", "string"),
                                Field("client_host", "string"),
                                Field("rebalance_timeout", "int32", versions=Since(1), default=-1),
                                Field("session_timeout", "int32"),
                                Field("subscription", "bytes"),
                                Field("assignment", "bytes"),
                            )
                        ),
                        array=True,
                    ),
                )
            ),
        ),
    ),
    (
        Message("CONSUMER_GROUP_METADATA_KEY", 3, Since(3, 3), NEVER, Struct((Field("group_id", "string"),))),
        Message("CONSUMER_GROUP_METADATA_VALUE", 3, Since(0, 0), ALWAYS, Struct((Field("epoch", "int32"),))),
    ),
    (
        Message(
            "CONSUMER_GROUP_PARTITION_METADATA_KEY",
            4,
            Since(4, 4),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "CONSUMER_GROUP_PARTITION_METADATA_VALUE",
            4,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field(
                        "topics",
                        Struct(
                            (
                                Field("topic_id", "uuid"),
                                Field("topic_name", "string"),
                                Field("num_partitions", "int32"),
                                Field(
                                    "partition_metadata",
                                    Struct(
                                        (
                                            Field("partition", "int32"),
                                            Field("racks", "string", array=True),
                                        )
                                    ),
                                    array=True,
                                ),
                            )
                        ),
                        array=True,
                    ),
                )
            ),
        ),
    ),
    (
        Message(
            "CONSUMER_GROUP_MEMBER_METADATA_KEY",
            5,
            Since(5, 5),
            NEVER,
            Struct(
                (
                    Field("group_id", "string"),
                    Field("member_id", "string"),
                )
            ),
        ),
        Message(
            "CONSUMER_GROUP_MEMBER_METADATA_VALUE",
            5,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("instance_id", "string", nullable=ALWAYS),
                    Field("rack_id", "string", nullable=ALWAYS),
                    Field("client_id", "string"),
                    Field("client_host", "string"),
                    Field("subscribed_topic_names", "string", array=True),
                    Field("subscribed_topic_regex", "string", nullable=ALWAYS),
                    Field("rebalance_timeout_ms", "int32", default=-1),
                    Field("server_assignor", "string", nullable=ALWAYS),
                    Field(
                        "classic_member_metadata",
                        Struct(
                            (
                                Field("session_timeout_ms", "int32"),
                                Field(
                                    "supported_protocols",
                                    Struct(
                                        (
                                            Field("name", "string"),
                                            Field("metadata", "bytes"),
                                        )
                                    ),
                                    array=True,
                                ),
                            )
                        ),
                        nullable=ALWAYS,
                        tag=0,
                    ),
                )
            ),
        ),
    ),
    (
        Message(
            "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY",
            6,
            Since(6, 6),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE",
            6,
            Since(0, 0),
            ALWAYS,
            Struct((Field("assignment_epoch", "int32"),)),
        ),
    ),
    (
        Message(
            "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY",
            7,
            Since(7, 7),
            NEVER,
            Struct(
                (
                    Field("group_id", "string"),
                    Field("member_id", "string"),
                )
            ),
        ),
        Message(
            "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE",
            7,
            Since(0, 0),
            ALWAYS,
            Struct((Field("topic_partitions", TOPIC_PARTITIONS, array=True),)),
        ),
    ),
    (
        Message(
            "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY",
            8,
            Since(8, 8),
            NEVER,
            Struct(
                (
                    Field("group_id", "string"),
                    Field("member_id", "string"),
                )
            ),
        ),
        Message(
            "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE",
            8,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("member_epoch", "int32"),
                    Field("previous_member_epoch", "int32"),
                    Field("state", "int8"),
                    Field("assigned_partitions", TOPIC_PARTITIONS, array=True),
                    Field("partitions_pending_revocation", TOPIC_PARTITIONS, array=True),
                )
            ),
        ),
    ),
    (
        Message(
            "SHARE_GROUP_PARTITION_METADATA_KEY",
            9,
            Since(9, 9),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "SHARE_GROUP_PARTITION_METADATA_VALUE",
            9,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field(
                        "topics",
                        Struct(
                            (
                                Field("topic_id", "uuid"),
                                Field("topic_name", "string"),
                                Field("num_partitions", "int32"),
                                Field(
                                    "partition_metadata",
                                    Struct(
                                        (
                                            Field("partition", "int32"),
                                            Field("racks", "string", array=True),
                                        )
                                    ),
                                    array=True,
                                ),
                            )
                        ),
                        array=True,
                    ),
                )
            ),
        ),
    ),
    (
        Message(
            "SHARE_GROUP_MEMBER_METADATA_KEY",
            10,
            Since(10, 10),
            NEVER,
            Struct(
                (
                    Field("group_id", "string"),
                    Field("member_id", "string"),
                )
            ),
        ),
        Message(
            "SHARE_GROUP_MEMBER_METADATA_VALUE",
            10,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("rack_id", "string", nullable=ALWAYS),
                    Field("client_id", "string"),
                    Field("client_host", "string"),
                    Field("subscribed_topic_names", "string", array=True),
                )
            ),
        ),
    ),
    (
        Message("SHARE_GROUP_METADATA_KEY", 11, Since(11, 11), NEVER, Struct((Field("group_id", "string"),))),
        Message("SHARE_GROUP_METADATA_VALUE", 11, Since(0, 0), ALWAYS, Struct((Field("epoch", "int32"),))),
    ),
    (
        Message(
            "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY",
            12,
            Since(12, 12),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE",
            12,
            Since(0, 0),
            ALWAYS,
            Struct((Field("assignment_epoch", "int32"),)),
        ),
    ),
    (
        Message(
            "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY",
            13,
            Since(13, 13),
            NEVER,
            Struct(
                (
                    Field("group_id", "string"),
                    Field("member_id", "string"),
                )
            ),
        ),
        Message(
            "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE",
            13,
            Since(0, 0),
            ALWAYS,
            Struct((Field("topic_partitions", TOPIC_PARTITIONS, array=True),)),
        ),
    ),
    (
        Message(
            "SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY",
            14,
            Since(14, 14),
            NEVER,
            Struct(
                (
                    Field("group_id", "string"),
                    Field("member_id", "string"),
                )
            ),
        ),
        Message(
            "SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE",
            14,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("member_epoch", "int32"),
                    Field("previous_member_epoch", "int32"),
                    Field("state", "int8"),
                    Field("assigned_partitions", TOPIC_PARTITIONS, array=True),
                )
            ),
        ),
    ),
    (
        Message(
            "SHARE_GROUP_STATE_PARTITION_METADATA_KEY",
            15,
            Since(15, 15),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "SHARE_GROUP_STATE_PARTITION_METADATA_VALUE",
            15,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field(
                        "initialized_topics",
                        Struct(
                            (
                                Field("topic_id", "uuid"),
                                Field("topic_name", "string"),
                                Field("partitions", "int32", array=True),
                            )
                        ),
                        array=True,
                    ),
                    Field(
                        "deleting_topics",
                        Struct(
                            (
                                Field("topic_id", "uuid"),
                                Field("topic_name", "string"),
                            )
                        ),
                        array=True,
                    ),
                )
            ),
        ),
    ),
)
BY_KEY_VERSION: dict[int, tuple[Message, Message]] = {
    version: pair
    for pair in TYPES
    for version in range(pair[0].versions.first, (pair[0].versions.last or 0) + 1)
}

# What a member of a group of protocol type `consumer` puts into its subscription and assignment.
SUBSCRIPTION = Message(
    "CONSUMER_PROTOCOL_SUBSCRIPTION",
    -1,
    ALWAYS,
    NEVER,
    Struct(
        (
            Field("topics", "string", array=True),
            Field("user_data", "bytes", nullable=ALWAYS),
            Field(
                "owned_partitions",
                Struct(
                    (
                        Field("topic", "string", versions=Since(1)),
                        Field("partitions", "int32", versions=Since(1), array=True),
                    )
                ),
                versions=Since(1),
                array=True,
            ),
            Field("generation_id", "int32", versions=Since(2), default=-1),
            Field("rack_id", "string", versions=Since(3), nullable=Since(3)),
        )
    ),
)
ASSIGNMENT = Message(
    "CONSUMER_PROTOCOL_ASSIGNMENT",
    -1,
    ALWAYS,
    NEVER,
    Struct(
        (
            Field(
                "assigned_partitions",
                Struct(
                    (
                        Field("topic", "string"),
                        Field("partitions", "int32", array=True),
                    )
                ),
                array=True,
            ),
            Field("user_data", "bytes", nullable=ALWAYS),
        )
    ),
)


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


def _version(data: Bytes, name: str) -> int:
    if len(data) < 2:
        raise FormatError(f"Could not read version from {name}'s buffer.", 0)
    return int.from_bytes(data[:2], "big", signed=True)


def read_group_record(key: Bytes, value: Bytes | None) -> GroupRecord:
    """The record; `UnknownRecordType` for a type from the future, `FormatError` for bytes that are not one."""
    kind = _version(key, "key")
    if kind not in BY_KEY_VERSION:
        raise UnknownRecordType(f"record type {kind} is unknown", kind)
    key_message, value_message = BY_KEY_VERSION[kind]
    read_key = Versioned(key_message, kind, read_message(key_message, kind, key, 2)[0])
    if value is None:
        return GroupRecord(read_key, None)
    version = _version(value, "value")
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
