"""The arrows between the layers, the types and the lint hold, wherever the tests are run."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


@pytest.mark.parametrize("tool", [["lint-imports"], ["mypy"], ["ruff", "check", "."]], ids=lambda t: t[0])
def test_structure(tool: list[str]) -> None:
    ran = subprocess.run([BIN / tool[0], *tool[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
