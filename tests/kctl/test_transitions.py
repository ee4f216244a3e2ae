"""How leaderships began, from the states and the words of controllers; each case is reduced from an incident."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.state_log_chart import _why
from kctl.broker_logs.history import transitions
from kctl.broker_logs.history.leaderships import Leadership
from kctl.broker_logs.history.timeline import timeline
from kctl.broker_logs.merging import read_events
from kctl.model import TopicPartition
from tests.conftest import rows

TP = TopicPartition("t", 0)


def leaderships(folder: Path, **logs: list[str]) -> list[Leadership]:
    """What is told by lines that each begin with the second; `server_1` is the server.log of broker 1."""
    for name, lines in logs.items():
        path = folder / f"broker-{name[-1]}" / "logs" / f"{name[:-2].replace('_', '-')}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(f"[2026-11-21 13:0{line[0]}:{line[1:3]},000] INFO {line[4:]}\n" for line in lines)
        )
    return timeline(read_events([str(folder)])).of(TP)


def told(found: list[Leadership]) -> list[tuple[int, int | None, str]]:
    return [(one.leader_epoch, one.leader, one.how) for one in found]


def elected(
    epoch: int, leader: int, isr: str, before: str = "OnlinePartition", recovery: str = "RECOVERED"
) -> str:
    members = ", ".join(f"BrokerState(brokerId={broker}, brokerEpoch=-1)" for broker in isr.split(","))
    return (
        f"[Controller id=9 epoch=1] Changed partition t-0 from {before} to OnlinePartition with state LeaderAndIsr("
        f"leader={leader}, leaderEpoch={epoch}, isrWithBrokerEpoch=List({members}), leaderRecoveryState={recovery}, "
        f"partitionEpoch={epoch}) (state.change.logger)"
    )


def offline(
    epoch: int, leader: int, isr: str, replica: int, recovery: str = "RECOVERED", controller: int = 9
) -> str:
    return (
        f"[Controller id={controller} epoch={10 - controller}] Partition t-0 state changed to (Leader:{leader},ISR:{isr},"
        f"LeaderRecoveryState:{recovery},LeaderEpoch:{epoch},ZkVersion:{epoch},ControllerEpoch:{10 - controller}) after "
        f"removing replica {replica} from the ISR as part of transition to OfflineReplica (state.change.logger)"
    )


def sent(epoch: int, leader: int, isr: str, replicas: str, removing: str = "") -> str:
    return (
        f"[Controller id=9 epoch=1] Sending become-leader LeaderAndIsr request LeaderAndIsrPartitionState(topicName='t', "
        f"partitionIndex=0, controllerEpoch=1, leader={leader}, leaderEpoch={epoch}, isr=[{isr}], partitionEpoch={epoch}, "
        f"replicas=[{replicas}], addingReplicas=[], removingReplicas=[{removing}], isNew=false, leaderRecoveryState=0) to "
        f"broker {leader} for partition t-0 (state.change.logger)"
    )


REASSIGNED = (
    "[Controller id=9 epoch=1] Successfully updated assignment of partition t-0 to ReplicaAssignment(replicas=1,2, "
    "addingReplicas=, removingReplicas=) (kafka.controller.KafkaController)"
)
CREATED = elected(0, 1, "1,2", "NewPartition")


def test_a_replica_that_goes_offline_soon_after_a_reassignment_is_no_part_of_it(tmp_path: Path) -> None:
    found = leaderships(
        tmp_path,
        controller_9=[f"010 {REASSIGNED}"],
        state_change_9=[f"000 {CREATED}", f"015 {offline(1, 1, '1', 2)}", f"015 {sent(1, 1, '1', '1,2')}"],
    )
    assert told(found) == [(0, 1, "creation"), (1, 1, "isr_change")]
    assert found[1].strength == "sure"


def test_a_replica_that_is_none_any_more_leaves_the_isr_by_the_reassignment(tmp_path: Path) -> None:
    found = leaderships(
        tmp_path,
        state_change_9=[
            f"000 {elected(0, 2, '2,1,0', 'NewPartition')}",
            f"010 {elected(1, 0, '2,1,0')}",
            f"010 {sent(1, 0, '2,1,0', '0,1')}",
            f"010 {offline(2, 0, '1,0', 2)}",
            f"010 {sent(2, 0, '1,0', '0,1')}",
        ],
    )
    assert told(found)[1:] == [(1, 0, "reassignment"), (2, 0, "reassignment")]


def test_a_leader_in_recovery_that_comes_back_was_not_elected_uncleanly_again(tmp_path: Path) -> None:
    """Only from RECOVERED to RECOVERING leads an unclean election."""
    marked = "[Broker id=1] The topic partition t-0 was marked as RECOVERING. Marking the topic partition as RECOVERED. "
    found = leaderships(
        tmp_path,
        state_change_9=[
            f"000 {elected(0, 2, '2,1', 'NewPartition')}",
            f"010 {offline(1, 2, '2', 1)}",
            f"020 {offline(2, -1, '2', 2)}",
            f"021 {elected(3, 1, '1', 'OfflinePartition', 'RECOVERING')}",
            f"030 {offline(4, -1, '1', 1, 'RECOVERING')}",
            f"040 {elected(5, 1, '1', 'OfflinePartition', 'RECOVERING')}",
        ],
        state_change_1=[f"021 {marked}(state.change.logger)", f"040 {marked}(state.change.logger)"],
    )
    assert [how for _, _, how in told(found)] == [
        "creation",
        "isr_change",
        "none",
        "unclean",
        "none",
        "failure",
    ]


SHRINKS = (
    "[Partition t-0 broker=1] Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 9, endOffset: 12). Out of sync "
    "replicas: (brokerId: 2, endOffset: 9). (kafka.cluster.Partition)"
)
LEADS = (
    "[Broker id=1] Leader t-0 starts at leader epoch 0 from offset 0 with high watermark 0 ISR [1,2] addingReplicas [] "
    "removingReplicas []. Previous leader epoch was -1. (state.change.logger)"
)
MADE = "[Partition t-0 broker=1] ISR updated to 1 and version updated to [1] (kafka.cluster.Partition)"


def test_an_isr_that_a_leader_only_wanted_to_change_decides_no_election(tmp_path: Path) -> None:
    """A leader that was cut off takes its followers out of the ISR and is never answered."""
    elections = [f"000 {CREATED}", f"020 {elected(1, 2, '2', 'OfflinePartition')}"]
    found = leaderships(
        tmp_path, state_change_9=elections, state_change_1=[f"000 {LEADS}"], server_1=[f"010 {SHRINKS}"]
    )
    assert told(found)[1] == (1, 2, "failure")
    assert found[0].isr_changes == []


def test_a_change_that_was_answered_late_was_made_then(tmp_path: Path) -> None:
    """The leader was cut off from the controllers for a while. What a controller says again tells nothing of the time."""
    lines = [f"010 {SHRINKS}", f"030 {MADE}"]
    (change,) = leaderships(
        tmp_path / "late", state_change_9=[f"000 {CREATED}"], state_change_1=[f"000 {LEADS}"], server_1=lines
    )[0].isr_changes
    assert (change.time_ms % 60_000, change.line) == (30_000, 1)
    again = sent(0, 1, "1", "1,2").replace("partitionEpoch=0", "partitionEpoch=1")
    (change,) = leaderships(
        tmp_path / "again",
        state_change_9=[f"000 {CREATED}", f"030 {again}"],
        state_change_1=[f"000 {LEADS}"],
        server_1=[f"010 {SHRINKS}"],
    )[0].isr_changes
    assert change.time_ms % 60_000 == 10_000


@pytest.mark.parametrize(
    "granted",
    [
        "LeaderAndIsr(leader=1, leaderEpoch=0, isr=List(1), leaderRecoveryState=RECOVERED, partitionEpoch=1).",
        "[1] and zkVersion updated to [1]",  # to 3.2
    ],
)
def test_a_change_was_made_when_the_controller_says_so(granted: str, tmp_path: Path) -> None:
    """The leader ended before it had the answer."""
    grants = (
        f"[Controller id=9] ISR for partition t-0 updated to {granted} (kafka.controller.KafkaController)"
    )
    found = leaderships(
        tmp_path,
        state_change_9=[f"000 {CREATED}", f"040 {elected(1, 2, '2', 'OfflinePartition')}"],
        controller_9=[f"030 {grants}"],
        state_change_1=[f"000 {LEADS}"],
        server_1=[f"010 {SHRINKS}"],
    )
    (change,) = found[0].isr_changes
    assert (change.time_ms % 60_000, change.isr, change.version) == (30_000, (1,), 1)


def test_lines_of_two_brokers_that_are_out_of_order_make_one_time_of_one_election(tmp_path: Path) -> None:
    """The leader of epoch 1 printed it later than the controller decided epoch 2."""
    begins = LEADS.replace("epoch 0 ", "epoch 1 ").replace("-1. (", "0. (")
    found = leaderships(
        tmp_path,
        state_change_9=[f"000 {CREATED}", f"020 {elected(2, 2, '2')}"],
        state_change_1=[f"021 {begins}"],
    )
    assert [one.leader_epoch for one in found] == [0, 1, 2]
    assert [one.from_ms % 60_000 for one in found] == [0, 20_000, 20_000]
    assert [one.to_ms for one in found[:-1]] == [one.from_ms for one in found[1:]]


def test_one_that_it_changed_decides_where_nothing_was_written_after_it(tmp_path: Path) -> None:
    lines = [f"010 {SHRINKS}", f"010 {MADE}"]
    for version, how in ((2, "unclean"), (3, "failure")):
        recovered = elected(1, 2, "2", "OfflinePartition").replace(
            "partitionEpoch=1", f"partitionEpoch={version}"
        )
        found = leaderships(
            tmp_path / how,
            state_change_9=[
                f"000 {CREATED}",
                f"020 {recovered.replace('leaderRecoveryState=RECOVERED, ', '')}",
            ],
            state_change_1=[f"000 {LEADS}"],
            server_1=lines,
        )
        assert told(found)[1] == (1, 2, how)


def test_what_a_new_controller_says_of_all_partitions_it_did_not_decide(tmp_path: Path) -> None:
    """It takes replicas out of ISRs that they have left before."""
    became = "[Controller id=8] 8 successfully elected as the controller. Epoch incremented to 2 and epoch zk version is now 2 "
    found = leaderships(
        tmp_path,
        state_change_9=[f"000 {CREATED}", f"010 {offline(1, 1, '1', 2)}"],
        controller_8=[f"100 {became}(kafka.controller.KafkaController)"],
        state_change_8=[f"101 {offline(1, 1, '1', 2, controller=8)}"],
    )
    assert [(one.controller_epoch, len(one.proofs)) for one in found] == [(1, 1), (1, 1)]
    (tmp_path / "broker-9" / "logs" / "state-change.log").unlink()
    found = timeline(read_events([str(tmp_path)])).of(TP)
    assert [(one.controller_epoch, one.began_before) for one in found] == [(None, True)]


def test_a_new_leader_says_that_nobody_led_before(tmp_path: Path) -> None:
    starts = (
        "[Broker id=2] Leader t-0 with topic id Some(B57WEb3hTLWViMpfhRvCYA) starts at leader epoch {0} from offset 10 with "
        "partition epoch {0}, high watermark 10, ISR [2], adding replicas [] and removing replicas []. Previous leader "
        "{1} and previous leader epoch was {2}. (state.change.logger)"
    )
    found = leaderships(
        tmp_path,
        state_change_2=[f"000 {starts.format(0, 'None', -1)}", f"030 {starts.format(2, 'Some(-1)', 1)}"],
    )
    assert told(found) == [(0, 2, "creation"), (1, -1, "none"), (2, 2, "failure")]
    assert [one.topic_id for one in found] == ["B57WEb3hTLWViMpfhRvCYA"] * 3


def test_where_only_nearness_in_time_speaks_the_row_and_the_sentence_say_so(tmp_path: Path) -> None:
    follows = (
        "[Broker id=3] Follower t-0 starts at leader epoch {0} from offset 10 with partition epoch {0} and high watermark 10. "
        "Current leader is {1}. Previous leader Some({1}) and previous leader epoch was {0}. (state.change.logger)"
    )
    lines = [
        "[Controller id=9] Shutting down broker 1 (kafka.controller.KafkaController)",
        "[Controller id=9] Broker failure callback for 1 (kafka.controller.KafkaController)",
    ]
    found = leaderships(
        tmp_path,
        controller_9=[f"010 {line}" for line in lines],
        state_change_3=[f"000 {follows.format(0, 1)}", f"010 {follows.format(1, 2)}"],
    )
    assert (found[1].how, found[1].strength) == ("failure", "likely")
    assert _why(found[1].row()) == "probably failure: broker 1 failed"
    found = leaderships(tmp_path, controller_9=[f"010 {lines[0]}"])
    assert (found[1].how, found[1].strength) == ("controlled_shutdown", "sure")
    assert _why(found[1].row()) == "broker 1 shut down"


def test_epochs_in_which_a_controller_took_one_replica_after_the_other_out_of_the_isr_are_known(
    tmp_path: Path,
) -> None:
    """From 1.1 to 2.5 no line tells of such a state; its replicas are told with TRACE."""
    went = (
        "[Controller id=9 epoch=1] Changed state of replica {} for partition t-0 from OnlineReplica to OfflineReplica "
        "(state.change.logger)"
    )
    nobody = sent(2, -1, "3", "1,2,3").replace("to broker -1", "to broker 2")
    found = leaderships(
        tmp_path,
        state_change_9=[
            f"000 {elected(0, 1, '1,3', 'NewPartition')}",
            f"010 {went.format(1)}",
            f"010 {went.format(3)}",
            f"010 {nobody}",
        ],
    )
    assert [(one.leader_epoch, one.leader, one.isr, one.how) for one in found] == [
        (0, 1, (1, 3), "creation"),
        (1, -1, (3,), "none"),
        (2, -1, (3,), "none"),
    ]


def test_epochs_in_which_all_brokers_of_a_kraft_cluster_shut_down_follow_from_their_order(
    tmp_path: Path,
) -> None:
    """The active controller stops as well, so that nobody tells of the states (nemesis 4.1, seed 311)."""
    asked = "[QuorumController id=9] enterControlledShutdown[{}]: changing 7 partition(s) (org.apache.kafka.controller.ReplicationControlManager)"
    created = (
        "[QuorumController id=9] Replayed PartitionRecord for new partition t-0 with topic ID B57WEb3hTLWViMpfhRvCYA and "
        "PartitionRegistration(replicas=[1, 3, 2], directories=[], isr=[3, 1, 2], removingReplicas=[], addingReplicas=[], "
        "elr=[], lastKnownElr=[], leader=3, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0). "
        "(org.apache.kafka.controller.ReplicationControlManager)"
    )
    follows = (
        "[Broker id=2] Follower t-0 starts at leader epoch 3 from offset 10 with partition epoch 3 and high watermark 10. "
        "Current leader is -1. Previous leader Some(-1) and previous leader epoch was 3. (state.change.logger)"
    )
    lines = [f"000 {created}", *(f"02{n} {asked.format(broker)}" for n, broker in enumerate((3, 1, 2)))]
    found = leaderships(tmp_path, controller_9=lines, state_change_2=[f"030 {follows}"])
    assert [(one.leader_epoch, one.leader, one.isr, one.how) for one in found] == [
        (0, 3, (3, 1, 2), "creation"),
        (1, 1, (1, 2), "controlled_shutdown"),
        (2, 2, (2,), "controlled_shutdown"),
        (3, -1, None, "none"),
    ]
    assert [one.to_ms for one in found[:-1]] == [one.from_ms for one in found[1:]]
    found = leaderships(tmp_path, controller_9=lines[:3])
    assert [one.leader for one in found] == [3, None, None, -1]


def test_a_topic_that_is_made_anew_has_one_life_whoever_tells_of_it(tmp_path: Path) -> None:
    """Its epochs begin again once: by the controller's word, not again by that of each leader (nemesis 2.8, seed 601)."""
    leads = (
        "[Broker id=2] Leader t-0 starts at leader epoch {} from offset 0 with high watermark 0 ISR [2] addingReplicas [] "
        "removingReplicas []. Previous leader epoch was -1. (state.change.logger)"
    )
    made = (
        "[Controller id=9 epoch=1] Changed partition t-0 state from NonExistentPartition to NewPartition with assigned "
        "replicas 2,3 (state.change.logger)"
    )
    found = leaderships(
        tmp_path,
        state_change_9=[
            f"000 {elected(0, 2, '2,3', 'NewPartition')}",
            f"010 {elected(5, 2, '2', 'OfflinePartition')}",
            f"100 {made}",
            f"100 {elected(0, 2, '2,3', 'NewPartition')}",
            f"110 {offline(1, 2, '2', 3)}",
        ],
        state_change_2=[f"010 {leads.format(5)}", f"101 {leads.format(0)}", f"111 {leads.format(1)}"],
    )
    assert [(one.incarnation, one.leader_epoch) for one in found if one.leader is not None] == [
        (1, 0),
        (1, 5),
        (2, 0),
        (2, 1),
    ]


