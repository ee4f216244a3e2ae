"""What an authorizer refuses is said of each topic, and the rest goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.cluster import Cluster, kraft_cluster
from tests.brokers.processes import eventually
from tests.brokers.wire.conftest import WireKctl, fill
from tests.brokers.wire.test_changes import plan_of

pytestmark = pytest.mark.brokers
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
# Not DELETE, which would stand for all topics.
ON_THE_CLUSTER = ("CLUSTER_ACTION", "ALTER", "DESCRIBE", "CREATE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")


@pytest.fixture(scope="module")
def guarded() -> Iterator[Cluster]:
    """Topic `open`; `locked`, which may only be described; and `secret`, which may not even be seen."""
    with kraft_cluster("4.3", brokers=1, properties=AUTHORIZER) as c:
        k = WireKctl(c, c.folder / "journal")
        for topic in ("open", "locked", "secret"):
            k.change("topic", "create", topic, "--replica-assignment", "1", "--config", "retention.ms=900000")
            fill(c, topic, records=3)
        allow(c, "TOPIC", "secret")
        allow(c, "TOPIC", "locked", "DESCRIBE")
        allow(c, "CLUSTER", "kafka-cluster", *ON_THE_CLUSTER)
        yield c


def allow(c: Cluster, kind: str, name: str, *operations: str) -> None:
    """The only rights on something that are left to somebody who does not say who it is."""
    from kafka.admin import (
        ACL,
        ACLOperation,
        ACLPermissionType,
        KafkaAdminClient,
        ResourcePattern,
        ResourceType,
    )

    resource = ResourcePattern(ResourceType[kind], name)
    somebody = ACL("User:somebody", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, resource)
    allowed = [
        ACL("User:ANONYMOUS", "*", ACLOperation[one], ACLPermissionType.ALLOW, resource) for one in operations
    ]
    admin = KafkaAdminClient(bootstrap_servers=c.bootstrap.split(","))
    try:
        admin.create_acls([somebody, *allowed])
        for _ in eventually(f"the broker has the rights on {name}"):
            if _are_in_force(admin, resource, len(allowed) + 1):
                break
    finally:
        admin.close()


def _are_in_force(admin: Any, resource: Any, number: int) -> bool:
    """Whether the broker, which a controller tells of rights later, has those on a resource."""
    from kafka.admin import ACLFilter, ACLOperation, ACLPermissionType
    from kafka.errors import ClusterAuthorizationFailedError

    of_resource = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, resource)
    try:
        return len(admin.describe_acls(of_resource)[0]) >= number
    except ClusterAuthorizationFailedError:
        return True  # rights on the cluster without Describe: they are in force


@pytest.fixture
def k(guarded: Cluster, tmp_path: Path) -> WireKctl:
    return WireKctl(guarded, tmp_path / "journal")


def test_reading_goes_on_with_what_may_be_read(k: WireKctl) -> None:
    assert [t["topic"] for t in k("topic", "list").of("topic")] == ["locked", "open"]
    ran = k("topic", "describe", "open", "secret", "locked")
    assert ran.status == 3 and [p["topic"] for p in ran.of("partition")] == ["locked", "open"]
    assert "kctl: topic secret: Describe on Topic secret is missing for User:ANONYMOUS\n" in ran.err
    assert (
        "kctl: configuration of topic locked: DescribeConfigs on Topic locked is missing for User:ANONYMOUS\n"
        in ran.err
    )
    assert "kctl acl create --principal User:ANONYMOUS --operation describe_configs --topic locked" in ran.err
    assert "open" not in ran.err and "no topic" not in ran.err


def test_live_logs_of_the_other_topics_are_examined(k: WireKctl) -> None:
    ran = k("segment", "verify", "open", "locked")
    assert ran.status == 3 and "Read on Topic locked is missing for User:ANONYMOUS" in ran.err
    (summary,) = ran.of("summary")
    assert summary["records"] == 3


def test_a_refused_change_is_a_row_and_nothing_is_written(k: WireKctl) -> None:
    ran = k("topic", "delete", "locked", "--yes")
    assert ran.status == 3 and "nothing was written" in ran.err
    (row,) = ran.of("refused")
    assert (row["request"], row["topic"], row["error"]) == (
        "DeleteTopics",
        "locked",
        "TOPIC_AUTHORIZATION_FAILED",
    )
    assert ran.of("change")[0]["state"] == "planned"
    assert "Delete on Topic locked is missing for User:ANONYMOUS; nothing was written" in ran.err
    ran = k("topic", "config", "set", "locked", "retention.ms=1", "--yes")
    assert ran.status in (3, 4) and "nothing was written" in ran.err and "ask again" not in ran.err


def test_a_hidden_topic_is_not_at_rest(k: WireKctl, tmp_path: Path) -> None:
    """What a change or a look over all topics says of one that may not be seen: that it is not known."""
    missing = "Describe on Topic secret is missing for User:ANONYMOUS"
    plan = plan_of(tmp_path, "secret", [1])
    for words in (
        ("topic", "delete", "secret"),
        ("reassign", "execute", plan),
        ("reassign", "cancel", plan),
        ("reassign", "throttle", "set", plan, 1000),
    ):
        ran = k(*words, "--yes")
        assert (ran.status, f"{missing}; nothing was written" in ran.err) == (3, True), (words, ran.err)
    cleared = k("reassign", "throttle", "clear", plan, "--yes")
    assert cleared.status == 3 and "may be left on topic secret" in cleared.err
    unused = k("reassign", "throttle", "clear", "--unused", "--yes")
    assert unused.status == 4 and "which throttles are in use is unknown" in unused.err
    verified = k("reassign", "verify", plan)
    assert (verified.status, [row["state"] for row in verified.of("partition")]) == (3, [None])
    for words in (("top",), ("transactions", "hanging"), ("replica", "verify")):
        ran = k(*words)
        assert ran.status in (3, 5) and "describe on topic" in (ran.err + ran.out.decode()).lower(), (
            words,
            ran.err,
        )
    checks = {row["check"]: row["status"] for row in k("top").of("health")}
    assert checks["offline"] == checks["under-min-isr"] == "unknown"
    judged = k("transactions", "hanging")
    assert judged.status == 3 and "could_not_judge" in [row["verdict"] for row in judged.of("judgement")]


@pytest.fixture(scope="module")
def narrow() -> Iterator[Cluster]:
    """Topic `open`, and `secret` which may not be seen, for somebody without a right on the cluster."""
    with kraft_cluster("4.3", brokers=1, properties=AUTHORIZER) as c:
        k = WireKctl(c, c.folder / "journal")
        for topic in ("open", "secret"):
            k.change("topic", "create", topic, "--replica-assignment", "1")
        allow(c, "TOPIC", "secret")
        allow(c, "CLUSTER", "kafka-cluster", "CLUSTER_ACTION")
        yield c


def test_without_a_right_on_the_cluster(narrow: Cluster, tmp_path: Path) -> None:
    k = WireKctl(narrow, tmp_path / "journal")
    ran = k("topic", "list")
    assert ran.status == 0 and [t["topic"] for t in ran.of("topic")] == ["open"]
    ran = k("topic", "describe", "open")
    assert ran.status == 3 and [p["partition"] for p in ran.of("partition")] == [0]
    assert "Describe on Cluster is missing" in ran.err and "org.apache" not in ran.err
    k.change("topic", "config", "set", "open", "retention.ms=900000")
    ran = k("topic", "config", "get", "open")
    assert ran.status == 0 and [row["value"] for row in ran.of("config")] == ["900000"]
    k.change("topic", "alter", "open", "--partitions", "2")
    ran = k("cluster", "rolling")
    assert [row["is_safe_now"] for row in ran.of("restart")] in ([None], [False])
    assert ran.status in (3, 5) and "can be stopped now" not in ran.err
    assert k("reassign", "throttle", "list").status == 3
    assert k("cluster", "health").status in (3, 5)
    ran = k("reassign", "plan", "--drain", "1", "--to", tmp_path / "drain.json")
    assert ran.status == 4 and not (tmp_path / "drain.json").exists()


def test_a_hidden_topic_makes_no_node_safe(k: WireKctl, tmp_path: Path) -> None:
    ran = k("reassign", "plan", "--drain", "1", "--to", tmp_path / "drain.json")
    assert ran.status == 4 and "Describe on topics secret is missing for User:ANONYMOUS" in ran.err
    assert {row["is_safe_now"] for row in k("cluster", "rolling").of("restart")} <= {None, False}
