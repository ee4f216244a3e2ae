"""What a command costs: CPU seconds of it and its children, wall seconds, peak memory."""

import contextlib
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

KCTL = [str(Path(sys.executable).parent / "kctl")]
MB = 1e6


class Cost(NamedTuple):
    """Of one run."""

    cpu: float
    wall: float
    peak: int  # bytes, of the process itself; 0 where it was not watched
    status: int
    kernel: float = 0.0  # those of `cpu` that the kernel took
    faults: int = 0  # of pages
    workers: float = 0.0  # those of `cpu` that its own processes took


def cost_of(command: Sequence[object], *, watch: bool = False) -> Cost:
    """Run a command, its output thrown away; `watch` looks at its memory many times a second."""
    began = time.monotonic()
    environment = {**os.environ, "KCTL_CONFIG": os.devnull + "/none"}
    environment.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # an installed kctl does not compile its modules at each start
    process = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env=environment,
    )
    peak = _watched(process.pid) if watch else 0
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    workers = _cpu_of_children(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(cpu, wall, peak, process.returncode, usage.ru_stime, usage.ru_minflt, workers)


def _cpu_of_children(process: int) -> float:
    """CPU seconds of the processes that an ended process has waited for; 0 where the system does not say."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _watched(process: int) -> int:
    """The most memory of a process until it ends.

    What wait4 says would not do: it counts this process, which the new one was for a moment.
    """
    peak = 0
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        with contextlib.suppress(OSError, StopIteration, ValueError):
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            peak = max(peak, int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) << 10)
        time.sleep(0.02)
    return peak


def least_cpu(command: Sequence[object], repeats: int = 2) -> float:
    """The least CPU seconds of some runs; a run that fails costs little, so that none may."""
    costs = [cost_of(command) for _ in range(repeats)]
    if any(cost.status for cost in costs):
        raise RuntimeError(f"{command} ended with {[cost.status for cost in costs]}")
    return min(cost.cpu for cost in costs)


class Tool:
    """A command over a file; its start-up, measured on a file of one batch, is taken off."""

    def __init__(self, command: Callable[[Path], Sequence[object]], tiny: Path) -> None:
        self.command = command
        self.tiny = tiny

    @property
    def startup(self) -> float:
        """CPU seconds of the file of one batch."""
        return least_cpu(self.command(self.tiny), 5)

    def cpu(self, log: Path, repeats: int = 2) -> float:
        """CPU seconds for the file itself; the start-up is measured between the runs, for machines change their pace.

        Where the file costs less than a tenth of the start-up, the difference is noise: then RuntimeError.
        """
        runs = [
            (least_cpu(self.command(log), 1), least_cpu(self.command(self.tiny), 1))
            for _ in range(max(3, repeats))
        ]
        whole, startup = (min(costs) for costs in zip(*runs, strict=True))
        if whole - startup < startup / 10:
            raise RuntimeError(
                f"{log}: {whole:.2f} s of CPU, {startup:.2f} s of them start-up: too small a file; give a larger --size"
            )
        return whole - startup


def best_cpu(work: Callable[[], object], repeats: int = 3) -> float:
    """The least CPU seconds of calling a function in this process."""
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def memcpy_rate() -> float:
    """Bytes a CPU second that one core copies from one place in memory to another."""
    source = np.zeros(64 << 20, np.uint8)
    target = np.ones_like(source)
    return len(source) / best_cpu(lambda: np.copyto(target, source), 7)


def machine() -> str:
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
        memory = int(Path("/proc/meminfo").read_text().split()[1]) >> 20
    except (OSError, StopIteration):
        memory = 0
    return (
        f"{os.cpu_count()} cores ({model}), {memory} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}"
    )
