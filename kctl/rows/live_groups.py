"""Rows about consumer groups of a running cluster."""

from kctl.rows import RowType

GROUP = RowType("""
    group: A group, from its coordinator.
    group
    type                  string?   classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071); null if the
                                    version does not report it
    state, protocol_type  string?
    protocol              string?   the assignor
    epoch                 integer?  of the newer protocols
    assignment_epoch      integer?
    coordinator           integer   broker id
    members               integer?
    lag                   integer?  of all partitions; null if that of one is unknown
    why                   string?   why the lag may not be that of all partitions, and the right that is missing
""")

MEMBER = RowType("""
    member: A member of a group.
    group, member_id
    group_instance_id       string?
    client_id, client_host  string
    assignment              array?    partitions as TOPIC-PARTITION
    epoch                   integer?  of the newer protocols
    subscription            array?    topics
    target_assignment       array?    target assignment, for a consumer group
    active_tasks, standby_tasks, warmup_tasks  array?  of Kafka Streams, as SUBTOPOLOGY_PARTITION
""")

OFFSET = RowType("""
    group_offset: A partition of a group: its committed offset and lag.
    group, topic, partition
    offset          integer?  committed offset, or start offset of a share group; null if nothing was
                              committed
    leader_epoch?
    metadata        string?
    high_watermark  integer?  null if the partition has no leader
    lag             integer?  null if unknown, or if the offset is out of range
    member_id       string?   member that has the partition
    log_start_offset, log_end_offset  integer?
    out_of_range    beyond_end|below_start?  the log does not have the offset
    records_gone    integer?  offsets between the committed one and the log, if it is out of range
    pending         boolean?  a newer offset waits for the end of a transaction; null if not asked for, or the
                              version does not tell
""")

RESET = RowType("""
    group_reset: The new offset of a partition.
    group, topic, partition
    offset       integer?  current offset; null if there is none
    new_offset   integer?  null if it is deleted
    change       integer?  records skipped; negative: records read again
    was_outside  boolean   the requested offset is outside the log; the nearest is used
    from_offset  integer?  same as `offset`
    to_offset    integer?  same as `new_offset`
    skips        integer?  records that the group will not read
    repeats      integer?  records that the group will read again
""")
