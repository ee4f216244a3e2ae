"""Rows about tiered storage."""

from kctl.rows import RowType

SEGMENT_STATES = "COPY_SEGMENT_STARTED|COPY_SEGMENT_FINISHED|DELETE_SEGMENT_STARTED|DELETE_SEGMENT_FINISHED"
RECORD_TYPES = (
    "RemoteLogSegmentMetadata|RemoteLogSegmentMetadataUpdate|RemotePartitionDeleteMetadata"
    "|RemoteLogSegmentMetadataSnapshot"
)
DELETION_STATES = "DELETE_PARTITION_MARKED|DELETE_PARTITION_STARTED|DELETE_PARTITION_FINISHED"

REMOTE_SEGMENT = RowType(f"""
    remote_segment: A remote segment, from its metadata records.
    topic_id, topic, partition, remote_log_segment_id
    state                   {SEGMENT_STATES}
    start_offset
    end_offset              integer   the last offset
    segment_leader_epochs   array     pairs of epoch and first offset
    size_in_bytes
    max_timestamp           integer   ms
    event_timestamp         integer   ms, of the last record
    broker_id               integer   broker that wrote the last record
    custom_metadata         string?   of the storage plug-in, if UTF-8
    custom_metadata_base64  string?   if not UTF-8
    age_ms                  integer?  from its last record to the newest record of all
    deletion_state          {DELETION_STATES}?  of
        the partition's deletion, if recorded
    metadata_partition      integer?  of `__remote_log_metadata`
    metadata_offset         integer?  of the last record
""")

REMOTE_TOTAL = RowType("""
    remote_total: Content of tiered storage by its metadata, per topic; the last row (null topic) is the total.
    topic_id?, topic?
    partitions           integer
    segments, size_in_bytes
    readable_segments    integer  COPY_SEGMENT_FINISHED
    readable_bytes       integer
    unfinished_segments  integer  COPY_SEGMENT_STARTED: being copied, or a failed copy
    unfinished_bytes     integer
    deleting_segments    integer  DELETE_SEGMENT_STARTED: being deleted, or an interrupted deletion
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
    broker_id               integer       broker that wrote it
    custom_metadata         string?       if UTF-8
    custom_metadata_base64  string?       if not UTF-8
    layout                  3.6+|3.0-3.5  the versions that write it
""")

METADATA_PARTITION = RowType("""
    metadata_partition: The partition of `__remote_log_metadata` that holds the records of a partition.
    topic_id, partition
    metadata_partitions        integer   of the topic
    metadata_partition         integer   by Kafka's code
    metadata_partition_of_kip  integer?  by the text of KIP-405; needs the topic's name
""")

LOOKUP = RowType("""
    remote_lookup: The remote segment that serves an offset by the broker's rules, or why there is none.
    topic, topic_id?, partition, offset
    leader_epoch  integer?  that owns the offset
    served_from   remote|local|none
    remote_log_segment_id?, start_offset?, end_offset?, size_in_bytes?
    objects       array     names of the segment's objects in the tier's layout
    reason        string    why this segment, or why none
""")

PLAN_STEP = RowType("""
    remote_step: A next step of a leader's task, and why.
    topic, partition
    broker_id              integer?  the leader
    action                 copy|delete_remote|delete_local
    base_offset, last_offset, size_in_bytes?, remote_log_segment_id?
    segment_leader_epochs  array?
    reason                 string
""")

PLAN_PARTITION = RowType("""
    remote_partition: A partition's tier and local log at its leader.
    topic, topic_id?, partition
    broker_id               integer?     the leader
    how                     znodes|metadata|logs  source of the leader's id
    log_start_offset
    local_log_start_offset  integer
    log_end_offset
    highest_copied_offset   integer      -1: none
    next_copy_offset        integer
    log_start_offset_after  integer?     after the deletions
    retention_ms            integer?     null: not in the evidence
    retention_bytes         integer?     null: not in the evidence
    local_retention_ms, local_retention_bytes  integer?
""")

FOLLOWER = RowType("""
    remote_follower: What a replica does under a leader, and how it builds its state.
    topic, partition, broker_id
    leader                 integer?
    role                   follower|leader
    log_end_offset         integer   before truncation
    truncate_to            integer?  null: no truncation
    fetch_offset           integer?  first offset fetched
    answer                 string?   answer of the leader
    scenarios              array     of KIP-405, 1 to 5
    earliest_local_offset  integer?  of the leader
    target_epoch, target_offset  integer?
    remote_log_segment_id  string?   segment that the state is built from
    leader_epochs          array?    pairs of epoch and first offset
    producer_snapshot      string?   the object loaded
    start_offset           integer?  start of the local log afterwards
    copies_from            integer?  as a leader: the next offset to copy
    is_possible            boolean   false: the state cannot be built, and the replica keeps retrying
    reason                 string
""")

TIER_PARTITION = RowType("""
    tier_partition: The result of the audit for one partition.
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
    broker_id               integer?  the leader, or the replica used instead
    leader_epochs           array     the leader's: pairs of epoch and first offset
    errors, warnings
""")

TIER_SUMMARY = RowType("""
    tier_summary: Totals of the audit; the last row.
    partitions    integer
    segments
    objects       integer
    bytes         integer  of objects listed
    orphan_bytes  integer  of unreferenced objects
    errors, warnings
""")
