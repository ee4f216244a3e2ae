"""Users of different rights: what each command shows them, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, eventually, kraft_cluster
from tests.brokers.wire.conftest import WireKctl

pytestmark = pytest.mark.brokers


@dataclass
class AsUser(WireKctl):
    """kctl of a user who logs in, with the rights that ACLs give."""

    user: str = ""

    @property
    def environment(self) -> dict[str, str]:
        return {
            **super().environment,
            "KCTL_BOOTSTRAP_SERVER": self.cluster.login_bootstrap,
            "KCTL_SASL_MECHANISM": "PLAIN",
            "KCTL_SASL_USERNAME": self.user,
            "KCTL_SASL_PASSWORD": self.user,
        }


def allow(
    c: Cluster, user: str, kind: str, name: str, *operations: str, prefixed: bool = False, deny: bool = False
) -> None:
    """Give a user rights on a resource, or deny them."""
    from kafka.admin import (
        ACL,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        KafkaAdminClient,
        ResourcePattern,
        ResourceType,
    )

    pattern = ACLResourcePatternType.PREFIXED if prefixed else ACLResourcePatternType.LITERAL
    resource = ResourcePattern(ResourceType[kind], name, pattern)
    permission = ACLPermissionType.DENY if deny else ACLPermissionType.ALLOW
    admin = KafkaAdminClient(bootstrap_servers=c.bootstrap.split(","))
    try:
        admin.create_acls(
            [ACL(f"User:{user}", "*", ACLOperation[each], permission, resource) for each in operations]
        )
    finally:
        admin.close()


ON_THE_CLUSTER = ("DESCRIBE", "DESCRIBE_CONFIGS", "ALTER", "ALTER_CONFIGS")


@pytest.fixture(scope="module")
def deserted() -> Iterator[Cluster]:
    """Broker 2, which alone holds `secret` and `shown`, is dead for good; what users may see of topics differs."""
    users = ("all", "shown", "but-secret", "no-cluster", "no-configs")
    with kraft_cluster("4.3", brokers=2, no_voters=(2,), users=users) as c:
        k = WireKctl(c, c.folder / "journal")
        k.change("topic", "create", "secret", "--replica-assignment", "2")
        k.change("topic", "create", "shown", "--replica-assignment", "1")
        for user in users:
            if user != "no-cluster":
                rights = ON_THE_CLUSTER if user != "no-configs" else ("DESCRIBE", "ALTER")
                allow(c, user, "CLUSTER", "kafka-cluster", *rights)
            if user != "shown":
                allow(c, user, "TOPIC", "*", "DESCRIBE")
        allow(c, "shown", "TOPIC", "shown", "DESCRIBE")
        allow(c, "but-secret", "TOPIC", "sec", "DESCRIBE", prefixed=True, deny=True)
        c.kill(2)
        for _ in eventually("broker 2 is fenced"):
            if not k("cluster", "brokers").of("broker")[1]["is_alive"]:
                break
        yield c


@pytest.mark.parametrize(
    ("user", "missing"),
    [
        ("all", "secret-0"),
        ("shown", "Describe on Topic *"),
        ("but-secret", "Describe on topics whose names begin with sec"),
        ("no-cluster", "Describe on Cluster"),
        ("no-configs", "DescribeConfigs on Cluster"),
    ],
)
def test_what_a_dead_broker_holds_has_to_be_seen(
    deserted: Cluster, tmp_path: Path, user: str, missing: str
) -> None:
    k = AsUser(deserted, tmp_path / "journal", user)
    ran = k("cluster", "unregister", "2", "--yes")
    assert ran.status == 4 and missing in ran.err and "nothing was written" in ran.err, ran.err
    ran = k("reassign", "plan", "--drain", "2", "--to", tmp_path / "drain.json")
    if user == "all":
        assert ran.status == 0 and "no replica in sync is alive: secret-0" in ran.err, ran.err
    else:
        assert ran.status == 4 and missing in ran.err and not (tmp_path / "drain.json").exists()


def test_a_broker_that_holds_nothing_is_unregistered(deserted: Cluster, tmp_path: Path) -> None:
    WireKctl(deserted, tmp_path / "journal").change("topic", "delete", "secret")
    k = AsUser(deserted, tmp_path / "journal", "but-secret")
    assert (
        k("cluster", "unregister", "2", "--yes").status == 4
    )  # a topic of such a name may be made at any time
    AsUser(deserted, tmp_path / "journal", "all").change("cluster", "unregister", 2)
