"""Rows about consumer groups of a running cluster."""

from kctl.rows import RowType, array, boolean, integer, nullable, string

GROUP = RowType(
    "group",
    "A consumer group as its coordinator knows it.",
    group=string(),
    type=nullable(string("classic or consumer (KIP-848); null where the version does not tell")),
    state=nullable(string()),
    protocol_type=nullable(string()),
    protocol=nullable(string("the assignor")),
    epoch=nullable(integer("of a consumer group")),
    coordinator=integer("broker id"),
    members=nullable(integer()),
    lag=nullable(integer("of all partitions")),
)

MEMBER = RowType(
    "member",
    "A member of a group.",
    group=string(),
    member_id=string(),
    group_instance_id=nullable(string()),
    client_id=string(),
    client_host=string(),
    assignment=nullable(array("partitions as TOPIC-PARTITION")),
)

OFFSET = RowType(
    "group_offset",
    "A committed offset and how far the group is behind.",
    group=string(),
    topic=string(),
    partition=integer(),
    offset=integer("committed"),
    leader_epoch=nullable(integer()),
    metadata=nullable(string()),
    high_watermark=nullable(integer("null where the partition has no leader")),
    lag=nullable(integer()),
    member_id=nullable(string("who has the partition")),
)

RESET = RowType(
    "group_reset",
    "Where a partition's committed offset would be put.",
    group=string(),
    topic=string(),
    partition=integer(),
    offset=nullable(integer("committed now")),
    new_offset=integer(),
    change=nullable(integer("records skipped, or read again where it is negative")),
    was_outside=boolean("the offset asked for is not in the log, and the nearest was taken"),
)
