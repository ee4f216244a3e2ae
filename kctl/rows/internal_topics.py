"""Rows of the internal topics: groups and offsets, transactions, the KRaft metadata log."""

from kctl.rows import RowType

GROUP = RowType("""
    group: A consumer group in `__consumer_offsets`.
    group
    state                    Stable|Empty|Offsets  Offsets: only its commits are known
    protocol_type, protocol  string?
    generation               integer?  generation, or epoch of a KIP-848 group
    leader                   string?   member id
    state_timestamp          integer?  milliseconds
    members                  integer
    offsets                  integer   partitions with a committed offset
    last_commit_timestamp    integer?  milliseconds
    log_partition            integer?  partition of __consumer_offsets
""")

GROUP_MEMBER = RowType("""
    member: A member of a group.
    group, member_id
    group_instance_id       string?
    client_id, client_host  string
    topics                  array?  topics subscribed to
    assignment              array?  partitions as TOPIC-PARTITION
""")

COMMITTED_OFFSET = RowType("""
    committed_offset: An offset that a group committed; in `history` a null offset is a tombstone.
    group, topic, partition, offset?, leader_epoch?
    metadata          string?
    commit_timestamp  integer?  milliseconds
    expire_timestamp  integer?  milliseconds; in the record up to 2.0 only
    log_partition     integer   partition of __consumer_offsets
    log_offset        integer   offset of the record there
    timestamp         integer?  milliseconds; of the record: when a tombstone was written
""")

TRANSACTION = RowType("""
    transaction: A transactional id in `__transaction_state`.
    transactional_id, state  string
    producer_id, producer_epoch
    timeout_ms               integer
    start_timestamp          integer?  milliseconds
    last_update_timestamp    integer?  milliseconds; null where a coordinator was asked
    partitions               array     partitions as TOPIC-PARTITION
    log_partition            integer?  partition of __transaction_state; null where a coordinator was asked
    log_offset               integer?  offset of the record there; null as well
""")

OPEN_TRANSACTION = RowType("""
    open_transaction: A transaction that is open in a data log.
    topic, partition, producer_id, producer_epoch
    first_offset      integer   the last stable offset is at or below it
    last_offset?
    last_timestamp    integer   milliseconds
    transactional_id  string?
    hanging           boolean?  null if the evidence lacks the needed part of __transaction_state
    why               string?   why no coordinator will end it
    abort_command     string?   command that ends it
""")

METADATA_TOPIC = RowType("""
    topic: A topic of the KRaft metadata log.
    topic, topic_id
    partitions  integer
    configs     object
""")

METADATA_PARTITION = RowType("""
    partition: A partition of the KRaft metadata log.
    topic, topic_id, partition
    leader           integer  -1: none
    leader_epoch
    partition_epoch  integer
    replicas, isr
    adding_replicas, removing_replicas  array
    eligible_leader_replicas  array  can lead without loss, though not in the ISR (KIP-966)
    last_known_elr            array  had led last, of a partition without ISR and eligible replicas
""")

METADATA_BROKER = RowType("""
    broker: A broker registered in the KRaft metadata log.
    broker_id
    broker_epoch  integer
    rack?
    fenced, in_controlled_shutdown  boolean
    end_points    array
    configs       object
""")

METADATA = RowType("""
    metadata: Other content of the KRaft metadata log; the first row.
    end_offset        integer  exclusive
    features          object   name to level
    controllers       array    registered controllers
    topics, partitions, brokers  integer
    default_configs   object   of all brokers
    acls              integer
    scram_users       integer  without their credentials
    next_producer_id  integer
    unknown_records   object   number of records that kctl skips, by type
""")
