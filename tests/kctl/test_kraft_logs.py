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
    assert not found.unclean


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
