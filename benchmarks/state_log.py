"""What merging brokers' logs costs, against Kafka's own merger and `sort -m`; one part of `benchmarks.run`.

The logs are recorded ones, repeated a day later each time, to the day of the recording, every epoch raised, as in a
cluster that lived on; for the wide set every repetition has other topics, 2,000 in all.

    python -m benchmarks.state_log --size 150M
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import os
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.kafka_jars import CACHE, jars
from benchmarks.measure import KCTL, MB, Cost, cost_of

RECORDINGS = Path(__file__).parent.parent / "tests" / "data" / "recordings" / "incidents"
MERGER = "kafka.tools.StateChangeLogMerger"
LAST_DAY = datetime.date(2026, 11, 21)
WIDE = 2000
EPOCH = re.compile(rb"(?i)(epoch(?:\":| |=|:))(\d+)")
MEMORY = 150 << 20


class Figure(NamedTuple):
    """What was measured, what it should be at least (or at most, where `is_most`), and what it was."""

    what: str
    goal: float | None
    measured: float
    text: str = ""
    is_most: bool = False

    @property
    def reached(self) -> bool | None:
        """Whether the goal was reached; None where there is none."""
        if self.goal is None:
            return None
        return self.measured <= self.goal if self.is_most else self.measured >= self.goal


def recorded(case: str, log: str = "state-change.log") -> dict[str, bytes]:
    """The state-change log of each broker of a recording, parts joined in order."""
    parts: dict[str, dict[str, bytes]] = {}
    with tarfile.open(RECORDINGS / f"{case}.tar.xz") as tar:
        for member in tar:
            name = Path(member.name)
            if name.name.startswith(log) and name.parent.name == "logs":
                file = tar.extractfile(member)
                assert file is not None
                data = file.read()
                data = gzip.decompress(data) if name.suffix == ".gz" else data
                parts.setdefault(name.parent.parent.name, {})[name.name] = data
    return {b: b"".join(p for _, p in sorted(files.items(), key=_order)) for b, files in parts.items()}


def _order(item: tuple[str, bytes]) -> bytes:
    return item[1][:25]


def make_logs(folder: Path, case: str, size: int, *, wide: bool = False) -> list[Path]:
    """Logs of about `size` bytes in all, one file a broker; made once."""
    target = folder / f"state-log-{case}-{size >> 20}M{'-wide' if wide else ''}"
    files = sorted(target.glob("*/state-change.log"))
    if files:
        return files
    logs = recorded(case)
    names = sorted(set(re.findall(rb"partition \[?([\w.-]+?)(?:-\d+|,\d+\])", b"".join(logs.values()))))
    rounds = max(size // sum(map(len, logs.values())), 1)
    for broker, data in logs.items():
        path = target / broker / "state-change.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            for number in range(rounds):
                day = LAST_DAY - datetime.timedelta(days=rounds - 1 - number)
                text = data.replace(LAST_DAY.isoformat().encode(), day.isoformat().encode())
                text = _raised(text, 100 * number)
                if wide:
                    text = _renamed(text, names, number)
                out.write(text)
    return sorted(target.glob("*/state-change.log"))


def _raised(text: bytes, by: int) -> bytes:
    """The same lines in later epochs."""
    return EPOCH.sub(lambda found: b"%s%d" % (found[1], int(found[2]) + by), text)


def _renamed(text: bytes, names: Sequence[bytes], number: int) -> bytes:
    """The same lines about other topics, names of other lengths."""
    for place, name in enumerate(names):
        other = (number * len(names) + place) % WIDE
        new = b"stream.%d-of_the_%d" % (other, 10 ** (other % 5))
        text = re.sub(rb"(?<![\w.-])" + re.escape(name) + rb"(?=-\d|,|')", new, text)
    return text


def rate(cost: Cost, size: int) -> float:
    """MB of input a CPU second."""
    return size / cost.cpu / MB


def best(command: Sequence[object], repeats: int = 2) -> Cost:
    """The cheapest of some runs."""
    return min((cost_of(command) for _ in range(repeats)), key=lambda cost: cost.cpu)


def kafka_command(folder: Path, files: Sequence[Path]) -> list[object]:
    """Kafka's merger over files."""
    flags = ["-Xmx512m", "-XX:+UseSerialGC", "-Dlog4j.configuration=none"]
    return ["java", *flags, "-cp", f"{folder}/*", MERGER, "--logs", ",".join(map(str, files))]


