"""The judge itself: every kind of wrong statement is caught, and right ones are not."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from kctl.times import iso
from tests.nemesis.judge_copies import judge_damage, judge_divergence, judge_torn
from tests.nemesis.judge_history import judge_cause, judge_leaders, judge_lines, judge_lives, judge_strength
from tests.nemesis.judge_loss import judge_loss
from tests.nemesis.judge_tier import RemoteLogs, judge_tier
from tests.nemesis.statements import Copies, Statement
from tests.nemesis.story import Fault, Fencing, Moment, Sent, State, Story
from tests.nemesis.truth import (
    CONTROL,
    Stored,
    cuts_of,
    kraft_fencings,
    kraft_history,
    stored,
    zookeeper_history,
)

PARTITION = {"topic": "ledger", "partition": 0}
KEPT = {"ledger-0": {o: Stored(o, b"k", b"new" if o >= 8 else f"{o}".encode()) for o in range(10)}}


def made() -> Story:
    """Records 0 to 9 were acknowledged; 8 and 9 are others now. Broker 2 was killed, torn and started again."""
    story = Story(1, "3.9", "zookeeper")
    story.sent = [Sent(0, "ledger-0", str(o), "all", o) for o in range(10)]
    story.held = {"ledger-0": {o: {str(o): {1, 2}} for o in range(10)}}
    story.held["ledger-0"][8]["new"] = story.held["ledger-0"][9]["new"] = {1}
    story.history = {
        "ledger-0": [State(0, 0, 2, [2, 1]), State(60_500, 1, -1, [2]), State(61_000, 2, 1, [1], True)]
    }
    for state in story.history["ledger-0"]:
        state.controller_epoch, state.topic_id = 7, "T"
    torn = {"partition": "ledger-0", "file": "0.log", "size": 9, "is_torn": True}
    story.faults = [
        Fault(0, "start", 2),
        Fault(60_000, "kill", 2),
        Fault(60_010, "power-loss", 2, torn),
        Fault(70_000, "start", 2),
        Fault(130_000, "stopped", 2),
    ]
    story.moments = [Moment("cut", 61_000, [1], 62_000), Moment("after", 140_000, [1], 141_000)]
    return story


def loss(start: int, end: int | None, kind: str = "committed") -> dict[str, Any]:
    return {"kind": "loss", **PARTITION, "from_offset": start, "to_offset": end, "class": kind}


def sound(verdict: str) -> dict[str, Any]:
    return {"kind": "judgement", "question": "loss", **PARTITION, "verdict": verdict}


def wrong(statements: list[Statement]) -> str:
    return "\n".join(statement.text for statement in statements if not statement.is_right)


@pytest.mark.parametrize(
    ("said", "caught"),
    [
        ([loss(8, 10), sound("lost")], ""),
        ([loss(8, None), sound("lost")], ""),
        ([loss(8, 9)], "[9, 10) are lost, a copy holds them"),
        ([sound("sound")], "called sound, and [8, 10) are lost"),
        ([loss(8, 10, "uncommitted")], "[8, 10) were acknowledged with acks=all"),
        ([loss(6, 10)], "[6, 8) are claimed"),
    ],
)
def test_losses(said: list[dict[str, Any]], caught: str) -> None:
    found = wrong(judge_loss(made(), said, KEPT, lambda *_: True))
    assert caught in found if caught else not found


def test_what_no_copy_holds_is_not_demanded_but_not_sound_either() -> None:
    story = made()
    assert not wrong(judge_loss(story, [], KEPT, lambda *_: False))
    assert "called sound" in wrong(judge_loss(story, [sound("sound")], KEPT, lambda *_: False))
    story.faults += [Fault(61_000, "wipe", 1), Fault(61_000, "wipe", 2)]
    assert not wrong(judge_loss(story, [sound("sound")], KEPT, lambda *_: False)), "nothing tells of it"


def test_what_only_a_leader_had_may_be_gone_from_a_sound_partition() -> None:
    story = made()
    story.sent = [Sent(0, "ledger-0", s.value, "1", s.offset) for s in story.sent]
    said = [sound("sound"), loss(8, 10, "uncommitted")]
    assert not wrong(judge_loss(story, said, KEPT, lambda *_: True))
    said[1] = loss(8, 10)
    assert "called sound" in wrong(judge_loss(story, said, KEPT, lambda *_: True))


def test_what_a_leader_deleted_from_its_tier_is_not_demanded() -> None:
    found = [loss(9, 10)]
    assert "[8, 9) are lost" in wrong(judge_loss(made(), found, KEPT, lambda *_: True))
    assert not wrong(judge_loss(made(), found, KEPT, lambda *_: True, {"ledger-0": 9}))


def test_what_is_lost_beside_the_total_makes_it_the_least() -> None:
    """No copy has offset 9, but brokers had it whose disks nobody touched."""
    story = made()
    judged = lambda row: wrong(judge_loss(story, [row], KEPT, lambda _, offset, __: offset < 9))  # noqa: E731
    assert "[9, 10) are lost beside what is told" in judged(loss(8, 9))
    assert not judged({**loss(8, 9), "is_at_least": True})


def test_what_compaction_took_is_not_lost() -> None:
    story = made()
    kept = {"ledger-0": {o: r for o, r in KEPT["ledger-0"].items() if o != 3}}
    assert "[3, 4) are lost" in wrong(judge_loss(story, [loss(8, 10)], kept, lambda *_: True))
    story.compacted = ["ledger"]
    assert not wrong(judge_loss(story, [loss(8, 10)], kept, lambda *_: True))


def finding(broker: int, moment: str, file: str = "broker-2/data/ledger-0/0.log") -> dict[str, Any]:
    row = {"kind": "finding", **PARTITION, "broker_id": broker, "moment": moment, "severity": "error"}
    return {**row, "code": "log-truncated", "file": file, "message": "…"}


def test_damage_is_where_bytes_were_touched() -> None:
    story = made()
    assert not wrong(judge_damage(story, [finding(2, "cut")], "verify"))
    assert "nobody touched it" in wrong(judge_damage(story, [finding(1, "cut")], "verify"))
    story.moments[0].done = 1000
    assert "nobody touched it" in wrong(judge_damage(story, [finding(2, "cut")], "verify"))


def test_an_unclean_leader_cuts_followers_below_their_high_watermark() -> None:
    row = {**finding(1, "cut"), "code": "high-watermark-above-log-end"}
    assert not wrong(judge_damage(made(), [row], "verify"))
    story = made()
    story.history = {"ledger-0": [State(0, 0, 2, [2, 1])]}
    assert "nobody touched it" in wrong(judge_damage(story, [row], "verify"))


def test_a_cut_within_a_batch_leaves_a_hole() -> None:
    """The follower was told to begin at the leader's end (1.1, seeds 913 and 922)."""
    row = {**finding(1, "cut"), "code": "segment-missing", "message": "Offsets [36, 40) are in no segment."}
    assert not wrong(judge_damage(made(), [row], "verify", {(1, "ledger-0", 40)}))
    assert "nobody touched it" in wrong(judge_damage(made(), [row], "verify", {(1, "ledger-0", 41)}))
    assert "nobody touched it" in wrong(judge_damage(made(), [row], "verify", {(2, "ledger-0", 40)}))


