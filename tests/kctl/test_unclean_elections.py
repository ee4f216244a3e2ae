"""Which elections the words of KRaft controllers and brokers call unclean, and which not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kctl.broker_logs.history.leaderships import Leadership
from kctl.broker_logs.history.timeline import Timeline, timeline
from kctl.broker_logs.merging import read_events
from kctl.judging.leadership import judge_leadership
from kctl.model import TopicPartition

TP = TopicPartition("t", 0)
ID = "B57WEb3hTLWViMpfhRvCYA"
CONTROLLER = "org.apache.kafka.controller.ReplicationControlManager"
CREATED = (
    f"[QuorumController id=1] Replayed PartitionRecord for new partition t-0 with topic ID {ID} and PartitionRegistration("
    "replicas=[1, 2], directories=[], isr=[1, 2], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[], "
    f"leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0). ({CONTROLLER})"
)


def changed(words: str, changes: str) -> str:
    return f"[QuorumController id=1] {words} for t-0 with topic ID {ID}: {changes} ({CONTROLLER})"


def starts(broker_id: int, epoch: int, isr: str) -> str:
    return (
        f"[Broker id={broker_id}] Leader t-0 with topic id Some({ID}) starts at leader epoch {epoch} from offset 10 with "
        f"partition epoch {epoch + 1}, high watermark 10, ISR [{isr}], adding replicas [] and removing replicas []. "
        "Previous leader None and previous leader epoch was -1. (state.change.logger)"
    )


def skipped(broker_id: int, epoch: int, isr: str) -> str:
    return (
        f"[Broker id={broker_id}] Skipped the become-leader state change for t-0 with topic id Some({ID}), partition "
        f"registration PartitionRegistration(replicas=[1, 2], directories=[], isr=[{isr}], removingReplicas=[], "
        f"addingReplicas=[], elr=[], lastKnownElr=[], leader={broker_id}, leaderRecoveryState=RECOVERED, "
        f"leaderEpoch={epoch}, partitionEpoch={epoch + 5}) and isNew=false since it is already the leader with leader "
        f"epoch {epoch}. Current high watermark 28, ISR [{isr.replace(' ', '')}], adding replicas [] and removing "
        "replicas []. (state.change.logger)"
    )


def leaderships(folder: Path, **logs: list[str]) -> list[Leadership]:
    return timeline_of(folder, **logs).of(TP)


def timeline_of(folder: Path, **logs: list[str]) -> Timeline:
    for name, lines in logs.items():
        path = folder / f"broker-{name[-1]}" / "logs" / f"{name[:-2].replace('_', '-')}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(f"[2026-11-21 13:00:{int(line[:2]):02d},000] INFO {line[3:]}\n" for line in lines)
        )
    return timeline(read_events([str(folder)]))


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        ("isr: [] -> [2], leader: -1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 1 -> 2, "
         "lastKnownElr: [1] -> [], partitionEpoch: 2 -> 3", "unclean"),
        ("isr: [] -> [2], leader: -1 -> 2, leaderEpoch: 1 -> 2, lastKnownElr: [1] -> [], partitionEpoch: 2 -> 3", "unclean"),
        ("isr: [] -> [2], leader: -1 -> 2, leaderEpoch: 1 -> 2, elr: [2] -> [], partitionEpoch: 2 -> 3", "failure"),
    ],
)  # fmt: skip
def test_the_controller_calls_an_election_unclean_unless_the_leader_was_eligible(
    tmp_path: Path, changes: str, how: str
) -> None:
    gone = changed(
        "UNCLEAN partition change",
        "isr: [2] -> [], leader: 2 -> -1, leaderEpoch: 0 -> 1, partitionEpoch: 1 -> 2",
    )
    found = leaderships(
        tmp_path,
        controller_1=[f"01 {CREATED}", f"10 {gone}", f"20 {changed('UNCLEAN partition change', changes)}"],
    )
    assert (found[-1].leader, found[-1].how) == (2, how)


def test_a_recovery_state_of_an_election_before_does_not_make_that_of_an_eligible_leader_unclean(
    tmp_path: Path,
) -> None:
    """A partition of one replica stays RECOVERING, as its ISR never changes while it has a leader."""
    gone = changed(
        "UNCLEAN partition change",
        "isr: [2] -> [], leader: 2 -> -1, leaderEpoch: 0 -> 1, elr: [] -> [2], partitionEpoch: 1 -> 2",
    )
    back = changed(
        "UNCLEAN partition change",
        "isr: [] -> [2], leader: -1 -> 2, leaderEpoch: 1 -> 2, elr: [2] -> [], partitionEpoch: 2 -> 3",
    )
    marked = (
        "[Broker id=2] The topic partition t-0 was marked as RECOVERING. Marking the topic partition as RECOVERED. "
        "(state.change.logger)"
    )
    found = leaderships(
        tmp_path, controller_2=[f"01 {CREATED}", f"10 {gone}", f"20 {back}"], state_change_2=[f"20 {marked}"]
    )
    assert [(one.leader_epoch, one.how) for one in found] == [(0, "creation"), (1, "none"), (2, "failure")]


def test_an_unclean_election_has_its_own_line_as_evidence_once(tmp_path: Path) -> None:
    """The mark that the leader before left in its recovery state is about the epoch before."""
    changes = [
        "isr: [] -> [2], leader: -1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 1 -> 2, "
        "lastKnownElr: [1] -> [], partitionEpoch: 2 -> 3",
        "isr: [2] -> [], leader: 2 -> -1, leaderEpoch: 2 -> 3, lastKnownElr: [] -> [2], partitionEpoch: 3 -> 4",
        "isr: [] -> [2], leader: -1 -> 2, leaderEpoch: 3 -> 4, lastKnownElr: [2] -> [], partitionEpoch: 4 -> 5",
    ]
    lines = [
        f"{at:02} {changed('UNCLEAN partition change', one)}"
        for at, one in zip((2, 41, 42), changes, strict=True)
    ]
    marked = "35 [Broker id=2] The topic partition t-0 was marked as RECOVERING. Marking the topic partition as RECOVERED. "
    found = leaderships(
        tmp_path, controller_2=[f"01 {CREATED}", *lines], state_change_2=[f"{marked}(state.change.logger)"]
    )
    told = {one.leader_epoch: [proof["event"] for proof in one.proofs] for one in found if one.is_unclean}
    assert told == {2: ["Q05"], 4: ["Q05"]}


def test_a_leader_says_that_it_is_recovering_right_before_the_epoch_in_which_it_leads(tmp_path: Path) -> None:
    """Brokers learn of several epochs at once: the mark is of the last of them, not of the next that logs tell of."""
    ids = "adding replicas [] and removing replicas [] "
    follower = (
        "[Broker id={id}] Follower t-0 starts at leader epoch {epoch} from offset 9 with partition epoch {epoch} and high watermark 9. "
        "Current leader is {leader}. Previous leader Some(2) and previous leader epoch was {before}. (state.change.logger)"
    )
    led = (
        "[Broker id=1] Leader t-0 with topic id Some(qy0Wy3w4RMOeEnYFRA-Ylg) starts at leader epoch 4 from offset 9 with partition epoch 5, high watermark 9, "
        f"ISR [1], {ids}. Previous leader Some(-1) and previous leader epoch was 3. (state.change.logger)"
    )
    marked = (
        "[Broker id=1] The topic partition t-0 was marked as RECOVERING. Marking the topic partition as RECOVERED. "
        "(state.change.logger)"
    )
    found = leaderships(
        tmp_path,
        state_change_1=[
            f"21 {follower.format(id=1, epoch=3, leader=-1, before=1)}",
            f"21 {marked}",
            f"21 {led}",
        ],
        state_change_3=[
            f"10 {follower.format(id=3, epoch=1, leader=2, before=0)}",
            f"20 {follower.format(id=3, epoch=2, leader=1, before=1)}",
        ],
    )
    assert [(one.leader_epoch, one.leader) for one in found if one.is_unclean] == [(4, 1)]


def decided(leader: int, epoch: int, isr: str, recovery: str) -> str:
    return (
        f"[Controller id=1 epoch=4] Changed partition t-0 from OfflinePartition to OnlinePartition with state LeaderAndIsr(leader={leader}, "
        f"leaderEpoch={epoch}, isrWithBrokerEpoch=List(BrokerState(brokerId={isr}, brokerEpoch=-1)), "
        f"leaderRecoveryState={recovery}, partitionEpoch={epoch}) (state.change.logger)"
    )


@pytest.mark.parametrize("later", [0, 1, None])
def test_a_leader_that_stays_while_a_reassignment_bumps_its_epoch_was_not_elected_again(
    tmp_path: Path, later: int | None
) -> None:
    """The recovery state stays until the ISR changes, and the broker, if its log is there, says it anew at once or a
    second later (nemesis 3.9, seed 49)."""
    bumped = (
        "[Controller id=1 epoch=4] Sent LeaderAndIsr request (Leader:2,ISR:2,LeaderRecoveryState:RECOVERING,LeaderEpoch:2,"
        "ZkVersion:2,ControllerEpoch:4) with new replica assignment ReplicaAssignment(replicas=3,2,1, addingReplicas=, "
        "removingReplicas=1) to leader 2 for partition being reassigned t-0 (state.change.logger)"
    )
    marked = (
        "[Broker id=2] The topic partition t-0 was marked as RECOVERING. Marking the topic partition as RECOVERED. "
        "(state.change.logger)"
    )
    found = leaderships(
        tmp_path,
        state_change_1=[
            f"10 {decided(1, 0, '1', 'RECOVERED')}",
            f"20 {decided(2, 1, '2', 'RECOVERING')}",
            f"25 {bumped}",
        ],
        **({} if later is None else {"state_change_2": [f"20 {marked}", f"{25 + later} {marked}"]}),
    )
    assert [(one.leader_epoch, one.leader, one.how == "unclean") for one in found] == [
        (0, 1, False),
        (1, 2, True),
        (2, 2, False),
    ]


def test_an_eligible_leader_from_outside_the_isr_is_clean(tmp_path: Path) -> None:
    """Where the controller elects an eligible leader replica it says nothing at INFO."""
    found = leaderships(
        tmp_path,
        server_1=["00 [BrokerServer id=1] Starting broker (kafka.server.BrokerServer)"],
        state_change_1=[f"01 {starts(1, 0, '1')}"],
        state_change_2=[f"20 {starts(2, 1, '2')}"],
    )
    assert [(one.leader, one.how == "unclean") for one in found] == [(1, False), (2, False)]


def test_a_growing_isr_is_seen_in_the_words_of_kafka_4(tmp_path: Path) -> None:
    found = leaderships(tmp_path, state_change_1=[f"01 {starts(1, 0, '1')}", f"05 {skipped(1, 0, '1, 2')}"])
    assert found[0].last_isr == (1, 2)


WARNED = (
    "[OfflinePartitionLeaderSelector]: No broker in ISR is alive for [t,0]. Elect leader 1 from live brokers 1. "
    "There's potential data loss. (kafka.controller.OfflinePartitionLeaderSelector)"
)


CHOSEN = (
    '[OfflinePartitionLeaderSelector]: Selected new leader and ISR {"leader":2,"leader_epoch":7,"isr":[2]} for offline '
    "partition [t,0] (kafka.controller.OfflinePartitionLeaderSelector)"
)


def sent(leader: int, isr: str, epoch: int) -> str:
    return (
        f"Controller 3 epoch 1 sending become-leader LeaderAndIsr request (Leader:{leader},ISR:{isr},LeaderEpoch:{epoch},"
        "ControllerEpoch:1) to broker 1 for partition [t,0] (state.change.logger)"
    )


def test_a_warning_of_one_epoch_says_nothing_of_the_next(tmp_path: Path) -> None:
    found = leaderships(
        tmp_path,
        state_change_3=[
            f"01 {sent(2, '2', 0)}",
            f"10 {sent(-1, '', 1)}",
            f"20 {sent(1, '1', 2)}",
            f"25 {sent(1, '1,2', 3)}",
        ],
        controller_3=[f"20 {WARNED}"],
    )
    assert [one.how for one in found][2:] == ["unclean", "isr_change"]


@pytest.mark.parametrize(
    "lines",
    [
        [WARNED],
        ["Controller starting up (kafka.controller.KafkaController)", WARNED],
        # Another leader than the one that was announced.
        [WARNED, CHOSEN],
    ],
)
def test_an_election_without_a_leadership_in_the_logs_is_a_finding(tmp_path: Path, lines: list[str]) -> None:
    found = timeline_of(tmp_path, controller_3=[f"20 {line}" for line in lines])
    (finding,) = (f for f in found.findings() if f.code == "unclean-leader-election")
    assert (finding.place.topic, finding.place.partition, finding.place.broker_id) == ("t", 0, 1)
    assert (finding.place.file, finding.place.line) == (
        "broker-3/logs/controller.log",
        lines.index(WARNED) + 1,
    )
    assert "in an epoch that these logs do not name" in finding.message


def test_every_announced_election_is_told_once(tmp_path: Path) -> None:
    """With and without a leadership, in two installations whose brokers have the same id."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    lines = [f"{at} {words}" for at in (10, 30, 50) for words in (WARNED, CHOSEN.replace('":2', '":1'))]
    leaderships(tmp_path / "one", controller_1=lines)
    leaderships(tmp_path / "two", controller_1=[f"40 {WARNED}"])
    found = timeline(read_events([str(tmp_path)]))
    told = [f for f in found.findings() if f.code == "unclean-leader-election"]
    assert len({(f.place.file, f.place.line) for f in told}) == 4


