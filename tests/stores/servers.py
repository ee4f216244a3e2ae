"""Real servers of each protocol that evidence is read by, fetched once by the clients of their package registries.

    S3     versitygw          go install
    GCS    fake-gcs-server    go install
    Azure  Azurite            npm install
    HDFS   Hadoop's mini cluster, with YARN: Maven; its client hdfs-native: pip

Each is started on a free port of this machine, and those of HTTP stand behind a proxy that a test tells what harm to do.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.brokers.processes import die_with_parent

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("KCTL_TEST_CACHE", HERE.parents[1] / ".cache")) / "stores"
PATIENCE = 180  # seconds for anything to start on a busy machine
SECRET = "hidden-word"
# Published with the emulator; no other account has it.
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


# --- fetched once -------------------------------------------------------------------------------------


def fetched(name: str, tool: str, fetch: Callable[[Path], None]) -> Path:
    """A folder of the cache, filled by `fetch` where it is not there; skips where the package client or network is missing."""
    folder = CACHE / name
    if folder.is_dir():
        return folder
    if not shutil.which(tool):
        pytest.skip(f"{tool}, which fetches {name}, is not on the PATH")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            partial = CACHE / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            try:
                fetch(partial)
            except (OSError, subprocess.CalledProcessError) as error:
                if os.environ.get("KCTL_TEST_REQUIRE"):
                    raise
                pytest.skip(
                    f"{name} is not in the cache, and {tool} cannot fetch it without a network: {error}"
                )
            partial.rename(folder)
    return folder


def go_program(module: str) -> Path:
    """The program of a Go module."""
    name = module.partition("@")[0].rpartition("/")[2]

    def fetch(folder: Path) -> None:
        subprocess.run(["go", "install", module], env={**os.environ, "GOBIN": str(folder)}, check=True)

    return fetched(name, "go", fetch) / name


def azurite() -> Path:
    """The script of Azurite's blob service."""

    def fetch(folder: Path) -> None:
        install = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "azurite@3.35.0"]
        subprocess.run(install, cwd=folder, check=True)

    return fetched("azurite", "npm", fetch) / "node_modules/azurite/dist/src/blob/main.js"


HADOOP = "3.4.2"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>hadoop</artifactId><version>1</version><packaging>pom</packaging><dependencies>
<dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-minicluster</artifactId><version>{version}</version></dependency>
<dependency><groupId>org.mockito</groupId><artifactId>mockito-core</artifactId><version>4.11.0</version></dependency>
<dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version></dependency>
</dependencies></project>
"""


def hadoop_jars() -> Path:
    """The folder of Hadoop's mini clusters."""

    def fetch(folder: Path) -> None:
        (folder / "pom.xml").write_text(POM.format(version=HADOOP))
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}/lib"]
        subprocess.run(["mvn", "-q", "-B", "-f", folder / "pom.xml", *copy], check=True)

    return fetched("hadoop", "mvn", fetch) / "lib"


def hdfs_client() -> Path:
    """A folder of the path of Python, with two clients of HDFS that need no Java: of its own protocol, and of WebHDFS."""

    def fetch(folder: Path) -> None:
        install = [sys.executable, "-m", "pip", "install", "-q", "--target", folder]
        subprocess.run([*install, "hdfs-native==0.14.7", "fsspec", "requests"], check=True)

    return fetched("hdfs-clients", sys.executable, fetch)


