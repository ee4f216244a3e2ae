"""Rows of `epoch` and `replica`."""

from kctl.rows import RowType, array, boolean, integer, mapping, nullable, string

CAUSES = ("unclean_election", "high_watermark_truncation", "power_failure_tail", "zombie_leader", "unknown")
VERDICTS = ("equal", "behind", "diverged", "damaged", "hole", "unknown")

LINEAGE = RowType(
    "lineage",
    "A replica: its leader epochs that have records, and where its log begins and ends.",
    topic=string(),
    partition=integer(),
    broker_id=nullable(integer()),
    epochs=array("[epoch, start_offset], normalised"),
    log_start_offset=integer(),
    log_end_offset=integer(),
    high_watermark=nullable(integer("as checkpointed")),
    recorded=nullable(array("leader-epoch-checkpoint as it stands; null without one")),
    rebuilt=array("[epoch, start_offset] as the batches give them"),
    local_log_start_offset=integer(),
    topic_id=nullable(string()),
    folder=string("relative to the folder given"),
    evidence=nullable(string("the folder given, where several were")),
    moment=nullable(string("the copy it is from, where there are several")),
)

DIVERGENCE = RowType(
    "divergence",
    "Offsets at which two brokers hold different records.",
    is_wrong=True,
    topic=string(),
    partition=integer(),
    broker_ids=array("the two, ascending"),
    from_offset=integer(),
    to_offset=integer("exclusive"),
    epochs=array("the epochs of each side in the range: two lists"),
    moment=nullable(string()),
    moments=nullable(array("of the two, in their order, where they are not the same; `epoch compare` only")),
)

VERDICT = RowType(
    "verdict",
    "What the comparison of a partition's replicas says.",
    topic=string(),
    partition=integer(),
    verdict=string("", *VERDICTS),
    best_source=nullable(integer("broker whose copy to take; null where a person must choose")),
    reason=string("how sure that is, or what evidence would settle it"),
    broker_ids=array("brokers whose copies were compared"),
    branches=array("groups of brokers that do not contradict each other"),
    current_lineage=nullable(integer("longest replica of the branch with the newest epoch")),
    most_committed=nullable(integer("longest replica of the branch with the highest high watermark")),
    behind=array("brokers that end before the longest of their branch"),
    branch_point=nullable(integer("where the lineages of a pair part; `epoch compare` only")),
    moment=nullable(string()),
    moments=nullable(array("of the two, in their order, where they are not the same; `epoch compare` only")),
)

REJOIN = RowType(
    "rejoin",
    "What a replica would drop if the named broker led next.",
    topic=string(),
    partition=integer(),
    leader=integer(),
    broker_id=integer(),
    truncate_to=nullable(integer("null: nothing is cut")),
    offsets_dropped=integer(),
    full_truncation=boolean(),
    below_own_high_watermark=boolean("committed records would go"),
    moment=nullable(string()),
)

LOSS = RowType(
    "loss",
    "Records that a leader once held and the present lineage lacks.",
    is_wrong=True,
    topic=string(),
    partition=integer(),
    from_offset=integer(),
    to_offset=nullable(integer("exclusive; null where no evidence gives the end")),
    **{"class": string("", "committed", "uncommitted", "unknown")},
    cause=string("", *CAUSES),
    replaced=array("[from, to) that hold other records now"),
    missing=array("[from, to) that hold nothing now"),
    lost_in_epoch=nullable(integer("epoch of the leadership that dropped them")),
    evidence=array("{kind, strength, broker_id, moment, file, line, text}"),
    recoverable_from=array("{moment, broker_id}"),
    recoverable_from_tier=array("{remote_log_segment_id, from_offset, to_offset}"),
    written_by=nullable(integer("broker that led when they were written")),
    written_in_epoch=nullable(integer()),
    dropped_by=nullable(integer("broker that led when they were dropped")),
    isr_before=nullable(array("the last ISR that had members before that leadership")),
    records=nullable(integer("records in the copies that still hold them")),
    first_timestamp=nullable(integer("ms, of the first lost batch")),
    last_timestamp=nullable(integer("ms, of the last lost batch")),
    exported=nullable(string("where --export wrote them")),
)

EXPLANATION = RowType(
    "explanation",
    "One step in the story of an offset.",
    topic=string(),
    partition=integer(),
    offset=integer(),
    what=string("", "copy", "absent", "committed", "written", "led", "lost", "log_line"),
    text=string("one sentence"),
    broker_id=nullable(integer()),
    moment=nullable(string()),
    leader_epoch=nullable(integer()),
    time=nullable(string("UTC, where a log line or the record says")),
    file=nullable(string()),
    line=nullable(integer()),
)

EPOCH_DIFFERENCE = RowType(
    "epoch_difference",
    "An epoch that the checkpoint and the batches do not tell alike.",
    topic=string(),
    partition=integer(),
    broker_id=nullable(integer()),
    epoch=integer(),
    recorded_start=nullable(integer()),
    rebuilt_start=nullable(integer()),
    meaning=string(),
    moment=nullable(string()),
)

END_OFFSET = RowType(
    "end_offset",
    "What a replica would answer to OffsetsForLeaderEpoch.",
    topic=string(),
    partition=integer(),
    broker_id=nullable(integer()),
    requested_epoch=integer(),
    kafka_version=string(),
    leader_epoch=nullable(integer("-1: undefined; null: this version answers no epoch")),
    end_offset=integer("-1: undefined"),
    moment=nullable(string()),
)

TRUNCATION = RowType(
    "truncation",
    "To which offset a follower would truncate under a leader.",
    topic=string(),
    partition=integer(),
    broker_id=nullable(integer("the follower")),
    leader=nullable(integer("broker id of the leader's folder")),
    kafka_version=string(),
    algorithm=string(),
    truncate_to=integer(),
    offsets_dropped=integer(),
    below_own_high_watermark=boolean(),
    rounds=array("questions and answers, in order"),
    moment=nullable(string()),
)

REPLICA_STATE = RowType(
    "replica_state",
    "One broker after one step of a simulation.",
    kafka_version=string(),
    step=integer("0 is the start"),
    action=string(),
    note=nullable(string("what came of it")),
    broker_id=integer(),
    role=string("", "leader", "follower", "down", "halted"),
    log=array("records by offset"),
    log_end_offset=integer(),
    high_watermark=integer(),
    epochs=nullable(array("[epoch, start_offset]; null before leader epochs")),
    leader_epoch=integer("of the partition"),
    isr=array(),
)

SIMULATION = RowType(
    "simulation",
    "How a simulation ended.",
    kafka_version=string(),
    scenario=string(),
    lost=array("{offset, record}: committed and not on the leader"),
    acknowledged_lost=array("{offset, record}: taken by a leader (acks=1) and not on the leader"),
    diverged=array("{broker_ids, from_offset}: brokers that hold different records"),
    unclean_elections=integer(),
)

VIOLATION = RowType(
    "violation",
    "A promise of the protocol that a random sequence of faults broke.",
    is_wrong=True,
    kafka_version=string(),
    promise=string("", "committed_record_lost", "logs_differ_below_high_watermark"),
    offset=integer(),
    record=nullable(string()),
    broker_ids=array(),
    steps=array("the shortest sequence found"),
    found_at=integer("random step at which it was found"),
)

EXPLORATION = RowType(
    "exploration",
    "What random faults found.",
    kafka_version=string(),
    steps=integer(),
    seed=integer(),
    power_failures=boolean(),
    violations=mapping("by promise, their number"),
)
