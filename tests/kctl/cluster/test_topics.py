"""Plans to create, grow and delete topics, and what is refused: on ZooKeeper in a dict."""

from __future__ import annotations

import pytest

from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.plan import Plan
from kctl.changes.unclean_allowed import guarded
from kctl.cluster.names import check_topic_name, refuse_collision, sanitized
from kctl.cluster.placement import Draws
from kctl.cluster.versions import KafkaVersion, parse_version
from kctl.errors import BadValue, KctlError, Refused
from kctl.operations.configs import check_values, parse_assignments, plan_configs
from kctl.operations.topics import (
    NewTopic,
    parse_replica_assignment,
    plan_creation,
    plan_deletion,
    plan_growth,
)
from kctl.zookeeper.cluster import ZookeeperCluster
from kctl.zookeeper.writes import notification_form
from tests.fakes import FakeStore, add_topic, fake_cluster, put_state

V28, V082 = KafkaVersion(2, 8), KafkaVersion(0, 8, 2)


def writes(plan: object) -> dict[str, bytes | None]:
    return {w.target: w.after for s in plan.stages for w in s.writes if w.action != "check"}  # type: ignore[attr-defined]


@pytest.fixture
def store() -> FakeStore:
    return fake_cluster()


@pytest.fixture
def cluster(store: FakeStore) -> ZookeeperCluster:
    return ZookeeperCluster(store)


@pytest.mark.parametrize(
    ("form", "topic"),
    [
        (1, b'{"version":1,"partitions":{"0":[1,2]}}'),
        (5, b'{"version":3,"partitions":{"0":[1,2]},"adding_replicas":{},"removing_replicas":{}}'),
    ],
)
def test_a_topic_is_written_in_the_form_of_its_version(form: int, topic: bytes) -> None:
    cluster = ZookeeperCluster(fake_cluster(form=form))
    plan = plan_creation(cluster, NewTopic(name="a", replicas={0: (1, 2)}, configs={"retention.ms": "9"}))
    assert writes(plan) == {
        "/config/topics/a": b'{"version":1,"config":{"retention.ms":"9"}}',
        "/brokers/topics/a": topic,
    }
    checks = [w.target for w in plan.stages[0].writes if w.action == "check"]
    assert checks == ["/controller", "/controller_epoch"]


def test_replicas_are_placed_as_kafka_does(cluster: ZookeeperCluster) -> None:
    plan = plan_creation(cluster, NewTopic(name="a", partitions=4, replication_factor=2, draws=Draws(0, 0)))
    assert plan.stages[0].intent.replicas == {0: (1, 2), 1: (2, 3), 2: (3, 1), 3: (1, 3)}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("new", "error", "words"),
    [
        (NewTopic(name="bad name", partitions=1, replication_factor=1), BadValue, "not a topic name"),
        (NewTopic(name="a_b", partitions=1, replication_factor=1), Refused, "collides with topic a.b"),
        (NewTopic(name="a.b", partitions=1, replication_factor=1), Refused, "already exists"),
        (NewTopic(name="gone", partitions=1, replication_factor=1), Refused, "marked for deletion"),
        (NewTopic(name="x", partitions=0, replication_factor=1), BadValue, "0 partitions"),
        (NewTopic(name="x", partitions=1, replication_factor=4), Refused, "larger than the 3"),
        (NewTopic(name="x", partitions=1), BadValue, "--replication-factor"),
        (NewTopic(name="x", replicas={0: (1, 1)}), BadValue, "twice"),
        (NewTopic(name="x", replicas={0: (1, 2), 1: (1,)}), BadValue, "same number"),
        (NewTopic(name="x", replicas={0: ()}), BadValue, "no replicas"),
        (NewTopic(name="x", replicas={0: (9,)}), Refused, "not alive"),
        (NewTopic(name="x", replicas={0: (-1,)}), BadValue, "not a broker id"),
        (NewTopic(name="x", replicas={0: (1,)}, configs={"retention": "1"}), BadValue, "retention"),
    ],
)
def test_what_kafka_would_refuse_is_refused(
    store: FakeStore, cluster: ZookeeperCluster, new: NewTopic, error: type[KctlError], words: str
) -> None:
    add_topic(store, "a.b", [[1]])
    store.put("/admin/delete_topics/gone", b"")
    with pytest.raises(error, match=words) as caught:
        plan_creation(cluster, new)
    assert caught.value.exit_code == error.exit_code
    assert store.transactions == []


