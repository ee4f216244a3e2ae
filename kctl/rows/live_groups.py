"""Rows about consumer groups of a running cluster."""

from kctl.rows import RowType

GROUP = RowType("""
    group: A group as its coordinator knows it.
    group
    type                  string?   classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071); null where the
                                    version does not tell
    state, protocol_type  string?
    protocol              string?   the assignor
    epoch                 integer?  of the newer protocols
    assignment_epoch      integer?
    coordinator           integer   broker id
    members               integer?
    lag                   integer?  of all partitions; null where that of one is not known
""")

MEMBER = RowType("""
    member: A member of a group.
    group, member_id
    group_instance_id       string?
    client_id, client_host  string
    assignment              array?    partitions as TOPIC-PARTITION
    epoch                   integer?  of the newer protocols
    subscription            array?    topics
    target_assignment       array?    what it is to have, of a consumer group
    active_tasks, standby_tasks, warmup_tasks  array?  of Kafka Streams, as SUBTOPOLOGY_PARTITION
""")

OFFSET = RowType("""
    group_offset: A partition of a group: its offset and how far the group is behind.
    group, topic, partition
    offset          integer?  committed, or where a share group begins to read; null where a member reads it and
                              nothing was committed
    leader_epoch?
    metadata        string?
    high_watermark  integer?  null where the partition has no leader
    lag             integer?  null where it is not known
    member_id       string?   who has the partition
""")

RESET = RowType("""
    group_reset: Where a partition's offset would be put.
    group, topic, partition
    offset       integer?  now; null where there is none
    new_offset   integer?  null where it is deleted
    change       integer?  records skipped, or read again where it is negative
    was_outside  boolean   the offset asked for is not in the log, and the nearest was taken
    from_offset  integer?  as offset
    to_offset    integer?  as new_offset
    skips        integer?  records that the group does not read
    repeats      integer?  records that the group reads again
""")
