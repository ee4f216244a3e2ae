"""What becomes of partitions of KRaft clusters when brokers stop: with and without eligible leader replicas."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kctl.cluster.prediction import Prediction, predict
from kctl.cluster.state import (
    ELR_FEATURE,
    Broker,
    ClusterState,
    Controller,
    EntityConfig,
    PartitionState,
    Quorum,
    QuorumMember,
    Topic,
)
from kctl.cluster.versions import KafkaVersion
from kctl.model import TopicPartition

TP = TopicPartition("orders", 0)


def cluster(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    *,
    leader: int | None = None,
    eligible: tuple[int, ...] | None = (),
    least: int = 1,
    voters: tuple[int, ...] = (100, 101, 102),
    configs: Mapping[str, str] | None = None,
) -> ClusterState:
    """Brokers 1 to 4 and one partition; `eligible` is None in a cluster without the feature."""
    values = {"min.insync.replicas": str(least), **(configs or {})}
    return ClusterState(
        cluster_id="c",
        kafka_version=KafkaVersion(4, 3),
        brokers={id: Broker(broker_id=id, host="h", port=1) for id in (1, 2, 3, 4)},
        controller=Controller(broker_id=voters[0], epoch=1, is_kraft=True),
        topic_names=("orders",),
        topics={"orders": Topic(name="orders", partitions={0: replicas})},
        partition_states={TP: PartitionState(isr[0] if leader is None else leader, 3, isr)},
        configs={
            ("topics", "orders"): EntityConfig(entity_type="topics", entity_name="orders", values=values)
        },
        backend="admin",
        quorum=Quorum(
            leader_id=voters[0],
            leader_epoch=1,
            high_watermark=9,
            members=tuple(QuorumMember(id, True, 9, None) for id in voters),
        ),
        features={} if eligible is None else {ELR_FEATURE: 1},
        eligible_leaders={TP: eligible} if eligible else {},
    )


def fate(state: ClusterState, *stop: int, unclean: bool | None = None) -> Prediction:
    (found,) = predict(state, stop, unclean=unclean)
    return found


def told(one: Prediction) -> tuple[str, int | None, tuple[int, ...], tuple[int, ...]]:
    return one.outcome, one.leader, one.isr, one.eligible


def test_the_first_replica_in_the_isr_leads() -> None:
    assert told(fate(cluster((1, 2, 3), (3, 1, 2), leader=1), 1)) == ("new_leader", 2, (3, 2), ())
    assert told(fate(cluster((1, 2, 3), (1, 2, 3)), 3)) == ("isr_shrinks", 1, (1, 2), ())
    assert told(fate(cluster((1, 2, 3), (1, 2, 3)), 4)) == ("unaffected", 1, (1, 2, 3), ())


def test_without_eligible_leaders_the_last_member_stays() -> None:
    assert told(fate(cluster((1, 2), (1, 2), eligible=None), 1, 2)) == ("offline", -1, (2,), ())


def test_with_eligible_leaders_the_isr_may_become_empty() -> None:
    assert told(fate(cluster((1, 2, 3), (1, 2), least=2), 1, 2)) == ("offline", -1, (), (1, 2))
    assert told(fate(cluster((1, 2, 3), (1, 2)), 1, 2)) == ("offline", -1, (), (2,)), "1 left a large ISR"


def test_who_is_left_of_a_small_isr_is_eligible() -> None:
    one = fate(cluster((1, 2, 3), (1, 2, 3), least=3), 3)
    assert told(one) == ("isr_shrinks", 1, (1, 2), (3,)) and one.is_under_min_isr


def test_an_eligible_leader_takes_over_and_nothing_is_lost() -> None:
    """Broker 3 is back and catching up: without the feature the partition would be offline."""
    assert told(fate(cluster((1, 2, 3), (1,), least=2, eligible=(3,)), 1)) == ("new_leader", 3, (3,), (1,))
    assert told(fate(cluster((1, 2, 3), (1,), least=2, eligible=None), 1)) == ("offline", -1, (1,), ())


def test_an_unclean_election_is_the_last_resort() -> None:
    state = cluster((1, 2, 3), (1,), least=2, eligible=(3,))
    assert fate(state, 1, unclean=True).outcome == "new_leader"
    assert told(fate(state, 1, 3, unclean=True)) == ("unclean", 2, (2,), ())
    configs = {"unclean.leader.election.enable": "false"}
    never = cluster((1, 2), (1,), configs=configs)
    assert fate(never, 1, unclean=True).outcome == "offline"


@pytest.mark.parametrize(("stopped", "leader"), [((1,), 2), ((1, 3), 1)])
def test_without_a_quorum_nobody_writes_anything(stopped: tuple[int, ...], leader: int) -> None:
    """Combined nodes: with two of three voters gone there is no controller, and what they led is offline."""
    one = fate(cluster((1, 2), (1, 2), voters=(1, 2, 3)), *stopped)
    assert (one.leader, one.outcome) == (leader, "new_leader" if leader == 2 else "offline")
