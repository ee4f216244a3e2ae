"""Copies held against each other: damage, holes, compaction, old formats, half copies, other topics and clusters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formats.log.message_set import write_message, write_wrapper
from formats.log.record_batch import Record, write_batch
from tests.conftest import Ran, examples, rows

TOPIC_IDS = ("AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw")
Batches = list[bytes]


def records(start: int, end: int, text: str = "v") -> list[Record]:
    return [Record(o, 1_000 + o, b"k%d" % o, f"{text}{o}".encode()) for o in range(start, end)]


def batch(start: int, end: int, text: str = "v", epoch: int = 0, **options: Any) -> bytes:
    return write_batch(records(start, end, text), partition_leader_epoch=epoch, **options)


def log_dir(
    root: Path,
    broker_id: int,
    batches: Batches,
    *,
    high_watermark: int | None = None,
    epochs: list[list[int]] | None = None,
    cluster: str = "one-cluster-000000000",
    topic_id: str | None = None,
    cleaner: bool = False,
    base: int = 0,
) -> Path:
    """A broker's log directory with one partition `orders-0`."""
    folder = root / f"broker-{broker_id}" / "data"
    partition = folder / "orders-0"
    partition.mkdir(parents=True)
    (partition / f"{base:020d}.log").write_bytes(b"".join(batches))
    meta = f"#\n#date\nversion=0\nbroker.id={broker_id}\ncluster.id={cluster}\n"
    (folder / "meta.properties").write_text(meta)
    (folder / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    marks = [] if high_watermark is None else [f"orders 0 {high_watermark}"]
    (folder / "replication-offset-checkpoint").write_text("\n".join(["0", str(len(marks)), *marks, ""]))
    if epochs is not None:
        lines = [f"{epoch} {start}" for epoch, start in epochs]
        (partition / "leader-epoch-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    if topic_id is not None:
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    if cleaner:
        (folder / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 10\n")
    return folder


def compared(root: Path, *options: object) -> Ran:
    return rows("replica", "compare", root, *options)


def verdict(ran: Ran) -> dict[str, Any]:
    (row,) = ran.of("verdict")
    return row


def ranges(ran: Ran) -> list[list[int]]:
    return [[row["from_offset"], row["to_offset"]] for row in ran.of("divergence")]


FRONT = [batch(0, 5), batch(5, 10), batch(10, 15)]


def test_equal_copies_are_equal(tmp_path: Path) -> None:
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, FRONT)
    ran = compared(tmp_path)
    assert (verdict(ran)["verdict"], ran.status) == ("equal", 0)
    assert ran.of("finding") == []


def test_a_shorter_copy_is_behind(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, FRONT[:2])
    row = verdict(compared(tmp_path))
    assert (row["verdict"], row["behind"], row["best_source"]) == ("behind", [2], 1)


def test_other_records_at_the_same_offset_are_divergence(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 1)], high_watermark=15)
    log_dir(tmp_path, 2, [*FRONT, batch(15, 18, "b", 2)], high_watermark=18)
    ran = compared(tmp_path)
    (row,) = ran.of("divergence")
    assert (row["broker_ids"], row["from_offset"], row["to_offset"]) == ([1, 2], 15, 18)
    assert row["epochs"] == [[1], [2]]
    assert (verdict(ran)["verdict"], ran.status) == ("diverged", 5)
    # Newest epoch and highest high watermark are on one branch: no need to choose.
    assert verdict(ran)["best_source"] == 2


def test_a_person_must_choose_between_what_was_promised_and_what_came_since(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 1)], high_watermark=20)
    log_dir(tmp_path, 2, [*FRONT, batch(15, 18, "b", 2)], high_watermark=18)
    row = verdict(compared(tmp_path))
    assert (row["best_source"], row["current_lineage"], row["most_committed"]) == (None, 2, 1)


def test_only_the_records_that_differ_are_named(tmp_path: Path) -> None:
    mixed = records(10, 12) + records(12, 14, "other") + records(14, 15)
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [*FRONT[:2], write_batch(mixed)])
    assert ranges(compared(tmp_path)) == [[12, 14]]


