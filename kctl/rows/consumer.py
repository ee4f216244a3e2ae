"""Rows about old ZooKeeper-based consumers."""

from kctl.rows import RowType

GROUP = RowType("""
    group: A group of old consumers.
    group
    members     integer   registered now
    topics      array     for which it has offsets, owners or subscriptions
    partitions  integer   with an offset or an owner
    lag         integer?  of all partitions; null if log ends are unknown
""")

MEMBER = RowType("""
    member: A consumer of a group.
    group, member_id
    subscription   object    streams by topic, or by pattern
    pattern        string    static, white_list or black_list
    registered_at  integer?  milliseconds
""")

OFFSET = RowType("""
    partition: The committed offset and lag of a group in a partition.
    group, topic, partition
    offset          integer?  the next offset to read; null: none committed
    log_end_offset  integer?  null if no broker was asked or answered
    lag             integer?
    owner           string?   consumer thread; null: none
    is_member       boolean?  whether the owner's consumer is registered
""")

ASSIGNMENT = RowType("""
    assignment: The thread that an algorithm assigns a partition to, and its current owner.
    group
    thread          string?  null: the partition has none
    topic           string?  null: the thread gets nothing
    partition?
    owner           string?  the current owner
    is_as_assigned  boolean?
""")
