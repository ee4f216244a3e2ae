"""Rows of `kctl state-log`."""

from kctl.rows import RowType

EVENT = RowType("""
    event: A record of a broker's log.
    time           string?   UTC, ISO 8601 with milliseconds; null for lines before the first record of a file
    broker_id      integer?  broker that wrote it
    file           string    relative to the folder given on the command line
    line           integer   number of its first line, from 1
    level, logger  string?
    event          string?   template id, see `kctl state-log explain`; null if no template fits
    fields         object    values of the template's fields
    text           string    the message and the lines that follow it, for example a stack trace
    evidence?
    logged_time    string?   time in the line; `time` corrects lines that threads wrote out of order
    broker_by_name  string?  the pod, container or host of whose name `broker_id` is; null: a line or a folder tells it
""")

LEADER = RowType("""
    leader: A leader epoch of a partition, or of KRaft's metadata quorum: who led, from when, and why.
    topic, partition
    leader        integer?  -1: no leader; null: unknown
    leader_epoch, controller_epoch?
    isr           array?    at the start of the epoch
    isr_changes   array     `{time, isr, file, line}` for each change within the epoch
    from_time     string    UTC, ISO 8601
    to_time       string?   null: still leads
    how           creation|controlled_shutdown|failure|preferred|reassignment|unclean|isr_change|none|unknown
    evidence      array     `{file, line, broker_id, event, text}` of the lines that prove it
    cause         string?   description, if the logs show more than `how`
    began_before  boolean   it began before `from_time`, which is when the logs first show it
    cluster       integer   1, 2, ...: number of the cluster, if several used the same disks one after the other
    strength      string?   of `how` and `cause`. sure: states or the controller's words decide; likely: only nearness in
        time; null: unknown
    topic_id      string?   null: no line and no file names it
    incarnation   integer   1, 2, ...: number of the topic among those of this name, deleted and created again
    clock_offset_ms  integer?  how far the clock of the broker of the first evidence is ahead; the times of the row are
        corrected by it; null: no difference is known
""")

CONTROLLER_TERM = RowType("""
    controller_term: A controller epoch: the controller, and how its term ended.
    broker_id?, controller_epoch?
    from_time   string?
    to_time     string?  null: still controller, or unknown
    ended       string?  resigned, replaced, stopped
    rejections  array    requests of this epoch that brokers rejected as stale
    evidence    array
    cluster     integer  as in rows of leaders
    clock_offset_ms  integer?  as in rows of leaders
""")

BROKER_STATE = RowType("""
    broker_state: A state change of a broker.
    broker_id?
    time      string
    state     string  starting, up, controlled_shutdown, unclean_shutdown, stopping, down, fenced, unfenced, registered,
        killed, halted
    evidence  array
    how         string?  how a killed or halted process ended: no_shutdown, out_of_memory,
        log_dir_locked, port_taken, broker_id_taken, log_dir_failed, truncation_not_allowed, fatal_error_in_startup,
        fatal_error_in_shutdown, fatal_error_before_start, fatal_error, halted_in_shutdown, signal_in_startup
    until_time  string?  of a kill, which happened between `time` and this: the first line of the next process
    cluster     integer  as in rows of leaders
    cause       string?  of a halt, by the exceptions near it: disk_full, permission_denied, ...
    strength    string?  as in rows of leaders
    topic_id    string?  null: the state of a broker is of no topic
    clock_offset_ms  integer?  as in rows of leaders
""")

QUORUM_STATE = RowType("""
    quorum_state: A state change of a node of KRaft's metadata quorum.
    broker_id?
    time        string
    state       string    unattached, voted, prospective, candidate, leader, follower, resigned, majority_lost
    leader_epoch?
    leader      integer?  the leader it follows, or itself
    voted_for   integer?
    times       integer   how often it entered the state without a leader; the keys except the next two are of the first time
    last_time   string    when it last entered the state
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
    offset    integer?  end of the snapshot, or of the truncated log
    epoch     integer?  of the snapshot
    evidence  array
    cluster   integer   as in rows of leaders
""")

TEMPLATE = RowType("""
    template: The meaning of a log line.
    event          string?  template id
    text           string   the line in question
    level, logger  string?
    pattern        string?  the sentence with its fields
    versions       string?  Kafka versions that print it
    meaning        string?
    fields         any      values in the line, by field
    before         array    templates that normally come before it
    after          array    templates that normally follow it
    sign           string?  what it may indicate
    file           string?
    line?
""")

EXCEPTION = RowType("""
    exception: An exception of a broker: what it means, and what to do.
    exception, message  string   class with its package where the text has it
    cause               string?  disk_full, permission_denied, ...; null if no row of the table fits
    versions            string?  Kafka versions that throw it so; `any` for exceptions of Java
    stops               string?  broker, log directory, partition, fetcher of the partition, cleaner, request; null if that
        depends on where it was thrown
    meaning, action     string?
    fields              any      values in the message, by field
    file                string?
    line?
""")
