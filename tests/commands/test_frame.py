"""What surrounds every command: options in both places, errors of one line, the forms of output, interruptions."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.cli.leaving import folded, visible
from commands.cli.render import Page, aligned, tab_separated, table
from commands.topic import list_text
from kctl.collect.collection import _printable
from kctl.errors import KctlError
from kctl.evidence.names import UNSAFE
from kctl.model import REORDERING
from kctl.report.html import element
from kctl.rows import RowType, is_wrong
from kctl.settings import Context, read_context, with_secrets
from kctl.wire import adapter
from kctl.zookeeper import connection
from tests.conftest import errors_in, kctl, recording, rows

SETTINGS = Path(__file__).parents[2] / "docs" / "settings.md"
KCTL = [sys.executable, "-m", "commands.main"]


def test_global_options_work_before_and_after_the_verb() -> None:
    before = kctl("--output", "jsonl", "finding", "batch-crc-mismatch")
    after = kctl("finding", "batch-crc-mismatch", "--output", "jsonl")
    assert before.out == after.out
    assert json.loads(after.out)["code"] == "batch-crc-mismatch"


def test_the_verbs_own_value_wins() -> None:
    assert kctl("--output", "json", "finding", "batch-crc-mismatch", "--output", "jsonl").out.startswith(b"{")


def test_environment_sets_an_option() -> None:
    assert kctl("finding", env={"KCTL_OUTPUT": "json"}).out.startswith(b"[\n{")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["findng"], "Did you mean `finding`?"),
        (["finding", "no-such"], "no finding 'no-such'"),
        (["finding", "--no-such"], "--no-such"),
        (["schema", "nothing"], "no command `nothing`"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
        (["config", "get"], "Missing option '--entity-type'. Choose from: topics, brokers, "),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(args: list[str], says: str) -> None:
    ran = kctl(*args)
    assert ran.status == 2
    assert says in ran.err
    assert len(ran.errors) == 1
    assert ran.err.startswith("kctl: ")


def test_nothing_at_all_shows_the_help() -> None:
    ran = kctl()
    assert ran.status == 2
    assert "Commands:" in ran.err


def test_version() -> None:
    assert kctl("--version").out.startswith(b"kctl 0.")


def test_schema_describes_what_is_printed() -> None:
    assert rows("finding").status == 0
    assert rows("doctor").of("check")
    assert json.loads(kctl("schema", "finding").out)["anyOf"][0]["title"] == "finding_type"


def test_shells_show_the_help_of_commands_whole() -> None:
    import click

    from commands.main import root

    proposed = {item.value: item.help for item in root.shell_complete(click.Context(root), "")}
    assert proposed["segment"] == "Print, check and rebuild segments and the files beside them."
    assert "--output" in {item.value for item in root.shell_complete(click.Context(root), "--o")}


def test_completion_of_each_shell() -> None:
    for shell, word in (
        ("bash", b"complete -o"),
        ("zsh", b"#compdef kctl"),
        ("fish", b"function _kctl_completion"),
    ):
        assert word in kctl("completion", shell).out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "proposed"),
    [
        ("kctl fin", "plain,finding"),
        ("kctl segment ver", "plain,verify"),
        ("kctl segment verify --le", "plain,--level"),
        ("kctl segment verify --level ", "plain,crc"),
        ("kctl segment verify exam", "file,exam"),
        ("kctl replica loss exam", "file,exam"),
        ("kctl remote audit ev --tier exam", "file,exam"),
        ("kctl state-log timeline exam", "file,exam"),
        ("kctl checkpoint show exam", "file,exam"),
        ("kctl reassign execute pl", "file,pl"),
        ("kctl topic list --snapshot zn", "file,zn"),
        ("kctl finding batch-crc", "plain,batch-crc-mismatch"),
        ("kctl schema seg", "plain,segment"),
        ("kctl schema segment ver", "plain,verify"),
        ("kctl topic list --context st", "plain,staging"),
    ],
)
def test_completion_proposes(line: str, proposed: str, tmp_path: Path) -> None:
    settings = tmp_path / "config.toml"
    settings.write_text('[contexts.prod]\nzookeeper = "z:1"\n[contexts.staging]\nzookeeper = "z:2"\n')
    said = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0]='kctl'; from commands.main import run; run()"],
        env={**os.environ, "_KCTL_COMPLETE": "bash_complete", "COMP_WORDS": line,
             "COMP_CWORD": str(line.count(" ")), "KCTL_CONFIG": str(settings)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert proposed in said.stdout.splitlines()


def test_fish_gets_descriptions_whole() -> None:
    assert b'string split --max 1 ","' in kctl("completion", "fish").out


def test_a_closed_pipe_is_141_and_silent() -> None:
    script = f"{sys.executable} -c 'from commands.main import run; run()' finding --output json | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=env, check=True)
    assert ran.stdout.strip() in ("141", "0")
    assert ran.stderr == ""


@pytest.mark.parametrize(
    ("environment", "option", "colour"),
    [
        ({}, [], True),
        ({"NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": ""}, [], True),
        ({"TERM": "dumb"}, [], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
        ({}, ["--color", "never"], False),
    ],
)
def test_colour_on_a_terminal(environment: dict[str, str], option: list[str], colour: bool) -> None:
    pid, terminal = os.forkpty()
    if pid == 0:
        kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        words = ["-c", "from commands.main import run; run()", "finding", "batch-crc-mismatch", *option]
        os.execve(sys.executable, [sys.executable, *words], {**kept, "TERM": "xterm", **environment})
    said = b""
    try:
        while piece := os.read(terminal, 65536):
            said += piece
    except OSError:  # the other end is gone
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"batch-crc-mismatch" in said
    assert (b"\x1b[" in said) is colour


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "list", "--snapshot"],
        ["topic", "config", "get", "orders", "--snapshot"],
        ["replica", "simulate"],
    ],
)
def test_a_folder_in_place_of_a_file_is_status_3(words: list[str], tmp_path: Path) -> None:
    ran = kctl(*words, tmp_path)
    assert ran.status == 3
    assert ran.err.startswith("kctl: /")
    assert len(ran.errors) == 1


def test_a_field_that_no_table_knows_is_named() -> None:
    with pytest.raises(ValueError, match="colour is not in SHARED"):
        RowType("place: For these tests.\n    colour?")


PLACE = RowType("""
    place: For these tests.
    name  string
    offset?
