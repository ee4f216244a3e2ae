"""What shells propose for names: of the evidence, of the cluster, of the journal; and how long one waits for them."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from commands.cli import completing
from kctl.settings import Context

KCTL = "import sys; sys.argv[0]='kctl'; from commands.main import run; run()"


def proposed(line: str, program: str = KCTL, **environment: str) -> list[str]:
    """What bash is told for a line whose last word is begun."""
    words = {"_KCTL_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    ran = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **words, **environment}, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert ran.stderr == ""
    return [text.removeprefix("plain,") for text in ran.stdout.splitlines() if text]


def proposed_by_a_cluster(line: str, **environment: str) -> list[str]:
    """The same, however long a cluster takes on a busy machine."""
    return proposed(line, f"import commands.cli.completing as c; c.LONGEST = 60; {KCTL}", **environment)


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> click.Context:
    """A line that names brokers, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("KCTL_CONFIG", str(tmp_path / "none"))
    found = click.Context(click.Command("describe"))
    found.params = {"bootstrap_server": "kafka1:9092", "topic": ()}
    return found


PARAM = click.Argument(["topic"])


@pytest.mark.slow
def test_topics_of_the_paths_before(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "audit-0", "no partition", "audit-2.deleted"):
        (tmp_path / "broker-1" / name).mkdir(parents=True)
        (tmp_path / "broker-1" / name / f"{0:020}.log").touch()
    assert proposed(f"kctl replica loss {tmp_path} --topic ") == ["audit", "orders"]
    assert proposed(f"kctl replica loss {tmp_path} --topic o") == ["orders"]
    assert proposed(f"kctl replica explain {tmp_path} --topic or") == ["orders"]


def test_resources_by_kind(context: click.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"topics": ["orders", "-x"], "groups": ["billing"], "principals": ["User:alice"]}
    monkeypatch.setattr(completing, "_of_cluster", lambda _, kind, __: named[kind])
    context.params = {}
    for begun, proposed in (
        ("t", ["topic:", "transactional_id:"]),
        ("cl", ["cluster"]),
        ("topic:o", ["topic:orders"]),
        ("topic:-", ["topic:-x"]),
        ("group:", ["group:billing"]),
        ("user:", ["user:User:alice"]),
        ("delegation_token:", []),
    ):
        assert completing.resources(context, PARAM, begun) == proposed


@pytest.mark.slow
def test_changes_of_the_journal(tmp_path: Path) -> None:
    for name in ("20261121-101112-aa", "20261122-101112-bb"):
        (tmp_path / f"{name}.json").write_text("{}")
    assert proposed("kctl journal show 2", KCTL_JOURNAL=str(tmp_path)) == [
        "20261122-101112-bb",
        "20261121-101112-aa",
    ]


