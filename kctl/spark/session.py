"""A Spark session set up for scans: interpreter, sockets, pushdown, quick start, kctl's own code on executors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.errors import KctlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What is set, and why (`kctl doctor` prints it).
SETTINGS: dict[str, tuple[str, str]] = {
    "spark.python.unix.domain.socket.enabled": ("true", "loopback TCP costs 40 ms a task"),
    "spark.sql.python.filterPushdown.enabled": ("true", "filters reach the data source"),
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("65536", "small Arrow batches are slow"),
    "spark.sql.session.timeZone": ("UTC", "times are those of the log"),
    "spark.ui.showConsoleProgress": ("false", "kctl draws its own"),
    "spark.sql.shuffle.partitions": ("32", "audits are small after the scan"),
}
# What is done besides, and why (`kctl doctor` prints it).
DONE_BY_KCTL: dict[str, str] = {
    "PYSPARK_PYTHON": "kctl's own interpreter where it is not set; tasks would start any python3 of the PATH",
    "frozen garbage collector": "once a worker; Spark's workers collect after every task, 40 ms each",
    "class-data archive": "on local masters, kept in the user's cache: Spark starts in half the time",
    "code by --py-files": "executors need Python, numpy and pyarrow, not kctl; codecs and CRC have fallbacks",
    "spark.local.dir": "on local masters a folder of the run's own, removed however the run ends",
}
LOCAL = re.compile(r"local(\[.*\])?\Z")
PACKAGES = ("formats", "kctl")
OLDEST_JAVA = 17
LONGEST_FOLDER_OF_SOCKETS = 50
"""The path of a socket has at most 104 bytes on macOS and 108 on Linux; Spark's names take 50 of them."""
QUIET = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


def check_java() -> None:
    """Raise `KctlError` where no Java fit for Spark 4 is found."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if not java or not Path(java).exists():
        raise KctlError(
            "Spark needs Java 17 or later and none was found",
            "install it, or set JAVA_HOME; see `kctl doctor`",
        )
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KctlError(f"{java}: {error}") from error
    found = re.search(r'version "(\d+)', said)
    if not found or int(found[1]) < OLDEST_JAVA:
        raise KctlError(
            f"{java} is {said.splitlines()[0] if said else 'unknown'}", "Spark 4 needs Java 17 or later"
        )


@contextmanager
def session(
    master: str, name: str = "kctl", settings: dict[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session on a master URL (`local[4]`, `spark://...`, `yarn`, `k8s://...`) or a Connect URL (`sc://...`).

    A session that this process has already is used, whatever its master, and left running.
    """
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise KctlError("Spark is not installed", "pip install 'kctl[spark]'") from None
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        _register(running)
        yield running
        return
    is_remote = master.startswith("sc://")
    if not is_remote:
        check_java()
    # Planning and tasks would start whatever `python3` is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for key, value in settings_here().items():
        builder = builder.config(key, value)
    with tempfile.TemporaryDirectory(prefix="kctl-spark-", ignore_cleanup_errors=True) as scratch:
        archive = code_archive(Path(scratch))
        if is_remote:
            builder = builder.remote(master)
        else:
            builder = builder.master(master).config("spark.submit.pyFiles", str(archive))
            builder = builder.config("spark.driver.extraJavaOptions", java_options(master, Path(scratch)))
            if LOCAL.match(master):
                builder = builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
                builder = builder.config("spark.local.dir", scratch)
        for key, value in (settings or {}).items():
            builder = builder.config(key, value)
        try:
            spark = builder.getOrCreate()
        # py4j and gRPC have families of their own; pyspark ends the process where Connect's libraries are missing.
        except (Exception, SystemExit) as error:
            raise KctlError(f"Spark at {master} did not start: {_first_line(error)}") from error
        try:
            if is_remote:
                spark.addArtifacts(str(archive), pyfile=True)
            else:
                spark.sparkContext.setLogLevel("ERROR")
            _register(spark)
            yield spark
        finally:
            spark.stop()


def _register(spark: SparkSession) -> None:
    from kctl.spark.data_source import KafkaSegments

    spark.dataSource.register(KafkaSegments)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def settings_here() -> dict[str, str]:
    """What is set on this machine: Unix sockets lie in the folder for temporary files, whose path may be too long."""
    found = {key: value for key, (value, _) in SETTINGS.items()}
    if len(tempfile.gettempdir()) > LONGEST_FOLDER_OF_SOCKETS:
        found["spark.python.unix.domain.socket.enabled"] = "false"
    return found


def java_options(master: str, scratch: Path) -> str:
    """Options of the driver's JVM: quiet, and on this machine a class-data archive, which halves the start."""
    logging = scratch / "log4j2.properties"
    logging.write_text(QUIET)
    options = [f"-Dlog4j2.configurationFile=file:{logging}"]
    if LOCAL.match(master):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kctl"
        archive = cache / f"spark-{_version()}.jsa"
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError:
            return " ".join(options)
        # Read where it is there and fits; else written when the JVM ends.
        options += (
            ["-Xshare:auto", f"-XX:SharedArchiveFile={archive}"]
            if archive.exists()
            else [f"-XX:ArchiveClassesAtExit={archive}"]
        )
        options.append("-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:disable -Xlog:all=off")
    return " ".join(options)


def _version() -> str:
    from importlib.metadata import version

    return version("pyspark")


def code_archive(folder: Path) -> Path:
    """kctl's own code as a zip for executors: they need Python, numpy and pyarrow besides."""
    path = folder / "kctl-code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            root = (
                Path(sys.modules[package].__path__[0])
                if package in sys.modules
                else Path(__file__).parents[2] / package
            )
            for file in sorted(root.rglob("*")):
                if file.suffix in (".py", ".css", ".toml", ".sql") or file.name == "py.typed":
                    archive.write(file, f"{package}/{file.relative_to(root)}")
    return path