""")


def test_a_pipe_gets_tabs_and_a_header_a_kind() -> None:
    assert list(tab_separated([PLACE(name="a", offset=1), PLACE(name="b")])) == [
        "kind\tname\toffset",
        "place\ta\t1",
        "place\tb\t",
    ]


def test_a_terminal_gets_columns() -> None:
    assert list(aligned([PLACE(name="a", offset=100), PLACE(name="long")], Page(80, color=False))) == [
        "name  offset",
        "a        100",
        "long",
    ]


def test_a_narrow_page_breaks_between_words() -> None:
    red = Page(80, color=True).style("red words", "error")
    line = f"    the {red} of it, and " + "a" * 30
    assert list(folded(line, 80)) == [line]
    pieces = list(folded(line, 22))
    assert pieces == [f"    the {red} of", "        it, and", "        " + "a" * 30]
    assert list(folded("", 10)) == [""]


@pytest.mark.slow
@given(st.text(alphabet="ab ,\x1b[0m", max_size=60), st.integers(1, 30))
def test_folding_keeps_every_character_but_spaces(line: str, width: int) -> None:
    pieces = list(folded(line, width))
    assert "".join("".join(pieces).split()) == "".join(line.split())


def test_brokers_fit_a_terminal() -> None:
    from commands.cluster.describe import brokers_text

    snapshot = recording("incidents/unclean-2.8") / "moments/during/znodes.jsonl"
    found = rows("cluster", "brokers", "--snapshot", snapshot)
    assert list(brokers_text(found.rows, Page(80, color=False))) == [
        "broker  state              address          replicas  leads  imbalance",
        "     1  DEAD                                       3      0  100 % of 3",
        "     2  alive              127.0.0.1:24102         3      3",
        "     3  alive, controller  127.0.0.1:24103         0      0",
    ]


def test_an_unknown_key_of_a_row_is_a_bug() -> None:
    with pytest.raises(TypeError, match="has no key"):
        PLACE(nome="a")


def test_a_context_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[contexts.prod]\nzookeeper = "z:1"\n[contexts.dev]\nzookeeper = "z:2"\n')
    ran = kctl("topic", "list", "--context", "dve", env={"KCTL_CONFIG": str(file)})
    assert (ran.status, "it has prod, dev; or leave --context out" in ran.err) == (3, True)
    file.write_text("contexts = [")
    ran = kctl("topic", "list", env={"KCTL_CONFIG": str(file)})
    assert (ran.status, f"settings file {file} is not TOML" in ran.err) == (3, True)
    ran = kctl("topic", "list", env={"KCTL_CONFIG": str(tmp_path)})
    assert (ran.status, "is a folder" in ran.err) == (3, True)


def test_a_journal_that_is_no_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = kctl("journal", "list", env={"KCTL_JOURNAL": str(tmp_path / "file")})
    assert (ran.status, ran.err.splitlines()[0]) == (3, f"kctl: {tmp_path}/file: not a directory")
    assert kctl("journal", "list", env={"KCTL_JOURNAL": str(tmp_path / "none")}).status == 0


def test_a_scenario_is_named_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("brokers")
    ran = kctl("replica", "simulate", tmp_path / "mine.toml")
    assert (ran.status, f"{tmp_path}/mine.toml: not TOML" in ran.err) == (2, True)
    ran = kctl("replica", "simulate", "unclean-election", "--compare", "3.9")
    assert (ran.status, "is not two versions" in ran.err) == (2, True)


def test_a_folder_without_an_audit_is_said_without_numbers(tmp_path: Path) -> None:
    ran = kctl("audit", "report", tmp_path)
    assert ran.status == 3
    assert "not an audit (summary.json: no such file or directory); make one with" in ran.errors[0]


def test_an_export_in_place_of_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "znodes.jsonl").touch()
    ran = kctl("znode", "show", "/brokers", "--zookeeper", tmp_path / "znodes.jsonl")
    assert ran.status == 2 and "is a file" in ran.err and "--snapshot FILE" in ran.err


def test_contexts(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        'default_context = "a"\n[contexts.a]\nzookeeper = "z:1/k"\nread_only = true\nzokeeper = 1\n[contexts.b]\nread_only = 3\n'
    )
    warnings: list[str] = []
    environ = {"KCTL_CONFIG": str(file)}
    found = read_context({}, warn=warnings.append, environ=environ)
    assert (found.name, found.zookeeper, found.read_only) == ("a", "z:1/k", True)
    assert len(warnings) == 1
    assert "unknown key 'zokeeper'" in warnings[0]
    assert read_context({"zookeeper": "flag:1"}, warn=warnings.append, environ=environ).zookeeper == "flag:1"
    over = read_context({}, warn=warnings.append, environ={**environ, "KCTL_CLUSTER_ID": "x"})
    assert over.cluster_id == "x"
    with pytest.raises(KctlError, match="not a bool"):
        read_context({"context": "b"}, warn=warnings.append, environ=environ)
    with pytest.raises(KctlError, match="no context 'c'"):
        read_context({"context": "c"}, warn=warnings.append, environ=environ)


@pytest.mark.parametrize(
    ("text", "value"),
    [(word, value) for words, value in (("true YES On 1 y T", True), ("False no OFF 0 N f", False)) for word in words.split()],
)  # fmt: skip
def test_booleans_have_one_parser(text: str, value: bool, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[contexts.a]\nzookeeper = "z:1"\nread_only = "{text}"\n')
    environ = {"KCTL_CONFIG": str(file), "KCTL_TLS": text}
    context = read_context({"context": "a"}, warn=lambda _: None, environ=environ)
    assert (context.tls, context.read_only) == (value, value)


@pytest.mark.parametrize("name", ["KCTL_TLS", "KCTL_READ_ONLY"])
def test_a_value_that_is_no_boolean_is_wrong_usage(name: str) -> None:
    ran = kctl("topic", "list", "--bootstrap-server", "127.0.0.1:1", env={name: "enabled"})
    assert ran.status == 2 and f"{name} is neither true nor false" in ran.err


def test_a_settings_file_with_a_password_that_others_can_read_is_warned_of(tmp_path: Path) -> None:
    file, warnings = tmp_path / "config.toml", list[str]()
    file.write_text('[contexts.a]\nzookeeper = "z:1"\nsasl_password = "x"\n')
    for mode in (0o600, 0o644):
        file.chmod(mode)
        read_context({"context": "a"}, warn=warnings.append, environ={"KCTL_CONFIG": str(file)})
    assert warnings == [f"others can read {file}, and it contains a password; run chmod 600"]


def test_a_password_comes_from_what_prints_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of docs/settings.md, with something of the name of Python's keyring."""
    keyring = tmp_path / "keyring"
    keyring.write_text('#!/bin/sh\ntest "$*" = "get kafka admin" && echo "geh;eim $HOME"\n')
    keyring.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (command,) = re.findall(r'`sasl_password_command = "(keyring .*?)"`', SETTINGS.read_text())
    context = Context(zookeeper="z:1", sasl_password_command=command)
    wanted = f"geh;eim {os.environ['HOME']}"
    assert connection.access_from(context).sasl_password == wanted
    assert adapter.access_from(context, "b:1", 1.0).sasl_password == wanted
    assert adapter.access_from(context._replace(sasl_password="own"), "b:1", 1.0).sasl_password == "own"
    assert context.sasl_password is None, "asked for only when kctl connects"
    with pytest.raises(KctlError, match="no such file or directory"):
        with_secrets(Context(sasl_password_command="none $(id)"))


