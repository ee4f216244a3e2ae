"""Topics and configurations that this user does not see are unknown: not gone, not unset, not at rest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from commands.cluster.describe import controller_row
from commands.reassign.verify import moves_unread
from formats.values import replace
from kctl.changes.entry import Entry, RecordedStage
from kctl.changes.kinds.reassignments import Reassign
from kctl.changes.kinds.throttles import (
    LEADER_RATE,
    LEADER_REPLICAS,
    ClearThrottle,
    not_read,
    refuse_unseen,
    throttle_of_partitions,
    throttles_set,
)
from kctl.cluster.interface import Cluster, Oddity
from kctl.cluster.names import refuse_hidden
from kctl.cluster.rights import TOPIC, MissingRight, Right, missing
from kctl.cluster.state import ClusterState, EntityConfig, Problem
from kctl.errors import KctlError
from kctl.judging.judgement import Judgement, Verdict
from kctl.model import TopicPartition
from kctl.operations.configs import config_change
from kctl.operations.health import HealthFacts, check_health
from kctl.operations.reassignment.cancellation import plan_cancellation
from kctl.operations.reassignment.execution import check_targets
from kctl.operations.reassignment.plan_files import PlanFile
from kctl.operations.reassignment.verification import FAILED, brokers_to_clear, move_statuses
from kctl.wire import transactions
from kctl.wire.adapter import Wire
from kctl.zookeeper.cluster import ZookeeperCluster
from kctl.zookeeper.store import HiddenZnodes, Znode
from tests.fakes import FakeStore, add_topic, fake_cluster
from tests.kctl.cluster.test_kraft import cluster

MASKED, GONE = TopicPartition("masked", 0), TopicPartition("gone", 0)
DENIED = Problem(
    "topic masked", "Describe on Topic masked is missing for User:a", right=Right("Describe", TOPIC, "masked")
)
HIDES = "Describe on Topic * is missing for User:a: topics may be hidden"


def seen(**values: object) -> ClusterState:
    return replace(cluster(), problems=(DENIED,), **values)


# --- over Kafka's protocol ----------------------------------------------------------------------------


def test_a_hidden_topic_is_no_target_and_no_failed_move() -> None:
    for refuse in (lambda: refuse_hidden(["masked"], seen()), lambda: check_targets({MASKED: (1,)}, seen())):
        with pytest.raises(MissingRight, match="Describe on Topic masked"):
            refuse()
    refuse_hidden(["gone"], seen())
    # Brokers list no names that they hide: one that is listed was not asked for.
    assert seen(hidden=HIDES, topic_names=("a", "other")).why_unseen("other") is None
    hidden, gone = sorted(
        move_statuses({MASKED: (1,), GONE: (1,)}, seen()), key=lambda s: s.partition, reverse=True
    )
    assert (hidden.state, hidden.reason, gone.state) == (None, DENIED.reason, FAILED)


def test_a_throttle_of_a_hidden_topic_may_be_left() -> None:
    clear = throttle_of_partitions([MASKED], seen())
    assert "topic masked" in not_read(clear, seen())
    assert throttle_of_partitions([GONE], seen()).throttled == {}


@pytest.mark.parametrize(
    ("listed", "hidden", "used"),
    [("", "", False), ("", HIDES, None), ("0:1", "", True), ("0:1", HIDES, True)],
)
def test_whether_a_rate_is_used_is_not_known_where_topics_are_hidden(
    listed: str, hidden: str, used: bool | None
) -> None:
    configs = {
        ("topics", "a"): EntityConfig(
            entity_type="topics", entity_name="a", values={LEADER_REPLICAS: listed} if listed else {}
        ),
        ("brokers", "1"): EntityConfig(entity_type="brokers", entity_name="1", values={LEADER_RATE: "9"}),
    }
    (rate,) = [
        t
        for t in throttles_set(replace(cluster(), configs=configs, hidden=hidden))
        if t.entity_type == "brokers"
    ]
    assert rate.is_used is used and (rate.why == HIDES) is (used is None)


def test_which_throttles_the_journal_still_has_to_take_off() -> None:
    def entry(state: str, undone_by: str | None = None) -> Entry:
        moved = RecordedStage(
            intent=Reassign(targets={MASKED: (1,)}, origins={MASKED: (2,)}), state="finished"
        )
        clear = RecordedStage(
            intent=ClearThrottle(throttled={}, rates={"2": {}, "<default>": {}}), state=state
        )
        return Entry(
            id="i", time="t", who="w", command="c", reason=None, cluster_id=None, backend="admin", location="l",
            kafka_version=None, title="t", stages=[moved, clear], undone_by=undone_by,
        )  # fmt: skip

    assert brokers_to_clear([entry("planned")]) == {2}
    assert brokers_to_clear([entry("finished"), entry("planned", undone_by="j")]) == set()


def test_what_a_dead_broker_has_set_is_not_known() -> None:
    state = replace(cluster(fenced=(3,)), backend="admin")
    with pytest.raises(
        KctlError, match="whether k is set for broker 3 is not known: it is not alive; nothing was written"
    ):
        config_change(state, "brokers", "3", set={}, unset=["k"], known=None)
    with pytest.raises(KctlError, match="k is not set for broker 1"):
        config_change(state, "brokers", "1", set={}, unset=["k"], known=None)


def test_moves_that_may_not_be_listed_are_not_absent() -> None:
    """Without the list of reassignments no partition shows that it is moved."""
    right = Right("Describe")
    problem = Problem("reassignments", missing(right, "User:ann"), right=right, principal="User:ann")
    state = replace(cluster(), backend="admin", problems=(problem,))
    brokers = cast(Cluster, SimpleNamespace(read_state=lambda **_: state))
    plan = PlanFile(path=Path("plan.json"), targets={})
    with pytest.raises(KctlError, match=r"being moved is unknown: .* for User:ann; nothing was written"):
        plan_cancellation(brokers, plan, {})


def test_a_quota_that_may_not_be_read_is_not_unset() -> None:
    right = Right("DescribeConfigs")
    problem = Problem(
        "configurations of users", missing(right, "User:ann"), right=right, principal="User:ann"
    )
    state = replace(cluster(), backend="admin", problems=(problem,))
    with pytest.raises(
        KctlError, match=r"whether k is set for user bob is not known: DescribeConfigs on Cluster is missing"
    ) as raised:
        config_change(state, "users", "bob", set={}, unset=["k"], known=())
    assert raised.value.hint is not None and raised.value.hint.startswith("grant it (")


def test_transactions_of_hidden_topics_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "lacking_request", lambda wire: None)
    monkeypatch.setattr(transactions, "find_open", lambda *_: ([], {}))
    wire = cast(Wire, SimpleNamespace(principal="User:a"))
    (judged,) = transactions.asked_rows(wire, replace(cluster(), hidden=HIDES), [], every=False)
    assert isinstance(judged, Judgement) and judged.verdict is Verdict.COULD_NOT_JUDGE
    assert judged.missing[0].why == HIDES and "--topic '*'" in judged.missing[0].get
    assert list(transactions.asked_rows(wire, cluster(), [], every=False)) == []


# --- in ZooKeeper -------------------------------------------------------------------------------------


class PartlyHidden(FakeStore):
    """A store that does not show some paths to this session."""

    hidden: Collection[str] = ()

    def _shown(self, paths: Sequence[str], values: Sequence[object]) -> None:
        if hidden := [path for path in paths if path in self.hidden]:
            raise HiddenZnodes(
                hidden, [None if p in self.hidden else v for p, v in zip(paths, values, strict=True)]
            )

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        values = super().get_many(paths)
        self._shown(paths, values)
        return values

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        values = super().children_many(paths)
        self._shown(paths, values)
        return values


def read(*hidden: str) -> ClusterState:
    store = fake_cluster()
    for name in ("shown", "masked"):
        add_topic(store, name, [[1, 2]])
        store.put(f"/config/topics/{name}", {"version": 1, "config": {"retention.ms": "5"}})
    store.put("/config/users/u", {"version": 1, "config": {"producer_byte_rate": "5"}})
    partly = PartlyHidden()
    partly.nodes, partly.hidden = store.nodes, hidden
    return ZookeeperCluster(partly).read_state(configs=("topics", "users"))


def test_hidden_znodes_of_topics_are_named_and_the_rest_is_shown() -> None:
    state = read("/brokers/topics/masked")
    assert (list(state.topics), sorted(state.topic_names)) == (["shown"], ["masked", "shown"])
    assert state.hidden.startswith("/brokers/topics/masked: ZooKeeper does not allow") and state.why_unseen(
        "masked"
    )
    assert read().hidden == "" and read().why_unseen("masked") is None
    checks = {result.check: result.status for result in check_health(HealthFacts(state, (), 0))}
    assert checks["offline"] == checks["under-replicated"] == "unknown"
    with pytest.raises(KctlError, match="nothing was written"):
        refuse_hidden(["masked"], state)
    partition = read("/brokers/topics/masked/partitions/0/state")
    assert "masked" in partition.topics and partition.hidden


def test_hidden_configurations_are_not_unset() -> None:
    state = read("/config/users", "/config/topics/masked")
    assert [problem.place for problem in state.problems] == [
        "configurations of users",
        "configuration of topic masked",
    ]
    assert all(problem.is_hidden and "access list" in problem.hint for problem in state.problems)
    assert state.why_unread("topics", "masked") and state.why_unread("topics", "shown") is None
    assert state.config("topics", "shown") == {"retention.ms": "5"}


def test_what_nobody_can_parse_is_an_error_still() -> None:
    state = replace(read(), problems=(Problem("configuration of topic shown", "not JSON"),))
    checks = {result.check: result for result in check_health(HealthFacts(state, (), 0))}
    assert checks["unreadable"].status == "error" and "may not start again" in checks["unreadable"].meaning
    assert checks["under-min-isr"].status == "good"


def test_without_the_list_of_brokers_or_topics_there_is_no_answer() -> None:
    for path in ("/brokers/ids", "/brokers/topics", "/controller"):
        with pytest.raises(HiddenZnodes, match=f"^{path}: ZooKeeper does not allow"):
            read(path)


def test_what_is_hidden_beside_the_topics_is_unknown_and_the_topics_are_shown() -> None:
    paths = (
        "/controller_epoch",
        "/cluster/id",
        "/admin/reassign_partitions",
        "/admin/delete_topics",
        "/migration",
        "/",
        "/config",
    )
    state = read(*paths)
    assert sorted(state.topics) == ["masked", "shown"] and not state.hidden
    assert [problem.reason.split(":")[0] for problem in state.problems] == [
        "/controller_epoch", "/cluster/id", "/migration", "/admin/reassign_partitions", "/admin/delete_topics",
    ]  # fmt: skip
    assert all(problem.is_hidden for problem in state.problems)
    assert [problem.place for problem in moves_unread(state)] == ["reassignment request"]
    row = controller_row(state)
    assert row["controller_epoch"] is None and "/controller_epoch: ZooKeeper does not" in str(row["why"])
    assert row["is_alive"] is not None
    notifications = Oddity("notification-unread", "/config/changes", "/config/changes is hidden")
    results = {result.check: result for result in check_health(HealthFacts(state, (notifications,), 0))}
    unknown = {
        "controller-loop",
        "future-controller-epoch",
        "migration",
        "moving",
        "requests",
        "deletions",
        "notifications",
    }
    assert unknown <= {check for check, result in results.items() if result.status == "unknown"}
    assert results["offline"].status == results["orphan-configs"].status == "good"
    with pytest.raises(KctlError, match="no topic nosuch"):
        refuse_unseen(ZookeeperCluster(fake_cluster()), ["nosuch"], state)
