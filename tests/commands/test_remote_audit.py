"""`kctl remote audit`: every damage found, nothing said about what is sound; stores, layouts, bad input."""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commands.cli.render import Page
from commands.remote.text import audit_text
from formats.compression.writers import compress
from formats.log.records import LogEntry, walk
from formats.messages.remote_log_metadata import (
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
    read_remote_log_metadata,
)
from formats.tier.aiven_manifest import write_chunk_sizes
from formats.znodes.cluster import parse_config, parse_partition_state, parse_topic
from kctl.evidence.znodes import read_znodes
from kctl.tier.metadata.partitioner import metadata_partition
from tests.conftest import Ran, kctl, recording, recordings, rows
from tests.kctl.remote.made import Tiered
from tests.kctl.test_metadata_decisions import record, write_log

HEALTHY = ["a-healthy", "bc-retention-topic-delete", "g-follower-from-tier", "g2-seeded-leader", "h-kafka-36"]
DAMAGED = recording("tier/f-damage")
MANIFEST = msgspec.json.decode((DAMAGED / "manifest.json").read_bytes())
pytestmark = pytest.mark.slow  # audits of whole recordings by the dozen


def about(ran: Ran, *ids: str) -> list[dict[str, Any]]:
    return [row for row in ran.of("finding") if row["remote_log_segment_id"] in ids]


@pytest.fixture(scope="module")
def damaged() -> Ran:
    return rows("remote", "audit", recording("tier/a-healthy") / "brokers", "--tier", DAMAGED / "tier")


# What each damage of the recording is called, in the order of its manifest.
CODES = [
    "remote-object-missing",
    "remote-object-missing",
    "remote-object-size",
    "remote-log-offsets",
    "remote-object-size",
    "segment-garbage",
    "batch-crc-mismatch",
    "remote-log-epochs",
    "batch-offsets-go-back",
    "remote-object-missing",
    "remote-object-missing",
    "remote-object-missing",
    "remote-object-missing",
    "remote-transaction-index-wrong",
    "index-fragment",
    "index-entry-misplaced",
    "remote-producer-snapshot-bad",
    "remote-leader-epochs-differ",
    "remote-log-offsets",
    "timeindex-entry-wrong",
    "remote-object-orphan",
    "remote-object-orphan",
    "remote-object-misnamed",
    "remote-object-unknown",
]


@pytest.mark.parametrize(
    ("damage", "code"),
    list(zip(MANIFEST["damages"], CODES, strict=True)),
    ids=[d["kind"] for d in MANIFEST["damages"]],
)
def test_each_recorded_damage_is_found(damaged: Ran, damage: dict[str, Any], code: str) -> None:
    ids = [damage.get("orphan_id") or damage["segment"]["id"]]
    ids += [damage["other"]["id"]] if "other" in damage else []
    for id in ids:
        found = about(damaged, id)
        assert code in [row["code"] for row in found]
        assert any(row["severity"] in ("error", "warning") for row in found)


def test_nothing_is_said_about_untouched_segments(damaged: Ran) -> None:
    assert damaged.status == 5
    loud = [row for row in damaged.of("finding") if row["severity"] != "info"]
    for one in MANIFEST["untouched_segments"]:
        assert not [row for row in loud if one["id"] in json.dumps(row)]


@pytest.mark.slow
@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("how", ["whole", "brokers"])
def test_healthy_tiers_are_clean(name: str, how: str) -> None:
    case = recording(f"tier/{name}")
    paths = [case] if how == "whole" else [case / "brokers", "--tier", case / "tier"]
    ran = rows("remote", "audit", *paths)
    assert (ran.status, ran.codes("error", "warning")) == (0, [])
    summary = ran.rows[-1]
    assert summary["kind"] == "tier_summary" and summary["orphan_bytes"] == 0
    on_disk = [p for p in (case / "tier").rglob("*") if p.is_file()]
    assert (summary["objects"], summary["bytes"]) == (len(on_disk), sum(p.stat().st_size for p in on_disk))
    assert not any(row["gaps"] for row in ran.of("tier_partition"))


def test_failed_copies_and_their_bytes() -> None:
    case = recording("tier/d-failed-copies")
    ran = rows("remote", "audit", case)
    truth = msgspec.json.decode((case / "truth" / "remote-segments.json").read_bytes())
    started = {one["id"]: one for one in truth if one["state"] == "COPY_SEGMENT_STARTED"}
    failed = [row for row in ran.of("finding") if row["code"] == "remote-copy-failed"]
    assert {row["remote_log_segment_id"] for row in failed} == set(started)
    for row in failed:
        held = sum(one["size"] for one in started[row["remote_log_segment_id"]]["objects"].values())
        left = f"{held:,} bytes of it lie in the tier" if held else "nothing of it is in the tier"
        assert f"; {left}" in row["message"] and row["size_in_bytes"] == held
    assert ran.codes("error", "warning") == ["remote-copy-failed"] * len(started)


def test_the_fork_of_an_unclean_election_is_outside_the_lineage_and_leaves_no_gap() -> None:
    case = recording("tier/e-unclean-election")
    ran = rows("remote", "audit", case)
    truth = msgspec.json.decode((case / "truth" / "remote-segments.json").read_bytes())
    lost = {
        one["id"] for one in truth if not one.get("log_content", {}).get("all_runs_in_last_whole_read", True)
    }
    outside = {
        row["remote_log_segment_id"]
        for row in ran.of("finding")
        if row["code"] == "remote-segment-outside-lineage"
    }
    assert lost and lost <= outside
    assert not any(row["gaps"] for row in ran.of("tier_partition"))


