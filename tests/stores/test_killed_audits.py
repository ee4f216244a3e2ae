"""A worker, the driver or the store's server killed in the middle of an audit of a URL, on each engine.

A proxy before the store holds the answer to one request back until the process is dead, so that it dies in the midst of the
scan. What is left is no report, and the same run, started again, ends with the tables of one that nothing disturbed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kctl.audit.tables import Tables
from tests.audit_rows import equal_audits
from tests.conftest import recording
from tests.spark.test_cluster import cluster_below, quick_start
from tests.stores.servers import (
    AZURITE_KEY,
    SECRET,
    STORES,
    hadoop,
    hdfs_client,
    proxy,
    put,
    put_into_hdfs,
    yarn_settings,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="finds processes by /proc"),
]
PATIENCE = 300
FIRST, LAST = "broker-1/data/stock-0", "broker-2/data/stock.unclean-0"
"""Partition folders, as the evidence is walked."""
FOLDERS = 6
ON_SPARK = ("--engine", "spark")
FEW_ATTEMPTS = """<configuration>
<property><name>dfs.client.failover.max.attempts</name><value>2</value></property>
</configuration>
"""
HOST = """
import contextlib, json, os, sys
from kctl.spark.session import session
from tests.conftest import kctl
master, settings = json.loads(sys.argv[1])
with session(master, settings=settings) if master else contextlib.nullcontext():
    print(flush=True)
    for line in sys.stdin:
        os.environ["KCTL_MIRRORS"] = ""
        ran = kctl(*json.loads(line))
        print(json.dumps([ran.status, ran.err]), flush=True)