@pytest.mark.parametrize(
    ("own", "default", "warned"), [("3", None, "=3"), (None, "3", "=3"), ("2", "3", ""), (None, None, "")]
)
def test_a_topic_that_nobody_can_write_to_with_all_acks_is_warned_of(
    store: FakeStore, cluster: ZookeeperCluster, own: str | None, default: str | None, warned: str
) -> None:
    if default:
        config = {"version": 1, "config": {"min.insync.replicas": default}}
        store.put("/config/brokers/<default>", config)
    configs = {"min.insync.replicas": own} if own else {}
    plan = plan_creation(cluster, NewTopic(name="x", partitions=1, replication_factor=2, configs=configs))
    said = [w for w in plan.warnings if "min.insync.replicas" in w]
    assert len(said) == bool(warned) and all(warned in w and "acks=all never works" in w for w in said)


def test_growth_keeps_every_key_of_the_topic(store: FakeStore, cluster: ZookeeperCluster) -> None:
    add_topic(
        store, "a", [[1, 2]], topic_id="dORjDjfESdeIhDtV432STQ", adding_replicas={}, unheard_of={"of": [1]}
    )
    written = writes(plan_growth(cluster, "a", 2))["/brokers/topics/a"]
    assert written == (
        b'{"version":3,"partitions":{"0":[1,2],"1":[2,3]},"topic_id":"dORjDjfESdeIhDtV432STQ",'
        b'"adding_replicas":{},"unheard_of":{"of":[1]}}'
    )


@pytest.mark.parametrize(
    ("replicas", "other", "total", "error", "words"),
    [
        ([[1]], {}, 0, BadValue, "cannot be fewer"),
        ([[1, 2]], {"adding_replicas": {"0": [2]}}, 2, Refused, "being reassigned"),
    ],
)
def test_growth_is_refused(
    store: FakeStore,
    cluster: ZookeeperCluster,
    replicas: list[list[int]],
    other: dict[str, dict[str, list[int]]],
    total: int,
    error: type[KctlError],
    words: str,
) -> None:
    add_topic(store, "a", replicas, **other)  # type: ignore[arg-type]
    with pytest.raises(error, match=words):
        plan_growth(cluster, "a", total)


def test_growth_while_the_old_request_moves_it_is_refused(
    store: FakeStore, cluster: ZookeeperCluster
) -> None:
    add_topic(store, "a", [[1]])
    request = {"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [2]}]}
    store.put("/admin/reassign_partitions", request)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="being reassigned"):
        plan_growth(cluster, "a", 2)


def test_no_growth_needs_no_change(store: FakeStore, cluster: ZookeeperCluster) -> None:
    add_topic(store, "a", [[1], [2]])
    assert plan_growth(cluster, "a", 2).is_empty


def test_partitions_with_gaps_are_refused(store: FakeStore, cluster: ZookeeperCluster) -> None:
    store.put("/brokers/topics/a", {"version": 1, "partitions": {"0": [1], "2": [1]}})
    with pytest.raises(Refused, match="not numbered"):
        plan_growth(cluster, "a", 3)


def test_internal_topics_are_left_alone(store: FakeStore, cluster: ZookeeperCluster) -> None:
    add_topic(store, "__consumer_offsets", [[1]])
    with pytest.raises(Refused, match="Kafka's own"):
        plan_growth(cluster, "__consumer_offsets", 2)
    with pytest.raises(Refused, match="Kafka's own"):
        plan_deletion(cluster, "__consumer_offsets")


