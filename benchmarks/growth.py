"""What more evidence costs, and what a second process brings: parts of `benchmarks.run`."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import starmap
from pathlib import Path
from typing import NamedTuple

from benchmarks.compare import brokers_with, make_partition
from benchmarks.corpus import shape_of
from benchmarks.measure import KCTL, Cost, cost_of
from benchmarks.parts import Line, Setting, at_least, at_most
from benchmarks.small import LARGE_LOG, SMALL_LOG, brokers_folder
from benchmarks.state_log import make_logs

RUNS = {1: 6, 4: 2, 16: 1}
"""Times the evidence, and how often it is measured; the shorter, the more often."""
FOLDERS = 250
LOG = 512 << 20
STATE_LOGS = 64 << 20
SHAPE = "none-100x1000"


class Work(NamedTuple):
    """A command over evidence: of one broker, of two, or their state-change logs."""

    name: str
    words: tuple[object, ...]
    copies: int = 1


def works(out: Path) -> tuple[Work, ...]:
    """What reads logs."""
    audit = ("audit", "run", "--digests", "none", "--overwrite", "--out", out)
    return (
        Work("segment verify", ("segment", "verify")),
        Work("audit run without digests", audit),
        Work("replica compare", ("replica", "compare"), 3),
        Work("replica loss", ("replica", "loss"), 3),
    )


def part_processes(setting: Setting) -> Iterator[Line]:
    """Two processes against one by the clock, start-up included.

    Beside it what the CPU seconds of each process allow, whatever else the machine does: those of one process against those of
    the leading one of two, or against half of all where that is more.
    """
    work = setting.folder / "processes"
    shutil.rmtree(work, ignore_errors=True)
    folders = brokers_folder(setting.folder / "folders-300", 300, LARGE_LOG)
    log = setting.log(shape_of(SHAPE), setting.large)
    one = {f"topic.{number}-0": folders / f"topic.{number}-0" for number in range(100)}
    evidence = {
        "300 folders of 3.4 MB": (folders, brokers_with(work / "folders", one)),
        f"one log of {setting.large >> 20} MiB": (
            log.parent,
            brokers_with(work / "large", {"orders-0": log.parent}),
        ),
    }
    alone, both = (_apart(number, folders) for number in (1, 2))
    yield Line("the machine: two processes with nothing in common", f"{2 * alone / both:.2f}")
    for what, (single, three) in evidence.items():
        for name, words, copies in works(work / "out"):
            given = three if copies > 1 else single
            one, two = (_costs([*words, "--jobs", jobs, given]) for jobs in (1, 2))
            walls = [min(cost.wall for cost in costs) for costs in (one, two)]
            yield at_least(
                f"{what}: {name}", walls[0] / walls[1], 1.8, f"{walls[0]:.2f} s and {walls[1]:.2f} s"
            )
            cpu, both = (min(costs, key=lambda cost: cost.cpu) for costs in (one, two))
            leader = both.cpu - both.workers
            text = f"{cpu.cpu:.2f} s; leader {leader:.2f} s, both workers {both.workers:.2f} s"
            yield at_least(f"{what}: {name}, by CPU", cpu.cpu / max(leader, both.cpu / 2), None, text)
    shutil.rmtree(work)


def _apart(number: int, folder: Path) -> float:
    """Wall seconds of so many commands at once, each by one process."""
    command = [*KCTL, "segment", "verify", "--jobs", "1", str(folder)]
    took = []
    for _ in range(3):
        began = time.monotonic()
        started = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(number)]
        for one in started:
            one.wait()
        took.append(time.monotonic() - began)
    return min(took)


def _costs(words: list[object], runs: int = 3) -> list[Cost]:
    return [cost_of([*KCTL, *words]) for _ in range(runs)]


def part_growth(setting: Setting) -> Iterator[Line]:
    """CPU seconds a byte, folder or line at 16 times the evidence against once, start-up taken off; and peak memory."""
    work = setting.folder / "growth"
    shutil.rmtree(work, ignore_errors=True)
    reading = [one for one in works(work / "out") if one.name != "replica compare"]
    jobs: tuple[object, ...] = ("--jobs", 1)

    def one_log(times: int) -> Path:
        make_partition(work / "made", shape_of(SHAPE), times * LOG)
        return brokers_with(work / "log", {"orders-0": work / "made"})

    def folders(times: int) -> Path:
        made = brokers_folder(work / "made", times * FOLDERS, SMALL_LOG)
        return brokers_with(work / "log", {path.name: path for path in made.glob("topic.*")})

    def logs(times: int) -> Path:
        return make_logs(work, "life-3.9", times * STATE_LOGS)[0].parents[1]

    merge = [Work("state-log merge", ("state-log", "merge"))]
    for kind, make, chosen, options in (
        (f"a partition of {LOG >> 20} MiB to 8 GiB", one_log, reading, jobs),
        (f"{FOLDERS} to {max(RUNS) * FOLDERS:,} folders of 50 kB", folders, reading, jobs),
        ("64 MiB to 1 GiB of logs", logs, merge, ()),
    ):
        yield from _growth(kind, work, make, chosen, options)


def _growth(
    kind: str, work: Path, make: Callable[[int], Path], chosen: list[Work], options: tuple[object, ...]
) -> Iterator[Line]:
    """Each command over evidence that is made, measured and taken away, one size after the other."""
    tiny = brokers_folder(work / "tiny", 1, 1000)
    (tiny / "state-change.log").write_text("")
    costs: dict[str, list[tuple[float, int]]] = {one.name: [] for one in chosen}
    for times in RUNS:
        given = make(times)
        for one in chosen:
            paths = sorted(given.glob("*/*.log")) if one.words[0] == "state-log" else [_of(given, one)]
            start = _tiny(tiny, one, options)
            command = [*KCTL, *one.words, *options, *paths]
            runs = [cost_of(command, watch=True) for _ in range(RUNS[times])]
            costs[one.name].append((min(run.cpu for run in runs) - start, max(run.peak for run in runs)))
        for path in work.iterdir():
            if path.name != "tiny":
                shutil.rmtree(path)
    for name, measured in costs.items():
        (once, least), *_, (all_of, most) = measured
        text = ", ".join(f"{cpu:.2f} s" for cpu, _ in measured)
        yield at_most(f"{kind}: {name}, time at 16 times by 16", all_of / max(RUNS) / once, 1.1, "", text)
        text = ", ".join(starmap(lambda _, peak: f"{peak >> 20} MiB", measured))
        yield at_most(f"{kind}: {name}, memory at 16 times against once", most / least, 1.1, "", text)
    shutil.rmtree(work)


def _of(evidence: Path, one: Work) -> Path:
    return evidence if one.copies > 1 else evidence / "broker-1"


def _tiny(tiny: Path, one: Work, options: tuple[object, ...]) -> float:
    given = tiny / "state-change.log" if one.words[0] == "state-log" else tiny
    return min(cost_of([*KCTL, *one.words, *options, given]).cpu for _ in range(3))
