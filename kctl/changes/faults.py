"""Points at which a change may be cut off, for tests: each has a name, and the environment says what happens.

`KCTL_FAULT=after-write:0` ends the process there with SIGKILL; `KCTL_FAULT=stop@after-write:0` stops it with
SIGSTOP, so that something else can be done before it goes on; several stand beside each other by comma.
`KCTL_FAULT_TRACE=FILE` lists the points passed.
"""

import os
import signal
from pathlib import Path


def reach(point: str) -> None:
    """A point of a change is reached."""
    if trace := os.environ.get("KCTL_FAULT_TRACE"):
        with Path(trace).open("a", encoding="utf-8") as file:
            file.write(point + "\n")
    points = os.environ.get("KCTL_FAULT", "").split(",")
    if point in points:
        os.kill(os.getpid(), signal.SIGKILL)
    elif f"stop@{point}" in points:
        os.kill(os.getpid(), signal.SIGSTOP)
