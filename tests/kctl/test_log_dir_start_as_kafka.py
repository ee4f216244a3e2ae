"""The forecast of a start against Kafka's own LogManager, which loads the same directories from its jar."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from formats.log_dir.checkpoints import parse_leader_epochs
from kctl.log_dir_start.directory import DirectoryStart, start_directory
from kctl.log_dir_start.rules import start_rules
from tests.brokers.jars import classpath
from tests.kctl.log_dir_start_cases import Case, make_cases, random_cases, recorded

LOADER = Path(__file__).parents[1] / "brokers" / "LoadLogs.java"


class Loaded(NamedTuple):
    """What Kafka, or the forecast, made of a directory."""

    outcome: str
    logs: dict[str, tuple[int, int]]  # log start and end
    files: dict[str, set[str]]  # what lies in each folder, without snapshots
    sizes: dict[str, dict[str, int]]  # of each live log file
    snapshots: dict[str, list[int]]
    epochs: dict[str, list[tuple[int, int]] | None]


class Base(NamedTuple):
    """Where a version's cases come from."""

    jars: str
    version: str
    recording: str
    place: str
    partition: str
    points: tuple[int, ...]


ROLLED = (0, 60)
BASES = [
    Base("3.9", "3.9", "3.9.1", "data-clean/broker-0/logdir-0", "rolled-segs-0", ROLLED),
    Base("3.9", "3.9", "3.9.1", "data-clean/broker-0/logdir-0", "txn-mix-0", (0,)),
    Base("2.8", "2.8", "2.8.2", "data-clean/broker-11/logdir-0", "rolled-segs-0", ROLLED),
    Base("2.8", "2.8", "2.8.2", "data-clean/broker-11/logdir-0", "txn-mix-0", (0,)),
    Base("4.3", "4.3", "3.9.1", "data-clean/broker-0/logdir-0", "rolled-segs-0", ROLLED),
    Base("2.4", "2.4", "2.4.1", "data-clean/broker-7/logdir-1", "rolled-segs-0", ROLLED),
    Base("1.1", "1.1.1", "1.1.1", "data-clean/broker-1/logdir-0", "rolled-segs-0", ROLLED),
    Base("0.11", "0.11.0.3", "0.11.0.3", "data-clean/broker-2", "rolled-segs-0", ROLLED),
    Base("0.10.2", "0.10.2.2", "0.10.1.1", "data-clean/broker-3", "rolled-segs-0", ROLLED),
    Base("0.9", "0.9.0.1", "0.9.0.1", "data-killed/broker-0", "rolled-segs-0", ROLLED),
    Base("0.8.2", "0.8.2.2", "0.8.2.2", "data-clean/broker-5", "rolled-segs-0", ROLLED),
]


def started_by_kafka(version: str, folders: list[Path]) -> Iterator[tuple[str, dict[str, tuple[int, int]]]]:
    """The outcome and the logs of each directory, loaded by the version's own LogManager."""
    command = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classpath(version), LOADER]
    said = subprocess.run(
        command, input="".join(f"{folder}\n" for folder in folders), capture_output=True, text=True, check=False,
        errors="replace",
    )  # fmt: skip
    outcome, logs, seen = "loaded", {}, 0
    for line in said.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word == "begin":
            outcome, logs = "loaded", {}
        elif word == "loaded":
            name, start, end, _ = rest.rsplit(" ", 3)
            logs[name] = (int(start), int(end))
        elif word == "offline":
            outcome = "offline"
        elif word == "failed":
            outcome = f"failed {rest.partition(':')[0]}"
        elif word == "end":
            seen += 1
            yield outcome, logs
    assert seen == len(folders), said.stderr[-2000:]


