"""Rows about a migration from ZooKeeper to KRaft."""

from kctl.rows import RowType

ENTITY_TYPE = "topic|partition|config|quota|user|acl|delegation_token|broker|producer_ids|feature"

MIGRATION = RowType("""
    migration: The progress of a migration.
    phase              none|preparing|hybrid|dual_write|finalized|rolled_back  hybrid: copied, brokers in ZooKeeper
        mode; dual_write: brokers in KRaft mode, ZooKeeper still written
    controller_epoch?
    zookeeper_brokers  array?    ids that are alive in ZooKeeper mode; null: no znodes were read
    kraft_brokers      array?    ids that registered in KRaft mode; null: no metadata log was read
    message            string    one sentence
""")

DIFFERENCE = RowType(f"""
    difference: A field that differs between ZooKeeper and KRaft.
    entity_type  {ENTITY_TYPE}
    entity       string     for example `orders`, `orders-0`, `topic orders`, `user=alice, client-id=<default>`
    field        string?    null if one side lacks the whole entity
    zookeeper    any        null: absent
    kraft        any        null: absent
    severity     error|info  error: lost or wrong; info: an expected difference, or not compared
    reason       string
""")

COMPARISON = RowType(f"""
    comparison: Counts of the comparison for one type of entity.
    entity_type   {ENTITY_TYPE}
    zookeeper     integer  entities
    kraft         integer  entities
    fields        integer  compared
    equal         integer  of those
    errors, infos
    not_compared  integer  secrets missing from the export, and unreadable values
""")
