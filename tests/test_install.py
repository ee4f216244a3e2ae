"""kctl from a folder of wheels, with no package index: by pip, pipx and uv, as far as the machine has them.

The wheels of dependencies are fetched once into the cache of the tests; `make test-matrix` runs this.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HERE, UNPACKED
from tests.test_package import built, sources

pytestmark = [pytest.mark.slow, pytest.mark.matrix]
EXAMPLE = HERE.parent / "examples" / "unclean-election"
NOWHERE = {"PIP_INDEX_URL": "http://127.0.0.1:1/", "UV_OFFLINE": "1", "PIP_NO_INDEX": "1"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with kctl's wheel and everything that it needs."""
    folder = tmp_path_factory.mktemp("wheels")
    wheel = built(sources(folder / "source"), folder / "built")
    kept = UNPACKED.parent / f"wheels-{sys.version_info[0]}.{sys.version_info[1]}"
    download = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--only-binary=:all:",
        "--find-links",
        kept,
        "-d",
        kept,
    ]
    subprocess.run([*download, str(wheel)], check=True)
    shutil.copy(wheel, kept)
    return kept


def ways(wheels: Path, folder: Path) -> dict[str, tuple[list[str], Path]]:
    """The installing commands of each tool, and where `kctl` is then."""
    python = folder / "venv" / "bin" / "python"
    find = f"--find-links={wheels}"
    return {
        "pip": ([f"{sys.executable} -m venv {folder}/venv", f"{python} -m pip install -q --no-index {find} kctl"], python.parent),
        "pipx": ([f"pipx install --python {sys.executable} kctl --pip-args=--no-index\\ {find}"], folder / "bin"),
        "uv": ([f"uv tool install --python {sys.executable} --offline --no-index {find} kctl"], folder / "bin"),
    }  # fmt: skip


@pytest.mark.parametrize("tool", ["pip", "pipx", "uv"])
def test_it_installs_without_a_network_and_answers(tool: str, wheels: Path, tmp_path: Path) -> None:
    if tool != "pip" and not shutil.which(tool):
        pytest.skip(f"no {tool} on the PATH")
    at = {
        "PIPX_HOME": "pipx",
        "PIPX_BIN_DIR": "bin",
        "PIPX_MAN_DIR": "man",
        "UV_TOOL_DIR": "uv",
        "UV_TOOL_BIN_DIR": "bin",
    }
    environment = {**os.environ, **NOWHERE, **{name: str(tmp_path / place) for name, place in at.items()}}
    commands, folder = ways(wheels, tmp_path)[tool]
    for command in commands:
        ran = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    doctor = subprocess.run([folder / "kctl", "doctor"], capture_output=True, text=True, cwd=tmp_path)
    assert doctor.returncode == 0, doctor.stdout
    answer = subprocess.run(
        [folder / "kctl", "replica", "loss", EXAMPLE], capture_output=True, text=True, cwd=tmp_path
    )
    assert answer.returncode == 5 and answer.stdout.count("\nloss\t") == 3
    installed = {path.name for path in tmp_path.rglob("share/*/*/*")}
    assert {"kctl.1", "_kctl", "kctl.fish", "kctl"} <= installed