def test_an_equal_record_between_parts_two_ranges(tmp_path: Path) -> None:
    mixed = records(10, 11, "x") + records(11, 12) + records(12, 15, "x")
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [*FRONT[:2], write_batch(mixed)])
    assert ranges(compared(tmp_path)) == [[10, 11], [12, 15]]


def test_other_boundaries_with_the_same_records_are_no_divergence(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [FRONT[0], batch(5, 8), batch(8, 10), FRONT[2]])
    ran = compared(tmp_path)
    assert ranges(ran) == []
    assert ran.codes() == ["replica-other-bytes-same-records"]
    assert ran.status == 0


def test_another_codec_with_the_same_records_is_no_divergence(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [FRONT[0], batch(5, 10, codec=1), FRONT[2]])
    assert ranges(compared(tmp_path)) == []


def test_a_batch_sent_again_is_not_another_record(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, epoch=1)])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 20, epoch=2)])
    ran = compared(tmp_path)
    assert ranges(ran) == []
    assert ran.codes("warning") == ["replica-same-payload-other-epoch"]
    assert verdict(ran)["verdict"] == "diverged"
    assert verdict(ran)["reason"] == "the same records lie under different leader epochs"


def test_a_wrong_crc_is_damage_of_that_copy(tmp_path: Path) -> None:
    broken = bytearray(FRONT[1])
    broken[-1] ^= 1
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [FRONT[0], bytes(broken), FRONT[2]])
    log_dir(tmp_path, 3, FRONT)
    ran = compared(tmp_path)
    assert ranges(ran) == []
    (finding,) = ran.of("finding")
    assert (finding["code"], finding["broker_id"]) == ("replica-damaged-copy", 2)
    assert (finding["base_offset"], finding["last_offset"]) == (5, 9)
    assert "whole on broker 1, 3" in finding["message"]
    assert (verdict(ran)["verdict"], verdict(ran)["best_source"]) == ("damaged", 1)


def test_garbage_between_batches_is_damage_too(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [FRONT[0], b"\xff" * len(FRONT[1]), FRONT[2]])
    ran = compared(tmp_path)
    (finding,) = ran.of("finding")
    assert (finding["code"], finding["base_offset"], finding["last_offset"]) == ("replica-damaged-copy", 5, 9)


def test_a_batch_that_is_not_there_is_a_hole(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [FRONT[0], FRONT[2]])
    ran = compared(tmp_path)
    (finding,) = ran.of("finding")
    assert (finding["code"], finding["broker_id"], finding["base_offset"]) == ("replica-hole", 2, 5)
    assert verdict(ran)["verdict"] == "hole"
    assert compared(tmp_path, "--compacted", "orders").of("finding") == []


@pytest.mark.parametrize(
    ("suffix", "is_clean", "is_hole"),
    [("deleted", False, False), ("deleted", True, True), ("cleaned", False, True)],
)
def test_a_segment_that_a_broker_was_about_to_delete_is_no_hole(
    tmp_path: Path, suffix: str, is_clean: bool, is_hole: bool
) -> None:
    """Retention ran while a directory was copied by hand: the first segment was copied before, the next was renamed."""
    log_dir(tmp_path, 1, FRONT)
    folder = log_dir(tmp_path, 2, [FRONT[0]]) / "orders-0"
    (folder / f"{5:020d}.log.{suffix}").write_bytes(FRONT[1])
    (folder / f"{10:020d}.log").write_bytes(FRONT[2])
    if is_clean:  # no broker leaves such a file at a shutdown in good order
        (folder.parent / ".kafka_cleanshutdown").touch()
    ran = compared(tmp_path)
    assert [finding["code"] for finding in ran.of("finding")] == ["replica-hole"] * is_hole
    assert verdict(ran)["verdict"] == ("hole" if is_hole else "equal")


