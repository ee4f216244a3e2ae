"""What commands import before they do anything: the most of what a person waits for on small files."""

import json
import subprocess
import sys

import pytest

from tests.conftest import recording

# What has no use for one small file, and is slow to load.
HEAVY = (
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


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("--help", 18),
        ("topic list --help", 22),
        ("replica loss --help", 24),
        ("checkpoint show {checkpoint}", 55),
        ("segment dump {segment}", 80),
        ("segment verify {segment}", 135),
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
    assert heavy == []
    assert own <= most
