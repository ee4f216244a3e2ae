"""Servers that take a connection and say nothing, or do not take one: a command ends soon, and so does its process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kctl.stores import file_systems
from tests.conftest import kctl

KCTL = [sys.executable, "-c", "import sys; sys.argv[0] = 'kctl'; from commands.main import run; run()"]


@pytest.fixture(params=["accepts and is silent", "takes no connection"])
def end_point(request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as opened:
        server = opened.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0 if "no connection" in request.param else 50)
        if "no connection" in request.param:  # the kernel drops what comes once the queue is full
            for _ in range(4):
                client = opened.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["s3", "gs", "abfs"])
@pytest.mark.parametrize("command", ["remote audit", "segment verify"])
def test_a_command_ends_with_its_time(command: str, scheme: str, end_point: str) -> None:
    url = {
        "s3": f"s3://bucket/path?endpoint_override={end_point}&scheme=http&anonymous=true",
        "gs": f"gs://bucket/path?endpoint_override={end_point}&scheme=http&anonymous=true",
        "abfs": f"abfs://box@account.dfs.core.windows.net/path?account_key=a2V5&blob_storage_authority={end_point}"
        f"&dfs_storage_authority={end_point}&blob_storage_scheme=http&dfs_storage_scheme=http",
    }[scheme]
    begin = time.monotonic()
    ran = subprocess.run(
        [*KCTL, *command.split(), url, "--timeout", "1s"], capture_output=True, text=True, timeout=60,
        env={**os.environ, "no_proxy": "*"}, check=False,
    )  # fmt: skip
    took = time.monotonic() - begin
    assert ran.returncode == 3, ran.stderr
    assert "the store did not answer the first request within 1 s" in ran.stderr
    assert f"{scheme}://" in ran.stderr and "--timeout 60s" in ran.stderr and "a2V5" not in ran.stderr
    assert took < 12, f"{took:.1f} s"


def test_no_time_is_no_limit() -> None:
    ran = kctl("remote", "audit", "gs://bucket/path", "--timeout", "0")
    assert ran.status == 2 and "--timeout" in ran.err


@pytest.mark.parametrize("variable", ["KCTL_STORE_TIMEOUT", "KCTL_SEGMENT_VERIFY_TIMEOUT"])
def test_the_environment_sets_it(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_systems, "file_system", lambda url: threading.Event().wait())
    monkeypatch.setenv("KCTL_STORE_TIMEOUT", "9")
    monkeypatch.setenv(variable, "0.1")
    assert "first request within 0.1 s" in kctl("segment", "verify", "s3://bucket/path").err
