"""Rows about topics, partitions and configurations of a cluster."""

from kctl.rows import RowType, array, boolean, integer, mapping, nullable, string

TOPIC = RowType(
    "topic",
    "A topic.",
    topic=string(),
    topic_id=nullable(string("Kafka's base64 form (2.8 and later)")),
    partition_count=nullable(integer("null where the topic's znode cannot be read")),
    replication_factor=nullable(integer("replicas of partition 0, adding ones left out")),
    is_internal=boolean(),
    is_marked_for_deletion=boolean(),
    configs=nullable(mapping("what is set for the topic; null where it was not asked for")),
)

PARTITION = RowType(
    "partition",
    "A partition, its replicas and who leads it.",
    topic=string(),
    partition=integer(),
    leader=nullable(integer("-1: none; null: it never had one")),
    leader_epoch=nullable(integer()),
    replicas=array("the preferred one first; adding and removing ones included"),
    isr=array("in Kafka's order"),
    adding_replicas=array(),
    removing_replicas=array(),
    controller_epoch=nullable(integer("of the controller that wrote leader and ISR last")),
    partition_epoch=nullable(integer("grows with each change of leader and ISR")),
    is_under_replicated=boolean("a replica that stays is not in the ISR"),
    is_offline=boolean("no leader, or one that is not alive"),
    is_under_min_isr=boolean("fewer in the ISR than min.insync.replicas"),
    is_leader_preferred=boolean("the first replica leads"),
)

CONFIG = RowType(
    "config",
    "One configured value of an entity.",
    entity_type=string("", "topics", "brokers", "clients", "users", "ips"),
    entity_name=string(),
    key=string(),
    value=string("secrets redacted unless --show-secrets"),
)