def test_what_controllers_replay_of_a_deleted_topic_is_no_topic_of_its_own(tmp_path: Path) -> None:
    """Each controller that starts reads the whole metadata log again (nemesis 3.9, seed 31)."""
    ids = "YTCmqiReTwuLdwDAoCKueg", "pe7pA65xT1iUays-5WbGGg"
    created = (
        "[QuorumController id={node}] Replayed PartitionRecord for new partition t-0 with topic ID {id} and "
        "PartitionRegistration(replicas=[1, 2], directories=[], isr=[1, 2], removingReplicas=[], addingReplicas=[], "
        "elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0). "
        "(org.apache.kafka.controller.ReplicationControlManager)"
    )
    unclean = (
        "[QuorumController id={node}] UNCLEAN partition change for t-0 with topic ID {id}: isr: [1] -> [2], leader: 1 -> 2, "
        "leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 0 -> 1, partitionEpoch: 0 -> 1 "
        "(org.apache.kafka.metadata.PartitionRegistration)"
    )
    first, second = (
        [
            created.format(node=node, id=ids[0]),
            unclean.format(node=node, id=ids[0]),
            created.format(node=node, id=ids[1]),
        ]
        for node in (8, 9)
    )
    found = leaderships(
        tmp_path,
        controller_8=[f"{at} {line}" for at, line in zip(("001", "010", "020"), first, strict=True)],
        controller_9=[f"{at} {line}" for at, line in zip(("230", "230", "231"), second, strict=True)],
    )
    assert [(one.incarnation, one.topic_id, one.leader_epoch, one.how) for one in found] == [
        (1, ids[0], 0, "creation"),
        (1, ids[0], 1, "unclean"),
        (2, ids[1], 0, "creation"),
    ]
    assert [one.from_ms % 60_000 for one in found] == [1_000, 10_000, 20_000]


