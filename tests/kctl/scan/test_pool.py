"""The local pool: order, bounds, errors, workers that die, readers that leave."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kctl.scan import pool


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ALONE_FOR", -1.0)


def slower_first(number: int) -> int:
    time.sleep(0.02 if number % 5 == 0 else 0)
    return number * number


def pid(number: int) -> int:
    time.sleep(0.01)
    return os.getpid()


def dies(number: int) -> int:
    if number == 3:
        os._exit(9)
    return number


def fails(number: int) -> int:
    if number == 3:
        raise ValueError("three")
    return number


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_order(jobs: int) -> None:
    assert list(pool.ordered(slower_first, range(40), jobs=jobs)) == [n * n for n in range(40)]
    assert list(pool.ordered(slower_first, [], jobs=jobs)) == []
    assert list(pool.ordered(slower_first, [7], jobs=jobs)) == [49]


def test_the_work_is_done_by_others() -> None:
    seen = set(pool.ordered(pid, range(20), jobs=2))
    assert len(seen - {os.getpid()}) == 2


def test_short_work_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ALONE_FOR", 60.0)
    assert set(pool.ordered(pid, range(3), jobs=2)) == {os.getpid()}


def test_without_locks_the_work_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_shared_memory(*_args: object, **_named: object) -> None:
        raise PermissionError(13, "Permission denied")  # what `sem_open` says where /dev/shm is not writable

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", no_shared_memory)
    for at_once in (False, True):
        assert set(pool.ordered(pid, range(5), jobs=2, at_once=at_once)) == {os.getpid()}
        assert list(pool.ordered(slower_first, range(9), jobs=2, at_once=at_once)) == [
            n * n for n in range(9)
        ]


def test_items_are_taken_as_results_are_read() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield number

    results = pool.ordered(slower_first, items(), jobs=2)
    assert [next(results) for _ in range(5)] == [0, 1, 4, 9, 16]
    assert taken < 20
    results.close()  # type: ignore[attr-defined]


def test_an_error_comes_in_its_place() -> None:
    results = pool.ordered(fails, range(9), jobs=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)


def test_a_dead_worker_is_an_error_and_no_hang() -> None:
    with pytest.raises(pool.WorkerDied, match="--jobs 1"):
        list(pool.ordered(dies, range(50), jobs=2))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_do_not_outlive_a_parent_that_is_killed(method: str) -> None:
    program = (
        "import multiprocessing, os, signal, sys, time\n"
        "from kctl.scan import pool\n"
        f"pool.ALONE_FOR, pool._context = -1.0, lambda: multiprocessing.get_context({method!r})\n"
        "for _ in pool.ordered(time.sleep, [0.01] * 9, jobs=2):\n"
        "    if len(multiprocessing.active_children()) == 2:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # They hold this end of the pipe open as long as they live.
    ran = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, timeout=60, check=False)
    assert ran.returncode == -signal.SIGKILL