@pytest.mark.slow
def test_who_waits_for_no_answer_waits_not_for_long(tmp_path: Path) -> None:
    """A server that takes connections and says nothing; the second time nobody waits."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = f"127.0.0.1:{server.getsockname()[1]}"
        cache = {"XDG_CACHE_HOME": str(tmp_path)}
        for option in ("--bootstrap-server", "--zookeeper"):
            assert proposed(f"kctl topic describe {option} {at} o", **cache) == []
        assert len(list(tmp_path.rglob("topics-*.json"))) == 2
        server.setblocking(False)
        for _ in range(20):  # those of before
            try:
                server.accept()
            except BlockingIOError:
                break
        assert proposed(f"kctl topic describe --bootstrap-server {at} o", **cache) == []
        with pytest.raises(BlockingIOError):
            server.accept()


def test_names_are_kept_for_a_minute(
    context: click.Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str | None] = []

    def topics(of: Context) -> list[str]:
        asked.append(of.bootstrap_server)
        return [f"orders-{len(asked)}", "audit"]

    monkeypatch.setattr(completing, "_topics", topics)
    assert completing.topics(context, PARAM, "or") == ["orders-1"]
    assert completing.topics(context, PARAM, "") == ["orders-1", "audit"]
    assert asked == ["kafka1:9092"]
    (kept,) = tmp_path.rglob("*.json")
    assert kept.stat().st_mode & 0o077 == 0, "nobody else reads it"
    long_ago = time.time() - 61
    os.utime(kept, (long_ago, long_ago))
    assert completing.topics(context, PARAM, "") == ["orders-2", "audit"]
    context.params["bootstrap_server"] = "other:9092"
    assert completing.topics(context, PARAM, "") == ["orders-3", "audit"]


def test_the_last_names_serve_where_none_come(
    context: click.Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(completing, "_topics", lambda _: ["orders"])
    assert completing.topics(context, PARAM, "") == ["orders"]
    (kept,) = tmp_path.rglob("*.json")
    os.utime(kept, (0, 0))

    def fails(_: Context) -> list[str]:
        raise RuntimeError("of a library")

    monkeypatch.setattr(completing, "_topics", fails)
    assert completing.topics(context, PARAM, "") == ["orders"]


@pytest.mark.parametrize("kept", [b"", b"{}", b'["\xff"]', b"[1]", b"[" * 100_000])
def test_a_damaged_cache_is_none(
    context: click.Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: bytes
) -> None:
    monkeypatch.setattr(completing, "_topics", lambda _: ["orders"])
    completing.topics(context, PARAM, "")
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(kept)
    assert completing.topics(context, PARAM, "") == ["orders"]
    assert json.loads(file.read_bytes()) == ["orders"]


def test_a_shell_gets_no_name_that_it_would_read_otherwise(
    context: click.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["$(reboot)", "a b", "`x`", "fine.name_1-2", "*", "new\nline", "\x1b[31m", "né"]
    monkeypatch.setattr(completing, "_groups", lambda _: names)
    assert completing.groups(context, PARAM, "") == ["fine.name_1-2", "né"]


def test_brokers_of_a_list(context: click.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completing, "_brokers", lambda _: ["1", "2", "10"])
    assert completing.brokers(context, PARAM, "1") == ["1", "10"]
    assert completing.brokers(context, PARAM, "10,") == ["10,1", "10,2"]


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one topic, beside a `kctl` that the PATH finds first."""
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    command = tmp_path / "kctl"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{KCTL}" "$@"\n')
    command.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def shell(name: str) -> str:
    """The path of a shell; skips where the machine has none."""
    return shutil.which(name) or pytest.skip(f"no {name} on the PATH")


@pytest.mark.slow
def test_bash_itself(evidence: Path) -> None:
    script = (
        'eval "$(kctl completion bash)"; '
        f'COMP_WORDS=(kctl replica loss {evidence} --topic ""); COMP_CWORD=5; '
        "_kctl_completion kctl; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    said = subprocess.run([shell("bash"), "-c", script], capture_output=True, text=True, check=False)
    assert said.stdout.splitlines() == ["orders"], said.stderr


@pytest.mark.slow
def test_fish_itself(evidence: Path) -> None:
    script = f"kctl completion fish | source; complete -C 'kctl segment ver'; complete -C 'kctl replica loss {evidence} --topic '"
    said = subprocess.run([shell("fish"), "-c", script], capture_output=True, text=True, check=False)
    verify, topic = said.stdout.splitlines()
    assert verify.startswith("verify\tCheck segments") and topic == "orders", said.stderr


@pytest.mark.slow
def test_zsh_itself(evidence: Path) -> None:
    """Only its line editor completes, so it gets a terminal, and the tab key."""
    program = shell("zsh")
    pid, terminal = os.forkpty()
    if pid == 0:
        os.execve(program, [program, "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": "> "})
    ready = "autoload -U compinit; compinit -u -D; source <(kctl completion zsh); echo rea''dy\n"
    asked = f"kctl replica loss {evidence} --topic o\t\x01echo \n"  # then the line's begin: it is printed, not run
    try:
        for typed, wanted in ((ready, b"ready"), (asked, b"--topic orders")):
            os.write(terminal, typed.encode())
            said, until = b"", time.monotonic() + 120
            while wanted not in said and time.monotonic() < until:
                if select.select([terminal], [], [], 1)[0]:
                    said += os.read(terminal, 65536)
            assert wanted in said, said
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
