"""Evidence in HDFS, by the client that needs no Java: the audit of a folder, on this machine and on YARN."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

from tests.conftest import recording
from tests.spark.test_audit_on_spark import equal_audits
from tests.stores.servers import hadoop, hdfs_client

pytestmark = [pytest.mark.matrix, pytest.mark.spark]
PATIENCE = 600
RUN = (sys.executable, "-c", "from commands.main import run; run()", "audit", "run")
LOG = "broker-1/data/stock-0/00000000000000000000.log"
PUT = """
import sys
from pathlib import Path
from kctl.stores.file_systems import file_system
files, root = file_system(sys.argv[2])
for path in sorted(Path(sys.argv[1]).rglob("*")):
    if path.is_file():
        key = f"{root}/{path.relative_to(sys.argv[1]).as_posix()}"
        files.create_dir(key.rpartition("/")[0], recursive=True)
        with files.open_output_stream(key) as out:
            out.write(path.read_bytes())
"""


class Rig(NamedTuple):
    """A recorded incident in HDFS, and the audit of the same in a folder."""

    url: str
    environment: dict[str, str]
    local: Path


def ran(environment: dict[str, str], *command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE, check=False,
        env={**os.environ, "KCTL_CONFIG": "/none", **environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("hadoop")
    shutil.copytree(recording("incidents/diverge-2.8") / "moments" / "dark", folder / "dark")
    with hadoop(folder) as cluster:
        put = ran(cluster.environment, sys.executable, "-c", PUT, folder / "dark", f"{cluster.url}/dark")
        assert put.returncode == 0, put.stderr
        local = ran(cluster.environment, *RUN, folder / "dark", "--out", folder / "local")
        assert local.returncode == 5, local.stderr
        yield Rig(f"{cluster.url}/dark", cluster.environment, folder / "local")


def equal_but_for_the_name(one: Path, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.spark import test_audit_on_spark

    with monkeypatch.context() as patch:
        patch.setattr(test_audit_on_spark, "MEASURED", (*test_audit_on_spark.MEASURED, "evidence"))
        equal_audits(one, other)


def test_the_local_engine(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = ran(rig.environment, *RUN, rig.url, "--out", tmp_path / "out", "--jobs", 2)
    assert done.returncode == 5, done.stderr
    equal_but_for_the_name(rig.local, tmp_path / "out", monkeypatch)


def test_yarn(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.executor.memory 512m\nspark.executor.memoryOverhead 384m\nspark.executor.instances 2\n"
        "spark.executor.cores 1\nspark.yarn.am.memory 512m\nspark.driver.host 127.0.0.1\n"
        "spark.hadoop.yarn.timeline-service.enabled false\n"
        f"spark.yarn.jars local:{jars}/*\nspark.executorEnv.PYTHONPATH {hdfs_client()}\n"
    )
    environment = {
        **rig.environment, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(tmp_path), "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    done = ran(environment, *RUN, rig.url, "--out", tmp_path / "out", "--engine", "spark", "--master", "yarn")
    assert done.returncode == 5, done.stderr[-3000:]
    equal_but_for_the_name(rig.local, tmp_path / "out", monkeypatch)
