"""The wheel: what it holds, how large it is, and that it has the same bytes each time it is built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST = 1_500_000
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "formats", "kctl", "commands", "man")


def built(folder: Path) -> Path:
    """The wheel of the sources, built in a folder of its own."""
    source = folder / "source"
    for name in SOURCES:
        ignored = shutil.ignore_patterns("__pycache__")
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        options = {"ignore": ignored} if copy is shutil.copytree else {}
        source.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, source / name, **options)  # type: ignore[operator]
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        folder,
        source,
    ]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1790000000"})
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_the_wheel(tmp_path: Path) -> None:
    first, second = built(tmp_path / "first"), built(tmp_path / "second")
    assert first.read_bytes() == second.read_bytes(), "two builds of the same sources"
    assert first.stat().st_size < LARGEST
    with zipfile.ZipFile(first) as wheel:
        names = set(wheel.namelist())
    packaged = [path for package in ("formats", "kctl", "commands") for path in (ROOT / package).rglob("*")]
    wanted = {
        str(path.relative_to(ROOT))
        for path in packaged
        if path.is_file() and path.suffix not in (".pyc", "") and "__pycache__" not in path.parts
    }
    assert wanted - names == set()
    pages = {name.rpartition("/")[2] for name in names if "/share/man/man1/" in name}
    assert pages == {path.name for path in (ROOT / "man").glob("*.1")}
    assert not any(name.startswith(("tests", "benchmarks", "examples")) for name in names)
