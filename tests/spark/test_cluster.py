"""A standalone cluster of a master and two workers: one is killed in the middle of a scan, and executors work elsewhere.

Executors have working folders of their own, which tests on `local[2]` do not show.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.audit.tables import Tables
from kctl.scan.options import ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import opened_source
from kctl.spark.session import archive_of_classes
from tests.audit_rows import equal_audits
from tests.conftest import recording
from tests.spark.conftest import SHORT_LIVED
from tests.stores.servers import AZURITE_KEY, SECRET, STORES, hadoop, put, put_into_hdfs

pytestmark = pytest.mark.spark
SECRETS = (SECRET, AZURITE_KEY)
PATIENCE = 180  # seconds for anything to start on a busy machine

DRIVER = """
import json, os, signal, sys, threading, time
from kctl.spark.session import session

where, master, worker = sys.argv[1], sys.argv[2], int(sys.argv[3])
settings = {
    "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1", "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
}
with session(master, settings=settings) as spark:
    tracker = spark.sparkContext.statusTracker()
    killed = []

    def kill():
        while True:
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info and 2 <= info.numCompletedTasks < info.numTasks:
                    os.killpg(worker, signal.SIGKILL)
                    killed.append([info.numCompletedTasks, info.numTasks])
                    return
            time.sleep(0.01)

    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:
        time.sleep(0.1)
    threading.Thread(target=kill, daemon=True).start()
    frame = (
        spark.read.format("kafka-segments").option("table", "records").option("split_bytes", 40000)
        .option("least_split_bytes", 1).schema("topic string, offset bigint").load(where)
    )
    rows = sorted([row["topic"], row["offset"]] for row in frame.collect())
    print(json.dumps({"rows": rows, "killed": killed}))
"""


def quick_start() -> str:
    """Options of all six JVMs: the classes that kctl's own sessions keep serve them too."""
    archive = archive_of_classes()
    shared = f" -Xshare:auto -XX:SharedArchiveFile={archive} -Xlog:disable" if archive.exists() else ""
    return f"{SHORT_LIVED} -XX:+UseSerialGC{shared}"


def started(folder: Path, name: str, *args: object) -> subprocess.Popen[bytes]:
    """A daemon of Spark in a process group of its own."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1", "PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_JAVA_OPTS": quick_start(),
    }  # fmt: skip
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *map(str, args)], env=environment, cwd=folder, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip


def until(log: Path, words: str) -> None:
    """Wait for words in a log."""
    for _ in range(PATIENCE * 10):
        if words in log.read_text(errors="replace"):
            return
        time.sleep(0.1)
    pytest.fail(f"{words!r} not in {log}: {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, int]]:
    with cluster_below(tmp_path) as made:
        yield made


@contextlib.contextmanager
def cluster_below(folder: Path) -> Iterator[tuple[str, int]]:
    """Its URL, and the process group of one of two workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    running = [
        started(
            folder, "master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
            "--port", port, "--webui-port", "0",
        )
    ]  # fmt: skip
    try:
        until(folder / "master.log", "I have been elected leader")
        for number in (1, 2):
            running.append(
                started(
                    folder, f"worker-{number}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1",
                    "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", folder / f"work-{number}", url,
                )
            )  # fmt: skip
        for number in (1, 2):
            until(folder / f"worker-{number}.log", "Successfully registered")
        yield url, running[-1].pid
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_worker_that_dies_costs_no_row_and_doubles_none(
    cluster: tuple[str, int],
    corpus: Path,
    tmp_path: Path,
) -> None:
    url, worker = cluster
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER, corpus, url, str(worker)],
        capture_output=True, text=True, timeout=PATIENCE * 3, check=False,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SUBMIT_OPTS": quick_start()}, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    said = json.loads(ran.stdout.splitlines()[-1])
    ((done, of),) = said["killed"]
    assert done < of
    expected = []
    for log in sorted(corpus.glob("*/*.log")):
        with opened_source(log) as source:
            for chunk in scan_segment(source, ScanOptions(keep_records=True, base_offset=0)):
                assert chunk.records is not None
                offsets = [
                    offset
                    for base, last in zip(
                        chunk.headers.base_offset.tolist(), chunk.headers.last_offset.tolist(), strict=True
                    )
                    for offset in range(base, last + 1)
                ]
                expected += [[log.parent.name.rpartition("-")[0], offset] for offset in offsets]
    assert said["rows"] == sorted(expected)