def test_a_copy_with_a_hole_is_not_the_one_to_trust(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [FRONT[0], FRONT[2]])
    log_dir(tmp_path, 2, FRONT)
    assert (verdict(compared(tmp_path))["verdict"], verdict(compared(tmp_path))["best_source"]) == ("hole", 2)


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (0, b"\0\0\0\0\0\x10\0\0"),
        (0, b"\0\0\0\0\0\0\0\6"),  # into the batch behind, which is right
        (0, b"\0\0\0\0\0\0\0\4"),  # into the batch before, which is right
        (12, b"\0\0\0\x4d"),
    ],
)
def test_an_offset_or_epoch_that_only_one_batch_has_is_damage(
    tmp_path: Path, position: int, value: bytes
) -> None:
    wrong = bytearray(FRONT[1])
    wrong[position : position + len(value)] = value  # covered by no CRC
    log_dir(tmp_path, 1, [FRONT[0], bytes(wrong), FRONT[2]])
    log_dir(tmp_path, 2, FRONT)
    ran = compared(tmp_path)
    (finding,) = ran.of("finding")
    assert (finding["code"], finding["broker_id"]) == ("replica-damaged-copy", 1)
    assert (finding["base_offset"], finding["last_offset"]) == (5, 9)
    assert (finding["position"], finding["size_in_bytes"]) == (len(FRONT[0]), len(FRONT[1]))
    assert (verdict(ran)["verdict"], verdict(ran)["best_source"], ran.status) == ("damaged", 2, 5)


def test_a_segments_last_offset_that_reaches_into_the_next_is_damage(tmp_path: Path) -> None:
    """And nothing of the segments behind is left out for it."""
    wrong = bytearray(FRONT[1])
    wrong[:8] = b"\0\0\0\0\0\x10\0\0"
    for broker_id, second in ((1, bytes(wrong)), (2, FRONT[1])):
        folder = log_dir(tmp_path, broker_id, [FRONT[0], second]) / "orders-0"
        (folder / f"{10:020d}.log").write_bytes(FRONT[2])
    ran = compared(tmp_path)
    (finding,) = ran.of("finding")
    assert (finding["code"], finding["base_offset"], finding["last_offset"]) == ("replica-damaged-copy", 5, 9)
    assert {row["log_end_offset"] for row in ran.of("lineage")} == {15}


@pytest.mark.parametrize("text", ["{", '{"path": "/brokers/ids/1"}\n{"path": "/bro', "\0\1\2"])
def test_a_znode_export_that_cannot_be_read_is_a_finding(tmp_path: Path, text: str) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, FRONT)
    (tmp_path / "znodes.jsonl").write_text(text)
    for verb in ("compare", "loss"):
        ran = rows("replica", verb, tmp_path)
        (finding,) = [f for f in ran.of("finding") if f["severity"] == "error"]
        assert (finding["code"], finding["file"], ran.status) == (
            "znode-export-malformed",
            "znodes.jsonl",
            5,
        )
    assert rows("replica", "compare", tmp_path, tmp_path / "znodes.jsonl").status == 3


def test_what_a_cleaner_took_on_one_side_is_no_hole(tmp_path: Path) -> None:
    left = write_batch([records(5, 10)[4]], base_offset=5, last_offset_delta=4)
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [left, FRONT[2]])
    ran = compared(tmp_path)
    assert ranges(ran) == []
    assert ran.codes("error", "warning") == []
    assert verdict(ran)["verdict"] == "equal"


def test_a_cleaners_checkpoint_says_compacted(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [FRONT[0], FRONT[2]], cleaner=True)
    assert verdict(compared(tmp_path))["verdict"] == "equal"


def test_a_record_that_differs_on_a_compacted_topic_is_divergence(tmp_path: Path) -> None:
    left = write_batch(records(9, 10, "other"), base_offset=5, last_offset_delta=4)
    log_dir(tmp_path, 1, FRONT, cleaner=True)
    log_dir(tmp_path, 2, [left, FRONT[2]], cleaner=True)
    assert ranges(compared(tmp_path)) == [[9, 10]]


def test_epochs_that_contradict_each_other_are_divergence_where_a_cleaner_took_the_rest(
    tmp_path: Path,
) -> None:
    """The longer copy is not the one to take: its end is of the epoch before the election."""
    log_dir(tmp_path, 1, [batch(0, 5), batch(85, 90)], cleaner=True)
    log_dir(tmp_path, 2, [batch(0, 5), batch(15, 20, epoch=2)], cleaner=True)
    ran = compared(tmp_path)
    said = verdict(ran)
    assert (said["verdict"], said["best_source"], said["branches"]) == ("diverged", 2, [[1], [2]])
    assert ran.codes("error") == ["replica-epochs-contradict"] and ran.status == 5
    log_dir(tmp_path, 3, [batch(0, 5), batch(15, 20, epoch=2), batch(90, 95, epoch=3)], cleaner=True)
    assert ran.codes("error") == ["replica-epochs-contradict"], "epochs that grow are of one log"


