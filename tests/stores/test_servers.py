"""Servers of stores that tests start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

STARTS = """
import sys
from tests.stores.servers import running
with running(["sleep", "600"]) as server:
    print(server.pid, flush=True)
    sys.stdin.read()
"""


def test_a_server_ends_with_tests_that_are_killed() -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", STARTS], text=True, **pipes) as tests:
        assert tests.stdout is not None
        server = int(tests.stdout.readline())
        tests.kill()
        try:
            tests.communicate(timeout=60)  # both write there: it ends with the last of them
        finally:
            with suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)