def test_a_cleaner_of_old_keeps_its_point_when_a_log_is_cut() -> None:
    """The log is empty then, if all below the cut was cleaned away (0.9, seed 920)."""
    message = "The cleaner's point is 328, the log of ledger-0 ends at 0."
    row = {**finding(1, "cut"), "code": "cleaner-point-above-log-end", "message": message}
    assert not wrong(judge_damage(made(), [row], "verify", {(1, "ledger-0", 265)}))
    assert "nobody touched it" in wrong(judge_damage(made(), [row], "verify", {(1, "ledger-0", 328)}))
    assert "nobody touched it" in wrong(judge_damage(made(), [row], "verify", {(2, "ledger-0", 265)}))


def test_what_a_broker_says_it_cut(tmp_path: Path) -> None:
    """As 1.1 prints it, and as 0.9 does."""
    (tmp_path / "server.log").write_text(
        "[x] INFO [Log partition=ledger-0, dir=/data] Truncating to offset 40 (kafka.log.Log)\n"
        "[x] INFO [Log partition=ledger-0, dir=/data] Truncating to 41 has no effect (kafka.log.Log)\n"
        "[x] INFO Truncating log clicks-1 to offset 7. (kafka.log.Log)\n"
    )
    assert cuts_of(tmp_path) == {("ledger-0", 40), ("clicks-1", 7)}


