"""What settings of brokers make of decisions, and what is said where they are not known."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from kctl.access.acl import Acl, Resource
from kctl.access.authorizer import Authorizer, AuthorizerSettings
from kctl.access.view import agreed, settings_of, settings_of_file
from kctl.cluster.versions import parse_version
from tests.conftest import rows

READ = Acl("topic", "orders", "literal", "User:app", "*", "read", "allow")
DENY = Acl("topic", "ord", "prefixed", "User:*", "10.0.0.1", "all", "deny")
ORDERS = Resource("topic", "orders")
UNKNOWN = AuthorizerSettings(super_users=None, allow_everyone=None)


def test_what_is_not_known_is_asked_for_only_where_it_decides() -> None:
    authorizer = Authorizer([READ, DENY], UNKNOWN)
    assert authorizer.decide("User:app", "read", ORDERS).allowed is True
    denied = authorizer.decide("User:app", "read", ORDERS, "10.0.0.1")
    assert (denied.allowed, denied.by, denied.missing) == (None, DENY, ("super.users",))
    assert authorizer.decide("User:app", "write", ORDERS).missing == ("super.users",)
    elsewhere = authorizer.decide("User:app", "read", Resource("topic", "payments"))
    assert (elsewhere.allowed, elsewhere.missing) == (None, ("super.users", "allow.everyone.if.no.acl.found"))


def test_settings_that_differ_between_brokers_are_not_known() -> None:
    first = settings_of(
        {"authorizer.class.name": "x.AclAuthorizer", "super.users": "User:a; User:b"}, "broker 1"
    )
    second = settings_of({"authorizer.class.name": "x.AclAuthorizer", "super.users": "User:a"}, "broker 2")
    assert first.super_users == {"User:a", "User:b"} and first.allow_everyone is False
    both = agreed([first, second])
    assert both.super_users is None and both.allow_everyone is False
    assert both.unknown == ("super.users differs between brokers",)


def test_a_broker_without_authorizer_allows_everything() -> None:
    settings = settings_of_file("super.users=User:a\n", "server.properties")
    decision = Authorizer([DENY], settings).decide("User:x", "read", ORDERS, "10.0.0.1")
    assert (decision.allowed, decision.by) == (True, "no_authorizer")
    own = settings_of({"authorizer.class.name": "com.example.Ranger"}, "broker 1")
    assert Authorizer([READ], own).settings.super_users is None and "Ranger" in own.unknown[0]


@pytest.mark.parametrize(
    ("version", "operation", "implied"),
    [
        ("0.9", "delete", False),
        ("0.10.1", "delete", True),
        ("0.10.2", "alter", False),
        ("0.11", "alter", True),
    ],
)
def test_what_implies_describe_by_version(version: str, operation: str, implied: bool) -> None:
    authorizer = Authorizer([READ._replace(operation=operation)], kafka_version=parse_version(version))
    assert authorizer.decide("User:app", "describe", ORDERS).allowed is implied


def exported(path: str, data: bytes) -> dict[str, object]:
    return {"path": path, "data": base64.b64encode(data).decode(), "version": 0}


def znodes(folder: Path) -> Path:
    """An export with a rule of each kind, and a znode that cannot be read."""

    def node(path: str, value: object) -> dict[str, object]:
        return exported(path, json.dumps(value).encode())

    rule = {"principal": "User:app", "permissionType": "Allow", "operation": "DescribeConfigs", "host": "*"}
    values = [
        node("/brokers/ids/1", {"version": 4, "host": "a", "port": 9092, "endpoints": [], "jmx_port": -1}),
        node("/brokers/topics/orders", {"version": 1, "partitions": {"0": [1]}}),
        node("/kafka-acl/Topic/orders", {"version": 1, "acls": [rule]}),
        node("/kafka-acl-extended/prefixed/TransactionalId/tx-", {"version": 1, "acls": [rule]}),
        exported("/kafka-acl/Group/billing", b"{"),
    ]
    file = folder / "znodes.jsonl"
    file.write_text("".join(json.dumps(value) + "\n" for value in values))
    return file


def test_rules_of_an_export(tmp_path: Path) -> None:
    file = znodes(tmp_path)
    ran = rows("acl", "list", "--snapshot", file)
    assert ran.status == 3 and "/kafka-acl/Group/billing" in ran.err
    assert [(row["resource_type"], row["pattern_type"], row["operation"]) for row in ran.of("acl")] == [
        ("topic", "literal", "describe_configs"),
        ("transactional_id", "prefixed", "describe_configs"),
    ]
    ran = rows("acl", "check", "User:app", "describe_configs", "topic:orders", "--snapshot", file)
    assert ran.of("decision")[0]["allowed"] is True


@pytest.mark.parametrize("resource", ["orders", "topic:", "host:a", "cluster:other"])
def test_what_is_no_resource_is_wrong_usage(resource: str, tmp_path: Path) -> None:
    assert rows("acl", "check", "User:app", "read", resource, "--snapshot", znodes(tmp_path)).status == 2
    assert rows("acl", "check", "app", "read", "topic:a", "--snapshot", znodes(tmp_path)).status == 2