def test_a_password_is_the_whole_line_and_the_command_is_not_shown() -> None:
    line = "a\u2028b\x0bc\u0085d"
    printing = f'{sys.executable} -c "print({line!a})"'
    assert with_secrets(Context(sasl_password_command=printing)).sasl_password == line
    with pytest.raises(KctlError) as raised:
        with_secrets(Context(sasl_password_command="false --token hvs.SECRET"))
    assert "'false'" in str(raised.value) and "hvs" not in str(raised.value)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("no-such-command x", "no such file or directory"),
        ("false", "ended with status 1"),
        ("true", "printed nothing"),
        ("sleep 5", "took longer than 0.1 seconds"),
        ("printf 'x", "is no command"),
        ("  ", "is no command"),
        ("yes", "printed more than 65,536 bytes"),
    ],
)
def test_a_command_without_a_password_is_said(
    command: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kctl.settings.FOR_A_SECRET", 0.1)
    with pytest.raises(KctlError) as raised:
        with_secrets(Context(tls_key_password_command=command))
    assert str(raised.value).startswith("tls_key_password_command") and problem in str(raised.value)
    assert "run it by hand" in raised.value.hint


def test_doctor_says_where_a_setting_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[contexts.a]\nzookeeper = "z:1"\nsasl_password = "geheim"\n')
    ran = rows("doctor", "--context", "a", env={"KCTL_CONFIG": str(file), "KCTL_CLUSTER_ID": "q"})
    said = {row["name"]: (row["value"], row["origin"]) for row in ran.of("setting")}
    assert said["zookeeper"] == ("z:1", "context")
    assert said["cluster_id"] == ("q", "environment")
    assert said["sasl_password"] == ("(set)", "context")
    assert b"geheim" not in ran.out


def test_interrupted_is_130() -> None:
    code = (
        "import click, commands.about.finding as f, commands.main as m, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        "f.finding.callback = lambda *a, **k: (print('up', flush=True), time.sleep(30))\n"
        "m.run()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "finding"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.strip() == "kctl: interrupted"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("args", [["finding"], ["--help"], ["schema", "segment", "dump"]])
def test_a_full_disk_is_one_line(args: list[str]) -> None:
    env = {name: value for name, value in os.environ.items() if name != "KCTL_DEBUG"}
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "commands", *args], stdout=full, stderr=subprocess.PIPE, text=True, env=env
        )
    assert ran.returncode == 3
    assert errors_in(ran.stderr) == [
        "kctl: standard output: no space left on device; free some space, or write elsewhere"
    ]


