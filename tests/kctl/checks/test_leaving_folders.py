"""Folders that a broker deletes or keeps aside: it removes files one by one, a log before its indexes."""

from pathlib import Path

import pytest

from kctl.findings import Severity
from tests.kctl.checks.broken import KILLED, Seen, copy_of

UUID = "0123456789abcdef0123456789abcdef"


def leaving(tmp_path: Path, kind: str) -> Path:
    """A partition of several segments whose folder has a name such as `rolled-segs-0.UUID-delete`."""
    folder = copy_of(KILLED, tmp_path) / "rolled-segs-0"
    if kind:
        folder = folder.rename(folder.with_name(f"rolled-segs-0.{UUID}-{kind}"))
    return folder


def half_deleted(folder: Path) -> None:
    """As a broker leaves it that is killed in the middle: the first log is gone, of the last an index."""
    logs = sorted(folder.glob("*.log"))
    assert len(logs) > 1
    logs[0].unlink()
    logs[-1].with_suffix(".index").unlink()


@pytest.mark.parametrize(("kind", "severity"), [("delete", "info"), ("stray", "info"), ("", "")])
def test_indexes_of_a_folder_on_its_way_out_are_no_damage(tmp_path: Path, kind: str, severity: str) -> None:
    folder = leaving(tmp_path, kind)
    half_deleted(folder)
    seen = Seen(folder.parent)
    found = [f for f in seen.findings if f.place.file and f.place.file.startswith(folder.name)]
    about = {f.code: f.severity for f in found if f.code in ("index-orphaned", "index-missing")}
    assert about.keys() == {"index-orphaned", "index-missing"}
    assert set(about.values()) == ({Severity.INFO} if severity else {Severity.ERROR, Severity.WARNING})
    if severity:
        assert not [f for f in found if f.is_wrong]


def test_what_is_only_counted_is_no_damage_either(tmp_path: Path) -> None:
    folder = leaving(tmp_path, "delete")
    index = min(folder.glob("*.index"), key=lambda path: (-path.stat().st_size, path.name))
    index.write_bytes(bytes.fromhex("0000000500000001") * 40)
    seen = Seen(folder.parent, max_findings=3)
    (counted,) = [f for f in seen.of("more-findings") if f.place.file == f"{folder.name}/{index.name}"]
    assert counted.severity is Severity.INFO


def test_records_of_a_folder_on_its_way_out_are_judged_like_others(tmp_path: Path) -> None:
    folder = leaving(tmp_path, "delete")
    log = min(folder.glob("*.log"))
    data = bytearray(log.read_bytes())
    data[80] ^= 0xFF
    log.write_bytes(data)
    assert "batch-crc-mismatch" in Seen(folder.parent).wrong
