"""Rows about reassignments: plans, moves, batches, what brokers hold, partitions on their way, throttles."""

from kctl.rows import RowType

MOVE = RowType("""
    move: One partition of a plan.
    topic, partition
    from           array     replicas now, the preferred one first
    to             array     replicas after
    adding         array     brokers that get the data
    removing       array     brokers that lose it
    size_in_bytes  integer?  of one replica; null where no sizes were given
    broker_id      integer?  the broker on which the replica goes to another disk; null of a move between brokers
    from_log_dir   string?   its log directory now; null where the broker is still to get it
    to_log_dir     string?
""")

BATCH = RowType("""
    batch: A part of a plan that is carried out as one request.
    batch          integer   from 1
    file           string?
    partitions     integer
    size_in_bytes  integer   of the encoded request
    data_in_bytes  integer?  that moves; null where no sizes were given
""")

LOAD = RowType("""
    load: What a broker, a rack, or a log directory of a broker whose disks are balanced holds before and after a plan.
    broker_id       integer?  null in the row of a rack
    log_dir         string?   of the broker; null in the rows of brokers and racks
    rack?
    replicas_before, replicas_after  integer
    leaders_before  integer   partitions that prefer it as leader
    leaders_after   integer
    size_in_bytes_before, size_in_bytes_after  integer?
""")

PLAN = RowType("""
    plan: A plan: its files and how large it is.
    file              string?   null where nothing has to move
    rollback_file     string?
    identity          string    SHA-256 of its canonical partitions
    partitions        integer
    replicas_to_move  integer   replicas that are new on their broker: the moves
    data_in_bytes     integer?  that moves; null where no sizes were given
    batches
""")

PARTITION = RowType("""
    partition: Where a partition stands in a plan.
    topic, partition
    state             done|in_progress|not_started|failed
    replicas          array     assigned now
    isr               array     in Kafka's order
    leader            integer?  -1: none; null: it never had one
    target            array     where the plan puts it
    missing           array     target replicas that are not in the ISR
    bytes_done        integer?  copied to the replicas that are added; null where no sizes were given
    bytes_left        integer?
    bytes_per_second  integer?  seen between two looks at the replicas' sizes
    seconds_left      integer?  at the rate of the throttle, which moves share, else at the rate seen
    reason            string?   what it waits for, or why it failed
""")

THROTTLE = RowType("""
    throttle: A throttle that is set, and what it is for.
    entity_type              topics|brokers
    entity_name, key, value  string
    plan                     string?  identity of the plan in the journal that set it
    is_used                  boolean  whether a partition that it names is being moved, or a broker has
        throttled replicas; of copies between disks, whether any runs (true where nobody tells)
""")
