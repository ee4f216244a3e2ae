"""The timeline of every recorded incident says what the znodes said at each recorded moment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kctl.broker_logs.history.leaderships import Leadership, where_of
from kctl.broker_logs.history.timeline import Timeline, timeline
from kctl.broker_logs.merging import read_events
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
    unclean = {one.topic_partition.topic for one in history(name).unclean}
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
