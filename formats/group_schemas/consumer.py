"""Consumer groups of KIP-848 in `__consumer_offsets`."""

from formats.message_schema import ALWAYS, NEVER, Field, Message, Since, Struct

TOPIC_PARTITIONS = Struct(
    (
        Field("topic_id", "uuid"),
        Field("partitions", "int32", array=True),
    )
)

TYPES: tuple[tuple[Message, Message], ...] = (
    (
        Message(
            "CONSUMER_GROUP_METADATA_KEY", -1, Since(3, 3), NEVER, Struct((Field("group_id", "string"),))
        ),
        Message(
            "CONSUMER_GROUP_METADATA_VALUE",
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("epoch", "int32"),
                    Field("metadata_hash", "int64", tag=0),
                )
            ),
        ),
    ),
    (
        Message(
            "CONSUMER_GROUP_PARTITION_METADATA_KEY",
            -1,
            Since(4, 4),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "CONSUMER_GROUP_PARTITION_METADATA_VALUE",
            -1,
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
            -1,
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
            -1,
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
            -1,
            Since(6, 6),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE",
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("assignment_epoch", "int32"),
                    Field("assignment_timestamp", "int64", tag=0),
                )
            ),
        ),
    ),
    (
        Message(
            "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY",
            -1,
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
            -1,
            Since(0, 0),
            ALWAYS,
            Struct((Field("topic_partitions", TOPIC_PARTITIONS, array=True),)),
        ),
    ),
    (
        Message(
            "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY",
            -1,
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
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("member_epoch", "int32"),
                    Field("previous_member_epoch", "int32"),
                    Field("state", "int8"),
                    Field(
                        "assigned_partitions",
                        Struct(
                            (
                                Field("topic_id", "uuid"),
                                Field("partitions", "int32", array=True),
                                Field("assignment_epochs", "int32", nullable=ALWAYS, array=True, tag=0),
                            )
                        ),
                        array=True,
                    ),
                    Field(
                        "partitions_pending_revocation",
                        Struct(
                            (
                                Field("topic_id", "uuid"),
                                Field("partitions", "int32", array=True),
                                Field("assignment_epochs", "int32", nullable=ALWAYS, array=True, tag=0),
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
            "CONSUMER_GROUP_REGULAR_EXPRESSION_KEY",
            -1,
            Since(16, 16),
            NEVER,
            Struct(
                (
                    Field("group_id", "string"),
                    Field("regular_expression", "string"),
                )
            ),
        ),
        Message(
            "CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE",
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("topics", "string", array=True),
                    Field("version", "int64"),
                    Field("timestamp", "int64"),
                )
            ),
        ),
    ),
)
