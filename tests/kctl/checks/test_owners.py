"""Files of another owner or mode than their neighbours: a broker cannot open them."""

import os
from pathlib import Path

import pytest

from kctl.evidence.discover import discover
from kctl.identities.owners import owner_findings


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "broker-1" / "data"
    for partition in ("orders-0", "orders-1"):
        (folder / partition).mkdir(parents=True)
        for suffix in ("log", "index"):
            (folder / partition / f"{0:020}.{suffix}").touch(mode=0o644)
    (folder / "meta.properties").write_text("version=0\nbroker.id=1\n")
    return folder


def found(folder: Path) -> list[tuple[str, str | None, str]]:
    return [(f.code, f.place.file, f.message) for f in owner_findings(discover([folder.parent]))]


def test_files_of_one_owner_and_mode_are_no_finding(data: Path) -> None:
    assert found(data) == []
    for path in data.rglob("*.*"):
        path.chmod(0o444)
    assert found(data) == [], "evidence that nobody may write is no sign of the broker's"


def test_a_file_that_its_owner_may_not_write(data: Path) -> None:
    log = data / "orders-1" / f"{0:020}.log"
    log.chmod(0o444)
    [(code, file, message)] = found(data)
    assert (code, file) == ("log-dir-not-writable", f"data/orders-1/{0:020}.log")
    assert message.startswith("1 of 7 files of this log directory") and "mode 0444" in message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_owner(data: Path) -> None:
    for path in data.rglob("*"):
        os.chown(path, 1000, 1000)
    os.chown(data / "orders-0", 0, 0)
    [(code, file, message)] = found(data)
    assert (code, file) == ("log-dir-other-owner", "data/orders-0")
    assert "1 of 7 files of this log directory belongs to uid 0, gid 0, the others to uid 1000" in message
