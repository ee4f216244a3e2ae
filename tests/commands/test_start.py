"""What commands import before they do anything: the most of what a person waits for on small files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import recording

ROOT = Path(__file__).parents[2]

# What has no use for one small file, and is slow to load.
HEAVY = (
    "numpy",
    "pyarrow",
    "rich",
    "kazoo",
    "kafka",
    "pyspark",
    "pandas",
    "multiprocessing",
    "concurrent.futures",
    "duckdb",
)
CODE = f"""
import json, sys
from commands.main import main
try:
    main(sys.argv[1:])
finally:
    own = [name for name in sys.modules if name.split('.')[0] in ('kctl', 'commands', 'formats')]
    print(json.dumps([len(own), [name for name in {HEAVY} if name in sys.modules]]), file=sys.stderr)
"""
COLUMNS = ("segment verify {segment}",)  # these alone of the commands below need numpy


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["count(*)", "max(base_offset)"])
def test_an_audit_and_its_tables_go_without_pandas(columns: str, tmp_path: Path) -> None:
    (tmp_path / "pandas.py").write_text("raise SystemExit('pandas is imported')")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]))
    out = tmp_path / "out"
    for words in (
        ["audit", "run", recording("segments/3.9.1-kraft"), "--out", out, "--jobs", "2"],
        ["audit", "sql", out, f"SELECT {columns} AS found FROM batches", "--output", "jsonl"],
    ):
        ran = subprocess.run(
            [sys.executable, "-m", "commands", *words], capture_output=True, text=True, env=environment
        )
        assert ran.returncode in (0, 3, 5), ran.stderr
    assert json.loads(ran.stdout)["found"] > 0


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("--help", 16),
        ("topic list --help", 22),
        ("replica loss --help", 24),
        ("checkpoint show {checkpoint}", 56),
        ("segment dump {segment}", 80),
        ("segment verify {segment}", 137),
    ],
)
def test_modules_of_a_command(command: str, most: int) -> None:
    """How many of kctl's own modules a command loads, and none of the libraries that it has no use for."""
    folder = recording("segments/3.9.1-kraft")
    segment = min(
        (path for path in folder.rglob("*.log") if path.stat().st_size), key=lambda path: path.stat().st_size
    )
    checkpoint = next(folder.rglob("replication-offset-checkpoint"))
    words = command.format(segment=segment, checkpoint=checkpoint).split()
    ran = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True)
    own, heavy = json.loads(ran.stderr.splitlines()[-1])
    assert heavy == (["numpy"] if command in COLUMNS else [])
    assert own <= most