def test_a_compacted_log_that_was_cut_lacks_what_was_cleaned_before() -> None:
    """The newer records of its keys went with the unclean election, the older ones with the cleaner (4.1, seed 52)."""
    row = {**finding(1, "cut"), "code": "recovery-point-above-log-end"}
    story = made()
    assert "nobody touched it" in wrong(judge_damage(story, [row], "verify"))
    story.compacted = ["ledger"]
    assert not wrong(judge_damage(story, [row], "verify"))
    story.history = {"ledger-0": [State(0, 0, 2, [2, 1])]}
    assert "nobody touched it" in wrong(judge_damage(story, [row], "verify"))


def test_torn_segments_are_named() -> None:
    assert len(judge_torn(made(), [])) == 1, "the copy at the end is of a broker that has recovered"
    assert "was torn" in wrong(judge_torn(made(), [finding(2, "after"), finding(1, "cut")]))
    assert not wrong(judge_torn(made(), [finding(2, "cut")]))


def batch(offset: int, value: bytes) -> bytes:
    """A message of magic 0, whose CRC the judge does not ask for."""
    body = struct.pack(">IbbiI", 0, 0, 0, -1, len(value)) + value
    return struct.pack(">qi", offset, len(body)) + body


def test_divergence_is_what_the_bytes_say(tmp_path: Path) -> None:
    for id, values in ((1, b"abcd"), (2, b"abxy")):
        folder = tmp_path / "moments" / "after" / f"broker-{id}" / "data" / "ledger-0"
        folder.mkdir(parents=True)
        log = b"".join(batch(offset, bytes([value])) for offset, value in enumerate(values))
        (folder / "0.log").write_bytes(log)
    row = {
        "kind": "divergence", **PARTITION, "broker_ids": [1, 2], "from_offset": 2, "to_offset": 4,
        "epochs": [[], []], "moments": None,
    }  # fmt: skip
    judged = lambda said: wrong(judge_divergence(made(), said, "after", Copies(tmp_path)))  # noqa: E731
    assert not judged([row])
    assert "the bytes [2, 4)" in judged([])
    assert "says [3, 4)" in judged([{**row, "from_offset": 3}])
    assert "says epochs [[1], []]" in judged([{**row, "epochs": [[1], []]}])


def leader(epoch: int, leader: int, isr: list[int], how: str, **keys: Any) -> dict[str, Any]:
    row = {"kind": "leader", **PARTITION, "leader_epoch": epoch, "leader": leader, "isr": isr, "how": how}
    began = iso((0, 60_500, 61_000, 70_000)[epoch])
    rest = {
        "incarnation": 1,
        "cause": None,
        "from_time": began,
        "began_before": False,
        "isr_changes": [],
        "strength": None if how == "unknown" else "sure",
        "to_time": iso((0, 60_500, 61_000, 70_000)[epoch + 1]) if epoch < 2 else None,
        "controller_epoch": 7,
        "topic_id": "T",
        "cluster": 1,
        "clock_offset_ms": None,
        "evidence": [{"file": "server.log", "line": 1, "broker_id": 1, "text": "…"}],
    }
    return {**row, **rest, **keys}


CHANGE = {"isr": [1], "time": iso(100)}
RIGHT = [leader(0, 2, [1, 2], "creation"), leader(1, -1, [2], "none"), leader(2, 1, [1], "unclean")]


