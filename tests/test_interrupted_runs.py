"""What a run of the tests that was killed leaves is removed by the next one."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import OF_KCTL

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_only_folders_of_killed_runs_of_this_project_are_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    folders = tmp_path / f"pytest-of-{getpass.getuser()}"
    for name, process, marked in (
        ("pytest-10", ended.pid, True),  # killed
        ("pytest-11", os.getpid(), True),  # runs
        ("pytest-12", ended.pid, False),  # of another project
    ):
        folder = folders / name
        (folder / "test_one0").mkdir(parents=True)
        (folder / ".lock").write_text(str(process))
        if marked:
            (folder / OF_KCTL).touch()
    folders.chmod(0o700)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/kctl/test_times.py"],
        cwd=ROOT,
        env={**os.environ, "PYTEST_DEBUG_TEMPROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    left = {path.name for path in folders.iterdir() if path.name in ("pytest-10", "pytest-11", "pytest-12")}
    assert left == {"pytest-11", "pytest-12"}
