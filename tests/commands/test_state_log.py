"""`kctl state-log` as scripts use it: rows, filters, exit status, Kafka's own format, the runbook."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from commands.cli.render import Page
from commands.state_log_chart import chart, explained
from tests.conftest import HERE, kctl, recording, recordings, rows

INCIDENTS = recordings("incidents")
RUNBOOK = HERE.parent / "docs" / "runbooks" / "who-led-when.md"
HEAD = re.compile(rb"(?m)^\[\d{4}-\d\d-\d\d ")


def logs_of(name: str) -> list[Path]:
    return sorted(recording(name).glob("broker-*/logs/state-change.log*"))


def content(paths: list[Path]) -> bytes:
    return b"".join(gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes() for p in paths)


@pytest.mark.slow
@pytest.mark.parametrize("name", INCIDENTS)
def test_every_record_comes_out_once_in_order_and_understood(name: str) -> None:
    logs = logs_of(name)
    ran = rows("state-log", "merge", *logs)
    events = ran.of("event")
    assert ran.status == 0, ran.err
    assert len(events) == len(HEAD.findall(content(logs)))
    assert [event["text"] for event in events if event["event"] is None] == []
    times = [event["time"] for event in events]
    assert times == sorted(times)
    assert " 0 unknown" in ran.err


@pytest.mark.parametrize("name", INCIDENTS)
def test_format_kafka_is_byte_for_byte_what_kafka_printed(name: str) -> None:
    ran = kctl("state-log", "merge", "--format", "kafka", *logs_of(name))
    assert ran.out == (recording(name) / "expected" / "merger-0.8.2.txt").read_bytes()


def test_format_kafka_has_the_options_of_kafkas_tool() -> None:
    folder = recording("incidents/unclean-0.10.2")
    whole = kctl(
        "state-log", "merge", "--format", "kafka", *logs_of("incidents/unclean-0.10.2")
    ).out.splitlines()
    pattern = f"{folder}/broker-3/logs/state-change"
    ran = kctl(
        "state-log", "merge", "--format", "kafka", "--logs-regex", pattern, "--topic", "ledger", "--partitions", "1",
        "--start-time", "2026-11-21 13:12:50,000", "--end-time", "2026-11-21 13:12:55,190",
    )  # fmt: skip
    got = ran.out.splitlines()
    assert got
    assert all(b"[ledger,1]" in line and line in whole for line in got)
    assert kctl("state-log", "merge", "--format", "kafka", "--start-time", "x", pattern + ".log").status == 2
    assert kctl("state-log", "merge", "--format", "kafka", "--partitions", "1", pattern + ".log").status == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["incidents/life-0.8.2", "incidents/life-1.1", "incidents/life-3.9"])
def test_a_topic_is_found_in_every_spelling(name: str) -> None:
    logs = logs_of(name)
    named = re.compile(rb"(?<![\w.-])orders(-\d+|,\d+\]|', partitionIndex=)")
    lines = content(logs).split(b"\n")
    wanted = sum(1 for line in lines if HEAD.match(line) and named.search(line))
    events = rows("state-log", "merge", "--topic", "orders", *logs).of("event")
    # And those that name it in a stack trace, as a replica, or by the id that some line gave it.
    assert len(events) >= wanted > 100
    assert all(re.search(r"(?<![\w.-])orders(?![\w.])|topicId=", event["text"]) for event in events)
    some = rows("state-log", "merge", "--topic", "orders", "--partitions", "0,4-5", *logs).of("event")
    said = {event["fields"].get("partition") for event in some if event["fields"].get("topic") == "orders"}
    assert said == {0, 4, 5}
    assert 0 < len(some) < len(events)


@pytest.mark.slow
def test_filters_by_time_level_template_and_expression() -> None:
    folder = recording("incidents/unclean-2.8")
    one = rows("state-log", "merge", folder, "--event", "C15", "--topic", "ledger", "--partition", "0").of(
        "event"
    )
    assert [event["fields"]["leader_and_isr"]["leader"] for event in one] == [1, 2]
    time = one[1]["time"]
    at = rows("state-log", "merge", folder, "--from", time, "--to", time, "--broker", "3").of("event")
    assert one[1] in at
    assert {(event["time"], event["broker_id"]) for event in at} == {(time, 3)}
    wrong = rows("state-log", "merge", folder, "--level", "ERROR", "--grep", "ledger-1").of("event")
    assert wrong
    assert all(event["level"] == "ERROR" and "ledger-1" in event["text"] for event in wrong)


def test_lines_as_they_are_and_lines_with_marks() -> None:
    logs = logs_of("incidents/unclean-3.9")
    plain = kctl("state-log", "merge", "--format", "lines", *logs)
    assert sorted(plain.out.splitlines()) == sorted(content(logs).splitlines())
    marked = kctl("state-log", "merge", *logs).out.splitlines()
    assert [line.split(b"\t", 2)[2] for line in marked] == plain.out.splitlines()
    assert {line.split(b"\t")[0] for line in marked} == {b"1", b"2", b"3"}
    colored = kctl("state-log", "merge", "--color", "always", *logs).out
    assert b"\x1b[31;1m" in colored


@pytest.mark.slow
def test_a_merge_reads_what_a_merge_printed() -> None:
    folder = recording("incidents/unclean-2.8")
    merged = kctl("state-log", "merge", "--format", "lines", "--time-zone", "UTC", folder).out
    again = rows("state-log", "timeline", "-", stdin=merged).of("leader")
    first = rows("state-log", "timeline", folder).of("leader")
    keys = ("topic", "partition", "leader", "leader_epoch", "isr", "how", "from_time")
    assert [[row[key] for key in keys] for row in again] == [[row[key] for key in keys] for row in first]


def test_skew_is_told_and_mended() -> None:
    logs = logs_of("incidents/zones-2.8")
    ran = rows("state-log", "merge", "--time-zone", "UTC", "--fix-skew", *logs)
    assert "clock of broker 1 is about 32400000 ms behind that of broker 2" in ran.err
    straight = rows("state-log", "merge", *logs).of("event")
    assert [(e["file"], e["line"]) for e in ran.of("event")] == [(e["file"], e["line"]) for e in straight]


# --- timeline ---------------------------------------------------------------------------------------------


def test_the_timeline_of_an_unclean_election(evidence: Any) -> None:
    ran = rows(
        "state-log", "timeline", evidence("incidents/unclean-2.8"), "--topic", "ledger", "--partition", "0"
    )
    leaders = ran.of("leader")
    assert ran.status == 5
    assert [(row["leader_epoch"], row["leader"], row["isr"], row["how"]) for row in leaders] == [
        (0, 1, [1, 2], "creation"),
        (1, 1, [1], "isr_change"),
        (2, -1, [1], "none"),
        (3, 2, [2], "unclean"),
        (4, 2, [2], "isr_change"),
    ]
    assert leaders[3]["evidence"][0]["file"] == "broker-3/logs/state-change.log"
    assert ran.codes() == ["unclean-leader-election"]
    assert [row["broker_id"] for row in ran.of("controller_term")] == [3, 2]
    killed = [(row["broker_id"], row["state"]) for row in ran.of("broker_state") if row["state"] == "killed"]
    assert killed == [(2, "killed"), (1, "killed")]


@pytest.mark.slow
def test_a_paused_cluster_shows_small_isrs_and_stale_requests() -> None:
    ran = rows("state-log", "timeline", recording("incidents/pauses-2.8"))
    assert set(ran.codes()) == {"isr-below-minimum", "stale-controller-request", "zombie-leader-write"}
    stale = [row for row in ran.of("controller_term") if row["rejections"]]
    assert [(row["controller_epoch"], row["ended"]) for row in stale] == [
        (1, "replaced; it resigned only later")
    ]
    healthy = rows("state-log", "timeline", recording("incidents/live-2.8"))
    assert (healthy.status, healthy.codes()) == (0, [])


def test_logs_without_trace_lines_still_tell_who_led(tmp_path: Path) -> None:
    """What 2.6 and later ship: INFO."""
    name = "incidents/life-3.9"
    for path in logs_of(name):
        lines = content([path]).splitlines(keepends=True)
        copy = tmp_path / path.parent.parent.name / path.name.removesuffix(".gz")
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(b"".join(line for line in lines if b"] TRACE " not in line))
    keys = ("topic", "partition", "leader", "leader_epoch")
    full = rows("state-log", "timeline", *logs_of(name)).of("leader")
    ran = rows("state-log", "timeline", tmp_path)
    less = ran.of("leader")
    assert ran.codes() == ["log-level-hides-transitions"] * 3
    assert ran.status == 3  # how each leadership began is not told
    assert [[row[key] for key in keys] for row in less] == [[row[key] for key in keys] for row in full]


def test_missing_epochs_are_named(tmp_path: Path) -> None:
    text = (
        "[2026-11-21 13:00:00,000] INFO [Controller id=1 epoch=4] Changed partition t-0 from OnlinePartition to"
        " OnlinePartition with state LeaderAndIsr(leader=1, leaderEpoch={}, isr=List(1, 2), zkVersion={})"
        " (state.change.logger)\n"
    )
    path = tmp_path / "state-change.log"
    path.write_text(text.format(3, 9) + text.format(6, 12))
    ran = rows("state-log", "timeline", path)
    assert [(row["leader_epoch"], row["leader"], row["how"]) for row in ran.of("leader")] == [
        (3, 1, "unknown"), (4, None, "unknown"), (5, None, "unknown"), (6, 1, "unknown"),
    ]  # fmt: skip
    shown = "\n".join(chart(ran.rows, Page(100, color=False)))
    assert "epochs 4, 5 are not in these logs" in shown


@pytest.mark.slow
def test_a_topic_made_again_has_its_own_epochs() -> None:
    ran = rows("state-log", "timeline", recording("incidents/life-2.8"))
    scratch = [row for row in ran.of("leader") if row["topic"] == "scratch"]
    assert scratch
    assert all(row["to_time"] for row in scratch)


def test_the_chart_is_readable_without_colour() -> None:
    ran = rows(
        "state-log", "timeline", recording("incidents/unclean-2.8"), "--topic", "ledger", "--partition", "0"
    )
    lines = list(chart(ran.rows, Page(100, color=False)))
    assert re.match(r"ledger-0 +\d\d:\d\d:\d\d", lines[0])
    assert re.match(r"  leader +1+-+!2+$", lines[1])
    assert re.match(r"  epoch +0 +1 +2 +3 +4$", lines[2])
    assert any("UNCLEAN" in line and "state-change.log:176" in line for line in lines)


@pytest.mark.parametrize(("width", "is_column"), [(80, False), (200, True)])
def test_where_a_leadership_is_read_from_is_a_column_where_the_page_is_wide(
    width: int, is_column: bool
) -> None:
    ran = rows(
        "state-log", "timeline", recording("incidents/unclean-2.8"), "--topic", "ledger", "--partition", "0"
    )
    lines = chart(ran.rows, Page(width, color=False))
    words = [line for line in lines if " ISR " in line and line.startswith("  1")]
    places = {found.start() for line in words if (found := re.search(r"  \S+/state-change\.log:\d+$", line))}
    assert len(words) == 5
    assert (len(places) == 1) is is_column


KRAFT = """\
[2026-11-21 13:00:00,100] INFO [RaftManager id=3000] Completed transition to Leader(localId=3000, epoch=7) from CandidateState (org.apache.kafka.raft.QuorumState)
[2026-11-21 13:00:00,150] INFO [QuorumController id=3000] Becoming the active controller at epoch 7, next write offset 99. (org.apache.kafka.controller.QuorumController)
[2026-11-21 13:00:01,000] INFO [QuorumController id=3000] Replayed PartitionRecord for new partition t-0 with topic ID AAAAAAAAAAAAAAAAAAAAAA and PartitionRegistration(replicas=[1, 2], directories=[AAAAAAAAAAAAAAAAAAAAAA, AAAAAAAAAAAAAAAAAAAAAA], isr=[1, 2], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0). (org.apache.kafka.controller.ReplicationControlManager)
[2026-11-21 13:00:05,000] INFO [QuorumController id=3000] Fencing broker 1 because its session has timed out. (org.apache.kafka.controller.ReplicationControlManager)
[2026-11-21 13:00:20,000] INFO [QuorumController id=3000] UNCLEAN partition change for t-0 with topic ID AAAAAAAAAAAAAAAAAAAAAA: isr: [2] -> [3], leader: -1 -> 3, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 2 -> 3, partitionEpoch: 4 -> 5 (org.apache.kafka.controller.ReplicationControlManager)
[2026-11-21 13:00:30,000] WARN [QuorumController id=3000] Renouncing the leadership due to a metadata log event. We were the leader at epoch 7, but in the new epoch 8, the leader is 3001. Reverting to last stable offset 120. (org.apache.kafka.controller.QuorumController)
"""
KRAFT_BROKERS = {
    1: "[2026-11-21 13:00:01,010] INFO [Broker id=1] Leader t-0 with topic id Some(AAAAAAAAAAAAAAAAAAAAAA) starts at leader epoch 0 from offset 0 with partition epoch 0, high watermark 0, ISR [1,2], adding replicas [] and removing replicas [] . Previous leader None and previous leader epoch was -1. (state.change.logger)\n",
    2: "[2026-11-21 13:00:01,012] INFO [Broker id=2] Follower t-0 starts at leader epoch 0 from offset 0 with partition epoch 0 and high watermark 0. Current leader is 1. Previous leader Some(1) and previous leader epoch was 0. (state.change.logger)\n"
    "[2026-11-21 13:00:05,020] INFO [Broker id=2] Leader t-0 with topic id Some(AAAAAAAAAAAAAAAAAAAAAA) starts at leader epoch 1 from offset 10 with partition epoch 1, high watermark 9, ISR [2], adding replicas [] and removing replicas [] (under-min-isr). Previous leader Some(1) and previous leader epoch was 0. (state.change.logger)\n",
}


def test_kraft_clusters_have_a_timeline_too(tmp_path: Path) -> None:
    (tmp_path / "controller-3000").mkdir()
    (tmp_path / "controller-3000" / "controller.log").write_text(KRAFT)
    for broker, text in KRAFT_BROKERS.items():
        (tmp_path / f"broker-{broker}").mkdir()
        (tmp_path / f"broker-{broker}" / "state-change.log").write_text(text)
    ran = rows("state-log", "timeline", tmp_path)
    assert [(row["leader_epoch"], row["leader"], row["isr"], row["how"]) for row in ran.of("leader")] == [
        (0, 1, [1, 2], "creation"),
        (1, 2, [2], "failure"),
        (2, None, None, "unknown"),
        (3, 3, [3], "unclean"),
        (7, 3000, None, "unknown"),  # of the metadata quorum
    ]
    assert [(t["broker_id"], t["controller_epoch"], t["ended"]) for t in ran.of("controller_term")] == [
        (3000, 7, "resigned")
    ]
    assert "unclean-leader-election" in ran.codes("error")
    assert (1, "fenced") in [(row["broker_id"], row["state"]) for row in ran.of("broker_state")]
    by_id = rows("state-log", "merge", tmp_path, "--topic", "t", "--partitions", "0").of("event")
    assert {event["event"] for event in by_id} == {"Q04", "Q05", "L03", "L04"}


def test_a_cut_below_the_high_watermark_is_a_finding(tmp_path: Path) -> None:
    log = tmp_path / "broker-2" / "server.log"
    log.parent.mkdir()
    log.write_text(
        "[2026-11-21 13:00:00,000] WARN [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Truncating t-0 to offset"
        " 40 below high watermark 70 (kafka.server.ReplicaFetcherThread)\n" * 2
    )
    ran = rows("state-log", "timeline", tmp_path)
    assert (ran.status, ran.codes("warning")) == (5, ["truncated-below-high-watermark"])
    assert "offset 40, below its high watermark 70" in ran.of("finding")[-1]["message"]


# --- explain ----------------------------------------------------------------------------------------------


def test_explain_a_line_of_a_file_and_a_sentence() -> None:
    path = recording("incidents/unclean-2.8") / "broker-3" / "logs" / "state-change.log"
    (row,) = rows("state-log", "explain", f"{path}:176").rows
    assert (row["event"], row["fields"]["leader_and_isr"]["leader"]) == ("C15", 2)
    assert "C13" in [one["event"] for one in row["before"]]
    text = path.read_text().splitlines()[175]
    (same,) = rows("state-log", "explain", text).rows
    assert {**same, "file": row["file"], "line": row["line"]} == row
    (bare,) = rows(
        "state-log",
        "explain",
        "No broker in ISR is alive for [t,0]. Elect leader 2 from live brokers 2. There's potential data loss.",
    ).rows
    assert (bare["event"], bare["fields"]["leader"]) == ("E14", 2)
    assert "unclean" in bare["sign"]
    said = "\n".join(explained([bare], Page(100, color=False)))
    assert "printed by Kafka 0.8.1–1.0" in said
    unknown = rows("state-log", "explain", "nothing that Kafka prints")
    assert (unknown.status, unknown.rows[0]["event"]) == (5, None)
    assert kctl("state-log", "explain", f"{path}:9999999").status == 2
    assert kctl("state-log", "explain", "/none/such.log:1").status == 3


# --- exit status ------------------------------------------------------------------------------------------


def test_what_cannot_be_opened_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    log = logs_of("incidents/unclean-2.8")[0]
    ran = rows("state-log", "merge", log, tmp_path / "none")
    assert (ran.status, len(ran.of("event"))) == (3, 88)
    assert "none: no such file" in ran.err
    torn = tmp_path / "broker-1" / "state-change.log.1.gz"
    torn.parent.mkdir()
    packed = gzip.compress(log.read_bytes())
    torn.write_bytes(packed[: len(packed) // 2])
    ran = rows("state-log", "merge", tmp_path)
    assert (ran.status, ran.codes()) == (5, ["log-compression-damaged"])
    assert ran.of("event")
    plain = kctl("state-log", "merge", tmp_path)
    assert plain.status == 5
    assert "damaged after" in plain.err


@pytest.mark.parametrize(
    "arguments",
    ["merge", "merge --partitions 0 x", "merge --topic t --partitions a x", "merge --from soon x", "merge --event Z99 x",
     "merge --grep ( x", "merge --time-zone 1=Mars/X x", "merge --pattern %q x", "merge --logs-regex a/b x",
     "timeline", "timeline --broker x x", "merge --fix-skew -"],
)  # fmt: skip
def test_wrong_usage(arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_bytes(logs_of("incidents/unclean-2.8")[0].read_bytes())
    ran = kctl("state-log", *shlex.split(arguments))
    assert ran.status == 2, (ran.err, ran.out[:300])
    assert len(ran.errors) == 1


@pytest.mark.slow
def test_the_runbook_runs_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE.parent)
    monkeypatch.setenv("COLUMNS", "100")
    blocks = re.findall(r"```sh\n(.*?)```", RUNBOOK.read_text(encoding="utf-8"), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("kctl ")]
    assert len(commands) >= 6
    for line in commands:
        spoken, _, comment = line.partition("#")
        status = re.match(r"\s*exit (\d+)", comment)
        ran = kctl(*shlex.split(spoken.replace("$EVIDENCE", "examples/unclean-election"))[1:])
        assert ran.status == int(status[1] if status else 0), (line, ran.err)
        assert ran.out, line


def test_rows_are_json_whatever_the_log_holds(tmp_path: Path) -> None:
    path = tmp_path / "broker-1" / "server.log"
    path.parent.mkdir()
    path.write_bytes(b"[2026-11-21 13:00:00,000] INFO \xff\x00\x1b[31m \xed\xa0\x80 (kafka.X)\n\xfe more\n")
    ran = kctl("state-log", "merge", tmp_path, "--output", "jsonl")
    (row,) = [json.loads(line) for line in ran.out.splitlines()]
    assert row["text"] == "\\xff\x00\x1b[31m \\xed\\xa0\\x80\n\\xfe more"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"), [("life-3.9", 16), ("life-2.8", 7), ("life-1.1", 9), ("life-0.8.2", 3)]
)
def test_a_broker_that_stops_hands_over_by_its_own_words(name: str, expected: int, tmp_path: Path) -> None:
    """It is gone a moment later, which controllers print too; and their logs may not be here at all."""
    folder = tmp_path / "logs"
    for log in recording(f"incidents/{name}").glob("broker-*/logs/*"):
        if not log.name.startswith("controller"):
            kept = folder / log.parent.parent.name / log.name
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(log.read_bytes())
    whole = rows("state-log", "timeline", *recording(f"incidents/{name}").glob("broker-*/logs"))
    for ran in (whole, rows("state-log", "timeline", folder)):
        assert sum(row["how"] == "controlled_shutdown" for row in ran.of("leader")) == expected


@pytest.mark.parametrize("command", ["merge", "timeline"])
def test_numbers_of_thousands_of_digits_are_text(command: str, tmp_path: Path) -> None:
    many = "9" * 5000
    lines = [
        f"INFO [Broker id={many}] Add 3 partitions (state.change.logger)",
        f"TRACE [Controller id=1 epoch={many}] Changed partition orders-{many} state from NewPartition to OnlinePartition"
        f" with state LeaderAndIsr(leader=1, leaderEpoch={many}, isr=List({many}), partitionEpoch=0) (state.change.logger)",
        f"INFO [Partition orders-{many} broker={many}] ISR updated to {many} and version updated to {many}"
        " (kafka.cluster.Partition)",
        f"INFO [KafkaServer id={many}] started (kafka.server.KafkaServer)",
    ]
    log = tmp_path / "server.log"
    log.write_text("".join(f"[2026-11-21 13:18:27,173] {line}\n" for line in lines))
    ran = rows("state-log", command, log)
    assert ran.status in (0, 3), ran.err
    assert len(ran.of("event")) == (len(lines) if command == "merge" else 0)