def test_an_audit_into_a_relative_folder_has_every_row(cluster: tuple[str, int], tmp_path: Path) -> None:
    from benchmarks.corpus import make, shape_of

    make(tmp_path / "evidence", shape_of("none-1x100"), 400_000)
    shutil.copytree(recording("incidents/halt-0.10.2"), tmp_path / "evidence" / "recorded", symlinks=True)
    (tmp_path / "spark-defaults.conf").write_text("spark.executor.memory 512m\nspark.driver.host 127.0.0.1\n")
    command = [
        sys.executable,
        "-c",
        "from commands.main import run; run()",
        "audit",
        "run",
        "evidence",
        "--no-sha256",
    ]
    environment = {
        **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(tmp_path), "KCTL_CONFIG": "/none",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }  # fmt: skip
    for options in (["--out", "local"], ["--out", "spark", "--engine", "spark", "--master", cluster[0]]):
        ran = subprocess.run(
            [*command, *options], capture_output=True, text=True, timeout=PATIENCE * 3, check=False,
            env=environment, cwd=tmp_path,
        )  # fmt: skip
        assert ran.returncode in (0, 5), ran.stderr[-3000:]
    assert len(list((tmp_path / "spark" / "batches").iterdir())) > 1, "no task wrote a part"
    assert Tables(tmp_path / "spark").count("batches") > 1000
    equal_audits(tmp_path / "local", tmp_path / "spark")
    assert list(tmp_path.glob("work-*/**/*.parquet")) == []


@pytest.fixture(params=[*STORES, "hdfs"])
def gateway(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of evidence in a store; this process's environment, and that of what it starts, leads to it."""
    folder = tmp_path / "dark"
    shutil.copytree(recording("incidents/diverge-2.8") / "moments" / "dark", folder)
    (tmp_path / "store").mkdir()
    if request.param == "hdfs":
        with hadoop(tmp_path / "store") as nodes:
            for key, value in nodes.environment.items():
                monkeypatch.setenv(key, value)
            put_into_hdfs(nodes, folder, "dark")
            yield f"{nodes.url}/dark"
        return
    with STORES[request.param](tmp_path / "store") as store:
        for key, value in store.environment(store.port).items():
            monkeypatch.setenv(key, value)
        put(store, folder, "dark")
        yield f"{store.url}/dark"


@pytest.mark.matrix
def test_on_a_cluster_each_node_has_credentials_of_its_own(
    gateway: str, cluster: tuple[str, int], tmp_path: Path
) -> None:
    """Equal tables; and no secret in what Spark keeps of the job."""
    events = tmp_path / "events"
    events.mkdir()
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.executor.memory 512m\nspark.driver.host 127.0.0.1\nspark.eventLog.enabled true\n"
        f"spark.eventLog.compress false\nspark.eventLog.dir {events}\n"
    )
    environment = {
        **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(tmp_path), "KCTL_CONFIG": "/none",
        "SPARK_SUBMIT_OPTS": quick_start(),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }  # fmt: skip
    command = [sys.executable, "-c", "from commands.main import run; run()", "audit", "run", gateway]
    on_spark = ["--engine", "spark", "--master"]
    for options in (
        ["--out", "local"],
        ["--out", "spark", *on_spark, cluster[0]],
        ["--out", "here", *on_spark, "local[2]"],
    ):
        ran = subprocess.run(
            [*command, *options], capture_output=True, text=True, timeout=PATIENCE * 3, check=False,
            env=environment, cwd=tmp_path,
        )  # fmt: skip
        assert ran.returncode == 5, ran.stderr[-3000:]
        assert not any(secret in ran.stdout + ran.stderr for secret in SECRETS)
    equal_audits(tmp_path / "local", tmp_path / "spark")
    equal_audits(tmp_path / "local", tmp_path / "here")
    kept = [
        *events.rglob("*"),
        *tmp_path.glob("*.log"),
        *tmp_path.glob("work-*/**/std*"),
        *(tmp_path / "spark").glob("*.*"),
    ]
    kept = [path for path in kept if path.is_file()]
    told = "".join(path.read_text(errors="replace") for path in kept)
    assert "kctl-tasks" in told, "Spark kept nothing of the job"
    assert not [secret for secret in SECRETS if secret in told]
