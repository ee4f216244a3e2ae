"""A Spark session set up for scans: interpreter, sockets, pushdown, quick start, kctl's own code on executors."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.errors import KctlError
from kctl.temporary_folder import temporary_folder
from kctl.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Settings, and why (`kctl doctor` prints them).
SETTINGS: dict[str, tuple[str, str]] = {
    "spark.python.unix.domain.socket.enabled": ("true", "loopback TCP costs 40 ms a task"),
    "spark.sql.python.filterPushdown.enabled": ("true", "filters reach the data source"),
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("65536", "small Arrow batches are slow"),
    "spark.sql.session.timeZone": ("UTC", "times are those of the log"),
    "spark.ui.showConsoleProgress": ("false", "kctl draws its own"),
    "spark.sql.shuffle.partitions": ("32", "audits are small after the scan"),
}
# Further steps of kctl, each with its reason (`kctl doctor` prints them).
DONE_BY_KCTL: dict[str, str] = {
    "PYSPARK_PYTHON": "kctl's own interpreter where it is not set; tasks would start any python3 of the PATH",
    "frozen garbage collector": "once a worker; Spark's workers collect after every task, 40 ms each",
    "class-data archive": "on local masters, kept in the user's cache: Spark starts in half the time; not where "
    "SPARK_CONF_DIR has files, since Java archives no folders",
    "code by --py-files": "executors need Python, numpy and pyarrow (an audit's msgspec too), not kctl; codecs and CRC have fallbacks",
    "spark.local.dir": "on local masters a folder of the run's own, removed however the run ends",
}
PREPARED = "spark.kctl.prepared"
"""A setting of kctl in a session: the version of kctl that its executors have."""
RACE = "java.util.ConcurrentModificationException"
LOCAL = re.compile(r"local(\[.*\])?\Z")
PACKAGES = ("formats", "kctl")
OLDEST_JAVA = 17
UNUSED_SECONDS = 30 * 86400.0
"""After this time an archive of classes is taken to be of a Java or Spark that is no longer installed."""
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
    """Raise `KctlError` if there is no Java that can run Spark 4."""
    java = _java()
    if not java or not Path(java).exists():
        raise KctlError(
            "Spark needs Java 17 or later and none was found",
            "install it, or set JAVA_HOME; see `kctl doctor`",
        )
    try:
        version_text = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KctlError(
            f"{java}: {error}", "set JAVA_HOME to a Java 17 or later; see `kctl doctor`"
        ) from error
    version = re.search(r'version "(\d+)', version_text)
    if not version or int(version[1]) < OLDEST_JAVA:
        raise KctlError(
            f"{java} is {version_text.splitlines()[0] if version_text else 'unknown'}",
            "Spark 4 needs Java 17 or later",
        )


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java")


@contextmanager
def session(
    master: str, name: str = "kctl", settings: dict[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session on a master URL (`local[4]`, `spark://...`, `yarn`, `k8s://...`) or a Connect URL (`sc://...`).

    An active session of this process is used, whatever its master, and stays open.
    """
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise KctlError("Spark is not installed", "pip install 'kctl[spark]'") from None
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        prepare(running)
        yield running
        return
    is_remote = master.startswith("sc://")
    if not is_remote:
        check_java()
    # Planning and tasks would start whatever `python3` is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    with temporary_folder("spark") as scratch:
        archive = None if LOCAL.match(master) else code_archive(scratch)
        builder = builder.remote(master) if is_remote else builder.master(master)
        chosen = (
            settings_for() if is_remote else settings_for(master) | _settings_of(master, scratch, archive)
        )
        for key, value in (chosen | (settings or {})).items():
            builder = builder.config(key, value)
        java_errors = scratch / "java.stderr"
        try:
            with errors_into(java_errors), own_code_on_path():
                spark = _started(builder)
        # py4j and gRPC have exceptions of their own; pyspark exits if Connect's libraries are missing.
        except (Exception, SystemExit) as error:
            raise KctlError(
                f"Spark at {master} did not start: {_why(error, java_errors)}",
                "`kctl doctor` checks Java and Spark",
            ) from error
        try:
            if is_remote and archive:
                _send(spark, archive, is_remote=True)
            else:
                spark.sparkContext.setLogLevel("ERROR")
            _register(spark)
            spark.conf.set(PREPARED, __version__)
            yield spark
        finally:
            spark.stop()


def _started(builder: Any) -> SparkSession:
    """A session; tries once more if Spark's threads collide at the start, as in 2 of 24 starts on YARN of a busy machine."""
    try:
        return builder.getOrCreate()
    except Exception as error:
        if RACE not in str(error):
            raise
    return builder.getOrCreate()