def test_deletion_says_what_will_stall_it(store: FakeStore, cluster: ZookeeperCluster) -> None:
    add_topic(store, "a", [[1, 9]])
    plan = plan_deletion(cluster, "a")
    assert plan.warnings == ("it will wait: broker 9 is not alive",)
    assert writes(plan) == {"/admin/delete_topics/a": b""}


def test_deletion_of_an_old_cluster_asks_whether_it_is_on() -> None:
    store = fake_cluster(form=1)
    add_topic(store, "a", [[1]])
    cluster = ZookeeperCluster(store)
    with pytest.raises(Refused, match="--deletion-is-enabled"):
        plan_deletion(cluster, "a")
    assert not plan_deletion(cluster, "a", is_enabled=True).is_empty


def test_deletion_takes_its_name_literally(store: FakeStore, cluster: ZookeeperCluster) -> None:
    add_topic(store, "fooxbar", [[1]])
    with pytest.raises(KctlError, match=r"no topic foo\.bar"):
        plan_deletion(cluster, "foo.bar")


def test_a_migrating_cluster_is_not_changed(store: FakeStore, cluster: ZookeeperCluster) -> None:
    store.put("/migration", {"version": 0})
    with pytest.raises(Refused, match="migration to KRaft"):
        plan_creation(cluster, NewTopic(name="a", replicas={0: (1,)}))
    store.remove("/migration")
    store.remove("/controller")
    store.put("/controller", {"version": 2, "brokerid": 3000, "timestamp": "1", "kraftControllerEpoch": 1})
    with pytest.raises(Refused, match="persistent"):
        plan_creation(cluster, NewTopic(name="a", replicas={0: (1,)}))


# --- names and values ---


@pytest.mark.parametrize("name", ["a" * 249, "A.b_c-0"])
def test_good_names(name: str) -> None:
    check_topic_name(name, V28)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "a" * 250, "a\n"])
def test_bad_names(name: str) -> None:
    with pytest.raises(BadValue):
        check_topic_name(name, V28)


def test_names_of_old_releases() -> None:
    check_topic_name("a" * 255, V082)
    refuse_collision("a.b", ["a_b"], V082)


def test_names_in_paths() -> None:
    assert sanitized("CN=a b,O=*+~") == "CN%3Da%20b%2CO%3D%2A%2B%7E"
    assert sanitized("<default>") == "<default>"


@pytest.mark.parametrize(
    ("key", "value", "version", "good"),
    [
        ("retention.ms", "-1", "2.8", True),
        ("retention.ms", "-2", "2.8", False),
        ("retention.ms", "-2", "0.8.2", True),
        ("retention.ms", "1.5", "2.8", False),
        ("retention.ms", "9223372036854775808", "2.8", False),
        ("cleanup.policy", "compact,delete", "2.8", True),
        ("cleanup.policy", "compact,delete", "0.9", False),
        ("cleanup.policy", "anything", "0.8.2", True),
        ("compression.type", "zstd", "2.8", True),
        ("compression.type", "zstd", "2.0", False),
        ("compression.type", "gzip", "0.8.2", False),
        ("flush.messages", "0", "2.8", True),
        ("flush.messages", "0", "3.9", False),
        ("unclean.leader.election.enable", "TRUE", "2.8", True),
        ("unclean.leader.election.enable", "TRUE", "0.8.2", False),
        ("min.insync.replicas", "0", "0.8.2", False),
        ("segment.bytes", "13", "2.8", False),
        ("leader.replication.throttled.replicas", "0:1,1:2", "2.8", True),
        ("leader.replication.throttled.replicas", "*", "2.8", True),
        ("leader.replication.throttled.replicas", "0-1", "2.8", False),
        ("remote.log.copy.disable", "true", "3.9", False),
        ("compression.zstd.level", "22", "3.9", True),
        ("min.cleanable.dirty.ratio", "1.1", "2.8", False),
        ("min.cleanable.dirty.ratio", "nan", "2.8", False),
        ("no.such.key", "1", "2.8", False),
    ],
)
def test_values_are_checked_as_the_version_does(key: str, value: str, version: str, good: bool) -> None:
    if good:
        check_values("topics", {key: value}, parse_version(version))
    else:
        with pytest.raises(BadValue, match=key):
            check_values("topics", {key: value}, parse_version(version))


