"""Until 1.0 a partition without a leader has an empty ISR, so that whoever comes back is elected with a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.broker_logs.history.timeline import Timeline, timeline
from kctl.broker_logs.merging import read_events
from kctl.model import TopicPartition

TP = TopicPartition("two", 0)
SENT = (
    "[2026-11-21 22:56:{at}] TRACE Controller 3 epoch 1 sending become-leader LeaderAndIsr request "
    "(Leader:{leader},ISR:{isr},LeaderEpoch:{epoch},ControllerEpoch:1) to broker 1 for partition [two,0] (state.change.logger)\n"
)
CHOSEN = (
    '[2026-11-21 22:56:42,859] INFO [OfflinePartitionLeaderSelector]: Selected new leader and ISR {{"leader":{0},'
    '"leader_epoch":3,"isr":[{0}]}} for offline partition [two,0] (kafka.controller.OfflinePartitionLeaderSelector)\n'
    "[2026-11-21 22:56:42,859] WARN [OfflinePartitionLeaderSelector]: No broker in ISR is alive for [two,0]. Elect leader "
    "{0} from live brokers {0}. There's potential data loss. (kafka.controller.OfflinePartitionLeaderSelector)\n"
)
STARTED = "[2026-11-21 22:56:20,000] INFO [Kafka Server 1], started (kafka.server.KafkaServer)\n"


def elected(leader: int, folder: Path, *, server: str = STARTED) -> Timeline:
    """What is said where a broker leads in epoch 3 after broker 1, alone in the ISR, was lost in epoch 2."""
    states = [
        ("29,415", 1, "1,2", 0),
        ("38,060", 1, "1", 1),
        ("41,069", -1, "", 2),
        ("42,866", leader, leader, 3),
    ]
    logs = {
        "broker-3/state-change.log": "".join(
            SENT.format(at=at, leader=who, isr=isr, epoch=epoch) for at, who, isr, epoch in states
        ),
        "broker-3/controller.log": CHOSEN.format(leader),
        "broker-1/server.log": server,
    }
    for name, text in logs.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return timeline(read_events([str(folder)]))


def test_the_last_of_the_isr_that_comes_back_is_no_unclean_leader(tmp_path: Path) -> None:
    found = elected(1, tmp_path)
    assert [(one.how, one.leader) for one in found.of(TP)][2:] == [("none", -1), ("failure", 1)]
    assert found.of(TP)[3].cause == "broker 1 was back"
    assert not [f for f in found.findings() if f.code == "unclean-leader-election"]


def test_the_warning_about_it_is_told(tmp_path: Path) -> None:
    found = elected(1, tmp_path)
    told = [f for f in found.findings() if f.code == "last-of-isr-elected"]
    assert [(f.severity, f.place.file, f.place.line) for f in told] == [
        ("info", "broker-3/controller.log", 2)
    ]
    assert "E14" in [proof["event"] for proof in found.of(TP)[3].proofs]


def test_another_broker_is_one(tmp_path: Path) -> None:
    found = elected(2, tmp_path)
    assert found.of(TP)[3].how == "unclean"
    (finding,) = (f for f in found.findings() if f.code == "unclean-leader-election")
    assert "was not in the ISR [1]" in finding.message
    assert not found.announced


@pytest.mark.parametrize("server", ["", STARTED.replace("22:56:20", "22:56:50")])
def test_without_the_log_of_the_last_leader_the_controller_is_believed(tmp_path: Path, server: str) -> None:
    found = elected(1, tmp_path, server=server)
    assert found.of(TP)[3].how == "unclean"
    (finding,) = (f for f in found.findings() if f.code == "unclean-leader-election")
    assert "was not in the ISR []" in finding.message


@pytest.mark.parametrize("leader", [1, 2])
def test_it_reads_the_same_with_the_logs_given_one_by_one(leader: int, tmp_path: Path) -> None:
    elected(leader, tmp_path)
    files = sorted(str(path) for path in tmp_path.glob("broker-*/*.log"))
    assert timeline(read_events(files)).of(TP)[3].how == ("failure" if leader == 1 else "unclean")
