"""What the metadata log of a KRaft cluster decides about leaders, above all words of logs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from formats.log.record_batch import Record, write_batch
from formats.messages.cluster_metadata import MetadataRecord, write_metadata_record
from kctl.broker_logs.history.decided import settle
from kctl.broker_logs.history.leaderships import LIKELY, Leadership
from kctl.evidence.discover import discover
from kctl.internal_topics.decisions import Decided, Decision, decided_in
from kctl.model import TopicPartition
from tests.conftest import kctl, recording, rows

TOPIC, OTHER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


def record(kind: str, **values: Any) -> MetadataRecord:
    """A record with its fields, absent ones as Kafka writes them."""
    version = {"P": 2, "B": 1}.get(kind[0], 0)
    return MetadataRecord(kind, version, {**DEFAULTS.get(kind, {}), **values})


DEFAULTS: dict[str, dict[str, Any]] = {
    "TOPIC_RECORD": {"name": "t", "topic_id": TOPIC},
    "REMOVE_TOPIC_RECORD": {"topic_id": TOPIC},
    "CLEAR_ELR_RECORD": {"topic_name": ""},
    "FEATURE_LEVEL_RECORD": {"name": "metadata.version", "feature_level": 27},
    "PARTITION_RECORD": {
        "partition_id": 0, "topic_id": TOPIC, "replicas": [1, 2, 3], "isr": [1, 2, 3], "removing_replicas": [],
        "adding_replicas": [], "leader": 1, "leader_recovery_state": 0, "leader_epoch": 0, "partition_epoch": 0,
        "directories": [], "eligible_leader_replicas": None, "last_known_elr": None,
    },
    "PARTITION_CHANGE_RECORD": {
        "partition_id": 0, "topic_id": TOPIC, "isr": None, "leader": -2, "replicas": None, "removing_replicas": None,
        "adding_replicas": None, "leader_recovery_state": -1, "directories": None,
        "eligible_leader_replicas": None, "last_known_elr": None,
    },
    "REGISTER_BROKER_RECORD": {
        "broker_id": 1, "is_migrating_zk_broker": False, "incarnation_id": OTHER, "broker_epoch": 1, "end_points": [],
        "features": [], "rack": None, "fenced": False, "in_controlled_shutdown": False, "log_dirs": [],
        "cordoned_log_dirs": None,
    },
    "BROKER_REGISTRATION_CHANGE_RECORD": {
        "broker_id": 1, "broker_epoch": 1, "fenced": 0, "in_controlled_shutdown": 0, "log_dirs": [],
        "cordoned_log_dirs": None,
    },
}  # fmt: skip
CREATED = (record("FEATURE_LEVEL_RECORD"), record("TOPIC_RECORD"), record("PARTITION_RECORD"))


def change(**values: Any) -> MetadataRecord:
    return record("PARTITION_CHANGE_RECORD", **values)


BEGAN = 1_767_225_600_000  # 2026-01-01


def write_log(folder: Path, records: list[MetadataRecord], *, leave_out: int | None = None) -> Path:
    """A log directory with a metadata log of one batch a record; `leave_out` is an offset that is not there."""
    log = folder / "broker-1" / "data" / "__cluster_metadata-0"
    log.mkdir(parents=True)
    (log.parent / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    batches = [
        write_batch([Record(offset, BEGAN + 1_000 * offset, None, write_metadata_record(one))])
        for offset, one in enumerate(records)
        if offset != leave_out
    ]
    (log / f"{0:020d}.log").write_bytes(b"".join(batches))
    return folder


def decisions(folder: Path) -> list[Decision]:
    found = decided_in(discover([str(folder)]), pytest.fail)
    assert found is not None
    return found.decisions


def last(folder: Path, *records: MetadataRecord) -> Decision:
    return decisions(write_log(folder, [*CREATED, *records]))[-1]


SHUTS_DOWN = (
    record("REGISTER_BROKER_RECORD"),
    record("BROKER_REGISTRATION_CHANGE_RECORD", in_controlled_shutdown=1),
)
GONE = change(leader=-1, isr=[], eligible_leader_replicas=[1, 2], last_known_elr=[1])


@pytest.mark.parametrize(
    ("records", "how"),
    [
        ([change(leader=2, isr=[2, 3])], "failure"),
        ([*SHUTS_DOWN, change(leader=2, isr=[2, 3])], "controlled_shutdown"),
        ([change(leader=2, isr=[2, 3]), change(isr=[2, 3, 1]), change(leader=1)], "preferred"),
        ([change(leader=1, isr=[1, 3])], "isr_change"),  # up to metadata version 3.5
        ([change(leader=-1, isr=[1])], "none"),
        ([change(leader=-1, isr=[1]), change(leader=1)], "failure"),
        ([change(isr=[1]), change(leader=2, isr=[2], leader_recovery_state=1)], "unclean"),
        # It was RECOVERING before, so that the record does not say so.
        (
            [change(isr=[1]), change(leader=2, isr=[2], leader_recovery_state=1), change(leader=3, isr=[3])],
            "unclean",
        ),
        # One that recovers comes back: it is in its own ISR.
        (
            [change(isr=[1]), change(leader=2, isr=[2], leader_recovery_state=1), change(leader=-1), change(leader=2)],
            "failure",
        ),
        # Eligible leader replicas (KIP-966), and what was one once.
        ([GONE, change(leader=2, isr=[2], eligible_leader_replicas=[1])], "failure"),
        ([GONE, change(eligible_leader_replicas=[1]), change(leader=2, isr=[2], leader_recovery_state=1)], "unclean"),
        ([GONE, record("CLEAR_ELR_RECORD"), change(leader=2, isr=[2], leader_recovery_state=1)], "unclean"),
        (
            [GONE, record("CLEAR_ELR_RECORD", topic_name="another"), change(leader=2, isr=[2])],
            "failure",
        ),
        # The last known leader, elected where nobody is eligible: it may lack records (KIP-966, balanced recovery).
        (
            [GONE, change(eligible_leader_replicas=[]), change(leader=1, isr=[1], leader_recovery_state=1)],
            "unclean",
        ),
        # A reassignment ends with the change that makes its last replica a member of the ISR.
        (
            [change(isr=[1]), change(leader=4, isr=[4], replicas=[4], removing_replicas=[], adding_replicas=[])],
            "reassignment",
        ),
    ],
)  # fmt: skip
def test_how_a_leadership_began(tmp_path: Path, records: list[MetadataRecord], how: str) -> None:
    assert last(tmp_path, *records).how == how


def test_before_3_2_an_unclean_election_sets_no_state(tmp_path: Path) -> None:
    old = record("FEATURE_LEVEL_RECORD", feature_level=2)
    assert last(tmp_path, old, change(isr=[1]), change(leader=2, isr=[2])).how == "unclean"


def test_a_topic_made_again_begins_anew(tmp_path: Path) -> None:
    again = record("TOPIC_RECORD", topic_id=OTHER), record("PARTITION_RECORD", topic_id=OTHER, leader=3)
    write_log(tmp_path, [*CREATED, change(leader=2, isr=[2, 3]), record("REMOVE_TOPIC_RECORD"), *again])
    leaders = rows("state-log", "timeline", tmp_path).of("leader")
    assert [(one["leader"], one["leader_epoch"], one["how"]) for one in leaders] == [
        (1, 0, "creation"), (2, 1, "failure"), (3, 0, "creation"),
    ]  # fmt: skip
    assert [one["to_time"][-6:] for one in leaders[:2]] == ["3.000Z", "4.000Z"]
    assert leaders[2]["to_time"] is None


def test_a_metadata_log_alone_is_enough(tmp_path: Path) -> None:
    write_log(tmp_path, [*CREATED, change(isr=[1]), change(leader=2, isr=[2], leader_recovery_state=1)])
    said = rows("state-log", "timeline", tmp_path)
    assert said.status == 5
    (unclean,) = said.of("finding")
    assert (unclean["code"], unclean["file"]) == (
        "unclean-leader-election",
        "broker-1/data/__cluster_metadata-0",
    )
    assert "(offset 4)" in unclean["message"]
    assert [one["verdict"] for one in said.of("judgement")] == ["damaged"]
    first, second = said.of("leader")
    assert [(change["isr"], change["offset"]) for change in first["isr_changes"]] == [([1], 3)]
    assert second["evidence"][0]["offset"] == 4


def test_a_record_that_is_not_there_is_told(tmp_path: Path) -> None:
    write_log(tmp_path, [*CREATED, change(isr=[1, 2]), change(leader=2, isr=[2])], leave_out=3)
    said = rows("state-log", "timeline", tmp_path)
    assert [one["code"] for one in said.of("finding")] == ["internal-log-unreadable"]
    assert "offsets 3 to 3" in said.of("finding")[0]["message"]
    assert said.status == 5


# By Kafka's own dump of the log: partition, epoch, leader, and whether the leader was in the ISR or the ELR before.
UNCLEAN = {("clicks", 0, 4), ("clicks", 0, 6), ("clicks", 1, 2), ("orders", 0, 2), ("orders", 1, 3)}


@pytest.fixture(params=["with logs", "log alone", "no server.log says so"])
def incident(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The recorded cluster with all of its logs, with none, and with logs that do not have the controllers' words."""
    source = recording("metadata/decisions-4.1-kraft")
    tmp_path = tmp_path / "incident"
    shutil.copytree(source / "broker-1" / "data", tmp_path / "broker-1" / "data")
    if request.param != "log alone":
        for broker in ("broker-1", "broker-2", "broker-3"):
            logs = tmp_path / broker / "logs"
            logs.mkdir(parents=True)
            for path in (source / broker / "logs").iterdir():
                lines = path.read_text().splitlines(keepends=True)
                if request.param != "with logs":
                    lines = [line for line in lines if "UNCLEAN" not in line and "RECOVERING" not in line]
                (logs / path.name).write_text("".join(lines))
    yield tmp_path