def test_values_that_do_not_go_together() -> None:
    with pytest.raises(BadValue, match=r"max\.compaction"):
        check_values("topics", {"max.compaction.lag.ms": "5", "min.compaction.lag.ms": "6"}, V28)
    with pytest.raises(BadValue, match="compact"):
        check_values(
            "topics", {"remote.storage.enable": "true", "cleanup.policy": "compact"}, parse_version("3.9")
        )
    with pytest.raises(BadValue, match=r"local\.retention"):
        values = {"remote.storage.enable": "true", "local.retention.ms": "10", "retention.ms": "9"}
        check_values("topics", values, parse_version("3.9"))


def test_secrets_are_refused(store: FakeStore, cluster: ZookeeperCluster) -> None:
    with pytest.raises(Refused, match="secret"):
        plan_configs(cluster, "users", "u", set={"SCRAM-SHA-256": "x"})
    with pytest.raises(Refused, match="secret"):
        plan_configs(cluster, "brokers", "1", set={"ssl.key.password": "x"})
    store.put("/config/users/u", {"version": 1, "config": {"SCRAM-SHA-256": "x"}})
    with pytest.raises(Refused, match="secrets"):
        plan_configs(cluster, "users", "u", set={}, unset=["SCRAM-SHA-256"])


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        ({"min.insync.replicas": "2"}, ["acks=all never works"]),
        ({"min.insync.replicas": "1"}, []),
        ({"unclean.leader.election.enable": "True"}, ["records may then lead, and these are lost"]),
        ({"unclean.leader.election.enable": "false", "retention.ms": "5"}, []),
    ],
)
def test_what_stops_writes_or_loses_records_is_warned_of(
    store: FakeStore, cluster: ZookeeperCluster, values: dict[str, str], warned: list[str]
) -> None:
    add_topic(store, "a", [[1, 2], [2]])
    said = plan_configs(cluster, "topics", "a", set=values).warnings
    assert len(said) == len(warned) and all(word in text for word, text in zip(warned, said, strict=True))


@pytest.mark.parametrize(("leader", "isr", "waits"), [(1, [1, 2], False), (-1, [1], True), (9, [9], True)])
def test_to_let_a_partition_without_a_leader_elect_an_unclean_one_needs_its_own_word(
    store: FakeStore, cluster: ZookeeperCluster, leader: int, isr: list[int], waits: bool
) -> None:
    add_topic(store, "a", [[1, 2]])
    add_topic(store, "b", [[1, 2]])
    put_state(store, "a", 0, leader, isr)
    value = {"unclean.leader.election.enable": "true"}
    plan = plan_configs(cluster, "topics", "a", set=value)
    assert plan.needs == ("--accept-loss" if waits else "")
    assert ("1 partition without a leader (a-0)" in plan.warnings[0]) == waits
    assert not plan_configs(cluster, "topics", "a", set=value, accepted=True).needs
    assert not plan_configs(cluster, "topics", "b", set=value).needs
    assert not plan_configs(cluster, "topics", "a", set={"unclean.leader.election.enable": "false"}).needs


UNCLEAN = "unclean.leader.election.enable"
ENTITIES = {"topic": ("topics", "a"), "broker": ("brokers", "1"), "default": ("brokers", "<default>")}
OTHERS = "may then lead"
FILES = "if a controller's own file allows it, which cannot be read here"


