"""Rows about old consumers, who keep themselves in ZooKeeper."""

from kctl.rows import RowType

GROUP = RowType("""
    group: A group of old consumers.
    group
    members     integer   registered now
    topics      array     that it has offsets, owners or subscriptions for
    partitions  integer   with an offset or an owner
    lag         integer?  all partitions together; null where log ends are not known
""")

MEMBER = RowType("""
    member: A consumer of a group.
    group, member_id
    subscription   object    streams by topic, or by pattern
    pattern        string    static, white_list or black_list
    registered_at  integer?  milliseconds
""")

OFFSET = RowType("""
    partition: How far a group is on a partition.
    group, topic, partition
    offset          integer?  the next to be read; null: none was committed
    log_end_offset  integer?  null where no broker was asked, or none answered
    lag             integer?
    owner           string?   consumer thread; null: nobody reads it
    is_member       boolean?  whether that thread's consumer is registered
""")

ASSIGNMENT = RowType("""
    assignment: Which thread an algorithm gives a partition to, and which has it.
    group
    thread          string?  null: the partition has none
    topic           string?  null: the thread gets nothing
    partition?
    owner           string?  who owns it now
    is_as_assigned  boolean?
""")
