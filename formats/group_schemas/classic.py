"""Offset commits and classic groups in `__consumer_offsets`."""

from formats.message_schema import ALWAYS, NEVER, Field, Message, Since, Struct

TYPES: tuple[tuple[Message, Message], ...] = (
    (
        Message(
            "OFFSET_COMMIT_KEY",
            -1,
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
            -1,
            Since(0, 4),
            Since(4),
            Struct(
                (
                    Field("offset", "int64"),
                    Field("leader_epoch", "int32", versions=Since(3), default=-1),
                    Field("metadata", "string"),
                    Field("commit_timestamp", "int64"),
                    Field("expire_timestamp", "int64", versions=Since(1, 1), default=-1),
                    Field("topic_id", "uuid", versions=Since(4), tag=0),
                )
            ),
        ),
    ),
    (
        Message("GROUP_METADATA_KEY", -1, Since(2, 2), NEVER, Struct((Field("group", "string"),))),
        Message(
            "GROUP_METADATA_VALUE",
            -1,
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
)

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