"""


class Served:
    """A store behind its proxy, with a recorded incident below `dark`; it begins again after a kill with what it held."""

    def __init__(self, name: str, folder: Path, dark: Path, stack: ExitStack) -> None:
        self.name, self.folder, self.stack = name, folder, stack
        folder.mkdir()
        self.port = 0
        self.start()
        self.between = stack.enter_context(proxy(self.port, *(["raw"] if name == "hdfs" else [])))
        if name == "hdfs":
            put_into_hdfs(self.server, dark, "dark")
            self.url = f"hdfs://127.0.0.1:{self.between.port}/dark"
            (folder / "client").mkdir()
            (folder / "client" / "hdfs-site.xml").write_text(FEW_ATTEMPTS)
            self.environment = {"HADOOP_USER_NAME": "root", "HADOOP_CONF_DIR": str(folder / "client")}
            return
        with pytest.MonkeyPatch.context() as patch:
            for key, value in self.server.environment(self.port).items():
                patch.setenv(key, value)
            put(self.server, dark, "dark")
        self.url = f"{self.server.url}/dark" + ("?retry_limit_seconds=2" if name == "gcs" else "")
        self.environment = self.server.environment(self.between.port)

    def start(self) -> None:
        """Begin, or begin again."""
        serve: Any = hadoop if self.name == "hdfs" else STORES[self.name]
        self.server = self.stack.enter_context(serve(self.folder, self.port))
        self.port = int(self.server.url.rpartition(":")[2]) if self.name == "hdfs" else self.server.port

    def log_of(self, folder: str) -> str:
        """A pattern of the requests for the log of a partition folder."""
        key = (f"{folder}/" + "0" * 20).replace(".", r"\.")
        key = key.replace("/", "(/|%2F)") + r"\.log"
        return f"getBlockLocations.*{key}" if self.name == "hdfs" else f"^(GET|HEAD) .*{key}"


class Engine:
    """A process that runs one audit after another, in one session of Spark where it has one, and where it is killed another."""

    def __init__(self, name: str, environment: dict[str, str], master: str, settings: dict[str, str]) -> None:
        self.name, self.environment, self.master, self.settings = name, environment, master, settings
        self.options = ("--jobs", 2) if name == "local" else ON_SPARK
        self.host: subprocess.Popen[str] | None = None

    def start(self) -> int:
        """The process, begun where it is not there."""
        if self.host is None or self.host.poll() is not None:
            self.host = subprocess.Popen(
                [sys.executable, "-c", HOST, json.dumps([self.master, self.settings])], env=self.environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
            assert self.host.stdout and self.host.stdout.readline() == "\n"
        return self.host.pid

    def audit(self, url: str, out: Path) -> tuple[int, str]:
        """An audit's exit status and errors; where this engine's process was killed, that of the process."""
        self.start()
        assert self.host and self.host.stdin and self.host.stdout
        command = ["audit", "run", url, "--out", str(out), "--resume", *map(str, self.options)]
        self.host.stdin.write(json.dumps(command) + "\n")
        self.host.stdin.flush()
        answer = select.poll()  # a descriptor may be beyond those that `select` takes
        answer.register(self.host.stdout, select.POLLIN)
        assert answer.poll(PATIENCE * 1000), "it hangs"
        said = self.host.stdout.readline()
        if not said:
            return self.host.wait(PATIENCE), ""
        status, errors = json.loads(said)
        return status, errors

    def end(self) -> None:
        """Let it go, and see that all of it goes."""
        if self.host:
            assert self.host.stdin
            with contextlib.suppress(BrokenPipeError):
                self.host.stdin.close()
            self.host.wait(PATIENCE)
            nothing_left(self.host.pid)


def nothing_left(group: int) -> None:
    """Wait until no process of a group is there."""
    for _ in range(PATIENCE):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    left = subprocess.run(
        ["ps", "-o", "pid,ppid,args", "-g", str(group)], capture_output=True, text=True, check=False
    )
    os.killpg(group, signal.SIGKILL)
    pytest.fail(f"goes on: {left.stdout}")


@pytest.fixture(scope="module")
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Served]]:
    """Those of the cells that run; YARN is in one process with HDFS."""
    chosen = [
        item.callspec.params
        for item in request.session.items
        if item.path == request.path  # type: ignore[attr-defined]
    ]
    names = {str(one["name"]) for one in chosen} | {"hdfs" for one in chosen if one["engine"] == "yarn"}
    folder = tmp_path_factory.mktemp("stores")
    dark = folder / "dark"
    shutil.copytree(recording("incidents/diverge-2.8") / "moments" / "dark", dark)
    with ExitStack() as stack:
        yield {name: Served(name, folder / name, dark, stack) for name in sorted(names)}


@contextmanager
def engine_of(name: str, folder: Path, stores: dict[str, Served]) -> Iterator[Engine]:
    leading = {key: value for store in stores.values() for key, value in store.environment.items()}
    client = str(hdfs_client())
    environment = {
        **os.environ, **leading, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(folder), "SPARK_SUBMIT_OPTS": quick_start(),
        "PYTHONPATH": f"{Path(__file__).parents[2]}:{client}",
    }  # fmt: skip
    settings = {
        "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1",
        **{f"spark.executorEnv.{key}": value for key, value in {**leading, "PYTHONPATH": client}.items()},
    }  # fmt: skip
    with ExitStack() as stack:
        master = {"local": "", "spark": "local[2]", "yarn": "yarn"}.get(name)
        if name == "standalone":
            master, _ = stack.enter_context(cluster_below(folder))
        if name == "yarn":
            # The one container leaves room for that of the next run, which may come before YARN has ended what was killed.
            settings = (
                yarn_settings() | settings | {"spark.executor.instances": "1", "spark.executor.cores": "2"}
            )
            environment |= {
                "HADOOP_CONF_DIR": stores["hdfs"].server.environment["HADOOP_CONF_DIR"],
                "PYSPARK_PYTHON": sys.executable,
            }
        assert master is not None
        made = Engine(name, environment, master, {} if name == "spark" else settings)
        try:
            yield made
        finally:
            made.end()


@pytest.fixture(scope="module")
def engine(
    request: pytest.FixtureRequest, stores: dict[str, Served], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    with engine_of(request.param, tmp_path_factory.mktemp(request.param), stores) as made:
        yield made


@pytest.fixture(scope="module")
def whole(stores: dict[str, Served], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What an audit of each store says that nothing disturbs."""
    made = {}
    with engine_of("local", tmp_path_factory.mktemp("whole"), stores) as undisturbed:
        for name, store in stores.items():
            made[name] = tmp_path_factory.mktemp("whole") / name
            status, errors = undisturbed.audit(store.url, made[name])
            assert status == 5, errors
    return made


