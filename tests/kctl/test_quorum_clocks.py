"""The clock of one KRaft node is fast or slow: its lines and the records it wrote are put where they belong."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from formats.binary.crc import crc32c
from kctl.broker_logs.clocks.quorum import QuorumPairs
from kctl.broker_logs.clocks.skew import ClockBounds
from kctl.broker_logs.history.timeline import Timeline
from kctl.broker_logs.merging import Merge
from kctl.times import parse_time
from tests.conftest import recording, rows
from tests.kctl.test_clock_offsets import history, moved

ONE_FILE, WITH_METADATA = "logs/kraft-3.9", "metadata/decisions-4.1-kraft"
AHEAD = 420_000


def shifted(name: str, node: int, minutes: int, into: Path) -> Path:
    """A recording in which the clock of a node is ahead: of its lines, and of the records that it wrote."""
    folder = into / "shifted"
    shutil.copytree(recording(name), folder, copy_function=shutil.copyfile)
    for path in (folder / f"broker-{node}" / "logs").iterdir():
        path.write_bytes(moved(path.read_bytes(), minutes))
    for path in folder.glob("*/data/__cluster_metadata-0/*.log"):
        path.write_bytes(written_by(path.read_bytes(), node, minutes * 60_000))
    return folder


def written_by(log: bytes, node: int, ahead_ms: int) -> bytes:
    """A metadata log with the times of the batches that a node wrote as leader so much later."""
    data, at, leaders = bytearray(log), 0, {}
    while at + 61 <= len(data):
        size = 12 + struct.unpack_from(">i", data, at + 8)[0]
        (epoch,) = struct.unpack_from(">i", data, at + 12)
        (attributes,) = struct.unpack_from(">h", data, at + 21)
        if attributes & 0x20 and epoch not in leaders:  # the first control batch of an epoch names its leader
            key = data.index(b"\x00\x00\x00\x02", at + 61)
            (leaders[epoch],) = struct.unpack_from(">i", data, key + 4 + 1 + 2)
        if leaders.get(epoch) == node:
            base, newest = struct.unpack_from(">qq", data, at + 27)
            struct.pack_into(">qq", data, at + 27, base + ahead_ms, newest + ahead_ms)
            struct.pack_into(">I", data, at + 17, crc32c(bytes(data[at + 21 : at + size])))
        at += size
    return bytes(data)


def stated(found: Timeline) -> Iterator[tuple[Any, int, int | None]]:
    """Who led and which process ran, with the times."""
    for partition, leaderships in found.leaderships.items():
        for one in leaderships:
            yield (partition, one.leader_epoch, one.leader, one.how), one.from_ms, one.to_ms
    for state in found.brokers:
        yield (state.broker_id, state.state, state.how), state.time_ms, state.until_ms


def codes_of(merging: Merge) -> list[str]:
    return [finding.code for finding in merging.sources.findings]


@pytest.mark.parametrize(("node", "minutes"), [(1, 7), (2, 7), (3, 7), (2, -3)])
def test_a_node_whose_clock_is_off_is_found_and_put_right(node: int, minutes: int, tmp_path: Path) -> None:
    found, merging = history(shifted(ONE_FILE, node, minutes, tmp_path))
    known, straight = history(recording(ONE_FILE))
    assert straight.ahead == {} and codes_of(straight) == []
    # Of two that agree and one that does not, the two are right.
    assert merging.ahead.keys() == {node} and abs(merging.ahead[node] - minutes * 60_000) < 500
    assert "log-clock-off" in codes_of(merging) and not merging.doubtful
    told, expected = sorted(stated(found), key=str), sorted(stated(known), key=str)
    assert [key for key, _, _ in told] == [key for key, _, _ in expected]
    for (key, begins, ends), (_, right, right_end) in zip(told, expected, strict=True):
        assert abs(begins - right) < 1_000, key
        assert (ends is None) == (right_end is None), key
        assert ends is None or right_end is None or abs(ends - right_end) < 1_000, key


@pytest.mark.parametrize("node", [1, 2, 3])
def test_records_that_a_node_wrote_as_leader_have_its_clock(node: int, tmp_path: Path) -> None:
    told = rows("state-log", "timeline", shifted(WITH_METADATA, node, 7, tmp_path)).of("leader")
    known = rows("state-log", "timeline", recording(WITH_METADATA)).of("leader")
    assert {row["clock_offset_ms"] for row in known} == {None}
    assert [(row["topic"], row["partition"], row["leader_epoch"]) for row in told] == [
        (row["topic"], row["partition"], row["leader_epoch"]) for row in known
    ]
    for row, right in zip(told, known, strict=True):
        for key in ("from_time", "to_time"):
            assert (row[key] is None) == (right[key] is None)
            assert row[key] is None or abs(parse_time(row[key]) - parse_time(right[key])) < 1_000, row
        off = row["clock_offset_ms"]
        assert off is None or (row["evidence"][0]["broker_id"] == node and abs(off - AHEAD) < 1_000)
    written = {row["evidence"][0]["broker_id"] for row in known}
    assert any(row["clock_offset_ms"] for row in told) == (node in written)


def test_losses_are_judged_by_corrected_times(tmp_path: Path) -> None:
    from kctl.evidence.discover import discover
    from kctl.replica.loss.search import LossOptions, LossSearch

    def times(folder: Path) -> list[int]:
        search = LossSearch(discover([str(folder)]), LossOptions(), pytest.fail)
        _ = search.log_notes
        (znodes,) = search.znodes.values()
        return [decision.time_ms for decisions in znodes.decisions.values() for decision in decisions]

    straight, off = times(recording(WITH_METADATA)), times(shifted(WITH_METADATA, 1, 7, tmp_path))
    assert straight and max(abs(a - b) for a, b in zip(straight, off, strict=True)) < 1_000


X, Y = "x" * 22, "y" * 22


def test_a_node_that_was_down_or_slow_is_no_wrong_clock() -> None:
    """Each registration bounds the clocks from both sides; whoever waited, the bounds hold a right clock."""
    pairs = QuorumPairs()
    pairs.started = {X: (2, 10_000), Y: (2, 90_000)}
    pairs.heard = {(X, 1): 22_000, (X, 3): 41_000, (Y, 1): 90_400}
    pairs.made = {(X, 1): 22_000, (Y, 1): 90_400}
    pairs.registered = {X: 30_000, Y: 90_700}
    assert pairs.bounds() == {(1, 2): ClockBounds(-400, 300, 4)}
    pairs.led, pairs.followed = {4: (3, 100_000)}, {(4, 3, 1): 100_050}
    # 1 follows 3 at most 50 ms later; by way of 1, 2 is at most 350 ms ahead of 3.
    assert pairs.bounds()[1, 3].at_least == -50
    assert pairs.bounds()[2, 3].at_least == -350


def line(at: str, node: int, text: str, logger: str) -> str:
    return f"[2026-11-21 {at}] INFO {text} ({logger})\n"


@pytest.mark.parametrize("ahead", [0, 420])
def test_nodes_of_separate_files_and_controllers_of_their_own(ahead: int, tmp_path: Path) -> None:
    """A broker and a controller, with the usual files; the broker's clock is ahead, or right and its host slow."""

    def at(seconds: float, late: int = ahead) -> str:
        return datetime.fromtimestamp(1_795_255_200 + seconds + late, UTC).strftime("%H:%M:%S,%f")[:-3]

    cycle, raft = "kafka.server.BrokerLifecycleManager", "org.apache.kafka.raft.QuorumState"
    of_cluster = "org.apache.kafka.controller.ClusterControlManager"
    broker, controller = tmp_path / "broker-1" / "logs", tmp_path / "broker-100" / "logs"
    for logs in (broker, controller):
        logs.mkdir(parents=True)
    begin = "[QuorumController id=100] Becoming the active controller at epoch 1, beginning to write"
    record = f"RegisterBrokerRecord(brokerId=1, isMigratingZkBroker=false, incarnationId={X}, brokerEpoch=7)"
    (controller / "controller.log").write_text(
        line(at(0, 0), 100, begin, "org.apache.kafka.controller.QuorumController")
        + line(at(2, 0), 100, f"[QuorumController id=100] Replayed initial RegisterBrokerRecord for broker 1: {record}", of_cluster)
    )  # fmt: skip
    (controller / "server.log").write_text(
        line(at(0, 0), 100, "[RaftManager id=100] Completed transition to Leader(localReplicaKey=100, epoch=1) from null", raft)
    )  # fmt: skip
    (broker / "server.log").write_text(
        line(at(1.5), 1, f"[BrokerLifecycleManager id=1] Incarnation {X} of broker 1 in cluster c is now STARTING.", cycle)
        + line(at(2.4), 1, "[BrokerLifecycleManager id=1] Successfully registered broker 1 with broker epoch 7", cycle)
    )  # fmt: skip
    _, merging = history(tmp_path)
    off = {node: abs(ms) for node, ms in merging.ahead.items()}
    # Of two nodes nobody knows whose clock is right: the first is taken for it.
    assert off.keys() == ({100} if ahead else set())
    assert all(abs(ms - AHEAD) < 500 for ms in off.values())


