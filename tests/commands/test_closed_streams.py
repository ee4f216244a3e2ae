"""Standard streams that are closed, full, or read by nobody."""

import os
import subprocess
import sys

import pytest

from tests.conftest import errors_in

KCTL_RUN = f"{sys.executable} -c 'from commands.main import run; run()'"


@pytest.mark.parametrize(
    ("redirected", "status", "says"),
    [
        ("finding >&-", 3, "standard output is closed"),
        ("finding 2>&- >/dev/null", 0, ""),
        ("finding no-such 2>&-", 2, ""),
        ("finding <&- >/dev/null", 0, ""),
        ("finding >/dev/full", 3, "no space left"),
        ("--help >/dev/full", 3, "no space left"),
    ],
)
def test_closed_and_full_streams_are_no_bugs(redirected: str, status: int, says: str) -> None:
    ran = subprocess.run(
        ["bash", "-c", f"{KCTL_RUN} {redirected}"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == status, ran.stderr
    assert says in ran.stderr
    assert len(errors_in(ran.stderr)) == bool(says)


def test_help_that_nobody_reads_is_141() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [sys.executable, "-c", "from commands.main import run; run()", "--help"], stdout=writer, check=False
    )
    os.close(writer)
    assert ran.returncode == 141
