"""KRaft's own changes and forecasts: voters, features, registrations, rolling restarts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from formats.values import replace
from kctl.changes.apply import ChangeRun, deadline, resume
from kctl.changes.entry import new_entry
from kctl.changes.journal import Journal
from kctl.changes.kinds.quorum import AddVoter, RemoveVoter, UnregisterBroker, UpdateFeatures
from kctl.cluster.backends import BACKENDS
from kctl.cluster.disks import BrokerLogDir, StoredReplica
from kctl.cluster.feature_levels import LEVELS, one_way
from kctl.cluster.intent import Write
from kctl.cluster.interface import Conflict
from kctl.cluster.prediction import has_majority_after, predict
from kctl.cluster.rolling import Restart, rolling_restart
from kctl.cluster.state import (
    Broker,
    ClusterState,
    Controller,
    Endpoint,
    EntityConfig,
    PartitionState,
    Problem,
    Quorum,
    QuorumMember,
    Topic,
)
from kctl.cluster.versions import KafkaVersion
from kctl.errors import BadValue, KctlError, Refused, RefusedItem
from kctl.model import TopicPartition
from kctl.operations.kraft.features import features_of, plan_levels
from kctl.operations.kraft.unregistering import plan_unregistering
from kctl.operations.kraft.voters import plan_adding, plan_removing
from kctl.wire.writes.kraft import unregister_broker
from kctl.wire.writes.requests import Request
from kctl.wire.writes.table import read_request, request_of, requests_of

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
CONTROLLERS = {n: Endpoint("CONTROLLER", f"c{n}", 9093) for n in (101, 102, 103, 104, 105)}


def quorum(
    *voting: int, dead: tuple[int, ...] = (), observers: tuple[int, ...] = (1, 2, 3), leader: int = 101
) -> Quorum:
    members = tuple(
        QuorumMember(
            node, node in voting, 90, 1_000_000, last_fetch_at=1_000_000, directory_id=f"dir{node}",
            is_answering=node not in dead, endpoints=(CONTROLLERS[node],) if node in CONTROLLERS else (),
        )
        for node in (*voting, *observers)
    )  # fmt: skip
    return Quorum(leader_id=leader, leader_epoch=4, high_watermark=90, members=members)


def cluster(
    found: Quorum | None = None,
    *,
    replicas: tuple[tuple[int, ...], ...] = ((1, 2, 3), (2, 3, 1)),
    isr: tuple[tuple[int, ...], ...] | None = None,
    least: int = 2,
    fenced: tuple[int, ...] = (),
    levels: Mapping[str, int] | None = None,
    **other: Any,
) -> ClusterState:
    """Brokers 1, 2, 3 and voters 101, 102, 103; topic a, led by the first of each ISR."""
    in_sync = isr or replicas
    values: dict[str, Any] = {
        "cluster_id": "c",
        "kafka_version": KafkaVersion(4, 3),
        "brokers": {n: Broker(broker_id=n, host="h", port=1, is_fenced=n in fenced) for n in (1, 2, 3)},
        "controller": Controller(broker_id=101, epoch=4, is_kraft=True),
        "topic_names": ("a",),
        "topics": {"a": Topic(name="a", partitions=dict(enumerate(replicas)))},
        "partition_states": {
            TopicPartition("a", p): PartitionState(ids[0] if ids else -1, 3, ids)
            for p, ids in enumerate(in_sync)
        },
        "broker_files": {n: {"min.insync.replicas": str(least)} for n in (1, 2, 3)},
        "backend": "admin",
        "quorum": found or quorum(101, 102, 103),
        "features": {"kraft.version": 1, "metadata.version": 30, **(levels or {})},
    }
    return ClusterState(**{**values, **other})


class Requests:
    """A cluster of which only the requests of an intent are asked."""

    def writes_for(self, intent: Any, state: ClusterState) -> tuple[Write, ...]:
        return tuple(requests_of(intent, state, state, None))  # type: ignore[arg-type]

    def supported_features(self) -> tuple[dict[str, tuple[int, int]], list[KctlError]]:
        return {"metadata.version": (7, 30), "group.version": (0, 1), "new.version": (0, 1)}, []


REQUESTS: Any = Requests()


# --- voters -----------------------------------------------------------------------------------------------


def test_a_node_whose_directory_was_replaced_is_removed_before_it_is_added() -> None:
    at_work = quorum(101, 102, 103, dead=(103,))
    (voter,) = (member for member in at_work.members if member.node_id == 103)
    now = voter._replace(is_voter=False, directory_id="dir103b", is_answering=True)
    state = cluster(at_work._replace(members=(*at_work.members, now)))
    with pytest.raises(Refused, match="voter 103 is directory dir103, which is gone") as refused:
        plan_adding(REQUESTS, state, [103], CONTROLLERS)
    assert refused.value.hint == "`kctl quorum remove 103`, then `kctl quorum add 103`"
    assert plan_removing(REQUESTS, state, 103).stages[0].intent.directory_id == "dir103"


def test_a_voter_is_removed_where_a_majority_is_left() -> None:
    (stage,) = plan_removing(REQUESTS, cluster(), 103).stages
    assert stage.intent == RemoveVoter(
        node_id=103, directory_id="dir103", listeners={"CONTROLLER": "c103:9093"}
    )
    assert stage.intent.inverse() == AddVoter(
        node_id=103, directory_id="dir103", listeners={"CONTROLLER": "c103:9093"}
    )
    dead = cluster(quorum(101, 102, 103, dead=(103,)))
    assert not plan_removing(REQUESTS, dead, 103).is_empty, "the dead one goes"
    with pytest.raises(Refused, match="1 of 2 voters after the change are alive, which is no majority"):
        plan_removing(REQUESTS, dead, 102)
    with pytest.raises(BadValue, match="node 1 is not a voter"):
        plan_removing(REQUESTS, dead, 1)
    with pytest.raises(Refused, match="0 of 0 voters"):
        plan_removing(REQUESTS, cluster(quorum(101)), 101)


def test_an_observer_is_added_where_it_answers() -> None:
    state = cluster(quorum(101, 102, 103, observers=(1, 104, 105)))
    plan = plan_adding(REQUESTS, state, [104, 102, 105], CONTROLLERS)
    assert [stage.intent.node_id for stage in plan.stages] == [104, 105]  # type: ignore[attr-defined]
    assert plan.stages[0].writes and not plan.stages[1].writes, "worked out when its turn comes"
    assert plan.warnings == () and plan_adding(REQUESTS, state, [104], CONTROLLERS).warnings
    assert plan_adding(REQUESTS, state, [102], CONTROLLERS).is_empty
    for node, endpoints, why in (
        (1, {}, "node 1 is a broker, not a controller"),
        (105, {}, "the listener of controller 105 is unknown"),
        (106, CONTROLLERS, "node 106 is not an observer"),
    ):
        with pytest.raises(KctlError, match=why):
            plan_adding(REQUESTS, state, [node], endpoints)
    with pytest.raises(Refused, match="node 104 has not fetched"):
        plan_adding(REQUESTS, cluster(quorum(101, observers=(104,), dead=(104,))), [104], CONTROLLERS)
    with pytest.raises(Refused, match="2 of 4 voters after the change"):
        plan_adding(
            REQUESTS, cluster(quorum(101, 102, 103, dead=(102, 103), observers=(104,))), [104], CONTROLLERS
        )


def test_a_node_with_a_new_disk_is_added_beside_the_memory_of_its_old_one() -> None:
    """A leader lists what has not fetched for minutes, after it was removed from the voters too."""
    found = quorum(101, 102, observers=(103,), dead=(103,))
    (old,) = (one for one in found.members if one.node_id == 103)
    new = old._replace(directory_id="new", is_answering=True, last_fetch_at=2_000_000)
    for members in ((*found.members, new), (new, *found.members)):
        (stage,) = plan_adding(REQUESTS, cluster(found._replace(members=members)), [103], CONTROLLERS).stages
        assert isinstance(stage.intent, AddVoter) and stage.intent.directory_id == "new"


def test_voters_that_are_fixed_are_not_changed() -> None:
    with pytest.raises(Refused, match=r"kraft\.version 0"):
        plan_removing(REQUESTS, cluster(levels={"kraft.version": 0}), 103)
    with pytest.raises(KctlError, match=r"needs Kafka 3.9 \(KIP-853\)"):
        plan_removing(REQUESTS, cluster(kafka_version=KafkaVersion(3, 7)), 103)
    with pytest.raises(KctlError, match="no KRaft quorum"):
        plan_removing(REQUESTS, replace(cluster(), quorum=None), 103)


def test_when_a_change_of_voters_is_done() -> None:
    remove = RemoveVoter(node_id=103, directory_id="dir103", listeners={})
    assert not remove.how_far(cluster()).is_done
    assert remove.how_far(cluster(quorum(101, 102))).is_done
    lost = cluster(quorum(101, 102, dead=(102,)))
    assert remove.how_far(lost).missing == ("no majority of the voters answers",)
    add = remove.inverse if remove.listeners else AddVoter(node_id=103, directory_id="dir103", listeners={})
    assert isinstance(add, AddVoter) and add.how_far(cluster()).is_done
    assert not add.how_far(cluster(quorum(101, 102))).is_done
    other = AddVoter(node_id=103, directory_id="new", listeners={})
    assert not other.how_far(cluster()).is_done, "formatted anew"
    with pytest.raises(Refused, match="the former listener of node 103 is unknown"):
        remove.inverse()


def test_what_a_write_was_worked_out_from_is_held_against_the_cluster() -> None:
    for target, before, after, why in (
        (
            "RemoveRaftVoter node 102",
            '{"voters": [101, 102]}',
            '{"node_id": 102, "directory_id": "d", "listeners": {}, "cluster_id": "c"}',
            r"the voters are \[101, 102, 103\]",
        ),
        (
            "UpdateFeatures group.version",
            '{"levels": {"group.version": 1}}',
            '{"levels": {"group.version": 0}, "is_downgrade": true}',
            "group.version is 0, not 1",
        ),
    ):
        with pytest.raises(Conflict, match=why):
            read_request(target, before, after).refuse_other_state(cluster())
    alive = read_request("UnregisterBroker broker 2", '{"unused": 2}', '{"broker_id": 2}')
    with pytest.raises(Refused, match="broker 2 is alive"):
        alive.refuse_other_state(cluster())


# --- features ---------------------------------------------------------------------------------------------


def test_levels_rise_and_releases_too() -> None:
    for name, levels in LEVELS.items():
        numbers = [level.level for level in levels]
        assert numbers == list(range(1, len(numbers) + 1)), name
        releases = [tuple(map(int, level.release.partition("-")[0].split("."))) for level in levels]
        assert releases == sorted(releases), name


def test_a_level_that_changes_records_is_one_way() -> None:
    assert not one_way("metadata.version", 25, 29)
    assert [level.level for level in one_way("metadata.version", 22, 30)] == [23, 30]
    assert [level.level for level in one_way("metadata.version", 30, 32)] == [31, 32], "not known here"
    (found,) = features_of(
        cluster(levels={"metadata.version": 29}, features={"metadata.version": 29}),
        {"metadata.version": (7, 30)},
    )
    assert (found.proposed_level, found.is_reversible) == (30, False)
    assert found.adds == ["30 (4.3-IV0): KIP-1066: cordoned log directories; no way back"]
    (found,) = features_of(cluster(features={"group.version": 1}), {})
    assert (found.minimum_level, found.proposed_level, found.is_reversible, found.adds) == (
        None,
        None,
        None,
        [],
    )


def test_levels_are_set_upwards_or_downwards() -> None:
    state = cluster(features={"metadata.version": 29, "kraft.version": 1})
    up = plan_levels(REQUESTS, state, {"metadata.version": 30, "group.version": 1}, is_downgrade=False)
    (stage,) = up.stages
    assert up.title == "upgrade metadata.version from 29 to 30, group.version from 0 to 1"
    assert up.warnings == ("metadata.version cannot go back below 30: KIP-1066: cordoned log directories",)
    with pytest.raises(Refused, match="cannot be undone"):
        stage.intent.inverse()
    (stage,) = plan_levels(REQUESTS, state, {"group.version": 1}, is_downgrade=False).stages
    back = stage.intent.inverse()
    assert isinstance(back, UpdateFeatures) and back.is_downgrade
    assert (back.levels, back.previous_levels) == ({"group.version": 0}, {"group.version": 1})
    assert back.how_far(state).is_done and not stage.intent.how_far(state).is_done
    down = plan_levels(
        REQUESTS, cluster(features={"group.version": 1}), {"group.version": 0}, is_downgrade=True
    )
    assert down.warnings == ("group.version loses 1 (4.0): KIP-848: the consumer group protocol",)
    assert plan_levels(REQUESTS, state, {"metadata.version": 29}, is_downgrade=True).is_empty
    for level, is_downgrade in ((28, False), (30, True)):
        with pytest.raises(BadValue, match=f"metadata.version is 29: {level} is no"):
            plan_levels(REQUESTS, state, {"metadata.version": level}, is_downgrade=is_downgrade)


def test_a_feature_that_nobody_knows_is_named() -> None:
    with pytest.raises(BadValue, match=r"no feature metadata\.verson; did you mean metadata\.version"):
        plan_levels(REQUESTS, cluster(), {"metadata.verson": 30}, is_downgrade=False)
    assert not plan_levels(REQUESTS, cluster(), {"new.version": 1}, is_downgrade=False).is_empty


# --- registrations ----------------------------------------------------------------------------------------


def test_a_broker_that_is_in_use_stays_registered() -> None:
    with pytest.raises(Refused, match="broker 3 is alive"):
        plan_unregistering(REQUESTS, cluster(), 3)
    with pytest.raises(Refused, match="broker 3 is assigned 2 replicas: a-0, a-1") as refused:
        plan_unregistering(REQUESTS, cluster(fenced=(3,)), 3)
    assert "reassign plan --drain 3" in refused.value.hint
    unused = cluster(replicas=((1, 2), (2, 1)), fenced=(3,))
    (stage,) = plan_unregistering(REQUESTS, unused, 3).stages
    assert stage.intent == UnregisterBroker(broker_id=3)
    assert not stage.intent.how_far(unused).is_done
    with pytest.raises(BadValue, match="no broker 9; there are 1, 2, 3"):
        plan_unregistering(REQUESTS, unused, 9)
    older = replace(unused, kafka_version=KafkaVersion(3, 9))
    assert not plan_unregistering(REQUESTS, older, 9).is_empty, "brokers that are fenced are not listed"


class Controllers:
    """A cluster of a version in which broker 3 is dead; it may have been unregistered before kctl ended."""

    backend, can = "admin", BACKENDS["admin"]

    def __init__(self, version: KafkaVersion, *, is_registered: bool) -> None:
        known = {n: Broker(broker_id=n, host="h", port=1, is_fenced=n == 3) for n in (1, 2, 3)}
        if version < KafkaVersion(4, 0) or not is_registered:
            del known[3]
        self.state = cluster(replicas=((1, 2), (2, 1)), brokers=known, kafka_version=version)
        self.is_registered, self.asked = is_registered, 0

    def read_state(self, *_: Any, **__: Any) -> ClusterState:
        return self.state

    def writes_for(self, intent: UnregisterBroker, fresh: ClusterState) -> list[Request]:
        return unregister_broker(fresh, intent, fresh)

    def is_written(self, writes: list[Write]) -> bool:
        return all(request_of(write).is_shown(self.state) for write in writes)

    is_begun = is_written

    def commit(self, _: list[Write]) -> None:
        self.asked += 1
        if not self.is_registered:
            error = KctlError("broker 3 is not registered")
            error.items = (RefusedItem("UnregisterBroker", "broker 3", 102, "BROKER_ID_NOT_REGISTERED"),)
            raise error
        self.is_registered = False
        self.state = replace(self.state, brokers={n: one for n, one in self.state.brokers.items() if n != 3})


@pytest.mark.parametrize("is_registered", [True, False])
@pytest.mark.parametrize("version", [KafkaVersion(3, 9), KafkaVersion(4, 3)])
def test_a_broker_is_unregistered_by_a_resume_although_nobody_lists_it(
    version: KafkaVersion, is_registered: bool, tmp_path: Path
) -> None:
    found = Controllers(version, is_registered=is_registered)
    before = replace(
        found.state, brokers={**found.state.brokers, 3: Broker(broker_id=3, host="h", port=1, is_fenced=True)}
    )
    plan = plan_unregistering(found, before, 3)  # type: ignore[arg-type]
    entry = new_entry(
        plan, command="kctl", reason="", cluster_id="c", backend="admin", location="h:1", kafka_version=None
    )
    entry.stages[0].state = "writing"
    entry.stages[0].writes = tuple(found.writes_for(UnregisterBroker(broker_id=3), before))
    run = ChangeRun(cluster=found, journal=Journal(tmp_path), wait=True, until=deadline(5))  # type: ignore[arg-type]
    resume(entry, run)
    assert entry.stages[0].state == "finished" and not found.is_registered
    assert found.asked == int(is_registered or version < KafkaVersion(4, 0))


# --- rolling restart --------------------------------------------------------------------------------------

NO_DISKS: list[BrokerLogDir] = []


def restart(state: ClusterState, node: int, disks: list[BrokerLogDir] = NO_DISKS) -> Restart:
    (found,) = [one for one in rolling_restart(state, disks) if one.broker_id == node]
    return found


def test_the_active_controller_is_last_and_racks_stay_together() -> None:
    state = cluster()
    racks = {1: "b", 2: "a", 3: "b"}
    state = replace(state, brokers={n: b._replace(rack=racks[n]) for n, b in state.brokers.items()})
    order = rolling_restart(state, [])
    assert [(one.broker_id, one.place) for one in order] == [
        (2, 1),
        (1, 2),
        (3, 3),
        (102, 4),
        (103, 5),
        (101, 6),
    ]
    assert all(one.is_safe_now and one.reason is None for one in order)
    assert order[-1].is_leader and order[-1].roles == ("controller",)
    combined = replace(
        state, quorum=quorum(1, 2, 3, observers=(), leader=2), controller=Controller(2, 4, True)
    )
    assert [one.broker_id for one in rolling_restart(combined, [])] == [1, 3, 2]
    assert rolling_restart(combined, [])[0].roles == ("broker", "controller")


@pytest.mark.parametrize(
    ("state", "node", "reason"),
    [
        (cluster(least=3), 1, "2 partitions would have fewer in the ISR than min.insync.replicas: a-0, a-1"),
        (cluster(least=1, isr=((1, 2), (2, 1))), 1, "2 partitions not in sync everywhere: a-0, a-1"),
        (cluster(replicas=((1,), (2, 3))), 1, "1 partition would go offline: a-0"),
        (cluster(least=1, isr=((), (2, 1, 3))), 1, "1 partition would go offline: a-0"),
        (cluster(fenced=(3,), least=1, isr=((1, 2), (2, 1))), 1, "broker 3 is not alive"),
        (cluster(fenced=(3,), least=1, isr=((1, 2), (2, 1))), 3, "broker 3 is not alive: start it"),
        (cluster(quorum(101, 102, 103, dead=(103,))), 102, "1 of 3 voters would be left, which is no majority"),
        (cluster(quorum(1, 2, 3, observers=(), dead=(3,))), 1, "1 of 3 voters would be left, which is no majority"),
        (cluster(controller=Controller(None, None, True)), 1, "there is no active controller"),
        (cluster(problems=(Problem("configuration of broker 2", "no", 2),)), 1, "broker 2 does not answer"),
    ],
)  # fmt: skip
def test_who_has_to_wait(state: ClusterState, node: int, reason: str) -> None:
    found = restart(state, node)
    assert (found.is_safe_now, found.reason) == (False, reason)


def test_a_dead_voter_does_not_keep_brokers_or_itself() -> None:
    state = cluster(quorum(101, 102, 103, dead=(103,)))
    assert restart(state, 1).is_safe_now and restart(state, 103).is_safe_now


def test_disks_and_moves_are_waited_for() -> None:
    failed = [BrokerLogDir(2, "/d", "KAFKA_STORAGE_ERROR")]
    assert restart(cluster(), 1, failed).reason == "log directory /d of broker 2 has failed"
    assert restart(cluster(), 2, failed).is_safe_now, "it may be what mends it"
    moving = [BrokerLogDir(1, "/d", replicas=(StoredReplica(A0, 1, is_future=True),))]
    assert restart(cluster(), 3, moving).reason == "broker 1 is moving 1 replica between its disks"
    topic = Topic(name="a", partitions={0: (1, 2, 3), 1: (2, 3, 1)}, adding_replicas={1: (1,)})
    assert restart(cluster(topics={"a": topic}), 1).reason == "1 partition being moved: a-1"
    offline = cluster(least=1)
    states = {**offline.partition_states, A0: offline.partition_states[A0]._replace(offline_replicas=(2,))}
    assert (
        restart(replace(offline, partition_states=states), 1).reason
        == "1 partition not in sync everywhere: a-0"
    )


# --- predictions ------------------------------------------------------------------------------------------


def outcomes(state: ClusterState, *stop: int, how: str = "crash") -> dict[str, tuple[str, int | None]]:
    return {str(p.partition): (p.outcome, p.leader) for p in predict(state, stop, how=how)}


def test_dead_voters_count_as_dead() -> None:
    """Combined nodes: two of three voters are gone once broker 1 stops too, and nobody elects a leader."""
    dead = quorum(1, 2, 3, observers=(), dead=(3,), leader=2)
    state = cluster(dead, fenced=(3,), isr=((1, 2), (2, 1)))
    assert outcomes(state, 1) == {"a-0": ("offline", 1), "a-1": ("unaffected", 2)}
    assert not has_majority_after(state, [1]) and has_majority_after(state, [])
    alive = cluster(quorum(1, 2, 3, observers=(), leader=2))
    assert outcomes(alive, 1)["a-0"] == ("new_leader", 2)


def test_controllers_can_stop_too() -> None:
    state = cluster()
    assert outcomes(state, 101) == {"a-0": ("unaffected", 1), "a-1": ("unaffected", 2)}
    assert outcomes(state, 101, 102, 1)["a-0"] == ("offline", 1), "nobody is left to elect another one"
    with pytest.raises(BadValue, match="not alive now: 103"):
        outcomes(cluster(quorum(101, 102, 103, dead=(103,))), 103)
    lost = Quorum(
        leader_id=-1, leader_epoch=-1, high_watermark=-1, members=quorum(101, 102).members, lost="none"
    )
    assert outcomes(cluster(lost), 1)["a-0"] == ("offline", 1)


def test_a_combined_node_hands_over_while_there_is_a_majority() -> None:
    """The second one to shut down is still heard; its own voting ends after it."""
    state = cluster(quorum(1, 2, 3, observers=(), leader=3))
    assert outcomes(state, 1, 2, how="controlled") == {"a-0": ("new_leader", 3), "a-1": ("new_leader", 3)}
    assert outcomes(state, 1, 2)["a-0"] == ("offline", 1)


def test_a_replica_on_a_failed_disk_does_not_lead() -> None:
    state = cluster()
    states = {**state.partition_states, A0: PartitionState(1, 3, (1, 2, 3), offline_replicas=(2,))}
    assert outcomes(replace(state, partition_states=states), 1)["a-0"] == ("new_leader", 3)


def test_what_stands_in_the_brokers_files_counts() -> None:
    state = cluster(least=3)
    (one, _) = predict(state, [3])
    assert one.min_insync_replicas == 3 and one.is_under_min_isr
    own = {("topics", "a"): EntityConfig("topics", "a", {"min.insync.replicas": "1"})}
    (one, _) = predict(replace(state, configs=own), [3])
    assert one.min_insync_replicas == 1 and not one.is_under_min_isr
    unclean = replace(
        cluster(replicas=((1, 2),), isr=((1,),)),
        broker_files={1: {"unclean.leader.election.enable": "true"}},
    )
    assert outcomes(unclean, 1)["a-0"] == ("unclean", 2)


def test_what_is_offline_on_a_failed_disk_does_not_keep_its_broker_from_a_restart() -> None:
    """Stopping it takes nothing away, and to start it again is what brings the disk back."""
    state = cluster(replicas=((2,), (2, 1)), isr=((), (1,)), least=1)
    states = dict(state.partition_states)
    for partition, found in states.items():
        states[partition] = found._replace(offline_replicas=(2,))
    state = replace(state, partition_states=states)
    assert [one.waits_for for one in rolling_restart(state, []) if one.broker_id == 2] == [()]
    assert "1 partition would go offline: a-1" in next(
        one.waits_for for one in rolling_restart(state, []) if one.broker_id == 1
    )
