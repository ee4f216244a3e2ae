"""Which jars each Kafka version needs, fetched once by Maven into the test cache."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("KCTL_TEST_CACHE", Path(__file__).parents[2] / ".cache")) / "kafka"


class Artifact(NamedTuple):
    """A Maven artifact."""

    group: str
    name: str
    version: str
    classifier: str = ""


class Release(NamedTuple):
    """A Kafka release: its full version, Scala's, and what it needs besides itself."""

    version: str
    scala: str
    extra: tuple[Artifact, ...] = ()


LOG4J = Artifact("org.slf4j", "slf4j-log4j12", "1.7.25")
# Without it brokers of Kafka 4 log nothing.
LOG4J2 = Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
# Java 11 and later have no javax.xml.bind; brokers before 1.0 die at start without it.
JAXB = (
    Artifact("javax.xml.bind", "jaxb-api", "2.3.1"),
    Artifact("javax.activation", "activation", "1.1.1"),
)


def tools(version: str) -> Artifact:
    """The artifact with Kafka's Java tools."""
    return Artifact("org.apache.kafka", "kafka-tools", version)


RELEASES: dict[str, Release] = {
    "0.8.2": Release("0.8.2.2", "2.11"),
    "0.9": Release("0.9.0.1", "2.11"),
    "0.10.2": Release("0.10.2.2", "2.12", (LOG4J, *JAXB)),
    "0.11": Release("0.11.0.3", "2.12", (LOG4J, *JAXB)),
    "1.1": Release("1.1.1", "2.12", (LOG4J, tools("1.1.1"))),
    "2.4": Release("2.4.1", "2.13", (LOG4J, tools("2.4.1"))),
    "2.8": Release("2.8.2", "2.13", (tools("2.8.2"),)),
    "3.9": Release("3.9.1", "2.13", (tools("3.9.1"), Artifact("org.slf4j", "slf4j-reload4j", "1.7.36"))),
    "4.1": Release("4.1.1", "2.13", (tools("4.1.1"), LOG4J2)),
    "4.3": Release("4.3.0", "2.13", (tools("4.3.0"), LOG4J2)),
}


class Suite(NamedTuple):
    """What Kafka's own tests of a version need: the artifacts that hold them beside the core's, and others."""

    tests: tuple[str, ...]
    extra: tuple[Artifact, ...]


RUNNER = (
    Artifact("net.bytebuddy", "byte-buddy", "1.17.7"),
    Artifact("net.bytebuddy", "byte-buddy-agent", "1.17.7"),
    Artifact("org.hamcrest", "hamcrest", "2.2"),
)
JUNIT = (
    Artifact("org.junit.jupiter", "junit-jupiter", "5.10.2"),
    Artifact("org.junit.platform", "junit-platform-launcher", "1.10.2"),
)
NEW_JUNIT = (
    Artifact("org.junit.jupiter", "junit-jupiter", "5.13.1"),
    Artifact("org.junit.platform", "junit-platform-launcher", "1.13.1"),
)
OLD_TESTS = ("kafka-clients", "kafka-raft", "kafka-metadata")
TESTS = (*OLD_TESTS, "kafka-storage", "kafka-storage-api", "kafka-server-common", "kafka-server")
NEW_TESTS = (*TESTS, "kafka-test-common-runtime", "kafka-test-common-internal-api")
CERTIFICATES = Artifact("org.bouncycastle", "bcpkix-jdk18on", "1.75")
OLD_CERTIFICATES = Artifact("org.bouncycastle", "bcpkix-jdk15on", "1.66")
EASYMOCK = Artifact("org.easymock", "easymock", "4.2")


def mockito(version: str, name: str = "mockito-core") -> Artifact:
    """The artifact with Mockito."""
    return Artifact("org.mockito", name, version)


SUITES: dict[str, Suite] = {
    "3.9": Suite(TESTS, (*JUNIT, mockito("5.10.0"), CERTIFICATES)),
    "2.8": Suite(OLD_TESTS, (*JUNIT, mockito("4.11.0", "mockito-inline"), EASYMOCK, OLD_CERTIFICATES)),
    "4.3": Suite(NEW_TESTS, (*NEW_JUNIT, mockito("5.20.0"), CERTIFICATES)),
}
UNWANTED = (("com.sun.jdmk", "jmxtools"), ("com.sun.jmx", "jmxri"), ("javax.jms", "jms"))


def jars(version: str) -> Path:
    """The folder with the jars of a version such as `2.8`, fetched where it is not there yet."""
    release = RELEASES[version]
    kafka = Artifact("org.apache.kafka", f"kafka_{release.scala}", release.version)
    return _fetched(release.version, (kafka, *release.extra))


def tier_jars(version: str) -> Path:
    """The folder with the jar of Kafka's tests that has LocalTieredStorage, and with nothing else."""
    release = RELEASES[version]
    storage = Artifact("org.apache.kafka", "kafka-storage", release.version, "test")
    return _fetched(f"{release.version}-tier", (storage,), "-DexcludeTransitive=true")


def suite_jars(version: str) -> Path:
    """The folder with the jars of Kafka's own tests of a version of `SUITES`, and with what runs them."""
    release, suite = RELEASES[version], SUITES[version]
    kafka = Artifact("org.apache.kafka", f"kafka_{release.scala}", release.version)
    tests = [
        Artifact("org.apache.kafka", name, release.version, "test") for name in (kafka.name, *suite.tests)
    ]
    return _fetched(f"{release.version}-suites", (kafka, *release.extra, *tests, *RUNNER, *suite.extra))


def _fetched(name: str, artifacts: Sequence[Artifact], *options: str) -> Path:
    folder = CACHE / name
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of threads as well as of processes: one fetches, the others wait
        if not folder.is_dir():
            _fetch(artifacts, folder, options)
    return folder


def _fetch(artifacts: Sequence[Artifact], folder: Path, options: Sequence[str]) -> None:
    partial = CACHE / f"{folder.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was cut off
    partial.mkdir()
    pom = partial / "pom.xml"
    pom.write_text(_pom(artifacts))
    command = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", *options]
    said = subprocess.run(
        [*command, "-DincludeScope=runtime", f"-DoutputDirectory={partial}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode:
        raise RuntimeError(f"mvn could not fetch {folder.name}: {said.stdout[-2000:]}{said.stderr[-500:]}")
    partial.rename(folder)


def classpath(version: str) -> str:
    """What `java -cp` takes."""
    return f"{jars(version)}/*"


def compiled(source: Path, version: str) -> Path:
    """The folder with the classes of a Java program, compiled against a version's jars where that has not been done."""
    folder = CACHE / f"classes-{version}"
    made = folder / f"{source.stem}.class"
    folder.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            command: list[str | Path] = ["javac", "-nowarn", "-cp", classpath(version), "-d", folder, source]
            subprocess.run(command, check=True)
    return folder


def _pom(artifacts: Sequence[Artifact]) -> str:
    dependencies = "".join(_dependency(a) for a in artifacts)
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kctl</groupId><artifactId>rig</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _dependency(artifact: Artifact) -> str:
    unwanted = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>"
        for group, name in UNWANTED
    )
    classifier = f"<classifier>{artifact.classifier}</classifier>" if artifact.classifier else ""
    return (
        f"<dependency><groupId>{artifact.group}</groupId><artifactId>{artifact.name}</artifactId>"
        f"<version>{artifact.version}</version>{classifier}<exclusions>{unwanted}</exclusions></dependency>"
    )
