"""A part of a cluster is not taken for the whole."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from formats.values import replace
from kctl.changes.kinds.throttles import ClearThrottle, not_read
from kctl.cluster.disks import DENIED, BrokerLogDir, StoredReplica
from kctl.cluster.interface import Cluster, Visibility
from kctl.cluster.rolling import rolling_restart
from kctl.cluster.state import ClusterState, Problem
from kctl.cluster.visibility import refuse_partial, unseen
from kctl.errors import Refused
from kctl.model import TopicPartition
from kctl.operations.health import HealthFacts, check_health
from kctl.wire.hidden import example_of, is_topic_name
from tests.kctl.cluster.test_kraft import cluster

SEEN, HIDDEN = (StoredReplica(TopicPartition(name, 0), 10) for name in ("a", "b"))


def on(*replicas: StoredReplica) -> list[BrokerLogDir]:
    return [BrokerLogDir(broker, "/data", replicas=replicas) for broker in (1, 2, 3)]


def test_hidden_replicas_are_named() -> None:
    assert unseen(cluster(), on(SEEN)) == ""
    assert "b-0" in unseen(cluster(), on(SEEN, HIDDEN))
    denied = [BrokerLogDir(broker, None, DENIED) for broker in (1, 2, 3)]
    assert "Describe on Cluster is missing" in unseen(cluster(), denied)


def test_no_restart_is_safe_over_a_part() -> None:
    for log_dirs in (on(SEEN, HIDDEN), [BrokerLogDir(broker, None, DENIED) for broker in (1, 2, 3)]):
        order = rolling_restart(cluster(), log_dirs)
        assert {restart.is_safe_now for restart in order} == {None} and all(restart.why for restart in order)
    assert {restart.is_safe_now for restart in rolling_restart(cluster(), on(SEEN))} == {True}


def test_a_part_is_no_ground_for_a_change() -> None:
    def of(log_dirs: Any, hidden: str = "") -> Cluster:
        backend = SimpleNamespace(
            read_log_dirs=lambda brokers: log_dirs, visibility=lambda: Visibility(hidden)
        )
        return cast(Cluster, backend)

    refuse_partial(of(on(SEEN)), cluster(), [4], "draining")
    refuse_partial(of(None), cluster(), [4], "draining")  # ZooKeeper shows all or nothing
    with pytest.raises(Refused, match="nothing was written"):
        refuse_partial(of(on(SEEN, HIDDEN)), cluster(), [1], "draining")
    # What a live broker stores it lists; what a dead one or a failed directory holds it does not.
    refuse_partial(of(on(SEEN), "Describe on Topic * is missing"), cluster(), [1, 2], "draining")
    failed = [*on(SEEN), BrokerLogDir(2, "/lost", "KAFKA_STORAGE_ERROR")]
    for log_dirs, broker in ((on(SEEN), 4), (failed, 2)):
        with pytest.raises(Refused, match=r"Describe on Topic \* is missing"):
            refuse_partial(of(log_dirs, "Describe on Topic * is missing"), cluster(), [broker], "draining")


def test_one_name_stands_for_all_that_the_same_patterns_match() -> None:
    prefixes = {"a", "ab", "abc", "x" * 249, "y" * 248, "no topic "}
    for prefix in ("", "a", "ab", "abc"):
        name = example_of(prefix, {"a1", "literal"}, prefixes)
        assert name is not None and name.startswith(prefix) and is_topic_name(name)
        assert [p for p in prefixes if name.startswith(p)] == [
            p for p in prefixes if p and prefix.startswith(p)
        ]
    assert example_of("x" * 249, set(), prefixes) == "x" * 249
    assert len(example_of("y" * 248, set(), prefixes) or "") == 249
    assert not is_topic_name("no topic 0")
    assert example_of("x" * 249, {"x" * 249}, prefixes) is None  # the literal pattern is asked for by itself


def unreadable(state: ClusterState) -> ClusterState:
    problems = (
        Problem("configuration of topic a", "TOPIC_AUTHORIZATION_FAILED"),
        Problem("reassignments", "denied"),
    )
    return replace(state, problems=problems)


def test_what_was_not_read_is_not_good() -> None:
    results = {r.check: r for r in check_health(HealthFacts(unreadable(cluster()), (), 0))}
    for check in ("unreadable", "throttles", "under-min-isr", "moving"):
        assert results[check].status == "unknown", check
    assert "may not start again" not in results["unreadable"].meaning
    assert results["offline"].status == "good"


def test_a_throttle_that_cannot_be_read_may_be_left() -> None:
    clear = ClearThrottle(throttled={"a": {}}, rates={"1": {}, "2": {}})
    assert not_read(clear, cluster()) == []
    files = {1: {"min.insync.replicas": "2"}}
    assert not_read(clear, replace(unreadable(cluster()), broker_files=files)) == ["broker 2", "topic a"]
