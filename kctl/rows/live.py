"""Rows about the replicas of a running cluster."""

from kctl.rows import RowType
from kctl.rows.replica import VERDICTS

VERIFIED = RowType(f"""
    verdict: The result of comparing a partition's replicas while the cluster runs.
    topic, partition
    verdict          {VERDICTS}
    best_source      integer?  broker with the best copy; null if a person must choose
    reason           string    how certain the verdict is, or what evidence would decide it
    broker_ids       array     brokers whose replicas were compared to the end
    branches         array     groups of brokers that do not contradict each other
    leader           integer?
    from_offset      integer   the first offset that all replicas hold
    to_offset        integer   exclusive end of the comparison, at most the high watermark
    log_end_offsets  array     [broker, offset]; clients cannot read above the high watermark
    bytes            integer   read from all replicas
    batches          integer   found to be equal and sound
""")

LEADER_END_OFFSET = RowType("""
    leader_end_offset: The answer of a running cluster's leader to OffsetsForLeaderEpoch.
    topic, partition
    broker_id        integer?  the leader; null if there is none
    requested_epoch  integer
    leader_epoch     integer   -1: undefined
    end_offset       integer   -1: undefined
    difference       string?   from its batches; null if they agree
    error            string?   why it gave no answer
""")

VERIFICATION = RowType("""
    verification: Totals of the run; the last row.
    partitions, equal  integer
    wrong              integer  diverged, damaged or with a hole
    unknown            integer  not all replicas could be compared
    bytes              integer  read from all replicas
    batches            integer  found to be equal and sound
    seconds            number
""")

DELETION = RowType("""
    deletion: The records of a partition that would be deleted.
    topic, partition, log_start_offset
    to_offset        integer   the first offset that remains
    high_watermark
    records          integer   deleted offsets; fewer records if transactions or compaction left gaps
    size_in_bytes    integer?  estimated from the leader's copy; files are deleted once a whole segment is
    unread_by        array?    groups that have not read all of it; null if groups may be hidden
    why              string?   why a value is null, and the right that is missing
""")

REPLICA = RowType("""
    replica: A replica as its broker tells of it; in `metadata/replicas.jsonl` of a copy that `kctl collect` made.
    topic, partition, broker_id
    is_leader         boolean
    log_dir           string?   null if the broker does not tell it
    size_in_bytes?
    log_start_offset?, log_end_offset?
    high_watermark    integer?  of the leader
    epochs            array?    [epoch, start_offset]; null before 2.7
    why               string?   why a value is null
""")

PRODUCER = RowType("""
    producer: A producer that the leader of a partition knows; in `metadata/producers.jsonl` of such a copy.
    topic, partition, producer_id, producer_epoch
    last_sequence             integer
    last_timestamp            integer  milliseconds
    coordinator_epoch         integer
    current_txn_start_offset  integer  -1: no transaction is open
""")