WIDE = RowType("""
    wide: For these tests.
    name           string
    registered_at  integer?
    path           string
""")


def test_a_row_that_is_too_wide_stands_in_lines() -> None:
    rows = [WIDE(name="a", registered_at=1795267123393, path="p" * 60)]
    assert list(aligned(rows, Page(60, color=False))) == [
        "name           a",
        "registered_at  2026-11-21T13:18:43.393Z",
        "path           " + "p" * 60,
    ]


LONG = "payments-reconciliation-eu-west-1-production-events-v2-inter"  # 60 characters, the longest beside its columns


@pytest.mark.parametrize(
    ("length", "headings"),
    [
        (60, ["topic                                                        partitions replicas"]),
        (57, [
            "                                                                     replication",
            "topic                                                     partitions      factor",
        ]),
    ],
)  # fmt: skip
def test_names_of_60_characters_fit_a_terminal_of_80(length: int, headings: list[str]) -> None:
    """Headings and gaps give way before a row does."""
    listed = [
        {"kind": "topic", "topic": name, "partition_count": partitions, "replication_factor": 3,
         "is_marked_for_deletion": False}
        for name, partitions in ((LONG[:length], 12), ("orders", 100))
    ]  # fmt: skip
    *shown, first, second = list_text(listed, Page(80, color=False))
    assert shown == headings
    width = len(headings[-1]) - length - len(" partitions ")
    assert first == f"{LONG[:length]} {12:>10} {3:>{width}}"
    assert second == f"{'orders':<{length}} {100:>10} {3:>{width}}"


