"""`--where`, `--columns`, `--sort`, `--every`, the file of contexts, and the first step in a folder of evidence."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import termios
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.about.config_file import TEMPLATE
from commands.cli import repeating
from commands.cli.repeating import CLEAR, OTHER_SCREEN, OWN_SCREEN, repeated
from kctl.errors import KctlError
from kctl.settings import KEYS
from tests.conftest import HERE, Ran, Terminal, kctl, rows

EXAMPLE = HERE.parent / "examples" / "unclean-election"
LEDGER = EXAMPLE / "moments" / "after" / "broker-2" / "data" / "ledger-0" / "00000000000000000000.log"


def lines(ran: Ran) -> list[str]:
    return ran.out.decode().splitlines()


def test_conditions_choose_rows() -> None:
    wrong = rows("finding", "--where", "severity=error", "--where", "code~crc").of("finding_type")
    assert wrong and all(row["severity"] == "error" and "crc" in row["code"] for row in wrong)
    others = rows("finding", "--where", "severity!=error").of("finding_type")
    assert others and not any(row["severity"] == "error" for row in others)


def test_where_nothing_meets_the_conditions_it_is_said() -> None:
    ran = kctl("segment", "verify", LEDGER, "--where", "topic=legder")
    assert (ran.status, ran.out) == (0, b"")
    assert re.search(r"none of \d+ rows meets --where topic=legder; the exit status counts them all", ran.err)
    assert kctl("segment", "verify", LEDGER, "--where", "kind=file").err == ""


def test_numbers_are_compared_as_numbers() -> None:
    dumped = rows(
        "segment",
        "dump",
        LEDGER,
        "--records",
        "--where",
        "kind=record",
        "--where",
        "offset>=9",
        "--where",
        "offset<11",
    )
    assert [row["offset"] for row in dumped.rows] == [9, 10]


def test_columns_and_order() -> None:
    ran = kctl(
        "segment",
        "dump",
        LEDGER,
        "--columns",
        "base_offset,codec",
        "--sort=-base_offset",
        "--where",
        "kind=batch",
    )
    offsets = [int(line.split("\t")[1]) for line in lines(ran)[1:]]
    assert (
        lines(ran)[0] == "kind\tbase_offset\tcodec"
        and offsets == sorted(offsets, reverse=True)
        and len(offsets) > 3
    )


def test_null_comes_last_either_way() -> None:
    for sort in ("records", "-records"):
        found = kctl(
            "segment",
            "verify",
            EXAMPLE / "moments" / "before",
            "-q",
            "--where",
            "kind=file",
            "--columns",
            "records",
            "--sort",
            sort,
        )
        values = [line.split("\t")[1] for line in lines(found)[1:]]
        assert "" in values and values == sorted(values, key=lambda value: value == "")


def test_the_status_is_that_of_all_rows() -> None:
    ran = kctl("replica", "loss", EXAMPLE, "--where", "topic=another", "-q")
    assert (ran.status, ran.out) == (5, b"")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["finding", "--where", "sevrity=error"], "did you mean severity?"),
        (["finding", "--where", "severity"], "is not a condition such as"),
        (["finding", "--sort", "nothing"], "has the key 'nothing'"),
        (["completion", "bash", "--columns", "a"], "prints no rows to choose from"),
    ],
)
def test_what_cannot_be_chosen_is_said(args: list[str], says: str) -> None:
    ran = kctl(*args)
    assert ran.status == 2 and says in ran.err, ran.err


@pytest.mark.slow
def test_again_and_again_until_interrupted(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "commands",
        "reassign",
        "status",
        "--snapshot",
        "none",
        "--every",
        "0.05",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE.parent
    ) as running:
        assert running.stderr is not None
        said = [running.stderr.readline() for _ in range(6)]
        running.send_signal(signal.SIGINT)
        running.communicate()
    assert said[0] == said[2] == said[4] and "none" in said[0]
    assert running.returncode == 3, "the status of the last look, not that of an interruption"


def test_top_looks_once_in_a_pipe_and_shows_brokers_and_what_is_wrong() -> None:
    export = EXAMPLE / "moments" / "during" / "znodes.jsonl"
    ran = rows("top", "--snapshot", export)
    assert ran.status == 5
    assert [(row["broker_id"], row["is_alive"]) for row in ran.of("broker")] == [
        (1, False),
        (2, True),
        (3, True),
    ]
    assert {row["check"] for row in ran.of("health") if row["status"] == "warning"} == {
        "dead-brokers",
        "under-replicated",
    }


@pytest.mark.slow
def test_a_screen_is_left_as_it_was_found() -> None:
    export = EXAMPLE / "moments" / "during" / "znodes.jsonl"
    command = f"{sys.executable} -m commands top --snapshot {export} --every 0.05"
    reader, writer = os.openpty()
    with subprocess.Popen(command.split(), stdout=writer, stderr=writer, cwd=HERE.parent) as running:
        os.close(writer)
        seen = b""
        while seen.count(b"\x1b[H\x1b[J") < 3:
            seen += os.read(reader, 4096)
        running.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(reader, 4096):
                seen += part
    os.close(reader)
    assert running.returncode == 5
    assert seen.startswith(b"\x1b[?1049h\x1b[?25l") and seen.endswith(b"\x1b[?25h\x1b[?1049l")


@pytest.mark.slow
@pytest.mark.parametrize("key", [b"q", b"xq"])
def test_q_leaves_and_the_terminal_takes_lines_again(key: bytes) -> None:
    export = EXAMPLE / "moments" / "during" / "znodes.jsonl"
    command = f"{sys.executable} -m commands top --snapshot {export} --every 30"
    reader, writer = os.openpty()
    before = termios.tcgetattr(writer)
    with subprocess.Popen(
        command.split(), stdin=writer, stdout=writer, stderr=writer, cwd=HERE.parent
    ) as running:
        seen = b""
        while CLEAR not in seen:
            seen += os.read(reader, 4096)
        assert termios.tcgetattr(writer) != before
        os.write(reader, key)
        assert running.wait(20) == 5
    assert termios.tcgetattr(writer) == before
    os.close(writer)
    os.close(reader)


def test_the_last_look_stays_until_the_next_has_something_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[bytes] = []
    monkeypatch.setattr(repeating, "write", happened.extend)
    monkeypatch.setattr(repeating, "say_error", lambda error: happened.append(b"error"))

    def look(make_room: Callable[[], None]) -> int:
        happened.append(b"asked")
        if happened.count(b"asked") == 2:
            raise KctlError("no broker answers")
        if happened.count(b"asked") == 4:
            raise KeyboardInterrupt
        for line in (b"a", b"b"):
            make_room()
            happened.append(line)
        return 5

    with contextlib.redirect_stdout(Terminal(io.BytesIO())):
        assert repeated(look, 0, is_text=True) == 5
    one = [b"asked", CLEAR, b"a", b"b"]
    assert happened == [OTHER_SCREEN, *one, b"asked", CLEAR, b"error", *one, b"asked", OWN_SCREEN]
    happened.clear()
    with contextlib.redirect_stdout(Terminal(io.BytesIO())):
        assert repeated(look, 0, is_text=False) == 5
    assert CLEAR not in happened and OTHER_SCREEN not in happened, "rows of JSON follow each other"


# --- the file of contexts -------------------------------------------------------------------------------


def test_the_template_has_every_key_and_is_toml() -> None:
    given = tomllib.loads(re.sub(r"(?m)^# (?=\w+ = )", "", TEMPLATE))
    assert set(given["contexts"]["example"]) == set(KEYS)


def test_a_file_is_written_once_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "kctl" / "config.toml"
    env = {"KCTL_CONFIG": str(path)}
    assert kctl("config-file", "init", env=env).status == 0
    assert path.read_text() == TEMPLATE and path.stat().st_mode & 0o777 == 0o600
    assert kctl("config-file", "init", env=env).status == 4
    assert rows("config-file", "check", env=env).of("context")[0]["problems"] == []
    said = kctl("config-file", "check", env={**env, "NO_COLOR": "1"}, columns=80).out.decode().splitlines()
    assert said == [
        "example   (default)",
        "  bootstrap_server  kafka1:9092,kafka2:9092",
        "  read_only         true",
        "no problem found; whether a cluster answers is not checked",
    ]
    path.write_text(
        'default_context = "b"\n[contexts.a]\ntls_ca = "/none"\nsasl_password = "geheim"\nsasl_password_command = "none get"\nport = 1\ntls = "perhaps"\n'
    )
    os.chmod(path, 0o644)
    ran = rows("config-file", "check", env=env)
    missing, a = ran.of("context")
    assert ran.status == 5 and missing["problems"] == ["the default, and not in the file"]
    assert [problem.split(" ")[0] for problem in a["problems"]] == [
        "tls_ca:",
        "sasl_password_command:",
        "port",
        "tls",
        "neither",
        "others",
    ]
    shown = kctl("config-file", "show", env=env)
    assert b"geheim" not in shown.out and shown.status == 0
    said = kctl("config-file", "check", env={**env, "NO_COLOR": "1"}, columns=80).out.decode()
    assert "no problem" not in said and "\n  port is not a key\n" in said and "geheim" not in said


# --- the first step -------------------------------------------------------------------------------------


def test_a_folder_of_evidence_is_known_and_a_command_is_proposed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(EXAMPLE)
    ran = kctl()
    assert (
        ran.status == 2
        and "18 segments of 18 partition folders" in ran.err
        and "next     kctl audit run . --out ../report" in ran.err
    )
    monkeypatch.chdir(LEDGER.parent)
    assert "next     kctl segment verify ." in kctl().err
    monkeypatch.chdir(EXAMPLE.parent)
    assert "Commands:" in kctl().err, "what lies far below is no evidence yet"
    monkeypatch.chdir(EXAMPLE / "broker-3")
    said = kctl().err
    assert (
        "this folder holds broker logs in 1 folder" in said and "next     kctl state-log timeline ." in said
    )
    monkeypatch.chdir(tmp_path)
    assert "Commands:" in kctl().err
