"""Rows of the internal topics: groups and offsets, transactions, the KRaft metadata log."""

from kctl.rows import RowType, array, boolean, integer, mapping, nullable, string

GROUP = RowType(
    "group",
    "A consumer group as `__consumer_offsets` has it.",
    group=string(),
    state=string("Offsets: only commits are known of it", "Stable", "Empty", "Offsets"),
    protocol_type=nullable(string()),
    protocol=nullable(string()),
    generation=nullable(integer("generation, or epoch of a KIP-848 group")),
    leader=nullable(string("member id")),
    state_timestamp=nullable(integer("milliseconds")),
    members=integer(),
    offsets=integer("partitions with a committed offset"),
    last_commit_timestamp=nullable(integer("milliseconds")),
    log_partition=nullable(integer("partition of __consumer_offsets")),
)

GROUP_MEMBER = RowType(
    "member",
    "A member of a group.",
    group=string(),
    member_id=string(),
    group_instance_id=nullable(string()),
    client_id=string(),
    client_host=string(),
    topics=nullable(array("topics subscribed to")),
    assignment=nullable(array("partitions as TOPIC-PARTITION")),
)

COMMITTED_OFFSET = RowType(
    "committed_offset",
    "An offset that a group committed; in `history` a null offset is a tombstone.",
    group=string(),
    topic=string(),
    partition=integer(),
    offset=nullable(integer()),
    leader_epoch=nullable(integer()),
    metadata=nullable(string()),
    commit_timestamp=nullable(integer("milliseconds")),
    expire_timestamp=nullable(integer("milliseconds; in the record up to 2.0 only")),
    log_partition=integer("partition of __consumer_offsets"),
    log_offset=integer("offset of the record there"),
)

TRANSACTION = RowType(
    "transaction",
    "A transactional id as `__transaction_state` has it.",
    transactional_id=string(),
    state=string(),
    producer_id=integer(),
    producer_epoch=integer(),
    timeout_ms=integer(),
    start_timestamp=nullable(integer("milliseconds")),
    last_update_timestamp=integer("milliseconds"),
    partitions=array("partitions as TOPIC-PARTITION"),
    log_partition=integer("partition of __transaction_state"),
    log_offset=integer("offset of the record there"),
)

OPEN_TRANSACTION = RowType(
    "open_transaction",
    "A transaction that a data log holds open.",
    topic=string(),
    partition=integer(),
    producer_id=integer(),
    producer_epoch=integer(),
    first_offset=integer("the last stable offset stands here or before"),
    last_offset=integer(),
    last_timestamp=integer("milliseconds"),
    transactional_id=nullable(string()),
    hanging=nullable(
        boolean("null where the evidence lacks the part of __transaction_state that would tell")
    ),
    why=nullable(string("why nobody will end it")),
    abort_command=nullable(string("what ends it")),
)

METADATA_TOPIC = RowType(
    "topic",
    "A topic of the KRaft metadata log.",
    topic=string(),
    topic_id=string(),
    partitions=integer(),
    configs=mapping(),
)

METADATA_PARTITION = RowType(
    "partition",
    "A partition of the KRaft metadata log.",
    topic=string(),
    topic_id=string(),
    partition=integer(),
    leader=integer("-1: none"),
    leader_epoch=integer(),
    partition_epoch=integer(),
    replicas=array(),
    isr=array(),
    adding_replicas=array(),
    removing_replicas=array(),
    eligible_leader_replicas=array(),
)

METADATA_BROKER = RowType(
    "broker",
    "A broker registered in the KRaft metadata log.",
    broker_id=integer(),
    broker_epoch=integer(),
    rack=nullable(string()),
    fenced=boolean(),
    in_controlled_shutdown=boolean(),
    end_points=array(),
    configs=mapping(),
)

METADATA = RowType(
    "metadata",
    "What the KRaft metadata log says besides topics and brokers; the first row.",
    end_offset=integer("exclusive"),
    features=mapping("name to level"),
    controllers=array("registered controllers"),
    topics=integer(),
    partitions=integer(),
    brokers=integer(),
    default_configs=mapping("of all brokers"),
    acls=integer(),
    scram_users=integer("credentials themselves are not shown"),
    next_producer_id=integer(),
    unknown_records=mapping("records that kctl leaves out, by type"),
)
