"""Rows of `epoch` and `replica`."""

from kctl.rows import RowType

VERDICTS = "equal|behind|diverged|damaged|hole|unknown"

LINEAGE = RowType("""
    lineage: A replica: its leader epochs with records, and the start and end of its log.
    topic, partition, broker_id?
    epochs                  array     [epoch, start_offset], normalised
    log_start_offset, log_end_offset
    high_watermark          integer?  as checkpointed
    recorded                array?    content of leader-epoch-checkpoint; null without one
    rebuilt                 array     [epoch, start_offset] from the batches
    local_log_start_offset  integer
    topic_id?
    folder                  string    relative to the folder given
    evidence?, moment?
""")

DIVERGENCE = RowType("""
    divergence: Offsets at which two brokers hold different records.
    topic, partition
    broker_ids   array    the two, ascending
    from_offset  integer
    to_offset    integer  exclusive
    epochs       array    the epochs of each side in the range: two lists
    moment?
    moments      array?   of the two, if they differ; `epoch compare` only
""")

VERDICT = RowType(f"""
    verdict: The result of comparing a partition's replicas.
    topic, partition
    verdict          {VERDICTS}
    best_source      integer?  broker whose copy is the current partition: complete, of the newest epoch; null if a person must choose
    recover_from     array?    brokers whose copies hold committed records that the current partition lacks
    reason           string    how certain the verdict is, or what evidence would decide it
    broker_ids       array     brokers whose copies were compared
    branches         array     groups of brokers that do not contradict each other
    current_lineage  integer?  the longest replica of the branch with the newest epoch
    most_committed   integer?  the longest replica of the branch with the highest high watermark
    behind           array     brokers that end before the longest of their branch
    branch_point     integer?  offset where the lineages of a pair diverge; `epoch compare` only
    moment?
    moments          array?    of the two, if they differ; `epoch compare` only
""")

REJOIN = RowType("""
    rejoin: The records that a replica would drop if the named broker led next.
    topic, partition
    leader                    integer
    broker_id
    truncate_to               integer?  null: no truncation
    offsets_dropped           integer
    full_truncation           boolean
    below_own_high_watermark  boolean   committed records would be dropped
    moment?
""")

LOSS = RowType("""
    loss: Records that a leader once held and the current lineage lacks.
    topic, partition
    from_offset            integer
    to_offset              integer?  exclusive; null if the evidence does not show the end
    class                  committed|uncommitted|unknown
    cause                  unclean_election|high_watermark_truncation|power_failure_tail|disk_lost|zombie_leader|handover|unknown
    replaced               array     [from, to) that now hold other records
    missing                array     [from, to) that now hold nothing
    lost_in_epoch          integer?  leader epoch in which they were dropped
    evidence               array     {kind, strength, broker_id, moment, file, line, text}
    recoverable_from       array     {moment, broker_id}
    recoverable_from_tier  array     {remote_log_segment_id, from_offset, to_offset}
    written_by             integer?  broker that led when they were written
    written_in_epoch       integer?
    dropped_by             integer?  broker that led when they were dropped
    isr_before             array?    the last non-empty ISR before that leader
    records                integer?  records in the copies that still hold them
    first_timestamp        integer?  ms, of the first lost batch
    last_timestamp         integer?  ms, of the last lost batch
    exported               string?   path that --export wrote
    strength               string?   of `cause` and `lost_in_epoch`. sure: states or words decide; likely: only nearness in time;
        null: the cause is unknown
    topic_id               string?   of the topic that lost them; null: nothing names one
    incarnation            integer?  as in rows of leaders; null: no broker logs tell
    is_compacted           boolean   the topic is compacted: a cleaner may have removed some of these offsets before
    is_at_least            boolean   more may be gone: the end is unknown, or every copy may lack its tail
    recovered              integer?  records of it that the cluster has; null without --recovered
    is_recovered           boolean?  whether the cluster has all of it that was committed; null without --recovered
""")

RECOVERY = RowType("""
    recovery: A range of lost records, and what becomes of them.
    topic, partition
    into_topic               string    topic that the records go to
    from_offset              integer   where they were lost
    to_offset                integer   exclusive
    class                    committed|uncommitted|unknown
    lost_in_epoch            integer?  leader epoch in which they were dropped
    records                  integer   that copies hold
    already_there            integer   the cluster has them: sent again by their producers, or recovered before
    to_write                 integer   that are produced again
    left_out                 object    counts by reason: aborted_transaction, unfinished_transaction, uncommitted,
        replaced_by_later_record, in_another_loss, internal_topic, unreadable
    source                   array     copies that hold them: {moment, broker_id}, or {file} of an export
    keys_with_later_records  integer   keys of records to write that have a later record in the cluster
""")

EXPLANATION = RowType("""
    explanation: One step in the history of an offset.
    topic, partition, offset
    what  copy|absent|committed|written|led|lost|log_line
    text  string   one sentence
    broker_id?, moment?, leader_epoch?
    strength  string?  of what was lost, as in rows of losses
    topic_id  string?  of the topic that has the name now
    time  string?  UTC, if a log line or the record has it
    file  string?
    line?
""")

EPOCH_DIFFERENCE = RowType("""
    epoch_difference: An epoch that differs between the checkpoint and the batches.
    topic, partition, broker_id?
    epoch    integer
    recorded_start, rebuilt_start  integer?
    meaning  string
    moment?
""")

END_OFFSET = RowType("""
    end_offset: The answer of a replica to OffsetsForLeaderEpoch.
    topic, partition, broker_id?
    requested_epoch  integer
    kafka_version
    leader_epoch     integer?  -1: undefined; null: this version returns no epoch
    end_offset       integer   -1: undefined
    moment?
""")

TRUNCATION = RowType("""
    truncation: The offset that a follower would truncate to under a leader.
    topic, partition
    broker_id                 integer?  the follower
    leader                    integer?  broker id of the leader's folder
    kafka_version
    algorithm                 string
    truncate_to, offsets_dropped  integer
    below_own_high_watermark  boolean
    rounds                    array     requests and answers, in order
    moment?
""")

REPLICA_STATE = RowType("""
    replica_state: One broker after one step of a simulation.
    kafka_version
    step          integer  0 is the start
    action        string
    note          string?  result of the action
    broker_id
    role          leader|follower|down|halted
    log           array    records by offset
    log_end_offset, high_watermark
    epochs        array?   [epoch, start_offset]; null before leader epochs
    leader_epoch  integer  of the partition
    isr
""")

SIMULATION = RowType("""
    simulation: The result of a simulation.
    kafka_version
    scenario           string
    lost               array  {offset, record}: committed and not on the leader
    acknowledged_lost  array  {offset, record}: acknowledged with acks=1 and not on the leader
    diverged           array  {broker_ids, from_offset}: brokers that hold different records
    unclean_elections  integer
""")

VIOLATION = RowType("""
    violation: A guarantee of the protocol that a random sequence of faults broke.
    kafka_version
    promise     committed_record_lost|logs_differ_below_high_watermark
    offset
    record      string?
    broker_ids  array
    steps       array    the shortest sequence found
    found_at    integer  random step at which it was found
""")

EXPLORATION = RowType("""
    exploration: Totals of a random simulation.
    kafka_version
    steps, seed     integer
    power_failures  boolean
    violations      object  number of violations by guarantee
""")