# --- started ------------------------------------------------------------------------------------------


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(command: list[object], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process in a group of its own, killed at the end, and by the kernel when the tests are killed."""
    process = subprocess.Popen(
        list(map(str, command)), text=True, start_new_session=True, preexec_fn=die_with_parent, **options
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # a test killed it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until_it_listens(process: subprocess.Popen[str], port: int) -> None:
    """Wait until a process accepts connections."""
    for _ in range(PATIENCE * 10):
        assert process.poll() is None, f"{process.args} ended with {process.returncode}"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"{process.args} does not listen on {port}")


class Store(NamedTuple):
    """A server of one protocol, with a bucket `evidence`, empty where the server's folder is new."""

    url: str  # of that bucket
    port: int
    environment: Callable[[int], dict[str, str]]
    """What leads kctl to a port; the proxy has another."""
    process: int


@contextmanager
def s3(folder: Path, port: int = 0) -> Iterator[Store]:
    """versitygw: objects are files below `folder`."""
    program, port = go_program("github.com/versity/versitygw/cmd/versitygw@latest"), port or free_port()
    for name in ("data/evidence", "meta"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    options = ["--port", f"127.0.0.1:{port}", "--access", "test", "--secret", SECRET, "--region", "us-east-1"]
    command = [program, "--quiet", *options, "posix", "--sidecar", folder / "meta", folder / "data"]
    with running(command, stdout=subprocess.DEVNULL) as process:
        until_it_listens(process, port)
        yield Store(
            "s3://evidence", port,
            lambda port: {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true",
            },
            process.pid,
        )  # fmt: skip


@contextmanager
def gcs(folder: Path, port: int = 0) -> Iterator[Store]:
    """fake-gcs-server: objects are files below `folder`."""
    program, port = go_program("github.com/fsouza/fake-gcs-server@latest"), port or free_port()
    at, kept = f"127.0.0.1:{port}", ["-backend", "filesystem", "-filesystem-root", folder / "gcs"]
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", port, *kept]
    said = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with running([*command, "-public-host", at, "-external-url", f"http://{at}"], **said) as process:
        until_it_listens(process, port)
        made = urllib.request.Request(
            f"http://{at}/storage/v1/b?project=x",
            b'{"name": "evidence"}',
            {"Content-Type": "application/json"},
        )
        if not (folder / "gcs" / "evidence").exists():
            urllib.request.urlopen(made, timeout=30).close()
        yield Store(
            "gs://evidence",
            port,
            lambda port: {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"},
            process.pid,
        )


@contextmanager
def azure(folder: Path, port: int = 0) -> Iterator[Store]:
    """Azurite, which keeps objects below `folder`; a flat account."""
    from pyarrow import fs

    script, port = azurite(), port or free_port()
    options = ["--location", folder / "azure", "--disableTelemetry", "--skipApiVersionCheck", "--silent"]
    command = ["node", script, "--blobHost", "127.0.0.1", "--blobPort", port, *options]
    with running(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        until_it_listens(process, port)
        at = {f"{service}_storage_authority": f"127.0.0.1:{port}" for service in ("blob", "dfs")}
        over = {f"{service}_storage_scheme": "http" for service in ("blob", "dfs")}
        fs.AzureFileSystem(account_name="devstoreaccount1", account_key=AZURITE_KEY, **at, **over).create_dir(
            "evidence"
        )
        yield Store(
            "abfs://evidence", port,
            lambda port: {
                "AZURE_STORAGE_CONNECTION_STRING": f"AccountName=devstoreaccount1;AccountKey={AZURITE_KEY};"
                f"BlobEndpoint=http://127.0.0.1:{port}/devstoreaccount1"
            },
            process.pid,
        )  # fmt: skip


class Hadoop(NamedTuple):
    """HDFS, and YARN on the same machine."""

    url: str  # of the root
    web: str  # the same by WebHDFS
    environment: dict[str, str]
    process: int


@contextmanager
def hadoop(folder: Path, port: int = 0) -> Iterator[Hadoop]:
    """Both, with one node each. What HDFS holds stays below `folder`."""
    program, client = [HERE / "MiniHadoop.java", folder], hdfs_client()
    memory = ["-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    opened = ["--add-opens", "java.base/java.lang=ALL-UNNAMED", "-cp", f"{hadoop_jars()}/*"]
    (folder / "url").unlink(missing_ok=True)
    with (
        (folder / "hadoop.log").open("wb") as log,
        running(
            ["java", *memory, *opened, *program, port],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        for _ in range(PATIENCE * 10):
            assert process.poll() is None, (folder / "hadoop.log").read_text(errors="replace")[-2000:]
            if (folder / "url").exists():
                break
            time.sleep(0.1)
        yield Hadoop(
            (folder / "url").read_text(),
            f"webhdfs://{(folder / 'web').read_text()}",
            {"HADOOP_CONF_DIR": f"{folder}/conf", "HADOOP_USER_NAME": "root", "PYTHONPATH": f"{HERE.parents[1]}:{client}"},
            process.pid,
        )  # fmt: skip


def yarn_settings() -> dict[str, str]:
    """Spark's settings for containers that fit the mini cluster; they have the client of HDFS."""
    import pyspark

    return {
        "spark.executor.memory": "512m", "spark.executor.memoryOverhead": "384m", "spark.executor.instances": "2",
        "spark.executor.cores": "1", "spark.yarn.am.memory": "512m", "spark.driver.host": "127.0.0.1",
        "spark.hadoop.yarn.timeline-service.enabled": "false",
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
        "spark.executorEnv.PYTHONPATH": str(hdfs_client()),
    }  # fmt: skip


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


def put_into_hdfs(cluster: Hadoop, folder: Path, prefix: str) -> None:
    """Copy a folder into HDFS, below a prefix. This process need not have the client."""
    put = [sys.executable, "-c", PUT, folder, f"{cluster.url}/{prefix}"]
    subprocess.run(put, env={**os.environ, **cluster.environment}, check=True)


STORES: dict[str, Callable[[Path], Any]] = {"s3": s3, "gcs": gcs, "azure": azure}


def put(store: Store, folder: Path, prefix: str) -> None:
    """Copy a folder into a store, below a prefix. The environment leads to the store."""
    from kctl.stores.file_systems import file_system

    files, root = file_system(f"{store.url}/{prefix}")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            key = f"{root}/{path.relative_to(folder).as_posix()}"
            with files.open_output_stream(key) as out:
                out.write(path.read_bytes())


# --- the proxy ----------------------------------------------------------------------------------------


class Proxy:
    """The proxy's other end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin and process.stdout
        self._in, self._out = process.stdin, process.stdout
        self.port = int(self._out.readline())

    def harm(self, *rules: dict[str, Any]) -> list[str]:
        """Do this from now on; gives the requests since the last call, as `METHOD TARGET RANGE`."""
        self._in.write(json.dumps(rules) + "\n")
        self._in.flush()
        seen: list[str] = json.loads(self._out.readline())
        return seen


@contextmanager
def proxy(port: int, *protocol: str) -> Iterator[Proxy]:
    """A proxy before a port of this machine, for HTTP or `raw`."""
    command = [sys.executable, "-m", "tests.stores.proxy", port, *protocol]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with running(command, cwd=HERE.parents[1], **pipes) as process:
        yield Proxy(process)
