"""No character of evidence commands a terminal: what leaves kctl on standard output and standard error."""

import ast
import io
import json
import re
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import commands
from commands.cli import leaving
from commands.cli.frame import Frame
from commands.cli.leaving import json_chunks, laid_out, text_chunks, visible
from commands.cli.render import (
    Outcome,
    Page,
    Row,
    cell,
    deliver,
    folding,
    json_encoder,
)
from tests.conftest import kctl

COMMANDS_A_TERMINAL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
HOSTILE = st.text(
    st.sampled_from(
        [
            *'ab\\"m;[0]31é中\t\n\r\x00\x07\x08\x1b\x7f\x85\x9b\x9d\u061c\u200e\u2028\u202e\u2067\ud800\udc9b\udcff'
        ]
    ),
    max_size=20,
) | st.sampled_from(["\x1b[31m", "\x1b]52;c;aGk=\x07", "\x1b]8;;http://x\x1b\\", "\x9b2J", "\udc9b2J"])
HARMLESS = st.text(st.characters(categories=["L", "N", "P", "S"]))
OWN_STYLES = re.compile("\x1b\\[[0-9;]*m")


class Stream(io.TextIOWrapper):
    """A stream that keeps its bytes and says whether it is a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal

    def said(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode("utf-8")  # strictly: whatever leaves is UTF-8


def delivered(outcome: Outcome, output: str = "text", color: str = "never", *, terminal: bool = False) -> str:
    stream, sys.stdout = sys.stdout, Stream(is_terminal=terminal)
    try:
        deliver(outcome, output, color, lambda: None)
        return sys.stdout.said()
    finally:
        sys.stdout = stream


def lines_of(rows: Iterable[Row], page: Page) -> Iterator[str]:
    for row in rows:
        yield f"{page.style(str(row['name']), 'error')}: {row['list']}, {row['name']}"


@given(HOSTILE)
def test_one_line_stays_one_line_and_commands_nothing(text: str) -> None:
    for shown in (visible(text), laid_out(text)):
        assert not COMMANDS_A_TERMINAL.search(shown)
        assert not set(shown) & {"\t", "\n"}
        assert visible(shown) == shown


@given(HARMLESS)
def test_harmless_text_leaves_as_it_is(text: str) -> None:
    assert visible(text) == laid_out(text) == text
    assert b"".join(map(bytes, text_chunks([text.encode()]))) == text.encode()
    assert json.loads(b"".join(map(bytes, json_chunks([json.dumps(text).encode()])))) == text


@pytest.mark.parametrize("loaded", [True, False])
def test_each_byte_leaves_the_same_way_with_numpy_and_without(
    monkeypatch: pytest.MonkeyPatch, loaded: bool
) -> None:
    pytest.importorskip("numpy")
    if not loaded:
        monkeypatch.delitem(sys.modules, "numpy")
    for byte in (bytes([number]) for number in range(256)):
        text = b"a" + byte + b"b\r\n"
        left = b"".join(map(bytes, text_chunks([text])))
        assert (left == text) == (byte in b"\t\n" or 0x20 <= byte[0] < 0x7F), byte


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("\0", "\\x00"),
        ("é\0", "é\\x00"),
        ("\u202e", "\\u202e"),
        ("\r\n", "\r\n"),
        ("\r", "\\r"),
        ("\r\r\n", "\\r\r\n"),
    ],
)
@pytest.mark.parametrize("before", range(3))
def test_long_text_is_escaped_in_bounded_memory(
    text: str, escaped: str, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`re` keeps an object for each character that it replaces until all are."""
    monkeypatch.setattr(leaving, "CACHED", 1 << 12)
    count = 50_000
    data = ("x" * before + text * count).encode()
    tracemalloc.start()
    said = leaving.text_chunks(iter([data]))
    size = sum(map(len, said))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == before + count * len(escaped.encode())
    assert peak < 8 * len(data) + (1 << 20)
    assert b"".join(leaving.text_chunks(iter([data]))) == ("x" * before + escaped * count).encode()
    assert leaving.visible("x" * before + text * count) == "x" * before + count * leaving.visible(text)


