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
    guarded.kafka_acls(
        "--add", "--force", "--allow-principal", "User:app", "--consumer", "--topic", name, "--group", name
    )
    denied = [name] if guarded.is_before_protocol else [name[:1], "--resource-pattern-type", "prefixed"]
    guarded.kafka_acls(
        "--add", "--force", "--deny-principal", "User:app", "--operation", "Write", "--topic", *denied,
        "--deny-host", "10.0.0.1",
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


TOLD = ("--super-user", "User:ANONYMOUS", "--no-allow-everyone")


def test_creates_copies_deletes_and_undoes(guarded: Guarded, k: Kctl, name: str) -> None:
    before = guarded.acls_by_kafka()
    app = f"User:{name}"
    given = (
        "acl",
        "create",
        "--principal",
        app,
        "--consumer",
        "--topic",
        name,
        "--group",
        f"{name}-group",
        *TOLD,
    )
    dry = k(*given, "--dry-run")
    assert dry.status == 0 and {row["operation"] for row in dry.of("acl")} == {"read", "describe"}
    gained = {(row["resource"], row["operation"]) for row in dry.of("access")}
    assert gained >= {(f"topic {name}", "read"), (f"group {name}-group", "read")}
    assert guarded.acls_by_kafka() == before
    k.change(*given)
    after = guarded.acls_by_kafka()
    assert after - before == {
        ("topic", name, "literal", app, "*", "read", "allow"),
        ("topic", name, "literal", app, "*", "describe", "allow"),
        ("group", f"{name}-group", "literal", app, "*", "read", "allow"),
    }
    assert listed(k("acl", "list")) == after
    assert k("acl", "create", *given[2:], "--yes").status == 0 and len(k.ids()) == 1  # nothing to do
    k.change("acl", "copy", app, f"{app}-2", *TOLD)
    assert len(guarded.acls_by_kafka()) == len(after) + 3
    k.change("acl", "delete", "--principal", f"{app}-2", *TOLD)
    assert guarded.acls_by_kafka() == after
    k.change("journal", "undo", k.ids()[-1])
    assert len(guarded.acls_by_kafka()) == len(after) + 3
    k.change("journal", "undo", k.ids()[1])
    k.change("journal", "undo", k.ids()[0])
    assert guarded.acls_by_kafka() == before


def test_rules_on_prefixes_and_other_resources(guarded: Guarded, k: Kctl, name: str) -> None:
    if guarded.cluster.version.startswith("0."):
        ran = k(
            "acl", "create", "--principal", "User:a", "--topic", name, "--pattern", "prefixed", *TOLD, "--yes"
        )
        assert ran.status == 4 and "knows no prefixed rules" in ran.err
        return
    before = guarded.acls_by_kafka()
    k.change(
        "acl", "create", "--principal", f"User:CN={name},O=x y", "--topic", name, "--transactional-id", name,
        "--delegation-token", name, "--pattern", "prefixed", "--operation", "describe", "--host", "10.0.0.1", *TOLD,
    )  # fmt: skip
    k.change("acl", "create", "--principal", f"User:{name}", "--transactional-id", "*", "--deny", *TOLD)
    after = guarded.acls_by_kafka()
    assert len(after - before) == 4 and listed(k("acl", "list")) == after
    ran = k(
        "acl", "check", f"User:CN={name},O=x y", "describe", f"topic:{name}-1", "--host", "10.0.0.1", *TOLD
    )
    assert ran.of("decision")[0]["allowed"] is True
    k.change("acl", "delete", "--principal", f"User:CN={name},O=x y", "--principal", f"User:{name}", *TOLD)
    assert guarded.acls_by_kafka() == before


def test_a_lockout_is_refused(guarded: Guarded, k: Kctl, name: str) -> None:
    name = f"first-{name}"  # no other rule is about it
    before = guarded.acls_by_kafka()
    everyone = ("--super-user", "User:ANONYMOUS", "--allow-everyone")
    first = (
        "acl",
        "create",
        "--principal",
        f"User:{name}",
        "--topic",
        name,
        "--operation",
        "read",
        *everyone,
    )
    ran = k(*first, "--yes")
    assert ran.status == 4 and "rules for the first time" in ran.err and "--accept-lockout" in ran.err
    assert guarded.acls_by_kafka() == before and k.ids() == []
    on_cluster = (
        "acl",
        "create",
        "--principal",
        f"User:{name}",
        "--cluster",
        "--operation",
        "cluster_action",
        *TOLD,
    )
    k.change(*on_cluster)
    if guarded.backend == "zookeeper":  # whom brokers take each other for is not to be seen there
        ran = k("acl", "delete", "--principal", f"User:{name}", "--cluster", *TOLD, "--yes")
        assert ran.status == 4 and f"User:{name}, which brokers may connect as" in ran.err
    k.change("journal", "undo", k.ids()[-1], "--accept-lockout")
    assert guarded.acls_by_kafka() == before


def test_somebody_else_changes_the_rules_meanwhile(guarded: Guarded, k: Kctl, name: str) -> None:
    given = ("acl", "create", "--principal", f"User:{name}", "--topic", name, "--operation", "read", *TOLD)
    other = guarded.kctl(k.journal.with_name("other"))
    with k.stopped(*given, at="before-write:0") as process:
        other.change(*given[:3], f"User:{name}-other", *given[4:])
        process.go_on()
        ran = process.wait()
    assert ran.status == 4, ran.err
    assert [rule[3] for rule in listed(k("acl", "list", "--topic", name))] == [f"User:{name}-other"]


@pytest.mark.parametrize(
    "point", ["journalled", "before-write:0", "sent:1", "after-write:0", "written:0", "applied"]
)
def test_killed_and_resumed(guarded: Guarded, k: Kctl, name: str, point: str) -> None:
    k.change("acl", "create", "--principal", f"User:{name}", "--topic", name, "--operation", "all", *TOLD)
    given = (
        "acl",
        "create",
        "--principal",
        f"User:{name}",
        "--producer",
        "--topic",
        name,
        "--transactional-id",
        name,
    )
    if guarded.cluster.version.startswith("0."):
        given = given[:7]
    if not k.killed(*given, *TOLD, fault=point):
        return
    k.change("journal", "resume", k.ids()[-1], status=None)
    rules = {rule[5] for rule in listed(k("acl", "list", "--topic", name))}
    assert rules >= {"all", "write", "describe"}
    k.change("journal", "undo", k.ids()[-1])
    assert {rule[5] for rule in listed(k("acl", "list", "--topic", name))} == {"all"}
