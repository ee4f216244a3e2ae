"""Captured output of a KRaft cluster of 3.9: found by what it holds, every line of the controllers known.

Three combined nodes. Broker 2 was killed and came back, broker 3 stopped and came back, broker 1 was killed and came
back; then `ledger` was deleted and made again, and the preferred leaders were elected.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from kctl.broker_logs.history.timeline import Timeline, timeline
from kctl.broker_logs.merging import Count, prepare
from kctl.broker_logs.sources import find_sources
from kctl.model import TopicPartition
from tests.conftest import recording

NAME = "logs/kraft-3.9"


def history() -> Timeline:
    return timeline(prepare(find_sources([str(recording(NAME))])).events())


def test_every_line_of_controllers_and_state_changes_has_a_template() -> None:
    found = find_sources([str(recording(NAME))])
    assert [(s.broker_id, s.kind, len(s.files)) for s in found.sources] == [
        (1, "stdout", 1),
        (2, "stdout", 1),
        (3, "stdout", 1),
    ]
    count = Count()
    merging = prepare(found)
    for event in merging.events():
        count.note(event)
    assert (count.unknown, count.continuations) == (0, 0)
    assert count.events > 1000
    assert not merging.reading.findings and not found.findings


def test_a_class_of_kafka_is_never_counted_as_another_logger(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    head = "[2026-11-21 13:18:27,173]"
    log.write_text(
        f"{head} INFO no sentence of any template (kafka.server.Anything)\n"
        f"{head} WARN no sentence of any template (org.apache.kafka.raft.Anything)\n"
        f"{head} DEBUG no sentence of any template (org.apache.kafka.raft.Anything)\n"
        f"{head} INFO no sentence of any template (org.apache.zookeeper.ZooKeeper)\n"
    )
    count, merging = Count(), prepare(find_sources([str(log)]))
    for event in merging.events():
        count.note(event)
    assert (count.unknown, count.other, count.unknown_at) == (2, 2, [f"{log}:1", f"{log}:2"])


def test_who_led_and_why() -> None:
    found = history()
    told = {
        str(partition): [(one.leader_epoch, one.leader, one.how) for one in ones]
        for partition, ones in found.leaderships.items()
    }
    # A shutdown that was over before a broker led is not why it no longer leads.
    assert told["orders-3"] == [(0, 1, "creation"), (1, 3, "failure"), (2, 1, "unknown")]
    assert told["orders-1"] == [(0, 2, "creation"), (1, 3, "failure"), (2, 2, "controlled_shutdown")]
    assert told["orders-4"] == [(0, 3, "creation"), (1, 1, "controlled_shutdown"), (2, 3, "failure")]
    again = found.of(TopicPartition("ledger", 0))[-1]
    assert (again.leader_epoch, again.isr, again.how) == (0, (1, 2, 3), "creation")
    assert not any(one.is_unclean for ones in found.leaderships.values() for one in ones)


def test_terms_and_lives() -> None:
    found = history()
    assert [(term.broker_id, term.controller_epoch) for term in found.controllers] == [(3, 2), (1, 3), (3, 5)]
    # A controller that starts replays the metadata log: what happened before does not happen again.
    told = {id: [one.state for one in found.brokers if one.broker_id == id] for id in (1, 2, 3)}
    life = ["starting", "registered", "unfenced", "up"]
    assert told[1] == [*life, "killed", "fenced", *life]
    assert told[2] == [*life, "killed", "fenced", *life]
    stops = ["stopping", "controlled_shutdown", "fenced", "down"]
    assert told[3] == [*life, *stops, *life]


def test_who_led_the_metadata_quorum() -> None:
    rows = history().quorum
    told = [(row["leader"], row["leader_epoch"], row["how"], row["cause"]) for row in rows]
    assert told == [
        (-1, 1, "none", "an election without a winner"),
        (3, 2, "unknown", None),
        (1, 3, "controlled_shutdown", "node 3 shut down"),
        (-1, 4, "none", "an election without a winner"),
        (3, 5, "failure", "node 2, 3 heard nothing of node 1"),
    ]
    for row, following in pairwise(rows):
        assert str(row["from_time"]) < str(row["to_time"]) <= str(following["from_time"])
    assert all(row["evidence"] for row in rows)


def test_a_leader_of_the_quorum_that_lost_its_majority_and_one_that_started_again(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    state = "[RaftManager id=2] Completed transition to"
    lines = [
        (f"{state} Leader(localId=2, epoch=7, epochStartOffset=9)", "QuorumState"),
        ("[RaftManager id=2] Did not receive fetch request from the majority of the voters within 3000ms. Current fetched voters are [], and voters are [1, 2, 3]", "LeaderState"),
        (f"{state} FollowerState(fetchTimeoutMs=2000, epoch=8, leaderId=1, voters=[1, 2, 3])", "QuorumState"),
        (f"{state} Leader(localId=2, epoch=9, epochStartOffset=12)", "QuorumState"),
        (f"{state} ResignedState(localId=2, epoch=9, voters=[1, 2, 3]) from null", "QuorumState"),
    ]  # fmt: skip
    log.write_text(
        "".join(
            f"[2026-11-21 13:18:0{second},000] INFO {text} (org.apache.kafka.raft.{name})\n"
            for second, (text, name) in enumerate(lines)
        )
    )
    rows = timeline(prepare(find_sources([str(log)])).events()).quorum
    told = [
        (row["leader"], row["how"], str(row["from_time"])[18:19], str(row["to_time"])[18:19]) for row in rows
    ]
    assert told == [(2, "unknown", "0", "1"), (1, "failure", "2", "3"), (2, "unknown", "3", "4")]
    assert rows[1]["cause"] == "node 2 lost the majority of the voters"


def members(name: str) -> list[tuple[object, ...]]:
    found = timeline(prepare(find_sources([str(recording(name))])).events()).members
    assert all(row["evidence"] for row in found)
    return [
        (row["broker_id"], row["state"], row["leader_epoch"], row["leader"], row["voted_for"], row["times"])
        for row in found
        if row["kind"] == "quorum_state"
    ]


def test_what_nodes_of_the_metadata_quorum_became_in_3_9() -> None:
    told = members(NAME)
    assert [one[1:] for one in told if one[0] == 3] == [
        ("unattached", 0, None, None, 1),
        ("candidate", 1, None, None, 2),
        ("leader", 2, 3, None, 1),
        ("resigned", 2, None, None, 1),
        ("unattached", 3, None, None, 1),
        ("voted", 3, None, 1, 1),
        ("follower", 3, 1, None, 1),
        ("follower", 3, 1, None, 1),  # a node that starts again
        ("candidate", 4, None, None, 2),
        ("leader", 5, 3, None, 1),
    ]


def test_what_nodes_of_the_metadata_quorum_became_in_4_3() -> None:
    """A node asks whether it would be elected before it stands."""
    told = members("drills/eligible-4.3-kraft")
    assert [one[1:] for one in told if one[0] == 4] == [
        ("unattached", 0, None, None, 1),
        ("prospective", 0, None, None, 1),
        ("candidate", 1, None, None, 1),
        ("leader", 1, 4, None, 1),
    ]
    assert {one[1] for one in told if one[0] == 1} == {"unattached", "follower"}


def test_roles_that_nodes_take_again_and_again_while_nobody_leads_are_one_row(tmp_path: Path) -> None:
    said = "[RaftManager id=2] Completed transition to"
    lines = [
        f"{said} Leader(localId=2, epoch=7, epochStartOffset=9)",
        "[RaftManager id=2] Did not receive fetch request from the majority of the voters within 3000ms. Current fetched voters are [], and voters are [1, 2, 3]",
        f"{said} ResignedState(localId=2, epoch=7, voters=[1, 2, 3]) from Leader(localId=2, epoch=7)",
    ]  # fmt: skip
    for epoch in range(8, 28):
        lines.append(
            f"{said} UnattachedState(epoch={epoch}, leaderId=OptionalInt.empty, votedKey=Optional.empty, voters=[1, 2, 3]) from null"
        )
        lines.append(
            f"{said} ProspectiveState(epoch={epoch}, leaderId=OptionalInt.empty, votedKey=Optional.empty, retries=1) from null"
        )
    lines.append(
        f"{said} UnattachedState(epoch=28, leaderId=OptionalInt.empty, votedKey=Optional[ReplicaKey(id=3, directoryId=<undefined>)], voters=[1, 2, 3]) from null"
    )
    log = tmp_path / "server.log"
    log.write_text(
        "".join(
            f"[2026-11-21 13:18:{second:02},000] INFO {text} (org.apache.kafka.raft.{'LeaderState' if 'majority' in text else 'QuorumState'})\n"
            for second, text in enumerate(lines)
        )
    )
    rows = timeline(prepare(find_sources([str(log)])).events()).members
    told = [(r["state"], r["leader_epoch"], r["voted_for"], r["times"], r["last_epoch"]) for r in rows]
    assert told == [
        ("leader", 7, None, 1, 7),
        ("majority_lost", None, None, 1, None),
        ("resigned", 7, None, 1, 7),
        ("unattached", 8, None, 20, 27),
        ("prospective", 8, None, 20, 27),
        ("voted", 28, 3, 1, 28),
    ]
    assert rows[3]["last_time"] == "2026-11-21T13:18:41.000Z"


SNAPSHOTS = [
    ("Q30", "[RaftManager id=2] Fetching snapshot OffsetAndEpoch(offset=120, epoch=3) from Fetch response from leader 1", "raft.KafkaRaftClient"),
    ("J26", "[RaftManager id=2] Fully truncated the log at (LogOffsetMetadata(offset=120, metadata=Optional.empty), 3) after downloading snapshot OffsetAndEpoch(offset=120, epoch=3) from leader 1", "raft.KafkaRaftClient"),
    ("J54", "[MetadataLoader id=2] handleLoadSnapshot(00000000000000000120-0000000003): incrementing HandleLoadSnapshotCount to 1.", "image.loader.MetadataLoader"),
    ("X405", "[QuorumController id=2] Successfully loaded snapshot 00000000000000000120-0000000003.", "controller.OffsetControlManager"),
    ("X253", "[SnapshotEmitter id=2] Successfully wrote snapshot 00000000000000000140-0000000003", "image.publisher.SnapshotEmitter"),
    ("X135", "[RaftManager id=2] Deleted snapshot files for snapshot OffsetAndEpoch(offset=120, epoch=3).", "snapshot.Snapshots"),
    ("X252", "[SnapshotEmitter id=2] Encountered error while writing snapshot 00000000000000000160-0000000003", "image.publisher.SnapshotEmitter"),
    ("Q29", "[RaftManager id=2] Truncated to offset 150 from Fetch response from leader 3", "raft.KafkaRaftClient"),
    ("M22", "[Controller 2] Finished generating snapshot 170.", "controller.QuorumController"),
    ("J52", "[MetadataLoader id=2] handleSnapshot: publishing new snapshot image with provenance MetadataProvenance(lastContainedOffset=180, lastContainedEpoch=4, lastContainedLogTimeMs=1).", "image.loader.MetadataLoader"),
]  # fmt: skip


def test_snapshots_of_the_metadata_log_and_its_cuts(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "".join(
            f"[2026-11-21 13:18:{second:02},000] INFO {text} (org.apache.kafka.{name})\n"
            for second, (_, text, name) in enumerate(SNAPSHOTS)
        )
    )
    found = timeline(prepare(find_sources([str(log)])).events()).members
    told = [(row["broker_id"], row["change"], row["offset"], row["epoch"]) for row in found]
    assert told == [
        (2, "snapshot_asked_for", 120, 3),
        (2, "snapshot_fetched", 120, 3),
        (2, "snapshot_loaded", 120, 3),
        (2, "snapshot_created", 140, 3),
        (2, "snapshot_deleted", 120, 3),
        (2, "snapshot_failed", 160, 3),
        (2, "truncated", 150, None),
        (2, "snapshot_created", 170, None),
        (2, "snapshot_loaded", 180, 4),
    ]
    lines = [
        [proof["event"] for proof in row["evidence"]] for row in found if isinstance(row["evidence"], list)
    ]
    assert [line for one in lines for line in one] == [name for name, _, _ in SNAPSHOTS]
    assert lines[2] == ["J54", "X405"]
