"""Rows about KRaft: the quorum, its members, features and their levels."""

from kctl.rows import RowType

QUORUM = RowType("""
    quorum: The KRaft quorum.
    leader_id        integer?  the active controller; null if there is none
    leader_epoch?
    high_watermark?
    voters           array     node ids
    has_majority     boolean   a leader, and more than half of the voters answer
    dead_voters      array     those that do not answer
    replaced_voters  array     those whose directory is gone, while the node is there as an observer with another one
    message          string?   why there is no active controller; what to do about replaced voters
""")

QUORUM_MEMBER = RowType("""
    quorum_member: A voter or observer of the KRaft quorum.
    node_id                   integer?  null where there is no leader and only the address is known
    is_voter                  boolean
    is_leader                 boolean   the controller
    log_end_offset            integer?  of the metadata log; null if the leader does not know it
    lag                       integer?  offsets behind the leader
    last_caught_up_timestamp  integer?  milliseconds, by the leader's clock
    directory_id              string?   of its metadata log, Kafka's base64 form (voters that can be changed)
    role                      leader|voter|observer
    last_fetch_timestamp      integer?  milliseconds, by the leader's clock
    lag_time_ms               integer?  how long ago it had last caught up with the leader
    is_answering              boolean?  it has fetched in the last 2 s; null before 3.3
    endpoints                 array     LISTENER://HOST:PORT, of voters (3.9 and later); without a leader HOST:PORT
""")

FEATURE = RowType("""
    feature: A feature of the cluster and its finalized level.
    feature  string
    level    integer
""")

FEATURE_LEVELS = RowType("""
    feature: A feature of the cluster: its level, and what the highest level that all brokers support would add.
    name             string
    finalized_level  integer   0: not enabled
    minimum_level    integer?  minimum that all brokers support; null if there is none
    maximum_level    integer?
    proposed_level   integer?  the highest supported level, if another is in force
    is_reversible    boolean?  whether the upgrade could be undone
    adds             array     additions of each level, with its KIP
""")
