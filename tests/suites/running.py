"""Kafka's storage tests of one version: their classes, run with every folder kept that they delete."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from tests.brokers.jars import jars, suite_jars

HERE = Path(__file__).parent
CLASSES = re.compile(
    r"""(kafka/log/\w+
    | kafka/raft/KafkaMetadataLog
    | kafka/tools/DumpLogSegments
    | org/apache/kafka/storage/internals/(?:log|checkpoint)/\w+
    | org/apache/kafka/raft/internals/KafkaRaftLog\w*
    | org/apache/kafka/tools/DumpLogSegments
    )Test\.class""",
    re.VERBOSE,
)
WITHOUT_FILES = re.compile(r"/(Abstract\w*|LogConfig|OffsetMap|LogOffsetMetadata|VerificationGuard)Test\.")
# Mockito of old versions knows no newer Java, and Kafka's tests reach into these packages.
OPTIONS = (
    "-Xmx1200m",
    "-XX:TieredStopAtLevel=1",
    "-Dnet.bytebuddy.experimental=true",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
)


class Kept(NamedTuple):
    """A folder that a test deleted: its copy, and the test."""

    folder: Path
    test: str


def classes_of(version: str) -> list[str]:
    """The names of the version's test classes that write files of logs."""
    names = set()
    for jar in suite_jars(version).glob("*-test.jar"):
        names |= {name for name in ZipFile(jar).namelist() if CLASSES.fullmatch(name)}
    return sorted(name[:-6].replace("/", ".") for name in names if not WITHOUT_FILES.search(f"/{name}"))


def compiled(name: str, folder: Path, to: Path) -> str:
    """The classpath of a program beside this file, compiled for the jars of a folder."""
    classpath = os.pathsep.join(
        map(str, sorted(folder.glob("*.jar")))
    )  # javac by its module expands no wildcard
    to.mkdir(parents=True, exist_ok=True)
    compiler = [
        "java",
        "-m",
        "jdk.compiler/com.sun.tools.javac.Main",
        "-nowarn",
        "-cp",
        classpath,
        "-d",
        str(to),
    ]
    subprocess.run([*compiler, str(HERE / f"{name}.java")], check=True)
    return f"{to}{os.pathsep}{classpath}"


def run_classes(version: str, classes: list[str], folder: Path, seconds: int) -> Counter[str]:
    """Run the classes; how many tests ended how. Their folders are then in `kept(folder)`."""
    classpath = compiled("KeptFolders", suite_jars(version), folder / "classes")
    temporary = folder / "temporary"
    temporary.mkdir()
    command = ["java", *OPTIONS, f"-Djava.io.tmpdir={temporary}", "-cp", classpath, "KeptFolders"]
    with (folder / "tests.log").open("wb") as log:
        subprocess.run(
            [*command, folder / "kept", *classes], stdout=log, stderr=log, check=False, timeout=seconds
        )
    lines = (folder / "kept/tests.tsv").read_text().splitlines()
    return Counter(line.partition("\t")[0].lower() for line in lines)


def kept(folder: Path) -> Iterator[Kept]:
    """The folders that were kept, in the order of their deletion."""
    table = folder / "kept/kept.tsv"
    for line in table.read_text().splitlines() if table.is_file() else ():
        name, _, test = line.partition("\t")
        yield Kept(folder / "kept" / name, test)


class Dumper:
    """Kafka's DumpLogSegments in a process that prints one file after the other."""

    def __init__(self, version: str, scratch: Path) -> None:
        classpath = compiled("DumpEach", jars(version), scratch / "dump-classes")
        self._out = scratch / "dumped"
        self._process = subprocess.Popen(
            ["java", "-Xmx600m", "-XX:TieredStopAtLevel=1", "-cp", classpath, "DumpEach"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def dump(self, *arguments: str) -> tuple[str, bytes]:
        """What the tool threw, or `ok`; and what it printed."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("\t".join((str(self._out), *arguments)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        assert answer, "Kafka's tool ended the process"
        return answer, self._out.read_bytes()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