@pytest.mark.parametrize("text", ["\x7f", "é\x7f", "\u202e", "\x9f", "\U0001f600\x7f"])
@pytest.mark.parametrize("before", range(4))
def test_long_json_is_escaped_in_bounded_memory(
    text: str, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "CACHED", 1 << 12)
    count = 50_000
    data = ("x" * before + text * count).encode()
    tracemalloc.start()
    size = sum(map(len, leaving.json_chunks(iter([data]))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    (one,) = leaving.json_chunks(iter([text.encode()]))
    assert b"".join(leaving.json_chunks(iter([data]))) == b"x" * before + one * count
    assert size == before + len(one) * count
    assert peak < 2 * len(data) + (1 << 20)


def test_a_run_of_escaped_characters_in_a_cell_stays_json() -> None:
    value = ["\x85\x85\x85\u202e\u202ex"]
    assert json.loads(cell(value)) == value and not COMMANDS_A_TERMINAL.search(cell(value))


def test_forms_of_escapes() -> None:
    assert visible("a\x1b[2Jb\u202ec\td\udcff\x9b") == "a\\x1b[2Jb\\u202ec\\td\\udcff\\x9b"
    assert cell("a\tb\n\\") == "a\\tb\\n\\\\"
    assert cell(["\x9b", "\t"]) == '["\\u009b","\\t"]'


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("color", ["never", "always"])
@pytest.mark.parametrize("text", [None, lines_of, folding(lines_of)])
@given(name=HOSTILE, more=HOSTILE)
def test_rows_as_text(terminal: bool, color: str, text: object, name: str, more: str) -> None:
    row: Row = {"kind": "x", "name": name, "list": [more, {name: more}], more or "more": more}
    said = delivered(Outcome([row], text=text), color=color, terminal=terminal)  # type: ignore[arg-type]
    assert not COMMANDS_A_TERMINAL.search(OWN_STYLES.sub("", said))
    if text:
        assert len(OWN_STYLES.findall(said)) == 2 * (color == "always" and bool(name))


@pytest.mark.parametrize("output", ["json", "jsonl"])
@given(name=HOSTILE, more=HOSTILE)
def test_rows_as_json(output: str, name: str, more: str) -> None:
    row: Row = {"kind": "x", "name": name, "list": [more, {name: more}]}
    said = delivered(Outcome([row]), output)
    assert not COMMANDS_A_TERMINAL.search(said)
    read = json.loads(said)
    assert (read[0] if output == "json" else read) == json.loads(json_encoder()(row))


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_rows_before_an_error_leave(count: int) -> None:
    """Also names that are no UTF-8, which the encoder of many rows refuses."""
    names = ["orders", "caf\udce9"]

    def rows() -> Iterator[Row]:
        for number in range(count):
            yield {"kind": "x", "name": names[number % 100 == 70]}
        raise OSError("gone")

    stream, sys.stdout = sys.stdout, Stream(is_terminal=False)
    try:
        with pytest.raises(OSError, match="gone"):
            deliver(Outcome(rows()), "jsonl", "never", lambda: None)
        written = sys.stdout.buffer.getvalue()
    finally:
        sys.stdout = stream
    lines = list(map(json.loads, written.splitlines()))
    assert [line["name"] for line in lines] == [
        "caf\\udce9" if number % 100 == 70 else "orders" for number in range(count)
    ]


@given(name=HOSTILE, cuts=st.lists(st.integers(0, 60)))
@example(name="\r\n", cuts=[])  # a line end, which stays as it is
@example(name="\r", cuts=[4])
def test_encoded_text_wherever_it_is_cut(name: str, cuts: list[int]) -> None:
    data = f"1\té{name}中\n".encode("utf-8", "surrogatepass")
    ends = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    pieces = [data[begin:end] for begin, end in pairwise(ends)]
    said = delivered(Outcome(encoded=lambda _: pieces))
    assert not COMMANDS_A_TERMINAL.search(said.replace("\r\n", "\n"))
    assert said == delivered(Outcome(encoded=lambda _: [data]))


@given(HOSTILE)
def test_exact_bytes_are_exact_in_a_pipe_only(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    outcome = Outcome(encoded=lambda _: [data], is_exact=True)
    # Windows' line ends leave as they are; they command nothing.
    assert not COMMANDS_A_TERMINAL.search(delivered(outcome, terminal=True).replace("\r\n", "\n"))
    stream, sys.stdout = sys.stdout, Stream(is_terminal=False)
    try:
        deliver(outcome, "text", "never", lambda: None)
        assert sys.stdout.buffer.getvalue() == data
    finally:
        sys.stdout = stream


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [True, False])
@given(HOSTILE)
def test_errors_notes_and_progress(terminal: bool, text: str) -> None:
    stream, sys.stderr = sys.stderr, Stream(is_terminal=terminal)
    try:
        frame = Frame({"color": "never"})
        frame.note(text)
        frame.report(ValueError(text))
        assert not COMMANDS_A_TERMINAL.search(sys.stderr.said())
        assert sys.stderr.said().count("\n") == 2
        if terminal:
            progress = frame.progress()
            progress.start(text + "[link=http://x]y[/link]", 2, "files")
            progress.note(text)
            frame.end_progress()
            drawn = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", sys.stderr.said())  # what rich writes itself
            assert not COMMANDS_A_TERMINAL.search(drawn.replace("\r", ""))
            assert "\x1b]" not in sys.stderr.said()
    finally:
        sys.stderr = stream


@pytest.mark.slow
def test_nothing_else_writes_to_standard_output_or_error() -> None:
    """What is written past `leaving` is text of kctl alone: its version, its help, and prompts."""
    allowed = {
        ("main.py", "echo"): 2,
        ("changing.py", "prompt"): 1,
        ("user.py", "prompt"): 1,
        ("journal.py", "confirm"): 1,
    }
    root = Path(commands.__file__).parent.parent
    seen: dict[tuple[str, str], int] = {}
    for file in (*root.glob("commands/**/*.py"), *root.glob("kctl/**/*.py"), *root.glob("formats/**/*.py")):
        if file == Path(leaving.__file__) or file.name == "man.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            name = called.rpartition(".")[2]
            if called == "print" or name in ("echo", "secho", "prompt", "confirm", "echo_via_pager") or (
                name == "write" and ("stdout" in called or "stderr" in called)
            ):  # fmt: skip
                seen[file.name, name] = seen.get((file.name, name), 0) + 1
    assert seen == allowed


HOSTILE_NAME = "orders\x1b]52;c;aGk=\x07\x9b2J\u202e\x7f\u2028-0"


@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
@pytest.mark.parametrize(
    "words",
    [
        ["segment", "verify"], ["segment", "dump", "--records"], ["state-log", "merge"], ["state-log", "timeline"],
        ["checkpoint", "show"], ["replica", "loss"], ["replica", "compare"], ["group", "list", "--snapshot"], ["topic", "no\x1b]8;;x"],
        ["audit", "sql"],
    ],
)  # fmt: skip
def test_names_of_files_in_answers_and_errors(words: list[str], output: str, tmp_path: Path) -> None:
    folder = tmp_path / HOSTILE_NAME
    folder.mkdir()
    log = folder / f"00000000000000000000.log{HOSTILE_NAME}"
    log.write_bytes(b"[2026-11-21 13:00:00,000] INFO \x1b]52;c;aGk=\x07 \x9b \xc2\x9b \x7f (kafka.X)\n")
    (folder / "00000000000000000000.log").write_bytes(b"\x00" * 40)
    for place in (folder, log):
        ran = kctl(*words, place, "--output", output)
        assert ran.status in (0, 2, 3, 5)
        said = ran.out.decode() + ran.err
        assert not COMMANDS_A_TERMINAL.search(said)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_line_ends_of_windows_leave_as_they_are_and_other_carriage_returns_are_seen(size: int) -> None:
    data = b"one\r\ntwo\rthree\r\r\n\r"
    chunks = [data[n : n + size] for n in range(0, len(data), size)]
    assert b"".join(map(bytes, text_chunks(chunks))) == b"one\r\ntwo\\rthree\\r\r\n\\r"


def test_what_is_said_on_a_terminal_breaks_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    for terminal in (True, False):
        monkeypatch.setattr(sys, "stderr", Stream(is_terminal=terminal))
        leaving.say("kctl: no tier in the evidence and no --tier: only logs are compared")
        leaving.say("next     kctl replica loss evidence/unclean --export lost")
        said = sys.stderr.said()  # type: ignore[attr-defined]
        assert said.splitlines()[-1] == "next     kctl replica loss evidence/unclean --export lost"
        assert (max(map(len, said.splitlines()[:-1])) <= 40) is terminal
        assert " ".join(said.split()[:12]) == "kctl: no tier in the evidence and no --tier: only logs are"
