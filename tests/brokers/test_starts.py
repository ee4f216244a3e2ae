"""The forecast of a start against brokers that are started on the same directories: whether the process comes up, or how
it ends. What happens to logs is in tests/kctl/test_log_dir_start_as_kafka.py."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from formats.binary.crc import crc32c
from kctl.log_dir_start.directory import start_directory
from kctl.log_dir_start.process import metadata_log_start
from kctl.log_dir_start.rules import start_rules
from tests.brokers.cluster import Cluster, cluster, eventually, kraft_cluster
from tests.brokers.jars import classpath
from tests.brokers.processes import PATIENCE, JavaProcess, java_command
from tests.brokers.traffic import traffic
from tests.conftest import kctl, rows
from tests.kctl.log_dir_start_cases import batches_of
from tests.kctl.test_log_dir_start_as_kafka import forecast, on_disk

METADATA = "__cluster_metadata-0"
STARTED = re.compile(rb"started \(kafka\.server\.Kafka(?:Raft)?Server\)")
WAITS = re.compile(
    rb"Connection to node \d+ \(\S+\) could not be established|Starting voters are VoterSet\(voters=\{\}\)"
)  # for voters that are not there
Damage = Callable[[Path, Path], object]
"""Done to the folder with `server.properties`, and the log directory in it."""


class Stopped(NamedTuple):
    """A broker that was stopped in good order, and its cluster."""

    cluster: Cluster
    folder: Path


class Start(NamedTuple):
    """What became of a process; `starts` is None where it waits for others."""

    starts: bool | None
    log: str


def rewrite(path: Path, pattern: str, text: str) -> None:
    """Change every match of a text file."""
    before = path.read_text()
    after = re.sub(pattern, text, before, flags=re.MULTILINE)
    assert after != before, f"{path} has no {pattern}"
    path.write_text(after)


def nul(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def second_directory(folder: Path, meta: str | None = None) -> Path:
    """Another directory in `log.dirs`, empty or with this `meta.properties`."""
    other = folder / "data-2"
    other.mkdir()
    if meta is not None:
        (other / "meta.properties").write_text(meta)
    rewrite(folder / "server.properties", "^(log.dirs=.*)$", rf"\1,{other}")
    return other


def newest_snapshot(data: Path) -> Path:
    return max((data / METADATA).glob("*.checkpoint"))


def without_metadata_log(data: Path) -> None:
    """The snapshots alone, as after a copy of some files."""
    for path in (data / METADATA).iterdir():
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot"):
            path.unlink()


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def set_level(path: Path, level: int) -> bytes:
    """Write a file of the metadata with this metadata version in it; the batch that sets it."""
    data = bytearray(path.read_bytes())
    for at, size in batches_of(path):
        name = data.find(NAME, at, at + size)
        if name >= 0:
            data[name + len(NAME) : name + len(NAME) + 2] = level.to_bytes(2, "big")
            data[at + 17 : at + 21] = crc32c(bytes(data[at + 21 : at + size])).to_bytes(4, "big")
            path.write_bytes(data)
            return bytes(data[at : at + size])
    raise AssertionError(f"{path} sets no metadata version")


def append_level(path: Path, level: int) -> None:
    """Append the batch that sets the metadata version once more, with another."""
    before = path.read_bytes()
    batch = bytearray(set_level(path, level))
    at, _ = batches_of(path)[-1]
    end = int.from_bytes(before[at : at + 8], "big") + int.from_bytes(before[at + 23 : at + 27], "big") + 1
    batch[:8], batch[12:16] = end.to_bytes(8, "big"), before[at + 12 : at + 16]
    path.write_bytes(before + batch)


def orders_log(data: Path) -> Path:
    return data / "orders-0" / f"{0:020}.log"


def cut_end(data: Path, count: int) -> None:
    path = orders_log(data)
    cut(path, path.stat().st_size - count)


def flip_log(data: Path, position: int) -> None:
    flip(orders_log(data), position)


def killed_and(damage: Callable[[Path, int], None], data: Path, number: int) -> None:
    """Damage the log of a broker that was killed before it wrote a recovery point."""
    (data / ".kafka_cleanshutdown").unlink()
    (data / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    damage(data, number)


NAME = b"metadata.version"
OTHER_ID = "A" * 20 + "Zw"
KRAFT: dict[str, Damage] = {
    "healthy": lambda folder, data: None,
    "other-node-id": lambda folder, data: rewrite(data / "meta.properties", "^node.id=1", "node.id=4"),
    "no-node-id": lambda folder, data: rewrite(data / "meta.properties", "^node.id=1\n", ""),
    "no-cluster-id": lambda folder, data: rewrite(data / "meta.properties", "^cluster.id=.*\n", ""),
    "no-version": lambda folder, data: rewrite(data / "meta.properties", "^version=.*\n", ""),
    "version-0": lambda folder, data: rewrite(data / "meta.properties", "^version=1", "version=0"),
    "version-2": lambda folder, data: rewrite(data / "meta.properties", "^version=1", "version=2"),
    "no-meta": lambda folder, data: (data / "meta.properties").unlink(),
    "empty-meta": lambda folder, data: cut(data / "meta.properties", 0),
    "nul-meta": lambda folder, data: nul(data / "meta.properties"),
    "no-roles": lambda folder, data: [
        rewrite(folder / "server.properties", "^(process.roles|controller.|listeners|node.id).*\n", ""),
        rewrite(folder / "server.properties", r"\Z", "broker.id=1\nzookeeper.connect=127.0.0.1:9\n"),
    ],
    "no-quorum-state": lambda folder, data: (data / METADATA / "quorum-state").unlink(),
    "empty-quorum-state": lambda folder, data: cut(data / METADATA / "quorum-state", 0),
    "nul-quorum-state": lambda folder, data: nul(data / METADATA / "quorum-state"),
    "cut-quorum-state": lambda folder, data: cut(data / METADATA / "quorum-state", 9),
    "more-voters": lambda folder, data: rewrite(
        folder / "server.properties", "^(controller.quorum.voters=.*)$", r"\1,2@127.0.0.1:9,3@127.0.0.1:10"
    ),
    "not-a-voter": lambda folder, data: rewrite(
        folder / "server.properties", "^controller.quorum.voters=.*$", "controller.quorum.voters=2@127.0.0.1:9,3@127.0.0.1:10"
    ),
    "no-voters": lambda folder, data: rewrite(folder / "server.properties", "^controller.quorum.voters=.*\n", ""),
    "bootstrap-servers-for-voters": lambda folder, data: rewrite(
        folder / "server.properties", "^controller.quorum.voters=1@", "controller.quorum.bootstrap.servers="
    ),
    "of-zookeeper-mode": lambda folder, data: [
        rewrite(data / "meta.properties", "^version=1", "version=0"),
        rewrite(data / "meta.properties", "^node.id", "broker.id"),
        (data / "bootstrap.checkpoint").unlink(),
        shutil.rmtree(data / METADATA),
    ],
    "a-voter-without-the-role": lambda folder, data: rewrite(
        folder / "server.properties", "^process.roles=.*$", "process.roles=broker"
    ),
    "other-voters-in-quorum-state": lambda folder, data: rewrite(
        data / METADATA / "quorum-state", r'\{"voterId":1\}', '{"voterId":2},{"voterId":3}'
    ),
    "unknown-metadata-version-in-bootstrap": lambda folder, data: set_level(data / "bootstrap.checkpoint", 99),
    "unknown-metadata-version-and-no-log": lambda folder, data: [
        set_level(data / "bootstrap.checkpoint", 99), shutil.rmtree(data / METADATA),
    ],
    "unknown-metadata-version-in-snapshot": lambda folder, data: set_level(newest_snapshot(data), 99),
    "unknown-metadata-version-in-log": lambda folder, data: append_level(data / METADATA / f"{0:020}.log", 99),
    "no-bootstrap": lambda folder, data: (data / "bootstrap.checkpoint").unlink(missing_ok=True),
    "nul-bootstrap": lambda folder, data: nul(data / "bootstrap.checkpoint"),
    "empty-bootstrap": lambda folder, data: cut(data / "bootstrap.checkpoint", 0),
    "no-metadata-log": lambda folder, data: shutil.rmtree(data / METADATA),
    "no-metadata-segment": lambda folder, data: (data / METADATA / f"{0:020}.log").unlink(),
    "empty-metadata-log": lambda folder, data: cut(data / METADATA / f"{0:020}.log", 0),
    "flipped-metadata-log": lambda folder, data: flip(data / METADATA / f"{0:020}.log", 400),
    "nul-snapshot": lambda folder, data: nul(newest_snapshot(data)),
    "flipped-snapshot": lambda folder, data: flip(newest_snapshot(data), 200),
    "empty-snapshot": lambda folder, data: cut(newest_snapshot(data), 0),
    "snapshots-alone": lambda folder, data: without_metadata_log(data),
    "cut-snapshot-alone": lambda folder, data: [without_metadata_log(data), cut(newest_snapshot(data), 300)],
    "part-of-a-snapshot": lambda folder, data: (
        data / METADATA / f"{99:020}-{1:010}.checkpoint.part"
    ).write_bytes(b"cut"),
    "no-partition-metadata": lambda folder, data: (data / "orders-0" / "partition.metadata").unlink(),
    "other-topic-id": lambda folder, data: rewrite(
        data / "orders-0" / "partition.metadata", "topic_id: .*", f"topic_id: {OTHER_ID}"
    ),
    "torn-log": lambda folder, data: killed_and(cut_end, data, 5),
    "torn-log-after-a-clean-shutdown": lambda folder, data: cut_end(data, 5),
    "flipped-log": lambda folder, data: killed_and(flip_log, data, 400),
    "no-index": lambda folder, data: (data / "orders-0" / f"{0:020}.index").unlink(),
    "a-file-to-delete": lambda folder, data: (data / "orders-0" / f"{0:020}.log.deleted").write_bytes(b"old"),
    "lost-and-found": lambda folder, data: (data / "lost+found").mkdir(),
    "a-note": lambda folder, data: (data / "notes.txt").write_text("see OPS-812"),
    "one-directory-id-twice": lambda folder, data: second_directory(
        folder, (data / "meta.properties").read_text()
    ),
    "directory-not-formatted": lambda folder, data: second_directory(folder),
    "two-metadata-logs": lambda folder, data: (
        second_directory(
            folder, re.sub("directory.id=.*", f"directory.id={OTHER_ID}", (data / "meta.properties").read_text())
        )
        / METADATA
    ).mkdir(),
}  # fmt: skip
ZOOKEEPER: dict[str, Damage] = {
    "healthy": KRAFT["healthy"],
    "other-broker-id": lambda folder, data: rewrite(data / "meta.properties", "^broker.id=1", "broker.id=4"),
    "no-broker-id": lambda folder, data: rewrite(data / "meta.properties", "^broker.id=1\n", ""),
    "other-cluster-id": lambda folder, data: rewrite(
        data / "meta.properties", "^cluster.id=.*$", f"cluster.id={OTHER_ID}"
    ),
    "no-cluster-id": KRAFT["no-cluster-id"],
    "no-version": KRAFT["no-version"],
    "version-1": lambda folder, data: [
        rewrite(data / "meta.properties", "^version=0", "version=1"),
        rewrite(data / "meta.properties", "^broker.id", "node.id"),
    ],
    "version-2": lambda folder, data: rewrite(data / "meta.properties", "^version=0", "version=2"),
    "no-meta": KRAFT["no-meta"],
    "empty-meta": KRAFT["empty-meta"],
    "nul-meta": KRAFT["nul-meta"],
    **{
        name: KRAFT[name]
        for name in (
            "torn-log",
            "torn-log-after-a-clean-shutdown",
            "flipped-log",
            "no-index",
            "a-file-to-delete",
        )
    },
    "lost-and-found": KRAFT["lost-and-found"],
    "directory-not-formatted": KRAFT["directory-not-formatted"],
}
# Kafka takes what is left of the snapshot for the whole.
UNDECIDED = {
    "cut-snapshot-alone": "cannot be read whole, and it tells which folders are stray",
    "bootstrap-servers-for-voters": "nor the metadata log names voters",
}
# The controller and the loader of metadata each read the record in their own thread; the first to fail ends the process.
RACES = {
    f"unknown-metadata-version-in-{file}": "but this controller only supports versions"
    for file in ("snapshot", "log")
}
VERSIONS = (("kraft", "4.3", KRAFT), ("kraft", "3.9", KRAFT), ("zookeeper", "3.9", ZOOKEEPER), ("zookeeper", "2.8", ZOOKEEPER), ("zookeeper", "2.4", ZOOKEEPER), ("zookeeper", "1.1", ZOOKEEPER))  # fmt: skip
EVERYWHERE = (("kraft", "4.3"), ("zookeeper", "2.8"))
# 1.1 writes no cluster id; 3.9 without roles asks ZooKeeper first.
CASES = [
    pytest.param(
        (mode, version),
        name,
        id=f"{mode}-{version}-{name}",
        marks=[pytest.mark.brokers, *([] if (mode, version) in EVERYWHERE else [pytest.mark.matrix])],
    )
    for mode, version, cases in VERSIONS
    for name in cases
    if (version, name) not in (("1.1", "other-cluster-id"), ("1.1", "no-cluster-id"), ("3.9", "no-roles"))
]


@pytest.fixture(scope="module")
def stopped(request: pytest.FixtureRequest) -> Iterator[Stopped]:
    """A broker of the mode and version that was stopped, with a topic."""
    mode, version = request.param
    properties = {"offsets.topic.replication.factor": 1}
    make = cluster
    if mode == "kraft":
        make = kraft_cluster
        properties["metadata.log.max.record.bytes.between.snapshots"] = 1500
    with make(version, brokers=1, properties=properties) as c:
        broker = c.brokers[1]
        if mode == "kraft":
            at = ("--bootstrap-server", c.bootstrap)
            ran = kctl(
                "topic", "create", "orders", "--partitions", 1, "--replication-factor", 1, *at, "--yes"
            )
        else:
            at = ("--zookeeper", c.connect)
            c.create_topic("orders", [[1]])
            ran = kctl("znode", "export", broker.folder / "znodes.jsonl", *at)
        assert ran.status == 0, ran.err
        with traffic(c, "orders", 1) as orders:
            orders.require_progress(20)
        snapshots = broker.log_dir / METADATA
        for _ in eventually("a snapshot of the metadata log is there"):
            if mode == "zookeeper" or any(
                path.name[:20].strip("0") for path in snapshots.glob("*.checkpoint")
            ):
                break
        c.stop(1)
        yield Stopped(c, broker.folder)


def started(c: Cluster, folder: Path) -> Start:
    """Start a broker on a copy until it is up, has ended, or waits for others."""
    flags = [
        f"-Dlog4j.configuration=file:{c.folder}/log4j.properties",
        f"-Dlog4j2.configurationFile={c.folder}/log4j2.properties",
    ]
    log = folder / "server.log"
    log.write_bytes(b"")
    if c.zookeeper:
        c.wait_until_gone(1)
    command = java_command(classpath(c.version), "kafka.Kafka", [folder / "server.properties"], flags=flags)
    process = JavaProcess(command, log)
    starts: bool | None = None
    try:
        for _ in eventually("the broker is up or ends", PATIENCE, 0.1):
            if not process.is_running or STARTED.search(log.read_bytes()):
                starts = STARTED.search(log.read_bytes()) is not None
                break
            if WAITS.search(log.read_bytes()):
                break
    finally:
        process.kill()
    return Start(starts, log.read_text(errors="replace"))


@pytest.mark.parametrize(("stopped", "name"), CASES, indirect=["stopped"])
def test_a_broker_starts_or_ends_as_forecast(stopped: Stopped, name: str, tmp_path: Path) -> None:
    c = stopped.cluster
    folder = tmp_path / "broker-1"
    shutil.copytree(stopped.folder, folder, ignore=shutil.ignore_patterns("server.log*"))
    rewrite(folder / "server.properties", re.escape(str(stopped.folder)), str(folder))
    (ZOOKEEPER if c.zookeeper else KRAFT)[name](folder, folder / "data")
    forecasts = rows("log-dir", "start", folder, "--kafka-version", c.version)
    (expected,) = forecasts.of("start")
    files = {path: expected_files(path, c.version) for path in log_dirs_below(folder)}
    start = started(c, folder)
    if name in UNDECIDED:
        assert expected["starts"] is None and UNDECIDED[name] in expected["reason"]
        assert start.starts is (None if "voters" in name else True), start.log[-3000:]
        return
    assert expected["starts"] is (start.starts is not False), start.log[-3000:]
    if start.starts is False:
        if name in RACES and RACES[name] in start.log:
            return
        exception, words = expected["exception"].rpartition(".")[2], expected["fails_with"]
        assert exception == "halt" or exception in start.log, (expected, start.log[-3000:])
        assert exception in ("halt", "NullPointerException") or words.split("\n")[0] in start.log, (
            expected,
            start.log[-3000:],
        )
    elif start.starts:
        strays = {path.name.partition(".")[0] for path in (folder / "data").glob("*-stray")}
        renamed = {
            f"{row['topic']}-{row['partition']}"
            for row in forecasts.of("start_step")
            if row["step"] == "rename"
        }
        assert strays == renamed
        assert {path: files_there(path, files[path]) for path in files} == files


class Files(NamedTuple):
    """What is in the partition folders of a log directory: names, and sizes of logs; of the metadata log, sizes alone."""

    names: dict[str, set[str]]
    sizes: dict[str, dict[str, int]]
    snapshots: dict[str, list[int]]
    metadata_log: dict[str, int]


def log_dirs_below(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("*/meta.properties"))


def expected_files(path: Path, version: str) -> Files:
    """What the forecast leaves in the directory."""
    rules = start_rules(version)
    loaded = forecast(start_directory(path, rules))
    metadata = metadata_log_start(path, rules).files if (path / METADATA).is_dir() else {}
    logs = {name: size for name, size in metadata.items() if name.endswith(".log") and size}
    return Files(loaded.files, loaded.sizes, loaded.snapshots, logs)


def files_there(path: Path, expected: Files) -> Files:
    """What is in the directory after a start. The metadata log goes on: at least what is expected is there."""
    there = on_disk(path, "loaded", {})
    names, sizes, snapshots = (
        {name.partition(".")[0]: of for name, of in part.items() if name != METADATA}
        for part in (there.files, there.sizes, there.snapshots)
    )
    logs = there.sizes.get(METADATA, {})
    at_least = {name: min(logs.get(name, 0), size) for name, size in expected.metadata_log.items()}
    return Files(names, sizes, snapshots, at_least)