def test_a_recorded_cluster(incident: Path) -> None:
    said = rows("state-log", "timeline", incident)
    leaders = [one for one in said.of("leader") if not one["topic"].startswith("__")]
    assert {
        (o["topic"], o["partition"], o["leader_epoch"]) for o in leaders if o["how"] == "unclean"
    } == UNCLEAN
    assert len(leaders) == 21
    assert all(one["how"] != "unknown" and one["isr"] is not None for one in leaders)
    assert said.status == 5
    audited = rows("audit", "run", incident, "--questions", "leadership", "--out", incident.parent / "out")
    assert audited.status == 5


def test_words_of_logs_do_not_make_an_election_unclean(tmp_path: Path) -> None:
    """A clean election from the eligible leader replicas, of which a log says that it was unclean."""
    write_log(tmp_path, [*CREATED, GONE, change(leader=2, isr=[2], eligible_leader_replicas=[1])])
    logs = tmp_path / "broker-1" / "logs"
    logs.mkdir()
    line = (
        "[2026-01-01 00:00:04,000] INFO [QuorumController id=1] UNCLEAN partition change for t-0 with topic ID "
        f"{TOPIC}: isr: [] -> [2], leader: -1 -> 2, leaderEpoch: 1 -> 2, partitionEpoch: 1 -> 2 "
        "(org.apache.kafka.controller.ReplicationControlManager)\n"
    )
    (logs / "controller.log").write_text(line)
    assert [one["how"] for one in rows("state-log", "timeline", logs).of("leader")][-1] == "unclean"
    said = rows("state-log", "timeline", tmp_path)
    assert [one["how"] for one in said.of("leader")] == ["creation", "none", "failure"]
    assert said.of("finding") == []
    assert said.status == 0
    assert kctl("state-log", "timeline", tmp_path, "--broker", "1").status != 0


