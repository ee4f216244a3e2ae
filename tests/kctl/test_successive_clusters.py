"""Clusters that followed each other on the same disks, and topics that were made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.broker_logs.history.timeline import Timeline, timeline
from kctl.broker_logs.merging import read_events
from kctl.model import TopicPartition

TP = TopicPartition("t", 0)
SERVER = "kafka.server.KafkaServer"


def cluster_id(text: str) -> str:
    return f"Cluster ID = {text} ({SERVER})"


def elected(epoch: int) -> str:
    return (
        f"[Controller id=0] 0 successfully elected as the controller. Epoch incremented to {epoch} and epoch zk version is "
        f"now {epoch} (kafka.controller.KafkaController)"
    )


def changed(leader: int, epoch: int, before: str = "OnlinePartition") -> str:
    return (
        f"[Controller id=0 epoch=1] Changed partition t-0 from {before} to OnlinePartition with state LeaderAndIsr("
        f"leader={leader}, leaderEpoch={epoch}, isr=List({leader}), zkVersion={epoch}) (state.change.logger)"
    )


def grows(broker_id: int) -> str:
    return f"[Partition t-0 broker={broker_id}] ISR updated to 0,1 and version updated to [9] (kafka.cluster.Partition)"


def history(folder: Path, *texts: str, doubtful: frozenset[int] = frozenset()) -> Timeline:
    logs = folder / "logs"
    logs.mkdir()
    for name in ("server", "controller", "state-change"):
        lines = [
            f"[2026-11-21 13:{second // 6:02d}:{second % 6}0,000] INFO {text}\n"
            for second, text in enumerate(texts)
            if ("state.change" in text) == (name == "state-change")
            and ("Controller)" in text) == (name == "controller")
        ]
        (logs / f"{name}.log").write_text("".join(lines))
    return timeline(read_events([str(folder)]), doubtful=doubtful)


def told(found: Timeline) -> list[tuple[int, int, int | None, str]]:
    return [(one.cluster, one.leader_epoch, one.leader, one.how) for one in found.of(TP)]


OLD = [changed(0, 0, "NewPartition"), changed(1, 1)]
NEW = [changed(1, 0, "NewPartition"), grows(1)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([cluster_id("a"), elected(1)], [cluster_id("b"), elected(1)]),
        ([elected(4)], [elected(1)]),
        ([cluster_id("a"), elected(4)], [cluster_id("b"), elected(1)]),
    ],
)
def test_a_new_cluster_id_or_a_lower_controller_epoch_is_another_cluster(
    tmp_path: Path, first: list[str], second: list[str]
) -> None:
    found = history(tmp_path, *first, *OLD, *second, *NEW)
    assert [one[:3] for one in told(found)] == [(1, 0, 0), (1, 1, 1), (2, 0, 1)]
    ends = [(one.from_ms, one.to_ms) for one in found.of(TP)]
    assert ends[1][1] is not None and ends[1][1] <= ends[2][0] and ends[2][1] is None
    assert [len(one.isr_changes) for one in found.of(TP)] == [0, 0, 1]
    assert [(term.cluster, term.controller_epoch) for term in found.controllers][-1][0] == 2
    assert not [finding for finding in found.findings() if finding.is_wrong]


def test_restarts_of_one_cluster_are_one(tmp_path: Path) -> None:
    found = history(tmp_path, cluster_id("a"), elected(1), *OLD, cluster_id("a"), elected(2), changed(0, 2))
    assert [one[0] for one in told(found)] == [1, 1, 1]


def test_a_cluster_that_comes_back_goes_on(tmp_path: Path) -> None:
    texts = [cluster_id("a"), *OLD, cluster_id("b"), *NEW, cluster_id("a"), changed(0, 2)]
    assert [one[:2] for one in told(history(tmp_path, *texts))] == [(1, 0), (1, 1), (1, 2), (2, 0)]


def test_a_topic_made_again_begins_with_epoch_0_again(tmp_path: Path) -> None:
    found = history(tmp_path, *OLD, *NEW)
    assert [one[:3] for one in told(found)] == [(1, 0, 0), (1, 1, 1), (1, 0, 1)]
    assert [len(one.isr_changes) for one in found.of(TP)] == [0, 0, 1]


@pytest.mark.parametrize(("ids", "count"), [("ab", 2), ("aab", 2), ("aa", 1)])
def test_a_topic_made_again_has_another_id_where_it_begins_as_the_first_did(
    tmp_path: Path, ids: str, count: int
) -> None:
    texts = [
        f"[QuorumController id=1] Replayed PartitionRecord for new partition t-0 with topic ID {letter * 22} and "
        "PartitionRegistration(replicas=[1, 0], directories=[], isr=[1, 0], removingReplicas=[], addingReplicas=[], "
        "elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0). "
        "(org.apache.kafka.controller.ReplicationControlManager)"
        for letter in ids
    ]
    found = history(tmp_path, *texts)
    assert [one[:3] for one in told(found)] == [(1, 0, 1)] * count
    assert [one.topic_id for one in found.of(TP)] == [letter * 22 for letter in sorted(set(ids))]


def test_epochs_that_a_controller_lowers_are_those_of_a_topic_made_again(tmp_path: Path) -> None:
    found = history(tmp_path, *OLD, changed(0, 2), changed(1, 1), changed(0, 2))
    assert [one[:3] for one in told(found)] == [(1, 0, 0), (1, 1, 1), (1, 2, 0), (1, 1, 1), (1, 2, 0)]


def sent(leader: int, epoch: int, version: int, *isr: int) -> str:
    members = ",".join(map(str, isr))
    return (
        f"[Controller id=0 epoch=2] Sending become-follower LeaderAndIsr request PartitionState(controllerEpoch=1, "
        f"leader={leader}, leaderEpoch={epoch}, isr={members}, zkVersion={version}, replicas=1,0, isNew=false) to broker 0 "
        f"for partition t-0 (state.change.logger)"
    )


def test_two_isrs_of_one_version_are_those_of_two_topics(tmp_path: Path) -> None:
    """Disks were wiped while no log was kept; the election is out of the ISR of the second topic."""
    found = history(
        tmp_path, changed(1, 0, "NewPartition"), sent(1, 0, 0, 1, 0), changed(0, 1, "OfflinePartition")
    )
    assert told(found) == [(1, 0, 1, "creation"), (1, 0, 1, "creation"), (1, 1, 0, "failure")]
    assert not [finding for finding in found.findings() if finding.is_wrong]


def test_two_isrs_of_one_version_begin_nothing_where_the_order_of_lines_is_unknown(tmp_path: Path) -> None:
    lines = changed(1, 0, "NewPartition"), sent(1, 0, 0, 1, 0)
    assert len(told(history(tmp_path, *lines, doubtful=frozenset((0,))))) == 1


def test_two_isrs_of_one_version_of_one_topic_id_are_those_of_one_topic(tmp_path: Path) -> None:
    """A KRaft controller prints what it decides before it is committed; the next one may decide otherwise."""

    def said(controller: int, isr: str, leader: int, epoch: int, version: int) -> str:
        return (
            f"[QuorumController id={controller}] partition change for t-0 with topic ID {'A' * 22}: isr: [1, 2, 3] -> [{isr}], "
            f"leader: 3 -> {leader}, leaderEpoch: {epoch - 1} -> {epoch}, partitionEpoch: {version - 1} -> {version} "
            f"(org.apache.kafka.controller.ReplicationControlManager)"
        )

    created = (
        f"[QuorumController id=1] Replayed PartitionRecord for new partition t-0 with topic ID {'A' * 22} and "
        "PartitionRegistration(replicas=[1, 2, 3], directories=[], isr=[1, 2, 3], removingReplicas=[], addingReplicas=[], "
        "elr=[], lastKnownElr=[], leader=3, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0). "
        "(org.apache.kafka.controller.ReplicationControlManager)"
    )
    found = history(tmp_path, created, said(1, "2, 3", 2, 1, 1), said(2, "1, 3", 1, 1, 1))
    assert [one[:2] for one in told(found)] == [(1, 0), (1, 1)]


def test_one_isr_of_one_version_told_again_is_of_one_topic(tmp_path: Path) -> None:
    """A shrink without its version lies between: what is sent again is of the version before it."""
    shrinks = "[Partition t-0 broker=1] Shrinking ISR from 1,0 to 1 (kafka.cluster.Partition)"
    found = history(tmp_path, sent(1, 3, 4, 1, 0), shrinks, sent(1, 3, 4, 0, 1), sent(1, 3, 5, 1))
    assert [one[:3] for one in told(found)] == [(1, 3, 1)]


def test_a_broker_that_hears_late_what_it_decided_as_controller_begins_nothing(tmp_path: Path) -> None:
    late = (
        "[Broker id=0] Leader t-0 starts at leader epoch 1 from offset 5 with high watermark 5 ISR [0] addingReplicas [] "
        "removingReplicas []. Previous leader epoch was 0. (state.change.logger)"
    )
    found = history(tmp_path, changed(0, 0, "NewPartition"), changed(0, 1), changed(1, 2), late)
    assert [one[:3] for one in told(found)] == [(1, 0, 0), (1, 1, 0), (1, 2, 1)]
