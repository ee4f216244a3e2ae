"""Work over local processes: results in the order of the work, bounded in number, undisturbed by Ctrl-C.

A process takes a hundredth of a second to fork, or some tenths to spawn. So the work begins in this process; others are
started only if it takes longer than that.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kctl.errors import KctlError
from kctl.stores.mirror import mirrors
from kctl.stores.request_counts import CountedResult, result_of, run_counted

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.context import BaseContext

Item = TypeVar("Item")
Result = TypeVar("Result")

ALONE_FOR = 0.05  # seconds of work before other processes are forked
TO_SPAWN = 6  # times as long where they are spawned: each imports everything anew
MOST_JOBS = 1024
WAITING = 3  # results and items that may wait, for each process


class Engine(Protocol):
    """Something that runs work in place of this machine's processes, such as a Spark cluster."""

    cores: int
    """How many items it works on at once."""
    doing: str
    """What the work is for, in two words, shown by the engine."""
    retries: int | None
    """How many pieces of work failed and were begun again; None: it does not say."""

    def ordered(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """function(item) for each item, in order."""


Jobs = int | Engine | None
"""How many processes (None: one a core), or an engine in their place."""


class WorkerDied(KctlError):
    """A process of the pool ended without an answer."""

    hint = "it may have been out of memory; try `--jobs 1`"


def default_jobs() -> int:
    """How many processes this process may use at once."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def ordered(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    jobs: Jobs = None,
    at_once: bool = False,
) -> Iterator[Result]:
    """function(item) for each item, in order; function, items and results must be picklable.

    A function with much in it goes to each process once; forked ones have it already.
    At most a few items for each process are taken ahead of what the caller has read. With `jobs=1` all work is done in
    this process, and so is work that takes little time, unless `at_once` is set. An exception of the function is raised
    in the place of its result.
    """
    if jobs is not None and not isinstance(jobs, int):
        yield from jobs.ordered(function, items)
        return
    jobs = min(jobs or default_jobs(), MOST_JOBS)
    waiting = iter(items)
    if at_once and jobs > 1:
        yield from _by_workers(function, waiting, jobs)
        return
    began = time.monotonic()
    for item in waiting:
        yield function(item)
        alone_for = time.monotonic() - began
        if jobs > 1 and alone_for > ALONE_FOR and (alone_for > TO_SPAWN * ALONE_FOR or forks()):
            break
    else:
        return
    yield from _by_workers(function, waiting, jobs)


def _by_workers(function: Callable[[Item], Result], items: Iterator[Item], jobs: int) -> Iterator[Result]:
    pending: deque[Future[CountedResult]] = deque()
    first = next(items, None)
    if first is None:
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    try:
        executor = ProcessPoolExecutor(
            jobs, mp_context=_context(), initializer=_begin_worker, initargs=(function,)
        )
    except (OSError, NotImplementedError):  # no /dev/shm, as in some containers: nothing to lock processes by
        yield function(first)
        yield from map(function, items)
        return
    try:
        pending.append(executor.submit(_run, first))
        for item in items:
            pending.append(executor.submit(_run, item))
            if len(pending) >= WAITING * jobs:
                yield _taken(pending)
        while pending:
            yield _taken(pending)
        executor.shutdown()
    except BrokenProcessPool as error:
        raise WorkerDied("a worker process died") from error
    finally:
        # Left early (an error, Ctrl-C, a reader that went away): pending work is abandoned. The
        # executor's own thread is waited for: ending while Python exits, it closes what Python still writes to.
        for worker in list((getattr(executor, "_processes", None) or {}).values()):
            worker.terminate()
        executor.shutdown(cancel_futures=True)


def _taken(pending: deque[Future[CountedResult]]) -> Any:
    return result_of(pending.popleft().result())


def _context() -> BaseContext:
    """Forked processes where that is safe: they share what is imported already.

    The clients of stores have threads of their own, which do not outlive a fork.
    """
    import multiprocessing

    is_alone = threading.active_count() == 1 and not mirrors()
    safe = is_alone and "fork" in multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("fork" if safe else "spawn")


def forks() -> bool:
    """Whether processes started now would share this one's memory as it is."""
    return _context().get_start_method() == "fork"


_function: Callable[[Any], Any]
"""What this worker process does with each item."""


def _run(item: Any) -> CountedResult:
    return run_counted(_function, item)


def _begin_worker(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    # Ctrl-C reaches the whole process group: workers go quietly, their parent says what happened.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent ends; else it would wait for work forever after the parent was killed."""
    from multiprocessing import parent_process

    if parent := parent_process():
        parent.join()
        os._exit(1)
