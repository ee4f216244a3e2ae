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
    topics, partitions, replicas, offline_partitions, under_replicated_partitions  integer?  null where topics are hidden
    under_min_isr_partitions, non_preferred_leaders, reassigning_partitions  integer?
    is_migrating   boolean   a KRaft quorum has claimed it
    why            string?   why a value is null: what could not be read, and the right that is missing
""")

BROKER = RowType("""
    broker: A broker that is alive or has replicas assigned.
    broker_id
    is_alive                 boolean
    is_controller            boolean?  null if the controller may not be read
    host?, port?, rack?
    endpoints                array     LISTENER://HOST:PORT
    broker_epoch             integer?  increases with each registration
    registered_at            integer?  milliseconds
    replicas                 integer?  null where topics are hidden
    leaders                  integer?  partitions that it leads
    preferred_leaders        integer?  partitions whose first replica it is
    imbalance                integer?  percentage of its preferred partitions that it does not lead
    why                      string?   why a value is null, and the right that is missing
""")

LOG_DIR = RowType("""
    log_dir: A log directory of a broker, or a broker that did not answer.
    broker_id
    log_dir            string?   its path; null if the broker did not answer
    state              online|failed|cordoned|unreachable?  null if this user may not read it
    error              string?   why it is not online
    why                string?   the right that is missing
    size_in_bytes      integer?  of the replicas in it; null if unknown
    total_bytes        integer?  of the file system, which several directories may share (3.3 and later)
    usable_bytes       integer?  free bytes of the file system
    partitions         integer?  that have a replica in it
    future_partitions  integer?  of those, copies that will replace a replica in another directory
""")

CONTROLLER = RowType("""
    controller: The controller.
    broker_id   integer?  null if there is none, or it may not be read
    controller_epoch?
    is_alive    boolean?
    is_kraft    boolean   a KRaft quorum has claimed the cluster
    elected_at  integer?  milliseconds
    host?, port?
    why         string?   why a value is null, and the right that is missing
""")

HEALTH = RowType("""
    health: One check of a cluster's health.
    check     string   stable name
    status    good|info|warning|error|unknown  unknown: what decides could not be read
    count     integer  number of problems found
    message   string   meaning of the problem
    examples  array    the first few problems
""")

PREDICTION = RowType("""
    prediction: The predicted state of a partition if brokers stop.
    topic, partition
    outcome              unaffected|isr_shrinks|new_leader|unclean|offline
    replicas
    leader_before        integer?
    leader               integer?  -1: none; may be a dead broker if a new controller up to 2.3 keeps it
    isr_before           array
    isr                  array     of an offline partition only one last member; empty with
        eligible leaders
    eligible_leaders     array     replicas that can lead later without loss, if the controller tracks them
        (KIP-966); a crashed replica is removed when it comes back
    min_insync_replicas  integer   as far as known
    is_under_min_isr     boolean
""")

ELECTION = RowType("""
    partition: A partition and its preferred leader.
    topic, partition
    state                     done|not_started|in_progress|failed  done: the preferred leader leads; not_started: an election
        would make it leader; failed: an election would not
    replicas                  array  the preferred leader first
    isr
    leader, preferred_leader  integer?
    reason                    string?
    lost_at_least, lost_at_most  integer?  records that an unclean election lost; null: unknown, or a clean election
""")

CANDIDATE = RowType("""
    candidate: A replica that an unclean election could make leader, and the expected loss.
    topic, partition, broker_id
    is_alive                    boolean
    is_eligible_leader_replica  boolean   it has every committed record (KIP-966)
    leader_epoch                integer?  of its last record; -1: empty log; null if the broker does not answer
    log_end_offset              integer?
    lost_at_least               integer?  records of answering replicas that this replica lacks
    lost_at_most                integer?  null if a replica that may have more does not answer
    is_proposed                 boolean
""")

RESTART = RowType("""
    restart: A broker or controller of a rolling restart.
    broker_id
    place        integer   in the order, from 1
    is_safe_now  boolean?  whether it can be stopped now; null if a part that could not be read decides
    reason       string?   the first problem that stopping it would cause
    waits_for    array     all problems that stopping it would cause
    roles        array     broker, controller
    is_leader    boolean   the active controller
    why          string?   what could not be read, and the right that is missing
""")