def test_the_last_record_of_an_older_epoch_at_the_offset_of_a_newer_one(tmp_path: Path) -> None:
    """Of the batch of the newer epoch that begins there the cleaner left one record, at another offset."""
    left = write_batch([records(15, 20)[4]], base_offset=15, last_offset_delta=4, partition_leader_epoch=2)
    log_dir(tmp_path, 1, [batch(0, 5), batch(15, 16)], cleaner=True)
    log_dir(tmp_path, 2, [batch(0, 5), left], cleaner=True)
    ran = compared(tmp_path)
    assert (verdict(ran)["verdict"], verdict(ran)["branches"]) == ("diverged", [[1], [2]])


def test_retention_on_one_side_is_no_difference(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, FRONT[1:], base=5)
    ran = compared(tmp_path)
    assert (verdict(ran)["verdict"], ran.of("finding")) == ("equal", [])


def test_no_common_offset_leaves_the_verdict_open(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT[:1])
    log_dir(tmp_path, 2, FRONT[2:], base=10)
    ran = compared(tmp_path)
    assert verdict(ran)["verdict"] == "unknown"
    assert ran.codes("warning") == ["replica-no-common-range"]
    lines = [{"path": "/brokers/ids/1", "data": encoded({"version": 4})}, {"path": "/controller_epoch"}]
    (tmp_path / "znodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = compared(tmp_path)  # broker 1 ran, and its log went on after it was copied
    assert (verdict(ran)["verdict"], ran.codes("warning")) == ("unknown", [])
    assert ran.codes("info") == ["replica-no-common-range"]


def message(offset: int, text: str = "v", magic: int = 1) -> bytes:
    return write_message(magic, offset, b"k%d" % offset, f"{text}{offset}".encode(), timestamp=1_000 + offset)


def test_old_messages_are_compared_by_offset(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [message(o) for o in range(10)])
    log_dir(tmp_path, 2, [*(message(o) for o in range(6)), *(message(o, "x") for o in range(6, 12))])
    ran = compared(tmp_path)
    assert ranges(ran) == [[6, 10]]
    assert ran.of("lineage")[0]["epochs"] == []


def test_a_wrapper_and_its_messages_one_by_one_hold_the_same(tmp_path: Path) -> None:
    inner = [r._replace(headers=()) for r in records(0, 6)]
    log_dir(tmp_path, 1, [message(o) for o in range(6)] + [message(o) for o in range(6, 9)])
    log_dir(tmp_path, 2, [write_wrapper(1, inner, codec=1)] + [message(o) for o in range(6, 9)])
    ran = compared(tmp_path)
    assert (ranges(ran), verdict(ran)["verdict"]) == ([], "equal")


def test_converted_messages_hold_the_same_records(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [message(o, magic=0) for o in range(5)])
    log_dir(tmp_path, 2, [batch(0, 5)])
    assert ranges(compared(tmp_path)) == []


def test_half_a_copy_leaves_the_verdict_open(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT, high_watermark=15)
    log_dir(tmp_path, 2, [FRONT[0], FRONT[1][:40]], high_watermark=15)
    ran = compared(tmp_path)
    assert ran.codes("warning") == ["replica-incomplete-copy"]
    row = verdict(ran)
    assert (row["verdict"], ran.status) == ("unknown", 5)
    assert "complete one would settle it" in row["reason"]


def test_a_checkpoint_may_be_copied_after_the_log_of_a_running_broker(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT[:2], high_watermark=15)
    log_dir(tmp_path, 2, FRONT, high_watermark=15)
    (tmp_path / "broker-1" / "data" / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    lines = [{"path": "/brokers/ids/1", "data": encoded({"version": 4})}, {"path": "/controller_epoch"}]
    export = tmp_path / "znodes.jsonl"
    export.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = compared(tmp_path)
    assert (verdict(ran)["verdict"], ran.codes(), ran.status) == ("behind", [], 0)
    ran = rows("segment", "verify", tmp_path)
    assert ran.codes("info").count("checkpoint-copied-later") == 2
    assert ran.codes("error") == []
    export.write_text(
        '{"path": "/brokers/ids"}\n{"path": "/controller_epoch"}\n'
    )  # it was down: the tail is lost
    assert compared(tmp_path).codes("warning") == ["replica-incomplete-copy"]
    assert set(rows("segment", "verify", tmp_path).codes("error")) == {
        "high-watermark-above-log-end",
        "recovery-point-above-log-end",
    }
    export.unlink()  # nobody says whether it was
    said = rows("segment", "verify", tmp_path)
    assert said.codes("error") == []
    ahead = [row for row in said.of("finding") if row["code"].endswith("-above-log-end")]
    assert [row["severity"] for row in ahead] == ["warning", "warning"]
    assert all("znode export" in row["message"] for row in ahead)
    (tmp_path / "broker-1" / "data" / ".kafka_cleanshutdown").touch()  # it was not
    assert "high-watermark-above-log-end" in rows("segment", "verify", tmp_path).codes("error")


def test_equal_copies_under_two_topic_ids_are_one_log(tmp_path: Path) -> None:
    """Two controllers gave the topic an id each: what the folders hold decides."""
    log_dir(tmp_path, 1, FRONT, topic_id=TOPIC_IDS[0])
    log_dir(tmp_path, 2, FRONT[:1], topic_id=TOPIC_IDS[1])
    ran = compared(tmp_path)
    assert (ran.codes("error"), ran.codes("warning")) == (["replica-same-under-two-topic-ids"], [])
    assert verdict(ran)["verdict"] == "behind"


def test_a_topic_made_again_is_another_topic(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT, topic_id=TOPIC_IDS[0])
    log_dir(tmp_path, 2, [batch(0, 5, "new")], topic_id=TOPIC_IDS[1])
    ran = compared(tmp_path)
    assert ran.of("divergence") == []
    assert ran.codes("warning") == ["replica-topic-recreated"]
    assert verdict(ran)["verdict"] == "unknown"


def test_clusters_that_were_mixed_are_not_compared(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [batch(0, 5, "new")], cluster="another-cluster-00000")
    ran = compared(tmp_path)
    assert ran.of("divergence") == []
    assert "replica-clusters-mixed" in ran.codes("warning")
    assert verdict(ran)["verdict"] == "unknown"


def test_a_copy_that_is_not_here_is_named(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, FRONT)
    znode = {
        "path": "/brokers/topics/orders",
        "data": encoded({"version": 1, "partitions": {"0": [1, 2, 3]}}),
    }
    (tmp_path / "znodes.jsonl").write_text(json.dumps(znode) + "\n")
    ran = compared(tmp_path)
    (finding,) = ran.of("finding")
    assert (finding["code"], finding["broker_id"], finding["severity"]) == ("replica-copy-missing", 3, "info")
    assert (verdict(ran)["verdict"], ran.status) == ("equal", 0)


def encoded(value: object) -> str:
    import base64

    return base64.b64encode(json.dumps(value).encode()).decode()


def test_a_batch_that_cannot_be_decoded_is_said_not_raised(tmp_path: Path) -> None:
    noise = b"\x1f\x8b" + b"\xff" * 40
    from formats.log.record_batch import read_header, seal

    header = read_header(batch(5, 10, codec=1))
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, [FRONT[0], seal(header, noise), FRONT[2]])
    ran = compared(tmp_path)
    assert "replica-copy-unreadable" in ran.codes("error")


def test_rejoin_says_what_each_would_drop(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 1)], high_watermark=20, epochs=[[0, 0], [1, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 18, "b", 2)], high_watermark=18, epochs=[[0, 0], [2, 15]])
    ran = compared(tmp_path, "--if-leader", 2, "--kafka-version", "2.8")
    (row,) = ran.of("rejoin")
    assert (row["broker_id"], row["truncate_to"], row["offsets_dropped"]) == (1, 15, 5)
    assert row["below_own_high_watermark"]
    old = compared(tmp_path, "--if-leader", 2, "--kafka-version", "0.10").of("rejoin")
    assert old[0]["truncate_to"] == 18  # to the leader's end: offsets 15 to 17 stay different


