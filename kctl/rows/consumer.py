"""Rows about old consumers, who keep themselves in ZooKeeper."""

from kctl.rows import RowType, array, boolean, integer, mapping, nullable, string

GROUP = RowType(
    "group",
    "A group of old consumers.",
    group=string(),
    members=integer("registered now"),
    topics=array("that it has offsets, owners or subscriptions for"),
    partitions=integer("with an offset or an owner"),
    lag=nullable(integer("all partitions together; null where log ends are not known")),
)

MEMBER = RowType(
    "member",
    "A consumer of a group.",
    group=string(),
    member_id=string(),
    subscription=mapping("streams by topic, or by pattern"),
    pattern=string("static, white_list or black_list"),
    registered_at=nullable(integer("milliseconds")),
)

OFFSET = RowType(
    "partition",
    "How far a group is on a partition.",
    group=string(),
    topic=string(),
    partition=integer(),
    offset=nullable(integer("the next to be read; null: none was committed")),
    log_end_offset=nullable(integer("null where no broker was asked, or none answered")),
    lag=nullable(integer()),
    owner=nullable(string("consumer thread; null: nobody reads it")),
    is_member=nullable(boolean("whether that thread's consumer is registered")),
)

ASSIGNMENT = RowType(
    "assignment",
    "Which thread an algorithm gives a partition to, and which has it.",
    group=string(),
    thread=nullable(string("null: the partition has none")),
    topic=nullable(string("null: the thread gets nothing")),
    partition=nullable(integer()),
    owner=nullable(string("who owns it now")),
    is_as_assigned=nullable(boolean()),
)