def test_who_hears_of_a_new_topic_before_its_controller_says_it_has_a_clock_behind(tmp_path: Path) -> None:
    """Clocks are put right to some hundred milliseconds (nemesis 2.8, seed 35)."""
    made = (
        "[Controller id=9 epoch=1] Changed partition t-0 state from NonExistentPartition to NewPartition with assigned "
        "replicas 1,2 (state.change.logger)"
    )
    found = leaderships(
        tmp_path, state_change_9=[f"001 {made}", f"001 {CREATED}"], state_change_1=[f"000 {LEADS}"]
    )
    assert [(one.incarnation, one.leader_epoch, one.how) for one in found] == [(1, 0, "creation")]


def test_copies_name_the_id_of_a_topic_that_was_made_once(tmp_path: Path) -> None:
    leaderships(tmp_path, state_change_9=[f"000 {CREATED}"])
    for broker in (1, 2):
        folder = tmp_path / f"broker-{broker}" / "data" / "t-0"
        folder.mkdir(parents=True)
        (folder / "00000000000000000000.log").write_bytes(b"")
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: B57WEb3hTLWViMpfhRvCYA")
    (row,) = (row for row in rows("state-log", "timeline", tmp_path).rows if row["kind"] == "leader")
    assert row["topic_id"] == "B57WEb3hTLWViMpfhRvCYA"
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: dUQTvzUQQFOnlSYPbrUgpw")
    (row,) = (row for row in rows("state-log", "timeline", tmp_path).rows if row["kind"] == "leader")
    assert row["topic_id"] is None


