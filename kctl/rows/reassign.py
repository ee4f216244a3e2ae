"""Rows about reassignments: plans, moves, batches, loads of brokers, progress of partitions, throttles."""

from kctl.rows import RowType

MOVE = RowType("""
    move: One partition of a plan.
    topic, partition
    from           array     replicas now, the preferred one first
    to             array     replicas after
    adding         array     brokers that receive the data
    removing       array     brokers that delete their replica
    size_in_bytes  integer?  of one replica; null if no sizes were given
    broker_id      integer?  the broker, for a move between its disks; null for a move between brokers
    from_log_dir   string?   current log directory; null if the broker does not have the replica yet
    to_log_dir     string?
""")

BATCH = RowType("""
    batch: A part of a plan that kctl sends as one request.
    batch          integer   from 1
    file           string?
    partitions     integer
    size_in_bytes  integer   of the encoded request
    data_in_bytes  integer?  to move; null if no sizes were given
""")

LOAD = RowType("""
    load: The load of a broker, a rack, or a log directory (with --balance-disks) before and after a plan.
    broker_id       integer?  null in rows of racks
    log_dir         string?   of the broker; null in the rows of brokers and racks
    rack?
    replicas_before, replicas_after  integer
    leaders_before  integer   partitions whose preferred leader it is
    leaders_after   integer
    size_in_bytes_before, size_in_bytes_after  integer?
""")

PLAN = RowType("""
    plan: A plan: its files and size.
    file              string?   null if nothing has to move
    rollback_file     string?
    identity          string    SHA-256 of its canonical partitions
    partitions        integer
    replicas_to_move  integer   replicas that move to another broker
    data_in_bytes     integer?  to move; null if no sizes were given
    batches
""")

PARTITION = RowType("""
    partition: The progress of a partition in a plan.
    topic, partition
    state             done|in_progress|not_started|failed?  null if the topic is hidden from the user
    replicas          array?    assigned now; null like state, as are isr and missing
    isr               array?    in Kafka's order
    leader            integer?  -1: none; null: it never had one
    target            array     replicas in the plan
    missing           array?    target replicas that are not in the ISR
    bytes_done        integer?  copied to added replicas; null if no sizes were given
    bytes_left        integer?
    bytes_per_second  integer?  measured between two samples of the replicas' sizes
    seconds_left      integer?  at the rate of the throttle, which moves share, otherwise at the measured rate
    reason            string?   reason for waiting or failure
""")

THROTTLE = RowType("""
    throttle: A throttle and the plan that set it.
    entity_type              topics|brokers
    entity_name, key, value  string
    plan                     string?  identity of the plan in the journal that set it
    is_used                  boolean?  whether a partition that it names is being moved, or a broker has
        throttled replicas; for copies between disks, whether any runs (true if unknown); null where a hidden topic may use it
    why                      string?  why is_used is null
""")
