"""Rows about tiered storage."""

from kctl.rows import RowType

SEGMENT_STATES = "COPY_SEGMENT_STARTED|COPY_SEGMENT_FINISHED|DELETE_SEGMENT_STARTED|DELETE_SEGMENT_FINISHED"
RECORD_TYPES = (
    "RemoteLogSegmentMetadata|RemoteLogSegmentMetadataUpdate|RemotePartitionDeleteMetadata"
    "|RemoteLogSegmentMetadataSnapshot"
)
DELETION_STATES = "DELETE_PARTITION_MARKED|DELETE_PARTITION_STARTED|DELETE_PARTITION_FINISHED"

REMOTE_SEGMENT = RowType(f"""
    remote_segment: A remote segment as its metadata records leave it.
    topic_id, topic, partition, remote_log_segment_id
    state                   {SEGMENT_STATES}
    start_offset
    end_offset              integer   the last offset
    segment_leader_epochs   array     pairs of epoch and first offset
    size_in_bytes
    max_timestamp           integer   ms
    event_timestamp         integer   ms, of the last record
    broker_id               integer   who wrote the last record
    custom_metadata         string?   of the storage plug-in, where it is UTF-8
    custom_metadata_base64  string?   where it is not
    age_ms                  integer?  from the last record to the newest record there is
    deletion_state          {DELETION_STATES}?  of
        the partition's deletion, where one was recorded
    metadata_partition      integer?  of `__remote_log_metadata`
    metadata_offset         integer?  of the last record
""")

REMOTE_TOTAL = RowType("""
    remote_total: What the metadata say that tiered storage holds of a topic; the last row (null topic) counts all.
    topic_id?, topic?
    partitions           integer
    segments, size_in_bytes
    readable_segments    integer  COPY_SEGMENT_FINISHED
    readable_bytes       integer
    unfinished_segments  integer  COPY_SEGMENT_STARTED: being copied, or a copy that failed
    unfinished_bytes     integer
    deleting_segments    integer  DELETE_SEGMENT_STARTED: being deleted, or a deletion that was interrupted
    deleting_bytes       integer
""")

METADATA_RECORD = RowType(f"""
    remote_log_metadata: A record of `__remote_log_metadata`; a field that its type lacks is null.
    metadata_partition, metadata_offset  integer?
    type                    {RECORD_TYPES}
    topic_id?, topic?, partition?, remote_log_segment_id?
    state                   {SEGMENT_STATES}|{DELETION_STATES}
    start_offset?
    end_offset              integer?      the last offset
    segment_leader_epochs   array?        pairs of epoch and first offset
    size_in_bytes?
    max_timestamp           integer?      ms
    event_timestamp         integer       ms
    broker_id               integer       who wrote it
    custom_metadata         string?       where it is UTF-8
    custom_metadata_base64  string?       where it is not
    layout                  3.6+|3.0-3.5  the versions that write it
""")

METADATA_PARTITION = RowType("""
    metadata_partition: The partition of `__remote_log_metadata` that holds the records of a partition.
    topic_id, partition
    metadata_partitions        integer   of the topic
    metadata_partition         integer   as shipped
    metadata_partition_of_kip  integer?  by the text of KIP-405, which needs the topic's name
""")

LOOKUP = RowType("""
    remote_lookup: Which remote segment serves an offset, by the rules of the broker, and why none does.
    topic, topic_id?, partition, offset
    leader_epoch  integer?  that owns the offset
    served_from   remote|local|none
    remote_log_segment_id?, start_offset?, end_offset?, size_in_bytes?
    objects       array     names of the segment's objects in the tier's layout
    reason        string    why this one, or why none
""")

PLAN_STEP = RowType("""
    remote_step: What a leader's task does next, and why.
    topic, partition
    broker_id              integer?  the leader
    action                 copy|delete_remote|delete_local
    base_offset, last_offset, size_in_bytes?, remote_log_segment_id?
    segment_leader_epochs  array?
    reason                 string
""")

PLAN_PARTITION = RowType("""
    remote_partition: A partition's tier and local log as its leader has them.
    topic, topic_id?, partition
    broker_id               integer?     the leader
    how                     znodes|metadata|logs  how the leader was told
    log_start_offset
    local_log_start_offset  integer
    log_end_offset
    highest_copied_offset   integer      -1: nothing
    next_copy_offset        integer
    log_start_offset_after  integer?     after the deletions
    retention_ms            integer?     null: not in the evidence
    retention_bytes         integer?     null: not in the evidence
    local_retention_ms, local_retention_bytes  integer?
""")

FOLLOWER = RowType("""
    remote_follower: What a replica does under a leader, and from what it builds its state.
    topic, partition, broker_id
    leader                 integer?
    role                   follower|leader
    log_end_offset         integer   before
    truncate_to            integer?  null: nothing is cut
    fetch_offset           integer?  where it fetches first
    answer                 string?   what the leader answers
    scenarios              array     of KIP-405, 1 to 5
    earliest_local_offset  integer?  of the leader
    target_epoch, target_offset  integer?
    remote_log_segment_id  string?   that the state is built from
    leader_epochs          array?    pairs of epoch and first offset
    producer_snapshot      string?   the object that is loaded
    start_offset           integer?  where the local log begins afterwards
    copies_from            integer?  as a leader: the next offset to copy
    is_possible            boolean   false: the state cannot be built, and it tries again and again
    reason                 string
""")

TIER_PARTITION = RowType("""
    tier_partition: What the audit held against each other for a partition.
    topic, topic_id, partition
    segments                integer   listed by the metadata
    objects                 integer   of its segments in the tier
    size_in_bytes           integer   of these objects
    log_start_offset?
    local_log_start_offset  integer?
    log_end_offset?
    gaps                    array     offset ranges [from, to) that no remote segment of the lineage serves
    outside_lineage         integer   segments
    outside_segments        array     their ids
    broker_id               integer?  the leader, or the replica that stands for it
    leader_epochs           array     the leader's: pairs of epoch and first offset
    errors, warnings
""")

TIER_SUMMARY = RowType("""
    tier_summary: What was audited and how it ended; the last row.
    partitions    integer
    segments
    objects       integer
    bytes         integer  of objects listed
    orphan_bytes  integer  that nothing refers to
    errors, warnings
""")