def sort_command(files: Sequence[Path]) -> list[object]:
    """`sort -m` by the time at the start of each line."""
    return ["env", "LC_ALL=C", "sort", "-m", "-k1.1,1.25", *files]


def parsing(*arguments: object) -> list[object]:
    """A command that parses every record into an event and reads all of its fields' places."""
    python = Path(KCTL[0]).with_name("python")
    return [python, "-m", "benchmarks.state_log", "--parse", *arguments]


def parse(files: Sequence[str]) -> int:
    """Every record as an event with its template; how many there were."""
    from kctl.broker_logs.merging import read_events

    return sum(1 for event in read_events(files) if event.event is not None)


def run(
    folder: Path = CACHE / "corpus", size: int = 150 << 20, kafka: Path | None = None
) -> Iterator[Figure]:
    """The figures."""
    merge = [*KCTL, "state-log", "merge"]
    for case in ("life-0.8.2", "life-3.9"):
        files = make_logs(folder, case, size)
        total = sum(path.stat().st_size for path in files)
        lines = best([*merge, "--format", "lines", *files])
        peak = cost_of([*merge, "--format", "lines", *files], watch=True).peak
        marked = best([*merge, *files])
        ours = rate(lines, total)
        text = f"{ours:.0f} MB/s, {total / MB:.0f} MB"
        sort = rate(best(sort_command(files)), total)
        yield Figure(f"{case}: merge against sort -m", 0.3, ours / sort, f"{text} against {sort:.0f}")
        yield Figure(f"{case}: merge with marks against sort -m", None, rate(marked, total) / sort)
        yield Figure(f"{case}: peak memory, MB", MEMORY / MB, peak / MB, is_most=True)
        events = best(parsing(*files))
        printed = best([*merge, "--output", "jsonl", *files], 1)
        timeline = best([*KCTL, "state-log", "timeline", *files], 1)
        yield Figure(
            f"{case}: timeline against merge with parsing", 1.5, timeline.cpu / printed.cpu, is_most=True
        )
        yield Figure(
            f"{case}: timeline against parsing alone",
            None,
            timeline.cpu / events.cpu,
            is_most=True,
        )
        if kafka:
            theirs = rate(best(kafka_command(kafka, files)), total)
            goal = 5.0 if case == "life-0.8.2" else None
            yield Figure(
                f"{case}: merge against Kafka's merger", goal, ours / theirs, f"Kafka {theirs:.0f} MB/s"
            )
            parsed = rate(events, total)
            yield Figure(f"{case}: events against Kafka's merger", 2.0, parsed / theirs, f"{parsed:.0f} MB/s")
    files = make_logs(folder, "life-3.9", size, wide=True)
    total = sum(path.stat().st_size for path in files)
    parsed = rate(best(parsing(*files)), total)
    if kafka:
        theirs = rate(best(kafka_command(kafka, files)), total)
        yield Figure(
            "2,000 topics: events against Kafka's merger",
            1.5,
            parsed / theirs,
            f"{parsed:.0f} MB/s, Kafka {theirs:.0f}",
        )
    else:
        yield Figure("2,000 topics: events, MB/s", None, parsed)


def main() -> None:
    """Print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--size", default="150M", help="of each set of logs, as 150M or 1G")
    arguments.add_argument("--parse", nargs="+", help="only parse these files, to be measured")
    given = arguments.parse_args()
    if given.parse:
        print(parse(given.parse))
        return
    size = int(given.size[:-1]) << (30 if given.size.endswith("G") else 20)
    for one in run(size=size, kafka=jars()):
        state = {True: "ok", False: "SHORT", None: ""}[one.reached]
        goal = "" if one.goal is None else f"{'≤' if one.is_most else '≥'} {one.goal:g}"
        print(f"{one.what}: {one.measured:.2f}  {goal}  {one.text}  {state}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
