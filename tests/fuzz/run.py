"""`make fuzz`: mutate files of every format until the time is over, and keep what breaks an invariant.

    FUZZ_MINUTES=60 make fuzz
    python -m tests.fuzz.run --minutes 2 --format segment

Each find is reduced, written to `tests/data/fuzz/FORMAT/` and replayed by the tests from then on.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from random import Random

from tests.fuzz.invariants import ORIGINALS, hold
from tests.fuzz.mutations import MUTATORS

SEEDS = Path(__file__).parent.parent / "data" / "fuzz"
LONGEST = 60  # seconds of one case, on a busy machine
MOST_MEMORY = 300 << 10  # KiB that one case may take


class TooLong(BaseException):
    """A case took longer than any should; no command catches it."""


class TooMuch(Exception):
    """A case took more memory than any should."""


def peak() -> int:
    """The most memory that this process has held since the peak was forgotten, in KiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


@contextmanager
def limits() -> Iterator[None]:
    """Time and memory of one case: of the CPU, since other work may keep a case from running, or of the clock, by far."""

    def over(*_: object) -> None:
        raise TooLong(f"more than {LONGEST} s")

    before = signal.signal(signal.SIGPROF, over), signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    signal.alarm(20 * LONGEST)
    Path("/proc/self/clear_refs").write_text("5")
    start = peak()
    try:
        yield
        if peak() - start > MOST_MEMORY:
            raise TooMuch(f"{(peak() - start) >> 10} MiB")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])


def failure_of(name: str, data: bytes, folder: Path) -> tuple[str, str] | None:
    """Where the invariants of a format break for a file, as a key that two finds of one cause share, and the story."""
    try:
        with limits():
            hold(name, data, folder)
    except (Exception, TooLong) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/site-packages/" not in f.filename]
        own = [f for f in frames if "/tests/" not in f.filename] or frames
        where = f"{own[-1].filename.rsplit('/', 2)[-1]}:{own[-1].name}:{own[-1].lineno}"
        return f"{name} {type(error).__name__} {where}", "".join(traceback.format_exception(error)[-12:])
    return None


def reduced(name: str, data: bytes, key: str, folder: Path, until: float) -> bytes:
    """A smaller file that breaks at the same place."""
    size = len(data) // 2
    while size and time.monotonic() < until:
        at = 0
        while at < len(data) and time.monotonic() < until:
            smaller = data[:at] + data[at + size :]
            failure = failure_of(name, smaller, folder)
            if failure and failure[0] == key:
                data = smaller
            else:
                at += size
        size //= 2
    return data


def fuzz(minutes: float, formats: list[str], seed: int) -> int:
    """Mutate until the time is over; gives the number of causes that were found."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    end = time.monotonic() + 60 * minutes
    cases: Counter[str] = Counter()
    found: dict[str, Path] = {}
    originals = {name: ORIGINALS[name]() for name in formats}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for (
            name
        ) in formats:  # files as Kafka wrote them; a case's memory is then its own, not that of imports
            hold(name, originals[name][0], folder)
        while time.monotonic() < end:
            for name in formats:
                cases[name] += 1
                rng = Random(f"{seed} {name} {cases[name]}")
                data = MUTATORS[name](rng, rng.choice(originals[name]))
                failure = failure_of(name, data, folder)
                if failure is None or failure[0] in found:
                    continue
                key, story = failure
                small = reduced(name, data, key, folder, time.monotonic() + 20)
                path = SEEDS / name / sha256(small).hexdigest()[:12]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(small)
                found[key] = path
                print(f"--- {key}: {os.path.relpath(path)}, {len(small)} bytes\n{story}", flush=True)
    print(", ".join(f"{name} {count:,}" for name, count in cases.items()))
    print(f"{cases.total():,} cases in {minutes:g} minutes, {len(found)} causes", *found, sep="\n  ")
    return len(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("FUZZ_MINUTES", "10")))
    parser.add_argument("--format", action="append", choices=MUTATORS, help="only this format; repeatable")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the random source")
    given = parser.parse_args()
    print(f"seed {given.seed}")
    sys.exit(5 if fuzz(given.minutes, given.format or [*MUTATORS], given.seed) else 0)


if __name__ == "__main__":
    main()
