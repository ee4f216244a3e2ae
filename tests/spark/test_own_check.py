"""A check that is entered in the table speaks from executors as well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.kctl.checks.test_table import evidence, own_rows

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
ENTERS = "from tests.kctl.checks.test_table import enter\nenter()\n"
READS = """
import json, sys
from kctl.spark.data_source import KafkaSegments
from kctl.spark.session import session
from tests.conftest import kctl

with session("local[2]") as spark:
    spark.dataSource.register(KafkaSegments)
    reader = spark.read.format("kafka-segments").option("table", "findings")
    print(json.dumps([row.asDict() for row in reader.load(sys.argv[1]).collect()]))
kctl("audit", "run", sys.argv[1], "--out", sys.argv[2], "--no-sha256", "--engine", "spark", "--master", "local[2]")
"""


def test_a_check_speaks_from_executors(tmp_path: Path) -> None:
    """Python's `sitecustomize` enters it in each process: the driver's and the workers'."""
    folder, expected = evidence(tmp_path / "data")
    (tmp_path / "sitecustomize.py").write_text(ENTERS)
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-c", READS, folder, tmp_path / "out"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert own_rows(json.loads(ran.stdout.splitlines()[0])) == expected
    assert own_rows(pq.read_table(tmp_path / "out" / "findings").to_pylist()) == expected
