"""Rows about the replicas of a running cluster."""

from kctl.rows import RowType
from kctl.rows.replica import VERDICTS

VERIFIED = RowType(f"""
    verdict: What the comparison of a partition's replicas says, while the cluster runs.
    topic, partition
    verdict          {VERDICTS}
    best_source      integer?  broker whose copy to take; null where a person must choose
    reason           string    how sure that is, or what would settle it
    broker_ids       array     brokers whose replicas were compared to the end
    branches         array     groups of brokers that do not contradict each other
    leader           integer?
    from_offset      integer   the first that all replicas hold
    to_offset        integer   exclusive: how far it was compared, at most the high watermark
    log_end_offsets  array     [broker, offset]; what lies above the high watermark is not given to clients
    bytes            integer   read from all replicas
    batches          integer   found to be equal and sound
""")

LEADER_END_OFFSET = RowType("""
    leader_end_offset: What the leader of a running cluster answered to OffsetsForLeaderEpoch.
    topic, partition
    broker_id        integer?  the leader; null where there is none
    requested_epoch  integer
    leader_epoch     integer   -1: undefined
    end_offset       integer   -1: undefined
    difference       string?   from what its batches say; null where they agree
    error            string?   why it gave no answer
""")

VERIFICATION = RowType("""
    verification: The whole run; the last row.
    partitions, equal  integer
    wrong              integer  diverged, damaged or with a hole
    unknown            integer  not all replicas could be compared
    bytes              integer  read from all replicas
    batches            integer  found to be equal and sound
    seconds            number
""")

DELETION = RowType("""
    deletion: The records of a partition that are deleted.
    topic, partition, log_start_offset
    to_offset        integer   the first that stays
    high_watermark
    records          integer   offsets that go; fewer records where transactions or compaction left gaps
    size_in_bytes    integer?  of the leader's copy, in proportion; files go once all of a segment is deleted
    unread_by        array     groups that have not read all of it
""")