@pytest.mark.parametrize(
    ("values", "change", "needs"),
    [
        # What a value hides comes into force when it is removed: the broker's, the default's, at last a file's.
        ({"topic": "false", "default": "true"}, ("topic", None), True),
        ({"topic": "false", "broker": "true", "default": "false"}, ("topic", None), True),
        ({"topic": "false", "default": "false"}, ("topic", None), False),
        ({"topic": "false"}, ("topic", None), FILES),
        ({"topic": "true"}, ("topic", None), False),
        ({"broker": "false", "default": "true"}, ("broker", None), True),
        ({"default": "false"}, ("default", None), FILES),
        ({"default": "true"}, ("default", None), False),
        ({"topic": "false", "default": "false"}, ("default", None), False),
        ({"topic": "false"}, ("default", "true"), OTHERS),
        ({"default": "true"}, ("topic", "true"), False),
        ({"default": "false"}, ("topic", "true"), True),
        ({"default": "false"}, ("broker", "TRUE"), True),
        ({"broker": "false", "topic": None}, ("default", "true"), True),
    ],
)
@pytest.mark.parametrize("leader", [-1, 1])
def test_what_a_changed_value_lets_elect_unclean_needs_its_own_word(
    store: FakeStore,
    cluster: ZookeeperCluster,
    values: dict[str, str],
    change: tuple[str, str | None],
    needs: bool | str,
    leader: int,
) -> None:
    add_topic(store, "a", [[1, 2]])
    put_state(store, "a", 0, leader, [1])
    for entity, present in values.items():
        config = {UNCLEAN: present} if present else {}
        store.put(f"/config/{'/'.join(ENTITIES[entity])}", {"version": 1, "config": config})
    (entity_type, name), to = ENTITIES[change[0]], change[1]

    def planned(**accepted: bool) -> Plan:
        if to is None:
            return plan_configs(cluster, entity_type, name, set={}, unset=[UNCLEAN], **accepted)
        intent = AlterConfig.of(
            entity_type,
            name,
            {UNCLEAN: to},
            cluster.read_state(configs=["brokers", "topics"]).config(entity_type, name),
        )
        return guarded(cluster, [intent], Plan(title="", stages=()), **accepted)

    plan = planned()
    waits = needs in (True, FILES) and leader < 0
    assert plan.needs == ("--accept-loss" if waits else "")
    text = " ".join(plan.warnings)
    assert ("1 partition without a leader (a-0)" in text) == waits
    assert (FILES in text) == (needs == FILES and waits)
    assert (OTHERS in text) == (needs == OTHERS or (needs is True and not waits))
    assert not planned(accepted=True).needs
    assert planned(accepted=True).details == ({"may_elect_unclean": ["a-0"]} if waits else {})


def test_a_value_that_comes_back_later_needs_no_word_where_it_held_before(
    store: FakeStore, cluster: ZookeeperCluster
) -> None:
    add_topic(
        store,
        "a",
        [[1, 2]],
    )
    put_state(store, "a", 0, -1, [1])
    store.put("/config/topics/a", {"version": 1, "config": {UNCLEAN: "true"}})
    assert not plan_configs(cluster, "topics", "a", set={UNCLEAN: "false"}, seconds=60).needs


def test_a_configuration_comes_with_its_notification(store: FakeStore, cluster: ZookeeperCluster) -> None:
    add_topic(store, "a", [[1]])
    plan = plan_configs(cluster, "topics", "a", set={"retention.ms": "5"})
    (note,) = (w for w in plan.stages[0].writes if w.sequence)
    assert (note.action, note.target) == ("create", "/config/changes/config_change_")
    assert note.after == b'{"version":2,"entity_path":"topics/a"}'


