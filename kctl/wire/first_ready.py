"""Which of several brokers takes a connection first: the next one is tried as soon as one says nothing for a moment.

A host that accepts connections and never answers would otherwise use up the time that there is for all of them.
"""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

HEAD_START = 0.5  # seconds that a broker has before the next one is tried as well
LOOK = 0.005  # seconds between two looks
ENOUGH_REFUSALS = 2


async def first_ready(
    net: Any, manager: Any, nodes: Sequence[Any], seconds: float, lasting: float = 0.0, **how: Any
) -> tuple[Any, Exception | None]:
    """The first of the nodes whose connection can be used; None and why not where none is ready in time.

    A connection that is not ready by then goes on coming up where `lasting` is longer: others may want it.
    """
    end, next_at = time.monotonic() + seconds, 0.0
    left, tried = list(nodes), list[Any]()
    failure: Exception | None = None
    while True:
        now = time.monotonic()
        for connection in tried:
            if connection.init_future.succeeded():
                return connection.node_id, None
            if connection.init_future.is_done:
                failure = connection.init_future.exception
        tried = [one for one in tried if not one.init_future.is_done]
        if now >= end or not (left or tried):
            return None, failure or TimeoutError("no answer in time")
        if left and (not tried or now >= next_at):
            next_at = now + HEAD_START
            try:
                milliseconds = max(end - now, lasting) * 1000
                tried.append(manager.get_connection(left.pop(0), timeout_ms=milliseconds, **how))
            except Exception as error:
                failure = error
            continue
        await net.sleep(LOOK)


def bootstrap(net: Any, manager: Any, seconds: float, refusals: Callable[[], int]) -> None:
    """Learn from one of the servers named which brokers there are. Raises the library's errors.

    `refusals` says how often brokers have refused for good so far: nobody waits for more than some of them.
    """
    end = time.monotonic() + seconds
    servers = manager.cluster._bootstrap_brokers
    if len(servers) > 1:
        first = manager.run(_first_server, net, manager, list(servers), seconds)
        if first is not None:
            manager.cluster._bootstrap_brokers = {first: servers[first]}
    try:
        manager.run(_bootstrapped, net, manager, end, refusals)
    finally:
        manager.cluster._bootstrap_brokers = servers


async def _bootstrapped(net: Any, manager: Any, end: float, refusals: Callable[[], int]) -> None:
    """The library's own time-out does not hold while a host says nothing to a TLS handshake."""
    before = refusals()
    future = manager.bootstrap_async(max(1, int((end - time.monotonic()) * 1000)))
    while not future.is_done:
        if time.monotonic() >= end or refusals() - before >= ENOUGH_REFUSALS:
            raise TimeoutError("no answer in time")
        await net.sleep(LOOK)
    await future


async def _first_server(net: Any, manager: Any, names: list[str], seconds: float) -> str | None:
    """The server whose connection the library finds ready; the others are closed."""
    order = random.sample(names, len(names))
    how = {"pop_on_close": False, "refresh_metadata_on_err": False, "reset_backoff_on_connect": False}
    first: str | None
    first, _ = await first_ready(net, manager, order, seconds, **how)
    for name in names:
        if name != first and (connection := manager._conns.pop(name, None)) is not None:
            connection.close()
    return first
