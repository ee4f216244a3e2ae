"""A healthy recorded log directory, copied to be broken, and what verify then says about it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from struct import pack_into, unpack_from

from formats.binary.crc import crc32c
from kctl.checks.report import CheckOptions, FileReport
from kctl.evidence.discover import discover
from kctl.findings import Finding, Severity
from kctl.verification.verify import verify
from tests.conftest import recording

CLEAN = ("segments/2.8.2", "data-clean/broker-11/logdir-0")
CLEAN_1 = ("segments/2.8.2", "data-clean/broker-11/logdir-1")
KILLED = ("segments/2.8.2", "data-killed/broker-11/logdir-0")
OLD = ("segments/0.10.1.1", "data-clean/broker-3")
KRAFT_4 = ("segments/4.3.0-kraft", "data-killed")
KRAFT = ("segments/3.9.1-kraft", "data-clean/broker-1/logdir-0")


def copy_of(place: tuple[str, str], tmp_path: Path) -> Path:
    """A copy that may be written to."""
    folder = tmp_path / "data"
    shutil.copytree(recording(place[0]) / place[1], folder, symlinks=True)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


class Seen:
    """What verify said."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.files: dict[str, FileReport] = {}
        self.findings: list[Finding] = []
        for item in verify(discover([folder]), CheckOptions(**options), jobs=1):  # type: ignore[arg-type]
            if isinstance(item, FileReport):
                assert item.place.file is not None
                assert item.place.file not in self.files
                assert 0 <= item.damaged_bytes <= item.size_in_bytes
                self.files[item.place.file] = item
            else:
                self.findings.append(item)

    def codes(self, *severities: Severity) -> set[str]:
        return {f.code for f in self.findings if not severities or f.severity in severities}

    @property
    def wrong(self) -> set[str]:
        return self.codes(Severity.ERROR, Severity.WARNING)

    def of(self, code: str) -> list[Finding]:
        return [f for f in self.findings if f.code == code]


Edit = Callable[[Path], None]


def change(path: Path, position: int, data: bytes) -> None:
    """Overwrite bytes; a negative position counts from the end."""
    whole = bytearray(path.read_bytes())
    position %= len(whole)
    assert whole[position : position + len(data)] != data
    whole[position : position + len(data)] = data
    path.write_bytes(whole)


def flip(path: Path, position: int, mask: int = 1) -> None:
    """Change bits of one byte."""
    change(path, position, bytes([path.read_bytes()[position] ^ mask]))


def batches(path: Path) -> list[tuple[int, int]]:
    """Position and size of each batch of a sound log."""
    data, position, found = path.read_bytes(), 0, []
    while position + 12 <= len(data):
        (length,) = unpack_from(">i", data, position + 8)
        found.append((position, length + 12))
        position += length + 12
    return found


def reseal(path: Path, batch: int, position: int, data: bytes) -> None:
    """Change bytes of a batch, at a position in it, and make its CRC right again."""
    start, size = batches(path)[batch]
    whole = bytearray(path.read_bytes())
    whole[start + position : start + position + len(data)] = data
    pack_into(">I", whole, start + 17, crc32c(bytes(whole[start + 21 : start + size])))
    path.write_bytes(whole)


def cut(path: Path, size: int) -> None:
    """Cut a file to a size; a negative one counts from the end."""
    whole = path.read_bytes()
    path.write_bytes(whole[:size])


def segment(base_offset: int, suffix: str = ".log") -> str:
    """The name of a segment file."""
    return f"{base_offset:020d}{suffix}"


def remove(path: Path) -> None:
    """Delete a file."""
    os.unlink(path)
