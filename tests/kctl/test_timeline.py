"""The timeline of every recorded incident says what the znodes said at each recorded moment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from kctl.broker_logs.history.leaderships import Leadership, where_of
from kctl.broker_logs.history.timeline import Timeline, timeline
from kctl.broker_logs.merging import read_events
from kctl.broker_logs.sources import find_sources
from kctl.model import TopicPartition
from tests.conftest import recording, recordings

INCIDENTS = recordings("incidents")


@cache
def history(name: str) -> Timeline:
    return timeline(read_events([str(recording(name))]))


@cache
def story(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((recording(name) / "story.json").read_text())
    return found


def millis(text: str) -> int:
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def states(folder: Path) -> Iterator[tuple[TopicPartition, dict[str, Any]]]:
    """Every partition state of a znode export."""
    for line in folder.joinpath("znodes.jsonl").read_text().splitlines():
        znode = json.loads(line)
        parts = znode["path"].strip("/").split("/")
        if parts[-1] == "state" and "topics" in parts:
            at = parts.index("topics")
            yield TopicPartition(parts[at + 1], int(parts[at + 3])), json.loads(znode["data_text"])


def in_force(found: Timeline, partition: TopicPartition, time_ms: int) -> list[Leadership]:
    """The leaderships that the znode may show: it was read up to a second before the moment's time."""
    return [
        one
        for one in found.of(partition)
        if one.from_ms <= time_ms and (one.to_ms is None or one.to_ms >= time_ms - 1000)
    ]


WARNED = re.compile(
    rb"^(\S+ \S+) .*No broker in ISR is alive for \[([\w.-]+),(\d+)\]. Elect leader", re.MULTILINE
)
# From 3.x: `isr: [1] -> [2], leader: 1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 3 -> 4`.
CHANGED = re.compile(
    rb"UNCLEAN partition change for ([\w.-]+)-(\d+) .* leader: -?\d+ -> \d+, .*-> RECOVERING, leaderEpoch: \d+ -> (\d+)"
)


def announced(folder: Path) -> set[tuple[bytes, bytes, bytes]]:
    """Partitions and times, or epochs, of the unclean elections that controllers announce in their logs."""
    found: set[tuple[bytes, bytes, bytes]] = set()
    for path in folder.glob("**/controller.log*"):
        text = path.read_bytes()
        found.update((topic, partition, at) for at, topic, partition in WARNED.findall(text))
        found.update(CHANGED.findall(text))
    return found


def isrs(one: Leadership, time_ms: int) -> list[set[int]]:
    """The ISRs of a leadership within that second."""
    held = [(one.from_ms, one.isr or ()), *((c.time_ms, c.isr) for c in one.isr_changes)]
    before = [isr for when, isr in held if when <= time_ms - 1000][-1:]
    return [set(isr) for isr in (*before, *(isr for when, isr in held if time_ms - 1000 < when <= time_ms))]


def moments(name: str) -> Iterator[tuple[int, Path]]:
    for moment, said in story(name)["moments"].items():
        folder = recording(name) / "moments" / moment
        if (folder / "znodes.jsonl").exists():
            yield millis(said["utc"]), folder


@pytest.mark.slow
@pytest.mark.parametrize("name", INCIDENTS)
def test_leaders_epochs_and_isrs_are_those_of_the_znodes(name: str) -> None:
    found = history(name)
    count = 0
    for time_ms, folder in moments(name):
        for partition, state in states(folder):
            held = in_force(found, partition, time_ms)
            said = f"{folder.name} {partition}: {state} {held}"
            right = [
                one
                for one in held
                if (one.leader, one.leader_epoch) == (state["leader"], state["leader_epoch"])
            ]
            assert right, said
            assert right[0].controller_epoch == state["controller_epoch"], said
            if state["leader"] >= 0:
                assert set(state["isr"]) in isrs(right[0], time_ms), said
            count += 1
    assert count


@pytest.mark.slow
@pytest.mark.parametrize("name", INCIDENTS)
def test_unclean_elections_are_found_where_they_were_and_nowhere_else(name: str) -> None:
    case = name.removeprefix("incidents/")
    found = chain.from_iterable(history(name).leaderships.values())
    unclean = {one.topic_partition.topic for one in found if one.is_unclean}
    expected = {"ledger"} if case.startswith("unclean") else set()
    # In diverge-0.10.2 the returning replica was the last in the ISR; the controller warned all the same.
    assert unclean == expected


def test_a_proof_without_a_line_is_named_by_what_it_says() -> None:
    assert where_of({"file": "znodes.jsonl", "line": None, "text": "the state znode"}) == "the state znode"
    assert where_of({"file": "server.log", "line": 3}) == "line 3"
    assert where_of({"file": "__cluster_metadata-0", "line": None, "offset": 12}) == "offset 12"


@pytest.mark.parametrize("name", INCIDENTS)
def test_what_is_drawn_from_logs_names_file_and_line(name: str) -> None:
    found = history(name)
    for finding in found.findings():
        assert finding.place.file, finding
        if finding.code != "log-level-hides-transitions":  # says what no line holds
            assert f"(line {finding.place.line})" in finding.message, finding
            assert finding.row()["line"] == finding.place.line
    proofs = [
        one.proofs
        for leaderships in found.leaderships.values()
        for one in leaderships
        if one.leader is not None
    ]
    proofs += [term.proofs for term in found.controllers]
    proofs += [state.proofs for state in found.brokers]
    for of_row in proofs:
        assert of_row
        assert all(proof["file"] and proof["line"] for proof in of_row)