@pytest.mark.parametrize(
    ("version", "content"),
    [("0.8.2", b'"a"'), ("0.10", b'{"version":1,"entity_type":"topics","entity_name":"a"}')],
)
def test_the_notification_is_one_that_the_oldest_broker_reads(
    store: FakeStore, cluster: ZookeeperCluster, version: str, content: bytes
) -> None:
    add_topic(store, "a", [[1]])
    pinned = parse_version(version)
    plan = plan_configs(cluster, "topics", "a", set={"retention.ms": "5"}, kafka_version=pinned)
    assert [w.after for w in plan.stages[0].writes if w.sequence] == [content]


def test_missing_folders_are_made_in_the_transaction(store: FakeStore, cluster: ZookeeperCluster) -> None:
    store.remove("/config/changes")
    plan = plan_configs(cluster, "users", "u/clients/c", set={"producer_byte_rate": "5"})
    made = [w.target for w in plan.stages[0].writes if w.action == "create" and not w.sequence]
    assert made == [
        "/config/users",
        "/config/users/u",
        "/config/users/u/clients",
        "/config/changes",
        "/config/users/u/clients/c",
    ]


@pytest.mark.parametrize(
    ("kind", "name", "given", "unset", "error"),
    [
        ("topics", "nope", {"retention.ms": "5"}, [], KctlError),
        ("topics", "a", {}, ["retention.ms"], KctlError),
        ("topics", "<default>", {"retention.ms": "5"}, [], BadValue),
        ("brokers", "one", {"leader.replication.throttled.rate": "5"}, [], BadValue),
        ("brokers", "1", {"log.retention.ms": "5"}, [], Refused),
        ("ips", "1.2.3.4", {"connection_creation_rate": "-1"}, [], BadValue),
    ],
)
def test_wrong_configurations(
    store: FakeStore,
    cluster: ZookeeperCluster,
    kind: str,
    name: str,
    given: dict[str, str],
    unset: list[str],
    error: type[KctlError],
) -> None:
    add_topic(store, "a", [[1]])
    with pytest.raises(error) as caught:
        plan_configs(cluster, kind, name, set=given, unset=unset)
    assert caught.value.exit_code == error.exit_code


def test_a_wrong_value_that_stands_there_can_be_unset_and_blocks_the_rest(
    store: FakeStore, cluster: ZookeeperCluster
) -> None:
    add_topic(store, "a", [[1]])
    store.put("/config/topics/a", {"version": 1, "config": {"retention.ms": "soon", "own.key": "x"}})
    with pytest.raises(Refused, match="configuration is invalid"):
        plan_configs(cluster, "topics", "a", set={"segment.ms": "5"})
    plan = plan_configs(cluster, "topics", "a", set={}, unset=["retention.ms"])
    assert writes(plan)["/config/topics/a"] == b'{"version":1,"config":{"own.key":"x"}}'


def test_assignments() -> None:
    assert parse_replica_assignment("1:2,2:3") == {0: (1, 2), 1: (2, 3)}
    with pytest.raises(BadValue):
        parse_replica_assignment("1:x")
    assert parse_assignments(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    for wrong in (["a"], ["=b"], ["a=1", "a=2"]):
        with pytest.raises(BadValue):
            parse_assignments(wrong)


def test_states_are_read_with_what_is_wrong(store: FakeStore, cluster: ZookeeperCluster) -> None:
    add_topic(store, "a", [[1, 2]])
    put_state(store, "a", 0, 2, [2], epoch=4)
    store.put("/brokers/topics/b", b"no json")
    state = cluster.read_state()
    assert [(p.place, p.reason[:8]) for p in state.problems] == [("/brokers/topics/b", "not JSON")]
    assert state.topic_names == ("a", "b") and list(state.topics) == ["a"]


@pytest.mark.parametrize(
    ("version", "form"), [("0.8.2", 0), ("0.9", 1), ("0.10.0", 1), ("0.10.1", 2), ("2.8", 2)]
)
def test_the_form_of_a_notification_is_that_of_the_version(version: str, form: int) -> None:
    assert notification_form(parse_version(version), "topics") == form
    if form == 2:
        assert notification_form(parse_version(version), "users") == form
