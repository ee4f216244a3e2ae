"""The runbooks about access, carried out as they are written, with a real client of the application."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.brokers.access.conftest import Guarded
from tests.brokers.access.test_acls import TOLD
from tests.brokers.processes import eventually
from tests.brokers.running import Kctl
from tests.brokers.test_runbooks import carry_out
from tests.brokers.wire.conftest import WireKctl, fill

pytestmark = [
    pytest.mark.brokers,
    pytest.mark.parametrize("guarded", ["kraft-4.3"], indirect=True),
]


def reads(guarded: Guarded, password: str) -> bool:
    """Whether a client of `billing` reads a record of `orders` in its group."""
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    consumer = KafkaConsumer(
        "orders", group_id="billing", bootstrap_servers=guarded.sasl, security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512", sasl_plain_username="billing", sasl_plain_password=password,
        auto_offset_reset="earliest", enable_auto_commit=False, consumer_timeout_ms=15_000,
    )  # fmt: skip
    try:
        return next(consumer, None) is not None
    except KafkaError:
        return False
    finally:
        consumer.close()


@pytest.fixture
def admin(guarded: Guarded, k: Kctl) -> WireKctl:
    """The administrator, who connects to brokers; topics `orders` and `invoices` are there, and no user or rule about them."""
    connected = WireKctl(guarded.cluster, k.journal)
    for topic in ("orders", "invoices"):
        connected.change("topic", "create", topic, "--partitions", "1", "--replication-factor", "1")
    fill(guarded.cluster, "orders", records=1)
    return connected


def leave(admin: WireKctl) -> None:
    """Take away what a runbook leaves."""
    admin.change("user", "delete", "billing", status=None)
    admin.change("acl", "delete", "--principal", "User:billing", *TOLD, status=None)
    for topic in ("orders", "invoices"):
        admin.change("topic", "delete", topic)


def test_give_an_application_access(guarded: Guarded, admin: WireKctl, tmp_path: Path) -> None:
    started: list[bool] = []

    def start() -> None:
        started.append(reads(guarded, (tmp_path / "billing.password").read_text().strip()))

    environment = {**admin.environment, "KCTL_YES": "1"}
    carry_out("give-an-application-access", tmp_path, environment, {"start-application": start})
    assert started == [True]
    assert not [row for row in admin("acl", "list").of("acl") if row["principal"] == "User:billing"]
    for _ in eventually("the rules are gone"):
        if not reads(guarded, (tmp_path / "billing.password").read_text().strip()):
            break
    leave(admin)


def test_somebody_is_denied(guarded: Guarded, admin: WireKctl, tmp_path: Path) -> None:
    access = ("--principal", "User:billing", "--topic", "orders", "--operation")
    admin.change("acl", "create", *access, "read", *TOLD)
    admin.change("acl", "create", *access, "all", "--deny", *TOLD)
    (tmp_path / "server.properties").write_text(
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:ANONYMOUS\n"
    )
    (metadata,) = guarded.cluster.folder.rglob("__cluster_metadata-0")
    shutil.copytree(metadata, tmp_path / "__cluster_metadata-0")
    printed = carry_out("somebody-is-denied", tmp_path, {**admin.environment, "KCTL_YES": "1"}, {})
    assert "deny User:billing all on topic orders" in printed, printed
    leave(admin)