def folders_asked(seen: list[str]) -> set[str]:
    """The partition folders whose offset index was asked for: only who examines a folder does."""
    found = (
        re.search(
            r"(?:^GET |^HEAD |getBlockLocations).*(broker-\d(?:/|%2F)data(?:/|%2F)[\w.-]+)(?:/|%2F)0+\.index",
            line,
            re.DOTALL,
        )
        for line in seen
    )
    return {one[1].replace("%2F", "/") for one in found if one}


def marks_of(engine: str, name: str, killed: str) -> list[pytest.MarkDecorator]:
    """`make test` runs those of S3 on this machine's engine, and one on Spark."""
    few = name == "s3" and (engine == "local" or (engine, killed) == ("spark", "worker"))
    shared = pytest.mark.xdist_group("killed audits") if engine == "local" else pytest.mark.spark
    return [shared, *([] if few else [pytest.mark.matrix])]


CELLS = [
    pytest.param(engine, name, killed, marks=marks_of(engine, name, killed))
    for engine in ("local", "spark", "standalone", "yarn")
    for name in (*STORES, "hdfs")
    for killed in ("worker", "store", "driver")
    if (engine, name, killed) != ("yarn", "hdfs", "store")  # both are in one process
]
WORKER = {"local": (3, "a worker process died"), "spark": (3, "a Spark task failed")}
"""Exit status, and what is said. A cluster begins what a dead executor had again."""
SAID = {"driver": (-9, ""), "store": (3, "can no longer be read")}


@pytest.mark.parametrize(("engine", "name", "killed"), CELLS, indirect=["engine"])
def test_an_audit_that_lost_a_process_leaves_no_report_and_goes_on(
    stores: dict[str, Served], engine: Engine, whole: dict[str, Path], name: str, killed: str, tmp_path: Path
) -> None:
    killed_and_resumed(stores[name], engine, killed, whole[name], tmp_path / "out")


def killed_and_resumed(store: Served, engine: Engine, killed: str, whole: Path, out: Path) -> None:
    """One cell."""
    driver = engine.start()
    worker = "client" if engine.name in ("local", "spark") else "executor"
    # The engine of this machine works in the driver before it begins workers: it has to wait.
    held = {"match": store.log_of(FIRST), "times": 1, "delay": 0.5}
    who = {"worker": worker, "driver": driver, "store": store.server.process}[killed]
    store.between.harm(held, {"match": store.log_of(LAST), "times": 1, "kill": who})
    status, said = engine.audit(store.url, out)
    dead = [line for line in store.between.harm() if " killed " in line]
    assert len(dead) == 1, (status, said)
    if killed == "driver":
        nothing_left(driver)
    wanted, words = WORKER.get(engine.name, (5, "")) if killed == "worker" else SAID[killed]
    assert status == wanted and words in said, said
    assert not [word for word in (SECRET, AZURITE_KEY, "Traceback", "sig=") if word in said]
    if status != 5:
        assert "goes on where it was" in said or killed == "driver"
        assert not [path.name for path in out.iterdir() if not path.name.startswith(".")]
        kept = len(list(out.glob(".resume/*.report")))
        # A worker may end what it has begun before it notices that its driver is gone.
        assert 1 <= kept < FOLDERS + (killed == "driver")
        if killed == "store":
            store.start()
        store.between.harm()
        status, said = engine.audit(store.url, out)
        assert status == 5, said
        # Tasks that were running on executors may have finished more folders since.
        assert len(folders_asked(store.between.harm())) <= FOLDERS - kept
    elif engine.name != "local":
        assert Tables(out).summary["retries"] >= 1
    equal_audits(whole, out)
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]
