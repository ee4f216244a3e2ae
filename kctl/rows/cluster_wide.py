"""Rows about a cluster as a whole: brokers, controller, health, predictions."""

from kctl.rows import RowType, array, boolean, integer, nullable, string

CLUSTER = RowType(
    "cluster",
    "A cluster in one row.",
    cluster_id=nullable(string()),
    kafka_version=string("a lower bound, unless pinned"),
    backend=string("", "zookeeper", "snapshot", "admin"),
    brokers=integer("alive"),
    controller=nullable(integer("broker id")),
    controller_epoch=nullable(integer()),
    topics=integer(),
    partitions=integer(),
    replicas=integer(),
    offline_partitions=integer(),
    under_replicated_partitions=integer(),
    under_min_isr_partitions=integer(),
    non_preferred_leaders=integer(),
    reassigning_partitions=integer(),
    is_migrating=boolean("a KRaft quorum has claimed it"),
)

BROKER = RowType(
    "broker",
    "A broker that is alive, or that a replica is assigned to.",
    broker_id=integer(),
    is_alive=boolean(),
    is_controller=boolean(),
    host=nullable(string()),
    port=nullable(integer()),
    rack=nullable(string()),
    endpoints=array("LISTENER://HOST:PORT"),
    broker_epoch=nullable(integer("grows each time it registers")),
    registered_at=nullable(integer("milliseconds")),
    replicas=integer(),
    leaders=integer("partitions that it leads"),
    preferred_leaders=integer("partitions whose first replica it is"),
    imbalance=nullable(integer("percent of those that it does not lead")),
)

QUORUM_MEMBER = RowType(
    "quorum_member",
    "A voter or observer of the KRaft quorum.",
    node_id=integer(),
    is_voter=boolean(),
    is_leader=boolean("the controller"),
    log_end_offset=integer("of the metadata log"),
    lag=integer("offsets behind the leader"),
    last_caught_up_timestamp=nullable(integer("milliseconds")),
)

FEATURE = RowType(
    "feature",
    "A feature of the cluster and the level that is finalized.",
    feature=string(),
    level=integer(),
)

CONTROLLER = RowType(
    "controller",
    "Who is controller.",
    broker_id=nullable(integer("null where there is none")),
    controller_epoch=nullable(integer()),
    is_alive=boolean(),
    is_kraft=boolean("a KRaft quorum has claimed the cluster"),
    elected_at=nullable(integer("milliseconds")),
    host=nullable(string()),
    port=nullable(integer()),
)

HEALTH = RowType(
    "health",
    "One check of a cluster's health.",
    check=string("stable name"),
    status=string("", "good", "info", "warning", "error"),
    count=integer("how much it found"),
    message=string("what it means when it finds something"),
    examples=array("the first few things found"),
)

PREDICTION = RowType(
    "prediction",
    "What becomes of a partition when brokers stop.",
    topic=string(),
    partition=integer(),
    outcome=string("", "unaffected", "isr_shrinks", "new_leader", "unclean", "offline"),
    replicas=array(),
    leader_before=nullable(integer()),
    leader=nullable(integer("-1: none; a dead one where a new controller until 2.3 leaves it there")),
    isr_before=array(),
    isr=array("of an offline partition only its last member, whichever that is; none with eligible leaders"),
    eligible_leaders=array(
        "who may lead later and lose nothing, where the controller keeps that (KIP-966); one that crashed "
        "is struck from them when it comes back"
    ),
    min_insync_replicas=integer("as far as it can be seen"),
    is_under_min_isr=boolean(),
)

ELECTION = RowType(
    "partition",
    "A partition and its preferred leader.",
    topic=string(),
    partition=integer(),
    state=string(
        "done: led by it; not_started: an election would help; failed: it cannot",
        "done",
        "not_started",
        "in_progress",
        "failed",
    ),
    replicas=array("the preferred leader first"),
    isr=array(),
    leader=nullable(integer()),
    preferred_leader=nullable(integer()),
    reason=nullable(string()),
)
