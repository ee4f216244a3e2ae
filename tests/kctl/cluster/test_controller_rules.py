"""Elections, reassignment steps and old consumers, held against the vectors."""

from typing import Any

import pytest

from kctl.cluster import election_rules as rules
from kctl.cluster.election_rules import Elected, NotElected
from kctl.cluster.old_consumers import (
    equal_subscriptions,
    range_assignment,
    round_robin_assignment,
    round_robin_order,
    thread_names,
)
from kctl.cluster.state import Topic
from kctl.cluster.versions import parse_version
from kctl.model import TopicPartition
from tests.conftest import vectors


def of(file: str, *ops: str) -> list[Any]:
    return [pytest.param(c, id=c["id"]) for c in vectors(file)["cases"] if c["op"] in ops]


def elect(op: str, g: dict[str, Any]) -> Elected | NotElected:
    if op == "elect_offline_partition":
        return rules.elect_offline(
            g["assignment"],
            g["isr"],
            g["live"],
            g["leader_epoch"],
            unclean=g["unclean_leader_election_enable"],
            by_isr_order=g["rule"] == "isr_order",
        )
    if op == "elect_controlled_shutdown":
        return rules.elect_for_shutdown(
            g["assignment"],
            g["isr"],
            g["live_or_shutting_down"],
            g["shutting_down"],
            g["leader_epoch"],
            by_isr_order=g["rule"] == "isr_order",
        )
    always = g["keep_last_isr_member"] == "always"
    return rules.remove_from_isr(
        g["replica"],
        g["leader"],
        g["isr"],
        g["leader_epoch"],
        last_stays=always or not g["unclean_leader_election_enable"],
    )


OPS = (
    "elect_offline_partition",
    "elect_controlled_shutdown",
    "remove_replica_from_isr",
)


@pytest.mark.parametrize("case", of("failover_election", *OPS))
def test_elections(case: Any) -> None:
    outcome, expect = elect(case["op"], case["given"]), case["expect"]
    if isinstance(outcome, NotElected):
        assert outcome.reason == expect.get("error", expect.get("result"))
    else:
        assert {
            key: list(v) if isinstance(v := getattr(outcome, key), tuple) else v for key in expect
        } == expect


@pytest.mark.parametrize("case", of("failover_election", "leader_imbalance"))
def test_imbalance(case: Any) -> None:
    partitions = {i: (p["assignment"], p["leader"]) for i, p in enumerate(case["given"]["partitions"])}
    found = rules.leader_imbalance(partitions)
    expected = case["expect"]["per_preferred_broker"]
    assert found == {int(b): (i["not_led"], i["total"]) for b, i in expected.items()}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.8.1", rules.ElectionRules(True, True, False, True)),
        ("0.8.2", rules.ElectionRules(False, True, False, True)),
        ("0.10.1", rules.ElectionRules(False, False, False, True)),
        ("1.1", rules.ElectionRules(False, False, True, True)),
        ("3.9", rules.ElectionRules(False, False, True, False)),
    ],
)
def test_rules_by_version(version: str, expected: rules.ElectionRules) -> None:
    assert rules.rules_of(parse_version(version)) == expected


# --- reassignment -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", of("reassignment_steps", "reassign_to"))
def test_replicas_while_a_partition_moves(case: Any) -> None:
    """What a topic's adding and removing replicas say about where the partition comes from and goes to."""
    expect = case["expect"]
    topic = Topic(
        name="orders",
        partitions={0: tuple(expect["replicas"])},
        adding_replicas={0: tuple(expect["adding"])},
        removing_replicas={0: tuple(expect["removing"])},
    )
    assert list(topic.target_replicas(0)) == expect["target"]
    assert list(topic.origin_replicas(0)) == expect["original"]
    assert topic.is_reassigning(0) is expect["being_reassigned"]


# --- old consumers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", of("consumer_range_assignment", "range_assign"))
def test_range(case: Any) -> None:
    threads = thread_names(case["given"]["consumers"])
    found = range_assignment(threads, case["given"]["partitions"])
    expect = case["expect"]
    if "thread_order" in expect:
        assert threads == expect["thread_order"]
    assert found == expect["assignment"]
    if "idle_threads" in expect:
        assert [thread for thread, owned in found.items() if not owned] == expect["idle_threads"]


@pytest.mark.parametrize("case", of("consumer_range_assignment", "seed_range_formula"))
def test_range_is_kafkas_and_not_the_articles(case: Any) -> None:
    consumers = case["given"]["consumers"]
    assert range_assignment(consumers, case["given"]["partitions"]) == case["expect"]["kafka_assignment"]


@pytest.mark.parametrize("case", of("consumer_range_assignment", "roundrobin_assign"))
def test_round_robin(case: Any) -> None:
    partitions = [TopicPartition(t, p) for t, n in case["given"]["topics"].items() for p in range(n)]
    assert [str(tp) for tp in round_robin_order(partitions)] == case["expect"]["partition_order"]
    found = round_robin_assignment(thread_names(case["given"]["consumers"]), partitions)
    assert {t: [str(tp) for tp in owned] for t, owned in found.items()} == case["expect"]["assignment"]


def test_round_robin_wants_equal_subscriptions() -> None:
    assert equal_subscriptions({"a": {"t": 2, "u": 2}, "b": {"t": 1, "u": 1}})
    assert not equal_subscriptions({"a": {"t": 1}, "b": {"u": 1}})
    assert not equal_subscriptions({"a": {"t": 1, "u": 2}})
