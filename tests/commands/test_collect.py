"""`kctl collect`: the copy answers every question as its source does; nothing is written outside of it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kctl.evidence.manifest import MANIFEST, lines_of
from tests.conftest import Ran, digest, kctl, recording, recordings, rows, unchanged
from tests.log_examples import LOG

BASE = 20 * "0"


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A log directory with two topics, its logs and settings."""
    root = tmp_path / "host"
    for topic in ("orders-0", "orders-1", "clicks-0"):
        folder = root / "data" / topic
        folder.mkdir(parents=True)
        (folder / f"{BASE}.log").write_bytes(LOG)
        (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (root / "data" / "meta.properties").write_text("version=0\nbroker.id=7\n")
    (root / "data" / "replication-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    (root / "data" / ".lock").touch()
    (root / "logs").mkdir()
    line = "[2026-11-21 13:00:00,000] INFO [KafkaServer id=7] started (kafka.server.KafkaServer)\n"
    (root / "logs" / "server.log").write_text(line)
    (root / "config").mkdir()
    (root / "config" / "server.properties").write_text("broker.id=7\nssl.key.password=hunter2\n")
    return root


def manifest(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / MANIFEST).read_bytes().splitlines()]


def left_out(folder: Path) -> dict[str, str]:
    return {line["path"]: line["why"] for line in manifest(folder) if line["kind"] == "left_out"}


def paths(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_a_copy_has_the_layout_that_every_command_reads(broker: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with unchanged(broker):
        ran = rows("collect", "--to", copy, broker)
    assert ran.status == 0, ran.err
    (done,), (total,) = ran.of("collected"), ran.of("summary")
    assert (done["broker_id"], done["incomplete"], done["clock_offset_ms"]) == (7, None, None)
    assert paths(copy) == {
        "manifest.jsonl",
        "broker-7/data/meta.properties",
        "broker-7/data/replication-offset-checkpoint",
        "broker-7/logs/server.log",
        "broker-7/server.properties",
        *(
            f"broker-7/data/{topic}/{name}"
            for topic in ("orders-0", "orders-1", "clicks-0")
            for name in (f"{BASE}.log", "leader-epoch-checkpoint")
        ),
    }
    assert (
        copy / "broker-7" / "server.properties"
    ).read_text() == "broker.id=7\nssl.key.password=(redacted)\n"
    lines = manifest(copy)
    assert (lines[0]["kind"], lines[-1]["kind"]) == ("collection", "seal")
    assert lines[-1]["sha256"] == total["sha256"]
    assert total["files"] == lines[-1]["files"] == 10
    log = next(line for line in lines if line.get("path") == f"broker-7/data/orders-0/{BASE}.log")
    status = (broker / "data" / "orders-0" / f"{BASE}.log").stat()
    assert log["source"] == str(broker / "data" / "orders-0" / f"{BASE}.log")
    assert (log["size"], log["uid"], log["gid"], log["mtime_ns"]) == (
        len(LOG), status.st_uid, status.st_gid, status.st_mtime_ns,
    )  # fmt: skip
    settings = next(line for line in lines if line.get("path") == "broker-7/server.properties")
    read = (broker / "config" / "server.properties").read_bytes()
    assert (settings["note"], settings["source_sha256"]) == ("secrets redacted", sha256(read).hexdigest())
    assert settings["source_size"] == (broker / "config" / "server.properties").stat().st_size
    assert "hunter2" not in json.dumps(lines)


def test_chosen_topics_and_partitions_alone_are_copied(broker: Path, tmp_path: Path) -> None:
    ran = rows("collect", "--to", tmp_path / "copy", "--topic", "orders", "--partition", 1, broker)
    assert ran.status == 0, ran.err
    assert {
        path.split("/")[2]
        for path in paths(tmp_path / "copy")
        if "data/" in path and "-checkpoint" not in path
    } == {
        "meta.properties",
        "orders-1",
    }
    ran = rows("collect", "--to", tmp_path / "other", "--topic", "order", broker)
    assert ran.status == 2 and "did you mean orders?" in ran.err


def test_a_settings_file_names_the_log_directories(broker: Path, tmp_path: Path) -> None:
    settings = broker / "config" / "server.properties"
    settings.write_text(f"broker.id=7\nlog.dirs={broker}/data, {broker}/nowhere\n")
    ran = rows("collect", "--to", tmp_path / "copy", settings)
    assert ran.status == 0, ran.err
    assert f"broker-7/data/orders-0/{BASE}.log" in paths(tmp_path / "copy")
    assert "broker-7/server.properties" in paths(tmp_path / "copy")


def test_a_file_names_the_sources(broker: Path, tmp_path: Path) -> None:
    listed = tmp_path / "brokers.txt"
    listed.write_text(f"# the brokers of rack 1\n\n  {broker / 'data'}\n{broker / 'logs'}\n")
    ran = rows("collect", "--to", tmp_path / "copy", "--sources", listed)
    assert ran.status == 0, ran.err
    assert [row["source"] for row in ran.of("collected")] == [str(broker / "data"), str(broker / "logs")]
    assert (tmp_path / "copy" / "broker-7" / "logs" / "server.log").exists()


def test_no_source_is_wrong_usage(tmp_path: Path) -> None:
    ran = kctl("collect", "--to", tmp_path / "copy")
    assert ran.status == 2 and "no source is named" in ran.err
    missing = kctl("collect", "--to", tmp_path / "copy", "--sources", tmp_path / "none.txt")
    assert missing.status == 3 and "none.txt" in missing.err and not (tmp_path / "copy").exists()


def test_logs_that_were_last_written_to_earlier_are_left_out(broker: Path, tmp_path: Path) -> None:
    old = broker / "logs" / "server.log.1"
    shutil.copy(broker / "logs" / "server.log", old)
    os.utime(old, (1_000_000_000, 1_000_000_000))
    ran = rows("collect", "--to", tmp_path / "copy", "--since", "2020-01-01T00:00:00Z", broker)
    assert ran.status == 0 and ran.of("collected")[0]["left_out"] == 1
    assert left_out(tmp_path / "copy") == {"broker-7/logs/server.log.1": "not written to since --since"}


def test_a_copy_is_never_written_into_something(broker: Path, tmp_path: Path) -> None:
    for target in (broker / "copy", broker, tmp_path, broker / "data" / "orders-0"):
        with unchanged(tmp_path):
            ran = rows("collect", "--to", target, broker)
        assert ran.status == 4 and "lie in each other" in ran.err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert rows("collect", "--to", tmp_path / "full", broker).status == 4
    assert rows("collect", "--to", tmp_path / "full" / "file", broker).status == 3
    assert rows("collect", "--to", tmp_path / "new", tmp_path / "nothing").status == 3
    assert not (tmp_path / "new").exists()


def test_a_hostile_source_writes_nothing_outside(broker: Path, tmp_path: Path) -> None:
    data = broker / "data"
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("key")
    (data / "linked-0").symlink_to(tmp_path / "secret")
    (data / "orders-0" / f"{1:020}.log").symlink_to(tmp_path / "secret" / "key")
    os.mkfifo(data / "orders-0" / f"{2:020}.log")
    (data / "orders-0" / f"{3:020}.log").symlink_to("/dev/zero")
    (data / "orders-1" / f"{4:020}.log\n\x1b[2J").write_bytes(LOG)
    (data / "bad\x1b[2J-0").mkdir()
    (data / "bad\x1b[2J-0" / f"{BASE}.log").write_bytes(LOG)
    (data / "lost+found").mkdir()
    (data / "lost+found" / "#1").write_bytes(b"x")
    (data / "recovery-point-offset-checkpoint").symlink_to("/etc/passwd")
    (broker / "logs" / "controller.log").symlink_to("/etc/passwd")
    (broker / "config" / "broker.properties").symlink_to("/etc/passwd")
    copy = tmp_path / "copy"
    with unchanged(broker), unchanged(tmp_path / "secret"):
        ran = rows("collect", "--to", copy, broker)
    assert ran.status == 0, ran.err
    assert not [
        path for path in copy.rglob("*") if path.is_symlink() or not (path.is_dir() or path.is_file())
    ]
    assert not [path for path in paths(copy) if not path.isprintable()]
    why = left_out(copy)
    assert why["broker-7/data/linked-0"] == "it is a symbolic link"
    assert why[f"broker-7/data/orders-0/{2:020}.log"] == "it is a named pipe"
    assert why[f"broker-7/data/orders-1/{4:020}.log\\x0a\\x1b[2J"].startswith("control characters")
    assert why["broker-7/data/bad\\x1b[2J-0"].startswith("control characters")
    assert why["broker-7/data/recovery-point-offset-checkpoint"] == "it is a symbolic link"
    assert "no partition's" in why["broker-7/data/lost+found"]
    assert rows("collect", "verify", copy).status == 0


# --- what may not be read -----------------------------------------------------------------------------


@pytest.fixture
def forbid(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let no file or folder be opened whose path ends so, as for a user who may not read it."""
    endings: list[str] = []
    real_open = os.open

    def opened(path: Any, flags: int, *args: Any, **options: Any) -> int:
        folder = options.get("dir_fd")
        above = os.readlink(f"/proc/self/fd/{folder}") + "/" if folder is not None else ""
        is_read = not flags & (os.O_WRONLY | os.O_RDWR)
        if is_read and "/host/" in (full := above + os.fspath(path)) and full.endswith(tuple(endings)):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real_open(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", opened)
    return endings.append


def test_a_segment_that_may_not_be_read_is_an_error(
    broker: Path, tmp_path: Path, forbid: Callable[[str], None]
) -> None:
    forbid(f"orders-0/{BASE}.log")
    copy = tmp_path / "copy"
    ran = rows("collect", "--to", copy, broker)
    assert ran.status == 3
    assert f"{broker}/data/orders-0/{BASE}.log: permission denied" in ran.err
    (done,) = ran.of("collected")
    assert "1 name could not be read" in done["incomplete"] and f"orders-0/{BASE}.log" in done["incomplete"]
    (line,) = [line for line in manifest(copy) if line["kind"] == "left_out"]
    assert line["path"] == f"broker-7/data/orders-0/{BASE}.log" and line["unread"] is True
    assert manifest(copy)[-1]["kind"] == "seal"
    assert "broker-7/data/orders-0/leader-epoch-checkpoint" in paths(copy)
    assert verified(copy) == (0, [])


def test_only_the_first_of_many_are_told(broker: Path, tmp_path: Path, forbid: Callable[[str], None]) -> None:
    for number in range(9):
        (broker / "logs" / f"server.log.2026-11-2{number}-10").write_text(
            (broker / "logs" / "server.log").read_text()
        )
    forbid("-10")
    ran = rows("collect", "--to", tmp_path / "copy", broker)
    assert ran.status == 3
    assert ran.err.count("permission denied") == 3 and "6 more names could not be read" in ran.err


@pytest.mark.parametrize("name", ["meta.properties", "server.properties", "replication-offset-checkpoint"])
def test_other_files_that_may_not_be_read_are_errors(
    name: str, broker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kctl.collect.local_source as local_source

    real = local_source._descriptor

    def descriptor(of: str, folder: int) -> int:
        if of == name:
            raise PermissionError(errno.EACCES, "Permission denied", of)
        return real(of, folder)

    monkeypatch.setattr(local_source, "_descriptor", descriptor)
    ran = rows("collect", "--to", tmp_path / "copy", broker)
    assert ran.status == 3 and f"{name}: permission denied" in ran.err


def test_a_segment_on_a_failing_disk_is_an_error_and_the_rest_is_copied(
    broker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.preadv

    def preadv(descriptor: int, buffers: Any, position: int) -> int:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(f"orders-0/{BASE}.log"):
            raise OSError(errno.EIO, "Input/output error")
        return real(descriptor, buffers, position)

    monkeypatch.setattr(os, "preadv", preadv)
    copy = tmp_path / "copy"
    ran = rows("collect", "--to", copy, broker)
    assert ran.status == 3 and "input/output error at byte 0" in ran.err
    assert f"broker-7/data/orders-0/{BASE}.log" not in paths(copy)
    assert f"broker-7/data/orders-1/{BASE}.log" in paths(copy)
    assert verified(copy) == (0, [])


def test_a_partition_folder_that_may_not_be_read_is_named_and_the_rest_is_copied(
    broker: Path, tmp_path: Path, forbid: Callable[[str], None]
) -> None:
    forbid("/orders-0")
    copy = tmp_path / "copy"
    ran = rows("collect", "--to", copy, broker)
    assert ran.status == 3 and f"{broker}/data/orders-0: permission denied" in ran.err
    assert f"broker-7/data/orders-1/{BASE}.log" in paths(copy)
    assert f"broker-7/data/clicks-0/{BASE}.log" in paths(copy)
    assert ran.of("collected")[0]["incomplete"] and manifest(copy)[-1]["kind"] == "seal"


def test_what_might_not_be_read_is_copied_as_the_copy_goes_on(
    broker: Path, tmp_path: Path, forbid: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid("/orders-0")
    copy = tmp_path / "copy"
    assert rows("collect", "--to", copy, broker).status == 3
    monkeypatch.undo()
    ran = rows("collect", "--to", copy, "--resume", broker)
    assert ran.status == 0, ran.err
    assert f"broker-7/data/orders-0/{BASE}.log" in paths(copy)
    assert "evidence-cut-off" not in rows("segment", "verify", copy).codes()
    started = rows("log-dir", "start", copy)
    assert started.status == 0, started.of("judgement")


@pytest.mark.parametrize("what", [f"orders-0/{BASE}.log", "/orders-0"], ids=["segment", "folder"])
@pytest.mark.parametrize("command", [("segment", "verify"), ("log-dir", "start")], ids=" ".join)
@pytest.mark.parametrize("within", ["", "broker-7", "broker-7/data"])
def test_no_command_judges_a_partition_that_might_not_be_read_as_whole(
    command: tuple[str, str],
    what: str,
    within: str,
    broker: Path,
    tmp_path: Path,
    forbid: Callable[[str], None],
) -> None:
    """Of a copy, or of a folder in it."""
    for other in ("orders-1", "clicks-0"):
        shutil.rmtree(broker / "data" / other)
    (broker / "data" / "orders-0" / f"{BASE}.index").touch()
    forbid(what)
    copy = tmp_path / "copy"
    assert rows("collect", "--to", copy, broker).status == 3
    ran = rows(*command, copy / within)
    assert ran.status == 3, ran.rows
    open_ = [row for row in ran.of("judgement") if row["verdict"] not in ("sound", "damaged")]
    assert len(open_) == 1, ran.of("judgement")
    (missing,) = open_[0]["missing"]
    assert "orders-0" in missing["what"] and missing["get"].startswith("kctl collect"), missing
    wrong = [row for row in ran.of("finding") if row["severity"] != "info" and row["topic"] == "orders"]
    assert not [row for row in wrong if row["partition"] == 0], wrong


def test_of_a_folder_in_a_copy_only_its_own_notes_count(
    broker: Path, tmp_path: Path, forbid: Callable[[str], None]
) -> None:
    forbid("/orders-0")
    copy = tmp_path / "copy"
    assert rows("collect", "--to", copy, broker).status == 3
    for within in ("orders-1", "clicks-0"):
        ran = rows("segment", "verify", copy / "broker-7" / "data" / within)
        assert not {*ran.codes()} & {"evidence-cut-off", "evidence-left-out-of-copy"}, ran.rows
    both = [copy / "broker-7" / "data", copy / "broker-7" / "logs"]
    for given in (both, both[::-1]):
        assert "evidence-cut-off" in rows("segment", "verify", *given).codes()


# --- verify -------------------------------------------------------------------------------------------


@pytest.fixture
def copy(broker: Path, tmp_path: Path) -> Path:
    assert rows("collect", "--to", tmp_path / "copy", broker).status == 0
    return tmp_path / "copy"


def verified(copy: Path) -> tuple[int, list[tuple[str, str]]]:
    with unchanged(copy):
        ran = rows("collect", "verify", copy)
    return ran.status, [(row["code"], row["file"]) for row in ran.of("finding")]


def test_a_copy_that_nobody_touched_is_as_it_was(copy: Path) -> None:
    assert verified(copy) == (0, [])


def test_each_change_of_a_copy_is_named(copy: Path) -> None:
    log, other = (copy / "broker-7" / "data" / topic / f"{BASE}.log" for topic in ("orders-0", "orders-1"))
    log.chmod(0o600)
    log.write_bytes(LOG[:-1] + bytes([LOG[-1] ^ 1]))
    other.unlink()
    (copy / "broker-7" / "data" / "orders-1" / "x").touch()
    status, found = verified(copy)
    assert status == 5
    assert sorted(found) == [
        ("manifest-file-added", "broker-7/data/orders-1/x"),
        ("manifest-file-changed", f"broker-7/data/orders-0/{BASE}.log"),
        ("manifest-file-missing", f"broker-7/data/orders-1/{BASE}.log"),
    ]


def test_a_copy_with_another_link_in_it_is_changed(copy: Path) -> None:
    log = copy / "broker-7" / "data" / "orders-0" / f"{BASE}.log"
    log.rename(copy.parent / "moved")
    log.symlink_to(copy.parent / "moved")
    assert verified(copy) == (5, [("manifest-file-changed", f"broker-7/data/orders-0/{BASE}.log")])


@pytest.mark.parametrize("how", ["edited", "cut", "torn", "longer", "another line", "leaves the folder"])
def test_a_manifest_that_was_changed_is_named(how: str, copy: Path) -> None:
    path = copy / MANIFEST
    lines = path.read_bytes().splitlines(keepends=True)
    changed = {
        "edited": [line.replace(b'"mode":', b'"mode":1') for line in lines],
        "cut": lines[:-1],
        "torn": [*lines[:-1], lines[-1][:40]],
        "longer": [*lines, lines[0]],
        "another line": [*lines[:2], b"{}\n", *lines[2:]],
        "leaves the folder": [line.replace(b'"path":"broker-7', b'"path":"../../broker-7') for line in lines],
    }[how]
    path.write_bytes(b"".join(changed))
    status, found = verified(copy)
    assert status == 5 and ("manifest-seal-wrong", MANIFEST) in found


def test_a_folder_without_a_manifest_cannot_be_verified(tmp_path: Path) -> None:
    assert rows("collect", "verify", tmp_path).status == 3


# --- interrupted --------------------------------------------------------------------------------------


def test_an_interrupted_copy_goes_on(broker: Path, tmp_path: Path) -> None:
    """A copy that ended in the midst of a partition: what was whole is kept, the rest is copied again."""
    copy = tmp_path / "copy"
    assert rows("collect", "--to", copy, broker).status == 0
    path = copy / MANIFEST
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"whole","path":"broker-7/data/orders-0"' in line)
    path.write_bytes(b"".join(lines[:at]) + lines[at][:10])
    last = json.loads(lines[at - 1])["path"]
    (copy / last).chmod(0o600)
    (copy / last).write_bytes(b"half")
    whole = copy / "broker-7" / "data" / "clicks-0" / f"{BASE}.log"
    before = whole.stat().st_ino
    assert rows("collect", "--to", copy, broker).status == 4
    ran = rows("collect", "--to", copy, "--resume", broker)
    assert ran.status == 0, ran.err
    assert whole.stat().st_ino == before
    assert (copy / last).read_bytes() == (broker / last.replace("broker-7/", "")).read_bytes()
    assert verified(copy) == (0, [])
    assert [line["kind"] for line in manifest(copy)].count("seal") == 1


def test_a_segment_that_retention_deleted_before_a_copy_went_on_is_taken_away(
    broker: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    (broker / "data" / "orders-0" / f"{5:020}.log").write_bytes(b"")
    assert rows("collect", "--to", copy, broker).status == 0
    path = copy / MANIFEST
    lines = [line for line in path.read_bytes().splitlines(keepends=True) if b'"whole"' not in line]
    path.write_bytes(b"".join(lines[:-1]))
    (broker / "data" / "orders-0" / f"{BASE}.log").unlink()
    assert rows("collect", "--to", copy, "--resume", broker).status == 0
    assert not (copy / "broker-7" / "data" / "orders-0" / f"{BASE}.log").exists()
    assert verified(copy) == (0, [])


def test_a_finished_copy_gets_no_other_source(copy: Path, broker: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "data"
    shutil.copytree(broker / "data", other)
    for sources in ([other], [broker, other], [broker]):
        with unchanged(copy):
            ran = rows("collect", "--to", copy, "--resume", *sources)
        assert ran.status == 4 and "finished and sealed" in ran.err
    assert verified(copy) == (0, [])


def test_an_incomplete_copy_goes_on_with_its_own_sources(
    broker: Path, tmp_path: Path, forbid: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid("/orders-0")
    copy, other = tmp_path / "copy", tmp_path / "other" / "data"
    assert rows("collect", "--to", copy, broker).status == 3
    monkeypatch.undo()
    shutil.copytree(broker / "data", other)
    with unchanged(copy):
        refused = rows("collect", "--to", copy, "--resume", broker, other)
    assert refused.status == 4 and f"{other} is no source of this copy" in refused.err
    monkeypatch.chdir(broker.parent)
    assert rows("collect", "--to", copy, "--resume", "host").status == 0


@pytest.mark.parametrize(
    "options",
    [("--topic", "ordres"), ("--topic", "orders", "--topic", "ordres"), ("--partition", 9), ("--rate", 0)],
)
def test_a_misspelt_choice_writes_nothing(options: tuple[object, ...], broker: Path, tmp_path: Path) -> None:
    ran = rows("collect", "--to", tmp_path / "copy", *options, broker)
    assert ran.status == 2 and ran.err
    assert not (tmp_path / "copy").exists()


@pytest.mark.slow
def test_a_killed_copy_leaves_a_manifest_to_go_on_with(broker: Path, tmp_path: Path) -> None:
    for number in range(60):
        folder = broker / "data" / f"many-{number}"
        folder.mkdir()
        (folder / f"{BASE}.log").write_bytes(LOG * 200)
    copy = tmp_path / "copy"
    line = [sys.executable, "-m", "commands", "collect", "--to", str(copy), "--rate", "2MiB", str(broker)]
    process = subprocess.Popen(line, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)
    while not list(copy.glob("broker-7/data/many-1*")):
        assert process.poll() is None
    process.kill()
    process.wait()
    assert list(lines_of(copy / MANIFEST, may_be_torn=True))
    assert verified(copy)[0] == 5
    ran = rows("collect", "--to", copy, "--resume", broker)
    assert ran.status == 0, ran.err
    assert verified(copy) == (0, [])
    for folder in (broker / "data").glob("*-*/"):
        assert digest(copy / "broker-7" / "data" / folder.name) == digest(folder)


# --- the same answers ---------------------------------------------------------------------------------


def essence(ran: Ran) -> list[str]:
    """What an audit says, without what depends on where the files lie."""
    kinds = {
        "judgement": ("question", "topic", "partition", "broker_id", "moment", "verdict"),
        "finding": (
            "code",
            "severity",
            "topic",
            "partition",
            "broker_id",
            "moment",
            "base_offset",
            "last_offset",
        ),
        "loss": ("topic", "partition", "from_offset", "to_offset", "class", "cause"),
    }
    return sorted(
        repr([row["kind"], *(row[key] for key in kinds[row["kind"]])])
        for row in ran.rows
        if row["kind"] in kinds and row.get("severity") != "info"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", recordings("incidents"))
def test_an_audit_of_the_copy_says_what_one_of_the_source_says(name: str, tmp_path: Path) -> None:
    source, copy = recording(name), tmp_path / "copy"
    assert rows("collect", "--to", copy, source).status == 0
    before = rows("audit", "run", source, "--out", tmp_path / "before")
    after = rows("audit", "run", copy, "--out", tmp_path / "after")
    assert essence(after) == essence(before)
    assert after.status == before.status


def test_a_summary_on_a_terminal(broker: Path, tmp_path: Path) -> None:
    ran = kctl("collect", "--to", tmp_path / "copy", broker, columns=200)
    assert b"10 files" in ran.out and b"(broker 7)" in ran.out
    assert b"as they were copied" in kctl("collect", "verify", tmp_path / "copy", columns=200).out