def on_disk(folder: Path, outcome: str, logs: dict[str, tuple[int, int]]) -> Loaded:
    files, sizes, snapshots, epochs = {}, {}, {}, {}
    for below in sorted(folder.iterdir()):
        if not below.is_dir() or "-" not in below.name:
            continue
        names = {path.name for path in below.iterdir() if path.is_file()}
        files[below.name] = {n for n in names if ".snapshot" not in n and not n.startswith("leader-epoch")}
        sizes[below.name] = {path.name: path.stat().st_size for path in below.glob("*.log")}
        snapshots[below.name] = sorted(int(n.partition(".")[0]) for n in names if n.endswith(".snapshot"))
        epochs[below.name] = epochs_in(below)
    return Loaded(outcome, logs, files, sizes, snapshots, epochs)


def epochs_in(folder: Path) -> list[tuple[int, int]] | None:
    try:
        return [
            tuple(entry) for entry in parse_leader_epochs((folder / "leader-epoch-checkpoint").read_text())
        ]
    except (OSError, ValueError):
        return None


def forecast(start: DirectoryStart) -> Loaded:
    outcome = "loaded"
    if start.unknown:
        outcome = "unknown"
    elif start.failure:
        outcome = f"failed {start.failure.exception}"
    elif start.offline:
        outcome = "offline"
    logs, files, sizes, snapshots, epochs = {}, {}, {}, {}, {}
    for name, loaded in start.partitions.items():
        is_loaded = loaded.log_start is not None and loaded.log_end is not None
        if is_loaded and not name.endswith("-delete"):
            logs[name] = (loaded.log_start, loaded.log_end)
        files[name] = {n for n in loaded.files if ".snapshot" not in n and not n.startswith("leader-epoch")}
        sizes[name] = {n: size for n, size in loaded.files.items() if n.endswith(".log")}
        snapshots[name] = list(loaded.snapshots)
        epochs[name] = None if loaded.epochs is None else [tuple(entry) for entry in loaded.epochs]
    return Loaded(outcome, logs, files, sizes, snapshots, epochs)


def differences(case: Case, expected: Loaded, kafka: Loaded) -> list[str]:
    """What the forecast got wrong."""
    wrong = []
    for part in Loaded._fields:
        mine, theirs = getattr(expected, part), getattr(kafka, part)
        if part == "epochs" and kafka.outcome == "loaded":
            mine = {k: v or None for k, v in mine.items()}
            theirs = {k: v or None for k, v in theirs.items()}
        elif part == "epochs":
            continue
        if part != "outcome" and kafka.outcome != "loaded":
            continue
        if mine != theirs:
            wrong.append(f"{case.name}: {part}: forecast {mine}, Kafka {theirs}")
    return wrong


def not_as_kafka(base: Base, cases: list[Case]) -> list[str]:
    """Where the forecast of the cases differs from what Kafka made of them; one that is not decided differs."""
    rules = start_rules(base.version)
    forecasts = [forecast(start_directory(case.folder, rules)) for case in cases]
    wrong: list[str] = []
    kafka = started_by_kafka(base.jars, [case.folder for case in cases])
    for case, expected, (outcome, logs) in zip(cases, forecasts, kafka, strict=True):
        wrong += differences(case, expected, on_disk(case.folder, outcome, logs))
    return wrong


@pytest.mark.java
@pytest.mark.parametrize("base", BASES, ids=lambda base: f"{base.version}-{base.partition}")
def test_forecast_is_what_kafka_does(base: Base, tmp_path: Path) -> None:
    source = recorded(base.recording, base.place)
    wrong = not_as_kafka(base, list(make_cases(tmp_path, source, base.partition, base.points)))
    assert not wrong, "\n".join(wrong)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize(
    "base", [b for b in BASES if b.partition.startswith("rolled")], ids=lambda base: base.version
)
def test_forecast_of_random_damage(base: Base, tmp_path: Path) -> None:
    source = recorded(base.recording, base.place)
    wrong = not_as_kafka(base, list(random_cases(tmp_path, source, base.partition, 1, 60)))
    assert not wrong, "\n".join(wrong)
