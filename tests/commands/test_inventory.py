"""`kctl FOLDER`: what evidence holds, file by file, by what it was recognised as."""

from __future__ import annotations

import os
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from kctl.evidence.contents import OF_A_LOG
from kctl.evidence.discover import discover
from kctl.evidence.inventory import Inventory
from kctl.evidence.walk import opened_roots
from tests.conftest import Ran, kctl, recording, rows, unchanged
from tests.kctl.test_log_carriers import CARRIERS

PLAN = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]}]}'


def files_of(ran: Ran) -> dict[str, dict[str, Any]]:
    return {row["file"]: row for row in ran.of("evidence_file")}


@pytest.mark.slow
def test_every_file_is_listed_once_and_the_sums_are_those_of_the_files() -> None:
    with unchanged(recording("incidents/unclean-2.8")) as folder:
        ran = rows("inventory", folder)
        files = files_of(ran)
        there = {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}
        assert files.keys() == there and len(ran.of("evidence_file")) == len(there)
        (total,) = ran.of("inventory")
        groups = ran.of("evidence_group")
        assert total["files"] == sum(group["files"] for group in groups) == len(there)
        assert total["bytes"] == sum((Path(folder) / name).stat().st_size for name in there)
        assert total["brokers"] == [1, 2, 3] and ran.status == 0
        odd = [row for row in files.values() if row["is_read"] and row["understood"] < row["looked_at"]]
        assert not odd, "what a sound cluster wrote is understood"
        alias = kctl(folder, "--output", "jsonl")
        assert alias.out == ran.out, "a folder in the place of a command"


def test_what_files_are(tmp_path: Path) -> None:
    here = tmp_path / "here"
    data = here / "broker-7" / "data"
    (data / "orders-0").mkdir(parents=True)
    written: dict[str, str | bytes] = {
        "broker-7/data/meta.properties": "version=0\nbroker.id=7\ncluster.id=x\n",
        "broker-7/data/replication-offset-checkpoint": "0\n2\norders 0 5\norders 1 7\n",
        "broker-7/data/orders-0/00000000000000000000.log": b"\0" * 100,
        "broker-7/data/orders-0/leader-epoch-checkpoint": "0\n1\n0 0\n",
        "broker-7/server.properties": "broker.id=7\n# a comment\nlog.dirs=/data\n",
        "broker-7/logs/server.log": CARRIERS["journalctl -o cat"]() + "what is this\n",
        "broker-7/logs/kafkaServer-gc.log": "[0.004s][info][gc] Using G1\n",
        "export.csv": CARRIERS["Datadog, CSV"](),
        "plan.json": PLAN,
        "notes.txt": "it broke on Monday\n",
        "picture.png": bytes(range(128, 256)) + b"\0\1\2\3" * 100,
        "nothing": "",
    }
    for name, content in written.items():
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (here / "out").symlink_to("/etc/passwd")
    os.mkfifo(here / "pipe")
    files = files_of(rows("inventory", here))
    assert {name: (row["group"], row["what"], row["broker_id"], row["is_read"]) for name, row in files.items()} == {
        "broker-7/data/meta.properties": ("log-dirs", "meta-properties", 7, True),
        "broker-7/data/replication-offset-checkpoint": ("log-dirs", "checkpoint", 7, True),
        "broker-7/data/orders-0/00000000000000000000.log": ("log-dirs", "segment", 7, True),
        "broker-7/data/orders-0/leader-epoch-checkpoint": ("log-dirs", "checkpoint", 7, True),
        "broker-7/server.properties": ("settings", "settings", 7, True),
        "broker-7/logs/server.log": ("logs", "broker-log", 3, True),
        "broker-7/logs/kafkaServer-gc.log": ("other", "beside", 7, False),
        "export.csv": ("logs", "broker-log", 3, True),
        "plan.json": ("other", "plan", None, False),
        "notes.txt": ("other", "text", None, False),
        "picture.png": ("other", "binary", None, False),
        "nothing": ("other", "empty", None, False),
        "out": ("other", "link", None, False),
        "pipe": ("other", "special", None, False),
    }  # fmt: skip
    zeros = files["broker-7/data/orders-0/00000000000000000000.log"]
    assert (zeros["looked_at"], zeros["understood"], zeros["note"]) == (100, 0, "zeros")
    assert zeros["topic"] == "orders" and zeros["partition"] == 0
    log = files["broker-7/logs/server.log"]
    assert (log["lines"], log["lines_understood"]) == (10, 9)
    assert rows("inventory", here).of("inventory")[0]["not_looked_at"] == 2