def test_what_only_the_next_controller_tells_of_began_before(tmp_path: Path) -> None:
    """The controller stopped when it had written the state and told nobody: a broker leads in it seconds later."""
    state = sent(1, 1, "1", "1,2").replace("[Controller id=9 epoch=1]", "[Controller id=9 epoch=2]")
    leads = "[Broker id=1] Leader t-0 starts at leader epoch 1 from offset 8 with high watermark 5 ISR [1] "
    leads += "addingReplicas [] removingReplicas []. Previous leader epoch was 0. (state.change.logger)"
    found = leaderships(
        tmp_path, state_change_9=[f"000 {CREATED}", f"050 {state}"], state_change_1=[f"051 {leads}"]
    )
    assert [(one.leader_epoch, one.began_before) for one in found] == [(0, False), (1, True)]
    found = leaderships(tmp_path, state_change_9=[f"000 {CREATED}", f"050 {sent(1, 1, '1', '1,2')}"])
    assert [(one.leader_epoch, one.began_before) for one in found] == [(0, False), (1, False)]


def test_a_change_of_the_isr_that_is_refused_in_the_next_epoch_was_none(tmp_path: Path) -> None:
    """The controller took the replica out while the leader tried to: the leader hears that before it is refused."""
    shrinks = "[Partition t-0 broker=1] Shrinking ISR from 1,2 to 1 (kafka.cluster.Partition)"
    refused = "[Partition t-0 broker=1] Cached zkVersion [0] not equal to that in zookeeper, skip updating ISR (kafka.cluster.Partition)"
    taken_out = offline(1, 1, "1", 2, controller=1)
    found = leaderships(
        tmp_path, server_1=[f"000 {CREATED}", *(f"010 {line}" for line in (shrinks, taken_out, refused))]
    )
    assert [(one.leader_epoch, len(one.isr_changes)) for one in found] == [(0, 0), (1, 0)]