@pytest.mark.parametrize(
    ("said", "caught"),
    [
        (RIGHT, ""),
        (RIGHT[:2], "epochs [2] are missing"),
        ([*RIGHT, leader(3, 1, [1], "failure")], "epoch 3 never was"),
        ([leader(0, 1, [1, 2], "creation"), *RIGHT[1:]], "says leader 1, it was 2"),
        ([leader(0, 2, [2], "creation"), *RIGHT[1:]], "says ISR [2]"),
        ([*RIGHT[:2], leader(2, 1, [1], "failure")], "says failure (None), it may be ['unclean', 'unknown']"),
        (
            [leader(0, 2, [1, 2], "unclean"), *RIGHT[1:]],
            "says unclean (None), it may be ['creation', 'unknown']",
        ),
        ([leader(0, 2, [1, 2], "failure"), *RIGHT[1:]], "it may be ['creation', 'unknown']"),
        ([leader(0, 2, [1, 2], "creation", from_time=iso(9_000)), *RIGHT[1:]], "9.0 s off"),
        ([leader(0, 2, [1, 2], "creation", isr_changes=[CHANGE]), *RIGHT[1:]], "says ISRs"),
    ],
)
def test_leaders(said: list[dict[str, Any]], caught: str) -> None:
    found = wrong(judge_leaders(made(), said))
    assert caught in found if caught else not found


def test_times_are_as_right_as_the_difference_of_clocks() -> None:
    story = made()
    rows = [*RIGHT[:2], leader(2, 1, [1], "unclean", from_time=iso(58_500))]
    assert "-2.5 s off" in wrong(judge_leaders(story, rows))
    story.skew = {3: 420}
    assert "s off" not in wrong(judge_leaders(story, rows))


def test_of_a_topic_that_is_being_deleted_nobody_need_tell() -> None:
    story = made()
    story.before = {"ledger-0": [[State(0, 0, 2, [2, 1]), State(60_500, 1, -1, [2])]]}
    rows = [{**row, "incarnation": 2} for row in RIGHT] + [leader(0, 2, [1, 2], "creation", to_time=None)]
    assert "epochs [1] are missing" in wrong(judge_leaders(story, rows))
    story.faults.append(Fault(60_400, "delete", None, {"topic": "ledger"}))
    assert not wrong(judge_leaders(story, rows))


def test_a_cause_needs_what_was_done() -> None:
    """Broker 2 was killed at 60 s and was never told to stop before that."""
    story = made()
    story.history["ledger-0"][1] = State(60_500, 1, 1, [1])
    for how, caught in (
        ("failure", ""),
        ("controlled_shutdown", "nobody did that to it"),
        ("preferred", "it may be"),
    ):
        found = wrong(judge_leaders(story, [RIGHT[0], leader(1, 1, [1], how), RIGHT[2]]))
        assert caught in found if caught else not found


@pytest.mark.parametrize(("time", "is_right"), [(61_000, True), (75_000, False)])
def test_a_broker_that_is_unfenced_has_not_failed_any_more(time: float, is_right: bool) -> None:
    """Broker 2 was killed at 60 s."""
    story = made()
    state, row = State(time, 3, 1, [1]), leader(1, 1, [1], "failure", cause="broker 2 failed")
    assert not wrong(judge_cause(story, row, state, None, "timeline ledger-0 epoch 3"))
    story.mode, story.fencings = "kraft", [Fencing(60_500, 2, True), Fencing(71_000, 2, False)]
    found = wrong(judge_cause(story, row, state, None, "timeline ledger-0 epoch 3"))
    assert not found if is_right else "nobody did that" in found


def test_a_process_that_was_paused_from_the_start_need_not_say_that_it_starts() -> None:
    story = made()
    assert "was started at 70000" in wrong(judge_lives(story, [*LIFE[:2], LIFE[3]]))
    story.faults += [Fault(71_000, "pause", 2), Fault(129_000, "resume", 2)]
    assert "was started at 70000" not in wrong(judge_lives(story, [*LIFE[:2], LIFE[3]]))


def test_few_rows_are_only_likely() -> None:
    rows = [leader(0, 2, [1, 2], "creation")] * 99 + [leader(0, 2, [1, 2], "creation", strength="likely")]
    assert judge_strength(rows).is_right
    assert not judge_strength(rows[90:]).is_right


