"""Who gains and loses what by a change of rules, and what of it locks out."""

from __future__ import annotations

from formats.values import replace
from kctl.access.acl import Acl
from kctl.access.authorizer import AuthorizerSettings
from kctl.access.forecast import Uses, forecast, lockouts
from kctl.access.view import AccessView

SETTINGS = AuthorizerSettings()
APP = Acl("topic", "orders", "literal", "User:app", "*", "read", "allow")
GROUP = Acl("group", "billing", "literal", "User:app", "*", "read", "allow")
ADMIN = Acl("cluster", "kafka-cluster", "literal", "User:admin", "*", "all", "allow")
TOPICS = ("orders", "orders-eu", "payments")
VIEW = AccessView(acls=(APP, GROUP, ADMIN), settings=SETTINGS, topics=TOPICS, groups=("billing", "other"))
USES = Uses(
    groups=("billing", "other"),
    groups_by_topic={"orders": ("billing", "other")},
    connected={"billing": ("10.0.0.1",), "other": ("10.0.0.2",)},
)


def changed(view: AccessView, added: list[Acl], removed: list[Acl]) -> set[tuple[str, ...]]:
    return {
        (c.principal, c.host, c.operation, str(c.resource), c.before, c.after)
        for c in forecast(view, added, removed, USES)
    }


def test_a_rule_on_a_prefix_is_about_the_topics_that_exist() -> None:
    rule = Acl("topic", "orders", "prefixed", "User:app", "*", "write", "allow")
    assert changed(VIEW, [rule], []) == {
        ("User:app", "*", operation, f"topic {topic}", "denied", "allowed")
        for topic, operation in (("orders", "write"), ("orders-eu", "write"), ("orders-eu", "describe"))
    }


def test_what_is_lost_names_the_groups_that_the_principal_may_be() -> None:
    losses = forecast(VIEW, [], [APP], USES)
    assert {(c.operation, c.used_by) for c in losses} == {("read", ("billing",)), ("describe", ("billing",))}
    (lost,) = (c for c in forecast(VIEW, [], [GROUP], USES) if c.operation == "read")
    assert lost.used_by == ("billing",)


def test_a_deny_for_everybody_at_a_host() -> None:
    rule = Acl("topic", "orders", "literal", "User:*", "10.0.0.1", "all", "deny")
    lost = changed(VIEW, [rule], [])
    assert lost == {
        ("User:app", "10.0.0.1", operation, "topic orders", "allowed", "denied")
        for operation in ("read", "describe")
    }
    assert changed(VIEW, [rule._replace(host="*")], []) >= {
        ("User:app", "*", "read", "topic orders", "allowed", "denied")
    }


def test_everybody_gains_what_a_last_rule_kept_closed() -> None:
    view = replace(VIEW, settings=replace(SETTINGS, allow_everyone=True))
    gained = changed(view, [], [APP])
    assert ("User:*", "*", "write", "topic orders", "denied", "allowed") in gained
    (sentence,) = lockouts(view, [], [APP], own=None, brokers="User:broker")
    assert "topic orders would have no rule any more" in sentence
    first = APP._replace(resource_name="payments")
    (sentence,) = lockouts(view, [first], [], own=None, brokers="User:broker")
    assert "topic payments would have rules for the first time" in sentence


def test_lockouts() -> None:
    assert lockouts(VIEW, [APP._replace(operation="write")], [GROUP], own="User:admin", brokers=None) == []
    own, last = lockouts(VIEW, [], [ADMIN], own="User:admin", brokers="User:broker")
    assert own.startswith("User:admin, who makes this change, would lose alter and describe")
    assert last == "nobody would be left with alter on the cluster"
    broker = ADMIN._replace(principal="User:broker", operation="cluster_action")
    view = replace(VIEW, acls=(*VIEW.acls, broker))
    for brokers, words in (
        ("User:broker", "as whom brokers connect"),
        (None, "which brokers may connect as"),
    ):
        (sentence,) = lockouts(view, [], [broker], own="User:admin", brokers=brokers)
        assert "User:broker" in sentence and words in sentence
    deny = ADMIN._replace(principal="User:*", operation="cluster_action", permission="deny")
    assert any("User:broker" in text for text in lockouts(view, [deny], [], own=None, brokers="User:broker"))


def test_super_users_are_not_locked_out() -> None:
    view = replace(VIEW, settings=replace(SETTINGS, super_users=frozenset({"User:admin"})))
    assert lockouts(view, [], [ADMIN], own="User:admin", brokers="User:admin") == []
    unknown = AuthorizerSettings(super_users=None, unknown=("super.users of broker 1 is set and not told",))
    told = lockouts(replace(VIEW, settings=unknown), [], [ADMIN], own=None, brokers="User:x")
    assert told == []  # there are super users, whoever they are
    nobody = AuthorizerSettings(super_users=None)
    (sentence,) = lockouts(replace(VIEW, settings=nobody), [], [ADMIN], own=None, brokers="User:x")
    assert "unless there are super users" in sentence


def test_going_back_needs_no_setting_that_is_not_known() -> None:
    view = replace(VIEW, settings=AuthorizerSettings(allow_everyone=None))
    assert lockouts(view, [], [APP], own=None, brokers="User:x", is_undo=True) == []
    assert len(lockouts(view, [], [APP], own=None, brokers="User:x")) == 1
    view = replace(VIEW, settings=replace(SETTINGS, allow_everyone=True))
    assert len(lockouts(view, [], [APP], own=None, brokers="User:x", is_undo=True)) == 1
    assert lockouts(VIEW, [], [ADMIN], own="User:admin", brokers=None, is_undo=True)