@pytest.mark.slow
@pytest.mark.parametrize("name", INCIDENTS)
def test_every_announced_unclean_election_is_told(name: str) -> None:
    codes = ("unclean-leader-election", "last-of-isr-elected")
    told = {f.place for f in history(name).findings() if f.code in codes}
    assert len(announced(recording(name))) <= len(told)
    assert all(place.file and place.line for place in told)


BARE = """\
INFO [KafkaServer id=1] starting (kafka.server.KafkaServer)
INFO [KafkaServer id=1] started (kafka.server.KafkaServer)
TRACE [Controller id=1 epoch=3] Changed partition t-0 from NewPartition to OnlinePartition with state \
LeaderAndIsr(leader=1, leaderEpoch=0, isr=List(1), zkVersion=0) (state.change.logger)
INFO [ReplicaFetcherManager on broker 1] Removed fetcher for partitions Set(t-0) (kafka.server.ReplicaFetcherManager)
INFO [KafkaServer id=1] shutting down (kafka.server.KafkaServer)
INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)
INFO [KafkaServer id=1] starting (kafka.server.KafkaServer)
"""
SHORT = {
    "kafka.server.KafkaServer": ["KafkaServer", "k.s.KafkaServer", "server.KafkaServer"],
    "kafka.server.ReplicaFetcherManager": ["ReplicaFetcherManager", "k.s.ReplicaFetcherManager", "server.ReplicaFetcherManager"],
    "state.change.logger": ["logger", "s.c.logger", "change.logger"],
}  # fmt: skip


def history_of(folder: Path, lines: str, form: str) -> Timeline:
    """The history of lines whose layout has the logger elsewhere."""
    folder.mkdir()
    written = ""
    for number, line in enumerate(lines.splitlines()):
        level, message, logger = re.fullmatch(r"(\w+) (.*) \((.*)\)", line).groups()  # type: ignore[union-attr]
        at = f"2026-11-21 13:18:{20 + number},000"
        written += form.format(at=at, level=level, logger=logger, message=message) + "\n"
    (folder / "server.log").write_text(written)
    return timeline(read_events([str(folder)]))


@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize(
    "form",
    [
        "[{at}] {level} {message} ({logger})",
        "[{at}] {level} {logger}: {message}",
        "[{at}] {level} {logger} - {message}",
    ],
)
def test_loggers_without_their_package_say_the_same(tmp_path: Path, form: str, length: int) -> None:
    short = BARE
    for name, forms in SHORT.items():
        short = short.replace(f"({name})", f"({forms[length]})")
    whole, bare = (history_of(tmp_path / name, lines, form) for name, lines in (("w", BARE), ("b", short)))
    assert [state.state for state in whole.brokers] == ["starting", "up", "stopping", "down", "starting"]
    assert [state.row() for state in bare.brokers] == [state.row() for state in whole.brokers]
    partition = TopicPartition("t", 0)
    assert [one.row() for one in bare.of(partition)] == [one.row() for one in whole.of(partition)]
    assert len(whole.of(partition)) == 1


@pytest.mark.parametrize("logger", ["Other", "a.b.KafkaServer"])
def test_a_log_without_any_logger_of_kafka_is_told(tmp_path: Path, logger: str) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"[2026-11-21 13:18:20,000] INFO [KafkaServer id=1] starting ({logger})\n")
    (finding,) = find_sources([str(tmp_path)]).findings
    assert (finding.code, finding.place.file) == ("log-loggers-unknown", "server.log")
    assert logger in finding.message


def test_an_hour_of_other_software_in_a_log_of_kafka_is_nothing_strange(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-11-21 13:18:20,000] INFO Opening socket (org.apache.zookeeper.ClientCnxn)\n")
    assert not find_sources([str(tmp_path)]).findings


def test_a_change_of_the_isr_by_a_broker_that_nobody_knows(tmp_path: Path) -> None:
    (tmp_path / "state-change.log").write_text(
        "[2026-11-21 13:18:27,173] INFO [Controller id=3 epoch=1] Changed partition ledger-0 from NewPartition to"
        " OnlinePartition with state LeaderAndIsr(leader=1, leaderEpoch=0, isr=List(1, 2), zkVersion=0) (state.change.logger)\n"
    )
    lines = (("1", "ledger-1", 40), ("2", "ledger-2", 50), ("-0", "ledger-0", 59))
    (tmp_path / "server.log").write_text(
        "".join(
            f"[2026-11-21 13:18:{second},000] INFO [Partition {partition} broker={broker}] ISR updated to 1"
            " and version updated to [1] (kafka.cluster.Partition)\n"
            for broker, partition, second in lines
        )
    )
    found = timeline(read_events([str(tmp_path)]))
    (only,) = found.of(TopicPartition("ledger", 0))
    assert [change.isr for change in only.isr_changes] == [(1,)]