def test_what_logs_make_likely_stays_so_in_the_state_that_a_snapshot_begins_with() -> None:
    partition = TopicPartition("t", 0)
    logged = Leadership(partition, 3, 1, how="failure", strength=LIKELY, proofs=[{"event": "L03"}])
    stated = Decision(partition, TOPIC, 1, 3, 4, (1,), (), (), (1, 2), "unknown", "", 9, None, "log")
    (settled,) = settle({partition: [logged]}, Decided(decisions=[stated]))[partition]
    assert (settled.how, settled.strength) == ("failure", LIKELY)


def test_of_copies_that_reach_as_far_a_whole_one_decides(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "evidence", [*CREATED, change(leader=2, isr=[2, 3]), change(leader=3)])
    known = [one._replace(file="") for one in decisions(folder)]
    for number in (2, 3):
        shutil.copytree(folder / "broker-1", folder / f"broker-{number}")
        (folder / f"broker-{number}" / "data" / "meta.properties").write_text(
            f"version=1\ncluster.id=c\nnode.id={number}\n"
        )
    for number in (1, 2, 3):
        log = folder / f"broker-{number}" / "data" / "__cluster_metadata-0" / f"{0:020d}.log"
        whole = log.read_bytes()
        log.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
        if number == 3:
            continue
        assert [one._replace(file="") for one in decisions(folder)] == known
    assert [one._replace(file="") for one in decisions(folder)] != known