def test_a_topic_that_is_deleted_has_no_leader_though_no_broker_failed(tmp_path: Path) -> None:
    deleted = (
        "[Topic Deletion Manager 9] Deletion of topic {} (re)started (kafka.controller.TopicDeletionManager)"
    )

    def causes(folder: Path, topic: str) -> list[str]:
        lines = [
            f"000 {elected(0, 1, '1,2', 'NewPartition')}",
            f"030 {deleted.format(topic)}",
            f"030 {offline(1, -1, '2', 1)}",
            f"030 {offline(2, -1, '2', 2)}",
        ]
        found = leaderships(folder, controller_9=lines)
        assert told(found)[1:] == [(1, -1, "none"), (2, -1, "none")]
        return [one.cause for one in found[1:]]

    assert causes(tmp_path / "deleted", "t") == ["the topic was being deleted"] * 2
    assert causes(tmp_path / "other", "u")[0] == "broker 1 failed and no other replica was in the ISR"


@pytest.mark.parametrize(("topic", "cause"), [("t", "the topic was being deleted"), ("u", "")])
def test_a_topic_that_is_deleted_is_not_moved(tmp_path: Path, topic: str, cause: str) -> None:
    """A replica that a reassignment takes away goes offline too; the new state of 0.9 does not say who the replicas are."""
    lines = [
        f"000 {elected(0, 1, '1,2', 'NewPartition')}",
        f"030 [delete-topics-thread-9], Deletion of topic {topic} (re)started (kafka.controller.TopicDeletionManager$DeleteTopicsThread)",
        '031 [Controller 9]: New leader and ISR for partition [t,0] is {"leader":1,"leader_epoch":1,"isr":[1]} (kafka.controller.KafkaController)',
    ]
    last = leaderships(tmp_path, controller_9=lines)[-1]
    assert (last.leader_epoch, last.how, last.cause, last.strength == "sure") == (
        1,
        "isr_change",
        cause,
        bool(cause),
    )
    lines[2] = lines[2].replace('"isr":[1]', '"isr":[1,2]')
    last = leaderships(tmp_path / "same", controller_9=lines)[-1]
    assert last.how == "unknown", "no replica left the ISR"


