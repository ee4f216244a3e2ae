"""Rules of access on real brokers, listed, asked and changed; each time as kafka-acls lists them."""

from __future__ import annotations

import pytest

from tests.brokers.access.conftest import Guarded
from tests.brokers.running import Kctl
from tests.conftest import Ran

pytestmark = pytest.mark.brokers


def listed(ran: Ran) -> set[tuple[str, ...]]:
    """The rules of rows in the form of `acls_by_kafka`."""
    keys = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")
    rules = {tuple(str(row[key]) for key in keys) for row in ran.of("acl")}
    return {(rule[0].replace("_", ""), *rule[1:]) for rule in rules}


def test_lists_and_asks(guarded: Guarded, k: Kctl, name: str) -> None:
    add = ("--bootstrap-server", guarded.cluster.bootstrap, "--add", "--force")
    tool = "kafka.admin.AclCommand" if guarded.cluster.version < "4" else "org.apache.kafka.tools.AclCommand"
    guarded.cluster.tool(
        tool, *add, "--allow-principal", "User:app", "--consumer", "--topic", name, "--group", name
    )
    guarded.cluster.tool(
        tool, *add, "--deny-principal", "User:app", "--operation", "Write", "--topic", name[:1],
        "--resource-pattern-type", "prefixed", "--deny-host", "10.0.0.1",
    )  # fmt: skip
    assert listed(k("acl", "list")) == guarded.acls_by_kafka()
    about = listed(k("acl", "list", "--topic", name, "--pattern", "match"))
    assert {rule[5] for rule in about} >= {"read", "describe", "write"}
    (row,) = k("acl", "check", "User:app", "describe-configs", f"topic:{name}").of("decision")
    assert row["allowed"] in (None, False)
    ran = k("acl", "check", "User:app", "Read", f"topic:{name}")
    (row,) = ran.of("decision")
    assert (ran.status, row["allowed"], row["acl"]["operation"]) == (0, True, "read")
    told = ("--super-user", "User:ANONYMOUS", "--no-allow-everyone")
    ran = k("acl", "check", "User:app", "write", f"topic:{name}", *told)
    (row,) = ran.of("decision")
    assert (ran.status, row["allowed"], row["by"]) == (0, False, "nothing")
    (row,) = k("acl", "check", "User:app", "write", f"topic:{name}", "--host", "10.0.0.1", *told).of(
        "decision"
    )
    assert (row["allowed"], row["acl"]["permission"]) == (False, "deny")
    ran = k("acl", "check", "User:ANONYMOUS", "write", f"topic:{name}")
    assert ran.status == 3 and ran.of("decision")[0]["allowed"] is None
    assert "super.users" in ran.of("decision")[0]["why"]