def test_an_epoch_that_no_line_tells_of_lies_between_those_that_do(tmp_path: Path) -> None:
    """So that what is asked for has both of its times."""
    change = changed(
        "partition change", "isr: [1, 2] -> [2], leader: 1 -> 2, leaderEpoch: 2 -> 3, partitionEpoch: 1 -> 2"
    )
    found = leaderships(tmp_path, controller_1=[f"01 {CREATED}", f"20 {change}"])
    missing = judge_leadership(TP, found).missing
    assert [one.leader_epoch for one in found] == [0, 1, 2, 3]
    assert [re.findall(r"13:00:\d\d", one.what) for one in missing[:2]] == [["13:00:01", "13:00:01"]] * 2


def test_an_election_of_the_last_known_leader_is_told_as_one(tmp_path: Path) -> None:
    """From 4.0 it is elected where nobody is in the ISR or eligible, even if unclean elections are off."""
    change = (
        "isr: [] -> [2], leader: -1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 1 -> 2, "
        "lastKnownElr: [2] -> [], partitionEpoch: 2 -> 3"
    )
    found = timeline_of(
        tmp_path, controller_1=[f"01 {CREATED}", f"20 {changed('UNCLEAN partition change', change)}"]
    )
    assert (
        found.of(TP)[-1].cause == "nobody was in the ISR or eligible, and broker 2 was the last known leader"
    )
    (finding,) = (f for f in found.findings() if f.code == "unclean-leader-election")
    assert "as the last known leader: nobody was in the ISR or eligible (line 2)" in finding.message
