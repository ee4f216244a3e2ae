"""Rows about a cluster as a whole: brokers, controller, health, predictions."""

from kctl.rows import RowType

CLUSTER = RowType("""
    cluster: A cluster in one row.
    cluster_id     string?
    kafka_version  string    a lower bound, unless pinned
    backend        zookeeper|snapshot|admin
    brokers        integer   alive
    controller     integer?  broker id
    controller_epoch?
    topics, partitions, replicas, offline_partitions, under_replicated_partitions  integer
    under_min_isr_partitions, non_preferred_leaders, reassigning_partitions  integer
    is_migrating   boolean   a KRaft quorum has claimed it
""")

BROKER = RowType("""
    broker: A broker that is alive, or that a replica is assigned to.
    broker_id
    is_alive, is_controller  boolean
    host?, port?, rack?
    endpoints                array     LISTENER://HOST:PORT
    broker_epoch             integer?  grows each time it registers
    registered_at            integer?  milliseconds
    replicas                 integer
    leaders                  integer   partitions that it leads
    preferred_leaders        integer   partitions whose first replica it is
    imbalance                integer?  percent of those that it does not lead
""")

LOG_DIR = RowType("""
    log_dir: A log directory of a broker, or a broker that did not tell of its own.
    broker_id
    log_dir            string?   its path; null where the broker did not answer
    state              online|failed|cordoned|unreachable
    error              string?   why it is not online
    size_in_bytes      integer?  of the replicas in it; null where no broker tells
    total_bytes        integer?  of the file system, which several directories may share (3.3 and later)
    usable_bytes       integer?  what is free of them
    partitions         integer?  that have a replica in it
    future_partitions  integer?  of those, copies that will replace the one in another directory
""")

CONTROLLER = RowType("""
    controller: Who is controller.
    broker_id   integer?  null where there is none
    controller_epoch?
    is_alive    boolean
    is_kraft    boolean   a KRaft quorum has claimed the cluster
    elected_at  integer?  milliseconds
    host?, port?
""")

HEALTH = RowType("""
    health: One check of a cluster's health.
    check     string   stable name
    status    good|info|warning|error
    count     integer  how much it found
    message   string   what it means when it finds something
    examples  array    the first few things found
""")

PREDICTION = RowType("""
    prediction: What becomes of a partition when brokers stop.
    topic, partition
    outcome              unaffected|isr_shrinks|new_leader|unclean|offline
    replicas
    leader_before        integer?
    leader               integer?  -1: none; a dead one where a new controller until 2.3 leaves it there
    isr_before           array
    isr                  array     of an offline partition only its last member, whichever that is; none with
        eligible leaders
    eligible_leaders     array     who may lead later and lose nothing, where the controller keeps that
        (KIP-966); one that crashed is struck from them when it comes back
    min_insync_replicas  integer   as far as it can be seen
    is_under_min_isr     boolean
""")

ELECTION = RowType("""
    partition: A partition and its preferred leader.
    topic, partition
    state                     done|not_started|in_progress|failed  done: led by it; not_started: an election
        would help; failed: it cannot
    replicas                  array  the preferred leader first
    isr
    leader, preferred_leader  integer?
    reason                    string?
    lost_at_least, lost_at_most  integer?  records that an unclean election lost; null: not known, or a clean one
""")

CANDIDATE = RowType("""
    candidate: A replica that an unclean election could make leader, and what that would lose.
    topic, partition, broker_id
    is_alive                    boolean
    is_eligible_leader_replica  boolean   it has every committed record (KIP-966)
    leader_epoch                integer?  of its last record; -1: it is empty; null where it does not answer
    log_end_offset              integer?
    lost_at_least               integer?  records that replicas which answer have, and it has not
    lost_at_most                integer?  null while a replica that may have more does not answer
    is_proposed                 boolean
""")

RESTART = RowType("""
    restart: A broker or controller of a rolling restart.
    broker_id
    place        integer   in the order, from 1
    is_safe_now  boolean   whether it could be stopped now
    reason       string?   the first thing that would be wrong with that
    waits_for    array     everything that would
    roles        array     broker, controller
    is_leader    boolean   the active controller
""")