@pytest.mark.parametrize(("everything", "copies"), [(False, 3), (True, 13)])
def test_a_terminal_shows_one_finding_of_a_code_and_partition_and_counts_the_others(
    everything: bool, copies: int
) -> None:
    ran = rows("remote", "audit", recording("tier/e-unclean-election"))
    told = (row for row in ran.rows if row["kind"] not in ("judgement", "coverage"))
    lines = list(audit_text(told, Page(80, color=False), everything=everything))
    assert sum("remote-copy-failed" in line for line in lines) == copies
    assert sum(line.endswith("7 more of these (--all shows each)") for line in lines) == (not everything)
    assert "payments-0  log [0, 160), local from 80  11 segments, 15 objects, 20.0 KiB" in lines


def test_the_next_command_plans_what_can_be_removed(tmp_path: Path) -> None:
    evidence = recording("tier/e-unclean-election")
    said = kctl("remote", "audit", evidence, "--color", "always").out.decode().splitlines()
    plan, explained = said[-2:]
    assert plan == f"next     kctl remote audit {evidence} --plan-cleanup orphans.jsonl"
    assert explained.startswith("next     kctl finding remote-")
    planned = kctl(
        "remote", "audit", evidence, "--color", "always", "--plan-cleanup", tmp_path / "orphans.jsonl"
    )
    assert "--plan-cleanup" not in planned.out.decode()
    assert (tmp_path / "orphans.jsonl").read_text().count("\n") > 1


def test_records_of_3_5_and_deletions_that_were_interrupted() -> None:
    ran = rows("remote", "audit", recording("tier/h-kafka-35"))
    assert ran.codes("error", "warning") == [
        "remote-copy-failed",
        "remote-deletion-interrupted",
        "remote-partition-deletion-unfinished",
    ]


# --- what the recordings do not have ------------------------------------------------------------------


def first_segment(made: Tiered, topic: str, partition: int) -> tuple[int, SegmentMetadata]:
    """A finished segment of a partition, and the metadata partition of its records."""
    found = rows("remote", "format", made.brokers, "--topic", topic, "--partition", partition).rows
    row = next(r for r in found if r["start_offset"] is not None)
    where = TopicIdPartition(row["topic_id"], topic, partition)
    epochs = tuple((e, o) for e, o in row["segment_leader_epochs"])
    made_from = SegmentMetadata(
        where, row["remote_log_segment_id"], row["start_offset"], row["end_offset"], 1, row["max_timestamp"],
        row["event_timestamp"], epochs, row["size_in_bytes"], None, SegmentState.COPY_SEGMENT_STARTED,
    )  # fmt: skip
    return row["metadata_partition"], made_from


def step(segment: SegmentMetadata, state: SegmentState) -> SegmentMetadataUpdate:
    time = segment.event_timestamp + 60_000
    return SegmentMetadataUpdate(
        segment.topic_id_partition, segment.remote_log_segment_id, 1, time, None, state
    )


