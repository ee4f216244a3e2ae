"""Folders of a process: gone after a process that was killed, kept while one is alive, and never those of others."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kctl.temporary_folder import KINDS, new_folder, temporary_folder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def other_process(code: str = "") -> tuple[subprocess.Popen[str], Path]:
    """A process that has a folder with a file in it, and waits."""
    made = "import time; from kctl.temporary_folder import new_folder; folder, lock = new_folder('store')"
    lines = f"{made}; (folder / 'a').mkdir(); (folder / 'a/b').touch(0o400); print(folder, flush=True); {code or 0}; time.sleep(99)"
    process = subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_goes_after_its_process_was_killed_and_not_before() -> None:
    process, left = other_process()
    try:
        own, lock = new_folder("store")
        assert left.joinpath("a/b").exists(), "its process is alive"
        process.send_signal(signal.SIGKILL)
        process.wait()
        next_one, next_lock = new_folder("store")
        assert not left.exists() and own.exists() and next_one.exists()
        os.close(lock)
        os.close(next_lock)
    finally:
        process.kill()
        process.wait()


def test_a_child_that_goes_on_keeps_it() -> None:
    fork = "import os, sys; child = os.fork(); child and (print(child, flush=True), os._exit(0))"
    process, left = other_process(fork)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.wait()
    try:
        _, lock = new_folder("store")
        os.close(lock)
        assert left.exists(), "a worker that was forked still reads it"
    finally:
        os.kill(child, signal.SIGKILL)


def test_what_is_not_such_a_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"
    target.mkdir(0o700)
    (target / "precious").touch()
    (tmp_path / "kctl-store-link").symlink_to(target)
    (tmp_path / "kctl-store-file").touch()
    (tmp_path / "kctl-store-open").mkdir(0o755)
    (tmp_path / "other-folder").mkdir(0o700)
    (tmp_path / "kctl-cluster-3").mkdir(0o700)
    before = sorted(tmp_path.rglob("*"))
    folder, lock = new_folder("store")
    os.close(lock)
    assert sorted(tmp_path.rglob("*")) == sorted([*before, folder])
    left = tmp_path / "kctl-store-left"
    left.mkdir(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    new_folder("store")
    assert left.exists(), "it is another user's"


def test_a_folder_that_another_process_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, removed = fcntl.flock, []

    def remove_and_lock(descriptor: int, how: int) -> None:
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].rmdir()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", remove_and_lock)
    folder, _ = new_folder("store")
    assert len(removed) == 1 and folder != removed[0] and folder.exists()


@pytest.mark.parametrize("kind", [*KINDS, "test-cluster"])
def test_a_folder_of_each_kind_goes_with_its_context(tmp_path: Path, kind: str) -> None:
    left = tmp_path / f"kctl-{kind}-left"
    left.mkdir(0o700)
    with temporary_folder(kind) as folder:
        (folder / "a").touch()
        assert not left.exists() and folder.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_another_process_removed_before_it_was_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tempfile.mkdtemp
    names = iter([str(tmp_path / "removed")])
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: next(names, None) or made(prefix=prefix))
    with temporary_folder("store") as folder:
        assert folder.is_dir() and folder.name.startswith("kctl-store-")
