"""Share groups of KIP-932 in `__consumer_offsets`."""

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
            "SHARE_GROUP_PARTITION_METADATA_KEY",
            -1,
            Since(9, 9),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "SHARE_GROUP_PARTITION_METADATA_VALUE",
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
            "SHARE_GROUP_MEMBER_METADATA_KEY",
            -1,
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
            -1,
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
        Message("SHARE_GROUP_METADATA_KEY", -1, Since(11, 11), NEVER, Struct((Field("group_id", "string"),))),
        Message(
            "SHARE_GROUP_METADATA_VALUE",
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("epoch", "int32"),
                    Field("metadata_hash", "int64"),
                )
            ),
        ),
    ),
    (
        Message(
            "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY",
            -1,
            Since(12, 12),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE",
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
            "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY",
            -1,
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
            -1,
            Since(0, 0),
            ALWAYS,
            Struct((Field("topic_partitions", TOPIC_PARTITIONS, array=True),)),
        ),
    ),
    (
        Message(
            "SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY",
            -1,
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
            -1,
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
            -1,
            Since(15, 15),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "SHARE_GROUP_STATE_PARTITION_METADATA_VALUE",
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field(
                        "initializing_topics",
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
