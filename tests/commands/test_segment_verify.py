"""`kctl segment verify` as a user meets it: exit status, what is reported of bad input, what a terminal shows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from commands.cli.render import Page
from commands.segment.verify import size_text, verify_text
from tests.conftest import kctl, recording, rows
from tests.kctl.checks.broken import CLEAN, KILLED, copy_of, flip, segment

ROLLED = "rolled-segs-0"


def test_a_sound_directory_ends_with_zero_and_counts_what_it_saw(evidence: Any) -> None:
    folder = evidence("segments/2.8.2") / "data-clean"
    ran = rows("segment", "verify", folder)
    assert ran.status == 0
    (summary,) = ran.of("summary")
    files = ran.of("file")
    assert summary["files"] == len(files)
    assert summary["bytes"] == sum(row["size_in_bytes"] for row in files)
    assert summary["batches"] == sum(row["batches"] or 0 for row in files)
    on_disk = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= len(on_disk) - 6  # .lock, .kafka_cleanshutdown
    assert all(row["good_bytes"] + row["damaged_bytes"] == row["size_in_bytes"] for row in files)
    assert {row["type"] for row in files} >= {"log", "index", "timeindex", "txnindex", "snapshot", "epochs"}
    assert all(row["batches"] is None for row in files if row["type"] != "log")


@pytest.mark.slow
def test_several_moments_and_several_paths_are_named(evidence: Any) -> None:
    folder = evidence("incidents/unclean-2.8")
    ran = rows("segment", "verify", folder)
    assert {row["moment"] for row in ran.of("file")} == {"before", "during", "after"}
    assert {row["evidence"] for row in ran.of("file")} == {None}
    moments = [folder / "moments" / name for name in ("before", "after")]
    ran = rows("segment", "verify", *moments)
    assert {row["evidence"] for row in ran.of("file")} == {str(path) for path in moments}
    assert "broker-1/data/ledger-0/" + segment(0) in {row["file"] for row in ran.of("file")}


def test_two_partitions_of_one_log_directory(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    given = [folder / ROLLED, next(path for path in sorted(folder.glob("*-0")) if path.name != ROLLED)]
    ran = rows("segment", "verify", *given)
    assert ran.status == 0
    assert {row["evidence"] for row in ran.of("file")} == {str(path) for path in given}
    assert {row["topic"] for row in ran.of("file")} == {path.name[:-2] for path in given}
    assert segment(0) in {row["file"] for row in ran.of("file")}


def test_damage_ends_with_five(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    flip(folder / ROLLED / segment(72), 200)
    ran = rows("segment", "verify", folder)
    assert ran.status == 5
    assert ran.codes("error") == ["batch-crc-mismatch"]
    assert ran.of("summary")[0]["errors"] == 1


def test_a_path_that_is_not_there_ends_with_three_after_the_rest(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    ran = rows("segment", "verify", tmp_path / "nowhere", folder / ROLLED)
    assert ran.status == 3
    assert ran.err.splitlines()[0] == f"kctl: {tmp_path}/nowhere: no such file or directory"
    assert ran.of("summary")[0]["files"] == 18


def test_an_empty_folder_is_no_evidence(tmp_path: Path) -> None:
    ran = rows("segment", "verify", tmp_path)
    assert (ran.status, ran.errors) == (
        3,
        [
            f"kctl: {tmp_path}: no log directory, partition folder or segment found here; name a folder that holds one"
        ],
    )


def test_a_named_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / segment(0))
    ran = rows("segment", "verify", tmp_path / segment(0))
    assert ran.status == 3
    assert "is a named pipe" in ran.err


def test_a_link_that_leads_to_itself(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to(tmp_path / "round")
    assert rows("segment", "verify", tmp_path / "round").status == 3


def test_an_empty_file_and_one_of_no_known_name(tmp_path: Path) -> None:
    (tmp_path / segment(72)).touch()
    ran = rows("segment", "verify", tmp_path / segment(72))
    assert ran.status == 0
    (file,) = ran.of("file")
    assert (file["batches"], file["base_offset"], file["next_offset"]) == (0, 72, None)
    source = recording("segments/2.8.2") / "data-clean/broker-11/logdir-0" / ROLLED / segment(72)
    shutil.copy(source, tmp_path / "evidence.bin")
    ran = rows("segment", "verify", tmp_path / "evidence.bin")
    assert ran.status == 0
    (file,) = ran.of("file")
    assert (file["file"], file["type"], file["batches"]) == (str(tmp_path / "evidence.bin"), "log", 11)


@pytest.mark.parametrize("content", [b"", b"hello\n", b"some words and more of them\n" * 99, bytes(5000)])
def test_a_file_that_is_none_of_kafkas_is_not_sound(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes.txt").write_bytes(content)
    ran = rows("segment", "verify", tmp_path / "notes.txt")
    said = "neither a segment nor another file of a log directory"
    assert ran.errors == [f"kctl: {tmp_path}/notes.txt: {said}; name a segment, or a folder that holds one"]
    assert ran.status == 3 and not ran.of("file")
    (judged,) = ran.of("judgement")
    assert judged["verdict"] == "could_not_judge" and judged["reason"] == f"{tmp_path}/notes.txt: {said}"
    assert [missing["get"] for missing in judged["missing"]] == ["name a segment, or a folder that holds one"]


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        (f"{ROLLED}/{segment(72)}", "log"),
        (f"{ROLLED}/{segment(72, '.index')}", "index"),
        (f"{ROLLED}/{segment(72, '.timeindex')}", "timeindex"),
        ("txn-mix-0/" + segment(0, ".txnindex"), "txnindex"),
        ("txn-mix-0/" + segment(108, ".snapshot"), "snapshot"),
        (f"{ROLLED}/leader-epoch-checkpoint", "epochs"),
        (f"{ROLLED}/partition.metadata", "partition-metadata"),
        ("replication-offset-checkpoint", "checkpoint"),
        ("meta.properties", "meta-properties"),
    ],
)
def test_each_kind_of_file_can_be_named(name: str, type_: str, tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    ran = rows("segment", "verify", folder / name)
    assert (ran.status, ran.codes("error", "warning")) == (0, [])
    assert [(row["type"], row["damaged_bytes"]) for row in ran.of("file")] == [(type_, 0)]


def test_names_that_are_no_utf8_and_topics_with_dots_and_dashes(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    os.rename(os.fsencode(folder / ROLLED), os.fsencode(folder) + b"/caf\xe9-0")
    (folder / "orders.plain-1").rename(folder / "a.b-c_d-.-7")
    ran = rows("segment", "verify", folder)
    assert ran.status == 0
    assert any(str(row["file"]).startswith("caf\\xe9-0/") for row in ran.of("file"))
    assert ("a.b-c_d-.", 7) in {(row["topic"], row["partition"]) for row in ran.of("file")}


def test_files_that_shrink_grow_and_vanish_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kctl.checks import parallel

    folder = copy_of(KILLED, tmp_path)
    read_folder = parallel.read_folder

    def read_and_change(path: Path) -> Any:
        listed = read_folder(path)
        if path.name == ROLLED:
            (path / segment(0, ".index")).unlink()
            (path / segment(72)).unlink()
            os.truncate(path / segment(204), 1000)
            with (path / segment(138)).open("ab") as file:
                file.write(b"\0" * 10)
        return listed

    monkeypatch.setattr(parallel, "read_folder", read_and_change)
    ran = rows("segment", "verify", folder, "--jobs", 1)
    assert ran.codes().count("evidence-vanished") == 2
    assert ran.of("summary")


def test_a_checkpoint_of_a_million_lines_and_one_of_no_bytes(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    lines = "".join(f"topic-with-a-name {number} 5\n" for number in range(20_000))
    (folder / "recovery-point-offset-checkpoint").write_text(f"0\n20000\n{lines}")
    (folder / "cleaner-offset-checkpoint").write_bytes(b"")
    ran = rows("segment", "verify", folder, "--max-findings", 50)
    assert ran.status == 0
    assert ran.codes().count("checkpoint-without-partition") == 50
    assert "more-findings" in ran.codes()


@pytest.mark.parametrize("text", ["x", "-1", "5 parsecs", "0x10", "1.5G"])
def test_sizes_that_are_none(text: str) -> None:
    assert kctl("segment", "verify", "--max-decompressed-bytes", text, ".").status == 2


def test_a_batch_beyond_the_limit_is_a_warning(tmp_path: Path) -> None:
    folder = recording("segments/2.8.2") / "data-clean/broker-11/logdir-0/by_broker.zstd-0"
    ran = rows("segment", "verify", folder, "--max-decompressed-bytes", "1")
    assert ran.status == 5
    assert set(ran.codes("warning")) == {"batch-not-examined"}


def test_levels_look_less_closely(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path) / ROLLED
    flip(folder / segment(72), 200)
    assert [rows("segment", "verify", folder, "--level", name).status for name in ("header", "crc")] == [0, 5]


def test_what_a_level_left_out_is_not_called_sound(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path) / ROLLED
    for level, examined, left_out in (
        ("header", "the headers of the batches", ["checksums of batches", "records"]),
        ("crc", "the headers and checksums of the batches", ["records"]),
    ):
        ran = rows("segment", "verify", folder, "--level", level)
        (judgement,) = ran.of("judgement")
        assert ran.status == 0 and judgement["verdict"] == "could_not_judge"
        assert (
            judgement["reason"].startswith(examined) and [m["what"] for m in judgement["missing"]] == left_out
        )
    (tmp_path / "empty").mkdir()
    assert rows("segment", "verify", folder, tmp_path / "empty", "--level", "crc").status == 3
    (judgement,) = rows("segment", "verify", folder).of("judgement")
    assert judgement["verdict"] == "sound" and judgement["reason"].startswith("every byte of ")


@pytest.mark.slow
def test_jobs_change_nothing() -> None:
    folder = recording("incidents/life-2.8")

    def told(jobs: int) -> list[dict[str, Any]]:
        found = rows("segment", "verify", folder, "--jobs", jobs).rows
        return [{k: v for k, v in row.items() if k != "seconds"} for row in found]

    assert told(1) == told(2)


FINDING = {
    "kind": "finding", "severity": "error", "code": "batch-crc-mismatch", "message": "The bytes are wrong.",
    "file": "t-0/x.log", "position": 1048576, "size_in_bytes": 16384, "base_offset": 5, "last_offset": 9,
}  # fmt: skip
FILE = {
    "kind": "file", "file": "t-0/x.log", "type": "log", "topic": "t", "partition": 0, "broker_id": 1,
    "evidence": None, "moment": None,
}  # fmt: skip
SUMMARY = {
    "kind": "summary",
    "bytes": 3 << 30,
    "records": 9204118,
    "seconds": 1.84,
    "errors": 2,
    "warnings": 0,
}


def test_a_terminal_shows_findings_folded_and_the_sum_last() -> None:
    lines = list(verify_text([FINDING, FINDING, FILE, SUMMARY], Page(100, color=False)))
    assert lines == [
        "error    batch-crc-mismatch  t-0/x.log  bytes 1,048,576+16,384  offsets [5, 10)",
        "         The bytes are wrong.",
        "         and 1 more of these in this file (--all shows each)",
        "",
        "1 partition, 1 segment, 9,204,118 records, 3.0 GiB in 1.8 s",
        "2 errors, 0 warnings, 0 notes   (exit status 5)",
    ]
    every = list(verify_text([FINDING, FINDING, FILE, SUMMARY], Page(100, color=False), everything=True))
    assert len(every) == len(lines) + 1


def test_notes_of_one_code_are_one_entry_below_what_is_wrong() -> None:
    note = {**FINDING, "severity": "info", "code": "log-torn-tail", "message": "Cut."}
    rows = [note, FINDING, {**note, "file": "t-1/x.log"}, FILE, SUMMARY]
    lines = list(verify_text(rows, Page(100, color=False)))
    assert lines[:5] == [
        "error    batch-crc-mismatch  t-0/x.log  bytes 1,048,576+16,384  offsets [5, 10)",
        "         The bytes are wrong.",
        "info     log-torn-tail  t-0/x.log  bytes 1,048,576+16,384  offsets [5, 10)",
        "         Cut.",
        "         and 1 more of these (--all shows each)",
    ]
    assert lines[-1] == "2 errors, 0 warnings, 2 notes   (exit status 5)"


@pytest.mark.parametrize(("size", "text"), [(0, "0 bytes"), (1023, "1,023 bytes"), (1536, "1.5 KiB")])
def test_sizes_read_well(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_compacted_topic_that_is_not_there_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").touch()
    (folder / "leader-epoch-checkpoint").write_text("0\n0\n")
    ran = rows("segment", "verify", tmp_path, "--compacted", "ordres")
    assert ran.errors == ["kctl: --compacted ordres: the evidence has no such topic; did you mean orders?"]
    assert ran.status == 2
    assert rows("segment", "verify", tmp_path, "--compacted", "orders").err == ""