def test_lines_that_nobody_knows_count(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    known = "[2026-10-02 10:00:01,100] INFO [KafkaServer id=3] started (kafka.server.KafkaServer)\n"
    unknown = "[2026-10-02 10:00:01,200] INFO nobody ever wrote this (kafka.server.KafkaServer)\n"
    log.write_text(known * 3 + unknown * 7)
    row = files_of(rows("inventory", tmp_path))["server.log"]
    assert (row["lines"], row["lines_understood"]) == (10, 3)
    assert row["looked_at"] == log.stat().st_size and 0.28 < row["understood"] / row["looked_at"] < 0.32
    text = kctl(tmp_path, columns=80).out.decode()
    assert "not understood: 1 file" in text and "3 of 10 lines" in text


def test_no_more_than_the_start_of_a_file_is_read(tmp_path: Path) -> None:
    line = "[2026-10-02 10:00:01,100] INFO [KafkaServer id=3] started (kafka.server.KafkaServer)\n"
    (tmp_path / "server.log").write_text(line * 20_000)
    (tmp_path / "export.json").write_text('{"events": [' + '{"message": "x"},' * 100_000 + "{}]}")
    ran = rows("inventory", tmp_path)
    assert all(row["looked_at"] <= OF_A_LOG for row in ran.of("evidence_file"))
    assert files_of(ran)["server.log"]["looked_at"] == OF_A_LOG


@pytest.mark.slow
def test_files_are_not_kept(tmp_path: Path) -> None:
    """Ten times the files take no more memory."""

    def most(folder: Path, partitions: int) -> int:
        for n in range(partitions):
            (folder / f"t-{n}").mkdir(parents=True)
            for i in range(10):
                (folder / f"t-{n}" / f"{i:020}.index").touch()
        roots = tuple(opened_roots([folder], []))
        tracemalloc.start()
        for _ in Inventory(roots, {}).rows():
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    most(tmp_path / "first", 1)
    few = most(tmp_path / "few", 20)
    many = min(
        most(tmp_path / name, 200) for name in ("many", "again")
    )  # a table of the process may grow once
    assert many < few + 200 * 1000, f"{few:,} and {many:,} bytes"


def test_the_picture_fits_a_terminal(tmp_path: Path) -> None:
    for n in range(40):
        (tmp_path / f"broker-{n}" / "data" / "t-0").mkdir(parents=True)
        (tmp_path / f"broker-{n}" / "data" / "t-0" / f"{0:020}.log").touch()
        (tmp_path / f"a-file-that-nobody-knows-the-name-of-and-that-is-long-{n}.weird").write_bytes(
            b"\1\2\3" * 9
        )
    lines = kctl(tmp_path, columns=80).out.decode().splitlines()
    assert len(lines) <= 36 and max(map(len, lines)) <= max(80, len(str(tmp_path)) + 60)
    text = "\n".join(lines)
    assert "and 28 more brokers" in text and "and 32 more, which `--output jsonl` lists" in text


def test_a_folder_without_a_file_of_kafkas(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("it broke on Monday\n")
    text = kctl(tmp_path, columns=80).out.decode()
    assert "no file here is one of Kafka's" in text and "notes.txt" in text and "next " not in text


def test_a_dry_run_of_an_audit_lists_it_too(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").touch()
    ran = rows("audit", "run", tmp_path, "--out", tmp_path / "out", "--dry-run")
    assert [row["kind"] for row in ran.rows] == [
        "evidence_file",
        "evidence_group",
        "inventory",
        "audit-estimate",
    ]
    text = kctl("audit", "run", tmp_path, "--out", tmp_path / "out", "--dry-run", columns=80).out.decode()
    assert "1 file" in text and "would check" in text and "next " not in text


@pytest.mark.parametrize("word", ["topics", "nothing-here"])
def test_a_word_that_is_neither_a_command_nor_a_place(word: str) -> None:
    ran = kctl(word)
    assert ran.status == 2 and f"No such command '{word}'" in ran.err


def test_a_path_that_is_not_there_is_said_to_be_none() -> None:
    ran = kctl("./nothing/here")
    assert ran.status == 3 and "nothing/here: no such file or directory" in ran.err


def test_a_verb_of_a_command_that_is_nearly_one() -> None:
    ran = kctl("collect", "verfy", "copy")
    assert ran.status == 2 and "No such command 'verfy'. Did you mean `collect verify`?" in ran.err


def test_the_next_command_can_be_pasted(tmp_path: Path) -> None:
    evidence = tmp_path / "a b"
    shutil.copytree(recording("incidents/unclean-2.8") / "moments" / "after" / "broker-1", evidence)
    assert f"kctl audit run '{evidence}'" in kctl(evidence, columns=200).out.decode()


def test_a_log_of_another_name_is_read_where_one_broker_wrote_it(tmp_path: Path) -> None:
    line = "[2026-11-21 13:18:45,240] INFO [KafkaServer id={}] started (kafka.server.KafkaServer)\n"
    for name, brokers in (
        ("broker-1/logs/server.log", [1]),
        ("broker-1/logs/messages", [1]),
        ("broker-2/logs/messages", [2]),
        ("one.txt", [2]),
        ("merged.txt", [1, 2]),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(map(line.format, brokers)))
    listed = {row["file"]: row for row in rows("inventory", tmp_path).of("evidence_file")}
    assert [name for name, row in listed.items() if not row["is_read"]] == ["merged.txt"]
    assert listed["merged.txt"]["note"] == "a log of several brokers; name the file to read it"
    read = {log.path.relative_to(tmp_path).as_posix() for log in discover([str(tmp_path)]).broker_logs}
    assert read == {name for name, row in listed.items() if row["is_read"]}


@pytest.mark.parametrize("form", ["lines", "json"])
def test_pods_that_print_later_are_seen(tmp_path: Path, form: str) -> None:
    """What `kubectl logs --prefix` of several pods gives: all of one pod, then all of the next."""
    line = "[2026-11-21 13:18:45,240] INFO [GroupCoordinator] Stabilized group g (kafka.coordinator.group.GroupCoordinator)"
    text = ""
    for pod in range(3):
        as_text, as_json = f"[pod/kafka-{pod}/kafka] {line}\n", f'{{"pod": "kafka-{pod}", "log": "{line}"}}\n'
        text += (as_text if form == "lines" else as_json) * 4000
    (tmp_path / "pods.txt").write_text(text)
    ran = rows("inventory", tmp_path)
    (row,), (total,) = ran.of("evidence_file"), ran.of("inventory")
    assert (row["broker_id"], row["is_read"], total["brokers"]) == (None, True, [0, 1, 2])
    assert "lines of brokers 0, 1, 2" in row["note"] and row["looked_at"] <= OF_A_LOG


def test_all_bytes_of_utf_16_are_counted(tmp_path: Path) -> None:
    line = "[2026-10-02 10:00:01,100] INFO [KafkaServer id=3] started (kafka.server.KafkaServer)\n"
    (tmp_path / "server.log").write_bytes((line * 9).encode("utf-16"))
    (tmp_path / "notes.txt").write_bytes(("it broke on Monday\n" * 9).encode("utf-16"))
    for row in rows("inventory", tmp_path).of("evidence_file"):
        assert row["looked_at"] == row["size_in_bytes"]
        assert row["understood"] == (row["size_in_bytes"] if row["is_read"] else 0)
