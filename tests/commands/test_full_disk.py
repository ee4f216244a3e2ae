"""A disk that is full while a file is written: one line that names it, status 3, and nothing half written is left."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import kctl, recording

MOMENTS = recording("incidents/unclean-2.8") / "moments"
SNAPSHOT = MOMENTS / "before/znodes.jsonl"


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which files can be made, and no byte be written."""
    folder = tmp_path / "full"
    folder.mkdir()
    real_open, real_fdopen = Path.open, os.fdopen

    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def opened(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        file = real_open(self, mode, *args, **options)
        return Full(file) if self.is_relative_to(folder) and "r" not in mode else file

    def made(descriptor: int, mode: str = "r", *args: Any, **options: Any) -> Any:
        file = real_fdopen(descriptor, mode, *args, **options)
        return Full(file) if "w" in mode else file

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(os, "fdopen", made)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["znode", "export", "{out}/znodes.jsonl", "--snapshot", SNAPSHOT],
        ["reassign", "plan", "--drain", "1", "--to", "{out}/plan.json", "--snapshot", SNAPSHOT],
        ["replica", "loss", MOMENTS.parent, "--export", "{out}"],
        ["segment", "rebuild", MOMENTS / "during/broker-1/data/ledger-0", "--to", "{out}"],
    ],
    ids=["znode export", "reassign plan", "replica loss", "segment rebuild"],
)
def test_a_full_disk(words: list[object], full: Path) -> None:
    ran = kctl(*(str(word).format(out=full) for word in words))
    assert ran.status == 3, ran.err
    assert f"kctl: {full}" in ran.err
    assert "o space left on device" in ran.err
    assert len(ran.errors) == 1
    assert [path for path in full.rglob("*") if path.is_file()] == []