def test_different_epoch_files_with_the_same_records_are_no_divergence(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT, epochs=[[0, 0], [3, 15], [4, 15]])
    log_dir(tmp_path, 2, FRONT, epochs=[[0, 0]])
    log_dir(tmp_path, 3, FRONT, epochs=[[0, 0], [9, 70]])
    ran = compared(tmp_path)
    assert verdict(ran)["verdict"] == "equal"
    assert [row["epochs"] for row in ran.of("lineage")] == [[[0, 0]]] * 3


pieces = st.one_of(
    st.binary(max_size=120),
    st.builds(batch, st.integers(0, 30), st.integers(31, 40), epoch=st.integers(0, 3)),
    st.builds(lambda o: message(o), st.integers(0, 40)),
)


@pytest.mark.slow
@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.lists(pieces, max_size=5), min_size=2, max_size=3))
def test_any_bytes_end_in_a_verdict(tmp_path_factory: pytest.TempPathFactory, logs: list[Batches]) -> None:
    root = tmp_path_factory.mktemp("any")
    for broker_id, one in enumerate(logs, 1):
        log_dir(root, broker_id, one)
    ran = compared(root)
    assert len(ran.of("verdict")) == 1
    assert ran.status in (0, 5)
    assert rows("replica", "loss", root).status in (0, 5)


