"""Rows of `kctl state-log`."""

from kctl.rows import RowType

EVENT = RowType("""
    event: A record of a broker's log.
    time           string?   UTC, ISO 8601 with milliseconds; null for lines before the first record of a file
    broker_id      integer?  the broker that wrote it
    file           string    relative to the folder given on the command line
    line           integer   number of its first line, from 1
    level, logger  string?
    event          string?   template id, see `kctl state-log explain`; null for a line without template
    fields         object    what the template names, by type
    text           string    the message; then what follows it, such as a stack trace
    evidence?
    logged_time    string?   as the line says; `time` is never before the line above by a race of threads
""")

LEADER = RowType("""
    leader: A leader epoch of a partition, or of KRaft's metadata quorum: who led, from when, and how it came to be.
    topic, partition
    leader        integer?  -1: no leader; null: the logs do not say
    leader_epoch, controller_epoch?
    isr           array?    as decided at the start of the epoch
    isr_changes   array     `{time, isr, file, line}` of each change within the epoch
    from_time     string    UTC, ISO 8601
    to_time       string?   null: still
    how           creation|controlled_shutdown|failure|preferred|reassignment|unclean|isr_change|none|unknown
    evidence      array     `{file, line, broker_id, event, text}` of what proves it
    cause         string?   in words, where the logs say more than `how`
    began_before  boolean   it had begun when the logs begin: `from_time` is when it was first seen
    cluster       integer   1, 2, ...: its number among the clusters that followed each other on the same disks
""")

CONTROLLER_TERM = RowType("""
    controller_term: A controller epoch: who was controller, and how the term ended.
    broker_id?, controller_epoch?
    from_time   string?
    to_time     string?  null: still, or not said
    ended       string?  how it ended: resigned, replaced, stopped
    rejections  array    requests of this epoch that brokers rejected as stale
    evidence    array
    cluster     integer  as in rows of leaders
""")

BROKER_STATE = RowType("""
    broker_state: A change in the life of a broker.
    broker_id?
    time      string
    state     string  starting, up, controlled_shutdown, unclean_shutdown, stopping, down, fenced, unfenced, registered,
        killed, halted
    evidence  array
    how         string?  how a process ended that was killed or halted itself: no_shutdown, out_of_memory,
        log_dir_locked, port_taken, broker_id_taken, log_dir_failed, truncation_not_allowed, fatal_error_in_startup,
        fatal_error_in_shutdown, fatal_error_before_start, fatal_error, halted_in_shutdown, signal_in_startup
    until_time  string?  of a kill: the first line of the next process; it lies between `time` and this
    cluster     integer  as in rows of leaders
""")

QUORUM_STATE = RowType("""
    quorum_state: What a node of KRaft's metadata quorum became.
    broker_id?
    time        string
    state       string    unattached, voted, prospective, candidate, leader, follower, resigned, majority_lost
    leader_epoch?
    leader      integer?  whom it follows; itself where it leads
    voted_for   integer?
    times       integer   how often it became that while it knew no leader; other keys but the next two are of the first
    last_time   string    when it became that last
    last_epoch  integer?
    evidence    array
    cluster     integer   as in rows of leaders
""")

METADATA_LOG = RowType("""
    metadata_log: A change of a node's copy of the metadata log.
    broker_id?
    time      string
    change    string    snapshot_created, snapshot_failed, snapshot_asked_for, snapshot_fetched, snapshot_loaded,
        snapshot_deleted, truncated
    offset    integer?  where the snapshot ends, or the log since it was cut
    epoch     integer?  of the snapshot
    evidence  array
    cluster   integer   as in rows of leaders
""")

TEMPLATE = RowType("""
    template: What a log line means.
    event          string?  template id
    text           string   the line that was asked about
    level, logger  string?
    pattern        string?  the sentence with its fields
    versions       string?  Kafka versions that print it
    meaning        string?
    fields         any      what the line says, by field
    before         array    templates that normally come before it
    after          array    templates that normally follow it
    sign           string?  what it is a sign of
    file           string?
    line?
""")
