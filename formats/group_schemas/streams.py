"""Streams groups of KIP-1071 in `__consumer_offsets`."""

from formats.message_schema import ALWAYS, NEVER, Field, Message, Since, Struct

TYPES: tuple[tuple[Message, Message], ...] = (
    (
        Message(
            "STREAMS_GROUP_METADATA_KEY", -1, Since(17, 17), NEVER, Struct((Field("group_id", "string"),))
        ),
        Message(
            "STREAMS_GROUP_METADATA_VALUE",
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("epoch", "int32"),
                    Field("metadata_hash", "int64"),
                    Field("validated_topology_epoch", "int32", tag=0, default=-1),
                    Field(
                        "last_assignment_configs",
                        Struct(
                            (
                                Field("key", "string"),
                                Field("value", "string"),
                            )
                        ),
                        nullable=ALWAYS,
                        array=True,
                        tag=1,
                    ),
                )
            ),
        ),
    ),
    (
        Message(
            "STREAMS_GROUP_MEMBER_METADATA_KEY",
            -1,
            Since(19, 19),
            NEVER,
            Struct(
                (
                    Field("group_id", "string"),
                    Field("member_id", "string"),
                )
            ),
        ),
        Message(
            "STREAMS_GROUP_MEMBER_METADATA_VALUE",
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("instance_id", "string", nullable=ALWAYS),
                    Field("rack_id", "string", nullable=ALWAYS),
                    Field("client_id", "string"),
                    Field("client_host", "string"),
                    Field("rebalance_timeout_ms", "int32", default=-1),
                    Field("topology_epoch", "int32"),
                    Field("process_id", "string"),
                    Field(
                        "user_endpoint",
                        Struct(
                            (
                                Field("host", "string"),
                                Field("port", "uint16"),
                            )
                        ),
                        nullable=ALWAYS,
                    ),
                    Field(
                        "client_tags",
                        Struct(
                            (
                                Field("key", "string"),
                                Field("value", "string"),
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
            "STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY",
            -1,
            Since(20, 20),
            NEVER,
            Struct((Field("group_id", "string"),)),
        ),
        Message(
            "STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE",
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
            "STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY",
            -1,
            Since(21, 21),
            NEVER,
            Struct(
                (
                    Field("group_id", "string"),
                    Field("member_id", "string"),
                )
            ),
        ),
        Message(
            "STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE",
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field(
                        "active_tasks",
                        Struct(
                            (
                                Field("subtopology_id", "string"),
                                Field("partitions", "int32", array=True),
                            )
                        ),
                        array=True,
                    ),
                    Field(
                        "standby_tasks",
                        Struct(
                            (
                                Field("subtopology_id", "string"),
                                Field("partitions", "int32", array=True),
                            )
                        ),
                        array=True,
                    ),
                    Field(
                        "warmup_tasks",
                        Struct(
                            (
                                Field("subtopology_id", "string"),
                                Field("partitions", "int32", array=True),
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
            "STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY",
            -1,
            Since(22, 22),
            NEVER,
            Struct(
                (
                    Field("group_id", "string"),
                    Field("member_id", "string"),
                )
            ),
        ),
        Message(
            "STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE",
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("member_epoch", "int32"),
                    Field("previous_member_epoch", "int32"),
                    Field("state", "int8"),
                    Field(
                        "active_tasks",
                        Struct(
                            (
                                Field("subtopology_id", "string"),
                                Field("partitions", "int32", array=True),
                                Field("assignment_epochs", "int32", nullable=ALWAYS, array=True, tag=0),
                            )
                        ),
                        array=True,
                    ),
                    Field(
                        "standby_tasks",
                        Struct(
                            (
                                Field("subtopology_id", "string"),
                                Field("partitions", "int32", array=True),
                                Field("assignment_epochs", "int32", nullable=ALWAYS, array=True, tag=0),
                            )
                        ),
                        array=True,
                    ),
                    Field(
                        "warmup_tasks",
                        Struct(
                            (
                                Field("subtopology_id", "string"),
                                Field("partitions", "int32", array=True),
                                Field("assignment_epochs", "int32", nullable=ALWAYS, array=True, tag=0),
                            )
                        ),
                        array=True,
                    ),
                    Field(
                        "active_tasks_pending_revocation",
                        Struct(
                            (
                                Field("subtopology_id", "string"),
                                Field("partitions", "int32", array=True),
                                Field("assignment_epochs", "int32", nullable=ALWAYS, array=True, tag=0),
                            )
                        ),
                        array=True,
                    ),
                    Field(
                        "standby_tasks_pending_revocation",
                        Struct(
                            (
                                Field("subtopology_id", "string"),
                                Field("partitions", "int32", array=True),
                                Field("assignment_epochs", "int32", nullable=ALWAYS, array=True, tag=0),
                            )
                        ),
                        array=True,
                    ),
                    Field(
                        "warmup_tasks_pending_revocation",
                        Struct(
                            (
                                Field("subtopology_id", "string"),
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
            "STREAMS_GROUP_TOPOLOGY_KEY", -1, Since(23, 23), NEVER, Struct((Field("group_id", "string"),))
        ),
        Message(
            "STREAMS_GROUP_TOPOLOGY_VALUE",
            -1,
            Since(0, 0),
            ALWAYS,
            Struct(
                (
                    Field("epoch", "int32"),
                    Field(
                        "subtopologies",
                        Struct(
                            (
                                Field("subtopology_id", "string"),
                                Field("source_topics", "string", array=True),
                                Field("source_topic_regex", "string", array=True),
                                Field(
                                    "state_changelog_topics",
                                    Struct(
                                        (
                                            Field("name", "string"),
                                            Field("partitions", "int32"),
                                            Field("replication_factor", "int16"),
                                            Field(
                                                "topic_configs",
                                                Struct(
                                                    (
                                                        Field("key", "string"),
                                                        Field("value", "string"),
                                                    )
                                                ),
                                                array=True,
                                            ),
                                        )
                                    ),
                                    array=True,
                                ),
                                Field("repartition_sink_topics", "string", array=True),
                                Field(
                                    "repartition_source_topics",
                                    Struct(
                                        (
                                            Field("name", "string"),
                                            Field("partitions", "int32"),
                                            Field("replication_factor", "int16"),
                                            Field(
                                                "topic_configs",
                                                Struct(
                                                    (
                                                        Field("key", "string"),
                                                        Field("value", "string"),
                                                    )
                                                ),
                                                array=True,
                                            ),
                                        )
                                    ),
                                    array=True,
                                ),
                                Field(
                                    "copartition_groups",
                                    Struct(
                                        (
                                            Field("source_topics", "int16", array=True),
                                            Field("source_topic_regex", "int16", array=True),
                                            Field("repartition_source_topics", "int16", array=True),
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
)