def test_large_logs_read_by_processes_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.copies.scanned.LARGE", 1)
    monkeypatch.setattr("kctl.scan.pool.ALONE_FOR", 0)
    other = [*FRONT[:2], batch(10, 15, "x"), batch(15, 30)]
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20)])
    log_dir(tmp_path, 2, other)
    log_dir(tmp_path, 3, FRONT)
    alone = compared(tmp_path, "--jobs", 1)
    assert compared(tmp_path, "--jobs", 2).rows == alone.rows
    assert ranges(alone) == [[10, 15], [10, 15]]


def test_many_partitions_over_processes_come_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kctl.scan.pool.ALONE_FOR", 0)
    for broker_id in (1, 2):
        folder = log_dir(tmp_path, broker_id, FRONT)
        for number in range(1, 9):
            (folder / f"orders-{number}").mkdir()
            (folder / f"orders-{number}" / f"{0:020d}.log").write_bytes(batch(0, number))
    ran = compared(tmp_path, "--jobs", 2)
    assert [row["partition"] for row in ran.of("verdict")] == list(range(9))
    assert ran.rows == compared(tmp_path, "--jobs", 1).rows


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_checkpoint_without_the_first_epochs_is_damaged_where_the_log_start_is_known(
    tmp_path: Path, is_clean: bool
) -> None:
    """Deleting records up to offset 15 leaves the same file, and a broker that dies then has written no log start."""
    later = batch(18, 20, "b", 3)  # the cleaner took [15, 18)
    log_dir(tmp_path, 1, [*FRONT, later], epochs=[[0, 0], [3, 15]])
    folder = log_dir(tmp_path, 2, [*FRONT, later], epochs=[[3, 15]])
    if is_clean:
        (folder / ".kafka_cleanshutdown").touch()
    verified = rows("segment", "verify", folder)
    findings = [f for f in verified.of("finding") if f["file"].endswith("leader-epoch-checkpoint")]
    code, severity = ("epoch-entry-missing", "error") if is_clean else ("epochs-begin-late", "info")
    assert [(f["code"], f["severity"]) for f in findings] == [(code, severity)]
    (judgement,) = compared(tmp_path, "--compacted", "orders").of("judgement")
    assert judgement["verdict"] == ("sound" if is_clean else "could_not_judge")
    if not is_clean:
        assert "leader-epoch-checkpoint of broker 2 begins at offset 15" in judgement["reason"]


def test_a_batch_whose_last_offset_overflows_is_damage(tmp_path: Path) -> None:
    record = Record(0, 0, b"k", b"v")
    last = Record(2**63 - 1, 0, b"k", b"v")
    for broker, count in ((1, 1), (2, 2)):
        folder = tmp_path / f"broker-{broker}" / "orders-0"
        folder.mkdir(parents=True)
        high = write_batch([last], last_offset_delta=count - 1)
        (folder / f"{0:020d}.log").write_bytes(write_batch([record]) + high)
    ran = rows("replica", "compare", tmp_path)
    assert ran.status == 5
    assert "sound" not in [row["verdict"] for row in ran.of("judgement")]
