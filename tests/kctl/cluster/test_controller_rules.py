"""Elections, reassignment steps and old consumers, held against the vectors."""

from typing import Any

import pytest

from kctl.cluster import election_rules as rules
from kctl.cluster.consumer_assignment import (
    equal_subscriptions,
    range_assignment,
    round_robin_assignment,
    round_robin_order,
    thread_names,
)
from kctl.cluster.election_rules import Elected, NotElected
from kctl.cluster.reassignment_steps import accepts, classic_steps, is_complete, phases, reassign_to
from kctl.cluster.versions import KafkaVersion, parse_version
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
    if op == "elect_new_partition":
        return rules.elect_new(g["assignment"], g["live"])
    if op == "elect_preferred":
        return rules.elect_preferred(
            g["assignment"], g["isr"], g["live"], g["current_leader"], g["leader_epoch"]
        )
    if op == "elect_reassign":
        return rules.elect_for_reassignment(g["target_replicas"], g["isr"], g["live"], g["leader_epoch"])
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
    "elect_new_partition",
    "elect_preferred",
    "elect_reassign",
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
    threshold = case["given"]["leader_imbalance_per_broker_percentage"]
    assert {
        str(b): {"not_led": i.not_led, "total": i.total, "triggers_at_10_percent": i.exceeds(threshold)}
        for b, i in found.items()
    } == case["expect"]["per_preferred_broker"]


def test_every_vector_of_elections_is_used() -> None:
    ops = {case["op"] for case in vectors("failover_election")["cases"]}
    assert ops == {*OPS, "leader_imbalance"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.8.1", rules.Rules(True, True, False, True)),
        ("0.8.2", rules.Rules(False, True, False, True)),
        ("0.10.1", rules.Rules(False, False, False, True)),
        ("1.1", rules.Rules(False, False, True, True)),
        ("3.9", rules.Rules(False, False, True, False)),
    ],
)
def test_rules_by_version(version: str, expected: rules.Rules) -> None:
    assert rules.rules_of(parse_version(version)) == expected


# --- reassignment -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", of("reassignment_steps", "reassign_to"))
def test_reassign_to(case: Any) -> None:
    given, expect = case["given"], case["expect"]
    found = reassign_to(given["replicas"], given["adding"], given["target"])
    assert {
        "replicas": list(found.replicas),
        "adding": list(found.adding_replicas),
        "removing": list(found.removing_replicas),
        "target": list(found.target_replicas),
        "original": list(found.origin_replicas),
        "being_reassigned": found.is_being_reassigned,
    } == expect


@pytest.mark.parametrize("case", of("reassignment_steps", "reassign_phases"))
def test_phases(case: Any) -> None:
    given = case["given"]
    found = phases(given["original"], given["target"], given["leader_epoch"])
    assert [
        {
            "step": s.step,
            "replicas": list(s.replicas),
            "adding": list(s.adding_replicas),
            "removing": list(s.removing_replicas),
            "leader": s.leader,
            "isr": sorted(s.isr),
            "leader_epoch": s.leader_epoch,
        }
        for s in found
    ] == case["expect"]["steps"]


@pytest.mark.parametrize("case", of("reassignment_steps", "reassign_classic"))
def test_classic_steps(case: Any) -> None:
    given = case["given"]
    found = {s.step: s for s in classic_steps(given["original"], given["target"], given["leader_epoch"])}
    for expected in case["expect"]["steps"]:
        step = found[str(expected["step"])]
        assert list(step.replicas) == expected["assigned"], expected
        assert sorted(step.isr) == expected["isr"]
        assert (step.leader, step.leader_epoch) == (expected["leader"], expected["leader_epoch"])


@pytest.mark.parametrize("case", of("reassignment_steps", "reassign_accept"))
def test_accept(case: Any) -> None:
    given = case["given"]
    result = accepts(given["current"], given["target"], given["live"], KafkaVersion(0, 8, 2))
    assert result == case["expect"]["result"]


def test_a_dead_target_waits_since_0_10_1() -> None:
    assert accepts([1], [2], [1], KafkaVersion(0, 10, 1)) == "started"


@pytest.mark.parametrize("case", of("reassignment_steps", "reassign_complete"))
def test_complete(case: Any) -> None:
    assert is_complete(case["given"]["target"], case["given"]["isr"]) is case["expect"]["complete"]


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
