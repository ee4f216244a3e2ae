"""The wheel: what it holds, how large it is, and that it has the same bytes each time it is built, from the sdist as well."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST = 2_200_000  # with its own client of the protocol of Kafka, which a library of 2 MB was before
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "formats", "kctl", "commands", "man", "completions")


BUILDER = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
DATED = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}


def sources(folder: Path) -> Path:
    """A copy of what the package is made from."""
    folder.mkdir(parents=True)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def built(source: Path, folder: Path) -> Path:
    """The wheel of a folder of sources or of an sdist."""
    subprocess.run([*BUILDER, "-w", folder, source], check=True, env=DATED)
    (wheel,) = folder.glob("*.whl")
    return wheel


def sdist(source: Path, folder: Path) -> Path:
    """The sdist of a folder of sources."""
    code = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", code, folder], check=True, env=DATED, cwd=source, capture_output=True
    )
    (archive,) = folder.glob("*.tar.gz")
    return archive


@pytest.mark.slow
def test_the_wheel(tmp_path: Path) -> None:
    first = built(sources(tmp_path / "one"), tmp_path / "first")
    second = built(sources(tmp_path / "two"), tmp_path / "second")
    assert first.read_bytes() == second.read_bytes(), "two builds of the same sources"
    third = built(sdist(sources(tmp_path / "three"), tmp_path), tmp_path / "third")
    assert first.read_bytes() == third.read_bytes(), "a build of the sdist"
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
    assert {name.partition("/share/")[2] for name in names if "completion" in name or "/zsh/" in name} >= {
        "bash-completion/completions/kctl",
        "zsh/site-functions/_kctl",
        "fish/vendor_completions.d/kctl.fish",
    }
    assert not any(name.startswith(("tests", "benchmarks", "examples")) for name in names)


def test_the_container_has_no_rights_and_nothing_left_over() -> None:
    stages = (ROOT / "Dockerfile").read_text("utf-8").split("\nFROM ")
    last = stages[-1].splitlines()
    assert last[0].startswith("python:3.") and "-slim" in last[0], "slim, and of a version that is named"
    assert "USER 10001" in last and last.index("USER 10001") < last.index('ENTRYPOINT ["kctl"]')
    assert 'VOLUME ["/evidence"]' in last
    copied = {line.split()[1] for line in stages[1].splitlines() if line.startswith("COPY")}
    assert {*SOURCES} <= copied | {"pyproject.toml", "README.md", "LICENSE"}
    let_in = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()}
    assert {*SOURCES} <= let_in
    hadolint = shutil.which("hadolint")
    if hadolint:
        ran = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout


def test_the_pythons_that_are_promised_are_those_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = [name.rpartition(" ")[2] for name in project["classifiers"] if ":: Python :: 3." in name]
    (tested,) = re.findall(r"(?m)^PYTHONS \?= (.*)", (ROOT / "Makefile").read_text("utf-8"))
    assert [f"python{version}" for version in promised] == tested.split()
    assert project["requires-python"] == f">={promised[0]}"
    (said,) = re.findall(
        r"CPython ([\d., and]+) on Linux", (ROOT / "docs/compatibility.md").read_text("utf-8")
    )
    assert said.replace(" and", ",").split(", ") == promised
