"""Rows about the replicas of a running cluster."""

from kctl.rows import RowType, array, integer, nullable, number, string
from kctl.rows.replica import VERDICTS

VERIFIED = RowType(
    "verdict",
    "What the comparison of a partition's replicas says, while the cluster runs.",
    topic=string(),
    partition=integer(),
    verdict=string("", *VERDICTS),
    best_source=nullable(integer("broker whose copy to take; null where a person must choose")),
    reason=string("how sure that is, or what would settle it"),
    broker_ids=array("brokers whose replicas were compared to the end"),
    branches=array("groups of brokers that do not contradict each other"),
    leader=nullable(integer()),
    from_offset=integer("the first that all replicas hold"),
    to_offset=integer("exclusive: how far it was compared, at most the high watermark"),
    log_end_offsets=array("[broker, offset]; what lies above the high watermark is not given to clients"),
    bytes=integer("read from all replicas"),
    batches=integer("found to be equal and sound"),
)

LEADER_END_OFFSET = RowType(
    "leader_end_offset",
    "What the leader of a running cluster answered to OffsetsForLeaderEpoch.",
    topic=string(),
    partition=integer(),
    broker_id=nullable(integer("the leader; null where there is none")),
    requested_epoch=integer(),
    leader_epoch=integer("-1: undefined"),
    end_offset=integer("-1: undefined"),
    difference=nullable(string("from what its batches say; null where they agree")),
    error=nullable(string("why it gave no answer")),
)

VERIFICATION = RowType(
    "verification",
    "The whole run; the last row.",
    partitions=integer(),
    equal=integer(),
    wrong=integer("diverged, damaged or with a hole"),
    unknown=integer("not all replicas could be compared"),
    bytes=integer("read from all replicas"),
    batches=integer("found to be equal and sound"),
    seconds=number(),
)
