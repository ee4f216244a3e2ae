"""Where there is nothing to look at, or not what was asked for, that is said: silence would read as health."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import kctl, recording, rows

UNCLEAN = "incidents/unclean-2.8"


@pytest.mark.parametrize(
    "words",
    [
        ["replica", "loss"],
        ["replica", "compare"],
        ["epoch", "show"],
        ["epoch", "compare"],
        ["remote", "audit"],
        ["remote", "plan"],
        ["transactions", "hanging"],
        ["state-log", "merge"],
        ["state-log", "timeline"],
        ["checkpoint", "show"],
        ["segment", "verify"],
        ["audit", "run", "--out", "{out}"],
    ],
    ids=" ".join,
)
def test_a_folder_without_evidence_is_status_3(words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    (folder / "notes.txt").write_text("nothing of Kafka's\n")
    ran = kctl(*(word.format(out=tmp_path / "out") for word in words), folder)
    assert ran.status == 3
    assert str(folder) in ran.err
    assert " here" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["replica", "loss", "--topic", "legder"], "no copy of topic legder is in the evidence; there are"),
        (["replica", "compare", "--topic", "legder"], "there are copies of ledger"),
        (["replica", "compare", "--topic", "ledger", "--partition", "9"], "no copy of ledger-9"),
        (["replica", "loss", "--partition", "9"], "no copy of a partition 9"),
        (["epoch", "show", "--topic", "legder"], "no copy of topic legder"),
        (["epoch", "compare", "--topic", "legder"], "no copy of topic legder"),
        (["epoch", "end-offset", "--epoch", "0", "--topic", "legder"], "no copy of topic legder"),
    ],
)
def test_a_topic_that_is_not_there_is_status_3(words: list[str], says: str) -> None:
    ran = rows(*words, recording(UNCLEAN))
    assert ran.status == 3
    assert says in ran.err
    assert ran.err.count("\n") == 1


def test_topics_that_are_there_go_on() -> None:
    ran = rows("replica", "loss", "--topic", "ledger", "--topic", "legder", recording(UNCLEAN))
    assert ran.status == 3
    assert ran.of("loss")


def test_a_timeline_without_the_topic_says_so() -> None:
    ran = rows("state-log", "timeline", "--topic", "legder", recording(UNCLEAN))
    assert "no line says who led a partition of legder" in ran.err


def test_the_brokers_protocol_without_its_library_is_one_line() -> None:
    program = """
import sys
class Without:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "kafka":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Without())
from commands.main import main
sys.exit(main(sys.argv[1:]))
"""
    for words in (
        ["topic", "list"],
        ["replica", "verify"],
        ["segment", "verify", "orders"],
        ["group", "list"],
    ):
        ran = subprocess.run(
            [sys.executable, "-c", program, *words, "--bootstrap-server", "localhost:1"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 3, ran.stderr
        assert "needs kafka-python, which is not installed; pip install 'kctl[wire]'" in ran.stderr
        assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("folder", "name"), [("ledger-1", "remote_log_snapshot"), ("", "_rlmm_committed_offsets")]
)
def test_a_tier_audit_goes_on_past_a_folder_that_cannot_be_searched(
    folder: str, name: str, evidence: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    below = evidence(UNCLEAN)
    closed = below / "moments/before/broker-1/data" / folder / name
    real = os.stat

    def refusing(path: Any, *args: Any, **options: Any) -> os.stat_result:
        if isinstance(path, (str, Path)) and Path(path) == closed:
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return real(path, *args, **options)

    monkeypatch.setattr(os, "stat", refusing)
    ran = rows("remote", "audit", below)
    assert ran.status in (0, 5), ran.err
    assert ran.of("tier_summary")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_that_was_named_is_status_3(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(b"")
    segment.chmod(0)
    assert rows("segment", "verify", segment).status == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["journal", "list"], "no change is in the journal "),
        (["elect", "status", "--snapshot", "{znodes}"], "every partition is led by its preferred replica"),
        (["consumer", "list", "--snapshot", "{znodes}"], "no consumer group keeps itself in ZooKeeper"),
        (["config", "get", "--entity-type", "brokers", "--snapshot", "{znodes}"], "nothing is set"),
        (["topic", "config", "get", "ledger", "--snapshot", "{znodes}"], "nothing is set"),
        (["reassign", "throttle", "list", "--snapshot", "{znodes}"], "no throttle is set"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
)
def test_no_rows_are_said_to_people_alone(words: list[str], says: str, tmp_path: Path) -> None:
    znodes = str(recording(UNCLEAN) / "moments/before/znodes.jsonl")
    wanted = [word.format(znodes=znodes) for word in words]
    env = {"KCTL_JOURNAL": str(tmp_path / "journal")}
    ran = kctl(*wanted, env=env)
    assert (ran.status, ran.out) == (0, b"")
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert kctl(*wanted, "--quiet", env=env).err == ""
    assert rows(*wanted, env=env).err == ""


def test_a_tier_audit_takes_an_empty_replica_folder(tmp_path: Path) -> None:
    copy = tmp_path / "tiered"
    shutil.copytree(recording("tier/h-custom-metadata"), copy)
    emptied = [folder for folder in copy.glob("brokers/*/data/tagged-1") if folder.is_dir()]
    assert emptied
    for folder in emptied:
        for file in folder.iterdir():
            file.unlink()
    ran = rows("remote", "audit", copy)
    assert ran.status in (0, 5), ran.err
    assert ran.of("tier_summary")


def test_hanging_transactions_are_looked_for_past_a_folder_that_cannot_be_listed(
    evidence: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    below = evidence(UNCLEAN)
    real = os.scandir

    def refusing(path: Any = ".") -> Any:
        if os.fspath(path).endswith("/ledger-1"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    ran = rows("transactions", "hanging", below)
    assert ran.status == 5, ran.err
    assert [one["code"] for one in ran.of("finding")] == ["internal-log-unreadable"]
