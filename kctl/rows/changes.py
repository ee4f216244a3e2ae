"""Rows about changes: what differs from files, the plan's writes, and the journal."""

from kctl.rows import RowType

DRIFT = RowType("""
    drift: A resource, or a field of one, that is not as files ask for.
    kind_of_resource  topic|broker|client_metrics|group|user|quota|acl
    name              string    of a quota `user=U, client-id=C`; of a rule the rule in words
    field             string?   a key of the configuration, partitions, ...; null: the resource as a whole
    present, desired  any       null: it is not set, or not there
    file, line        any       that ask for it; null where nothing does
    action            create|change|delete|none?  none: it is not in the files, and stays; delete: it is not, and goes; null: it is not known, and `why`
    why               string?   why nobody knows what is present
""")

CHANGE = RowType("""
    change: A change in the journal.
    id          string   for `kctl journal show|undo|resume`
    time        string   when it was planned, UTC
    who         string   user and host
    command     string
    cluster_id  string?
    reason      string?  given with --reason
    state       planned|applied|partly_applied|undone
    title       string   what it does, in one clause
    finished    boolean  whether the brokers have finished it, as far as kctl waited
    undoes      string?  the change that this one undid
    outcome     string?  why it ended early
""")

WRITE = RowType("""
    write: One write of a plan. The writes of a stage are one transaction.
    stage          integer   from 0
    intent         string    what the stage asks for
    action         create|set|delete|check|request
    target         string    a znode, or the name of a request
    version        integer?  the version it must still have
    before         string?   the old content; secrets redacted
    after          string?   the new content; secrets redacted
    size_in_bytes  integer   of what is written
""")

REFUSED = RowType("""
    refused: An item of a request that a broker refused; it carried out the others.
    request     string   Kafka's name of it
    what        string   the partition, topic or entity
    topic?, partition?
    error_code  integer
    error       string   Kafka's name of the code
    reason      string?  the broker's own sentence
""")

JOURNAL_ENTRY = RowType("""
    change_stage: A stage of a change in the journal.
    id      string
    stage   integer  from 0
    intent  string
    state   planned|writing|written|finished|refused
    writes  integer
    undo    array    the writes that undo it, or why it cannot be undone
""")