def leads_in_kraft(broker: int, epoch: int, isr: str) -> str:
    return (
        f"[Broker id={broker}] Leader t-0 with topic id Some(B57WEb3hTLWViMpfhRvCYA) starts at leader epoch {epoch} from "
        f"offset 0 with partition epoch {epoch}, high watermark 0, ISR [{isr}], adding replicas [] and removing replicas "
        f"[] . Previous leader {'Some(1)' if epoch else 'None'} and previous leader epoch was {epoch - 1}. "
        "(state.change.logger)"
    )


FENCES = (
    "[QuorumController id=2] Fencing broker {} at epoch 135 because its session has timed out. "
    "(org.apache.kafka.controller.ReplicationControlManager)"
)


def test_a_kraft_controller_that_fences_a_leader_elects_the_next_one_by_it(tmp_path: Path) -> None:
    """Brokers heard of it seven seconds later (4.3, seed 912)."""
    for fenced, second in ((1, 10), (3, 20)):
        first, then = leaderships(
            tmp_path / str(fenced),
            state_change_1=[f"000 {leads_in_kraft(1, 0, '1,2')}"],
            controller_2=[f"010 {FENCES.format(fenced)}"],
            state_change_2=[f"020 {leads_in_kraft(2, 1, '2')}"],
        )
        assert (then.from_ms % 60_000, first.to_ms) == (second * 1000, then.from_ms)