@pytest.mark.parametrize("names", [[LONG + LONG, "orders"], [LONG]])
def test_a_name_that_stands_alone_leaves_the_heading_whole(names: list[str]) -> None:
    listed = [
        {"kind": "topic", "topic": name, "partition_count": 12, "replication_factor": 3, "is_marked_for_deletion": False}
        for name in names
    ]  # fmt: skip
    assert not any("replicas" in line for line in list_text(listed, Page(80, color=False)))


def test_only_rows_whose_name_is_too_long_take_two_lines() -> None:
    group = {"kind": "group", "type": "consumer", "protocol_type": "consumer", "coordinator": 2}
    listed = [
        {**group, "group": LONG, "state": "PreparingRebalance"},
        {**group, "group": LONG[:29], "state": "Empty"},
        {**group, "group": "billing", "state": "Stable"},
    ]
    names = "group", "type", "state", "protocol_type", "coordinator"
    assert list(
        aligned([{"kind": "group", **{n: g[n] for n in names}} for g in listed], Page(80, color=False))
    ) == [
        "                                                          protocol_",
        "group                         type     state              type      coordinator",
        "payments-reconciliation-eu-west-1-production-events-v2-inter",
        "                              consumer PreparingRebalance consumer            2",
        "payments-reconciliation-eu-we consumer Empty              consumer            2",
        "billing                       consumer Stable             consumer            2",
    ]


