"""Rows about KRaft: the quorum, its members, features and their levels."""

from kctl.rows import RowType

QUORUM = RowType("""
    quorum: The KRaft quorum.
    leader_id       integer?  the active controller; null where there is none
    leader_epoch?
    high_watermark?
    voters          array     node ids
    has_majority    boolean   a leader, and more than half of the voters answer
    dead_voters     array     those that do not answer
    message         string?   why there is no active controller
""")

QUORUM_MEMBER = RowType("""
    quorum_member: A voter or observer of the KRaft quorum.
    node_id                   integer?  null where there is no leader and only the address is known
    is_voter                  boolean
    is_leader                 boolean   the controller
    log_end_offset            integer?  of the metadata log; null where the leader has never heard of it
    lag                       integer?  offsets behind the leader
    last_caught_up_timestamp  integer?  milliseconds, by the leader's clock
    directory_id              string?   of its metadata log, Kafka's base64 form (voters that can be changed)
    role                      leader|voter|observer
    last_fetch_timestamp      integer?  milliseconds, by the leader's clock
    lag_time_ms               integer?  by how much it has caught up later than the leader
    is_answering              boolean?  it has fetched in the last 2 s; null before 3.3
    endpoints                 array     LISTENER://HOST:PORT, of voters (3.9 and later); without a leader HOST:PORT
""")

FEATURE = RowType("""
    feature: A feature of the cluster and the level that is finalized.
    feature  string
    level    integer
""")

FEATURE_LEVELS = RowType("""
    feature: A feature of the cluster: the level in force, and what the highest that all brokers support would add.
    name             string
    finalized_level  integer   0: not in force
    minimum_level    integer?  that all brokers support; null where none does
    maximum_level    integer?
    proposed_level   integer?  the highest supported, where another is in force
    is_reversible    boolean?  whether that could be taken back
    adds             array     what it adds, a level and a KIP each
""")