@contextmanager
def errors_into(path: Path) -> Iterator[None]:
    """Write the standard error of processes started in the block into the file, as long as they live.

    Java lists its modules and log settings there; errors that matter come as exceptions.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


@contextmanager
def own_code_on_path() -> Iterator[None]:
    """Put kctl's compiled code on the path of Python processes that a JVM started in the block starts."""
    before = os.environ.get("PYTHONPATH")
    places = dict.fromkeys(str(root.parent) for root in package_roots().values())
    os.environ["PYTHONPATH"] = os.pathsep.join([*places, *([before] if before else [])])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _why(error: BaseException, java_errors: Path) -> str:
    """Why Spark did not start: the exception's first line, and Java's last one if the JVM ended."""
    first = _first_line(error)
    lines = java_errors.read_text(errors="replace").splitlines() if java_errors.exists() else []
    lines = [
        line.strip() for line in lines if line.strip() and not line.strip().startswith(("at ", "WARNING"))
    ]
    return f"{first} ({lines[-1]})" if lines and "JAVA_GATEWAY_EXITED" in first else first


def prepare(spark: SparkSession) -> None:
    """Add the data source and kctl's code for executors to a session that somebody else created; once a session."""
    if spark.conf.get(PREPARED, "") != __version__:
        _register(spark)
        folder = Path(tempfile.mkdtemp(prefix="kctl-code-"))  # executors that start later fetch it
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _send(spark, code_archive(folder), is_remote="connect" in type(spark).__module__)
        spark.conf.set(PREPARED, __version__)


def _register(spark: SparkSession) -> None:
    from kctl.spark.data_source import KafkaSegments

    spark.dataSource.register(KafkaSegments)


def _send(spark: SparkSession, archive: Path, *, is_remote: bool) -> None:
    if is_remote:
        spark.addArtifacts(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))


def _first_line(error: BaseException) -> str:
    """The first line of an error; of py4j's errors the second, which has Java's own exception."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        return lines[1].removeprefix(": ")
    return lines[0]


def settings_for(master: str = "local") -> dict[str, str]:
    """The settings for a master. Unix sockets are off if the path of the temporary folder is too long for them.

    The path of a YARN container always is: it contains user, application and container.
    """
    settings = {key: value for key, (value, _) in SETTINGS.items()}
    if master.startswith("yarn") or len(tempfile.gettempdir()) > LONGEST_FOLDER_OF_SOCKETS:
        settings["spark.python.unix.domain.socket.enabled"] = "false"
    return settings


def _settings_of(master: str, scratch: Path, archive: Path | None) -> dict[str, str]:
    """The settings for a driver in this process."""
    settings = {"spark.driver.extraJavaOptions": java_options(master, scratch)}
    if archive:
        return settings | {"spark.submit.pyFiles": str(archive)}
    return settings | {
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.local.dir": str(scratch),
    }  # fmt: skip


def java_options(master: str, scratch: Path) -> str:
    """Options of the driver's JVM: quiet, and on local masters a class-data archive, which halves the start."""
    logging = scratch / "log4j2.properties"
    logging.write_text(QUIET)
    options = [f"-Dlog4j2.configurationFile=file:{logging}"]
    if LOCAL.match(master):
        archive = archive_of_classes()
        try:
            archive.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return " ".join(options)
        _keep_used(archive)
        # Read if it exists, else written when the JVM ends.
        options += (
            ["-Xshare:auto", f"-XX:SharedArchiveFile={archive}"]
            if archive.exists()
            else [f"-XX:ArchiveClassesAtExit={archive}"]
        )
        options.append("-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:disable -Xlog:all=off")
    return " ".join(options)


def _keep_used(archive: Path) -> None:
    """Mark the archive as used now, and remove those unused for long: each takes 160 MB."""
    now = time.time()
    for file in archive.parent.glob("spark-*.jsa"):
        with suppress(OSError):  # another process may have removed it
            if file == archive:
                os.utime(file)
            elif now - file.stat().st_mtime > UNUSED_SECONDS:
                file.unlink()


def archive_of_classes() -> Path:
    """The class-data archive for this installation of Spark and Java: the JVM reads no archive of another path."""
    import pyspark

    java = _java()
    made_for = [pyspark.__version__, pyspark.__file__, java, Path(java).stat().st_mtime_ns if java else 0]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "kctl" / f"spark-{zlib.crc32(repr(made_for).encode()):08x}.jsa"


def package_roots() -> dict[str, Path]:
    """The folders of kctl's own packages."""
    source_root = Path(__file__).parents[2]
    return {
        package: Path(sys.modules[package].__path__[0]) if package in sys.modules else source_root / package
        for package in PACKAGES
    }


def code_archive(folder: Path) -> Path:
    """Zip kctl's own code for executors; besides they need Python, numpy and pyarrow, and msgspec for an audit."""
    path = folder / "kctl-code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package, root in package_roots().items():
            for file in sorted(root.rglob("*")):
                if file.suffix in (".py", ".css", ".toml", ".sql") or file.name == "py.typed":
                    archive.write(file, f"{package}/{file.relative_to(root)}")
    return path
