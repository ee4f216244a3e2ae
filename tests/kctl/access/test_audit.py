"""Each finding about rules and users, provoked; and none of healthy rules."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from formats.values import replace
from kctl.access.acl import Acl
from kctl.access.audit import audit_access
from kctl.access.authorizer import AuthorizerSettings
from kctl.access.view import AccessView
from tests.conftest import rows

READ = Acl("topic", "orders", "literal", "User:app", "*", "read", "allow")
GROUP = Acl("group", "billing", "literal", "User:app", "*", "read", "allow")
VIEW = AccessView(
    acls=(READ, GROUP, READ._replace(principal="User:*", operation="describe")),
    settings=AuthorizerSettings(super_users=frozenset({"User:admin"})),
    topics=("orders", "payments", "__consumer_offsets"),
    groups=("billing",),
    users={"app": ("SCRAM-SHA-256",), "admin": ("SCRAM-SHA-256",)},
)


def found(*acls: Acl, view: AccessView = VIEW) -> list[tuple[str, str]]:
    return [(f.code, str(f.severity)) for f in audit_access(replace(view, acls=(*view.acls, *acls)))]


def test_healthy_rules_have_no_findings() -> None:
    deny = READ._replace(principal="User:app", host="10.0.0.1", permission="deny")
    prefixed = READ._replace(resource_name="pay", pattern_type="prefixed", operation="all")
    assert found(deny, prefixed, READ._replace(operation="write", host="::1")) == []


CASES = [
    (READ._replace(resource_name="gone"), "acl-never-matches", "info"),
    (READ._replace(resource_name="gone-", pattern_type="prefixed"), "acl-never-matches", "info"),
    (GROUP._replace(resource_name="nobody"), "acl-never-matches", "info"),
    (READ._replace(host="app1.example.com", operation="write"), "acl-never-matches", "warning"),
    (READ._replace(host="10.0.0.0/8", operation="write"), "acl-never-matches", "warning"),
    (GROUP._replace(operation="write"), "acl-never-matches", "warning"),
    (READ._replace(resource_name="*", pattern_type="prefixed"), "acl-never-matches", "warning"),
    (READ._replace(host="10.0.0.1"), "acl-shadowed", "info"),
    (READ._replace(operation="describe"), "acl-shadowed", "info"),
    (READ._replace(principal="User:*", permission="deny"), "acl-shadowed", "warning"),
    (READ._replace(operation="write", permission="deny"), "acl-denies-nothing", "info"),
    (READ._replace(principal="User:*", resource_name="payments", operation="write"), "acl-wide-open", "warning"),
    (READ._replace(resource_name="*", operation="alter"), "acl-wide-open", "info"),
    (READ._replace(principal="User:other", operation="write"), "acl-without-user", "info"),
    (READ._replace(resource_name="_", pattern_type="prefixed", operation="all"), "acl-reaches-internal-topics", "warning"),
]  # fmt: skip


@pytest.mark.parametrize(("acl", "code", "severity"), CASES, ids=lambda value: str(value))
def test_findings(acl: Acl, code: str, severity: str) -> None:
    assert found(acl) == [(code, severity)]


def test_a_user_without_rules() -> None:
    users = {**(VIEW.users or {}), "new": ("SCRAM-SHA-512",)}
    assert found(view=replace(VIEW, users=users)) == [("user-without-acl", "info")]
    assert found(READ._replace(principal="User:x", operation="write"), view=replace(VIEW, users=None)) == []


def test_rules_that_are_the_same_but_for_their_order_are_shadowed_once() -> None:
    wide = READ._replace(resource_name="ord", pattern_type="prefixed")
    assert found(wide) == [("acl-shadowed", "info")]


def test_in_the_audit_of_evidence(tmp_path: Path) -> None:
    rule = {"principal": "User:*", "permissionType": "Allow", "operation": "All", "host": "*"}
    values = {
        "/brokers/ids/1": {"version": 4, "host": "a", "port": 9092, "endpoints": [], "jmx_port": -1},
        "/brokers/topics/orders": {"version": 1, "partitions": {"0": [1]}},
        "/config/topics/orders": {"version": 1, "config": {}},
        "/controller_epoch": 1,
        "/kafka-acl/Topic/orders": {"version": 1, "acls": [rule]},
        "/kafka-acl/Group/billing": {"version": 9},
    }
    lines = [
        {"path": path, "data": base64.b64encode(json.dumps(value).encode()).decode(), "version": 0}
        for path, value in values.items()
    ]
    file = tmp_path / "evidence" / "znodes.jsonl"
    file.parent.mkdir()
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = rows("acl", "audit", "--snapshot", file)
    assert ran.status == 5
    assert [row["code"] for row in ran.of("finding")] == ["acl-unreadable", "acl-wide-open"]
    ran = rows("audit", "run", file.parent, "--out", tmp_path / "out")
    assert {row["code"] for row in ran.of("finding")} >= {"acl-unreadable", "acl-wide-open"}
