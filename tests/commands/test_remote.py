"""`kctl remote`: against what Kafka printed, what the recordings hold, and input that is not right."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commands.remote.rules import _keys
from formats.messages.remote_log_metadata import (
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
    write_remote_log_metadata,
)
from kctl.tier.metadata.partitioner import metadata_partition
from tests.conftest import kctl, recording, recordings, rows
from tests.kctl.remote.made import Tiered

CASES = [name for name in recordings("tier") if "f-damage" not in name]
TIP = TopicIdPartition("LWgrMmVrT0a__7a4SasuPA", "made", 0)
ID = "bCqX9U--S-6U8XUM9II25Q"
ADD = SegmentMetadata(
    TIP, ID, 0, 9, 1, 5, 1_795_270_000_000, ((0, 0),), 100, None, SegmentState.COPY_SEGMENT_STARTED
)
DONE = SegmentMetadataUpdate(TIP, ID, 1, 1_795_270_000_001, None, SegmentState.COPY_SEGMENT_FINISHED)


def truth(name: str, file: str) -> Any:
    return msgspec.json.decode((recording(name) / "truth" / file).read_bytes())


def lines(path: Path) -> list[str]:
    text = gzip.decompress(path.read_bytes()).decode()
    return [line for line in text.splitlines() if line.startswith("partition:")]


# --- format -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_format_prints_what_kafkas_formatter_printed(name: str) -> None:
    wanted = lines(recording(name) / "truth" / "formatter.txt.gz")
    ran = kctl("remote", "format", "--format", "kafka", recording(name) / "brokers")
    assert (ran.status, ran.err) == (0, "")
    found = ran.out.decode().splitlines()
    places = [(int(w[1][:-1]), int(w[3][:-1])) for w in (line.split() for line in found)]
    assert places == sorted(places), "by metadata partition, then offset"
    assert sorted(found) == sorted(wanted)


def test_format_rows_are_the_decoded_records_and_lie_where_partition_of_says() -> None:
    name = "tier/h-custom-metadata"
    partitions = truth(name.replace("truth", ""), "offsets.json") and 4
    text = gzip.decompress((recording(name) / "truth" / "metadata-records.jsonl.gz").read_bytes())
    wanted = {
        (row["md_partition"], row["md_offset"]): row["decoded"]
        for row in map(msgspec.json.decode, text.splitlines())
    }
    found = rows("remote", "format", recording(name) / "brokers").of("remote_log_metadata")
    assert len(found) == len(wanted)
    for row in found:
        said = wanted[row["metadata_partition"], row["metadata_offset"]]
        assert (row["topic_id"], row["partition"], row["state"]) == (
            said["topicId"],
            said["partition"],
            said["state"],
        )
        place = metadata_partition(row["topic_id"], row["partition"], partitions)
        assert row["metadata_partition"] == place


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "holds"),
    [
        (["--topic", "orders"], lambda r: r["topic"] == "orders"),
        (["--topic-id", "rBiTn_84SJG192D4NImGIQ", "--partition", 1], lambda r: (r["topic"], r["partition"]) == ("orders", 1)),
        (["--segment", "nrPYF97pRwOMG7rMi3ZJQA"], lambda r: r["remote_log_segment_id"] == "nrPYF97pRwOMG7rMi3ZJQA"),
        (["--broker", 2], lambda r: r["broker_id"] == 2),
        (["--state", "COPY_SEGMENT_STARTED"], lambda r: r["start_offset"] is not None),
        (["--from", "2026-11-21T13:21:00Z"], lambda r: r["event_timestamp"] >= 1795267260000),
        (["--until", "1795267260000"], lambda r: r["event_timestamp"] <= 1795267260000),
    ],
)  # fmt: skip
def test_format_filters(options: list[object], holds: Any) -> None:
    brokers = recording("tier/a-healthy") / "brokers"
    everything = rows("remote", "format", brokers).rows
    found = rows("remote", "format", brokers, *options).rows
    assert found and found == [row for row in everything if holds(row)] != everything
    printed = kctl("remote", "format", "--format", "kafka", brokers, *options).out.splitlines()
    assert len(printed) == len(found)


def test_format_kip_and_its_properties() -> None:
    brokers = recording("tier/a-healthy") / "brokers"
    options = ["--property", "print.partition=false", "--property", r"separator=\t"]
    first = kctl("remote", "format", "--format", "kip", brokers, *options).out.decode().splitlines()[0]
    assert first.startswith(
        "message-offset:0\ttype:RemoteLogSegmentMetadata\tversion:0\tevent-value:{remote-log-segment-id:{id:"
    )
    bad = kctl("remote", "format", "--format", "kip", brokers, "--property", "print.key=true")
    assert bad.status == 2 and "print.key=true" in bad.err


def test_format_of_one_segment_one_folder_and_of_lines_and_values_on_standard_input() -> None:
    folder = recording("tier/a-healthy") / "brokers" / "1" / "data" / "__remote_log_metadata-0"
    segment = min(folder.glob("*.log"))
    whole = kctl("remote", "format", "--format", "kafka", folder)
    assert whole.status == 0 and whole.out
    assert kctl("remote", "format", "--format", "kafka", segment).out == whole.out
    again = kctl("remote", "format", "--format", "kafka", "-", stdin=whole.out)
    assert (again.status, again.out) == (0, whole.out)
    piped = rows("remote", "format", "-", stdin=segment.read_bytes())
    assert len(piped.rows) == len(whole.out.splitlines()) and piped.status == 0
    # The console consumer without a formatter: values with a line end behind each; a value may hold one itself.
    odd = ADD._replace(custom_metadata=b"a\nb\n")
    values = b"".join(write_remote_log_metadata(one) + b"\n" for one in (odd, DONE, ADD))
    read = rows("remote", "format", "-", stdin=values)
    assert [row["custom_metadata"] for row in read.rows] == ["a\nb\n", None, None]
    broken = rows("remote", "format", "-", stdin=values + b"junk\n" + write_remote_log_metadata(DONE) + b"\n")
    assert (len(broken.of("remote_log_metadata")), broken.codes()) == (4, ["remote-metadata-record-bad"])


@pytest.mark.slow
def test_format_goes_on_behind_records_that_are_none(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    made.append(0, None, b"\1\7\0", ADD, b"\1\0\0", DONE)
    before = len(rows("remote", "format", recording("tier/a-healthy") / "brokers").rows)
    ran = rows("remote", "format", made.brokers)
    assert (ran.status, len(ran.of("remote_log_metadata"))) == (5, before + 2)
    assert ran.codes("error") == ["remote-metadata-record-bad"] * 3
    printed = kctl("remote", "format", "--format", "kafka", made.brokers)
    assert printed.status == 5 and len(printed.out.splitlines()) == before + 2
    assert printed.err.count("remote-metadata-record-bad") == 3


def test_a_replica_that_differs_is_a_finding_and_the_newest_leaders_is_read(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    made.append(0, ADD, DONE)
    last = made.metadata_logs(0)[-1]
    data = bytearray(last.read_bytes())
    made.append(0, ADD)
    other = Tiered(tmp_path / "other")
    other.append(0, DONE, ADD, DONE)
    last.write_bytes(other.metadata_logs(0)[-1].read_bytes())
    assert data
    ran = rows("remote", "format", made.brokers)
    assert ran.codes() == ["remote-metadata-replicas-differ"] and ran.status == 5
    found = [r for r in ran.of("remote_log_metadata") if r["topic"] == "made"]
    assert [r["type"] for r in found] == [
        "RemoteLogSegmentMetadata",
        "RemoteLogSegmentMetadataUpdate",
        "RemoteLogSegmentMetadata",
    ]


def test_what_one_replica_lost_is_taken_from_another(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    whole = rows("remote", "format", made.brokers).of("remote_log_metadata")
    for path in made.metadata_logs(0)[:2]:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    ran = rows("remote", "format", made.brokers)
    assert ran.of("remote_log_metadata") == whole
    assert ran.status == 5 and set(ran.codes("error")) == {"batch-crc-mismatch"}


def test_a_shorter_replica_is_no_difference(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    made.append(0, ADD, brokers=1)
    ran = rows("remote", "format", made.brokers)
    assert ran.status == 0 and [r["topic"] for r in ran.rows].count("made") == 1


@pytest.mark.slow
def test_format_follows_a_folder_that_grows(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    folder = made.metadata_logs(0)[0].parent
    before = len(rows("remote", "format", folder).rows)
    timer = threading.Timer(0.6, lambda: made.append(0, ADD, DONE))
    timer.start()
    ran = rows("remote", "format", "--follow", "--until-idle", 3, folder)
    timer.join()
    assert (ran.status, len(ran.rows)) == (0, before + 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    [["--output", "jsonl"], ["--output", "text"], ["--format", "kafka"]],
    ids=["jsonl", "tsv", "kafka"],
)
def test_a_pipe_gets_each_record_when_it_comes(tmp_path: Path, form: list[str]) -> None:
    made = Tiered(tmp_path)
    folder = made.metadata_logs(0)[0].parent
    before = len(rows("remote", "format", folder).rows)
    command = [
        sys.executable,
        "-c",
        "from commands.main import run; run()",
        "remote",
        "format",
        "--follow",
        *form,
        str(folder),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        patience = threading.Timer(120, process.kill)  # seconds; ample, since only a failure waits so long
        patience.start()
        try:
            for _ in range(before + (form[-1] == "text")):  # a heading
                assert process.stdout.readline()
            made.append(0, ADD, DONE)
            assert process.stdout.readline() and process.stdout.readline()
        finally:
            patience.cancel()
            process.kill()


def test_nothing_to_read_is_status_3(tmp_path: Path) -> None:
    assert kctl("remote", "format", tmp_path / "gone").status == 3
    empty = kctl("remote", "segments", tmp_path)
    assert empty.status == 3 and "no segment of __remote_log_metadata" in empty.err


# --- segments -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_segments_are_those_of_the_truth(name: str) -> None:
    wanted = {one["id"]: one for one in truth(name, "remote-segments.json")}
    ran = rows("remote", "segments", recording(name) / "brokers", "--all")
    found = {row["remote_log_segment_id"]: row for row in ran.of("remote_segment")}
    assert ran.status == 0 and set(found) == set(wanted)
    for id, one in wanted.items():
        row, last = found[id], one["history"][-1]
        assert (row["topic"], row["topic_id"], row["partition"]) == (
            one["topic"],
            one["topicId"],
            one["partition"],
        )
        assert (row["state"], row["start_offset"], row["end_offset"]) == (
            one["state"],
            one["start"],
            one["end"],
        )
        assert (row["size_in_bytes"], row["max_timestamp"]) == (one["size"], one["maxTs"])
        assert dict(row["segment_leader_epochs"]) == {int(e): o for e, o in one["epochs"].items()}
        assert (row["broker_id"], row["event_timestamp"]) == (last["broker"], last["eventTs"])
        assert (row["metadata_partition"], row["metadata_offset"]) == (
            last["md_partition"],
            last["md_offset"],
        )
    listed = rows("remote", "segments", recording(name) / "brokers").of("remote_segment")
    alive = [one for one in wanted.values() if one["state"] != "DELETE_SEGMENT_FINISHED"]
    assert len(listed) == len(alive)


def test_segments_as_of_a_time_and_totals() -> None:
    brokers = recording("tier/bc-retention-topic-delete") / "brokers"
    now = rows("remote", "segments", brokers)
    then = rows("remote", "segments", brokers, "--as-of", "2026-11-21T13:21:10Z")
    assert 0 < len(then.of("remote_segment")) < len(now.of("remote_segment"))
    assert all(row["event_timestamp"] <= 1795267270000 for row in then.of("remote_segment"))
    total = now.of("remote_total")[-1]
    assert total["topic"] is None and total["segments"] == len(now.of("remote_segment"))
    assert total["size_in_bytes"] == sum(row["size_in_bytes"] for row in now.of("remote_segment"))
    few = rows("remote", "segments", brokers, "--topic", "orders", "--partition", 1)
    assert {(row["topic"], row["partition"]) for row in few.of("remote_segment")} == {("orders", 1)}
    assert kctl("remote", "segments", brokers, "--as-of", "yesterday").status == 2


def test_a_partition_being_deleted_shows_how_far_it_is() -> None:
    ran = rows("remote", "segments", recording("tier/h-kafka-35") / "brokers")
    states = {row["topic"]: row["deletion_state"] for row in ran.of("remote_segment")}
    assert states == {"legacy": None, "legacy-x": "DELETE_PARTITION_STARTED"}


# --- partition-of, lookup -----------------------------------------------------------------------------


def test_partition_of() -> None:
    (row,) = rows("remote", "partition-of", "LWgrMmVrT0a__7a4SasuPA:7").rows
    assert (row["metadata_partition"], row["metadata_partition_of_kip"]) == (23, None)
    (row,) = rows("remote", "partition-of", "LWgrMmVrT0a__7a4SasuPA:foo-0", "--partitions", 50).rows
    assert (row["metadata_partition"], row["metadata_partition_of_kip"]) == (1, 45)
    for bad in ("foo", "foo:0", "LWgrMmVrT0a__7a4SasuPA:", "LWgrMmVrT0a__7a4SasuPA:-1"):
        assert kctl("remote", "partition-of", bad).status == 2


@pytest.mark.slow
def test_every_offset_of_a_healthy_tier_is_served_by_the_segment_that_holds_it() -> None:
    case = recording("tier/a-healthy")
    segments = [
        s
        for s in truth("tier/a-healthy", "remote-segments.json")
        if s["topic"] == "orders" and s["partition"] == 0
    ]
    for one in segments[::3]:
        for offset in (one["start"], one["end"]):
            (row,) = rows(
                "remote", "lookup", case, "--topic", "orders", "--partition", 0, "--offset", offset
            ).rows
            assert row["remote_log_segment_id"] == one["id"]
            assert row["served_from"] == ("remote" if offset < 280 else "local")
            held = {Path(key).name for key in row["objects"]}
            on_disk = {p.name for p in (case / "tier").rglob(f"*{one['id']}*")}
            assert on_disk <= held and held - on_disk <= {n for n in held if n.endswith(".txnindex")}


@pytest.mark.slow
def test_after_an_unclean_election_the_fork_that_leads_is_read() -> None:
    case = recording("tier/e-unclean-election")
    options = ["--topic", "sensor.raw", "--partition", 0, "--offset", 90]
    (row,) = rows("remote", "lookup", case, *options).rows
    lost = {
        s["id"]
        for s in truth("tier/e-unclean-election", "remote-segments.json")
        if not s.get("log_content", {}).get("all_runs_in_last_whole_read", True)
    }
    assert lost and row["remote_log_segment_id"] not in lost
    other = rows("remote", "lookup", case, *options, "--epoch", 8)
    assert other.status == 5 and "epoch 8" in other.rows[-1]["reason"]


def test_keys_that_are_too_long_for_a_terminal_stand_below_their_folder() -> None:
    keys = [f"orders-0-{'i' * 22}/{'0' * 20}-{'s' * 22}.{kind}" for kind in ("log", "index")]
    assert list(_keys(keys, 120)) == [f"  {key}" for key in keys]
    folder, *names = _keys(keys, 60)
    assert [f"{folder.strip()}{name.strip()}" for name in names] == keys
    assert all(len(line) <= 60 for line in (folder, *names))
    assert list(_keys(["short", "a/" + "b" * 90], 80)) == ["  short", "  a/" + "b" * 90]
    assert list(_keys([], 80)) == []


@pytest.mark.slow
def test_lookup_says_why_nothing_serves_an_offset() -> None:
    case = recording("tier/bc-retention-topic-delete")
    asked = ["--topic", "clicks", "--partition", 0]
    for offset, reason in ((10, "the log starts at 80"), (100_000, "the log ends at 240")):
        ran = rows("remote", "lookup", case, *asked, "--offset", offset)
        assert ran.status == 5 and reason in ran.rows[-1]["reason"]
    assert kctl("remote", "lookup", case, "--topic", "nix", "--partition", 0, "--offset", 1).status == 3
    brokers = recording("tier/d-failed-copies") / "brokers"
    ran = rows(
        "remote", "lookup", brokers, "--topic", "payments", "--partition", 1, "--offset", 1, "--epoch", 77
    )
    assert "no segment of epoch 77" in ran.rows[-1]["reason"]


@pytest.mark.slow
def test_the_objects_of_another_layout(tmp_path: Path) -> None:
    layout = tmp_path / "layout.toml"
    layout.write_text(
        'key = "{topic_id}/{topic}/{partition}/{start_offset}_{segment_id}{suffix}"\n[suffixes]\n".seg" = "log"\n'
    )
    case = recording("tier/a-healthy")
    asked = ["--topic", "orders", "--partition", 0, "--offset", 5]
    for name, end in (("aiven", ".rsm-manifest"), (str(layout), ".seg")):
        (row,) = rows("remote", "lookup", case, *asked, "--layout", name).rows
        assert any(key.endswith(end) for key in row["objects"])
    assert kctl("remote", "lookup", case, *asked, "--layout", tmp_path / "none").status == 3


# --- plan, follower -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in CASES if "h-kafka-35" not in n])
def test_plan_has_the_offsets_that_brokers_answered(name: str) -> None:
    answered = truth(name, "offsets.json")
    found = rows("remote", "plan", recording(name)).of("remote_partition")
    assert found
    for row in found:
        said = answered[f"{row['topic']}-{row['partition']}"]
        assert row["log_end_offset"] == said["latest"] and row["how"] == "znodes"
        assert row["log_start_offset"] == said["earliest"]
        if "latest_tiered" in said:
            assert row["highest_copied_offset"] == said["latest_tiered"]
            assert row["local_log_start_offset"] == said["earliest_local"]


@pytest.mark.slow
def test_plan_copies_what_has_no_metadata_and_expires_by_the_time_given() -> None:
    case = recording("tier/a-healthy")
    last = max(
        (
            s
            for s in truth("tier/a-healthy", "remote-segments.json")
            if (s["topic"], s["partition"]) == ("orders", 0)
        ),
        key=lambda s: s["start"],
    )
    before = last["history"][0]["eventTs"] - 1
    asked = ["--topic", "orders", "--partition", 0]
    (step,) = rows("remote", "plan", case, *asked, "--as-of", before).of("remote_step")
    assert (step["action"], step["base_offset"], step["last_offset"]) == ("copy", last["start"], last["end"])
    assert (step["size_in_bytes"], dict(step["segment_leader_epochs"])) == (
        last["size"],
        {int(e): o for e, o in last["epochs"].items()},
    )
    assert not rows("remote", "plan", case, *asked).of("remote_step")
    case = recording("tier/bc-retention-topic-delete")
    options = ["--topic", "metrics", "--partition", 0]
    assert not rows("remote", "plan", case, *options).of("remote_step")
    later = rows("remote", "plan", case, *options, "--now", "2030-01-01T00:00:00Z")
    assert {step["action"] for step in later.of("remote_step")} == {"delete_remote"}
    assert later.of("remote_partition")[0]["log_start_offset_after"] == 240


def test_a_new_follower_is_built_as_the_recorded_one_was() -> None:
    case = recording("tier/g-follower-from-tier")
    (row,) = rows("remote", "follower", case, "--topic", "stock", "--partition", 0, "--broker", 9).rows
    assert (row["answer"], row["scenarios"], row["start_offset"]) == (
        "OFFSET_MOVED_TO_TIERED_STORAGE",
        [1],
        243,
    )
    seeded = case / "brokers" / "3" / "data" / "stock-0"
    assert min(int(path.stem) for path in seeded.glob("*.log")) == row["start_offset"]
    text = (seeded / "leader-epoch-checkpoint").read_text().split("\n")[2:]
    held = [[int(n) for n in line.split()] for line in text if line]
    assert held[: len(row["leader_epochs"])] == row["leader_epochs"]
    assert row["producer_snapshot"].endswith(".snapshot") and row["is_possible"]


@pytest.mark.slow
def test_a_follower_that_is_there_fetches_and_one_without_a_tier_object_cannot(tmp_path: Path) -> None:
    asked = ["--topic", "stock", "--partition", 0]
    (row,) = rows("remote", "follower", recording("tier/g-follower-from-tier"), *asked, "--broker", 3).rows
    assert (row["answer"], row["scenarios"], row["remote_log_segment_id"]) == ("read_local", [], None)
    made = Tiered(tmp_path, "tier/g-follower-from-tier")
    (row,) = rows("remote", "follower", made.folder, *asked, "--broker", 9).rows
    made.objects(row["remote_log_segment_id"])[".leader_epoch_checkpoint"].unlink()
    ran = rows("remote", "follower", made.folder, *asked, "--broker", 9)
    assert ran.status == 5 and "cannot be read" in ran.rows[-1]["reason"]


def test_a_replica_that_becomes_leader_goes_on_where_the_tier_ends() -> None:
    asked = ["--topic", "stock", "--partition", 0, "--broker", 3, "--as-leader"]
    (row,) = rows("remote", "follower", recording("tier/g-follower-from-tier"), *asked).rows
    assert (row["role"], row["copies_from"]) == ("leader", 285)
    later = [s for s in truth("tier/g2-seeded-leader", "remote-segments.json") if s["partition"] == 0]
    assert max(s["start"] for s in later) == row["copies_from"]
    assert (
        kctl(
            "remote",
            "follower",
            recording("tier/g-follower-from-tier"),
            *asked[:4],
            "--broker",
            77,
            "--as-leader",
        ).status
        == 3
    )


@pytest.mark.slow
def test_text_for_people_has_no_trace_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    case = recording("tier/e-unclean-election")
    asked = ["--topic", "sensor.raw", "--partition", 0]
    for args in (
        ["segments", case],
        ["format", case],
        ["plan", case],
        ["audit", case],
        ["lookup", case, *asked, "--offset", 5],
        ["follower", case, *asked, "--broker", 7],
        ["partition-of", "LWgrMmVrT0a__7a4SasuPA:0"],
    ):
        ran = kctl("remote", *args, "--color", "always")
        text = ran.out.decode()
        assert ran.status in (0, 5) and text.strip() and "None" not in text.replace("is None", ""), (
            args,
            text[:500],
        )


@pytest.mark.slow
def test_evidence_stays_as_it_is(evidence: Any) -> None:
    case = evidence("tier/d-failed-copies")
    asked = ["--topic", "ledger", "--partition", 0]
    for args in (["format", case], ["segments", case], ["plan", case], ["audit", case]):
        assert kctl("remote", *args).status in (0, 5)
    assert kctl("remote", "lookup", case, *asked, "--offset", 5).status == 0
    assert kctl("remote", "follower", case, *asked, "--broker", 3).status == 0
    inside = kctl("remote", "audit", case, "--plan-cleanup", case / "plan.jsonl")
    assert inside.status == 3 and "never written to" in inside.err
    assert json.dumps(inside.err)
