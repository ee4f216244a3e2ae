"""Evidence in HDFS, by the clients that need no Java: the audit of a folder, on this machine and on YARN."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import audit_rows
from tests.audit_rows import equal_audits
from tests.conftest import recording
from tests.stores.servers import STORES, hadoop, put, put_into_hdfs, yarn_settings

pytestmark = [pytest.mark.matrix, pytest.mark.spark]
PATIENCE = 600
RUN = (sys.executable, "-c", "from commands.main import run; run()", "audit", "run")
LOG = "broker-1/data/stock-0/00000000000000000000.log"


class Rig(NamedTuple):
    """A recorded incident in HDFS, and the audit of the same in a folder."""

    url: str
    web: str
    environment: dict[str, str]
    folder: Path
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
        put_into_hdfs(cluster, folder / "dark", "dark")
        local = ran(cluster.environment, *RUN, folder / "dark", "--out", folder / "local")
        assert local.returncode == 5, local.stderr
        yield Rig(
            f"{cluster.url}/dark",
            f"{cluster.web}/dark",
            cluster.environment,
            folder / "dark",
            folder / "local",
        )


def equal_but_for_the_name(one: Path, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(audit_rows, "MEASURED", (*audit_rows.MEASURED, "evidence"))
        equal_audits(one, other)


@pytest.mark.parametrize("protocol", ["hdfs", "webhdfs"])
def test_the_local_engine(rig: Rig, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = rig.url if protocol == "hdfs" else rig.web
    done = ran(rig.environment, *RUN, url, "--out", tmp_path / "out", "--jobs", 2)
    assert done.returncode == 5, done.stderr
    equal_but_for_the_name(rig.local, tmp_path / "out", monkeypatch)


@pytest.mark.parametrize("where", ["hdfs", "webhdfs", "folder", *STORES])
def test_yarn(rig: Rig, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers have nothing of this process's environment but what Spark's own settings give them."""
    settings = yarn_settings()
    environment = {
        **rig.environment, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(tmp_path), "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    with ExitStack() as stack:
        url = {"hdfs": rig.url, "webhdfs": rig.web, "folder": str(rig.folder)}.get(where, "")
        if where in STORES:
            (tmp_path / "store").mkdir()
            store = stack.enter_context(STORES[where](tmp_path / "store"))
            for key, value in store.environment(store.port).items():
                monkeypatch.setenv(key, value)
                settings[f"spark.executorEnv.{key}"] = value
            put(store, rig.folder, "dark")
            url = f"{store.url}/dark"
        (tmp_path / "spark-defaults.conf").write_text(
            "".join(f"{key} {value}\n" for key, value in settings.items())
        )
        done = ran(environment, *RUN, url, "--out", tmp_path / "out", "--engine", "spark", "--master", "yarn")
    assert done.returncode == 5, done.stderr[-3000:]
    equal_but_for_the_name(rig.local, tmp_path / "out", monkeypatch)