def test_objects_left_after_a_deletion_are_in_the_cleanup_plan(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    number, segment = first_segment(made, "clicks", 0)
    states = (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED)
    made.append(number, *(step(segment, state) for state in states))
    plan = tmp_path / "plan.jsonl"
    ran = rows("remote", "audit", made.folder, "--plan-cleanup", plan)
    assert ran.codes() == ["remote-log-start-stale", "remote-object-left"]
    (left,) = about(ran, segment.remote_log_segment_id)
    objects = made.objects(segment.remote_log_segment_id)
    size = sum(path.stat().st_size for path in objects.values())
    assert left["size_in_bytes"] == size == ran.rows[-1]["orphan_bytes"]
    planned = [json.loads(line) for line in plan.read_text().splitlines()]
    assert {Path(one["key"]).name for one in planned} == {path.name for path in objects.values()}
    assert sum(one["size_in_bytes"] for one in planned) == size
    assert all(path.exists() for path in objects.values()), "kctl deletes nothing"


def test_a_deletion_in_the_middle_of_the_log_is_a_gap_for_consumers(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    number, segment = first_segment(made, "orders", 0)
    found = rows("remote", "segments", made.brokers, "--topic", "orders", "--partition", 0).of(
        "remote_segment"
    )
    middle = segment._replace(remote_log_segment_id=found[2]["remote_log_segment_id"])
    made.append(number, step(middle, SegmentState.DELETE_SEGMENT_STARTED))
    ran = rows("remote", "audit", made.folder)
    gap = next(row for row in ran.of("finding") if row["code"] == "remote-gap")
    assert (gap["base_offset"], gap["last_offset"]) == (found[2]["start_offset"], found[2]["end_offset"])
    (row,) = [r for r in ran.of("tier_partition") if (r["topic"], r["partition"]) == ("orders", 0)]
    assert row["gaps"] == [[gap["base_offset"], gap["last_offset"] + 1]] and row["errors"] == 1


def test_what_a_deleted_topic_left_behind(tmp_path: Path) -> None:
    made = Tiered(tmp_path, "tier/bc-retention-topic-delete")
    where = TopicIdPartition("4RjfwXMJTKqapb5Ss1Bfiw", "daily-export", 0)
    id = "bCqX9U--S-6U8XUM9II25Q"
    add = SegmentMetadata(where, id, 0, 9, 1, 5, 6, ((0, 0),), 100, None, SegmentState.COPY_SEGMENT_STARTED)
    number = metadata_partition(where.topic_id, 0, 5)
    made.append(number, add, step(add, SegmentState.COPY_SEGMENT_FINISHED))
    ran = rows("remote", "audit", made.folder)
    (left,) = [row for row in ran.of("finding") if row["code"] == "remote-topic-deleted"]
    assert (left["topic"], left["partition"]) == ("daily-export", 0) and "100 bytes" in left["message"]


def test_two_topics_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    _, segment = first_segment(made, "orders", 0)
    other = TopicIdPartition("LWgrMmVrT0a__7a4SasuPA", "orders", 0)
    add = segment._replace(topic_id_partition=other, remote_log_segment_id="bCqX9U--S-6U8XUM9II25Q")
    number = metadata_partition(other.topic_id, 0, 5)
    gone = (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED)
    made.append(number, add, *(step(add, s) for s in (SegmentState.COPY_SEGMENT_FINISHED, *gone)))
    ran = rows("remote", "audit", made.folder)
    assert ran.status == 0 and ran.codes() == ["remote-topic-ids-differ"]
    assert len([row for row in ran.of("tier_partition") if row["topic"] == "orders"]) == 4


def test_a_log_that_is_not_the_leaders(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    found = rows("remote", "segments", made.brokers, "--topic", "orders", "--partition", 0).of(
        "remote_segment"
    )
    local = next(row for row in found if row["start_offset"] == 320)
    log = made.objects(local["remote_log_segment_id"])[".log"]
    # A record's byte changed, and the CRC made right: sound in itself, and not what the leader has.
    from formats.log.record_batch import HEADER_SIZE, read_header, seal

    data = bytearray(log.read_bytes())
    data[-9] ^= 1
    header = read_header(data)
    end = header.size_in_bytes
    batches = bytes(data[:end]), bytes(data[end:])
    rest = batches[1]
    out = batches[0]
    while rest:
        one = read_header(rest)
        out += seal(one, rest[HEADER_SIZE : one.size_in_bytes])
        rest = rest[one.size_in_bytes :]
    log.write_bytes(out)
    ran = rows("remote", "audit", made.folder)
    assert "remote-log-differs-from-local" in [r["code"] for r in about(ran, local["remote_log_segment_id"])]


def test_damage_of_side_files(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    found = rows("remote", "segments", made.brokers, "--topic", "audit", "--partition", 0).of(
        "remote_segment"
    )
    with_aborts = [r for r in found if ".txnindex" in made.objects(r["remote_log_segment_id"])]
    ids = [row["remote_log_segment_id"] for row in with_aborts[:4]]
    changes = [
        (".txnindex", lambda d: d + b"x", "remote-transaction-index-wrong"),
        (".txnindex", lambda d: d[:17] + bytes([d[17] ^ 1]) + d[18:], "remote-transaction-index-wrong"),
        (".leader_epoch_checkpoint", lambda d: b"0\n2\n0 0\n", "remote-leader-epochs-differ"),
        (".snapshot", lambda d: d[:9], "remote-producer-snapshot-bad"),
    ]
    for id, (suffix, change, _) in zip(ids, changes, strict=True):
        path = made.objects(id)[suffix]
        path.write_bytes(change(path.read_bytes()))
    ran = rows("remote", "audit", made.folder)
    for id, (_, _, code) in zip(ids, changes, strict=True):
        assert [row["code"] for row in about(ran, id)] == [code]


def test_files_of_the_brokers_beside_their_logs(tmp_path: Path) -> None:
    made = Tiered(tmp_path, "tier/h-kafka-35")
    data = made.brokers / "1" / "data"
    (data / "remote-log-index-cache").mkdir(exist_ok=True)
    (data / "remote-log-index-cache" / "5_bCqX9U--S-6U8XUM9II25Q.index.tmp").write_bytes(b"")
    (data / "_rlmm_committed_offsets").write_text("0\n3\n0 1\n")
    snapshot = next(p for p in sorted(data.rglob("remote_log_snapshot")) if p.stat().st_size)
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    before = rows("remote", "audit", recording("tier/h-kafka-35")).codes()
    found = rows("remote", "audit", made.folder).codes()
    added = ["remote-index-cache-leftover", "remote-log-snapshot-bad", "remote-log-snapshot-bad"]
    assert sorted(found) == sorted([*before, *added])


def test_objects_that_are_not_kafkas_and_folders_that_cannot_be_listed(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    (made.tier / "README.txt").write_text("hello")
    (made.tier / "clicks-0-short").mkdir()
    (made.tier / "clicks-0-short" / "x.log").write_bytes(b"123")
    ran = rows("remote", "audit", made.folder)
    assert ran.codes() == ["remote-object-unknown"] * 2 and ran.rows[-1]["orphan_bytes"] == 8


def test_objects_whose_metadata_partition_is_not_in_the_evidence_are_no_orphans(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    for folder in made.brokers.glob("*/data/__remote_log_metadata-2"):
        shutil.rmtree(folder)
    ran = rows("remote", "audit", made.folder)
    assert (
        ran.status == 3
        and set(ran.codes()) == {"remote-metadata-absent"}
        and ran.rows[-1]["orphan_bytes"] == 0
    )
    for folder in made.brokers.glob("*/data/__remote_log_metadata-*"):
        shutil.rmtree(folder)
    ran = rows("remote", "audit", made.folder)
    assert ran.status == 3 and set(ran.codes()) == {"remote-metadata-absent"}


def test_without_content_objects_are_only_listed() -> None:
    brokers = recording("tier/a-healthy") / "brokers"
    ran = rows("remote", "audit", brokers, "--tier", DAMAGED / "tier", "--no-content")
    assert {"remote-object-missing", "remote-object-orphan"} <= set(
        ran.codes()
    ) and "batch-crc-mismatch" not in ran.codes()


def test_without_a_tier_the_metadata_are_held_against_the_logs(tmp_path: Path) -> None:
    ran = rows("remote", "audit", recording("tier/a-healthy") / "brokers")
    assert ran.status == 3 and "no tier in the evidence" in ran.err and ran.rows[-1]["segments"] == 63


def test_moments_are_not_mixed(tmp_path: Path) -> None:
    for name in ("a-healthy", "bc-retention-topic-delete"):
        shutil.copytree(recording(f"tier/{name}"), tmp_path / "moments" / name)
    ran = rows("remote", "audit", tmp_path)
    assert (ran.status, ran.codes("error", "warning")) == (0, [])
    assert ran.rows[-1]["segments"] == 52


def test_objects_that_only_earlier_metadata_name_are_to_be_kept(tmp_path: Path) -> None:
    """The last disk with the metadata was wiped: nothing of what it named is among what can be removed."""
    for name in ("first", "last"):
        shutil.copytree(recording("tier/a-healthy"), tmp_path / "moments" / name)
    for log in (tmp_path / "moments" / "last").glob("brokers/*/data/__remote_log_metadata-*/*.log"):
        log.chmod(0o644)
        log.write_bytes(b"")
    ran = rows(
        "remote", "audit", tmp_path, "--plan-cleanup", plan := tmp_path.parent / f"{tmp_path.name}.jsonl"
    )
    found = [row for row in ran.of("finding") if row["severity"] != "info"]
    assert {row["code"] for row in found} == {"remote-segment-forgotten"}
    assert len(found) == 63
    assert "moment 'first'" in found[0]["message"]
    assert (ran.status, plan.read_text()) == (5, "")


@pytest.mark.parametrize(
    ("tier", "why"),
    [
        ("/nowhere/at/all", "does not exist"),
        ("s3://b/p?endpoint_override=127.0.0.1:1&scheme=http&region=x&anonymous=true", "s3://b/p"),
        ("s3://b/p?colour=red", "unknown option 'colour'"),
        ("what://b/p", "what://b/p"),
    ],
)
def test_a_store_that_cannot_be_reached_is_one_line(tier: str, why: str) -> None:
    ran = kctl("remote", "audit", recording("tier/a-healthy") / "brokers", "--tier", tier)
    assert ran.status == 3 and why in ran.err and len(ran.errors) == 1


def test_secrets_of_a_uri_are_not_shown() -> None:
    tier = "s3://AKIA:verysecret@b/p?endpoint_override=127.0.0.1:1&scheme=http&region=x&secret_key=hush"
    ran = kctl("remote", "audit", recording("tier/a-healthy") / "brokers", "--tier", tier)
    assert ran.status == 3 and "secret@" not in ran.err and "hush" not in ran.err and "AKIA" not in ran.err


# --- a real S3 protocol -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def s3() -> Iterator[tuple[str, Any]]:
    """moto's server in this process on a free port of 127.0.0.1, and a file system on it."""
    pytest.importorskip("moto.server")
    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1&access_key=a&secret_key=b"
    files = fs.S3FileSystem(
        endpoint_override=f"127.0.0.1:{port}",
        scheme="http",
        region="us-east-1",
        access_key="a",
        secret_key="b",
        allow_bucket_creation=True,
    )
    yield options, files
    server.stop()


def upload(files: Any, folder: Path, bucket: str) -> None:
    files.create_dir(bucket)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with files.open_output_stream(f"{bucket}/{path.relative_to(folder)}") as out:
                out.write(path.read_bytes())


@pytest.mark.slow
def test_a_tier_in_s3_is_audited_like_one_in_a_folder(s3: tuple[str, Any], tmp_path: Path) -> None:
    from kctl.tier.stores import REQUESTS_IN_FLIGHT, ArrowStore

    options, files = s3
    made = Tiered(tmp_path, "tier/g-follower-from-tier")
    logs = sorted(made.tier.rglob("*.log"))
    logs[0].with_suffix(".index").unlink()
    logs[1].write_bytes(logs[1].read_bytes()[:-7])
    upload(files, made.folder / "tier", "damaged")
    uri = f"s3://damaged/kafka-tiered-storage?{options}"
    ran = rows("remote", "audit", made.brokers, "--tier", uri)
    local = rows("remote", "audit", made.brokers, "--tier", made.tier)
    assert ran.status == 5 and {"remote-object-missing", "remote-object-size"} <= set(ran.codes("error"))
    assert sorted(ran.of("finding"), key=str) == sorted(local.of("finding"), key=str)
    assert ran.rows[-1] == local.rows[-1]
    missing = kctl("remote", "audit", made.brokers, "--tier", f"s3://nobody?{options}")
    assert missing.status == 3 and "s3://nobody" in missing.err
    # Folders are listed side by side, and never more of them than may be.
    store = ArrowStore(uri)
    lock, now, most, listed = threading.Lock(), 0, 0, store._listed

    def counting(folder: str) -> Any:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        try:
            return listed(folder)
        finally:
            with lock:
                now -= 1

    store._listed = counting  # type: ignore[method-assign]
    keys = [one.key for one in store.objects(lambda finding: None)]
    assert len(keys) == len(set(keys)) == 71 and 1 < most <= REQUESTS_IN_FLIGHT


def test_results_come_in_order_and_few_are_under_way() -> None:
    from kctl.tier.stores import bounded_map

    begun: list[int] = []

    def square(n: int) -> int:
        begun.append(n)
        return n * n

    for number, (item, result) in enumerate(bounded_map(square, iter(range(50)), 4)):
        assert (item, result) == (number, number * number) and len(begun) <= number + 4


# --- Aiven's layout -----------------------------------------------------------------------------------


def as_aiven(tier: Path, target: Path, *, compressed: bool, encrypted: bool = False) -> None:
    """The objects of a tier as Aiven's plug-in would have stored them."""
    import base64

    from formats.tier.object_names import LOCAL_TIERED_STORAGE

    for log in sorted(tier.rglob("*.log")):
        name = LOCAL_TIERED_STORAGE.parse(str(log.relative_to(tier)))
        assert name is not None
        stem = target / f"{name.topic}-{name.topic_id}" / str(name.partition) / log.stem
        stem.parent.mkdir(parents=True, exist_ok=True)
        data, chunk = log.read_bytes(), 1000
        pieces = [data[at : at + chunk] for at in range(0, len(data), chunk)]
        if compressed:
            pieces = [compress(4, piece, magic=2) for piece in pieces]
        packed = base64.b64encode(write_chunk_sizes(tuple(map(len, pieces)))).decode()
        indexes, held = {}, b""
        for key, suffix in (
            ("offset", ".index"),
            ("timestamp", ".timeindex"),
            ("producerSnapshot", ".snapshot"),
            ("leaderEpoch", ".leader_epoch_checkpoint"),
            ("transaction", ".txnindex"),
        ):
            path = log.with_suffix(suffix)
            one = path.read_bytes() if path.exists() else None
            indexes[key] = None if one is None else {"position": len(held), "size": len(one)}
            held += one or b""
        manifest = {
            "version": "1",
            "chunkIndex": {
                "type": "variable",
                "originalChunkSize": chunk,
                "originalFileSize": len(data),
                "transformedChunks": packed,
            },
            "segmentIndexes": indexes,
            "compression": compressed,
            **({"encryption": {"dataKey": "k:AAAA", "aad": ""}} if encrypted else {}),
            "remoteLogSegmentMetadata": {},
        }
        stem.with_name(stem.name + ".log").write_bytes(b"".join(pieces))
        stem.with_name(stem.name + ".indexes").write_bytes(held)
        stem.with_name(stem.name + ".rsm-manifest").write_text(json.dumps(manifest))


@pytest.mark.slow
@pytest.mark.parametrize("compressed", [False, True])
def test_aivens_objects_are_read_through_their_manifests(tmp_path: Path, compressed: bool) -> None:
    case = recording("tier/a-healthy")
    as_aiven(case / "tier", tmp_path, compressed=compressed)
    ran = rows("remote", "audit", case / "brokers", "--tier", tmp_path)
    assert (ran.status, ran.codes()) == (0, []) and ran.rows[-1]["objects"] == 3 * 63


def test_damage_of_aivens_objects(tmp_path: Path) -> None:
    case = recording("tier/a-healthy")
    as_aiven(case / "tier", tmp_path, compressed=True)
    logs = sorted(tmp_path.rglob("*.log"))[:5]
    ids = [path.stem[21:] for path in logs]
    logs[0].write_bytes(logs[0].read_bytes()[:-5])
    logs[1].write_bytes(bytes(20) + logs[1].read_bytes()[20:])
    logs[2].with_suffix(".rsm-manifest").write_text("{}")
    logs[3].with_suffix(".indexes").write_bytes(logs[3].with_suffix(".indexes").read_bytes()[:-1])
    logs[4].with_suffix(".rsm-manifest").unlink()
    ran = rows("remote", "audit", case / "brokers", "--tier", tmp_path, "--layout", "aiven")
    codes = [{row["code"] for row in about(ran, id)} for id in ids]
    assert "remote-object-size" in codes[0] and "evidence-unreadable" in codes[1]
    assert codes[2] == {"remote-object-malformed"} == codes[3] and codes[4] == {"remote-object-missing"}
    assert not [r for r in ran.of("finding") if r["remote_log_segment_id"] not in ids]


def test_encrypted_objects_are_said_to_be_so(tmp_path: Path) -> None:
    case = recording("tier/a-healthy")
    as_aiven(case / "tier", tmp_path, compressed=False, encrypted=True)
    ran = rows("remote", "audit", case / "brokers", "--tier", tmp_path)
    assert ran.status == 3 and set(ran.codes()) == {"remote-object-encrypted"}


# --- the audit of everything --------------------------------------------------------------------------


@pytest.mark.slow
def test_the_audit_of_a_cluster_has_the_tier_in_its_tables_and_a_picture_for_each_fault(
    tmp_path: Path,
) -> None:
    import xml.etree.ElementTree as xml

    case = recording("tier/e-unclean-election")
    ran = rows("audit", "run", case, "--out", tmp_path / "out", "--no-sha256", "--jobs", 1)
    assert "remote-segment-outside-lineage" in ran.codes("warning")
    tier_faults = [
        row
        for row in ran.of("finding")
        if row["code"].startswith("remote-") and row["severity"] in ("error", "warning") and row["topic"]
    ]
    page = (tmp_path / "out" / "report.html").read_text()
    pictures = [
        one.split("</svg>")[0] + "</svg>"
        for one in page.split("<svg")[1:]
        if "remote and local offset ranges" in one
    ]
    drawn = [xml.fromstring("<svg" + picture) for picture in pictures]
    damaged = {f"{row['topic']}-{row['partition']}" for row in tier_faults}
    assert sorted(str(picture.findtext("title")).split(":")[0] for picture in drawn) == sorted(damaged)
    assert damaged == {"ledger-0", "payments-0", "payments-1", "sensor.raw-0"}
    (forked,) = [one for one in drawn if "sensor.raw-0" in (one.find("title").text or "")]  # type: ignore[union-attr]
    texts = {element.text for element in forked.iter("text")}
    assert {"in the tier", "outside lineage", "local", "log start", "local start"} <= texts
    titles = [element.text for element in forked.iter("title")]
    assert any("epoch 8" in (t or "") for t in titles) and any("epoch 10" in (t or "") for t in titles)


@pytest.mark.slow
def test_every_recorded_case_ends_without_a_crash() -> None:
    for name in recordings("tier"):
        ran = rows("remote", "audit", recording(name))
        assert ran.status in (0, 3, 5), name


def test_kafkas_own_bytes_are_not_taken_for_ours() -> None:
    with pytest.raises(ValueError):
        read_remote_log_metadata(b"\2\0\0")


def test_what_the_recordings_say_in_passing() -> None:
    """Findings of severity info: of healthy clusters, and worth knowing."""
    seeded = rows("remote", "audit", recording("tier/g-follower-from-tier"))
    assert seeded.codes() == ["remote-seeded-snapshot-empty"] * 2
    assert {row["broker_id"] for row in seeded.of("finding")} == {3}
    brokers = recording("tier/bc-retention-topic-delete") / "brokers"
    assert rows("remote", "audit", brokers).codes() == ["remote-topic-unknown"] * 2
    assert set(rows("remote", "audit", recording("tier/h-kafka-35")).codes("info")) == {
        "remote-log-timestamp"
    }


def test_a_log_newer_than_its_metadata_is_another_log(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    found = rows("remote", "segments", made.brokers, "--topic", "orders", "--partition", 0).of(
        "remote_segment"
    )
    old, new = (made.objects(found[at]["remote_log_segment_id"]) for at in (0, -1))
    for suffix, path in new.items():
        old[suffix].write_bytes(path.read_bytes())
    codes = {
        row["code"] for row in about(rows("remote", "audit", made.folder), found[0]["remote_log_segment_id"])
    }
    assert {"remote-log-timestamp", "remote-log-offsets", "remote-leader-epochs-differ"} <= codes


def test_metadata_and_objects_that_cannot_be_read(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    log = made.metadata_logs(0)[0]
    log.unlink()
    log.mkdir()
    found = rows("remote", "segments", made.brokers, "--topic", "metrics", "--partition", 0).of(
        "remote_segment"
    )
    target = made.objects(found[0]["remote_log_segment_id"])[".log"]
    target.unlink()
    target.symlink_to("/nowhere")
    ran = rows("remote", "audit", made.folder)
    assert (
        ran.status == 5 and "remote-object-missing" in ran.codes() and "remote-object-unknown" in ran.codes()
    )
    assert {"remote-metadata-unreadable", "evidence-unreadable", "evidence-not-a-file"} & set(ran.codes())


def test_objects_that_go_while_they_are_examined(tmp_path: Path) -> None:
    from formats.tier.object_names import LOCAL_TIERED_STORAGE
    from kctl.findings import Finding
    from kctl.tier.audit.inventory import take_inventory
    from kctl.tier.audit.segment_objects import examine
    from kctl.tier.audit.segment_tasks import SegmentTask
    from kctl.tier.stores import LocalStore

    made = Tiered(tmp_path)
    _, segment = first_segment(made, "metrics", 0)
    store = LocalStore(made.tier)
    said: list[Finding] = []
    held = take_inventory(store.objects(said.append)).of(
        segment.topic_id_partition.topic_id, segment.remote_log_segment_id
    )
    for path in made.objects(segment.remote_log_segment_id).values():
        path.unlink()
    found = examine(SegmentTask(segment, held), store, LOCAL_TIERED_STORAGE).findings
    assert {one.code for one in found} == {"remote-object-vanished"} and not said
    shutil.rmtree(made.tier)
    assert not list(store.objects(said.append)) and [one.code for one in said] == ["tier-unreadable"]


def test_a_broker_that_believes_in_segments_the_metadata_do_not_know(tmp_path: Path) -> None:
    from formats.tier.broker_files import read_remote_log_snapshot, write_remote_log_snapshot

    made = Tiered(tmp_path, "tier/h-kafka-35")
    paths = sorted(made.brokers.rglob("remote_log_snapshot"))
    path = next(p for p in paths if p.stat().st_size)
    snapshot = read_remote_log_snapshot(path.read_bytes())
    assert snapshot is not None
    strange = snapshot.segments[0]._replace(remote_log_segment_id="bCqX9U--S-6U8XUM9II25Q")
    path.write_bytes(write_remote_log_snapshot(snapshot._replace(segments=(strange, *snapshot.segments))))
    (found,) = about(rows("remote", "audit", made.folder), "bCqX9U--S-6U8XUM9II25Q")
    assert found["code"] == "remote-log-snapshot-differs"


def test_damaged_segments_on_standard_input() -> None:
    log = min(
        (recording("tier/a-healthy") / "brokers" / "1" / "data" / "__remote_log_metadata-0").glob("*.log")
    )
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    ran = rows("remote", "format", "-", stdin=bytes(data))
    assert ran.status == 5 and ran.codes() == ["remote-metadata-damaged"]


# --- metadata that are not all there ------------------------------------------------------------------


def verdicts(ran: Ran) -> dict[tuple[str, int], tuple[str, str]]:
    return {(row["topic"], row["partition"]): (row["verdict"], row["reason"]) for row in ran.of("judgement")}


def named_in(made: Tiered, number: int) -> set[tuple[str, int]]:
    """The partitions whose segments a metadata partition names."""
    found = set()
    for folder in made.tier.iterdir():
        topic, _, partition = folder.name[:-23].rpartition("-")
        if metadata_partition(folder.name[-22:], int(partition), 5) == number:
            found.add((topic, int(partition)))
    return found


def damage(path: Path, row: int) -> int:
    """Change a byte of a batch; its offset comes back."""
    data = bytearray(path.read_bytes())
    batch = list(walk(data))[row]
    assert isinstance(batch, LogEntry)
    data[batch.next_position - 3] ^= 1
    path.write_bytes(data)
    return batch.base_offset


def test_a_metadata_record_that_no_copy_holds_leaves_its_partitions_undecided(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    whole = verdicts(rows("remote", "audit", made.folder))
    *two, third = made.metadata_logs(4)
    (at,) = {damage(path, 20) for path in two}
    assert {
        key: one for key, one in verdicts(rows("remote", "audit", made.folder)).items() if key in whole
    } == whole
    damage(third, 20)
    ran = rows("remote", "audit", made.folder)
    found = verdicts(ran)
    open_ = {key for key in whole if found[key][0] == "could_not_judge"}
    assert open_ and {key for key in whole if found[key][0] != "sound"} == named_in(made, 4)
    assert {found[key][1] for key in open_} == {
        f"no sound batch holds offsets [{at}, {at + 1}) of __remote_log_metadata-4"
    }
    missing = [row["missing"] for row in ran.of("judgement") if row["verdict"] == "could_not_judge"]
    assert all("__remote_log_metadata" in one[0]["get"] for one in missing)


def test_metadata_below_the_high_watermark_that_are_gone_leave_their_partitions_undecided(
    tmp_path: Path,
) -> None:
    made = Tiered(tmp_path)
    for path in made.metadata_logs(3):
        end = list(walk(path.read_bytes()))[-1].position
        path.write_bytes(path.read_bytes()[:end])
    found = verdicts(rows("remote", "audit", made.folder))
    for key in named_in(made, 3):
        verdict, reason = found[key]
        assert (
            verdict == "damaged"
            or reason == "no sound batch holds offsets [29, 30) of __remote_log_metadata-3"
        )
    assert "could_not_judge" in {found[key][0] for key in named_in(made, 3)}
    assert {found[key][0] for key in found.keys() - named_in(made, 3)} == {"sound"}


@pytest.mark.parametrize("command", ["remote audit", "audit run"])
def test_tiered_topics_of_which_metadata_and_objects_are_gone(tmp_path: Path, command: str) -> None:
    made = Tiered(tmp_path)
    tiered = {key for number in range(5) for key in named_in(made, number)}
    shutil.rmtree(made.tier.parent)
    for folder in made.brokers.glob("*/data/__remote_log_metadata-*"):
        shutil.rmtree(folder)
    more = ("--out", tmp_path / "out", "--jobs", 1) if command == "audit run" else ()
    ran = rows(*command.split(), made.folder, *more)
    found = {(r["topic"], r["partition"]): r for r in ran.of("judgement") if r["question"] == "tier"}
    assert ran.status == 3 and set(found) == tiered
    for row in found.values():
        assert (row["verdict"], row["reason"]) == (
            "could_not_judge",
            "no metadata record of the partition is in the evidence",
        )
        assert len(row["missing"]) == 2  # the objects too


def test_a_tiered_topic_without_a_segment_is_sound_where_its_metadata_were_read() -> None:
    found = verdicts(rows("remote", "audit", recording("tier/d-failed-copies")))
    assert found["sensor.raw", 0] == ("sound", "its metadata were read, and name no segment")


def test_a_metadata_log_of_kraft_says_what_znodes_say(tmp_path: Path) -> None:
    made = Tiered(tmp_path, "tier/bc-retention-topic-delete")
    by_znodes = rows("remote", "audit", made.folder)
    znodes = read_znodes(made.folder / "znodes.jsonl")
    records = []
    for path, znode in znodes.items():
        topic = path.removeprefix("/brokers/topics/")
        if topic == path or "/" in topic:
            continue
        about = parse_topic(znode.data)
        records.append(record("TOPIC_RECORD", name=topic, topic_id=about.topic_id))
        for number, replicas in about.partitions.items():
            state = parse_partition_state(znodes[f"{path}/partitions/{number}/state"].data)
            values = {"leader": state.leader, "leader_epoch": state.leader_epoch, "isr": list(state.isr)}
            records.append(
                record(
                    "PARTITION_RECORD",
                    topic_id=about.topic_id,
                    partition_id=number,
                    replicas=list(replicas),
                    **values,
                )
            )
        config = znodes.get(f"/config/topics/{topic}")
        for name, value in parse_config(config.data).config.items() if config else ():
            values = {"resource_type": 2, "resource_name": topic, "name": name, "value": value}
            records.append(record("CONFIG_RECORD", **values))
    gone = "4RjfwXMJTKqapb5Ss1Bfiw"
    records += [
        record("TOPIC_RECORD", name="daily-export", topic_id=gone),
        record("REMOVE_TOPIC_RECORD", topic_id=gone),
    ]
    (made.folder / "znodes.jsonl").unlink()
    without = rows("remote", "audit", made.folder)
    assert "remote-topic-unknown" in without.codes()
    write_log(tmp_path / "kraft", records)
    shutil.move(tmp_path / "kraft/broker-1/data/__cluster_metadata-0", made.brokers / "1/data/")
    found = rows("remote", "audit", made.folder)
    assert found.rows == by_znodes.rows


@pytest.mark.parametrize("command", ["remote audit", "audit run"])
def test_a_partition_folder_that_is_named_alone_has_no_cache(tmp_path: Path, command: str) -> None:
    folder = recording("tier/a-healthy") / "brokers/1/data/__remote_log_metadata-4"
    assert any((folder.parent / "remote-log-index-cache").iterdir())
    more = ("--out", tmp_path / "out", "--jobs", 1) if command == "audit run" else ()
    ran = rows(*command.split(), folder, *more)
    assert ran.status == 3 and "a bug in kctl" not in ran.err  # there are no objects


@pytest.mark.parametrize("number", [0, 4])
def test_objects_that_metadata_not_read_may_name_are_to_be_kept(tmp_path: Path, number: int) -> None:
    made = Tiered(tmp_path)
    stray = next(made.tier.glob("orders-2-*/*.log"))
    other = stray.with_name(stray.name.replace(stray.name[21:43], "AAAAAAAAAAAAAAAAAAAAAA"))
    shutil.copy(stray, other)
    for path in made.metadata_logs(number):
        path.write_bytes(path.read_bytes()[:700])
    plan = tmp_path / "plan.jsonl"
    assert rows("remote", "audit", made.folder, "--plan-cleanup", plan).status == 5
    kept = ("orders", 2) in named_in(made, number)
    assert [other.name in line for line in plan.read_text().splitlines()] == ([] if kept else [True])


@pytest.mark.parametrize("way", ["its folder", "a file", "elsewhere"])
def test_of_one_metadata_partition_nobody_can_tell_what_the_others_name(tmp_path: Path, way: str) -> None:
    made = Tiered(tmp_path)
    log = made.metadata_logs(0)[0]
    if way == "elsewhere":
        log = shutil.copy(log, tmp_path)
    ran = rows("remote", "audit", log.parent if way == "its folder" else log, "--tier", made.tier.parent)
    assert "remote-object-orphan" not in ran.codes()
    found = verdicts(ran)
    assert {key for key, one in found.items() if one[0] == "sound"} == named_in(made, 0)
    assert {one[0] for key, one in found.items() if key not in named_in(made, 0)} == {"could_not_judge"}


def test_a_checkpoint_of_a_broker_that_ran_may_be_ahead_of_its_metadata(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    for path in made.brokers.glob("*/data/replication-offset-checkpoint"):
        ahead = re.sub(
            r"(?m)^(__remote_log_metadata \d+) (\d+)$", lambda found: f"{found[1]} 1000", path.read_text()
        )
        path.write_text(ahead)
    assert "could_not_judge" in {
        verdict for verdict, _ in verdicts(rows("remote", "audit", made.folder)).values()
    }
    for path in made.brokers.glob("*/data/.kafka_cleanshutdown"):
        path.unlink()
    ran = rows("remote", "audit", made.folder)
    assert ran.status == 0 and {verdict for verdict, _ in verdicts(ran).values()} == {"sound"}


def test_nothing_is_said_to_be_missing_or_left_over_for_metadata_that_were_not_read(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    for number in range(5):
        for path in made.metadata_logs(number):
            batches = list(walk(path.read_bytes()))
            path.write_bytes(path.read_bytes()[: batches[len(batches) // 2].position])
    plan = tmp_path / "plan.jsonl"
    ran = rows("remote", "audit", made.folder, "--plan-cleanup", plan)
    assert ran.status == 3 and not ran.codes("error", "warning") and plan.read_text() == ""
    assert {verdict for verdict, _ in verdicts(ran).values()} == {"could_not_judge"}
    assert ran.codes().count("remote-metadata-absent") > 5
