"""Causes of failed connections are told from what the library says by the way."""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.wire.adapter import bootstrap, listening
from kctl.wire.causes import cause_among, cause_of

REFUSED = (
    "Bootstrap connection to bootstrap-0 failed: [Error 58] SaslAuthenticationFailedError (backoff 0.10 secs)"
)
CUT_OFF = "Abort ([Error 7] RequestTimedOutError: Request timed out after 293 ms)"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (OSError(111, "ECONNREFUSED"), "connection refused"),
        (OSError("Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED]"), "the certificate is not trusted"),
        (OSError("[SSL: WRONG_VERSION_NUMBER] wrong version number"), "it does not speak TLS there"),
        (TimeoutError("Timed out after 5 ms"), "no answer in time"),
        (ValueError("something else\nand more"), "ValueError: something else"),
    ],
)
def test_causes_are_a_clause(error: Exception, cause: str) -> None:
    assert cause_of(error) == cause


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["TimeoutError: no answer in time", REFUSED, CUT_OFF], "user or password is wrong"),
        (["TimeoutError: no answer in time", CUT_OFF], "no answer in time"),
        (
            ["KafkaTimeoutError: x", "ECONNRESET"],
            "it ends the connection (are user, password and mechanism right?)",
        ),
        (["ValueError: what nobody knows"], "ValueError: what nobody knows"),
        (["Error: first", "what the library says"], "what the library says"),
    ],
)
def test_a_time_out_is_the_cause_where_nothing_else_is_said(words: list[str], cause: str) -> None:
    assert cause_among(words, with_sasl=True) == cause


class Loop:
    """A loop that goes on as it is asked to; the manager on it is refused again and again."""

    def __init__(self) -> None:
        self.attempts = 0
        self.cluster = SimpleNamespace(_bootstrap_brokers={"bootstrap-0": None})

    def run(self, coroutine: Any, *args: Any) -> Any:
        steps = coroutine(*args).__await__()
        try:
            while True:
                next(steps)
        except StopIteration as ended:
            return ended.value

    def bootstrap_async(self, milliseconds: int) -> Any:
        return SimpleNamespace(is_done=False)

    async def sleep(self, seconds: float) -> None:
        self.attempts += 1
        logging.getLogger("kafka.net.manager").warning(REFUSED)


def test_who_is_refused_for_good_does_not_try_until_the_time_is_over() -> None:
    loop = Loop()
    with listening() as heard, pytest.raises(TimeoutError):
        bootstrap(loop, loop, 3600, lambda: heard.refusals)
    assert loop.attempts == 2 and heard.refusals == 2
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        bootstrap(loop, loop, 0.01, lambda: 0)
    assert time.monotonic() >= begun + 0.01
