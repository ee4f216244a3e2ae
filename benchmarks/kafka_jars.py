"""Kafka's own classes, for comparison: fetched by Maven into .cache once, run with the Java that is there."""

import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).parent.parent / ".cache"
VERSION = "3.9.1"
DUMP = "kafka.tools.DumpLogSegments"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>benchmarks</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{version}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{version}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
"""


def jars() -> Path | None:
    """The folder of Kafka's jars; None where there is no Java, no Maven or no network."""
    folder = CACHE / f"kafka-{VERSION}"
    if not shutil.which("java"):
        return None
    if (folder / f"kafka_2.13-{VERSION}.jar").exists():
        return folder
    if not shutil.which("mvn"):
        return None
    pom = CACHE / "pom-kafka" / "pom.xml"
    pom.parent.mkdir(parents=True, exist_ok=True)
    pom.write_text(POM.format(version=VERSION))
    copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    ran = subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *copy], capture_output=True, check=False)
    return folder if ran.returncode == 0 else None


def dump_command(folder: Path, log: Path, *options: str) -> list[str]:
    """The command that runs Kafka's dump tool over a segment."""
    flags = ["-Xmx512m", "-XX:+UseSerialGC", "-Dlog4j.configuration=none"]
    return ["java", *flags, "-cp", f"{folder}/*", DUMP, "--files", str(log), *options]
