"""Rows about topics, partitions and configurations of a cluster."""

from kctl.rows import RowType

TOPIC = RowType("""
    topic: A topic.
    topic
    topic_id            string?   Kafka's base64 form (2.8 and later)
    partition_count     integer?  null if the topic's znode cannot be read
    replication_factor  integer?  replicas of partition 0, without adding replicas
    is_internal, is_marked_for_deletion  boolean
    configs             object?   values set for the topic; null if not requested, or not readable
    why                 string?   why a value could not be read, and the right that is missing
""")

PARTITION = RowType("""
    partition: A partition with its replicas and leader.
    topic, partition
    leader               integer?  -1: none; null: it never had one
    leader_epoch?
    replicas             array     the preferred leader first; with adding and removing replicas
    isr                  array     in Kafka's order
    adding_replicas, removing_replicas  array?  null if reassignments may not be listed
    controller_epoch     integer?  of the controller that last wrote leader and ISR
    partition_epoch      integer?  increases with each change of leader or ISR
    is_under_replicated  boolean   a replica that is not being removed is not in the ISR
    is_offline           boolean   no leader, or a dead one
    is_under_min_isr     boolean?  fewer in the ISR than min.insync.replicas; null if that is not known
    is_leader_preferred  boolean   the first replica leads
    offline_replicas     array     those on dead brokers and failed disks
    eligible_leader_replicas  array?  can lead without loss, though not in the ISR (KIP-966); null if not tracked
    last_known_elr       array?    had led last, of a partition without ISR and eligible replicas
    why                  string?   why a value could not be read, and the right that is missing
""")

CONFIG = RowType("""
    config: One configured value of an entity.
    entity_type       topics|brokers|clients|users|ips|broker-loggers|client-metrics|groups
    entity_name, key  string
    value             string?   secrets redacted unless --show-secrets; null if the broker does not return it
    source            topic|group|broker|default_broker|static|default|client_metrics|broker_logger? or absent  with
                      --effective
    is_sensitive, is_read_only  boolean or absent
    type              boolean|string|int|short|long|double|list|class|password? or absent
    synonyms          array or absent    {key, value, source}, in order of force
    documentation     string? or absent  with --explain
""")