@pytest.mark.parametrize(
    ("late", "apart", "ahead"),
    [
        ((0, 300, 30), 20_000, 420),
        ((0, 9_000, 70_000), 20_000, None),
        ((0, 300, 30), 1_000, None),  # of one moment
        ((0, 300, 30, 9_000, 20_000, -9_000, -7_000), 20_000, None),  # of the fewer
    ],
)
def test_a_controller_that_never_leads_is_put_beside_one_that_heard_the_same(
    late: tuple[int, ...], apart: int, ahead: int | None
) -> None:
    """Nothing that it writes must come before what others write (4.1, seed 971); who is late is not late by the same."""
    pairs = QuorumPairs()
    for number, delay in enumerate(late):
        at = 1_000_000 + apart * number
        pairs.heard[f"incarnation {number}", 101] = at
        pairs.heard[f"incarnation {number}", 102] = at + 420_000 + delay
    bounds = pairs.bounds().get((101, 102))
    assert (bounds and round(bounds.estimate / 1000)) == ahead


def test_what_was_heard_together_says_nothing_against_the_order_of_lines() -> None:
    """Three incarnations were heard three seconds late, by a node whose clock is at most 50 ms ahead."""
    pairs = QuorumPairs()
    pairs.led[7], pairs.followed[7, 101, 102] = (101, 900_000), 900_050
    for number in range(3):
        at = 1_000_000 + 20_000 * number
        pairs.heard[f"incarnation {number}", 101] = at
        pairs.heard[f"incarnation {number}", 102] = at + 3_000 + number
    assert (101, 102) not in pairs.bounds()


def test_the_order_of_lines_is_closer_than_what_was_heard_together() -> None:
    pairs = QuorumPairs()
    pairs.led[7], pairs.followed[7, 101, 102] = (101, 900_000), 1_320_100
    for number, delay in enumerate((0, 300, 30)):
        at = 1_000_000 + 20_000 * number
        pairs.heard[f"incarnation {number}", 101] = at
        pairs.heard[f"incarnation {number}", 102] = at + 420_000 + delay
    bounds = pairs.bounds()[101, 102]
    assert (bounds.at_least, bounds.at_most) == (420_000, 420_100)