def test_a_kraft_controller_that_lets_a_leader_shut_down_elects_the_next_one_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers heard of it five seconds later (4.1, seed 985)."""
    changes = (
        "[QuorumController id=2] enterControlledShutdown[1]: changing 12 partition(s) "
        "(org.apache.kafka.controller.ReplicationControlManager)"
    )
    monkeypatch.setattr(transitions, "SLACK", 1_500)  # lines of this test are a second apart
    for announced in ([], [f"011 {SHRINKS}"]):
        first, then = leaderships(
            tmp_path / str(len(announced)),
            state_change_1=[f"000 {leads_in_kraft(1, 0, '1,2')}"],
            server_1=announced,
            controller_2=[f"010 {changes}"],
            state_change_2=[f"020 {leads_in_kraft(2, 1, '2')}"],
        )
        assert (then.how, then.from_ms % 60_000, first.to_ms) == ("controlled_shutdown", 10_000, then.from_ms)


def test_an_isr_that_was_announced_without_an_answer_is_made_when_others_tell_of_it(tmp_path: Path) -> None:
    """The controllers were cut off, and broker 1 was killed before they answered (4.3, seed 904; 4.1, seed 923)."""
    tells = (
        "[Broker id=3] Skipped the become-follower state change for t-0 with topic id Some(B57WEb3hTLWViMpfhRvCYA), "
        "partition registration PartitionRegistration(replicas=[1, 2, 3], directories=[], isr=[1], removingReplicas=[], "
        "addingReplicas=[], elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, "
        "partitionEpoch=2) and isNew=false since it is already a follower with leader epoch 0. (state.change.logger)"
    )
    for fenced, second in ((3, 40), (2, 30)):
        (change,) = leaderships(
            tmp_path / str(fenced),
            state_change_1=[f"000 {leads_in_kraft(1, 0, '1,2')}"],
            server_1=[f"010 {SHRINKS}"],
            controller_2=[f"030 {FENCES.format(fenced)}"],
            state_change_3=[f"040 {tells}"],
        )[0].isr_changes
        assert (change.time_ms % 60_000, change.isr, change.line) == (second * 1000, (1,), 1)
        assert change.file == "broker-3/logs/state-change.log"


def test_what_a_leader_hears_of_at_once_was_written_when_a_broker_was_fenced(tmp_path: Path) -> None:
    """No majority of controllers answered for twelve seconds (4.3, seed 932)."""
    hears = (
        "[Broker id=1] Skipped the become-leader state change for t-0 with topic id Some(B57WEb3hTLWViMpfhRvCYA), "
        "partition registration PartitionRegistration(replicas=[1, 2, 3], directories=[], isr=[{}], removingReplicas=[], "
        "addingReplicas=[], elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, "
        "partitionEpoch={}) and isNew=false since it is already the leader with leader epoch 0. Current high watermark 0, "
        "ISR [1], adding replicas [] and removing replicas []. (state.change.logger)"
    )
    changes = leaderships(
        tmp_path,
        state_change_1=[
            f"000 {leads_in_kraft(1, 0, '1')}",
            f"040 {hears.format('1, 2', 1)}",
            f"040 {hears.format('1', 2)}",
        ],
        controller_2=[f"030 {FENCES.format(2)}"],
    )[0].isr_changes
    assert [(change.time_ms % 60_000, change.isr) for change in changes] == [(30_000, (1, 2)), (30_000, (1,))]


def test_a_change_belongs_to_the_epoch_whose_isr_it_changed(tmp_path: Path) -> None:
    """A follower whose clock is behind tells of the next epoch before the leader prints its changes of this one."""

    def received(broker: int, epoch: int, isr: str) -> str:
        return (
            f"Broker {broker} received LeaderAndIsr request PartitionState(controllerEpoch=2, leader=2, leaderEpoch={epoch}, "
            f"isr={isr}, zkVersion={epoch * 3}, replicas=1,2,3) correlation id 3 from controller 2 epoch 2 for partition "
            "[t,0] (state.change.logger)"
        )

    def expands(before: str, after: str) -> str:
        return (
            f"Partition [t,0] on broker 2: Expanding ISR from {before} to {after} (kafka.cluster.Partition)"
        )

    found = leaderships(
        tmp_path,
        state_change_1=[f"020 {received(1, 6, '2')}", f"030 {received(1, 7, '2,1,3')}"],
        state_change_2=[f"021 {received(2, 6, '2')}", f"033 {received(2, 7, '2,1,3')}"],
        server_2=[
            f"031 {expands('2', '2,1')}",
            f"032 {expands('2,1', '2,1,3')}",
            f"040 {expands('2,1,3', '2,1,3,4')}",
        ],
    )
    isrs = [(one.leader_epoch, one.isr, [change.isr for change in one.isr_changes]) for one in found]
    assert isrs == [(6, (2,), [(2, 1), (2, 1, 3)]), (7, (2, 1, 3), [(2, 1, 3, 4)])]


def test_an_election_that_was_not_needed_begins_no_epoch(tmp_path: Path) -> None:
    """Controllers until 1.0 say of a preferred leader that leads already that its partition changed."""

    def decided(epoch: int, isr: str) -> str:
        state = f'{{"leader":1,"leader_epoch":{epoch},"isr":[{isr}]}}'
        return f"[Controller 9]: New leader and ISR for partition [t,0] is {state} (kafka.controller.KafkaController)"

    changed = (
        "Controller 9 epoch 2 changed partition [t,0] from OnlinePartition to OnlinePartition with leader 1"
    )
    found = leaderships(
        tmp_path,
        server_9=[
            f"000 {decided(3, '1,2,3')}",
            f"020 {changed} (state.change.logger)",
            f"040 {decided(4, '1,2')}",
        ],
    )
    assert [(one.leader_epoch, one.from_ms // 1000 % 60) for one in found] == [(3, 0), (4, 40)]


def test_a_request_that_came_late_states_no_new_isr(tmp_path: Path) -> None:
    """Each change is in the leader's own log; brokers and controllers tell of them later, and out of order."""

    def received(isr: str, version: int) -> str:
        return (
            f"Broker 2 received LeaderAndIsr request PartitionState(controllerEpoch=1, leader=2, leaderEpoch=0, isr={isr}, "
            f"zkVersion={version}, replicas=2,1,3) correlation id 1 from controller 2 epoch 2 for partition [t,0] "
            "(state.change.logger)"
        )

    def changes(how: str, before: str, after: str) -> str:
        return f"Partition [t,0] on broker 2: {how} ISR from {before} to {after} (kafka.cluster.Partition)"

    sent = (
        "Controller 2 epoch 2 sending become-follower LeaderAndIsr request (Leader:2,ISR:2,LeaderEpoch:0,ControllerEpoch:1) "
        "to broker 1 for partition [t,0] (state.change.logger)"
    )
    (only,) = leaderships(
        tmp_path,
        state_change_2=[f"000 {received('2,1,3', 0)}", f"030 {received('2,3', 1)}", f"041 {sent}"],
        server_2=[
            f"010 {changes('Shrinking', '2,1,3', '2,3')}",
            f"020 {changes('Shrinking', '2,3', '2')}",
            f"040 {changes('Expanding', '2', '2,1')}",
            f"050 {changes('Shrinking', '2,1', '2')}",
        ],
    )
    assert [(one.isr, one.time_ms // 1000 % 60) for one in only.isr_changes] == [
        ((2, 3), 10),
        ((2,), 20),
        ((2, 1), 40),
        ((2,), 50),
    ]


def test_a_fencing_that_was_not_written_dates_nothing(tmp_path: Path) -> None:
    """A controller that was paused fences a broker, and learns that it leads no more (4.3, seed 953)."""
    failed = (
        "[QuorumController id=2] maybeFenceStaleBroker: event failed with NotLeaderException (treated as "
        "NotControllerException) at epoch 2 in 166979 microseconds. Renouncing leadership and reverting to the last "
        "committed offset 136. Exception message: none. (org.apache.kafka.controller.QuorumController)"
    )
    until_3_5 = (
        "[Controller 2] maybeFenceReplicas: failed with unknown server exception NotLeaderException at epoch 2 in 166979 us.  "
        "Renouncing leadership and reverting to the last committed offset 136. (org.apache.kafka.controller.QuorumController)"
    )
    for name, line in (("now", failed), ("before", until_3_5)):
        _, then = leaderships(
            tmp_path / name,
            state_change_1=[f"000 {leads_in_kraft(1, 0, '1,2')}"],
            controller_2=[f"010 {FENCES.format(1)}", f"010 {line}"],
            state_change_2=[f"020 {leads_in_kraft(2, 1, '2')}"],
        )
        assert then.from_ms % 60_000 == 20_000, name
        assert "fenced" not in [told.state for told in timeline(read_events([str(tmp_path / name)])).brokers]


def test_a_fencing_that_another_controller_wrote_in_the_same_moment_stays(tmp_path: Path) -> None:
    failed = (
        "[QuorumController id=2] maybeFenceStaleBroker: event failed with NotLeaderException (treated as "
        "NotControllerException) at epoch 2 in 1166979 microseconds. Renouncing leadership and reverting to the last "
        "committed offset 136. Exception message: none. (org.apache.kafka.controller.QuorumController)"
    )
    _, then = leaderships(
        tmp_path,
        state_change_1=[f"000 {leads_in_kraft(1, 0, '1,2')}"],
        controller_2=[f"010 {FENCES.format(1)}", f"011 {failed}"],
        controller_3=[f"010 {FENCES.format(1).replace('id=2', 'id=3')}"],
        state_change_2=[f"020 {leads_in_kraft(2, 1, '2')}"],
    )
    assert then.from_ms % 60_000 == 10_000
    fenced = [told for told in timeline(read_events([str(tmp_path)])).brokers if told.state == "fenced"]
    assert [str(told.proofs[0]["file"]).split("/")[-3] for told in fenced] == ["broker-3"]


def test_a_leader_that_is_selected_leads_once_it_is_written(tmp_path: Path) -> None:
    """Until 1.0: the controller was cut off from ZooKeeper in between. An election that was not needed is no such line."""
    selected = (
        '[OfflinePartitionLeaderSelector]: Selected new leader and ISR {"leader":1,"leader_epoch":7,"isr":[1]} for offline '
        "partition [t,0] (kafka.controller.OfflinePartitionLeaderSelector)"
    )
    changed = "Controller 9 epoch 2 changed partition [t,0] from {} to OnlinePartition with leader 1 (state.change.logger)"
    for state, second in (("OfflinePartition", 40), ("OnlinePartition", 10)):
        (only,) = leaderships(
            tmp_path / state,
            controller_9=[f"010 {selected}"],
            state_change_9=[f"040 {changed.format(state)}"],
        )
        assert (only.leader_epoch, only.from_ms % 60_000) == (7, second * 1000), state


def test_bounds_of_what_lines_out_of_order_explain(tmp_path: Path) -> None:
    """A rolled file lacks the change before; a controller states an ISR long after a change that was never written."""

    def decided(epoch: int, isr: str) -> str:
        state = f'{{"leader":1,"leader_epoch":{epoch},"isr":[{isr}]}}'
        return f"[Controller 9]: New leader and ISR for partition [t,0] is {state} (kafka.controller.KafkaController)"

    def shrinks(before: str, after: str) -> str:
        return (
            f"Partition [t,0] on broker 1: Shrinking ISR from {before} to {after} (kafka.cluster.Partition)"
        )

    sent = (
        "Controller 9 epoch 3 sending become-follower LeaderAndIsr request (Leader:1,ISR:1,2,3,LeaderEpoch:3,ControllerEpoch:1) "
        "to broker 2 for partition [t,0] (state.change.logger)"
    )
    found = leaderships(
        tmp_path / "rolled",
        server_9=[f"000 {decided(3, '1,2,3')}", f"010 {decided(4, '1,2')}"],
        server_1=[f"400 {shrinks('1,2,3', '1,3')}"],
    )
    assert [len(one.isr_changes) for one in found] == [0, 1]
    for minute, isrs in ((0, [(1, 3)]), (2, [(1, 3), (1, 2, 3)])):
        (only,) = leaderships(
            tmp_path / str(minute),
            server_9=[f"000 {decided(3, '1,2,3')}"],
            server_1=[f"010 {shrinks('1,2,3', '1,3')}"],
            state_change_9=[f"{minute}20 {sent}"],
        )
        assert [one.isr for one in only.isr_changes] == isrs, minute
