"""The simulator: recorded stories step by step, built-in scenarios, random faults, and what scenarios may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.errors import BadValue
from kctl.replication.epochs import EpochEndOffset
from kctl.replication.exploration import explore
from kctl.replication.rules import parse_version, rules_for
from kctl.replication.scenario import (
    STEPS,
    ScenarioRun,
    Step,
    built_in_names,
    parse_scenario,
    play,
    read_scenario,
)
from kctl.replication.simulated_partition import SimulatedPartition, SimulatedReplica
from kctl.replication.truncation import Algorithm, FollowerTruncation, TruncationRound
from tests.conftest import examples, kctl, rows, vectors

VERSIONS = {
    Algorithm.HIGH_WATERMARK: "0.10.2.2",
    Algorithm.KIP_101: "1.1.1",
    Algorithm.KIP_279: "2.3.1",
    Algorithm.FETCH: "2.8.2",
}
STORIES = [
    case
    for name in ("hw_data_loss", "hw_divergence")
    for case in vectors(name)["cases"]
    if case["op"] == "replica_scenario"
]


class Story:
    """A recorded story played by the primitives of the model; broker names are letters."""

    def __init__(self, given_: dict[str, Any]) -> None:
        start = given_["start"]
        self.names = [name for name in ("A", "B") if name in start]
        rules = rules_for(VERSIONS[Algorithm(given_["algorithm"])])
        self.part = SimulatedPartition(
            rules,
            {ord(name): SimulatedReplica() for name in self.names},
            isr=tuple(map(ord, self.names)),
            unclean_enabled=given_.get("unclean_leader_election_enable", True),
        )
        self.part.leader, self.part.leader_epoch = ord(start["leader"]), start["leader_epoch"]
        for name in self.names:
            replica = self.part.replicas[ord(name)]
            replica.log = list(start[name]["log"])
            replica.written_in = [start["leader_epoch"]] * len(replica.log)
            replica.high_watermark = start[name]["hw"]
            if rules.has_epochs:
                replica.epochs = ((start["leader_epoch"], 0),)
        self.on_disk = {ord(n): start[n]["hw_checkpoint"] for n in self.names if "hw_checkpoint" in start[n]}

    def state(self) -> dict[str, Any]:
        found = {}
        for name in self.names:
            replica = self.part.replicas[ord(name)]
            one: dict[str, Any] = {"log": replica.log, "hw": replica.high_watermark, "up": replica.up}
            if self.part.rules.has_epochs:
                one["epochs"] = [list(entry) for entry in replica.epochs]
            found[name] = {**one, "log": list(replica.log)}
        return found

    def take(self, event: str) -> dict[str, Any]:
        name, *words = event.split()
        broker_id, replica = ord(name), self.part.replicas[ord(name)]
        for stopped, mark in self.on_disk.items():  # what it will load is what its disk says
            if not self.part.replicas[stopped].up:
                self.part.replicas[stopped].checkpointed = mark
                self.part.load(stopped)
                self.part.replicas[stopped].up = False
        if words == ["stops"]:
            self.part.stop(broker_id)
            self.part.isr = tuple(b for b in self.part.isr if b != broker_id)
        elif words[:2] == ["becomes", "leader"]:
            self.part.isr = (broker_id,)
            self.part.become_leader(broker_id, self.part.leader_epoch + 1)
            return {"leader_epoch": self.part.leader_epoch}
        elif words[0] == "becomes":
            before = self.part.leader
            self.part.leader = ord(words[-1])
            found = self.part.become_follower(broker_id)
            assert before == self.part.leader
            return {"truncate_to": replica.log_end_offset, **rounds_of(found, self.part.rules.algorithm)}
        elif words[0] == "appends":
            self.part.append(words[1].split(","))
        else:
            assert words[0] == "fetches"
            return self.fetch(broker_id, to_the_end="end" in words)
        return {}

    def fetch(self, broker_id: int, *, to_the_end: bool) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for _ in range(3 if to_the_end else 1):
            leader_end = self.part.replicas[self.part.leader].log_end_offset
            fetched = self.part.fetch(broker_id)
            if fetched.action:
                told |= {"error": "OFFSET_OUT_OF_RANGE", "action": fetched.action}
                if fetched.truncate_to is None:
                    self.part.replicas[
                        broker_id
                    ].up = True  # the vectors leave a halted broker's state as it was
                    return {**told, "leader_end_offset": leader_end}
                told["truncate_to"] = fetched.truncate_to
        return told


def rounds_of(found: FollowerTruncation, algorithm: Algorithm) -> dict[str, Any]:
    if algorithm is Algorithm.HIGH_WATERMARK:
        return {}
    return {"rounds": [round_of(one) for one in found.rounds]}


def round_of(one: TruncationRound) -> dict[str, Any]:
    if one.fetch_offset is None:
        assert isinstance(one.answer, EpochEndOffset)
        answer = {k: v for k, v in one.answer._asdict().items() if v is not None}
        return {
            "request_epoch": one.request_epoch,
            "answer": answer,
            "truncate_to": one.truncate_to,
            "completed": one.completed,
            "reason": one.reason,
        }
    told: Any = one.answer
    if isinstance(one.answer, EpochEndOffset):
        told = {"diverging_epoch": one.answer.leader_epoch, "end_offset": one.answer.end_offset}
    reason = {"reason": one.reason} if one.reason else {}
    return {
        "fetch_offset": one.fetch_offset,
        "last_fetched_epoch": one.request_epoch,
        "answer": told,
        "truncate_to": one.truncate_to,
        **reason,
    }


@pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in STORIES])
def test_recorded_stories(case: dict[str, Any]) -> None:
    story = Story(case["given"])
    steps = case["expect"]["steps"]
    assert story.state() == steps[0]["state"]
    for step in steps[1:]:
        told = story.take(step["event"])
        assert story.state() == step["state"], step["event"]
        extra = {key: value for key, value in step.items() if key not in ("event", "state")}
        assert {key: told.get(key) for key in extra} == extra, step["event"]
    verdict = case["expect"]["verdict"]
    logs = {name: story.part.replicas[ord(name)].log for name in story.names}
    assert logs == verdict["final_logs"]
    leader = logs[chr(story.part.leader)]
    committed = case["given"]["committed"]
    assert [m for m in committed if m not in leader] == verdict["committed_and_missing_on_leader"]
    nowhere = [m for m in committed if not any(m in log for log in logs.values())]
    assert nowhere == verdict["committed_and_on_no_replica"]
    shared = zip(*logs.values(), strict=False)
    first = next((o for o, (one, other) in enumerate(shared) if one != other), None)
    assert first == verdict["first_divergent_offset"]


def ending(name: str, version: str) -> dict[str, Any]:
    (row,) = rows("replica", "simulate", name, "--kafka-version", version).of("simulation")
    return row


@pytest.mark.parametrize(
    ("name", "version", "lost", "diverged"),
    [
        ("high-watermark-loss", "0.10.2", ["m1"], False),
        ("high-watermark-loss", "0.11", [], False),
        ("high-watermark-loss", "2.8", [], False),
        ("high-watermark-divergence", "0.10", ["m1"], True),
        ("high-watermark-divergence", "1.1", ["m1"], False),
        ("unclean-election", "0.10", ["m2", "m3", "m4"], False),
        ("unclean-election", "3.9", ["m2", "m3", "m4"], False),
        ("power-failure", "0.10", ["m2", "m3"], True),
        ("power-failure", "3.9", ["m2", "m3"], False),
    ],
)
def test_built_in_scenarios(name: str, version: str, lost: list[str], diverged: bool) -> None:
    row = ending(name, version)
    assert [one["record"] for one in row["lost"]] == lost
    assert bool(row["diverged"]) is diverged
    assert bool(row["unclean_elections"]) is (name == "unclean-election")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_random_faults_find_the_losses_of_0_10_and_none_of_2_8(seed: int) -> None:
    lost = list(explore(rules_for("0.10"), steps=10_000, seed=seed))
    assert {one.promise for one in lost} == {"committed_record_lost"}
    for one in lost:  # each sequence is as short as it gets, and breaks the promise by itself
        run = ScenarioRun.start(
            rules_for("0.10"), (1, 2, 3)[: 3 if "3" in str(list(map(str, one.steps))) else 2], False
        )
        for step in one.steps:
            run.take(step)
    assert list(explore(rules_for("2.8"), steps=10_000, seed=seed)) == []


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.10", "1.1", "2.3", "2.8", "3.9"])
def test_a_power_failure_can_lose_records_in_every_version(version: str) -> None:
    found = list(explore(rules_for(version), steps=1_000, seed=1, power_failures=True))
    assert any("power-failure" in str(step) for one in found for step in one.steps)


def test_seeds_repeat() -> None:
    first = rows("replica", "simulate", "--random", 4000, "--seed", 3, "--kafka-version", "0.10")
    assert (
        first.rows
        == rows("replica", "simulate", "--random", 4000, "--seed", 3, "--kafka-version", "0.10").rows
    )
    assert first.status == 5


steps_drawn = st.lists(
    st.one_of(
        st.builds(Step, st.just("produce"), count=st.integers(1, 3)),
        st.builds(Step, st.just("elect")),
        st.builds(
            Step,
            st.sampled_from(["fetch", "crash", "restart", "flush", "checkpoint", "shrink-isr"]),
            st.integers(1, 3).map(lambda b: (b,)),
        ),
        st.builds(Step, st.just("power-failure"), st.lists(st.integers(1, 3), min_size=1).map(tuple)),
    ),
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(steps_drawn, st.sampled_from(["0.8.1.1", "0.10", "0.11", "2.0", "2.8", "3.9"]), st.booleans())
def test_the_model_is_never_in_an_impossible_state(steps: list[Step], version: str, unclean: bool) -> None:
    run = ScenarioRun.start(rules_for(version), (1, 2, 3), unclean)
    for step in steps:
        run.take(step)
        for replica in run.partition.replicas.values():
            assert len(replica.log) == len(replica.written_in)
            assert 0 <= replica.high_watermark <= replica.log_end_offset
            assert 0 <= replica.flushed <= replica.log_end_offset
            assert all(start <= replica.log_end_offset for _, start in replica.epochs)
        assert set(run.partition.isr) <= {1, 2, 3}


@pytest.mark.slow
@given(steps_drawn)
@settings(max_examples=examples(150), deadline=None)
def test_clean_elections_of_2_8_on_whole_disks_lose_nothing_committed(steps: list[Step]) -> None:
    run = ScenarioRun.start(rules_for("2.8"), (1, 2, 3), unclean=False)
    for step in steps:
        if step.do != "power-failure":
            run.take(step)
            assert run.lost() == []
            assert run.diverged(below_high_watermark=True) == {} or run.leading_replica is None


BAD = {
    "brokers = 3": "brokers must be a list",
    "brokers = [1, 1]": "brokers must be a list",
    "unclean_leader_election_enable = 1": "must be true or false",
    "steps = 1": "steps must be tables",
    "[[steps]]\ndo = 'explode'": "do must be one of",
    "[[steps]]\ndo = 'crash'": "needs 'broker'",
    "[[steps]]\ndo = 'crash'\nbroker = 7": "no such broker",
    "[[steps]]\ndo = 'crash'\nbroker = 1\nwhy = 2": "has no key 'why'",
    "[[steps]]\ndo = 'produce'\ncount = 0": "whole numbers",
    "[[steps]]\ndo = 'produce'\nrecords = [1]": "list of names",
    "not toml": "not TOML",
}


@pytest.mark.parametrize("text", BAD)
def test_a_scenario_that_is_not_right_is_refused_by_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    ran = kctl("replica", "simulate", path)
    assert ran.status == 2
    assert BAD[text] in ran.err
    assert ran.err.startswith(f"kctl: {path}")


@pytest.mark.slow
@given(st.text(max_size=80))
def test_any_text_is_a_scenario_or_refused(text: str) -> None:
    try:
        scenario = parse_scenario("mine", text)
    except BadValue:
        return
    assert all(step.do in STEPS for step in scenario.steps)


def test_a_scenario_that_is_not_there_names_those_that_are() -> None:
    ran = kctl("replica", "simulate", "nothing-like-it")
    assert ran.status == 3
    assert all(name in ran.err for name in built_in_names())


def test_every_built_in_scenario_plays_under_every_rule() -> None:
    for name in built_in_names():
        for version in ("0.8.1", "0.9", "0.11", "1.1", "2.0", "2.0.1", "2.8", "3.7"):
            assert list(play(read_scenario(name), rules_for(version)))


@pytest.mark.parametrize(
    ("text", "numbers"), [("2.8", (2, 8, 99)), ("0.10", (0, 10, 99, 99)), ("3", (3, 99, 99))]
)
def test_a_line_of_versions_stands_for_its_last_release(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_version(text) == numbers


@pytest.mark.parametrize("text", ["", "latest", "2.8-SNAPSHOT", "1.2.3.4.5"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(BadValue, match="not a Kafka version"):
        parse_version(text)