def test_columns_that_do_not_fit_stand_below() -> None:
    rows = [WIDE(name="a", registered_at=None, path="1" * 38), WIDE(name="b" * 20, path="2")]
    assert list(aligned(rows, Page(40, color=False))) == [
        "name",
        "    path",
        "a",
        "    " + "1" * 38,
        "b" * 20,
        "    2",
    ]


def test_a_long_first_cell_leaves_its_room_to_the_other_columns() -> None:
    rows = [WIDE(name="a", registered_at=None, path="1" * 30), WIDE(name="b" * 20, path="2")]
    assert list(aligned(rows, Page(40, color=False))) == [
        "name path",
        "a    " + "1" * 30,
        "b" * 20,
        "     2",
    ]


def test_the_widest_columns_are_folded_and_numbers_never() -> None:
    principal = "User:CN=billing,OU=payments,O=Example Corp,L=Berlin,C=DE"
    rows: list[dict[str, object]] = [
        {"kind": "x", "type": "topic", "name": LONG, "principal": principal, "offset": 123456789012, "isr": "1,2,3"},
        {"kind": "x", "type": "group", "name": "orders", "principal": "User:a", "offset": 7, "isr": "1"},
    ]  # fmt: skip
    assert list(table(rows, Page(80, color=False))) == [
        "type  name                        principal                         offset isr",
        "topic payments-reconciliation-eu- User:CN=billing,OU=         123456789012 1,2,3",
        "      west-1-production-events-   payments,O=Example Corp,L=",
        "      v2-inter                    Berlin,C=DE",
        "group orders                      User:a                                 7 1",
    ]


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ({"kind": "finding", "severity": "warning"}, True),
        ({"kind": "finding", "severity": "info"}, False),
        ({"kind": "difference", "severity": "error"}, True),
        ({"kind": "difference"}, False),  # of a command that only shows what differs
        ({"kind": "entry", "severity": "error"}, False),
    ],
)
def test_what_is_wrong_is_told_by_kinds_that_are_reserved(row: dict[str, object], wrong: bool) -> None:
    assert is_wrong(row) is wrong


def test_doctor_names_the_pip_of_its_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kctl import doctor

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(doctor, "find_spec", lambda _: True)
    assert doctor.pip_install() == f"{sys.executable} -m pip install"
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)  # as `uv tool install` leaves it
    assert doctor.pip_install() == f"uv pip install --python {sys.executable}"
    own = tmp_path / "own"
    own.mkdir()
    (own / "pip").write_text("#!/bin/sh\n")
    (own / "pip").chmod(0o755)
    monkeypatch.setenv("PATH", str(own))
    monkeypatch.setattr(sys, "executable", str(own / "python"))
    assert doctor.pip_install() == "pip install"


@pytest.mark.parametrize("width", [1, 80])
def test_rows_with_no_value_to_show_are_no_table(width: int) -> None:
    assert list(table([{"kind": "finding", "file": None}], Page(width, color=False))) == []
    assert list(table([{"kind": "finding", "file": ""}] * 2, Page(width, color=False)))


def test_a_remark_that_is_too_wide_stands_alone() -> None:
    text = "\n".join(table([{"kind": "finding", "": "long " * 30}] * 2, Page(80, color=False)))
    assert text.count("long " * 29) == 2


def test_characters_that_reorder_text_are_seen_everywhere() -> None:
    """Unicode's Bidi_Control, on terminals, in reports, in names of collected files."""
    reordering = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.bidirectional(chr(code))
        in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    ]
    reordering += ["\u200e", "\u200f", "\u061c"]  # marks
    for character in reordering:
        assert re.fullmatch(f"[{REORDERING}]", character), hex(ord(character))
        assert character not in visible(f"a{character}b") and character not in str(
            element("b", f"a{character}b")
        )
        assert UNSAFE.search(character) and character not in _printable(f"a{character}b")
