"""What the pages show is what comes out: blocks `console` are run, commands in all others are commands there are."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from commands.about.schema import named
from commands.main import root
from docs.making import compatibility, pictures
from kctl.errors import KctlError
from tests.conftest import HERE, kctl

ROOT = HERE.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])
CONSOLE = re.compile(r"(?m)^```console\n(.*?)^```$", re.DOTALL)
COLUMNS = 100


def said(line: str) -> str:
    """What a line prints on a terminal."""
    if line.startswith("kctl ") and not set("|>&;") & set(line):
        ran = kctl(*shlex.split(line)[1:], columns=COLUMNS, env={"NO_COLOR": "1"})
        return ran.out.decode() + ran.err
    ran_by_shell = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    return ran_by_shell.stdout + ran_by_shell.stderr


def fits(shown: str, fresh: str) -> bool:
    """Whether it is what is printed now; a line `…` stands for any lines."""
    return re.fullmatch("(?:.*\n)*?".join(map(re.escape, shown.split("…\n"))), fresh) is not None


def shortened(fresh: str, shown: str) -> str:
    """What is printed now, left out where it was before."""
    first, *_, last = shown.split("…\n") if shown.count("…\n") == 1 else (None, None)
    if first is None or last is None:
        return fresh
    lines = fresh.splitlines(keepends=True)
    tail = lines[len(lines) - last.count("\n") :]
    return "".join([*lines[: first.count("\n")], "…\n", *tail])


def played(block: str) -> str:
    """The block with what its commands print."""
    out = []
    for part in re.split(r"(?m)^(?=\$ )", block):
        line, _, shown = part.partition("\n")
        if not line:
            continue
        fresh = "".join(f"{one.rstrip()}\n" for one in said(line[2:]).splitlines())
        out.append(f"{line}\n{shown if fits(shown, fresh) else shortened(fresh, shown)}")
    return "".join(out)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if CONSOLE.search(page.read_text("utf-8"))], ids=lambda page: page.stem
)
def test_what_a_page_shows_comes_out(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    before = page.read_text("utf-8")
    after = CONSOLE.sub(lambda block: f"```console\n{played(block[1])}```", before)
    if request.config.getoption("--rewrite"):
        page.write_text(after, encoding="utf-8")
    assert after == before or request.config.getoption("--rewrite"), (
        "if this is right: `pytest tests/docs/test_pages.py --rewrite`"
    )


# --- commands are written rightly ---------------------------------------------------------------------


def commands_in(text: str) -> Iterator[str]:
    """Every line of kctl in blocks and in `code`."""
    for block in re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            found = re.match(r"\s*(?:\$ |until )?(kctl .*)", line)
            if found:
                yield found[1]
    yield from re.findall(r"(?<!`)`(kctl [a-z][^`…]*)`(?!`)", text)


def parsed(line: str) -> None:
    """Read the line as kctl would, and run nothing. Raises click.UsageError."""
    spoken = re.split(r"\s#|[|>;]| 2>| \\$", line.partition('"$(')[0])[0]
    words = shlex.split(re.sub(r"[a-z0-9]+://\S+", "folder", spoken), posix=True)[1:]
    ctx = click.Context(root, info_name="kctl")
    command: click.Command = root
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        _, found, words = command.resolve_command(ctx, words)
        assert found, line
        command = found
    if not isinstance(command, click.Group) and words and not {"-h", "--help"} & set(words):
        options = [word for word in words if word.startswith("--")]
        known = {name for p in command.params for name in [*p.opts, *p.secondary_opts]}
        for option in options:
            if option.partition("=")[0] not in known:
                raise click.NoSuchOption(option)
        if "COMMAND" not in words and len(words) > len(options):
            command.make_context("kctl", [*words])  # it empties the list
            if command.name == "schema":
                named(tuple(word for word in words if not word.startswith("--")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_are_commands_of_kctl(page: Path) -> None:
    for line in commands_in(page.read_text("utf-8")):
        if not re.search(r"\b(COMMAND|CODE|NODE)\b|\$node", line):
            try:
                parsed(line)
            except click.MissingParameter:
                assert "`" + line + "`" in page.read_text("utf-8"), line  # a command that is only named
            except (click.UsageError, KctlError, ValueError) as error:
                raise AssertionError(f"{line}: {error}") from error


# --- what is made -------------------------------------------------------------------------------------


def test_the_table_of_versions_is_that_of_the_tests(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        compatibility.PAGE.write_text(compatibility.text(), encoding="utf-8")
    assert compatibility.PAGE.read_text("utf-8") == compatibility.text(), (
        "`python -m docs.making.compatibility`"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", pictures.TERMINALS)
def test_the_pictures_show_what_is_printed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert (pictures.FOLDER / f"{name}.svg").read_text("utf-8") == pictures.terminal(name), "`make pictures`"