def test_a_line_that_is_named_says_what_is_told(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("one\n[x] INFO two (y)\n")
    proof = {"file": "server.log", "line": 2, "text": "two"}
    rows = [{"kind": "leader", "evidence": [proof, {"file": "log", "line": None, "text": "offset 2"}]}]
    assert not wrong(judge_lines(rows, tmp_path))
    proof["line"] = 1
    assert "server.log:1 says one, not {" in wrong(judge_lines(rows, tmp_path))


def state(state: str, time: int, until: int | None = None) -> dict[str, Any]:
    row = {"kind": "broker_state", "broker_id": 2, "state": state, "time": iso(time), "evidence": []}
    how = "no_shutdown" if state == "killed" else None
    rest = {"how": how, "cluster": 1, "topic_id": None, "clock_offset_ms": None}
    return {**row, **rest, "until_time": None if until is None else iso(until)}


LIFE = [
    state("starting", 400),
    state("killed", 59_800, 70_200),
    state("starting", 70_200),
    state("down", 129_900),
]


@pytest.mark.parametrize(
    ("said", "caught"),
    [
        (LIFE, ""),
        ([LIFE[0], *LIFE[2:]], "was killed at 60000"),
        (LIFE[1:], "was started at 0"),
        (LIFE[:3], "stopped at 130000"),
        ([*LIFE, state("killed", 100_000, 101_000)], "nobody did"),
        ([*LIFE, state("starting", 110_000)], "nobody started it"),
    ],
)
def test_lives(said: list[dict[str, Any]], caught: str) -> None:
    found = wrong(judge_lives(made(), said))
    assert caught in found if caught else not found


def test_the_states_of_zookeepers_log(tmp_path: Path) -> None:
    def entry(kind: int, body: bytes) -> bytes:
        data = struct.pack(">qiqqi", 1, 1, 1, 5000, kind) + body
        return struct.pack(">qi", 0, len(data)) + data + b"B"

    def written(leader: int, epoch: int, isr: str) -> bytes:
        path = b"/kafka/brokers/topics/ledger/partitions/0/state"
        data = f'{{"leader":{leader},"leader_epoch":{epoch},"isr":{isr}}}'.encode()
        return struct.pack(">i", len(path)) + path + struct.pack(">i", len(data)) + data

    again = written(1, 2, "[1]")
    multi = struct.pack(">iii", 1, 5, len(again)) + again
    (tmp_path / "version-2").mkdir()
    log = b"ZKLG" + bytes(12) + entry(1, written(2, 0, "[2,1]")) + entry(5, written(-1, 1, "[2]"))
    (tmp_path / "version-2" / "log.1").write_bytes(log + entry(14, multi) + bytes(100))
    assert zookeeper_history(tmp_path) == {
        "ledger-0": [[State(5000, 0, 2, [2, 1]), State(5000, 1, -1, [2]), State(5000, 2, 1, [1], True)]]
    }
    path = b"/kafka/brokers/topics/ledger/partitions/0/state"
    deleted = entry(2, struct.pack(">i", len(path)) + path) + entry(1, written(3, 0, "[3]"))
    (tmp_path / "version-2" / "log.9").write_bytes(b"ZKLG" + bytes(12) + deleted + bytes(100))
    assert [life[0].leader for life in zookeeper_history(tmp_path)["ledger-0"]] == [2, 3]


def test_the_states_of_a_metadata_log() -> None:
    lines = [
        "baseOffset: 1 lastOffset: 3 count: 2 baseSequence: -1 CreateTime: 5000 size: 90 magic: 2",
        '| offset: 1 CreateTime: 5000 payload: {"type":"TOPIC_RECORD","data":{"name":"ledger","topicId":"T"}}',
        '| offset: 2 CreateTime: 5000 payload: {"type":"PARTITION_RECORD","data":{"topicId":"T","partitionId":0,'
        '"leader":2,"isr":[2,1],"leaderEpoch":0}}',
        *(
            f'| offset: 3 CreateTime: 5000 payload: {{"type":"PARTITION_CHANGE_RECORD","data":{{"topicId":"T",'
            f'"partitionId":0,{change}}}}}'
            for change in (
                '"isr":[],"leader":-1,"eligibleLeaderReplicas":[2]',
                '"isr":[2],"leader":2,"eligibleLeaderReplicas":[]',
                '"isr":[1],"leader":1',
            )
        ),
    ]
    states = [(s.epoch, s.leader, s.isr, s.is_unclean) for s in kraft_history(lines)["ledger-0"][0]]
    assert states == [(0, 2, [2, 1], False), (1, -1, [], False), (2, 2, [2], False), (3, 1, [1], True)]


def test_when_brokers_are_fenced() -> None:
    records = (
        '"type":"REGISTER_BROKER_RECORD","data":{"brokerId":2,"fenced":true}',
        '"type":"BROKER_REGISTRATION_CHANGE_RECORD","data":{"brokerId":2,"fenced":-1}',
        '"type":"BROKER_REGISTRATION_CHANGE_RECORD","data":{"brokerId":2,"inControlledShutdown":1}',
        '"type":"FENCE_BROKER_RECORD","data":{"id":2}',
        '"type":"UNFENCE_BROKER_RECORD","data":{"id":2}',
    )
    lines = [
        f"{kind}: {5000 + number} {record}"
        for number, text in enumerate(records)
        for kind, record in (("baseOffset: 1 CreateTime", "size: 9"), ("| offset", f"payload: {{{text}}}"))
    ]
    assert kraft_fencings(lines, None) == [
        Fencing(5000, 2, True),
        Fencing(5001, 2, False),
        Fencing(5003, 2, True),
        Fencing(5004, 2, False),
    ]


def test_a_marker_takes_an_offset_too() -> None:
    body = struct.pack(">ibihiqqqhii", 0, 2, 0, CONTROL, 0, 90, 90, 7, 1, -1, 1)
    (marker,) = stored(struct.pack(">qi", 4, len(body)) + body)
    assert marker == Stored(4, None, b"marker of producer 7:1 at 90")


ID = "A" * 21 + "-"
SEGMENT = {
    "kind": "remote_segment", **PARTITION, "remote_log_segment_id": ID,
    "state": "COPY_SEGMENT_FINISHED", "start_offset": 0, "end_offset": 1,
}  # fmt: skip
ROW = {"kind": "tier_partition", **PARTITION, "log_start_offset": 0}
SOUND = {"kind": "judgement", "question": "tier", **PARTITION, "verdict": "sound"}
ABOUT = {
    "kind": "finding", **PARTITION, "remote_log_segment_id": ID, "severity": "error", "message": "…",
    "base_offset": 0, "last_offset": 1,
}  # fmt: skip
GAP = {**ABOUT, "code": "remote-gap"}
OUTSIDE = {**ABOUT, "code": "remote-segment-outside-lineage"}
MISSING = {**ABOUT, "code": "remote-object-missing"}


@pytest.mark.parametrize(
    ("served", "said", "caught"),
    [
        ("abc", [SEGMENT, ROW, SOUND], ""),
        ("abc", [ROW], "[0, 2) were served from the tier, and no segment holds them"),
        ("abc", [ROW], "lies in the tier, and nothing says so"),
        ("a-c", [SEGMENT, ROW, SOUND], "called sound, and nobody could read [1, 2)"),
        ("axc", [SEGMENT, ROW], "a consumer is served other records at [1, 2), and nothing says so"),
        ("axc", [SEGMENT, ROW, OUTSIDE], ""),
        ("abc", [SEGMENT, ROW, OUTSIDE], "nobody touched it"),
        ("a-c", [SEGMENT, ROW, GAP], ""),
        ("abc", [SEGMENT, ROW, GAP], "nobody touched it"),
        ("abc", [SEGMENT, ROW, MISSING], "nobody touched it"),
        ("abc", [{**SEGMENT, "remote_log_segment_id": "other"}, ROW], "other [0, 2) has no object"),
    ],
)
def test_the_tier(served: str, said: list[dict[str, Any]], caught: str, tmp_path: Path) -> None:
    """The tier holds a and b, the leader's own log begins at c."""
    story = made()
    story.served = {"ledger-0": {o: value for o, value in enumerate(served) if value != "-"}}
    folder = tmp_path / "kafka-tiered-storage" / ("ledger-0-" + "B" * 22)
    folder.mkdir(parents=True)
    (folder / f"{0:020}-{ID}.log").write_bytes(batch(0, b"a") + batch(1, b"b"))
    segments = [row for row in said if row["kind"] == "remote_segment"]
    found = wrong(judge_tier(story, said, segments, RemoteLogs(tmp_path), {"ledger-0": 2}))
    assert caught in found if caught else not found
