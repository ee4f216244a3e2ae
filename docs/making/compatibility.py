"""docs/compatibility.md, from what the tests run on: `python -m docs.making.compatibility` writes it, a test compares."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.brokers import conftest as by_zookeeper
from tests.brokers.test_runbooks import CLUSTERS
from tests.brokers.wire import conftest as by_protocol
from tests.brokers.wire import test_disks, test_kraft, test_unclean
from tests.conftest import recordings

PAGE = Path(__file__).parents[1] / "compatibility.md"
HEAD = """\
# Compatibility

Generated from the parameters of the tests and the names of the recordings: it lists only what is tested.
Versions with \\* are tested by `make test-matrix`, the others by `make test-all`. A version between two listed ones uses the formats
and requests of the older or the newer one; its changes are known from Kafka's sources.

## Features

| Feature | ZooKeeper clusters | KRaft clusters | Tested against |
|---|---|---|---|
"""
TAIL = """
Tests that start brokers use the newest patch of each version. kctl reads metadata formats, messages, log lines and znodes of all
versions from 0.8.1 to 4.3, by tables from their sources; it was tested on output of the versions above.

## Python

CPython 3.11, 3.12, 3.13 and 3.14 on Linux: `make test-pythons` runs the quick tests with each version on the machine. Tests that start Java
(Spark, brokers) run with 3.11. The free-threaded build of 3.14 is not supported: google-crc32c, lz4 and zstandard have no wheels for it. kctl uses
processes, not threads, where it uses several cores.

## Limits

- SASL by `GSSAPI` requires brokers whose service is called `kafka`. `OAUTHBEARER` requires a token in a file; kctl requests none from an issuer.
- Migration from ZooKeeper to KRaft is tested with 3.9, the last version that supports it.
- Tiered storage is tested on recordings of 3.5, 3.6 and 3.9 with Kafka's `LocalTieredStorage`. Objects of Aiven's plug-in are read by their layout, others with `--layout`.
- kctl uses no Admin protocol with brokers before 2.4; it changes them by `--zookeeper`.
- Windows is not supported. macOS should work, but is not tested.
"""
Versions = Sequence[tuple[str, str]]  # each with an escaped * where only the matrix has it


def of_params(params: Sequence[Any]) -> Versions:
    """Versions of the parameters of a fixture."""
    return [(p.values[0], r"\*" if any(mark.name == "matrix" for mark in p.marks) else "") for p in params]


def of_recordings(kind: str) -> Versions:
    """Versions in the names of recordings; `kraft-` before those of KRaft clusters."""
    found = [(name, re.search(r"\d+\.\d+(\.\d+)*", name)) for name in recordings(kind)]
    return [(("kraft-" if "kraft" in name else "") + version[0], "") for name, version in found if version]


def parted(versions: Versions) -> tuple[str, str]:
    """ZooKeeper's and KRaft's in two cells, oldest first."""
    cells: list[dict[str, str]] = [{}, {}]
    for name, mark in versions:
        number = name.rpartition("-")[2]
        cells["kraft" in name].setdefault(number, mark)
    zookeeper, kraft = (", ".join(f"{v}{cell[v]}" for v in sorted(cell, key=numeric)) for cell in cells)
    return zookeeper, kraft


def numeric(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def kraft(params: Sequence[Any]) -> Versions:
    return [(f"kraft-{version}", mark) for version, mark in of_params(params)]


FEATURES: list[tuple[str, Versions, str]] = [
    ("Segments, indexes, snapshots, checkpoints: read, verify, rebuild", of_recordings("segments"), "files of real brokers, and Kafka's own dump of them"),
    ("Losses, divergence, who led when", of_recordings("incidents"), "recorded incidents with a known history"),
    ("The same, if a rule of a version decides", of_recordings("drills"), "recorded drills, one for each rule"),
    ("KRaft logs and metadata", [*of_recordings("logs"), *of_recordings("metadata")], "recorded logs, with decisions of controllers"),
    ("Topics, configurations, reassignments, elections by ZooKeeper", of_params(by_zookeeper.VERSIONS), "running brokers"),
    ("The same by Kafka's protocol, groups, transactions", of_params(by_protocol.PARAMS), "running brokers"),
    ("Quorum, features, unregistering", kraft(test_kraft.VERSIONS), "running brokers and controllers"),
    ("Disks of brokers, moves between them", kraft(test_disks.VERSIONS), "running brokers with failing disks"),
    ("Unclean elections with a forecast", kraft(test_unclean.VERSIONS), "running brokers"),
    ("Runbooks, carried out as written", [("kraft-" * (v >= "4") + v, "") for v in CLUSTERS], "running brokers"),
    ("Migration from ZooKeeper to KRaft", of_recordings("migration"), "a recorded and a running migration"),
]  # fmt: skip


def page() -> Iterator[str]:
    yield HEAD
    for feature, versions, how in FEATURES:
        zookeeper, quorum = parted(versions)
        yield f"| {feature} | {zookeeper} | {quorum} | {how} |\n"
    yield TAIL


def text() -> str:
    return "".join(page())


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
